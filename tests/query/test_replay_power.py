"""What the random questions of one commit find: faults of every way to put a unit's rows together, planted one by one.

The questions, data and neighbours are those of ``test_replay``, in its order. To save time, those that cannot have the
fault in them are counted and not asked.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from random import Random
from typing import Any
from unittest import mock

import pytest

from hubbub.engines.lower import relations
from hubbub.engines.lower import unit_operations as own
from hubbub.engines.lower.unit_operations import UNIT, LoweredRelation
from hubbub.engines.nodes.queries import Query
from hubbub.query.ops import Match, RelationUnion
from tests.engines.raw import raw
from tests.query.inside import World
from tests.query.planted import an_overflow_passed_on
from tests.query.planted_own import OWN
from tests.query.test_replay import DATASETS, FURTHER, NEIGHBOURS, QUESTIONS, SHARDS, compare

Fault = Callable[[], AbstractContextManager[Any]]
_united, _matched = own.unite, own.match_rows


def _arms_of_others(op: RelationUnion, parts: Sequence[LoweredRelation]) -> tuple[Query, Any]:
    """Each arm is limited by itself: what a unit has in the second is as if another had it."""
    return _united(op, [parts[0], *(_renamed(part) for part in parts[1:])])


def _renamed(part: LoweredRelation) -> LoweredRelation:
    rows = raw(f'SELECT * REPLACE (-1 - "{UNIT}" AS "{UNIT}") FROM (', part.query, ") AS renamed")
    return LoweredRelation(query=rows, names=part.names, kinds=part.kinds, unit=part.unit, light=part.light)


def _first_arm(op: RelationUnion, parts: Sequence[LoweredRelation]) -> tuple[Query, Any]:
    return _united(op, [parts[0], *(_nothing(part) for part in parts[1:])])


def _nothing(part: LoweredRelation) -> LoweredRelation:
    rows = raw("SELECT * FROM (", part.query, ") AS held WHERE false")
    return LoweredRelation(query=rows, names=part.names, kinds=part.kinds, unit=part.unit, light=part.light)


def _always_with(op: Match, rows: LoweredRelation, other: LoweredRelation) -> tuple[Query, Any]:
    return _matched(Match(input=op.input, other=op.other, keys=op.keys), rows, other)


def _has(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.search(pattern, text) is not None


WINDOW, REDUCE, UNION, JOIN = _has(r" OVER \("), _has("GROUP BY person"), _has("UNION ALL"), _has("t ON s.person")
MATCH = _has(r"EXISTS|IN \(SELECT (DISTINCT )?\(?t?\.?person")
FAULTS: dict[str, tuple[Fault, Callable[[str], bool]]] = {
    "windows_tied": (OWN["windows_tied"][0], WINDOW),
    "window_over_everyone": (OWN["window_over_everyone"][0], WINDOW),
    "match_uncorrelated": (OWN["match_uncorrelated"][0], MATCH),
    "join_without_unit": (OWN["join_without_unit"][0], JOIN),
    "full_join_of_nobody": (OWN["full_join_of_nobody"][0], _has("FULL JOIN")),
    "cap_by_data_order": (OWN["cap_by_data_order"][0], JOIN),
    "first_value_of_a_unit": (OWN["first_value_of_a_unit"][0], REDUCE),
    "overflow_passed_on": (an_overflow_passed_on, _has("2147483648")),
    "union_arms_limited_apart": (lambda: mock.patch.object(relations, "unite", _arms_of_others), UNION),
}
"""Each with the questions that it can be in. Neighbours must show it."""
MEANING: dict[str, tuple[Fault, Callable[[str], bool]]] = {
    "union_of_one_arm": (lambda: mock.patch.object(relations, "unite", _first_arm), UNION),
    "not_exists_as_exists": (lambda: mock.patch.object(relations, "match_rows", _always_with), _has("NOT EXISTS")),
}
"""Wrong, and private all the same: the interpreter must show it."""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, World]]:
    with ExitStack() as stack:
        made = [World(tmp_path_factory.mktemp(side)) for side in "ab"]
        for side in made:
            stack.callback(side.close)
        yield made[0], made[1]


def found_after(sides: tuple[World, World], fault: str, *, meant: bool) -> tuple[int, str]:
    """How many cases it takes, and what is seen then."""
    plant, wanted = (MEANING if meant else FAULTS)[fault]
    cases = 0
    for shard, number in itertools.product(range(SHARDS), range(DATASETS)):
        with plant():
            for text, _, faults in compare(sides, Random(f"pure {shard} {number}"), wanted=wanted):
                if faults and text.startswith("meant: ") is meant:
                    return cases, f"{text}: {faults[0]}"
        cases += QUESTIONS * (NEIGHBOURS + FURTHER)
    raise AssertionError(f"nobody saw {fault} in {cases:,} cases")


@pytest.mark.parametrize("fault", FAULTS)
def test_neighbours_show(sides: tuple[World, World], fault: str) -> None:
    cases, seen = found_after(sides, fault, meant=False)
    print(f"{fault}: after {cases:,} cases; {seen}")


@pytest.mark.parametrize("fault", MEANING)
def test_the_interpreter_shows(sides: tuple[World, World], fault: str) -> None:
    cases, seen = found_after(sides, fault, meant=True)
    print(f"{fault}: after {cases:,} cases; {seen}")
