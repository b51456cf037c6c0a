"""The bound for integer vectors: above their exact δ, just above the continuous one, and the lemma that it rests on."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from mpmath import mp, mpf

from hubbub.errors import ParameterError
from hubbub.privacy import calibrate, gaussian_curves
from hubbub.privacy.gaussian_curves import (
    continuous_delta_rounded_up,
    delta_rounded_up,
    most_coordinates,
    vector_delta_rounded_up,
)
from tests.privacy.exact import discrete_gaussian, hockey_stick, product, real, within

ONE = Fraction(1)
FINE = 1 << 20
MILLIONTH = Fraction(1, 10**6)
FLOATS = 1e-11
"""More than the relative error of the float sums below, all of whose terms are positive."""

Shifts = tuple[int, ...]


def exact_delta(sigma: float, epsilon: float, shifts: Shifts) -> float:
    """The hockey stick of noise and noise moved by ``shifts``: its loss depends on the law of Σ dᵢkᵢ alone.

    That law is convolved directly, in steps of the shifts' common divisor.
    """
    step = math.gcd(*shifts)
    reach = math.ceil(14 * sigma) + 15
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma * sigma))
    weights /= weights.sum()
    law, middle = np.ones(1), 0
    for shift in shifts:
        stretched = np.zeros(2 * reach * (shift // step) + 1)
        stretched[:: shift // step] = weights
        law, middle = np.convolve(law, stretched), middle + reach * (shift // step)
    losses = ((np.arange(len(law)) - middle) * step + squared(shifts) / 2) / (sigma * sigma)
    return float(np.sum(law * -np.expm1(np.minimum(epsilon - losses, 0))))


def squared(shifts: Shifts) -> int:
    return sum(shift * shift for shift in shifts)


def continuous_delta(spread: Any, epsilon: Fraction | float) -> Any:
    """The continuous Gaussian's δ at fifty digits, by the formula of Balle and Wang."""
    e = real(epsilon)
    return mp.ncdf(spread / 2 - e / spread) - mp.exp(e) * mp.ncdf(-spread / 2 - e / spread)


def bound(sigma: float, epsilon: float, shifts: Shifts) -> Fraction:
    return vector_delta_rounded_up(Fraction(sigma), Fraction(epsilon), Fraction(squared(shifts)), len(shifts))


def test_the_convolution_is_the_hockey_stick() -> None:
    p = discrete_gaussian(1.25, reach=20)
    moved = product(discrete_gaussian(1.25, shift=4, reach=24), discrete_gaussian(1.25, shift=2, reach=22))
    assert exact_delta(1.25, 0.5, (4, 2)) == pytest.approx(float(hockey_stick(product(p, p), moved, 0.5)), rel=1e-12)


SMALL = [0.1, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 7.5]


@pytest.mark.parametrize("shifts", [(1, 1), (3, 4), (1, 1, 1), (2, 1, 1), (1, 1, 1, 1, 1, 1), (7, 1)])
@pytest.mark.parametrize("epsilon", [0.125, 0.5, 1.0, 3.0, 8.0])
def test_the_bound_is_above_the_exact_delta_on_coarse_grids(shifts: Shifts, epsilon: float) -> None:
    bounds = [bound(sigma, epsilon, shifts) for sigma in SMALL]
    for sigma, above in zip(SMALL, bounds, strict=True):
        assert exact_delta(sigma, epsilon, shifts) * (1 - FLOATS) <= above <= 1
    assert bounds[0] == 1
    assert min(bounds) < 1


@pytest.mark.parametrize("sigma", [50.0, 120.0, 300.0])
@pytest.mark.parametrize("directions", [(1, 1), (3, 4)])
@pytest.mark.parametrize(("spread", "epsilon"), [(0.3, 0.25), (0.3, 1.0), (0.75, 1.0), (0.75, 3.0), (2.0, 1.0)])
def test_the_bound_is_tight_on_two_wide_coordinates(
    sigma: float, directions: Shifts, spread: float, epsilon: float
) -> None:
    step = round(spread * sigma / math.hypot(*directions))
    shifts = tuple(step * direction for direction in directions)
    exact = exact_delta(sigma, epsilon, shifts)
    assert exact * (1 - FLOATS) <= bound(sigma, epsilon, shifts) <= exact * (1 + 25 / sigma**1.5)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3, 2), Fraction(5), Fraction(200), Fraction(3000)])
@pytest.mark.parametrize("spread", [Fraction(1, 5), ONE])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(4)])
def test_one_coordinate_against_its_exact_curve(sigma: Fraction, spread: Fraction, epsilon: Fraction) -> None:
    shift = max(1, round(sigma * spread))
    above = vector_delta_rounded_up(sigma, epsilon, Fraction(shift**2), 1)
    exact = delta_rounded_up(sigma, epsilon, shift)  # itself a bound, within 1e-10
    assert above >= exact * (1 - Fraction(1, 10**9))
    if sigma >= 200 and exact > Fraction(1, 10**30):
        assert above <= exact * Fraction(102, 100)


COARSE = [(1.1, 3.0, (1, 1)), (0.7, 3.0, (1, 1)), (1.5, 2.0, (1, 1)), (1.0, 3.0, (1, 1, 1))]


@pytest.mark.parametrize(("sigma", "epsilon", "shifts"), COARSE)
def test_without_its_two_parts_it_would_be_too_small(
    monkeypatch: pytest.MonkeyPatch, sigma: float, epsilon: float, shifts: Shifts
) -> None:
    """The continuous formula promises too much; and with little blur, rounding is not the noise, which η has to say."""
    exact = exact_delta(sigma, epsilon, shifts)
    at = (Fraction(sigma), Fraction(epsilon), Fraction(squared(shifts)), len(shifts))
    compute = vector_delta_rounded_up.__wrapped__
    assert compute(*at) >= exact
    assert continuous_delta(mp.sqrt(squared(shifts)) / sigma, epsilon) < 0.97 * exact
    monkeypatch.setattr(gaussian_curves, "_blur", lambda *_: Fraction(1, 1000))
    assert compute(*at) == 1
    monkeypatch.setattr(gaussian_curves, "_extra_rounded_up", lambda *_: Fraction(0))
    assert compute(*at) < 0.98 * exact


BLURS = [Fraction(1, 8), Fraction(3, 16), Fraction(1, 4), Fraction(1, 2)]


@pytest.mark.parametrize("blur", BLURS)
@pytest.mark.parametrize("sigma", [ONE, Fraction(3, 2)])
def test_rounding_by_chance_is_the_noise_but_for_a_factor(blur: Fraction, sigma: Fraction) -> None:
    """R₀ by the trapezium rule (good to 20 digits for such integrands) against the shape of the noise."""
    with mp.workdps(30):
        tau, var, steps = real(blur), real(sigma) ** 2, 24
        grid = [mpf(i) / steps for i in range(-16 * steps, 16 * steps + 1)]
        about = [range(math.floor(w) - 12, math.floor(w) + 14) for w in grid]
        chances = [
            mp.npdf(w, 0, mp.sqrt(var - tau)) / steps / mp.fsum(mp.exp(-((j - w) ** 2) / (2 * tau)) for j in near)
            for w, near in zip(grid, about, strict=True)
        ]
        factors = []
        for k in range(7):
            rounded = mp.fsum(c * mp.exp(-((k - w) ** 2) / (2 * tau)) for c, w in zip(chances, grid, strict=True))
            factors.append(mp.log(rounded / mp.npdf(k, 0, mp.sqrt(var))))
        extra = real(gaussian_curves._extra_rounded_up(sigma, blur, 1))
        assert max(factors) - min(factors) <= extra < 1
        assert max(map(abs, factors)) <= extra
        assert max(map(abs, factors)) > extra / 40


@pytest.mark.parametrize("blur", [*BLURS, Fraction(3, 2)])
@pytest.mark.parametrize("moved", [1, 3])
@pytest.mark.parametrize("sigma", [ONE * 2, Fraction(1000)])
def test_the_extra_is_the_formula(blur: Fraction, moved: int, sigma: Fraction) -> None:
    q = mp.exp(-2 * mp.pi**2 * real(blur))
    both = q * mp.exp(-2 * mp.pi**2 * real(blur * (1 - blur / sigma**2)))
    most, mean = (2 * mp.fsum(base ** (n * n) for n in range(1, 12)) for base in (q, both))
    beta = mean + most**2 / (1 - most)
    assert within(
        gaussian_curves._extra_rounded_up(sigma, blur, moved), 2 * moved * beta / (1 - beta**2), relative=1e-4
    )


def test_the_extra_is_never_more_than_one_nor_less_where_blur_is_little() -> None:
    for blur in (Fraction(1, 1000), Fraction(1, 20), Fraction(815, 10**4)):  # e^(−2π²τ²) is 1/5 at 0.08154
        assert gaussian_curves._extra_rounded_up(Fraction(5), blur, 1) == 1
    assert gaussian_curves._extra_rounded_up(Fraction(5), Fraction(816, 10**4), 1) < 1
    assert gaussian_curves._extra_rounded_up(Fraction(5), Fraction(1, 8), 100) == 1


def test_the_bound_is_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = vector_delta_rounded_up.__wrapped__
    monkeypatch.setattr(gaussian_curves, "_blur", lambda *_: Fraction(1))
    for extra in (Fraction(0), Fraction(1, 10), Fraction(9, 10)):
        monkeypatch.setattr(gaussian_curves, "_extra_rounded_up", lambda *_, extra=extra: extra)
        truth = mp.exp(real(extra)) * continuous_delta(mp.sqrt(mpf(7) / 8), 2 - extra)
        assert within(compute(Fraction(3), Fraction(2), Fraction(7), 2), truth, relative=1e-9)
        if extra:
            assert compute(Fraction(3), extra, Fraction(7), 2) == 1
            assert compute(Fraction(3), extra + MILLIONTH, Fraction(7), 2) < 1
    monkeypatch.setattr(gaussian_curves, "_extra_rounded_up", lambda *_: ONE)
    assert compute(Fraction(3), Fraction(2), Fraction(7), 2) == 1


def test_the_blur_leaves_half_the_noise_and_is_near_the_best() -> None:
    for sigma in (Fraction(1, 100), Fraction(1, 2), Fraction(3)):
        assert 0 < gaussian_curves._blur(sigma, ONE, 3) <= sigma**2 / 2
    assert gaussian_curves._blur(Fraction(10), Fraction(10**9), 1) == Fraction(1, 1024)
    compute = vector_delta_rounded_up.__wrapped__
    for sigma, epsilon, moved in [(Fraction(6), ONE, 2), (Fraction(15), Fraction(3), 100), (Fraction(FINE), ONE, 9)]:
        ours = compute(sigma, epsilon, Fraction(moved), moved)
        chosen = gaussian_curves._blur(sigma, epsilon, moved)
        for factor in (Fraction(1, 2), Fraction(4, 5), Fraction(5, 4), Fraction(2)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(gaussian_curves, "_blur", lambda *_, other=chosen * factor: other)
                assert ours <= compute(sigma, epsilon, Fraction(moved), moved) * (1 + Fraction(1, 10**4))


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 10), ONE, Fraction(3), Fraction(20)])
@pytest.mark.parametrize("spread", [Fraction(1, 100), Fraction(1, 4), ONE, Fraction(3), Fraction(10), Fraction(15)])
def test_the_continuous_curve(spread: Fraction, epsilon: Fraction) -> None:
    with mp.workdps(1200):
        truth, above = continuous_delta(real(spread), epsilon), continuous_delta_rounded_up(spread, epsilon)
        if truth > mpf(10) ** -1900:
            assert within(above, truth, relative=1e-6)
        else:
            assert truth <= real(above) < mpf(10) ** -1900


def test_the_far_ends_of_the_continuous_curve() -> None:
    assert continuous_delta_rounded_up(Fraction(17), Fraction(8)) == 1
    assert continuous_delta_rounded_up(Fraction(100), ONE) == 1
    assert continuous_delta_rounded_up(Fraction(12), Fraction(1, 10**9)) < 1
    for spread, epsilon in [(Fraction(1, 10**5), ONE), (Fraction(1, 10**400), Fraction(10**400))]:
        assert 0 < continuous_delta_rounded_up(spread, epsilon) < Fraction(1, 10**2000)
    huge = Fraction(10**400)  # √2ε standard deviations apart, half of all is lost
    assert within(continuous_delta_rounded_up(huge, huge**2 / 2), mpf(1) / 2, relative=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 30.0, float(FINE)])
@pytest.mark.parametrize("spread", [0.25, 1.0])
def test_never_below_the_continuous_delta_and_close_on_fine_grids(sigma: float, epsilon: float, spread: float) -> None:
    square = max(ONE, Fraction((sigma * spread) ** 2))
    above = vector_delta_rounded_up(Fraction(sigma), Fraction(epsilon), square, 100)
    with mp.workdps(60):
        truth = continuous_delta(mp.sqrt(real(square)) / sigma, epsilon)
        assert truth <= real(above)
        if sigma == FINE:
            assert within(above, truth, relative=1e-8)


def test_the_bound_moves_the_right_way() -> None:
    def falls(bounds: list[Fraction]) -> bool:
        return all(before >= after for before, after in pairwise(bounds)) and bounds[0] > bounds[-1]

    squares = [Fraction(2), Fraction(9, 2), Fraction(20), Fraction(1000)]
    assert falls([vector_delta_rounded_up(Fraction(sigma), ONE, Fraction(8)) for sigma in (0.3, 1, 2, 2.1, 4, 30, 300)])
    assert falls([vector_delta_rounded_up(Fraction(3), Fraction(e), Fraction(8)) for e in (1e-9, 0.1, 1, 1.1, 3, 9)])
    assert falls([vector_delta_rounded_up(Fraction(7), ONE, square, 2) for square in reversed(squares)])
    assert falls([vector_delta_rounded_up(Fraction(7), ONE, Fraction(1000), t) for t in (None, 1000, 999, 30, 2, 1)])


def test_integer_vectors_differ_in_few_coordinates() -> None:
    assert most_coordinates(Fraction(299, 100), None) == 2
    assert most_coordinates(Fraction(3), None) == 3
    assert most_coordinates(Fraction(1, 2), None) == 1
    assert most_coordinates(Fraction(9), 4) == 4
    assert most_coordinates(Fraction(9), 40) == 9
    assert vector_delta_rounded_up(Fraction(7), ONE, Fraction(9), 40) == vector_delta_rounded_up(
        Fraction(7), ONE, Fraction(9)
    )


def analytic_sigma(epsilon: float, delta: Fraction) -> Any:
    """The continuous Gaussian's least σ at Δ = 1."""
    low, high = mpf("0.01"), mpf(100)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if continuous_delta(1 / middle, epsilon) > real(delta) else (low, middle)
    return high


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.25, Fraction(1, 10**9)), (1.0, MILLIONTH), (3.0, Fraction(1, 20000))]
)
@pytest.mark.parametrize("coordinates", [2, 100, None])
def test_calibration_on_a_fine_grid_is_the_analytic_gaussian(
    epsilon: float, delta: Fraction, coordinates: int | None
) -> None:
    square = Fraction(FINE**2)
    sigma = calibrate.gaussian_sigma_vector(
        epsilon=epsilon, delta=delta, sensitivity_squared=square, coordinates=coordinates
    )
    assert vector_delta_rounded_up(sigma, Fraction(epsilon), square, coordinates) <= delta
    assert within(sigma / FINE, analytic_sigma(epsilon, delta), relative=1e-8)
    by_zcdp = calibrate.gaussian_sigma_zcdp(
        rho=calibrate.rho_of(epsilon=epsilon, delta=delta), sensitivity_squared=square
    )
    assert sigma < by_zcdp * Fraction(95, 100)


@pytest.mark.parametrize("moved", [2, 3, 5])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.5, MILLIONTH), (1.0, MILLIONTH), (3.0, Fraction(1, 10**4)), (8.0, Fraction(1, 100))]
)
def test_calibrated_counts_are_private_by_the_exact_law(epsilon: float, delta: Fraction, moved: int) -> None:
    sigma = calibrate.gaussian_sigma_vector(epsilon=epsilon, delta=delta, sensitivity_squared=moved)
    rho = calibrate.rho_of(epsilon=epsilon, delta=delta)
    assert sigma <= calibrate.gaussian_sigma_zcdp(rho=rho, sensitivity_squared=moved)
    assert sigma.numerator.bit_length() <= 33
    for t in range(1, moved + 1):
        assert exact_delta(float(sigma), epsilon, (1,) * t) <= float(delta)
    if epsilon <= 1:
        assert exact_delta(float(sigma) * 0.98, epsilon, (1,) * moved) > float(delta)


def test_calibration_takes_the_least_of_its_ways() -> None:
    third = Fraction(1, 3)
    by_zcdp = calibrate.gaussian_sigma_zcdp(rho=calibrate.rho_of(epsilon=40, delta=third), sensitivity_squared=2)
    assert calibrate.gaussian_sigma_vector(epsilon=40, delta=third, sensitivity_squared=2) == by_zcdp
    for bad in (0, -1, True, 1.5):
        with pytest.raises(ParameterError, match="coordinates"):
            calibrate.gaussian_sigma_vector(epsilon=1, delta=MILLIONTH, coordinates=cast(int, bad))
