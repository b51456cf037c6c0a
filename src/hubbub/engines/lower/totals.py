"""Sums for learning as one statement: one pass over the rows, whatever is added up.

Each part of a Number that is used more than once becomes a column of a SELECT, so that it is computed once. A row's
weight comes from a join with the units that have more rows than count; where there are none, that is a small table.
Whole numbers are added in 128 bits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.engines.lower.relations import Lowering, Origins
from hubbub.engines.lower.scalars import lower
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import Lowered, Query
from hubbub.engines.nodes.scalars import Function, GroupingSets, Guarded, Operator, Scalar, Star
from hubbub.engines.nodes.words import (
    NULL,
    STAR,
    alias,
    case,
    cast,
    constant,
    function,
    infix,
    join,
    list_of,
    name,
    number,
    select,
    try_cast,
    within,
)
from hubbub.policy.kinds import Type, of
from hubbub.policy.tables import Table
from hubbub.query.scalar_numbers import Scalars
from hubbub.query.totals import SHARED, Number, SumsRequest, Totals

Array = np.ndarray[Any, Any]
_REAL = of(Type.REAL)
_WEIGHT, _OWNED, _ROWS, _HEAVY, _APART = "weight", "owned", "rows", "heavy", "apart"
_INFIX: dict[str, Operator] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_CALLED: dict[str, Function] = {
    "least": "least", "greatest": "greatest", "floor": "floor", "sqrt": "sqrt", "log2": "log2", "asinh": "asinh",
    "truncate": "truncate", "known": "coalesce",
}  # fmt: skip


def statement(op: Totals, tables: Mapping[str, Table], origins: Origins) -> Lowered:
    """Ask for a row for each place that has rows: the codes of its family (others missing), and the sums as text."""
    lowering = Lowering(tables, origins)
    relation, names = lowering.relation(op.input)
    given = [alias(lower(one, names), f"x{place}") for place, one in enumerate(op.columns)]
    rows = select(within(relation), *([] if op.single else [name(UNIT)]), *(given or [alias(NULL, "x")]))
    source = rows if op.single else _weigh(rows, op.most)
    families, values = _written(op.sums)
    wanted = [*(family for family, _ in families), *values]
    layers, known = _layers(wanted)
    for layer in layers:
        made = [alias(_said(one, known, own=True), known[id(one)]) for one in layer]
        source = select(within(source), STAR, *made)
    codes = [f"c{place}" for place in range(len(families))]
    last = [
        alias(function("coalesce", try_cast(_said(family, known), "int32"), number(size)), codes[place])
        for place, (family, size) in enumerate(families)
    ]
    last += [alias(try_cast(_said(one, known), "int64"), f"v{place}") for place, one in enumerate(values)]
    if last:
        source = select(within(source), *last)
    sums = [function("coalesce", function("sum", name(f"v{place}")), number(0)) for place in range(len(values))]
    shown = [cast(one, "text") for one in sums or [function("count", STAR)]]
    keys = [name(code) for code in codes]
    by = keys if len(keys) <= 1 else [GroupingSets(tuple(keys))]
    return Lowered(select(within(source), *keys, *shown, by=by), secrets=lowering.secrets)


def read(op: Totals, rows: Sequence[Sequence[Any]]) -> list[Array]:
    """Return one row of sums for each place of each family; without codes, one row alone, or a matrix of products."""
    sums = op.sums
    width = sums.width * (sums.width + 1) // 2 if sums.products else sums.width
    many = len(sums.sizes) if sums.codes else 0
    found = [np.zeros((size + bool(many), width), dtype=object) for size in sums.sizes]
    for row in rows:
        family = next((place for place in range(many) if row[place] is not None), 0)
        found[family][int(row[family]) if many else 0] = [int(one) for one in row[many:]]
    if sums.products:
        matrix = np.zeros(sums.shapes[0], dtype=object)
        matrix[np.triu_indices(sums.width)] = found[0][0]
        found = [np.triu(matrix) + np.triu(matrix, 1).T]
    return [_narrow(one[:-1] if many else one) for one in found]


def _written(sums: SumsRequest) -> tuple[list[tuple[Number, int]], list[Number]]:
    """Return the codes of all families, each with its size, and the values: all of them as single numbers."""
    scalars = Scalars()
    families = [(one, code.size) for code in sums.codes for one in scalars.of(code.number)]
    values = [] if sums.values is None else scalars.of(sums.values)
    if sums.products:
        values = [one * other for place, one in enumerate(values) for other in values[place:]]
    return families, values


def _narrow(exact: Array) -> Array:
    fits = all(-(1 << 62) < one < (1 << 62) for one in exact.reshape(-1).tolist())
    return exact.astype(np.int64) if fits else exact


def _weigh(rows: Query, most: int) -> Query:
    """Rows with their weights: 1, or the share of a row of a unit that has too many.

    The table of such units is part of the statement, and groups by the unit itself, never by a hash of it. Nobody looks
    at the random column: it keeps the engine from writing all formulas out below the join, at every use of their parts.
    """
    many = function("count", STAR)
    heavy = select(within(rows, _ROWS), alias(name(UNIT), _OWNED), alias(cast(many, "real"), _HEAVY), by=[name(UNIT)])
    heavy = select(within(heavy), STAR, where=[infix(">", name(_HEAVY), constant(float(most), _REAL))])
    both = join(
        within(rows, _ROWS), within(heavy, _OWNED), [infix("=", name(UNIT, of=_ROWS), name(_OWNED, of=_OWNED))],
        form="left",
    )  # fmt: skip
    share = infix("*", infix("/", constant(float(most), _REAL), name(_HEAVY)), constant(SHARED, _REAL))
    weight = function("coalesce", share, constant(1.0, _REAL))
    return select(both, Star(_ROWS), alias(weight, _WEIGHT), alias(function("random"), _APART))


def _layers(wanted: Sequence[Number]) -> tuple[list[list[Number]], dict[int, str]]:
    """List what is used more than once, in the order in which it can be computed, and name the column of each."""
    uses: dict[int, int] = {}
    nodes: dict[int, Number] = {}

    def count(one: Number) -> None:
        uses[id(one)] = uses.get(id(one), 0) + 1
        if id(one) not in nodes:
            nodes[id(one)] = one
            for argument in one.arguments:
                count(argument)

    for one in wanted:
        count(one)
    levels: dict[int, int] = {}

    def level(one: Number) -> int:
        if id(one) not in levels:
            below = max((level(argument) for argument in one.arguments), default=0)
            levels[id(one)] = below + (1 if uses[id(one)] > 1 and one.arguments else 0)
        return levels[id(one)]

    layers: list[list[Number]] = []
    known: dict[int, str] = {}
    for one in nodes.values():
        if uses[id(one)] > 1 and one.arguments:
            place = level(one)
            layers += [[] for _ in range(place - len(layers))]
            layers[place - 1].append(one)
            known[id(one)] = f"t{len(known)}"
    return layers, known


def _said(one: Number, known: Mapping[int, str], *, own: bool = False) -> Scalar:
    """A Number in the engine's words; ``own``: how it is computed, even if it has a column."""
    if not own and id(one) in known:
        return name(known[id(one)])
    parts = [_said(argument, known) for argument in one.arguments]
    match one.function:
        case "column":
            return name(f"x{int(one.constants[0])}")
        case "weight":
            return name(_WEIGHT)
        case "constant":
            return constant(one.constants[0], _REAL)
        case "above":
            return cast(infix(">", *parts), "real")
        case "equal":
            return cast(infix("=", *parts), "real")
        case "sign":
            return cast(function("sign", *parts), "real")
        case "pick":
            entries = list_of(*(constant(entry, _REAL) for entry in one.constants))
            return function("item", entries, infix("+", try_cast(parts[0], "int64"), number(1)))
        case "place":
            met, *among = parts
            return case(
                *((infix("=", entry, met), constant(float(place), _REAL)) for place, entry in enumerate(among[:-1])),
                otherwise=constant(float(len(among) - 1), _REAL),
            ) if len(among) > 1 else constant(0.0, _REAL)  # fmt: skip
        case "add" | "subtract" | "multiply" | "divide":
            return Guarded(infix(_INFIX[one.function], *parts), "infinite")
        case "sqrt" | "log2":
            return Guarded(function(_CALLED[one.function], *parts), "infinite")
        case _:
            return function(_CALLED[one.function], *parts)
