"""Compositions: the figures we must reproduce, and upper bounds that really are above exact sums."""

import math
import subprocess
import sys
from fractions import Fraction

import pytest
from mpmath import mpf

from hubbub.errors import AccountingError, ParameterError
from hubbub.privacy import accountant, compose, delta_of, epsilon_of
from hubbub.privacy.accountant import Method
from hubbub.privacy.events.event import (
    ApproxEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    FixedSizeSampledEvent,
    GaussianEvent,
    GroupOfTwoEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedEvent,
    ShuffledEvent,
    WithFailure,
)
from hubbub.privacy.loss import Approx, Pld, Pure, Rdp, Zcdp
from hubbub.privacy.rounding import float_up
from hubbub.privacy.sensitivity import Neighbors
from tests.privacy.exact import (
    discrete_gaussian,
    discrete_laplace,
    hockey_stick,
    product,
    repeated_response_delta,
    response,
)

DELTA = 1e-6
HALF = Fraction(1, 2)
REPLACE = Neighbors.REPLACE_ONE


def times(event: Event, count: int) -> Event:
    return RepeatedEvent(event=event, count=count)


FIGURES = [
    (times(LaplaceEvent(scale=Fraction(100)), 1000), "pld", 1.36292),
    (times(LaplaceEvent(scale=Fraction(100)), 1000), "rdp", 1.46584),
    (times(GaussianEvent(sigma=Fraction(10)), 100), "pld", 4.88655),
    (times(GaussianEvent(sigma=Fraction(10)), 100), "rdp", 5.22154),
    (times(PoissonSampledEvent(event=GaussianEvent(sigma=Fraction(1)), rate=Fraction(1, 100)), 10_000), "pld", 6.90742),
    (times(PoissonSampledEvent(event=GaussianEvent(sigma=Fraction(1)), rate=Fraction(1, 100)), 10_000), "rdp", 7.41410),
    (times(DiscreteLaplaceEvent(scale=Fraction(100)), 1000), "pld", 1.36545),
    (times(PureEvent(bound=Fraction(1, 100)), 1000), "pld", 1.36545),
    (times(DiscreteGaussianEvent(sigma=Fraction(10)), 100), "pld", 4.88710),
]


@pytest.mark.parametrize(("event", "method", "figure"), FIGURES)
def test_published_figures(event: Event, method: Method, figure: float) -> None:
    assert epsilon_of([event], delta=DELTA, method=method) == pytest.approx(figure, abs=1e-5)


@pytest.mark.parametrize(("count", "epsilon"), [(1, 0.7), (10, 0.5), (100, 0.1), (1000, 0.01), (3000, 0.03)])
def test_distributions_are_upper_bounds_where_exact_sums_exist(count: int, epsilon: float) -> None:
    events = [times(PureEvent(bound=Fraction(epsilon)), count)]
    for at in (0.0, 0.3, 0.5, 1.3, 2.1, 3.0):
        exact = repeated_response_delta(count, epsilon, at)
        assert exact <= mpf(delta_of(events, epsilon=at)) <= exact * (1 + mpf(10) ** -3) + mpf(10) ** -11
        assert exact <= mpf(delta_of(events, epsilon=at, method="rdp"))
        assert exact <= mpf(delta_of(events, epsilon=at, method="zcdp"))


def test_answers_are_rounded_up_to_a_float() -> None:
    """None of these is a float, and the nearest is below or above."""
    for third in (Fraction(1, 3), Fraction(2, 3), Fraction(3, 10)):
        delta = delta_of([ApproxEvent(bound=HALF, failure=third)], epsilon=HALF, method="pure")
        epsilon = epsilon_of([PureEvent(bound=third)], method="pure")
        assert delta == epsilon == float_up(third)
        assert Fraction(delta) > third


def test_mixtures_of_discrete_laws_are_upper_bounds() -> None:
    events = [DiscreteLaplaceEvent(scale=Fraction(2), sensitivity=2), DiscreteGaussianEvent(sigma=Fraction(3, 2))]
    p = product(discrete_laplace(Fraction(2), reach=60), discrete_gaussian(Fraction(3, 2), reach=18))
    q = product(discrete_laplace(Fraction(2), shift=2, reach=60), discrete_gaussian(Fraction(3, 2), shift=1, reach=18))
    for at in (0.0, 0.5, 1.0, 2.0):
        exact = hockey_stick(p, q, at)
        bound = mpf(delta_of(events, epsilon=at))
        assert exact <= bound <= exact * (1 + mpf(10) ** -3)
        assert exact <= mpf(delta_of(events, epsilon=at, method="rdp"))


@pytest.mark.parametrize("categories", [3, 8])
def test_k_ary_response_is_accounted_by_its_own_law(categories: int) -> None:
    p, q = response(HALF, categories)
    events = [times(RandomizedResponseEvent(bound=HALF, categories=categories), 2)]
    for at in (0.0, 0.4, 0.9):
        exact = hockey_stick(product(p, p), product(q, q), at)
        assert exact <= mpf(delta_of(events, epsilon=at)) <= exact * (1 + mpf(10) ** -3)


def test_poisson_samples_of_discrete_laws_are_upper_bounds_in_both_directions() -> None:
    rate = mpf(1) / 4
    base, moved = discrete_laplace(Fraction(1), reach=60), discrete_laplace(Fraction(1), shift=1, reach=60)
    mixed = {k: (1 - rate) * base[k] + rate * moved[k] for k in base}
    events = [PoissonSampledEvent(event=DiscreteLaplaceEvent(scale=Fraction(1)), rate=Fraction(1, 4))]
    for at in (0.0, 0.1, 0.2, 0.3):
        exact = max(hockey_stick(mixed, base, at), hockey_stick(base, mixed, at))
        assert exact <= mpf(delta_of(events, epsilon=at)) <= exact * (1 + mpf(10) ** -2) + mpf(10) ** -12


def test_replace_one_is_never_an_add_remove_event_charged_once() -> None:
    once = GaussianEvent(sigma=Fraction(2))
    group = GroupOfTwoEvent(event=once)
    twice_the_shift = GaussianEvent(sigma=Fraction(1), neighbors=REPLACE)
    for method in ("pld", "rdp", "zcdp"):
        assert epsilon_of([group], delta=DELTA, method=method) == epsilon_of(
            [twice_the_shift], delta=DELTA, method=method
        )
        assert epsilon_of([group], delta=DELTA, method=method) > 1.9 * epsilon_of([once], delta=DELTA, method=method)
    assert epsilon_of([GaussianEvent(sigma=Fraction(2), neighbors=REPLACE)], delta=DELTA) == epsilon_of(
        [once], delta=DELTA
    )


def test_groups_are_pushed_into_sequences() -> None:
    laplace, approx = LaplaceEvent(scale=Fraction(10)), ApproxEvent(bound=Fraction(1, 10), failure=Fraction(1, 10**8))
    plan = ComposedEvent(events=(times(laplace, 3), approx, PureEvent(bound=Fraction(1, 10))))
    group = GroupOfTwoEvent(event=plan)
    apart = [
        times(LaplaceEvent(scale=Fraction(5), neighbors=REPLACE), 3),
        GroupOfTwoEvent(event=approx),
        PureEvent(bound=Fraction(1, 5), neighbors=REPLACE),
    ]
    assert epsilon_of([group], delta=DELTA) == pytest.approx(epsilon_of(apart, delta=DELTA), rel=1e-12)
    assert compose([group], method="pure") == compose(apart, method="pure")
    with pytest.raises(AccountingError):
        compose([GroupOfTwoEvent(event=ComposedEvent(events=(WithFailure(event=once_gaussian(), failure=HALF),)))])


def once_gaussian() -> Event:
    return GaussianEvent(sigma=Fraction(2))


def test_failure_masses_are_added_beside() -> None:
    mass = Fraction(1, 10**7)
    base = DiscreteGaussianEvent(sigma=Fraction(5))
    events = [
        WithFailure(event=ComposedEvent(events=(base, base)), failure=mass),
        ApproxEvent(bound=HALF, failure=mass),
    ]
    clean = [base, base, PureEvent(bound=HALF)]
    for method in ("pld", "rdp", "zcdp"):
        assert delta_of(events, epsilon=1, method=method) == pytest.approx(
            delta_of(clean, epsilon=1, method=method) + 2e-7, rel=1e-9
        )
        assert epsilon_of(events, delta=float(mass), method=method) == math.inf
    assert compose([events[1]], method="pure") == Approx(epsilon=HALF, delta=mass)
    assert epsilon_of([events[1]], delta=0, method="pure") == math.inf
    assert epsilon_of([events[1]], delta=mass, method="pure") == 0.5


def test_the_rounding_of_convolutions_adds_up_to_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accountant, "_CONVOLUTION_ERROR", HALF)
    for count, rounding in ((1, HALF), (2, 1), (3, 1)):
        loss = compose([RepeatedEvent(event=LaplaceEvent(scale=Fraction(1)), count=count)])
        assert isinstance(loss, Pld)
        assert loss.rounding == rounding


def test_methods_return_their_currency() -> None:
    events = [PureEvent(bound=HALF), PureEvent(bound=HALF)]
    assert compose(events, method="pure") == Pure(epsilon=Fraction(1))
    assert compose(events, method="zcdp") == Zcdp(rho=2 * PureEvent(bound=HALF).rho)
    assert isinstance(compose(events, method="rdp"), Rdp)
    assert isinstance(compose(events), Pld)
    assert epsilon_of(events, delta=0) == 1.0
    assert delta_of(events, epsilon=1) == 0.0
    assert delta_of(events, epsilon=0.999) > 0
    assert epsilon_of([BoundedRangeEvent(range=HALF)], delta=DELTA) == pytest.approx(0.5, abs=1e-4)
    local = PureEvent(bound=Fraction(1), neighbors=Neighbors.LOCAL)
    shuffled = ShuffledEvent(event=local, reports=10**4, failure=Fraction(1, 10**7))
    assert epsilon_of([shuffled], delta=DELTA) < 0.08
    sampled = FixedSizeSampledEvent(event=GaussianEvent(sigma=Fraction(2), neighbors=REPLACE), size=1, population=100)
    assert epsilon_of([sampled], delta=DELTA, method="rdp") < 0.5 * epsilon_of(
        [sampled.event], delta=DELTA, method="rdp"
    )


def test_refusals() -> None:
    with pytest.raises(AccountingError, match=r"add-remove, replace-one"):
        compose([PureEvent(bound=HALF), PureEvent(bound=HALF, neighbors=REPLACE)])
    with pytest.raises(AccountingError, match="no events"):
        compose([])
    with pytest.raises(AccountingError, match="pure"):
        compose([GaussianEvent(sigma=HALF)], method="pure")
    for event in (
        DiscreteGaussianEvent(sigma=Fraction(2), dimension=3),
        DiscreteGaussianEvent(sigma=Fraction(2**16 + 1)),
        PoissonSampledEvent(event=times(GaussianEvent(sigma=HALF), 2), rate=HALF),
    ):
        with pytest.raises(AccountingError, match="use rdp or zcdp"):
            epsilon_of([event], delta=DELTA)
        assert epsilon_of([event], delta=DELTA, method="rdp") < math.inf
    with pytest.raises(ParameterError):
        compose(["pure"])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="method must be one of pld, rdp, zcdp, pure"):
        compose([PureEvent(bound=HALF)], method="magic")  # type: ignore[arg-type]
    for bad in (float("nan"), -1, 1, True, "1"):
        with pytest.raises(ParameterError):
            epsilon_of([PureEvent(bound=HALF)], delta=bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        delta_of([PureEvent(bound=HALF)], epsilon=-1)


def test_whole_shifts_are_used_for_integers() -> None:
    assert epsilon_of([DiscreteGaussianEvent(sigma=Fraction(4), sensitivity_squared=Fraction(8))], delta=DELTA) == (
        epsilon_of([DiscreteGaussianEvent(sigma=Fraction(4), sensitivity_squared=Fraction(4))], delta=DELTA)
    )


def test_dp_accounting_is_imported_late() -> None:
    code = "import sys, hubbub.privacy; print('dp_accounting' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
