"""Boundaries of events, losses, filters and readings, on both sides."""

import math
from fractions import Fraction
from typing import Any

import pytest

from hubbub.errors import AccountingError, BudgetExceeded, EventError, ParameterError
from hubbub.privacy import compose, epsilon_of, explain, sample_size
from hubbub.privacy.accountant import ORDERS
from hubbub.privacy.event import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    FixedSizeSampledEvent,
    GaussianEvent,
    GroupOfTwoEvent,
    LaplaceEvent,
    PureEvent,
    RepeatedEvent,
    ShuffledEvent,
    event_from_json,
)
from hubbub.privacy.filter import Spent, filter_for, whole_units_rounded_down
from hubbub.privacy.loss import Pld, Pure, Rdp, Zcdp
from hubbub.privacy.neighbors import Neighbors

ONE, HALF, MILLIONTH = Fraction(1), Fraction(1, 2), Fraction(1, 10**6)
LOCAL, REPLACE = Neighbors.LOCAL, Neighbors.REPLACE_ONE


def test_orders_are_the_promised_ones() -> None:
    assert set(ORDERS) == {
        *(1 + tenth / 10 for tenth in range(1, 100)),
        *range(2, 65),
        *(2**k for k in range(7, 21)),
    }
    assert list(ORDERS) == sorted(set(ORDERS))


def test_every_convolution_is_charged_its_rounding() -> None:
    for count in (1, 3):
        loss = compose([RepeatedEvent(event=PureEvent(bound=HALF), count=count)])
        assert isinstance(loss, Pld)
        assert loss.rounding == Fraction(count, 1 << 51)


def test_sums_of_curves_are_above_the_exact_sums_and_close() -> None:
    events = [RepeatedEvent(event=PureEvent(bound=Fraction(1, 3)), count=3), LaplaceEvent(scale=Fraction(7))]
    whole = compose(events, method="rdp")
    assert isinstance(whole, Rdp)
    once, again = PureEvent(bound=Fraction(1, 3)).rdp(ORDERS), LaplaceEvent(scale=Fraction(7)).rdp(ORDERS)
    for value, a, b in zip(whole.values, once, again, strict=True):
        exact = 3 * Fraction(float(a)) + Fraction(float(b))
        assert exact < Fraction(float(value)) < exact * (1 + Fraction(1, 10**13))


def test_repeated_shift_laws_are_doubled_part_by_part() -> None:
    laplace = RepeatedEvent(event=LaplaceEvent(scale=Fraction(10)), count=3)
    twice = LaplaceEvent(scale=Fraction(10), sensitivity=Fraction(2))
    assert laplace.doubled() == RepeatedEvent(event=twice, count=3)
    assert GroupOfTwoEvent(event=laplace).rho == 3 * twice.rho
    assert RepeatedEvent(event=PureEvent(bound=HALF), count=3).doubled() is None


def test_less_than_a_step_is_accounted_as_a_step() -> None:
    part = DiscreteGaussianEvent(sigma=Fraction(4), sensitivity_squared=HALF)
    assert epsilon_of([part], delta=1e-6) == epsilon_of([DiscreteGaussianEvent(sigma=Fraction(4))], delta=1e-6)


@pytest.mark.parametrize("dimension", [None, 1, 3])
def test_dimensions_are_read_back(dimension: int | None) -> None:
    event = DiscreteGaussianEvent(sigma=Fraction(3), dimension=dimension)
    assert event_from_json(event.to_json()) == event
    for bad in ("3", 3.0, True, 0):
        with pytest.raises(EventError):
            event_from_json(event.to_json() | {"dimension": bad})


def test_one_bad_order_among_good_ones_is_refused() -> None:
    for bad in (math.inf, math.nan, 1.0):
        for orders in ([2.0, bad], [bad, 2.0]):
            with pytest.raises(ParameterError, match="orders"):
                PureEvent(bound=HALF).rdp(orders)


def test_the_smallest_samples_and_shuffles() -> None:
    pure = PureEvent(bound=HALF, neighbors=REPLACE)
    assert FixedSizeSampledEvent(event=pure, size=1, population=1).epsilon == HALF
    with pytest.raises(ParameterError, match="population"):
        FixedSizeSampledEvent(event=pure, size=1, population=0)
    local = PureEvent(bound=HALF, neighbors=LOCAL)
    assert ShuffledEvent(event=local, reports=1).reports == 1
    assert ShuffledEvent(event=local, reports=1, failure=1 - MILLIONTH).failure == 1 - MILLIONTH
    for bad in (ONE, Fraction(3, 2), -MILLIONTH):
        with pytest.raises(ParameterError, match="failure"):
            ShuffledEvent(event=local, reports=1, failure=bad)
    quiet = ShuffledEvent(event=BoundedRangeEvent(range=ONE, neighbors=LOCAL), reports=9)
    assert quiet.rho == Fraction(1, 8)


def test_groups_without_failures_have_none() -> None:
    assert GroupOfTwoEvent(event=GaussianEvent(sigma=ONE)).failure == 0
    assert GroupOfTwoEvent(event=PureEvent(bound=Fraction(2000))).failure == 0


def test_no_delta_is_more_than_one() -> None:
    assert Zcdp(rho=Fraction(100), failure=HALF).delta_at(0) == 1
    assert Rdp(orders=(2.0,), values=(9.0,), failure=HALF).delta_at(0) == 1


def test_curves_with_a_failure_mass() -> None:
    half: Any = 0.5
    curve = Rdp(orders=(2.0,), values=(0.1,), failure=half)
    assert isinstance(curve.failure, Fraction)
    with pytest.raises(AccountingError, match="no finite ε"):
        curve.epsilon_at(HALF)
    assert curve.epsilon_at(HALF + MILLIONTH) > 10
    assert Zcdp(rho=Fraction(0)).epsilon_at(0) == 0
    for bad in (-MILLIONTH, 1 + MILLIONTH, float("nan")):
        value: Any = bad
        with pytest.raises(ParameterError, match="failure"):
            Rdp(orders=(2.0,), values=(0.1,), failure=value)
        with pytest.raises(ParameterError, match="failure"):
            Pld(distribution=None, failure=value)


def test_every_order_and_every_value_of_a_curve_is_checked() -> None:
    for orders in ((1.0, 2.0), (0.5, 2.0), (2.0, 2.0), (3.0, 2.0)):
        with pytest.raises(ParameterError, match="orders"):
            Rdp(orders=orders, values=(1.0, 1.0))
    for values in ((0.1, -0.1), (-0.1, 0.1), (0.1, math.nan)):
        with pytest.raises(ParameterError, match="values"):
            Rdp(orders=(2.0, 3.0), values=values)
    assert Rdp(orders=(2.0, 3.0), values=(0.0, math.inf)).value_at(2) == 0


def test_a_pure_loss_is_below_a_curve_only_at_every_order() -> None:
    for values in ((9.0, 0.5), (0.001, 9.0)):
        assert not Pure(epsilon=ONE) <= Rdp(orders=(2.0, 1e9), values=values)
    assert Pure(epsilon=ONE) <= Rdp(orders=(2.0, 1e9), values=(9.0, 9.0))
    assert Pure(epsilon=Fraction(0)) <= Rdp(orders=(1.001, 2.0, 1e9), values=(0.0, 0.0, 0.0))


def test_a_distribution_is_asked_at_real_epsilons_only() -> None:
    for bad in (-1, math.nan, math.inf, True):
        for pure in (None, HALF):
            with pytest.raises(ParameterError, match="epsilon"):
                Pld(distribution=None, pure=pure).delta_at(bad)
    assert Pld(distribution=None, pure=HALF).delta_at(0.5) == 0


def test_filters_say_which_numbers_they_take() -> None:
    for bad in (1, 1.5, 2, -0.1):
        with pytest.raises(ParameterError, match=r"delta must be a number in \[0, 1\)"):
            filter_for(epsilon=1, delta=bad)
    assert filter_for(epsilon=1, delta=1 - MILLIONTH).loss_cap > 0
    for bad in (0, -1, math.nan, math.inf, True):
        with pytest.raises(ParameterError, match="epsilon must be a positive number"):
            whole_units_rounded_down(bad)


def test_a_refusal_has_six_digits() -> None:
    account = filter_for(epsilon=Fraction(1234567, 10**7))
    with pytest.raises(BudgetExceeded, match=r"costs ε = 0\.765432; the account has ε = 0\.123457 left"):
        account.spend(Spent(), account.charge_of(PureEvent(bound=Fraction(7654321, 10**7))))


def test_a_probability_is_at_most_one() -> None:
    for bad in (1 + MILLIONTH, 1.5, 2, -MILLIONTH):
        with pytest.raises(ParameterError, match=r"without must be a number in \[0, 1\]"):
            explain(1).probability_of(bad)
        with pytest.raises(ParameterError, match=r"false_positives must be a number in \[0, 1\]"):
            explain(1).power(bad)


def test_study_plans_at_great_losses_and_whole_borders() -> None:
    assert sample_size(alpha=Fraction(1, 10**150), epsilon=900, method="randomized-response") == 1
    for near in (Fraction(0), Fraction(1, 10**9), -Fraction(1, 10**9)):
        squared = 9 + near
        n = sample_size(alpha=1, epsilon=Fraction(math.sqrt(2 / squared)))
        exact = 2 / Fraction(math.sqrt(2 / squared)) ** 2
        assert n * n >= exact > (n - 1) ** 2
