"""Rows of a unit that count over all the groups that it keeps: each group has what earlier ones left of the total.

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

from hubbub.engines.lower.grid_steps import cut_in_proportion
from hubbub.engines.lower.row_limit import CODE, SO_FAR
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Scalar
from hubbub.engines.nodes.words import STAR, alias, cast, constant, function, infix, name, number, select, within
from hubbub.errors import ParameterError
from hubbub.policy.kinds import Type, of
from hubbub.query.ops import Aggregate, Measure, Tally, Together

ROWS = "rows"
"""How many rows a unit has in a group."""
_ALLOWED = "allowed"


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
        if tally.measure is Measure.DISTINCT:
            continue
        if tally.argument is not None:
            shown.append(alias(function("count", name(f"s{index}")), values(index)))
        if tally.measure is Measure.TOTAL:
            if tally.argument is None:
                raise ParameterError("argument", "given for a total", None)
            shown.append(alias(function("sum", name(f"s{index}")), steps(index)))
    by = [name(UNIT), name(CODE)]
    return select(within(coded), *by, *shown, by=by)


def count_rows(limits: Together) -> Scalar:
    """Count the rows of a group that may count: what is summed up in the order of groups."""
    return function("least", name(ROWS), _whole(limits.rows))


def allow(limits: Together, chosen: Query) -> Query:
    """Add how many of them do count, in groups that have the sum so far."""
    earlier = infix("-", name(SO_FAR), count_rows(limits))
    left = infix("-", cast(_whole(limits.total), "int128"), earlier)
    many = function("greatest", function("least", count_rows(limits), left), number(0))
    return select(within(chosen), STAR, alias(cast(many, "int64"), _ALLOWED))


def fewer(tally: Tally, many: Scalar) -> Scalar:
    """Cut a number of rows to those that count."""
    return many if tally.a_row is None else function("least", many, name(_ALLOWED))


def less(tally: Tally, total: Scalar, many: Scalar) -> Scalar:
    """Cut a total in proportion to the rows that count, or to what these can add; 0 where there is no value."""
    if tally.a_row is None:
        return cut_in_proportion(total, many, tally.most_rows)
    low, high = (infix("*", cast(_whole(end), "int128"), name(_ALLOWED)) for end in tally.a_row)
    cut = cut_in_proportion(total, many, tally.most_rows, name(_ALLOWED))
    return function("least", function("greatest", function("coalesce", cut, number(0)), low), high)


def _whole(value: int) -> Scalar:
    return constant(value, of(Type.INTEGER))
