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

from hubbub.engines.own import UNIT
from hubbub.engines.words import (
    STAR,
    Sql,
    alias,
    constant,
    function,
    infix,
    joined,
    name,
    number,
    over,
    secret,
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
_ROWS = 2
"""Sets these hashes apart from those that choose groups and cap rows."""


def owners(*, grouped: bool) -> list[Sql]:
    """What a row is counted under: its unit, and its group."""
    return [name(UNIT), *([name(CODE)] if grouped else [])]


def ranked(rows: Sql, rank: Sql, order: Sequence[Sql], *, adding: Sql | None = None, places: bool = False) -> Sql:
    """Rows with the rank of their group in their unit; and their ``places`` from 0 on among its rows in the group.

    The order is one of groups; which row of a group has which place is open. All are numbered by one sort. ``adding``
    is summed up in the order, from the first row to each, where a group has one row.
    """

    def own(called: Sql) -> Sql:
        return over(called, partition=[name(UNIT)], order=order)

    numbered = [alias(infix("-", own(function("row_number")), own(function("rank"))), PLACE)] if places else []
    summed = [] if adding is None else [alias(own(function("sum", adding)), SO_FAR)]
    return select(within(rows), STAR, alias(own(rank), RANK), *numbered, *summed)


def full(most: int, *, grouped: bool, placed: bool) -> Sql:
    """The units and groups with more than so many of the kept rows; ``placed``: the rows have their places."""
    by = owners(grouped=grouped)
    whole = constant(most, of(Type.INTEGER))
    if placed:
        return select(name(KEPT), *by, where=[infix("=", name(PLACE), whole)])
    counted = select(name(KEPT), *by, alias(function("count", STAR), _MANY), by=by)
    return select(within(counted), *by, where=[infix(">", name(_MANY), whole)])


def limited(rows: Sql, content: Sql, most: int, *, grouped: bool, copies: bool) -> Sql:
    """Of a query that has a unit, a group and one column of content: at most so many rows of a unit in a group.

    Without ``copies`` at most so many different contents, each of which may come more than once. Few units have too
    many rows: only the rows of those that ``FULL`` names are ranked.
    """
    by = owners(grouped=grouped)
    whole = constant(most, of(Type.INTEGER))

    def side(kind: str) -> Sql:
        same = [infix("=", name(UNIT, of="r"), name(UNIT, of=FULL))]  # a unit is not missing; the key of a group may be
        same += [infix("IS NOT DISTINCT FROM", name(CODE, of="r"), name(CODE, of=FULL))] if grouped else []
        both = joined(within(rows, "r"), name(FULL), same, kind=kind)
        return select(both, *(Sql(f"{name('r')}.{one}") for one in (*by, content)))

    among = side("SEMI")
    if copies:
        copy = over(function("row_number"), partition=[*by, content])
        among = select(within(among), STAR, alias(copy, _COPY))
    else:
        among = select(within(among), *by, content, by=[*by, content])
    told_apart = [content, *([name(_COPY)] if copies else [])]
    unit = function("hash", name(UNIT), secret(1), number(_ROWS))
    rest = function("hash", *by[1:], *told_apart, secret(2))
    mixed = function("hash", function("xor", unit, rest))
    rank = over(function("row_number"), partition=by, order=[mixed, *told_apart])
    numbered = select(within(among), STAR, alias(rank, RANK))
    kept = select(within(numbered), *by, content, where=[infix("<=", name(RANK), whole)])
    return union_all([side("ANTI"), kept])
