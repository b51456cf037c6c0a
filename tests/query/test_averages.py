"""Geometric means, weighted averages, and whether a condition holds: exact without noise, and their intervals."""

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from hubbub.errors import MissingBounds
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.answer.explain import explain_columns
from hubbub.query.answer.stored import combine
from hubbub.query.ops import Measure
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import NoisyNumber
from tests.query.asking import policy
from tests.query.further import both_ends_of
from tests.query.generate import TIMES
from tests.query.test_plan import _answers, _table, _within, planned

F = Fraction
GEOMETRIC = "geometric_mean(greatest(cost, 1))"
WEIGHTED = "weighted_avg(cost, points % 10)"
BOUNDED = "weighted_avg(cost, least(greatest(points, 0), 9))"


def rows(pairs: Sequence[tuple[float | None, int | None]], **more: Any) -> dict[str, list[dict[str, Any]]]:
    one = _table(Random(1))["stays"][0]
    held = [{**one, "patient_id": n, "cost": x, "points": y, **more} for n, (x, y) in enumerate(pairs)]
    return {"stays": held, "wards": []}


def numbers(found: Plan, tables: dict[str, Any]) -> list[NoisyNumber]:
    (cell,) = combine(found, _answers(found, tables))
    return cell


# Geometric means


def test_a_geometric_mean_without_noise_is_the_truth() -> None:
    values = [1.0, 4.0, 16.0, 50.0, 99.5]
    (found,) = numbers(planned(f"select {GEOMETRIC} from stays"), rows([(x, 1) for x in values]))
    assert found.value == pytest.approx(math.exp(sum(map(math.log, values)) / len(values)), rel=1e-4)


def test_missing_values_do_not_count_and_others_are_clamped_to_positive_bounds() -> None:
    plan = planned(f"select {GEOMETRIC} from stays")
    (found,) = numbers(plan, rows([(None, 1), (math.nan, 1), (0.0, 1), (-7.0, 1), (1e300, 1)]))
    assert found.value == pytest.approx(100 ** (1 / 3), rel=1e-4)
    (nobody,) = numbers(plan, rows([(None, 1)]))
    assert (nobody.value, nobody.low, nobody.high) == (None, 1.0, 100.0)


def test_both_of_its_names_are_one() -> None:
    one, other = (planned(f"select {name}(greatest(age, 1)) from stays") for name in ("geomean", "geometric_mean"))
    assert one.question == other.question
    assert one.question.asked[0].text == "geometric_mean(greatest(age, 1))"
    assert one.question.outputs[0].expression.kind.type is Type.REAL


def test_it_shares_its_count_and_is_measured_from_both_ends() -> None:
    found = planned("select count(*), avg(age), geometric_mean(greatest(age, 1)) from stays")
    assert len(found.aggregate.tallies) == 3
    assert both_ends_of(found) is not None
    assert both_ends_of(planned("select geometric_mean(greatest(age, 1)) from stays")) is not None


@pytest.mark.parametrize("text", ["geometric_mean(cost)", "geometric_mean(greatest(cost, 0))"])
def test_bounds_that_begin_at_zero_are_refused(text: str) -> None:
    with pytest.raises(MissingBounds, match="above 0"):
        planned(f"select {text} from stays")


# Weighted averages


@pytest.mark.parametrize("text", [WEIGHTED, BOUNDED, "wavg(cost, least(greatest(points, -3), 9))"])
def test_a_weighted_average_without_noise_is_the_truth(text: str) -> None:
    pairs = [(10.0, 1), (20.5, 2), (80.0, 9), (33.0, 0)]
    (found,) = numbers(planned(f"select {text} from stays"), rows([*pairs, (None, 8), (7.0, None)]))
    truth = sum(x * w for x, w in pairs) / sum(w for _, w in pairs)
    assert found.value == pytest.approx(truth, rel=1e-3)


def test_negative_weights_are_none() -> None:
    (found,) = numbers(planned(f"select {WEIGHTED} from stays"), rows([(10.0, 4), (90.0, -4)]))
    assert found.value == pytest.approx(10.0, abs=1e-3)


def test_without_weights_there_is_no_number() -> None:
    (found,) = numbers(planned(f"select {BOUNDED} from stays"), rows([(10.0, 0), (20.0, 0)]))
    assert (found.value, found.low, found.high) == (None, 0.0, 100.0)


def test_a_weighted_average_explains_both_bounds() -> None:
    (told,) = explain_columns(planned(f"select {BOUNDED} from stays"))
    assert "values clamped to 0 … 100; weights clamped to 0 … 9" in told["sentence"]
    assert told["margin"] is None


def test_both_sums_are_cut_to_the_same_rows() -> None:
    """A unit with far too many rows counts with its own averages, so that it moves the ratio no further than others."""
    one = rows([(50.0, 4)])["stays"][0]
    many = [{**one, "patient_id": 1, "cost": 80.0, "points": 2} for _ in range(500)]
    few = [{**one, "patient_id": n, "cost": 20.0, "points": 2} for n in range(2, 7)]
    plan = planned(f"select {BOUNDED} from stays")
    most = plan.aggregate.tallies[0].most_rows or 0
    (found,) = numbers(plan, {"stays": [*many, *few], "wards": []})
    assert found.value == pytest.approx((80 * most + 20 * 5) / (most + 5), rel=1e-3)


# Conditions


def test_conditions_are_decided_by_units_beyond_the_margin() -> None:
    found = planned("select bool_and(urgent), bool_or(not urgent), bool_or(urgent) from stays", epsilon=4)
    assert {tally.measure for tally in found.aggregate.tallies} == {Measure.UNITS}
    margin = int(found.margins.bound(found.aggregate.tallies[0], 0.05))
    for units, decided in ((0, False), (margin, False), (margin + 1, True), (3 * margin, True)):
        held = rows([(1.0, 1)] * units, urgent=False)
        every, none, some = numbers(found, held)
        assert (every.value, none.value, some.value) == (not decided, decided, False), units
        assert (every.low, every.high) == (not units and not margin, not decided)
        assert (none.low, none.high) == (decided, bool(units or margin))


def test_missing_conditions_do_not_count() -> None:
    found = planned("select bool_and(urgent), bool_or(urgent) from stays", epsilon=1000)
    every, some = numbers(found, rows([(1.0, 1)] * 50, urgent=None))
    assert (every.value, every.low, every.high) == (True, True, True)
    assert (some.value, some.low, some.high) == (False, False, False)


def test_conditions_need_no_limit_of_rows_and_no_bounds() -> None:
    found = planned("select bool_or(points > 3) from stays", policy(limits=Limits(max_groups=3)))
    assert found.question.outputs[0].expression.kind.type is Type.BOOLEAN


def test_conditions_explain_how_many_units_decide() -> None:
    found = planned("select bool_and(urgent), bool_or(urgent) from stays")
    every, some = explain_columns(found)
    margin = int(found.margins.bound(found.aggregate.tallies[0], 0.05))
    assert every["sentence"].startswith(f"false only if the noisy number of units with a false value is above {margin}")
    assert f"more than {2 * margin} have" in some["sentence"]


@pytest.mark.parametrize("units", [0, 3, 40])
def test_the_error_of_a_condition_is_what_was_told(units: int) -> None:
    """Without counterexamples, and beyond twice the margin, at most 5% are wrong (4,000 draws, 6 deviations)."""
    found = planned("select bool_or(urgent) from stays", epsilon=1)
    (measurement,) = found.measurements
    margin = int(found.margins.bound(found.aggregate.tallies[0], 0.05))
    held = units * margin
    drawn = measurement.mechanism.repeat([held], times=4000)
    wrong = sum(combine(found, [[int(one[0])]])[0][0].value is not (held > 0) for one in drawn)
    assert wrong / 4000 < 0.05 + 6 * math.sqrt(0.05 * 0.95 / 4000)


# All of them


ALL = f"select ward, {GEOMETRIC}, {BOUNDED}, bool_and(urgent), bool_or(cost > 50) from stays group by ward"


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
def test_neighbours_stay_within_the_plan(neighbors: Neighbors, delta: Fraction) -> None:
    found = planned(ALL, policy(budget=Budget(epsilon=F(4), delta=delta, neighbors=neighbors)))
    for seed in range(6 * TIMES):
        rng = Random(seed)
        tables = _table(rng)
        rest = [row for row in tables["stays"] if row["patient_id"] != 1]
        other = rest
        if neighbors is Neighbors.REPLACE_ONE:
            other = [*rest, *({**row, "patient_id": 1} for row in _table(rng)["stays"])]
        _within(found, _answers(found, tables), _answers(found, tables | {"stays": rng.sample(other, len(other))}))
