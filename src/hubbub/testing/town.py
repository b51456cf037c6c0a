"""A made-up town behind the real gate: session, plans, ledger and noise are the product's own, the numbers are not.

Whoever reads is seen: the engine and the sealed values note at every look what the ledger's file holds at that moment,
read by a connection of its own, so that a charge that is not on disk yet has not been made.
"""

import itertools
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.engines.blocks import Rows, made_up
from hubbub.engines.duckdb import DuckDB
from hubbub.engines.run import Run
from hubbub.errors import EngineError
from hubbub.ledger import OWNER, Ask, Ledger, Marks, Ticket
from hubbub.ledger.terms import Charged
from hubbub.mechanisms.bins import Bins
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.tables import Column, Limits, Policy, Source, Table
from hubbub.privacy.budget import Budget
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.expression import Expression
from hubbub.query.ops import Aggregate, Counted, Relation
from hubbub.secret import Facts, Secret
from hubbub.session import Database

ACCOUNT = "people"
WARDS = ("a", "b", "c")
POINTS = ("before the charge", "after the charge", "while reading", "while drawing", "before storing", "after storing")
"""Where a question may be cut short."""


class Crash(Exception):
    """The end of a process, as far as whoever asks can tell."""


@dataclass(frozen=True, slots=True)
class Disk:
    """What lies in the ledger's file."""

    charges: tuple[Mapping[str, Any], ...]
    answers: tuple[Mapping[str, Any], ...]
    facts: tuple[Mapping[str, Any], ...]

    @property
    def spent(self) -> Fraction:
        """ε of all charges."""
        return sum((one["loss"] * LOSS_UNIT for one in self.charges), Fraction(0))


class Breakable(Ledger):
    """A ledger whose process can be ended before or after each of its two writes."""

    town: "Town"

    def reserve(self, ask: Ask, *, meanwhile: Callable[[], None] | None = None) -> Ticket:
        self.town.reach("before the charge")
        ticket = super().reserve(ask, meanwhile=meanwhile)
        self.town.reach("after the charge")
        return ticket

    def settle(self, paid: Charged, answer: str) -> str:
        self.town.reach("before storing")
        stored = super().settle(paid, answer)
        self.town.reach("after storing")
        return stored


class Sealed(Secret[Any]):
    """A Secret that notes when it is opened."""

    __slots__ = ("_exact", "_town")

    _exact: Any
    _town: "Town"

    def __init__(self, town: "Town", value: Any, facts: Facts | None = None) -> None:
        object.__setattr__(self, "_town", town)
        object.__setattr__(self, "_exact", value)
        proven = Sensitivity(l0=1, linf=Fraction(1))
        object.__setattr__(self, "facts", facts or Facts(account=ACCOUNT, sensitivity=proven))

    @property
    def _Secret__value(self) -> Any:  # noqa: N802 - where the gate looks
        self._town.read()
        return self._exact


class _MadeUp(DuckDB):
    """An engine without data."""

    def __init__(self, town: "Town") -> None:
        self._town = town
        self._limits, self._log = Limits(), None

    def close(self) -> None:
        """Nothing was started."""

    def prepare(self, aggregate: Aggregate, *, tables: Mapping[str, Table]) -> Run:
        cells = tuple(itertools.product(*(group.values for group in aggregate.groups)))

        def run(_: object) -> Counted:
            self._town.read()
            held = tuple(tuple(Bins.of([(1, 40), (2, 30)]) for _ in cells) for _ in aggregate.histograms)
            return Counted(cells=cells, tallies=[(50,) * len(aggregate.tallies) for _ in cells], histograms=held)

        return Run(run)

    def blocks(
        self,
        relation: Relation,
        columns: Sequence[tuple[str, Expression]],
        *,
        tables: Mapping[str, Table],
        blocks: int,
    ) -> Callable[[], list[Rows]]:
        def run() -> list[Rows]:
            self._town.read()
            return [made_up(columns) for _ in range(blocks)]

        return run


class Town:
    """One ledger, one table, and eyes on everything that is read."""

    def __init__(self, folder: Path, *, budget: Budget | None = None) -> None:
        self.path, self._marks = folder / "ledger", Marks(folder / "marks")
        self.budget = budget or Budget(epsilon=Fraction(100))
        self.broken_at: str | None = None
        self.failing = False
        """Whether the engine fails whenever it reads."""
        self.seen: list[Disk] = []
        """What was on disk at each look at the data."""
        self.ledger = self._opened()
        self.ledger.open_account(ACCOUNT, self.budget)
        for who in ("ann", "bob"):
            self.ledger.grant(ACCOUNT, who, limit=self.budget)

    def _opened(self) -> Breakable:
        ledger = Breakable(self.path, marks=self._marks)
        ledger.town = self
        return ledger

    def reopened(self) -> None:
        """Another process comes, and finds what is on disk."""
        self.ledger.close()
        self.broken_at, self.failing = None, False
        self.ledger = self._opened()

    def reach(self, point: str) -> None:
        """Go on, or end here."""
        if point == self.broken_at:
            raise Crash(point)

    def read(self) -> None:
        """Somebody looks at the data."""
        self.seen.append(self.disk())
        self.reach("while reading")
        if self.failing:
            raise EngineError

    def disk(self) -> Disk:
        """What is in the file now, for anybody who looks."""
        with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT seq, kind, body FROM entries ORDER BY seq").fetchall()
        held: dict[str, list[dict[str, Any]]] = {"charge": [], "answer": [], "fact": []}
        for seq, kind, body in rows:
            held.setdefault(kind, []).append({"seq": seq} | json.loads(body))
        return Disk(tuple(held["charge"]), tuple(held["answer"]), tuple(held["fact"]))

    def database(self, *, version: str = "1", principal: str = OWNER, bounds: bool = True) -> Database:
        """The town's table, to be asked; where no bounds are declared they are bought."""
        most = Fraction(100)
        columns = (
            Column(name="person", kind=of(Type.INTEGER)),
            Column(name="ward", kind=of(Type.TEXT), keys=WARDS),
            Column(name="cost", kind=integer(-(1 << 31), 1 << 31), bounds=(Fraction(0), most) if bounds else None),
            Column(name="other", kind=integer(-(1 << 31), 1 << 31), bounds=(Fraction(0), most) if bounds else None),
        )
        source = Source(format="duckdb", paths=("/nowhere.duckdb",), table="stays")
        policy = Policy(
            account=ACCOUNT,
            budget=self.budget,
            tables={"stays": Table(name="stays", source=source, columns=columns, unit="person")},
            limits=Limits(max_groups=2, max_rows=2, buy=not bounds),
            version=version,
        )
        return Database(policy, ledger=self.ledger, engine=_MadeUp(self), principal=principal)

    def close(self) -> None:
        self.ledger.close()


@contextmanager
def town(*, budget: Budget | None = None) -> Iterator[Town]:
    """A town for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="hubbub-audit-") as folder:
        made = Town(Path(folder), budget=budget)
        try:
            yield made
        finally:
            made.close()
