"""Units that no limit cuts: their rows are counted as they are, and only those of the others are ranked.

Nobody is cut who has no more rows than the least of the limits. Limits are declared so that few units are beyond them,
and to count the rows of each unit takes a third of the time of ranking them. Whether it is done so depends on what is
counted and on the limits, which are public, never on how many units are beyond.

Privacy:
    Claim: every group's number is the one that ranking all rows under the same secrets gives.
    Proof: a unit of n rows, n at most the least limit, has at most n groups, so it keeps all of them; no group of it
        has more rows than count in one, nor all groups together more than count altogether, so each adds its rows. The
        rows of a unit are all on one side, since the unit alone decides which; on the other side nothing is different.
    Needs: rows are counted, nothing else of them: the tally's least value is not above 0. The unit itself is compared,
        never a hash of it.
    Ref: SOUNDNESS 5 and 6; query.ops.Aggregate for what follows.
"""

from hubbub.engines.lower.row_limit import CODE, FULL
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import Query, RowSource
from hubbub.engines.nodes.vocabulary import JoinForm
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    cast,
    constant,
    function,
    infix,
    join,
    name,
    relation,
    select,
    union_all,
    with_once,
    within,
)
from hubbub.policy.kinds import Type, of
from hubbub.query.ops import Aggregate, Measure

_CODED, _MANY, _TOTAL = "coded", "many", "total"


def least_limit(op: Aggregate) -> int:
    """Return how many rows a unit may have that is not cut; 0 where more is asked of rows than their number."""
    if len(op.tallies) != 1 or op.histograms or not op.groups or any(group.private for group in op.groups):
        return 0
    (tally,) = op.tallies
    if tally.measure is not Measure.ROWS or tally.argument is not None or tally.bounds[0] > 0:
        return 0
    limits = [op.most_groups, tally.bounds[1]]
    if op.together is not None:
        limits += [op.together.rows, op.together.total]
    return max(0, min(limits))


def select_crowded() -> Query:
    """Select the rows of units with more than that: what is ranked."""
    return select(_side("semi"), name(UNIT, of="r"), name(CODE, of="r"))


def add_up(coded: Query, least: int, ranked: Query) -> Query:
    """Add up all groups, as text, out of all rows and a query with the numbers of ``select_crowded()``."""
    many = alias(function("count", STAR), _MANY)
    counted = select(relation(_CODED), name(UNIT), many, by=[name(UNIT)])
    beyond = infix(">", name(_MANY), constant(least, of(Type.INTEGER)))
    full = select(within(counted), name(UNIT), where=[beyond])
    free = select(within(select(_side("anti"), name(CODE, of="r"))), name(CODE), many, by=[name(CODE)])
    cut = select(within(ranked, "c", [CODE, _TOTAL]), name(CODE), cast(name(_TOTAL), "int128"))
    both = within(union_all([free, cut]), "b", [CODE, _TOTAL])
    whole = select(both, name(CODE), cast(function("sum", name(_TOTAL)), "text"), by=[name(CODE)])
    return with_once(coded, _CODED, select(within(with_once(full, FULL, whole)), STAR))


def _side(form: JoinForm) -> RowSource:
    same = [infix("=", name(UNIT, of="r"), name(UNIT, of=FULL))]
    return join(relation(_CODED, called="r"), relation(FULL), same, form=form)
