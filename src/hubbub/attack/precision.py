"""The low bits of a noisy answer: doubles have gaps, and the gaps reveal the value before the noise.

A Laplace number made from 53 random bits takes few of the doubles near it, and an addition keeps as many of its low
bits as the larger number leaves. So an answer may be possible for one true value and impossible for its neighbour,
and then it is no secret any more. Exact noise on whole numbers has every whole number for both.

Ref: Mironov 2012 (least significant bits); Haney, Desfontaines, Hartman, Shrestha, Hay 2022 (precision).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import Array
from hubbub.attack.success_rate import against_guessing
from hubbub.errors import ParameterError

STEPS = 1 << 53
"""Doubles from a uniform generator are multiples of 1 / STEPS."""
SLACK, WIDEST = 6, 64
"""Neighbouring states that are tried too, for logarithms that are off in the last bit; and the most that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """The conversion of one of 2^53 states into Laplace noise of scale 1 by a program: public, as programs are."""

    name: str
    noise: Callable[[Array, float], Array]
    """From states and a scale to the noise, in the program's own arithmetic."""
    near: Callable[[float], float]
    """From noise of scale 1 back to about the state."""


def _center(states: Array, scale: float) -> Array:
    u = states.astype(np.float64) / STEPS - 0.5
    return np.asarray(-scale * np.sign(u) * np.log1p(-2 * np.abs(u)))


def _halves(states: Array, scale: float) -> Array:
    """With the logarithm of the C library, one number at a time: an array's may differ in the last bit."""
    uniform = states.astype(np.float64) / STEPS
    made = [
        -scale * math.log(2.0 - u - u) if u >= 0.5 else scale * math.log(u + u) if u > 0 else math.nan
        for u in uniform.tolist()
    ]
    return np.array(made)


def _near_centred(noise: float) -> float:
    return STEPS * (0.5 + math.copysign(math.expm1(-abs(noise)) / 2, noise))


def _near_halves(noise: float) -> float:
    return STEPS * (1 - math.exp(-noise) / 2 if noise >= 0 else math.exp(noise) / 2)


TEXTBOOK = Sampler(name="the textbook's formula", noise=_center, near=_near_centred)
NUMPY = Sampler(name="NumPy's Generator.laplace", noise=_halves, near=_near_halves)


def possible(answer: float, truth: float, *, scale: float, sampler: Sampler = TEXTBOOK) -> bool:
    """Return True if some state of the sampler turns this truth into exactly this answer."""
    noise = answer - truth
    if abs(noise) > 36 * scale:
        return False  # beyond the last state
    gap = 2 / STEPS * scale * math.exp(abs(noise) / scale)
    reach = math.ceil(max(math.ulp(answer), math.ulp(noise)) / gap) + SLACK
    if reach > WIDEST:
        return True
    middle = round(sampler.near(noise / scale))
    states = np.arange(max(0, middle - reach), min(STEPS, middle + reach + 1), dtype=np.int64)
    return bool(np.any(truth + sampler.noise(states, scale) == answer))


def whole(answer: float, truth: float) -> bool:
    """Return True if noise on all whole numbers turns this truth into this answer."""
    return (answer - truth).is_integer()


def floating_point(
    answers: Sequence[Sequence[float]], *, truths: tuple[float, float], target: str,
    reaches: Callable[[float, float], bool],
) -> AttackFinding:  # fmt: skip
    """Answers about two neighbouring tables, one list each: how many of them can be about one of the two alone?

    ``reaches`` says which answers the program can give at which truth: ``partial(possible, scale=…, sampler=…)`` for
    doubles, ``whole`` for noise on whole numbers.
    """

    def fits(answer: float) -> tuple[bool, bool]:
        return reaches(answer, float(truths[0])), reaches(answer, float(truths[1]))

    return _report(
        f"The low bits of {target}", answers, truths=truths, fits=fits,
        note="An answer is possible if some state of the program's generator leads to it.",
    )  # fmt: skip


def grain(answer: float) -> float:
    """The largest power of two of which the answer is a multiple: how fine its last bit is."""
    if answer == 0 or not math.isfinite(answer):
        return math.inf
    top, bottom = float(answer).as_integer_ratio()
    return float(top & -top) / bottom


def precision(answers: Sequence[Sequence[float]], *, truths: tuple[float, float], target: str) -> AttackFinding:
    """Nothing but how fine the last bit is: a sum of doubles is no finer than the finer of the two numbers added."""

    def fits(answer: float) -> tuple[bool, bool]:
        first, second = (
            truth == answer or grain(answer) >= min(math.ulp(answer - truth), grain(truth)) for truth in truths
        )
        return first, second

    return _report(
        f"The precision of {target}", answers, truths=truths, fits=fits,
        note="An answer is impossible where its last bit is finer than the last bits of what was added.",
    )  # fmt: skip


def _report(
    title: str, answers: Sequence[Sequence[float]], *, truths: tuple[float, float],
    fits: Callable[[float], tuple[bool, bool]], note: str,
) -> AttackFinding:  # fmt: skip
    if len(answers) != 2 or not all(len(side) for side in answers):
        raise ParameterError("answers", "two lists, of answers about each of two tables", answers)
    seen = np.zeros((2, 4), dtype=np.int64)
    for world, side in enumerate(answers):
        for answer in side:
            first, second = fits(float(answer))
            seen[world, (0 if first and second else 1 if first else 2 if second else 3)] += 1
    each = seen.sum(axis=1)
    right = float((seen[0, 1] + seen[1, 2]) / each.sum())
    wrong = float((seen[0, 2] + seen[1, 1]) / each.sum())
    decided = int(seen[:, 1:3].sum())
    rate = against_guessing(int(seen[0, 1] + seen[1, 2]), trials=decided, chance=0.5) if decided else None
    return AttackFinding(
        title=title,
        verdict=(
            f"{right:.1%} of the answers are possible for the true table alone, {wrong:.1%} for the other one alone: "
            f"{rate.verdict}."
            if rate is not None
            else "No answer is possible for one of the two tables alone: the low bits say nothing."
        ),
        works=rate is not None and rate.is_better,
        rate=rate,
        notes=(note, *(["Guesses are about answers that one table alone can give."] if rate is not None else [])),
        columns=("the truth", "possible for both", f"for {truths[0]:g} alone", f"for {truths[1]:g} alone", "neither"),
        rows=tuple(
            (f"{truth:g}", *(f"{count / total:.1%}" for count in row.tolist()))
            for truth, row, total in zip(truths, seen, each.tolist(), strict=True)
        ),
        numbers={"right": right, "wrong": wrong, "answers": int(each.sum())} | ({"p": rate.p_value} if rate else {}),
        draw=partial(_draw, seen / each[:, None], truths),
    )


def _draw(shares: Array, truths: tuple[float, float], axes: Any) -> None:
    names = ("both", f"{truths[0]:g} alone", f"{truths[1]:g} alone", "neither")
    colours = ("#595959", "#0072B2", "#D55E00", "#cccccc")
    left = np.zeros(2)
    for place, (name, colour) in enumerate(zip(names, colours, strict=True)):
        axes.barh([f"truth {truth:g}" for truth in truths], shares[:, place], left=left, color=colour, label=name)
        left = left + shares[:, place]
    axes.set_xlabel("share of answers that are possible for …")
    axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.15), frameon=False)
