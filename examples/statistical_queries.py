"""Learners that never see a row: the perceptron and statistical active learning, on an oracle of noisy means.

Run it as a file. A hospital has 20,000 patients in the unit disc, and wants to tell who has condition X: those on one
side of a line. First the perceptron asks where the patients on its wrong side are, on average. Then a second learner is
told, round by round, only about patients near its line, of whom few labels are needed (Balcan, Feldman 2013): it asks
for the mean of label·direction inside a band around the line, which shrinks by half.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PEOPLE = 20_000
ROUNDS = 8
EPSILON, DELTA = 1.0, 1e-6


def patients(people: int = PEOPLE) -> tuple[Any, Any, Any]:
    """Points in the unit disc, their condition, and the line that decides it."""
    rng = np.random.default_rng(7)
    radius, angle = np.sqrt(rng.random(people)), rng.random(people) * 2 * math.pi
    points = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    truth = np.array([0.6, 0.8])
    return points, np.where(points @ truth > 0, 1, -1), truth


def perceptron(oracle: Any, rounds: int = ROUNDS) -> Any:
    """Add the mean of label·row over the rows on the wrong side, as often as was paid for."""
    line = np.zeros(2)
    for _ in range(rounds):

        def wrong_side(row: Any, label: int, line: Any = line) -> Any:
            return label * row if label * (row @ line) <= 0 else 0 * row

        line = line + oracle.ask(wrong_side, width=2).value
    return line / max(float(np.linalg.norm(line)), 1e-9)


def active(oracle: Any, rounds: int = ROUNDS) -> Any:
    """Turn the line by what labels say within a band around it, of half the width each time."""
    line = oracle.ask(lambda row, label: label * row, width=2).value
    line = line / max(float(np.linalg.norm(line)), 1e-9)
    band = 0.5
    for _ in range(rounds - 1):
        across = np.array([-line[1], line[0]])

        def near(row: Any, label: int, line: Any = line, across: Any = across, band: float = band) -> float:
            return float(label * np.sign(row @ across)) if abs(row @ line) <= band else 0.0

        def inside(row: Any, label: int, line: Any = line, band: float = band) -> float:
            return float(abs(row @ line) <= band)

        # Inside a band of half-width b, a line that is off by an angle t leans by about t/b times the mean distance
        # along the line, which is below 1: b times what was asked turns towards the truth and not beyond it.
        leaning, share = float(oracle.ask(near)), float(oracle.ask(inside))
        turn = leaning / max(share, 0.01) * band
        line = line + turn * across
        line, band = line / np.linalg.norm(line), max(band / 2, 0.06)
    return line


def main() -> None:
    """Both learners, at the same price, and how far off their lines are."""
    from hubbub.learn import StatisticalQueryOracle

    points, labels, truth = patients()
    for name, learn, questions in (("perceptron", perceptron, ROUNDS), ("active learning", active, 2 * ROUNDS - 1)):
        oracle = StatisticalQueryOracle(points, labels, epsilon=EPSILON, delta=DELTA, questions=questions)
        line = learn(oracle)
        angle = math.degrees(math.acos(float(np.clip(line @ truth, -1, 1))))
        right = float((np.where(points @ line > 0, 1, -1) == labels).mean())
        print(f"{name}: {questions} questions, {angle:.2f}° off, {right:.1%} right (ε = {EPSILON:g}, δ = {DELTA:g})")


if __name__ == "__main__":
    main()
