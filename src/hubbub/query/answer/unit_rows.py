"""One row for each unit of a question, by way of one for each unit and group: what it has, before anything is cut off.

Both steps are reductions of a unit's own rows (query.ops), so the row is a function of them alone. Groups that are not
shown do not count: nothing of them is in the answer.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hubbub.errors import TooHeavy
from hubbub.policy.kinds import Kind, Type, integer
from hubbub.query.check.prune import prune
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Group, Project, Reduce, Reduced, Reduction, Relation, Tally

MOST_LISTED = 10_000
"""Values of one key that are looked up for each unit and group."""
MANY = integer(0, 1 << 40, nullable=False)
"""A number of rows."""
_SHOWN = "shown"


class Units:
    """One row for each unit, by way of one for each unit and group: columns are added as they are needed."""

    def __init__(self, rows: Relation, groups: Sequence[Group], sets: Sequence[Sequence[int]]) -> None:
        """``sets`` are the groupings that are shown: a row counts where it is in a group of any of them."""
        self._rows, self._groups, self._shown = rows, groups, _is_released(groups, sets)
        self._pairs: list[Reduced] = []
        self._units: list[Reduced] = []

    @property
    def relation(self) -> Relation:
        """With all columns that were asked for."""
        if not self._units:
            return prune(Reduce(input=self._rows, keys=()), frozenset())
        keys = tuple((_key(place, group).name, group.expression) for place, group in enumerate(self._groups))
        pairs: Relation = Reduce(input=self._rows, keys=keys, columns=tuple(self._pairs))
        if self._shown is not None:
            held = tuple((one.name, Column(one.name, one.kind)) for one in self._pairs)
            pairs = Project(input=pairs, columns=((_SHOWN, self._shown), *held))
        units = Reduce(input=pairs, keys=(), columns=tuple(self._units))
        return prune(units, frozenset(one.name for one in self._units))

    def groups(self) -> Expression:
        """Count the groups of the unit that are shown."""
        return self._unit(rows_of("", self._if_shown(literal(True))))

    def rows(self, argument: Expression | None) -> Expression:
        """The most rows, with a value if there is an argument, that it has in a group."""
        return self._end(Reduction.MOST, self._pair(rows_of("", argument)))

    def count_rows(self, most: int) -> Expression:
        """Count the rows of the unit over all groups, at most ``most`` in each."""
        held = self._if_shown(call("least", self._pair(rows_of("", None)), literal(most)))
        return self._unit(Reduced(name="", reduction=Reduction.TOTAL, argument=held, kind=integer(0, 1 << 62)))

    def different(self, argument: Expression) -> Expression:
        """The most different values that it has in a group."""
        return self._end(
            Reduction.MOST, self._pair(Reduced(name="", reduction=Reduction.DISTINCT, argument=argument, kind=MANY))
        )

    def outside(self, argument: Expression, end: Fraction, *, below: bool) -> Expression:
        """Build the condition that the unit has a value below or above an end."""
        way, compared = (Reduction.LEAST, "lt") if below else (Reduction.MOST, "gt")
        held = self._pair(
            Reduced(name="", reduction=way, argument=argument, kind=replace(argument.kind, nullable=True))
        )
        if argument.kind.type is Type.INTEGER:
            whole = math.ceil(end) if below else math.floor(end)
            return call(compared, self._end(way, held), literal(whole))
        return call(compared, self._end(way, held), literal(float(end)))

    def beyond(self, tally: Tally) -> Expression:
        """Build the condition that the unit adds a sum or an average to some group that is beyond the tally's bounds.

        Whole sums stop one step beyond them, which is as good.
        """
        argument, (low, high) = tally.argument, tally.bounds
        assert argument is not None
        averaged = tally.most_rows is not None
        whole = argument.kind.type is Type.INTEGER and tally.grid == 1 and not averaged
        total = self._pair(
            Reduced(
                name="",
                reduction=Reduction.TOTAL,
                argument=argument,
                kind=integer(low - 1, high + 1) if whole else Kind(type=Type.REAL),
                clamp=tally.clamp,
                grid=tally.grid,
            )
        )
        added: Expression = total
        ends = [literal(end if whole else float(end) * float(tally.grid)) for end in (low, high)]
        if averaged:
            added = call("divide", total, call("to_real", self._pair(rows_of("", argument))))
            ends = [literal(float(end * tally.grid + tally.origin)) for end in (low, high)]
        least, most = self._end(Reduction.LEAST, added), self._end(Reduction.MOST, added)
        return call("or", call("lt", least, ends[0]), call("gt", most, ends[1]))

    def _end(self, way: Reduction, held: Expression) -> Expression:
        value = self._if_shown(held)
        return self._unit(Reduced(name="", reduction=way, argument=value, kind=replace(value.kind, nullable=True)))

    def _if_shown(self, value: Expression) -> Expression:
        if self._shown is None:
            return value
        return call("case", Column(_SHOWN, self._shown.kind), value, literal(None, value.kind.type))

    def _pair(self, column: Reduced) -> Column:
        return _add_column(self._pairs, column, "pair")

    def _unit(self, column: Reduced) -> Column:
        return _add_column(self._units, column, "unit")


def _add_column(columns: list[Reduced], column: Reduced, prefix: str) -> Column:
    """A column under a name of its own; the same one only once."""
    for held in columns:
        if replace(held, name="") == column:
            return Column(held.name, held.kind)
    named = replace(column, name=f"{prefix} {len(columns)}")
    columns.append(named)
    return Column(named.name, named.kind)


def rows_of(name: str, argument: Expression | None) -> Reduced:
    """A column that counts rows, with a value if there is an argument."""
    return Reduced(name=name, reduction=Reduction.ROWS, argument=argument, kind=MANY)


# Which groups are shown


def _key(place: int, group: Group) -> Column:
    return Column(f"key {place}", group.expression.kind)


def _is_released(groups: Sequence[Group], sets: Sequence[Sequence[int]]) -> Expression | None:
    """Build the condition that a combination of keys is in a group that is shown; None where all are."""
    found = []
    for places in sets:
        parts = [_is_listed(place, groups[place]) for place in places if not groups[place].private]
        if not parts:
            return None
        found.append(parts[0] if len(parts) == 1 else call("and", *parts))
    return any_of(found)


def _is_listed(place: int, group: Group) -> Expression:
    key, values = _key(place, group), group.values
    if len(values) > MOST_LISTED:
        raise TooHeavy(
            f"{group.name} has {len(values):,} groups, and {MOST_LISTED:,} can be diagnosed. List fewer: WHERE … IN "
            "(…).",
            key=group.name,
        )
    if group.type is Type.INTEGER:  # others are nobody's
        low, high = key.kind.range
        values = tuple(one for one in values if one is None or (isinstance(one, int) and low <= one <= high))
    there = [literal(value) for value in values if value is not None]
    kept = [call("in", key, *there)] if there else []
    kept += [call("is_null", key)] if None in values else []
    return any_of(kept) if kept else literal(False)


def any_of(conditions: Sequence[Expression]) -> Expression:
    """Build the condition that at least one of the conditions is true."""
    return conditions[0] if len(conditions) == 1 else call("or", *conditions)
