"""Intervals of other confidences that cover what limits drop: of the same numbers, nested, and true together."""

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from scipy import stats

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.query.aggregates.function import CONFIDENCE, NoisyCells
from hubbub.query.aggregates.widening import read_dropped
from hubbub.query.answer.answer import answer
from hubbub.query.answer.stored import combine, read_numbers
from hubbub.query.plan.plan import Plan
from hubbub.testing.replay import replayed
from tests.query.inside import World, fixed_key
from tests.query.test_dropped import WARDS, draw, people, truth_of

LEVELS = (0.2, 0.5, 0.9, 0.95, 0.99, 1 - 1e-6)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, budget=Budget(epsilon=Fraction(1000)))
    yield made
    made.close()


def dropped_is_plain(found: Plan, noisy: list[list[int]], confidence: float) -> tuple[bool, ...]:
    """Whether it is plain that rows were dropped, in each group."""
    numbers_of, tally = read_numbers(found, noisy), found.parts[0].dropped[0]
    cells = NoisyCells(found.margins, numbers_of, range(found.cells), confidence)
    return tuple(read_dropped(cell, tally, 1 - confidence).is_plain for cell in cells)


def test_other_intervals_are_of_the_same_numbers_and_hold_one_another(world: World) -> None:
    """Whether what is dropped is added to a number is decided at one confidence, whatever its interval has."""
    db = world.load(people(2, 400), limits=Limits(max_groups=1, max_rows=1, max_total_rows=12))
    found = db.plan(WARDS, epsilon=2)
    with fixed_key():
        held = exact_of(db, found.aggregate)
    turned = 0
    for seed in range(30):
        with replayed(seed):
            noisy = draw(found, held)
        turned += len({dropped_is_plain(found, noisy, level) for level in LEVELS}) > 1
        shown = [combine(found, noisy, confidence=level) for level in (*LEVELS, CONFIDENCE)]
        for cells in zip(*shown, strict=True):
            for numbers in zip(*cells, strict=True):
                assert len({number.value for number in numbers}) == 1
                assert all(number.value is None or number.low <= number.value <= number.high for number in numbers)
                for one, wider in itertools.pairwise(numbers[:-1]):
                    assert wider.low <= one.low + 1e-9
                    assert one.high <= wider.high + 1e-9
    assert turned, "by their own confidence, other numbers would be moved"


def test_rows_are_the_same_whatever_intervals_they_have(world: World) -> None:
    """HAVING, ORDER BY and LIMIT ask for numbers, and these move where it is plain that rows were dropped."""
    db = world.load(people(2, 400), limits=Limits(max_groups=1, max_rows=1, max_total_rows=12))
    text = "SELECT ward, count(*) AS n FROM stays GROUP BY ward ORDER BY n DESC LIMIT 3"
    for epsilon in range(1, 9):
        first = db.sql(f"{text} OFFSET {epsilon % 2}", epsilon=Fraction(epsilon, 4))
        for other in (*(first.with_intervals(level) for level in LEVELS), first.with_intervals(simultaneous=True)):
            assert other.rows == first.rows
            for row, low, high in zip(other.rows, other.lows, other.highs, strict=True):
                assert low[1] <= row[1] <= high[1]


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_intervals_of_another_confidence_hold_the_truth_of_all_groups_together(world: World, confidence: float) -> None:
    """A false alarm has probability 1e-6 for each number."""
    rows = people(3, 400)
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=1, max_total_rows=12))
    found = db.plan(WARDS, epsilon=2)
    with fixed_key():
        held = exact_of(db, found.aggregate)
    truths = [truth_of(rows, str(cell[0])) for cell in held.cells]
    times, holds = 300, Counter[int]()
    for _ in range(times):
        plain = answer(found, draw(found, held), entry=1)
        shown = plain.with_intervals(confidence, simultaneous=True)
        alone = plain.with_intervals(confidence)
        for at in range(len(truths[0])):
            ends = [(low[at + 1], high[at + 1]) for low, high in zip(shown.lows, shown.highs, strict=True)]
            own = [(low[at + 1], high[at + 1]) for low, high in zip(alone.lows, alone.highs, strict=True)]
            assert all(a <= c + 1e-9 and d <= b + 1e-9 for (a, b), (c, d) in zip(ends, own, strict=True))
            meant = [truth[at] for truth in truths]
            holds[at] += all(one is None or low <= one <= high for one, (low, high) in zip(meant, ends, strict=True))
    assert min(holds.values()) >= stats.binom.ppf(1e-6, times, confidence), holds
