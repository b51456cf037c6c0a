"""SQL expressions over one row, into our own functions. What is not in the table below is refused."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Protocol

from sqlglot import exp

from hubbub.errors import NotAllowed, TooHeavy, TypeMisfit
from hubbub.policy.kinds import INT64, Type
from hubbub.query.expression import Call, Expression, Literal, literal
from hubbub.query.functions import call
from hubbub.query.read.date_intervals import interval_of, move_date


class Names(Protocol):
    """The meaning of names in the question; also of aggregates, where there may be some."""

    def column(self, node: exp.Column) -> Expression:
        """A column, or UnknownName."""

    def other(self, node: exp.Expr) -> Expression | None:
        """Something that only this place knows, such as an aggregate."""


_MOST_REPEATED = 100
"""How many parts an expression may have that stands in several places."""

Reader = Callable[[exp.Expr, Names], Expression]


def read(node: exp.Expr, names: Names) -> Expression:
    """An expression over one row."""
    special = names.other(node)
    if special is not None:
        return special
    reader = READERS.get(type(node))
    if reader is None:
        raise NotAllowed(f"{_title(node)} is not among the functions that can be asked. See docs/sql.md for those.")
    if any(value for name, value in node.args.items() if name not in _PARTS_OF.get(type(node), _OPERANDS)):
        raise NotAllowed(f"{_title(node)} is not known in this form. See docs/sql.md for those that are.")
    return reader(node, names)


def _title(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"{node.name.upper()}()"
    return node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()


def short(value: Expression) -> Expression:
    """A value that will stand in several places: short, since what nests would double at every level."""
    waiting, seen = [value], 0
    while waiting:
        seen += 1
        if seen > _MOST_REPEATED:
            raise TooHeavy("A long expression would be computed several times. Write it in another way, or shorten it.")
        one = waiting.pop()
        waiting.extend(one.arguments if isinstance(one, Call) else ())
    return value


def as_real(value: Expression) -> Expression:
    """An integer as a real; anything else as it is."""
    if value.kind.type is not Type.INTEGER:
        return value
    if isinstance(value, Literal):
        return literal(None if value.value is None else float(value.value), Type.REAL)  # type: ignore[arg-type]
    return call("to_real", value)


def alike(*values: Expression) -> tuple[Expression, ...]:
    """Values of one type: NULL takes that of the others, integers become reals beside reals, text becomes a date."""
    types = {value.kind.type for value in values if not _null(value)}
    if {Type.INTEGER, Type.REAL} >= types and len(types) == 2:
        return tuple(as_real(value) if not _null(value) else literal(None, Type.REAL) for value in values)
    for calendar in (Type.DATE, Type.TIMESTAMP):
        if types == {calendar, Type.TEXT}:
            values = tuple(_moment(value, calendar) if value.kind.type is Type.TEXT else value for value in values)
            types = {calendar}
    if types == {Type.DATE, Type.TIMESTAMP}:
        values = tuple(_widen(value) for value in values)
        types = {Type.TIMESTAMP}
    if len(types) == 1:
        (only,) = types
        return tuple(literal(None, only) if _null(value) else value for value in values)
    return values


def _null(value: Expression) -> bool:
    return isinstance(value, Literal) and value.value is None


def _moment(value: Expression, calendar: Type) -> Expression:
    """A date or timestamp that was written as text."""
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise TypeMisfit(f"A {calendar} is compared with text. Write it as {calendar.upper()} '2026-01-31'.")
    try:
        parsed = date.fromisoformat(value.value) if calendar is Type.DATE else datetime.fromisoformat(value.value)
    except ValueError:
        raise TypeMisfit(f"{value.value!r} is not a {calendar}. Write it as 2026-01-31.") from None
    if isinstance(parsed, datetime) and parsed.tzinfo is not None:
        raise TypeMisfit("Timestamps have no time zone here. Write it without one.")
    return literal(parsed)


def _widen(value: Expression) -> Expression:
    if value.kind.type is Type.TIMESTAMP:
        return value
    if isinstance(value, Literal) and isinstance(value.value, date):
        return literal(datetime(value.value.year, value.value.month, value.value.day))
    raise TypeMisfit("A date is compared with a timestamp. Take date_trunc('day', …) of the timestamp.")


def _literal(node: exp.Expr, names: Names) -> Expression:
    if node.args.get("is_string"):
        return literal(str(node.this))
    text = str(node.this)
    if text.isascii() and text.isdigit():
        whole = int(text) if len(text) < 40 else INT64[1] + 1
        if whole > INT64[1]:
            raise TypeMisfit("A whole number in a question must fit 64 bits.")
        return literal(whole)
    try:
        return literal(_finite(float(text)))
    except ValueError:
        raise TypeMisfit(f"{text[:40]!r} is not a number that can be written here.") from None


def _finite(value: float) -> float:
    if value - value != 0:
        raise ValueError("not finite")
    return value


def _two(function: str, *, real: bool = False) -> Reader:
    def reader(node: exp.Expr, names: Names) -> Expression:
        left, right = alike(read(node.this, names), read(node.expression, names))
        return call(function, *(as_real(side) if real else side for side in (left, right)))

    return reader


def _add(node: exp.Expr, names: Names) -> Expression:
    by = interval_of(node.expression)
    if by is not None:
        return move_date(read(node.this, names), by, sign=1)
    return _two("add")(node, names)


def _subtract(node: exp.Expr, names: Names) -> Expression:
    by = interval_of(node.expression)
    if by is not None:
        return move_date(read(node.this, names), by, sign=-1)
    left, right = alike(read(node.this, names), read(node.expression, names))
    return call("days_between" if left.kind.type is Type.DATE else "subtract", left, right)


def _one(function: str, *, real: bool = False) -> Reader:
    def reader(node: exp.Expr, names: Names) -> Expression:
        value = read(node.this, names)
        return call(function, as_real(value) if real else value)

    return reader


def _whole(function: str) -> Reader:
    """Of an integer it is itself."""

    def reader(node: exp.Expr, names: Names) -> Expression:
        if node.args.get("decimals") is not None or node.args.get("to") is not None:
            raise NotAllowed("Rounding is to whole numbers only. Divide and multiply around it for other steps.")
        value = read(node.this, names)
        return value if value.kind.type is Type.INTEGER else call(function, value)

    return reader


def _negate(node: exp.Expr, names: Names) -> Expression:
    value = read(node.this, names)
    if isinstance(value, Literal) and isinstance(value.value, int | float) and not isinstance(value.value, bool):
        return literal(-value.value)
    return call("negate", value)


def _logic(function: str) -> Reader:
    """Chains are flattened, so that a long one does not nest."""

    def reader(node: exp.Expr, names: Names) -> Expression:
        return call(function, *(read(part, names) for part in node.flatten()))

    return reader


def _is(node: exp.Expr, names: Names) -> Expression:
    value, what = read(node.this, names), node.expression
    if isinstance(what, exp.Null):
        return call("is_null", value)
    if isinstance(what, exp.Boolean):
        met = call("eq", value, literal(bool(what.this)))
        return call("case", met, literal(True), literal(False))
    raise NotAllowed("IS takes NULL, TRUE or FALSE.")


def _between(node: exp.Expr, names: Names) -> Expression:
    value, low, high = alike(*(read(node.args[part], names) for part in ("this", "low", "high")))
    short(value)
    return call("and", call("ge", value, low), call("le", value, high))


def _in(node: exp.Expr, names: Names) -> Expression:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise NotAllowed("IN takes a list of constants. Write them out, or join with a public table.")
    choices = [read(choice, names) for choice in node.expressions]
    if any(_null(choice) for choice in choices):
        raise NotAllowed("NULL is in no list. Say IS NULL instead.")
    return call("in", *alike(read(node.this, names), *choices))


def _case(node: exp.Expr, names: Names) -> Expression:
    subject = None if node.args.get("this") is None else short(read(node.this, names))
    conditions, values = [], []
    for branch in node.args["ifs"]:
        condition = read(branch.this, names)
        conditions.append(condition if subject is None else call("eq", *alike(subject, condition)))
        values.append(read(branch.args["true"], names))
    otherwise = node.args.get("default")
    values.append(literal(None) if otherwise is None else read(otherwise, names))
    *chosen, last = alike(*values)
    pairs = [part for pair in zip(conditions, chosen, strict=True) for part in pair]
    return call("case", *pairs, last)


def _if(node: exp.Expr, names: Names) -> Expression:
    otherwise = node.args.get("false")
    value, other = alike(read(node.args["true"], names), literal(None) if otherwise is None else read(otherwise, names))
    return call("case", read(node.this, names), value, other)


def _many(function: str) -> Reader:
    def reader(node: exp.Expr, names: Names) -> Expression:
        parts = [node.this, *node.expressions] if node.args.get("this") is not None else node.expressions
        return call(function, *alike(*(read(part, names) for part in parts)))

    return reader


def _text_pair(function: str) -> Reader:
    def reader(node: exp.Expr, names: Names) -> Expression:
        return call(function, read(node.this, names), read(node.expression, names))

    return reader


def _like(node: exp.Expr, names: Names) -> Expression:
    found = call("like", read(node.this, names), read(node.expression, names))
    return call("not", found) if node.args.get("negate") else found


def _substring(node: exp.Expr, names: Names) -> Expression:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None or length is None:
        raise NotAllowed("SUBSTRING takes a place and a length: substring(name, 1, 3).")
    return call("substring", read(node.this, names), read(start, names), read(length, names))


def _trim(node: exp.Expr, names: Names) -> Expression:
    if any(node.args.get(option) for option in ("expression", "position", "collation")):
        raise NotAllowed("TRIM takes text alone: trim(name).")
    return call("trim", read(node.this, names))


def _as_date(value: Expression) -> Expression:
    if isinstance(value, Literal) and isinstance(value.value, str):
        return _moment(value, Type.DATE)
    return value


_PARTS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "DAY": "day",
    "DOW": "weekday",
    "DAYOFWEEK": "weekday",
}
_CLOCK = {"HOUR": "hour", "MINUTE": "minute"}
_SPANS = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY"}


def _extract(node: exp.Expr, names: Names) -> Expression:
    part = (_PARTS | _CLOCK).get(node.this.name.upper())
    if part is None:
        raise NotAllowed(f"EXTRACT knows {', '.join([*_PARTS, *_CLOCK])}.")
    return call(part, read(node.expression, names))


def _truncate(node: exp.Expr, names: Names) -> Expression:
    unit = node.args.get("unit")
    span = unit.name.upper() if unit is not None else ""
    if span not in _SPANS:
        raise NotAllowed(f"DATE_TRUNC knows {', '.join(sorted(_SPANS))}.")
    return call(f"start_of_{span.lower()}", read(node.this, names))


_CASTS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Type.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Type.REAL),
    "DATE": Type.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ"), Type.TIMESTAMP),
    **dict.fromkeys(("TEXT", "VARCHAR"), Type.TEXT),
    "BOOLEAN": Type.BOOLEAN,
}


def _cast(node: exp.Expr, names: Names) -> Expression:
    """Between numbers, from a timestamp to its day, and of constants; what does not fit is missing."""
    to = node.args["to"]
    plain = not any(value for name, value in to.args.items() if name != "this")
    wanted = _CASTS.get(getattr(to.this, "name", "")) if plain else None
    value = read(node.this, names)
    has = value.kind.type
    if wanted is None:
        raise NotAllowed(f"There is no cast to {to.sql()[:40]}.")
    if has is wanted:
        return value
    if _null(value):
        return literal(None, wanted)
    if (has, wanted) == (Type.INTEGER, Type.REAL):
        return as_real(value)
    if (has, wanted) == (Type.REAL, Type.INTEGER):
        return call("to_integer", value)
    if (has, wanted) == (Type.TIMESTAMP, Type.DATE):
        return call("start_of_day", value)
    if has is Type.TEXT and wanted in {Type.DATE, Type.TIMESTAMP}:
        return _moment(value, wanted)
    if has is Type.BOOLEAN and wanted is Type.INTEGER:
        short(value)
        return call("case", value, literal(1), call("case", call("not", value), literal(0), literal(None)))
    raise NotAllowed(f"There is no cast from {has} to {wanted}. Declare the column's type in the policy.")


READERS: Mapping[type[exp.Expr], Reader] = {
    exp.Column: lambda node, names: names.column(node),  # type: ignore[arg-type]
    exp.Literal: _literal,
    exp.Boolean: lambda node, _: literal(bool(node.this)),
    exp.Null: lambda _node, _names: literal(None),
    exp.Paren: lambda node, names: read(node.this, names),
    exp.And: _logic("and"),
    exp.Or: _logic("or"),
    exp.Not: _one("not"),
    exp.Is: _is,
    exp.EQ: _two("eq"),
    exp.NEQ: _two("ne"),
    exp.LT: _two("lt"),
    exp.LTE: _two("le"),
    exp.GT: _two("gt"),
    exp.GTE: _two("ge"),
    exp.Between: _between,
    exp.In: _in,
    exp.Add: _add,
    exp.Sub: _subtract,
    exp.Mul: _two("multiply"),
    exp.Div: _two("divide", real=True),
    exp.IntDiv: _two("quotient"),
    exp.Mod: _two("remainder"),
    exp.Neg: _negate,
    exp.Abs: _one("abs"),
    exp.Floor: _whole("floor"),
    exp.Ceil: _whole("ceil"),
    exp.Round: _whole("to_integer"),
    exp.Sqrt: _one("sqrt", real=True),
    exp.Ln: _one("ln", real=True),
    exp.Exp: _one("exp", real=True),
    exp.Least: _many("least"),
    exp.Greatest: _many("greatest"),
    exp.Coalesce: _many("coalesce"),
    exp.Nullif: lambda node, names: call("nullif", *alike(read(node.this, names), read(node.expression, names))),
    exp.Case: _case,
    exp.If: _if,
    exp.Lower: _one("lower"),
    exp.Upper: _one("upper"),
    exp.Length: _one("length"),
    exp.Trim: _trim,
    exp.Like: _like,
    exp.StartsWith: _text_pair("starts_with"),
    exp.Substring: _substring,
    exp.Extract: _extract,
    exp.Year: _one("year"),
    exp.Quarter: _one("quarter"),
    exp.Month: _one("month"),
    exp.Day: _one("day"),
    exp.DayOfWeek: _one("weekday"),
    exp.Hour: _one("hour"),
    exp.Minute: _one("minute"),
    exp.DateTrunc: _truncate,
    exp.TimestampTrunc: _truncate,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
"""Every node that a question may hold, beside names and aggregates."""

_OPERANDS = frozenset({"this", "expression"})
_MANY = frozenset({"this", "expressions", "ignore_nulls"})
_ROUNDED = frozenset({"this", "decimals", "to"})
_PARTS_OF: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.In: frozenset({"this", "expressions", "query", "unnest", "field"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Least: _MANY,
    exp.Greatest: _MANY,
    exp.Coalesce: _MANY,
    exp.Floor: _ROUNDED,
    exp.Ceil: _ROUNDED,
    exp.Round: _ROUNDED,
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Trim: frozenset({"this", "expression", "position", "collation"}),
    exp.DateTrunc: frozenset({"this", "unit"}),
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
}
"""The parts that a reader looks at. A node with any other part means something else than we would read."""

__all__ = ["READERS", "Call", "Names", "alike", "as_real", "read", "short"]
