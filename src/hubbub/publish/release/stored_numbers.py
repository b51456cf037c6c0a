"""Noisy numbers as text: exact, compact, and of a stated version. All of them are public.

Whole numbers are kept in the fewest bytes that hold all of them, compressed; those beyond 64 bits as decimal digits.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.strategies.layer import Array

VERSION = 1
_WHOLE = ("<i1", "<i2", "<i4", "<i8")
_REAL = "<f8"
_WIDE = "digits"
_MOST_BYTES = 1 << 32
_LARGE = 1 << 20


def pack(values: Any) -> dict[str, Any]:
    """An array, or a single number, as JSON can hold it."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and array.dtype != np.uint64:
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        kind = next(one for one in _WHOLE if np.iinfo(one).min <= low and high <= np.iinfo(one).max)
        body = array.astype(kind).tobytes()
    elif array.dtype.kind == "f":
        kind, body = _REAL, array.astype(_REAL).tobytes()
    elif array.dtype in (object, np.uint64):
        kind, body = _WIDE, json.dumps([_exact(one) for one in array.reshape(-1)]).encode()
    else:
        raise ParameterError("values", "numbers", str(array.dtype))
    return {"kind": kind, "shape": list(array.shape), "data": base64.b64encode(_compress(body)).decode()}


def _compress(body: bytes) -> bytes:
    """Noise does not repeat itself: of large bodies only bytes are weighed by how often they come, which is as short as
    looking for repetitions, and some ten times faster."""
    if len(body) < _LARGE:
        return zlib.compress(body, 6)
    made = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return made.compress(body) + made.flush()


def _exact(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterError("values", "whole numbers", value)
    return str(int(value))


def unpack(told: Any) -> Array:
    """The array that was packed; ParameterError for anything else."""
    match told:
        case {"kind": str(kind), "shape": [*shape], "data": str(data)} if all(
            type(length) is int and length >= 0 for length in shape
        ):
            pass
        case _:
            raise ParameterError("numbers", "packed by this version", type(told).__name__)
    try:
        opened = zlib.decompressobj()
        body = opened.decompress(base64.b64decode(data, validate=True), _MOST_BYTES)
        if opened.unconsumed_tail:
            raise ValueError("too long")
        if kind in {*_WHOLE, _REAL}:
            found = np.frombuffer(body, dtype=kind)
            return found.astype(np.float64 if kind == _REAL else np.int64).reshape(shape)
        if kind == _WIDE:
            digits = [int(one) for one in json.loads(body)]
            return np.array(digits, dtype=object).reshape(shape)
    except (ValueError, zlib.error, TypeError) as problem:
        raise ParameterError("numbers", "packed by this version", str(problem)) from None
    raise ParameterError("numbers", f"of one of the kinds {', '.join((*_WHOLE, _REAL, _WIDE))}", kind)


def all_packed(noisy: Sequence[Any]) -> list[dict[str, Any]]:
    """One after the other."""
    return [pack(one) for one in noisy]


def all_unpacked(told: Any) -> tuple[Array, ...]:
    """One after the other; a single number comes back as an array without dimensions."""
    if not isinstance(told, list):
        raise ParameterError("numbers", "a list", type(told).__name__)
    return tuple(unpack(one) for one in told)
