"""The bytes that go to a program and that come back. Nothing here raises: a block that cannot be sent, or whose answer
cannot be read, has no answer, and the others know nothing of it.
"""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

Rows = Mapping[str, tuple[str, list[Any]]]
"""Columns: their type, and their values."""
Output = tuple[float, ...] | None
MOST_ANSWER = 1 << 20
"""Bytes of an answer that are read."""


def encode(rows: Rows, *, command: bool) -> bytes | None:
    """Write rows as JSON for a function, and as CSV for a command; None if that cannot be done."""
    try:
        return _table(rows) if command else json.dumps(rows).encode()
    except Exception:  # whatever a value may be
        return None


def _table(rows: Rows) -> bytes:
    """CSV with a header; missing values are empty."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows)
    writer.writerows(zip(*(values for _, values in rows.values()), strict=True))
    return written.getvalue().encode("utf-8", "replace")


def decode(heard: bytes, *, width: int, command: bool) -> Output:
    """Read an answer: as many numbers as there should be, or None for anything else."""
    try:
        numbers = _read_printed(heard) if command else _read_list(heard)
    except Exception:  # whatever a program may say
        return None
    return numbers if len(numbers) == width and len(heard) <= MOST_ANSWER else None


def _read_list(heard: bytes) -> tuple[float, ...]:
    numbers = json.loads(heard)["output"]
    if not isinstance(numbers, list) or not all(isinstance(number, float) for number in numbers):
        raise ValueError("a list of reals")
    return tuple(numbers)


def _read_printed(heard: bytes) -> tuple[float, ...]:
    return tuple(float(word) for word in heard.decode("ascii").replace(",", " ").split())


def decode_problem(heard: bytes) -> str | None:
    """Read why a program could not be loaded, as its process said it before it had any row."""
    try:
        problem = json.loads(heard)["problem"]
    except Exception:
        return None
    return problem if isinstance(problem, str) else None
