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

from hubbub.engines.base import Run
from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.duckdb import engine as engine_module
from hubbub.engines.duckdb import worker, zygote
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.scan import engine_type, quote_name
from hubbub.engines.held import Read
from hubbub.engines.nodes.words import relation
from hubbub.engines.sources.origins import Origin
from hubbub.errors import EngineError, HubbubError
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed, open_sealed
from hubbub.ledger import Ledger, Marks
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Kind
from hubbub.policy.tables import Limits, Policy, Table, TableSource
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.ops import Aggregate, ExactCounts
from hubbub.query.plan.choice import Choice, HistogramStatistic
from hubbub.query.plan.measure import measure_plan
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import QueryMeasurement
from hubbub.query.requests import Request, Tallies
from hubbub.session.database import Database
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
        self.counted: list[ExactCounts] = []
        """All exact numbers that were handed over."""
        self.waiting: dict[str, Callable[[], None]] = {}
        """Tables that are filled when a statement names them, and how."""

    def close(self) -> None:
        """Nothing was started."""

    def rouse(self) -> None:
        """Nothing sleeps."""

    def prepare(self, request: Request, *, tables: Mapping[str, Table]) -> Run[Any]:
        run = super().prepare(request, tables=tables)

        def keep(_: object) -> Any:
            exact = open_sealed(run())
            self.counted.append(exact)
            return exact

        return Run(keep)

    def _origin(self, source: TableSource, columns: Sequence[str]) -> Origin:
        assert source.table is not None
        return Origin(relation("memory", "main", source.table))  # a key list may have its name

    def _ask_public(self, statement: SqlStatement, origins: Iterable[Origin]) -> Read[list[list[Any]]]:
        self._looking = True
        try:
            return super()._ask_public(statement, origins)
        finally:
            self._looking = False

    def _find_rows(self, statement: SqlStatement, origins: Iterable[Origin]) -> Read[list[list[Any]]]:
        if not self._looking:
            self.reads.append(self.watch())
            if self.broken:
                return Read([["nonsense"]])
        for table in [one for one in self.waiting if quote_name(one) in statement.sql]:
            self.waiting.pop(table)()
        try:
            for keys in statement.keys:
                self.connection.execute(
                    f'CREATE OR REPLACE TEMP TABLE "{keys.table}" AS SELECT CAST(v AS {keys.type}) AS "value", '
                    'p AS "place" FROM (SELECT unnest(CAST($1 AS VARCHAR[])) AS v, unnest(CAST($2 AS INTEGER[])) AS p)',
                    [list(keys.values), list(keys.places)],
                )
            rows = self.connection.execute(statement.sql, engine_module.draw_secrets(statement)).fetchall()
            return Read([list(one) for one in rows])
        except duckdb.Error:
            raise EngineError from None


def connected() -> Any:
    """A connection with the settings of the engine's own processes."""
    connection = duckdb.connect(config=zygote.ALONE)
    worker.settle(connection)
    worker.limit(connection, {"memory": "1GB", "temporary": "1GB", "threads": 1, "scratch": ""})
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
        f"CAST(v{place} AS {engine_type(kind)}) AS {quote_name(called)}"
        for place, (called, kind) in enumerate(columns, 1)
    )
    connection.execute(f"CREATE OR REPLACE TABLE {quote_name(table)} AS SELECT {casts} FROM (SELECT {lists})", values)


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
    source = TableSource(format="duckdb", paths=("/nowhere.duckdb",), table="")
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
        """Open what is there now, to be asked: another version of the data, and an account of its own."""
        version = str(next(VERSIONS))
        policy = replace(self.policy, account=f"{self.policy.account[:100]} {version}", version=version)
        self.engine.reads.clear()
        self.engine.counted.clear()
        self.engine.broken = False
        self.ledger.open_account(policy.account, policy.budget)  # for no files: rows that were made up share nobody
        return Database(policy, ledger=self.ledger, engine=self.engine)

    def close(self) -> None:
        self._end()


def _in_memory() -> str | None:
    """A folder that no disk is behind, where the system has one: made-up tables outlive no audit, and nor does what was
    paid for them. What a ledger does with a disk is looked at where the gate is (`hubbub.audit.subjects.gate.town`).
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


def open_read(db: Database, request: Request) -> Any:
    """Read, and open the seal: for audits and tests, of tables that were made up (SOUNDNESS 15)."""
    return open_sealed(db._engine.prepare(request, tables=db.policy.tables)())


def exact_of(db: Database, aggregate: Aggregate) -> ExactCounts:
    """Return what the engine counts for an aggregate."""
    found: ExactCounts = open_read(db, Tallies(aggregate=aggregate))
    return found


def counted(db: Database, plan: Plan, *, key: int = FIXED) -> list[ExactCounts]:
    """The exact numbers of each grouping: what nobody sees but an audit of tables that were made up."""
    with fixed_key(key):
        return [exact_of(db, part.aggregate) for part in plan.sets or (plan,)]


def counted_by(db: Database, plan: Plan, *, keys: Sequence[int]) -> tuple[list[tuple[ExactCounts, ...]], bool]:
    """The same under each of several keys, and whether a key was asked for: where none is, one run says it all."""
    found = []
    for key in keys:
        with fixed_key(key) as asked:
            found.append(tuple(exact_of(db, part.aggregate) for part in plan.sets or (plan,)))
        if not asked:
            return found, False
    return found, True


def exact(db: Database, text: str) -> list[tuple[int, ...]]:
    """The exact tallies, group by group."""
    with fixed_key():
        return exact_of(db, db.plan(text, epsilon=1).aggregate).tallies


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Everything that a question showed and did."""

    outcome: str
    """"answered", or the class and the words of the error."""
    public: tuple[Any, ...] = ()
    """Tallies, mechanisms, groups, price, columns, what is left: none of it may depend on the data."""
    draws: tuple[Any, ...] = ()
    noisy: tuple[tuple[int, ...], ...] = ()
    bins: tuple[tuple[StepCounts, ...], ...] = ()
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
        public=(plan.aggregate, _mechanisms(plan), plan.cost, answer.columns, plan.question.text, plan.cells),
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
    """List what the other run must not show; ``same``: the data says the same of every unit, so nothing differs."""
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
    slots = [slot for part in one.plan.sets or (one.plan,) for slot in part.slots]
    for slot, left, right in zip(slots, one.noisy, other.noisy, strict=True):
        what = "what is told elsewhere" if slot is None else name_statistic(one.plan, slot)
        if same and left != right:
            found.append(f"{what} moved, and no unit's rows did")
        if slot is None or isinstance(slot.take, Choice):
            found += [f"{what} has numbers of its own"] if slot is None and (left or right) else []
            continue
        steps = [abs(a - b) for a, b in zip(left, right, strict=True)]
        found += too_far(what, steps, slot)
    return found


def name_statistic(plan: Plan, measurement: QueryMeasurement) -> str:
    """Name what is measured by what it is for."""
    pairs = list(zip(plan.question.asked, plan.parts, strict=True))
    own = measurement.take
    texts = [
        asked.text
        for asked, part in pairs
        if part.choice == own or any(t in own.tells for t in (*part.tallies, *part.dropped))
    ]
    kind = "choice" if isinstance(own, HistogramStatistic) else "dropped part" if own.is_dropped else "tally"
    return f"{kind} of {', '.join(dict.fromkeys(texts))}"


def _mechanisms(plan: Plan) -> tuple[Any, ...]:
    return tuple(one.mechanism for part in plan.sets or (plan,) for one in part.measurements)


def too_far(what: str, steps: Sequence[int], measurement: QueryMeasurement) -> list[str]:
    """Say where a vector has moved further than was proven."""
    proven = measurement.sensitivity
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
    for measurement in one.plan.measurements if one.bins and other.bins else ():
        choice = measurement.take
        if not isinstance(choice, HistogramStatistic):
            continue
        what = name_statistic(one.plan, measurement)
        pairs = zip(one.bins[choice.column], other.bins[choice.column], strict=True)
        moved = [rows_apart(one.plan, left, right) for left, right in pairs]
        found += [
            f"{what} lost or won {rows} rows in a group, and {choice.rows} was proven"
            for rows in moved
            if rows > choice.rows
        ]
        proven, groups = measurement.sensitivity.l0, sum(rows > 0 for rows in moved)
        if same and groups:
            found.append(f"{what} moved, and no unit's rows did")
        if proven is None or groups > proven:
            found.append(f"{what} moved in {groups} groups, and {proven} was proven")
    return found


def rows_apart(plan: Plan, left: StepCounts, right: StepCounts) -> int:
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

    def draw(self, cells: list[tuple[int, ...]] | ExactCounts) -> tuple[int, ...]:
        """One answer: all noisy numbers, a tally after the other."""
        held = cells if isinstance(cells, ExactCounts) else ExactCounts(cells=(), tallies=cells)
        noisy = json.loads(measure_plan(self._plan, Sealed(held), self._meter))["noisy"]
        return tuple(value for tally in noisy for value in tally)
