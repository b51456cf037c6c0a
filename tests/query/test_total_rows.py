"""Rows of a unit counted over all groups together: the engine against the interpreter, and neighbours."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.engines.lower import aggregate as aggregating
from hubbub.engines.lower import histogram as limit
from hubbub.engines.lower import private_keys as keyed
from hubbub.engines.lower import total_limit as sharing
from hubbub.engines.lower.grid_steps import cut_in_proportion
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Apply, Scalar
from hubbub.engines.nodes.words import STAR, alias, but, cast, function, name, over, relation, select, within
from hubbub.errors import CapacityError
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.query.ops import Aggregate, Measure, Tally, Together
from hubbub.query.plan import statistic
from tests.engines.raw import printed, raw
from tests.query import generate, interpreter, test_replay
from tests.query.generate import TIMES, Case, seeds
from tests.query.inside import Seen, World, exact, fixed_key, row
from tests.query.owned import Connection, connected, keeping, load
from tests.query.test_engine import prepared, run
from tests.query.test_private_random import run as run_private
from tests.query.test_replay import QUESTIONS, any_asked, compare, dataset, worlds
from tests.query.test_total_plans import norms

__all__ = ["worlds"]

# The engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Connection]:
    connection = connected()
    yield connection
    connection.close()


def order_of(engine: Connection, op: Aggregate, case: Case) -> interpreter.Choose:
    """The engine's own order of a unit's groups: seen by letting it keep one, two, three of them."""

    def choose(unit: Any, own: list[interpreter.Cell]) -> list[interpreter.Cell]:
        load(engine, case.only(unit))
        found: list[interpreter.Cell] = []
        for most in range(1, min(op.most_groups, len(own)) + 1):
            kept = {cell for cell, (units,) in answered(engine, _units(op, most), case).items() if units}
            found += kept - set(found)
        load(engine, case)
        return found

    return choose


def _units(op: Aggregate, most: int) -> Aggregate:
    return replace(op, tallies=(Tally(measure=Measure.UNITS, argument=None),), most_groups=most, together=None)


def shared_out(rng: Random) -> tuple[Case, Aggregate]:
    """Groups and tallies of any kind, few rows in all."""
    while True:
        case = generate.case(rng, rows=80, most=1)
        op = generate.aggregate(rng, case, most_groups=rng.choice((2, 3, 50)))
        if op.together is not None:
            total = rng.randint(1, 4)
            return case, replace(op, together=Together(rows=rng.randint(1, total), total=total))


def answered(engine: Connection, op: Aggregate, case: Case) -> dict[Any, tuple[int, ...]]:
    statement = prepared(op, case)
    if statement is None:
        raise CapacityError("too large")
    if keyed.is_private(op):
        found = run_private(engine, op, statement)
        return dict(zip(found.cells, found.tallies, strict=True))
    return run(engine, op, statement)


@pytest.mark.parametrize("private", [False, True])
def test_the_engine_counts_what_the_interpreter_counts(engine: Connection, private: bool) -> None:
    """In the engine's own order of groups; with listed keys, and with keys that nobody listed."""
    short = 0
    for number in range(40 * TIMES):
        rng = Random(f"total {private} {number}")
        case, op = shared_out(rng)
        if private:
            op = replace(op, groups=tuple(replace(one, values=(), private=True) for one in op.groups))
        if prepared(op, case) is None:
            continue
        load(engine, case)
        engine.execute("SET threads = 1")
        found, keep = answered(engine, op, case), keeping(engine, case)
        meant = interpreter.aggregate(op, case.tables, order_of(engine, op, case), keep)
        assert {cell: sums for cell, sums in meant.items() if cell in found or not private} == found
        assert not any(any(sums) for cell, sums in meant.items() if cell not in found)
        known = interpreter.added(op, case.tables, keep)
        short += sum(known.short(unit) for unit in known.amounts)
        load(engine, case.shuffled(rng))
        engine.execute("SET threads = 4")
        assert answered(engine, op, case) == found
    assert short > 20, "the total is less than what units have"


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True, deadline=None)
def test_one_unit_moves_no_more_than_its_rows(engine: Connection, rng: Random) -> None:
    """The claim of Aggregate in L1 and L2, of the engine and of the interpreter."""
    case, op = shared_out(rng)
    if prepared(op, case) is None:
        return
    choose = generate.keyed(b"secret", op.most_groups)

    def by_engine(one: Case) -> dict[Any, tuple[int, ...]]:
        load(engine, one)
        return answered(engine, op, one)

    ways: list[Callable[[Case], dict[Any, tuple[int, ...]]]] = [
        lambda one: interpreter.aggregate(op, one.tables, choose),
        by_engine,
    ]
    for way, unit in itertools.product(ways, case.units[:2]):
        whole, rest = way(case), way(case.without(unit).shuffled(rng))
        for place, tally in enumerate(op.tallies):
            if tally.a_row is not None and op.together is not None:
                moved, reach = (
                    [abs(whole[cell][place] - rest[cell][place]) for cell in whole],
                    max(map(abs, tally.a_row)),
                )
                assert sum(moved) <= op.together.total * reach
                assert sum(one**2 for one in moved) <= op.together.squares * reach**2
                assert sum(one != 0 for one in moved) <= op.most_groups


def test_counts_and_totals_by_hand(tmp_path: Path) -> None:
    """Three wards of a person, four rows each; 3 a ward and 5 in all: one ward 3, one 2, one none."""
    world = World(tmp_path)
    rows = [row(1, ward=ward, nights=7 if at else None, cost=10.0) for ward in "abc" for at in range(4)]
    db = world.load(rows, limits=Limits(max_groups=3, max_rows=3, max_total_rows=5))
    shown = "count(*), count(nights), sum(nights), avg(nights), count(DISTINCT person)"
    text = f"SELECT ward, {shown} FROM stays GROUP BY ward"
    found = db.plan(text, epsilon=1)
    places = [[found.aggregate.tallies.index(tally) for tally in part.tallies] for part in found.parts]
    numbers = sorted(exact(db, text), key=lambda one: (-one[places[4][0]], -one[places[0][0]]))[:3]
    assert [one[places[0][0]] for one in numbers] == [3, 2, 0], "rows"
    assert [one[places[1][0]] for one in numbers] == [3, 2, 0], "of three values in each"
    assert [one[places[2][0]] for one in numbers] == [21, 20, 0], "clamped to what 3, 2 and no rows can add"
    mean = next(one for one in places[3] if found.aggregate.tallies[one].measure is Measure.TOTAL)
    assert [one[mean] for one in numbers] == [6, 4, 0], "two above the middle each, as often as rows count"
    assert [one[places[4][0]] for one in numbers] == [1, 1, 1], "a unit counts in all groups that it keeps"
    world.close()


def test_the_statement_is_another_only_where_rows_are_counted_together(tmp_path: Path) -> None:
    world = World(tmp_path)
    for text, differs in (
        ("SELECT ward, count(*) FROM stays GROUP BY ward", True),
        ("SELECT ward, count(DISTINCT person), median(nights) FROM stays GROUP BY ward", False),
        ("SELECT count(*), sum(nights) FROM stays", False),
    ):
        statements = []
        for total in (4, None):
            db = world.load([], limits=Limits(max_groups=2, max_rows=3, max_total_rows=total))
            op, tables = db.plan(text, epsilon=1, error="noise").aggregate, db.policy.tables
            statements.append(printed(aggregating.aggregate(op, tables, {one: relation(one) for one in tables})))
        assert (statements[0] != statements[1]) is differs, text
        assert (limit.SO_FAR in statements[0].sql) is differs
    world.close()


# Neighbours


def posed(
    rng: Random, asks: Callable[[Random], str] = any_asked
) -> tuple[Limits, list[dict[str, Any]], list[str], int]:
    """As in ``test_replay``, with totals that are less than rows times groups, and with groups in each question."""
    groups, rows = rng.choice((2, 3, 50)), rng.choice((1, 2, 5, 20))
    limits = Limits(
        max_groups=groups,
        max_rows=rows,
        max_total_rows=rng.randint(rows, max(rows, min(8, groups * rows - 1))),
        max_unit_rows=rng.choice((5, 30)),
    )
    asked = [text for text in (asks(rng) for _ in range(QUESTIONS * 4)) if "GROUP BY" in text]
    plain = "SELECT ward, count(*), count(nights), sum(nights), avg(nights) FROM stays GROUP BY ward"
    return limits, dataset(rng), [plain, *asked[: QUESTIONS - 1]], rng.randrange(1 << 30)


def compared(sides: tuple[World, World], seed: str, **more: Any) -> Iterator[tuple[str, Seen, list[str]]]:
    with mock.patch.object(test_replay, "posed", posed):
        yield from compare(sides, Random(seed), **more)


@pytest.mark.parametrize("kind", ["pure", "gaussian", "replace"])
def test_neighbours_move_no_further_than_is_proven(worlds: dict[str, tuple[World, World]], kind: str) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(3 * TIMES):
        seed = f"total {kind} {number}"
        for text, seen, found in compared(worlds[kind], seed, replace=kind == "replace"):
            assert not found, (seed, text, found)
            outcomes[seen.outcome] += 1
            parts = () if seen.plan is None else seen.plan.sets or (seen.plan,)
            outcomes["together"] += any(one.aggregate.together is not None for one in parts)
    assert outcomes["together"] > 80, outcomes
    assert not any("EngineError" in outcome for outcome in outcomes), outcomes


def _all_that_may(limits: Together, chosen: Query) -> Query:
    """Each group has its own rows, as if there were no others."""
    return select(within(chosen), STAR, alias(cast(sharing.count_rows(limits), "int64"), "allowed"))


def _by_everyone(rows: Query, rank: Apply, order: Any, *, adding: Scalar | None = None, **more: Any) -> Query:
    """What others have is taken off the total too."""
    honest = _ranked(rows, rank, order, **more)
    summed = [] if adding is None else [alias(over(function("sum", adding), partition=[], order=order), limit.SO_FAR)]
    return select(within(honest, "honest"), STAR, *summed)


def _as_they_come(rows: Query, rank: Apply, order: Any, *, adding: Scalar | None = None, **more: Any) -> Query:
    """In the order in which groups come out of the engine."""
    if adding is None:
        return _ranked(rows, rank, order, **more)
    placed = raw("SELECT *, row_number() OVER () AS came FROM (", rows, ") AS y")
    summed = over(function("sum", adding), partition=[name("unit")], order=[name("came")])
    honest = _ranked(placed, rank, order, **more)
    return select(within(honest, "honest"), but("came"), alias(summed, limit.SO_FAR))


def _half(each: Any, together: Together, *more: Any) -> Any:
    return _bound_over_groups(each, replace(together, total=max(1, together.total // 2)), *more)


_ranked, _bound_over_groups = limit.rank_rows, statistic._bound_over_groups
PLANTED: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "the_running_total_forgotten": lambda: mock.patch.object(sharing, "allow", _all_that_may),
    "the_count_not_cut": lambda: mock.patch.object(sharing, "fewer", lambda tally, many: many),
    "the_sum_not_cut": lambda: mock.patch.object(
        sharing, "less", lambda tally, total, many: cut_in_proportion(total, many, tally.most_rows)
    ),
    "the_total_of_all_units": lambda: mock.patch.object(aggregating, "rank_rows", _by_everyone),
    "the_order_of_the_data": lambda: mock.patch.object(aggregating, "rank_rows", _as_they_come),
    "noise_for_half_the_total": lambda: mock.patch.object(statistic, "_bound_over_groups", _half),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_neighbours_show(worlds: dict[str, tuple[World, World]], fault: str) -> None:
    """Faults, each planted in the one place where it would be made."""
    seen = 0
    with PLANTED[fault]():
        for number in range(12):
            for text, _, found in compared(worlds["pure"], f"total pure {number}"):
                if found and not text.startswith("meant: "):
                    return
                seen += 1
    raise AssertionError(f"nobody saw {fault} in {seen:,} cases")


# Keys that nobody listed


def test_private_keys_are_counted_together_too(tmp_path: Path) -> None:
    world = World(tmp_path, budget=Budget(epsilon=Fraction(4), delta=Fraction(1, 10**6)))
    rows = [row(who, points=point) for who in range(30) for point in (1, 2, 3) for _ in range(4)]
    text = "SELECT points, count(*), count(DISTINCT person) FROM stays GROUP BY points"
    limits = Limits(max_groups=3, max_rows=3, max_total_rows=4)
    sides = []
    for held in (rows, [one for one in rows if one["person"] != 7]):
        db = world.load(held, limits=limits)
        found = db.plan(text, epsilon=2, delta=Fraction(1, 10**7))
        assert found.selection is not None
        with fixed_key():
            sides.append((found, exact_of(db, found.aggregate)))
    whole, rest = (dict(zip(one.cells, one.tallies, strict=True)) for _, one in sides)
    found = sides[0][0]
    counts, units = (found.aggregate.tallies.index(part.tallies[0]) for part in found.parts)
    assert sum(one[counts] for one in whole.values()) == 30 * 4
    assert [one[units] for one in whole.values()] == [30, 30, 30]
    assert sorted(whole[cell][counts] - rest[cell][counts] for cell in whole) == [0, 1, 3]
    assert norms(found, counts) == (3, 4, 10, 3)
    assert list(whole) == [(1,), (2,), (3,)]
    world.close()
