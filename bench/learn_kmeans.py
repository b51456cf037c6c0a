"""k-means: ours beside diffprivlib and scikit-learn without privacy, on the same rows with the same public bounds."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as Plain

from bench.clusters import Array, adult_numbers, distance, mixture, sipu
from bench.peers.venvs import PEERS, ROOT, NotInstalled, python_of
from bench.record import Bench, Row
from hubbub.learn import KMeans

RUNS = 10
EPSILONS = (0.1, 1.0)
DELTA = 1e-6
SURE = 2.0
"""Standard errors that a comparison allows for (SOUNDNESS 34)."""
PEER_SECONDS = 900
CEILINGS = {
    "S1": {0.1: 0.0178, 1.0: 0.0083},
    "Adult": {0.1: 0.28, 1.0: 0.22},
}
SPEED = (1_000_000, 20, 8)
SLOWER = 5.0


def tables() -> dict[str, tuple[Array, int]]:
    """Rows with how many clusters to look for."""
    return {
        "S1": (sipu("s1"), 15),
        "Adult": (adult_numbers(), 5),
        "S3": (sipu("s3"), 15),
        "A3": (sipu("a3"), 50),
        "4 columns": (mixture(rows=60_000, columns=4, clusters=10, deviation=0.1, seed=3), 10),
        "8 columns": (mixture(rows=20_000, columns=8, clusters=5, deviation=0.15, seed=5), 5),
        "20 columns": (mixture(rows=50_000, columns=20, clusters=8, deviation=0.15, seed=7), 8),
    }


def figures(distances: Sequence[float], seconds: Sequence[float]) -> dict[str, float]:
    """The mean over fits with its standard error."""
    spread = float(np.std(distances, ddof=1)) / len(distances) ** 0.5 if len(distances) > 1 else 0.0
    return {"mean squared distance": float(np.mean(distances)), "±": spread, "CPU s": float(np.mean(seconds))}


def _rows() -> Iterator[Row]:
    for name, (rows, clusters) in tables().items():
        begun = time.process_time()
        plain = Plain(clusters, n_init=10, random_state=0).fit(rows)
        spent = time.process_time() - begun
        yield Row(
            what=f"{name}: scikit-learn, no privacy", figures=figures([distance(rows, plain.cluster_centers_)], [spent])
        )
        for epsilon in EPSILONS:
            for delta in (0.0, DELTA):
                yield _ours(name, rows, clusters, epsilon, delta)
        yield from _peer(name, rows, clusters)
    yield _speed()


def _ours(name: str, rows: Array, clusters: int, epsilon: float, delta: float) -> Row:
    distances, seconds = [], []
    for _ in range(RUNS):
        begun = time.process_time()
        model = KMeans(clusters, epsilon=epsilon, delta=delta, bounds=(-1.0, 1.0)).fit(rows)
        seconds.append(time.process_time() - begun)
        distances.append(distance(rows, model.cluster_centers_))
    found, price = figures(distances, seconds), f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
    ceiling = None if delta else CEILINGS.get(name, {}).get(epsilon)
    if ceiling is None:
        return Row(what=f"{name}: hubbub, {price}", figures=found)
    holds = found["mean squared distance"] - SURE * found["±"] <= ceiling
    return Row(what=f"{name}: hubbub, {price}", figures=found, target=f"≤ {ceiling}", holds=holds)


def _peer(name: str, rows: Array, clusters: int) -> Iterator[Row]:
    peer = next(one for one in PEERS if one.name == "diffprivlib")
    try:
        found = _asked(str(python_of(peer)), rows, clusters)
    except (NotInstalled, subprocess.SubprocessError) as problem:
        yield Row(what=f"{name}: {peer.label}", figures={}, remark=str(problem)[:200])
        return
    for epsilon in EPSILONS:
        own = [one for one in found if one["epsilon"] == epsilon]
        distances = [distance(rows, np.array(one["centres"])) for one in own]
        yield Row(
            what=f"{name}: {peer.label}, ε = {epsilon:g}",
            figures=figures(distances, [float(one["seconds"]) for one in own]),
        )


def _asked(python: str, rows: Array, clusters: int) -> Any:
    with tempfile.TemporaryDirectory(prefix="hubbub-peer-") as name:
        data, out = Path(name) / "rows.npy", Path(name) / "found.json"
        np.save(data, rows)
        task = {"path": str(data), "clusters": clusters, "runs": RUNS, "epsilons": EPSILONS}
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        subprocess.run(
            [python, "-W", "ignore", "-m", "bench.peers.cluster_diffprivlib", json.dumps(task), str(out)],
            cwd=name,
            env=environment | {"PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            timeout=PEER_SECONDS,
        )
        return json.loads(out.read_text())


def _speed() -> Row:
    """A million rows: CPU seconds of one fit beside scikit-learn's with its own defaults."""
    many, columns, clusters = SPEED
    rows = mixture(rows=many, columns=columns, clusters=clusters, deviation=0.15, seed=11)
    begun = time.process_time()
    KMeans(clusters, bounds=(-1.0, 1.0)).fit(rows)
    ours = time.process_time() - begun
    begun = time.process_time()
    Plain(clusters, random_state=0).fit(rows)
    theirs = time.process_time() - begun
    return Row(
        what=f"{many:,} rows of {columns} columns",
        figures={"CPU s": ours, "scikit-learn CPU s": theirs, "ratio": ours / theirs},
        target=f"ratio ≤ {SLOWER:g}",
        holds=ours <= SLOWER * theirs,
    )


BENCH = Bench(
    name="learn-kmeans",
    about="mean squared distance to the nearest centre, columns scaled to [−1, 1]",
    run=_rows,
    steps=7 * 7 + 1,
    notes=(
        f"Means of {RUNS} fits with their standard errors (±); bounds (−1, 1) for everybody; pure ε unless δ is said.",
        "Columns: clumps at random places (bench/clusters.py). S1, S3, A3: Fränti and Sieranoja. Adult: 6 columns.",
    ),
)
