"""Names and texts as TOML writes them: in quotes wherever they need them, so that a dot in a name is no nesting."""

import re

_BARE = re.compile(r"[A-Za-z0-9_-]+")


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
    return value if _BARE.fullmatch(value) else text(value)


def join_path(*path: str) -> str:
    """Name a place of a file: tables.stays, tables."a.b".columns."""
    return ".".join(key(part) for part in path)


def header(*path: str) -> str:
    """Write the line that begins a table of a file: [tables.stays]."""
    return f"[{join_path(*path)}]"
