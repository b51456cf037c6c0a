"""Discrete Gaussian: the (ε, δ) and ρ it is calibrated for, exactly and tightly, for every shift that is allowed."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from hubbub.mechanisms import Gaussian, GridGaussian
from hubbub.noise import laws
from hubbub.noise.entropy import substitute
from hubbub.privacy import calibrate
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.noise.sources import Script, follows

ONE = Fraction(1)


def delta(sigma: Fraction, epsilon: Fraction, shift: int) -> Any:
    """The hockey stick of the discrete law and itself moved by ``shift``, summed at fifty digits."""
    with mp.workdps(50):
        s = mpf(sigma.numerator) / sigma.denominator
        grow = mp.exp(mpf(epsilon.numerator) / epsilon.denominator)
        reach = int(16 * sigma) + 20
        weight = {k: mp.exp(-(mpf(k) ** 2) / (2 * s * s)) for k in range(-reach - shift, reach + shift + 1)}
        gain = mp.fsum(max(mpf(0), weight[k] - grow * weight[k + shift]) for k in range(-reach, reach + 1))
        return gain / mp.fsum(weight.values())


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(3)])
@pytest.mark.parametrize("target", [Fraction(1, 1000), Fraction(1, 10**9)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_at_is_private_for_every_shift_and_tight(epsilon: Fraction, target: Fraction, sensitivity: int) -> None:
    mechanism = Gaussian.at(epsilon=epsilon, delta=target, sensitivity=sensitivity)
    exact = mpf(target.numerator) / target.denominator
    losses = [delta(mechanism.sigma, epsilon, shift) for shift in range(1, sensitivity + 1)]
    assert all(loss <= exact for loss in losses)
    assert delta(mechanism.sigma * Fraction(98, 100), epsilon, sensitivity) > exact
    assert (mechanism.dimension, mechanism.sensitivity_squared) == (1, Fraction(sensitivity**2))
    assert mechanism.needs.coordinates == 1


def delta_of_ones(sigma: Fraction, epsilon: Fraction, moved: int, step: int) -> Any:
    """The hockey stick of ``moved`` coordinates that each move by ``step``, by the law of the sum of their noise."""
    reach = int(14 * sigma) + 20
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / float(2 * sigma * sigma))
    law = np.ones(1)
    for _ in range(moved):
        law = np.convolve(law, weights / weights.sum())
    sums = np.arange(len(law)) - moved * reach
    losses = step * (sums + moved * step / 2) / float(sigma * sigma)
    return float(np.sum(law * -np.expm1(np.minimum(float(epsilon) - losses, 0))))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), ONE, Fraction(3)])
def test_several_coordinates_are_private_by_their_exact_law(epsilon: Fraction) -> None:
    target = Fraction(1, 10**6)
    mechanism = Gaussian.at(epsilon=epsilon, delta=target, sensitivity=2, coordinates=5)
    assert mechanism.sensitivity_squared == 20
    assert mechanism.dimension is None
    assert mechanism.needs.coordinates is None
    assert delta_of_ones(mechanism.sigma, epsilon, 5, 2) <= target
    assert delta_of_ones(mechanism.sigma * Fraction(98, 100), epsilon, 5, 2) > target
    # it takes vectors that move in more places by less, too
    assert mechanism.sigma == calibrate.gaussian_sigma_vector(epsilon=epsilon, delta=target, sensitivity_squared=20)
    assert delta_of_ones(mechanism.sigma, epsilon, 20, 1) <= target


def test_the_event_costs_what_sigma_costs() -> None:
    """Less noise than zCDP asks for at (ε, δ) is charged as such."""
    for neighbors in Neighbors:
        mechanism = Gaussian.at(epsilon=1, delta=1e-6, coordinates=30, neighbors=neighbors)
        assert mechanism.event.rho == 30 / (2 * mechanism.sigma**2)
        assert mechanism.event.rho > 1.1 * calibrate.rho_of(epsilon=1, delta=1e-6)
        assert mechanism.event.neighbors is neighbors


@given(st.fractions(Fraction(1, 1000), 10, max_denominator=1000), st.integers(1, 50))
def test_at_rho_is_the_least_sigma(rho: Fraction, squared: int) -> None:
    mechanism = Gaussian.at_rho(rho=rho, sensitivity_squared=squared)
    assert squared / (2 * mechanism.sigma**2) <= rho
    assert squared / (2 * (mechanism.sigma * (1 - Fraction(1, 1 << 29))) ** 2) > rho
    assert mechanism.event.rho is not None
    assert mechanism.event.rho <= rho
    assert mechanism.needs.sensitivity == squared
    assert mechanism.needs.norm is Norm.L2


@pytest.mark.parametrize("order", [2, 5, 32])
@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(2), Fraction(9)])
def test_zcdp_holds_for_the_discrete_law(sigma: Fraction, shift: int, order: int) -> None:
    mechanism = Gaussian(sigma=sigma, sensitivity_squared=Fraction(shift**2))
    with mp.workdps(40):
        reach = int(14 * sigma) + shift * order + 40
        p = [mpf(mechanism.log_mass(0, k)) for k in range(-reach, reach + 1)]
        q = [mpf(mechanism.log_mass(shift, k)) for k in range(-reach, reach + 1)]
        divergence = mp.log(mp.fsum(mp.exp(order * a + (1 - order) * b) for a, b in zip(p, q, strict=True))) / (
            order - 1
        )
        rho = mechanism.event.rho
        assert rho is not None
        assert divergence <= order * mpf(rho.numerator) / rho.denominator + mpf(10) ** -9
        if sigma > 1:
            assert divergence >= order * mpf(shift) ** 2 / (2 * mpf(float(sigma)) ** 2) * 0.999


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(2), Fraction(40)])
def test_draws_follow_the_law(sigma: Fraction) -> None:
    mechanism = Gaussian(sigma=sigma)
    support = range(7 - int(9 * sigma) - 5, 7 + int(9 * sigma) + 6)
    mass = [math.exp(mechanism.log_mass(7, k)) for k in support]
    for drawn in (
        mechanism.repeat(7, times=50_000),
        np.array([mechanism.draw(7) for _ in range(4000)]),
        np.asarray(mechanism.draw(np.full((100, 500), 7))).ravel(),
    ):
        assert follows(drawn, support, mass)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**64])
def test_nothing_wraps(value: int) -> None:
    mechanism = Gaussian(sigma=Fraction(10))
    for drawn in (mechanism.draw([value] * 20), mechanism.repeat(value, times=20)):  # type: ignore[arg-type]
        assert all(abs(int(item) - value) < 1000 for item in np.asarray(drawn))


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(3), Fraction(100)])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
@pytest.mark.parametrize("dimension", [1, 7])
def test_error_is_the_least(sigma: Fraction, beta: float, dimension: int) -> None:
    t = Gaussian(sigma=sigma).error(beta=beta, dimension=dimension)

    def exceeds(t: int) -> float:
        each = min(2 * laws.gaussian_tail(t + 1, sigma), 1 - 1e-16)
        return -math.expm1(dimension * math.log1p(-each))

    assert exceeds(t) <= beta
    assert t == 0 or exceeds(t - 1) > beta


def test_standard_deviation() -> None:
    for sigma in (Fraction(1, 2), Fraction(7)):
        mechanism = Gaussian(sigma=sigma)
        variance = sum(k * k * math.exp(mechanism.log_mass(0, k)) for k in range(-90, 91))
        assert mechanism.standard_deviation**2 == pytest.approx(variance)


class TestGrid:
    @pytest.mark.parametrize("grid", [ONE, Fraction(1, 4), Fraction(1, 3)])
    @pytest.mark.parametrize("coordinates", [1, 2, 5])
    def test_the_grown_sensitivity_bounds_rounded_vectors(self, grid: Fraction, coordinates: int) -> None:
        mechanism = GridGaussian(rho=ONE, sensitivity=Fraction(3, 2), grid=grid, coordinates=coordinates)
        grown = mechanism.steps.sensitivity_squared
        rng = np.random.default_rng(coordinates)
        worst = 0
        for _ in range(500):
            x = rng.uniform(-3, 3, size=coordinates)
            move = rng.normal(size=coordinates)
            y = x + move * (1.5 * (1 - 1e-12) / np.linalg.norm(move))
            steps = [
                math.floor(Fraction(a) / grid + Fraction(1, 2)) - math.floor(Fraction(b) / grid + Fraction(1, 2))
                for a, b in zip(x, y, strict=True)
            ]
            worst = max(worst, sum(step * step for step in steps))
        assert worst <= grown
        assert worst >= float(grown) / 4

    def test_one_coordinate_is_the_ceiling(self) -> None:
        assert GridGaussian(rho=ONE, sensitivity=Fraction(3, 2)).steps.sensitivity_squared == 4
        assert GridGaussian(rho=ONE, sensitivity=Fraction(3, 2), grid=Fraction(1, 2)).steps.sensitivity_squared == 9
        two = GridGaussian(rho=ONE, sensitivity=Fraction(3), coordinates=4).steps.sensitivity_squared
        assert two == 25  # 3 + √4
        with mp.workdps(60):
            many = GridGaussian(rho=ONE, sensitivity=Fraction(3), coordinates=2).steps.sensitivity_squared
            truth = (3 + mp.sqrt(2)) ** 2
            assert truth <= mpf(many.numerator) / many.denominator <= truth * (1 + mpf(10) ** -15)

    def test_its_claim_and_needs(self) -> None:
        mechanism = GridGaussian(rho=Fraction(1, 8), sensitivity=Fraction(2), grid=Fraction(1, 4), coordinates=3)
        assert mechanism.event.rho is not None
        assert Fraction(1, 8) * Fraction(999, 1000) <= mechanism.event.rho <= Fraction(1, 8)
        needs = mechanism.needs
        assert (needs.norm, needs.sensitivity, needs.coordinates, needs.integers) == (Norm.L2, Fraction(4), 3, False)
        assert GridGaussian(rho=ONE, sensitivity=Fraction(3)).needs.sensitivity == 9
        assert mechanism.error(beta=0.05) == (mechanism.steps.error(beta=0.05) + 0.5) / 4
        assert GridGaussian(rho=ONE, sensitivity=ONE, neighbors=Neighbors.REPLACE_ONE).event.neighbors == "replace-one"

    def test_draws_follow_the_law(self) -> None:
        mechanism = GridGaussian(rho=Fraction(1, 8), sensitivity=ONE, grid=Fraction(1, 4))
        support = range(-70, 75)
        mass = [math.exp(mechanism.log_mass(0.3, k / 4)) for k in support]
        assert sum(mass) == pytest.approx(1)
        assert follows((mechanism.repeat(0.3, times=50_000) * 4).astype(np.int64), support, mass)
        assert follows((np.asarray(mechanism.draw(np.full(50_000, 0.3))) * 4).astype(np.int64), support, mass)
        assert mechanism.log_mass(0.3, 0.1) == -math.inf

    def test_nothing_in_the_data_makes_it_raise(self) -> None:
        mechanism = GridGaussian(rho=ONE, sensitivity=ONE, grid=Fraction(1, 4))
        for value in (math.nan, math.inf, None, 10**400, 1e308):
            assert isinstance(mechanism.draw(value), float)  # type: ignore[arg-type]


def test_noise_is_drawn_with_the_sigma_of_the_claim() -> None:
    source = Script([0, 0, 0])
    with substitute(source):
        Gaussian(sigma=Fraction(5)).draw(5)
        Gaussian(sigma=Fraction(5)).draw(np.array([5]))
    assert source.kinds == [
        ("discrete-gaussian", {"sigma": 5, "size": None}),
        ("discrete-gaussian", {"sigma": 5, "size": 1}),
    ]


def test_by_default_neighbours_differ_by_one() -> None:
    mechanism = Gaussian(sigma=Fraction(3))
    assert mechanism.sensitivity_squared == mechanism.needs.sensitivity == 1
    assert mechanism.event.rho == Fraction(1, 18)


def test_sensitivities_are_kept_as_rationals() -> None:
    mechanism = Gaussian(sigma=Fraction(3), sensitivity_squared=0.1)  # type: ignore[arg-type]
    assert mechanism.sensitivity_squared == mechanism.needs.sensitivity == Fraction(0.1)
    assert type(mechanism.sensitivity_squared) is type(mechanism.needs.sensitivity) is Fraction
