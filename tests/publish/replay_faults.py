"""What is wrong about a publication, alone or beside that of a neighbour: a sentence each."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.audit.subjects.in_process.inside import escaped
from hubbub.mechanisms import Nonzeros
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.publish.domain import Bins
from tests.publish.replaying import EXACT, VALUES, Case, Opened, Seen, not_empty

# What must not be


def out_of_order(seen: Seen) -> list[str]:
    """Reads without a charge before them, prices that are not those of what ran, and errors that tell of rows."""
    found = escaped(seen.raised, charged=bool(seen.charged[0]))
    found += [f"read {place} came after {at[0]} charges" for place, at in enumerate(seen.reads) if at[0] < place + 1]
    if seen.reads and seen.reads[-1] != seen.charged:
        found.append(f"{seen.reads[-1]} was charged before the last read, and {seen.charged} in the end")
    if seen.outcome == "answered" and (seen.priced != seen.charged[1:] or not seen.reads):
        found.append(f"{seen.priced} is the price of what ran, and {seen.charged} was charged")
    return found


def differing(one: Seen, other: Seen, *, same: bool, imposed: bool) -> list[str]:
    """What a neighbour shows that it must not; ``imposed``: it was published with the other's Secrets."""
    names = ["outcome", "public", "charged", "reads"]
    chosen = any(type(each.mechanism).__name__.startswith(("Resolution", "Sparse")) for each in one.opened)
    names += ["draws"] if imposed or not chosen else []
    names += ["stored"] if imposed or same else []
    found = [
        f"{name} differ: {getattr(one, name)!r:.300} and {getattr(other, name)!r:.300}"
        for name in names
        if getattr(one, name) != getattr(other, name)
    ]
    if len(one.opened) != len(other.opened):
        return [*found, f"{len(one.opened)} and {len(other.opened)} values were opened"]
    for place, (a, b) in enumerate(zip(one.opened, other.opened, strict=True)):
        if (a.mechanism, a.facts) != (b.mechanism, b.facts):
            found.append(f"value {place} was calibrated differently")
        else:
            found += [f"value {place}: {fault}" for fault in too_far(a, b)]
            if same and not np.array_equal(*listed(a.value, b.value)):
                found.append(f"value {place} moved, and no unit's rows did")
    if one.prepared is not None and other.prepared is not None:
        found += beyond(one, other)
    return found


def too_far(a: Opened, b: Opened) -> list[str]:
    """Where an exact value has moved further than its facts say, or its mechanism was made for."""
    x, y = (one.astype(object).reshape(-1) for one in listed(a.value, b.value))
    if x.shape != y.shape:
        return [f"{len(x)} and {len(y)} numbers"]
    step = [int(one) for one in x - y]
    gone, come = sum(one for one in step if one > 0), -sum(one for one in step if one < 0)
    rows = max(gone, come) if a.facts.neighbors is Neighbors.REPLACE_ONE else gone + come
    most_moved = max(map(abs, step), default=0)
    moved = {Norm.L1: gone + come, Norm.L2: sum(one * one for one in step), Norm.ROWS: rows, Norm.SCORE: most_moved}
    proven, needs = a.facts.sensitivity, a.mechanism.needs
    known = [
        (proven.l0, sum(one != 0 for one in step), "numbers"),
        (proven.linf, most_moved, "steps of one number"),
        (proven.l1, moved[Norm.L1], "in L1"),
        (proven.l2_squared, moved[Norm.L2], "squared in L2"),
        (proven.rows, moved[Norm.ROWS], "rows"),
    ]
    found = [f"it moved by {far} {unit}, and {most} was proven" for most, far, unit in known if most and far > most]
    if needs.norm not in moved or moved[needs.norm] > needs.sensitivity:
        found.append(f"it moved by {moved.get(needs.norm)} in {needs.norm}: noise was made for {needs.sensitivity}")
    return found


def listed(x: Any, y: Any) -> tuple[Any, Any]:
    """Two exact values as arrays; of cells that nobody lists, those that are not empty in one of them."""
    if not isinstance(x, Nonzeros) or not isinstance(y, Nonzeros):
        return np.asarray(x), np.asarray(y)
    places = np.union1d(x.places, y.places)
    known = (dict(zip(one.places.tolist(), one.counts.tolist(), strict=True)) for one in (x, y))
    first, second = (np.array([one.get(place, 0) for place in places.tolist()], dtype=np.int64) for one in known)
    return first, second


def beyond(one: Seen, other: Seen) -> list[str]:
    """Where cells have moved by more than the contribution that noise was made for."""
    said = one.prepared.terms.contribution
    parts = [one.counts - other.counts, other.counts - one.counts]
    if said.neighbors is Neighbors.ADD_REMOVE and all(parts):
        return ["a unit more made cells smaller, and others larger"]
    found = []
    for part in parts:
        moved = (len(part), max(part.values(), default=0), part.total())
        if any(far > most for far, most in zip(moved, (said.cells, said.each, said.total), strict=True)):
            found.append(f"cells moved by {moved} (cells, each, in all), and {said} was said")
    return found


# What it means


def placed(value: Any, labels: Sequence[Any]) -> int | None:
    """Where a value lies on an axis, in plain Python."""
    if value is None:
        return None
    if isinstance(labels, Bins):
        low, high = labels.edge(0), labels.edge(len(labels))
        if math.isnan(value) or not low <= value < high:
            return None
        return min(math.floor((float(value) - low) / float(labels.width)), len(labels) - 1)
    return labels.index(value) if value in labels else None


def misunderstood(one: Case, seen: Seen) -> tuple[list[str], bool]:
    """Where exact cells are not what a count in Python allows; and whether some unit was cut off.

    Of a unit that is within all limits, every row counts. Of others it is known how many count at least and at most.
    """
    plain = all(name in VALUES for name in one.over) and "where" not in one.asked
    if seen.cells is None or not plain:
        return [], False
    said = seen.prepared.terms.contribution
    units: dict[Any, Counter[tuple[int, ...]]] = {}
    for held in one.rows:
        places = [placed(held[name], labels) for name, labels in one.over.items()]
        if held["person"] is not None and None not in places:
            units.setdefault(held["person"], Counter())[tuple(place for place in places if place is not None)] += 1
    least: Counter[tuple[int, ...]] = Counter()
    most: Counter[tuple[int, ...]] = Counter()
    fewest = greatest = 0
    for held_in in units.values():
        kept = {place: min(many, said.each) for place, many in held_in.items()}
        free = len(held_in) <= said.cells and held_in.total() <= said.total and kept == held_in
        for place, many in kept.items():
            most[place] += many
            least[place] += many if free else 0
        ordered = sorted(kept.values())
        fewest += min(sum(ordered[: said.cells]), said.total)
        greatest += min(sum(ordered[-said.cells :]), said.total)
    found = [] if least <= seen.counts <= most else ["cells are not what was counted"]
    if not fewest <= seen.counts.total() <= greatest:
        found.append(f"{seen.counts.total()} rows count, and {fewest} to {greatest} may")
    if one.strategy in EXACT and len(one.over) < 3:
        exact = [measurement.layer.apply(seen.cells) for measurement in seen.prepared.measurements]
        estimate = seen.prepared.estimate(exact)
        if not_empty(np.rint(estimate)) != seen.counts or np.abs(estimate - np.rint(estimate)).max() > 1e-6:
            found.append("without noise, the estimate is not the cells")
    return found, least != most
