"""How much of the variance that the best components hold ours hold, beside diffprivlib's."""

import gzip
from collections.abc import Iterator

import numpy as np

from bench.clusters import adult_numbers
from bench.data import shared
from bench.learn_peer import PEER, Array, asked, spread
from bench.record import Bench, Row
from hubbub.learn import PCA

RUNS = 10
EPSILONS = (0.1, 1.0)
DELTA = 1e-6
PEER_SECONDS = 120
"""diffprivlib draws its components by rejection, which takes minutes for 22 columns."""
COMPONENTS = {"Adult, numbers": 2, "Parkinson's voices": 4}


def tables() -> dict[str, Array]:
    """Columns between −1 and 1."""
    with gzip.open(shared("regression", "parkinsons.txt.gz"), "rt") as file:
        voices = np.genfromtxt(file)
    low, high = voices.min(axis=0), voices.max(axis=0)
    return {"Adult, numbers": adult_numbers(), "Parkinson's voices": 2 * (voices - low) / (high - low) - 1}


def held(components: Array, covariance: Array) -> float:
    """The variance within what components span, over the most that so many can hold."""
    basis = np.linalg.qr(np.asarray(components).T)[0]
    best = np.sort(np.linalg.eigvalsh(covariance))[::-1][: basis.shape[1]].sum()
    return float(np.trace(basis.T @ covariance @ basis) / best)


def _rows() -> Iterator[Row]:
    for name, x in tables().items():
        kept, covariance, width = COMPONENTS[name], np.cov(x.T), x.shape[1]
        ends = {"low": np.full(width, -1.0), "high": np.full(width, 1.0)}
        task = {"kind": "components", "epsilons": EPSILONS, "runs": RUNS, "components": kept}
        peer = asked(task, seconds=PEER_SECONDS, x=x, **ends)
        for epsilon in EPSILONS:
            beside: dict[str, float] = {}
            if not isinstance(peer, str):
                own = [held(one["answer"], covariance) for one in peer if one["epsilon"] == epsilon]
                beside = spread(own, "variance held")
            yield Row(
                what=f"{name}: {PEER.label}, ε = {epsilon:g}", figures=beside,
                remark=peer if isinstance(peer, str) else "δ = 0; the same ranges",
            )  # fmt: skip
            for delta in (DELTA, 0.0):
                found = spread(
                    [held(PCA(kept, epsilon=epsilon, delta=delta, bounds=(-1, 1)).fit(x).components_, covariance)
                     for _ in range(RUNS)],
                    "variance held",
                )  # fmt: skip
                better = None
                if beside:
                    slack = 2 * (found["± variance held"] + beside["± variance held"])
                    better = found["variance held"] + slack >= beside["variance held"]
                yield Row(
                    what=f"{name}: PCA({kept}), ε = {epsilon:g}, δ = {delta:g}", figures=found,
                    target="no less than diffprivlib's", holds=better,
                )  # fmt: skip


BENCH = Bench(
    name="learn-pca",
    about="variance within the span of private components, over the most that so many can hold",
    run=_rows,
    steps=2 * len(EPSILONS) * 3,
    notes=(
        f"Means of {RUNS} fits with their standard errors (±).",
        "Columns lie between −1 and 1 for both: voices by the ends of their own range.",
    ),
)
