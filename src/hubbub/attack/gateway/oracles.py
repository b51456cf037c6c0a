"""Side doors of a SQL gateway: not what it answers, but whether it fails, and how long it takes.

A gateway that adds noise to its answers and runs any expression on every row can be made to fail, or to work hard,
exactly where one person's row has one value. The noise protects the number; the error and the clock tell the bit.

Ref: Haeberlen, Pierce, Narayan 2011 (state, budget and timing channels).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import Array, MadeUp
from hubbub.attack.success_rate import against_guessing
from hubbub.errors import ParameterError

Ask = Callable[[str], Any]
"""Asks one question; raises where the gateway fails or refuses."""

_COUNT, _IF = "SELECT count(*) AS n FROM {table} WHERE ", "CASE WHEN {person} AND {secret} THEN "
FAILING = {
    "a cast": _COUNT + "CAST(" + _IF + "'x' ELSE '1' END AS INTEGER) = 1",
    "an overflow": _COUNT + _IF + "9223372036854775807 ELSE 1 END * length(name) > 0",
    "a division by zero": _COUNT + "1 / " + _IF + "0 ELSE 1 END = 1",
    "a root of −1": _COUNT + "sqrt(" + _IF + "-1 ELSE 1 END) = 1",
    "a raised error": _COUNT + _IF + "error('x') ELSE '1' END = '1'",
}
"""Questions that fail for one person with the secret, if anything on a row can make a question fail."""

SLOW = _COUNT + _IF + "length(md5(repeat(name, 2000000))) ELSE 1 END > -{turn}"
"""A question that works hard for one person with the secret; each turn asks it anew, lest it be remembered."""
HARD_MATCH = _COUNT + _IF + "name LIKE '%p%e%r%s%o%n%x%y%z%' ELSE name LIKE 'a' END AND code > -{turn}"
"""The same with nothing but a pattern, for gateways that know few functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspects:
    """The people whose bit is read, as conditions of SQL; the truth is known to the lab alone."""

    table: str
    persons: tuple[str, ...]
    """One condition each, such as ``id = 7``."""
    secret: str
    """The condition to be learned, such as ``ill = 1``."""
    truth: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.persons) != len(self.truth) or len(set(self.truth)) < 2:
            raise ParameterError("truth", "one bit for each person, of both kinds", self.truth)

    def questions(self, template: str, *, turn: int = 1) -> list[str]:
        """The question about each of them."""
        return [template.format(table=self.table, person=one, secret=self.secret, turn=turn) for one in self.persons]


def error_oracle(ask: Ask, suspects: Suspects, *, target: str, ways: dict[str, str] | None = None) -> AttackFinding:
    """One question about each person and way to fail: what fails is read as yes."""
    truth = np.array(suspects.truth)
    rows, best = [], 0
    base, tried = float(max(truth.mean(), 1 - truth.mean())), ways or FAILING
    for name, template in tried.items():
        failed = np.array([_fails(ask, one) for one in suspects.questions(template)])
        right = int((failed == truth).sum())
        told = "both" if len(set(failed.tolist())) > 1 else "always" if failed[0] else "never"
        rows.append((name, told, f"{right / len(truth):.0%}" if told == "both" else "nothing"))
        best = max(best, right if told == "both" else round(base * len(truth)))  # else the commoner bit is named
    rate = against_guessing(best, trials=len(truth), chance=base, tries=len(tried))
    tells = any(fails == "both" for _, fails, _ in rows)
    return AttackFinding(
        title=f"Errors of {target}",
        verdict=(
            f"Whether a question fails tells the bit of {rate.share:.0%} of {len(truth)} people{rate.beside_chance}."
            if tells
            else "Whether a question fails is the same for everybody: it tells nothing."
        ),
        works=tells and rate.is_better,
        rate=rate if tells else None,
        notes=(
            "Each question would fail for one person, and only if the secret is true of them.",
            "Chance is always naming the commoner bit.",
        ),
        columns=("made to fail by", "fails", "bits read"),
        rows=tuple(rows),
        numbers={"read": rate.share, "base": base, "p": rate.p_value, "people": len(truth)},
    )


def _fails(ask: Ask, question: str) -> bool:
    try:
        ask(question)
    except Exception:  # whatever an outsider sees as a failure
        return True
    return False


def timing_oracle(
    ask: Ask, suspects: Suspects, *, target: str, repeats: int = 5, template: str = SLOW,
    clock: Callable[[], float] = time.perf_counter,
) -> AttackFinding:  # fmt: skip
    """The same question about each person, in turns and several times: the slower half-way is read as yes."""
    if repeats < 1:
        raise ParameterError("repeats", "1 or more", repeats)
    truth = np.array(suspects.truth)
    taken = np.zeros((repeats, len(truth)))
    refused = 0
    for turn in range(repeats):
        for place, question in enumerate(suspects.questions(template, turn=turn + 1)):
            start = clock()
            refused += _fails(ask, question)
            taken[turn, place] = clock() - start
    typical = np.median(taken, axis=0)
    guess = typical > _between(typical)
    base = float(max(truth.mean(), 1 - truth.mean()))
    rate = against_guessing(int((guess == truth).sum()), trials=len(truth), chance=base)
    order = _area(typical[truth], typical[~truth])
    return AttackFinding(
        title=f"How long {target} takes",
        verdict=(
            f"The clock, asked {repeats} times each, tells the bit of {rate.share:.0%} of {len(truth)} people"
            f"{rate.beside_chance}."
        ),
        works=rate.is_better,
        rate=rate,
        notes=(
            f"{refused} of {taken.size} questions were refused or failed. Chance is always naming the commoner bit.",
        ),
        columns=("the secret is", "median", "fastest", "slowest"),
        rows=tuple(
            (name, *(f"{1000 * value:.2f} ms" for value in (np.median(side), side.min(), side.max())))
            for name, side in (("false", typical[~truth]), ("true", typical[truth]))
        ),
        numbers={
            "read": rate.share,
            "base": base,
            "p": rate.p_value,
            "order": order,
            "refused": refused / taken.size,
            "people": len(truth),
        },
        draw=partial(_draw, typical, truth),
    )


def _between(typical: Array) -> float:
    """The middle of the widest gap: two kinds of times lie on its two sides, if there are two kinds."""
    ranked = np.sort(typical)
    place = int(np.argmax(np.diff(ranked)))
    return float(ranked[place] + ranked[place + 1]) / 2


def _area(slow: Array, fast: Array) -> float:
    """Return the probability that a person with the property takes longer than one without: one
    half where nothing leaks.
    """
    above = (slow[:, None] > fast).mean() + (slow[:, None] == fast).mean() / 2
    return float(above)


def _draw(typical: Array, truth: Array, axes: Any) -> None:
    for side, name, colour in ((~truth, "false", "#0072B2"), (truth, "true", "#D55E00")):
        axes.plot(np.flatnonzero(side), 1000 * typical[side], "o", color=colour, label=f"the secret is {name}")
    axes.set_xlabel("person")
    axes.set_ylabel("median time in ms")
    axes.legend()


def suspects(*, people: int, seed: int = 0) -> Suspects:
    """Made-up people of the table ``people``, who have a code, a name, and are ill or not."""
    truth = MadeUp(seed, "suspects").bits(people)
    truth[:2] = 0, 1
    return Suspects(
        table="people",
        persons=tuple(f"code = {place}" for place in range(people)),
        secret="ill = 1",
        truth=tuple(bool(bit) for bit in truth),
    )
