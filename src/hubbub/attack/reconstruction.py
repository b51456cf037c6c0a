"""Rebuild a secret column from answers about subsets: too many answers that are too accurate leave no secret.

Ref: Dinur, Nissim 2003 (linear programming); Dwork, McSherry, Talwar 2007 and Dwork, Yekhanin 2008 (least squares).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import Array, MadeUp
from hubbub.attack.success_rate import against_guessing
from hubbub.errors import ParameterError

Answers = Callable[[Array], Array]
"""From questions, one row of 0 and 1 each that says who is meant, to the (noisy) number of those whose bit is 1."""
LEAST_SQUARES, LINEAR_PROGRAM = "least squares", "linear program"
METHODS = (LEAST_SQUARES, LINEAR_PROGRAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """The attacker's belief, before it is compared with the truth."""

    bits: Array
    seconds: float


def questions(people: int, *, count: int, seed: int = 0) -> Array:
    """Random subsets: everybody is in each of them with probability one half."""
    return MadeUp(seed, "questions").bits(count, people)


def by_least_squares(asked: Array, told: Array) -> Array:
    """The bits that miss the answers least, in the sum of squares: one linear system for everybody."""
    signs = 2.0 * asked - 1.0  # centred, so that the size of the subset does not drown who is in it
    people = asked.shape[1]
    total = float(np.linalg.lstsq(asked.sum(axis=1, keepdims=True).astype(float), told, rcond=None)[0][0]) * people
    right = 2.0 * np.asarray(told, dtype=float) - total
    gram = signs.T @ signs + np.eye(people)
    found = np.linalg.solve(gram, signs.T @ right)
    return (found > 0.5).astype(np.int8)


def by_linear_program(asked: Array, told: Array) -> Array:
    """Bits between 0 and 1 that miss the answers least, in the sum of absolute errors; rounded."""
    count, people = asked.shape
    body = hstack([csr_array(asked.astype(float)), eye_array(count), -eye_array(count)], format="csr")
    price = np.concatenate([np.zeros(people), np.ones(2 * count)])
    limits = [(0.0, 1.0)] * people + [(0.0, None)] * (2 * count)
    solved = linprog(price, A_eq=body, b_eq=np.asarray(told, dtype=float), bounds=limits, method="highs-ipm")
    if solved.x is None:
        return np.zeros(people, dtype=np.int8)
    return np.asarray(solved.x[:people] > 0.5).astype(np.int8)


def guess(asked: Array, told: Array, *, method: str = LEAST_SQUARES) -> Guess:
    """Run one of the attacks on answers that were given."""
    if method not in METHODS:
        raise ParameterError("method", f"one of {', '.join(METHODS)}", method)
    start = time.perf_counter()
    bits = by_least_squares(asked, told) if method == LEAST_SQUARES else by_linear_program(asked, told)
    return Guess(bits=bits, seconds=time.perf_counter() - start)


def reconstruction(
    secret: Any, answers: Answers, *, target: str, count: int | None = None, seed: int = 0,
    methods: tuple[str, ...] = (LEAST_SQUARES,),
) -> AttackFinding:  # fmt: skip
    """Ask for many random subsets, rebuild the column, and compare it with the truth that only the lab knows."""
    truth = np.asarray(secret, dtype=np.int8)
    asked = questions(len(truth), count=count or 4 * len(truth), seed=seed)
    told = np.asarray(answers(asked), dtype=float)
    rows, right = [], {}
    for method in methods:
        found = guess(asked, told, method=method)
        right[method] = int((found.bits == truth).sum())
        rows.append((method, f"{right[method] / len(truth):.1%}", f"{found.seconds:.1f} s"))
    base = max(float(truth.mean()), 1 - float(truth.mean()))
    rate = against_guessing(max(right.values()), trials=len(truth), chance=base, tries=len(methods))
    return AttackFinding(
        title=f"Reconstruction of {len(truth):,} secret bits from {target}",
        verdict=f"{rate.share:.1%} of the bits were found{rate.beside_chance}.",
        works=rate.is_better,
        rate=rate,
        notes=(f"{len(asked):,} random subsets were asked for. Chance is always naming the commoner bit.",),
        columns=("method", "bits found", "time"),
        rows=tuple(rows),
        numbers={"found": rate.share, "base": base, "p": rate.p_value, "people": len(truth), "questions": len(asked)},
        draw=partial(_draw, {method: many / len(truth) for method, many in right.items()}, base),
    )


def _draw(right: dict[str, float], base: float, axes: Any) -> None:
    axes.barh(list(right), list(right.values()), color="crimson")
    axes.axvline(base, color="black", linestyle="--", label="naming the commoner bit")
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of secret bits found")
    axes.legend(loc="lower right")


def exact(secret: Any) -> Answers:
    """A target without any protection."""
    truth = np.asarray(secret, dtype=np.int64)
    return lambda asked: asked.astype(np.int64) @ truth


def rounded(secret: Any, *, to: int) -> Answers:
    """A target that rounds its answers."""
    plain = exact(secret)
    return lambda asked: np.rint(plain(asked) / to) * to


def noised(secret: Any, *, size: float, seed: int = 1) -> Answers:
    """A target that adds noise up to ``size``: too little of it where the questions are many."""
    plain = exact(secret)

    def answer(asked: Array) -> Array:
        return np.asarray(plain(asked) + np.rint((2 * MadeUp(seed, "noise").uniform(len(asked)) - 1) * size))

    return answer
