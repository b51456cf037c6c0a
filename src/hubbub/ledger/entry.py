"""One line of the ledger, the chain that ties it to every line before, and the exact values that it keeps as JSON.

Whatever a mechanism can return is here; anything else is refused. Nothing that is stored is ever executed.

The hash of an entry covers the hash before it, so changing, dropping, inserting or reordering anything breaks the chain
at the first place that was touched. The chain is not keyed: whoever can rewrite the whole file can rewrite the whole
chain. What catches that is the mark outside the file (``marks``).
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import LedgerCorrupt, ParameterError

_DTYPES = ("bool", "int64", "uint64", "float64", "object")


def write(value: Any) -> str:
    """The text to store."""
    return canonical(_write(value))


def read(text: str) -> Any:
    """Read the value that ``write`` wrote."""
    try:
        return _read(json.loads(text))
    except (ValueError, KeyError, TypeError) as problem:
        raise LedgerCorrupt("A stored answer cannot be read by this version of Hubbub.") from problem


def _write(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case np.bool_() | np.integer() | np.floating():
            return {"scalar": value.dtype.name, "value": _write(value.item())}
        case int():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case Fraction():
            return {"ratio": ratio(value)}
        case np.ndarray() if value.dtype.name in _DTYPES:
            flat = [_write(item) for item in value.reshape(-1).tolist()]
            return {"array": flat, "dtype": value.dtype.name, "shape": list(value.shape)}
        case tuple():
            return {"tuple": [_write(item) for item in value]}
        case list():
            return [_write(item) for item in value]
        case dict():
            return {"map": [[_write(key), _write(item)] for key, item in value.items()]}
    raise ParameterError("answer", "numbers, text, or sequences, mappings and arrays of them", type(value).__name__)


def _read(stored: Any) -> Any:
    match stored:
        case None | bool() | str() | int() | float():
            return stored
        case list():
            return [_read(item) for item in stored]
        case dict():
            (tag,) = (tag for tag in _TAGS if tag in stored)
            return _TAGS[tag](stored)
    raise TypeError(type(stored).__name__)


def _array(stored: dict[str, Any]) -> Any:
    if stored["dtype"] not in _DTYPES:
        raise TypeError(stored["dtype"])
    flat = np.empty(len(stored["array"]), dtype=stored["dtype"])
    flat[:] = [_read(item) for item in stored["array"]]
    return flat.reshape(stored["shape"])


def _scalar(stored: dict[str, Any]) -> Any:
    return np.asarray(_read(stored["value"]), dtype=_check_type(stored["scalar"]))[()]


def _check_type(name: str) -> str:
    if name not in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
    ):
        raise TypeError(name)
    return name


_TAGS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "array": _array,
    "scalar": _scalar,
    "float": lambda stored: float(stored["float"]),
    "ratio": lambda stored: Fraction(stored["ratio"]),
    "tuple": lambda stored: tuple(_read(item) for item in stored["tuple"]),
    "map": lambda stored: {_read(key): _read(item) for key, item in stored["map"]},
}


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
