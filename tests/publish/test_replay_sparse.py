"""Replay on neighbouring tables for filters of ``publish.sparse`` (SOUNDNESS 32), with faults that it must see.

As ``test_replay_publish``: price, order, schema, error and stored answers agree; Secrets move within what was proven;
and the cells that are not empty are what a count in Python says, by codes that are unpacked in Python. The number of
draws is that of the cells that are not empty, so it may differ between neighbours; with the same Secrets it may not.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any
from unittest import mock

import pytest

from hubbub import publish
from hubbub.engines.lower import cells as dense
from hubbub.engines.lower import group_codes as codes
from hubbub.publish import offer, sparse
from hubbub.publish.sparse import prepared
from hubbub.publish.strategies.layer import CellLayer
from hubbub.session import session as door
from tests.publish.replay_faults import differing, misunderstood, out_of_order
from tests.publish.replaying import Case, Seen, case, published
from tests.publish.test_replay_publish import BUDGETS, Worlds, _fewer, _many_cells, _read_first, _unbounded
from tests.query.expressions import TIMES
from tests.query.inside import World

CASES = 40 * TIMES
KINDS = ("pure", "replace")
AXES: tuple[dict[str, Any], ...] = (
    {"points": range(-(1 << 39), 1 << 39)},
    {"points": range(-(1 << 62), 1 << 62)},
    {"points": range(-1, 1 << 20), "cost": publish.bins(0, 100, 1 << 30)},
    {"ward": sparse.Words(alphabet="acbehnorwA", length=7, shorter=True), "points": range(-1, 5000)},
    {"ward": sparse.Words(alphabet="Acba", length=1), "nights": range(-1, 1 << 30), "urgent": [True, False]},
    {"nights": publish.bins(0, 10, 4), "ward": ["a", "b", "A"]},
    {"nights + points": range(1 << 40), "points % nights": range(3)},
    {"ward": sparse.Words(alphabet="abcehnorwAxyz", length=8, shorter=True), "points": range(-1, 1 << 31)},
)
"""From 12 cells to 2^63; the last have more groups than one number of 63 bits holds."""
FILTERS: dict[str, Any] = {
    "threshold": sparse.Threshold(expected_false=2),
    "largest": sparse.Largest(count=3),
    "high-pass": sparse.HighPass(expected_false=3),
    "sample": sparse.Sample(expected_false=Fraction(5, 2)),
    "priority": sparse.Priority(count=4),
    "first above": sparse.FirstAbove(at=2, count=2),
    "first above, numbers": sparse.FirstAbove(at=3, count=2, numbers=Fraction(1, 2)),
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Worlds]]:
    with ExitStack() as stack:
        made: dict[str, Worlds] = {}
        for kind in KINDS:
            sides = [World(tmp_path_factory.mktemp(f"{kind}{side}"), budget=BUDGETS[kind]) for side in range(3)]
            for side in sides:
                stack.callback(side.close)
            made[kind] = sides[0], sides[1], sides[2]
        yield made


_VERSION = iter(range(1, 1 << 40))


def sparsely(kind: str, number: int) -> Case:
    """A case of the other replay, with a filter and a domain of this one."""
    one = case(f"sparse {kind}", number, replace="replace" in kind)
    rng = Random(f"sparse {kind} {number}")
    name = list(FILTERS)[number % len(FILTERS)]
    return replace(one, strategy=name, over=rng.choice(AXES), asked={**one.asked, "strategy": FILTERS[name]})


def compared(worlds: Worlds, one: Case) -> tuple[Seen, list[str], bool]:
    version = next(_VERSION)
    first = published(worlds[0], one, one.rows, version=version)
    meant, cut = misunderstood(one, first)
    alike = one.what != "unit"
    imposed = published(worlds[2], one, one.other, version=version, given=first.opened, threads=4)
    faults = [*out_of_order(first), *meant, *out_of_order(imposed)]
    faults += differing(first, imposed, same=alike, imposed=True)
    if not one.buys:
        second = published(worlds[1], one, one.other, version=version)
        faults += [*out_of_order(second), *differing(first, second, same=alike, imposed=False)]
    return first, faults, cut


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_differ_in_their_secrets_alone(worlds: dict[str, Worlds], kind: str) -> None:
    reached: Counter[str] = Counter()
    for number in range(CASES):
        one = sparsely(kind, number)
        seen, faults, cut = compared(worlds[kind], one)
        assert not faults, (number, str(one), faults)
        there = seen.outcome == "answered"
        reached[one.strategy if there else "refused"] += 1
        reached.update({"answered": there, "cut off": cut, "not empty": bool(seen.counts)})
        reached["bought"] += there and len(seen.reads) > 1
        reached[f"axes {AXES.index(dict(one.over))}"] += there and bool(seen.counts)
    print("\n".join(f"{many:5} {what}" for what, many in sorted(reached.items())))
    wanted = [*FILTERS, "cut off", "bought", "not empty", "refused", *(f"axes {place}" for place in range(len(AXES)))]
    assert not [what for what in wanted if not reached[what]], reached
    assert reached["answered"] > 0.7 * CASES, reached


# Planted

_number = codes._number


def _last_first(groups: Any, places: Any) -> Any:
    """Places are packed by the sizes of the wrong groups: different combinations get one code."""
    return _number([*groups[:1], *reversed(groups[1:])], places) if len(groups) > 2 else places[-1]


def _for_one_row(self: prepared.Scarce, one: Any) -> Any:
    return CellLayer(shape=(self.size,)).reach(publish.Contribution(neighbors=one.neighbors))


FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "one row less is told": (
        lambda: mock.patch.object(offer, "contribution_of", _fewer(each=lambda many: many - 1)),
        "value .* moved by .* was proven",
    ),
    "no bounds": (lambda: mock.patch.object(dense, "aggregate", _unbounded), "value .* moved by .* noise was made for"),
    "one cell too many": (lambda: mock.patch.object(dense, "aggregate", _many_cells), "cells moved by"),
    "read before it is paid": (
        lambda: mock.patch.object(door, "answered", _read_first),
        "read 0 came after 0 charges",
    ),
    "packed by wrong sizes": (
        lambda: mock.patch.object(codes, "_number", _last_first),
        "cells are not what was counted",
    ),
    "facts of one row": (lambda: mock.patch.object(prepared.Scarce, "reach", _for_one_row), "outcome|was proven"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(worlds: dict[str, Worlds], fault: str) -> None:
    plant, said = FAULTS[fault]
    with plant():
        for number in range(CASES):
            one = sparsely("pure", number)
            _, faults, _ = compared(worlds["pure"], one)
            seen = [told for told in faults if re.search(said, told)]
            if seen:
                print(f"{fault}: after {number} cases: {seen[0]:.300}")
                return
    raise AssertionError(f"nobody saw it in {CASES} cases")
