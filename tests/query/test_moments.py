"""Covariance, correlation and regression: the truth without noise, and intervals that hold it."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from hubbub.mechanisms import Geometric
from hubbub.policy.kinds import Type, of
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.aggregates.covariance import Moment, PairSums, Range, combine_moments
from hubbub.query.answer.stored import combine
from hubbub.query.expression import Column
from hubbub.query.ops import Measure
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import NoisyNumber, NoisySum
from tests.query import generate, interpreter
from tests.query.asking import policy
from tests.query.further import both_ends_of
from tests.query.generate import TIMES
from tests.query.test_plan import _answers, _table, _within, planned

F = Fraction
ALL = (
    "select covar_pop(cost, age), covar_samp(cost, age), corr(cost, age), regr_slope(cost, age), "
    "regr_intercept(cost, age), regr_slope(age, cost) from stays"
)


def rows(pairs: Sequence[tuple[float | None, int]]) -> dict[str, list[dict[str, Any]]]:
    one = _table(Random(1))["stays"][0]
    return {"stays": [{**one, "patient_id": n, "cost": x, "age": y} for n, (x, y) in enumerate(pairs)], "wards": []}


def numbers(found: Plan, tables: dict[str, Any]) -> list[NoisyNumber]:
    (cell,) = combine(found, _answers(found, tables))
    return cell


def truth(pairs: list[tuple[float, float]]) -> list[float]:
    n = len(pairs)
    mx, my = (sum(pair[side] for pair in pairs) / n for side in (0, 1))
    xy = sum((x - mx) * (y - my) for x, y in pairs)
    xx, yy = sum((x - mx) ** 2 for x, _ in pairs), sum((y - my) ** 2 for _, y in pairs)
    slope = xy / yy
    return [xy / n, xy / (n - 1), xy / math.sqrt(xx * yy), slope, mx - slope * my, xy / xx]


def test_numbers_without_noise_are_the_truth() -> None:
    pairs = [(20.0, 30), (40.5, 50), (10.25, 35), (80.0, 90), (77.0, 20)]
    found = planned(ALL)
    values = [one.value for one in numbers(found, rows([*pairs, (None, 100), (None, 0)]))]
    assert values == pytest.approx(truth([(x, float(y)) for x, y in pairs]), rel=1e-4)


def test_a_regression_names_what_depends_first() -> None:
    """As SQL has it: regr_slope(y, x), and y = 2x + 1 has slope 2."""
    found = planned("select regr_slope(cost, age), regr_intercept(cost, age) from stays")
    slope, intercept = numbers(found, rows([(1.0 + 2 * age, age) for age in (5, 10, 20, 40)]))
    assert (slope.value, intercept.value) == pytest.approx((2, 1), rel=1e-4)


def test_only_rows_with_both_values_are_in_any_sum() -> None:
    """SOUNDNESS 9: the count is that of the same rows."""
    found = planned("select count(*), count(cost), corr(cost, points % 10) from stays")
    part = found.parts[2]
    count = part.tallies[0]
    assert count not in {found.parts[0].tallies[0], found.parts[1].tallies[0]}
    for tally in part.tallies:
        assert tally.argument is not None
        assert tally.argument.kind.nullable
    table = _table(Random(2))["stays"][0]
    held = [(1.0, None), (None, 5), (3.0, 4), (9.0, 8)]
    stays = [{**table, "patient_id": n, "cost": x, "points": y} for n, (x, y) in enumerate(held)]
    cells = interpreter.aggregate(found.aggregate, {"stays": stays, "wards": []}, generate.keyed(b"secret", 1))
    assert [cell[found.aggregate.tallies.index(count)] for cell in cells.values()] == [2]


def test_a_value_that_is_never_missing_needs_no_case() -> None:
    found = planned("select count(*), covar_pop(age, age) from stays")
    tallies = found.parts[1].tallies
    assert found.parts[0].tallies[0] == tallies[0]
    assert tallies[0].measure is Measure.ROWS
    assert len(found.aggregate.tallies) == 3, "a count, one total for both, and products"


def test_what_each_needs() -> None:
    sizes = {
        "covar_pop(cost, age)": 4,
        "covar_samp(cost, age)": 4,
        "regr_slope(cost, age)": 5,
        "regr_intercept(cost, age)": 5,
        "corr(cost, age)": 6,
    }
    for text, many in sizes.items():
        found = planned(f"select {text} from stays")
        assert len(found.aggregate.tallies) == len(found.mechanisms) + (both_ends_of(found) is not None) == many
        assert all(isinstance(one, Geometric) for one in found.mechanisms)
    together = planned(f"select {', '.join(sizes)} from stays")
    assert len(together.aggregate.tallies) == 6, "they share what they have in common"


def test_products_are_about_the_middles() -> None:
    found = planned("select covar_pop(cost, age) from stays")
    products = found.parts[0].tallies[2]
    assert products.origin == 0
    assert products.clamp is not None
    assert products.clamp[1] == -products.clamp[0]
    assert products.clamp[1] >= 50 * 55 > products.clamp[1] * F(99, 100)
    assert products.most_rows == 5


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
def test_neighbours_stay_within_the_plan(neighbors: Neighbors, delta: Fraction) -> None:
    sql = "select ward, corr(cost, age), regr_slope(cost, points % 7), count(distinct points) from stays group by ward"
    found = planned(sql, policy(budget=Budget(epsilon=F(4), delta=delta, neighbors=neighbors)))
    for seed in range(6 * TIMES):
        rng = Random(seed)
        tables = _table(rng)
        rest = [row for row in tables["stays"] if row["patient_id"] != 1]
        other = rest
        if neighbors is Neighbors.REPLACE_ONE:
            other = [*rest, *({**row, "patient_id": 1} for row in _table(rng)["stays"])]
        _within(found, _answers(found, tables), _answers(found, tables | {"stays": rng.sample(other, len(other))}))


@pytest.mark.parametrize("epsilon", [2, 200])
def test_intervals_hold_the_truth(epsilon: int) -> None:
    """Whenever every sum is within its margin, at any corner of the box."""
    pairs = [(float(x), y) for x, y in zip(range(0, 100, 4), itertools.cycle((5, 60, 100)), strict=False)]
    found = planned(ALL.replace("covar_samp(cost, age), ", ""), epsilon=epsilon)
    tables = rows(pairs)
    exact, meant = _answers(found, tables), [one.value for one in numbers(found, tables)]
    reach = [int(found.margins.bound(tally, 0.05 / 4) / tally.grid) for tally in found.aggregate.tallies]
    rng, narrow = Random(3), 0
    for _ in range(60):
        noisy = [[one + rng.choice((-1, 0, 1)) * reach[at] for one in own] for at, own in enumerate(exact)]
        (cell,) = combine(found, noisy)
        for one, number in zip(meant, cell, strict=True):
            if number.low is None or number.high is None:
                continue
            assert isinstance(one, float)
            assert number.low - 1e-9 <= one <= number.high + 1e-9
            narrow += 1
    assert narrow > 100, "there are intervals to speak of"


def sums(value: int, squares: int | None = None, *, margin: int = 0) -> PairSums:
    own = None if squares is None else NoisySum(F(squares), F(margin))
    return PairSums(NoisySum(F(value), F(margin)), F(0), (F(-10), F(10)), own)


def ask(moment: Moment, count: int, products: int, *, spread: int = 100, margin: int = 0) -> Any:
    first, second = sums(0, spread, margin=margin), sums(0, spread, margin=margin)
    return combine_moments(moment, NoisySum(F(count), F(margin)), first, second, NoisySum(F(products), F(margin)))


def test_a_count_below_one_says_nothing() -> None:
    assert ask(Moment.CORR, 0, 5) == (None, -1.0, 1.0)
    assert ask(Moment.COVAR_POP, 0, 5) == (None, -100.0, 100.0)
    assert ask(Moment.REGR_SLOPE, 0, 5) == (None, None, None)
    assert ask(Moment.COVAR_SAMP, 1, 5) == (None, -100.0, 100.0)
    assert ask(Moment.COVAR_SAMP, 2, 5) == (5.0, 5.0, 5.0)


def test_a_count_that_may_be_below_one_has_a_number_and_no_more() -> None:
    value, low, high = ask(Moment.COVAR_POP, 2, 10, margin=2)
    assert (value, low, high) == (5.0, -100.0, 100.0)
    assert ask(Moment.COVAR_POP, 3, 9, margin=2)[1:] != (-100.0, 100.0)


def test_a_spread_of_nothing_has_no_correlation_and_no_slope() -> None:
    assert ask(Moment.CORR, 10, 5, spread=0) == (None, -1.0, 1.0)
    assert ask(Moment.REGR_SLOPE, 10, 5, spread=0) == (None, None, None)
    assert ask(Moment.REGR_INTERCEPT, 10, 5, spread=0) == (None, None, None)


def test_a_spread_that_may_be_nothing_has_a_number_and_no_more() -> None:
    assert ask(Moment.CORR, 10, 5, spread=2, margin=3) == (1.0, -1.0, 1.0)
    assert ask(Moment.REGR_SLOPE, 10, 4, spread=2, margin=3) == (2.0, None, None)
    assert ask(Moment.REGR_INTERCEPT, 10, 4, spread=2, margin=3) == (0.0, None, None)


def test_correlations_stay_between_minus_one_and_one() -> None:
    assert ask(Moment.CORR, 10, 500, spread=100)[0] == 1.0
    assert ask(Moment.CORR, 10, -500, spread=100)[0] == -1.0
    assert ask(Moment.COVAR_POP, 10, 5000)[0] == 100.0


def test_ranges() -> None:
    one, other = Range(F(1), F(-1), F(2)), Range(F(3), F(2), F(4))
    assert one.times(other) == Range(F(3), F(-4), F(8))
    assert one.less(other) == Range(F(-2), F(-5), F(0))
    assert one.cut(F(0), F(1)) == Range(F(1), F(0), F(1))


def test_columns_without_bounds_have_their_name_in_the_plan() -> None:
    found = planned("select corr(cost, least(greatest(weight, -5), 5)) from stays")
    assert found.parts[0].bounds == (F(0), F(100))
    assert found.parts[0].other_bounds == (F(-5), F(5))
    assert Column("stays.cost", of(Type.REAL)) in found.question.asked[0].arguments
