"""From the names of types to kinds: an engine's own, and those that an owner writes.

An engine's name says what a column of a typed source holds, with the exact range of its integers. Some choices:

- DECIMAL(p, 0) is an integer of p digits, since identifiers and counts are stored so. Any other DECIMAL is a real: its
  values become the nearest DOUBLE, and are put on a grid before anything is added up.
- HUGEINT lacks its lowest value and UHUGEINT its upper half: such values are missing.
- TIMESTAMPs of any precision are read to the microsecond, those with a time zone in UTC.
- ENUM and UUID are text. The members of an ENUM are not taken as public keys: a frame makes them from its rows.
"""

import difflib
import re
from dataclasses import dataclass

from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why values of an engine's type cannot be used: the end of a sentence that starts with the column."""

    reason: str


def _signed_range(bits: int) -> tuple[int, int]:
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


INTEGERS: dict[str, tuple[int, int]] = {
    "TINYINT": _signed_range(8),
    "SMALLINT": _signed_range(16),
    "INTEGER": _signed_range(32),
    "BIGINT": INT64,
    "HUGEINT": INT128,
    "UTINYINT": (0, (1 << 8) - 1),
    "USMALLINT": (0, (1 << 16) - 1),
    "UINTEGER": (0, (1 << 32) - 1),
    "UBIGINT": (0, (1 << 64) - 1),
    "UHUGEINT": (0, INT128[1]),
}

OTHERS: dict[str, Type] = {
    "BOOLEAN": Type.BOOLEAN,
    "FLOAT": Type.REAL,
    "DOUBLE": Type.REAL,
    "VARCHAR": Type.TEXT,
    "ENUM": Type.TEXT,
    "UUID": Type.TEXT,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMP_S": Type.TIMESTAMP,
    "TIMESTAMP_MS": Type.TIMESTAMP,
    "TIMESTAMP_NS": Type.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": Type.TIMESTAMP,
}

ALIASES: dict[str, str] = {
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "SHORT": "SMALLINT",
    "INT": "INTEGER",
    "INT4": "INTEGER",
    "SIGNED": "INTEGER",
    "INT8": "BIGINT",
    "LONG": "BIGINT",
    "BOOL": "BOOLEAN",
    "LOGICAL": "BOOLEAN",
    "REAL": "FLOAT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
    "CHAR": "VARCHAR",
    "BPCHAR": "VARCHAR",
    "NVARCHAR": "VARCHAR",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMP_US": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
}

UNUSABLE: dict[str, str] = {
    "LIST": "holds lists",
    "ARRAY": "holds arrays",
    "STRUCT": "holds structures",
    "MAP": "holds maps",
    "UNION": "holds values of several types",
    "TUPLE": "holds structures",
    "VARIANT": "holds values of several types",
    "JSON": "holds JSON documents",
    "BLOB": "holds bytes",
    "BIT": "holds strings of bits",
    "INTERVAL": "holds lengths of time, which have no total order",
    "TIME": "holds times without a day",
    "TIME_NS": "holds times without a day",
    "TIME WITH TIME ZONE": "holds times without a day",
    "TIMESTAMPTZ_NS": "holds nanoseconds with a time zone, which the engine cannot convert",
    "BIGNUM": "holds whole numbers without a limit",
    "GEOMETRY": "holds shapes",
    "TYPE": "holds types",
    "GENERATED": "is generated while it is read",
    "NULL": "has no type",
}

_PARTS = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*(?: WITH TIME ZONE)?)\s*(\(.*\))?\s*((?:\[[0-9]*\])*)\s*", re.DOTALL)
_DECIMAL = re.compile(r"\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_DECLARED = re.compile(r"(boolean|integer|real|text|date|timestamp)(?:\s*\(\s*([0-9]{1,3})\s*\))?")
SIZES = (8, 16, 32, 64, 128)
PYTHON: dict[str, str] = {
    "bool": "boolean",
    "int": "integer",
    "float": "real",
    "str": "text",
    "date": "date",
    "datetime": "timestamp",
}
"""Python's names of types, which owners may write for ours."""


def base_name(engine: str) -> str:
    """An engine's type without its parameters, which may hold values (the members of an ENUM)."""
    found = _PARTS.fullmatch(engine)
    if found is None:
        return "UNKNOWN"
    if found[3]:
        return "LIST" if found[3].endswith("[]") else "ARRAY"
    name = found[1].upper()
    return ALIASES.get(name, name)


def engine_kind(engine: str, *, nullable: bool = True) -> Kind | Unusable:
    """The kind of a column of this engine type, or why there is none."""
    name = base_name(engine)
    if name in INTEGERS:
        return integer(*INTEGERS[name], nullable=nullable)
    if name in OTHERS:
        return of(OTHERS[name], nullable=nullable)
    if name == "DECIMAL":
        return _decimal(engine, nullable=nullable)
    return Unusable(UNUSABLE.get(name, "has a type that is not known here"))


def _decimal(engine: str, *, nullable: bool) -> Kind:
    parts = _DECIMAL.search(engine)
    if parts is None or int(parts[2]) > 0:
        return of(Type.REAL, nullable=nullable)
    most = 10 ** int(parts[1]) - 1
    return integer(max(-most, INT128[0]), min(most, INT128[1]), nullable=nullable)


def declared_kind(name: str, written: object, *, nullable: bool = True) -> Kind:
    """The kind that an owner writes: one of the six types, an integer with its bits if it likes.

    ``name`` is the column, for the error. The six are ours and not an engine's: ``integer`` has 64 bits, ``real`` too.
    Python's names, as text or as types, stand for them: ``int``, ``float``, ``str``, ``bool``, ``datetime``.
    """
    if isinstance(written, Kind):
        return Kind(type=written.type, nullable=written.nullable and nullable, low=written.low, high=written.high)
    requirement = "one of boolean, integer, integer(8), …, integer(128), real, text, date and timestamp"
    found = _DECLARED.fullmatch(_own_name(written))
    if found is None:
        raise ParameterError(f"type of column {name}", requirement + _meant(written), written)
    type_, size = Type(found[1]), found[2]
    if size is None:
        return of(type_, nullable=nullable)
    if type_ is not Type.INTEGER or int(size) not in SIZES:
        raise ParameterError(f"type of column {name}", requirement, written)
    return integer(*(INT128 if int(size) == 128 else _signed_range(int(size))), nullable=nullable)


def _own_name(written: object) -> str:
    """Return a type's name among the six, where it was written as Python has it: int, "int", datetime.date, …"""
    if isinstance(written, type):
        return PYTHON.get(written.__name__, "") if written.__module__ in {"builtins", "datetime"} else ""
    text = written.strip().lower() if isinstance(written, str) else ""
    return PYTHON.get(text, text)


def _meant(written: object) -> str:
    if not isinstance(written, str):
        return ""
    kind = engine_kind(written)
    if isinstance(kind, Kind):
        return f" (for {base_name(written)}, {kind.type})"
    close = difflib.get_close_matches(written.lower(), list(Type), n=1)
    return f" (perhaps {close[0]})" if close else ""


READABLE: dict[Type, frozenset[Type]] = {
    Type.BOOLEAN: frozenset({Type.INTEGER, Type.REAL, Type.TEXT}),
    Type.INTEGER: frozenset({Type.REAL, Type.TEXT}),
    Type.REAL: frozenset({Type.INTEGER, Type.TEXT}),
    Type.TEXT: frozenset(Type),
    Type.DATE: frozenset({Type.TIMESTAMP, Type.TEXT}),
    Type.TIMESTAMP: frozenset({Type.DATE, Type.TEXT}),
}
"""What values of a type may be declared as, beside what they are: the rest would be missing throughout."""
