"""Covariance, correlation and regression: the truth without noise, and intervals that hold it."""

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from hubbub.mechanisms import Geometric
from hubbub.noise.weighted_sums import NoiseLaw
from hubbub.policy.kinds import Type, of
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.aggregates.joint_sums import JointSums, Middle
from hubbub.query.aggregates.pair_moments import Moment, PairMoments, combine_moments
from hubbub.query.answer.stored import combine
from hubbub.query.expression import Column
from hubbub.query.ops import Measure
from hubbub.query.plan.inversion import NoisyArray
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import NoisyNumber
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


def ask(moment: Moment, count: float, products: float, *, spread: float = 100, scale: float = 0) -> NoisyNumber:
    """Values between −10 and 10 whose sums are 0, so that both half widths are 10; each sum has a noise of its own."""
    held = [count, 0.0, products / 100, 0.0, spread / 100, spread / 100]
    noises = [tuple(float(own == at) for own in range(6)) for at in range(6)]
    arrays = [NoisyArray(np.array([value]), weights) for value, weights in zip(held, noises, strict=True)]
    laws = (NoiseLaw(scale),) * 6
    sums = JointSums(arrays[0], tuple(arrays[1:]), laws, 0.05)
    pairs = PairMoments(sums, arrays[1], arrays[3], arrays[2], arrays[4], arrays[5])
    middle = Middle.of((F(-10), F(10)))
    (found,) = combine_moments(moment, pairs, (middle, middle))
    return found


def test_a_count_below_one_says_nothing() -> None:
    assert ask(Moment.CORR, 0, 5) == NoisyNumber(None, -1.0, 1.0)
    assert ask(Moment.COVAR_POP, 0, 5) == NoisyNumber(None, -100.0, 100.0)
    assert ask(Moment.REGR_SLOPE, 0, 5) == NoisyNumber(None, None, None)
    assert ask(Moment.REGR_INTERCEPT, 0, 5) == NoisyNumber(None, None, None)
    assert ask(Moment.COVAR_SAMP, 1, 5) == NoisyNumber(None, -200.0, 200.0), (
        "a sample of two has twice what its rows have"
    )
    assert ask(Moment.COVAR_SAMP, 2, 5) == NoisyNumber(5.0, 5.0, 5.0)


def test_a_count_within_its_own_noise_has_a_number_and_no_more() -> None:
    found = ask(Moment.COVAR_POP, 2, 10, scale=1)
    assert (found.value, found.low, found.high) == (5.0, -100.0, 100.0)
    narrow = ask(Moment.COVAR_POP, 40, 1000, scale=1)
    assert -100 < narrow.low < 25 == narrow.value < narrow.high < 100


def test_a_spread_of_nothing_has_no_correlation_and_no_slope() -> None:
    assert ask(Moment.CORR, 10, 5, spread=0) == NoisyNumber(None, -1.0, 1.0)
    assert ask(Moment.REGR_SLOPE, 10, 5, spread=0) == NoisyNumber(None, None, None)
    assert ask(Moment.REGR_INTERCEPT, 10, 5, spread=0) == NoisyNumber(None, None, None)


@pytest.mark.parametrize(("deviations", "has_end"), [(2.9, False), (3.1, True)])
def test_a_variance_of_less_than_three_deviations_has_a_number_and_no_end(deviations: float, has_end: bool) -> None:
    """The noise of n times a variance about a mean of 0 is that of the squares, less the variance times that of n."""
    share = 1 / 1000  # of the greatest variance
    off = math.sqrt(2 * (1 + share**2)) * deviations
    scale = 1000 * share / off
    found = [ask(each, 1000, 0, spread=100 * share * 1000, scale=scale) for each in (Moment.REGR_SLOPE, Moment.CORR)]
    assert [number.value for number in found] == pytest.approx([0, 0])
    assert (found[0].low is not None, found[0].high is not None) == (has_end, has_end)
    assert ((found[1].low, found[1].high) != (-1.0, 1.0)) is has_end


def test_correlations_stay_between_minus_one_and_one() -> None:
    assert ask(Moment.CORR, 10, 500, spread=100).value == 1.0
    assert ask(Moment.CORR, 10, -500, spread=100).value == -1.0
    assert ask(Moment.COVAR_POP, 10, 5000).value == 100.0


def test_columns_without_bounds_have_their_name_in_the_plan() -> None:
    found = planned("select corr(cost, least(greatest(weight, -5), 5)) from stays")
    assert found.parts[0].bounds == (F(0), F(100))
    assert found.parts[0].other_bounds == (F(-5), F(5))
    assert Column("stays.cost", of(Type.REAL)) in found.question.asked[0].arguments
