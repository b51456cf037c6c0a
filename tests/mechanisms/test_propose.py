"""Propose, test, release and the stable mode: the exact chance of passing on both sides of the line."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.audit.exact import Laws
from hubbub.errors import ParameterError
from hubbub.mechanisms import ProposedQuantile, ProposeTestRelease, StableMode, TruncatedThreshold
from hubbub.mechanisms.local_sensitivity.propose import StabilityTest
from hubbub.privacy.events.event import ApproxEvent, ComposedEvent, DiscreteLaplaceEvent
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.mechanisms.test_distance import changed

TOP = 20
ONE, TENTH = Fraction(1), Fraction(1, 10)
OUTPUTS = (None, *range(TOP + 1))
ON: dict[str, Any] = {"bounds": (Fraction(0), Fraction(TOP)), "grid": ONE}


def median(**options: Any) -> ProposedQuantile:
    return ProposedQuantile(**({"epsilon": Fraction(2), "delta": TENTH, "proposed": Fraction(3)} | ON | options))


def anything(**options: Any) -> ProposeTestRelease:
    known = {"epsilon": Fraction(2), "delta": TENTH, "proposed": Fraction(3), "distances": 5}
    return ProposeTestRelease(**(known | ON | options))


@settings(max_examples=80)
@given(st.lists(st.sampled_from([0, 1, 3, 9, 20]), max_size=8), st.integers(1, 2), st.data())
def test_one_unit_loses_at_most_epsilon_and_delta(rows: list[int], m: int, data: st.DataObject) -> None:
    pair = rows, changed(rows, data, m)
    for relation in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE):
        mechanism = median(rows=m, neighbors=relation)
        laws = Laws.of(mechanism, pair, OUTPUTS)
        assert laws.totals == pytest.approx((1, 1), abs=1e-12)
        assert laws.delta(float(mechanism.event.epsilon or 0)) <= float(mechanism.event.failure) + 1e-9


def test_where_the_proposal_does_not_hold_it_passes_with_exactly_the_failure_mass() -> None:
    mechanism = anything()
    failure = float(mechanism.event.failure)
    assert 0 < failure <= 0.1
    assert mechanism.measure((5, (4,) * 5)) == (5, 0)
    assert math.expm1(mechanism.log_mass((5, (4,) * 5), None)) == pytest.approx(-failure)
    for away, bounds in enumerate([(4,) * 5, (3, 4, 4, 4, 4), (3, 3, 4, 4, 4), (0, 1, 2, 3, 3)][:3]):
        assert mechanism.measure((5, bounds))[1] == away
    assert mechanism.measure((5, (0, 1, 2, 3, 3)))[1] == 5


def test_the_chance_of_passing_is_that_of_a_key_with_one_more_unit() -> None:
    mechanism = anything(distances=12)
    key = TruncatedThreshold(epsilon=ONE, delta=TENTH)
    for away in range(8):
        bounds = (3,) * away + (4,) * (12 - away)
        passed = 1 - math.exp(mechanism.log_mass((5, bounds), None)) if away < key.threshold * 2 - 2 else 1.0
        assert passed == pytest.approx(key.noise_tail(key.threshold - away - 1))


def test_the_test_meets_epsilon_and_delta_at_every_number() -> None:
    for moves in (1, 2):
        test = StabilityTest(epsilon=ONE, delta=TENTH, moves=moves)
        chances = [test.chance(number) for number in range(40)]
        assert chances[0] == 0
        assert chances[moves] == pytest.approx(float(test.failure)) == chances[1]
        assert chances[moves + 1] > chances[moves]
        assert chances[-1] == 1
        assert test.chance(-5) == 0
        assert test.chance(10**30) == 1
        for low, high in zip(chances, chances[moves:], strict=False):
            assert high <= math.e * low + float(test.failure) + 1e-12
            assert 1 - low <= math.e * (1 - high) + float(test.failure) + 1e-12


def test_one_step_less_would_break_delta() -> None:
    test = StabilityTest(epsilon=ONE, delta=TENTH)
    assert test.failure <= TENTH
    assert test.key._end(test.threshold - 2) > TENTH


def test_events_and_shares() -> None:
    mechanism = anything(test_share=Fraction(1, 4), neighbors=Neighbors.REPLACE_ONE)
    relation = Neighbors.REPLACE_ONE
    test = ApproxEvent(bound=Fraction(1, 2), failure=mechanism.test.failure, neighbors=relation)
    noise = DiscreteLaplaceEvent(scale=Fraction(2), sensitivity=3, neighbors=relation)
    assert mechanism.event == ComposedEvent(events=(test, noise))
    assert mechanism.event.epsilon == 2
    assert mechanism.needs.norm is Norm.LOCAL
    assert median().needs.norm is Norm.ROWS
    assert median(rows=2).needs.sensitivity == 2


def test_answers() -> None:
    sure, hopeless = [7] * 300, [0, 20]
    answers = median(epsilon=Fraction(40)).repeat(sure, times=100)
    assert set(answers) <= {6, 7, 8}
    assert median(epsilon=Fraction(40)).draw(sure) in {6, 7, 8}
    assert median(delta=Fraction(1, 10**9)).repeat(hopeless, times=100) == [None] * 100
    quarters = median(grid=Fraction(1, 4), epsilon=Fraction(40), proposed=Fraction(1, 4))
    assert 6.5 < quarters.draw(sure) < 7.5
    assert quarters.steps_proposed == 1
    assert median(proposed=Fraction(7, 2)).noise.sensitivity == 3
    assert median().error(beta=0.05) == median().noise.error(beta=0.05)


def test_refusals() -> None:
    for proposed in (0, Fraction(1, 2), TOP + 1):
        with pytest.raises(ParameterError, match="proposed must be"):
            median(proposed=proposed)
    median(proposed=TOP)
    for share in (0, 1):
        with pytest.raises(ParameterError, match="test_share must be"):
            median(test_share=share)
    with pytest.raises(ParameterError, match="distances must be"):
        anything(rows=6)
    with pytest.raises(ParameterError, match="delta must be"):
        median(delta=0)
    with pytest.raises(ParameterError, match="moves must be"):
        StabilityTest(epsilon=ONE, delta=TENTH, moves=0)
    with pytest.raises(ParameterError, match="5 distances"):
        anything().draw((5, (1,)))


KEYS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 6))


@given(KEYS, st.sets(st.sampled_from("abcd"), max_size=3), st.sets(st.sampled_from("abcd"), max_size=3))
def test_the_mode_leaks_no_unit(held: dict[str, int], added: set[str], removed: set[str]) -> None:
    outputs = (None, "a", "b", "c", "d")

    def with_unit(keys: set[str]) -> dict[str, int]:
        return {key: count for key in "abcd" if (count := held.get(key, 0) + (key in keys))}

    mode = StableMode(epsilon=ONE, delta=TENTH, keys_per_unit=3)
    laws = Laws.of(mode, (with_unit(set()), with_unit(added)), outputs)
    assert laws.totals == pytest.approx((1, 1))
    assert laws.delta(1.0) <= float(mode.event.failure) + 1e-12
    swapped = StableMode(epsilon=ONE, delta=TENTH, keys_per_unit=3, neighbors=Neighbors.REPLACE_ONE)
    assert Laws.of(swapped, (with_unit(added), with_unit(removed)), outputs).delta(1.0) <= 0.1 + 1e-12


def test_the_mode() -> None:
    mode = StableMode(epsilon=ONE, delta=Fraction(1, 10**6))
    assert mode.draw({"a": 2, "b": 60}) == "b"
    assert mode.repeat({"a": 60}, times=20) == ["a"] * 20
    assert mode.draw({}) is None
    assert mode.draw({"a": 50, "b": 50}) is None
    lead = int(mode.error(beta=0.01))
    assert mode.log_mass({"a": lead}, "a") >= math.log(0.99) > mode.log_mass({"a": lead - 1}, "a")
    assert mode.log_mass({"a": lead}, "b") == -math.inf
    assert 13 < lead < 22  # ln(1/δ)/ε is 13.8
    assert mode.event == ApproxEvent(bound=ONE, failure=mode.test.failure)
    assert StableMode(epsilon=ONE, delta=TENTH, keys_per_unit=7).needs.sensitivity == 7
    assert mode.needs.norm is Norm.UNITS
    assert StableMode(epsilon=ONE, delta=TENTH).test.moves == 1
    assert StableMode(epsilon=ONE, delta=TENTH, neighbors=Neighbors.REPLACE_ONE).test.moves == 2
    with pytest.raises(ParameterError, match="keys_per_unit must be"):
        StableMode(epsilon=ONE, delta=TENTH, keys_per_unit=0)


def test_equals_are_ordered_by_key_and_not_by_the_data() -> None:
    mode = StableMode(epsilon=ONE, delta=Fraction(1, 2))
    assert mode.log_mass({"b": 9, "a": 8}, "b") == mode.log_mass({"a": 8, "b": 9}, "b")
    assert mode.log_mass({"b": 3, "a": 3}, "b") == -math.inf
