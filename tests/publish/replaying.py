"""Publications to be replayed: random tables, axes, limits and strategies, and all that one publication did.

Two neighbours are published with the same noise. The second is published once more with the Secrets of the first in the
place of its own, whereupon nothing at all may differ: what is bought first is then the same too.
"""

import json
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

from hubbub import publish
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Facts, open_sealed
from hubbub.mechanisms import Nonzeros
from hubbub.policy.tables import Limits
from hubbub.publish import offer
from hubbub.publish.marginals.records import Weighted
from hubbub.publish.run import measure_layers as measuring
from hubbub.session import publishing
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
    unique: bool = False
    """Whether a unit was seen to have at most one row, which need not be so any more."""

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
    raised: type[BaseException] | None = None
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
    real_open, real_measured, real_written = Meter._open, measuring, offer.write_answer

    def opening(meter: Meter, mechanism: Any, secret: Any) -> Any:
        own = real_open(meter, mechanism, secret)
        seen.opened.append(Opened(mechanism=mechanism, facts=secret.facts, value=own))
        place = len(seen.opened) - 1
        return own if given is None or place >= len(given) else given[place].value

    def measured(prepared: Any, cells: Any, **rest: Any) -> Any:
        exact = open_sealed(cells)
        seen.prepared, seen.cells, seen.counts = prepared, exact, not_empty(exact, prepared.shape)
        return real_measured(prepared, cells, **rest)

    def written(*args: Any) -> str:
        seen.stored = real_written(*args)
        return seen.stored

    with (
        mock.patch.object(Meter, "_open", opening),
        mock.patch.object(publishing, "measure_layers", measured),
        mock.patch.object(offer, "write_answer", written),
    ):
        yield


def published(
    world: World, one: Case, rows: list[Row], *, version: int, given: Sequence[Opened] | None = None, threads: int = 1
) -> Seen:
    """One publication by ``db.publish``, from the public side, with replayed noise."""
    db = world.load(rows, limits=one.limits, version=version, buys=one.buys, threads=threads, unique=one.unique)
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
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            seen.outcome, seen.raised = f"{type(error).__name__}: {error}", type(error)
        else:
            seen.outcome = "answered"
            told = {name: value for name, value in json.loads(seen.stored).items() if name != "noisy"}
            seen.public = (told, seen.prepared.terms, type(made).__name__, str(seen.prepared.shape))
    seen.draws, seen.charged = tuple(source.draws), since()
    seen.reads = list(world.engine.reads)
    prices = [terms.charge_of(other.mechanism.event) for other in seen.opened]
    seen.priced = sum(price.loss for price in prices), sum(price.failure for price in prices)
    return seen


def not_empty(cells: Any, shape: tuple[int, ...] = ()) -> Counter[tuple[int, ...]]:
    """The cells that have rows, by their places; a place that is told twice counts twice."""
    if isinstance(cells, Nonzeros):
        told = zip(cells.places.tolist(), cells.counts.tolist(), strict=True)
        return Counter({unpacked(code, shape): many for code, many in told})
    if not isinstance(cells, Weighted):
        return Counter({tuple(map(int, place)): int(cells[tuple(place)]) for place in np.argwhere(cells)})
    found: Counter[tuple[int, ...]] = Counter()
    for *place, many in zip(*cells._columns, cells._counts, strict=True):
        found[tuple(map(int, place))] += int(many)
    return found


def unpacked(code: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The places of a code, the last axis changing fastest, in plain Python."""
    places = []
    for length in reversed(shape):
        code, place = divmod(code, length)
        places.append(place)
    assert code == 0, "a code beyond the domain"
    return tuple(reversed(places))
