"""k-means over ten million rows that stay in their file, beside scikit-learn's on the loaded table."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sklearn import cluster

import hubbub as hb
from bench.memory import Peak, tree
from bench.record import Bench, Row
from bench.scratch import scratch
from hubbub.learn import KMeans
from hubbub.ledger import Marks
from hubbub.policy.stamps import NO_FILES

Array = np.ndarray[Any, Any]
ROWS, CLUSTERS = 10_000_000, 5
SAMPLE = 200_000
CASES = ((2, 1), (2, 2), (6, 1))
"""Columns, and rows that each unit has; of two, one counts."""


def centres(columns: int) -> Array:
    """Five places in the box from −1 to 1."""
    return np.random.default_rng(3).uniform(-0.7, 0.7, (CLUSTERS, columns))


def written(folder: Path, *, columns: int, each: int) -> Path:
    """Clumps about the places, in a Parquet file."""
    path = folder / f"points-{columns}-{each}.parquet"
    about = [f"[{', '.join(map(repr, place))}]" for place in centres(columns).T.tolist()]
    noise = "0.25 * (random() + random() + random() - 1.5)"
    shown = ", ".join(f"({place})[1 + i % {CLUSTERS}] + {noise} AS x{at}" for at, place in enumerate(about))
    with duckdb.connect() as made:
        made.execute("SELECT setseed(0.25)")
        made.execute(
            f"COPY (SELECT i // {each} AS who, {shown} FROM range({ROWS}) AS t(i)) TO '{path}' (FORMAT parquet)"
        )
    return path


def ours(path: Path, folder: Path, *, columns: int, each: int) -> Array:
    """A fit from a session, as an analyst would ask for it."""
    names = [f"x{at}" for at in range(columns)]
    budget, ledger = hb.Budget(epsilon=Fraction(10)), folder / f"{path.stem}.ledger"
    paid: dict[str, Any] = {"unit": "who", "budget": budget, "ledger": ledger}
    bounds = dict.fromkeys(names, (-1, 1))
    with hb.open(path, name="points", bounds=bounds, **paid, marks=Marks(folder / f"{path.stem}.marks")) as db:
        if each == 1:  # as the owner's check would have seen it
            tables = {"points": replace(db.policy.tables["points"], unique=True)}
            db._session.policy = replace(
                db.policy, tables=tables, enforced=frozenset({"points"}), seen={"points": NO_FILES}
            )
        found: Array = db.table("points").learn(KMeans(CLUSTERS), columns=names, epsilon=1, rows=1).cluster_centers_
    return found


def loaded(path: Path, columns: int) -> Array:
    """The whole table in memory, as scikit-learn needs it."""
    names = ", ".join(f"x{at}" for at in range(columns))
    with duckdb.connect() as reading:
        held = reading.execute(f"SELECT {names} FROM '{path}'").fetchnumpy()
    return np.column_stack([held[f"x{at}"] for at in range(columns)])


def theirs(path: Path, columns: int) -> Array:
    found: Array = cluster.KMeans(CLUSTERS, random_state=0).fit(loaded(path, columns)).cluster_centers_
    return found


def error(path: Path, columns: int, found: Array) -> float:
    """The mean squared distance of a sample from the nearest centre."""
    names = ", ".join(f"x{at}" for at in range(columns))
    with duckdb.connect() as reading:
        held = reading.execute(f"SELECT {names} FROM '{path}' LIMIT {SAMPLE}").fetchnumpy()
    x = np.column_stack([held[f"x{at}"] for at in range(columns)])
    return float(np.min([((x - one) ** 2).sum(axis=1) for one in found], axis=0).mean())


class Used:
    """``with Used() as used``: CPU seconds of this process and of all below it, looked at fifty times a second."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._done.wait(0.02):
            self._look_once()

    def _look_once(self) -> None:
        """Of those that have ended, what they had used when they were last seen."""
        for process in tree(os.getpid()):
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                self._seen[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> "Used":
        self._look_once()
        self._before = sum(self._seen.values())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._look_once()
        self._done.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        return sum(self._seen.values()) - self._before


def _taken(job: Callable[[], Array]) -> tuple[Array, dict[str, float]]:
    """What was found, with wall and CPU seconds of all processes and the memory of the largest moment."""
    start = time.perf_counter()
    with Peak() as peak, Used() as used:
        found = job()
    return found, {"s": time.perf_counter() - start, "CPU s": used.seconds, "GB": peak.gigabytes}


def sides(path: Path, folder: Path, *, columns: int, each: int) -> dict[str, Callable[[], Array]]:
    """Ours and theirs."""
    return {
        "hubbub": lambda: ours(path, folder, columns=columns, each=each),
        "scikit-learn": lambda: theirs(path, columns),
    }


def _rows() -> Iterator[Row]:
    with scratch() as folder:
        for columns, each in CASES:
            path = written(folder, columns=columns, each=each)
            figures: dict[str, float] = {}
            for name, job in sides(path, folder, columns=columns, each=each).items():
                found, taken = _taken(job)
                figures |= {f"{name} {unit}": value for unit, value in taken.items()}
                figures[f"{name} error"] = error(path, columns, found)
            ratio = figures["hubbub CPU s"] / figures["scikit-learn CPU s"]
            owned = "one row a unit" if each == 1 else f"{each} rows a unit, of which one counts"
            yield Row(
                what=f"{columns} columns, {owned}",
                figures={**figures, "CPU ratio": ratio},
                target="CPU ratio ≤ 5",
                holds=ratio <= 5,
            )
            path.unlink()


BENCH = Bench(
    name="learn-engine",
    about=f"KMeans({CLUSTERS}) over {ROWS:,} rows in a Parquet file",
    run=_rows,
    steps=len(CASES),
    notes=(
        "hubbub: ε = 1 from a session (charged, stored), sums inside DuckDB's process; CPU and memory include it.",
        "scikit-learn: the table is loaded first, which its figures include. Error: mean squared distance of a sample.",
    ),
)
