"""The laws of the integer noises, at every scale, by both paths; false-alarm rate 1e-6 each."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub.errors import CapacityError
from hubbub.noise import discrete, discrete_gaussian, discrete_laplace, geometric, truncated_laplace
from hubbub.noise import table as tables
from hubbub.noise.entropy import substitute
from hubbub.noise.exact import exp_minus_bounds
from hubbub.noise.table import CHUNK, LawTable
from tests.noise.sources import FALSE_ALARM, Array, Script, counts_of, follows, surprise

DRAWS = 10**6
FEW = 20_000
TOP = (1 << 64) - 1


def geometric_mass(scale: float, support: range) -> Array:
    k = np.array(support, dtype=np.float64)
    return -math.expm1(-1 / scale) * np.exp(-k / scale)


def laplace_mass(scale: float, support: range) -> Array:
    return math.tanh(0.5 / scale) * np.exp(-np.abs(np.array(support, dtype=np.float64)) / scale)


def gaussian_mass(sigma: float, support: range) -> Array:
    reach = np.arange(-int(12 * sigma) - 12, int(12 * sigma) + 13, dtype=np.float64)
    total = np.exp(-(reach**2) / (2 * sigma**2)).sum()
    return np.asarray(np.exp(-(np.array(support, dtype=np.float64) ** 2) / (2 * sigma**2)) / total)


LAWS: dict[str, tuple[Callable[..., Any], str, Callable[[float, range], Array], int]] = {
    "geometric": (geometric, "scale", geometric_mass, 0),
    "laplace": (discrete_laplace, "scale", laplace_mass, -1),
    "gaussian": (discrete_gaussian, "sigma", gaussian_mass, -1),
}


def sample(name: str, scale: float | Fraction, size: int) -> Array:
    draw, parameter, _, _ = LAWS[name]
    return np.asarray(draw(**{parameter: scale}, size=size))


def support_of(name: str, scale: float) -> range:
    reach = max(3, math.ceil(15 * scale))
    return range(LAWS[name][3] * reach, reach + 1)


def law_of(name: str, scale: float) -> Array:
    return LAWS[name][2](scale, support_of(name, scale))


@pytest.fixture
def fresh_caches() -> Iterator[None]:
    caches = (discrete.geometric_sampler, discrete._laplace, discrete._gaussian)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [0.3, 1, Fraction(7, 3), 10, 31.5, 32, 32.5, 50, 1000])
def test_a_million_draws_follow_the_law(name: str, scale: float | Fraction) -> None:
    support = support_of(name, float(scale))
    assert follows(sample(name, scale, DRAWS), support, law_of(name, float(scale)))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [1, 10, 50, 1000])
@pytest.mark.parametrize("wrong", [0.98, 1.02])
def test_two_percent_of_scale_are_seen(name: str, scale: int, wrong: float) -> None:
    """The power of the test above: a scale wrong by 2% fails it."""
    drawn = sample(name, Fraction(wrong) * scale, DRAWS)
    assert not follows(drawn, support_of(name, scale), law_of(name, scale))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [0.5, 5, 40, 300])
def test_single_draws_follow_the_same_law(name: str, scale: float) -> None:
    draw, parameter, _, _ = LAWS[name]
    one = [draw(**{parameter: scale}) for _ in range(FEW)]
    assert all(type(value) is int for value in one)
    assert follows(np.array(one), support_of(name, scale), law_of(name, scale))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [3, 200])
def test_short_vectors_follow_the_same_law(name: str, scale: int) -> None:
    """Below the size from which the guide is used."""
    drawn = np.concatenate([sample(name, scale, 1000) for _ in range(40)])
    assert follows(drawn, support_of(name, scale), law_of(name, scale))


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.4, 2, 40])
def test_signs_are_fair_and_zero_counts_once(name: str, scale: float) -> None:
    drawn = sample(name, scale, DRAWS)
    above, below = int((drawn > 0).sum()), int((drawn < 0).sum())
    assert stats.binomtest(above, above + below, 0.5).pvalue > FALSE_ALARM
    zero = law_of(name, scale)[len(support_of(name, scale)) // 2]
    assert stats.binomtest(int((drawn == 0).sum()), DRAWS, zero).pvalue > FALSE_ALARM


LARGE = [Fraction(10**5), Fraction(1 << 20), Fraction(10**9, 7), Fraction(1 << 40), Fraction(1 << 50)]
HUGE = [Fraction(1 << 50) + 1, Fraction(1 << 55), Fraction(1 << 60)]
QUANTILES = np.linspace(0, 1, 65)


def continuous(name: str) -> Any:
    """At these scales the discrete laws agree with the continuous ones to 1e-5."""
    return {"geometric": stats.expon, "laplace": stats.laplace, "gaussian": stats.norm}[name]


def in_bins(name: str, drawn: Array, scale: Fraction) -> float:
    law = continuous(name)
    edges = law.ppf(QUANTILES)[1:-1]
    at = np.searchsorted(edges, (drawn + 0.5).astype(np.float64) / float(scale))
    return surprise(np.bincount(at, minlength=64), np.full(64, 1 / 64))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", LARGE)
def test_large_scales_by_quantiles_and_low_digits(name: str, scale: Fraction) -> None:
    size = DRAWS
    drawn = sample(name, scale, size)
    assert drawn.dtype == np.int64
    assert in_bins(name, drawn, scale) > FALSE_ALARM
    assert in_bins(name, sample(name, scale * Fraction(98, 100), size), scale) < FALSE_ALARM
    digits = np.bincount(drawn & 1023, minlength=1024)
    assert surprise(digits, np.full(1024, 1 / 1024)) > FALSE_ALARM  # flat within 1%, which this cannot see
    assert surprise(np.bincount((drawn >> 10) & 15, minlength=16), np.full(16, 1 / 16)) > FALSE_ALARM or scale < 1 << 22


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", HUGE)
def test_huge_scales_give_python_integers(name: str, scale: Fraction) -> None:
    drawn = sample(name, scale, 3000)
    assert drawn.dtype == object
    assert all(type(value) is int for value in drawn)
    assert in_bins(name, drawn, scale) > FALSE_ALARM
    assert max(abs(value) for value in drawn) > 2 * scale
    assert surprise(np.bincount([value % 8 for value in drawn], minlength=8), np.full(8, 1 / 8)) > FALSE_ALARM


@pytest.mark.parametrize("name", LAWS)
def test_int64_up_to_its_limit_and_integers_always(name: str) -> None:
    for scale in (Fraction(1, 1 << 20), 1, 100, 1 << 50):
        drawn = sample(name, scale, 10)
        assert drawn.dtype == np.int64
        assert drawn.shape == (10,)
    assert sample(name, 1, 0).shape == (0,)
    assert sample(name, 1000, 0).shape == (0,)


@pytest.mark.parametrize("name", LAWS)
def test_the_smallest_scale_is_all_zeros(name: str) -> None:
    assert not sample(name, Fraction(1, 1 << 20), DRAWS).any()


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [0.7, 3, 60])
@pytest.mark.usefixtures("fresh_caches")
def test_tails_beyond_the_tables_are_exact_too(name: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tables that end after one scale, a third of the draws go on beyond them: scalars and vectors alike."""
    monkeypatch.setattr(tables, "REACH_IN_SCALES", 1)
    monkeypatch.setattr(tables, "REACH_IN_SIGMAS", Fraction(1))
    support = support_of(name, scale)
    assert follows(sample(name, scale, 40_000), support, law_of(name, scale))
    draw, parameter, _, _ = LAWS[name]
    one = np.array([draw(**{parameter: scale}) for _ in range(FEW)])
    assert follows(one, support, law_of(name, scale))


def constant(*, of: int, values: int) -> LawTable:
    """A table that always gives the same outcome."""
    return LawTable(
        range(values), lambda bits: [(1 << bits, 1 << bits) if j >= of else (0, 0) for j in range(values - 1)]
    )


def test_a_sample_beyond_int64_is_refused_and_not_wrapped() -> None:
    digits = (constant(of=0, values=2),) * 5
    edge = 1 << 12
    kept = discrete._with_digits(Script([1] * 5), np.array([edge - 1], dtype=np.int64), digits)
    assert kept.tolist() == [(edge - 1) << 50]
    with pytest.raises(CapacityError, match="wrapped") as caught:
        discrete._with_digits(Script(), np.array([0, edge], dtype=np.int64), digits)
    assert str(caught.value).startswith("[out-of-range] ")


def test_restarts_add_the_reach_each_time() -> None:
    """A geometric table that is passed twice: 17 + 17 + 3."""
    law = discrete.geometric_sampler(Fraction(1))
    assert law.reach == 17
    three = math.floor((1 - math.exp(-3.5)) * 2**64)
    assert law.one(Script([TOP, TOP, three])) == 37
    assert law.many(Script([TOP, three, three, TOP, three]), 3).tolist() == [37, 3, 3]


def test_laplace_beyond_its_table_takes_a_geometric_and_a_sign() -> None:
    law = discrete._laplace(Fraction(1))
    assert isinstance(law, discrete._Signed)
    assert law.one(Script([TOP, 0, TOP])) == 17
    assert law.one(Script([TOP, 0, 0])) == -17
    assert law.many(Script([TOP, 0, 0, TOP]), 2).tolist() == [17, 0]


def test_gaussian_beyond_its_table_is_rejected_from_a_geometric() -> None:
    law = discrete._gaussian(Fraction(1))
    assert isinstance(law, discrete._Signed)
    assert law.reach == 7
    assert law.one(Script([TOP, 0, 5, TOP])) == 7
    assert law.one(Script([TOP, 0, 5, 0])) == -7
    # an excess of 1 has P(G < 1) = 1 - exp(-7) behind it; it is refused by a high word, then 0 is taken
    one_more = math.floor((1 - math.exp(-7)) * 2**64) + (1 << 50)
    assert law.one(Script([TOP, one_more, TOP, 0, 5, TOP])) == 7
    assert law.one(Script([TOP, one_more, 0, TOP])) == 8


def test_minus_zero_is_drawn_again() -> None:
    law = discrete._laplace(Fraction(1000))
    assert isinstance(law, discrete._WideLaplace)
    assert law.one(Script([0, 0, 0])) == 0  # magnitude 0, sign plus
    assert law.one(Script([0, 0, TOP, 0, TOP, TOP])) == -1023  # magnitude 0, sign minus, again
    assert law.many(Script([0, 0, TOP, 0, TOP, TOP]), 1).tolist() == [-1023]


def test_wide_gaussian_proposals_are_accepted_exactly() -> None:
    """σ = 33 has shift 1: x = 2h + l."""
    law = discrete._gaussian(Fraction(33))
    assert isinstance(law, discrete._WideGaussian)
    assert (law.shift, law.reach) == (1, math.ceil(6.5 * 16.5))
    assert law._exponent(3, 1) == Fraction(7**2 - 6**2, 2 * 33**2)
    assert law._exponent(5, 0) == 0
    assert law.one(Script([0, 0, TOP, 0, 0, 0, 0, 0])) == 0  # minus zero (accepted, since x = 0) is drawn again
    accept = math.floor(math.exp(-1 / (2 * 33**2)) * 2**64)
    assert law.one(Script([0, TOP, 0, accept - (1 << 12)])) == 1
    assert law.one(Script([0, TOP, TOP, accept - (1 << 12)])) == -1
    assert law.one(Script([0, TOP, 0, accept + (1 << 12), 0, 0, 0, 5])) == 0
    assert law.many(Script([0, TOP, accept - (1 << 30), TOP]), 1).tolist() == [-1]
    assert law.many(Script([0, TOP, accept + (1 << 30), 0, TOP, 5, 0]), 1).tolist() == [1]


def test_where_the_tables_change() -> None:
    assert isinstance(discrete._laplace(Fraction(32)), discrete._Signed)
    assert isinstance(discrete._laplace(Fraction(33)), discrete._WideLaplace)
    assert isinstance(discrete._gaussian(Fraction(32)), discrete._Signed)
    assert len(discrete.geometric_sampler(Fraction(1, 32)).digits) == 0
    assert len(discrete.geometric_sampler(Fraction(1, 33)).digits) == 1
    assert len(discrete.geometric_sampler(Fraction(1, 1 << 60)).digits) == 6


def test_every_table_has_one_value_more_than_thresholds() -> None:
    laplace, gaussian = discrete._laplace(Fraction(3)), discrete._gaussian(Fraction(3))
    wide = discrete._gaussian(Fraction(40))
    assert isinstance(laplace, discrete._Signed)
    assert isinstance(gaussian, discrete._Signed)
    assert isinstance(wide, discrete._WideGaussian)
    open_ended = discrete.geometric_sampler(Fraction(1, 40))
    for table, reach in ((laplace.table, laplace.reach), (gaussian.table, gaussian.reach)):
        assert sorted(table.values.tolist()) == list(range(1 - reach, reach + 1))
        assert len(table.values) == len(table._first_list) + 1
    for table, reach in ((wide.top, wide.reach), (open_ended.top, open_ended.reach)):
        assert table.values.tolist() == list(range(reach + 1))
        assert len(table.values) == len(table._first_list) + 1
    assert [len(digit.values) for digit in open_ended.digits] == [1024]


class TestTruncated:
    def test_law(self) -> None:
        drawn = truncated_laplace(scale=2, reach=3, size=200_000)
        mass = laplace_mass(2.0, range(-3, 4))
        assert follows(drawn, range(-3, 4), mass / mass.sum())
        assert set(drawn.tolist()) == set(range(-3, 4))

    def test_the_reach_itself_is_kept_and_what_lies_beyond_is_drawn_again(self) -> None:
        law = discrete._laplace(Fraction(1))
        assert isinstance(law, discrete._Signed)
        edges = [0, *law.table._first_list]
        word = {tables.value_at(at): (edges[at] + edges[at + 1]) // 2 for at in range(7)}
        source = Script([word[value] for value in (2, -2, 3, 0, -3, 3, -2, 2)])
        with substitute(source):
            assert truncated_laplace(scale=1, reach=2, size=5).tolist() == [2, -2, 2, 0, -2]
        assert source.left == 0
        assert source.kinds == [("truncated-laplace", {"scale": 1, "reach": 2})]


def test_draws_are_announced_with_their_public_parameters() -> None:
    source = Script([0] * 9)
    with substitute(source):
        geometric(scale=2)
        discrete_laplace(scale=2, size=2)
        discrete_gaussian(sigma=0.5)
    assert source.kinds == [
        ("geometric", {"scale": 2, "size": None}),
        ("discrete-laplace", {"scale": 2, "size": 2}),
        ("discrete-gaussian", {"sigma": Fraction(1, 2), "size": None}),
    ]


def test_counts_pool_what_is_outside() -> None:
    assert counts_of(np.array([5, 0, 1, 1, -3]), range(2)) == [1, 2, 2]


@pytest.mark.parametrize(
    ("sigma", "high", "low"), [(33, 10, 1), (33, 40, 1), (1000, 25, 17), (1000, 60, 31), (10**9, 30, 12345)]
)
def test_wide_gaussian_vectors_accept_with_the_exact_probability(sigma: int, high: int, low: int) -> None:
    """On both sides of what floats may leave open, for every part of the exponent; exact digits do the rest."""
    law = discrete._gaussian(Fraction(sigma))
    assert isinstance(law, discrete._WideGaussian)
    below, above = law.top._first_list[high - 1], law.top._first_list[high]
    top, digits = (below + above) // 2, low << 64 - law.shift
    value = (high << law.shift) + low
    exponent = Fraction(value**2 - (high << law.shift) ** 2, 2 * sigma**2)
    accept = exp_minus_bounds(exponent, 64)[0]
    for gap in (3, 1 << 20, 1 << 26):
        assert law.many(Script([top, digits, accept - gap, 0]), 1).tolist() == [value]
        assert law.one(Script([top, digits, 0, accept - gap])) == value
        assert law.many(Script([top, digits, accept + gap, 0, 0, 5, 0]), 1).tolist() == [0]
        assert law.one(Script([top, digits, 0, accept + gap, 0, 0, 0, 5])) == 0


def test_large_arrays_are_filled_from_the_first_place_to_the_last() -> None:
    asked: list[int] = []

    def chunk(source: Any, size: int) -> Array:
        asked.append(size)
        return np.full(size, len(asked), dtype=np.int64)

    for size, expected in (
        (CHUNK, [CHUNK]),
        (2 * CHUNK + 1, [CHUNK, CHUNK, 1]),
    ):
        asked.clear()
        drawn = discrete._in_chunks(chunk, Script(), size)
        assert asked == expected
        assert drawn.tolist() == np.repeat(np.arange(1, len(asked) + 1), asked).tolist()
