"""The numbers of all groups at once are those of each group by itself: values, ends of intervals and types."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.query.aggregates.function import NoisyCells
from hubbub.query.plan.both_ends import BothEnds
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.ratios import Ratios, list_whole_intervals
from hubbub.query.plan.statistic import QueryMeasurement

GROUPS = 40
QUESTIONS = (
    "SELECT ward, count(*), count(DISTINCT person), sum(cost), avg(cost) FROM stays GROUP BY ward",
    "SELECT ward, avg(cost) FROM stays GROUP BY ward",
    "SELECT ward, count(cost), avg(cost), sum(share) FROM stays GROUP BY ward",
    "SELECT ward, sum(share), avg(share), avg(days) FROM stays GROUP BY ward",
    "SELECT ward, avg(huge), sum(huge) FROM stays GROUP BY ward",
    "SELECT ward, avg(small), sum(days), variance(days), geometric_mean(share + 1) FROM stays GROUP BY ward",
    "SELECT ward, corr(cost, days), regr_slope(cost, days), covar_samp(days, cost) FROM stays GROUP BY ward",
)
SIZES = (0, 1, 2, 3, 5, 40, 1000, 1 << 30, 1 << 61)
BUDGETS = {"pure": Fraction(0), "gaussian": Fraction(1, 10**6)}


@pytest.fixture(scope="module", params=BUDGETS)
def db(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    folder: Path = tmp_path_factory.mktemp("groups")
    path = folder / "stays.parquet"
    columns = (
        "i % 100 AS person, i % 40 AS ward, i % 101 AS cost, i % 5 AS days, (i % 7) / 7 AS share, i * 1e297 AS huge, "
        "i * 1e-300 AS small"
    )
    duckdb.connect().execute(f"COPY (SELECT {columns} FROM range(1000) t(i)) TO '{path}' (FORMAT parquet)")
    with hb.open(
        path,
        unit="person",
        budget=hb.Budget(epsilon=Fraction(1000), delta=BUDGETS[request.param]),
        bounds={"cost": (0, 100), "days": (-3, 4), "share": (-0.3, 1.7), "huge": (-3e299, 1e300), "small": (0, 3e-298)},
        keys={"ward": list(range(GROUPS))},
        limits=hb.Limits(max_groups=3, max_rows=2),
        ledger=folder / "ledger",
        marks=hb.ledger.Marks(folder / "marks"),
    ) as held:
        yield held


def noisy(plan: Plan, rng: Random) -> Callable[[QueryMeasurement], list[int]]:
    """Numbers of every size and sign; the two distances of a mean now and then add up to nearly nothing."""
    found = {}
    for measurement in plan.measurements:
        numbers = [rng.choice((-1, 1)) * rng.randint(0, rng.choice(SIZES)) for _ in range(GROUPS)]
        if isinstance(measurement.take, BothEnds):
            numbers += [rng.choice((rng.randint(-3, 3) - each, rng.randint(0, 1 << 40))) for each in numbers]
        found[id(measurement)] = numbers
    return lambda measurement: found[id(measurement)]


@pytest.mark.parametrize("text", QUESTIONS)
def test_all_groups_have_the_numbers_of_each(db: hb.Database, text: str) -> None:
    rng, told = Random(text), 0
    for epsilon in (Fraction(1, 7), 1, 300):
        plan = db.plan(text, epsilon=epsilon)
        for _ in range(8):
            cells = NoisyCells(plan.margins, noisy(plan, rng), range(GROUPS), 0.95)
            for asked, part in zip(plan.question.asked, plan.parts, strict=True):
                listed, every = list(cells), asked.function.combine_all(asked, part, cells)
                looked_at = rng.sample(range(GROUPS), 12)
                each = [asked.function.combine(asked, part, listed[at]) for at in looked_at]
                found = [every[at] for at in looked_at]
                assert repr(found) == repr(each)  # 1 and 1.0 are different, and so are 0.0 and -0.0
                told += sum(number.value is not None for number in each)
    assert told > 100


def test_whole_numbers_are_rounded_half_to_even_and_ends_inwards() -> None:
    """The exact number is whole, so that it is within the margin of the noisy one if and only if it is in between."""
    for denominator in (1, 2, 3, 4, 10):
        for margin in (Fraction(7, 3), Fraction(1, 9)):
            numerators = range(-25, 26)
            found = list(list_whole_intervals(Ratios(numerators, denominator), margin))
            values = [Fraction(one, denominator) for one in numerators]
            assert [value for value, _, _ in found] == [round(value) for value in values]
            for value, (nearest, low, high) in zip(values, found, strict=True):
                within = [one for one in range(-40, 40) if abs(one - value) <= margin]
                assert list(range(low, high + 1)) == (within or [nearest])
