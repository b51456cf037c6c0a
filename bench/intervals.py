"""How often intervals hold the exact number, and how wide they are beside what the errors need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from bench.record import Bench
from hubbub.query.aggregates.function import NoisyCells
from hubbub.query.check.evaluate import evaluate
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.both_ends import BothEnds
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import NoisyNumber, QueryMeasurement

DRAWS = 2000
SIZES = (500, 5_000, 50_000, 1_000_000)
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(5))
NUMBERS = (
    "count(*)",
    "sum(x)",
    "avg(x)",
    "var_pop(x)",
    "stddev_pop(x)",
    "stddev_samp(x)",
    "weighted_avg(x, y)",
    "geometric_mean(greatest(x, 1))",
    "covar_pop(x, y)",
    "covar_samp(x, y)",
    "corr(x, y)",
    "regr_slope(x, y)",
    "regr_intercept(x, y)",
)


@dataclass(frozen=True)
class Rows:
    """A generated table: different rows, and how often each is there."""

    name: str
    make: Callable[[np.random.Generator, int], tuple[Any, Any]]


def _line(rng: np.random.Generator, many: int) -> tuple[Any, Any]:
    x = rng.integers(0, 101, many)
    return x, np.clip(np.rint(0.6 * x + rng.normal(0, 15, many)), 0, 100)


def _tail(rng: np.random.Generator, many: int) -> tuple[Any, Any]:
    x = np.clip(np.rint(rng.lognormal(2, 1, many)), 0, 100)
    return x, np.clip(np.rint(100 - 0.5 * x + rng.normal(0, 20, many)), 0, 100)


def _narrow(rng: np.random.Generator, many: int) -> tuple[Any, Any]:
    return np.clip(np.rint(rng.normal(50, 8, many)), 0, 100), rng.integers(0, 101, many)


def _edge(rng: np.random.Generator, many: int) -> tuple[Any, Any]:
    x = 100 * (rng.random(many) < 0.1)
    return x, np.clip(np.rint(rng.normal(30, 10, many) + 0.3 * x), 0, 100)


TABLES = (Rows("line", _line), Rows("heavy tail", _tail), Rows("narrow", _narrow), Rows("at the edges", _edge))
_DIFFERENT = 400


def generate(table: Rows, size: int, seed: int) -> list[tuple[dict[str, Any], int]]:
    """Return different rows and how often each is there: ``size`` rows in all."""
    many = min(_DIFFERENT, size)
    x, y = table.make(np.random.default_rng(seed), many)
    counts = np.full(many, size // many)
    counts[: size % many] += 1
    return [({"x": int(a), "y": int(b)}, int(c)) for a, b, c in zip(x, y, counts, strict=True)]


def count_up(tally: Tally, rows: Sequence[tuple[Mapping[str, Any], int]]) -> int:
    """Return the exact steps of a tally."""
    total = 0
    for row, many in rows:
        named = {f"{prefix}{name}": value for name, value in row.items() for prefix in ("", "t.")}
        value = 1 if tally.argument is None else evaluate(tally.argument, named)
        if value is None:
            continue
        if tally.measure is Measure.ROWS:
            total += many
            continue
        assert tally.clamp is not None
        clamped = max(tally.clamp[0], min(tally.clamp[1], Fraction(value)))
        total += many * round((clamped - tally.origin) / tally.grid)
    return total


def simulate(
    plan: Plan, rows: Sequence[tuple[Mapping[str, Any], int]], draws: int
) -> list[tuple[Any, list[NoisyNumber]]]:
    """Return the exact number of each aggregate, and noisy ones as a question draws them."""
    exact, noisy = {}, {}
    for own in plan.measurements:
        tallies = [count_up(tally, rows) for tally in own.take.tells]
        vector = [tallies[0]]
        if isinstance(own.take, BothEnds):
            vector = [own.take.half * tallies[0] + tallies[1], own.take.half * tallies[0] - tallies[1]]
        exact[id(own)] = vector
        drawn = own.mechanism.draw(np.repeat(np.array(vector, dtype=np.int64), draws))
        noisy[id(own)] = [int(one) for one in drawn]

    def read(held: dict[int, list[int]]) -> Callable[[QueryMeasurement], Sequence[int]]:
        return lambda own: held[id(own)]

    found = []
    for asked, part in zip(plan.question.asked, plan.parts, strict=True):
        (truth,) = asked.function.combine_all(asked, part, NoisyCells(plan.margins, read(exact), range(1), 0.95))
        every = asked.function.combine_all(asked, part, NoisyCells(plan.margins, read(noisy), range(draws), 0.95))
        found.append((truth.value, every))
    return found


@dataclass(frozen=True)
class Found:
    """What a cell of the bench has: coverage, and width beside need."""

    coverage: float
    ratio: float
    bounded: float


def judge(truth: float, numbers: Sequence[NoisyNumber], reach: float = np.inf) -> Found:
    """Compare intervals with the errors that were made."""
    lows = np.array([-reach if one.low is None else one.low for one in numbers], dtype=float)
    highs = np.array([reach if one.high is None else one.high for one in numbers], dtype=float)
    held = (lows - 1e-9 * max(1, abs(truth)) <= truth) & (truth <= highs + 1e-9 * max(1, abs(truth)))
    errors = [abs(one.value - truth) for one in numbers if one.value is not None]
    need = 2 * float(np.quantile(errors, 0.95)) if errors else np.nan
    widths = highs - lows
    width = float(np.median(widths))
    whole = width == 0 and need == 0
    return Found(
        float(held.mean()), 1.0 if whole else width / need if need else np.inf, float(np.isfinite(widths).mean())
    )


def open_table(folder: Path, *, delta: Fraction = Fraction(0), max_rows: int = 1) -> hb.Database:
    """Open a table of two numbers, of which only the policy matters."""
    path = folder / "t.csv"
    path.write_text("person,x,y\n1,1,1\n")
    return hb.open(
        path,
        unit="person",
        budget=hb.Budget(epsilon=Fraction(1000), delta=delta),
        columns={"x": "integer", "y": "integer"},
        bounds={"x": (0, 100), "y": (0, 100)},
        limits=hb.Limits(max_groups=1, max_rows=max_rows),
        ledger=folder / f"ledger{delta}{max_rows}".replace("/", "-"),
        marks=hb.ledger.Marks(folder / "marks"),
    )


BENCH = Bench(name="intervals", about="coverage and width of intervals", run=lambda: iter(()), steps=1248)
