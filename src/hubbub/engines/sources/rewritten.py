r"""Records in a spelling that no reader can misunderstand: one line each, fields between commas, and no quotes.

A backslash and a letter stand for what would end a field or a line. A missing field is empty, and an empty text is
``\e``. Texts without any of these are written as they are, so that most of a file needs no rewriting at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hubbub.engines.duckdb.scan import call_reader, quote_name, quote_text

_SHOWN = 10
"""How many places are named: enough to find out what is wrong with a file."""
_EMPTY = rb"\e"
_ESCAPES = ((b",", rb"\c"), (b"\n", rb"\n"), (b"\r", rb"\r"), (b"\0", rb"\z"))
_BACKSLASH = rb"\b"
"""Written first and read last, so that no other escape begins with one that was in the text."""
_LONGEST_LINE = 4 << 20
"""Every byte of the longest record could be an escape of two."""


@dataclass(slots=True)
class LeftOut:
    """The records that were left out of a file: how many, and where the first of them are."""

    count: int = 0
    first: list[int] = field(default_factory=list)
    place: str = "line"
    """What the numbers of the first ones count."""

    def add(self, number: int) -> None:
        """Count one more record."""
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(number)

    def __str__(self) -> str:
        places = ", ".join(map(str, self.first)) + (", …" if self.count > len(self.first) else "")
        records = "malformed record was" if self.count == 1 else "malformed records were"
        return f"{self.count:,} {records} left out: {self.place} {places}"


def encode_fields(fields: Sequence[bytes | None]) -> bytes:
    """Write one record."""
    return b",".join(map(encode_field, fields)) + b"\n"


def encode_field(content: bytes | None) -> bytes:
    """Write one field."""
    if content is None:
        return b""
    if not content:
        return _EMPTY
    content = content.replace(b"\\", _BACKSLASH)
    for letter, escape in _ESCAPES:
        content = content.replace(letter, escape)
    return content


def decode_rows(path: str, columns: Sequence[str]) -> str:
    """Select the records of a file, which has a first line of its own, with these names for their fields."""
    places = [f"c{place}" for place in range(len(columns))]
    options = {
        "columns": "{" + ", ".join(f"{quote_text(place)}: 'VARCHAR'" for place in places) + "}",
        "auto_detect": "FALSE",
        "header": "TRUE",
        "delim": quote_text(","),
        "quote": quote_text(""),
        "escape": quote_text(""),
        "comment": quote_text(""),
        "nullstr": quote_text(""),
        "new_line": quote_text(r"\n"),
        "null_padding": "TRUE",
        "max_line_size": f"{_LONGEST_LINE:d}",
        "compression": quote_text("none"),
    }
    shown = (
        f"{_decode(quote_name(place))} AS {quote_name(column)}" for place, column in zip(places, columns, strict=True)
    )
    return f"SELECT {', '.join(shown)} FROM {call_reader('read_csv', [path], options)}"


def _decode(column: str) -> str:
    content = column
    for letter, escape in (*_ESCAPES, (b"\\", _BACKSLASH)):
        content = f"replace({content}, {quote_text(escape.decode())}, chr({ord(letter):d}))"
    empty = f"WHEN {column} = {quote_text(_EMPTY.decode())} THEN ''"
    return f"CASE {empty} WHEN contains({column}, {quote_text(chr(92))}) THEN {content} ELSE {column} END"
