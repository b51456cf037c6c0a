"""Whatever a granted principal can reach of a database, public or not, holds nothing exact and nothing unpaid.

The table has numbers that nothing else has: 7,919 people, of whom 2,017 are in ward a, with points that sum up to
other primes. Every attribute and every method of a Database is reached, its results are searched, and what a method
may charge is listed. A new method fails this test until it is put into one of the lists.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub import publish
from hubbub.errors import NotAllowed, SecretError
from hubbub.gate.secret import Sealed
from hubbub.learn import KMeans
from hubbub.policy.tables import Limits
from hubbub.query.expression import Column
from hubbub.query.ops import Scan, ScanColumn
from hubbub.query.requests import BlockRows, DenseCells, Request, SparseCells, Tallies
from hubbub.session.job import Purchase
from hubbub.session.questions import QuestionTerms, sql_job
from hubbub.testing.replay import replayed
from tests.query.inside import World, row
from tests.session.granting import ALL, COUNT, entries, frame, granted

PEOPLE, IN_A = 7919, 2017
EXACT = {PEOPLE, IN_A, PEOPLE - IN_A}
"""What only somebody who counted can say. Noise at ε = 1 would have to hit one of them: the noise is replayed below."""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    world = World(Path(tmp_path_factory.mktemp("world")))
    people = [row(unit, ward="ab"[unit >= IN_A], nights=1, cost=1.0, points=3) for unit in range(PEOPLE)]
    owner = world.load(people, limits=Limits(max_groups=1, max_rows=1), buys=True)
    yield granted(owner, "ann", 10_000)
    world.close()


def _purchase(db: hb.Database) -> Purchase:
    return Purchase(rest=Fraction(1), payer=db._session.payer())


FREE: dict[str, Callable[[hb.Database], object]] = {
    "_catalogue": lambda db: db._catalogue(),
    "_draft": lambda db: db._draft(COUNT, QuestionTerms(epsilon=1)).plan(
        {}, Purchase(rest=Fraction(1), payer=db._session.payer())
    ),
    "_tables": lambda db: db._tables(),
    "check_grant": lambda db: db.check_grant(),
    "explain": lambda db: db.explain(COUNT, epsilon=1),
    "explain_publish": lambda db: db.explain_publish(publish.Flat(), **ALL),
    "fanout": lambda db: db.fanout(*public(db)),
    "plan": lambda db: db.plan(COUNT, epsilon=1),
    "read_rows": lambda db: db.read_rows("SELECT cost FROM stays"),
    "schema": lambda db: [db.schema(), db.sql("SHOW TABLES"), db.sql("DESCRIBE stays")],
    "table": lambda db: db.table("stays"),
    "values": lambda db: db.values("places", "floor"),
}
PAID: dict[str, Callable[[hb.Database], object]] = {
    "advise": lambda db: db.advise(epsilon=Fraction(1, 10), table="stays"),
    "ask": lambda db: db.ask([COUNT], epsilon=Fraction(1, 100)),
    "diagnose": lambda db: db.diagnose(COUNT, epsilon=Fraction(1, 100)),
    "learn": lambda db: db.learn(frame(db), KMeans(2), columns=["cost"], epsilon=Fraction(1, 100)),
    "publish": lambda db: db.publish(publish.Flat(), **(ALL | {"epsilon": Fraction(1, 100)})),
    "run": lambda db: db.run(sql_job(db.plan(COUNT, epsilon=Fraction(1, 90)), price=Fraction(1, 90))),
    "sql": lambda db: db.sql(COUNT, epsilon=Fraction(1, 80)),
}
ATTRIBUTES = {"_engine", "_public", "_session", "_where", "budget", "ledger", "log", "policy", "principal"}
OWNERS: dict[str, Callable[[hb.Database], object]] = {"statements": lambda db: db.statements(COUNT, epsilon=1)}
"""What only the owner may ask, although it holds nothing exact."""
ENDS = {"close"}


def public(db: hb.Database) -> tuple[Scan, list[Column]]:
    kind = next(column.kind for column in db.policy.tables["places"].columns if column.name == "id")
    return Scan(table="places", columns=(ScanColumn("id", kind, "id"),), unit=None), [Column("id", kind)]


def test_every_attribute_and_method_is_in_a_list(db: hb.Database) -> None:
    own = {name for name in dir(db) if not name.startswith("__")}
    assert own == FREE.keys() | PAID.keys() | OWNERS.keys() | ATTRIBUTES | ENDS


@pytest.mark.parametrize("path", OWNERS)
def test_what_is_the_owners_is_refused_to_others(db: hb.Database, path: str) -> None:
    with pytest.raises(NotAllowed, match="for the owner"):
        OWNERS[path](db)


def numbers_in(value: object, *, seen: set[int] | None = None, depth: int = 12) -> Iterator[float]:
    """Every number that can be reached from a value without opening a seal, its texts included."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth == 0:
        return
    seen.add(id(value))
    match value:
        case Sealed():
            yield from _texts(repr(value))
        case bool() | None:
            return
        case int() | float() | Fraction():
            yield float(value)
        case str():
            yield from _texts(value)
        case np.ndarray():
            yield from (float(number) for number in value.ravel() if isinstance(number, int | float | np.number))
        case Mapping():
            for key, held in value.items():
                yield from numbers_in(key, seen=seen, depth=depth - 1)
                yield from numbers_in(held, seen=seen, depth=depth - 1)
        case Sequence() | Set():
            for held in value:
                yield from numbers_in(held, seen=seen, depth=depth - 1)
        case _ if type(value).__module__.startswith(("hubbub", "tests")):
            names = (
                [field.name for field in fields(value)] if is_dataclass(value) else list(getattr(value, "__dict__", ()))
            )
            for name in names:
                yield from numbers_in(getattr(value, name, None), seen=seen, depth=depth - 1)
            yield from _texts(repr(value))


def _texts(text: str) -> Iterator[float]:
    digits = "".join(letter if letter.isdigit() else " " for letter in text.replace(",", ""))
    yield from (float(word) for word in digits.split() if len(word) < 12)


def test_the_search_finds_what_is_there() -> None:
    for hidden in ({"n": [PEOPLE]}, f"there are {PEOPLE:,} rows", np.array([1, PEOPLE]), Tallies(aggregate=PEOPLE)):  # type: ignore[arg-type]
        assert EXACT & set(numbers_in(hidden))
    assert not EXACT & set(numbers_in(Sealed(PEOPLE)))


@pytest.mark.parametrize("path", FREE)
def test_what_is_free_holds_nothing_exact(db: hb.Database, path: str) -> None:
    before = entries(db)
    db._engine.reads.clear()  # type: ignore[attr-defined]
    found = FREE[path](db)
    assert not EXACT & set(numbers_in(found))
    assert entries(db) == before, "nothing was charged"
    assert not db._engine.reads, "and nothing private was read"  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", PAID)
def test_what_is_paid_holds_nothing_exact(db: hb.Database, path: str) -> None:
    before = entries(db)
    with replayed(7):
        found = PAID[path](db)
    assert not EXACT & set(numbers_in(found))
    assert entries(db) > before, "it was charged"


def requests(db: hb.Database) -> dict[str, Request]:
    aggregate = db.plan(COUNT, epsilon=1).aggregate
    relation, columns = db.read_rows("SELECT cost FROM stays")
    return {
        "tallies": Tallies(aggregate=aggregate),
        "dense": DenseCells(aggregate=aggregate),
        "sparse": SparseCells(aggregate=aggregate),
        "rows": BlockRows(relation=relation, columns=columns, blocks=2),
    }


@pytest.mark.parametrize("kind", ["tallies", "dense", "sparse", "rows"])
def test_what_an_engine_returns_is_sealed(db: hb.Database, kind: str) -> None:
    result = db._engine.prepare(requests(db)[kind], tables=db.policy.tables)()
    assert type(result) is Sealed
    assert repr(result) == "<Sealed>"
    looks: tuple[Callable[[Any], object], ...] = (
        str,
        list,
        len,
        bool,
        int,
        lambda sealed: sealed == 1,
        lambda sealed: sealed[0],
    )
    for look in looks:
        with pytest.raises(SecretError):
            look(result)
    assert not EXACT & set(numbers_in(result))


@pytest.mark.parametrize("table", ["stays"])
def test_nothing_private_is_read_as_if_it_were_public(db: hb.Database, table: str) -> None:
    """A relation that calls itself public, and names a private table."""
    kind = next(column.kind for column in db.policy.tables[table].columns if column.name == "ward")
    scan = Scan(table=table, columns=(ScanColumn("ward", kind, "ward"),), unit=None)
    for read in (lambda: db.fanout(scan, [Column("ward", kind)]), lambda: db.values(table, "ward")):
        with pytest.raises(NotAllowed, match="private"):
            read()


def test_sessions_hand_out_no_more_than_databases_do(db: hb.Database) -> None:
    """What a session does beside running jobs is free, and names no number of the data."""
    session = db._session
    names = {name for name, _ in inspect.getmembers(session, callable) if not name.startswith("_")}
    assert names == {
        "ask_of",
        "check_grant",
        "drop_stale_facts",
        "facts",
        "foresee",
        "payer",
        "plan",
        "run",
    }
    draft = db._draft(COUNT, QuestionTerms(epsilon=1))
    free: list[Any] = [session.facts(draft.wanted), session.foresee(draft), session.plan(draft), session.payer()]
    assert not EXACT & set(numbers_in(free))
