"""Held-out R² of regressions on hourly bicycle hires and on airfoils, ours beside diffprivlib."""

import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression as Plain
from sklearn.metrics import r2_score

from bench.data import shared
from bench.learn_peer import PEER, Array, asked, spread
from bench.record import Bench, Row
from hubbub.learn import LinearRegression

RUNS = 10
EPSILONS = (0.1, 1.0)
DELTA = 1e-6
TARGETS = {("bike", 1.0): 0.27}
Y_BOUNDS = {"bike": (0.0, 1000.0), "airfoil": (100.0, 145.0)}


def tables() -> dict[str, tuple[Array, Array, Array, Array]]:
    """Columns, target, and public ranges of the columns."""
    with gzip.open(shared("regression", "hour.csv.gz"), "rt") as file:
        bike = np.genfromtxt(file, delimiter=",")
    air = np.genfromtxt(shared("regression", "airfoil_self_noise.dat.txt"))
    calendar = np.array(
        [[2011, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 0], [2012, 12, 31, 4, 1, 12, 23, 1, 6, 1, 4, 1]], dtype=float
    )
    flow = np.array([[200, 0, 0, 31, 0], [20_000, 23, 0.31, 72, 0.06]])
    return {"bike": (bike[:, 1:13], bike[:, -1], *calendar), "airfoil": (air[:, :-1], air[:, -1], *flow)}


def splits(rows: int) -> tuple[Array, Array]:
    """Four fifths to learn from, one fifth to test on, anew for each run."""
    orders = [np.random.default_rng(run).permutation(rows) for run in range(RUNS)]
    cut = rows * 4 // 5
    return np.array([one[:cut] for one in orders]), np.array([one[cut:] for one in orders])


def _rows() -> Iterator[Row]:
    for name, (x, y, low, high) in tables().items():
        train, test = splits(len(y))
        pairs = list(zip(train, test, strict=True))
        plain = [float(Plain().fit(x[a], y[a]).score(x[b], y[b])) for a, b in pairs]
        yield Row(what=f"{name}: scikit-learn, no privacy", figures=spread(plain, "R²"))
        for epsilon in EPSILONS:
            for words, settings in _ours(low, high, Y_BOUNDS[name]).items():
                found = [
                    LinearRegression(epsilon=epsilon, **settings).fit(x[a], y[a]).score(x[b], y[b]) for a, b in pairs
                ]
                yield _held(name, epsilon, words, spread(found, "R²"))
        task = {"kind": "regression", "epsilons": EPSILONS, "runs": RUNS, "y_bounds": Y_BOUNDS[name]}
        peer = asked(task, x=x, y=y, low=low, high=high, train=train, test=test)
        for epsilon in EPSILONS:
            what = f"{name}: {PEER.label}, ε = {epsilon:g}"
            if isinstance(peer, str):
                yield Row(what=what, figures={}, remark=peer)
                continue
            own = [one["answer"] for one in peer if one["epsilon"] == epsilon]
            scores = [r2_score(y[b], guess) for b, guess in zip(test, own, strict=True)]
            yield Row(what=what, figures=spread(scores, "R²"), remark="δ = 0; the same ranges")


def _ours(low: Array, high: Array, y_bounds: tuple[float, float]) -> dict[str, dict[str, Any]]:
    public = {"bounds": (low, high), "y_bounds": y_bounds}
    return {
        f"δ = {DELTA:g}": {**public, "delta": DELTA},
        "δ = 0": public,
        f"δ = {DELTA:g}, all bounds bought": {"delta": DELTA},
    }


def _held(name: str, epsilon: float, words: str, found: dict[str, float]) -> Row:
    what = f"{name}: LinearRegression, ε = {epsilon:g}, {words}"
    least = TARGETS.get((name, epsilon)) if words == f"δ = {DELTA:g}" else None
    if least is None:
        return Row(what=what, figures=found)
    return Row(what=what, figures=found, target=f"R² ≥ {least}", holds=found["R²"] + 2 * found["± R²"] >= least)


BENCH = Bench(
    name="learn-regression",
    about="held-out R² at the same ranges, a fifth held out",
    run=_rows,
    steps=2 * (1 + len(EPSILONS) * 4),
    notes=(
        f"Means of {RUNS} splits with their standard errors (±). Ranges are public: from the tables' descriptions.",
        "Bicycles: columns 2 to 13 of 19, hires an hour the target. scikit-learn's figure is with an intercept.",
    ),
)
