"""The figures about medians, local sensitivity and prices say what the documentation says they say."""

import math
from pathlib import Path

import numpy as np
import pytest

from examples import auction
from examples.seeds import local, medians, pricing


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, list[float]]]:
    return {people.name: medians.errors(people, runs=1_000) for people in medians.populations()}


def test_the_exponential_mechanism_is_preferable_up_to_an_epsilon_of_two(
    found: dict[str, dict[str, list[float]]],
) -> None:
    """Means of 1,000 errors, which differ by factors: no statistics needed to tell them apart."""
    for rows in found.values():
        for at, epsilon in enumerate(medians.EPSILONS):
            if epsilon <= 1:
                assert rows["exponential"][at] <= rows["smooth, pure"][at] / 2
            if epsilon <= 2:
                assert rows["smooth, pure"][at] <= rows["smooth, Laplace with δ"][at] * 1.2
            if epsilon >= 1:
                assert rows["smooth, pure"][at] <= rows["Laplace"][at] / 20


def test_at_a_large_epsilon_smooth_sensitivity_wins_where_values_are_distinct(
    found: dict[str, dict[str, list[float]]],
) -> None:
    last = medians.EPSILONS.index(10)
    assert found["incomes"]["smooth, pure"][last] < found["incomes"]["exponential"][last] * 0.8
    assert found["ages"]["exponential"][last] == found["ages"]["smooth, pure"][last] == 0


def test_figures_are_drawn(found: dict[str, dict[str, list[float]]], tmp_path: Path) -> None:
    drawn = [medians.draw(found, tmp_path), local.draw(tmp_path, runs=50), pricing.draw(pricing.measure(), tmp_path)]
    assert [path.name for path in drawn] == ["medians.png", "local.png", "pricing.png"]
    assert all(5_000 < path.stat().st_size < 60_000 for path in drawn)


def test_revenue_against_epsilon() -> None:
    for buyers, rows in pricing.measure().items():
        for row in rows:
            assert row.flipped >= row.exponential - 1e-9
            assert row.best - row.flipped <= row.promised
            if row.telling:
                assert row.exponential >= row.theorem
        shares = [row.flipped / row.best for row in rows]
        assert shares == sorted(shares)
        assert any(row.telling for row in rows)
        at_one = next(row for row in rows if row.epsilon == 1)
        assert at_one.flipped > 0.95 * at_one.best > 2 * at_one.perturbed
        if buyers == 10_000:
            assert shares[0] > 0.95


def test_the_auction_spends_its_budget_and_loses_about_what_it_said() -> None:
    """Each shortfall passes ln(1/β) times its mean scale with probability β: at 20 times, once in a billion."""
    sales = auction.sell(auction.goods())
    assert [sale.good for sale in sales] == [good.name for good in auction.goods()]
    for sale, good in zip(sales, auction.goods(), strict=True):
        mechanism = good.mechanism(auction.EPSILON / 3)
        assert sale.promised_loss == mechanism.expected_loss()
        assert sale.best_revenue - sale.revenue <= mechanism.error(beta=1e-9)
        assert mechanism.expected_revenue(good.said) >= sale.best_revenue - sale.promised_loss
        assert any(math.isclose(sale.price, float(price)) for price in good.prices)
    kilograms = auction.goods()[2].said
    assert kilograms.ndim == 2
    assert (np.diff(kilograms, axis=1) <= 0).all()
