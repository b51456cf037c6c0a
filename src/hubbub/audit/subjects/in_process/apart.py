"""Two exact results of one plan on neighbouring tables: how far apart they are, beside what was proven."""

from typing import Any

from hubbub.audit.subjects.in_process.inside import name_statistic, rows_apart, too_far
from hubbub.mechanisms.selection.pieces import EMPTY
from hubbub.query.check.keys import in_order
from hubbub.query.ops import ExactCounts
from hubbub.query.plan.choice import Choice, HistogramStatistic
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.selection import private_part


def apart(plan: Plan, one: ExactCounts, other: ExactCounts, *, same: bool = False) -> list[str]:
    """List where they are further apart than one unit can move them; ``same``: where they are not the same."""
    if same:
        return [] if repr(one) == repr(other) else ["exact numbers differ, and no unit's rows do"]
    found = [] if plan.selection is not None or one.cells == other.cells else ["the groups differ"]
    found += [fault for side in (one, other) for fault in _out_of_order(plan, side)]
    mine, theirs = (dict[Any, tuple[int, ...]](zip(side.cells, side.tallies, strict=True)) for side in (one, other))
    nothing = (0,) * len(plan.aggregate.tallies)
    both = [[side.get(cell, nothing) for cell in {**mine, **theirs}] for side in (mine, theirs)]
    for measurement in plan.measurements:
        if measurement.take.tells:
            left, right = (measurement.take(ExactCounts(cells=(), tallies=rows)) for rows in both)
            steps = [abs(int(a) - int(b)) for a, b in zip(left, right, strict=True)]
            found += too_far(name_statistic(plan, measurement), steps, measurement)
    found += _in_histograms(plan, one, other)
    return found + (_in_units(plan, one, other) if plan.selection is not None else [])


def _in_histograms(plan: Plan, one: ExactCounts, other: ExactCounts) -> list[str]:
    found = []
    for measurement in plan.measurements:
        choice = measurement.take
        if not isinstance(choice, HistogramStatistic):
            continue
        what = name_statistic(plan, measurement)
        left, right = (_by_cell(side, choice) for side in (one, other))
        moved = [rows_apart(plan, left.get(cell, EMPTY), right.get(cell, EMPTY)) for cell in {**left, **right}]
        groups = measurement.sensitivity.l0
        touched = sum(rows > 0 for rows in moved)
        if max(moved, default=0) > choice.rows:
            found.append(f"{what} moved by {max(moved)} rows in a group, and {choice.rows} was proven")
        if isinstance(choice, Choice) and (groups is None or touched > groups):
            found.append(f"{what} moved in {touched} groups, and {groups} was proven")
    return found


def _by_cell(side: ExactCounts, choice: HistogramStatistic) -> dict[Any, Any]:
    bins = choice.bins(side)
    return dict(zip(side.cells, bins, strict=True)) if len(side.cells) == len(bins) else dict(enumerate(bins))


def _out_of_order(plan: Plan, side: ExactCounts) -> list[str]:
    """Keys that are selected come in an order of their own, and none without a unit."""
    if plan.selection is None:
        return []
    found, held = [], [key for key, _ in side.units]
    if list(side.cells) != in_order(side.cells) or held != in_order(dict(side.units)):
        found.append("keys come in the order of the data")
    if {private_part(plan.aggregate.groups, cell) for cell in side.cells} - set(held):
        found.append("a key has no units")
    return found


def _in_units(plan: Plan, one: ExactCounts, other: ExactCounts) -> list[str]:
    """Numbers that keys are selected by: one unit moves few keys, each by its weight, and has no more alone."""
    assert plan.selection is not None
    most, bits = plan.aggregate.most_groups, plan.selection.weight_bits
    left, right = dict(one.units), dict(other.units)
    steps = {key: abs(left.get(key, 0) - right.get(key, 0)) for key in {**left, **right}}
    moved = [step for step in steps.values() if step]
    found = []
    if len(moved) > most:
        found.append(f"{len(moved)} keys have other units, and {most} was proven")
    weights = [1] * most if bits is None else [int((1 << bits) / kept**0.5) for kept in range(1, most + 1)]
    if max(moved, default=0) > max(weights):
        found.append(f"the units of a key moved by {max(moved)}, and {max(weights)} was proven")
    if bits is not None and sum(step * step for step in moved) > 1 << 2 * bits:
        found.append("the weights of keys moved by more than 1 in L2")
    if any(step not in weights for key, step in steps.items() if step and (key not in left or key not in right)):
        found.append("a key of one unit alone has more than that unit")
    return found
