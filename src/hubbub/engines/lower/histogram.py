"""Histograms and different values: of at most ``max_rows`` rows of a unit in a group, since these are no sums.

Privacy:
    Claim: which rows of a unit stay in a group is a function of the secrets and of the multiset of its own rows there.
    Proof: rows are ranked within their unit and group alone, by a hash of unit, group, content and copy under the
        secrets, then by content and copy. Copies number the rows of one content from 1 on: rows of one content are
        alike, so it does not matter which has which number. Where a unit has no more rows in a group than the limit
        they all stay, which is what ranking them would say too: so it does not matter how many more are ranked.
    Needs: unit and group are compared themselves, never a hash of them; contents that are equal are alike.
    Ref: SOUNDNESS 5 and 6.

Privacy:
    Claim: adding or removing a unit changes the number in each of its groups by at most ``most``, and in no other.
    Proof: the values that a unit brings to a group are a function of its own rows (engines.limit), and at most
        ``most``; those of other units stay. A union of sets grows or shrinks by no more than the set that is added or
        taken away has members.
    Needs: engines.limit; values that are equal count once, in the engine as in the interpreter.
    Ref: SOUNDNESS 5.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Apply, JoinForm, Name, Scalar, Tag
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    cast,
    constant,
    count_distinct,
    function,
    hash_keyed,
    infix,
    join,
    list_of,
    look_up,
    name,
    over,
    present,
    relation,
    select,
    union_all,
    within,
)
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Type, of
from hubbub.query.ops import Aggregate, Cell, ExactCounts

CODE = "code"
KEPT = "kept"
"""The rows of all units in the groups that they keep, which several parts of a statement look at."""
FULL = "full"
"""The units and groups among them with more rows than some part of the statement looks at."""
RANK = "rank"
PLACE = "place"
SO_FAR = "so_far"
NEXT = "next"

_MANY, _COPY = "many", "copy"


def owners(*, grouped: bool) -> list[Name]:
    """Return what a row is counted under: its unit, and its group."""
    return [name(UNIT), *([name(CODE)] if grouped else [])]


def rank_rows(
    rows: Query,
    rank: Apply,
    order: Sequence[Scalar],
    *,
    adding: Scalar | None = None,
    places: bool = False,
    following: Scalar | None = None,
) -> Query:
    """Give rows the rank of their group in their unit, and their ``places`` from 0 on among its rows in the group.

    The order is one of groups; which row of a group has which place is open. All are numbered by one sort. ``adding``
    is summed up in the order, from the first row to each, where a group has one row. ``following`` is shown of the
    row that comes next in the unit, and missing where none does.
    """

    def own(called: Apply) -> Scalar:
        return over(called, partition=[name(UNIT)], order=order)

    numbered = [alias(infix("-", own(function("row_number")), own(function("rank"))), PLACE)] if places else []
    summed = [] if adding is None else [alias(own(function("sum", adding)), SO_FAR)]
    led = [] if following is None else [alias(own(function("lead", following)), NEXT)]
    return select(within(rows), STAR, alias(own(rank), RANK), *numbered, *summed, *led)


def full(most: int, *, grouped: bool, placed: bool) -> Query:
    """Find the units and groups with more than so many of the kept rows; ``placed``: the rows have their places."""
    by = owners(grouped=grouped)
    whole = constant(most, of(Type.INTEGER))
    if placed:
        return select(relation(KEPT), *by, where=[infix("=", name(PLACE), whole)])
    counted = select(relation(KEPT), *by, alias(function("count", STAR), _MANY), by=by)
    return select(within(counted), *by, where=[infix(">", name(_MANY), whole)])


def limit_rows(rows: Query, content: Name, most: int, *, grouped: bool, copies: bool) -> Query:
    """Keep so many rows of a unit in a group, of a query that has a unit, a group and one column of content.

    Without ``copies`` at most so many different contents, each of which may come more than once. Few units have too
    many rows: only the rows of those that ``FULL`` names are ranked.
    """
    by = owners(grouped=grouped)
    whole = constant(most, of(Type.INTEGER))

    def side(form: JoinForm) -> Query:
        same = [infix("=", name(UNIT, of="r"), name(UNIT, of=FULL))]  # a unit is not missing; the key of a group may be
        same += [infix("same", name(CODE, of="r"), name(CODE, of=FULL))] if grouped else []
        both = join(within(rows, "r"), relation(FULL), same, form=form)
        return select(both, *(name(one.column, of="r") for one in (*by, content)))

    among = side("semi")
    if copies:
        copy = over(function("row_number"), partition=[*by, content])
        among = select(within(among), STAR, alias(copy, _COPY))
    else:
        among = select(within(among), *by, content, by=[*by, content])
    told_apart = [content, *([name(_COPY)] if copies else [])]
    mixed = hash_keyed(Tag.ROWS, name(UNIT), *by[1:], *told_apart)
    rank = over(function("row_number"), partition=by, order=[mixed, *told_apart])
    numbered = select(within(among), STAR, alias(rank, RANK))
    kept = select(within(numbered), *by, content, where=[infix("<=", name(RANK), whole)])
    return union_all([side("anti"), kept])


_STEP, _MANY, _OF, _FOUND = "step", "many", "of", "found"
_NO_BRACKETS = str.maketrans("", "", "[]{}")


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


_VALUE, _OF, _FOUND = "value", "of", "found"


def distinct_table(index: int) -> str:
    """Return what the numbers of a tally are called in the statement."""
    return f"distinct{index}"


def distinct(op: Aggregate, index: int) -> Query:
    """Count over the kept rows: one row for each group, with its number."""
    value, grouped = name(_VALUE), bool(op.groups)
    by = [name(CODE)] if grouped else []
    own = by if op.single else owners(grouped=grouped)
    there = select(relation(KEPT), *own, alias(name(f"s{index}"), _VALUE), where=[present(name(f"s{index}"))])
    kept: Query = there
    if not op.single:
        kept = limit_rows(there, value, op.tallies[index].bounds[1], grouped=grouped, copies=False)
    many = count_distinct(value)
    return select(within(kept), *(alias(one, _OF) for one in by), alias(many, _FOUND), by=by)
