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

from bench.clusters import Array, adult_numbers, airfoils, distance, mixture, sipu, weather
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
        **held_out(),
    }


def held_out() -> dict[str, tuple[Array, int]]:
    """What no constant of the algorithm was chosen on."""
    return {
        "held out, weather": (weather(), 8),
        "held out, airfoils": (airfoils(), 5),
        "held out, 3 columns": (mixture(rows=30_000, columns=3, clusters=6, deviation=0.12, seed=101), 6),
        "held out, 6 columns": (mixture(rows=40_000, columns=6, clusters=12, deviation=0.1, seed=102), 12),
        "held out, 12 columns": (mixture(rows=30_000, columns=12, clusters=7, deviation=0.2, seed=103), 7),
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


BENCH = Bench(
    name="learn-kmeans",
    about="mean squared distance to the nearest centre, columns scaled to [−1, 1]",
    run=_rows,
    steps=12 * 7,
    notes=(
        f"Means of {RUNS} fits with their standard errors (±); bounds (−1, 1) for everybody; pure ε unless δ is said.",
        "Constants were chosen on the first seven tables; nothing was on those that are held out.",
        "Weather: temperature, felt temperature, humidity, wind of 17,379 hours. Airfoils: 5 columns of 1,503 rows.",
        "Columns: clumps at random places (bench/clusters.py). S1, S3, A3: Fränti and Sieranoja. Adult: 6 columns.",
    ),
)
