"""Windows in a subquery: a row's place among the rows of its unit, the row before or after it, or what they add up to.

Privacy:
    Claim: what a window adds to a row is a function of the multiset of its unit's rows.
    Proof: the unit, or a key that tells it, is among what it is partitioned by, so rows of nobody else are seen; the
        order is completed with all columns by the operation, so rows that it ties are alike.
    Needs: columns that are said to be the unit are (query.scope).
    Ref: SOUNDNESS, ruling 2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned
from hubbub.query.expression import Expression, Literal
from hubbub.query.functions import call
from hubbub.query.ops import Ranking
from hubbub.query.read.scalars import Names, read

_PLACES: Mapping[type[exp.Expr], Ranking] = {
    exp.RowNumber: Ranking.ROW_NUMBER,
    exp.Rank: Ranking.RANK,
    exp.DenseRank: Ranking.DENSE_RANK,
    exp.Lag: Ranking.LAG,
    exp.Lead: Ranking.LEAD,
}
_MOST_OFFSET = 1000
_KNOWN = "ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, and without ORDER BY also COUNT, SUM, AVG, MIN, MAX"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCall:
    """A window behind OVER, and the place or neighbour that is asked for; for aggregates ``ranking`` is None."""

    ranking: Ranking | None
    argument: Expression | None
    offset: int
    part: tuple[Expression, ...]
    """What it is partitioned by besides the unit."""
    order: tuple[tuple[Expression, bool], ...]


def over(
    node: exp.Window, names: Names, owned: Callable[[Expression], bool], tells: Callable[[Expression], bool]
) -> WindowCall:
    """Read a window whose rows belong to one unit.

    ``owned`` says whether an expression is the unit, and ``tells`` whether rows with equal values of it are of one.
    """
    known = {"this", "partition_by", "order", "over"}
    if any(value for name, value in node.args.items() if name not in known):
        raise NotAllowed("A window takes PARTITION BY and ORDER BY, written out. Frames and names are not answered.")
    by = [read(one, names) for one in node.args.get("partition_by") or []]
    if not any(owned(one) or tells(one) for one in by):
        raise NotOwned("The window looks at rows of several people. PARTITION BY the unit's column, as it is.")
    order = tuple(
        placed for one in getattr(node.args.get("order"), "expressions", []) for placed in _read_order(one, names)
    )
    part = tuple(one for one in by if not owned(one))
    called = node.this
    ranking = _PLACES.get(type(called))
    if ranking is None:
        aggregate = called.this if isinstance(called, exp.Filter) else called
        if not isinstance(aggregate, exp.AggFunc) or order:
            raise NotAllowed(f"There are no other windows than these: {_KNOWN}.")
        return WindowCall(ranking=None, argument=None, offset=0, part=part, order=())
    if not order and ranking is not Ranking.ROW_NUMBER:
        raise NotAllowed(f"{ranking.upper()} is about an order. Write OVER (PARTITION BY unit ORDER BY …).")
    argument, offset = _neighbour(called, names) if ranking in {Ranking.LAG, Ranking.LEAD} else (None, 1)
    if argument is None and any(called.args.values()):
        raise NotAllowed(f"{ranking.upper()} takes nothing: {ranking.upper()}().")
    return WindowCall(ranking=ranking, argument=argument, offset=offset, part=part, order=order)


def _read_order(node: exp.Expr, names: Names) -> list[tuple[Expression, bool]]:
    """An expression of ORDER BY. Missing values come last; to come first, they are ordered by being missing."""
    if node.args.get("with_fill"):
        raise NotAllowed("ORDER BY takes expressions, ASC or DESC, and NULLS FIRST or LAST.")
    value = read(node.this, names)
    if isinstance(value, Literal):
        raise NotAllowed("ORDER BY a constant orders nothing. Name a column.")
    first = [(call("is_null", value), True)] if node.args.get("nulls_first") and value.kind.nullable else []
    return [*first, (value, bool(node.args.get("desc")))]


def _neighbour(node: exp.Expr, names: Names) -> tuple[Expression, int]:
    if node.args.get("default") is not None or any(
        value for name, value in node.args.items() if name not in {"this", "offset", "default"}
    ):
        raise NotAllowed("LAG and LEAD take a value and a number of rows. Give another value with coalesce(…).")
    offset = node.args.get("offset")
    if offset is None:
        return read(node.this, names), 1
    many = read(offset, names)
    if not isinstance(many, Literal) or not isinstance(many.value, int) or not 0 <= many.value <= _MOST_OFFSET:
        raise NotAllowed(f"LAG and LEAD look a whole number of rows away, from 0 to {_MOST_OFFSET:,}.")
    return read(node.this, names), many.value
