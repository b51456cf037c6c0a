"""Adult by naive Bayes: over hand-set cells, over bought ones, and over numbers as diffprivlib's."""

import csv
import gzip
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB as Plain

from bench.adult import SIZES, adult, codes
from bench.data import shared
from bench.learn_peer import PEER, Array, asked, spread
from bench.record import Bench, Row
from hubbub.learn import CategoricalNB, GaussianNB

RUNS = 10
EPSILONS = (0.1, 1.0)
DELTA = 1e-6
FLOORS = {0.1: (0.88, 0.81), 1.0: (0.90, 0.83)}
NUMBERS = {0: (17.0, 90.0), 4: (1.0, 16.0), 10: (0.0, 99_999.0), 11: (0.0, 4_356.0), 12: (1.0, 99.0)}
"""Columns of the raw file that are numbers, with their public ranges (without the sampling weight)."""
LOW, HIGH = (np.array(side) for side in zip(*NUMBERS.values(), strict=True))


def coded(part: str) -> tuple[Array, Array]:
    """Codes of the hand-set cells of eleven columns; what is in none of them is missing."""
    hot, label = adult(part)
    return codes(hot), label


def numbers(part: str) -> Array:
    """The columns that are numbers, as they are."""
    with gzip.open(shared("adult", f"adult.{part}.gz"), "rt", newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    return np.array([[float(row[place]) for place in NUMBERS] for row in rows])


def figures(scores: Sequence[Array], truth: Array, seconds: Sequence[float]) -> dict[str, float]:
    """Means over runs with standard errors; scores above 0 say yes."""
    aucs = [float(roc_auc_score(truth, one)) for one in scores]
    right = [float(((one > 0) == truth).mean()) for one in scores]
    return {**spread(aucs, "AUC"), **spread(right, "accuracy"), "CPU s": float(np.mean(seconds))}


def _fits(make: Callable[[], Any], x: Array, y: Array, test: Array, truth: Array) -> dict[str, float]:
    scores, seconds = [], []
    for _ in range(RUNS):
        begun = time.process_time()
        model = make().fit(x, y)
        seconds.append(time.process_time() - begun)
        scores.append(model.decision_function(test))
    return figures(scores, truth, seconds)


def _rows() -> Iterator[Row]:
    (x, y), (test, truth) = coded("data"), coded("test")
    plain_x, plain_test = numbers("data"), numbers("test")
    # Numbers as they are in place of their hand-set cells, which are the first five columns.
    mixed_x, mixed_test = np.hstack([plain_x, x[:, 5:]]), np.hstack([plain_test, test[:, 5:]])
    bought: dict[str, Any] = {"categories": [None] * 5 + list(SIZES[5:])}
    ends = tuple(np.append(side, [one] * 6) for side, one in ((LOW, 0.0), (HIGH, 1.0)))
    for epsilon in EPSILONS:
        declared: dict[str, Any] = {"epsilon": epsilon, "classes": [False, True]}
        cells = partial(CategoricalNB, categories=list(SIZES), **declared)
        kinds: dict[str, Callable[[], Any]] = {
            f"δ = {DELTA:g}": partial(cells, delta=DELTA),
            "δ = 0": cells,
            f"δ = {DELTA:g}, naive weights": partial(cells, delta=DELTA, weighted=False),
        }
        for words, make in kinds.items():
            found = _fits(make, x, y, test, truth)
            auc, right = FLOORS[epsilon]
            holds = found["AUC"] + 2 * found["± AUC"] >= auc and found["accuracy"] + 2 * found["± accuracy"] >= right
            first = words == f"δ = {DELTA:g}"
            yield Row(
                what=f"CategoricalNB, ε = {epsilon:g}, {words}", figures=found,
                target=f"AUC ≥ {auc}, accuracy ≥ {right}" if first else "", holds=holds if first else None,
            )  # fmt: skip
        made = partial(CategoricalNB, delta=DELTA, bounds=ends, **bought, **declared)
        found = _fits(made, mixed_x, y, mixed_test, truth)
        yield Row(what=f"CategoricalNB, ε = {epsilon:g}, cells of numbers bought", figures=found)
        made = partial(CategoricalNB, epsilon=epsilon, delta=DELTA, **bought)
        every = _fits(made, mixed_x, y, mixed_test, truth)
        yield Row(what=f"CategoricalNB, ε = {epsilon:g}, cells, bounds and classes bought", figures=every)
    yield from _gaussian(plain_x, y, plain_test, truth)


def _gaussian(x: Array, y: Array, test: Array, truth: Array) -> Iterator[Row]:
    """Numbers alone, in their public ranges."""
    plain = Plain().fit(x, y).predict_log_proba(test)
    yield Row(
        what="GaussianNB of scikit-learn, no privacy", figures=figures([plain[:, 1] - plain[:, 0]] * 2, truth, [0.0])
    )
    peer = asked({"kind": "bayes", "epsilons": EPSILONS, "runs": RUNS}, x=x, y=y, test=test, low=LOW, high=HIGH)
    for epsilon in EPSILONS:
        beside: dict[str, float] = {}
        if not isinstance(peer, str):
            own = [one for one in peer if one["epsilon"] == epsilon]
            both = [np.nan_to_num(np.array(one["answer"]), neginf=-1e9, posinf=1e9) for one in own]
            beside = figures([one[:, 1] - one[:, 0] for one in both], truth, [one["seconds"] for one in own])
        yield Row(
            what=f"GaussianNB of {PEER.label}, ε = {epsilon:g}", figures=beside,
            remark=peer if isinstance(peer, str) else "δ = 0; the same ranges",
        )  # fmt: skip
        for delta in (DELTA, 0.0):
            made = partial(GaussianNB, epsilon=epsilon, delta=delta, bounds=(LOW, HIGH), classes=[False, True])
            found = _fits(made, x, y, test, truth)
            better = None
            if beside:
                better = all(
                    found[name] + 2 * (found[f"± {name}"] + beside[f"± {name}"]) >= beside[name]
                    for name in ("AUC", "accuracy")
                )
            yield Row(
                what=f"GaussianNB, ε = {epsilon:g}, δ = {delta:g}", figures=found, target="no less than diffprivlib's",
                holds=better,
            )  # fmt: skip


BENCH = Bench(
    name="learn-bayes",
    about="income above 50,000 in the Adult extract: 32,561 rows to learn from, 16,281 to test on",
    run=_rows,
    steps=len(EPSILONS) * 8 + 1,
    notes=(
        f"Means of {RUNS} fits with their standard errors (±).",
        "Cells were set by hand (bench/adult.py) where they are not bought; GaussianNB sees five columns of numbers.",
        "Which of three sets of cells was chosen on a fifth of the training file; the test file chose nothing.",
    ),
)
