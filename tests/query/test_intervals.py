"""Intervals of functions of noisy sums: they hold the exact number as often as they say, and follow from noisy ones."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import hubbub as hb
from bench.intervals import TABLES, generate, open_table, plan_sums, simulate
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.noise.weighted_sums import NoiseLaw, find_reach
from hubbub.query.plan.inversion import NoisyArray, invert_ratio

DRAWS = 3000
FALSE_ALARM = 1e-6
NUMBERS = (
    "avg(x)",
    "weighted_avg(x, y)",
    "geometric_mean(greatest(x, 1))",
    "var_samp(x)",
    "stddev_pop(x)",
    "covar_pop(x, y)",
    "corr(x, y)",
    "regr_slope(x, y)",
    "regr_intercept(x, y)",
)


@pytest.fixture(scope="module", params=["pure", "gaussian"])
def db(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    delta = Fraction(0) if request.param == "pure" else Fraction(1, 10**6)
    with open_table(tmp_path_factory.mktemp("intervals"), delta=delta) as held:
        yield held


@pytest.mark.parametrize("text", NUMBERS)
def test_intervals_hold_the_exact_number_as_often_as_they_say(db: hb.Database, text: str) -> None:
    """Between 94% and 97% of draws where errors are small, at least 94% where they are not; 32 cells a run of all."""
    for table, size, epsilon in ((TABLES[0], 20_000, 1), (TABLES[3], 3_000, 5), (TABLES[2], 500, 1)):
        plan = plan_sums(db, text, Fraction(epsilon))
        kind = Gaussian if plan.policy.budget.delta else Geometric
        assert all(isinstance(one, kind) for one in plan.mechanisms)
        ((truth, numbers),) = simulate(plan, generate(table, size, 7), DRAWS)
        held = sum(
            (number.low is None or number.low <= truth) and (number.high is None or truth <= number.high)
            for number in numbers
        )
        least, most = (
            binom.ppf(share, DRAWS, claim) for share, claim in ((FALSE_ALARM, 0.94), (1 - FALSE_ALARM, 0.97))
        )
        assert held >= least, (table.name, size)
        if size > 500:
            assert held <= most, (table.name, size)


@pytest.mark.parametrize("text", ["var_samp(x)", "stddev_samp(x)", "covar_samp(x, y)"])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_few_rows_at_both_ends_of_their_bounds_are_held(db: hb.Database, text: str, size: int) -> None:
    """A sample of two has twice the variance of its rows, so that what cuts an end is not a noisy number of rows."""
    rows = [({"x": end, "y": end}, many) for end, many in ((0, size // 2), (100, size - size // 2))]
    ((truth, numbers),) = simulate(plan_sums(db, text, Fraction(1)), rows, DRAWS)
    assert truth is not None
    held = sum((one.low is None or one.low <= truth) and (one.high is None or truth <= one.high) for one in numbers)
    assert held >= binom.ppf(FALSE_ALARM, DRAWS, 0.94)


@pytest.mark.parametrize("laws", [(1.0,), (1.0, 1.0), (3.0, 0.2, 1.0), (1.0, 1.01, 0.99, 5.0, 0.3)])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-3])
def test_weighted_sums_go_as_far_as_their_law_says(laws: tuple[float, ...], beta: float) -> None:
    """The law by convolution on a fine grid: a step of a hundredth moves the tail by less than 1%."""
    step = min(laws) / 50
    reach = np.arange(-int(40 * max(laws) / step), int(40 * max(laws) / step) + 1) * step
    spectrum = np.ones(1 << math.ceil(math.log2(len(reach) * 2)), dtype=complex)[
        : (1 << math.ceil(math.log2(len(reach) * 2))) // 2 + 1
    ]
    for scale in laws:
        masses = np.exp(-np.abs(reach) / scale)
        spectrum *= np.fft.rfft(
            np.roll(np.pad(masses / masses.sum(), (0, 2 * (len(spectrum) - 1) - len(reach))), -(len(reach) // 2))
        )
    found = np.fft.irfft(spectrum)
    sizes = np.minimum(np.arange(len(found)), len(found) - np.arange(len(found))) * step
    (bound,) = find_reach([1.0] * len(laws), [NoiseLaw(scale) for scale in laws], beta, 1)
    assert found[sizes > bound].sum() == pytest.approx(beta, rel=0.03)


def test_sums_without_noise_go_nowhere() -> None:
    assert find_reach([0.0], [NoiseLaw(1.0)], 0.05, 3).tolist() == [0, 0, 0]
    assert find_reach([0.0], [NoiseLaw(1.0, is_normal=True)], 0.05, 1).tolist() == [0]


def test_a_normal_noise_beside_laplace_ones_goes_no_further_than_is_said() -> None:
    """A million draws; the bound is at most 1% too far, and six deviations are 0.13% of a tail of 5%."""
    rng = np.random.default_rng(5)
    (bound,) = find_reach([1.0, 1.0], [NoiseLaw(1.0), NoiseLaw(2.0, is_normal=True)], 0.05, 1)
    beyond = (np.abs(rng.laplace(size=10**6) + 2 * rng.normal(size=10**6)) > bound).mean()
    assert 0.05 * 0.9 < beyond < 0.05 + 6 * math.sqrt(0.05 * 0.95 / 10**6)


def test_ratios_without_noise_are_points_and_without_a_denominator_all_of_their_bounds() -> None:
    exact = NoisyArray(np.array([6.0, 6.0]), (0.0,))
    by = NoisyArray(np.array([3.0, -3.0]), (0.0,))
    low, high = invert_ratio(exact, by, (NoiseLaw(1.0),), 0.05, within=(-5.0, 5.0))
    assert (low.tolist(), high.tolist()) == ([2.0, -5.0], [2.0, 5.0])


def test_ends_of_a_ratio_are_where_the_test_is_just_passed() -> None:
    """|top − end · bottom| is what the law of this very sum allows, at both ends; beyond the noise there are none."""
    noises = NoisyArray(np.array([40.0, 2.0]), (1.0, 0.0)), NoisyArray(np.array([25.0, 1.5]), (0.3, 1.0))
    laws = NoiseLaw(2.0), NoiseLaw(1.5)
    low, high = invert_ratio(*noises, laws, 0.05)
    assert np.isfinite([low[0], high[0]]).all()
    assert np.isinf([low[1], high[1]]).all()
    for end in (low[0], high[0]):
        off = noises[0].plus(noises[1], -end)
        (bound,) = find_reach(off.weights, laws, 0.05, 1)
        assert abs(off.value[0]) == pytest.approx(bound, rel=1e-4)
