"""Intervals hold what they promise: against the exact law, and against what is drawn (false alarms: 1e-6 each)."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hubbub import publish
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.publish.release.margin import Noises, chernoff, from_variance, margin, noises

ALARM = 1e-6
LAPLACE = Geometric(epsilon=Fraction(1, 2))
WIDE = Geometric(epsilon=Fraction(1, 50))
GAUSSIAN = Gaussian(sigma=Fraction(3))
NARROW = Gaussian(sigma=Fraction(2, 5))

Case = tuple[Sequence[Sequence[float]], Sequence[Geometric | Gaussian]]
CASES: dict[str, Case] = {
    "one": ([[0, 2.5, 0]], [LAPLACE]),
    "equal": ([[1] * 40], [LAPLACE]),
    "equal, of both signs": ([[0.5, -0.5] * 9], [GAUSSIAN]),
    "narrow": ([[1] * 7], [NARROW]),
    "a few": ([[1, -1, 0.5, 0.25]], [LAPLACE]),
    "narrow and a few": ([[1, 0.3, 0.7]], [NARROW]),
    "two laws": ([[1, 0.5], [0.3, 0.2, 0.1]], [LAPLACE, GAUSSIAN]),
    "two layers": ([[0.25] * 16, [0.5, 0.25, 0.125]], [LAPLACE, WIDE]),
    "many": ([np.linspace(-1, 2, 90).tolist()], [LAPLACE]),
    "one that rules": ([[1, *[1e-6] * 50]], [LAPLACE]),
}


def drawn(case: Case, many: int) -> np.ndarray:
    total = np.zeros(many)
    for row, law in zip(*case, strict=True):
        for one in row:
            if one:
                total += one * law.repeat(0, times=many).astype(float)
    return total


LATTICES = {"one", "equal", "equal, of both signs", "narrow"}
COARSE = {"narrow and a few", "one that rules"}
"""Large atoms with small things around them: nothing can be said about a little less than the margin."""


@pytest.mark.parametrize("name", CASES)
def test_as_many_lie_outside_as_is_said(name: str) -> None:
    """No more than β beyond the margin; and more than β beyond an eighth of a deviation, or one step of a lattice,
    less."""
    parts = noises(*CASES[name])
    assert parts is not None
    deviation, many = math.sqrt(sum(one.variance for one in parts)), 20_000
    errors = np.abs(drawn(CASES[name], many))
    less = max(deviation / 8, parts[0].size if name in LATTICES else 0.0)
    for beta in (0.2, 0.01):
        end = margin(parts, beta=beta)
        assert stats.binom.sf(int(np.sum(errors > end + 1e-9)) - 1, many, beta) > ALARM
        if name not in COARSE:
            assert stats.binom.cdf(int(np.sum(errors > end - less - 1e-9)), many, beta) > ALARM


@pytest.mark.parametrize(("law", "many"), [(LAPLACE, 2), (LAPLACE, 3), (GAUSSIAN, 4), (NARROW, 5)])
def test_equal_coefficients_have_the_exact_quantile(law: Geometric | Gaussian, many: int) -> None:
    """Against the convolution of the law with itself."""
    reach = 400
    one = np.exp([law.log_mass(0, place) for place in range(-reach, reach + 1)])
    whole = one
    for _ in range(many - 1):
        whole = np.convolve(whole, one)
    middle = len(whole) // 2
    for beta in (0.3, 0.05, 1e-4):
        inside = [float(whole[middle - end : middle + end + 1].sum()) for end in range(middle)]
        exact = next(end for end, mass in enumerate(inside) if 1 - mass <= beta * (1 - 1e-3))
        assert margin([Noises(0.5, many, law)], beta=beta) == 0.5 * exact


def test_one_coefficient_is_the_mechanism_itself() -> None:
    assert margin([Noises(3.0, 1, LAPLACE)], beta=0.05) == 3 * LAPLACE.error(beta=0.05)
    assert margin([], beta=0.05) == 0.0


def test_chernoff_bounds_gaussians_as_it_must() -> None:
    parts = [Noises(2.0, 5, GAUSSIAN)]
    assert chernoff(parts, beta=0.05) == pytest.approx(2 * 3 * math.sqrt(5) * math.sqrt(2 * math.log(40)), rel=1e-3)


def test_beyond_doubles_chernoff_decides() -> None:
    parts = [Noises(1.0, 9, LAPLACE), Noises(0.4, 3, GAUSSIAN)]
    assert margin(parts, beta=1e-15) == chernoff(parts, beta=1e-15)
    assert margin(parts, beta=1e-6) < chernoff(parts, beta=1e-6)


def test_from_the_variance_alone() -> None:
    assert from_variance(4.0, [LAPLACE], beta=0.05) == pytest.approx(math.sqrt(80))
    several = from_variance(4.0, [GAUSSIAN, GAUSSIAN], beta=0.05)
    assert several == pytest.approx(2 * math.sqrt(2 * math.log(40)), rel=1e-6)
    assert from_variance(4.0, [GAUSSIAN, LAPLACE], beta=0.05) == pytest.approx(math.sqrt(80))
    assert from_variance(0.0, [LAPLACE], beta=0.05) == 0.0
    narrow = from_variance(NARROW.standard_deviation**2, [NARROW], beta=0.001)
    assert narrow == pytest.approx(0.4 * math.sqrt(2 * math.log(2000)), rel=1e-9)


def test_the_interval_of_a_release_covers() -> None:
    """Ranges of one release after the other."""
    cells, inside, rounds = np.arange(24).reshape(6, 4), 0, 1000
    for _ in range(rounds):
        found = publish.run(cells, publish.Flat(), epsilon=1).range(axis0=(1, 4), confidence=0.9)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= cells[1:5].sum() <= found.high
    assert stats.binom.cdf(inside, rounds, 0.9) > ALARM


def test_no_interval_after_steps_that_look_at_the_cells() -> None:
    made = publish.run(np.arange(24), publish.Flat(), epsilon=1).nonnegative()
    found = made.range(0, 3)
    assert (found.low, found.high, found.deviation) == (None, None, None)
    assert "depend on the data" in str(found.why_no_interval)
    assert made.deviations is None
