"""Aggregates of every relation on PostgreSQL equal the reference interpreter, and are bounded unit by unit."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.dialects.postgres import POSTGRES
from hubbub.engines.dialects.printer import print_statement
from hubbub.engines.lower import relations
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.nodes.queries import Lowered, RowSource
from hubbub.engines.nodes.words import name, select, within
from hubbub.errors import CapacityError, NotAllowed
from hubbub.query.ops import Aggregate, Cap, Relation
from tests.engines.stored import StoredTables, storable
from tests.postgres import PostgresServer
from tests.query import generate, interpreter
from tests.query.generate import TIMES, Case, kinds_of, seeds
from tests.query.owned import SECRET, Rows, declared, exact, settled

Origins = dict[str, RowSource]


@pytest.fixture(scope="module")
def stored(postgres_server: PostgresServer) -> Iterator[StoredTables]:
    tables = StoredTables(postgres_server.fresh_database())
    yield tables
    tables.close()


def made_case(rng: Random) -> Case:
    """A case whose texts a server can hold."""
    case = generate.case(rng)
    tables = {
        table: [{column: storable(value) for column, value in row.items()} for row in rows]
        for table, rows in case.tables.items()
    }
    return Case(case.schema, tables, case.relation, case.unit)


def load(stored: StoredTables, case: Case) -> Origins:
    return {table: stored.fill(table, case.schema[table], rows) for table, rows in case.tables.items()}


def prepared(op: Aggregate, case: Case, origins: Origins) -> SqlStatement | None:
    """The statement that the engine would run; None where it refuses beforehand."""
    try:
        return print_statement(aggregate(op, declared(case), origins), POSTGRES)
    except (CapacityError, NotAllowed):
        return None


def run(stored: StoredTables, op: Aggregate, statement: SqlStatement) -> dict[Any, tuple[int, ...]]:
    cells = list(itertools.product(*(group.values for group in op.groups)))
    found = dict.fromkeys(cells, (0,) * len(op.tallies))
    for code, *sums in stored.run(statement, SECRET):
        found[cells[code]] = tuple(int(one) for one in sums)
    return found


def rows_of(stored: StoredTables, op: Relation, case: Case, origins: Origins, secret: Sequence[int] = SECRET) -> Rows:
    """The rows of a relation, each with its unit first."""
    made = relations.Lowering(declared(case), origins)
    rows, names = made.relation(op)
    unit = relations.unit_of(op)
    columns = [name(names[column.name]) for column in kinds_of(op)]
    statement = print_statement(Lowered(select(within(rows), *unit, *columns), secrets=made.secrets), POSTGRES)
    found = stored.run(statement, secret)
    kinds = [None] * len(unit) + [column.kind for column in kinds_of(op)]
    return Counter(tuple(settled(_plain(value)) for value, _ in zip(row, kinds, strict=True)) for row in found)


def _plain(value: Any) -> Any:
    return int(value) if type(value).__name__ == "Decimal" else value


def keeping(stored: StoredTables, case: Case, origins: Origins, secret: Sequence[int] = SECRET) -> interpreter.Keep:
    """Of a unit's rows, those that the engine keeps: as many as it may, and each as often as it was there at most."""
    known: dict[Cap, Rows] = {}

    def keep(op: Cap, unit: Any, rows: list[interpreter.Row]) -> list[interpreter.Row]:
        if op not in known:
            known[op] = rows_of(stored, op, case, origins, secret)
        left = Counter({row[1:]: many for row, many in known[op].items() if row[0] == settled(unit)})
        assert left.total() == op.most, (unit, left)
        kept = []
        for row in rows:
            content = tuple(settled(value) for value in row.values())
            if left[content] > 0:
                left[content] -= 1
                kept.append(row)
        assert len(kept) == op.most, (unit, left)
        return kept

    return keep


def choices(op: Aggregate, case: Case, keep: interpreter.Keep) -> int:
    known = interpreter.added(op, case.tables, keep)
    ways = math.comb if op.together is None else math.perm
    return math.prod(ways(len(own), min(len(own), op.most_groups)) for own in known.amounts.values())


@given(rng=seeds())
@settings(max_examples=300 * TIMES, derandomize=True, deadline=None)
def test_aggregates(stored: StoredTables, rng: Random) -> None:
    """The interpreter's answer where no unit has too many groups; else a possible one."""
    case = made_case(rng)
    op = generate.aggregate(rng, case, most_groups=rng.choice((None, 1, 50)))
    origins = load(stored, case)
    statement = prepared(op, case, origins)
    if statement is None:
        return
    found, keep = run(stored, op, statement), keeping(stored, case, origins)
    if not interpreter.over(op, case.tables, keep):
        assert found == interpreter.aggregate(op, case.tables, lambda unit, own: own, keep)
    elif choices(op, case, keep) <= 2000:
        assert interpreter.possible(op, case.tables, found, keep)


@given(rng=seeds())
@settings(max_examples=120 * TIMES, derandomize=True, deadline=None)
def test_neighbours_under_one_key(stored: StoredTables, rng: Random) -> None:
    """The claim of Aggregate, of PostgreSQL itself; and shuffled rows give the same."""
    case = made_case(rng)
    op = generate.aggregate(rng, case, most_groups=rng.choice((None, 1, 50)))
    statement = prepared(op, case, load(stored, case))
    if statement is None:
        return
    whole = run(stored, op, statement)
    load(stored, case.shuffled(rng))
    assert run(stored, op, statement) == whole
    for unit in case.units[:2]:
        load(stored, case.without(unit).shuffled(rng))
        rest = run(stored, op, statement)
        for place, tally in enumerate(op.tallies):
            moved = [abs(whole[cell][place] - rest[cell][place]) for cell in whole]
            assert sum(one != 0 for one in moved) <= op.most_groups
            assert max(moved, default=0) <= tally.linf


@given(rng=seeds())
@settings(max_examples=80 * TIMES, derandomize=True, deadline=None)
def test_relations(stored: StoredTables, rng: Random) -> None:
    """The rows of every relation are the interpreter's, to the last bit but for ln and exp."""
    case = made_case(rng)
    if not exact(case.relation):
        return
    origins = load(stored, case)
    try:
        found = rows_of(stored, case.relation, case, origins)
    except NotAllowed:
        return
    columns = [column.name for column in kinds_of(case.relation)]
    meant = interpreter.relation(case.relation, case.tables, keeping(stored, case, origins))
    private = bool(relations.unit_of(case.relation))
    rows = Counter(
        (*([settled(unit)] if private else []), *(settled(row[one]) for one in columns)) for unit, row in meant
    )
    assert found == rows
