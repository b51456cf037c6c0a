"""On which line of a TOML file something was written, so that errors can point there.

A scan of the text for headers and keys, good enough to point: where it is fooled, the line is that of something around.
"""

import re
import tomllib

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
