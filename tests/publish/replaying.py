"""Publications to be replayed: random tables, axes, limits and strategies, and all that one publication did.

Two neighbours are published with the same noise. The second is published once more with the Secrets of the first in the
place of its own, whereupon nothing at all may differ: what is bought first is then the same too.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from random import Random
from typing import Any
from unittest import mock

import numpy as np

from hubbub import publish, publishing
from hubbub.errors import HubbubError
from hubbub.meter import Meter
from hubbub.policy.tables import Limits
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Norm
from hubbub.publish import offer
from hubbub.publish.domain import Bins
from hubbub.publish.records import Weighted
from hubbub.publish.run import measured as measuring
from hubbub.secret import Facts
from hubbub.testing.replay import replayed
from tests.query.inside import World, fixed_key, row

NAN, INF = float("nan"), float("inf")
Row = dict[str, Any]
ACCOUNT = "people"

VALUES: dict[str, tuple[Any, ...]] = {
    "ward": ("a", "a", "b", "c", None, "nowhere", "A", ""),
    "cost": (0.0, -0.0, 1.5, 20.0, 39.999, 60.0, 99.99, 100.0, NAN, INF, -INF, -1.0, 5e-324, None),
    "nights": (0, 1, 1, 2, 3, 4, 9, 10, 11, -1, None, 2147483647),
    "points": (0, 1, 2, 2, 3, 7, 4095, 4096, 4999, 5000, -1, None, (1 << 63) - 1, -(1 << 63)),
    "day": (None, date(2024, 2, 29), date(2024, 3, 1), date.max),
    "urgent": (True, False, None),
}
AXES: tuple[tuple[str, Sequence[Any]], ...] = (
    ("ward", ["a", "b", "c"]),
    ("ward", ["b", "A"]),
    ("nights", range(12)),
    ("nights", range(-1, 3)),
    ("nights", [10, 0, 3]),
    ("nights", publish.bins(0, 10, 4)),
    ("cost", publish.bins(0, 100, 5)),
    ("cost", publish.bins(Fraction(-1, 3), 40, 3)),
    ("urgent", [True, False]),
    ("day", [date(2024, 2, 29), date(2023, 1, 1), date(2024, 3, 1)]),
    ("nights > 2", [True, False]),
    ("points % nights", range(3)),
    ("abs(points) // 1000", range(5)),
    ("nights + points", range(6)),
)
LONG = ("points", range(-1, 5000))
"""So long that its places are counted in blocks."""
WIDE: tuple[tuple[str, Sequence[Any]], ...] = (
    ("points", range(-1, 4000)),
    ("nights", range(-1, 4000)),
    ("cost", publish.bins(0, 100, 200)),
)
"""More combinations than there are codes of 31 bits."""
HUGE: tuple[tuple[str, Sequence[Any]], ...] = (
    ("nights", range(12)),
    ("points", range(-1, 100)),
    ("cost", publish.bins(0, 100, 100)),
    *((expression, range(100)) for expression in ("nights + points", "abs(points) // 100", "points % nights")),
    *((expression, range(100)) for expression in ("points // nights", "nights * 2", "nights + 1", "points + 1")),
)
"""And of 63 bits."""
STRATEGIES: tuple[tuple[str, Callable[[int], Any]], ...] = (
    ("flat", lambda _: publish.Flat()),
    ("hierarchy", lambda _: publish.Hierarchy(branching=2)),
    ("wavelet", lambda _: publish.Wavelet()),
    ("matrix", lambda _: publish.Matrix()),
    ("marginals", lambda axes: publish.Marginals(ways=axes if axes < 3 else 1)),
    ("cube", lambda axes: publish.Cube(ways=axes if axes < 3 else 1)),
    ("fourier", lambda _: publish.Fourier(least=2)),
    ("count-sketch", lambda _: publish.CountSketch(rows=2, width=4)),
    ("sensing", lambda _: publish.Sensing(sparsity=2, size=6)),
)
EXACT = {"flat", "hierarchy", "wavelet", "matrix", "marginals", "cube"}
"""Without noise, their estimate is the cells."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is published, of which rows, and of which neighbour."""

    strategy: str
    over: Mapping[str, Sequence[Any]]
    asked: dict[str, Any]
    limits: Limits
    buys: bool
    rows: list[Row]
    other: list[Row]
    what: str
    """In what the neighbour differs: a unit, rows of nobody, or the order alone."""
    seed: int

    def __str__(self) -> str:
        return f"{self.what}: {self.strategy} over {self.over}, {self.asked}, {self.limits}"


def rows_of(rng: Random, person: int | None, many: int) -> list[Row]:
    """Nearly all of them the same, or some, or each somewhere else."""
    made: list[Row] = []
    alike = rng.choice((0.0, 0.5, 0.95))
    for _ in range(many):
        if made and rng.random() < alike:
            made.append(dict(rng.choice(made)))
        else:
            made.append(row(person, **{name: rng.choice(values) for name, values in VALUES.items()}))
    return made


def case(seed: str, number: int, *, replace: bool) -> Case:
    """Strategies by turns, and anything with them; nearly all of it can be published."""
    rng = Random(f"{seed} {number}")
    ids = [0, -1, (1 << 63) - 1, -(1 << 63), *range(1, 9)]
    rows = [one for unit in rng.sample(ids, rng.randint(0, 8)) for one in rows_of(rng, unit, rng.choice((1, 2, 6)))]
    rows += [*rows_of(rng, None, rng.randint(0, 2)), *rows_of(rng, 77, rng.choice((1, 5, 40)))]
    what = rng.choice(("unit", "unit", "unit", "unit", "orphans", "order"))
    other = rows
    if what == "orphans":
        other = [*rows, *rows_of(rng, None, 5)]
    elif what == "unit":
        gone = [one for one in rows if one["person"] != 77]
        more = rows_of(rng, 99, rng.choice((1, 5, 40)))
        other = [*gone, *more] if replace else gone if rng.random() < 0.5 else [*rows, *more]
    name, make = STRATEGIES[number % len(STRATEGIES)]
    axes = rng.sample(AXES, rng.choice((1, 1, 2)))
    if rng.random() < 0.1 and name in {"flat", "hierarchy", "cube", "wavelet"}:
        axes = [LONG]
    elif number // len(STRATEGIES) % 2 and name in {"marginals", "cube"}:
        axes = list(HUGE if name == "marginals" or rng.random() < 0.5 else WIDE)
    buys = number % 5 == 2
    declared: list[int | None] = [rng.choice((1, 2, 3, 50)), rng.choice((1, 2, 20))]
    if buys:
        declared[rng.randrange(2)] = None
    asked: dict[str, Any] = {"strategy": make(len(dict(axes))), "epsilon": rng.choice((Fraction(1, 2), Fraction(40)))}
    if rng.random() < 0.2 and not buys:
        asked |= {rng.choice(("cells", "each")): 1}
    if number % 20 == 11:
        asked |= rng.choice(({"cells": 99}, {"each": 0}, {"where": "nights"}, {"table": "others"}, {"epsilon": 10**7}))
    elif rng.random() < 0.3:
        asked["where"] = rng.choice(("urgent", "cost < nights", "ward <> 'b' OR nights > 1", "points // nights > 0"))
    return Case(
        strategy=name,
        over=dict(axes),
        asked=asked,
        limits=Limits(max_groups=declared[0], max_rows=declared[1], max_total_rows=rng.choice((None, None, 2, 5))),
        buys=buys,
        rows=rows,
        other=rng.sample(other, len(other)),
        what=what,
        seed=rng.randrange(1 << 30),
    )


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What came through the gate."""

    mechanism: Any
    facts: Facts
    value: Any


@dataclass(kw_only=True)
class Seen:
    """Everything that a publication showed and did."""

    outcome: str = ""
    draws: tuple[Any, ...] = ()
    opened: list[Opened] = field(default_factory=list)
    cells: Any = None
    """Exact, as they were handed to the strategy."""
    counts: Counter[tuple[int, ...]] = field(default_factory=Counter)
    """The same: those that are not empty."""
    prepared: Any = None
    stored: str = ""
    public: tuple[Any, ...] = ()
    charged: tuple[int, int, int] = (0, 0, 0)
    """How often, in units of loss, and of δ."""
    priced: tuple[int, int] = (0, 0)
    """What the events of all mechanisms that ran cost."""
    reads: list[tuple[int, int, int]] = field(default_factory=list)
    """What had been charged whenever something private was read."""


@contextmanager
def watched(seen: Seen, given: Sequence[Opened] | None) -> Iterator[None]:
    """Look on at the gate and at the desk; with ``given``, these values go through the gate in the place of others."""
    real_open, real_measured, real_written = Meter._open, measuring, offer.written

    def opening(meter: Meter, mechanism: Any, secret: Any) -> Any:
        own = real_open(meter, mechanism, secret)
        seen.opened.append(Opened(mechanism=mechanism, facts=secret.facts, value=own))
        place = len(seen.opened) - 1
        return own if given is None or place >= len(given) else given[place].value

    def measured(prepared: Any, cells: Any, **rest: Any) -> Any:
        seen.prepared, seen.cells, seen.counts = prepared, cells, not_empty(cells)
        return real_measured(prepared, cells, **rest)

    def written(*args: Any) -> str:
        seen.stored = real_written(*args)
        return seen.stored

    with (
        mock.patch.object(Meter, "_open", opening),
        mock.patch.object(publishing, "measured", measured),
        mock.patch.object(offer, "written", written),
    ):
        yield


def published(
    world: World, one: Case, rows: list[Row], *, version: int, given: Sequence[Opened] | None = None, threads: int = 1
) -> Seen:
    """One publication by ``db.publish``, from the public side, with replayed noise."""
    db = world.load(rows, limits=one.limits, version=version, buys=one.buys, threads=threads)
    terms, seen = db.policy.budget.filter, Seen()

    def spent() -> tuple[int, int, int]:
        stands = world.ledger.statement(ACCOUNT).spent
        return stands.charges, stands.loss, stands.failure

    def since() -> tuple[int, int, int]:
        now = spent()
        return now[0] - before[0], now[1] - before[1], now[2] - before[2]

    before = spent()
    world.engine.reads.clear()
    world.engine.watch = since
    asked = dict(one.asked)
    with fixed_key(), replayed(one.seed) as source, watched(seen, given):
        try:
            made: Any = db.publish(asked.pop("strategy"), over=one.over, **asked)
        except HubbubError as error:
            seen.outcome = f"{type(error).__name__}: {error}"
        else:
            seen.outcome = "answered"
            told = {name: value for name, value in json.loads(seen.stored).items() if name != "noisy"}
            seen.public = (told, seen.prepared.terms, type(made).__name__, str(seen.prepared.shape))
    seen.draws, seen.charged = tuple(source.draws), since()
    seen.reads = list(world.engine.reads)
    prices = [terms.charge_of(other.mechanism.event) for other in seen.opened]
    seen.priced = sum(price.loss for price in prices), sum(price.failure for price in prices)
    return seen


def not_empty(cells: Any) -> Counter[tuple[int, ...]]:
    """The cells that have rows, by their places; a place that is told twice counts twice."""
    if not isinstance(cells, Weighted):
        return Counter({tuple(map(int, place)): int(cells[tuple(place)]) for place in np.argwhere(cells)})
    found: Counter[tuple[int, ...]] = Counter()
    for *place, many in zip(*cells._columns, cells._counts, strict=True):
        found[tuple(map(int, place))] += int(many)
    return found


# What must not be


def out_of_order(seen: Seen) -> list[str]:
    """Reads without a charge before them, and prices that are not those of what ran."""
    found = [f"read {place} came after {at[0]} charges" for place, at in enumerate(seen.reads) if at[0] < place + 1]
    if seen.reads and seen.reads[-1] != seen.charged:
        found.append(f"{seen.reads[-1]} was charged before the last read, and {seen.charged} in the end")
    if seen.outcome == "answered" and (seen.priced != seen.charged[1:] or not seen.reads):
        found.append(f"{seen.priced} is the price of what ran, and {seen.charged} was charged")
    return found


def differing(one: Seen, other: Seen, *, same: bool, imposed: bool) -> list[str]:
    """What a neighbour shows that it must not; ``imposed``: it was published with the other's Secrets."""
    names = ["outcome", "public", "charged", "reads"]
    chosen = any(type(each.mechanism).__name__ == "Resolution" for each in one.opened)
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
            if same and not np.array_equal(a.value, b.value):
                found.append(f"value {place} moved, and no unit's rows did")
    if one.prepared is not None and other.prepared is not None:
        found += beyond(one, other)
    return found


def too_far(a: Opened, b: Opened) -> list[str]:
    """Where an exact value has moved further than its facts say, or its mechanism was made for."""
    x, y = (np.asarray(each.value).astype(object).reshape(-1) for each in (a, b))
    if x.shape != y.shape:
        return [f"{len(x)} and {len(y)} numbers"]
    step = [int(one) for one in x - y]
    gone, come = sum(one for one in step if one > 0), -sum(one for one in step if one < 0)
    rows = max(gone, come) if a.facts.neighbors is Neighbors.REPLACE_ONE else gone + come
    moved = {Norm.L1: gone + come, Norm.L2: sum(one * one for one in step), Norm.ROWS: rows}
    proven, needs = a.facts.sensitivity, a.mechanism.needs
    known = [
        (proven.l0, sum(one != 0 for one in step), "numbers"),
        (proven.linf, max(map(abs, step), default=0), "steps of one number"),
        (proven.l1, moved[Norm.L1], "in L1"),
        (proven.l2_squared, moved[Norm.L2], "squared in L2"),
        (proven.rows, moved[Norm.ROWS], "rows"),
    ]
    found = [f"it moved by {far} {unit}, and {most} was proven" for most, far, unit in known if most and far > most]
    if needs.norm not in moved or moved[needs.norm] > needs.sensitivity:
        found.append(f"it moved by {moved.get(needs.norm)} in {needs.norm}: noise was made for {needs.sensitivity}")
    return found


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
    return list(labels).index(value) if value in labels else None


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
