"""Boundaries of events, losses, filters and readings, on both sides."""

import math
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import pytest
from mpmath import mp, mpf

from hubbub.errors import AccountingError, BudgetExceeded, EventError, ParameterError
from hubbub.privacy import compose, delta_of, distribution, epsilon_of, explain, sample_size
from hubbub.privacy.accountant import ORDERS
from hubbub.privacy.events.event import (
    ApproxEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    FixedSizeSampledEvent,
    GaussianEvent,
    GroupOfTwoEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedEvent,
    ShuffledEvent,
    event_from_json,
)
from hubbub.privacy.filter import Spent, filter_for, whole_units_rounded_down
from hubbub.privacy.loss import Pld, Pure, Rdp, Zcdp
from hubbub.privacy.rounding import log_up
from hubbub.privacy.sensitivity import Neighbors
from tests.privacy.exact import discrete_gaussian, hockey_stick, real, within

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
    assert laplace.double_shift() == RepeatedEvent(event=twice, count=3)
    assert GroupOfTwoEvent(event=laplace).rho == 3 * twice.rho
    assert RepeatedEvent(event=PureEvent(bound=HALF), count=3).double_shift() is None


def test_less_than_a_step_is_accounted_as_a_step() -> None:
    part = DiscreteGaussianEvent(sigma=Fraction(4), sensitivity_squared=HALF)
    assert epsilon_of([part], delta=1e-6) == epsilon_of([DiscreteGaussianEvent(sigma=Fraction(4))], delta=1e-6)


@pytest.mark.parametrize(("squared", "shift"), [(Fraction(7, 2), 1), (Fraction(4), 2), (Fraction(899, 100), 2)])
def test_the_greatest_whole_step_within_the_sensitivity_is_accounted(squared: Fraction, shift: int) -> None:
    event = DiscreteGaussianEvent(sigma=Fraction(4), sensitivity_squared=squared)
    still, moved = (discrete_gaussian(4, shift=k, reach=70) for k in (0, shift))
    exact = hockey_stick(still, moved, HALF)
    assert exact <= delta_of([event], epsilon=HALF) <= exact * (1 + mpf(10) ** -3)


def test_rates_are_rounded_up() -> None:
    for rate in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(1, 7)):
        used = Fraction(distribution._options(rate)["sampling_prob"])
        assert rate < used < rate * (1 + Fraction(1, 1 << 51))


def test_the_share_of_a_response_that_is_kept_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """At ε = ln 2 and five categories it is a half; at a hair more it is a hair more, and so must the float be."""
    kept: list[float] = []

    class Binary:
        def compute_mixture(self, nothing: object, share: float) -> None:
            kept.append(share)

    monkeypatch.setattr(distribution, "_binary", lambda epsilon: Binary())
    bound = log_up(Fraction(2)) + Fraction(1, 1 << 80)
    distribution._k_ary(RandomizedResponseEvent(bound=bound, categories=5))
    assert kept == [math.nextafter(0.5, 1)]


def test_the_widest_discrete_gaussian_that_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dp_accounting.pld.privacy_loss_distribution.from_discrete_gaussian_mechanism", lambda sigma, *_, **__: sigma
    )
    widest = Fraction(1 << 16)
    assert distribution._discrete_gaussian(DiscreteGaussianEvent(sigma=widest), Fraction(1)) == 1 << 16
    with pytest.raises(AccountingError, match="use rdp or zcdp"):
        distribution._discrete_gaussian(DiscreteGaussianEvent(sigma=widest + Fraction(1, 1 << 60)), Fraction(1))


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


def test_a_local_event_without_a_rho_has_that_of_its_epsilon_once_shuffled() -> None:
    class Plain(Event):
        tag, schema = "plain", MappingProxyType({})
        epsilon, rho = ONE, None

        def _check(self) -> None:
            pass

    shuffled = ShuffledEvent(event=Plain(neighbors=LOCAL), reports=1)
    assert shuffled.rho == PureEvent(bound=ONE).rho


def test_the_failure_of_a_group_is_above_the_formula_up_to_its_limit() -> None:
    tiny = Fraction(1, 10**900)
    for bound in (ONE, Fraction(600), Fraction(1000)):
        group = GroupOfTwoEvent(event=ApproxEvent(bound=bound, failure=tiny))
        assert within(group.failure, (1 + mp.exp(real(bound))) * real(tiny), relative=1e-18)
    beyond = ApproxEvent(bound=1000 + MILLIONTH, failure=tiny)
    assert GroupOfTwoEvent(event=beyond).failure == 1


def test_curves_are_above_rho_times_the_order_and_end_at_epsilon() -> None:
    """Neither 1/3 nor its multiples are floats; at order 2^90 the divergence is ε but for 2^-80 of it."""
    for event in (GaussianEvent(sigma=ONE, sensitivity=Fraction(1, 3)), DiscreteGaussianEvent(sigma=Fraction(3))):
        for order in (1.5, 3.0, 1024.0):
            exact = Fraction(order) * event.rho
            assert exact < Fraction(float(event.rdp([order])[0])) < exact * (1 + Fraction(1, 1 << 48))
    for loss in (Fraction(1, 3), Fraction(2, 3), Fraction(7, 10)):
        last = Fraction(float(PureEvent(bound=loss).rdp([2.0**90])[0]))
        assert loss * (1 - Fraction(1, 1 << 80)) <= last <= loss * (1 + Fraction(1, 1 << 52))


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
