"""Smooth sensitivity: exact losses on neighbours of every kind, answers, and what is refused."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub import Facts, Meter, Secret, Sensitivity
from hubbub.audit.exact import Laws
from hubbub.errors import MisfitError, ParameterError
from hubbub.mechanisms import SmoothQuantile, SmoothSensitivity
from hubbub.mechanisms.local_sensitivity.dilation import LaplaceDilated, Student
from hubbub.noise.entropy import substitute
from hubbub.privacy.events.event import ApproxEvent, PureEvent
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.mechanisms.test_distance import changed
from tests.noise.sources import Script

TOP = 30
ONE = Fraction(1)


def median(epsilon: Fraction = ONE, **options: Any) -> SmoothQuantile:
    known: dict[str, Any] = {"bounds": (Fraction(0), Fraction(TOP)), "grid": ONE}
    return SmoothQuantile(epsilon=epsilon, **(known | options))


def anything(epsilon: Fraction = ONE, **options: Any) -> SmoothSensitivity:
    known: dict[str, Any] = {"bounds": (Fraction(0), Fraction(TOP)), "grid": ONE, "distances": 4}
    return SmoothSensitivity(epsilon=epsilon, **(known | options))


@settings(max_examples=60)
@given(st.lists(st.integers(0, TOP), max_size=8), st.integers(1, 2), st.sampled_from([1, 2, 3]), st.data())
def test_one_unit_loses_at_most_epsilon(rows: list[int], m: int, degrees: int, data: st.DataObject) -> None:
    q = data.draw(st.sampled_from([Fraction(1, 2), Fraction(1, 5)]))
    pair = rows, changed(rows, data, m)
    for relation in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE):
        pure = median(rows=m, degrees=degrees, q=q, neighbors=relation)
        laws = Laws.of(pure, pair, range(TOP + 1))
        assert laws.totals == pytest.approx((1, 1), abs=1e-12)
        assert laws.loss() <= 1 + 1e-9
    approximate = median(rows=m, q=q, delta=Fraction(1, 20))
    assert Laws.of(approximate, pair, range(TOP + 1)).delta(1.0) <= 0.05 + 1e-9


@settings(max_examples=60)
@given(st.lists(st.integers(0, 9), min_size=5, max_size=5), st.data())
def test_any_bound_with_the_property_is_enough(bounds: list[int], data: st.DataObject) -> None:
    """Random local sensitivities, and a neighbour's that are as far from them as the property allows."""
    ones = np.maximum.accumulate(bounds).tolist()
    others = [
        data.draw(st.integers(ones[k - 1] if k else 0, ones[k + 1] if k < 4 else TOP), label=f"A_{k}") for k in range(5)
    ]
    others = np.maximum.accumulate(others).tolist()
    moved = data.draw(st.integers(0, min(ones[0], others[0])))
    mechanism = anything(distances=5)
    pair = (12, tuple(ones)), (12 + moved, tuple(others))
    assert Laws.of(mechanism, pair, range(TOP + 1)).loss() <= 1 + 1e-9


def test_rows_of_a_unit_add_up() -> None:
    """Two rows a unit: bounds of two rows are added, and distances are counted in pairs."""
    by_rows, by_units = anything(rows=2, distances=6), anything(distances=3)
    assert by_rows.measure((7, (1, 2, 3, 4, 5, 6))) == by_units.measure((7, (3, 7, 11)))
    assert by_rows.needs.sensitivity == 2
    assert by_rows.needs.norm is Norm.LOCAL
    assert median(rows=3).needs.sensitivity == 3
    assert median(rows=3).needs.norm is Norm.ROWS
    some = np.arange(TOP + 1)
    # one unit with m rows at β decays as one row at β/m, but for the m ranks that it takes at once
    wide, narrow = median(rows=4).measure(some)[1], median().measure(some)[1]
    assert narrow < wide < 4.5 * narrow


def test_the_answer_is_the_order_statistic() -> None:
    for rows, expected in (([], 0), ([5], 5), ([5, 9], 5), ([5, 9, 11], 9), ([40, 41, -3], 30), ([math.nan, 7, 8], 7)):
        assert median().measure(rows)[0] == expected
    assert median(q=Fraction(9, 10)).measure(list(range(10)))[0] == 8
    assert anything().measure((7.4, (0,) * 4))[0] == 7
    assert anything().measure((7.5, (0,) * 4))[0] == 8
    assert anything().measure((math.nan, (0,) * 4))[0] == 0
    assert anything().measure((99, (0,) * 4))[0] == TOP
    halves = anything(grid=Fraction(1, 2), bounds=(Fraction(-1), Fraction(1)))
    assert halves.measure((0, (0,) * 4))[0] == 2


def test_bounds_are_rounded_up_to_steps() -> None:
    assert anything().measure((7, (Fraction(11, 10),) * 4))[1] == anything().measure((7, (2,) * 4))[1]
    assert anything().measure((7, (math.inf,) * 4))[1] == anything().measure((7, (TOP,) * 4))[1]
    assert anything().measure((7, (-5,) * 4))[1] == anything().measure((7, (0,) * 4))[1]
    far = anything(distances=12)
    assert float(far.measure((7, (2,) * 12))[1]) == pytest.approx(2, rel=1e-9)
    assert float(far.measure((7, (Fraction(5, 2),) * 12))[1]) == pytest.approx(3, rel=1e-9)
    assert float(far.measure((7, (10**9,) * 12))[1]) == pytest.approx(TOP, rel=1e-9)
    pairs = anything(rows=2, distances=24)
    assert float(pairs.measure((7, (-5, 3) * 12))[1]) == pytest.approx(3, rel=1e-9)


def test_data_that_nobody_can_move_gets_no_noise() -> None:
    tied = [17] * 400
    assert {median().draw(tied) for _ in range(50)} == {17}
    assert set(median(delta=Fraction(1, 10**6)).repeat(tied, times=50).tolist()) == {17}
    assert median().log_mass(tied, 17) == pytest.approx(0, abs=1e-6)
    assert median(delta=Fraction(1, 10**6)).log_mass([17] * 4000, 29) == -math.inf


def test_masses_at_the_ends_are_whole_tails() -> None:
    for mechanism in (median(), median(delta=Fraction(1, 100)), median(degrees=1)):
        exact, bound = mechanism.measure([3, 9, 12])
        assert exact == 9
        low, high = mechanism.law.tail(np.array([9.0, 21.0]), bound)
        assert mechanism.log_mass([3, 9, 12], 0) == pytest.approx(math.log(low))
        assert mechanism.log_mass([3, 9, 12], TOP) == pytest.approx(math.log(high))
        assert mechanism.log_mass([3, 9, 12], TOP + 1) == -math.inf
        assert mechanism.log_mass([3, 9, 12], -1) == -math.inf
    at_the_end = median()
    _, bound = at_the_end.measure([])
    (rest,) = at_the_end.law.tail(np.array([1.0]), bound)
    assert at_the_end.log_mass([], 0) == pytest.approx(math.log1p(-rest))


def test_answers_come_in_the_units_of_the_bounds() -> None:
    mechanism = median(bounds=(Fraction(-2), Fraction(2)), grid=Fraction(1, 4))
    answers = [mechanism.draw([0.25, 0.3, 1.0]) for _ in range(200)]
    assert all(
        isinstance(answer, float) and answer * 4 == round(answer * 4) and -2 <= answer <= 2 for answer in answers
    )
    assert len(set(answers)) > 4


def test_the_number_and_kind_of_draws_do_not_depend_on_the_data() -> None:
    for rows in ([5] * 50, [0] * 20 + [30] * 20, []):
        heard = Script([1 << 63, 3 << 60, 0])
        with substitute(heard):
            median().draw(rows)
        assert heard.kinds == [("rounded-student", {"degrees": 2, "reach": TOP, "size": None})]


def test_the_error_says_only_what_is_public() -> None:
    assert median().error(beta=0.05) == TOP
    with pytest.raises(ParameterError, match="beta must be"):
        median().error(beta=0)


def test_laws_and_events() -> None:
    assert median().event == PureEvent(bound=ONE)
    assert median(delta=Fraction(1, 100)).event == ApproxEvent(bound=ONE, failure=Fraction(1, 100))
    assert median(neighbors=Neighbors.REPLACE_ONE).event.neighbors is Neighbors.REPLACE_ONE
    assert isinstance(median().law, Student)
    assert isinstance(median(delta=Fraction(1, 100)).law, LaplaceDilated)
    assert median(beta=Fraction(1, 9)).decay == Fraction(1, 9)
    assert median(degrees=3).law == Student(epsilon=ONE, degrees=3)


def test_through_the_gate() -> None:
    facts = Facts(account="people", sensitivity=Sensitivity(local=2))
    meter = Meter({"people": Budget(epsilon=Fraction(3))})
    release = meter.measure(anything(rows=2), Secret((7, (1, 1, 2, 2)), facts), label="answer")
    assert 0 <= release.value <= TOP
    assert release.why_no_interval is not None
    with pytest.raises(MisfitError, match="calibrated for a change of 1 in local"):
        meter.measure(anything(), Secret((7, (1, 1, 2, 2)), facts), label="answer")
    with pytest.raises(MisfitError, match="needs a proven bound in rows"):
        meter.measure(median(), Secret([7], facts), label="answer")
    rows = Facts(account="people", sensitivity=Sensitivity(rows=1))
    assert 0 <= meter.measure(median(), Secret([7, 8, 9], rows), label="median").value <= TOP


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="bounds must be one for each of the 4 distances"):
        anything().draw((7, (1, 2, 3)))
    with pytest.raises(ParameterError, match="distances must be a whole number at least 3"):
        anything(rows=3, distances=2)
    with pytest.raises(ParameterError, match="q must be"):
        median(q=Fraction(1))
    with pytest.raises(ParameterError, match="grid must be a step for which the noise stays below"):
        median(delta=Fraction(1, 10), bounds=(Fraction(0), Fraction(1 << 50)))
    median(bounds=(Fraction(0), Fraction(1 << 50)))
