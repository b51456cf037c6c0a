r"""Records in a spelling that no reader can misunderstand: one line each, fields between commas, and no quotes.

A backslash and a letter stand for what would end a field or a line. A missing field is empty, and an empty text is
``\e``. Texts without any of these are written as they are, so that most of a file needs no rewriting at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hubbub.engines.words import FALSE, TRUE, Sql, name, reader, text

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


def decoded_rows(path: str, columns: Sequence[str]) -> Sql:
    """Select the records of a file, which has a first line of its own, with these names for their fields."""
    places = [f"c{place}" for place in range(len(columns))]
    options = {
        "columns": Sql("{" + ", ".join(f"{text(place)}: 'VARCHAR'" for place in places) + "}"),
        "auto_detect": FALSE,
        "header": TRUE,
        "delim": text(","),
        "quote": text(""),
        "escape": text(""),
        "comment": text(""),
        "nullstr": text(""),
        "new_line": text(r"\n"),
        "null_padding": TRUE,
        "max_line_size": Sql(f"{_LONGEST_LINE:d}"),
        "compression": text("none"),
    }
    shown = (f"{_decoded(name(place))} AS {name(column)}" for place, column in zip(places, columns, strict=True))
    return Sql(f"SELECT {', '.join(shown)} FROM {reader('read_csv', [path], options)}")


def _decoded(column: Sql) -> str:
    content = str(column)
    for letter, escape in (*_ESCAPES, (b"\\", _BACKSLASH)):
        content = f"replace({content}, {text(escape.decode())}, chr({ord(letter):d}))"
    empty = f"WHEN {column} = {text(_EMPTY.decode())} THEN ''"
    return f"CASE {empty} WHEN contains({column}, {text(chr(92))}) THEN {content} ELSE {column} END"
