"""The interface of a store, and nothing more: one connection that writes alone, and one that reads.

Everything that decides anything (caps, grants, keys, the chain) is written once, above this line, in SQL that both
stores read alike. A store gives the sole right to write, durable commits, and errors with a name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Row = tuple[Any, ...]


class Interrupted(Exception):
    """The transaction ended and nobody knows how: connect again, and look before doing it again."""


class StoreSession(Protocol):
    """One connection. Statements use ``?`` for values; every failure is a LedgerError or Interrupted."""

    def begin(self) -> None:
        """Wait for the sole right to write; from here on, nothing that is read can change under us."""

    def rows(self, sql: str, *values: object) -> Sequence[Row]:
        """Return the rows of a statement."""

    def run(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""

    def has(self, table: str) -> bool:
        """Return True if there is such a table."""

    def commit(self) -> None:
        """Return only when everything since ``begin`` is on disk."""

    def rollback(self) -> None:
        """Undo everything since ``begin``; never fails, also after a failure."""

    def close(self) -> None:
        """Let go of the connection."""


class Store(Protocol):
    """A place where a ledger is kept."""

    location: str
    """For people, without passwords."""
    whole: str
    """The type of a 64-bit integer that may be a primary key."""
    guard: tuple[str, ...]
    """Statements that forbid changing or deleting entries."""
    snapshot: str
    """The statement after which a reader sees one moment, until ``rollback``."""

    def exists(self) -> bool:
        """Return True if the ledger is there already."""

    def writer(self) -> StoreSession:
        """A connection that can write."""

    def reader(self) -> StoreSession:
        """A connection that cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of the chain."""

    ledger: str
    """A random name, given once: copies share it."""
    seq: int
    time: int
    hash: str
