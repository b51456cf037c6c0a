"""Means from distances to both bounds: what one unit moves, what is told from them, and how far that is off."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import LedgerCorrupt
from hubbub.ledger import Marks
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.answer.stored import combine
from hubbub.query.ops import ExactCounts, Measure, Tally
from hubbub.query.plan.both_ends import BothEnds, sum_error
from hubbub.query.plan.statistic import Reach, TallyStatistic
from tests.query.further import both_ends_of, exact_tallies

HELD = Reach(groups=1, neighbors=Neighbors.ADD_REMOVE)
COUNT, TOTAL = (Tally(measure=measure, argument=None) for measure in (Measure.ROWS, Measure.TOTAL))
ALONE = BothEnds(
    reach=HELD,
    count=TallyStatistic(tally=COUNT, column=0, reach=HELD),
    total=TallyStatistic(tally=TOTAL, column=1, reach=HELD),
    half=5,
    rows=3,
)
ROWS, WARDS = 3000, ("a", "b", "c")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "stays.parquet"
    columns = "i % 1000 AS person, substr('abc', 1 + i % 3, 1) AS ward, i * 7 % 101 AS cost, i % 5 AS days"
    duckdb.connect().execute(f"COPY (SELECT {columns} FROM range({ROWS}) t(i)) TO '{made}' (FORMAT parquet)")
    return made


@pytest.fixture
def db(path: Path) -> Iterator[hb.Database]:
    with opened(path) as held:
        yield held


def opened(path: Path, **said: Any) -> hb.Database:
    limits: dict[str, Any] = {"max_groups": 3, "max_rows": 2}
    return hb.open(
        path,
        unit="person",
        budget=hb.Budget(epsilon=Fraction(1000), delta=said.pop("delta", Fraction(0))),
        bounds={"cost": (0, 100), "days": (0, 4)},
        ledger=path.parent / f"ledger{len(list(path.parent.iterdir()))}",
        marks=Marks(path.parent / "state"),
        **{"keys": {"ward": list(WARDS)}} | limits | said,
    )


def points() -> list[tuple[int, int]]:
    """All that a unit can add to a group: rows, and a total of at most ``half`` a row."""
    return [(n, s) for n in range(ALONE.rows + 1) for s in range(-ALONE.half * n, ALONE.half * n + 1)]


def taken(rows: list[tuple[int, int]]) -> list[int]:
    return list(map(int, ALONE(ExactCounts(cells=(), tallies=list(rows)))))


def proven_for(groups: int, neighbors: Neighbors) -> hb.Sensitivity:
    return replace(ALONE, reach=Reach(groups=groups, neighbors=neighbors)).sensitivity


def moved(one: tuple[int, int], other: tuple[int, int]) -> list[int]:
    pairs = zip(taken([one]), taken([other]), strict=True)
    return [abs(int(a) - int(b)) for a, b in pairs]


def test_a_unit_that_comes_or_goes_moves_them_as_far_as_was_proven_and_no_further() -> None:
    proven = proven_for(1, Neighbors.ADD_REMOVE)
    steps = [moved(one, (0, 0)) for one in points()]
    assert max(map(sum, steps)) == proven.in_norm(Norm.L1)
    assert max(sum(step**2 for step in one) for one in steps) == proven.in_norm(Norm.L2)
    assert max(map(max, steps)) == proven.linf


def test_a_unit_that_is_replaced_does_too() -> None:
    proven = proven_for(1, Neighbors.REPLACE_ONE)
    steps = [moved(one, other) for one, other in itertools.product(points(), repeat=2)]
    assert max(map(sum, steps)) == proven.in_norm(Norm.L1)
    assert max(sum(step**2 for step in one) for one in steps) == proven.in_norm(Norm.L2)
    assert max(map(max, steps)) == proven.linf


def test_groups_add_up() -> None:
    many = proven_for(4, Neighbors.ADD_REMOVE)
    assert (many.l0, many.l1, many.l2_squared, many.linf) == (8, Fraction(120), Fraction(3600), Fraction(30))


def test_what_is_told_without_noise_is_what_was_there() -> None:
    rows = [(3, -15), (0, 0), (7, 4), (10**20, -(10**20))]
    exact = taken(rows)
    told = [tuple(ALONE.decode(exact, cell, tally) for tally in (COUNT, TOTAL)) for cell in range(len(rows))]
    assert told == [tuple(map(Fraction, row)) for row in rows]


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(17, 2), Fraction(60)])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4])
def test_the_error_of_a_sum_is_the_least_that_its_law_allows(scale: Fraction, beta: float) -> None:
    reach = math.ceil(40 * scale) + 40
    masses = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale))
    law = np.convolve(masses / masses.sum(), masses / masses.sum())
    sizes, found = np.abs(np.arange(-2 * reach, 2 * reach + 1)), sum_error(scale, beta)
    beyond = [law[sizes > t].sum() for t in (found, found - 1)]
    assert beyond[0] <= beta * (1 + 1e-9)
    assert found == 0 or beyond[1] > beta * (1 - 1e-9)


MEANS = [
    "avg(cost)",
    "count(*), avg(cost)",
    "avg(cost), avg(days), sum(days)",
    "stddev_pop(cost), count(cost)",
    "covar_pop(cost, days)",
    "avg(cost), median(cost)",
]


@pytest.mark.parametrize("text", MEANS)
def test_a_mean_is_measured_from_both_ends(db: hb.Database, text: str) -> None:
    planned = db.plan(f"SELECT ward, {text} FROM stays GROUP BY ward", epsilon=1)
    measured = both_ends_of(planned)
    assert measured is not None
    both, ends = measured.mechanism, measured.take
    assert isinstance(both, Geometric)
    assert isinstance(ends, BothEnds)
    assert planned.margins.find(ends.count.tally) is planned.margins.find(ends.total.tally) is measured
    assert both.sensitivity == measured.sensitivity.in_norm(Norm.L1) == 3 * 2 * 2 * ends.half
    assert len(planned.events) == len(planned.mechanisms) == len(planned.slots) - 1
    assert planned.cost.loss * LOSS_UNIT <= 1


@pytest.mark.parametrize("text", ["count(*)", "sum(cost), count(*)", "median(cost), count(*)"])
def test_what_is_no_mean_is_not(db: hb.Database, text: str) -> None:
    assert both_ends_of(db.plan(f"SELECT ward, {text} FROM stays GROUP BY ward", epsilon=1)) is None


def test_neither_are_rows_that_are_counted_over_all_groups_nor_selected_keys(path: Path) -> None:
    with opened(path, max_total_rows=3) as held:
        assert both_ends_of(held.plan("SELECT ward, avg(cost) FROM stays GROUP BY ward", epsilon=1)) is None
    with opened(path, keys={}, delta=Fraction(1, 1000)) as held:
        assert both_ends_of(held.plan("SELECT ward, avg(cost) FROM stays GROUP BY ward", epsilon=1)) is None


def test_where_gaussian_noise_is_less_they_are_measured_apart(path: Path) -> None:
    with opened(path, delta=Fraction(1, 100), max_groups=100, keys={"ward": [chr(97 + i) for i in range(26)]}) as held:
        planned = held.plan("SELECT ward, avg(cost) FROM stays GROUP BY ward", epsilon=1, delta=Fraction(1, 1000))
    assert both_ends_of(planned) is None
    assert all(isinstance(one, Gaussian) for one in planned.mechanisms)


def test_means_and_counts_err_as_their_law_says_and_intervals_hold(db: hb.Database) -> None:
    """1,000 draws of three cells; squared errors within six standard errors (false alarm below 1e-6 for the two)."""
    text = "SELECT ward, count(*) AS n, avg(cost) AS m FROM stays WHERE cost >= 0 GROUP BY ward"
    planned = db.plan(text, epsilon=1)
    measured, draws = both_ends_of(planned), 1000
    assert measured is not None
    ends, both = measured.take, measured.mechanism
    assert isinstance(ends, BothEnds)
    assert isinstance(both, Geometric)
    rows, tally = exact_of(db, planned.aggregate).tallies, ends.total.tally
    at, counted = ends.total.column, ends.count.column
    true = [(row[counted], float(tally.origin + Fraction(row[at]) * tally.grid / row[0])) for row in rows]
    exactly = next(numbers for numbers in exact_tallies(planned, rows) if numbers)
    noisy = np.reshape(both.draw(np.tile(exactly, draws)), (draws, -1))
    errors, inside = [], []
    for one in noisy.tolist():
        numbers = combine(planned, [[], one] if planned.slots[0] is None else [one, []])
        for (count, mean), (n, exact) in zip(numbers, true, strict=True):
            errors.append((count.value - n, (mean.value - exact) * n))
            inside.append((count.low <= n <= count.high, mean.low <= exact <= mean.high))
    scale = 3 * 2 * 2  # of either distance, in groups · rows · both halves; values are within 50 of the middle
    for found, law in zip(np.array(errors, dtype=float).T ** 2, (scale**2, (50 * scale) ** 2), strict=True):
        assert abs(found.mean() - law) < 6 * found.std() / math.sqrt(len(found)) + 0.01 * law  # a count's rounding
    shares = np.mean(inside, axis=0)
    assert (shares > 0.95 - 5 * math.sqrt(0.05 * 0.95 / len(inside))).all(), shares


def test_an_answer_of_counts_by_themselves_is_not_taken_for_one(db: hb.Database) -> None:
    planned = db.plan("SELECT ward, avg(cost) AS m FROM stays GROUP BY ward", epsilon=1)
    with pytest.raises(LedgerCorrupt):
        combine(planned, [[1, 2, 3], [4, 5, 6]])
    assert len(combine(planned, [[], [1] * 6] if planned.slots[0] is None else [[1] * 6, []])) == 3


def test_an_answer_at_an_epsilon_where_they_are_measured_apart_is_served_again(db: hb.Database) -> None:
    """With so much of it, a count by itself has no noise to speak of."""
    text = "SELECT ward, count(*) AS n, avg(cost) AS m FROM stays GROUP BY ward"
    assert both_ends_of(db.plan(text, epsilon=600)) is None
    assert both_ends_of(db.plan(text, epsilon=1)) is not None
    first = db.sql(text, epsilon=600)
    again = db.sql(text, epsilon=1)
    assert (again.entry, again.rows, again.lows) == (first.entry, first.rows, first.lows)
