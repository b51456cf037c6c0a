"""Inputs chosen so that the last digit of a rounding decides: there its direction shows."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from hubbub.errors import AccountingError
from hubbub.privacy import convert, curves
from hubbub.privacy import rounding as r
from hubbub.privacy.loss import response_delta_rounded_up
from tests.privacy.exact import real

HAIR, HALF = Fraction(1, 10**40), Fraction(1, 2)
ORDERS = [Fraction(9, 8), Fraction(5, 2), Fraction(37, 3), Fraction(400)]
DELTAS = [*(Fraction(1, 3**step) for step in range(9, 21)), *(Fraction(k, 23) for k in range(12, 22))]


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mp.workdps(150):
        yield


def near(x: Any) -> Fraction:
    """Within 10^-70."""
    return Fraction(int(mp.floor(x * mpf(10) ** 70)), 10**70)


def logs(order: Fraction, delta: Fraction) -> tuple[Any, Any]:
    """What the conversions take off ε and add to it."""
    a = real(order)
    return -mp.log(1 - 1 / a), -mp.log(real(delta) * a) / (a - 1)


@pytest.mark.parametrize("order", ORDERS)
def test_no_conversion_loses_a_hair(order: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms cancel to 10^-40, so that any error of a logarithm in the wrong direction is seen."""
    monkeypatch.setattr(convert, "_best_order", lambda _: order)
    to_epsilon, to_delta, to_rho = (
        bound.__wrapped__
        for bound in (convert.epsilon_of_rho_rounded_up, convert.delta_of_rho_rounded_up, convert.rho_rounded_down)
    )
    quantum = Fraction(1, 1 << 55)
    for delta in DELTAS:
        off, on = logs(order, delta)
        if off > on:
            rho = near(off - on) / order + HAIR
            assert HAIR <= to_epsilon(rho, delta) <= quantum
        else:
            epsilon = near(on - off)
            with pytest.raises(AccountingError, match="No ρ"):
                to_rho(epsilon - HAIR, delta)
            assert 0 < to_rho(epsilon + quantum, delta) <= 2 * quantum
        rho = 1 / Fraction(delta.denominator.bit_length())
        at = order * rho - near(off + mp.log(real(order)) / (real(order) - 1)) + HAIR
        if at > 0:
            assert 1 - 2 * order * HAIR <= to_delta(rho, at) <= 1


@pytest.mark.parametrize("order", ORDERS)
def test_results_are_cut_in_the_direction_of_the_name(order: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside ε = 1000 the errors of logarithms vanish and the last of 64 bits is all that is left."""
    monkeypatch.setattr(convert, "_best_order", lambda _: order)
    for step in range(1, 8):
        large, delta = 1000 + Fraction(step, 7**9), Fraction(1, 10)
        off, on = logs(order, delta)
        rho = (real(large) + off - on) / real(order)
        cut = convert.rho_rounded_down.__wrapped__(large, delta)
        assert rho * (1 - mpf(2) ** -61) < real(cut) < rho
        epsilon = real(large) * real(order) - off + on
        cut = convert.epsilon_of_rho_rounded_up.__wrapped__(large, delta)
        assert epsilon < real(cut) < epsilon * (1 + mpf(2) ** -61)


@pytest.mark.parametrize("claim", [Fraction(1), Fraction(501), Fraction(1001), Fraction(5000)])
def test_delta_of_a_pure_loss_just_below_it(claim: Fraction) -> None:
    """Above the truth even where only the last of 240 bits tells ε from the claim, and close to it where more do."""
    for gap, tight in ((Fraction(1, 1 << 239), 4), (Fraction(1, 1 << 200), 2.0**-38), (HALF, 2.0**-62)):
        exact = (1 - mp.exp(-real(gap))) / (1 + mp.exp(-real(claim)))
        assert exact <= real(response_delta_rounded_up(claim, claim - gap)) <= exact * (1 + mpf(tight))
    assert response_delta_rounded_up(claim, claim) == 0
    assert response_delta_rounded_up(Fraction(10**3000), Fraction(0)) == 1


def test_no_loss_costs_nothing_however_small_delta_is() -> None:
    assert convert.epsilon_of_rho_rounded_up(Fraction(0), Fraction(1, 10**60)) == 0
    assert convert.delta_of_rho_rounded_up(Fraction(0), Fraction(1)) == 0


@pytest.mark.parametrize("order", [1 + 2.0**-30, 1.125, 2.0, 16.0, 1024.0])
def test_curves_are_converted_with_room_for_float_errors(order: float) -> None:
    orders, a = np.array([order]), mpf(order)
    for value in (0.0, 0.75, 40.0):
        for delta in (Fraction(1, 10**300), Fraction(1, 10**9), Fraction(1, 3)):
            off, on = logs(Fraction(order), delta)
            epsilon = value - off + on
            bound = mpf(convert.epsilon_of_curve_rounded_up(orders, np.array([value]), delta))
            size = value + abs(on) + 1
            assert max(mpf(0), epsilon) <= bound <= max(mpf(0), epsilon + size * mpf(2) ** -39)
        for at in (Fraction(0), Fraction(1, 3), Fraction(45)):
            exponent = (a - 1) * (value - real(at) - off) - mp.log(a)
            size = 1 + abs(exponent) + (a - 1) * value
            bound = mpf(convert.delta_of_curve_rounded_up(orders, np.array([value]), at))
            if exponent > -600:
                assert min(mpf(1), mp.exp(exponent)) <= bound <= mp.exp(exponent + size * mpf(2) ** -40 * mpf("1.1"))
            assert 0 <= bound <= 1


def test_a_delta_of_exactly_one_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exponent of 0: e^0 rounded up would be above 1."""
    monkeypatch.setattr(convert, "_best_order", lambda _: Fraction(2))
    edge = 2 - 2 * r.log_down(Fraction(2))
    to_delta = convert.delta_of_rho_rounded_up.__wrapped__
    assert to_delta(Fraction(1), edge - HAIR) == 1 == to_delta(Fraction(1), edge)
    assert to_delta(Fraction(1), edge + Fraction(1, 1 << 50)) < 1


def distance(place: float, orders: curves.Curve) -> curves.Curve:
    return np.abs(np.log(orders - 1) - place)


def test_the_best_order_is_found_to_a_millionth_and_to_both_ends() -> None:
    def best(objective: Callable[[curves.Curve], curves.Curve]) -> float:
        return float(mp.log(real(convert._best_order(objective) - 1)))

    places = (-9.87, -3.3, -0.1, 0.123, 1.0, 2.718, 17.71, 59.9)
    found = [best(partial(distance, place)) for place in places]
    assert found == pytest.approx(places, rel=0, abs=1e-6)
    assert best(lambda a: a) == pytest.approx(-30, abs=0.01)
    assert best(lambda a: -a) == pytest.approx(60, abs=0.01)


def test_a_tiny_rho_has_its_best_order_far_out() -> None:
    """About 10^20, and ε there is about 2√(ρ·ln(1/δ))."""
    rho, delta = Fraction(1, 10**40), Fraction(1, 10**6)
    assert convert.epsilon_of_rho_rounded_up(rho, delta) < Fraction(75, 10**21)


def test_rho_of_a_loss_that_vanishes_beside_its_exponential() -> None:
    for power in (200, 300, 1000):
        tiny = Fraction(1, 1 << power)
        assert curves.response_rho_rounded_up(tiny) == tiny * tiny / 2
        assert curves.laplace_rho_rounded_up(tiny) == tiny * tiny / 2


def test_rho_of_an_absurd_loss() -> None:
    huge = Fraction(10**3000)
    assert huge - 1 <= curves.laplace_rho_rounded_up(huge) <= huge * (1 + Fraction(1, 1 << 62))


def test_rho_of_laplace_noise_keeps_its_digits_where_the_formula_cancels() -> None:
    for power in (20, 36, 50):
        e = mpf(2) ** -power
        truth = e + mp.exp(-e) - 1
        assert truth <= real(curves.laplace_rho_rounded_up(Fraction(1, 1 << power))) <= truth * (1 + mpf(2) ** -61)


@pytest.mark.parametrize("power", [1, 30, 59, 90, 100, 110])
@pytest.mark.parametrize("shift", [2, 7])
def test_rho_of_discrete_laplace_noise_is_above_the_formula_where_it_cancels(power: int, shift: int) -> None:
    s = mpf(2) ** power
    q = mp.exp(-1 / s)
    truth = (shift - 2 * q * (1 - q**shift) / (1 - q * q)) / s
    rho = real(curves.discrete_laplace_rho_rounded_up(Fraction(1 << power), shift))
    assert truth <= rho <= truth * (1 + mpf(2) ** -25)


def test_curves_end_at_epsilon_and_not_below() -> None:
    """At order 2^90 the divergence is ε but for 2^-80 of it; 1/3 and 2/3 are no floats."""
    last = np.array([2.0**90])
    for loss in (Fraction(1, 3), Fraction(2, 3), Fraction(7, 10)):
        for curve in (
            curves.response_rdp(last, loss),
            curves.laplace_rdp(last, loss),
            curves.discrete_laplace_rdp(last, 2 / loss, 2),
        ):
            assert loss * (1 - Fraction(1, 1 << 80)) <= Fraction(float(curve[0])) <= loss * (1 + Fraction(1, 1 << 52))


def test_curves_of_dp_accounting_are_enlarged_and_end_at_order_1024() -> None:
    curve = curves.poisson_gaussian_rdp(np.array([2.0, 1024.0, 1025.0]), Fraction(1), Fraction(1, 4))
    truth = mp.log(1 + (mp.e - 1) / 16)
    assert truth * (1 + mpf(2) ** -45) <= mpf(curve[0]) <= truth * (1 + mpf(2) ** -43)
    assert np.isfinite(curve[1])
    assert curve[2] == np.inf


def test_dp_accounting_is_given_no_more_noise_and_no_smaller_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(curves, "_by_dp_accounting", lambda _, event, __: seen.append(event))
    orders = np.array([2.0])
    for ratio in (Fraction(1, 3), Fraction(2, 3), Fraction(3, 10), Fraction(7, 10)):
        curves.fixed_size_gaussian_rdp(orders, ratio, 10, 100)
        curves.poisson_gaussian_rdp(orders, ratio, ratio)
        fixed, poisson = seen[-2:]
        assert (fixed.source_dataset_size, fixed.sample_size) == (100, 10)
        assert fixed.event.noise_multiplier == poisson.event.noise_multiplier == r.float_down(ratio) < ratio
        assert poisson.sampling_probability == r.float_up(ratio) > ratio


def test_thirds_are_not_short_and_dyadics_are() -> None:
    for value in (Fraction(1, 3), Fraction(2, 7), Fraction(5, 15), Fraction(1, (1 << 70) - 1)):
        assert r.short_down(value) < value < r.short_up(value)
    for value in (Fraction(3, 8), Fraction((1 << 64) - 1, 1 << 99), Fraction(7)):
        assert r.short_down(value) == value == r.short_up(value)
    assert r.short_up(Fraction((1 << 65) - 1)) == 1 << 65


@pytest.mark.parametrize("bits", [2, 8, 64, 240])
def test_shortening_keeps_all_its_bits(bits: int) -> None:
    for value in (Fraction(10**90 + 1, 10**90), Fraction(2, 3), Fraction(4, 3), Fraction(1, 1000), Fraction(10**40, 7)):
        assert r.short_up(value, bits=bits) - r.short_down(value, bits=bits) <= value / (1 << (bits - 2))


@pytest.mark.parametrize("x", [Fraction(4000, 3), Fraction(-4000, 3), Fraction(19_999, 7), Fraction(-11_999, 7)])
def test_the_argument_is_divided_out_in_the_direction_of_the_name(x: Fraction) -> None:
    """Its last of eighty digits is worth more in e^x than all that is cut off at 256 bits."""
    assert real(r.exp_down(x, bits=256)) < mp.exp(real(x)) < real(r.exp_up(x, bits=256))


def test_exponentials_and_logarithms_are_strictly_on_their_side() -> None:
    for x in (Fraction(1, 3), Fraction(-1, 3), Fraction(20), Fraction(-300)):
        for bits in (64, 240):
            assert real(r.exp_down(x, bits=bits)) < mp.exp(real(x)) < real(r.exp_up(x, bits=bits))
    for x in (Fraction(4, 3), Fraction(2), 1 + Fraction(1, 10**30), Fraction(10**50)):
        assert real(r.log_down(x)) < mp.log(real(x)) < real(r.log_up(x))
    assert r.log_up(Fraction(1)) == 0 == r.log_down(Fraction(1))
