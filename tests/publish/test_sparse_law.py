"""What is shown of a huge domain has the law of the dense mechanism: enumerated on small domains, counted on large."""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub import noise
from hubbub.audit import law
from hubbub.errors import ParameterError
from hubbub.mechanisms import (
    Geometric,
    Nonzeros,
    SparseFirst,
    SparseLargest,
    SparsePriority,
    SparseSample,
    SparseThreshold,
    SparseVector,
)
from hubbub.mechanisms.sparse import sparse_cells, sparse_counts
from hubbub.mechanisms.sparse.sparse_cells import log_at_most
from hubbub.mechanisms.sparse.sparse_counts import level_for
from hubbub.mechanisms.sparse.sparse_samples import _greatest
from hubbub.mechanisms.specimens.scattered import key, list_outputs, with_cuts
from hubbub.noise import entropy, laws, scattered
from hubbub.noise.exact import exactly

FALSE_ALARM = 1e-6
ONE, TWO = Fraction(1), Fraction(2)
NO_ZERO = [*range(-10, 0), *range(1, 11)]

SMALL: list[tuple[Any, Any, Any]] = [
    (SparseThreshold(epsilon=TWO, size=4, threshold=1), (0, 2, 0, 0), list_outputs(4, range(1, 10), range(5))),
    (SparseThreshold(epsilon=ONE, size=3, threshold=2), (0, 0, 5), list_outputs(3, range(2, 24), range(4))),
    (SparseLargest(epsilon=TWO, size=4, count=2), (0, 1, 0, 0), list_outputs(4, range(-9, 12), (2,))),
    (SparseLargest(epsilon=TWO, size=3, count=3), (0, 1, 0), list_outputs(3, range(-9, 12), (3,))),
    (SparseSample(epsilon=TWO, size=3, level=4), (0, 1, -2), list_outputs(3, NO_ZERO, range(4))),
    (
        SparseSample(epsilon=TWO, size=3, level=8, least=3),
        (0, 1, 0),
        list_outputs(3, [-5, -4, -3, *range(3, 9)], range(4)),
    ),
    (
        SparseSample(epsilon=TWO, size=3, level=1, least=2),
        (0, 1, 0),
        list_outputs(3, [*range(-9, -1), *range(2, 10)], range(4)),
    ),
    (SparsePriority(epsilon=TWO, size=3, count=1, digits=2), (0, 1, 0), with_cuts(3, NO_ZERO, 1, 2)),
    (SparsePriority(epsilon=TWO, size=3, count=2, digits=1, least=2), (0, 1, 0), with_cuts(3, range(-7, 8), 2, 1)),
]


@pytest.mark.parametrize(("mechanism", "value", "outputs"), SMALL, ids=lambda one: type(one).__name__)
def test_draws_fit_the_dense_law_over_whole_outputs(mechanism: Any, value: Any, outputs: Any) -> None:
    masses = np.exp([mechanism.log_mass(value, one) for one in outputs])
    assert 1 - 1e-4 < math.fsum(masses) < 1 + 1e-9
    for drawn in (mechanism.repeat(value, times=10_000), [mechanism.draw(value) for _ in range(1_000)]):
        assert not law.fit(law.tally(drawn, outputs, key), masses).rejects(false_alarm=FALSE_ALARM)


def _dense(mechanism: Any, noisy: tuple[int, ...]) -> Any:
    """The fixed rule on all noisy cells."""
    places = [p for p, one in enumerate(noisy) if isinstance(mechanism, SparseLargest) or one >= mechanism.threshold]
    if isinstance(mechanism, SparseLargest):
        places = sorted(sorted(places, key=lambda p: (-noisy[p], p))[: mechanism.count])
    return tuple(places), tuple(noisy[p] for p in places)


@pytest.mark.parametrize(
    "mechanism",
    [
        SparseThreshold(epsilon=TWO, size=3, threshold=2),
        SparseLargest(epsilon=TWO, size=3, count=1),
        SparseLargest(epsilon=TWO, size=3, count=2),
    ],
)
def test_masses_are_those_of_geometric_noise_on_all_cells(mechanism: Any) -> None:
    value, each, total = (0, 2, 1), Geometric(epsilon=TWO), defaultdict[Any, float](float)
    for noisy in itertools.product(range(-14, 18), repeat=3):
        total[_dense(mechanism, noisy)] += math.exp(sum(map(each.log_mass, value, noisy)))
    near = {one: mass for one, mass in total.items() if all(-4 < number < 8 for number in one[1])}
    assert len(near) > 20
    for one, mass in near.items():
        assert math.exp(mechanism.log_mass(value, one)) == pytest.approx(mass, rel=1e-6)


def test_the_sparse_vector_over_cells_has_the_law_of_the_vector() -> None:
    vector = SparseVector(epsilon=TWO, threshold=-1, count=2, monotone=True)
    mechanism = SparseFirst(vector=vector, size=4)
    outputs = [(places, gaps, ()) for places, gaps in list_outputs(4, range(16), range(3))]
    masses = np.exp([vector.log_mass((0, 1, 0, 0), one) for one in outputs])
    drawn = [mechanism.draw((0, 1, 0, 0)) for _ in range(3_000)]
    assert not law.fit(law.tally(drawn, outputs, lambda one: one), masses).rejects(false_alarm=FALSE_ALARM)


@pytest.mark.parametrize(("population", "count"), [(6, 2), (6, 5), (6, 6), (6, 0)])
def test_places_are_uniform_among_the_free_ones(population: int, count: int) -> None:
    taken = np.array([0, 3, 4], dtype=np.int64)
    size, source = population + 3, entropy.begin("test")
    free = [place for place in range(size) if place not in (0, 3, 4)]
    sets = list(itertools.combinations(free, count))
    drawn = Counter(tuple(scattered.subset_of_rest(source, size, taken, count).tolist()) for _ in range(3_000))
    assert set(drawn) <= set(sets)
    if len(sets) > 1:
        assert stats.chisquare([drawn[one] for one in sets]).pvalue > FALSE_ALARM


def test_false_cells_are_as_many_as_the_binomial_says_in_a_domain_of_2_to_63() -> None:
    size, scale = 1 << 63, Fraction(3)
    level = level_for(size, scale, 40)
    chance = laws.laplace_tail(level, scale)
    taken = np.arange(0, 1000, 7, dtype=np.int64)
    found = [next(scattered.above(size=size, taken=taken, scale=scale, levels=(level,))) for _ in range(400)]
    counts, mean = np.array([len(places) for places, _ in found]), size * chance
    assert abs(counts.sum() - 400 * mean) < 5 * math.sqrt(400 * mean)
    assert 0.6 < counts.var() / mean < 1.5
    places, extra = (np.concatenate(part) for part in zip(*found, strict=True))
    assert stats.kstest(places / size, "uniform").pvalue > FALSE_ALARM
    assert extra.min() == level
    steps = np.minimum(extra - level, 12)
    q = math.exp(-1 / 3)
    masses = [*((1 - q) * q**k for k in range(12)), q**12]
    assert stats.chisquare(np.bincount(steps, minlength=13), len(steps) * np.array(masses)).pvalue > FALSE_ALARM


def test_levels_do_not_change_the_law_of_what_is_above() -> None:
    """Numbers of cells at 1 or above, found in one round or in three."""
    counts = []
    for levels in ((1,), (4, 2, 1)):
        rounds = [scattered.above(size=2000, taken=np.array([5]), scale=TWO, levels=levels) for _ in range(300)]
        values = [np.concatenate([extra for _, extra in one]) for one in rounds]
        counts.append(np.bincount(np.minimum(np.concatenate(values), 12), minlength=13)[1:])
    assert stats.chi2_contingency(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("least", "level"), [(1, 1), (1, 8), (3, 8), (8, 4), (5, 1)])
def test_the_chance_of_being_kept_is_the_sum_over_the_law(least: int, level: int) -> None:
    scale = Fraction(5, 2)
    masses = (2 * math.exp(laws.laplace_log_mass(v, scale)) * min(v / level, 1) for v in range(least, 200))
    low, high = scattered.keeping(scale, least, level).bounds(60)
    assert (low + high) / 2 / 2**60 == pytest.approx(math.fsum(masses), rel=1e-12)


@pytest.mark.parametrize("count", [3, 200, 900])
def test_the_lowest_of_a_subset_are_those_of_a_whole_one(count: int) -> None:
    """The second lowest place of either lies where the negative hypergeometric law says."""
    source = entropy.begin("test")
    lowest = (scattered._lowest(source, 1000, count, 2) for _ in range(1000))
    whole = (scattered._subset(source, 1000, count) for _ in range(1000))
    passed = stats.nhypergeom(1000, 1000 - count, 2)
    edges = np.unique(passed.ppf(np.linspace(0, 1, 11)[1:-1]))
    masses = np.diff(passed.cdf(edges), prepend=0, append=1)
    for drawn in (lowest, whole):
        seconds = np.array([int(places[1]) - 1 for places in drawn])
        counts = np.bincount(np.searchsorted(edges, seconds), minlength=len(masses))
        assert stats.chisquare(counts, 1000 * masses).pvalue > FALSE_ALARM


def test_the_order_of_the_data_is_gone_before_anything_is_drawn() -> None:
    one = Nonzeros.of([7, 2, 7, 9], [1, 5, 2, 0], size=10)
    assert (one.places.tolist(), one.counts.tolist()) == ([2, 7], [5, 3])
    mechanism = SparseThreshold(epsilon=ONE, size=1 << 30, threshold=level_for(1 << 30, ONE, 500))
    places = mechanism.draw(Nonzeros.of(np.arange(1 << 20, 0, -1024), np.full(1024, 99), size=1 << 30))[0]
    assert (np.diff(places) > 0).all()
    assert len(places) > 1100


def test_priorities_that_floats_cannot_tell_are_told_exactly() -> None:
    numbers = np.array([(1 << 55) + 1, 1 << 55, (1 << 55) + 2, 3])
    kept, cut = _greatest(numbers, np.full(4, 1 << 50), 2)
    assert (kept.tolist(), cut) == ([0, 2], 1)


def test_counts_beyond_64_bits_are_clamped_and_not_wrapped() -> None:
    one = Nonzeros.of([1, 1, 2], [1 << 62, 1 << 62, -(1 << 80)], size=4)
    assert one.counts.tolist() == [sparse_cells.MOST_COUNT, -sparse_cells.MOST_COUNT]
    assert exactly(1).bounds(3) == (8, 8)


def test_planted_without_false_cells_the_law_test_accuses(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = np.empty(0, dtype=np.int64)
    monkeypatch.setattr(scattered, "above", lambda **_: iter([(nothing, nothing)]))
    _accused(SparseThreshold(epsilon=ONE, size=3, threshold=1))


def test_planted_noise_that_is_drawn_until_it_passes_is_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that are not empty are shown always, with noise given that they pass."""

    def until(*, scale: Fraction, size: int) -> Any:
        drawn = _each(scale=scale, size=size)
        while (low := drawn < 0).any():
            drawn[low] = _each(scale=scale, size=int(low.sum()))
        return drawn

    _each = noise.laplace_for_each
    monkeypatch.setattr(noise, "laplace_for_each", until)
    _accused(SparseThreshold(epsilon=ONE, size=3, threshold=1))


def test_planted_order_of_the_data_is_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    """True cells first, then false ones."""
    unsorted = lambda *parts: tuple(np.concatenate(one) for one in zip(*parts, strict=True))  # noqa: E731
    monkeypatch.setattr(sparse_counts, "by_place", unsorted)
    mechanism = SparseThreshold(epsilon=ONE, size=3, threshold=1)
    drawn = [mechanism.draw((0, 0, 1)) for _ in range(2_000)]
    outputs = list_outputs(3, range(1, 20), range(4))
    masses = np.exp([mechanism.log_mass((0, 0, 1), one) for one in outputs])
    assert law.fit(law.tally(drawn, outputs, key), masses).rejects(false_alarm=FALSE_ALARM)


def _accused(mechanism: SparseThreshold) -> None:
    outputs = list_outputs(3, range(1, 20), range(4))
    masses = np.exp([mechanism.log_mass((0, 1, 0), one) for one in outputs])
    drawn = mechanism.repeat((0, 1, 0), times=4_000)
    assert law.fit(law.tally(drawn, outputs, key), masses).rejects(false_alarm=FALSE_ALARM)


def test_no_answer_is_left_to_chance_to_be_too_large() -> None:
    """An error after the charge would depend on how many cells are empty."""
    SparseThreshold(epsilon=Fraction(1), size=1 << 40, threshold=11)
    with pytest.raises(ParameterError, match="threshold"):
        SparseThreshold(epsilon=Fraction(1), size=1 << 40, threshold=1)
    with pytest.raises(ParameterError, match="level"):
        SparseSample(epsilon=Fraction(1), size=1 << 40, level=1).draw(Nonzeros.of([1], [1], size=1 << 40))
    with pytest.raises(ParameterError, match="count"):
        SparsePriority(epsilon=Fraction(1), size=1 << 40, count=1 << 25)


def test_masses_too_small_for_a_float_have_logarithms() -> None:
    scale = Fraction(1)
    for k in (-1, -3, -20):
        assert log_at_most(k, scale) == pytest.approx(math.log(laws.laplace_tail(-k, scale)), rel=1e-12)
    assert log_at_most(-(10**6), scale) == pytest.approx(-(10**6) - math.log1p(math.exp(-1)))
