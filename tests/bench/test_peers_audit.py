"""Audits of peers judge what they were given: false alarms at 1e-6, as everywhere."""

import math
from typing import Any

import numpy as np

from bench.peers import audited
from bench.peers.venvs import PEERS
from bench.peers_audit import _failures, _lowest_bit, _row, judged


def found(x: list[Any], y: list[Any], *, epsilon: float = 1.0, delta: float = 0.0) -> dict[str, Any]:
    about = {"function": "count", "about": "a row more", "relation": audited.ADD, "remark": ""}
    return about | {"epsilon": epsilon, "delta": delta, "x": x, "y": y}


def laplace(middle: float, scale: float, seed: int) -> list[float]:
    """On a grid, so that the lowest bit tells nothing."""
    noise = np.random.default_rng(seed).laplace(0, scale, 4_000)
    return [float(np.round((middle + one) * 1024) / 1024) for one in noise]


def test_the_place_of_the_lowest_bit() -> None:
    assert [_lowest_bit(one) for one in (1.0, 6.0, 0.75, 2.0**-60)] == [0, 1, -2, -60]
    assert [_lowest_bit(one) for one in (0.0, math.nan, math.inf, 3, "x", [1.0, 2.0])] == [None] * 6
    assert _lowest_bit([[0.5]]) == _lowest_bit({"a": 0.5}) == -1


def test_honest_draws_are_left_alone_and_others_are_not() -> None:
    honest = _row(PEERS[0], found(laplace(0, 1, 1), laplace(1, 1, 2)))
    assert honest.figures["accused"] == 0.0
    assert honest.remark.startswith("Nothing found.")
    broken = _row(PEERS[0], found(laplace(0, 0.4, 3), laplace(1, 0.4, 4)))
    assert broken.figures["accused"] == 1.0
    assert broken.figures["proven ε"] > 1.0
    assert "Found: <Finding" in broken.remark


def test_a_float_that_is_finer_near_zero_is_told_apart() -> None:
    rng = np.random.default_rng(5)
    noise = rng.laplace(0, 1, 8_000)
    report = judged(found(noise[:4_000].tolist(), (1 + noise[4_000:]).tolist()), subject="floats")
    assert report.accused
    assert "the place of the lowest bit ≤" in str(report)


def test_a_claim_with_delta_is_tested_at_its_epsilon() -> None:
    shown = [1] * 300 + [0] * 700
    row = _row(PEERS[0], found([0] * 1_000, shown * 1, delta=0.1))
    assert "proven δ" in row.figures
    assert row.figures["claimed δ"] == 0.1


def test_errors_and_warnings_are_answers() -> None:
    import warnings

    def ask(rows: list[int]) -> float:
        if not rows:
            raise ValueError("no rows")
        warnings.warn("bounds from the data", RuntimeWarning, stacklevel=1)
        return float(len(rows))

    case = audited.Case(function="f", about="one row or none", ask=ask, x=[], y=[1], draws=200)
    on_x, on_y = audited.drawn(case, 60.0)
    assert on_x == [{"raised": "ValueError", "message": "no rows"}] * 200
    assert on_y == [{"answer": 1.0, "warned": ["RuntimeWarning"]}] * 200
    drawn = found(on_x, on_y)
    assert judged(drawn, subject="f").accused
    assert _failures(drawn) == "On x it raised ValueError. On y it warned: RuntimeWarning."


def test_a_child_answers_for_itself() -> None:
    assert audited.in_a_child(lambda value: [value, np.float64(0.5)], 3) == [3, 0.5]
