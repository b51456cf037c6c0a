"""Values that are chosen: how they are read, planned, paid for, and made of steps again."""

import math
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from hubbub.errors import MissingBounds, NotAllowed, TooHeavy
from hubbub.mechanisms import Exponential, Extreme, Gaussian, Geometric, Mechanism, PerGroup, Quantile, Quantiles
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.privacy.shares import deviation
from hubbub.query.aggregates.count import DISTINCT
from hubbub.query.aggregates.extremes import MAX, MIN, ExtremeChoice
from hubbub.query.aggregates.function import AggregateFunction
from hubbub.query.aggregates.mode import MODE, ModeChoice
from hubbub.query.aggregates.quantile import QUANTILE_CONT, QUANTILE_DISC, QuantileChoice
from hubbub.query.answer.explain import explain_columns
from hubbub.query.answer.stored import combine
from hubbub.query.check.shape import ColumnFacts
from hubbub.query.expression import Column
from hubbub.query.ops import ExactCounts, Histogram, Measure
from hubbub.query.plan import choice as choices
from hubbub.query.plan.choice import Choice, lay_out
from hubbub.query.plan.collect import Collector
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import Reach
from hubbub.query.question import Asked, Question
from tests.query import generate, interpreter
from tests.query.asking import TABLES, policy, read
from tests.query.further import exact_slots
from tests.query.test_plan import _table, planned

F = Fraction
BOTH = Budget(epsilon=F(4), delta=F(1, 10**6))


HELD = Reach(groups=4, neighbors=Neighbors.ADD_REMOVE)


def steps(top: int, rows: int) -> Histogram:
    ends = F(0), F(top)
    return Histogram(argument=Column("x", of(Type.INTEGER)), clamp=ends, origin=F(0), grid=F(1), most_rows=rows)


def choices_of(found: Plan) -> list[Choice]:
    return [one.take for one in found.measurements if isinstance(one.take, Choice)]


def inner(found: Plan, place: int = 0) -> Mechanism:
    chosen = [one.mechanism for one in found.measurements if isinstance(one.take, Choice)][place]
    assert isinstance(chosen, PerGroup)
    return chosen.mechanism


# Reading


@pytest.mark.parametrize(
    ("text", "function", "level"),
    [
        ("median(cost)", QUANTILE_CONT, F(1, 2)),
        ("quantile_cont(cost, 0.9)", QUANTILE_CONT, F(9, 10)),
        ("quantile_disc(cost, 0.25)", QUANTILE_DISC, F(1, 4)),
        ("quantile(cost, 2.5e-1)", QUANTILE_DISC, F(1, 4)),
        ("approx_quantile(cost, 0.25)", QUANTILE_DISC, F(1, 4)),
        ("percentile_cont(0.9) within group (order by cost)", QUANTILE_CONT, F(9, 10)),
        ("percentile_disc(0.9) within group (order by cost desc)", QUANTILE_DISC, F(1, 10)),
        ("quantile_cont(cost, 0.9 order by cost desc)", QUANTILE_CONT, F(1, 10)),
        ("quantile_cont(cost, 0)", MIN, None),
        ("quantile_cont(cost, 1)", MAX, None),
        ("quantile_cont(cost, 1.0)", MAX, None),
        ("percentile_cont(1) within group (order by cost desc)", MIN, None),
        ("min(cost)", MIN, None),
        ("max(cost)", MAX, None),
        ("mode() within group (order by ward)", MODE, None),
    ],
)
def test_how_they_are_written(text: str, function: AggregateFunction, level: Fraction | None) -> None:
    (asked,) = read(f"select {text} from stays").asked
    assert (asked.function, asked.level) == (function, level)


def test_a_question_reads_the_same_from_its_own_text() -> None:
    once = read("select percentile_cont(0.9) within group (order by cost desc) from stays")
    assert read(once.text).asked == once.asked


def test_a_list_makes_a_column_each() -> None:
    found = read(
        "select ward, quantile_cont(cost, [0.9, 0.25, 1]) as q, quantile_disc(age, [0.5]) from stays group by 1"
    )
    assert [one.name for one in found.outputs] == [
        "ward",
        "q_0.9",
        "q_0.25",
        "q_max",
        "quantile_disc(age, [0.5])_0.5",
    ]
    assert [one.level for one in found.asked] == [F(9, 10), F(1, 4), None, F(1, 2)]
    assert found.asked[0].text == "quantile_cont(cost, [0.9, 0.25, 1]) at 0.9"


def test_what_is_asked_twice_is_chosen_once() -> None:
    found = read("select median(cost), quantile_cont(cost, 0.5) + 1, quantile_cont(cost, [0.5, 0.75]) as q from stays")
    assert len(found.asked) == 2


def test_places_in_the_select_list_are_those_of_the_text() -> None:
    found = read("select quantile_cont(cost, [0.1, 0.2]) as q, ward, count(*) from stays group by 2 order by 3")
    assert found.order[0].expression == found.outputs[3].expression


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("median(age)", Type.REAL),
        ("quantile_disc(age, 0.5)", Type.INTEGER),
        ("max(age)", Type.INTEGER),
        ("max(cost)", Type.REAL),
        ("mode(ward)", Type.TEXT),
        ("mode(urgent)", Type.BOOLEAN),
        ("count(distinct ward)", Type.INTEGER),
        ("corr(age, age)", Type.REAL),
    ],
)
def test_types(text: str, type_: Type) -> None:
    assert read(f"select {text} from stays").outputs[0].expression.kind.type is type_


def test_modes_choose_among_public_values() -> None:
    (declared, listed, possible) = read(
        "select mode(ward), mode(points), mode(urgent) from stays where points in (3, 5)"
    ).asked
    assert declared.values == ("a", "b", "c")
    assert listed.values == (3, 5)
    assert possible.values == (False, True), "missing values are nobody's mode"


# Plans


def test_quantiles_of_one_value_are_chosen_together() -> None:
    found = planned(
        "select median(cost), quantile_disc(cost, 0.9), quantile_cont(cost, 0.9), min(cost), max(cost), median(age), "
        "count(*) from stays"
    )
    several, least, most, alone = choices_of(found)
    assert isinstance(several, QuantileChoice)
    assert isinstance(alone, QuantileChoice)
    assert (several.levels, alone.levels) == ((F(1, 2), F(9, 10)), (F(1, 2),))
    assert [isinstance(one, ExtremeChoice) and one.is_highest for one in (least, most)] == [False, True]
    assert len(found.aggregate.histograms) == 2
    assert [part.choice for part in found.parts[:3]] == [several] * 3
    assert [type(inner(found, place)) for place in range(4)] == [Quantiles, Extreme, Extreme, Quantile]
    assert len(found.mechanisms) == 5
    assert isinstance(found.mechanisms[0], Geometric)


def test_what_the_mechanisms_are_made_for() -> None:
    found = planned("select ward, quantile_cont(age, 0.9), max(age), mode(urgent) from stays group by ward", epsilon=9)
    third = F(3)
    quantile, extreme, mode = (inner(found, place) for place in range(3))
    assert isinstance(quantile, Quantile)
    assert (quantile.epsilon, quantile.rows, quantile.q, quantile.top) == (third / 3, 5, F(9, 10), 110)
    assert isinstance(extreme, Extreme)
    assert (extreme.epsilon, extreme.rows, extreme.highest, extreme.top) == (third / 3, 5, True, 110)
    assert extreme.beyond == math.ceil(math.log(20 * 111) / (1 / 10))
    assert isinstance(mode, Exponential)
    assert (mode.epsilon, mode.sensitivity, mode.monotone) == (third / 3, F(5), True)
    assert [event.epsilon for event in found.events] == [third] * 3
    for measurement in found.measurements:
        assert measurement.mechanism.needs.coordinates == measurement.sensitivity.l0 == 3


@pytest.mark.parametrize("text", ["median(age)", "max(age)", "mode(urgent)", "quantile_cont(age, [0.1, 0.5])"])
@pytest.mark.parametrize(("limit", "groups"), [(1, 2), (2, 3), (3, 3)])
def test_replacing_a_unit_changes_twice_the_groups_or_all_that_there_are(text: str, limit: int, groups: int) -> None:
    given = policy(
        budget=Budget(epsilon=F(4), neighbors=Neighbors.REPLACE_ONE), limits=Limits(max_groups=limit, max_rows=5)
    )
    found = planned(f"select ward, {text} from stays group by ward", given)
    (mechanism,) = found.mechanisms
    assert isinstance(mechanism, PerGroup)
    assert mechanism.groups == groups
    assert mechanism.needs.neighbors is Neighbors.REPLACE_ONE
    assert not mechanism.needs.monotone
    assert sum(event.epsilon or F(9) for event in found.events) == 1


def test_a_unit_with_one_row_is_in_one_group() -> None:
    stays = replace(TABLES["stays"], unique=True)
    given = policy(tables=TABLES | {"stays": stays}, enforced=frozenset({"stays"}), seen={"stays": NO_FILES})
    found = planned("select ward, median(cost) from stays group by ward", given)
    (mechanism,) = found.mechanisms
    assert isinstance(mechanism, PerGroup)
    assert (mechanism.groups, mechanism.needs.sensitivity) == (1, F(1))


@pytest.mark.parametrize("text", ["median(cost)", "mode(ward)", "quantile_cont(cost, [0.1, 0.5, 0.9])", "max(cost)"])
@pytest.mark.parametrize("groups", [1, 3, 60])
def test_with_delta_the_rho_is_what_was_asked_for(text: str, groups: int) -> None:
    """Many groups: ε²/8 in each is less than ε; the whole is within (ε, δ), and the better of the two ways."""
    given = policy(budget=BOTH, limits=Limits(max_groups=groups, max_rows=5))
    found = planned(f"select age, {text}, count(*) from stays group by age", given)
    allowed = rho_rounded_down(found.epsilon, found.delta)
    spent = [event.rho for event in found.events]
    pure = [event.epsilon for event in found.events]
    total = sum(one for one in spent if one is not None)
    if isinstance(found.mechanisms[0], Gaussian):
        assert allowed * F(99, 100) <= total <= allowed
    else:
        assert sum(one for one in pure if one is not None) <= found.epsilon
    assert isinstance(found.mechanisms[0], Gaussian) is (groups == 60)


def test_one_choice_alone_is_worth_its_rho() -> None:
    given = policy(budget=BOTH, limits=Limits(max_groups=60, max_rows=5))
    found = planned("select age, median(cost) from stays group by age", given)
    (rho,) = (event.rho for event in found.events)
    assert rho is not None
    allowed = rho_rounded_down(found.epsilon, found.delta)
    assert allowed * F(999, 1000) <= rho <= allowed
    assert found.events[0].epsilon is not None
    assert found.events[0].epsilon > 1, "as a pure event it would be more than was asked for"


def test_the_way_that_errs_less() -> None:
    choosing = QuantileChoice(histogram=steps(100, 1), column=0, reach=HELD, levels=(F(1, 2),))
    assert deviation(choosing.calibrate_pure(F(2))) < deviation(choosing.calibrate_pure(F(1)))
    assert deviation(choosing.calibrate_zcdp(F(2))) < deviation(choosing.calibrate_zcdp(F(1)))


# Histograms


@pytest.mark.parametrize(
    ("kind", "bounds", "given", "grid", "top"),
    [
        (of(Type.INTEGER), (0, 100), (None, 1), 1, 100),
        (of(Type.INTEGER), (-7, 2**21), (None, 1), 4, 2**19 + 2),
        (of(Type.INTEGER), (0, 1 << 18), (None, 4), 1, 1 << 18),
        (of(Type.INTEGER), (0, 1 << 18), (None, 5), 2, 1 << 17),
        (of(Type.INTEGER), (0, F(1, 2)), (None, 1), 1, 1),
        (of(Type.REAL), (0, 100), (None, 1), F(1, 1 << 13), 100 << 13),
        (of(Type.REAL), (0, 100), (F(1, 100), 1), F(1, 100), 10_000),
        (of(Type.REAL), (0, 10**7), (F(1, 100), 1), F(1024, 100), 976563),
        (of(Type.REAL), (0, 1), (None, 1 << 12), F(1, 256), 256),
        (of(Type.REAL), (2**60, 2**60 + 1024), (None, 1), 256, 4),
    ],
)
def test_grids(kind: Any, bounds: Any, given: Any, grid: Any, top: int) -> None:
    step, cells = given
    low, high = (F(end) for end in bounds)
    found = lay_out(Column("x", kind), (low, high), step, rows=3, cells=cells)
    assert found.grid == F(grid)
    assert (found.clamp[1] - found.clamp[0]) / found.grid == top
    assert found.clamp[0] == found.origin <= low
    assert found.clamp[1] >= high
    assert found.most_rows == 3


def test_too_many_groups_for_a_histogram() -> None:
    column = Column("x", of(Type.REAL))
    assert lay_out(column, (F(0), F(1)), None, rows=1, cells=1 << 12)
    with pytest.raises(TooHeavy, match="4,096 groups"):
        lay_out(column, (F(0), F(1)), None, rows=1, cells=(1 << 12) + 1)


def test_private_keys_are_reckoned_as_many() -> None:
    given = policy(budget=BOTH)
    (private,) = planned("select points, median(cost) from stays group by points", given).aggregate.histograms
    (public,) = planned("select median(cost) from stays", given).aggregate.histograms
    assert private.grid > public.grid
    assert (private.clamp[1] - private.clamp[0]) / private.grid <= choices.MOST_BINS / choices.UNLISTED


def test_rows_need_a_declared_limit() -> None:
    free = policy(limits=Limits(max_groups=3))
    for text in ("median(cost)", "mode(ward)", "count(distinct age)", "corr(cost, age)"):
        with pytest.raises(MissingBounds, match="max_rows"):
            planned(f"select {text} from stays", free)


# Numbers


def answered(found: Plan, tables: dict[str, Any], chosen: Any) -> list[list[Any]]:
    """The answer of a mechanism that is put in the place of every one."""
    keep = generate.keyed(b"secret", found.aggregate.most_groups)
    tallies = list(interpreter.aggregate(found.aggregate, tables, keep).values())
    held = interpreter.histograms(found.aggregate, tables, keep)
    bins = tuple(tuple(StepCounts.of((step, 1) for step in steps) for steps in own) for own in held)
    counted = ExactCounts(cells=(), tallies=tallies, histograms=bins)
    noisy = exact_slots(found, counted)
    for at, slot in enumerate(found.slots):
        if slot is not None and isinstance(slot.take, Choice):
            noisy[at] = [step for value in slot.take(counted) for step in chosen(slot.take, value)]
    return [[number.value for number in cell] for cell in combine(found, noisy)]


def exactly(choice: Choice, value: Any) -> list[int]:
    """What is meant, without noise."""
    if isinstance(choice, ModeChoice):
        return [int(np.argmax(value))]
    each = value.each().tolist() or [0]
    if isinstance(choice, ExtremeChoice):
        return [each[-1] if choice.is_highest else each[0]]
    assert isinstance(choice, QuantileChoice)
    return [each[max(0, math.ceil(level * len(each)) - 1)] for level in choice.levels]


def test_numbers_without_noise_are_the_truth() -> None:
    ages = (20, 30, 31, 80)
    row = _table(Random(1))["stays"][0]
    rows = [{**row, "patient_id": n, "ward": "ab"[n == 3], "age": age, "cost": age / 4} for n, age in enumerate(ages)]
    found = planned(
        "select ward, quantile_cont(age, 0.5) as m, quantile_disc(age, 0.5), min(age), max(cost), mode(ward), "
        "quantile_cont(cost, [0.25, 0.9]), count(distinct age), count(*) from stays group by ward",
    )
    a, b, c = answered(found, {"stays": rows, "wards": []}, exactly)
    assert a == [30.0, 30, 20, 7.75, "a", 5.0, 7.75, 3, 3]
    assert [type(one) for one in a] == [float, int, int, float, str, float, float, int, int]
    assert b == [80.0, 80, 80, 20.0, "b", 20.0, 20.0, 1, 1]
    assert c[-2:] == [0, 0]


def test_a_unit_has_few_rows_in_a_histogram() -> None:
    row = _table(Random(1))["stays"][0]
    rows = [{**row, "patient_id": 1, "ward": "a", "age": 100} for _ in range(50)]
    rows += [{**row, "patient_id": n, "ward": "a", "age": 10} for n in range(2, 9)]
    found = planned("select ward, median(age) from stays group by ward")
    (a, *_) = answered(found, {"stays": rows, "wards": []}, exactly)
    assert a == [10.0]


def test_a_histogram_is_over_rows_that_have_a_value_and_clamped() -> None:
    row = _table(Random(1))["stays"][0]
    rows = [{**row, "patient_id": n, "cost": cost} for n, cost in enumerate((None, math.nan, 1e308, -5.0, 50.0))]
    found = planned("select min(cost), median(cost), max(cost) from stays")
    assert answered(found, {"stays": rows, "wards": []}, exactly) == [[0.0, 50.0, 100.0]]


def test_scores_of_a_mode_are_counts() -> None:
    mode = ModeChoice(histogram=steps(3, 2), column=0, reach=HELD)
    (scores,) = mode(ExactCounts(cells=(), tallies=[], histograms=((StepCounts.of([(1, 4), (3, 2), (9, 7)]),),)))
    assert scores.tolist() == [0, 4, 0, 9], "what is beyond the range counts at its end, like every clamped value"
    assert mode.numbers == 1


# Explanations


def test_explanations_tell_the_rank_error() -> None:
    found = planned(
        "select median(age), max(age), mode(ward), quantile_cont(age, [0.2, 0.4]) as q from stays", epsilon=3
    )
    median, most, mode, *_ = explain_columns(found)
    assert median["margin"] is None
    several = inner(found)
    assert isinstance(several, Quantiles)
    assert median["rank_margin"] == math.ceil(several.bound_rank(2, 1 - 0.95)) < several.error(beta=1 - 0.95)
    assert f"at most {most['rank_margin']:,} rows between it and the exact one (95%), Extreme" in most["sentence"]
    assert "no interval of values; values clamped to 0 … 110" in most["sentence"]
    assert mode["sentence"].startswith("one of 3 values, with at most")
    more = inner(found, 2)
    assert isinstance(more, Exponential)
    assert mode["rank_margin"] == math.ceil(more.error(beta=1 - 0.95, candidates=3))


def test_a_list_stands_alone() -> None:
    with pytest.raises(NotAllowed, match="stand alone"):
        read("select quantile_cont(cost, [0.25, 0.75]) + 1 from stays")


def test_histograms_of_several_choices_are_one() -> None:
    found = planned("select max(age), median(age), count(distinct age) from stays")
    assert len(found.aggregate.histograms) == 1
    assert found.aggregate.tallies[0].measure is Measure.DISTINCT
    tally, first, second = found.slots
    assert tally is not None
    assert not isinstance(tally.take, Choice)
    assert [slot and slot.take for slot in (first, second)] == choices_of(found)


@pytest.mark.parametrize(
    ("kind", "most"),
    [(of(Type.BOOLEAN), 2), (integer(0, 2), 3), (integer(0, 4), 5), (integer(0, 9), 5), (of(Type.TEXT), 5)],
)
def test_different_values_are_no_more_than_there_can_be(kind: Any, most: int) -> None:
    column = Column("x", kind)
    question = Question(
        text="",
        relation=read("select count(*) from stays").relation,
        groups=(),
        asked=(Asked(function=DISTINCT, argument=column, text=""),),
        outputs=(),
        columns={"x": ColumnFacts(kind=kind)},
    )
    needed = Collector(question, policy(), cells=1, single=False, reach=HELD)
    DISTINCT.measure(question.asked[0], needed)
    assert needed.tallies[0].bounds == (0, most)
