"""Losses: order, conversions that hold, and what a person reads."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from hubbub.errors import AccountingError, ParameterError
from hubbub.privacy import convert
from hubbub.privacy.loss import Approx, Loss, Pld, Pure, Rdp, Zcdp, number, response_delta_rounded_up
from tests.privacy.exact import hockey_stick, real, response, within

HALF = Fraction(1, 2)
losses = st.fractions(min_value=Fraction(1, 1000), max_value=20)
masses = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(1, 2))


def cks_epsilon(rho: Any, delta: Any, order: Any) -> Any:
    return rho * order + mp.log(1 - 1 / order) - mp.log(delta * order) / (order - 1)


@settings(max_examples=20, deadline=None)
@given(losses, masses)
def test_conversions_of_rho_hold_and_are_best(rho: Fraction, delta: Fraction) -> None:
    epsilon = convert.epsilon_of_rho_rounded_up(rho, delta)
    best = min(cks_epsilon(real(rho), real(delta), 1 + mp.exp(mpf(t) / 20)) for t in range(-200, 400))
    assert real(epsilon) <= max(mpf(0), best) * (1 + mpf(10) ** -12) + mpf(10) ** -12
    near = min(cks_epsilon(real(rho), real(delta), 1 + mp.exp(mpf(t) / 400)) for t in range(-4000, 8000, 7))
    assert real(epsilon) >= near - abs(near) * mpf(10) ** -4 - mpf(10) ** -4
    if epsilon > 0:
        assert convert.delta_of_rho_rounded_up(rho, epsilon) <= delta * (1 + Fraction(1, 10**9))
        assert abs(convert.rho_rounded_down(epsilon, delta) / rho - 1) < Fraction(1, 10**9)
        assert convert.rho_rounded_down(epsilon, delta) <= rho * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("order", [Fraction(9, 8), Fraction(5, 2), Fraction(37, 3), Fraction(400)])
def test_every_rounding_of_a_conversion_is_towards_privacy(order: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "_best_order", lambda _: order)
    a, tight = real(order), mpf(10) ** -17
    bounds = (convert.epsilon_of_rho_rounded_up, convert.delta_of_rho_rounded_up, convert.rho_rounded_down)
    to_epsilon, to_delta, to_rho = (bound.__wrapped__ for bound in bounds)
    for step in range(1, 40):
        rho, delta, epsilon = Fraction(step, 77), Fraction(1, 3**step), Fraction(step, 9) + 2
        exact = max(mpf(0), cks_epsilon(real(rho), real(delta), a))
        assert exact <= real(to_epsilon(rho, delta)) <= exact * (1 + tight) + tight
        log_delta = (a - 1) * (real(rho) * a - real(epsilon) + mp.log(1 - 1 / a)) - mp.log(a)
        exact = min(mpf(1), mp.exp(log_delta))
        assert exact <= real(to_delta(rho, epsilon)) <= exact * (1 + tight * (10 + abs(log_delta)))
        exact = (real(epsilon) - mp.log(1 - 1 / a) + mp.log(real(delta) * a) / (a - 1)) / a
        if exact > 0:
            assert exact * (1 - tight) - tight <= real(to_rho(epsilon, delta)) <= exact
        else:
            with pytest.raises(AccountingError, match="No ρ"):
                to_rho(epsilon, delta)


def test_rho_conversion_is_above_the_exact_gaussian_curve() -> None:
    for rho, epsilon in [(0.01, 0.3), (0.5, 2.0), (0.5, 6.0), (3.0, 10.0)]:
        mu = mp.sqrt(2 * mpf(rho))
        exact = mp.ncdf(mu / 2 - mpf(epsilon) / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - mpf(epsilon) / mu)
        bound = real(convert.delta_of_rho_rounded_up(Fraction(rho), Fraction(epsilon)))
        assert exact < bound < 12 * exact


def test_rho_conversion_at_a_known_point() -> None:
    assert float(convert.epsilon_of_rho_rounded_up(HALF, Fraction(1, 10**6))) == pytest.approx(5.221534, abs=1e-6)
    assert convert.epsilon_of_rho_rounded_up(Fraction(0), HALF) == 0
    assert convert.delta_of_rho_rounded_up(Fraction(0), Fraction(0)) == 0
    assert convert.delta_of_rho_rounded_up(Fraction(100), Fraction(1, 10)) == 1


def test_curve_conversion_is_that_of_its_best_order() -> None:
    orders, curve = np.array([2.0, 8.0, 32.0]), np.array([0.1, 0.4, 1.6])
    delta = Fraction(1, 10**5)
    each = [cks_epsilon(mpf("0.05"), real(delta), mpf(a)) for a in (2, 8, 32)]
    epsilon = convert.epsilon_of_curve_rounded_up(orders, curve, delta)
    assert float(min(each)) < epsilon < float(min(each)) * (1 + 1e-11)
    assert convert.delta_of_curve_rounded_up(orders, curve, Fraction(epsilon)) == pytest.approx(1e-5, rel=1e-9)
    assert convert.delta_of_curve_rounded_up(orders, curve * 1000, Fraction(1)) == 1
    assert convert.epsilon_of_curve_rounded_up(orders, np.zeros(3), HALF) == 0


@settings(max_examples=40)
@given(losses, losses)
def test_delta_of_a_pure_loss_is_that_of_randomized_response(claim: Fraction, epsilon: Fraction) -> None:
    p, q = response(claim)
    exact = hockey_stick(p, q, epsilon)
    bound = response_delta_rounded_up(claim, epsilon)
    assert within(bound, exact, relative=1e-15) if epsilon < claim else bound == 0 == exact
    assert Pure(epsilon=claim).implies(Approx(epsilon=epsilon, delta=min(Fraction(1), bound)))
    if bound > 0:
        assert not Pure(epsilon=claim).implies(Approx(epsilon=epsilon, delta=bound * (1 - Fraction(1, 10**9))))


def test_order_within_each_currency() -> None:
    assert Pure(epsilon=HALF) <= Pure(epsilon=HALF)
    assert not Pure(epsilon=Fraction(51, 100)) <= Pure(epsilon=HALF)
    assert Zcdp(rho=HALF) <= Zcdp(rho=HALF)
    assert not Zcdp(rho=HALF) <= Zcdp(rho=Fraction(49, 100))
    assert not Zcdp(rho=HALF, failure=HALF) <= Zcdp(rho=HALF)
    assert Approx(epsilon=HALF, delta=Fraction(0)) <= Pure(epsilon=HALF)
    assert not Approx(epsilon=HALF, delta=Fraction(1, 10**9)) <= Pure(epsilon=HALF)
    one, other = Approx(epsilon=HALF, delta=Fraction(1, 100)), Approx(epsilon=Fraction(1), delta=Fraction(1, 1000))
    assert not one <= other
    assert not other <= one
    assert one <= Approx(epsilon=HALF, delta=Fraction(1, 100))
    low, high = Rdp(orders=(2.0, 4.0), values=(0.1, 0.2)), Rdp(orders=(2.0,), values=(0.1,))
    assert low <= high
    assert not high <= low
    assert Rdp(orders=(3.0,), values=(0.1,)) <= high
    assert not Rdp(orders=(1.5,), values=(0.1,)) <= high
    assert not Rdp(orders=(2.0,), values=(0.11,)) <= high
    assert not Rdp(orders=(2.0,), values=(0.1,), failure=HALF) <= high


def test_order_across_currencies() -> None:
    rho = Pure(epsilon=Fraction(1)).to_zcdp().rho
    assert Pure(epsilon=Fraction(1)) <= Zcdp(rho=rho)
    assert not Pure(epsilon=Fraction(1)) <= Zcdp(rho=rho * (1 - Fraction(1, 2**50)))
    assert Zcdp(rho=HALF) <= Rdp(orders=(2.0, 3.0), values=(1.0, 1.5))
    assert not Zcdp(rho=HALF) <= Rdp(orders=(2.0, 3.0), values=(1.0, 1.49))
    assert not Zcdp(rho=HALF, failure=HALF) <= Rdp(orders=(2.0,), values=(1.0,))
    assert Pure(epsilon=Fraction(1)) <= Rdp(orders=(1e9,), values=(1.0,))
    assert not Pure(epsilon=Fraction(1)) <= Rdp(orders=(1e9,), values=(0.999,))
    target = Zcdp(rho=HALF).to_approx(delta=Fraction(1, 10**6))
    assert Zcdp(rho=HALF * (1 - Fraction(1, 10**9))) <= target
    assert not Zcdp(rho=HALF * (1 + Fraction(1, 10**6))) <= target
    assert Pure(epsilon=Fraction(0)).to_zcdp().rho == 0
    assert Pure(epsilon=Fraction(0)) <= Rdp(orders=(2.0,), values=(0.0,))
    with pytest.raises(TypeError):
        _ = Approx(epsilon=HALF, delta=HALF) <= Zcdp(rho=HALF)
    with pytest.raises(TypeError):
        _ = Pure(epsilon=HALF) <= 1
    assert not Approx(epsilon=HALF, delta=HALF).implies(Zcdp(rho=HALF))


def test_failure_masses_stand_beside() -> None:
    rho, mass = Fraction(1, 100), Fraction(1, 10**7)
    with_failure = Zcdp(rho=rho, failure=mass)
    assert with_failure.epsilon_at(Fraction(1, 10**6)) == Zcdp(rho=rho).epsilon_at(Fraction(9, 10**7))
    assert with_failure.delta_at(1) == Zcdp(rho=rho).delta_at(1) + mass
    for loss in (with_failure, Rdp(orders=(2.0,), values=(0.1,), failure=mass), Approx(epsilon=HALF, delta=mass)):
        with pytest.raises(AccountingError, match="gives no finite ε at δ = 9e-8"):
            loss.epsilon_at(Fraction(9, 10**8))
    assert Zcdp(rho=Fraction(0), failure=mass).epsilon_at(mass) == 0
    with pytest.raises(AccountingError):
        with_failure.epsilon_at(mass)
    assert Approx(epsilon=HALF, delta=mass).epsilon_at(mass) == HALF
    assert Approx(epsilon=HALF, delta=mass).delta_at(HALF) == mass
    assert Approx(epsilon=HALF, delta=HALF).delta_at(0) == HALF + HALF * Pure(epsilon=HALF).delta_at(0)


class Flat:
    """A distribution with δ(ε) = 1/4 up to ε = 2, standing in for dp_accounting's; from 5 on its floats are wrong."""

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        return 0.25 if epsilon < 2 else 0.0 if epsilon < 5 else -0.25

    def get_epsilon_for_delta(self, delta: float) -> float:
        assert delta > 0, "Nothing is left of δ once failure and rounding are taken off."
        return 0.0 if delta >= 0.25 else 2.0 if delta > 0.125 else float("inf")


def test_a_distribution_is_read_with_its_failure_and_rounding() -> None:
    plain = Pld(distribution=Flat(), failure=Fraction(1, 16), rounding=Fraction(1, 16))
    assert plain.delta_at(1) == Fraction(3, 8)
    assert plain.delta_at(3) == plain.delta_at(5) == Fraction(1, 8)
    assert plain.epsilon_at(Fraction(3, 8)) == 0
    assert plain.epsilon_at(Fraction(37, 100)) == 2
    assert plain.epsilon_at(Fraction(3, 8) - Fraction(1, 1 << 100)) == 2  # a quarter is not left of it
    for delta in (Fraction(1, 4), Fraction(1, 8), Fraction(0)):
        with pytest.raises(AccountingError):
            plain.epsilon_at(delta)
    pure = Pld(distribution=Flat(), failure=Fraction(1, 16), rounding=Fraction(1, 16), pure=Fraction(3))
    assert pure.epsilon_at(Fraction(1, 16)) == 3
    assert pure.epsilon_at(Fraction(37, 100)) == 2
    assert pure.delta_at(3) == Fraction(1, 16)
    assert pure.delta_at(Fraction(29, 10)) == Fraction(1, 8)
    with pytest.raises(AccountingError):
        pure.epsilon_at(Fraction(1, 17))
    assert plain <= Approx(epsilon=Fraction(1), delta=Fraction(3, 8))
    assert not plain <= Approx(epsilon=Fraction(1), delta=Fraction(37, 100))


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (Pure(epsilon=HALF), "ε = 0.5"),
        (Approx(epsilon=HALF, delta=Fraction(1, 10**9)), "ε = 0.5, δ = 1e-9"),
        (Approx(epsilon=HALF, delta=Fraction(0)), "ε = 0.5"),
        (Zcdp(rho=Fraction(1, 8)), "ρ = 0.125"),
        (Zcdp(rho=Fraction(1, 8), failure=Fraction(1, 10**7)), "ρ = 0.125, δ₀ = 1e-7"),
        (Rdp(orders=(1.5, 64.0), values=(1.0, 2.0)), "Rényi curve at 2 orders, α = 1.5 to 64"),
        (Pld(distribution=None, failure=HALF), "privacy loss distribution, δ₀ = 0.5"),
    ],
)
def test_printing(loss: Loss, text: str) -> None:
    assert str(loss) == text
    assert number(1.3629249) == "1.36292"


@pytest.mark.parametrize("bad", [float("nan"), -1, float("inf"), True, "1", None], ids=repr)
def test_bad_numbers_are_refused(bad: Any) -> None:
    for make in (
        lambda: Pure(epsilon=bad),
        lambda: Approx(epsilon=bad, delta=HALF),
        lambda: Approx(epsilon=HALF, delta=bad),
        lambda: Zcdp(rho=bad),
        lambda: Zcdp(rho=HALF, failure=bad),
        lambda: Pure(epsilon=HALF).epsilon_at(bad),
        lambda: Pure(epsilon=HALF).delta_at(bad),
        lambda: Approx(epsilon=HALF, delta=HALF).delta_at(bad),
        lambda: Zcdp(rho=HALF).delta_at(bad),
        lambda: Rdp(orders=(2.0,), values=(1.0,)).delta_at(bad),
        lambda: Pld(distribution=Flat()).delta_at(bad),
        lambda: Pld(distribution=Flat(), rounding=bad),
    ):
        with pytest.raises(ParameterError):
            make()


def test_bad_curves_are_refused() -> None:
    for orders, values in [
        ((), ()),
        ((1.0,), (1.0,)),
        ((3.0, 2.0), (1.0, 1.0)),
        ((2.0,), (1.0, 2.0)),
        ((2.0,), (-0.1,)),
    ]:
        with pytest.raises(ParameterError):
            Rdp(orders=orders, values=values)
