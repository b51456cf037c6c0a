"""An aggregate as one DuckDB statement.

Groups are codes: the place of a combination of keys in the cross product of the public values.

Capacity: a row adds at most 2^63 steps, a unit at most 2^63 to a group: both are checked before anything is read. So
2^64 rows would be needed to leave the 128 bits of HUGEINT, more than any engine handles within a time limit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from hubbub.engines import distinct, histogram, keyed
from hubbub.engines.limit import KEPT
from hubbub.engines.lower import lower
from hubbub.engines.own import UNIT, alike
from hubbub.engines.relations import SECRETS, From, Keys, Lowering, Statement
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
    with_once,
    within,
)
from hubbub.errors import CapacityError, ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, Type, of
from hubbub.policy.tables import Table
from hubbub.query.expression import Value
from hubbub.query.ops import Aggregate, Group, Measure, Tally

CODE = keyed.CODE
FEW = 16
"""Rows of a unit in a group, up to which its groups are chosen before they are added up."""

_MOST_PROPORTION = 1 << 20


def aggregate(op: Aggregate, tables: Mapping[str, Table], origins: From) -> Statement:
    """The tallies of all groups that have rows: a code and sums as text, in no order.

    Two secret numbers key the hash that chooses the groups of a unit. They can be chosen among rows or among sums for
    each unit and group: the same groups. The first is faster where a unit has few rows in a group, since fewer are
    added up; the second where it has many. What the tallies allow one unit decides, which is public. Different values
    and histograms look at the rows themselves, and so at the rows in the groups that were chosen.
    """
    keys = tuple(_keys(index, group) for index, group in enumerate(op.groups) if not group.private)
    private = keyed.is_private(op)
    cells = math.prod(len(group.values) for group in op.groups)
    lowering = Lowering(tables, origins)
    coded = _coded(op, lowering, keys)
    choose = keyed.chosen if private else _chosen
    choosing = (private or op.most_groups < cells) and not op.single
    several, summed = _looked_at_again(op), any(one.measure is not Measure.DISTINCT for one in op.tallies)
    if several:
        kept = choose(coded, op.most_groups, function("dense_rank")) if choosing else coded
        again, alone = select(name(KEPT), STAR), op.single or not (summed or private)
        pairs = _singles(op, again) if alone else _pairs(op, again, grouped=bool(op.groups))
    elif op.single:
        pairs = _singles(op, coded)
    elif not choosing:
        pairs = _pairs(op, coded, grouped=bool(op.groups))
    elif 0 < rows_for_a_pair(op) <= FEW:
        pairs = _pairs(op, choose(coded, op.most_groups, function("dense_rank")), grouped=True)
    else:
        pairs = choose(_pairs(op, coded, grouped=True), op.most_groups, function("row_number"))
    code = name(CODE) if op.groups else alias(number(0), CODE)
    totals = [cast(_total(op, index), "VARCHAR") for index in range(len(op.tallies))]
    totals += [histogram.looked_up(one, grouped=bool(op.groups)) for one in several if one.startswith("histogram")]
    secrets = SECRETS if choosing or (several and not op.single) else lowering.secrets
    if private:
        made = keyed.statement(op, pairs, totals, keys=keys, secrets=secrets)
    else:
        source = within(pairs if summed or op.groups else Sql("SELECT 1"))  # without sums, one row would be many
        whole = select(source, code, *totals, by=[name(CODE)] if op.groups else ())
        made = Statement(whole, keys, secrets=secrets)
    for called, query in reversed([(KEPT, kept), *several.items()] if several else []):
        made = replace(made, sql=with_once(query, called, select(within(Sql(made.sql)), STAR)))
    return made


def _looked_at_again(op: Aggregate) -> dict[str, Sql]:
    """The tables that are made of the kept rows, beside sums: by name."""
    values = [index for index, tally in enumerate(op.tallies) if tally.measure is Measure.DISTINCT]
    return {distinct.table(index): distinct.distinct(op, index) for index in values} | {
        histogram.table(index): histogram.histogram(op, index) for index in range(len(op.histograms))
    }


def _coded(op: Aggregate, lowering: Lowering, keys: Sequence[Keys]) -> Sql:
    """Each row that is in a public group: its unit, the group's code, and the steps or presence that tallies need."""
    rows, names = lowering.relation(op.input)
    shown = [alias(lower(group.expression, names), f"g{index}") for index, group in enumerate(op.groups)]
    shown += [
        alias(lower(tally.argument, names), f"a{index}")
        for index, tally in enumerate(op.tallies)
        if tally.argument is not None
    ]
    shown += [alias(lower(one.argument, names), f"b{index}") for index, one in enumerate(op.histograms)]
    source = within(select(within(rows), name(UNIT), *shown))
    code: Sql | None = None
    public = [(index, group) for index, group in enumerate(op.groups) if not group.private]
    for one, (index, group) in zip(keys, public, strict=True):
        same = "IS NOT DISTINCT FROM" if None in one.values else "="
        source = joined(source, name(one.table), [infix(same, name(f"g{index}"), name("value", of=one.table))])
        place = name("place", of=one.table)
        code = place if code is None else infix("+", infix("*", code, _whole(len(group.values))), place)
    code = keyed.code(op) if keyed.is_private(op) else code
    shown = [name(UNIT)] if code is None else [name(UNIT), alias(code, CODE)]
    for index, tally in enumerate(op.tallies):
        if tally.argument is not None:
            shown.append(alias(_needed(tally, name(f"a{index}"), tally.argument.kind), f"s{index}"))
    for index, wanted in enumerate(op.histograms):
        shown.append(alias(steps(wanted, name(f"b{index}"), wanted.argument.kind), histogram.column(index)))
    return select(source, *shown)


def _needed(tally: Tally, value: Sql, kind: Kind) -> Sql:
    match tally.measure:
        case Measure.TOTAL:
            return steps(tally, value, kind)
        case Measure.DISTINCT:
            return alike(value, kind)
        case Measure.ROWS | Measure.UNITS:
            return case((present(value), TRUE))


def _pairs(op: Aggregate, coded: Sql, *, grouped: bool) -> Sql:
    """What each unit adds to each of its groups, within the tally's bounds."""
    shown: list[Sql] = []
    for index, tally in enumerate(op.tallies):
        value = None if tally.argument is None else name(f"s{index}")
        many = function("count", STAR if value is None else value)
        match tally.measure:
            case Measure.DISTINCT:
                continue
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
        if tally.measure is Measure.DISTINCT:
            continue
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
    if tally.measure is Measure.DISTINCT:
        found = histogram.looked_up(distinct.table(index), grouped=bool(op.groups))
        return function("coalesce", found, number(0))
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
