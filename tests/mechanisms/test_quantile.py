"""Quantiles: pieces against every grid point, losses on every small multiset, and odd data."""

import itertools
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.mechanisms import Quantile, Quantiles
from hubbub.mechanisms.selection.pieces import EMPTY, Pieces, bin_steps, runs
from hubbub.mechanisms.selection.quantile import near_pieces, quantile_pieces
from hubbub.privacy.events.event import BoundedRangeEvent, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.noise.sources import FALSE_ALARM, follows

ONE = Fraction(1)
QS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 3)]
TOP = 3
on_range: Any = Quantile
many_on_range: Any = Quantiles


def multisets(most: int) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(range(TOP + 1), size)


def rank_error(values: Iterable[int], q: Fraction, o: int) -> Fraction:
    held = list(values)
    less, at_most = sum(x < o for x in held), sum(x <= o for x in held)
    return max(less - q * len(held), q * len(held) - at_most, Fraction(0))


def one(q: Fraction = Fraction(1, 2), **more: Any) -> Quantile:
    return Quantile(**{"epsilon": ONE, "bounds": (0, TOP), "grid": 1, "q": q, **more})


def several(targets: tuple[Fraction, ...], **more: Any) -> Quantiles:
    return Quantiles(**{"epsilon": ONE, "bounds": (0, TOP), "grid": 1, "targets": targets, "tie_bits": 0, **more})


def _points(found: Pieces) -> dict[int, int]:
    listed = zip(found.starts.tolist(), found.widths.tolist(), found.levels.tolist(), strict=True)
    return {point: level for start, width, level in listed for point in range(start, start + width)}


class TestPieces:
    @given(
        st.lists(st.integers(-3, 12), max_size=8),
        st.fractions(0, 1, max_denominator=12),
    )
    @settings(max_examples=300)
    def test_they_cover_each_point_once_with_its_score(self, values: list[int], q: Fraction) -> None:
        held = [min(max(v, 0), 9) for v in values]
        found = quantile_pieces(bin_steps(np.array(held, dtype=np.int64)), q, 0, 9)
        starts, widths, levels = found.starts, found.widths, found.levels
        covered = {}
        for start, width, level in zip(starts.tolist(), widths.tolist(), levels.tolist(), strict=True):
            assert width >= 0
            for point in range(start, start + width):
                assert point not in covered
                covered[point] = Fraction(level, q.denominator)
        assert covered == {o: rank_error(held, q, o) for o in range(10)}

    @given(
        st.lists(st.integers(0, 40), max_size=60),
        st.fractions(0, 1, max_denominator=12),
        st.fractions(Fraction(1, 4), 300, max_denominator=8),
    )
    @settings(max_examples=300)
    def test_near_and_far_ones_are_all_of_them(self, values: list[int], q: Fraction, rate: Fraction) -> None:
        """What is far weighs next to nothing, and together the same points have the same levels."""
        held = bin_steps(np.array(values, dtype=np.int64))
        near, whole = near_pieces(held, q, (0, 40), rate), quantile_pieces(held, q, 0, 40)
        parts = [near] if near.far is None else [near, near.far.made()]
        points = [_points(one) for one in parts]
        assert sum(len(one) for one in points) == 41
        assert {point: level for one in points for point, level in one.items()} == _points(whole)
        if near.far is not None:
            assert min(points[1].values()) >= near.far.level
            assert min(points[0].values()) == 0
            assert len(points[1]) <= near.far.steps
            weight = sum(math.exp(-level * float(rate)) for level in points[0].values())
            assert near.far.steps * math.exp(-near.far.level * float(rate)) <= 2.0**-24 * weight
        elif rate >= 200:
            # At such a rate nothing beyond 2 levels is near, but for the value that leads there on either side.
            assert max(points[0].values(), default=0) <= 2 + 2 * q.denominator * int(max(held.counts, default=0))

    def test_many_values_are_mostly_far(self) -> None:
        found = near_pieces(runs(np.arange(100_000)), Fraction(1, 3), (0, 99_999), Fraction(1))
        assert found.far is not None
        assert len(found.starts) < 200
        drawn = [found.choose(Fraction(1)) for _ in range(300)]
        assert all(abs(one - 33_333) < 30 for one in drawn)

    def test_without_data_every_point_is_alike(self) -> None:
        found = quantile_pieces(EMPTY, Fraction(1, 2), 3, 7)
        starts, widths, levels = found.starts, found.widths, found.levels
        assert (starts.tolist(), widths.tolist(), levels.tolist()) == ([3], [5], [0])


class TestQuantile:
    @pytest.mark.parametrize("q", QS)
    @pytest.mark.parametrize("rows", [1, 2])
    def test_score_sensitivity_exhaustively(self, q: Fraction, rows: int) -> None:
        """max(q, 1-q) a row under add/remove, 1 a row under replace-one: bounds, and attained."""
        added = replaced = Fraction(0)
        for values in multisets(3):
            for more in itertools.combinations_with_replacement(range(TOP + 1), rows):
                for o in range(TOP + 1):
                    here = rank_error(values, q, o)
                    added = max(added, abs(rank_error(values + more, q, o) - here))
            if rows == 1:
                for at in range(len(values)):
                    for new in range(TOP + 1):
                        other = (*values[:at], *values[at + 1 :], new)
                        for o in range(TOP + 1):
                            replaced = max(replaced, abs(rank_error(other, q, o) - rank_error(values, q, o)))
        assert added == rows * max(q, 1 - q)
        assert one(q, rows=rows).rate == 1 / (2 * rows * max(q, 1 - q))
        if rows == 1:
            assert Fraction(1, 2) < replaced <= 1
        assert one(q, rows=rows, neighbors=Neighbors.REPLACE_ONE).rate == Fraction(1, 2 * rows)

    @pytest.mark.parametrize("q", QS)
    @pytest.mark.parametrize("rows", [1, 2])
    @pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
    def test_the_loss_on_all_small_multisets(self, q: Fraction, rows: int, neighbors: Neighbors) -> None:
        mechanism = one(q, rows=rows, neighbors=neighbors)
        law = {v: np.array([mechanism.log_mass(v, o) for o in range(TOP + 1)]) for v in multisets(3 + rows)}
        for masses in law.values():
            assert np.exp(masses).sum() == pytest.approx(1)
        for values in multisets(3):
            for more in itertools.combinations_with_replacement(range(TOP + 1), rows):
                other = tuple(sorted(values + more))
                if neighbors is Neighbors.ADD_REMOVE:
                    gap = law[values] - law[other]
                    assert gap.max() - gap.min() <= 1 + 1e-9  # bounded range, so pure as well
                else:
                    for instead in itertools.combinations_with_replacement(range(TOP + 1), rows):
                        gap = law[tuple(sorted(values + instead))] - law[other]
                        assert gap.max() - gap.min() <= 1 + 1e-9

    @pytest.mark.parametrize("values", [(), (2,), (1, 1, 1), (0, 3, 3), (0, 1, 2, 3)])
    @pytest.mark.parametrize("q", QS[:2])
    def test_draws_follow_the_masses(self, values: tuple[int, ...], q: Fraction) -> None:
        mechanism = one(q)
        law = [math.exp(mechanism.log_mass(values, o)) for o in range(TOP + 1)]
        brute = [math.exp(-float(mechanism.rate * rank_error(values, q, o))) for o in range(TOP + 1)]
        assert law == pytest.approx([weight / sum(brute) for weight in brute])
        assert follows(mechanism.repeat(values, times=20_000), range(TOP + 1), law)
        assert follows(np.array([mechanism.draw(values) for _ in range(2000)]), range(TOP + 1), law)

    def test_masses_outside_the_range(self) -> None:
        assert one().log_mass((1,), -1) == one().log_mass((1,), TOP + 1) == -math.inf

    def test_masses_count_from_the_lower_bound(self) -> None:
        moved = one(bounds=(10, 10 + TOP))
        assert [moved.log_mass((11, 12), 10 + o) for o in range(TOP + 1)] == [
            one().log_mass((1, 2), o) for o in range(TOP + 1)
        ]

    def test_odd_data_is_clamped_and_never_raises(self) -> None:
        mechanism = on_range(epsilon=ONE, bounds=(Fraction(-1), Fraction(1)), grid=Fraction(1, 2))
        odd = [math.nan, math.inf, -math.inf, 1e308, None, -0.74, 0.2]
        assert mechanism.steps(odd).tolist() == [0, 0, 0, 1, 2, 4, 4]
        assert mechanism.steps([]).tolist() == []
        assert mechanism.steps(np.array([[0.25, -0.25]])).tolist() == [2, 3]
        assert -1 <= mechanism.draw(odd) <= 1
        assert -1 <= mechanism.draw([]) <= 1

    def test_the_range_and_its_steps(self) -> None:
        assert one().top == TOP
        assert on_range(epsilon=ONE, bounds=(0, 1), grid=Fraction(3, 10)).top == 3
        default = on_range(epsilon=ONE, bounds=(0, 100))
        assert default.step == Fraction(64, 1 << 20)
        assert 1 << 20 <= default.top < 1 << 21
        assert on_range(epsilon=ONE, bounds=(0, 1)).top == 1 << 20
        assert one(bounds=(10, 13)).draw([11]) in (10, 11, 12, 13)
        assert type(one().draw([1])) is int
        assert type(on_range(epsilon=ONE, bounds=(0, 1)).draw([0.5])) is float

    def test_far_from_zero(self) -> None:
        for low in (2**63, -(2**63) - 5, 10**30):
            mechanism = on_range(epsilon=ONE, bounds=(low, low + 8), grid=1)
            assert low <= mechanism.draw([low + 3]) <= low + 8
            assert all(low <= int(answer) <= low + 8 for answer in mechanism.repeat([low], times=9))
            more = many_on_range(epsilon=ONE, bounds=(low, low + 8), grid=1, targets=(Fraction(1, 2),))
            assert low <= int(more.draw([low])[0]) <= low + 8

    def test_answers_are_wide_where_they_could_wrap(self) -> None:
        edge = 1 << 62
        for bounds, dtype in (
            ((0, edge >> 2), np.int64),
            ((edge - 5, edge - 1), np.int64),
            ((edge - 4, edge), object),
            ((1 - edge, 5 - edge), np.int64),
            ((-edge, 4 - edge), object),
            ((-edge, 0), object),
            ((-4 * edge, 0), object),
        ):
            mechanism = one(bounds=bounds, grid=Fraction(bounds[1] - bounds[0], 4))
            found = mechanism.value_of(np.arange(5))
            assert found.tolist() == [bounds[0] + step * (bounds[1] - bounds[0]) // 4 for step in range(5)]
            assert found.dtype == dtype

    def test_answers_count_from_the_lower_bound_whole_or_not(self) -> None:
        assert one(bounds=(Fraction(1, 2), 2), grid=Fraction(1, 2)).value_of(3) == 2
        whole = one(bounds=(1, Fraction(5, 2))).value_of(1)
        assert (type(whole), whole) == (int, 2)
        assert one(bounds=(Fraction(1, 2), Fraction(5, 2))).value_of(0) == 0.5

    def test_bounds_of_any_kind_are_kept_exactly(self) -> None:
        mechanism = one(bounds=(-0.5, 1.5), grid=0.5)
        assert mechanism.bounds == (Fraction(-1, 2), Fraction(3, 2))
        assert all(type(bound) is Fraction for bound in mechanism.bounds)
        assert mechanism.draw([0.2]) in (-0.5, 0.0, 0.5, 1.0, 1.5)

    def test_targets_are_read_as_short_fractions(self) -> None:
        assert one(0.1).q == Fraction(1, 10)  # type: ignore[arg-type]
        assert one(1 / 3).q == Fraction(1, 3)  # type: ignore[arg-type]
        assert one(Fraction(12345, 1 << 20)).q == Fraction(12345, 1 << 20)
        assert one(Fraction(1, 3) + Fraction(1, 1 << 40)).q == Fraction(1, 3)
        assert many_on_range(epsilon=1, bounds=(0, 1), targets=(0.1, 0.5)).targets == (Fraction(1, 10), Fraction(1, 2))

    def test_event_needs_and_error(self) -> None:
        mechanism = one(rows=4, neighbors=Neighbors.REPLACE_ONE)
        assert mechanism.event == BoundedRangeEvent(range=ONE, neighbors=Neighbors.REPLACE_ONE)
        assert (mechanism.needs.norm, mechanism.needs.sensitivity) == (Norm.ROWS, Fraction(4))
        assert mechanism.needs.neighbors is Neighbors.REPLACE_ONE
        assert not mechanism.needs.integers
        assert one().error(beta=0.1) == pytest.approx(math.log(4 / 0.1))
        assert one(Fraction(1, 4), rows=3).error(beta=0.1) == pytest.approx(math.log(4 / 0.1) * 4.5)
        wide = on_range(epsilon=ONE, bounds=(0, 1000), grid=1)
        values = np.random.default_rng(5).integers(0, 1001, size=500)
        bound = wide.error(beta=0.1)
        misses = sum(
            rank_error(values.tolist(), Fraction(1, 2), o) > bound for o in wide.repeat(values, times=2000).tolist()
        )
        assert stats.binomtest(misses, 2000, 0.1, alternative="greater").pvalue > FALSE_ALARM

    def test_a_wide_piece_is_uniform_inside(self) -> None:
        drawn = quantile_pieces(bin_steps(np.array([5])), Fraction(1, 2), 0, 9).choose_many(Fraction(0), 50_000)
        assert follows(drawn, range(10), [0.1] * 10)


class TestQuantiles:
    THREE = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    SHAPES = (THREE, (Fraction(1, 3), Fraction(2, 3)), (Fraction(1, 10), Fraction(1, 5), Fraction(9, 10)))

    @staticmethod
    def law(mechanism: Quantiles, values: tuple[int, ...], outputs: list[Any]) -> np.ndarray[Any, Any]:
        return np.array([mechanism.log_mass(values, output) for output in outputs])

    @pytest.mark.parametrize("targets", SHAPES)
    @pytest.mark.parametrize(
        ("rows", "neighbors"), [(1, Neighbors.ADD_REMOVE), (2, Neighbors.ADD_REMOVE), (1, Neighbors.REPLACE_ONE)]
    )
    def test_the_loss_on_all_small_multisets(
        self, targets: tuple[Fraction, ...], rows: int, neighbors: Neighbors
    ) -> None:
        mechanism = several(targets, rows=rows, neighbors=neighbors)
        outputs = list(itertools.combinations_with_replacement(range(TOP + 1), len(targets)))
        size = 3 if rows == 1 else 2
        law = {values: self.law(mechanism, values, outputs) for values in multisets(size + rows)}
        for masses in law.values():
            assert np.exp(masses).sum() == pytest.approx(1)
        worst = 0.0
        for values in multisets(size):
            for more in itertools.combinations_with_replacement(range(TOP + 1), rows):
                base = [values]
                if neighbors is Neighbors.REPLACE_ONE:
                    base = [tuple(sorted((*values, instead))) for instead in range(TOP + 1)]
                for other in base:
                    worst = max(worst, float(np.abs(law[tuple(sorted(values + more))] - law[other]).max()))
        assert 0.25 < worst <= 1 + 1e-9

    def test_answers_in_the_wrong_order_are_impossible(self) -> None:
        assert several(self.THREE).log_mass((1,), (2, 1, 3)) == -math.inf

    @pytest.mark.parametrize("values", [(), (0, 0), (1, 2, 2, 3)])
    def test_draws_follow_the_masses(self, values: tuple[int, ...]) -> None:
        mechanism = several(self.THREE)
        outputs = list(itertools.combinations_with_replacement(range(TOP + 1), 3))
        mass = np.exp(self.law(mechanism, values, outputs))
        index = {output: at for at, output in enumerate(outputs)}
        drawn = [index[tuple(answer)] for answer in mechanism.repeat(values, times=20_000)]
        assert follows(np.array(drawn), range(len(outputs)), mass)
        singly = [index[tuple(mechanism.draw(values).tolist())] for _ in range(2500)]
        assert follows(np.array(singly), range(len(outputs)), mass)

    def test_one_level_is_the_single_quantile(self) -> None:
        mechanism = several((Fraction(1, 4),))
        for values in multisets(3):
            for o in range(TOP + 1):
                single = one(Fraction(1, 4)).log_mass(values, o)
                assert mechanism.log_mass(values, (o,)) == pytest.approx(single)

    @pytest.mark.parametrize(("count", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)])
    def test_levels(self, count: int, levels: int) -> None:
        mechanism = several(tuple(Fraction(j, count + 1) for j in range(1, count + 1)))
        assert mechanism.levels == levels
        single = BoundedRangeEvent(range=ONE / levels)
        assert mechanism.event == (single if levels == 1 else RepeatedEvent(event=single, count=levels))
        depth = self.deepest(mechanism, 0, count)
        assert depth == levels
        half = Fraction(1, 2)
        assert mechanism.rate(half) == 1 / (levels * 1 * Fraction(1))
        replace = several(mechanism.targets, neighbors=Neighbors.REPLACE_ONE, rows=3)
        assert replace.rate(half) == Fraction(1, levels * 2 * 3)
        for uneven in (Fraction(1, 4), Fraction(3, 4)):
            assert mechanism.rate(uneven) == Fraction(2, 3) / levels
            assert replace.rate(uneven) == Fraction(1, levels * 3 * 3)

    def deepest(self, mechanism: Quantiles, first: int, last: int) -> int:
        if first >= last:
            return 0
        middle = (first + last) // 2
        return 1 + max(self.deepest(mechanism, first, middle), self.deepest(mechanism, middle + 1, last))

    def test_each_part_asks_for_its_own_share(self) -> None:
        asked: list[tuple[Fraction, list[int], tuple[int, int]]] = []
        mechanism = several(self.THREE)

        def choose(part: Any, q: Fraction) -> int:
            asked.append((q, part.held.each().tolist(), part.ends))
            return {1: 2, 0: 1, 2: 3}[part.middle]

        mechanism._divide(np.array([0, 1, 2, 2, 3]), choose)
        assert asked == [
            (Fraction(1, 2), [0, 1, 2, 2, 3], (0, 3)),
            (Fraction(1, 2), [0, 1], (0, 2)),
            (Fraction(1, 2), [2, 2, 3], (2, 3)),
        ]
        uneven = several((Fraction(1, 10), Fraction(1, 5), Fraction(9, 10)))
        parts = uneven._sides(uneven._whole(np.array([], dtype=np.int64)), 1)
        assert sorted(uneven._target(part) for part in parts) == [Fraction(1, 2), Fraction(7, 8)]

    @pytest.mark.parametrize("tie_bits", [0, 20])
    def test_answers_are_ordered_and_inside(self, tie_bits: int) -> None:
        mechanism = many_on_range(
            epsilon=ONE, bounds=(-5, 5), targets=tuple(Fraction(j, 10) for j in range(1, 10)), tie_bits=tie_bits
        )
        values = np.random.default_rng(8).normal(size=300)
        for data in (values, [], [math.nan] * 5, np.full(50, 1.5), [math.inf, -math.inf]):
            answers = np.asarray(mechanism.draw(data))
            assert answers.shape == (9,)
            assert (np.diff(answers) >= 0).all()
            assert answers.min() >= -5
            assert answers.max() <= 5

    def test_tie_bits_divide_a_crowd(self) -> None:
        """All values alike: without random digits one side of each answer gets all of them; with them it is found."""
        mechanism = many_on_range(epsilon=Fraction(200), bounds=(0, 1000), grid=1, targets=self.THREE)
        answers = mechanism.repeat(np.full(400, 500), times=20)
        assert set(answers) == {(500, 500, 500)}
        with pytest.raises(ParameterError, match="tie_bits must be 0"):
            mechanism.log_mass([1], (1, 2, 3))

    def test_error_is_a_bound_on_every_rank(self) -> None:
        mechanism = many_on_range(epsilon=ONE, bounds=(0, 1000), grid=1, targets=self.THREE)
        values = np.random.default_rng(6).integers(0, 1001, size=400)
        bound = mechanism.error(beta=0.1)
        misses = 0
        for answers in mechanism.repeat(values, times=150):
            worst = max(rank_error(values.tolist(), q, int(a)) for q, a in zip(self.THREE, answers, strict=True))
            misses += worst > bound
        assert stats.binomtest(misses, 150, 0.1, alternative="greater").pvalue > FALSE_ALARM
        each = math.log((1001 << 20) / (0.1 / 3)) / (1 / 4)
        assert bound == pytest.approx(2 * each)
        replace = many_on_range(
            epsilon=ONE, bounds=(0, 1000), grid=1, targets=self.THREE, neighbors=Neighbors.REPLACE_ONE, rows=2
        )
        assert replace.error(beta=0.1) == pytest.approx(4 * bound)

    def test_each_rank_has_a_bound_of_its_own(self) -> None:
        """Of seven quantiles each misses its bound at most as often as it says, however the values crowd; the bound
        counts the questions on the way to it alone, each at its own rate."""
        targets = tuple(Fraction(j, 8) for j in range(1, 8))
        mechanism = many_on_range(epsilon=Fraction(4), bounds=(0, 1000), grid=1, targets=targets)
        rng = np.random.default_rng(16)
        crowded = np.concatenate([np.full(150, 3), rng.integers(0, 1001, size=150)])
        bounds = [mechanism.bound_rank(place, 0.2) for place in range(7)]
        for values in (rng.integers(0, 1001, size=300), crowded):
            misses = np.zeros(7, dtype=int)
            for answers in mechanism.repeat(values, times=150):
                pairs = zip(targets, answers, bounds, strict=True)
                misses += [rank_error(values.tolist(), q, int(a)) > bound for q, a, bound in pairs]
            assert all(
                stats.binomtest(int(one), 150, 0.2, alternative="greater").pvalue > FALSE_ALARM for one in misses
            )
        assert bounds[3] == pytest.approx(math.log((1001 << 20) / 0.2) / float(mechanism.rate(Fraction(1, 2))))
        assert bounds[3] < bounds[1] < bounds[0] < mechanism.error(beta=0.2)
        (alone,) = many_on_range(epsilon=ONE, bounds=(0, 9), grid=1, targets=(Fraction(1, 4),), tie_bits=0).targets
        assert many_on_range(epsilon=ONE, bounds=(0, 9), grid=1, targets=(alone,), tie_bits=0).bound_rank(
            0, 0.1
        ) == pytest.approx(math.log(100) / (1 / (2 * 0.75)))

    def test_room_for_tie_bits(self) -> None:
        assert many_on_range(epsilon=ONE, bounds=(0, TOP), targets=self.THREE).tie_bits == 20
        assert several(self.THREE, tie_bits=59).tie_bits == 59
        with pytest.raises(ParameterError, match="tie_bits"):
            several(self.THREE, tie_bits=60)


def test_a_grid_that_does_not_divide_the_bounds_ends_below_them() -> None:
    uneven = Quantile(epsilon=Fraction(1), bounds=(Fraction(0), Fraction(1)), grid=Fraction(2, 5))
    assert uneven.top == 2
    assert uneven.steps([1.0, 0.9, 0.1]).tolist() == [0, 2, 2]
    assert {round(float(answer), 9) for answer in uneven.repeat([1.0] * 3, times=2_000)} <= {0.0, 0.4, 0.8}


@given(st.lists(st.integers(-3, 6), max_size=12), st.integers(-5, 8))
def test_bins_are_divided_like_their_values(values: list[int], step: int) -> None:
    ordered = np.sort(np.array(values, dtype=np.int64))
    assert runs(ordered) == bin_steps(ordered)
    below, rest = runs(ordered).split_at(step)
    assert below == bin_steps(ordered[ordered < step])
    assert rest == bin_steps(ordered[ordered >= step])
