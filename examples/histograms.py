"""Two publications as pictures: ages of 20,000 made-up people, and where they live, each paid once with ε = 0.1."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.pictures import OUT, blank, close
from hubbub import publish
from hubbub.report import plot_published

PEOPLE = 20_000
OLDEST, SIDE = 100, 32
EPSILON = 0.1


def ages(chance: np.random.Generator) -> np.ndarray[Any, Any]:
    """How many people are of each age: children and parents."""
    young, old = chance.normal(12, 8, PEOPLE // 3), chance.normal(44, 15, PEOPLE - PEOPLE // 3)
    drawn = np.abs(np.concatenate([young, old])).astype(np.int64)
    return np.bincount(np.minimum(drawn, OLDEST - 1), minlength=OLDEST)


def homes(chance: np.random.Generator) -> np.ndarray[Any, Any]:
    """How many live in each square of a map: two towns and a road between them."""
    towns = [chance.normal((8, 9), 2.5, (PEOPLE // 2, 2)), chance.normal((21, 22), 4, (PEOPLE // 3, 2))]
    along = chance.random(PEOPLE - PEOPLE // 2 - PEOPLE // 3)[:, None]
    road = np.array((8.0, 9.0)) + along * np.array((13.0, 13.0)) + chance.normal(0, 0.8, (len(along), 2))
    places = np.clip(np.concatenate([*towns, road]), 0, SIDE - 1).astype(np.int64)
    counts = np.zeros((SIDE, SIDE), dtype=np.int64)
    np.add.at(counts, (places[:, 0], places[:, 1]), 1)
    return counts


def draw(folder: Path = OUT) -> tuple[Path, Path]:
    """Publish both and draw them as they come."""
    chance = np.random.default_rng(8)
    years = publish.Domain.of({"age": range(OLDEST)})
    row = publish.run(ages(chance), publish.Hierarchy(), epsilon=EPSILON, domain=years)
    squares = publish.Domain.of({"row": range(SIDE), "column": range(SIDE)})
    field = publish.run(homes(chance), publish.Hierarchy(), epsilon=EPSILON, domain=squares)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, release, title in (
        ("ages.png", row, "People by age, published once"),
        ("homes.png", field, "People by square of a map, published once"),
    ):
        figure = blank(8, 4.5)
        plot_published(release, title=title, ax=figure.add_subplot())
        made.append(folder / name)
        figure.savefig(made[-1], dpi=100, facecolor="white")
        close(figure)
    return made[0], made[1]


if __name__ == "__main__":
    print(f"The pictures: {', '.join(path.name for path in draw())} in out/")
