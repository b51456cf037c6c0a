"""The closed set of scalar functions, and the kind of what each returns.

A function gets here only if it is total (no value of its arguments' kinds makes it fail), looks at one row alone, and
takes a time that the question bounds. How an engine says it is in ``engines.lower.scalars``; what it means is in the
reference interpreter of the tests; both are tables over these names, and a test compares the three.

Missing arguments make a missing result, except where it says otherwise.
"""

from collections.abc import Callable, Mapping, Sequence

from hubbub.errors import MayOverflow, TypeMisfit
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer
from hubbub.query.expression import Call, Expression, Literal

Rule = Callable[[Sequence[Expression]], Kind]

MOST_TEXT = 1000
"""The longest pattern or constant that is compared with each row's text."""


def call(function: str, *arguments: Expression) -> Call:
    """A function on arguments of the right kinds, or an error that says what it takes."""
    if function not in FUNCTIONS:
        raise TypeMisfit(f"There is no function {function}.", function=function)
    return Call(function, arguments, FUNCTIONS[function](arguments))


def _misfit(function: str, wants: str, arguments: Sequence[Expression]) -> TypeMisfit:
    got = ", ".join(str(argument.kind) for argument in arguments) or "nothing"
    return TypeMisfit(f"{function} takes {wants}, not ({got}).", function=function)


def _nullable(arguments: Sequence[Expression]) -> bool:
    return any(argument.kind.nullable for argument in arguments)


def _all(arguments: Sequence[Expression], *types: Type) -> bool:
    return all(argument.kind.type in types for argument in arguments)


def _within(function: str, low: int, high: int, *, nullable: bool) -> Kind:
    if low < INT128[0] or high > INT128[1]:
        raise MayOverflow(
            f"The result of {function} may not fit 128 bits. Bound its arguments with least and greatest.",
            function=function,
        )
    return integer(low, high, nullable=nullable)


def _boolean(name: str, many: int | None) -> Rule:
    def rule(arguments: Sequence[Expression]) -> Kind:
        if not _all(arguments, Type.BOOLEAN) or (len(arguments) != many if many else len(arguments) < 2):
            raise _misfit(name, "conditions", arguments)
        return Kind(type=Type.BOOLEAN, nullable=_nullable(arguments))

    return rule


def _comparison(name: str) -> Rule:
    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 2 or arguments[0].kind.type is not arguments[1].kind.type:
            raise _misfit(name, "two values of one type", arguments)
        return Kind(type=Type.BOOLEAN, nullable=_nullable(arguments))

    return rule


def _is_null(arguments: Sequence[Expression]) -> Kind:
    if len(arguments) != 1:
        raise _misfit("is_null", "one value", arguments)
    return Kind(type=Type.BOOLEAN, nullable=False)


def _one_of(arguments: Sequence[Expression]) -> Kind:
    choices = arguments[1:]
    if not choices or not all(isinstance(choice, Literal) and choice.value is not None for choice in choices):
        raise _misfit("in", "a value and constants", arguments)
    if not _all(choices, arguments[0].kind.type):
        raise _misfit("in", "a value and constants of its type", arguments)
    return Kind(type=Type.BOOLEAN, nullable=arguments[0].kind.nullable)


def _arithmetic(name: str, corners: Callable[[int, int], int]) -> Rule:
    """Exact on integers, by the corners of their ranges; on reals whatever is not finite is missing."""

    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 2 or not (_all(arguments, Type.INTEGER) or _all(arguments, Type.REAL)):
            raise _misfit(name, "two integers or two reals", arguments)
        if _all(arguments, Type.REAL):
            return Kind(type=Type.REAL)
        left, right = (argument.kind.range for argument in arguments)
        ends = [corners(a, b) for a in left for b in right]
        return _within(name, min(ends), max(ends), nullable=_nullable(arguments))

    return rule


def _whole_division(name: str) -> Rule:
    """Towards zero; missing where the divisor is 0. A divisor that is never 0 narrows what comes out."""

    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 2 or not _all(arguments, Type.INTEGER):
            raise _misfit(name, "two integers", arguments)
        (low, high), divisor = arguments[0].kind.range, arguments[1].kind.range
        most, sizes = max(abs(low), abs(high)), [abs(end) for end in divisor]
        never = divisor[0] > 0 or divisor[1] < 0
        if name == "remainder":
            most = min(most, max(0, max(sizes) - 1))
        elif never:
            most //= min(sizes)
        least = -most if low < 0 or (name == "quotient" and divisor[0] < 0) else 0
        return _within(name, least, most, nullable=_nullable(arguments) or not never)

    return rule


def _divide(arguments: Sequence[Expression]) -> Kind:
    if len(arguments) != 2 or not _all(arguments, Type.REAL):
        raise _misfit("divide", "two reals", arguments)
    return Kind(type=Type.REAL)


def _negate(arguments: Sequence[Expression]) -> Kind:
    if len(arguments) != 1 or not _all(arguments, Type.INTEGER, Type.REAL):
        raise _misfit("negate", "a number", arguments)
    (only,) = arguments
    if only.kind.type is Type.REAL:
        return only.kind
    low, high = only.kind.range
    return _within("negate", -high, -low, nullable=only.kind.nullable)


def _absolute(arguments: Sequence[Expression]) -> Kind:
    if len(arguments) != 1 or not _all(arguments, Type.INTEGER, Type.REAL):
        raise _misfit("abs", "a number", arguments)
    (only,) = arguments
    if only.kind.type is Type.REAL:
        return only.kind
    low, high = only.kind.range
    least = 0 if low <= 0 <= high else min(abs(low), abs(high))
    return _within("abs", least, max(abs(low), abs(high)), nullable=only.kind.nullable)


def _extreme(name: str, pick: Callable[[Sequence[int]], int]) -> Rule:
    """The least or greatest of numbers; missing if any is, unlike in some engines."""

    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) < 2 or not (_all(arguments, Type.INTEGER) or _all(arguments, Type.REAL)):
            raise _misfit(name, "two or more integers, or two or more reals", arguments)
        nullable = _nullable(arguments)
        if _all(arguments, Type.REAL):
            return Kind(type=Type.REAL, nullable=nullable)
        ranges = [argument.kind.range for argument in arguments]
        return integer(pick([low for low, _ in ranges]), pick([high for _, high in ranges]), nullable=nullable)

    return rule


def _to_real(arguments: Sequence[Expression]) -> Kind:
    if len(arguments) != 1 or not _all(arguments, Type.INTEGER):
        raise _misfit("to_real", "an integer", arguments)
    if arguments[0].kind.wide:
        raise TypeMisfit(
            "A whole number that may be beyond 64 bits is made a real. Put least(greatest(…, low), high) around it "
            "first, or use whole numbers beside it.",
            function="to_real",
        )
    return Kind(type=Type.REAL, nullable=arguments[0].kind.nullable)


def _to_integer(name: str) -> Rule:
    """Missing beyond 64 bits."""

    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 1 or not _all(arguments, Type.REAL):
            raise _misfit(name, "a real", arguments)
        return integer(*INT64)

    return rule


def _real_function(name: str) -> Rule:
    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 1 or not _all(arguments, Type.REAL):
            raise _misfit(name, "a real", arguments)
        return Kind(type=Type.REAL)

    return rule


def unite_kinds(function: str, values: Sequence[Expression], *, nullable: bool) -> Kind:
    """The kind of a value that is one of several."""
    if len({value.kind.type for value in values}) != 1:
        raise _misfit(function, "values of one type", values)
    if values[0].kind.type is not Type.INTEGER:
        return Kind(type=values[0].kind.type, nullable=nullable)
    ranges = [value.kind.range for value in values]
    return integer(min(low for low, _ in ranges), max(high for _, high in ranges), nullable=nullable)


def _case(arguments: Sequence[Expression]) -> Kind:
    """Condition, value, condition, value, …, otherwise: a missing condition is not met."""
    conditions, values = arguments[:-1:2], [*arguments[1::2], *arguments[-1:]]
    if len(arguments) < 3 or len(arguments) % 2 == 0 or not _all(conditions, Type.BOOLEAN):
        raise _misfit("case", "conditions with their values, and a value otherwise", arguments)
    return unite_kinds("case", values, nullable=_nullable(values))


def _coalesce(arguments: Sequence[Expression]) -> Kind:
    """The first that is not missing."""
    if len(arguments) < 2:
        raise _misfit("coalesce", "two or more values of one type", arguments)
    return unite_kinds("coalesce", arguments, nullable=all(argument.kind.nullable for argument in arguments))


def _nullif(arguments: Sequence[Expression]) -> Kind:
    """The first, missing where it equals the second."""
    if len(arguments) != 2 or arguments[0].kind.type is not arguments[1].kind.type:
        raise _misfit("nullif", "two values of one type", arguments)
    kind = arguments[0].kind
    return Kind(type=kind.type, nullable=True, low=kind.low, high=kind.high)


def _text(name: str, *, result: Type = Type.TEXT) -> Rule:
    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 1 or not _all(arguments, Type.TEXT):
            raise _misfit(name, "text", arguments)
        if result is Type.INTEGER:
            return integer(0, 1 << 32, nullable=arguments[0].kind.nullable)
        return Kind(type=result, nullable=arguments[0].kind.nullable)

    return rule


def _pattern(name: str) -> Rule:
    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 2 or not _all(arguments, Type.TEXT) or not isinstance(arguments[1], Literal):
            raise _misfit(name, "text and a constant", arguments)
        if len(str(arguments[1].value)) > MOST_TEXT:
            raise _misfit(name, f"a constant of at most {MOST_TEXT} characters", arguments)
        return Kind(type=Type.BOOLEAN, nullable=_nullable(arguments))

    return rule


def _substring(arguments: Sequence[Expression]) -> Kind:
    """From a place, counted from 1, and so many characters: both constants."""
    if len(arguments) != 3 or not _all(arguments[:1], Type.TEXT) or not _all(arguments[1:], Type.INTEGER):
        raise _misfit("substring", "text, a place from 1 on and a length", arguments)
    for argument, least in zip(arguments[1:], (1, 0), strict=True):
        if not isinstance(argument, Literal) or not argument.kind.range[0] >= least:
            raise _misfit("substring", "text, a constant place from 1 on and a constant length", arguments)
        if argument.kind.range[1] > 1 << 31:
            raise _misfit("substring", "a place and a length below 2^31", arguments)
    return Kind(type=Type.TEXT, nullable=_nullable(arguments))


def _part(name: str, low: int, high: int, *types: Type) -> Rule:
    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 1 or not _all(arguments, *types):
            raise _misfit(name, " or ".join(types), arguments)
        return integer(low, high, nullable=arguments[0].kind.nullable)

    return rule


def _start_of(name: str) -> Rule:
    def rule(arguments: Sequence[Expression]) -> Kind:
        if len(arguments) != 1 or not _all(arguments, Type.DATE, Type.TIMESTAMP):
            raise _misfit(name, "a date or a timestamp", arguments)
        return Kind(type=Type.DATE, nullable=arguments[0].kind.nullable)

    return rule


def _days_between(arguments: Sequence[Expression]) -> Kind:
    if len(arguments) != 2 or not _all(arguments, Type.DATE):
        raise _misfit("days_between", "two dates", arguments)
    return integer(-3_652_058, 3_652_058, nullable=_nullable(arguments))


_CALENDAR = (Type.DATE, Type.TIMESTAMP)

FUNCTIONS: Mapping[str, Rule] = {
    "and": _boolean("and", None),
    "or": _boolean("or", None),
    "not": _boolean("not", 1),
    "is_null": _is_null,
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "in": _one_of,
    "add": _arithmetic("add", lambda a, b: a + b),
    "subtract": _arithmetic("subtract", lambda a, b: a - b),
    "multiply": _arithmetic("multiply", lambda a, b: a * b),
    "divide": _divide,
    "quotient": _whole_division("quotient"),
    "remainder": _whole_division("remainder"),
    "negate": _negate,
    "abs": _absolute,
    "least": _extreme("least", min),
    "greatest": _extreme("greatest", max),
    "to_real": _to_real,
    "to_integer": _to_integer("to_integer"),
    "floor": _to_integer("floor"),
    "ceil": _to_integer("ceil"),
    "sqrt": _real_function("sqrt"),
    "ln": _real_function("ln"),
    "exp": _real_function("exp"),
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "lower": _text("lower"),
    "upper": _text("upper"),
    "trim": _text("trim"),
    "length": _text("length", result=Type.INTEGER),
    "like": _pattern("like"),
    "starts_with": _pattern("starts_with"),
    "substring": _substring,
    "year": _part("year", 1, 9999, *_CALENDAR),
    "quarter": _part("quarter", 1, 4, *_CALENDAR),
    "month": _part("month", 1, 12, *_CALENDAR),
    "day": _part("day", 1, 31, *_CALENDAR),
    "weekday": _part("weekday", 0, 6, *_CALENDAR),
    "hour": _part("hour", 0, 23, Type.TIMESTAMP),
    "minute": _part("minute", 0, 59, Type.TIMESTAMP),
    **{f"start_of_{span}": _start_of(f"start_of_{span}") for span in ("year", "quarter", "month", "week", "day")},
    "days_between": _days_between,
}
"""Every function there is, by its name in our ops. ``weekday`` counts from Sunday, 0."""
