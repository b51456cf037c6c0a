"""Databases made up from what a policy declares, and neighbours among them: the worst that are known, then any.

Nothing here has seen a row of anybody's. Values lie within the declared bounds, at their ends, far beyond them and
beside every number; public tables follow from the declarations alone, so that all databases of one policy share them.
Two neighbours differ in the rows of one unit in all private tables: it is there or it is not, or, where units are
replaced, its rows are others.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hubbub.audit.chance import Chance
from hubbub.audit.subject import Pair
from hubbub.policy.in_python import with_keys_seen
from hubbub.policy.kinds import Kind, Type
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Policy, Table, TableColumn, Value
from hubbub.privacy.sensitivity import Neighbors

Row = Mapping[str, Any]
Part = Mapping[str, tuple[Row, ...]]
"""Rows of some tables."""

WORDS = ("a", "b", "ab", "", "1", "11", "A", " a", "e\u0301", "\x1b[31mred", "<b>", "NULL")
"""Texts that are put together, compared and shown carelessly now and then."""
STRANGER = 999
"""Who comes in place of a unit that is replaced."""
_MOST = 1500
"""Rows of one unit at most."""
_GROUPS = 24
"""Combinations of keys at most."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True, weakref_slot=True)
class Data:
    """One database: rows of everybody else, and those of the unit that is looked at."""

    others: Part
    mine: Part

    def tables(self) -> dict[str, list[Row]]:
        """All rows, those of the one unit in the middle of the others'."""
        found = {}
        for table in self.others:
            rest, own = self.others[table], self.mine.get(table, ())
            half = len(rest) // 2
            found[table] = [*rest[:half], *own, *rest[half:]]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Tables of a policy, to be filled."""

    policy: Policy
    hints: tuple[Value, ...] = ()
    """Values that a question compares with."""
    crowd: int = 5
    """How many others there are."""
    public: Mapping[str, list[Row]] = field(init=False)
    _plains: dict[TableColumn, list[Value]] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "public", {name: self._public(one) for name, one in self.policy.tables.items() if one.unit is None}
        )

    @property
    def private(self) -> list[Table]:
        """Tables with rows of units, those that lead to others after them."""
        found = [one for one in self.policy.tables.values() if one.unit is not None]
        return sorted(found, key=lambda one: len(one.path))

    # Pairs

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        """Worst cases first, then random ones without end."""
        many = self._copies
        low, high = (self._at_end(end) for end in (0, 1))
        full = self.others(self.crowd, each=3)
        small = self.others(self.crowd, each=1)
        worst = self.unit(0, rows=many * self._groups, value=high)
        yield self._pair(full, worst, "a unit with many rows in every group, at the upper ends")
        yield self._pair(full, self.unit(0, rows=many * self._groups, value=low), "… at the lower ends")
        yield self._pair(self._nobody(), worst, "a unit alone in the database")
        if self.crowd > 5:
            common = self.others(self.crowd, each=1, value=lambda column, place: self._plain(column, 0))
            yield self._pair(
                common,
                self.unit(0, rows=1, value=lambda column, place: self._plain(column, 0)),
                "a unit among as many others as a key needs",
            )
        yield self._pair(small, self.unit(0, rows=1, value=high), "a unit with one row")
        yield self._pair(small, self.unit(0, rows=2 * self._groups, value=self._alone()), "keys that nobody else has")
        yield self._pair(full, self.unit(0, rows=many * self._groups, value=self._odd()), "values that are hardly any")
        yield self._pair(full, self.unit(0, rows=6, value=self._tied), "rows that tie wherever they are ordered")
        yield self._pair(full, self.unit(0, rows=9, value=self._cancelling), "reals that add up by their order")
        yield self._pair(full, self._again(full), "a unit with the rows of another")
        while True:
            crowd, each = chance.between(0, 9), chance.between(1, 4)
            value = self._random(chance)
            yield self._pair(
                self.others(crowd, each=each, value=value, chance=chance),
                self.unit(0, rows=chance.choice((1, 2, 3, 5, 8, many)), value=value),
                "rows at random",
                instead=self.unit(chance.choice((0, STRANGER)), rows=chance.between(0, 8), value=value),
            )

    def _pair(self, others: Part, mine: Part, about: str, *, instead: Part | None = None) -> Pair:
        """With the unit and without it, or with others of its rows."""
        if self.policy.budget.neighbors is not Neighbors.REPLACE_ONE:
            instead = {}
        elif instead is None:
            instead = self.unit(STRANGER, rows=self._copies * self._groups, value=self._at_end(0))
        return Pair(x=Data(others=others, mine=mine), y=Data(others=others, mine=instead), about=about)

    # Rows

    def _nobody(self) -> Part:
        return {table.name: () for table in self.private}

    def others(
        self,
        many: int,
        *,
        each: int,
        value: "Filling | None" = None,
        chance: Chance | None = None,
    ) -> Part:
        """Units 1, 2, …; the first of them in every group."""
        rows: dict[str, list[Row]] = {table.name: [] for table in self.private}
        for unit in range(1, many + 1):
            wide = max(each, self._groups) if unit <= 3 and each > 1 else each
            for table, held in self.unit(unit, rows=wide, value=value or self._usual, turn=unit).items():
                rows[table] += held
        mix = chance or Chance("others")
        return {table: tuple(mix.shuffle(held)) for table, held in rows.items()}

    def unit(self, unit: int, *, rows: int, value: "Filling", turn: int = 0) -> Part:
        """A unit's rows in all tables: so many in each, unless it can have but one."""
        found: dict[str, tuple[Row, ...]] = {}
        for table in self.private:
            alone = table.unique and table.name in self.policy.enforced
            many = 1 if alone else max(1, min(rows, _MOST))
            found[table.name] = tuple(self._row(table, unit, place, turn, value) for place in range(many))
        return found

    def orphans(self) -> Part:
        """Rows of nobody, in every table: without a unit, or leading nowhere."""
        return {
            table.name: tuple(self._row(table, None, place, place, self._usual) for place in range(2))
            for table in self.private
        }

    def _row(self, table: Table, unit: int | None, place: int, turn: int, value: "Filling") -> Row:
        combination = self._keys_at(table, place + turn)
        row: dict[str, Any] = {}
        for column in table.columns:
            if table.through is not None and column.name == table.through.column:
                row[column.name] = None if unit is None else _link(column, unit, place, self._many(table))
            elif table.through is None and column.name == table.unit:
                row[column.name] = None if unit is None else _unit(column.kind, unit)
            elif self._is_key(table, column):
                row[column.name] = None if unit is None else _link(column, unit, place, None)
            elif column.name in combination and value.__name__ != "anything":
                row[column.name] = combination[column.name]
            else:
                row[column.name] = value(column, place + turn)
        return row

    def _many(self, table: Table) -> int:
        """Count the rows of the next table that a unit's rows lead to: one, where each unit has one."""
        assert table.through is not None
        there = self.policy.tables[table.path[0].table]
        return 1 if there.unique and there.name in self.policy.enforced else 3

    def _is_key(self, table: Table, column: TableColumn) -> bool:
        led_to = {(step.table, step.key) for one in self.private for step in one.path}
        return column.unique and ((table.name, column.name) in {*led_to, *self.policy.enforced_keys})

    def _keys_at(self, table: Table, place: int) -> dict[str, Value]:
        """One combination of declared keys after the other."""
        found: dict[str, Value] = {}
        for column in table.columns:
            if column.keys:
                found[column.name] = column.keys[place % len(column.keys)]
                place //= len(column.keys)
        return found

    @property
    def _groups(self) -> int:
        """Return how many groups there are to be in: more than a unit may count in."""
        declared = [math.prod(len(one.keys) for one in table.columns if one.keys) for table in self.private]
        return max(2, min(_GROUPS, max(self.policy.limits.groups + 3, *declared, 4)))

    @property
    def _copies(self) -> int:
        """More rows in a group than count."""
        return max(2, min((self.policy.limits.max_rows or 2) + 2, _MOST // self._groups))

    # Values

    def _usual(self, column: TableColumn, place: int) -> Value:
        return self._plain(column, place)

    def _plain(self, column: TableColumn, place: int) -> Value:
        values = self._plains.get(column)
        if values is None:
            values = self._plains[column] = usual(column, (*self.hints, *self._texts()))
        return values[place % len(values)]

    def _texts(self) -> tuple[Value, ...]:
        """Declared keys of any column: what tables are joined by."""
        return tuple(key for table in self.policy.tables.values() for one in table.columns for key in one.keys or ())

    def _at_end(self, end: int) -> "Filling":
        def value(column: TableColumn, place: int) -> Value:
            if column.kind.type not in (Type.INTEGER, Type.REAL) or column.bounds is None:
                return self._plain(column, place)
            return beyond(column, end)

        return value

    def _alone(self) -> "Filling":
        """A value that nobody else has, and another one in each row."""

        def anything(column: TableColumn, place: int) -> Any:
            match column.kind.type:
                case Type.TEXT:
                    return f"mine {place}"
                case Type.DATE:
                    return date(1900, 1, 1) + timedelta(days=place)
                case Type.TIMESTAMP:
                    return datetime(1900, 1, 1) + timedelta(days=place)
            return self._plain(column, place)

        return anything

    def _odd(self) -> "Filling":
        """Values that should not be there, and keys that nobody declared."""

        def anything(column: TableColumn, place: int) -> Any:
            values = [*(column.keys or ()), *odd(column)]
            return values[place % len(values)]

        return anything

    def _cancelling(self, column: TableColumn, place: int) -> Value:
        """Large reals that cancel, and small ones that are lost between them, or not."""
        if column.kind.type is not Type.REAL:
            return self._plain(column, 0)
        small = 100.0 if column.bounds is None else float(column.bounds[1])
        return (max(1.0, abs(small)) * 2.0**60, small, -max(1.0, abs(small)) * 2.0**60)[place % 3]

    def _tied(self, column: TableColumn, place: int) -> Value:
        """The same in all rows but for one column, which differs."""
        varied = {table.name: [one.name for one in table.columns if one.keys is None][-1:] for table in self.private}
        return self._plain(column, place if any(column.name in names for names in varied.values()) else 0)

    def _random(self, chance: Chance) -> "Filling":
        def anything(column: TableColumn, place: int) -> Any:
            return chance.choice(odd(column)) if chance.one_in(4) else self._plain(column, chance.below(1 << 16))

        return anything

    def _again(self, others: Part) -> Part:
        """The rows of the first of the others, under the name of the one."""
        model = self.others(1, each=self._groups)
        fresh = self.unit(0, rows=_MOST, value=self._usual)
        found: dict[str, tuple[Row, ...]] = {}
        for table in self.private:
            kept = [one.name for one in table.columns if not self._names(table, one)]
            pairs = zip(model[table.name], fresh[table.name], strict=False)
            found[table.name] = tuple(dict(own) | {one: row[one] for one in kept} for row, own in pairs)
        return found

    def _names(self, table: Table, column: TableColumn) -> bool:
        """Return whether a column says which unit a row belongs to, or is a key."""
        leads = table.through is not None and table.through.column == column.name
        return leads or column.name == table.unit or self._is_key(table, column)

    def _public(self, table: Table) -> list[Row]:
        """A row for each value that something could be joined by, some of them twice where that is allowed."""
        rows: list[Row] = []
        many = max(4, min(_GROUPS, len(self._texts()) + 2))
        for place in range(many):
            row = {}
            for column in table.columns:
                values = column.keys or tuple(usual(column, (*self._texts(), *self.hints)))
                row[column.name] = _different(column, values, place) if column.unique else values[place % len(values)]
            rows.append(row)
        if not any(column.unique for column in table.columns):
            rows += [dict(rows[0]), dict(rows[-1])]
        return rows

    # Steps

    def changed(self, part: Part, chance: Chance) -> Part | None:
        """One row more or less, or one value of a row changed."""
        table = chance.choice(self.private)
        rows = list(part.get(table.name, ()))
        alone = table.unique and table.name in self.policy.enforced
        if not rows:
            return {**part, table.name: (self._row(table, 0, 0, 0, self._at_end(1)),)}
        at = chance.below(len(rows))
        step = chance.below(4)
        if step == 0:
            rows.pop(at)
        elif step == 1 and not alone and not any(self._is_key(table, one) for one in table.columns):
            rows += [rows[at]] * chance.choice((1, 3))
        else:
            free = [one for one in table.columns if not self._names(table, one)]
            if not free:
                return None
            column = chance.choice(free)
            values = (*(column.keys or ()), *usual(column, self.hints), *odd(column))
            rows[at] = {**rows[at], column.name: chance.choice(values)}
        return {**part, table.name: tuple(rows)}

    def few(self, part: Part) -> Iterator[Part]:
        """The first rows, and the first of one group."""
        for many, apart in ((1, 1), (4, self._groups), (2, 1), (6, 1), (12, self._groups), (12, 1)):
            yield {table: rows[::apart][:many] for table, rows in part.items()}

    def simpler(self, part: Part) -> Iterator[Part]:
        """One value after the other, as plain as can be."""
        for table in self.private:
            rows = part.get(table.name, ())
            for column in table.columns:
                plain = self._plain(column, 0)
                if self._names(table, column) or not isinstance(plain, int | float | str):
                    continue
                if any(row[column.name] is not None and row[column.name] != plain for row in rows):
                    for value in (None, plain):
                        yield {**part, table.name: tuple({**row, column.name: value} for row in rows)}


Filling = Callable[[TableColumn, int], Any]
"""The value of a column in a row."""


def with_declared_keys(policy: Policy) -> Policy:
    """Return the policy with everything that it declares unique believed: made-up tables keep to it, in no file."""
    unmoved = replace(policy, seen=dict.fromkeys(policy.seen, NO_FILES))
    return with_keys_seen(unmoved, lambda table, column: 0, lambda table: NO_FILES)


def usual(column: TableColumn, hints: Sequence[Value] = ()) -> list[Value]:
    """Values as they should be."""
    if column.keys:
        return list(column.keys)
    near = [one for one in _near(column, hints) if one is not None]
    match column.kind.type:
        case Type.BOOLEAN:
            return [True, False]
        case Type.TEXT:
            return list(dict.fromkeys([*near, *WORDS[:6]]))
        case Type.DATE:
            return list(dict.fromkeys([*near, *(date(2024, 1 + step % 12, 1 + step) for step in range(8))]))
        case Type.TIMESTAMP:
            return list(dict.fromkeys([*near, *(datetime(2024, 1 + step, 3, step, 30) for step in range(8))]))
    if column.bounds is None:
        return list(dict.fromkeys([*near, *_fitting(column.kind, [1, 2, 3, 0, 5, 40])]))
    low, high = column.bounds
    inner = [low + (high - low) * Fraction(part, 4) for part in (2, 1, 4, 0, 3)]
    return list(dict.fromkeys([*near, *_fitting(column.kind, inner)]))


def odd(column: TableColumn) -> list[Any]:
    """Values that should not be there, and are now and then."""
    match column.kind.type:
        case Type.BOOLEAN:
            return [None, True, False]
        case Type.TEXT:
            return [None, *WORDS]
        case Type.DATE:
            return [None, date.min, date.max, "infinity", "-infinity", date(1970, 1, 1)]
        case Type.TIMESTAMP:
            return [None, datetime.min, "infinity", "-infinity", datetime(9999, 12, 31, 23, 59, 59, 999999)]
        case Type.REAL:
            ends = [] if column.bounds is None else [float(end) + step for end in column.bounds for step in (-0.3, 1e9)]
            return [math.nan, math.inf, -math.inf, None, -0.0, 1e308, -1e308, 5e-324, 2.0**63, *ends]
    low, high = column.kind.range
    return [None, low, high, 0, *_fitting(column.kind, [-1, 1, 1 << 31, -(1 << 31), *(column.bounds or ())])]


def beyond(column: TableColumn, end: int) -> Value:
    """At an end of the bounds, and beyond it where the type can hold that; of signs, the one that adds more."""
    assert column.bounds is not None
    bound = column.bounds[end]
    further = bound + (1 << 20 if end else -(1 << 20))
    if column.kind.type is Type.REAL:
        return float(further)
    low, high = column.kind.range
    return max(low, min(high, int(further)))


def _fitting(kind: Kind, values: Sequence[Any]) -> list[Value]:
    if kind.type is Type.REAL:
        return [float(value) for value in values]
    low, high = kind.range
    return [int(value) for value in values if low <= int(value) <= high] or [low]


def _near(column: TableColumn, hints: Sequence[Value]) -> list[Value]:
    """List what a question compares with, where it is of the column's type, and what lies beside it."""
    kind, found = column.kind, list[Value]()
    for hint in hints:
        number = isinstance(hint, int | float) and not isinstance(hint, bool)
        if kind.type is Type.TEXT and isinstance(hint, str):
            found.append(hint)
        elif kind.type in (Type.INTEGER, Type.REAL) and number and column.bounds is None:
            found += _fitting(kind, [hint + step for step in (0, 1, -1)])  # type: ignore[operator]
        elif kind.type is Type.DATE and isinstance(hint, date) and not isinstance(hint, datetime):
            found += [hint, hint + timedelta(days=1)]
    return found


def _unit(kind: Kind, unit: int) -> Value:
    """The name of a unit: of texts, each the beginning of the next, since that is what careless joins mix up."""
    match kind.type:
        case Type.BOOLEAN:
            return unit in (0, STRANGER)
        case Type.DATE:
            return date(2000, 1, 1) + timedelta(days=unit)
        case Type.TEXT:
            return ("a", "", "ab", "b", "aba")[unit] if unit < 5 else f"u{unit}"
    low, high = kind.range
    if unit == STRANGER:
        return low if low <= 0 else high
    return max(low, min(high, low + unit if low > 0 else (0, 1, 11, 111)[unit] if unit < 4 else 200 + unit))


def _link(column: TableColumn, unit: int, place: int, many: int | None) -> Value:
    """A key of a unit's rows, and what leads to it."""
    number = unit * (_MOST + 1) + (place if many is None else place % many)
    match column.kind.type:
        case Type.TEXT:
            return f"k{number}"
        case Type.DATE:
            return date(2000, 1, 1) + timedelta(days=number)
        case Type.BOOLEAN:
            return bool(number % 2)
    low, high = column.kind.range
    return low + number if low > 0 else min(high, number)


def _different(column: TableColumn, values: Sequence[Value], place: int) -> Value:
    if place < len(dict.fromkeys(values)):
        return list(dict.fromkeys(values))[place]
    return f"other {place}" if column.kind.type is Type.TEXT else None
