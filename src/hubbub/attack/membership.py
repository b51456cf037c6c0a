"""Was this person among them? Tracing from published means, and from a model that knows its own examples too well.

An attacker knows a person's attributes and what strangers look like. He computes one score for the person and says
"in" where it is above what all but one in a hundred strangers reach. Under ε-differential privacy nobody can be right
about members more than e^ε times as often as he is wrong about strangers, whatever the score.

Ref: Homer et al. 2008; Sankararaman, Obozinski, Jordan, Halperin 2009 (likelihood ratio); Dwork, Smith, Steinke,
Ullman, Vadhan 2015 (inner product, robust); Yeom, Giacomelli, Fredrikson, Jha 2018 (loss threshold).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import Array, MadeUp
from hubbub.attack.success_rate import against_strangers
from hubbub.errors import ParameterError

INNER_PRODUCT, LIKELIHOOD_RATIO = "inner product", "likelihood ratio"
STATISTICS = (INNER_PRODUCT, LIKELIHOOD_RATIO)
WRONG = 0.01
"""The share of strangers that an attacker may accuse."""

Loss = Callable[[Array, Array], Array]
"""From rows and their labels to how badly a model does on each of them."""


def population(*, people: int, strangers: int, attributes: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Made-up people of one population: those in the data, those who are not, and the public shares of attributes."""
    shares = 0.05 + 0.9 * MadeUp(seed, "shares").uniform(attributes)
    drawn = MadeUp(seed, "people").uniform((people + strangers) * attributes).reshape(-1, attributes) < shares
    return drawn[:people].astype(np.int8), drawn[people:].astype(np.int8), shares


def examples(*, people: int, strangers: int, columns: int, seed: int = 0) -> tuple[tuple[Array, Array], ...]:
    """Made-up rows between −1 and 1 with signs, a third of which say the opposite: those learned from, and others."""
    rows = 2 * MadeUp(seed, "rows").uniform((people + strangers) * columns).reshape(-1, columns) - 1
    leaning = rows @ np.linspace(1, 0, columns)
    signs = np.where((leaning > 0) == (MadeUp(seed, "turned").uniform(len(rows)) > 1 / 3), 1, -1)
    return (rows[:people], signs[:people]), (rows[people:], signs[people:])


def scores(rows: Array, published: Array, shares: Array, *, statistic: str = INNER_PRODUCT) -> Array:
    """Score each row by how far it leans to where the published means lean away from the population."""
    if statistic not in STATISTICS:
        raise ParameterError("statistic", f"one of {', '.join(STATISTICS)}", statistic)
    means, known = np.asarray(published, dtype=float), np.asarray(shares, dtype=float)
    if statistic == INNER_PRODUCT:
        return np.asarray((rows - known) @ np.clip(means - known, -1, 1))
    kept = np.clip(means, 0.001, 0.999)  # a mean of 0 or 1 would decide alone, noise beyond them is no mean
    return np.asarray(rows @ np.log(kept / known) + (1 - rows) @ np.log((1 - kept) / (1 - known)))


def tracing(
    members: Any, strangers: Any, published: Any, *, shares: Any, target: str, wrong: float = WRONG,
) -> AttackFinding:  # fmt: skip
    """Recognise people in published means of many attributes, by both statistics."""
    inside, outside = np.asarray(members), np.asarray(strangers)
    seen = {
        one: (scores(inside, published, shares, statistic=one), scores(outside, published, shares, statistic=one))
        for one in STATISTICS
    }
    title = f"Tracing {len(inside):,} people through {inside.shape[1]:,} {target}"
    return _judge(title, seen, wrong=wrong)


def against_model(
    loss: Loss, members: tuple[Any, Any], strangers: tuple[Any, Any], *, target: str, wrong: float = WRONG
) -> AttackFinding:
    """Recognise the examples of a model by its loss: what it was fitted to, it does well on."""
    inside, outside = (-np.asarray(loss(np.asarray(x), np.asarray(y)), dtype=float) for x, y in (members, strangers))
    return _judge(f"Who were the {len(inside):,} examples of {target}?", {"small loss": (inside, outside)}, wrong=wrong)


def recognise(inside: Array, outside: Array, *, wrong: float = WRONG) -> tuple[float, float]:
    """The share of members above a bar that at most ``wrong`` of the strangers are above, and that share."""
    bar = np.sort(np.asarray(outside, dtype=float))[::-1][_rank(len(outside), wrong) - 1]
    return float((inside > bar).mean()), float((outside > bar).mean())


def _rank(strangers: int, wrong: float) -> int:
    """The stranger whose score is the bar, counted from the highest."""
    if not 0 < wrong < 1:
        raise ParameterError("wrong", "a share between 0 and 1", wrong)
    return int(np.floor(wrong * strangers)) + 1


def advantage(inside: Array, outside: Array) -> float:
    """Return the largest excess of members recognised over strangers mistaken for members, over all thresholds."""
    bars = np.concatenate([inside, outside])
    above = [1 - np.searchsorted(np.sort(side), bars, side="right") / len(side) for side in (inside, outside)]
    return float(max(0.0, (above[0] - above[1]).max()))


def _judge(title: str, seen: dict[str, tuple[Array, Array]], *, wrong: float) -> AttackFinding:
    rows, power, lead = [], {}, {}
    for name, (inside, outside) in seen.items():
        power[name], accused = recognise(inside, outside, wrong=wrong)
        lead[name] = advantage(inside, outside)
        rows.append((name, f"{power[name]:.1%}", f"{accused:.1%}", f"{lead[name]:.2f}"))
    best = max(power, key=lambda name: power[name])
    members, strangers = map(len, seen[best])
    rate = against_strangers(
        round(power[best] * members), members=members, strangers=strangers, rank=_rank(strangers, wrong),
        tries=len(seen),
    )  # fmt: skip
    return AttackFinding(
        title=title,
        verdict=f"{power[best]:.1%} of the members are recognised where {wrong:.0%} of strangers are accused"
        f"{rate.beside_chance}.",
        works=rate.is_better,
        rate=rate,
        columns=("score", "members recognised", "strangers accused", "best lead"),
        rows=tuple(rows),
        numbers={"power": power[best], "wrong": wrong, "lead": max(lead.values()), "p": rate.p_value},
        draw=partial(_draw, *seen[best]),
    )


def _draw(inside: Array, outside: Array, axes: Any) -> None:
    both = np.concatenate([inside, outside])
    low, high = np.quantile(both, [0.001, 0.999])
    bins = np.linspace(low, high if high > low else low + 1, 50)
    for values, colour, name in ((outside, "#56B4E9", "strangers"), (inside, "#D55E00", "members")):
        axes.hist(np.clip(values, bins[0], bins[-1]), bins=bins, density=True, alpha=0.7, color=colour, label=name)
    axes.set_xlabel("score")
    axes.set_ylabel("density")
    axes.legend()
