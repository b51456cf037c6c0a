"""The reference interpreter: its meaning on small cases, the typing rules it watches over, and the privacy claim."""

import math
from collections import Counter
from datetime import date, datetime
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.policy.kinds import Kind, Type, integer, of
from hubbub.query.expression import Call, Column, Expression, literal
from hubbub.query.functions import FUNCTIONS, call
from hubbub.query.ops import Aggregate, Filter, Group, JoinKind, JoinPublic, Measure, Project, Scan, ScanColumn, Tally
from tests.query import generate, interpreter
from tests.query.generate import TIMES, Expressions, seeds
from tests.query.interpreter import Unsound, value

WARD = Column("s.ward", of(Type.TEXT))
COST = Column("s.cost", of(Type.REAL))
AGE = Column("s.age", integer(0, 120))
READS = ((WARD, "ward"), (COST, "cost"), (AGE, "age"))
SCAN = Scan(table="stays", columns=tuple(ScanColumn(one.name, one.kind, own) for one, own in READS), unit="who")
ROWS: list[dict[str, Any]] = [
    {"who": 1, "ward": "a", "cost": 2.5, "age": 30},
    {"who": 1, "ward": "a", "cost": math.nan, "age": 30},
    {"who": 1, "ward": "b", "cost": 1e9, "age": 30},
    {"who": 2, "ward": "a", "cost": -3.0, "age": 200},
    {"who": 2, "ward": None, "cost": 0.5, "age": None},
    {"who": None, "ward": "a", "cost": 7.0, "age": 1},
    {"who": 3, "ward": "elsewhere", "cost": 1.0, "age": 1},
]
TABLES: interpreter.Tables = {
    "stays": ROWS,
    "wards": [{"id": "a", "floor": 1}, {"id": "a", "floor": 2}, {"id": None, "floor": 3}],
}
FLOORS = Scan(
    table="wards",
    columns=(ScanColumn("w.id", of(Type.TEXT), "id"), ScanColumn("w.floor", integer(0, 9), "floor")),
    unit=None,
)
BY_WARD = Group(name="ward", expression=WARD, values=("b", "a", None))


def everything(unit: Any, own: list[Any]) -> list[Any]:
    return own


def tally(measure: Measure, argument: Expression | None = None, **more: Any) -> Tally:
    return Tally(measure=measure, argument=argument, **more)


def asked(*tallies: Tally, groups: tuple[Group, ...] = (BY_WARD,), most: int = 9) -> dict[Any, tuple[int, ...]]:
    op = Aggregate(input=SCAN, groups=groups, tallies=tallies, most_groups=most)
    return interpreter.aggregate(op, TABLES, everything)


def test_every_function_has_one_meaning() -> None:
    assert interpreter.OPEN.keys() | interpreter.STRICT.keys() == FUNCTIONS.keys()
    assert not interpreter.OPEN.keys() & interpreter.STRICT.keys()


def test_scan_makes_columns_safe_and_drops_rows_of_nobody() -> None:
    rows = interpreter.relation(SCAN, TABLES)
    assert [unit for unit, _ in rows] == [1, 1, 1, 2, 2, 3]
    assert rows[1][1] == {"s.ward": "a", "s.cost": None, "s.age": 30}
    assert rows[3][1]["s.age"] is None, "out of the declared range"


def test_filter_keeps_what_is_true() -> None:
    kept = interpreter.relation(Filter(input=SCAN, condition=call("gt", COST, literal(1.0))), TABLES)
    assert [row["s.cost"] for _, row in kept] == [2.5, 1e9]


def test_project_makes_new_columns() -> None:
    op = Project(input=SCAN, columns=(("twice", call("add", AGE, AGE)),))
    assert interpreter.relation(op, TABLES)[0] == (1, {"twice": 60})


@pytest.mark.parametrize(("kind", "many"), [(JoinKind.INNER, 6), (JoinKind.LEFT, 9)])
def test_join_repeats_rows_and_missing_keys_equal_nothing(kind: JoinKind, many: int) -> None:
    keys = ((WARD, Column("w.id", of(Type.TEXT))),)
    op = JoinPublic(input=SCAN, public=FLOORS, kind=kind, keys=keys, most=2)
    rows = interpreter.relation(op, TABLES)
    assert len(rows) == many
    assert [row["w.floor"] for unit, row in rows if unit == 1][:2] == [1, 2]
    assert all(row["w.id"] == row["s.ward"] for _, row in rows if row["w.id"] is not None)


def test_a_join_with_more_matches_than_promised_is_unsound() -> None:
    keys = ((WARD, Column("w.id", of(Type.TEXT))),)
    op = JoinPublic(input=SCAN, public=FLOORS, kind=JoinKind.INNER, keys=keys, most=1)
    with pytest.raises(Unsound):
        interpreter.relation(op, TABLES)


def test_rows_units_and_totals() -> None:
    total = tally(Measure.TOTAL, COST, clamp=(Fraction(-1), Fraction(10)), grid=Fraction(1, 2), bounds=(-2, 12))
    found = asked(
        tally(Measure.ROWS, bounds=(0, 5)), tally(Measure.ROWS, COST, bounds=(0, 5)), tally(Measure.UNITS), total
    )
    assert list(found) == [("b",), ("a",), (None,)]
    assert found == {("b",): (1, 1, 1, 12), ("a",): (3, 2, 2, 3), (None,): (1, 1, 1, 1)}


def test_bounds_are_for_each_unit_in_each_group() -> None:
    assert asked(tally(Measure.ROWS, bounds=(0, 1)), groups=()) == {(): (3,)}
    assert asked(tally(Measure.ROWS, bounds=(0, 2)), groups=()) == {(): (5,)}
    assert asked(tally(Measure.UNITS, AGE), groups=()) == {(): (2,)}


def test_a_unit_beyond_its_groups_keeps_what_is_chosen() -> None:
    op = Aggregate(input=SCAN, groups=(BY_WARD,), tallies=(tally(Measure.UNITS),), most_groups=1)
    assert interpreter.over(op, TABLES) == [1, 2]
    first = interpreter.aggregate(op, TABLES, lambda unit, own: own[:1])
    assert first == {("b",): (1,), ("a",): (1,), (None,): (0,)}
    assert interpreter.possible(op, TABLES, first)
    assert not interpreter.possible(op, TABLES, {("b",): (1,), ("a",): (2,), (None,): (0,)})
    with pytest.raises(Unsound):
        interpreter.aggregate(op, TABLES, lambda unit, own: [("b",), ("b",)])


@pytest.mark.parametrize(
    ("number", "steps"),
    [(0.25, 0), (0.75, 2), (1.25, 2), (-0.25, 0), (-0.75, -2), (9.9, 8), (-9.9, -8), (5e-324, 0)],
)
def test_reals_are_rounded_half_to_even_after_the_clamp(number: float, steps: int) -> None:
    one = tally(Measure.TOTAL, COST, clamp=(Fraction(-4), Fraction(4)), grid=Fraction(1, 2))
    assert interpreter.steps(one, number) == steps


def test_steps_count_from_the_origin_and_are_missing_beyond_64_bits() -> None:
    one = tally(Measure.TOTAL, AGE, clamp=(Fraction(0), Fraction(100)), origin=Fraction(50), grid=Fraction(4))
    assert [interpreter.steps(one, age) for age in (-5, 0, 52, 54, 56, 1000)] == [-12, -12, 0, 1, 2, 12]
    far = tally(Measure.TOTAL, COST, clamp=None, grid=Fraction(1, 2))
    assert interpreter.steps(far, 1e19) is None
    assert interpreter.steps(far, 1.7e308) is None
    assert interpreter.steps(far, 1e18) == 2 * 10**18


@pytest.mark.parametrize(
    ("numbers", "most", "added"),
    [
        ((1.0, 2.0, 4.0), None, 7),
        ((1.0, 2.0, 4.0), 3, 7),
        ((1.0, 2.0, 4.0), 2, 4),
        ((-1.0, -2.0, -4.0), 2, -4),
        ((1.0, 2.0, None, 4.0), 3, 7),
        ((1.0, 2.0, None), 1, 1),
    ],
)
def test_totals_of_too_many_rows_are_cut_in_proportion_towards_zero(
    numbers: tuple[float | None, ...], most: int | None, added: int
) -> None:
    one = tally(Measure.TOTAL, COST, clamp=(Fraction(-9), Fraction(9)), bounds=(-99, 99), most_rows=most)
    assert interpreter.amount(one, [{"s.cost": number} for number in numbers]) == added


def test_fits_tells_kinds_apart() -> None:
    assert interpreter.fits(True, of(Type.BOOLEAN))
    assert not interpreter.fits(1, of(Type.BOOLEAN))
    assert not interpreter.fits(True, integer(0, 1))
    assert not interpreter.fits(math.inf, of(Type.REAL))
    assert not interpreter.fits(datetime(2024, 1, 1), of(Type.DATE))
    assert not interpreter.fits(date(2024, 1, 1), of(Type.TIMESTAMP))
    assert not interpreter.fits(None, of(Type.TEXT, nullable=False))
    assert [interpreter.fits(one, integer(-2, 2)) for one in (-3, -2, 2, 3)] == [False, True, True, False]


def test_values_are_held_against_their_kinds() -> None:
    with pytest.raises(Unsound):
        value(Column("x", integer(0, 5)), {"x": 6})
    with pytest.raises(Unsound):
        value(Column("x", Kind(type=Type.REAL, nullable=False)), {"x": None})


@given(rng=seeds())
@settings(max_examples=400 * TIMES, derandomize=True)
def test_every_expression_stays_within_its_kind(rng: Random) -> None:
    """Totality: whatever a row holds, each node gives a value of its own kind and raises nothing."""
    columns = [Column(f"c{place}", generate.kind_of(rng, type_)) for place, type_ in enumerate([*Type, *Type])]
    made = Expressions(rng, columns)
    expression = made.make(made.any_type(), 5)
    for _ in range(10):
        value(expression, {column.name: generate.good(rng, column.kind) for column in columns})


def test_the_generator_reaches_every_function_and_nearly_every_pair() -> None:
    seen: Counter[str] = Counter()
    pairs: set[tuple[str, str]] = set()
    for seed in range(3000):
        made = Expressions(Random(seed), [Column(one.value, generate.kind_of(Random(seed), one)) for one in Type])
        for outer, inner in _nested(made.make(made.any_type(), 4)):
            seen[inner] += 1
            pairs.add((outer, inner))
    possible = _possible_pairs()
    print(f"{len(pairs & possible):,} of {len(possible):,} pairs of functions in 3,000 expressions")
    assert seen.keys() == FUNCTIONS.keys()
    assert len(pairs & possible) >= 0.9 * len(possible)


def _nested(expression: Expression, above: str = "") -> list[tuple[str, str]]:
    if not isinstance(expression, Call):
        return []
    inner = [pair for argument in expression.arguments for pair in _nested(argument, expression.function)]
    return [(above, expression.function), *inner]


def _possible_pairs() -> set[tuple[str, str]]:
    """Pairs of an outer function that takes what the inner one gives."""
    gives: dict[str, set[Type]] = {}
    takes: dict[str, set[Type]] = {}
    for function in FUNCTIONS:
        for seed in range(60):
            made = Expressions(Random(seed), [])
            one = made.of_function(function, 1)
            gives.setdefault(function, set()).add(one.kind.type)
            constants = {"in": 1, "like": 1, "starts_with": 1, "substring": 1}.get(function)
            takes.setdefault(function, set()).update(part.kind.type for part in one.arguments[:constants])
    return {(outer, inner) for outer in FUNCTIONS for inner in FUNCTIONS if takes[outer] & gives[inner]}


@given(rng=seeds())
@settings(max_examples=300 * TIMES, derandomize=True)
def test_one_unit_moves_few_cells_each_a_little(rng: Random) -> None:
    """The claim of Aggregate, for the tables with and without each unit, rows shuffled, under one secret key."""
    case = generate.case(rng)
    op = generate.aggregate(rng, case)
    choose = generate.keyed(b"secret", op.most_groups)
    whole = interpreter.aggregate(op, case.tables, choose)
    for unit in case.units:
        rest = interpreter.aggregate(op, case.without(unit).shuffled(rng).tables, choose)
        assert list(rest) == list(whole), "the cells and their order are public"
        for place, tally_ in enumerate(op.tallies):
            moved = [abs(whole[cell][place] - rest[cell][place]) for cell in whole]
            assert sum(one != 0 for one in moved) <= op.most_groups
            assert max(moved, default=0) <= tally_.linf


@given(rng=seeds())
@settings(max_examples=100 * TIMES, derandomize=True)
def test_every_relation_is_unit_by_unit(rng: Random) -> None:
    """What a unit has in a relation is what it would have if it were alone, whatever the order of rows."""
    case = generate.case(rng, most=4)
    whole = Counter(map(_hashed, interpreter.relation(case.relation, case.shuffled(rng).tables)))
    alone = [interpreter.relation(case.relation, case.only(unit).tables) for unit in case.units]
    assert whole == Counter(_hashed(row) for rows in alone for row in rows)


def _hashed(owned: interpreter.Owned) -> tuple[Any, ...]:
    unit, row = owned
    return (unit, *row.items())
