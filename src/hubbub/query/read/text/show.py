"""Statements about the schema: SHOW TABLES, DESCRIBE t. The policy alone answers them, and they cost nothing."""

import re
from dataclasses import dataclass

_NAME = r'(?P<name>"(?:[^"]|"")+"|[^\W\d]\w*)'
_STATEMENT = re.compile(
    r"\s*(?:(?P<tables>SHOW\s+(?:ALL\s+)?TABLES)|(?:DESCRIBE|DESC|SHOW\s+COLUMNS\s+(?:FROM|IN))\s+(?:TABLE\s+)?"
    + _NAME
    + r")\s*;?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Show:
    """A statement about the schema: all tables, or the columns of one."""

    table: str | None


def read_show(text: object) -> Show | None:
    """Read a statement about the schema; None for everything else."""
    found = _STATEMENT.fullmatch(text) if isinstance(text, str) and len(text) < 1000 else None
    if found is None:
        return None
    name = found["name"]
    return Show(name[1:-1].replace('""', '"') if name is not None and name.startswith('"') else name)
