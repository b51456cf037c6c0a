"""One line of the ledger, and the chain that ties it to every line before it.

The hash of an entry covers the hash before it, so changing, dropping, inserting or reordering anything breaks the chain
at the first place that was touched. The chain is not keyed: whoever can rewrite the whole file can rewrite the whole
chain. What catches that is the mark outside the file (``marks``).
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

GENESIS = "0" * 64
"""What the first entry is chained to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry as it was written: ``body`` is canonical JSON, kept and hashed as the very text it is."""

    seq: int
    time: int
    """Microseconds since 1970 in UTC; never goes back, whatever the clock does."""
    kind: str
    body: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body, read."""
        read: dict[str, Any] = json.loads(self.body)
        return read

    @property
    def moment(self) -> datetime:
        """The time at which the entry was written."""
        return moment_of(self.time)


def moment_of(time: int) -> datetime:
    """Ledger time for a person."""
    return datetime.fromtimestamp(time // 1_000_000, UTC).replace(microsecond=time % 1_000_000)


def day_of(time: int) -> str:
    """Ledger time to the day."""
    return f"{moment_of(time):%Y-%m-%d}"


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII only, no NaN."""
    return _CANONICAL.encode(value)


def digest_of(value: object) -> str:
    """A short name for a value: the SHA-256 of its canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def chain_hash(previous: str, *, seq: int, time: int, kind: str, body: str) -> str:
    """The hash of an entry: no two different lines share a text, since only the body may hold a newline."""
    return hashlib.sha256(f"{previous}\n{seq}\n{time}\n{kind}\n{body}".encode()).hexdigest()


def ratio(value: Fraction) -> str:
    """An exact number as the text "p/q"."""
    return f"{value.numerator}/{value.denominator}"
