"""Prices: revenues, exact masses and expectations, the bounds that are told before spending, and the theorem."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub import Facts, Meter, Secret, Sensitivity
from hubbub.audit.exact import Laws
from hubbub.errors import MisfitError, ParameterError
from hubbub.mechanisms import Exponential, PermuteAndFlip, Price
from hubbub.privacy.events.event import BoundedRangeEvent, PureEvent
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm

ONE = Fraction(1)
FIVE = tuple(Fraction(price) for price in range(1, 6))


def price(**options: Any) -> Price:
    known: dict[str, Any] = {"epsilon": ONE, "prices": FIVE}
    return Price(**(known | options))


def test_revenue_is_the_price_times_those_who_bid_at_least_it() -> None:
    assert price().revenues([1, 2, 2, 5, 0, 7]).tolist() == [5, 8, 6, 8, 10]
    assert price().revenues([4.999, 5.0]).tolist() == [2, 4, 6, 8, 5]
    assert price().revenues([math.nan, math.inf, -math.inf, -3]).tolist() == [1, 2, 3, 4, 5]
    assert price().revenues([]).tolist() == [0] * 5
    assert price(supply=2).revenues([5, 5, 5, 1]).tolist() == [2, 4, 6, 8, 10]
    cents = price(prices=(Fraction(7, 100), Fraction(1, 10)), grid=Fraction(1, 100))
    assert cents.revenues([0.07, 0.0699, 0.1]).tolist() == [14, 10]


def test_demand_is_cut_to_what_one_buyer_may_count_for() -> None:
    assert price().revenues(np.array([[9, 9, 9, 9, 9]])).tolist() == [5, 4, 3, 4, 5]
    assert price(most=Fraction(12)).revenues(np.array([[9, 9, 9, 9, 9]])).tolist() == [9, 12, 12, 12, 10]
    assert price().revenues(np.array([[1, 1, 0, 0, -4], [0, 0, 1, 0, 1]])).tolist() == [1, 2, 3, 0, 5]
    for table in (np.ones((2, 4), dtype=int), np.ones((2, 5)), np.ones((2, 5, 1), dtype=int)):
        with pytest.raises(ParameterError, match="value must be"):
            price().draw(table)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 6), max_size=7), st.integers(0, 6), st.integers(0, 6), st.booleans(), st.data())
def test_one_bid_loses_at_most_epsilon(bids: list[int], new: int, other: int, flip: bool, data: st.DataObject) -> None:
    supply = data.draw(st.sampled_from([None, 1, 3]))
    added = price(flip=flip, supply=supply)
    gaps = [added.log_mass([*bids, new], p) - added.log_mass(bids, p) for p in range(1, 6)]
    assert max(map(abs, gaps)) <= 1 + 1e-9
    if not flip:
        assert max(gaps) - min(gaps) <= 1 + 1e-9
    swapped = price(flip=flip, supply=supply, neighbors=Neighbors.REPLACE_ONE)
    gaps = [swapped.log_mass([*bids, new], p) - swapped.log_mass([*bids, other], p) for p in range(1, 6)]
    assert max(map(abs, gaps)) <= 1 + 1e-9


@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), max_size=4), st.data())
def test_one_buyer_with_any_demand_loses_at_most_epsilon(table: list[list[int]], data: st.DataObject) -> None:
    new = [data.draw(st.integers(0, 4)) for _ in range(5)]
    for flip in (True, False):
        pair = np.array(table, dtype=int).reshape(-1, 5), np.array([*table, new], dtype=int)
        assert Laws.of(price(flip=flip), pair, range(1, 6)).loss() <= 1 + 1e-9


def test_the_law_is_that_of_the_selection_it_uses() -> None:
    bids = [1, 2, 2, 3, 5, 5]
    for flip, kind in ((True, PermuteAndFlip), (False, Exponential)):
        mechanism = price(flip=flip, most=Fraction(7), rows=2)
        plain = kind(epsilon=ONE, sensitivity=Fraction(14), monotone=True)
        masses = [plain.log_mass(mechanism.revenues(bids), index) for index in range(5)]
        assert mechanism.log_masses(bids) == pytest.approx(masses, abs=1e-12)
        assert [mechanism.log_mass(bids, p) for p in range(1, 6)] == pytest.approx(masses, abs=1e-12)
        assert mechanism.log_mass(bids, 6) == -math.inf
    assert price(neighbors=Neighbors.REPLACE_ONE).choosing.rate * 2 == price().choosing.rate == Fraction(1, 5)


def test_masses_of_many_prices_add_up() -> None:
    many = price(prices=tuple(Fraction(p) for p in range(1, 301)), epsilon=Fraction(1, 2))
    bids = np.random.default_rng(2).integers(0, 301, size=500)
    assert np.exp(many.log_masses(bids)).sum() == pytest.approx(1, abs=1e-9)
    assert np.exp(many.log_masses([])).tolist() == pytest.approx([1 / 300] * 300)


def test_the_expectation_is_that_of_draws() -> None:
    """100,000 draws: within 5 standard errors (false alarm 6e-7)."""
    bids = [1, 2, 2, 3, 5, 5, 4, 1]
    for flip in (True, False):
        mechanism = price(flip=flip)
        earned = dict(zip(range(1, 6), mechanism.revenues(bids).tolist(), strict=True))
        drawn = np.array([earned[p] for p in mechanism.repeat(bids, times=100_000).tolist()])
        error = drawn.std() / math.sqrt(len(drawn))
        assert abs(drawn.mean() - mechanism.expected_revenue(bids)) < 5 * error


@settings(max_examples=200)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=12), st.sampled_from([Fraction(1, 10), ONE, Fraction(9)]))
def test_nobody_loses_more_than_was_told(levels: list[int], epsilon: Fraction) -> None:
    """Any revenues at all: a table of demand makes them."""
    prices = tuple(Fraction(p) for p in range(1, len(levels) + 1))
    table = np.diag([level * 5 for level in levels])
    for flip in (True, False):
        mechanism = Price(epsilon=epsilon, prices=prices, most=Fraction(1000), flip=flip)
        best = float(max(mechanism.revenues(table)))
        assert best - mechanism.expected_revenue(table) <= mechanism.expected_loss() + 1e-9


def test_what_is_told_is_attained_by_the_exponential_mechanism() -> None:
    """One good price and equal others, at the worst distance, found by looking at all of them."""
    mechanism = price(prices=tuple(Fraction(1000 + p) for p in range(20)), flip=False)
    rate = float(mechanism.choosing.rate)
    away = np.linspace(0, 12, 100_001) / rate
    weights = 19 * np.exp(-rate * away)
    worst = float((away * weights / (1 + weights)).max())
    assert mechanism.expected_loss() == pytest.approx(worst, rel=1e-6)
    assert mechanism.expected_loss() <= math.log(20) / rate
    assert price(prices=(ONE,)).expected_loss() == 0
    finer = price(prices=(Fraction(1, 2), ONE), grid=Fraction(1, 2))
    assert finer.expected_loss() == pytest.approx(price(prices=(ONE, Fraction(2))).expected_loss() / 2)


def test_permute_and_flip_never_earns_less() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        bids = rng.integers(0, 6, size=int(rng.integers(1, 40)))
        assert price().expected_revenue(bids) >= price(flip=False).expected_revenue(bids) - 1e-12


SHAPES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "uniform": lambda rng, n: rng.random(n),
    "low": lambda rng, n: rng.exponential(0.2, n).clip(0, 1),
    "one price": lambda rng, n: np.full(n, 0.6),
    "two sorts": lambda rng, n: np.where(rng.random(n) < 0.3, 0.9, 0.2),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_theorem_of_mcsherry_and_talwar(shape: str) -> None:
    """E ≥ OPT − 3 ln(e + ε²·OPT·m)/ε with ε the exponent, wherever that is at least OPT/2; add/remove costs ε."""
    prices = tuple(Fraction(step, 500) for step in range(1, 501))
    telling = 0
    for n in (50, 300, 3000):
        bids = SHAPES[shape](np.random.default_rng(n), n)
        for epsilon in (Fraction(1, 20), Fraction(1, 5), ONE, Fraction(5)):
            mechanism = Price(epsilon=epsilon, prices=prices, grid=Fraction(1, 500), flip=False)
            assert mechanism.choosing.rate * 500 == epsilon
            earned = mechanism.revenues(bids).astype(float) / 500
            best = float(earned.max())
            sold = best / float(prices[int(np.argmax(earned))])
            bound = best - 3 * math.log(math.e + float(epsilon) ** 2 * best * sold) / float(epsilon)
            if bound >= best / 2:
                telling += 1
                assert mechanism.expected_revenue(bids) >= bound
                assert best - mechanism.expected_loss() >= bound
    assert telling >= 3


def test_events_needs_and_errors() -> None:
    assert price().event == PureEvent(bound=ONE)
    assert price(flip=False).event == BoundedRangeEvent(range=ONE)
    assert price(neighbors=Neighbors.REPLACE_ONE).event.neighbors is Neighbors.REPLACE_ONE
    assert price(rows=3).needs.sensitivity == 3
    assert price().needs.norm is Norm.ROWS
    assert price().error(beta=0.05) == pytest.approx(5 * math.log(5 / 0.05))
    assert price(epsilon=Fraction(10**6)).draw([3, 3, 3]) == 3
    tenth = price(prices=(Fraction(1, 10), Fraction(1, 5)), grid=Fraction(1, 10), epsilon=Fraction(10**6))
    assert tenth.draw([0.2] * 9) == 0.2
    assert tenth.repeat([0.2] * 9, times=3).tolist() == [0.2] * 3


def test_through_the_gate() -> None:
    meter = Meter({"buyers": Budget(epsilon=ONE)})
    facts = Facts(account="buyers", sensitivity=Sensitivity(rows=2))
    assert meter.measure(price(rows=2), Secret([1, 4, 4], facts), label="price").value in range(1, 6)
    with pytest.raises(MisfitError, match="calibrated for a change of 1 in rows"):
        meter.measure(price(), Secret([1, 4, 4], facts), label="price")


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"prices": ()}, "prices"),
        ({"prices": (2, 1)}, "prices"),
        ({"prices": (1, 1)}, "prices"),
        ({"prices": (0, 1)}, "prices"),
        ({"prices": (Fraction(1, 2),)}, "prices"),
        ({"most": 4}, "most"),
        ({"most": Fraction(1 << 61)}, "most"),
        ({"supply": 0}, "supply"),
        ({"rows": 0}, "rows"),
        ({"grid": 0}, "grid"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_refusals(bad: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError, match=f"{named} must be"):
        price(**bad)
    price(most=5)
