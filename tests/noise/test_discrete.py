"""The laws of the integer noises, at every scale, by both paths; false-alarm rate 1e-6 each."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub.errors import CapacityError
from hubbub.noise import digits, discrete, discrete_gaussian, discrete_laplace, geometric, truncated_laplace
from hubbub.noise import table as tables
from hubbub.noise.entropy import substitute
from hubbub.noise.flat_blocks import FlatBlocks
from hubbub.noise.table import LawTable
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
    caches = (digits.geometric_sampler, discrete._laplace, discrete._gaussian)
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
    low = np.bincount(drawn & 1023, minlength=1024)
    assert surprise(low, np.full(1024, 1 / 1024)) > FALSE_ALARM  # flat within 1%, which this cannot see
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
    tables_of_zeros = (constant(of=0, values=2),) * 5
    edge = 1 << 12
    kept = digits._with_digits(Script([1] * 5), np.array([edge - 1], dtype=np.int64), tables_of_zeros)
    assert kept.tolist() == [(edge - 1) << 50]
    with pytest.raises(CapacityError, match="wrapped") as caught:
        digits._with_digits(Script(), np.array([0, edge], dtype=np.int64), tables_of_zeros)
    assert str(caught.value).startswith("[out-of-range] ")


def test_restarts_add_the_reach_each_time() -> None:
    """A geometric table that is passed twice: 17 + 17 + 3."""
    law = digits.geometric_sampler(Fraction(1))
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


def test_where_the_tables_change() -> None:
    assert isinstance(discrete._laplace(Fraction(32)), discrete._Signed)
    assert isinstance(discrete._laplace(Fraction(33)), FlatBlocks)
    assert isinstance(discrete._gaussian(Fraction(32)), discrete._Signed)
    assert isinstance(discrete._gaussian(Fraction(32) + Fraction(1, 1 << 30)), FlatBlocks)
    for make in (discrete._laplace, discrete._gaussian):
        laws = {scale: make(Fraction(scale)) for scale in (33, 63, 64, 127, 128, 1000, 1 << 50)}
        assert {scale: law.shift for scale, law in laws.items() if isinstance(law, FlatBlocks)} == {
            33: 1,
            63: 1,
            64: 2,
            127: 2,
            128: 3,
            1000: 5,
            1 << 50: 46,
        }
    assert len(digits.geometric_sampler(Fraction(1, 32)).digits) == 0
    assert len(digits.geometric_sampler(Fraction(1, 33)).digits) == 1
    assert len(digits.geometric_sampler(Fraction(1, 1 << 60)).digits) == 6


def test_every_table_has_one_value_more_than_thresholds() -> None:
    laplace, gaussian = discrete._laplace(Fraction(3)), discrete._gaussian(Fraction(3))
    wide = discrete._gaussian(Fraction(40))
    assert isinstance(laplace, discrete._Signed)
    assert isinstance(gaussian, discrete._Signed)
    assert isinstance(wide, FlatBlocks)
    open_ended = digits.geometric_sampler(Fraction(1, 40))
    for table, reach in ((laplace.table, laplace.reach), (gaussian.table, gaussian.reach)):
        assert sorted(table.values.tolist()) == list(range(1 - reach, reach + 1))
        assert len(table.values) == len(table._first_list) + 1
    table, reach = wide.table, wide.reach
    assert sorted(table.values.tolist()) == [*range(-reach, reach), *range(2 * reach, 4 * reach + 1)]
    assert len(table.values) == len(table._first_list) + 1
    assert open_ended.top.values.tolist() == list(range(open_ended.reach + 1))
    assert len(open_ended.top.values) == len(open_ended.top._first_list) + 1
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
