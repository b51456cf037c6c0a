"""Histograms: for each group, the steps of a grid on which rows lie, with how many. All of one group is one text."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hubbub.engines.lower.row_limit import CODE, KEPT, limit_rows, owners
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Scalar
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    cast,
    function,
    infix,
    list_of,
    look_up,
    name,
    present,
    relation,
    select,
    within,
)
from hubbub.mechanisms.selection.bins import StepCounts
from hubbub.query.ops import Aggregate, Cell, ExactCounts

_STEP, _MANY, _OF, _FOUND = "step", "many", "of", "found"
_NO_BRACKETS = str.maketrans("", "", "[]")


def column(index: int) -> str:
    """Return what a histogram's steps are called among the rows."""
    return f"h{index}"


def table(index: int) -> str:
    """Return what a histogram is called in the statement."""
    return f"histogram{index}"


def histogram(op: Aggregate, index: int) -> Query:
    """Gather over the kept rows: one row for each group, with all its steps."""
    step, grouped = name(_STEP), bool(op.groups)
    by = [name(CODE)] if grouped else []
    own = [] if op.single else owners(grouped=grouped)
    there = select(
        relation(KEPT), *(own or by), alias(name(column(index)), _STEP), where=[present(name(column(index)))]
    )
    most = op.histograms[index].most_rows
    kept = there if op.single else limit_rows(there, step, most, grouped=grouped, copies=True)
    bins = select(within(kept), *by, step, alias(function("count", STAR), _MANY), by=[*by, step])
    pair = list_of(step, name(_MANY))
    text = cast(function("list", pair), "text")
    return select(within(bins), *(alias(one, _OF) for one in by), alias(text, _FOUND), by=by)


def look_up_group(called: str, *, grouped: bool) -> Scalar:
    """Look up what such a table says of the group of the query around it; missing where it says nothing."""
    same = [infix("same", name(_OF, of=called), name(CODE))] if grouped else []
    return look_up(select(relation(called), name(_FOUND, of=called), where=same))


def read(text: str | None) -> StepCounts:
    """Read what was put into one text: pairs of a step and its rows, in no order."""
    flat = np.fromstring("" if text is None else text.translate(_NO_BRACKETS), dtype=np.int64, sep=",")
    pairs = flat.reshape(-1, 2)
    ordered = pairs[np.argsort(pairs[:, 0])]
    return StepCounts(ordered[:, 0], ordered[:, 1])


def read_counts(op: Aggregate, cells: tuple[Cell, ...], rows: Iterable[Sequence[Any]]) -> ExactCounts:
    """Collect what a statement says of public groups, by their codes; where it says nothing, nobody is."""
    tallies, empty = [(0,) * len(op.tallies)] * len(cells), read(None)
    bins = [[empty] * len(cells) for _ in op.histograms]
    for code, *found in rows:
        tallies[code], own = split(op, found)
        for index, one in enumerate(own):
            bins[index][code] = one
    return ExactCounts(cells=cells, tallies=tallies, histograms=tuple(tuple(one) for one in bins))


def split(op: Aggregate, found: Sequence[Any]) -> tuple[tuple[int, ...], tuple[StepCounts, ...]]:
    """Split the numbers of one group, as the engine told them: its tallies, and its histograms."""
    many = len(op.tallies)
    return tuple(int(one) for one in found[:many]), tuple(read(one) for one in found[many:])
