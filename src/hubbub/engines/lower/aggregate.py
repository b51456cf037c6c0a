"""An aggregate as one statement.

Groups are codes: the place of a combination of keys in the cross product of the public values.

Capacity: a row adds at most 2^63 steps, a unit at most 2^63 to a group: both are checked before anything is read. So
2^64 rows would be needed to leave the 128 bits of a sum, more than any engine handles within a time limit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hubbub.engines.lower import dropped as dropping
from hubbub.engines.lower import group_codes as codes
from hubbub.engines.lower import histogram, total_limit
from hubbub.engines.lower import private_keys as keyed
from hubbub.engines.lower import total_limit as together
from hubbub.engines.lower import unit_sums as sums
from hubbub.engines.lower.grid_steps import steps
from hubbub.engines.lower.group_codes import list_keys
from hubbub.engines.lower.histogram import CODE, FULL, KEPT, RANK, full, rank_rows
from hubbub.engines.lower.relations import SECRETS, Lowering, Origins
from hubbub.engines.lower.scalars import lower
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import KeyTable, Lowered, Query, RowSource
from hubbub.engines.nodes.scalars import Apply, Operator, Scalar, Tag
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    but,
    cast,
    constant,
    function,
    hash_keyed,
    infix,
    join,
    name,
    number,
    relation,
    select,
    with_once,
    within,
)
from hubbub.errors import CapacityError, ParameterError
from hubbub.policy.kinds import Type, of
from hubbub.policy.tables import Table
from hubbub.query.ops import Aggregate, Measure

_CODE_BITS = 32

_ORDER = "order"


def aggregate(op: Aggregate, tables: Mapping[str, Table], origins: Origins, *, wide: bool = False) -> Lowered:
    """Return the tallies of all groups that have rows: a code and sums as text, in no order.

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
    many, lowering = not private and codes.is_wide(op.groups), Lowering(tables, origins)
    cells = math.prod(len(group.values) for group in op.groups)
    if many and not wide:
        raise CapacityError(f"There are {cells:,} groups, and {codes.PACKED:,} are too many. Ask for fewer.")
    choose = keyed.choose if private or many else _choose
    choosing = (private or op.most_groups < cells) and not op.single
    if dropping.limits_of(op) is not None:
        return _with_dropped(op, lowering, keys, choosing=choosing)
    least = total_limit.least_limit(op) if wide and (choosing or op.together is not None) else 0
    several, summed = _look_again(op), any(one.measure is not Measure.DISTINCT for one in op.tallies)
    few = 0 < sums.rows_for_a_pair(op) <= sums.FEW and not sums.has_pairs(op.input)
    ranked = few and choosing and not several and op.together is None
    placed = ranked and not private and sums.only_counts(op)
    apart = ranked and not placed and sums.is_plain(op) and not (private and keyed.is_mixed(op))
    carried, shown = sums.carry_values(op) if apart else ([], None)
    every = coded = _code_rows(op, lowering, keys, shown)
    if least:
        coded = total_limit.select_crowded()
    if several:
        kept = choose(coded, op.most_groups, function("dense_rank"), places=True) if choosing else coded
        again, alone = select(relation(KEPT), STAR), op.single or not (summed or private)
    if op.together is not None:
        counted = together.gather(op, again if several else coded)
        shared = choose(counted, op.most_groups, function("row_number"), adding=together.count_rows(op.together))
        pairs = sums.add_limited(op, together.allow(op.together, shared))
    elif several:
        pairs = sums.add_singles(op, again) if alone else sums.add_pairs(op, again, grouped=bool(op.groups))
    elif apart:
        chosen = choose(coded, op.most_groups, function("dense_rank"), alone=True)
        pairs = sums.add_chosen(op, keyed.weigh_rows(op, chosen), carried)
    elif placed:
        pairs = choose(coded, op.most_groups, function("dense_rank"), places=True)
    else:
        pairs = _bound_sums(op, coded, choose if choosing else None, first=ranked)
    code = name(CODE) if op.groups else alias(number(0), CODE)
    units = function("sum", name(sums.UNITS)) if apart else function("count", STAR)
    numbers = [
        sums.count_placed(tally) if placed else _total(op, index, units) for index, tally in enumerate(op.tallies)
    ]
    totals = [cast(one, "text") for one in numbers]
    totals += [histogram.look_up_group(one, grouped=bool(op.groups)) for one in several if one.startswith("histogram")]
    keyed_ = choosing or op.together is not None or (several and not op.single)
    secrets = SECRETS if keyed_ else lowering.secrets
    if private:
        made = keyed.statement(op, pairs, totals, apart=apart, keys=keys, secrets=secrets)
    else:
        source = within(
            pairs if summed or op.groups else select(None, number(1))
        )  # without sums, one row would be many
        whole = select(source, code, *totals, by=[name(CODE)] if op.groups else ())
        made = Lowered(total_limit.add_up(every, least, whole) if least else whole, keys, secrets=secrets)
    first = [(KEPT, kept), *([] if op.single else [(FULL, _full(op, placed=choosing))])] if several else []
    for called, query in reversed([*first, *several.items()]):
        made = replace(made, query=with_once(query, called, select(within(made.query), STAR)))
    return made


def _with_dropped(op: Aggregate, lowering: Lowering, keys: tuple[KeyTable, ...], *, choosing: bool) -> Lowered:
    """Return the tallies of all groups, where some are of what limits drop: no group of a unit is left out before."""
    limits = dropping.limits_of(op)
    rows_alone = op.histograms or any(tally.measure is Measure.DISTINCT for tally in op.tallies)
    if limits is None or rows_alone or op.single or keyed.is_private(op):
        raise ParameterError("op", "sums over listed groups, where it is measured what limits drop", op)
    coded, least = _code_rows(op, lowering, keys), dropping.least_limit(op, choosing=choosing)
    pairs = together.gather(op, dropping.select_crowded() if least else coded)
    if op.groups:
        adding = dropping.count_looked(limits)
        pairs = _choose(pairs, op.most_groups, function("row_number"), adding=adding, every=True)
    added = dropping.add_kept_and_dropped(op, pairs, choosing=choosing)
    code = name(CODE) if op.groups else alias(number(0), CODE)
    totals = [cast(_sum_up(index), "text") for index in range(len(op.tallies))]
    every = dropping.add_free(op, added) if least else added
    whole = select(within(every), code, *totals, by=[name(CODE)] if op.groups else ())
    if least:
        whole = dropping.find_crowded(coded, least, whole)
    return Lowered(whole, keys, secrets=SECRETS if op.groups else lowering.secrets)


def _bound_sums(op: Aggregate, coded: Query, choose: Callable[..., Query] | None, *, first: bool) -> Query:
    """Add up what units give to their groups, which are chosen first, or afterwards, or not at all."""
    if op.single:
        return sums.add_singles(op, coded)
    if choose is None:
        return sums.add_pairs(op, coded, grouped=bool(op.groups))
    if first:
        return sums.add_pairs(op, choose(coded, op.most_groups, function("dense_rank")), grouped=True)
    return choose(sums.add_pairs(op, coded, grouped=True), op.most_groups, function("row_number"))


def _keys(op: Aggregate) -> tuple[KeyTable, ...]:
    """Make the tables of keys that are listed."""
    counted = [codes.is_counted(group) for group in op.groups]
    if any(counted) and keyed.is_private(op):
        raise ParameterError("groups", "listed, or private: none that are counted beside private ones", op.groups)
    given = zip(op.groups, counted, strict=True)
    return tuple(
        list_keys(index, group) for index, (group, by_place) in enumerate(given) if not (group.private or by_place)
    )


def _look_again(op: Aggregate) -> dict[str, Query]:
    """Make the tables of the kept rows, beside sums: by name."""
    values = [index for index, tally in enumerate(op.tallies) if tally.measure is Measure.DISTINCT]
    return {histogram.distinct_table(index): histogram.distinct(op, index) for index in values} | {
        histogram.table(index): histogram.histogram(op, index) for index in range(len(op.histograms))
    }


def _full(op: Aggregate, *, placed: bool) -> Query:
    """Find who has more rows in a group than the tables above look at."""
    most = [tally.bounds[1] for tally in op.tallies if tally.measure is Measure.DISTINCT]
    most += [one.most_rows for one in op.histograms]
    return full(min(most), grouped=bool(op.groups), placed=placed)


def _code_rows(
    op: Aggregate, lowering: Lowering, keys: Sequence[KeyTable], carried: Sequence[Scalar] | None = None
) -> Query:
    """Give each row in a public group its unit, its group's code, and the steps or presence that tallies need.

    Or else what is carried of the values ``a0``, ``a1``, …, to be prepared once the groups of units are chosen.
    """
    rows, names = lowering.relation(op.input)
    shown: list[Scalar] = [alias(lower(group.expression, names), f"g{index}") for index, group in enumerate(op.groups)]
    shown += [
        alias(lower(tally.argument, names), f"a{index}")
        for index, tally in enumerate(op.tallies)
        if tally.argument is not None and tally.dropped is None
    ]
    shown += [alias(lower(one.argument, names), f"b{index}") for index, one in enumerate(op.histograms)]
    source: RowSource = within(select(within(rows), name(UNIT), *shown))
    places: list[Scalar] = []
    known, within_ranges = iter(keys), list[Scalar]()
    for index, group in enumerate(op.groups):
        if codes.is_counted(group):
            place, inside = codes.place_counted(group, name(f"g{index}"))
            places.append(place)
            within_ranges += inside
        elif not group.private:
            one = next(known)
            same: Operator = "same" if None in one.values else "="
            source = join(source, relation(one.table), [infix(same, name(f"g{index}"), name("value", of=one.table))])
            places.append(name("place", of=one.table))
    shown = [name(UNIT)]
    if op.groups:
        shown.append(alias(keyed.code(op) if keyed.is_private(op) else codes.code(op.groups, places), CODE))
    for index, tally in enumerate(op.tallies) if carried is None else ():
        if tally.argument is not None and tally.dropped is None:
            shown.append(alias(sums.prepare_value(tally, name(f"a{index}"), tally.argument.kind), f"s{index}"))
    for index, wanted in enumerate(op.histograms):
        shown.append(alias(steps(wanted, name(f"b{index}"), wanted.argument.kind), histogram.column(index)))
    return select(source, *shown, *(carried or ()), where=within_ranges)


def _choose(
    rows: Query,
    most: int,
    rank: Apply,
    *,
    adding: Scalar | None = None,
    places: bool = False,
    alone: bool = False,
    every: bool = False,
) -> Query:
    """Keep so many groups of a unit, by a hash of unit and group under the secrets; equal hashes by the code.

    The unit itself separates units, so no collision can let one unit's groups decide about another's. The last hash
    is of unit, group and secret together: hashing them one by one would prefer the same groups in every unit. Half of
    it and the code are one number, which is sorted faster than two. ``alone`` tells rows apart as ``OWN`` says.
    ``every`` keeps all groups, with their places in that order.
    """
    mixed = hash_keyed(Tag.LISTED, name(UNIT), name(CODE))
    low = cast(number((1 << _CODE_BITS) - 1), "uint64")
    high = infix("<<", infix("&", mixed, low), number(_CODE_BITS))
    both = infix("|", high, cast(name(CODE), "uint64"))
    ordered = select(within(rows), but(CODE), alias(both, _ORDER))
    following = name(_ORDER) if alone else None
    numbered = rank_rows(ordered, rank, [name(_ORDER)], adding=adding, places=places or alone, following=following)
    told: list[Scalar] = [alias(cast(infix("&", name(_ORDER), low), "int32"), CODE)]
    if alone:
        told.append(alias(sums.tell_alone(name(_ORDER)), sums.OWN))
    if every:
        return select(within(numbered), but(_ORDER), *told)
    return select(within(numbered), but(_ORDER, RANK), *told, where=[infix("<=", name(RANK), _whole(most))])


def _total(op: Aggregate, index: int, units: Scalar) -> Scalar:
    tally = op.tallies[index]
    if tally.measure is Measure.DISTINCT:
        found = histogram.look_up_group(histogram.distinct_table(index), grouped=bool(op.groups))
        return function("coalesce", found, number(0))
    if tally.measure is Measure.UNITS and tally.argument is None:
        return units
    return _sum_up(index)


def _sum_up(index: int) -> Scalar:
    return function("coalesce", function("sum", name(f"t{index}")), number(0))


def _whole(value: int) -> Scalar:
    return constant(value, of(Type.INTEGER))
