"""Any program on blocks of people: scikit-learn's median regression of hospital costs on age, in a sandbox, privately.

Run it as a file: it makes the hospital's rows, deals the patients out to 100 blocks, fits a line on each with
QuantileRegressor, and releases the median of the hundred slopes and intercepts.
"""

from __future__ import annotations

import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

BLOCKS = 100
SLOPE, START = 40.0, 500.0


def median_line(rows: dict[str, Any]) -> tuple[float, float]:
    """Slope and intercept of the line with as many costs above it as below."""
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs")
    model.fit(rows["age"].reshape(-1, 1), rows["cost"])
    return float(model.coef_[0]), float(model.intercept_)


def made_up(folder: Path, people: int = 20_000) -> Path:
    """Patients with costs that grow with age, and a heavy tail that a least-squares line would follow."""
    import duckdb

    rng = np.random.default_rng(11)
    age = rng.integers(18, 95, size=people)
    tail = rng.pareto(1.5, size=people) * np.where(rng.random(people) < 0.5, 300, -150)
    columns = {"patient": np.arange(people), "age": age.astype(np.float64), "cost": START + SLOPE * age + tail}
    connection = duckdb.connect()
    connection.register("made", columns)
    connection.execute(f"COPY (SELECT * FROM made) TO '{folder}/stays.parquet'")
    return folder / "stays.parquet"


def main() -> None:
    """The line, with its price."""
    import hubbub as hb
    from hubbub.policy.tables import Limits

    with tempfile.TemporaryDirectory(prefix="hubbub-") as name:
        folder = Path(name)
        stays = made_up(folder)
        with hb.open(
            stays,
            unit="patient",
            budget=hb.Budget(epsilon=Fraction(2)),
            ledger=folder / "ledger",
            limits=Limits(lanes=4),  # the rows are nobody's: four blocks may contend for the processors
        ) as db:

            def progress(over: int, of: int) -> None:
                print(f"\r{over} of {of} blocks", end="", file=sys.stderr, flush=True)

            found = hb.sample_and_aggregate(
                db.table("stays"),
                median_line,
                columns=["age", "cost"],
                blocks=BLOCKS,
                bounds=[(0, 100), (-2_000, 2_000)],
                epsilon=1,
                how="median",
                seconds=1.0,
                progress=progress,
            )
    print(file=sys.stderr)
    slope, start = found.values
    print(f"cost = {start:.0f} + {slope:.1f} · age (made with {START:.0f} + {SLOPE:.1f} · age)")
    print(found)


if __name__ == "__main__":
    main()
