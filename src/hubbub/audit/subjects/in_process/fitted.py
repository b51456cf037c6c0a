"""Two fits on neighbouring tables side by side: what they asked and paid, and what they keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.gate.release import Release
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.events.event import Event
from hubbub.testing.replay import Draw, ReplayedMeasurement, distance


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
