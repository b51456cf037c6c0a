"""The one person with green hair: a model's weight on what only one person has tells that person's label.

A hospital learns who has condition X and publishes the weights. One person in town has green hair. Nobody else moves
the weight of "has green hair", so its sign is that person's diagnosis. The weight is 0 only if the model never erred
about them.

Ref: the lecture of Balcan and Vitercik on learning and privacy.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import Array, MadeUp
from hubbub.attack.success_rate import against_guessing
from hubbub.errors import ParameterError

Learner = Callable[[Array, Array], Array]
"""From rows and their signs (−1 or 1) to one weight for each column."""


def town(*, people: int, features: int = 3, seed: int = 0) -> tuple[Array, Array]:
    """Rows and signs; the last column is the hair, which is green for the first person alone."""
    rows = 2 * MadeUp(seed, "town").uniform(people * features).reshape(people, features) - 1
    leaning = rows @ np.linspace(1, 0.3, features) + 0.3 * MadeUp(seed, "luck").normal(people)
    hair = np.zeros((people, 1))
    hair[0] = 1
    return np.hstack([rows, hair]), np.where(leaning > 0, 1, -1)


def perceptron(rows: Array, signs: Array, *, rounds: int = 10) -> Array:
    """Rosenblatt's, without protection: each mistake adds its row."""
    weights = np.zeros(rows.shape[1])
    for _ in range(rounds):
        for row, sign in zip(rows, signs, strict=True):
            if sign * float(row @ weights) <= 0:
                weights = weights + sign * row
    return weights


def green_hair(
    learn: Learner, rows: Any, signs: Any, *, target: str, person: int = 0, column: int = -1, repeats: int = 1
) -> AttackFinding:
    """Learn from the town with the person ill and with them well, again and again, and read one weight each time."""
    people, given = np.asarray(rows, dtype=float), np.asarray(signs)
    others = np.delete(people[:, column], person)
    if np.any(others != 0) or people[person, column] == 0:
        raise ParameterError("column", "one that is 0 for everybody but this person", column)
    if repeats < 1:
        raise ParameterError("repeats", "1 or more", repeats)
    weights = np.zeros((2, repeats))
    for world, sign in enumerate((-1, 1)):
        told = given.copy()
        told[person] = sign
        for run in range(repeats):
            weights[world, run] = float(np.asarray(learn(people, told))[column]) * np.sign(people[person, column])
    right = float(np.mean([(weights[0] < 0) + (weights[0] == 0) / 2, (weights[1] > 0) + (weights[1] == 0) / 2]))
    read_right = int((weights[0] < 0).sum() + (weights[1] > 0).sum())  # a weight of 0 says nothing: not right
    rate = against_guessing(read_right, trials=2 * repeats, chance=0.5)
    return AttackFinding(
        title=f"The weight of green hair in {target}",
        verdict=(
            f"The sign of one weight tells the diagnosis of the one person with green hair in {rate.share:.1%} of "
            f"{2 * repeats:,} runs{rate.beside_chance}."
        ),
        works=rate.is_better,
        rate=rate,
        columns=("the person is", "mean weight of green hair", "spread", "read as ill"),
        rows=tuple(
            (
                name,
                f"{weights[world].mean():+.3f}",
                f"{weights[world].std():.3f}",
                f"{float(((weights[world] > 0) + (weights[world] == 0) / 2).mean()):.1%}",
            )
            for world, name in enumerate(("well", "ill"))
        ),
        numbers={"right": right, "p": rate.p_value, "runs": 2 * repeats},
        draw=partial(_draw, weights),
    )


def _draw(weights: Array, axes: Any) -> None:
    for world, (name, colour) in enumerate((("well", "#0072B2"), ("ill", "#D55E00"))):
        places = world + np.linspace(-0.2, 0.2, weights.shape[1]) if weights.shape[1] > 1 else [world]
        axes.plot(places, weights[world], "o", color=colour, markersize=4, alpha=0.6, label=name)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks([0, 1], ["well", "ill"])
    axes.set_xlabel("what the person with green hair is")
    axes.set_ylabel("weight of green hair")
