"""How far answers in SQL are from the truth, over 1,000 draws, beside the least that the law allows."""

import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

import hubbub as hb
from bench.record import Bench, Row
from hubbub.ledger import Marks
from hubbub.query.combine import combined
from hubbub.query.plan import Plan

USERS = 100_000
GROUPS = 100
RUNS = 1000
SEED = 8


def _build(folder: Path) -> Path:
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


def _errors(plan: Plan, cells: list[tuple[int, ...]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The errors of the first aggregate in each cell: drawn by the plan's own mechanisms, against noise of nothing."""
    exact = [[row[place] for row in cells] for place in range(len(plan.mechanisms))]
    truth = np.array([numbers[0].value for numbers in combined(plan, exact)], dtype=np.float64)
    found = np.empty((RUNS, len(truth)))
    for run_ in range(RUNS):
        noisy = [
            [int(value) for value in mechanism.draw(np.array(steps))]
            for mechanism, steps in zip(plan.mechanisms, exact, strict=True)
        ]
        found[run_] = [numbers[0].value for numbers in combined(plan, noisy)]
    return found - truth


def run() -> Iterator[Row]:
    """Each limit is the standard deviation of the optimal pure noise; a mean has none, so peers stand beside it."""
    a = math.exp(-0.1)
    b = math.exp(-1)
    cases = (
        (
            "count, ε = 0.1",
            "SELECT count(DISTINCT user_id) AS x FROM people",
            0.1,
            math.sqrt(2 * a) / (1 - a),
            "√(2a)/(1−a)",
        ),
        ("sum of values in [0, 100], ε = 1", "SELECT sum(value) AS x FROM people", 1, math.sqrt(2) * 100, "√2 · 100"),
        (
            "counts of 100 groups, ε = 1",
            "SELECT grp, count(*) AS x FROM people GROUP BY grp",
            1,
            math.sqrt(2 * b) / (1 - b),
            "√(2a)/(1−a)",
        ),
        ("mean of values in [0, 100], private n, ε = 1", "SELECT avg(value) AS x FROM people", 1, None, ""),
    )
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-") as name:
        folder = Path(name)
        with hb.open(
            _build(folder),
            unit="user_id",
            budget=hb.Budget(epsilon=Fraction(100)),
            bounds={"value": (0, 100)},
            keys={"grp": list(range(GROUPS))},
            max_groups=1,
            max_rows=1,
            ledger=folder / "people.ledger",
            marks=Marks(folder / "state"),
        ) as db:
            for what, question, epsilon, limit, law in cases:
                plan = db.plan(question, epsilon=epsilon)
                errors = _errors(plan, db._engine.run(plan.aggregate, tables=db.policy.tables))
                rmse = float(np.sqrt(np.mean(errors**2)))
                spread = float(np.std(errors**2)) / (2 * rmse * math.sqrt(errors.size))
                figures = {"root mean square error": rmse, "standard error": spread}
                if limit is None:
                    yield Row(what=what, figures=figures, target="peers: 0.0016 (best) to 0.0036")
                else:
                    yield Row(
                        what=what,
                        figures=figures | {"limit": limit},
                        target=f"{law}, ± 2 s.e.",
                        holds=rmse <= limit + 2 * spread,
                    )


BENCH = Bench(
    name="accuracy",
    about=f"errors of SQL answers over {RUNS:,} draws; {USERS:,} users, one row each",
    run=run,
    steps=4,
    notes=(
        "The data is generated here, so its exact cells may be looked at. Peers' means are from our runs of their "
        "releases with a private n: Google 0.0016, PipelineDP 0.0018, OpenDP 0.0030, SmartNoise 0.0036.",
    ),
)
