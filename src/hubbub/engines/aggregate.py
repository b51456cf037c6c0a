"""An aggregate as one DuckDB statement.

Groups are codes: the place of a combination of keys in the cross product of the public values.

Capacity: a row adds at most 2^63 steps, a unit at most 2^63 to a group: both are checked before anything is read. So
2^64 rows would be needed to leave the 128 bits of HUGEINT, more than any engine handles within a time limit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hubbub.engines import codes, distinct, histogram, keyed, together, uncut
from hubbub.engines.limit import CODE, FULL, KEPT, PLACE, RANK, full, ranked
from hubbub.engines.listed import listed
from hubbub.engines.lower import lower
from hubbub.engines.own import UNIT, alike
from hubbub.engines.relations import SECRETS, From, Keys, Lowering, Statement
from hubbub.engines.steps import bounded, proportioned, steps
from hubbub.engines.words import (
    STAR,
    TRUE,
    Sql,
    alias,
    but,
    case,
    cast,
    constant,
    function,
    infix,
    joined,
    name,
    number,
    present,
    secret,
    select,
    with_once,
    within,
)
from hubbub.errors import CapacityError, ParameterError
from hubbub.policy.kinds import INT64, Kind, Type, of
from hubbub.policy.tables import Table
from hubbub.query.ops import Aggregate, JoinOwn, Measure, Relation, Tally, below

FEW = 32
"""Rows of a unit in a group, up to which its groups are chosen before they are added up."""

_CODE_TYPE, _CODE_BITS = "INTEGER", 32

_ORDER = "order"


def aggregate(op: Aggregate, tables: Mapping[str, Table], origins: From, *, wide: bool = False) -> Statement:
    """The tallies of all groups that have rows: a code and sums as text, in no order.

    ``wide`` lets there be any number of groups, of which nobody makes a list: their codes are those of ``codes``, and
    a unit's groups are chosen as where nobody listed the keys; and if rows are only counted, as in cells that are
    published, those of units that no limit cuts are not ranked. (A small question would be longer to plan by that.)

    Two secret numbers key the hash that chooses the groups of a unit. They can be chosen among rows or among sums for
    each unit and group: the same groups. The first is faster where a unit has few rows in a group, since fewer are
    added up, and none at all where rows are only counted: they have their places. The second is faster where it has
    many. What the tallies allow one unit decides, which is public. Different values and histograms look at the rows
    themselves, and so at the rows in the groups that were chosen.
    """
    keys, private = _keys(op), keyed.is_private(op)
    many = not private and codes.is_wide(op.groups)
    cells = math.prod(len(group.values) for group in op.groups)
    lowering = Lowering(tables, origins)
    if many and not wide:
        raise CapacityError(f"There are {cells:,} groups, and {codes.PACKED:,} are too many. Ask for fewer.")
    every = coded = _coded(op, lowering, keys)
    choose = keyed.chosen if private or many else _chosen
    choosing = (private or op.most_groups < cells) and not op.single
    least = uncut.least_limit(op) if wide and (choosing or op.together is not None) else 0
    if least:
        coded = uncut.crowded()
    several, summed = _looked_at_again(op), any(one.measure is not Measure.DISTINCT for one in op.tallies)
    few, placed = 0 < rows_for_a_pair(op) <= FEW and not _paired(op.input), False
    if several:
        kept = choose(coded, op.most_groups, function("dense_rank"), places=True) if choosing else coded
        again, alone = select(name(KEPT), STAR), op.single or not (summed or private)
    if op.together is not None:
        counted = together.gathered(op, again if several else coded)
        shared = choose(counted, op.most_groups, function("row_number"), adding=together.counting(op.together))
        pairs = _cut(op, together.allowed(op.together, shared))
    elif several:
        pairs = _singles(op, again) if alone else _pairs(op, again, grouped=bool(op.groups))
    elif op.single:
        pairs = _singles(op, coded)
    elif not choosing:
        pairs = _pairs(op, coded, grouped=bool(op.groups))
    elif few:
        placed = not private and _only_counts(op)
        pairs = choose(coded, op.most_groups, function("dense_rank"), places=placed)
        pairs = pairs if placed else _pairs(op, pairs, grouped=True)
    else:
        pairs = choose(_pairs(op, coded, grouped=True), op.most_groups, function("row_number"))
    code = name(CODE) if op.groups else alias(number(0), CODE)
    numbers = [_placed(tally) if placed else _total(op, index) for index, tally in enumerate(op.tallies)]
    totals = [cast(one, "VARCHAR") for one in numbers]
    totals += [histogram.looked_up(one, grouped=bool(op.groups)) for one in several if one.startswith("histogram")]
    keyed_ = choosing or op.together is not None or (several and not op.single)
    secrets = SECRETS if keyed_ else lowering.secrets
    if private:
        made = keyed.statement(op, pairs, totals, keys=keys, secrets=secrets)
    else:
        source = within(pairs if summed or op.groups else Sql("SELECT 1"))  # without sums, one row would be many
        whole = select(source, code, *totals, by=[name(CODE)] if op.groups else ())
        made = Statement(uncut.added(every, least, whole) if least else whole, keys, secrets=secrets)
    first = [(KEPT, kept), *([] if op.single else [(FULL, _full(op, placed=choosing))])] if several else []
    for called, query in reversed([*first, *several.items()]):
        made = replace(made, sql=with_once(query, called, select(within(Sql(made.sql)), STAR)))
    return made


def _keys(op: Aggregate) -> tuple[Keys, ...]:
    """The tables of keys that are listed."""
    counted = [codes.is_counted(group) for group in op.groups]
    if any(counted) and keyed.is_private(op):
        raise ParameterError("groups", "listed, or private: none that are counted beside private ones", op.groups)
    given = zip(op.groups, counted, strict=True)
    return tuple(
        listed(index, group) for index, (group, by_place) in enumerate(given) if not (group.private or by_place)
    )


def _looked_at_again(op: Aggregate) -> dict[str, Sql]:
    """The tables that are made of the kept rows, beside sums: by name."""
    values = [index for index, tally in enumerate(op.tallies) if tally.measure is Measure.DISTINCT]
    return {distinct.table(index): distinct.distinct(op, index) for index in values} | {
        histogram.table(index): histogram.histogram(op, index) for index in range(len(op.histograms))
    }


def _full(op: Aggregate, *, placed: bool) -> Sql:
    """Who has more rows in a group than the tables above look at."""
    most = [tally.bounds[1] for tally in op.tallies if tally.measure is Measure.DISTINCT]
    most += [one.most_rows for one in op.histograms]
    return full(min(most), grouped=bool(op.groups), placed=placed)


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
    places: list[Sql] = []
    known, within_ranges = iter(keys), list[Sql]()
    for index, group in enumerate(op.groups):
        if codes.is_counted(group):
            place, inside = codes.counted(group, name(f"g{index}"))
            places.append(place)
            within_ranges += inside
        elif not group.private:
            one = next(known)
            same = "IS NOT DISTINCT FROM" if None in one.values else "="
            source = joined(source, name(one.table), [infix(same, name(f"g{index}"), name("value", of=one.table))])
            places.append(name("place", of=one.table))
    shown = [name(UNIT)]
    if op.groups:
        shown.append(alias(keyed.code(op) if keyed.is_private(op) else codes.code(op.groups, places), CODE))
    for index, tally in enumerate(op.tallies):
        if tally.argument is not None:
            shown.append(alias(_needed(tally, name(f"a{index}"), tally.argument.kind), f"s{index}"))
    for index, wanted in enumerate(op.histograms):
        shown.append(alias(steps(wanted, name(f"b{index}"), wanted.argument.kind), histogram.column(index)))
    return select(source, *shown, where=within_ranges)


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
                made = bounded(proportioned(function("sum", value), many, tally.most_rows), tally.bounds)
        shown.append(alias(made, f"t{index}"))
    by = [name(UNIT), *([name(CODE)] if grouped else [])]
    return select(within(coded), *by, *shown, by=by)


def _cut(op: Aggregate, pairs: Sql) -> Sql:
    """The same, where it is known how many rows of a unit count in a group."""
    shown: list[Sql] = []
    for index, tally in enumerate(op.tallies):
        many = name(together.ROWS if tally.argument is None else together.values(index))
        match tally.measure:
            case Measure.DISTINCT:
                continue
            case Measure.UNITS if tally.argument is None:
                continue
            case Measure.UNITS:
                made = cast(infix(">", many, number(0)), "BIGINT")
            case Measure.ROWS:
                made = _rows(together.fewer(tally, many), tally.bounds, always=False)
            case Measure.TOTAL:
                made = bounded(together.less(tally, name(together.steps(index)), many), tally.bounds)
        shown.append(alias(made, f"t{index}"))
    return select(within(pairs), name(UNIT), name(CODE), *shown)


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


def _paired(op: Relation) -> bool:
    """Whether rows stand beside other rows of their unit: then there are many of them in a group."""
    return isinstance(op, JoinOwn) or any(_paired(one) for one in below(op))


def _chosen(rows: Sql, most: int, rank: Sql, *, adding: Sql | None = None, places: bool = False) -> Sql:
    """At most so many groups of a unit, by a hash of unit and group under the secrets; equal hashes by the code.

    The unit itself separates units, so no collision can let one unit's groups decide about another's. The last hash
    is of unit, group and secret together: hashing them one by one would prefer the same groups in every unit. Half of
    it and the code are one number, which is sorted faster than two.
    """
    unit = function("hash", name(UNIT), secret(1))
    code = function("xor", cast(name(CODE), "UBIGINT"), secret(2))
    mixed = function("hash", function("xor", unit, code))
    low = cast(number((1 << _CODE_BITS) - 1), "UBIGINT")
    high = infix("<<", infix("&", mixed, low), number(_CODE_BITS))
    both = infix("|", high, cast(name(CODE), "UBIGINT"))
    ordered = select(within(rows), but(CODE), alias(both, _ORDER))
    numbered = ranked(ordered, rank, [name(_ORDER)], adding=adding, places=places)
    told = alias(cast(infix("&", name(_ORDER), low), _CODE_TYPE), CODE)
    return select(within(numbered), but(_ORDER, RANK), told, where=[infix("<=", name(RANK), _whole(most))])


def _only_counts(op: Aggregate) -> bool:
    """Whether all that tallies ask of a unit and a group is how many rows there are, or whether there is one."""
    return all(
        tally.argument is None
        and (tally.measure is Measure.UNITS or (tally.measure is Measure.ROWS and tally.bounds[0] <= 0))
        for tally in op.tallies
    )


def _placed(tally: Tally) -> Sql:
    """Such a tally over rows that have their places: as many of each unit as it allows are counted.

    A unit's rows in a group have the places 0, 1, … once each, so that it does not matter which row has which.
    """
    most = 1 if tally.measure is Measure.UNITS else max(tally.bounds)
    return function("count", case((infix("<", name(PLACE), _whole(most)), TRUE)))


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
