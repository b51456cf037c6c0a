"""ρ and Rényi curves against exact sums at fifty digits over a dense grid of orders."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from hubbub.privacy import curves
from hubbub.privacy.events.event import DiscreteLaplaceEvent, LaplaceEvent, PureEvent, RandomizedResponseEvent
from tests.privacy.exact import discrete_laplace, hockey_stick, real, renyi, response, within

ORDERS = np.concatenate([1 + np.geomspace(1e-6, 1, 20), np.linspace(2.1, 12, 20), np.geomspace(13, 3000, 12)])
LOSSES = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(12)]
SHIFTS = [
    (Fraction(1), 1),
    (Fraction(10), 10),
    (Fraction(1, 3), 4),
    (Fraction(7, 2), 2),
    (Fraction(3), 20),
    (Fraction(12), 3),
]


def kl(p: dict[int, mpf], q: dict[int, mpf]) -> mpf:
    return mp.fsum(p[k] * mp.log(p[k] / q[k]) for k in p)


@pytest.mark.parametrize("epsilon", LOSSES)
@pytest.mark.parametrize("categories", [2, 3, 6])
def test_response_rho_is_its_kl_divergence_and_bounds_every_order(epsilon: Fraction, categories: int) -> None:
    p, q = response(epsilon, categories)
    rho = curves.response_rho_rounded_up(epsilon, categories)
    assert within(rho, kl(p, q), relative=1e-18)
    curve = curves.response_rdp(ORDERS, epsilon, categories)
    for order, bound in zip(ORDERS, curve, strict=True):
        true = renyi(p, q, order)
        assert true <= order * real(rho)
        assert true <= mpf(bound) <= true * (1 + mpf(10) ** -10)


def test_many_categories_cost_no_more_than_six() -> None:
    assert curves.response_rho_rounded_up(Fraction(1), 7) == curves.response_rho_rounded_up(Fraction(1), 6)
    assert curves.response_rho_rounded_up(Fraction(1), 6) < curves.response_rho_rounded_up(Fraction(1), 5)
    p, q = response(Fraction(4), 50)
    event = RandomizedResponseEvent(bound=Fraction(4), categories=50)
    for order, bound in zip(ORDERS, event.rdp(ORDERS), strict=True):
        assert renyi(p, q, order) <= mpf(bound)
        assert renyi(p, q, order) <= order * real(event.rho)


@pytest.mark.parametrize("epsilon", LOSSES)
def test_laplace_rho_and_curve(epsilon: Fraction) -> None:
    e = real(epsilon)
    rho = curves.laplace_rho_rounded_up(epsilon)
    assert within(rho, e + mp.exp(-e) - 1, relative=1e-18)
    for order, bound in zip(ORDERS, curves.laplace_rdp(ORDERS, epsilon), strict=True):
        a = mpf(order)
        true = mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)
        assert true <= a * real(rho)
        assert true <= mpf(bound) <= true * (1 + mpf(10) ** -7)


@pytest.mark.parametrize(("scale", "shift"), SHIFTS)
def test_discrete_laplace_rho_and_curve(scale: Fraction, shift: int) -> None:
    reach = int(80 * scale) + 3 * shift + 40
    p, q = discrete_laplace(scale, reach=reach), discrete_laplace(scale, shift=shift, reach=reach)
    rho = curves.discrete_laplace_rho_rounded_up(scale, shift)
    assert abs(real(rho) / kl(p, q) - 1) < mpf(10) ** -18
    event = DiscreteLaplaceEvent(scale=scale, sensitivity=shift)
    orders = ORDERS[::7]
    for order, bound in zip(orders, event.rdp(orders), strict=True):
        true = renyi(p, q, order)
        assert true <= order * real(rho) * (1 + mpf(10) ** -25)
        assert true * (1 - mpf(10) ** -25) <= mpf(bound) <= true * (1 + mpf(10) ** -7)


def test_discrete_laplace_is_response_at_one_and_laplace_in_the_limit() -> None:
    epsilon = Fraction(3, 4)
    assert curves.discrete_laplace_rho_rounded_up(1 / epsilon, 1) == curves.response_rho_rounded_up(epsilon)
    fine = curves.discrete_laplace_rho_rounded_up(10**9 / epsilon, 10**9)
    assert (
        curves.laplace_rho_rounded_up(epsilon)
        < fine
        < curves.laplace_rho_rounded_up(epsilon) * (1 + Fraction(1, 10**9))
    )


def test_extremes_stay_below_the_pure_bounds() -> None:
    for epsilon in [Fraction(1, 2**100), Fraction(1, 10**30), Fraction(999), Fraction(1001), Fraction(10**6)]:
        any_law = curves.response_rho_rounded_up(epsilon)
        assert any_law <= min(epsilon, epsilon**2 / 2) * (1 + Fraction(1, 2**60))
        assert curves.laplace_rho_rounded_up(epsilon) <= any_law
        assert curves.discrete_laplace_rho_rounded_up(3 / epsilon, 3) <= any_law
    assert curves.response_rho_rounded_up(Fraction(1001)) == 1001
    tiny = curves.discrete_laplace_rho_rounded_up(Fraction(2**59), 7)
    assert abs(tiny * 2**119 / 49 - 1) < Fraction(1, 10**15)


def test_discrete_laplace_noise_of_a_thousand_is_not_yet_any_law() -> None:
    """At Δ/s = 1000 the formula still takes off about 1; beyond, ε itself is the bound."""
    for shift in (6000, 10_000):
        q = mp.exp(mpf(-1) / 10)
        truth = (shift - 2 * q / (1 - q * q)) / 10
        assert within(curves.discrete_laplace_rho_rounded_up(Fraction(10), shift), truth, relative=1e-18)
    assert curves.discrete_laplace_rho_rounded_up(Fraction(10), 10_010) == 1001


@pytest.mark.parametrize("order", [30.5, 31.0, 32.0, 40.0])
def test_the_curve_of_a_response_among_very_many_categories(order: float) -> None:
    """The truth is so rare that the first of the two terms under the logarithm still counts at e^30."""
    categories, a = 10**12, mpf(order)
    truth = mp.e / (mp.e + categories - 1)
    exact = mp.log1p(truth * mp.expm1(a - 1) * -mp.expm1(-a)) / (a - 1)
    (bound,) = curves.response_rdp(np.array([order]), Fraction(1), categories)
    assert exact <= mpf(bound) <= exact * (1 + mpf(10) ** -10)


def test_curves_never_fall_and_tend_to_epsilon() -> None:
    for event in (
        LaplaceEvent(scale=Fraction(2)),
        DiscreteLaplaceEvent(scale=Fraction(2)),
        PureEvent(bound=Fraction(1, 2)),
    ):
        curve = event.rdp(np.geomspace(1.001, 1e7, 400))
        assert (np.diff(curve) >= -1e-13).all()
        assert curve[-1] == pytest.approx(0.5, abs=1e-6)
        assert curve.max() <= 0.5


@pytest.mark.parametrize("split", [(1, 1), (2, 1), (3, 2), (1, 4)])
@pytest.mark.parametrize("scale", [0.5, 2.0, 6.0])
def test_one_coordinate_is_the_worst_case_of_an_l1_ball(split: tuple[int, int], scale: float) -> None:
    k = np.arange(-int(40 * scale) - 10, int(40 * scale) + 11)
    weight = (1 - np.exp(-1 / scale)) / (1 + np.exp(-1 / scale))

    def law(shift: int) -> curves.Curve:
        masses: curves.Curve = weight * np.exp(-np.abs(k - shift) / scale)
        return masses

    first, second = split
    spread = np.outer(law(0), law(0)), np.outer(law(first), law(second))
    whole = law(0), law(first + second)
    for epsilon in np.linspace(-1.1, 1.1, 45) * (first + second) / scale:
        of_spread, of_whole = (np.maximum(0, p - np.exp(epsilon) * q).sum() for p, q in (spread, whole))
        assert of_spread <= of_whole + 1e-12


def test_hockey_stick_of_response_is_the_textbook_one() -> None:
    p, q = response(Fraction(1))
    assert abs(hockey_stick(p, q, Fraction(1, 2)) - (mp.e - mp.sqrt(mp.e)) / (1 + mp.e)) < mpf(10) ** -40
