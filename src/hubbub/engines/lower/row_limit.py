"""At most so many rows of a unit in a group, for what is not a sum: histograms and different values.

Privacy:
    Claim: which rows of a unit stay in a group is a function of the secrets and of the multiset of its own rows there.
    Proof: rows are ranked within their unit and group alone, by a hash of unit, group, content and copy under the
        secrets, then by content and copy. Copies number the rows of one content from 1 on: rows of one content are
        alike, so it does not matter which has which number. Where a unit has no more rows in a group than the limit
        they all stay, which is what ranking them would say too: so it does not matter how many more are ranked.
    Needs: unit and group are compared themselves, never a hash of them; contents that are equal are alike.
    Ref: SOUNDNESS 5 and 6.
"""

from collections.abc import Sequence

from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Apply, Name, Scalar
from hubbub.engines.nodes.vocabulary import JoinForm, Tag
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    constant,
    function,
    hash_keyed,
    infix,
    join,
    name,
    over,
    relation,
    select,
    union_all,
    within,
)
from hubbub.policy.kinds import Type, of

CODE = "code"
KEPT = "kept"
"""The rows of all units in the groups that they keep, which several parts of a statement look at."""
FULL = "full"
"""The units and groups among them with more rows than some part of the statement looks at."""
RANK = "rank"
PLACE = "place"
SO_FAR = "so_far"

_MANY, _COPY = "many", "copy"


def owners(*, grouped: bool) -> list[Name]:
    """Return what a row is counted under: its unit, and its group."""
    return [name(UNIT), *([name(CODE)] if grouped else [])]


def rank_rows(
    rows: Query, rank: Apply, order: Sequence[Scalar], *, adding: Scalar | None = None, places: bool = False
) -> Query:
    """Give rows the rank of their group in their unit, and their ``places`` from 0 on among its rows in the group.

    The order is one of groups; which row of a group has which place is open. All are numbered by one sort. ``adding``
    is summed up in the order, from the first row to each, where a group has one row.
    """

    def own(called: Apply) -> Scalar:
        return over(called, partition=[name(UNIT)], order=order)

    numbered = [alias(infix("-", own(function("row_number")), own(function("rank"))), PLACE)] if places else []
    summed = [] if adding is None else [alias(own(function("sum", adding)), SO_FAR)]
    return select(within(rows), STAR, alias(own(rank), RANK), *numbered, *summed)


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
