"""What every operation means, written a second time: slow, obvious, and sharing nothing with the code it judges.

It knows the classes of ``query.ops`` and ``query.expression`` and the kinds of the policy, and imports nothing else of
ours. A table is a list of dictionaries, straight from a source: NaN, infinities and dates far away included. At every
node the value is held against its static kind, so that running it is a test of the typing rules too.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hubbub.policy.kinds import INT64, Kind, Type
from hubbub.query.expression import Call, Column, Expression, Literal
from hubbub.query.ops import Aggregate, Filter, JoinKind, JoinPublic, Measure, Project, Relation, Scan, Tally

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]
Cell = tuple[Any, ...]
Choose = Callable[[Any, list[Cell]], Iterable[Cell]]
"""Of a unit and its groups, in the order of the public cells: those that it keeps."""


class Unsound(AssertionError):
    """A value is not what its kind promised."""


def fits(value: Any, kind: Kind) -> bool:
    """Whether a value is of a kind."""
    if value is None:
        return kind.nullable
    match kind.type:
        case Type.BOOLEAN:
            return type(value) is bool
        case Type.INTEGER:
            return type(value) is int and kind.range[0] <= value <= kind.range[1]
        case Type.REAL:
            return type(value) is float and math.isfinite(value)
        case Type.TEXT:
            return type(value) is str
        case Type.DATE:
            return type(value) is date
        case Type.TIMESTAMP:
            return type(value) is datetime and value.tzinfo is None


def safe(value: Any, kind: Kind) -> Any:
    """What a scan makes of a value: what its kind cannot hold is missing."""
    anything = Kind(type=kind.type, nullable=True, low=kind.low, high=kind.high)
    return value if fits(value, anything) else None


# Expressions


def value(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The value for one row, held against the expression's kind."""
    found = _value(expression, row)
    if not fits(found, expression.kind):
        raise Unsound(f"{expression} gave {found!r}")
    return found


def _value(expression: Expression, row: Mapping[str, Any]) -> Any:
    match expression:
        case Column(name=name):
            return row[name]
        case Literal(value=constant):
            return constant
        case Call(function=function, arguments=arguments):
            # All arguments are evaluated, whatever the function needs: each must be total by itself.
            values = [value(argument, row) for argument in arguments]
            if function in OPEN:
                return OPEN[function](*values)
            if any(one is None for one in values):
                return None
            return _finite(STRICT[function](*values))


def _finite(result: Any) -> Any:
    return None if isinstance(result, float) and not math.isfinite(result) else result


def _and(*values: bool | None) -> bool | None:
    if any(one is False for one in values):
        return False
    return None if any(one is None for one in values) else True


def _or(*values: bool | None) -> bool | None:
    if any(one is True for one in values):
        return True
    return None if any(one is None for one in values) else False


def _case(*values: Any) -> Any:
    for place in range(0, len(values) - 1, 2):
        if values[place] is True:
            return values[place + 1]
    return values[-1]


def _coalesce(*values: Any) -> Any:
    for one in values:
        if one is not None:
            return one
    return None


def _nullif(first: Any, second: Any) -> Any:
    return None if first is None or (second is not None and first == second) else first


OPEN: Mapping[str, Callable[..., Any]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
    "is_null": lambda only: only is None,
    "nullif": _nullif,
}
"""Functions that have an answer to missing arguments."""


def _divide(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _quotient(a: int, b: int) -> int | None:
    return None if b == 0 else math.trunc(Fraction(a, b))


def _remainder(a: int, b: int) -> int | None:
    return None if b == 0 else a - b * math.trunc(Fraction(a, b))


def within64(whole: int) -> int | None:
    """Missing beyond 64 bits."""
    return whole if INT64[0] <= whole <= INT64[1] else None


def half_even(exact: Fraction) -> int:
    """The nearest whole number; of two, the even one."""
    below = math.floor(exact)
    rest = exact - below
    if rest == Fraction(1, 2):
        return below + below % 2
    return below if rest < Fraction(1, 2) else below + 1


def _sqrt(x: float) -> float | None:
    return None if x < 0 else math.sqrt(x)


def _ln(x: float) -> float | None:
    return None if x <= 0 else math.log(x)


def _exp(x: float) -> float | None:
    try:
        return math.exp(x)
    except OverflowError:
        return None


def _lower(text: str) -> str:
    """One character becomes one character: no rule about its neighbours, and İ is i."""
    return "".join("i" if one == "İ" else one.lower() for one in text)


def _upper(text: str) -> str:
    out = []
    for one in text:
        choices = ["ẞ" if one == "ß" else one.upper(), one.title(), one]
        out.append(next(choice for choice in choices if len(choice) == 1))
    return "".join(out)


def _trim(text: str) -> str:
    """Blanks alone: not tabs, not the wide spaces of other scripts."""
    while text.startswith(" "):
        text = text[1:]
    while text.endswith(" "):
        text = text[:-1]
    return text


def _like(text: str, pattern: str) -> bool:
    """By the table of prefixes: whether pattern[:j] matches text[:i]."""
    matches = [True] + [False] * len(text)
    for sign in pattern:
        if sign == "%":
            matches = list(itertools.accumulate(matches, max))
        else:
            hits = [sign in {"_", one} for one in text]
            matches = [False] + [before and hit for before, hit in zip(matches, hits, strict=False)]
    return matches[-1]


def _substring(text: str, start: int, length: int) -> str:
    return "".join(one for place, one in enumerate(text, start=1) if start <= place < start + length)


def _on_day(moment: date) -> date:
    return date(moment.year, moment.month, moment.day)


def _start_of_quarter(moment: date) -> date:
    return date(moment.year, (1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10)[moment.month - 1], 1)


STRICT: Mapping[str, Callable[..., Any]] = {
    "not": lambda a: a is False,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "in": lambda a, *choices: any(a == one for one in choices),
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _divide,
    "quotient": _quotient,
    "remainder": _remainder,
    "negate": lambda a: -a,
    "abs": abs,
    "least": lambda *values: sorted(values)[0],
    "greatest": lambda *values: sorted(values)[-1],
    "to_real": float,
    "to_integer": lambda a: within64(half_even(Fraction(a))),
    "floor": lambda a: within64(math.floor(a)),
    "ceil": lambda a: within64(math.ceil(a)),
    "sqrt": _sqrt,
    "ln": _ln,
    "exp": _exp,
    "lower": _lower,
    "upper": _upper,
    "trim": _trim,
    "length": len,
    "like": _like,
    "starts_with": lambda text, start: text[: len(start)] == start,
    "substring": _substring,
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "day": lambda moment: moment.day,
    "weekday": lambda moment: moment.toordinal() % 7,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "start_of_year": lambda moment: date(moment.year, 1, 1),
    "start_of_quarter": _start_of_quarter,
    "start_of_month": lambda moment: date(moment.year, moment.month, 1),
    "start_of_week": lambda moment: _on_day(moment) - timedelta(days=(moment.toordinal() - 1) % 7),
    "start_of_day": _on_day,
    "days_between": lambda a, b: a.toordinal() - b.toordinal(),
}
"""Functions that are missing where an argument is."""


# Relations


def relation(op: Relation, tables: Tables) -> list[tuple[Any, Row]]:
    """Every row with its unit; the unit of public rows is None."""
    return list(_rows(op, tables))


def columns_of(op: Relation) -> list[str]:
    """The names of a relation's columns, in order."""
    match op:
        case Scan(columns=columns):
            return [name for name, _ in columns]
        case Filter(input=below):
            return columns_of(below)
        case Project(columns=made):
            return [name for name, _ in made]
        case JoinPublic(input=below, public=public):
            return [*columns_of(below), *columns_of(public)]


def _rows(op: Relation, tables: Tables) -> Iterator[tuple[Any, Row]]:
    match op:
        case Scan(table=table, columns=columns, unit=unit):
            for row in tables[table]:
                if unit is None or row[unit] is not None:
                    owner = None if unit is None else row[unit]
                    yield owner, {name: safe(row[_source(name)], kind) for name, kind in columns}
        case Filter(input=below, condition=condition):
            yield from ((unit, row) for unit, row in _rows(below, tables) if value(condition, row) is True)
        case Project(input=below, columns=made):
            for unit, row in _rows(below, tables):
                yield unit, {name: value(expression, row) for name, expression in made}
        case JoinPublic():
            yield from _joined(op, tables)


def _source(name: str) -> str:
    """A scan calls a column ``alias.column``; the table calls it ``column``."""
    return name.partition(".")[2] or name


def _joined(op: JoinPublic, tables: Tables) -> Iterator[tuple[Any, Row]]:
    public = [row for _, row in _rows(op.public, tables)]
    nothing = dict.fromkeys(columns_of(op.public))
    for unit, row in _rows(op.input, tables):
        wanted = [value(left, row) for left, _ in op.keys]
        matches = [
            other
            for other in public
            if all(
                mine is not None and mine == theirs
                for mine, theirs in zip(wanted, (value(right, other) for _, right in op.keys), strict=True)
            )
        ]
        if len(matches) > op.most:
            raise Unsound(f"a row has {len(matches)} matches, more than the {op.most} that were promised")
        for other in matches:
            yield unit, row | other
        if not matches and op.kind is JoinKind.LEFT:
            yield unit, row | nothing


# Aggregates


@dataclass(frozen=True)
class Added:
    """What each unit would add to each group that it has rows in: unit → group → one number for each tally."""

    cells: list[Cell]
    amounts: dict[Any, dict[Cell, tuple[int, ...]]]
    tallies: int

    def total(self, choose: Choose) -> dict[Cell, tuple[int, ...]]:
        """The exact answer, when each unit adds to the groups that it keeps."""
        sums = {cell: [0] * self.tallies for cell in self.cells}
        for unit, own in self.amounts.items():
            kept = list(choose(unit, [cell for cell in self.cells if cell in own]))
            if len(set(kept)) != len(kept) or not set(kept) <= own.keys():
                raise Unsound(f"{unit!r} keeps {kept}, out of {list(own)}")
            for cell in kept:
                sums[cell] = [old + new for old, new in zip(sums[cell], own[cell], strict=True)]
        return {cell: tuple(numbers) for cell, numbers in sums.items()}


def added(op: Aggregate, tables: Tables) -> Added:
    """What is known before anyone chooses groups."""
    cells = list(itertools.product(*(group.values for group in op.groups)))
    known = set(cells)
    rows: dict[Any, dict[Cell, list[Row]]] = {}
    for unit, row in relation(op.input, tables):
        cell = tuple(value(group.expression, row) for group in op.groups)
        if cell in known:
            rows.setdefault(unit, {}).setdefault(cell, []).append(row)
    amounts = {
        unit: {cell: tuple(amount(tally, own) for tally in op.tallies) for cell, own in groups.items()}
        for unit, groups in rows.items()
    }
    return Added(cells, amounts, len(op.tallies))


def aggregate(op: Aggregate, tables: Tables, choose: Choose) -> dict[Cell, tuple[int, ...]]:
    """One exact number a tally for every public cell, in the order of the cells."""
    return added(op, tables).total(lambda unit, own: own if len(own) <= op.most_groups else choose(unit, own))


def amount(tally: Tally, rows: Sequence[Mapping[str, Any]]) -> int:
    """What one unit's rows of one group add."""
    values = [True if tally.argument is None else value(tally.argument, row) for row in rows]
    there = [one for one in values if one is not None]
    low, high = tally.bounds
    match tally.measure:
        case Measure.UNITS:
            return 1 if there else 0
        case Measure.ROWS:
            return min(max(len(there), low), high) if there else 0
        case Measure.TOTAL:
            found = [step for one in there if (step := steps(tally, one)) is not None]
            total = sum(found)
            if tally.most_rows is not None and len(found) > tally.most_rows:
                total = math.trunc(Fraction(total * tally.most_rows, len(found)))
            return min(max(total, low), high) if found else 0


def steps(tally: Tally, number: int | float) -> int | None:
    """A value in whole steps of the grid: by DOUBLE arithmetic for reals, exactly for integers."""
    low, high = tally.clamp or (None, None)
    if isinstance(number, int):
        exact = Fraction(number)
        exact = exact if low is None else max(exact, low)
        exact = exact if high is None else min(exact, high)
        return half_even((exact - tally.origin) / tally.grid)
    real = number if low is None else max(number, float(low))
    real = real if high is None else min(real, float(high))
    scaled = (real - float(tally.origin)) / float(tally.grid)
    return within64(half_even(Fraction(scaled))) if math.isfinite(scaled) else None


def over(op: Aggregate, tables: Tables) -> list[Any]:
    """The units that have more groups than they may keep."""
    return [unit for unit, own in added(op, tables).amounts.items() if len(own) > op.most_groups]


MOST_CHOICES = 20_000


def possible(op: Aggregate, tables: Tables, answer: Mapping[Cell, Sequence[int]]) -> bool:
    """Whether an answer is one that some choice of groups gives. Refuses to count beyond MOST_CHOICES."""
    known = added(op, tables)
    chooser = [unit for unit, own in known.amounts.items() if len(own) > op.most_groups]
    options = [list(itertools.combinations(sorted_cells(known, unit), op.most_groups)) for unit in chooser]
    if math.prod(len(one) for one in options) > MOST_CHOICES:
        raise ValueError("too many units have too many groups to try every choice")
    wanted = {cell: tuple(numbers) for cell, numbers in answer.items()}
    for choice in itertools.product(*options):
        kept = dict(zip(chooser, choice, strict=True))
        if known.total(lambda unit, own, kept=kept: kept.get(unit, own)) == wanted:  # type: ignore[misc]
            return True
    return False


def sorted_cells(known: Added, unit: Any) -> list[Cell]:
    """A unit's cells, in the order of the public ones."""
    return [cell for cell in known.cells if cell in known.amounts[unit]]
