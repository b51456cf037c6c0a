"""One tally of very many public groups, as arrays: no object a group, on either side of the wall.

The statement is the one of every aggregate; its rows, codes with numbers, are put into one text. Where the groups can
be listed it is read into zeros, and where they cannot, into the combinations that have rows. Codes say what a number is
about, so the order of the text does not matter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.engines.lower import group_codes as codes
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.lower.relations import Origins
from hubbub.engines.nodes.queries import Lowered
from hubbub.engines.nodes.words import function, name, select, within
from hubbub.errors import ParameterError
from hubbub.policy.tables import Table
from hubbub.query.ops import Aggregate

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Combinations:
    """The combinations of groups that have rows, each once, in no order: exact numbers, which belong into Secrets."""

    places: tuple[Array, ...]
    """For each group, the place of its value, in as few bytes as hold it."""
    counts: Array


def statement(op: Aggregate, tables: Mapping[str, Table], origins: Origins) -> Lowered:
    """Put into one row of one text the codes of groups that have rows, each with its number behind it."""
    if len(op.tallies) != 1 or op.histograms or not op.groups or any(group.private for group in op.groups):
        raise ParameterError("aggregate", "one tally of public groups", op)
    made = aggregate(op, tables, origins, wide=True)
    row = function("words", *codes.numbers(op.groups, name("code", of="t")), name("total", of="t"))
    return replace(made, query=select(within(made.query, "t", ["code", "total"]), function("paragraph", row)))


def fill_cells(op: Aggregate, rows: Sequence[Sequence[Any]]) -> Array:
    """Fill an array of all groups, the last one's values changing fastest; zero where nobody is."""
    found = np.zeros(math.prod(len(group.values) for group in op.groups), dtype=np.int64)
    table = _read(op, rows)
    found[table[:, 0]] = table[:, 1]
    return found


def combine_cells(op: Aggregate, rows: Sequence[Sequence[Any]]) -> Combinations:
    """Return the groups that have rows, by their places."""
    table = _read(op, rows)
    places: list[Array] = []
    for column, run in enumerate(codes.runs(op.groups)):
        left, found = table[:, column], []
        for index in reversed(run[1:]):
            left, place = np.divmod(left, len(op.groups[index].values))
            found.append(_narrow(place, len(op.groups[index].values)))
        places += [_narrow(left, len(op.groups[run[0]].values)), *reversed(found)]
    return Combinations(places=tuple(places), counts=table[:, -1].copy())


def _narrow(places: Array, many: int) -> Array:
    """Narrow places; whatever is none becomes an error, not another place."""
    if places.size and not (places.min() >= 0 and places.max() < many):
        raise ValueError("a code that no group has")
    return places.astype(np.min_scalar_type(many - 1))


def _read(op: Aggregate, rows: Sequence[Sequence[Any]]) -> Array:
    """Read a row for each group that is told: the numbers of its code, then its tally."""
    ((text,),) = rows
    wide = len(codes.runs(op.groups)) + 1
    return np.fromstring(text or "", dtype=np.int64, sep=" ").reshape(-1, wide)
