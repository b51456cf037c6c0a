"""How often intervals hold the exact number, and how wide they are beside what the errors need.

python -m bench intervals

Tallies of generated tables get the noise that a question draws, thousands of times, and each draw is combined as an
answer is. What an interval needs is twice the size that 95% of the errors stay within; the width is the median of those
intervals that have ends. No engine runs: bounding is not what is measured here.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import hubbub as hb
from bench.record import Bench, Row
from hubbub.mechanisms.selection.pieces import bin_steps
from hubbub.query.aggregates.function import NoisyCells
from hubbub.query.check.evaluate import evaluate
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.both_ends import BothEnds
from hubbub.query.plan.choice import Choice
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.plan.statistic import NoisyNumber, QueryMeasurement

DRAWS = 2000
CHOICES = 400
"""Draws of quantiles: a choice takes as long as a hundred sums."""
FALSE_ALARM = 1e-6
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

MOST_RATIO = dict.fromkeys(("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept"), 1.5)
MEAN_RATIO = 1.3
"""Widths over needed ones that were asked for, of these and of all others."""
RANKED = ("median(z)", "quantile_cont(z, 0.9)", "quantile_cont(z, [0.25, 0.5, 0.75])", "max(z)")
BRACKETED = ("median_interval(z)", "median_interval(x)", "quantile_interval(z, 0.9)")
MOST_RANKS = 2.0


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
    planned: Plan, rows: Sequence[tuple[Mapping[str, Any], int]], draws: int
) -> list[tuple[Any, list[NoisyNumber]]]:
    """Return the exact number of each aggregate, and noisy ones as a question draws them."""
    exact, noisy = {}, {}
    for own in planned.measurements:
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
    for asked, part in zip(planned.question.asked, planned.parts, strict=True):
        (truth,) = asked.function.combine_all(asked, part, NoisyCells(planned.margins, read(exact), range(1), 0.95))
        every = asked.function.combine_all(asked, part, NoisyCells(planned.margins, read(noisy), range(draws), 0.95))
        found.append((truth.value, every))
    return found


@dataclass(frozen=True)
class Found:
    """What a cell of the bench has: coverage, and width beside need."""

    coverage: float
    ratio: float
    ended: float
    """The share of intervals that have ends."""


def judge(truth: float, numbers: Sequence[NoisyNumber], *, whole: tuple[float, float] | None = None) -> Found:
    """Compare intervals with the errors that were made; ``whole`` is an interval that says nothing."""
    lows = np.array([-np.inf if one.low is None else one.low for one in numbers], dtype=float)
    highs = np.array([np.inf if one.high is None else one.high for one in numbers], dtype=float)
    slack = 1e-9 * max(1.0, abs(truth))
    held = (lows - slack <= truth) & (truth <= highs + slack)
    ended = np.isfinite(highs - lows)
    if whole is not None:
        ended &= (lows != whole[0]) | (highs != whole[1])
    known = np.array([one.value is not None for one in numbers])
    errors = [abs(one.value - truth) for one in numbers if one.value is not None]
    if not (ended & known).mean() > 0.5:  # where most have no end there is no width to speak of
        return Found(float(held.mean()), np.nan, float(ended.mean()))
    need, width = 2 * float(np.quantile(errors, 0.95)), float(np.median((highs - lows)[ended]))
    return Found(float(held.mean()), width / need if need else 1.0 if width == 0 else np.inf, float(ended.mean()))


def open_table(folder: Path, *, delta: Fraction = Fraction(0), max_rows: int = 1) -> hb.Database:
    """Open a table of three numbers, of which only the policy matters."""
    path = folder / "t.csv"
    path.write_text("person,x,y,z\n1,1,1,1.0\n")
    return hb.open(
        path,
        unit="person",
        budget=hb.Budget(epsilon=Fraction(1000), delta=delta),
        columns={"x": "integer", "y": "integer", "z": "real"},
        bounds={"x": (0, 100), "y": (0, 100), "z": (0, 100)},
        limits=hb.Limits(max_groups=1, max_rows=max_rows),
        ledger=folder / f"ledger{delta}{max_rows}".replace("/", "-"),
        marks=hb.ledger.Marks(folder / "marks"),
    )


def plan_sums(db: hb.Database, text: str, epsilon: Fraction) -> Plan:
    """Plan a number, in an account with δ with Gaussian noise, whether or not that errs least."""
    chosen = db.plan(f"SELECT {text} FROM t", epsilon=epsilon)
    if not chosen.policy.budget.delta:
        return chosen
    return plan(chosen.question, chosen.policy, epsilon=epsilon, delta=chosen.delta, ways=[("gaussian", epsilon)])


def measure_sums(db: hb.Database, text: str, epsilon: Fraction) -> Row:
    """Return the extremes over all tables and sizes for one number."""
    planned, name = plan_sums(db, text, epsilon), text.partition("(")[0]
    found = []
    for table in TABLES:
        for size in SIZES:
            ((truth, numbers),) = simulate(planned, generate(table, size, seed=1), DRAWS)
            found.append(judge(truth, numbers, whole=(-1.0, 1.0) if name == "corr" else None))
    least, most = (float(function([one.coverage for one in found])) for function in (min, max))
    ratio, target = float(np.nanmax([one.ratio for one in found])), MOST_RATIO.get(name, MEAN_RATIO)
    allowed = float(binom.ppf(FALSE_ALARM, DRAWS, 0.94)) / DRAWS
    return Row(
        what=f"{text}, ε = {float(epsilon):g}, {'Gaussian' if planned.policy.budget.delta else 'Laplace'}",
        figures={
            "least coverage": least,
            "most coverage": most,
            "width / need": ratio,
            "cells without ends": float(sum(np.isnan(one.ratio) for one in found)),
        },
        target=f"coverage ≥ 94% ({allowed:.1%} of {DRAWS:,} draws), width ≤ {target:g} × need",
        holds=least >= allowed and ratio <= target,
    )


def measure_ranks(db: hb.Database, text: str, epsilon: Fraction) -> Row:
    """Return the bound of the ranks beside what the errors need, over values that are all different."""
    planned = db.plan(f"SELECT {text} FROM t", epsilon=epsilon)
    ((own, choice),) = [(one, one.take) for one in planned.measurements if isinstance(one.take, Choice)]
    rng = np.random.default_rng(2)
    ratios, coverage = [], []
    for size in (500, 50_000):
        for values in (rng.random(size) * 100, np.minimum(rng.lognormal(2, 1, size), 100)):
            steps = np.sort(np.round(values / float(choice.histogram.grid)).astype(np.int64))
            drawn = np.asarray(own.mechanism.repeat((bin_steps(steps),), times=CHOICES)).reshape(CHOICES, -1)
            for place, asked in enumerate(planned.question.asked):
                bound = choice.bound_rank_error(own.mechanism, 0.05, asked.level)
                wanted = float(1 if asked.level is None else asked.level) * size
                below, most = (np.searchsorted(steps, drawn[:, place], side=side) for side in ("left", "right"))
                off = np.maximum(np.maximum(below - wanted, wanted - most), 0)
                coverage.append(float((off <= bound).mean()))
                ratios.append(bound / max(1.0, float(np.quantile(off, 0.95))))
    return Row(
        what=f"{text}, ε = {float(epsilon):g}, ranks",
        figures={"least coverage": min(coverage), "width / need": max(ratios)},
        target=f"width ≤ {MOST_RANKS:g} × need",
        holds=max(ratios) <= MOST_RANKS,
        remark="The bound holds whatever the data are; these values are all different.",
    )


def measure_values(db: hb.Database, text: str, epsilon: Fraction) -> Row:
    """Return how often the ends of a quantile hold the exact one, and their distance beside what its errors need."""
    planned = db.plan(f"SELECT {text} FROM t", epsilon=epsilon)
    ((own, choice),) = [(one, one.take) for one in planned.measurements if isinstance(one.take, Choice)]
    rng, level = np.random.default_rng(2), float(planned.question.asked[0].level or 0)
    ratios, coverage = [], []
    for size in (500, 5_000, 50_000):
        for values in (rng.random(size) * 100, np.minimum(rng.lognormal(2, 1, size), 100)):
            steps = np.sort(np.round(values / float(choice.histogram.grid)).astype(np.int64))
            least, most = steps[int(np.ceil(level * size)) - 1], steps[min(size - 1, int(level * size))]
            drawn = np.asarray(own.mechanism.repeat((bin_steps(steps),), times=CHOICES)).reshape(CHOICES, 3)
            chosen, low, high = drawn[:, 0], drawn.min(axis=1), drawn.max(axis=1)
            off = np.maximum(np.maximum(least - chosen, chosen - most), 0)
            coverage.append(float(((low <= most) & (high >= least)).mean()))
            ratios.append(float(np.median(high - low)) / max(1.0, 2 * float(np.quantile(off, 0.95))))
    allowed = float(binom.ppf(FALSE_ALARM, CHOICES, 0.95)) / CHOICES
    return Row(
        what=f"{text}, ε = {float(epsilon):g}, values",
        figures={"least coverage": min(coverage), "width / need": max(ratios)},
        target=f"coverage ≥ 95% ({allowed:.1%} of {CHOICES:,} draws), width ≤ {MOST_RANKS:g} × need",
        holds=min(coverage) >= allowed and max(ratios) <= MOST_RANKS,
        remark="The ends hold the exact quantile whatever the data are.",
    )


def run() -> Iterator[Row]:
    """Yield a row for each aggregate, ε and kind of noise: the extremes over tables and sizes."""
    with tempfile.TemporaryDirectory() as name:
        for delta in (Fraction(0), Fraction(1, 10**6)):
            with open_table(Path(name), delta=delta) as db:
                for text in NUMBERS:
                    for epsilon in EPSILONS:
                        yield measure_sums(db, text, epsilon)
        with open_table(Path(name), max_rows=2) as db:
            for text in RANKED:
                for epsilon in EPSILONS:
                    yield measure_ranks(db, text, epsilon)
            for text in BRACKETED:
                for epsilon in EPSILONS:
                    yield measure_values(db, text, epsilon)


BENCH = Bench(
    name="intervals",
    about="how often intervals hold the exact number, and their width over what 95% of the errors need",
    run=run,
    steps=len(EPSILONS) * (2 * len(NUMBERS) + len(RANKED) + len(BRACKETED)),
    notes=(
        f"The worst of {len(TABLES)} generated tables of {SIZES[0]:,} to {SIZES[-1]:,} rows, {DRAWS:,} draws each.",
        "Widths are of intervals that have ends; cells in which most have none are counted apart.",
    ),
)
