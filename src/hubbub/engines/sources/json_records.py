"""JSON, object by object: one on each line, or all of them in one array.

A line that is no object, or whose object has a name twice (capitals do not count, as in SQL), is left out. An array is
one text: if it is malformed, the file is refused when it is opened; elements that are no such objects are left out.
Blank lines and objects without a value are no rows.

The columns are the names in the order in which they appear first. Values are written as ``cell_text`` says; what is
nested is written as JSON, and what has no text is missing.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from typing import Any

from hubbub.engines.sources.cell_text import text_of
from hubbub.engines.sources.delimited import LONGEST, MARK, Read
from hubbub.engines.sources.rewritten import LeftOut, encode_fields
from hubbub.errors import PolicyError

_CHUNK = 1 << 23
_MOST_COLUMNS = 10_000
"""An object that brings more names than this has values in place of names, and is left out."""
_BAD = object()
"""In place of what is left out."""


class JsonRecords:
    """The objects of one JSON file."""

    def __init__(self, read: Read) -> None:
        self._chunks = iter(lambda: read(_CHUNK), b"")
        self._places: dict[str, int] = {}
        self.columns: list[str] = []
        """Grows while rows are read; fields that a row lacks at its end are missing."""
        self.left_out = LeftOut()

    def rows(self) -> Iterator[bytes]:
        """Rewrite the objects, as ``rewritten`` wants them."""
        first = next(self._chunks, b"").removeprefix(MARK)
        chunks = chain([first], self._chunks)
        if first.lstrip().startswith(b"["):
            self.left_out.place = "element"
            objects: Iterator[Any] = iter(_array(b"".join(chunks)))
        else:
            objects = map(_object, _lines(chunks))
        for number, found in enumerate(objects, 1):
            fields = self._fields(found)
            if fields is None:
                self.left_out.add(number)
            elif any(field is not None for field in fields):
                yield encode_fields(fields)

    def _fields(self, found: Any) -> list[bytes | None] | None:
        """Put the values of an object into their places; None if it is left out."""
        if found is None:
            return []
        if not isinstance(found, dict) or len({name.lower() for name in found}) != len(found):
            return None
        names = [name for name in found if name and "\0" not in name and text_of(name) is not None]
        new = [name for name in names if name.lower() not in self._places]
        if len(self.columns) + len(new) > _MOST_COLUMNS:
            return None
        for name in new:
            self._places[name.lower()] = len(self.columns)
            self.columns.append(name)
        fields: list[bytes | None] = [None] * len(self.columns)
        for name in names:
            text = _text(found[name])
            fields[self._places[name.lower()]] = None if text is None else text.encode()
        return fields


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split into lines. Of one that is too long the beginning is enough: it is too long as well."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        rest = rest[: LONGEST + 1]
    yield rest


def _object(line: bytes) -> Any:
    """Parse a line; None where it is blank, so that it has no fields."""
    if len(line) > LONGEST:
        return _BAD
    if not line.strip():
        return None
    try:
        found = _parse(line)
    except (ValueError, RecursionError):
        return _BAD
    return _BAD if found is None else found


def _array(content: bytes) -> list[Any]:
    try:
        found = _parse(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise PolicyError(
            "JSON that begins with [ must be one whole array. Correct it, or put one object on each line."
        )
    return [_BAD if one is None else one for one in found]


def _parse(content: bytes) -> Any:
    return json.loads(
        content.decode(),
        object_pairs_hook=_once,
        parse_float=Decimal,
        parse_int=_whole,
        parse_constant=lambda _: None,
    )


def _once(pairs: list[tuple[str, Any]]) -> Any:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _BAD


def _whole(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # more digits than Python reads
        return None


def _text(value: Any) -> str | None:
    if not isinstance(value, dict | list):
        return text_of(value)
    try:
        return text_of(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_depth_of))
    except (ValueError, TypeError, RecursionError):
        return None


def _depth_of(value: Any) -> float:
    if not isinstance(value, Decimal):
        raise TypeError
    return float(value)
