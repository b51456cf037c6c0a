"""From questions to tallies and prices: bounds, grids, sensitivities that hold, and numbers made of noisy ones."""

import itertools
import math
from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.errors import MissingBounds, TooHeavy
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.tables import Limits, Policy
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.answer.stored import combine
from hubbub.query.check.bounds import bounds_of
from hubbub.query.check.keys import conjuncts, public_values
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.plan import Plan, plan
from tests.query import generate, interpreter
from tests.query.asking import POLICY, Catalogue, policy, read
from tests.query.further import both_ends_of, exact_tallies
from tests.query.generate import TIMES, seeds

F = Fraction


def planned(sql: str, given: Policy = POLICY, *, epsilon: float = 1, **more: Any) -> Plan:
    return plan(read(sql, Catalogue(given)), given, epsilon=epsilon, **more)


# Bounds

X, Y = Column("x", of(Type.REAL)), Column("y", of(Type.REAL))
N, WIDE = Column("n", integer(-3, 8)), Column("w", of(Type.INTEGER))
DECLARED = {"x": (F(-2), F(3)), "y": (F(1), F(4))}


def bounds(expression: Expression) -> tuple[Fraction, Fraction]:
    return bounds_of(expression, DECLARED.get)


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (X, -2, 3),
        (call("add", X, Y), -1, 7),
        (call("subtract", X, Y), -6, 2),
        (call("multiply", X, Y), -8, 12),
        (call("negate", X), -3, 2),
        (call("abs", X), 0, 3),
        (call("abs", Y), 1, 4),
        (call("abs", call("negate", Y)), 1, 4),
        (call("floor", call("multiply", Y, literal(0.5))), 0, 2),
        (call("ceil", call("multiply", Y, literal(0.5))), 1, 2),
        (call("to_integer", call("multiply", Y, literal(0.5))), 0, 2),
        (call("case", literal(True), X, literal(9.0)), -2, 9),
        (call("case", literal(True), X, literal(None, Type.REAL)), -2, 3),
        (call("coalesce", X, literal(9.0)), -2, 9),
        (call("nullif", X, Y), -2, 3),
        (call("least", call("greatest", Column("z", of(Type.REAL)), literal(0.0)), literal(5.0)), 0, 5),
        (call("greatest", call("least", Column("z", of(Type.REAL)), literal(5.0)), literal(0.0)), 0, 5),
        (call("least", X, literal(0.0)), -2, 0),
        (call("greatest", X, Y), 1, 4),
        (call("add", WIDE, literal(0)), None, None),
        (call("remainder", WIDE, literal(7)), -6, 6),
        (call("month", Column("d", of(Type.DATE))), 1, 12),
    ],
)
def test_bounds_of_expressions(expression: Expression, low: int | None, high: int | None) -> None:
    if low is None or high is None:
        with pytest.raises(MissingBounds):
            bounds(expression)
    else:
        assert bounds(expression) == (F(low), F(high))


@pytest.mark.parametrize(
    "expression",
    [
        Column("z", of(Type.REAL)),
        literal(None, Type.REAL),
        call("divide", X, Y),
        call("exp", X),
        call("least", Column("z", of(Type.REAL)), literal(5.0)),
        call("greatest", Column("z", of(Type.REAL)), literal(5.0)),
        call("coalesce", X, Column("z", of(Type.REAL))),
        call("case", literal(True), X, Column("z", of(Type.REAL))),
    ],
)
def test_bounds_are_never_guessed(expression: Expression) -> None:
    with pytest.raises(MissingBounds):
        bounds(expression)


def test_one_constant_lies_between_zero_and_itself() -> None:
    """sum(1) and sum(CASE WHEN … THEN 1 END) are counts, and asked as such."""
    assert bounds(literal(2.5)) == (F(0), F(5, 2))
    assert bounds(call("case", literal(True), literal(-3), literal(None, Type.INTEGER))) == (F(-3), F(0))
    assert bounds(call("subtract", literal(1.0), literal(1.0))) == (F(0), F(1))
    (ones,) = planned("select sum(case when urgent then 1 end) from stays").aggregate.tallies
    assert (ones.clamp, ones.grid, ones.bounds) == ((F(0), F(1)), F(1), (0, 5))
    (halves,) = planned("select sum(0.5) from stays").aggregate.tallies
    assert halves.bounds[0] == 0
    assert halves.bounds[1] * halves.grid == F(5, 2)


@given(rng=seeds())
@settings(max_examples=300 * TIMES, derandomize=True)
def test_bounds_hold_for_values_within_declared_ones(rng: Random) -> None:
    """Where every column keeps its bounds, so does the expression, up to the rounding of DOUBLEs."""
    declared = {"x": (F(-2), F(3)), "y": (F(1), F(4)), "n": (F(-3), F(8))}
    made = generate.Expressions(rng, [X, Y, N])
    expression = made.make(rng.choice((Type.INTEGER, Type.REAL)), 3)
    try:
        low, high = bounds_of(expression, declared.get)
    except MissingBounds:
        return
    for _ in range(10):
        row = {"x": rng.choice((-2.0, 3.0, 0.1)), "y": rng.choice((1.0, 4.0, 2.7)), "n": rng.choice((-3, 8, 0))}
        found = interpreter.value(expression, row)
        slack = F(1, 10**9) * (1 + max(abs(low), abs(high)))
        if found is not None:
            assert low - slack <= F(found) <= high + slack, (expression, row, found)


# Tallies


def test_counts() -> None:
    units, rows, values = planned(
        "select count(distinct patient_id), count(*), count(cost) from stays"
    ).aggregate.tallies
    assert units == Tally(measure=Measure.UNITS, argument=None)
    assert rows == Tally(measure=Measure.ROWS, argument=None, bounds=(0, 5))
    assert values == Tally(measure=Measure.ROWS, argument=Column("stays.cost", of(Type.REAL)), bounds=(0, 5))


def test_totals_of_integers_count_from_zero_and_averages_from_the_middle() -> None:
    found = planned("select sum(age), avg(age) from stays")
    total, centred, count = found.aggregate.tallies
    assert (total.clamp, total.origin, total.grid, total.bounds) == ((F(0), F(110)), F(0), F(1), (0, 550))
    assert (centred.clamp, centred.origin, centred.grid, centred.bounds) == ((F(0), F(110)), F(55), F(1), (-275, 275))
    assert count.argument is None, "a column that is never missing"


def test_totals_of_reals_have_a_grid_of_doubles() -> None:
    (total,) = planned("select sum(cost) from stays").aggregate.tallies
    assert total.grid == F(1, 1 << 14)
    assert total.clamp == (F(0), F(100))
    assert total.bounds == (0, 5 * 100 << 14)


def test_averages_count_the_rows_that_they_add_up() -> None:
    """SOUNDNESS 9: a count is reused only if it counts the same rows."""
    found = planned("select count(*), avg(cost), sum(cost) from stays")
    counted = found.parts[1].tallies[0]
    assert found.parts[0].tallies[0] != counted
    assert counted.argument == Column("stays.cost", of(Type.REAL))
    shared = planned("select count(cost), avg(cost), var_pop(cost), stddev(cost) from stays")
    assert len(shared.aggregate.tallies) == 3
    assert {part.tallies[0] for part in shared.parts} == {shared.aggregate.tallies[0]}


def test_a_left_join_makes_an_average_count_only_what_is_there() -> None:
    found = planned("select count(*), avg(w.beds) from stays s left join wards w on s.ward = w.id")
    assert found.parts[0].tallies[0] != found.parts[1].tallies[0]


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("select count(*) from stays", 1),
        ("select ward, count(*) from stays group by ward", 3),
        ("select ward, count(*) from stays where ward in ('a', 'b') group by ward", 2),
        ("select age, count(*) from stays group by age", 3),
    ],
)
def test_most_groups(sql: str, most: int) -> None:
    assert planned(sql).aggregate.most_groups == most


def test_rows_need_a_declared_limit() -> None:
    free = policy(limits=Limits(max_groups=3))
    assert planned("select count(distinct patient_id) from stays", free).aggregate.tallies
    with pytest.raises(MissingBounds, match="max_rows"):
        planned("select count(*) from stays", free)


def test_too_many_cells_are_refused() -> None:
    tight = policy(limits=Limits(max_rows=1, max_cells=121))
    assert planned("select age, count(*) from stays group by age", tight).cells == 121
    with pytest.raises(TooHeavy, match="121 groups; the limit is 120"):
        planned("select age, count(*) from stays group by age", policy(limits=Limits(max_rows=1, max_cells=120)))


# Prices

BOTH = Budget(epsilon=F(4), delta=F(1, 10**6))
QUESTIONS = [
    "select count(*) from stays",
    "select count(distinct patient_id) from stays",
    "select ward, count(*), sum(cost), avg(cost) from stays group by ward",
    "select ward, urgent, avg(age), var_pop(age) from stays group by ward, urgent",
    "select ward, stddev(cost), count(cost) from stays where age > 20 group by ward",
    "select w.floor, sum(least(greatest(s.weight, -5), 7)), avg(w.beds) from stays s "
    "left join wards w on s.ward = w.id group by 1",
    "select case when urgent then 'u' when cost > 50 then 'c' end, avg(-cost) from stays group by 1",
    "select month(day), sum(age - 50) from stays group by 1",
]


@pytest.mark.parametrize("budget", [Budget(epsilon=F(4)), BOTH])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_price_is_what_was_asked_for(sql: str, budget: Budget) -> None:
    found = planned(sql, policy(budget=budget), epsilon=0.5)
    assert found.epsilon == F(1, 2)
    pure = [event.epsilon for event in found.events]
    if all(one is not None for one in pure):
        assert sum(one for one in pure if one is not None) <= found.epsilon
        assert all(isinstance(one, Geometric) for one in found.mechanisms)
    else:
        assert all(isinstance(one, Gaussian) for one in found.mechanisms)
        assert budget.delta > 0
    assert found.cost.loss > 0
    for measurement in found.measurements:
        needs = measurement.mechanism.needs
        proven = measurement.sensitivity.in_norm(needs.norm)
        assert proven is not None
        assert needs.sensitivity >= proven


def test_gaussians_share_one_rho() -> None:
    """Several of them together are worth (ε, δ), not each of them."""
    given = policy(budget=BOTH, limits=Limits(max_groups=100, max_rows=5))
    found = planned("select age, count(*), sum(cost), count(distinct patient_id) from stays group by age", given)
    assert all(isinstance(one, Gaussian) for one in found.mechanisms)
    spent = [event.rho for event in found.events]
    allowed = rho_rounded_down(found.epsilon, found.delta)
    assert allowed * F(99, 100) <= sum(one for one in spent if one is not None) <= allowed
    assert found.delta == BOTH.delta / 100


def test_less_noise_for_more_epsilon_and_fewer_groups() -> None:
    def deviation(sql: str, epsilon: float) -> float:
        return planned(sql, epsilon=epsilon).mechanisms[0].standard_deviation  # type: ignore[attr-defined,no-any-return]

    few, many = "select count(*) from stays", "select ward, count(*) from stays group by ward"
    assert deviation(few, 2) < deviation(few, 1) < deviation(many, 1)


# Neighbours


def _table(rng: Random) -> dict[str, list[dict[str, Any]]]:
    def moment() -> datetime:
        return datetime(2024, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23))

    stays = [
        {
            "patient_id": rng.randint(1, 4),
            "ward": rng.choice(("a", "b", "c", None, "elsewhere")),
            "cost": rng.choice((0.0, 100.0, 1e300, -5.0, None, math.nan, 50.5)),
            "age": rng.choice((0, 110, 120, 55)),
            "points": rng.randint(-9, 9),
            "day": rng.choice((moment().date(), date.min, None)),
            "seen": moment(),
            "urgent": rng.choice((True, False, None)),
            "weight": rng.choice((-math.inf, 3.0, 1e9, -1e9)),
        }
        for _ in range(rng.randint(5, 60))
    ]
    wards = [{"id": one, "floor": n + 1, "ward": one, "beds": 60 * n, "patient_id": "1"} for n, one in enumerate("ab")]
    return {"stays": stays, "wards": wards}


def _answers(found: Plan, tables: dict[str, list[dict[str, Any]]]) -> list[list[int]]:
    """What is measured, without noise."""
    cells = interpreter.aggregate(found.aggregate, tables, generate.keyed(b"secret", found.aggregate.most_groups))
    return exact_tallies(found, list(cells.values()))


def _within(found: Plan, one: list[list[int]], other: list[list[int]]) -> None:
    """Every norm of the difference is within what the plan proves, and what the mechanism was made for."""
    for slot, left, right in zip(found.slots, one, other, strict=True):
        moved = [abs(a - b) for a, b in zip(left, right, strict=True)]
        if slot is None:
            assert not moved
            continue
        proven, needs = slot.sensitivity, slot.mechanism.needs
        assert proven.l0 is not None
        assert proven.linf is not None
        assert sum(step != 0 for step in moved) <= proven.l0
        assert max(moved, default=0) <= proven.linf
        measured = {Norm.L1: sum(moved), Norm.L2: sum(step**2 for step in moved)}
        for norm, size in measured.items():
            claimed = proven.in_norm(norm)
            assert claimed is not None
            assert size <= claimed
        assert measured[needs.norm] <= needs.sensitivity


@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_neighbours_stay_within_the_plan(sql: str, neighbors: Neighbors, delta: Fraction) -> None:
    found = planned(sql, policy(budget=Budget(epsilon=F(4), delta=delta, neighbors=neighbors)))
    for seed in range(10 * TIMES):
        rng = Random(seed)
        tables = _table(rng)
        rest = [row for row in tables["stays"] if row["patient_id"] != 1]
        other = rest
        if neighbors is Neighbors.REPLACE_ONE:
            other = [*rest, *({**row, "patient_id": 1} for row in _table(rng)["stays"])]
        _within(found, _answers(found, tables), _answers(found, tables | {"stays": rng.sample(other, len(other))}))


@pytest.mark.parametrize("groups", [1, 40])
def test_replacing_a_unit_may_turn_its_most_into_its_least(groups: int) -> None:
    """Centred totals have two signs: in one group a unit that adds +L may become one that adds −L, which is 2L."""
    given = policy(
        budget=Budget(epsilon=F(4), delta=F(1, 10**6), neighbors=Neighbors.REPLACE_ONE),
        limits=Limits(max_groups=groups, max_rows=1),
    )
    listed = ", ".join(map(str, range(groups)))
    found = planned(f"select points, avg(age) from stays where points in ({listed}) group by points", given)
    _, total = found.parts[0].tallies
    place, measurement = found.aggregate.tallies.index(total), found.margins.find(total)
    high, low = (
        [{**_table(Random(0))["stays"][0], "patient_id": 1, "points": n, "age": age} for n in range(groups)]
        for age in (110, 0)
    )
    one, other = (_answers(found, {"stays": rows, "wards": []})[place] for rows in (high, low))
    squares = sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
    ways = 1 if both_ends_of(found) is None else 2  # from both ends it is as far down as up
    assert squares == groups * ways * 110**2
    assert measurement.mechanism.needs.norm is (Norm.L1 if groups == 1 else Norm.L2)
    _within(found, _answers(found, {"stays": high, "wards": []}), _answers(found, {"stays": low, "wards": []}))


# Numbers


def _exact(found: Plan, tables: dict[str, list[dict[str, Any]]]) -> list[list[Any]]:
    return [[number.value for number in cell] for cell in combine(found, _answers(found, tables))]


def test_numbers_without_noise_are_the_truth() -> None:
    ages: Sequence[int] = (20, 30, 30, 80)
    rows = [{**_table(Random(1))["stays"][0], "patient_id": n, "ward": "a", "age": age} for n, age in enumerate(ages)]
    found = planned(
        "select ward, count(*), count(distinct patient_id), sum(age), avg(age), var_pop(age), var_samp(age), "
        "stddev_pop(age), stddev_samp(age) from stays group by ward"
    )
    mean = sum(ages) / 4
    spread = sum((age - mean) ** 2 for age in ages)
    a, b, _ = _exact(found, {"stays": rows, "wards": []})
    assert a[:4] == [4, 4, 160, 40.0]
    truth = [spread / 4, spread / 3, math.sqrt(spread / 4), math.sqrt(spread / 3)]
    assert a[4:] == pytest.approx(truth, rel=1e-4)
    assert b == [0, 0, 0, None, None, None, None, None]


CERTAIN = {"count(*)", "count", "count distinct units", "sum", "avg", "var_pop", "stddev_pop"}


@pytest.mark.parametrize("sql", QUESTIONS)
def test_intervals_hold_what_was_added(sql: str) -> None:
    """The exact number lies in the interval, whenever every draw lies within its own margin."""
    found = planned(sql, epsilon=2)
    tables = _table(Random(5))
    exact, tallies = _answers(found, tables), found.aggregate.tallies
    truth = combine(found, exact)
    for signs in itertools.product((-1, 0, 1), repeat=min(3, len(exact))):
        noisy = [
            [
                value + signs[place % len(signs)] * int(found.margins.bound(tallies[place], 0.05) / tallies[place].grid)
                for value in vector
            ]
            for place, vector in enumerate(exact)
        ]
        for meant, cell in zip(truth, combine(found, noisy), strict=True):
            for one, number in zip(meant, cell, strict=True):
                if one.value is not None and number.low is not None and number.high is not None:
                    assert number.low <= number.high
                    if found.question.asked[cell.index(number)].function.name in CERTAIN:
                        assert isinstance(one.value, int | float)
                        assert number.low - 1e-9 <= one.value <= number.high + 1e-9


# Keys


class Known:
    def __init__(self, **values: tuple[Any, ...]) -> None:
        self._values = values

    def values(self, name: str) -> tuple[Any, ...] | None:
        return self._values.get(name)


def test_keys_are_never_the_data() -> None:
    text, number = Column("t", of(Type.TEXT)), Column("k", integer(0, 999))
    known = Known(t=("b", "a", "b"), u=("x",))
    assert public_values("t", text, [], known) == ("b", "a")
    pair = call("case", call("eq", text, literal("b")), Column("u", of(Type.TEXT)), text)
    assert public_values("p", pair, [], known) == ("x", "a")
    assert public_values("k", number, [], known) == (*range(1000), None)
    assert public_values("k", Column("k", integer(0, 1000)), [], known) is None
    assert public_values("p", call("coalesce", text, Column("z", of(Type.TEXT))), [], known) is None


def test_declared_keys_come_before_all_possible_values() -> None:
    assert public_values("k", Column("k", integer(0, 999)), [], Known(k=(5, 3))) == (5, 3)


def test_lists_count_only_where_they_must_hold() -> None:
    key = Column("t", of(Type.TEXT))
    listed = call("in", key, literal("a"), literal("b"))
    other = call("eq", Column("f", of(Type.BOOLEAN)), literal(True))
    assert conjuncts(None) == []
    assert conjuncts(call("and", listed, call("and", other, other))) == [listed, other, other]
    assert conjuncts(call("or", listed, other)) == [call("or", listed, other)]
    assert public_values("t", key, [other, listed], Known()) == ("a", "b")
    assert public_values("t", key, [call("eq", key, literal("q"))], Known()) == ("q",)
    assert public_values("t", key, [call("eq", key, literal(None, Type.TEXT))], Known()) is None
    assert public_values("t", key, [call("not", listed)], Known()) is None
