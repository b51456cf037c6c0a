"""Counted values, extremes, and one mechanism for every group."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.mechanisms import Exponential, Extreme, Geometric, PerGroup, Quantile, Quantiles
from hubbub.mechanisms.selection.pieces import EMPTY, StepCounts, bin_steps
from hubbub.privacy.events.event import BoundedRangeEvent, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.testing.replay import replayed

F = Fraction
ENDS = (F(0), F(9))


# Bins


def test_bins_are_ascending_and_hold_something() -> None:
    found = StepCounts.of([(5, 1), (2, 3), (5, 4)])
    assert found.pairs() == [(2, 3), (5, 5)]
    assert found.each().tolist() == [2, 2, 2, 5, 5, 5, 5, 5]
    assert len(found) == 8
    assert found == bin_steps(np.array([5, 2, 5, 5, 2, 5, 2, 5]))
    assert found != StepCounts.of([(2, 3), (5, 4)])
    assert len(EMPTY) == 0
    for steps, counts in (([2, 2], [1, 1]), ([3, 2], [1, 1]), ([1, 2], [1, 0]), ([1], [1, 1])):
        with pytest.raises(ParameterError):
            StepCounts(np.array(steps), np.array(counts))


def test_bins_are_clamped_value_by_value() -> None:
    found = StepCounts.of([(-3, 2), (0, 1), (9, 1), (10, 4), (99, 1)])
    assert found.within(9).pairs() == [(0, 3), (9, 6)]
    assert found.within(99).pairs() == [(0, 3), (9, 1), (10, 4), (99, 1)]
    kept = StepCounts.of([(0, 1), (9, 1)])
    assert kept.within(9) is kept
    assert EMPTY.within(3) is EMPTY


@pytest.mark.parametrize("values", [[], [3], [0, 0, 9, 9, 9], [1, 2, 2, 7], [4] * 30])
@pytest.mark.parametrize("q", [F(1, 2), F(9, 10), F(1, 3)])
def test_counted_values_have_the_law_of_values(values: list[int], q: Fraction) -> None:
    one = Quantile(epsilon=F(1), bounds=ENDS, grid=F(1), q=q)
    two = Quantiles(epsilon=F(1), bounds=ENDS, grid=F(1), targets=(F(1, 4), q), tie_bits=0)
    far = Extreme(epsilon=F(1), bounds=ENDS, grid=F(1), inside=2)
    held = bin_steps(np.array(values, dtype=np.int64))
    for output in range(10):
        assert one.log_mass(held, output) == one.log_mass(values, output)
        assert far.log_mass(held, output) == far.log_mass(values, output)
        assert two.log_mass(held, (output, 9)) == two.log_mass(values, (output, 9))


def test_counted_values_are_drawn_alike() -> None:
    values = [1, 1, 1, 4, 4, 8]
    for mechanism in (
        Quantile(epsilon=F(1), bounds=ENDS, grid=F(1)),
        Quantiles(epsilon=F(1), bounds=ENDS, grid=F(1), targets=(F(1, 4), F(1, 2), F(3, 4))),
        Extreme(epsilon=F(1), bounds=ENDS, grid=F(1)),
    ):
        with replayed(5) as one:
            first = np.asarray(mechanism.draw(values))
        with replayed(5) as other:
            second = np.asarray(mechanism.draw(bin_steps(np.array(values))))
        assert first.tolist() == second.tolist()
        assert one.draws == other.draws


def test_many_counted_values_take_no_room() -> None:
    held = StepCounts.of([(3, 1 << 40), (5, 1 << 40)])
    assert Quantile(epsilon=F(1), bounds=ENDS, grid=F(1), q=F(1, 4)).draw(held) == 3
    assert Extreme(epsilon=F(1), bounds=ENDS, grid=F(1)).draw(held) == 5
    assert Extreme(epsilon=F(1), bounds=ENDS, grid=F(1), highest=False).draw(held) == 3


# Extremes


def test_an_extreme_aims_inside_the_data() -> None:
    wide = Extreme(epsilon=F(2), bounds=(F(0), F(10**6)), grid=F(1), rows=3)
    assert wide.rate == F(1, 3)
    assert wide.beyond == math.ceil(3 * math.log(20 * (10**6 + 1)))
    assert wide.error(beta=0.05) == pytest.approx(wide.beyond + 3 * math.log((10**6 + 1) / 0.05))
    values = np.arange(1000)
    drawn = wide.repeat(values, times=2000)
    assert (drawn <= 999).mean() > 0.97, "nearly all answers are within the data, though the range is 1,000 times it"
    within = [999 - wide.error(beta=0.05) <= one <= 999 for one in drawn]
    assert np.mean(within) > 0.95
    low = Extreme(epsilon=F(2), bounds=(F(-(10**6)), F(10**6)), grid=F(1), rows=3, highest=False)
    assert (low.repeat(values, times=2000) >= 0).mean() > 0.97


@pytest.mark.parametrize("highest", [True, False])
def test_scores_of_an_extreme(highest: bool) -> None:
    """ln of masses, less the best: minus rate times the distance of the wanted rank from what a candidate may claim."""
    mechanism = Extreme(epsilon=F(2), bounds=(F(0), F(6)), grid=F(1), inside=2, highest=highest)
    values = [1, 1, 3, 4, 4, 6]
    masses = [mechanism.log_mass(values, output) for output in range(7)]
    for output in range(7):
        beyond = sum(one > output if highest else one < output for one in values)
        at_least = sum(one >= output if highest else one <= output for one in values)
        meant = -max(beyond - 2, 2 - at_least, 0)
        assert masses[output] - max(masses) == pytest.approx(meant)


def test_an_extreme_of_nothing_is_anywhere() -> None:
    mechanism = Extreme(epsilon=F(1), bounds=(F(0), F(3)), grid=F(1))
    assert [mechanism.log_mass([], output) for output in range(4)] == pytest.approx([-math.log(4)] * 4)
    with pytest.raises(ParameterError):
        Extreme(epsilon=F(1), bounds=(F(0), F(3)), grid=F(1), inside=-1)


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_no_neighbours_of_an_extreme_lose_more_than_claimed(neighbors: Neighbors) -> None:
    mechanism = Extreme(epsilon=F(1), bounds=(F(0), F(4)), grid=F(1), rows=2, inside=2, neighbors=neighbors)
    base = [0, 1, 1, 3, 4, 4]
    worst = 0.0
    for added in ((4, 4), (0, 0), (0, 4), (2, 2)):
        other = [*base, *added] if neighbors is Neighbors.ADD_REMOVE else [*base[2:], *added]
        losses = [mechanism.log_mass(base, out) - mechanism.log_mass(other, out) for out in range(5)]
        worst = max(worst, max(losses) - min(losses))
    assert 0.4 < worst <= 1 + 1e-9


# One for every group


def test_a_unit_pays_for_the_groups_it_is_in() -> None:
    own = Quantile(epsilon=F(1, 4), bounds=ENDS, grid=F(1), rows=3)
    grouped = PerGroup(mechanism=own, groups=4)
    assert grouped.event == RepeatedEvent(event=BoundedRangeEvent(range=F(1, 4)), count=4)
    assert grouped.event.epsilon == 1
    assert PerGroup(mechanism=own).event == own.event
    needs = grouped.needs
    assert (needs.norm, needs.sensitivity, needs.coordinates, needs.integers) == (Norm.ROWS, F(3), 4, False)
    assert grouped.error(beta=0.1) == own.error(beta=0.1)
    chosen = PerGroup(mechanism=Exponential(epsilon=F(1), monotone=True), groups=2)
    assert chosen.needs.monotone
    assert PerGroup(mechanism=Geometric(epsilon=F(1))).needs.integers
    with pytest.raises(ParameterError):
        PerGroup(mechanism=own, groups=0)
    with pytest.raises(ParameterError):
        PerGroup(mechanism="quantile")  # type: ignore[arg-type]


def test_groups_are_drawn_one_after_the_other() -> None:
    own = Quantile(epsilon=F(20), bounds=ENDS, grid=F(1))
    grouped = PerGroup(mechanism=own, groups=1)
    value: tuple[list[int], ...] = ([2] * 50, [7] * 50, [])
    assert grouped.draw(value)[:2] == (2, 7)
    assert len(grouped.draw(value)) == 3
    assert grouped.draw(()) == ()
    many = grouped.repeat(value, times=9)
    assert len(many) == 9
    assert all(one[:2] == (2, 7) for one in many)
    assert grouped.log_mass(value, (2, 7, 4)) == sum(own.log_mass(a, b) for a, b in zip(value, (2, 7, 4), strict=True))


def test_groups_have_noise_of_their_own() -> None:
    grouped = PerGroup(mechanism=Quantile(epsilon=F(1, 100), bounds=(F(0), F(10**9)), grid=F(1)))
    drawn = grouped.draw([[]] * 20)
    assert all(a != b for a, b in pairwise(drawn))
