"""How far answers in SQL are from the truth, over 1,000 draws, beside the least that the law allows."""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

import hubbub as hb
from bench.record import Bench, Row
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.ledger import Marks
from hubbub.query.answer.stored import combine
from hubbub.query.ops import ExactCounts
from hubbub.query.plan.plan import Plan

USERS = 100_000
GROUPS = 100
RUNS = 1000
SEED = 8
BOUNDS = (0, 100)
Errors = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def build(folder: Path) -> Path:
    """One row a user: lognormal(3, 0.8) cut at 100, in one of 100 groups."""
    rng = np.random.default_rng(SEED)
    columns = {
        "user_id": np.arange(USERS),
        "grp": rng.integers(0, GROUPS, size=USERS),
        "value": np.minimum(np.exp(rng.normal(3, 0.8, size=USERS)), 100.0),
    }
    path = folder / "people.parquet"
    connection = duckdb.connect()
    connection.register("made", columns)
    connection.execute(f"COPY (SELECT * FROM made) TO '{path}' (FORMAT parquet)")
    connection.close()
    return path


def _errors(plan: Plan, cells: list[tuple[int, ...]]) -> Errors:
    """The errors of the first aggregate in each cell: drawn by the plan's own mechanisms, against noise of nothing."""
    held, slots = ExactCounts(cells=(), tallies=cells), plan.slots
    exact = [[] if slot is None else slot.take(held).tolist() for slot in slots]
    truth = np.array([numbers[0].value for numbers in combine(plan, exact)], dtype=np.float64)
    found = np.empty((RUNS, len(truth)))
    for run_ in range(RUNS):
        noisy = [
            [] if slot is None else [int(value) for value in slot.mechanism.draw(np.array(steps))]
            for slot, steps in zip(slots, exact, strict=True)
        ]
        found[run_] = np.array([numbers[0].value for numbers in combine(plan, noisy)], dtype=np.float64)
    return found - truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, what it may cost, and the standard deviation of the optimal pure noise, where there is one."""

    what: str
    sql: str
    epsilon: Fraction
    limit: float | None = None
    law: str = ""


CASES = {
    "count": Case(
        what="count, ε = 0.1",
        sql="SELECT count(DISTINCT user_id) AS x FROM people",
        epsilon=Fraction(1, 10),
        limit=math.sqrt(2 * math.exp(-0.1)) / (1 - math.exp(-0.1)),
        law="√(2a)/(1−a)",
    ),
    "sum": Case(
        what="sum of values in [0, 100], ε = 1",
        sql="SELECT sum(value) AS x FROM people",
        epsilon=Fraction(1),
        limit=math.sqrt(2) * 100,
        law="√2 · 100",
    ),
    "groups": Case(
        what=f"counts of {GROUPS} groups, ε = 1",
        sql="SELECT grp, count(*) AS x FROM people GROUP BY grp",
        epsilon=Fraction(1),
        limit=math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1)),
        law="√(2a)/(1−a)",
    ),
    "mean": Case(
        what="mean of values in [0, 100], private n, ε = 1",
        sql="SELECT avg(value) AS x FROM people",
        epsilon=Fraction(1),
    ),
}


def opened(path: Path, folder: Path) -> hb.Database:
    """One row a user is a fact that the policy states."""
    return hb.open(
        path,
        unit="user_id",
        budget=hb.Budget(epsilon=Fraction(100)),
        bounds={"value": BOUNDS},
        keys={"grp": list(range(GROUPS))},
        limits=hb.Limits(max_groups=1, max_rows=1),
        ledger=folder / "people.ledger",
        marks=Marks(folder / "state"),
    )


def errors_of(db: hb.Database, case: Case) -> Errors:
    """Of RUNS answers, one row an answer."""
    plan = db.plan(case.sql, epsilon=case.epsilon)
    return _errors(plan, exact_of(db, plan.aggregate).tallies)


def rmse_of(errors: Errors) -> tuple[float, float]:
    """The root mean square error and its standard error."""
    rmse = float(np.sqrt(np.mean(errors**2)))
    if rmse == 0:
        return 0.0, 0.0
    return rmse, float(np.std(errors**2)) / (2 * rmse * math.sqrt(errors.size))


def run() -> Iterator[Row]:
    """A mean has no limit of its own: ``peer-accuracy`` holds it to the peers'."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-") as name:
        folder = Path(name)
        with opened(build(folder), folder) as db:
            for case in CASES.values():
                rmse, spread = rmse_of(errors_of(db, case))
                figures = {"root mean square error": rmse, "standard error": spread}
                if case.limit is None:
                    yield Row(what=case.what, figures=figures)
                else:
                    yield Row(
                        what=case.what,
                        figures=figures | {"limit": case.limit},
                        target=f"{case.law}, ± 2 s.e.",
                        holds=rmse <= case.limit + 2 * spread,
                    )


BENCH = Bench(
    name="accuracy",
    about=f"errors of SQL answers over {RUNS:,} draws; {USERS:,} users, one row each",
    run=run,
    steps=len(CASES),
    notes=("The data is generated here, so its exact cells may be looked at.",),
)
