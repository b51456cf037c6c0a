"""Everybody, and everybody but one: questions that differ by a single condition, found in a log without any data.

Where the condition leaves out one name, the difference of the two answers is a fact about that person.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.gateway.predicates import Condition, condition
from hubbub.attack.made_up import MadeUp
from hubbub.attack.success_rate import against_guessing
from hubbub.errors import HubbubError

FEW = 3


def narrow_pairs(
    log: Sequence[str], *, people: float, values: Mapping[str, float]
) -> list[tuple[str, str, str, float]]:
    """Without any table: pairs of questions that differ by one condition, and how many people that is about.

    ``values`` says how many values a column has; a condition ``column <> value`` leaves out ``people / values`` people,
    and what else the question asks is taken to be independent. Gives wider, narrower, the condition, people.
    """
    read: list[Condition] = []
    for line in log:
        try:
            read.append(condition(line))
        except HubbubError:
            continue
    found = []
    for wide, narrow in permutations(read, 2):
        extra = narrow.parts() - wide.parts()
        if not wide.parts() <= narrow.parts() or len(extra) != 1:
            continue
        (part,) = extra
        about = people * _keep(wide, values)
        left_out = about * (1 - _share(part, values))
        found.append((wide.text, narrow.text, part, min(left_out, about - left_out)))
    return sorted(found, key=lambda one: one[3])


def _keep(asked: Condition, values: Mapping[str, float]) -> float:
    return float(np.prod([_share(part, values) for part in asked.parts()]))


def exclusion(log: Sequence[str], *, people: float, values: Mapping[str, float], few: float = FEW) -> AttackFinding:
    """Warn of pairs of questions in a log, from what is known about the columns alone."""
    found = narrow_pairs(log, people=people, values=values)
    narrow = [one for one in found if one[3] <= few * (1 + 1e-9)]
    return AttackFinding(
        title=f"Pairs in a log of {len(log)} questions that differ by one condition",
        verdict=f"{len(narrow)} pairs are, on average, about at most {few:g} people."
        if narrow
        else f"No pair that differs by one condition is, on average, about at most {few:g} people.",
        works=bool(narrow),
        notes=("Estimated from the numbers of values that columns have; a table says exactly.",),
        columns=("asked", "asked, too", "differ by", "people"),
        rows=tuple((wide, tight, part, f"{about:.3g}") for wide, tight, part, about in found),
        numbers={"questions": len(log), "pairs": len(found), "narrow": len(narrow)},
    )


def _share(part: str, values: Mapping[str, float]) -> float:
    """Of the people for whom a condition holds: known for = and <>, else a half."""
    if part.startswith("NOT "):
        return 1 - _share(part[4:], values)
    for sign, equal in (("<>", False), ("!=", False), ("=", True)):
        column, found, _ = part.partition(f" {sign} ")
        if found and column.strip('" ') in values:
            one = 1 / values[column.strip('" ')]
            return one if equal else 1 - one
    return 0.5


Count = Callable[[str], float]
"""From a condition (what stands after WHERE) to a number of people, exact or not."""


def district(*, people: int = 200, seed: int = 0) -> list[dict[str, Any]]:
    """Made-up pupils: a name that nobody else has, and whether they have an A."""
    marks = MadeUp(seed, "district").bits(people)
    return [{"id": place, "name": f"pupil {place}", "a": int(mark)} for place, mark in enumerate(marks)]


def count_exactly(table: Sequence[Mapping[str, Any]]) -> Count:
    """A target that answers exactly."""
    return lambda text: float(len(condition(text).rows(table)))


def not_named(table: Sequence[Mapping[str, Any]], count: Count, *, victims: int, target: str) -> AttackFinding:
    """Ask for everybody with an A, and then for all of them but one pupil: who is missed in the count has one."""
    chosen = table[:victims]
    everybody = count("a = 1")
    gaps = [everybody - count(f"a = 1 AND name <> '{one['name']}'") for one in chosen]
    right = sum((gap > 0.5) == bool(one["a"]) for gap, one in zip(gaps, chosen, strict=True))
    truths = float(np.mean([one["a"] for one in chosen]))
    rate = against_guessing(right, trials=len(chosen), chance=max(truths, 1 - truths))
    return AttackFinding(
        title=f"Everybody, and everybody but one: {target}",
        verdict=f"{rate.share:.1%} of {len(chosen)} marks were found{rate.beside_chance}.",
        works=rate.is_better,
        rate=rate,
        notes=(f"{len(chosen) + 1} questions were asked. Chance is always naming the commoner mark.",),
        columns=("pupil", "difference", "has an A"),
        rows=tuple((str(one["name"]), f"{gap:g}", str(one["a"])) for one, gap in zip(chosen[:8], gaps, strict=False)),
        numbers={
            "found": rate.share,
            "base": rate.chance,
            "p": rate.p_value,
            "people": len(chosen),
            "questions": len(chosen) + 1,
        },
        draw=partial(_draw_gaps, gaps, [int(one["a"]) for one in chosen]),
    )


def _draw_gaps(gaps: list[float], marks: list[int], axes: Any) -> None:
    for mark, colour in ((0, "steelblue"), (1, "crimson")):
        chosen = [gap for gap, one in zip(gaps, marks, strict=True) if one == mark]
        axes.plot(chosen, [mark] * len(chosen), "|", color=colour, markersize=18)
    axes.set_yticks([0, 1], ["no A", "an A"])
    axes.set_ylim(-0.7, 1.7)
    axes.set_xlabel("first answer less second answer")
