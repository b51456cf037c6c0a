"""A made-up town behind the real gate: session, plans, ledger and noise are the product's own, the numbers are not.

Whoever reads is seen: the engine and the sealed values note at every look what the ledger's file holds at that moment,
read by a connection of its own, so that a charge that is not on disk yet has not been made.
"""

import itertools
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.engines.base import Run
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.lower.blocks import make_up_rows
from hubbub.errors import EngineError
from hubbub.gate.secret import Facts, Sealed, Secret
from hubbub.ledger import OWNER, Ask, Ledger, Marks, Ticket
from hubbub.ledger.terms import Charged
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import LOSS_UNIT, Budget
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.ops import ExactCounts
from hubbub.query.requests import BlockRows, Request, Tallies
from hubbub.session.database import Database

ACCOUNT = "people"
WARDS = ("a", "b", "c")
POINTS = ("before the charge", "after the charge", "while reading", "while drawing", "before storing", "after storing")
"""Where a question may be cut short."""


class Crash(Exception):
    """The end of a process, as far as whoever asks can tell."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The contents of the ledger's file."""

    charges: tuple[Mapping[str, Any], ...]
    answers: tuple[Mapping[str, Any], ...]
    facts: tuple[Mapping[str, Any], ...]

    @property
    def cost(self) -> Fraction:
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


def seal(town: "Town", value: Any, facts: Facts | None = None) -> Secret[Any]:
    """Return a Secret that notes when it is opened."""

    def read() -> Any:
        town.read()
        return value

    proven = Sensitivity(l0=1, linf=Fraction(1))
    return Secret(Sealed.later(read), facts or Facts(account=ACCOUNT, sensitivity=proven))


class _MadeUp(DuckDB):
    """An engine without data."""

    def __init__(self, town: "Town") -> None:
        self._town = town
        self._limits, self._log = Limits(), None

    def close(self) -> None:
        """Nothing was started."""

    def rouse(self) -> None:
        """Nothing sleeps."""

    def prepare(self, request: Request, *, tables: Mapping[str, Table]) -> Run[Any]:
        def read(_: object) -> Any:
            self._town.read()
            if isinstance(request, BlockRows):
                return [make_up_rows(request.columns) for _ in range(request.blocks)]
            assert isinstance(request, Tallies)
            groups, tallies = request.aggregate.groups, request.aggregate.tallies
            cells = tuple(itertools.product(*(group.values for group in groups)))
            bins = tuple(tuple(StepCounts.of([(1, 40), (2, 30)]) for _ in cells) for _ in request.aggregate.histograms)
            return ExactCounts(cells=cells, tallies=[(50,) * len(tallies) for _ in cells], histograms=bins)

        return Run(read)


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
        self.ledger = self._open_ledger()
        self.ledger.open_account(ACCOUNT, self.budget)
        for who in ("ann", "bob"):
            self.ledger.grant(ACCOUNT, who, limit=self.budget)

    def _open_ledger(self) -> Breakable:
        ledger = Breakable(self.path, marks=self._marks)
        ledger.town = self
        return ledger

    def reopen(self) -> None:
        """Another process comes, and finds what is on disk."""
        self.ledger.close()
        self.broken_at, self.failing = None, False
        self.ledger = self._open_ledger()

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
        """Read the present contents of the file, as anybody can."""
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
            TableColumn(name="person", kind=of(Type.INTEGER)),
            TableColumn(name="ward", kind=of(Type.TEXT), keys=WARDS),
            TableColumn(name="cost", kind=integer(-(1 << 31), 1 << 31), bounds=(Fraction(0), most) if bounds else None),
            TableColumn(
                name="other", kind=integer(-(1 << 31), 1 << 31), bounds=(Fraction(0), most) if bounds else None
            ),
        )
        source = TableSource(format="duckdb", paths=("/nowhere.duckdb",), table="stays")
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
