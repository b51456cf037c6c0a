"""An aggregate as one DuckDB statement.

Groups are codes: the place of a combination of keys in the cross product of the public values.

Capacity: a row adds at most 2^63 steps, a unit at most 2^63 to a group: both are checked before anything is read. So
2^64 rows would be needed to leave the 128 bits of HUGEINT, more than any engine handles within a time limit.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from hubbub.engines.lower import lower
from hubbub.engines.relations import UNIT, From, Keys, Lowering, Statement
from hubbub.engines.steps import bounded, steps
from hubbub.engines.words import (
    STAR,
    TRUE,
    Sql,
    alias,
    case,
    cast,
    constant,
    engine_type,
    function,
    infix,
    joined,
    name,
    number,
    over,
    present,
    select,
    within,
)
from hubbub.errors import CapacityError, ParameterError
from hubbub.policy.kinds import INT64, INT128, Type, of
from hubbub.policy.tables import Table
from hubbub.query.expression import Value
from hubbub.query.ops import Aggregate, Group, Measure

CODE = "code"
FEW = 16
"""Rows of a unit in a group, up to which its groups are chosen before they are added up."""

_MOST_PROPORTION = 1 << 20


def aggregate(op: Aggregate, tables: Mapping[str, Table], origins: From) -> Statement:
    """The tallies of all groups that have rows: a code and sums as text, in no order.

    Two secret numbers key the hash that chooses the groups of a unit. They can be chosen among rows or among sums for
    each unit and group: the same groups. The first is faster where a unit has few rows in a group, since fewer are
    added up; the second where it has many. What the tallies allow one unit decides, which is public.
    """
    keys = tuple(_keys(index, group) for index, group in enumerate(op.groups))
    cells = math.prod(len(group.values) for group in op.groups)
    coded = _coded(op, Lowering(tables, origins), keys)
    choosing = op.most_groups < cells and not op.single
    if op.single:
        pairs = _singles(op, coded)
    elif not choosing:
        pairs = _pairs(op, coded, grouped=bool(keys))
    elif 0 < rows_for_a_pair(op) <= FEW:
        pairs = _pairs(op, _chosen(coded, op.most_groups, function("dense_rank")), grouped=True)
    else:
        pairs = _chosen(_pairs(op, coded, grouped=True), op.most_groups, function("row_number"))
    code = name(CODE) if keys else alias(number(0), CODE)
    totals = [cast(_total(op, index), "VARCHAR") for index in range(len(op.tallies))]
    whole = select(within(pairs), code, *totals, by=[name(CODE)] if keys else ())
    return Statement(whole, keys, secrets=2 if choosing else 0)


def _coded(op: Aggregate, lowering: Lowering, keys: Sequence[Keys]) -> Sql:
    """Each row that is in a public group: its unit, the group's code, and the steps or presence that tallies need."""
    rows, names = lowering.relation(op.input)
    shown = [alias(lower(group.expression, names), f"g{index}") for index, group in enumerate(op.groups)]
    shown += [
        alias(lower(tally.argument, names), f"a{index}")
        for index, tally in enumerate(op.tallies)
        if tally.argument is not None
    ]
    source = within(select(within(rows), name(UNIT), *shown))
    code: Sql | None = None
    for index, (one, group) in enumerate(zip(keys, op.groups, strict=True)):
        same = "IS NOT DISTINCT FROM" if None in one.values else "="
        source = joined(source, name(one.table), [infix(same, name(f"g{index}"), name("value", of=one.table))])
        place = name("place", of=one.table)
        code = place if code is None else infix("+", infix("*", code, _whole(len(group.values))), place)
    shown = [name(UNIT)] if code is None else [name(UNIT), alias(code, CODE)]
    for index, tally in enumerate(op.tallies):
        if tally.argument is not None:
            value = name(f"a{index}")
            total = tally.measure is Measure.TOTAL
            needed = steps(tally, value, tally.argument.kind) if total else case((present(value), TRUE))
            shown.append(alias(needed, f"s{index}"))
    return select(source, *shown)


def _pairs(op: Aggregate, coded: Sql, *, grouped: bool) -> Sql:
    """What each unit adds to each of its groups, within the tally's bounds."""
    shown: list[Sql] = []
    for index, tally in enumerate(op.tallies):
        value = None if tally.argument is None else name(f"s{index}")
        many = function("count", STAR if value is None else value)
        match tally.measure:
            case Measure.UNITS if value is None:
                continue
            case Measure.UNITS:
                made = cast(infix(">", many, number(0)), "BIGINT")
            case Measure.ROWS:
                made = _rows(many, tally.bounds, always=value is None)
            case Measure.TOTAL:
                if value is None:
                    raise ParameterError("argument", "given for a total", None)
                made = bounded(_proportioned(function("sum", value), many, tally.most_rows), tally.bounds)
        shown.append(alias(made, f"t{index}"))
    by = [name(UNIT), *([name(CODE)] if grouped else [])]
    return select(within(coded), *by, *shown, by=by)


def _singles(op: Aggregate, coded: Sql) -> Sql:
    """What each row adds, where it is all that its unit has."""
    shown: list[Sql] = [name(CODE)] if op.groups else []
    for index, tally in enumerate(op.tallies):
        value = name(f"s{index}")
        if tally.measure is Measure.TOTAL:
            shown.append(alias(bounded(value, tally.bounds), f"t{index}"))
        elif tally.measure is Measure.ROWS or tally.argument is not None:
            there = _whole(min(max(1, tally.bounds[0]), tally.bounds[1]))
            counted = there if tally.argument is None else case((present(value), there), otherwise=_whole(0))
            shown.append(alias(counted, f"t{index}"))
    return select(within(coded), *(shown or [STAR]))


def _proportioned(total: Sql, many: Sql, most: int | None) -> Sql:
    """A total of more than so many values, in proportion. 2^63 steps a row, 2^40 rows and 2^20 times fit 128 bits."""
    if most is None:
        return total
    if most > _MOST_PROPORTION:
        raise CapacityError(f"A unit may count with at most {_MOST_PROPORTION:,} rows in a group. Declare fewer.")
    whole = cast(_whole(most), "HUGEINT")
    cut = infix("//", infix("*", total, whole), cast(many, "HUGEINT"))
    return case((infix(">", many, _whole(most)), cut), otherwise=total)


def _rows(many: Sql, bounds: tuple[int, int], *, always: bool) -> Sql:
    """Rows, clamped. A unit that has a row in a group at all, but no value, adds nothing."""
    if bounds[0] <= 0:
        top = constant(max(bounds[1], bounds[0]), of(Type.INTEGER)) if bounds[1] < INT64[1] else None
        return many if top is None else function("least", many, top)
    counted = bounded(many, bounds)
    return counted if always else case((infix(">", many, _whole(0)), counted), otherwise=_whole(0))


def rows_for_a_pair(op: Aggregate) -> int:
    """How many rows a unit may usefully have in one group, as its bounds see it; 0 where they do not say."""
    found = [0]
    for tally in op.tallies:
        if tally.measure is Measure.ROWS:
            found.append(tally.linf)
        elif tally.measure is Measure.TOTAL and tally.clamp is not None:
            step = max(abs(end - tally.origin) for end in tally.clamp) / tally.grid
            found.append(math.ceil(tally.linf / step) if step else 1)
    return max(found)


def _chosen(rows: Sql, most: int, rank: Sql) -> Sql:
    """At most so many groups of a unit, by a hash of unit and group under the secrets; equal hashes by the code.

    The unit itself separates units, so no collision can let one unit's groups decide about another's. The last hash
    is of unit, group and secret together: hashing them one by one would prefer the same groups in every unit.
    """
    low, high = (cast(Sql(f"${place}"), "UBIGINT") for place in (1, 2))
    unit = function("hash", name(UNIT), low)
    code = function("xor", cast(name(CODE), "UBIGINT"), high)
    mixed = function("hash", function("xor", unit, code))
    ranked = select(within(rows), STAR, alias(over(rank, partition=[name(UNIT)], order=[mixed, name(CODE)]), "rank"))
    return select(within(ranked), STAR, where=[infix("<=", name("rank"), _whole(most))])


def _total(op: Aggregate, index: int) -> Sql:
    tally = op.tallies[index]
    if tally.measure is Measure.UNITS and tally.argument is None:
        return function("count", STAR)
    return function("coalesce", function("sum", name(f"t{index}")), number(0))


def _whole(value: int) -> Sql:
    return constant(value, of(Type.INTEGER))


def _keys(index: int, group: Group) -> Keys:
    """The values as text. Two that are alike would put one row into two groups; one out of range is nobody's."""
    if len(set(group.values)) != len(group.values):
        raise ParameterError(f"values of {group.name}", "all different", group.values)
    kind = group.expression.kind
    limits = None if kind.type is not Type.INTEGER else INT128 if kind.wide else INT64
    listed = [
        (place, _as_text(value, group))
        for place, value in enumerate(group.values)
        if not isinstance(value, int) or limits is None or limits[0] <= value <= limits[1]
    ]
    return Keys(
        f"keys{index}", engine_type(kind), tuple(place for place, _ in listed), tuple(value for _, value in listed)
    )


def _as_text(value: Value, group: Group) -> str | None:
    match group.type, value:
        case _, None:
            return None
        case Type.BOOLEAN, bool():
            return str(value).lower()
        case Type.INTEGER, int() if not isinstance(value, bool):
            return str(value)
        case Type.REAL, float() if math.isfinite(value):
            return repr(value)
        case Type.TEXT, str():
            return value
        case Type.TIMESTAMP, datetime() if value.tzinfo is None:
            return value.isoformat(sep=" ")
        case Type.DATE, date() if not isinstance(value, datetime):
            return value.isoformat()
    raise ParameterError(f"values of {group.name}", f"constants of type {group.type}", value)
