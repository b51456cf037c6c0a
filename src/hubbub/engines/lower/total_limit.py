"""At most ``max_total_rows`` rows of a unit over all its groups; units that no limit touches are counted as they are.

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

Privacy:
    Claim: how many rows of a unit count in a group is a function of the secrets and of its own numbers of rows; it is
        at most ``rows`` in each group, and at most ``total`` over all groups that it keeps.
    Proof: one row a unit and group is made of the unit's rows there. Within the unit these are in the order that
        chooses groups, which is total: equal hashes are ordered by the group itself. With c = min(n, rows) for n rows,
        and C the sum of the c of all groups before, max(0, min(c, total − C)) count. Either all groups up to one have
        all their c, which add up to at most the total, or the first that has less brings the sum to the total, and all
        later ones have none. Groups that are not kept come after all that are, and take nothing from them.
    Needs: sums of 128 bits: a unit keeps at most 2^40 groups, with at most 2^40 rows that count in each.
    Ref: SOUNDNESS 5 and 6; query.ops.Aggregate for what follows.
"""

from hubbub.engines.lower.grid_steps import add_steps, cut_in_proportion
from hubbub.engines.lower.histogram import CODE, FULL, SO_FAR, owners
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import Query, RowSource
from hubbub.engines.nodes.scalars import JoinForm, Scalar
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    cast,
    constant,
    function,
    infix,
    join,
    name,
    number,
    relation,
    select,
    union_all,
    with_once,
    within,
)
from hubbub.policy.kinds import Type, of
from hubbub.query.ops import Aggregate, Measure, Tally, Together

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


ROWS = "rows"
"""How many rows a unit has in a group."""
ALLOWED = "allowed"
"""How many of them count."""
SO_FAR_KEPT = "so_far_kept"
"""What ``count_rows`` is summed up to where ``SO_FAR`` sums up something else."""


def values(index: int) -> str:
    """Return what the number of rows that have a tally's value is called."""
    return f"n{index}"


def steps(index: int) -> str:
    """Return what the sum of a tally's steps is called."""
    return f"u{index}"


def gather(op: Aggregate, coded: Query) -> Query:
    """Gather for each unit and group how many rows there are, and what tallies need of them, as yet unbounded."""
    shown = [alias(function("count", STAR), ROWS)]
    for index, tally in enumerate(op.tallies):
        if tally.measure is Measure.DISTINCT or tally.dropped is not None:
            continue
        if tally.argument is not None:
            shown.append(alias(function("count", name(f"s{index}")), values(index)))
        if tally.measure is Measure.TOTAL:
            shown.append(alias(add_steps(tally, name(f"s{index}")), steps(index)))
    by = owners(grouped=bool(op.groups))
    return select(within(coded), *by, *shown, by=by)


def count_rows(limits: Together) -> Scalar:
    """Count the rows of a group that may count: what is summed up in the order of groups."""
    return function("least", name(ROWS), _whole(limits.rows))


def allow(limits: Together, chosen: Query, so_far: str = SO_FAR) -> Query:
    """Add how many of them do count, in groups that have the sum so far."""
    earlier = infix("-", name(so_far), count_rows(limits))
    left = infix("-", cast(_whole(limits.total), "int128"), earlier)
    many = function("greatest", function("least", count_rows(limits), left), number(0))
    return select(within(chosen), STAR, alias(cast(many, "int64"), ALLOWED))


def fewer(tally: Tally, many: Scalar) -> Scalar:
    """Cut a number of rows to those that count."""
    return many if tally.a_row is None else function("least", many, name(ALLOWED))


def less(tally: Tally, total: Scalar, many: Scalar) -> Scalar:
    """Cut a total in proportion to the rows that count, or to what these can add; 0 where there is no value."""
    if tally.a_row is None:
        return cut_in_proportion(total, many, tally.most_rows)
    low, high = (infix("*", cast(_whole(end), "int128"), name(ALLOWED)) for end in tally.a_row)
    cut = cut_in_proportion(total, many, tally.most_rows, name(ALLOWED))
    return function("least", function("greatest", function("coalesce", cut, number(0)), low), high)


def _whole(value: int) -> Scalar:
    return constant(value, of(Type.INTEGER))
