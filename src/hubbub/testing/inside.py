"""The whole path of a question with the engine inside this process: thousands of questions a minute, on any rows.

Everything is the product's own (session, plan, ledger, statements, noise) but the walls around the engine: its
statements run on a connection of ours. Noise is replayed, and the key that chooses groups is fixed, so that two runs
differ in the data alone. For tables that were made up, and for nothing else.
"""

import itertools
import json
import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb

from hubbub.engines import duckdb as engine_module
from hubbub.engines import worker
from hubbub.engines.duckdb import DuckDB
from hubbub.engines.relations import Statement
from hubbub.engines.run import Run
from hubbub.engines.sources import Origin
from hubbub.engines.words import Sql, name
from hubbub.errors import EngineError, HubbubError
from hubbub.ledger import Ledger, Marks
from hubbub.mechanisms.bins import Bins
from hubbub.meter import Meter
from hubbub.policy.kinds import Kind
from hubbub.policy.scanned import engine_type
from hubbub.policy.tables import Limits, Policy, Source, Table
from hubbub.privacy.budget import Budget
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Norm
from hubbub.query.choices import Wanted
from hubbub.query.ops import Aggregate, Counted
from hubbub.query.plan import Plan
from hubbub.session import Database
from hubbub.testing.replay import replayed

Rows = Sequence[Mapping[str, Any]]
Tables = Mapping[str, Rows]

VERSIONS = itertools.count(1)
"""Names for states of the data that nobody has used before."""
FIXED = (1 << 64) // 3
"""The secret that chooses groups, unless another one is asked for."""
_MEMORY = ("/dev/shm",)


class Inside(DuckDB):
    """The engine's own statements on a connection of this process."""

    def __init__(self, connection: Any) -> None:
        self._limits, self._log = Limits(), None
        self.connection = connection
        self._looking = False
        self.reads: list[Any] = []
        """What ``watch`` saw whenever something private was read."""
        self.watch: Callable[[], Any] = lambda: None
        self.broken = False
        """Whether private reads give back what nobody can make sense of."""
        self.counted: list[Counted] = []
        """All exact numbers that were handed over."""
        self.waiting: dict[str, Callable[[], None]] = {}
        """Tables that are filled when a statement names them, and how."""

    def close(self) -> None:
        """Nothing was started."""

    def prepare(self, aggregate: Aggregate, *, tables: Mapping[str, Table]) -> Run:
        run = super().prepare(aggregate, tables=tables)

        def kept(_: object) -> Counted:
            self.counted.append(run())
            return self.counted[-1]

        return Run(kept)

    def _origin(self, source: Source, columns: Sequence[str]) -> Origin:
        assert source.table is not None
        return Origin(Sql(f"{name('memory')}.{name('main')}.{name(source.table)}"))  # a key list may have its name

    def _ask_public(self, statement: Statement, origins: Iterable[Origin]) -> list[list[Any]]:
        self._looking = True
        try:
            return super()._ask_public(statement, origins)
        finally:
            self._looking = False

    def _ask(self, statement: Statement, origins: Iterable[Origin]) -> list[list[Any]]:
        if not self._looking:
            self.reads.append(self.watch())
            if self.broken:
                return [["nonsense"]]
        for table in [one for one in self.waiting if name(one) in statement.sql]:
            self.waiting.pop(table)()
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


Texts = list[list[str | None]]
"""What a table is filled from: the values of each column as texts."""


def fill(connection: Any, table: str, columns: Sequence[tuple[str, Kind]], rows: Sequence[Mapping[str, Any]]) -> None:
    """A table with these rows."""
    _filled(connection, table, columns, _texts(columns, rows))


def _texts(columns: Sequence[tuple[str, Kind]], rows: Sequence[Mapping[str, Any]]) -> Texts:
    return [[_text(row[called]) for row in rows] for called, _ in columns]


def _filled(connection: Any, table: str, columns: Sequence[tuple[str, Kind]], values: Texts) -> None:
    lists = ", ".join(f"unnest(CAST(${place} AS VARCHAR[])) AS v{place}" for place in range(1, len(columns) + 1))
    casts = ", ".join(
        f"CAST(v{place} AS {engine_type(kind)}) AS {name(called)}" for place, (called, kind) in enumerate(columns, 1)
    )
    connection.execute(f"CREATE OR REPLACE TABLE {name(table)} AS SELECT {casts} FROM (SELECT {lists})", values)


def _text(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case date():
            return value.isoformat()
    return str(value)


def placed(policy: Policy) -> Policy:
    """The policy over tables of a connection, whatever its own sources are."""
    source = Source(format="duckdb", paths=("/nowhere.duckdb",), table="")
    tables = {one.name: replace(one, source=replace(source, table=one.name)) for one in policy.tables.values()}
    return replace(policy, tables=tables)


class World:
    """Rows of a policy's tables, one set at a time; an account with the whole budget, and a ledger, for each set."""

    def __init__(self, policy: Policy, *, folder: Path | None = None) -> None:
        own = tempfile.TemporaryDirectory(prefix="hubbub-audit-", dir=_in_memory()) if folder is None else None
        place = Path(own.name) if own is not None else folder
        assert place is not None
        self.policy = placed(policy)
        self.ledger = Ledger(place / "ledger", marks=Marks(place / "marks"))
        self.engine = Inside(connected())
        self._there: dict[str, Texts] = {}
        self._end = weakref.finalize(self, _end, self.ledger, self.engine.connection, own)

    def put(self, tables: Tables, *, threads: int = 1) -> None:
        """Rows in place of those that the tables had; a table that has these very rows already stays as it is, and one
        that no statement names is not filled.
        """
        self.engine.connection.execute(f"SET threads = {threads}")
        for called, rows in tables.items():
            kinds = [(column.name, column.kind) for column in self.policy.tables[called].columns]
            self.engine.waiting[called] = partial(self._fill, called, kinds, _texts(kinds, rows))

    def _fill(self, called: str, kinds: Sequence[tuple[str, Kind]], values: Texts) -> None:
        if self._there.get(called) != values:
            self._there.pop(called, None)
            _filled(self.engine.connection, called, kinds, values)
            self._there[called] = values

    def opened(self) -> Database:
        """What is there now, to be asked: another version of the data, and an account of its own."""
        version = str(next(VERSIONS))
        policy = replace(self.policy, account=f"{self.policy.account[:100]} {version}", version=version)
        self.engine.reads.clear()
        self.engine.counted.clear()
        self.engine.broken = False
        return Database(policy, ledger=self.ledger, engine=self.engine)

    def close(self) -> None:
        self._end()


def _in_memory() -> str | None:
    """A folder that no disk is behind, where the system has one: made-up tables outlive no audit, and nor does what was
    paid for them. What a ledger does with a disk is looked at where the gate is (`hubbub.testing.town`).
    """
    return next((place for place in _MEMORY if os.access(place, os.W_OK | os.X_OK)), None)


def _end(ledger: Ledger, connection: Any, own: Any) -> None:
    connection.close()
    ledger.close()
    if own is not None:
        own.cleanup()


@contextmanager
def fixed_key(key: int = FIXED) -> Iterator[list[int]]:
    """The key that chooses a unit's groups is the same in every run; what is given back says how often it was asked."""
    held: Any = engine_module
    asked: list[int] = []

    def randbits(bits: int) -> int:
        asked.append(bits)
        return key >> (64 - bits)

    real, held.secrets = held.secrets, SimpleNamespace(randbits=randbits)
    try:
        yield asked
    finally:
        held.secrets = real


def counted(db: Database, plan: Plan, *, key: int = FIXED) -> list[Counted]:
    """The exact numbers of each grouping: what nobody sees but an audit of tables that were made up."""
    with fixed_key(key):
        return [db.counting(one)() for one in plan.sets or (plan,)]


def counted_by(db: Database, plan: Plan, *, keys: Sequence[int]) -> tuple[list[tuple[Counted, ...]], bool]:
    """The same under each of several keys, and whether a key was asked for: where none is, one run says it all."""
    found = []
    for key in keys:
        with fixed_key(key) as asked:
            found.append(tuple(db.counting(one)() for one in plan.sets or (plan,)))
        if not asked:
            return found, False
    return found, True


def exact(db: Database, text: str) -> list[tuple[int, ...]]:
    """The exact tallies, group by group."""
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
    entry: int | None = None
    """The charge that paid for it."""
    keyed: bool = True
    """Whether a secret chose the groups of units."""
    raised: type[BaseException] | None = None
    """The class of the error."""


def ask(
    db: Database, text: str, *, epsilon: Fraction | None = Fraction(1), delta: Fraction | None = None, seed: int = 0
) -> Seen:
    """Ask with replayed noise."""
    before = db.ledger.statement(db.policy.account).spent.loss
    with fixed_key() as asked, replayed(seed) as source:
        try:
            answer = db.sql(text, epsilon=epsilon, delta=delta)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            return Seen(
                outcome=f"{type(error).__name__}: {error}",
                draws=tuple(source.draws),
                charged=db.ledger.statement(db.policy.account).spent.loss - before,
                raised=type(error),
            )
    plan = answer.plan
    return Seen(
        outcome="answered",
        public=(plan.aggregate, plan.mechanisms, plan.cost, answer.columns, plan.question.text, plan.cells),
        draws=tuple(source.draws),
        noisy=answer.noisy,
        plan=plan,
        charged=db.ledger.statement(db.policy.account).spent.loss - before,
        entry=answer.entry,
        keyed=bool(asked),
    )


def escaped(raised: type[BaseException] | None, *, charged: bool) -> list[str]:
    """Report an error that no question may end with: after the charge there is one, and before it only ours."""
    if raised is None or raised is EngineError:
        return []
    if not issubclass(raised, HubbubError):
        return [f"{raised.__name__} has escaped"]
    return [f"{raised.__name__} was raised after the charge"] if charged else []


def faults(one: Seen, other: Seen, *, same: bool = False) -> list[str]:
    """What the other run shows that it must not; ``same``: the data says the same of every unit, so nothing differs."""
    found = [
        *(fault for side in (one, other) for fault in escaped(side.raised, charged=bool(side.charged))),
        *(
            f"{what} differ: {getattr(one, what)!r:.300} and {getattr(other, what)!r:.300}"
            for what in ("outcome", "public", "draws", "charged")
            if getattr(one, what) != getattr(other, what)
        ),
    ]
    if found or one.plan is None:
        return found
    found += in_bins(one, other, same=same)
    for place, (left, right) in enumerate(zip(one.noisy, other.noisy, strict=True)):
        choice = one.plan.choice(place)
        if choice is not None and choice.wanted is not Wanted.COUNTS:
            if same and left != right:
                found.append(f"choice {place} moved, and no unit's rows did")
            continue
        steps = [abs(a - b) for a, b in zip(left, right, strict=True)]
        if same and any(steps):
            found.append(f"tally {place} moved, and no unit's rows did")
        found += too_far(f"tally {place}", steps, one.plan, place)
    return found


def too_far(what: str, steps: Sequence[int], plan: Plan, place: int) -> list[str]:
    """Where a vector has moved further than was proven."""
    proven = plan.sensitivity(place)
    moved = (
        ("groups", sum(step != 0 for step in steps), proven.l0),
        ("steps in one group", max(steps, default=0), proven.linf),
        ("steps in L1", sum(steps), proven.in_norm(Norm.L1)),
        ("squared steps in L2", sum(step * step for step in steps), proven.in_norm(Norm.L2)),
    )
    return [
        f"{what} moved by {step} {unit}, and {allowed} was proven"
        for unit, step, allowed in moved
        if allowed is None or step > allowed
    ]


def in_bins(one: Seen, other: Seen, *, same: bool) -> list[str]:
    """Histograms differ in rows of one unit: so many, in so many groups."""
    found: list[str] = []
    if one.plan is None:
        return found
    for place in range(len(one.plan.mechanisms) if one.bins and other.bins else 0):
        choice = one.plan.choice(place)
        if choice is None:
            continue
        pairs = zip(one.bins[choice.histogram], other.bins[choice.histogram], strict=True)
        moved = [rows_apart(one.plan, left, right) for left, right in pairs]
        found += [
            f"choice {place} lost or won {rows} rows in a group, and {choice.rows} was proven"
            for rows in moved
            if rows > choice.rows
        ]
        proven, groups = one.plan.sensitivity(place), sum(rows > 0 for rows in moved)
        if same and groups:
            found.append(f"choice {place} moved, and no unit's rows did")
        if proven.l0 is None or groups > proven.l0:
            found.append(f"choice {place} moved in {groups} groups, and {proven.l0} was proven")
    return found


def rows_apart(plan: Plan, left: Bins, right: Bins) -> int:
    """By how many rows two histograms of a group differ, as neighbours are counted."""
    a, b = (Counter(dict(side.pairs())) for side in (left, right))
    gone, come = (a - b).total(), (b - a).total()
    return max(gone, come) if plan.policy.budget.neighbors is Neighbors.REPLACE_ONE else gone + come


class Handed:
    """A question of which the exact tallies are handed in: plan, gate and noise are the product's own."""

    def __init__(self, db: Database, plan: Plan) -> None:
        self._plan = plan
        self._db = db
        self._meter = Meter({db.policy.account: Budget(epsilon=Fraction(10**9), delta=db.policy.budget.delta)})

    def draw(self, cells: list[tuple[int, ...]] | Counted) -> tuple[int, ...]:
        """One answer: all noisy numbers, a tally after the other."""
        held = cells if isinstance(cells, Counted) else Counted(cells=(), tallies=cells)
        noisy = json.loads(self._db._measured(self._plan, lambda: held, self._meter))["noisy"]
        return tuple(value for tally in noisy for value in tally)
