"""What every operation means, written a second time: slow, obvious, and sharing nothing with the code it judges.

It knows the classes of ``query.ops`` and ``query.expression`` and the kinds of the policy, and imports nothing else of
ours. A table is a list of dictionaries, straight from a source: NaN, infinities and dates far away included. What the
functions mean is said in ``meaning``.
"""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hubbub.policy.kinds import Type
from hubbub.policy.paths import PathStep
from hubbub.query.expression import Expression
from hubbub.query.ops import (
    Aggregate,
    Cap,
    Dropped,
    Filter,
    Histogram,
    JoinKind,
    JoinOwn,
    JoinPublic,
    Match,
    Measure,
    Project,
    Ranking,
    Reduce,
    Reduced,
    Reduction,
    Relation,
    RelationUnion,
    Scan,
    Tally,
    Window,
)
from tests.query.meaning import OPEN, STRICT, Unsound, fits, half_even, safe, value, within64

__all__ = ["OPEN", "STRICT", "Unsound", "aggregate", "fits", "half_even", "relation", "safe", "value", "within64"]

Row = dict[str, Any]
Owned = tuple[Any, Row]
"""A row with its unit; the unit of public rows is None."""
Tables = Mapping[str, Sequence[Mapping[str, Any]]]
Cell = tuple[Any, ...]
Choose = Callable[[Any, list[Cell]], Iterable[Cell]]
"""Of a unit and its groups, in the order of the public cells: those that it keeps, in the order that chose them."""
Keep = Callable[[Cap, Any, list[Row]], list[Row]]
"""Of a unit's rows, which are more than a cap allows: those that stay."""


def by_hash(op: Cap, unit: Any, rows: list[Row]) -> list[Row]:
    """Those that a hash of unit and content puts first: a function of the unit's own multiset."""

    def rank(row: Row) -> tuple[bytes, str]:
        content = repr((unit, [one + 0.0 if isinstance(one, float) else one for one in row.values()]))
        return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), key=b"cap").digest(), content

    return sorted(rows, key=rank)[: op.most]


# Relations


def relation(op: Relation, tables: Tables, keep: Keep = by_hash) -> list[Owned]:
    """Every row with its unit; the unit of public rows is None."""
    return list(_Meaning(tables, keep).rows(op))


def columns_of(op: Relation) -> list[str]:
    """The names of a relation's columns, in order."""
    match op:
        case Scan(columns=columns):
            return [one.name for one in columns]
        case Filter(input=below) | Cap(input=below) | Match(input=below):
            return columns_of(below)
        case Project(columns=made):
            return [name for name, _ in made]
        case JoinPublic(input=below, public=other) | JoinOwn(input=below, other=other):
            return [*columns_of(below), *columns_of(other)]
        case Reduce(keys=keys, columns=reduced):
            return [*(name for name, _ in keys), *(one.name for one in reduced)]
        case Window(input=below, name=name):
            return [*columns_of(below), name]
        case RelationUnion(inputs=inputs):
            return columns_of(inputs[0])


@dataclass(frozen=True)
class _Meaning:
    tables: Tables
    keep: Keep

    def rows(self, op: Relation) -> Iterator[Owned]:
        match op:
            case Scan(table=table, columns=columns, unit=unit, path=path):
                for row in self.tables[table]:
                    for owner in self.owners(row, unit, path):
                        whole = {**row, str(unit): owner} if path else row
                        yield owner, {one.name: safe(whole[one.reads], one.kind) for one in columns}
            case Filter(input=below, condition=condition):
                yield from ((unit, row) for unit, row in self.rows(below) if value(condition, row) is True)
            case Project(input=below, columns=made):
                for unit, row in self.rows(below):
                    yield unit, {name: value(expression, row) for name, expression in made}
            case JoinPublic():
                yield from self.joined(op)
            case Cap(input=below, most=most):
                for unit, own in _by_unit(self.rows(below)).items():
                    kept = own if len(own) <= most else self.keep(op, unit, own)
                    yield from ((unit, row) for row in kept)
            case JoinOwn():
                yield from self.joined_own(op)
            case Match(input=below, other=other, keys=keys, without=without):
                others = list(self.rows(other))
                for unit, row in self.rows(below):
                    found = any(_equal(keys, row, one) for owner, one in others if owner is None or owner == unit)
                    if found is not without:
                        yield unit, row
            case Reduce(input=below):
                for unit, own in _by_unit(self.rows(below)).items():
                    yield from ((unit, row) for row in _reduced(op, own))
            case Window(input=below):
                for unit, own in _by_unit(self.rows(below)).items():
                    yield from ((unit, row) for row in _windowed(op, own))
            case RelationUnion(inputs=inputs):
                for one in inputs:
                    yield from self.rows(one)

    def owners(self, row: Mapping[str, Any], unit: str | None, path: Sequence[PathStep]) -> Iterator[Any]:
        """Whose a row is: what it says itself, or what the rows say that it leads to. Nobody's rows are left out."""
        if unit is None:
            yield None
        elif not path:
            yield from () if row[unit] is None else (row[unit],)
        else:
            there = [one for one in self.tables[path[0].table] if one[path[0].key] is not None]
            for one in there:
                if one[path[0].key] == row[path[0].column]:
                    yield from self.owners(one, unit, path[1:])

    def joined(self, op: JoinPublic) -> Iterator[Owned]:
        public = [row for _, row in self.rows(op.public)]
        nothing = dict.fromkeys(columns_of(op.public))
        for unit, row in self.rows(op.input):
            matches = [other for other in public if _equal(op.keys, row, other)]
            if len(matches) > op.most:
                raise Unsound(f"a row has {len(matches)} matches, more than the {op.most} that were promised")
            for other in matches:
                yield unit, row | other
            if not matches and op.kind is JoinKind.LEFT:
                yield unit, row | nothing

    def joined_own(self, op: JoinOwn) -> Iterator[Owned]:
        left, right = (_by_unit(self.rows(one)) for one in (op.input, op.other))
        for unit in dict.fromkeys([*left, *right]):
            mine, theirs = left.get(unit, []), right.get(unit, [])
            pairs = [
                (a, b) for a in range(len(mine)) for b in range(len(theirs)) if _equal(op.keys, mine[a], theirs[b])
            ]
            yield from ((unit, mine[a] | theirs[b]) for a, b in pairs)
            if op.kind in {JoinKind.LEFT, JoinKind.FULL}:
                alone = set(range(len(mine))) - {a for a, _ in pairs}
                yield from ((unit, mine[a] | dict.fromkeys(columns_of(op.other))) for a in alone)
            if op.kind is JoinKind.FULL:
                alone = set(range(len(theirs))) - {b for _, b in pairs}
                yield from ((unit, dict.fromkeys(columns_of(op.input)) | theirs[b]) for b in alone)


def _by_unit(rows: Iterable[Owned]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for unit, row in rows:
        found.setdefault(unit, []).append(row)
    return found


def _equal(keys: Sequence[tuple[Expression, Expression]], mine: Row, theirs: Row) -> bool:
    """Missing keys equal nothing."""
    pairs = [(value(left, mine), value(right, theirs)) for left, right in keys]
    return all(one is not None and other is not None and one == other for one, other in pairs)


def _reduced(op: Reduce, rows: list[Row]) -> Iterator[Row]:
    groups: dict[Cell, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(value(key, row) for _, key in op.keys), []).append(row)
    for cell, own in groups.items():
        named = dict(zip((name for name, _ in op.keys), cell, strict=True))
        yield named | {one.name: _reduction(one, own) for one in op.columns}


def _reduction(one: Reduced, rows: list[Row]) -> Any:
    """Whole results beyond the stated range are put at its end."""
    values = [True if one.argument is None else value(one.argument, row) for row in rows]
    there = [found for found in values if found is not None]
    result: Any = None
    match one.reduction:
        case Reduction.ROWS:
            result = len(there)
        case Reduction.DISTINCT:
            result = len(set(there))
        case Reduction.LEAST if there:
            result = sorted(there)[0]
        case Reduction.MOST if there:
            result = sorted(there)[-1]
        case Reduction.TOTAL if there:
            tally = Tally(measure=Measure.TOTAL, argument=one.argument, clamp=one.clamp, grid=one.grid)
            added = sum(step for found in there if (step := steps(tally, found)) is not None)
            result = added if one.kind.type is Type.INTEGER else float(added) * float(one.grid)
    if type(result) is int:
        result = min(max(result, one.kind.range[0]), one.kind.range[1])
    if not fits(result, one.kind):
        raise Unsound(f"{one} gave {result!r}")
    return result


def _windowed(op: Window, rows: list[Row]) -> Iterator[Row]:
    parts: dict[Cell, list[Row]] = {}
    for row in rows:
        parts.setdefault(tuple(value(one, row) for one in op.part), []).append(row)
    for own in parts.values():
        ordered = _ordered(op, own)
        for place, row in enumerate(ordered):
            yield row | {op.name: _ranked(op, ordered, place)}


def _ordered(op: Window, rows: list[Row]) -> list[Row]:
    """By the order, then by all columns; missing values are last. Sorting keeps what earlier sorting has decided."""
    rows = list(rows)
    for name in reversed(columns_of(op.input)):
        rows.sort(key=lambda row: (row[name] is None, row[name]))
    for one, falling in reversed(op.order):
        if falling:
            rows.sort(key=lambda row: ((found := value(one, row)) is not None, found), reverse=True)
        else:
            rows.sort(key=lambda row: ((found := value(one, row)) is None, found))
    return rows


def _ranked(op: Window, ordered: list[Row], place: int) -> Any:
    before = [tuple(value(one, row) for one, _ in op.order) for row in ordered[: place + 1]]
    match op.ranking:
        case Ranking.ROW_NUMBER:
            return place + 1
        case Ranking.RANK:
            return before.index(before[-1]) + 1
        case Ranking.DENSE_RANK:
            return len(set(before))
        case Ranking.LAG | Ranking.LEAD:
            wanted = place - op.offset if op.ranking is Ranking.LAG else place + op.offset
            if op.argument is None or not 0 <= wanted < len(ordered):
                return None
            return value(op.argument, ordered[wanted])


# Aggregates


@dataclass(frozen=True)
class Added:
    """What each unit would add to each group that it has rows in: unit → group → one number, or a set of values that it
    brings, for each tally."""

    cells: list[Cell]
    amounts: dict[Any, dict[Cell, tuple[int | frozenset[Any], ...]]]
    tallies: int
    op: Aggregate
    rows: dict[Any, dict[Cell, list[Row]]]

    def kept(self, unit: Any, cells: Sequence[Cell]) -> dict[Cell, tuple[int | frozenset[Any], ...]]:
        """What a unit adds to the groups that it keeps, in their order; where it is asked what limits drop, to those
        that it does not keep too, which come after them."""
        if self.drops is not None:
            return self._kept_and_dropped(unit, [*cells, *(cell for cell in self.amounts[unit] if cell not in cells)])
        if self.op.together is None:
            return {cell: self.amounts[unit][cell] for cell in cells}
        found, left = {}, self.op.together.total
        for cell in cells:
            own = self.rows[unit][cell]
            counting = min(len(own), self.op.together.rows, left)
            found[cell] = tuple(amount(tally, own, counting) for tally in self.op.tallies)
            left -= counting
        return found

    @property
    def drops(self) -> Dropped | None:
        return next((tally.dropped for tally in self.op.tallies if tally.dropped is not None), None)

    def _kept_and_dropped(self, unit: Any, cells: Sequence[Cell]) -> dict[Cell, tuple[int | frozenset[Any], ...]]:
        both, drops, found = self.op.together, self.drops, {}
        assert drops is not None
        left, unseen = 0 if both is None else both.total, drops.within
        for place, cell in enumerate(cells):
            own, is_kept = self.rows[unit][cell], place < self.op.most_groups
            looked = min(len(own), unseen)
            counting = min(len(own), drops.rows) if both is None else min(len(own), both.rows, left)
            counting = counting if is_kept else 0
            found[cell] = tuple(
                self._amount(tally, own, is_kept, counting if both is not None else None)
                if tally.dropped is None
                else self._dropped(tally, own, is_kept, counting, looked)
                for tally in self.op.tallies
            )
            left, unseen = left - counting, unseen - looked
        return found

    @staticmethod
    def _amount(tally: Tally, own: list[Row], is_kept: bool, counting: int | None) -> int | frozenset[Any]:
        return amount(tally, own, counting) if is_kept else 0

    def _dropped(self, tally: Tally, own: list[Row], is_kept: bool, counting: int, looked: int) -> int:
        """What all rows that are looked at would add, less what is added; a total within what the dropped ones can."""
        kept = next(one for one in self.op.tallies if one.is_kept_of(tally))
        added = self._amount(kept, own, is_kept, None if self.op.together is None else counting)
        free = amount(replace(tally, bounds=(-(1 << 90), 1 << 90), most_rows=looked, a_row=None), own)
        assert isinstance(added, int)
        assert isinstance(free, int)
        if tally.measure is Measure.UNITS:
            return 0 if is_kept or not looked else free
        if tally.measure is Measure.ROWS:
            return max(0, min(free, looked) - added)
        assert tally.a_row is not None
        rows = max(0, looked - counting)
        total = 0 if not looked else free
        return min(max(total - added, tally.a_row[0] * rows), tally.a_row[1] * rows)

    def short(self, unit: Any) -> bool:
        """Whether it has more rows than count over all groups, so that the order of these matters."""
        both, drops = self.op.together, self.drops
        if drops is not None and sum(map(len, self.rows[unit].values())) > drops.within:
            return True
        return both is not None and sum(min(len(own), both.rows) for own in self.rows[unit].values()) > both.total

    def options(self, unit: Any) -> list[tuple[Cell, ...]]:
        """All choices, and orders where they matter."""
        cells = [cell for cell in self.cells if cell in self.amounts[unit]]
        if self.drops is not None and self.short(unit):
            return list(itertools.permutations(cells))
        among = itertools.permutations if self.short(unit) else itertools.combinations
        return list(among(cells, min(len(cells), self.op.most_groups)))

    def total(self, choose: Choose) -> dict[Cell, tuple[int, ...]]:
        """The exact answer, when each unit adds to the groups that it keeps."""
        sums: dict[Cell, list[Any]] = {cell: [0] * self.tallies for cell in self.cells}
        for unit, own in self.amounts.items():
            kept = list(choose(unit, [cell for cell in self.cells if cell in own]))
            if len(set(kept)) != len(kept) or not set(kept) <= own.keys():
                raise Unsound(f"{unit!r} keeps {kept}, out of {list(own)}")
            for cell, amounts in self.kept(unit, kept).items():
                sums[cell] = [
                    new | (old or frozenset()) if isinstance(new, frozenset) else old + new
                    for old, new in zip(sums[cell], amounts, strict=True)
                ]
        return {
            cell: tuple(len(one) if isinstance(one, frozenset) else one for one in found)
            for cell, found in sums.items()
        }


def added(op: Aggregate, tables: Tables, keep: Keep = by_hash) -> Added:
    """What is known before anyone chooses groups."""
    cells = list(itertools.product(*(group.values for group in op.groups)))
    rows = grouped(op, tables, keep)
    amounts = {
        unit: {cell: tuple(amount(tally, own) for tally in op.tallies) for cell, own in groups.items()}
        for unit, groups in rows.items()
    }
    if any(group.private for group in op.groups):  # those that some unit has
        held = {cell for own in amounts.values() for cell in own}
        cells = sorted(held, key=lambda cell: [(one is None, one) for one in cell])
    return Added(cells, amounts, len(op.tallies), op, rows)


def grouped(op: Aggregate, tables: Tables, keep: Keep = by_hash) -> dict[Any, dict[Cell, list[Row]]]:
    """The rows of each unit in each public group."""
    rows: dict[Any, dict[Cell, list[Row]]] = {}
    for unit, row in relation(op.input, tables, keep):
        cell = tuple(value(group.expression, row) for group in op.groups)
        if all(group.private or one in group.values for group, one in zip(op.groups, cell, strict=True)):
            rows.setdefault(unit, {}).setdefault(cell, []).append(row)
    return rows


def aggregate(op: Aggregate, tables: Tables, choose: Choose, keep: Keep = by_hash) -> dict[Cell, tuple[int, ...]]:
    """One exact number a tally for every public cell, in the order of the cells."""
    known = added(op, tables, keep)
    return known.total(
        lambda unit, own: own if len(own) <= op.most_groups and not known.short(unit) else choose(unit, own)
    )


def amount(tally: Tally, rows: Sequence[Mapping[str, Any]], counting: int | None = None) -> int | frozenset[Any]:
    """What one unit's rows of one group add; of different values, those that it brings. ``counting``: so many rows of
    the group count, for tallies that go by rows."""
    values = [True if tally.argument is None else value(tally.argument, row) for row in rows]
    there = [one for one in values if one is not None]
    low, high = tally.bounds
    most = tally.most_rows
    if counting is not None and tally.a_row is not None:
        low, high = max(low, tally.a_row[0] * counting), min(high, tally.a_row[1] * counting)
        most = None if most is None else counting
    match tally.measure:
        case Measure.UNITS:
            return 1 if there else 0
        case Measure.ROWS:
            return min(max(len(there), low), high) if there else 0
        case Measure.TOTAL:
            found = [step for one in there if (step := steps(tally, one)) is not None]
            total = sum(found)
            if most is not None and len(found) > most:
                total = math.trunc(Fraction(total * most, len(found)))
            return min(max(total, low), high) if found else 0
        case Measure.DISTINCT:
            different = {one + 0.0 if isinstance(one, float) else one for one in there}
            return frozenset(sorted(different, key=_hashed)[:high])


def _hashed(content: Any) -> bytes:
    return hashlib.blake2b(repr(content).encode("utf-8", "surrogatepass"), key=b"values").digest()


def bins(op: Aggregate, place: int, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """The steps that one unit's rows of one group have in a histogram: at most so many, by a hash of step and copy."""
    wanted = op.histograms[place]
    there = [one for row in rows if (one := value(wanted.argument, row)) is not None]
    found = [step for one in there if (step := steps(wanted, one)) is not None]
    copies = [(step, found[:at].count(step)) for at, step in enumerate(found)]
    return sorted(step for step, _ in sorted(copies, key=_hashed)[: wanted.most_rows])


def histograms(op: Aggregate, tables: Tables, choose: Choose, keep: Keep = by_hash) -> list[list[list[int]]]:
    """For each histogram and public cell, the steps of all rows that are kept, ascending."""
    owned = grouped(op, tables, keep)
    cells = list(itertools.product(*(group.values for group in op.groups)))
    found: list[list[list[int]]] = [[[] for _ in cells] for _ in op.histograms]
    for unit, own in owned.items():
        mine = [cell for cell in cells if cell in own]
        for cell in mine if len(mine) <= op.most_groups else choose(unit, mine):
            for place in range(len(op.histograms)):
                found[place][cells.index(cell)] += bins(op, place, own[cell])
    return [[sorted(steps_) for steps_ in one] for one in found]


def steps(tally: Tally | Histogram, number: int | float) -> int | None:
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


def over(op: Aggregate, tables: Tables, keep: Keep = by_hash) -> list[Any]:
    """The units that have more groups than they may keep, or more rows than count in all of them."""
    known = added(op, tables, keep)
    return [unit for unit, own in known.amounts.items() if len(own) > op.most_groups or known.short(unit)]


MOST_CHOICES = 20_000


def possible(op: Aggregate, tables: Tables, answer: Mapping[Cell, Sequence[int]], keep: Keep = by_hash) -> bool:
    """Whether some choice of groups, in some order, gives an answer. Refuses to count beyond MOST_CHOICES."""
    known = added(op, tables, keep)
    chooser = [unit for unit, own in known.amounts.items() if len(own) > op.most_groups or known.short(unit)]
    options = [known.options(unit) for unit in chooser]
    if math.prod(len(one) for one in options) > MOST_CHOICES:
        raise ValueError("too many units have too many groups to try every choice")
    wanted = {cell: tuple(numbers) for cell, numbers in answer.items()}
    for choice in itertools.product(*options):
        kept = dict(zip(chooser, choice, strict=True))
        if known.total(lambda unit, own, kept=kept: kept.get(unit, own)) == wanted:  # type: ignore[misc]
            return True
    return False
