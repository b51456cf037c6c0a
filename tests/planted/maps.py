"""Bugs in maps and sparse domains: in what stages cost, in noise that empty cells need, and on the way through the
engine, where a publication is replayed on neighbouring tables."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair, Subject
from hubbub.engines.lower import cells as dense
from hubbub.engines.lower import group_codes as codes
from hubbub.mechanisms.staged.splits import Cuts
from hubbub.mechanisms.staged.staged import GRAIN, Tariff
from hubbub.noise import scattered
from hubbub.publish.sparse import filters
from hubbub.publish.sparse.keys import Keys
from hubbub.publish.strategies.layer import Array
from tests.planted.plant import Caught, Planted, in_place, named, specimen
from tests.publish import test_replay_publish as whole
from tests.publish import test_replay_sparse as replay
from tests.query.inside import World

# What stages cost


def _for_one_row(self: Tariff, charge: int) -> Fraction:
    return self.epsilon * charge / GRAIN


def _whole_price(self: Tariff, charge: int) -> Fraction:
    return self.epsilon / self.moved


def _without_lines(self: Cuts, region: Array, price: Tariff) -> Fraction:
    return price.of_a_row(self.weight) / 2


# Empty cells

_common = filters.common


def _of_one_cell(size: int, terms: Any) -> dict[str, Any]:
    return _common(size, terms) | {"sensitivity": terms.contribution.each}


def _no_empty_cells(**given: Any) -> Iterator[tuple[Array, Array]]:
    nothing = np.zeros(0, dtype=np.int64)
    return iter([(nothing, nothing)] * len(list(given["levels"])))


# Through the engine


@cache
def _worlds() -> whole.Worlds:
    """The tables, their neighbours, and their neighbours with the others' Secrets."""
    folders = [Path(tempfile.mkdtemp()) for _ in range(3)]
    made = [World(folder, budget=whole.BUDGETS["pure"]) for folder in folders]
    for folder, one in zip(folders, made, strict=True):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        atexit.register(one.close)
    return made[0], made[1], made[2]


@dataclass(frozen=True, slots=True)
class Publications:
    """Publications of sparse domains, from random tables that differ by one unit: looked at, and not counted."""

    name: str = "publications of sparse domains"

    @property
    def claim(self) -> Claim:
        return Claim.pure(1.0, 0.0)

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        for number in count():
            one = replay.sparsely("pure", number)
            yield Pair(x=one, y=one, about=str(one))

    def faults(self, pair: Pair) -> list[str]:
        return replay.compared(_worlds(), pair.x)[1]

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        return iter(())

    def answers(self, value: Any, *, times: int) -> Outputs:
        return np.zeros(times)

    def show_pair(self, pair: Pair) -> str:
        return f"{pair.x}\nrows = {pair.x.rows}\nneighbour = {pair.x.other}"


def publications() -> Subject:
    return Publications()


_packed = Keys.pack


def _short(self: Keys, places: Any) -> Array:
    found: Array = _packed(self, places) % 97
    return found


MAPS = (
    Planted(
        name="a map's noise for one row",
        about="A unit has several points on a map, and what a stage may lose was shared out to one of them.",
        subject=named("publish: map: auto"),
        patch=in_place(Tariff, "of_a_row", _for_one_row),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="every stage at the whole price",
        about="Grids are counted one after the other, and each gets the ε of one.",
        subject=named("publish: map: adaptive grid"),
        patch=in_place(Tariff, "of_a_row", _whole_price),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="a contrast that grows with the map",
        about="Cuts are scored by counts times lines, and a row was taken to move a score by one.",
        subject=specimen("private contrast"),
        patch=in_place(Cuts, "_rate", _without_lines),
        caught=Caught.MASSES,
    ),
    Planted(
        name="a sparse domain's noise for one cell",
        about="A unit is in several cells of a huge domain, and noise was made for one of them.",
        subject=named("publish: sparse largest"),
        patch=in_place(filters, "common", _of_one_cell),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="empty cells without noise",
        about="Only cells that somebody has get noise and are compared: whatever is shown, somebody is there.",
        subject=named("publish: sparse threshold"),
        patch=in_place(scattered, "above", _no_empty_cells),
        caught=Caught.COUNTING,
    ),
    Planted(
        name="cells that share a code",
        about="Cells of a huge domain are told apart by a short code, so that a unit's rows in several add up in one.",
        subject=publications,
        patch=in_place(Keys, "pack", _short),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="places packed by wrong sizes",
        about="Two columns in one number, by the size of another column: combinations that differ get one code.",
        subject=publications,
        patch=in_place(codes, "_number", replay._last_first),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="one cell more than was said",
        about="The engine keeps one more cell of each unit than noise was made for.",
        subject=publications,
        patch=in_place(dense, "aggregate", whole._many_cells),
        caught=Caught.REPLAY,
    ),
)
