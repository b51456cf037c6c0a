"""The whole path of a question with the engine inside this process: thousands of questions a minute, on any rows.

Everything is the product's own (session, plan, ledger, statements, noise) but the walls around the engine: its
statements run on a connection of ours. Noise is replayed, and the key that chooses groups is fixed, so that two runs
differ in the data alone.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import duckdb

from hubbub.engines import duckdb as engine_module
from hubbub.engines import worker
from hubbub.engines.duckdb import DuckDB
from hubbub.engines.relations import Statement
from hubbub.engines.sources import Origin
from hubbub.engines.words import name
from hubbub.errors import EngineError, HubbubError
from hubbub.ledger import Ledger, Marks
from hubbub.mechanisms.bins import Bins
from hubbub.meter import Meter
from hubbub.policy.kinds import Kind, Type, integer, of
from hubbub.policy.tables import Column, Limits, Policy, Source, Table
from hubbub.privacy.budget import Budget
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Norm
from hubbub.query.ops import Counted
from hubbub.query.plan import Plan
from hubbub.session import Database
from hubbub.testing.replay import replayed
from tests.query.owned import fill

Rows = Sequence[Mapping[str, Any]]

WARDS = ("a", "b", "c", "\x1b[31mred", "<img src=x onerror=alert(1)>")
"""Public keys; two of them are attacks on whoever looks at them."""

_ANY = of(Type.INTEGER)
STAYS: tuple[Column, ...] = (
    Column(name="person", kind=_ANY),
    Column(name="ward", kind=of(Type.TEXT), keys=WARDS),
    Column(name="cost", kind=of(Type.REAL), bounds=(Fraction(0), Fraction(100))),
    Column(name="nights", kind=integer(-(1 << 31), (1 << 31) - 1), bounds=(Fraction(0), Fraction(10))),
    Column(name="points", kind=_ANY),
    Column(name="day", kind=of(Type.DATE)),
    Column(name="urgent", kind=of(Type.BOOLEAN)),
)
PLACES: tuple[Column, ...] = (
    Column(name="id", kind=of(Type.TEXT)),
    Column(name="floor", kind=_ANY),
    Column(name="beds", kind=_ANY, bounds=(Fraction(0), Fraction(50))),
)
PUBLIC: Rows = (
    {"id": "a", "floor": 1, "beds": 10},
    {"id": "a", "floor": 2, "beds": 90},
    {"id": "b", "floor": 2, "beds": None},
    {"id": None, "floor": 3, "beds": 5},
    {"id": "nowhere", "floor": 3, "beds": 7},
)


def row(person: int | None, **values: Any) -> dict[str, Any]:
    """A stay; what is not said is missing."""
    return {column.name: values.get(column.name) for column in STAYS} | {"person": person}


def _table(name: str, columns: tuple[Column, ...], unit: str | None) -> Table:
    source = Source(format="duckdb", paths=("/nowhere.duckdb",), table=name)
    return Table(name=name, source=source, columns=columns, unit=unit)


TABLES = {"stays": _table("stays", STAYS, "person"), "places": _table("places", PLACES, None)}


class Inside(DuckDB):
    """The engine's own statements on a connection of this process."""

    def __init__(self, connection: Any) -> None:
        self._limits, self._log = Limits(), None
        self.connection = connection

    def close(self) -> None:
        """Nothing was started."""

    def _origin(self, source: Source, columns: Sequence[str]) -> Origin:
        assert source.table is not None
        return Origin(name(source.table))

    def _ask(self, statement: Statement, origins: Iterable[Origin]) -> list[list[Any]]:
        try:
            for keys in statement.keys:
                self.connection.execute(
                    f'CREATE OR REPLACE TEMP TABLE "{keys.table}" AS SELECT CAST(v AS {keys.type}) AS "value", '
                    'p AS "place" FROM (SELECT unnest(CAST($1 AS VARCHAR[])) AS v, unnest(CAST($2 AS INTEGER[])) AS p)',
                    [list(keys.values), list(keys.places)],
                )
            return [
                list(one) for one in self.connection.execute(statement.sql, engine_module.drawn(statement)).fetchall()
            ]
        except duckdb.Error:
            raise EngineError from None


def connected() -> Any:
    """A connection with the settings of the engine's own processes."""
    connection = duckdb.connect(config={"threads": 1})
    worker.settle(connection, {"memory": "1GB", "temporary": "1GB", "threads": 1, "scratch": ""})
    return connection


_VERSIONS = itertools.count(1)


class World:
    """One set of rows at a time, and a ledger with much to spend; each load is another version of the data."""

    def __init__(self, folder: Path, *, budget: Budget | None = None) -> None:
        self.budget = budget or Budget(epsilon=Fraction(10**6))
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
        self.engine = Inside(connected())
        fill(self.engine.connection, "places", _kinds(PLACES), PUBLIC)

    def load(
        self,
        rows: Rows,
        *,
        limits: Limits | None = None,
        threads: int = 1,
        version: int | None = None,
        buys: bool = False,
    ) -> Database:
        """These rows, to be asked; what is not declared is refused, unless it may be bought."""
        self.engine.connection.execute(f"SET threads = {threads}")
        fill(self.engine.connection, "stays", _kinds(STAYS), rows)
        policy = Policy(
            account="people",
            budget=self.budget,
            tables=TABLES,
            limits=replace(limits or Limits(max_groups=2, max_rows=3), buy=buys),
            version=str(next(_VERSIONS)) if version is None else str(version),
        )
        return Database(policy, ledger=self.ledger, engine=self.engine)

    def close(self) -> None:
        self.engine.connection.close()
        self.ledger.close()


def _kinds(columns: Sequence[Column]) -> list[tuple[str, Kind]]:
    return [(column.name, column.kind) for column in columns]


@contextmanager
def fixed_key() -> Iterator[None]:
    """The key that chooses a unit's groups is the same in every run."""
    with mock.patch.object(engine_module, "secrets", SimpleNamespace(randbits=lambda bits: (1 << bits) // 3)):
        yield


def exact(db: Database, text: str) -> list[tuple[int, ...]]:
    """The exact tallies, group by group: what nobody sees but a test."""
    with fixed_key():
        return db._engine.prepare(db.plan(text, epsilon=1).aggregate, tables=db.policy.tables)().tallies


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Everything that a question showed and did."""

    outcome: str
    """"answered", or the class and the words of the error."""
    public: tuple[Any, ...] = ()
    """Tallies, mechanisms, groups, price, columns, what is left: none of it may depend on the data."""
    draws: tuple[Any, ...] = ()
    noisy: tuple[tuple[int, ...], ...] = ()
    bins: tuple[tuple[Bins, ...], ...] = ()
    """Histograms, where they were looked at: exact ones."""
    plan: Plan | None = None
    charged: int = 0


def ask(db: Database, text: str, *, epsilon: Fraction = Fraction(1), seed: int = 0) -> Seen:
    """Ask with replayed noise."""
    before = db.ledger.statement(db.policy.account).spent.loss
    with fixed_key(), replayed(seed) as source:
        try:
            answer = db.sql(text, epsilon=epsilon)
        except HubbubError as error:
            spent = db.ledger.statement(db.policy.account).spent.loss
            return Seen(outcome=f"{type(error).__name__}: {error}", draws=tuple(source.draws), charged=spent - before)
    plan = answer.plan
    return Seen(
        outcome="answered",
        public=(plan.aggregate, plan.mechanisms, plan.cost, answer.columns, plan.question.text, plan.cells),
        draws=tuple(source.draws),
        noisy=answer.noisy,
        plan=plan,
        charged=db.ledger.statement(db.policy.account).spent.loss - before,
    )


def faults(one: Seen, other: Seen, *, same: bool = False) -> list[str]:
    """What the other run shows that it must not; ``same``: the data says the same of every unit, so nothing differs."""
    found = [
        f"{name} differ: {getattr(one, name)!r:.300} and {getattr(other, name)!r:.300}"
        for name in ("outcome", "public", "draws", "charged")
        if getattr(one, name) != getattr(other, name)
    ]
    if found or one.plan is None:
        return found
    found += _in_bins(one, other, same=same)
    for place, (left, right) in enumerate(zip(one.noisy, other.noisy, strict=True)):
        if one.plan.choice(place) is not None:
            if same and left != right:
                found.append(f"choice {place} moved, and no unit's rows did")
            continue
        steps = [abs(a - b) for a, b in zip(left, right, strict=True)]
        if same and any(steps):
            found.append(f"tally {place} moved, and no unit's rows did")
        proven = one.plan.sensitivity(place)
        moved = (
            ("groups", sum(step != 0 for step in steps), proven.l0),
            ("steps in one group", max(steps), proven.linf),
            ("steps in L1", sum(steps), proven.in_norm(Norm.L1)),
            ("squared steps in L2", sum(step * step for step in steps), proven.in_norm(Norm.L2)),
        )
        for what, step, allowed in moved:
            if allowed is None or step > allowed:
                found.append(f"tally {place} moved by {step} {what}, and {allowed} was proven")
    return found


def _in_bins(one: Seen, other: Seen, *, same: bool) -> list[str]:
    """Histograms differ in rows of one unit: so many, in so many groups."""
    found: list[str] = []
    if one.plan is None:
        return found
    replaced = one.plan.policy.budget.neighbors is Neighbors.REPLACE_ONE
    for place in range(len(one.plan.mechanisms) if one.bins and other.bins else 0):
        choice = one.plan.choice(place)
        if choice is None:
            continue
        proven, groups = one.plan.sensitivity(place), 0
        for left, right in zip(one.bins[choice.histogram], other.bins[choice.histogram], strict=True):
            a, b = (Counter(dict(side.pairs())) for side in (left, right))
            gone, come = (a - b).total(), (b - a).total()
            moved, groups = max(gone, come) if replaced else gone + come, groups + (a != b)
            if moved > choice.rows:
                found.append(f"choice {place} lost or won {moved} rows in a group, and {choice.rows} was proven")
        if same and groups:
            found.append(f"choice {place} moved, and no unit's rows did")
        if proven.l0 is None or groups > proven.l0:
            found.append(f"choice {place} moved in {groups} groups, and {proven.l0} was proven")
    return found


class Handed:
    """A question of which the exact tallies are handed in: plan, gate and noise are the product's own."""

    def __init__(self, db: Database, plan: Plan) -> None:
        self._plan = plan
        self._db = db
        self._meter = Meter({db.policy.account: Budget(epsilon=Fraction(10**9), delta=db.policy.budget.delta)})

    def draw(self, cells: list[tuple[int, ...]] | Counted) -> tuple[int, ...]:
        counted = cells if isinstance(cells, Counted) else Counted(cells=(), tallies=cells)
        noisy = json.loads(self._db._measured(self._plan, lambda: counted, self._meter))["noisy"]
        return tuple(value for tally in noisy for value in tally)
