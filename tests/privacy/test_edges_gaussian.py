"""Discrete Gaussian bounds to the last slack: against their own formulas at sixty digits, and at their far ends."""

from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from hubbub.privacy import calibrate, gaussian_curves
from hubbub.privacy.gaussian_curves import (
    _integrate,
    _sum_terms,
    continuous_delta_rounded_up,
    delta_rounded_up,
    vector_delta_rounded_up,
)
from hubbub.privacy.rounding import exp_up
from tests.privacy.exact import real

ONE = Fraction(1)


def continuous(spread: Any, epsilon: Fraction) -> Any:
    e = real(epsilon)
    return mp.ncdf(spread / 2 - e / spread) - mp.exp(e) * mp.ncdf(-spread / 2 - e / spread)


def threshold_of(sigma: Fraction, shift: int, epsilon: Fraction) -> Fraction:
    return epsilon * sigma * sigma / shift - Fraction(shift, 2)


WIDE = [
    (Fraction(9000), 9000, Fraction(1)),
    (Fraction(9000), 9000, Fraction(1, 2)),  # t = 0
    (Fraction(9000), 9000, Fraction(1, 2) + Fraction(1, 10**12)),
    (Fraction(9000), 9000, Fraction(1, 2) - Fraction(1, 10**12)),
    (Fraction(9000), 9000, Fraction(1, 4)),
    (Fraction(8193), 20000, Fraction(1, 3)),
    (Fraction(8193), 5000, Fraction(4)),
    (Fraction(100_000), 70_000, Fraction(3)),
]


@pytest.mark.parametrize(("sigma", "shift", "epsilon"), WIDE)
def test_the_integral_is_the_proven_formula(sigma: Fraction, shift: int, epsilon: Fraction) -> None:
    """The continuous δ and V/12, V ≤ 13·sup|g'|, as the module's proof has them: not a digit less."""
    with mp.workdps(60):
        s, t = real(sigma), threshold_of(sigma, shift, epsilon)
        steepest = mpf("1.11") * shift / s**2 + (0 if t >= 0 else mpf("0.61") / s)
        variation = (
            mpf(13) / 12 * steepest / (mp.sqrt(2 * mp.pi) * s) * mp.exp(-(real(max(t, Fraction(0)) / sigma) ** 2) / 2)
        )
        truth = continuous(shift / s, epsilon) + variation
        bound = real(_integrate(sigma, shift, t, epsilon))
        assert truth <= bound <= truth * (1 + mpf(10) ** -11)


@pytest.mark.parametrize("low", [1, 10, 40, 60])
def test_a_very_wide_law_is_tight_far_out(low: int) -> None:
    """There two values of erfcx nearly cancel, and the slack must be in proportion to them."""
    sigma = Fraction(1 << 26)
    epsilon = low * Fraction(141421, 100000) / sigma
    with mp.workdps(900):
        truth = continuous(1 / real(sigma), epsilon)
        assert truth <= real(delta_rounded_up(sigma, epsilon, 1)) <= truth * (1 + mpf(10) ** -4)


def test_the_sum_and_the_integral_agree_where_the_threshold_is_zero() -> None:
    sigma, shift, epsilon = Fraction(9000), 20, Fraction(20**2, 2 * 9000**2)
    exact = _sum_terms(sigma, shift, Fraction(0), epsilon)
    assert exact < _integrate(sigma, shift, Fraction(0), epsilon) < exact * (1 + Fraction(1, 10**7))


def test_the_least_excess_over_the_threshold_is_not_nothing() -> None:
    """No other noise has a weight that floats can see: were 10^-400 rounded down, δ would be 0."""
    assert _sum_terms(Fraction(1, 100), 1, 1 - Fraction(1, 10**400), ONE) > 0


def test_a_hopeless_shift_is_not_summed() -> None:
    assert delta_rounded_up(ONE, ONE, 10**18) == 1
    assert delta_rounded_up(Fraction(8192), ONE, 10**18) == 1
    assert delta_rounded_up(Fraction(8193), ONE, 10**18) == 1


def test_a_wide_law_that_hides_nothing_loses_all() -> None:
    """39σ below: too near to be hopeless by the first test, and too far for erfcx, which is infinite there."""
    assert delta_rounded_up(Fraction(9000), Fraction(1, 10**6), 702_000) == 1


@pytest.mark.parametrize("sigma", [Fraction(1, 50), Fraction(1, 1000), Fraction(1, 1 << 20)])
def test_a_narrow_law_that_hides_nothing_loses_all_and_no_more(sigma: Fraction) -> None:
    """At t = −10σ nearly all noise is 0, which is above it: no tail is small there, and the slack ends at 1."""
    assert delta_rounded_up(sigma, (Fraction(1, 2) - 10 * sigma) / sigma**2, 1) == 1


def test_far_out_the_tail_alone_is_the_bound() -> None:
    """At t = 90σ, e^(1 − t²/2σ²), and at 89σ the sum, which is far below it."""
    for sigma in (ONE, Fraction(10), Fraction(10_000)):
        far, near = ((t * sigma + Fraction(1, 2)) / sigma**2 for t in (90, 89))
        assert delta_rounded_up(sigma, far, 1) == exp_up(Fraction(1 - 4050))
        assert 0 < delta_rounded_up(sigma, near, 1) < exp_up(-Fraction(89**2, 2) - 3)


def test_the_spread_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def record(spread: Fraction, epsilon: Fraction) -> Fraction:
        seen.append(spread)
        return ONE / 3

    monkeypatch.setattr(gaussian_curves, "continuous_delta_rounded_up", record)
    monkeypatch.setattr(gaussian_curves, "_blur", lambda *_: ONE)
    for square in (2, 3, 5, 7, 10):
        vector_delta_rounded_up.__wrapped__(Fraction(3), ONE, Fraction(square), 2)
        assert Fraction(square, 8) <= seen[-1] ** 2 <= Fraction(square, 8) * (1 + Fraction(1, 1 << 60))


def test_what_rounding_by_chance_leaves_over_is_charged_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_curves, "continuous_delta_rounded_up", lambda spread, epsilon: ONE / 3)
    with mp.workdps(60):
        for sigma in (Fraction(3), Fraction(7, 2), Fraction(11)):
            blur = gaussian_curves._blur(sigma, ONE, 2)
            extra = gaussian_curves._extra_rounded_up(sigma, blur, 2)
            found = 3 * real(vector_delta_rounded_up.__wrapped__(sigma, ONE, Fraction(2), 2))
            assert 1 < mp.exp(real(extra)) <= found <= mp.exp(real(extra)) * (1 + mpf(2) ** -50)


def test_a_hopeless_vector_loses_all_and_no_more() -> None:
    """The continuous δ is 1 there, and e^η is more."""
    assert gaussian_curves._extra_rounded_up(Fraction(3), ONE, 1) > 0
    assert vector_delta_rounded_up(Fraction(3), ONE, Fraction(2500), 1) == 1


@pytest.mark.parametrize("spread", [Fraction(1, 1000), Fraction(1, 4), ONE, Fraction(3)])
def test_the_continuous_bound_has_room_for_float_errors(spread: Fraction) -> None:
    with mp.workdps(120):
        for epsilon in (Fraction(1, 1000), Fraction(1, 7), ONE):
            near = epsilon / spread - spread / 2
            if near < 12:
                truth = continuous(real(spread), epsilon)
                size = mp.erfc(real(near) / mp.sqrt(2)) * mpf(2) ** -44
                assert truth + size / 2 <= real(continuous_delta_rounded_up(spread, epsilon)) <= truth + 2 * size


def test_blur_follows_epsilon() -> None:
    """Less ε to spare, more blur: a hundredth of ε asks for ln(100)/4π² more of it."""
    more = gaussian_curves._blur(Fraction(1000), Fraction(1, 100), 1) - gaussian_curves._blur(Fraction(1000), ONE, 1)
    assert abs(float(more) - float(mp.log(100) / (4 * mp.pi**2))) < 0.001


def test_a_float_sensitivity_is_taken_exactly() -> None:
    delta = Fraction(1, 10**6)
    for square in (0.5, 2.5, 1e-3):
        calibrate._vector.cache_clear()
        sigma = calibrate.gaussian_sigma_vector(epsilon=1, delta=delta, sensitivity_squared=square)
        assert sigma == calibrate.gaussian_sigma_vector(epsilon=1, delta=delta, sensitivity_squared=Fraction(square))


def test_every_cut_of_the_extra_is_upwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """With rational stand-ins for the two exponentials the formula is exact, and its last bit shows each rounding."""
    for step in range(1, 60):
        q, both = Fraction(1, 5) - Fraction(step, 401), Fraction(step, 10007)
        given = iter((q, both))
        monkeypatch.setattr(gaussian_curves, "exp_up", lambda _, given=given: next(given))
        most = 2 * q / (1 - q**3)
        miss = 2 * both / (1 - both**3) + most * most / (1 - most)
        exact = min(ONE, 2 * miss / (1 - miss * miss))
        assert exact <= gaussian_curves._extra_rounded_up(ONE, ONE, 1) <= exact * (1 + Fraction(1, 1 << 58))
