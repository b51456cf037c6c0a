"""Groups by keys that nobody listed: the combinations that units really have, as one statement.

A group's code is its key where there is one, and of several a struct: of private ones the value itself, of public ones
their place. So codes are equal exactly where keys are, and the order and the hash that choose the groups of a unit are
functions of secrets, unit and keys. A number that the engine gave to keys as it met them, or a packed or hashed key,
would let other units decide.

Privacy:
    Claim: adding or removing a unit changes the tallies of at most most_groups cells, each within the tally's bounds,
        and the number of units of at most most_groups combinations of private keys, each by one (the weights by at
        most what a unit of so many keys may give). A combination without units is not in the result.
    Proof: the groups that a unit keeps are those of least (hash(unit, keys, secrets), keys) among its own: a total
        order on its keys that other units do not enter, at most most_groups of them. It keeps no more combinations of
        private keys than cells, counts once in each, and weighs by the number of those that it keeps itself.
    Needs: the claims of query.ops; structs compare field by field, missing fields equal to each other, which the tests
        hold against Python.
    Ref: SOUNDNESS 6 and 9; Wilson et al. 2020; Gopi et al. 2020 for weights.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hubbub.engines.lower.histogram import CODE, PLACE, RANK, rank_rows, split
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.lower.unit_sums import OWN, UNITS, WEIGHT, tell_alone
from hubbub.engines.nodes.queries import KeyTable, Lowered, Query, RowSource
from hubbub.engines.nodes.scalars import Apply, Scalar, Star, StructField, Tag
from hubbub.engines.nodes.words import (
    NULL,
    STAR,
    alias,
    but,
    case,
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
    struct,
    union_all,
    with_once,
    within,
)
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Type, of
from hubbub.query.check.keys import in_order
from hubbub.query.expression import Value
from hubbub.query.ops import Aggregate, Cell, ExactCounts, Group

_HALF = 32
_MIXED = "mixed"
_CHOSEN, _COUNTED = "chosen", "counted"
_WEIGHTS, _HELD, _PAIRS = "weights", "held", "pairs"


def is_private(op: Aggregate) -> bool:
    """Return whether some keys are not known beforehand."""
    return any(group.private for group in op.groups)


def code(op: Aggregate) -> Scalar:
    """Make the code of a row of its keys ``g0``, ``g1``, … and the tables of public keys ``keys0``, ``keys1``, …"""
    if len(op.groups) == 1:  # sorted and grouped in half the time of a struct
        return name("g0")
    return struct(
        {
            f"k{index}": name(f"g{index}") if group.private else name("place", of=f"keys{index}")
            for index, group in enumerate(op.groups)
        }
    )


def choose(
    rows: Query, most: int, rank: Apply, *, adding: Scalar | None = None, places: bool = False, alone: bool = False
) -> Query:
    """Keep so many groups of a unit, by a hash of unit and keys under the secrets; equal hashes by the keys.

    Half of the hash is sorted faster than all of it, and tells a unit's groups apart as well as it must. ``alone``
    tells rows apart as ``OWN`` says: by the half of the hash, which is equal where the keys are.
    """
    mixed = cast(infix(">>", hash_keyed(Tag.UNLISTED, name(UNIT), name(CODE)), number(_HALF)), "uint32")
    within_limit = [infix("<=", name(RANK), constant(most, of(Type.INTEGER)))]
    if not alone:
        numbered = rank_rows(rows, rank, [mixed, name(CODE)], adding=adding, places=places)
        return select(within(numbered), but(RANK), where=within_limit)
    half = name(_MIXED)
    ordered = select(within(rows), STAR, alias(mixed, _MIXED))
    numbered = rank_rows(ordered, rank, [half, name(CODE)], adding=adding, places=True, following=half)
    return select(within(numbered), but(_MIXED), alias(tell_alone(half), OWN), where=within_limit)


def is_mixed(op: Aggregate) -> bool:
    """Return whether there are public keys beside private ones: then units are counted for the private ones alone."""
    return not all(group.private for group in op.groups)


def weigh_rows(op: Aggregate, chosen: Query) -> Query:
    """Give, of the rows that ``choose`` has kept and told apart, one of each group the weight that its unit gives it.

    The kept groups of a unit have the ranks 1, 2, … up to their number, and one row of each has the place 0.
    """
    if op.weight_bits is None:
        return chosen
    most = alias(function("max", name(RANK)), _HELD)
    own = _weigh_units(select(relation(_CHOSEN), name(UNIT), most, by=[name(UNIT)]))
    same = infix("=", name(UNIT, of="r"), name(UNIT, of="w"))
    weight = alias(case((infix("=", name(PLACE, of="r"), number(0)), name(WEIGHT, of="w"))), WEIGHT)
    weighed = select(join(relation(_CHOSEN, called="r"), within(own, "w"), [same]), Star("r"), weight)
    return with_once(chosen, _CHOSEN, weighed)


def statement(
    op: Aggregate,
    pairs: Query,
    totals: Sequence[Scalar],
    *,
    apart: bool,
    keys: tuple[KeyTable, ...],
    secrets: int,
) -> Lowered:
    """Make, of what each unit adds to each group that it keeps, rows of keys, units and totals, all as text.

    ``apart``: the rows are of ``unit_sums.add_chosen``, which says how many units, or weights, each of them is about.
    Where there are public keys too, units are counted for each combination of private ones in rows of their own.
    """
    alone = len(op.groups) == 1
    shown = [cast(name(CODE) if alone else _field(index), "text") for index in range(len(op.groups))]
    tables = keys if op.weight_bits is None else (*keys, _weights(op.most_groups, op.weight_bits))
    if all(group.private for group in op.groups):
        source, weights = _weigh(op, pairs, apart=apart)
        return Lowered(select(source, *shown, weights, *totals, by=[name(CODE)]), tables, secrets=secrets)
    private = struct({f"k{index}": _field(index) for index, group in enumerate(op.groups) if group.private})
    owner = [] if op.single else [name(UNIT)]
    one = select(relation(_PAIRS), *owner, alias(private, CODE))
    held = one if op.single else select(within(one), *owner, name(CODE), by=[*owner, name(CODE)])
    source, weights = _weigh(op, held, apart=False)
    texts = [text if group.private else NULL for text, group in zip(shown, op.groups, strict=True)]
    both = union_all(
        [
            select(relation(_PAIRS), *shown, NULL, *totals, by=[name(CODE)]),
            select(source, *texts, weights, *[NULL for _ in totals], by=[name(CODE)]),
        ]
    )
    return Lowered(with_once(pairs, _PAIRS, both), tables, secrets=secrets)


def _weigh(op: Aggregate, held: Query, *, apart: bool) -> tuple[RowSource, Scalar]:
    """Return rows of units with their combinations of private keys, and what is summed up for each combination."""
    if apart:
        counted = name(UNITS) if op.weight_bits is None else name(WEIGHT)
        return within(held), cast(function("sum", counted), "text")
    if op.weight_bits is None:
        return within(held), cast(function("count", STAR), "text")
    if op.single:
        one = within(select(within(held), STAR, alias(number(1), _HELD)), "h")
        same = infix("=", name(_HELD, of="h"), name("place", of=_WEIGHTS))
        return join(one, relation(_WEIGHTS), [same]), cast(function("sum", name("value", of=_WEIGHTS)), "text")
    many = alias(function("count", STAR), _HELD)
    own = _weigh_units(select(relation(_COUNTED), name(UNIT), many, by=[name(UNIT)]))
    same = infix("=", name(UNIT, of="r"), name(UNIT, of="w"))
    weighed = select(join(relation(_COUNTED, called="r"), within(own, "w"), [same]), Star("r"), name(WEIGHT, of="w"))
    return within(with_once(held, _COUNTED, weighed)), cast(function("sum", name(WEIGHT)), "text")


def _weigh_units(held: Query) -> Query:
    """Return the weight of each unit, of the number of combinations that it holds."""
    both = join(within(held, "h"), relation(_WEIGHTS), [infix("=", name(_HELD, of="h"), name("place", of=_WEIGHTS))])
    return select(both, name(UNIT, of="h"), alias(name("value", of=_WEIGHTS), WEIGHT))


def _weights(most: int, bits: int) -> KeyTable:
    """List ⌊2^bits / √t⌋ for every t that a unit may keep."""
    values = tuple(str(math.isqrt((1 << 2 * bits) // held)) for held in range(1, most + 1))
    return KeyTable(_WEIGHTS, "int64", tuple(range(1, most + 1)), values)


def _field(index: int) -> StructField:
    return StructField(name(CODE), f"k{index}")


def read_counts(op: Aggregate, rows: Iterable[Sequence[Any]], value: Callable[[str, Type], Value]) -> ExactCounts:
    """Collect what the statement's rows say, in the order of the keys."""
    cells: dict[Cell, tuple[tuple[int, ...], tuple[StepCounts, ...]]] = {}
    units: dict[Cell, int] = {}
    wide = len(op.groups)
    readers = [_reader(group, value) for group in op.groups]
    private = [index for index, group in enumerate(op.groups) if group.private]
    mixed = len(private) < wide
    for row in rows:
        many = row[wide]
        if many is None or not mixed:
            cell = tuple([reader(text) for reader, text in zip(readers, row[:wide], strict=True)])
            cells[cell] = split(op, row[wide + 1 :])
        if many is not None:
            held = tuple([readers[index](row[index]) for index in private]) if mixed else cell
            units[held] = int(many)
    ordered = in_order(cells)
    return ExactCounts(
        cells=tuple(ordered),
        tallies=[cells[cell][0] for cell in ordered],
        histograms=tuple(tuple(cells[cell][1][index] for cell in ordered) for index in range(len(op.histograms))),
        units=tuple((held, units[held]) for held in (in_order(units) if mixed else ordered)),
    )


def _reader(group: Group, value: Callable[[str, Type], Value]) -> Callable[[Any], Value]:
    """Return what reads a key out of the engine's text for it, or out of the place of a public one."""
    if not group.private:
        return lambda text: group.values[int(text)]
    type_ = group.type
    if type_ is Type.TEXT:
        return lambda text: None if text is None else str(text)
    return lambda text: None if text is None else value(text, type_)
