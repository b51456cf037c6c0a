"""Intervals of the whole error on generated tables: whether they hold the truth, how wide they are, and what they cost.

Forty tables: skewed numbers of rows per person (geometric, Pareto, log-normal, two kinds of people), heavy tails of
values within their bounds, and groups of very different sizes, some with a handful of rows. Of each, the limits are
those that ``db.advise`` proposes, and ``max_total_rows`` is the number of rows that somebody has at most, rounded up.
Draws are the plan's own mechanisms on exact numbers that the engine counted.
"""

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
from scipy import stats

import hubbub as hb
from bench.record import Bench, Row
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.privacy.shares import deviation
from hubbub.query.answer.stored import combine
from hubbub.query.missing.bought import LIMITS
from hubbub.query.ops import Tally
from hubbub.query.plan.covering import Covers
from hubbub.query.plan.measure import measure_plan
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.read.sql import question

TABLES, DRAWS, PEOPLE, GROUPS = 40, 200, 600, 5
LEAST = float(stats.binom.ppf(1e-6, DRAWS, 0.95)) / DRAWS
"""95% of the draws, less what a test with a false-alarm rate of 1e-6 allows."""
WIDER, NOISIER, SLOWER = 1.5, 1.15, 1.2
EPSILON = Fraction(1)
_SHOWN = "count(*) AS n, count(DISTINCT person) AS people, sum(amount) AS total, avg(amount) AS mean"
BY_KIND, ALONE = f"SELECT kind, {_SHOWN} FROM visits GROUP BY kind", f"SELECT {_SHOWN} FROM visits"
COUNTS = "SELECT kind, count(*) AS n FROM visits GROUP BY kind"
SUMS = "SELECT count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM visits"
_MOST = 200
"""Rows that nobody has more of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A table: whose each row is, its group and its value."""

    person: Any
    kind: Any
    amount: Any

    @property
    def most(self) -> int:
        """The most rows of a person, rounded up to a limit that is advised."""
        return int(next(edge for edge in LIMITS if edge >= np.bincount(self.person).max()))


def make(seed: int) -> Made:
    """Make one of the tables."""
    rng = np.random.default_rng(seed)
    rows = (
        rng.geometric(0.4, PEOPLE),
        np.floor(rng.pareto(1.5, PEOPLE) + 1),
        np.ceil(rng.lognormal(0.5, 0.8, PEOPLE)),
        np.where(rng.random(PEOPLE) < 0.9, 1, 25),
    )[seed % 4]
    person = np.repeat(np.arange(PEOPLE), np.minimum(rows, _MOST).astype(int))
    sizes = (0.6, 0.3, 0.09, 0.009, 0.001)
    amount = (
        rng.lognormal(3, 1, len(person)),
        (rng.pareto(2, len(person)) + 1) * 10,
        rng.uniform(0, 100, len(person)),
    )[seed % 3]
    return Made(person=person, kind=rng.choice(GROUPS, len(person), p=sizes), amount=np.minimum(amount, 1000.0))


def opened(made: Made, limits: Limits, folder: Path) -> hb.Database:
    """Open a table under limits."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "visits.parquet"
    with duckdb.connect() as connection:
        connection.register("made", {"person": made.person, "kind": made.kind, "amount": made.amount})
        connection.execute(f"COPY (SELECT * FROM made) TO '{path}' (FORMAT parquet)")
    return hb.open(
        path,
        unit="person",
        budget=hb.Budget(epsilon=Fraction(10**6)),
        bounds={"amount": (0, 1000)},
        keys={"kind": list(range(GROUPS))},
        limits=limits,
        ledger=folder / "ledger",
        marks=Marks(folder / "marks"),
    )


def advised(db: hb.Database, most: int) -> Limits:
    """The limits that are advised, under this many rows of a person at most."""
    toml = db.advise(epsilon=1, price=EPSILON).limits
    found = {str(one.advised): min(one.limit, most) for one in toml if one.limit is not None}
    return Limits(
        max_groups=min(found.get("max_groups", 1), GROUPS), max_rows=found.get("max_rows", 1), max_total_rows=most
    )


def planned(db: hb.Database, text: str, limits: Limits, covers: Covers) -> Plan:
    """Plan a question under other limits than those of the policy."""
    policy = replace(db.policy, limits=limits)
    return plan(question(text, db), policy, epsilon=EPSILON, covers=covers)


def drawn(found: Plan, held: Any, times: int) -> Iterator[list[list[Any]]]:
    """Answers with their intervals, cell by cell."""
    meter = Meter({found.policy.account: hb.Budget(epsilon=Fraction(10**9))})
    for _ in range(times):
        noisy = json.loads(measure_plan(found, Sealed(held), meter))["noisy"]
        yield [[(one.value, one.low, one.high) for one in numbers] for numbers in combine(found, noisy)]


def truth_of(made: Made, cell: tuple[Any, ...]) -> list[float]:
    """What the table holds: rows, people, total and mean."""
    own = made.kind == cell[0] if cell else np.ones(len(made.person), dtype=bool)
    amounts = made.amount[own]
    mean = float(amounts.mean()) if len(amounts) else math.nan
    return [int(own.sum()), len(np.unique(made.person[own])), float(amounts.sum()), mean]


def coverage(made: Made, db: hb.Database, found: Plan, times: int) -> tuple[float, Any]:
    """The least coverage over all numbers of all cells, and the median width of each number."""
    held = exact_of(db, found.aggregate)
    truths = np.array([truth_of(made, cell if found.question.groups else ()) for cell in held.cells or ((),)])
    told = np.array(list(drawn(found, held, times)), dtype=float)  # draws, cells, numbers, (value, low, high)
    grid = 1e-9 * np.abs(truths) + 2.0**-16  # values are added up in whole steps of their grid
    holds = (told[..., 1] <= truths + grid) & (truths - grid <= told[..., 2])
    return float(np.where(np.isnan(truths), 1.0, holds.mean(axis=0)).min()), np.median(
        told[..., 2] - told[..., 1], axis=(0, 1)
    )


def run() -> Iterator[Row]:
    """Coverage and width of each kind of interval; noise and time where limits drop nothing."""
    worst: dict[tuple[str, Covers], float] = {}
    ratios: dict[tuple[str, Covers], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(TABLES):
            made = make(number)
            with opened(
                made, Limits(max_groups=1, max_rows=1, max_total_rows=made.most), Path(folder) / str(number)
            ) as db:
                chosen = advised(db, made.most)
                for text in (BY_KIND, ALONE):
                    best = hindsight(made, db, text)
                    for covers in Covers:
                        least, widths = coverage(made, db, planned(db, text, chosen, covers), DRAWS)
                        worst[text, covers] = min(worst.get((text, covers), 1.0), least)
                        ratio = np.log(np.maximum(widths, 1e-9) / np.maximum(best, 1e-9)).mean()
                        ratios.setdefault((text, covers), []).append(float(np.exp(ratio)))
        for (text, covers), least in worst.items():
            yield Row(
                what=f"{covers}: {text}",
                figures={"least coverage of a number": least},
                target="" if covers is Covers.NOISE else f"≥ {LEAST:.3f}",
                holds=None if covers is Covers.NOISE else least >= LEAST,
            )
        for (text, covers), found in ratios.items():
            yield Row(
                what=f"{covers}, width over that of the best limits in hindsight: {text}",
                figures={"median ratio": float(np.median(found)), "largest": max(found)},
                target=f"≤ {WIDER}" if covers is Covers.WHOLE else "",
                holds=float(np.median(found)) <= WIDER if covers is Covers.WHOLE else None,
            )
        yield from costs(Path(folder) / "costs")


def hindsight(made: Made, db: hb.Database, text: str) -> Any:
    """The least median width of each number, over limits that one could have declared with the same most rows."""
    best = None
    for rows in (1, 2, 5, 10, 20, made.most):
        for groups in (1, 2, GROUPS) if "GROUP" in text else (1,):
            limits = Limits(max_groups=groups, max_rows=min(rows, made.most), max_total_rows=made.most)
            _, widths = coverage(made, db, planned(db, text, limits, Covers.DROPPED), 10)
            best = widths if best is None else np.minimum(best, widths)
    return best


def deviation_of(found: Plan, tally: Tally) -> float:
    """The standard deviation of a tally's noise."""
    own = found.margins.find(tally)
    return deviation(own.mechanism) * own.take.scale_of(tally)


def costs(folder: Path) -> Iterator[Row]:
    """Noise and time beside those of the noise alone, on a table whose limits drop nothing of anybody."""
    rng = np.random.default_rng(1)
    rows = 1_000_000
    made = Made(person=np.arange(rows) // 2, kind=rng.choice(GROUPS, rows), amount=rng.uniform(0, 1000, rows))
    limits = Limits(max_groups=2, max_rows=2, max_total_rows=8)
    with opened(made, limits, folder) as db:
        for text in (
            "SELECT kind, count(*) AS n FROM visits GROUP BY kind",
            ALONE.replace("count(DISTINCT person) AS people, ", ""),
        ):
            wide, narrow = (planned(db, text, limits, covers) for covers in (Covers.DROPPED, Covers.NOISE))
            noise = [
                deviation_of(wide, tally) / deviation_of(narrow, tally)
                for part in narrow.parts
                for tally in part.tallies
            ]
            seconds: dict[str, list[float]] = {"noise": [], "dropped": []}
            for attempt in range(10):  # one after the other, so that what else runs is shared
                for place, kind in enumerate(seconds):
                    began = perf_counter()
                    asked = text.replace("visits", f"visits WHERE amount > {-2 * attempt - place - 1}")
                    db.sql(asked, epsilon=EPSILON, error=kind)
                    seconds[kind].append(perf_counter() - began)
            times = {kind: float(np.median(found[1:])) for kind, found in seconds.items()}
            ratio = times["dropped"] / times["noise"]
            yield Row(
                what=f"cost where nothing is dropped: {text}",
                figures={"noise": max(noise), "time": ratio, "seconds": times["dropped"]},
                target=f"noise ≤ {NOISIER}, time ≤ {SLOWER}",
                holds=max(noise) <= NOISIER and ratio <= SLOWER,
            )


BENCH = Bench(
    name="whole_error",
    about="intervals that cover what limits drop: whether they hold the truth, their width, and their cost",
    run=run,
    steps=14,
    notes=(
        f"{TABLES} generated tables of {PEOPLE} people at ε = 1, {DRAWS} draws of each question. Limits are those that "
        "hubbub advise proposes at ε = 1, and max_total_rows is declared. The best limits in hindsight are those of "
        "the shortest intervals that cover what limits drop, number by number, under the same max_total_rows.",
    ),
    named=True,
)
