"""CSV, record by record: whatever a record holds, it concerns that record alone.

A record is read as RFC 4180 says. Fields are separated by commas; a field that begins with a double quote ends at the
next one that is not doubled, and may hold commas and line ends. Lines end with LF or CRLF; any other CR is text. Blank
lines are no records, and fields that a record lacks are missing. An empty field is missing; "" is an empty text.

A record that does not parse is left out: its first line alone, and reading goes on at the next line. It does not parse
if there is text behind a closing quote, a quote is never closed, it has more fields than the header, it is longer than
``LONGEST``, or it is not UTF-8.

Privacy:
    Claim: no line is read differently because of a record that does not end in it, and nothing in a file stops the
        reading.
    Proof: each record is parsed from its first byte with no state but the position; one that is left out moves the
        position to the next line, as if the line were not there.
    Needs: the owner's eyes on what was left out. A quote that is closed many lines later by a quote of somebody else
        makes one record of these lines; the conversion defines the rows, once, and questions read its result.
    Ref: RFC 4180; SOUNDNESS 38.
"""

import re
from collections.abc import Callable, Iterator

import numpy as np

from hubbub.engines.sources.rewritten import LeftOut, encode_field, encode_fields

LONGEST = 1 << 20
"""Bytes of the longest record. DuckDB refuses lines of more than 2 MB unless it is told otherwise."""
_BLOCK = 1 << 18
"""Bytes that are looked at together: a block whose lines are whole records is rewritten at once."""
_CHUNK = 1 << 23
MARK = "\ufeff".encode()
"""What some programs put before UTF-8."""

_SPECIAL = re.compile(rb'["\\\r\0]')
_UNUSUAL = (b"\\", b"\r", b"\0", b"\n\n")
_WHOLE_LINES = re.compile(rb'(?:(?:"(?:[^"\n]++|"")*+"|[^",\n][^,\n]*+)?+[,\n])*+')
_WHOLE_QUOTED = re.compile(rb'(?:(?<=[,\n])|\A)"((?:[^"\n]++|"")*+)"')
_QUOTED = re.compile(rb'"((?:[^"]++|"")*+)"')
_UNQUOTED = re.compile(rb"[^,\n]*+")

Read = Callable[[int], bytes]
"""Gives so many bytes at most, and none at the end."""


class Delimited:
    """The records of one CSV file, from its header on."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._buffer, self._at, self._done = b"", 0, False
        self._line = 1
        self.left_out = LeftOut()
        self.columns = self._header()
        """The names in the first record; none where it is no list of names, each once."""
        self._width = len(self.columns)

    def _header(self) -> tuple[str, ...]:
        self._fill()
        if self._buffer.startswith(MARK):
            self._at = len(MARK)
        found = self._record(most=None)
        if found is None:
            return ()
        fields, after = found
        names = tuple((field or b"").decode() for field in fields)
        if len({name.lower() for name in names}) != len(names) or not all(names) or set("\r\0") & set("".join(names)):
            return ()
        self._advance(after)
        return names

    def rows(self) -> Iterator[bytes]:
        """Rewrite the records behind the header, some at a time, as ``rewritten`` wants them."""
        while True:
            self._fill()
            if self._at == len(self._buffer):
                return
            end = self._buffer.rfind(b"\n", self._at, self._at + _BLOCK) + 1
            block = self._rewritten(self._buffer[self._at : end])
            if block:
                self._advance(end)
                yield block
            else:
                yield b"".join(self._rewrite_lines(max(end, self._at + 1)))

    def _rewritten(self, block: bytes) -> bytes:
        """Rewrite a block at once, if each of its lines is a record by itself; none of it otherwise.

        A line end within quotes would leave a quote open at the end of its line, so that lines which are whole records
        after CRLF was made LF have been whole before.
        """
        block = block.replace(b"\r\n", b"\n")
        if not block or block.startswith(b"\n") or any(part in block for part in _UNUSUAL):
            return b""
        if not _is_text(block):
            return b""
        if b'"' in block:
            if _WHOLE_LINES.fullmatch(block) is None:
                return b""
            block = _WHOLE_QUOTED.sub(_unquote, block)
        content = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(content == ord("\n"))
        commas = np.searchsorted(np.flatnonzero(content == ord(",")), ends)
        return block if int(np.diff(commas, prepend=0).max()) < self._width else b""

    def _rewrite_lines(self, end: int) -> Iterator[bytes]:
        """Rewrite the records that begin before ``end``, line by line."""
        while self._at < end:
            stop = self._buffer.find(b"\n", self._at)
            line = self._buffer[self._at : max(stop, self._at)].removesuffix(b"\r")
            if 0 <= stop <= self._at + LONGEST and self._is_simple(line):
                self._advance(stop + 1)
                if line:
                    yield line + b"\n"
                continue
            found = self._record(most=self._width)
            if found is None:
                self.left_out.add(self._line)
                self._skip_line()
                continue
            fields, after = found
            self._advance(after)
            if len(fields) > 1 or fields[0] is not None:
                yield encode_fields(fields)

    def _record(self, *, most: int | None) -> tuple[list[bytes | None], int] | None:
        """Parse the record at the position: its fields, and where the next one begins; None if it does not parse."""
        buffer, at = self._buffer, self._at
        limit = min(len(buffer), at + LONGEST + 1)
        fields: list[bytes | None] = []
        while most is None or len(fields) < most:
            quoted = buffer[at : at + 1] == b'"'
            found = (_QUOTED if quoted else _UNQUOTED).match(buffer, at, limit)
            if found is None:
                return None
            end = found.end()
            if quoted:
                fields.append(found[1].replace(b'""', b'"'))
                end += buffer[end : end + 2] == b"\r\n"
            else:
                field = found[0].removesuffix(b"\r") if buffer[end : end + 1] == b"\n" else found[0]
                fields.append(field or None)
            ended = buffer[end : end + 1] if end < limit else b""
            if ended == b"\n":
                return (fields, end + 1) if _is_text(buffer[self._at : end]) else None
            if ended != b",":
                return None
            at = end + 1
        return None

    def _is_simple(self, line: bytes) -> bool:
        return not _SPECIAL.search(line) and line.count(b",") < self._width and _is_text(line)

    def _fill(self) -> None:
        """Hold enough to parse the records of a block, and the line end behind the last line."""
        while not self._done and len(self._buffer) - self._at <= LONGEST + _BLOCK + 2:
            chunk = self._read(_CHUNK)
            self._buffer, self._at = self._buffer[self._at :] + chunk, 0
            if not chunk:
                self._done = True
                if self._buffer and not self._buffer.endswith(b"\n"):
                    self._buffer += b"\n"

    def _advance(self, to: int) -> None:
        self._line += self._buffer.count(b"\n", self._at, to)
        self._at = to

    def _skip_line(self) -> None:
        """Go to the next line, however far away it is."""
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            self._at = len(self._buffer) - 1  # a byte of the line stays, so that its end is seen at the end of the file
            self._fill()
        self._advance(end + 1)


def _unquote(found: re.Match[bytes]) -> bytes:
    content = found[1]
    if content and b"," not in content and b'"' not in content:  # nothing else of a whole line needs an escape
        return content
    return encode_field(content.replace(b'""', b'"'))


def _is_text(content: bytes) -> bool:
    if content.isascii():
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
