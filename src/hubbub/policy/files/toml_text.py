"""TOML as it was written: exact decimals, the lines of declarations, and names and texts in quotes.

A scan of the text for headers and keys, good enough to point: where it is fooled, the line is that of something around.
"""

import re
import tomllib
from fractions import Fraction

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?")


class DecimalText(Fraction):
    """The exact value of a decimal, which errors show as it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "DecimalText":
        """Exactly what the digits say."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


def exact(text: str) -> DecimalText | float:
    """A TOML float. What is not finite, or far beyond a DOUBLE, becomes inf or NaN, which every check refuses."""
    plain = text.replace("_", "")
    found = _NUMBER.fullmatch(plain)
    if found is None or len(plain) > 400 or abs(int(found[1] or 0)) > 400:
        return float("nan") if "nan" in plain else float("inf")
    return DecimalText(plain)


_BARE = r"[A-Za-z0-9_-]+"
_ANY = rf"(?:{_BARE}|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_DOTTED = rf"{_ANY}(?:\s*\.\s*{_ANY})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]\]?")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_PART = re.compile(_ANY)


class Lines:
    """The lines of one file."""

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, ...], int] = {}
        prefix: tuple[str, ...] = ()
        quoted = False
        for number, line in enumerate(text.splitlines(), start=1):
            if not quoted:
                if header := _HEADER.match(line):
                    prefix = _split(header[1])
                    self._note(prefix, number)
                elif key := _KEY.match(line):
                    self._note((*prefix, *_split(key[1])), number)
            quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1

    def _note(self, path: tuple[str, ...], number: int) -> None:
        lower = tuple(part.lower() for part in path)
        for length in range(1, len(path) + 1):
            self._found.setdefault(lower[:length], number)

    def of(self, *path: str) -> int:
        """The line of the thing at this path, whatever its case, or of the nearest thing around it; 1 if none is."""
        lower = tuple(part.lower() for part in path)
        return next((self._found[lower[:end]] for end in range(len(path), 0, -1) if lower[:end] in self._found), 1)


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(_unquote(part) for part in _PART.findall(dotted))


def _unquote(part: str) -> str:
    try:
        return str(tomllib.loads(f"name = {part}")["name"]) if part[0] in "\"'" else part
    except ValueError:  # not TOML, which whoever parses the file says
        return part


_BARE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def text(value: str) -> str:
    """A TOML string, whatever it holds."""
    out = []
    for char in value:
        if char in '"\\':
            out.append("\\" + char)
        elif char.isprintable():
            out.append(char)
        else:
            code = ord(char) if not 0xD800 <= ord(char) <= 0xDFFF else 0xFFFD
            out.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
    return f'"{"".join(out)}"'


def key(value: str) -> str:
    """A TOML key: bare where it can be."""
    return value if _BARE_NAME.fullmatch(value) else text(value)


def join_path(*path: str) -> str:
    """Name a place of a file: tables.stays, tables."a.b".columns."""
    return ".".join(key(part) for part in path)


def header(*path: str) -> str:
    """Write the line that begins a table of a file: [tables.stays]."""
    return f"[{join_path(*path)}]"
