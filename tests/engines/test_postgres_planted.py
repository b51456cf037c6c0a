"""Faults that are planted in PostgreSQL's dialect: the engine suite sees each of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import psycopg
import pytest

from hubbub.engines.dialects.dialect import Dialect
from hubbub.engines.dialects.postgres import POSTGRES
from hubbub.engines.dialects.postgres_totals import DOMAINS
from hubbub.engines.dialects.printer import print_statement
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.nodes.scalars import Function, Operator, storage_of
from hubbub.engines.nodes.words import infix
from hubbub.engines.postgres import scan
from hubbub.errors import CapacityError, NotAllowed
from hubbub.policy.kinds import Kind
from tests.engines.stored import StoredTables
from tests.engines.test_postgres_plans import choices, keeping, load, made_case, run
from tests.postgres import PostgresServer
from tests.query import generate, interpreter
from tests.query.owned import declared


@pytest.fixture(scope="module")
def stored(postgres_server: PostgresServer) -> Iterator[StoredTables]:
    tables = StoredTables(postgres_server.fresh_database())
    yield tables
    tables.close()


def read_as_it_is(column: str, kind: Kind, stored: str, is_identity: bool) -> str:
    """Without a look at what the kind holds."""
    return f"CAST({column} AS {POSTGRES.types[storage_of(kind)]})"


def is_wrong(stored: StoredTables, dialect: Dialect, *, cases: int) -> bool:
    """Whether any of some aggregates differs from the interpreter's, or fails."""
    for number in range(cases):
        rng = Random(f"planted {number}")
        case = made_case(rng)
        op = generate.aggregate(rng, case, most_groups=rng.choice((None, 1, 50)))
        origins = load(stored, case)
        try:
            statement = print_statement(aggregate(op, declared(case), origins), dialect)
        except (CapacityError, NotAllowed):
            continue
        try:
            found = run(stored, op, statement)
        except psycopg.Error:
            return True
        keep = keeping(stored, case, origins)
        if not interpreter.over(op, case.tables, keep):
            if found != interpreter.aggregate(op, case.tables, lambda unit, own: own, keep):
                return True
        elif choices(op, case, keep) <= 500 and not interpreter.possible(op, case.tables, found, keep):
            return True
    return False


def with_function(name: Function, form: str) -> Dialect:
    return replace(POSTGRES, functions={**POSTGRES.functions, name: form})


def with_operator(name: Operator, form: str) -> Dialect:
    return replace(POSTGRES, operators={**POSTGRES.operators, name: form})


FAULTS: dict[str, Callable[[], Dialect]] = {
    "a limit that is none": lambda: with_function("least", "GREATEST"),
    "integers that are divided as reals": lambda: with_operator("//", "({0} / {1})"),
    "weeks that begin on Sunday": lambda: with_function("start_of_week", POSTGRES.functions["start_of_day"]),
    "a cast that raises": lambda: replace(POSTGRES, safe_cast=POSTGRES.cast),
    "an anti join that is none": lambda: replace(POSTGRES, joins={**POSTGRES.joins, "anti": "LEFT JOIN"}),
    "values that are read as they are": lambda: replace(POSTGRES, read_stored=read_as_it_is),
    "a division that raises": lambda: replace(POSTGRES, domains={**DOMAINS, "/": lambda given, _: infix("/", *given)}),
    "keys that are missing equal nothing": lambda: replace(POSTGRES, join_same="({0} = {1})"),
    "sums that are none": lambda: with_function("sum_small", "pg_catalog.max({0})"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_is_seen(stored: StoredTables, fault: str) -> None:
    assert is_wrong(stored, FAULTS[fault](), cases=400)


def test_without_one_nothing_is_seen(stored: StoredTables) -> None:
    assert scan.read_stored is POSTGRES.read_stored
    assert not is_wrong(stored, POSTGRES, cases=60)
