"""At most so many rows of a unit in a group, for what is not a sum: histograms and different values.

Privacy:
    Claim: which rows of a unit stay in a group is a function of the secrets and of the multiset of its own rows there.
    Proof: rows are ranked within their unit and group alone, by a hash of unit, group, content and copy under the
        secrets, then by content and copy. Copies number the rows of one content from 1 on: rows of one content are
        alike, so it does not matter which has which number. Rows of units that keep within the limit all stay.
    Needs: unit and group are compared themselves, never a hash of them; contents that are equal are alike.
    Ref: SOUNDNESS 5 and 6.
"""

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
    with_once,
    within,
)
from hubbub.policy.kinds import Type, of

CODE = "code"
KEPT = "kept"
"""The rows of all units in the groups that they keep, which several parts of a statement look at."""

_MANY, _COPY, _RANK, _FULL = "many", "copy", "rank", "full"
_ROWS = 2
"""Sets these hashes apart from those that choose groups and cap rows."""


def owners(*, grouped: bool) -> list[Sql]:
    """What a row is counted under: its unit, and its group."""
    return [name(UNIT), *([name(CODE)] if grouped else [])]


def limited(rows: Sql, content: Sql, most: int, *, grouped: bool, copies: bool) -> Sql:
    """The rows of a query that has a unit, a group and one column of content; ``copies``: it may hold one twice.

    Few units have too many rows, so that they are found first, and only their rows are ranked.
    """
    by = owners(grouped=grouped)
    whole = constant(most, of(Type.INTEGER))
    counted = select(within(rows), *by, alias(function("count", STAR), _MANY), by=by)
    over_full = select(within(counted), *by, where=[infix(">", name(_MANY), whole)])

    def side(kind: str) -> Sql:
        same = [infix("IS NOT DISTINCT FROM", *(Sql(f"{name(of_)}.{one}") for of_ in ("r", _FULL))) for one in by]
        both = joined(within(rows, "r"), name(_FULL), same, kind=kind)
        return select(both, *(Sql(f"{name('r')}.{one}") for one in (*by, content)))

    among = side("SEMI")
    if copies:
        copy = over(function("row_number"), partition=[*by, content])
        among = select(within(among), STAR, alias(copy, _COPY))
    told_apart = [content, *([name(_COPY)] if copies else [])]
    unit = function("hash", name(UNIT), secret(1), number(_ROWS))
    rest = function("hash", *by[1:], *told_apart, secret(2))
    mixed = function("hash", function("xor", unit, rest))
    rank = over(function("row_number"), partition=by, order=[mixed, *told_apart])
    ranked = select(within(among), STAR, alias(rank, _RANK))
    kept = select(within(ranked), *by, content, where=[infix("<=", name(_RANK), whole)])
    return with_once(over_full, _FULL, union_all([side("ANTI"), kept]))
