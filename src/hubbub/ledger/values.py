"""Stored answers: JSON that gives back the very value, numbers exact, arrays with their type.

Whatever a mechanism can return is here; anything else is refused. Nothing that is stored is ever executed.
"""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import LedgerCorrupt, ParameterError
from hubbub.ledger.entry import canonical, ratio

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
