"""The exponential mechanism over intervals: the same law as over all its points, whatever the breakpoints."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import ParameterError
from hubbub.mechanisms import Exponential, IntervalExponential
from hubbub.privacy.sensitivity import Neighbors, Norm


def over(top: int = 20, **options: Any) -> IntervalExponential:
    known: dict[str, Any] = {"epsilon": Fraction(1), "bounds": (Fraction(0), Fraction(top)), "grid": Fraction(1)}
    return IntervalExponential(**(known | options))


def score_at(breakpoints: list[float], scores: list[int], point: int) -> int:
    """Just below half a step beyond the point."""
    return scores[sum(1 for place in breakpoints if place < point + 0.5)]


@given(st.lists(st.floats(0, 20), max_size=6), st.data())
def test_the_law_is_that_of_every_point_by_itself(places: list[float], data: st.DataObject) -> None:
    breakpoints = sorted(places)
    scores = data.draw(st.lists(st.integers(-30, 30), min_size=len(places) + 1, max_size=len(places) + 1))
    each = tuple(score_at(breakpoints, scores, point) for point in range(21))
    whole, pointwise = over(), Exponential(epsilon=Fraction(1))
    for point in range(21):
        assert whole.log_mass((breakpoints, scores), point) == pytest.approx(pointwise.log_mass(each, point), abs=1e-9)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=5), st.data())
def test_loss_stays_within_epsilon(places: list[float], data: st.DataObject) -> None:
    breakpoints = sorted(places)
    scores = data.draw(st.lists(st.integers(-9, 9), min_size=len(places) + 1, max_size=len(places) + 1))
    moved = [score + data.draw(st.integers(-1, 1)) for score in scores]
    raised = [max(a, b) for a, b in zip(scores, moved, strict=True)]
    for mechanism, side in ((over(), moved), (over(monotone=True), raised)):
        gaps = [
            mechanism.log_mass((breakpoints, scores), point) - mechanism.log_mass((breakpoints, side), point)
            for point in range(21)
        ]
        assert max(gaps) - min(gaps) <= 1 + 1e-9


def test_a_range_far_too_long_to_list_is_drawn_from() -> None:
    long = over(1 << 40, epsilon=Fraction(200))
    answers = [long.draw(((1000.0, 1010.0), (0, 1, 0))) for _ in range(50)]
    assert all(1000 <= answer < 1010 for answer in answers)
    assert len(set(answers)) > 3


def test_draws_follow_the_law() -> None:
    """χ² by eye: 10^5 draws, each frequency within 6 standard errors (false alarm under 1e-6 over 21 points)."""
    value = ((3.2, 9.5, 9.6), (0, 4, -3, 2))
    drawn = np.bincount(over().repeat(value, times=100_000).astype(np.int64), minlength=21)
    for point, count in enumerate(drawn.tolist()):
        p = math.exp(over().log_mass(value, point))
        assert abs(count - 100_000 * p) < 6 * math.sqrt(100_000 * p * (1 - p)) + 1


def test_answers_come_in_the_units_of_the_bounds() -> None:
    fine = IntervalExponential(epsilon=Fraction(50), bounds=(Fraction(-1), Fraction(1)), grid=Fraction(1, 4))
    assert {fine.draw(((0.1, 0.3), (0, 9, 0))) for _ in range(20)} == {0.0}
    assert fine.log_mass(((0.1, 0.3), (0, 9, 0)), 2) == -math.inf


def test_rates() -> None:
    assert over().rate == Fraction(1, 2)
    assert over(monotone=True).rate == 1
    assert over(sensitivity=Fraction(5, 2)).rate == Fraction(1, 6)
    assert over(sensitivity=Fraction(5, 2), score_grid=Fraction(1, 2)).rate == Fraction(1, 10)


def test_needs() -> None:
    for monotone in (False, True):
        needs = over(sensitivity=Fraction(5, 2), monotone=monotone).needs
        assert (needs.norm, needs.sensitivity) == (Norm.SCORE, Fraction(5, 2))
        assert (needs.integers, needs.monotone, needs.neighbors) == (False, monotone, Neighbors.ADD_REMOVE)
    replaced = over(neighbors=Neighbors.REPLACE_ONE)
    assert replaced.needs.neighbors is replaced.event.neighbors is Neighbors.REPLACE_ONE


def test_error_is_in_the_units_of_the_score() -> None:
    fine = over(score_grid=Fraction(1, 4))
    assert fine.error(beta=0.1) == pytest.approx((math.log(21 / 0.1) * 8 + 1) / 4)


def test_error_holds_for_the_score() -> None:
    """The bound at beta = 0.1 is passed in under 12% of 5,000 runs (false alarm under 1e-6)."""
    mechanism, scores = over(), (0, 30, 25)
    bound = mechanism.error(beta=0.1)
    assert bound == pytest.approx(math.log(21 / 0.1) / 0.5 + 1)
    answers = mechanism.repeat(((5.0, 6.0), scores), times=5_000)
    short = np.array([30 - score_at([5.0, 6.0], list(scores), int(answer)) for answer in answers])
    assert np.mean(short > bound) < 0.12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sensitivity": 0}, "sensitivity must be"),
        ({"score_grid": -1}, "score_grid must be"),
        ({"monotone": True, "neighbors": Neighbors.REPLACE_ONE}, "monotone must be"),
        ({"bounds": (0, math.inf)}, "bounds must be"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        over(**options)


@pytest.mark.parametrize("scores", [(), (1,), (1, 2, 3)])
def test_one_score_a_piece(scores: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="scores must be one more than there are breakpoints"):
        over().draw(((3.0,), scores))
