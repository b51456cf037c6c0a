"""Filters: caps hold to the last unit, in integers, and the tempting wrong filter really is wrong."""

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import AccountingError, BudgetExceeded, ParameterError
from hubbub.privacy import convert
from hubbub.privacy.events.event import (
    ApproxEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    PureEvent,
    WithFailure,
)
from hubbub.privacy.filter import (
    DELTA_UNIT,
    LOSS_UNIT,
    Budget,
    Charge,
    FamilyFilter,
    PureFilter,
    Spent,
    filter_for,
    whole_units_rounded_down,
)
from hubbub.privacy.loss import Approx, Pure
from hubbub.privacy.sensitivity import Neighbors

ONE, HALF = Fraction(1), Fraction(1, 2)
MILLIONTH = Fraction(1, 10**6)


def test_the_budget_picks_the_filter() -> None:
    assert filter_for(epsilon=1) == PureFilter(epsilon=ONE)
    assert filter_for(epsilon=1, delta=1e-6) == FamilyFilter(epsilon=ONE, delta=Fraction(1e-6))
    assert filter_for(epsilon=1, neighbors=Neighbors.LOCAL).neighbors is Neighbors.LOCAL
    assert filter_for(epsilon=1).budget == Pure(epsilon=ONE)
    assert filter_for(epsilon=1, delta=MILLIONTH).budget == Approx(epsilon=ONE, delta=MILLIONTH)


def test_budgets_are_rational_and_checked() -> None:
    budget = Budget(epsilon=0.1, delta=0.25)
    assert (budget.epsilon, budget.delta, budget.neighbors) == (Fraction(0.1), Fraction(1, 4), Neighbors.ADD_REMOVE)
    assert type(budget.epsilon) is type(budget.delta) is Fraction
    assert isinstance(budget.filter, FamilyFilter)
    assert isinstance(Budget(epsilon=ONE, neighbors=Neighbors.LOCAL).filter, PureFilter)
    wrong: list[dict[str, Any]] = [
        {"epsilon": 0},
        {"epsilon": math.inf},
        {"epsilon": ONE, "delta": 1},
        {"epsilon": ONE, "delta": -MILLIONTH},
        {"epsilon": ONE, "neighbors": "add-remove"},
    ]
    for bad in wrong:
        with pytest.raises(ParameterError, match=list(bad)[-1]):
            Budget(**bad)


def test_units_are_the_documented_ones_and_caps_round_down() -> None:
    assert Fraction(1, 2**40) == LOSS_UNIT
    assert Fraction(1, 2**62) == DELTA_UNIT
    third = filter_for(epsilon=Fraction(1, 3))
    assert third.loss_cap == 2**40 // 3
    assert third.failure_cap == 0
    zcdp = filter_for(epsilon=1, delta=MILLIONTH)
    assert zcdp.loss_cap == math.floor(convert.rho_rounded_down(ONE, MILLIONTH / 2) * 2**40)
    assert zcdp.failure_cap == 2**62 // (2 * 10**6)
    assert convert.epsilon_of_rho_rounded_up(zcdp.loss_cap * LOSS_UNIT, MILLIONTH / 2) <= ONE
    assert convert.epsilon_of_rho_rounded_up((zcdp.loss_cap + 2) * LOSS_UNIT, MILLIONTH / 2) > ONE


def test_charges_round_up() -> None:
    pure, zcdp = filter_for(epsilon=1), filter_for(epsilon=1, delta=MILLIONTH)
    assert pure.charge_of(PureEvent(bound=HALF)) == Charge(loss=2**39, pure=2**39)
    assert pure.charge_of(PureEvent(bound=Fraction(1, 3))) == Charge(loss=2**40 // 3 + 1, pure=2**40 // 3 + 1)
    assert pure.charge_of(PureEvent(bound=Fraction(1, 2**90))) == Charge(loss=1, pure=1)
    assert zcdp.charge_of(BoundedRangeEvent(range=HALF)) == Charge(loss=2**35, pure=2**39)
    gaussian = zcdp.charge_of(DiscreteGaussianEvent(sigma=Fraction(2**30)))
    assert (gaussian, gaussian.pure) == (Charge(loss=1), None)
    third = WithFailure(event=BoundedRangeEvent(range=HALF), failure=Fraction(1, 3 * 2**61))
    assert zcdp.charge_of(third) == Charge(loss=2**35, failure=1, pure=2**39)
    approx = ApproxEvent(bound=ONE, failure=MILLIONTH)
    assert zcdp.charge_of(approx).loss == math.ceil(PureEvent(bound=ONE).rho * 2**40)
    assert zcdp.charge_of(approx).failure == 2**62 // 10**6 + 1


def test_the_last_unit_fits_and_the_next_does_not() -> None:
    for account in (filter_for(epsilon=1), filter_for(epsilon=1, delta=MILLIONTH)):
        spent = Spent(loss=account.loss_cap - 5, failure=0, charges=3)
        assert account.fits(spent, Charge(loss=5))
        assert not account.fits(spent, Charge(loss=6))
        assert (account.remaining(spent).loss, account.remaining(spent).failure) == (5, account.failure_cap)
        after = account.spend(spent, Charge(loss=5))
        assert after == Spent(loss=account.loss_cap, failure=0, charges=4, pure=None)
        assert account.remaining(after).loss == 0
        with pytest.raises(BudgetExceeded) as refused:
            account.spend(after, Charge(loss=1))
        assert refused.value.operands["left"] == account.remaining(after)
        assert account.fits(after, Charge(loss=0))
    with pytest.raises(FrozenInstanceError):
        after.loss = 0  # type: ignore[misc]


def test_the_pool_of_failures_is_checked_by_itself() -> None:
    account = filter_for(epsilon=1, delta=MILLIONTH)
    spent = Spent(failure=account.failure_cap - 1)
    assert account.fits(spent, Charge(loss=1, failure=1))
    assert not account.fits(spent, Charge(loss=1, failure=2))
    full = account.spend(spent, Charge(loss=1, failure=1))
    assert account.remaining(full).parts == (Charge(loss=account.loss_cap - 1, failure=0),)
    assert account.fits(full, Charge(loss=1))
    assert not account.fits(full, Charge(loss=1, failure=1))
    with pytest.raises(BudgetExceeded, match=r"δ₀ = "):
        account.spend(full, Charge(loss=1, failure=1))
    assert not filter_for(epsilon=1).fits(Spent(), Charge(loss=1, failure=1))


def test_the_refusal_says_what_is_left() -> None:
    account = filter_for(epsilon=1)
    spent = account.spend(Spent(), account.charge_of(PureEvent(bound=Fraction(3, 4))))
    with pytest.raises(BudgetExceeded) as refused:
        account.spend(spent, account.charge_of(PureEvent(bound=HALF)))
    assert str(refused.value) == (
        "[budget-exceeded] This costs ε = 0.5; the account has ε = 0.25 left of its budget ε = 1 (1 charge). "
        "Ask for less, or request a grant."
    )


def test_a_refusal_shows_digits_enough_to_see_the_difference() -> None:
    account = filter_for(epsilon=Fraction(1, 10))
    with pytest.raises(BudgetExceeded, match=r"costs ε = 0\.1; the account has ε = 0\.099999999999 left"):
        account.spend(Spent(), account.charge_of(PureEvent(bound=Fraction(1, 10))))
    spent = account.spend(Spent(), account.charge_of(PureEvent(bound=Fraction(1, 20))))
    assert spent.charges == 1
    with pytest.raises(BudgetExceeded, match=r"costs ε = 0\.1; the account has ε = 0\.05 left .* \(1 charge\)"):
        account.spend(spent, account.charge_of(PureEvent(bound=Fraction(1, 10))))


@pytest.mark.parametrize("asked", [0.1, Fraction(1, 10), Fraction(1, 3)])
def test_questions_in_whole_units_fit_as_often_as_one_would_think(asked: Fraction | float) -> None:
    account = filter_for(epsilon=1)
    each = whole_units_rounded_down(asked)
    assert Fraction(asked) - LOSS_UNIT < each <= Fraction(asked)
    spent, times = Spent(), round(1 / asked)
    for _ in range(times):
        spent = account.spend(spent, account.charge_of(PureEvent(bound=each)))
    assert spent.charges == times
    assert not account.fits(spent, account.charge_of(PureEvent(bound=each)))


def test_less_than_a_unit_is_left_as_it_is() -> None:
    assert whole_units_rounded_down(LOSS_UNIT / 3) == LOSS_UNIT / 3
    assert whole_units_rounded_down(LOSS_UNIT) == LOSS_UNIT


def test_the_odometer() -> None:
    pure = filter_for(epsilon=1)
    assert pure.odometer(Spent()) == Pure(epsilon=Fraction(0))
    assert pure.odometer(pure.spend(Spent(), pure.charge_of(PureEvent(bound=HALF)))) == Pure(epsilon=HALF)
    zcdp = filter_for(epsilon=1, delta=MILLIONTH)
    assert zcdp.odometer(Spent(failure=4)) == Approx(epsilon=Fraction(0), delta=4 * DELTA_UNIT)
    full = zcdp.odometer(Spent(loss=zcdp.loss_cap, failure=zcdp.failure_cap, pure=None))
    assert isinstance(full, Approx)
    assert full.implies(zcdp.budget)
    assert ONE * (1 - Fraction(1, 10**8)) < full.epsilon <= ONE
    half = zcdp.odometer(Spent(loss=zcdp.loss_cap // 2, pure=None))
    assert isinstance(half, Approx)
    assert half.epsilon == convert.epsilon_of_rho_rounded_up((zcdp.loss_cap // 2) * LOSS_UNIT, MILLIONTH / 2)
    assert half.delta == MILLIONTH / 2
    loud = zcdp.spend(Spent(), zcdp.charge_of(PureEvent(bound=HALF)))
    assert zcdp.odometer(loud) == Approx(epsilon=HALF, delta=Fraction(0)), "by ε, which says less here"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1, 2)), min_size=1, max_size=30))
def test_whatever_is_let_through_stays_within_the_budget(losses: list[Fraction]) -> None:
    pure, zcdp = filter_for(epsilon=1), filter_for(epsilon=3, delta=MILLIONTH)
    spent, total = Spent(), Fraction(0)
    quiet, rho = Spent(), Fraction(0)
    for loss in losses:
        event = DiscreteLaplaceEvent(scale=1 / loss)
        if pure.fits(spent, charge := pure.charge_of(event)):
            spent, total = pure.spend(spent, charge), total + event.epsilon
        if zcdp.fits(quiet, charge := zcdp.charge_of(event)):
            quiet, rho = zcdp.spend(quiet, charge), rho + event.rho
    assert total <= spent.loss * LOSS_UNIT <= 1
    assert rho <= quiet.loss * LOSS_UNIT
    assert zcdp.odometer(quiet).implies(zcdp.budget)


def test_terms_are_checked_however_a_filter_is_made() -> None:
    half: Any = 0.5
    assert PureFilter(epsilon=half).epsilon == Fraction(1, 2)
    assert isinstance(PureFilter(epsilon=half).epsilon, Fraction)
    assert isinstance(FamilyFilter(epsilon=half, delta=half).epsilon, Fraction)
    assert isinstance(FamilyFilter(epsilon=half, delta=half).delta, Fraction)
    with pytest.raises(ParameterError):
        PureFilter(epsilon=-ONE)
    with pytest.raises(ParameterError):
        FamilyFilter(epsilon=-ONE, delta=HALF)
    with pytest.raises(ParameterError):
        FamilyFilter(epsilon=ONE, delta=Fraction(0))


def test_an_overdrawn_account_has_nothing_left() -> None:
    for account in (filter_for(epsilon=1), filter_for(epsilon=1, delta=MILLIONTH)):
        beyond = Spent(loss=account.loss_cap + 1, failure=account.failure_cap + 1)
        assert (account.remaining(beyond).loss, account.remaining(beyond).failure) == (0, 0)
        assert not account.fits(beyond, Charge(loss=0))


def test_what_a_filter_cannot_count_is_refused() -> None:
    pure = filter_for(epsilon=1)
    for event in (DiscreteGaussianEvent(sigma=ONE), ApproxEvent(bound=HALF, failure=MILLIONTH)):
        with pytest.raises(AccountingError, match="not pure"):
            pure.charge_of(event)
    for account in (pure, filter_for(epsilon=1, delta=MILLIONTH)):
        with pytest.raises(AccountingError, match="replace-one"):
            account.charge_of(PureEvent(bound=HALF, neighbors=Neighbors.REPLACE_ONE))
    nonsense: tuple[Any, ...] = (float("nan"), -1, 0, float("inf"), 1e-400, True, "1")
    for bad in nonsense:
        with pytest.raises(ParameterError):
            filter_for(epsilon=bad)
        if bad != 0:
            with pytest.raises(ParameterError):
                filter_for(epsilon=1, delta=bad)
    with pytest.raises(ParameterError):
        filter_for(epsilon=1, delta=1)


# The planted bug: "go on while some Rényi order fits at the full δ".

BUDGET, SLACK = 8.0, 0.05
ORDERS = (1.6, 8.0)
Coin = tuple[float, float]  # the chance of heads on either side of a pair of neighbours


def renyi(coin: Coin, order: float) -> float:
    def one_way(p: float, q: float) -> float:
        moment = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
        return math.log(moment) / (order - 1)

    return max(one_way(*coin), one_way(*coin[::-1]))


def fits(coins: list[Coin], order: float) -> bool:
    total = sum(renyi(coin, order) for coin in coins)
    return total + math.log1p(-1 / order) - math.log(SLACK * order) / (order - 1) <= BUDGET


def test_letting_the_answers_choose_the_order_spends_more_than_delta() -> None:
    truth = 1 / (1 + math.exp(-0.3))
    first: Coin = (truth, 1 - truth)
    after = {True: (0.6843, 2.72e-4), False: (0.06087, 5.72e-6)}
    for second in after.values():
        assert any(fits([first, second], order) for order in ORDERS)
        assert not all(fits([first, second], order) for order in ORDERS)

    def outcomes(side: int) -> dict[tuple[bool, bool], float]:
        chances: dict[tuple[bool, bool], float] = {}
        for one, coin in after.items():
            start = first[side] if one else 1 - first[side]
            chances |= {(one, True): start * coin[side], (one, False): start * (1 - coin[side])}
        return chances

    here, there = outcomes(0), outcomes(1)
    real = sum(max(0.0, here[way] - math.exp(BUDGET) * there[way]) for way in here)
    assert real > 1.25 * SLACK
