"""Two fits on neighbouring tables side by side: what they asked and paid, and how far apart their exact numbers are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.subjects.in_process.inside import name_statistic, rows_apart, too_far
from hubbub.gate.release import Release
from hubbub.mechanisms.selection.pieces import EMPTY
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.events.event import Event
from hubbub.query.check.keys import in_order
from hubbub.query.ops import ExactCounts
from hubbub.query.plan.choice import Choice, HistogramStatistic
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.selection import private_part
from hubbub.testing.replay import Draw, ReplayedMeasurement, distance


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One fit: what it asked, what it was answered, what it keeps, and how it ended."""

    measurements: tuple[ReplayedMeasurement, ...]
    releases: tuple[Release, ...]
    draws: tuple[Draw, ...]
    kept: Mapping[str, str]
    outcome: str


def unpaid(one: Fitted, *, epsilon: Fraction, delta: Fraction) -> list[str]:
    """Check that it ended well, and that all charges together keep the claim."""
    found = [] if one.outcome == "fitted" else [f"an error tells what the rows are: {one.outcome}"]
    events = [held.event for held in one.measurements]
    epsilons, rhos = [event.epsilon for event in events], [event.rho for event in events]
    failure = sum((event.failure for event in events), Fraction(0))
    if failure <= delta and None not in epsilons and _sum(epsilons) <= epsilon:
        return found
    if failure < delta and None not in rhos:
        price = rho_rounded_down(epsilon, delta - failure)
        if _sum(rhos) <= price:
            return found
        return [*found, f"{_shown(events)} are ρ = {float(_sum(rhos)):.6g} together; the price is {float(price):.6g}"]
    return [*found, f"{_shown(events)} together are more than (ε, δ) = ({float(epsilon):g}, {float(delta):g})"]


def _sum(parts: Sequence[Fraction | None]) -> Fraction:
    return sum((part for part in parts if part is not None), Fraction(0))


def _shown(events: Sequence[Event]) -> str:
    return f"{len(events)} charges"


def differences(one: Fitted, other: Fitted) -> list[str]:
    """List what differs though both were answered the same."""
    found = []
    if one.outcome != other.outcome:
        found.append(f"one ended with {one.outcome}, the other with {other.outcome}")
    if one.draws != other.draws:
        found.append("the draws of noise are not the same")
    if [release.label for release in one.releases] != [release.label for release in other.releases]:
        found.append("other things were measured")
    for place, (near, far) in enumerate(zip(one.measurements, other.measurements, strict=False)):
        about = one.releases[place].label if place < len(one.releases) else f"measurement {place}"
        if (near.mechanism, near.facts, near.event) != (far.mechanism, far.facts, far.event):
            found.append(f"{about}: calibrated by the rows")
            break
        moved, allowed = distance(near, far), near.facts.sensitivity.in_norm(near.mechanism.needs.norm)
        if allowed is None or moved > allowed:
            found.append(
                f"{about}: one person moves it by {moved} in {near.mechanism.needs.norm}, and {allowed} was proven"
            )
    if not found:
        names = sorted({*one.kept, *other.kept})
        told = [name for name in names if one.kept.get(name) != other.kept.get(name)]
        found += [f"{name} tells what no release told: {_both(one, other, name)}" for name in told]
    return found


def _both(one: Fitted, other: Fitted, name: str) -> str:
    return f"{one.kept.get(name, 'nothing')[:120]} and {other.kept.get(name, 'nothing')[:120]}"


def written(value: Any) -> str:
    """All of a value, to the last bit, as text."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tolist()!r}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(part) for part in value) + "]"
    if type(value).__module__.startswith(("hubbub", "sklearn")) and hasattr(value, "__dict__"):
        return f"{type(value).__name__}{written({k: v for k, v in vars(value).items() if k != 'meter'})}"
    return repr(value)
