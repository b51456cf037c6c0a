"""The product inside this process (`audit.subjects.in_process.inside`), with stays and places to ask about."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hubbub.audit.subjects.in_process.inside import VERSIONS as _VERSIONS
from hubbub.audit.subjects.in_process.inside import (
    Handed,
    Inside,
    Rows,
    Seen,
    ask,
    connected,
    exact,
    faults,
    fill,
    fixed_key,
)
from hubbub.engines.duckdb import engine as engine_module
from hubbub.ledger import Ledger, Marks
from hubbub.policy.kinds import Kind, Type, integer, of
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database

__all__ = [
    "PLACES",
    "PUBLIC",
    "STAYS",
    "TABLES",
    "WARDS",
    "_VERSIONS",
    "Handed",
    "Inside",
    "Rows",
    "Seen",
    "SimpleNamespace",
    "World",
    "ask",
    "connected",
    "engine_module",
    "exact",
    "faults",
    "fixed_key",
    "row",
]

WARDS = ("a", "b", "c", "\x1b[31mred", "<img src=x onerror=alert(1)>")
"""Public keys; two of them are attacks on whoever looks at them."""

_ANY = of(Type.INTEGER)
STAYS: tuple[TableColumn, ...] = (
    TableColumn(name="person", kind=_ANY),
    TableColumn(name="ward", kind=of(Type.TEXT), keys=WARDS),
    TableColumn(name="cost", kind=of(Type.REAL), bounds=(Fraction(0), Fraction(100))),
    TableColumn(name="nights", kind=integer(-(1 << 31), (1 << 31) - 1), bounds=(Fraction(0), Fraction(10))),
    TableColumn(name="points", kind=_ANY),
    TableColumn(name="day", kind=of(Type.DATE)),
    TableColumn(name="urgent", kind=of(Type.BOOLEAN)),
)
PLACES: tuple[TableColumn, ...] = (
    TableColumn(name="id", kind=of(Type.TEXT)),
    TableColumn(name="floor", kind=_ANY),
    TableColumn(name="beds", kind=_ANY, bounds=(Fraction(0), Fraction(50))),
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


def _table(name: str, columns: tuple[TableColumn, ...], unit: str | None) -> Table:
    source = TableSource(format="duckdb", paths=("/nowhere.duckdb",), table=name)
    return Table(name=name, source=source, columns=columns, unit=unit)


TABLES = {"stays": _table("stays", STAYS, "person"), "places": _table("places", PLACES, None)}


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
        unique: bool = False,
    ) -> Database:
        """These rows, to be asked; what is not declared is refused, unless it may be bought.

        ``unique``: the owner's check has seen, of rows of before, that a unit has at most one.
        """
        self.engine.connection.execute(f"SET threads = {threads}")
        fill(self.engine.connection, "stays", _kinds(STAYS), rows)
        policy = Policy(
            account="people",
            budget=self.budget,
            tables={**TABLES, "stays": replace(TABLES["stays"], unique=unique)},
            limits=replace(limits or Limits(max_groups=2, max_rows=3), buy=buys),
            version=str(next(_VERSIONS)) if version is None else str(version),
            enforced=frozenset({"stays"} if unique else ()),
            seen={"stays": NO_FILES} if unique else {},
        )
        return Database(policy, ledger=self.ledger, engine=self.engine)

    def close(self) -> None:
        self.engine.connection.close()
        self.ledger.close()


def _kinds(columns: Sequence[TableColumn]) -> list[tuple[str, Kind]]:
    return [(column.name, column.kind) for column in columns]
