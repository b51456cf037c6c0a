"""What each unit adds to each of its groups, within the bounds of the tallies.

Rows are gathered by unit and group before they are bounded. Where the groups of a unit are chosen by ranking its rows,
the sort has already put the rows of a group side by side, so it shows which row is alone: the only one of its unit in
its group. What such a row adds follows from it alone. These rows are added up at once, by their group; only the
others are gathered by unit and group, and where bounds let few rows count these are few.

Privacy:
    Claim: the sums over all units are those that gathering every row by unit and group gives.
    Proof: a row that is alone is all that its unit has in its group. One row is clamped to the tally's bounds by
        itself: either it is so whatever its value, since all steps of the grid are within them, or ``bound_total`` does
        it. A share of one row is all of it, whatever number of rows may count, and one row counts 1, which is within
        the bounds (``is_plain``). Sums of whole numbers do not know an order. A row that is alone and not recognised
        is gathered like any other: with itself.
    Needs: a row that is not alone is never taken for one that is. Rows of a unit are ordered by what decides about a
        group and by the group, so those of one group are neighbours: all but the first have a place above 0, and the
        first is followed by a row with the same order. The unit is never missing.
    Ref: SOUNDNESS 2, 5 and 6; query.ops.Aggregate for what follows.
"""

import math
from collections.abc import Sequence
from functools import partial

from hubbub.engines.lower import total_limit as together
from hubbub.engines.lower.grid_steps import add_steps, bound_total, cut_in_proportion, find_ends, steps
from hubbub.engines.lower.histogram import CODE, NEXT, PLACE
from hubbub.engines.lower.scalars import once
from hubbub.engines.lower.unit_operations import UNIT, alike
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Scalar
from hubbub.engines.nodes.words import (
    STAR,
    TRUE,
    alias,
    case,
    cast,
    constant,
    function,
    infix,
    missing,
    name,
    number,
    present,
    select,
    within,
)
from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, Kind, Type, of
from hubbub.query.ops import Aggregate, JoinOwn, Measure, Relation, Tally, below

FEW = 32
"""Rows of a unit in a group, up to which its groups are chosen before they are added up."""
OWN = "own"
"""The unit of rows that are not alone, and missing for the others."""
UNITS = "units"
"""How many units a row of ``add_chosen`` is about."""
WEIGHT = "weight"
"""Where units weigh their groups: the weight of one, in one row of it."""


def prepare_value(tally: Tally, value: Scalar, kind: Kind) -> Scalar:
    """Return what a tally needs of a row's value: its steps, itself, or whether it is there."""
    match tally.measure:
        case Measure.TOTAL:
            return steps(tally, value, kind)
        case Measure.DISTINCT:
            return alike(value, kind)
        case Measure.ROWS | Measure.UNITS:
            return case((present(value), TRUE))


def add_pairs(op: Aggregate, coded: Query, *, grouped: bool) -> Query:
    """Add up what each unit gives to each of its groups, within the tally's bounds."""
    by = [name(UNIT), *([name(CODE)] if grouped else [])]
    shown = []
    for index, tally in enumerate(op.tallies):
        made = _gather_rows(index, tally)
        if made is not None:
            shown.append(alias(made, f"t{index}"))
    return select(within(coded), *by, *shown, by=by)


def _gather_rows(index: int, tally: Tally) -> Scalar | None:
    """Return what the rows of one unit and group add to a tally; None where nothing of them is looked at."""
    value = None if tally.argument is None else name(f"s{index}")
    many = function("count", STAR if value is None else value)
    match tally.measure:
        case Measure.DISTINCT:
            return None
        case Measure.UNITS:
            return None if value is None else cast(infix(">", many, number(0)), "int64")
        case Measure.ROWS:
            return bound_rows(many, tally.bounds, always=value is None)
        case Measure.TOTAL:
            if value is None:
                raise ParameterError("argument", "given for a total", None)
            return bound_total(cut_in_proportion(add_steps(tally, value), many, tally.most_rows), tally.bounds)


def add_limited(op: Aggregate, pairs: Query) -> Query:
    """Do the same where it is known how many rows of a unit count in a group."""
    shown: list[Scalar] = []
    for index, tally in enumerate(op.tallies):
        many = name(together.ROWS if tally.argument is None else together.values(index))
        match tally.measure:
            case Measure.DISTINCT:
                continue
            case Measure.UNITS if tally.argument is None:
                continue
            case Measure.UNITS:
                made = cast(infix(">", many, number(0)), "int64")
            case Measure.ROWS:
                made = bound_rows(together.fewer(tally, many), tally.bounds, always=False)
            case Measure.TOTAL:
                made = bound_total(together.less(tally, name(together.steps(index)), many), tally.bounds)
        shown.append(alias(made, f"t{index}"))
    return select(within(pairs), name(UNIT), name(CODE), *shown)


def add_singles(op: Aggregate, coded: Query) -> Query:
    """Show what each row adds, where it is all that its unit has."""
    shown: list[Scalar] = [name(CODE)] if op.groups else []
    for index, tally in enumerate(op.tallies):
        value = name(f"s{index}")
        if tally.measure is Measure.DISTINCT:
            continue
        if tally.measure is Measure.TOTAL:
            shown.append(alias(bound_total(value, tally.bounds), f"t{index}"))
        elif tally.measure is Measure.ROWS or tally.argument is not None:
            there = _whole(min(max(1, tally.bounds[0]), tally.bounds[1]))
            counted = there if tally.argument is None else case((present(value), there), otherwise=_whole(0))
            shown.append(alias(counted, f"t{index}"))
    return select(within(coded), *(shown or [STAR]))


def bound_rows(many: Scalar, bounds: tuple[int, int], *, always: bool) -> Scalar:
    """Clamp a number of rows. A unit that has a row in a group at all, but no value, adds nothing."""
    if bounds[0] <= 0:
        top = constant(max(bounds[1], bounds[0]), of(Type.INTEGER)) if bounds[1] < INT64[1] else None
        return many if top is None else function("least", many, top)
    counted = bound_total(many, bounds)
    return counted if always else case((infix(">", many, _whole(0)), counted), otherwise=_whole(0))


# Rows that are alone


def is_plain(op: Aggregate) -> bool:
    """Return whether one row adds what ``add_chosen`` says: it counts 1, and no share of it is none of it."""
    return all(
        tally.measure is Measure.UNITS
        or (tally.measure is Measure.ROWS and tally.bounds[0] <= 1 <= tally.bounds[1])
        or (tally.measure is Measure.TOTAL and (tally.most_rows is None or tally.most_rows >= 1))
        for tally in op.tallies
    )


def carry_values(op: Aggregate) -> tuple[list[str], list[Scalar]]:
    """Carry the values of rows through the sort: each once, and of values that are only counted whether they are there.

    Returned are the column that each tally reads, and the columns of ``a0``, ``a1``, … that are carried.
    """
    totals = {tally.argument for tally in op.tallies if tally.measure is Measure.TOTAL}
    columns, shown = dict[object, str](), list[Scalar]()
    for index, tally in enumerate(op.tallies):
        if tally.argument is None or tally.argument in columns:
            continue
        columns[tally.argument] = f"v{index}"
        value = name(f"a{index}")
        shown.append(alias(value if tally.argument in totals else case((present(value), TRUE)), f"v{index}"))
    return ["" if tally.argument is None else columns[tally.argument] for tally in op.tallies], shown


def tell_alone(order: Scalar) -> Scalar:
    """Return the unit of a row that has neighbours in its group, of rows with their places and what follows them."""
    shared = infix("or", infix(">", name(PLACE), number(0)), infix("=", name(NEXT), order))
    return case((shared, name(UNIT)))


def add_chosen(op: Aggregate, chosen: Query, carried: Sequence[str]) -> Query:
    """Add up rows in groups that were chosen: those that are alone by their group, the others by their unit too.

    Each row of the result is what one unit adds to a group, or what all rows that are alone in it add; ``UNITS`` says
    how many units these are.
    """
    own, alone = name(OWN), missing(name(OWN))
    weight = [] if op.weight_bits is None else [name(WEIGHT)]
    ready = select(within(chosen), own, name(CODE), *weight, *_prepare_values(op, carried))
    made = [alias(case((alone, function("count", STAR)), otherwise=number(1)), UNITS)]
    if op.weight_bits is not None:
        made.append(alias(function("sum", name(WEIGHT)), WEIGHT))
    for index, tally in enumerate(op.tallies):
        every = _gather_rows(index, tally)
        if every is None:
            continue
        value = STAR if tally.argument is None else name(f"s{index}")
        if tally.measure is Measure.TOTAL:
            made.append(alias(case((alone, add_steps(tally, value)), otherwise=cast(every, "int128")), f"t{index}"))
        else:
            made.append(alias(case((alone, function("count", value)), otherwise=every), f"t{index}"))
    by = [own, name(CODE)]
    return select(within(ready), *by, *made, by=by)


def _prepare_values(op: Aggregate, carried: Sequence[str]) -> list[Scalar]:
    """Prepare what is added up: rows that are alone are within the bounds by themselves."""
    shown: list[Scalar] = []
    for index, tally in enumerate(op.tallies):
        if tally.argument is None:
            continue
        value = prepare_value(tally, name(carried[index]), tally.argument.kind)
        if tally.measure is Measure.TOTAL and not _is_within_bounds(tally):
            value = once([value], partial(_bound_alone, tally.bounds))
        shown.append(alias(value, f"s{index}"))
    return shown


def _bound_alone(bounds: tuple[int, int], value: Sequence[Scalar]) -> Scalar:
    return case((missing(name(OWN)), bound_total(value[0], bounds)), otherwise=value[0])


def _is_within_bounds(tally: Tally) -> bool:
    """Return whether one row adds no more than a unit may, whatever its value."""
    if tally.argument is None:
        return False
    low, high = find_ends(tally, tally.argument.kind)
    return tally.bounds[0] <= low and high <= tally.bounds[1]


# Which way


def rows_for_a_pair(op: Aggregate) -> int:
    """Return how many rows of a unit in one group are of use, as its bounds see it; 0 where they do not say."""
    found = [0]
    for tally in op.tallies:
        if tally.measure is Measure.ROWS:
            found.append(tally.linf)
        elif tally.measure is Measure.TOTAL and tally.clamp is not None:
            step = max(abs(end - tally.origin) for end in tally.clamp) / tally.grid
            found.append(math.ceil(tally.linf / step) if step else 1)
    return max(found)


def has_pairs(op: Relation) -> bool:
    """Return whether rows stand beside other rows of their unit: then there are many of them in a group."""
    return isinstance(op, JoinOwn) or any(has_pairs(one) for one in below(op))


def only_counts(op: Aggregate) -> bool:
    """Return whether tallies ask no more of a unit and a group than how many rows there are, or if there is one."""
    return all(
        tally.argument is None
        and (tally.measure is Measure.UNITS or (tally.measure is Measure.ROWS and tally.bounds[0] <= 0))
        for tally in op.tallies
    )


def count_placed(tally: Tally) -> Scalar:
    """Count for such a tally, over rows that have their places, as many of each unit as it allows.

    A unit's rows in a group have the places 0, 1, … once each, so that it does not matter which row has which.
    """
    most = 1 if tally.measure is Measure.UNITS else max(tally.bounds)
    return function("count", case((infix("<", name(PLACE), _whole(most)), TRUE)))


def _whole(value: int) -> Scalar:
    return constant(value, of(Type.INTEGER))
