"""Names, literals and columns of stored tables in PostgreSQL's words, so that nothing anybody writes is read as SQL.

What a table's types say about equality ends here: a domain is cast to its base type, citext and names and labels of
enums to text, and every text is compared by its bytes. What the type, the range or the calendar of a kind cannot hold
is missing, and reading it raises nothing: each cast stands behind a condition on the value, which is a column and so
never a constant that the planner could compute beforehand. Texts are read as numbers and dates only where they are
spelt like one: 'today' is no date, since it is no function of the row.

Privacy:
    Claim: two rows have the same unit if and only if their columns hold the same value in the source; each of the
        other rows has no unit at all.
    Proof: an identity is a column of its own type, or a whole number as the integer it is, or a text that is what any
        type is written as, which PostgreSQL can read back as the same value. Anything else counts only where its own
        text is that of the value that was read ("07" and "+7" are missing, and merge with nobody).
    Needs: ``search_path = pg_catalog``, TimeZone UTC, DateStyle ISO and extra_float_digits from 1 on
        (``hubbub.engines.postgres.connection``), by which texts of values are as precise as these.
    Ref: SOUNDNESS 37, 38, 52.
"""

from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache

from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.kinds import INT64, Kind, Type

_FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("int2", "int4", "int8"), "whole"),
    **dict.fromkeys(("float4", "float8"), "real"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "enum", "uuid"), "text"),
    "numeric": "numeric",
    "bool": "condition",
    "date": "date",
    "timestamp": "moment",
    "timestamptz": "zoned",
}
_OWN = {Type.INTEGER: "whole", Type.BOOLEAN: "condition", Type.DATE: "date"}
"""Families whose values are read as what they are."""
_WHOLE_TEXT = r"^[-+]?[0-9]{1,60}$"
_REAL_TEXT = r"^[-+]?([0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})([eE][-+]?[0-9]{1,3})?$"
_DATE_TEXT = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
_TIME_TEXT = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?$"


@lru_cache(maxsize=4096)
def quote_name(identifier: str) -> str:
    """Quote a name, whatever it holds."""
    if "\0" in identifier:
        raise ParameterError("name", "without NUL", identifier)
    return '"' + identifier.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """Quote a text of ours: backslashes are letters, as ``standard_conforming_strings`` has them."""
    if "\0" in value:
        raise ParameterError("text", "without NUL", value)
    return "'" + value.replace("'", "''") + "'"


@lru_cache(maxsize=4096)
def read_stored(column: str, kind: Kind, stored: str, is_identity: bool) -> str:
    """Read a quoted column of a stored type as a kind, as a value or as what names a unit or leads to one."""
    family = _FAMILIES.get(stored)
    if family is None:
        raise PolicyError(
            f"Column {column} is of a type that no question can use. Declare it with one that policies know.",
            name="type",
        )
    value = _READERS[kind.type](column, kind, family)
    if not is_identity or kind.type is Type.TEXT or family == _OWN.get(kind.type):
        return value
    if kind.type is Type.INTEGER and family in {"numeric", "real"}:
        return f"CASE WHEN {value} = {column} THEN {value} END"
    return f'CASE WHEN CAST(({value}) AS text) COLLATE "C" = {_text(column)} THEN {value} END'


def _text(column: str) -> str:
    return f'(CAST({column} AS text) COLLATE "C")'


def _plain_text(column: str) -> str:
    """Text without the blanks around it."""
    return f"pg_catalog.btrim({_text(column)}, ' ')"


def _read_text(column: str, kind: Kind, family: str) -> str:
    if family == "zoned":
        return _text(f"pg_catalog.timezone('UTC', {column})")
    if family == "numeric":
        return _text(f"pg_catalog.trim_scale({column})")
    return _text(column)


def _read_whole(column: str, kind: Kind, family: str) -> str:
    low, high = kind.range
    type_ = "numeric" if kind.wide else "bigint"
    match family:
        case "whole":
            value = f"CAST({column} AS {type_})"
            return value if kind.range == INT64 or kind.wide else _between(value, low, high)
        case "numeric":
            fits = f"{column} >= {low:d} AND {column} <= {high:d}"
            return f"CASE WHEN {fits} THEN CAST({_round_whole(column)} AS {type_}) END"
        case "real":
            least, most = max(low, INT64[0]), min(high, INT64[1])
            fits = f"{column} >= ({INT64[0]:d}) AND {column} < {INT64[1] + 1:d}"
            within = _between(f"CAST({column} AS bigint)", least, most)
            return f"CASE WHEN {fits} THEN CAST({within} AS {type_}) END"
        case "text":
            number = f"CAST({_plain_text(column)} AS numeric)"
            inside = f"CASE WHEN {number} >= {low:d} AND {number} <= {high:d} THEN CAST({number} AS {type_}) END"
            return f"CASE WHEN {_plain_text(column)} ~ {quote_text(_WHOLE_TEXT)} THEN {inside} END"
    raise _unreadable(column, kind)


def _round_whole(column: str) -> str:
    """Round, and say that there are no digits behind the point."""
    return f"pg_catalog.round({column}, 0)"


def _read_real(column: str, kind: Kind, family: str) -> str:
    match family:
        case "real":
            infinite = "CAST('Infinity' AS double precision)"
            return f"CASE WHEN pg_catalog.abs({column}) < {infinite} THEN CAST({column} AS double precision) END"
        case "whole":
            return f"CAST({column} AS double precision)"
        case "numeric":
            return _real_of(column)
        case "text":
            number = _real_of(f"CAST({_plain_text(column)} AS numeric)")
            return f"CASE WHEN {_plain_text(column)} ~ {quote_text(_REAL_TEXT)} THEN {number} END"
    raise _unreadable(column, kind)


def _real_of(number: str) -> str:
    """Make a numeric a real, zero where it is too small for one; the ends are a little within those of reals."""
    size = f"pg_catalog.abs({number})"
    real = f"CASE WHEN {size} <= 1e308 THEN CAST({number} AS double precision) END"
    return f"CASE WHEN {size} < 1e-307 THEN CAST(0 AS double precision) ELSE {real} END"


def _read_condition(column: str, kind: Kind, family: str) -> str:
    match family:
        case "condition":
            return f"CAST({column} AS boolean)"
        case "whole" | "numeric" | "real":
            return f"({column} <> 0)"
        case "text":
            word = f'pg_catalog.lower({_plain_text(column)} COLLATE "C")'
            return f"CASE WHEN {word} IN ('true', 't', '1') THEN TRUE WHEN {word} IN ('false', 'f', '0') THEN FALSE END"
    raise _unreadable(column, kind)


def _read_date(column: str, kind: Kind, family: str) -> str:
    match family:
        case "date" | "moment" | "zoned":
            moment = f"pg_catalog.timezone('UTC', {column})" if family == "zoned" else column
            type_ = "date" if family == "date" else "timestamp"
            last = date.max if family == "date" else datetime.max
            fits = f"{moment} >= CAST('0001-01-01' AS {type_}) AND {moment} <= CAST('{last}' AS {type_})"
            return f"CASE WHEN {fits} THEN CAST({moment} AS date) END"
        case "text":
            return _day_of(_plain_text(column), "date", _DATE_TEXT)
    raise _unreadable(column, kind)


def _read_moment(column: str, kind: Kind, family: str) -> str:
    match family:
        case "date" | "moment" | "zoned":
            moment = f"pg_catalog.timezone('UTC', {column})" if family == "zoned" else column
            type_ = "date" if family == "date" else "timestamp"
            last = date.max if family == "date" else datetime.max
            fits = f"{moment} >= CAST('0001-01-01' AS {type_}) AND {moment} <= CAST('{last}' AS {type_})"
            return f"CASE WHEN {fits} THEN CAST({moment} AS timestamp) END"
        case "text":
            return _day_of(_plain_text(column), "timestamp", f"{_DATE_TEXT[:-1]}([ T]{_TIME_TEXT[:-1]})?$")
    raise _unreadable(column, kind)


def _day_of(text: str, type_: str, spelling: str) -> str:
    """Read a day of the calendar, and a time of it, where both are spelt as ISO 8601 does."""
    year, month, day = (f"CAST(pg_catalog.substr({text}, {start}, {many}) AS integer)" for start, many in _PLACES)
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    days = f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    there = f"CASE WHEN {year} >= 1 AND {day} <= {days} THEN CAST({text} AS {type_}) END"
    return f"CASE WHEN {text} ~ {quote_text(spelling)} THEN {there} END"


_PLACES = ((1, 4), (6, 2), (9, 2))


def _between(value: str, low: int, high: int) -> str:
    return f"CASE WHEN {value} >= {low:d} AND {value} <= {high:d} THEN {value} END"


def _unreadable(column: str, kind: Kind) -> PolicyError:
    return PolicyError(
        f"Column {column} is declared as {kind.type}, which its type on the server cannot be read as. Declare another.",
        name="type",
    )


_READERS = {
    Type.TEXT: _read_text,
    Type.INTEGER: _read_whole,
    Type.REAL: _read_real,
    Type.BOOLEAN: _read_condition,
    Type.DATE: _read_date,
    Type.TIMESTAMP: _read_moment,
}
