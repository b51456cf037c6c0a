"""What limits drop: beside what each unit adds to each group, what it would add with all its rows, less that.

Every group of a unit is kept in the statement, with its place in the order that chooses groups. Those up to
``most_groups`` add what they always add, and the others nothing. The rows of a unit that are looked at are counted in
the same order, up to the limit within which what is dropped is measured.

Privacy:
    Claim: what a unit's rows in a group are said to drop is a function of the secrets and of its own rows, and at most
        what x rows can add, where the x of all groups add up to no more than ``query.ops.Aggregate`` says.
    Proof: with n rows in a group and S the sum of min(n, within) over all groups before, a = max(0, min(n, within − S,
        within)) rows are looked at, which add up to at most ``within``; c rows are kept, none in a group that is not.
        A count drops max(0, min(v, a) − min(v, c)) of v values, at most max(0, a − c). A total is clamped to what
        x = max(0, a − c) rows add. A unit is dropped in a group that is not kept, where a > 0: x is 1 at least.
    Needs: the order that chooses groups (``aggregate._choose``); sums of 128 bits.
    Ref: SOUNDNESS 5 and 6; query.ops.Aggregate for what follows.

Nobody is cut who has no more rows than the least of the limits, and rows of such units are added up as they are.

Privacy:
    Claim: every group's numbers are those that gathering all rows by unit and group gives.
    Proof: a unit of n rows, n at most the least limit, has at most n groups, so it keeps all of them; no group of it
        has more rows than count in one, nor all groups together more than count altogether. So each row counts 1, or
        adds its steps, which as many rows as may count cannot take beyond the bounds, and nothing is dropped. The rows
        of a unit are all on one side, since the unit alone decides which. Without groups a unit whose rows all count
        drops nothing: min(v, a) <= min(v, c) of a count, and x = 0 of a total.
    Needs: rows are counted or added up, and bounds are those of so many rows (``least_limit``); the unit itself is
        compared, never a hash of it.
    Ref: SOUNDNESS 5 and 6; ``total_limit``, which does so for counts.
"""

from hubbub.engines.lower import total_limit as together
from hubbub.engines.lower.grid_steps import bound_total, cut_in_proportion
from hubbub.engines.lower.histogram import CODE, FULL, RANK, SO_FAR
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.lower.unit_sums import bound_rows
from hubbub.engines.nodes.queries import Query, RowSource
from hubbub.engines.nodes.scalars import JoinForm, Scalar, Star
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    case,
    cast,
    constant,
    function,
    infix,
    join,
    name,
    number,
    over,
    relation,
    select,
    union_all,
    with_once,
    within,
)
from hubbub.errors import CapacityError, ParameterError
from hubbub.policy.kinds import INT64, Type, of
from hubbub.query.ops import Aggregate, Dropped, Measure, Tally

_LOOKED, _KEPT = "looked", "kept_rows"
_CODED, _MANY = "coded", "many"


def limits_of(op: Aggregate) -> Dropped | None:
    """Return the limits of which it is measured what they drop; None where nothing of it is."""
    return next((tally.dropped for tally in op.tallies if tally.dropped is not None), None)


def least_limit(op: Aggregate, *, choosing: bool) -> int:
    """Return how many rows a unit may have that is not cut; 0 where more is asked of rows than to add them up."""
    limits = limits_of(op)
    if limits is None or not op.groups:  # without groups, gathering is as fast
        return 0
    least = [limits.rows, limits.within]
    least += [op.most_groups] if choosing else []
    least += [op.together.rows, op.together.total] if op.together is not None else []
    for tally in op.tallies:
        if tally.measure is Measure.ROWS and tally.bounds[0] <= 0:
            least.append(tally.bounds[1])
        elif tally.measure is not Measure.TOTAL or not (tally.dropped or _is_dropped_of(op, tally)):
            return 0
    return max(0, min(least))


def _is_dropped_of(op: Aggregate, tally: Tally) -> bool:
    """Return whether it is measured what limits drop of a tally: its bounds are then those of so many rows."""
    return any(one.dropped is not None and tally.is_kept_of(one) for one in op.tallies)


def select_crowded() -> Query:
    """Select the rows of units with more than that: what is gathered by unit and group."""
    return select(_side("semi"), Star("r"))


def add_free(op: Aggregate, cut: Query) -> Query:
    """Add up the rows of all other units by their groups, beside what ``add_kept_and_dropped`` says of these."""
    by: list[Scalar] = [name(CODE)] if op.groups else []
    free: list[Scalar] = []
    for index, tally in enumerate(op.tallies):
        value = STAR if tally.argument is None else name(f"s{index}")
        counted = function("sum" if tally.measure is Measure.TOTAL else "count", value)
        free.append(alias(number(0) if tally.dropped is not None else counted, f"t{index}"))
    columns = [*(CODE for _ in by), *(f"t{index}" for index in range(len(op.tallies)))]
    alone = within(select(within(select(_side("anti"), Star("r"))), *by, *free, by=by), "f", columns)
    parts = [alone, within(cut, "c")]
    wide = [alias(cast(name(f"t{index}"), "int128"), f"t{index}") for index in range(len(op.tallies))]
    return union_all([select(part, *by, *wide) for part in parts])


def find_crowded(coded: Query, least: int, then: Query) -> Query:
    """Name the rows of all units, and the units with more than so many."""
    many = alias(function("count", STAR), _MANY)
    counted = select(relation(_CODED), name(UNIT), many, by=[name(UNIT)])
    full = select(within(counted), name(UNIT), where=[infix(">", name(_MANY), _whole(least))])
    return with_once(coded, _CODED, select(within(with_once(full, FULL, then)), STAR))


def _side(form: JoinForm) -> RowSource:
    same = [infix("=", name(UNIT, of="r"), name(UNIT, of=FULL))]
    return join(relation(_CODED, called="r"), relation(FULL), same, form=form)


def count_looked(limits: Dropped) -> Scalar:
    """Count the rows of a group that may be looked at: what is summed up in the order of groups."""
    return function("least", name(together.ROWS), _whole(limits.within))


def add_kept_and_dropped(op: Aggregate, pairs: Query, *, choosing: bool) -> Query:
    """Show what each unit adds to each group, and what is dropped of it.

    ``pairs`` are those of ``total_limit.gather``, with their places and sums so far where there are groups.
    ``choosing``: a unit may have more groups than it keeps.
    """
    limits = limits_of(op)
    if limits is None:
        raise ParameterError("op", "an aggregate that measures what is dropped", op)
    by: list[Scalar] = [name(UNIT), *([name(CODE)] if op.groups else [])]
    if op.together is not None:
        summed = over(function("sum", together.count_rows(op.together)), partition=[name(UNIT)], order=[name(RANK)])
        summing = select(within(pairs), STAR, alias(summed, together.SO_FAR_KEPT))
        pairs = together.allow(op.together, summing, together.SO_FAR_KEPT)
    inside = infix("<=", name(RANK), _whole(op.most_groups)) if choosing else None
    limited = function("least", name(together.ROWS), _whole(limits.rows))
    kept = limited if op.together is None else name(together.ALLOWED)
    shown = [alias(_look(op, limits), _LOOKED), alias(_only(inside, kept), _KEPT)]
    for index, tally in enumerate(op.tallies):
        if tally.dropped is None:
            shown.append(alias(_only(inside, _keep(op, index, tally)), f"t{index}"))
    first = select(within(pairs), STAR, *shown)
    made: list[Scalar] = []
    for index, tally in enumerate(op.tallies):
        counted = name(f"t{index}") if tally.dropped is None else _drop(op, tally, inside)
        if tally.dropped is not None and not op.groups:  # most units have no more rows than count
            more = infix(">", name(together.ROWS), _whole(limits.rows))
            counted = case((more, counted), otherwise=number(0))
        made.append(alias(counted, f"t{index}"))
    return select(within(first), *by, *made)


def _only(inside: Scalar | None, value: Scalar) -> Scalar:
    """Return a number in groups that are kept, and 0 in the others."""
    return value if inside is None else case((inside, value), otherwise=number(0))


def _look(op: Aggregate, limits: Dropped) -> Scalar:
    """Count the rows of a group that are looked at."""
    looked = count_looked(limits)
    if not op.groups:
        return looked
    earlier = infix("-", name(SO_FAR), looked)
    left = infix("-", cast(_whole(limits.within), "int128"), earlier)
    return cast(function("greatest", function("least", looked, left), number(0)), "int64")


def _keep(op: Aggregate, index: int, tally: Tally) -> Scalar:
    """Return what a unit adds to a group that it keeps."""
    many = name(together.ROWS if tally.argument is None else together.values(index))
    match tally.measure:
        case Measure.UNITS:
            return cast(infix(">", many, number(0)), "int64")
        case Measure.ROWS if op.together is not None:
            return bound_rows(together.fewer(tally, many), tally.bounds, always=False)
        case Measure.ROWS:
            return bound_rows(many, tally.bounds, always=tally.argument is None)
        case Measure.TOTAL if op.together is not None:
            return bound_total(together.less(tally, name(together.steps(index)), many), tally.bounds)
        case Measure.TOTAL:
            return bound_total(cut_in_proportion(name(together.steps(index)), many, tally.most_rows), tally.bounds)
        case Measure.DISTINCT:
            raise ParameterError("tallies", "sums, where it is measured what is dropped", tally)


def _drop(op: Aggregate, tally: Tally, inside: Scalar | None) -> Scalar:
    """Return what is dropped of a unit in a group."""
    index = _find_kept(op, tally)
    many = name(together.ROWS if tally.argument is None else together.values(index))
    added, looked = name(f"t{index}"), name(_LOOKED)
    if tally.measure is Measure.UNITS:
        there = cast(infix(">", function("least", many, looked), number(0)), "int64")
        return number(0) if inside is None else case((inside, number(0)), otherwise=there)
    if tally.measure is Measure.ROWS:
        return function("greatest", infix("-", function("least", many, looked), added), number(0))
    if tally.a_row is None or tally.dropped is None:
        raise ParameterError("a_row", "given for a total of what is dropped", tally)
    if max(abs(end) for end in tally.a_row) * tally.dropped.within > INT64[1]:
        raise CapacityError("What is dropped of one unit does not fit 64 bits. Use a coarser grid, or a smaller limit.")
    rows = cast(function("greatest", infix("-", looked, name(_KEPT)), number(0)), "int128")
    total = cut_in_proportion(name(together.steps(index)), many, tally.dropped.within, looked)
    rest = infix("-", function("coalesce", total, number(0)), added)
    low, high = (infix("*", cast(_whole(end), "int128"), rows) for end in tally.a_row)
    return cast(function("least", function("greatest", rest, low), high), "int64")


def _find_kept(op: Aggregate, tally: Tally) -> int:
    """Find the tally of which this one counts what is dropped."""
    for index, one in enumerate(op.tallies):
        if one.is_kept_of(tally):
            return index
    raise ParameterError("tallies", "those of which it is measured what is dropped among them", tally)


def _whole(value: int) -> Scalar:
    return constant(value, of(Type.INTEGER))
