"""Groups by keys that nobody listed: the combinations that units really have, as one DuckDB statement.

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

from hubbub.engines.histogram import split
from hubbub.engines.limit import CODE, RANK, ranked
from hubbub.engines.own import UNIT
from hubbub.engines.relations import Keys, Statement
from hubbub.engines.words import (
    NULL,
    STAR,
    Sql,
    alias,
    but,
    cast,
    constant,
    function,
    infix,
    joined,
    name,
    number,
    over,
    secret,
    select,
    struct,
    union_all,
    with_once,
    within,
)
from hubbub.mechanisms.bins import Bins
from hubbub.policy.kinds import Type, of
from hubbub.query.expression import Value
from hubbub.query.keys import in_order
from hubbub.query.ops import Aggregate, Cell, Counted, Group

_HALF = 32
_WEIGHTS, _HELD, _PAIRS = "weights", "held", "pairs"


def is_private(op: Aggregate) -> bool:
    """Whether some keys are not known beforehand."""
    return any(group.private for group in op.groups)


def code(op: Aggregate) -> Sql:
    """The code of a row: over its keys ``g0``, ``g1``, … and the tables of public keys ``keys0``, ``keys1``, …"""
    if len(op.groups) == 1:  # sorted and grouped in half the time of a struct
        return name("g0")
    return struct(
        {
            f"k{index}": name(f"g{index}") if group.private else name("place", of=f"keys{index}")
            for index, group in enumerate(op.groups)
        }
    )


def chosen(rows: Sql, most: int, rank: Sql, *, adding: Sql | None = None, places: bool = False) -> Sql:
    """At most so many groups of a unit, by a hash of unit and keys under the secrets; equal hashes by the keys.

    Half of the hash is sorted faster than all of it, and tells a unit's groups apart as well as it must.
    """
    unit = function("hash", name(UNIT), secret(1))
    keys = function("hash", name(CODE), secret(2))
    mixed = cast(infix(">>", function("hash", function("xor", unit, keys)), number(_HALF)), "UINTEGER")
    numbered = ranked(rows, rank, [mixed, name(CODE)], adding=adding, places=places)
    return select(within(numbered), but(RANK), where=[infix("<=", name(RANK), constant(most, of(Type.INTEGER)))])


def statement(op: Aggregate, pairs: Sql, totals: Sequence[Sql], *, keys: tuple[Keys, ...], secrets: int) -> Statement:
    """From what each unit adds to each group that it keeps: rows of keys, units and totals, all as text.

    Where there are public keys too, units are counted for each combination of private ones in rows of their own.
    """
    alone = len(op.groups) == 1
    shown = [cast(name(CODE) if alone else _field(index), "VARCHAR") for index in range(len(op.groups))]
    tables = keys if op.weight_bits is None else (*keys, _weights(op.most_groups, op.weight_bits))
    if all(group.private for group in op.groups):
        source, units = _weighed(op, pairs)
        return Statement(select(source, *shown, units, *totals, by=[name(CODE)]), tables, secrets=secrets)
    private = struct({f"k{index}": _field(index) for index, group in enumerate(op.groups) if group.private})
    owner = [] if op.single else [name(UNIT)]
    one = select(name(_PAIRS), *owner, alias(private, CODE))
    held = one if op.single else select(within(one), *owner, name(CODE), by=[*owner, name(CODE)])
    source, units = _weighed(op, held)
    texts = [text if group.private else NULL for text, group in zip(shown, op.groups, strict=True)]
    both = union_all(
        [
            select(name(_PAIRS), *shown, NULL, *totals, by=[name(CODE)]),
            select(source, *texts, units, *[NULL for _ in totals], by=[name(CODE)]),
        ]
    )
    return Statement(with_once(pairs, _PAIRS, both), tables, secrets=secrets)


def _weighed(op: Aggregate, held: Sql) -> tuple[Sql, Sql]:
    """Rows of units and their combinations of private keys, and what is summed up for each combination."""
    if op.weight_bits is None:
        return within(held), cast(function("count", STAR), "VARCHAR")
    many = number(1) if op.single else over(function("count", STAR), partition=[name(UNIT)])
    counted = within(select(within(held), STAR, alias(many, _HELD)), "weighed")
    own = joined(counted, name(_WEIGHTS), [infix("=", name(_HELD), name("place", of=_WEIGHTS))])
    return own, cast(function("sum", name("value", of=_WEIGHTS)), "VARCHAR")


def _weights(most: int, bits: int) -> Keys:
    """⌊2^bits / √t⌋ for every t that a unit may keep."""
    values = tuple(str(math.isqrt((1 << 2 * bits) // held)) for held in range(1, most + 1))
    return Keys(_WEIGHTS, "BIGINT", tuple(range(1, most + 1)), values)


def _field(index: int) -> Sql:
    return Sql(f"{name(CODE)}.{name(f'k{index}')}")


def counted(op: Aggregate, rows: Iterable[Sequence[Any]], value: Callable[[str, Type], Value]) -> Counted:
    """What the statement's rows say, in the order of the keys."""
    cells: dict[Cell, tuple[tuple[int, ...], tuple[Bins, ...]]] = {}
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
    return Counted(
        cells=tuple(ordered),
        tallies=[cells[cell][0] for cell in ordered],
        histograms=tuple(tuple(cells[cell][1][index] for cell in ordered) for index in range(len(op.histograms))),
        units=tuple((held, units[held]) for held in (in_order(units) if mixed else ordered)),
    )


def _reader(group: Group, value: Callable[[str, Type], Value]) -> Callable[[Any], Value]:
    """From the engine's text for a key, or the place of a public one, to the key."""
    if not group.private:
        return lambda text: group.values[int(text)]
    type_ = group.type
    if type_ is Type.TEXT:
        return lambda text: None if text is None else str(text)
    return lambda text: None if text is None else value(text, type_)
