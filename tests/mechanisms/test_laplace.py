"""Geometric, truncated geometric and Laplace on a grid: claims, laws, errors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.mechanisms import Geometric, Laplace, TruncatedGeometric
from hubbub.noise import laws
from hubbub.noise.entropy import substitute
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.noise.sources import Script, follows

ONE = Fraction(1)
epsilons = st.fractions(Fraction(1, 100), 5, max_denominator=100)
TOP = (1 << 64) - 1


class TestGeometric:
    def test_its_scale_event_and_needs(self) -> None:
        mechanism = Geometric(epsilon=Fraction(1, 10), sensitivity=2, neighbors=Neighbors.REPLACE_ONE)
        assert mechanism.scale == 20
        assert mechanism.event.epsilon == Fraction(1, 10)
        assert mechanism.event.failure == 0
        assert mechanism.event.neighbors is mechanism.needs.neighbors is Neighbors.REPLACE_ONE
        assert (mechanism.needs.norm, mechanism.needs.sensitivity) == (Norm.L1, Fraction(2))
        assert mechanism.needs.integers
        assert not mechanism.needs.monotone
        assert Geometric(epsilon=0.1).epsilon == Fraction(0.1)  # type: ignore[arg-type]

    @given(epsilons, st.integers(1, 5), st.lists(st.integers(-5, 5), min_size=1, max_size=4), st.data())
    def test_the_loss_on_neighbours_is_within_the_claim(
        self, epsilon: Fraction, sensitivity: int, value: list[int], data: st.DataObject
    ) -> None:
        mechanism = Geometric(epsilon=epsilon, sensitivity=sensitivity)
        left = sensitivity
        other = []
        for x in value:
            move = data.draw(st.integers(-left, left))
            left -= abs(move)
            other.append(x + move)
        output = data.draw(st.lists(st.integers(-9, 9), min_size=len(value), max_size=len(value)))
        loss = sum(
            mechanism.log_mass(x, y) - mechanism.log_mass(z, y) for x, z, y in zip(value, other, output, strict=True)
        )
        assert loss <= float(epsilon) * (1 + 1e-9)

    def test_the_claim_is_attained(self) -> None:
        mechanism = Geometric(epsilon=Fraction(7, 10), sensitivity=3)
        assert mechanism.log_mass(0, 0) - mechanism.log_mass(3, 0) == pytest.approx(0.7)

    def test_vectors_get_independent_noise_in_their_own_shape(self) -> None:
        drawn = Geometric(epsilon=Fraction(1, 10**6)).draw(np.zeros((300, 4), dtype=np.int64))
        assert isinstance(drawn, np.ndarray)
        assert drawn.shape == (300, 4)
        assert len(set(drawn.ravel().tolist())) > 1190

    def test_draws_are_the_value_plus_the_noise(self) -> None:
        mechanism = Geometric(epsilon=Fraction(1, 2))
        support = range(-30, 50)
        mass = [math.exp(mechanism.log_mass(10, k)) for k in support]
        assert sum(mass) == pytest.approx(1)
        for drawn in (
            mechanism.repeat(10, times=50_000),
            np.array([mechanism.draw(10) for _ in range(5000)]),
            np.asarray(mechanism.draw(np.full(50_000, 10))),
        ):
            assert follows(drawn, support, mass)
        assert type(mechanism.draw(10)) is int

    @pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**64, 10**30])
    def test_nothing_wraps(self, value: int) -> None:
        mechanism = Geometric(epsilon=Fraction(1, 10))
        assert abs(int(mechanism.draw(value)) - value) < 2000
        for drawn in (mechanism.draw([value] * 20), mechanism.repeat(value, times=20)):  # type: ignore[arg-type]
            assert all(abs(int(item) - value) < 2000 for item in np.asarray(drawn))

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(5)])
    @pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
    @pytest.mark.parametrize("dimension", [1, 7])
    def test_error_is_the_least(self, epsilon: Fraction, beta: float, dimension: int) -> None:
        mechanism = Geometric(epsilon=epsilon)
        t = mechanism.error(beta=beta, dimension=dimension)

        def exceeds(t: int) -> float:
            each = 2 * laws.laplace_tail(t + 1, mechanism.scale)
            return -math.expm1(dimension * math.log1p(-min(each, 1 - 1e-16)))

        assert exceeds(t) <= beta
        assert t == 0 or exceeds(t - 1) > beta

    def test_moments(self) -> None:
        mechanism = Geometric(epsilon=Fraction(1, 3))
        mass = {k: math.exp(mechanism.log_mass(0, k)) for k in range(-150, 151)}
        assert mechanism.mean_error == pytest.approx(sum(abs(k) * p for k, p in mass.items()))
        assert mechanism.standard_deviation**2 == pytest.approx(sum(k * k * p for k, p in mass.items()))


class TestTruncatedGeometric:
    mechanism = TruncatedGeometric(epsilon=ONE, low=-2, high=4)

    def test_masses_at_and_between_the_ends(self) -> None:
        """Seed 001: the ends hold the whole tails q^(n - low) / (1 + q)."""
        q = math.exp(-1)
        for n in range(-2, 5):
            masses = [math.exp(self.mechanism.log_mass(n, m)) for m in range(-2, 5)]
            assert masses[0] == pytest.approx(q ** (n + 2) / (1 + q))
            assert masses[-1] == pytest.approx(q ** (4 - n) / (1 + q))
            assert masses[1:-1] == pytest.approx([(1 - q) / (1 + q) * q ** abs(m - n) for m in range(-1, 4)])
            assert sum(masses) == pytest.approx(1)
        assert self.mechanism.log_mass(0, -3) == self.mechanism.log_mass(0, 5) == -math.inf

    def test_values_outside_count_as_the_ends(self) -> None:
        for m in range(-2, 5):
            assert self.mechanism.log_mass(-100, m) == self.mechanism.log_mass(-2, m)
            assert self.mechanism.log_mass(100, m) == self.mechanism.log_mass(4, m)
        support = range(-2, 5)
        mass = [math.exp(self.mechanism.log_mass(4, m)) for m in support]
        assert follows(self.mechanism.repeat(10**6, times=50_000), support, mass)
        assert follows(np.array([self.mechanism.draw(10**6) for _ in range(4000)]), support, mass)
        drawn = np.asarray(self.mechanism.draw(np.full(50_000, 10**6)))
        assert follows(drawn, support, mass)

    @given(epsilons, st.integers(-3, 8), st.integers(0, 3), st.integers(1, 3))
    def test_the_loss_is_within_the_claim(self, epsilon: Fraction, value: int, shift: int, sensitivity: int) -> None:
        mechanism = TruncatedGeometric(epsilon=epsilon, low=0, high=5, sensitivity=sensitivity)
        shift = min(shift, sensitivity)
        for m in range(6):
            assert abs(mechanism.log_mass(value, m) - mechanism.log_mass(value + shift, m)) <= float(epsilon) + 1e-9

    def test_far_ends_have_a_mass(self) -> None:
        far = TruncatedGeometric(epsilon=ONE, low=0, high=10**6)
        assert far.log_mass(0, 10**6) == pytest.approx(-(10**6) - math.log1p(math.exp(-1)))

    def test_error_event_and_needs(self) -> None:
        mechanism = TruncatedGeometric(epsilon=Fraction(1, 100), low=0, high=10, sensitivity=2)
        assert mechanism.error(beta=0.01) == 10
        assert TruncatedGeometric(epsilon=Fraction(1, 100), low=5, high=15).error(beta=0.01) == 10
        assert TruncatedGeometric(epsilon=ONE, low=0, high=10).error(beta=0.1) == Geometric(epsilon=ONE).error(beta=0.1)
        assert mechanism.event == Geometric(epsilon=Fraction(1, 100), sensitivity=2).event
        assert mechanism.needs.sensitivity == 2

    def test_object_values_are_clamped_too(self) -> None:
        drawn = np.asarray(self.mechanism.draw(np.array([2**70, -(2**70)], dtype=object)))
        assert all(-2 <= int(item) <= 4 for item in drawn)


class TestLaplace:
    def test_the_sensitivity_grows_with_the_rounding(self) -> None:
        assert Laplace(epsilon=ONE, sensitivity=ONE, grid=Fraction(1, 4)).steps.sensitivity == 4
        assert Laplace(epsilon=ONE, sensitivity=ONE, grid=Fraction(2)).steps.sensitivity == 1
        assert Laplace(epsilon=ONE, sensitivity=ONE, grid=Fraction(1, 4), coordinates=3).steps.sensitivity == 6
        assert Laplace(epsilon=ONE, sensitivity=Fraction(5, 2)).steps.sensitivity == 3
        mechanism = Laplace(epsilon=ONE, sensitivity=Fraction(5, 2), grid=Fraction(1, 3), coordinates=2)
        assert mechanism.steps.sensitivity == 9  # 7.5 + 2 = 9.5: at most 9 whole steps
        assert mechanism.event.epsilon == 1
        needs = mechanism.needs
        assert (needs.norm, needs.sensitivity, needs.coordinates, needs.integers) == (Norm.L1, Fraction(5, 2), 2, False)

    @given(
        epsilons, st.sampled_from([Fraction(1, 4), Fraction(1, 3), Fraction(2)]), st.floats(-9, 9), st.floats(-1.5, 1.5)
    )
    def test_the_loss_is_within_the_claim(self, epsilon: Fraction, grid: Fraction, value: float, move: float) -> None:
        mechanism = Laplace(epsilon=epsilon, sensitivity=Fraction(3, 2), grid=grid)
        x, y = Fraction(value), Fraction(value) + Fraction(move)
        for step in range(-12, 13, 5):
            assert abs(mechanism.log_mass(x, step * grid) - mechanism.log_mass(y, step * grid)) <= float(epsilon) + 1e-9

    def test_draws_lie_on_the_grid_and_follow_the_law(self) -> None:
        mechanism = Laplace(epsilon=ONE, sensitivity=ONE, grid=Fraction(1, 4))
        drawn = mechanism.repeat(0.3, times=50_000)
        support = range(-80, 82)
        mass = [math.exp(mechanism.log_mass(0.3, k / 4)) for k in support]
        assert follows((drawn * 4).astype(np.int64), support, mass)
        assert np.array_equal(drawn * 4, np.floor(drawn * 4))
        assert mechanism.log_mass(0.3, 0.1) == -math.inf
        many = np.asarray(mechanism.draw(np.full(50_000, 0.3)))
        assert follows((many * 4).astype(np.int64), support, mass)
        assert type(mechanism.draw(0.3)) is float
        assert type(Laplace(epsilon=ONE, sensitivity=ONE).draw(0.3)) is int

    def test_nothing_in_the_data_makes_it_raise(self) -> None:
        odd = [math.nan, math.inf, -math.inf, 1.7e308, -5e-324, 0.0]
        for grid in (ONE, Fraction(1, 4), Fraction(1, 3), Fraction(1024)):
            mechanism = Laplace(epsilon=ONE, sensitivity=Fraction(1024), grid=grid)
            assert len(mechanism.draw(np.array(odd))) == 6
            for value in [*odd, None, 10**400]:
                mechanism.draw(value)  # type: ignore[arg-type]

    def test_error_includes_the_rounding(self) -> None:
        mechanism = Laplace(epsilon=ONE, sensitivity=ONE, grid=Fraction(1, 4))
        assert mechanism.error(beta=0.05) == (mechanism.steps.error(beta=0.05) + 0.5) / 4
        assert mechanism.error(beta=0.05, dimension=9) > mechanism.error(beta=0.05)


def test_noise_is_drawn_with_the_scale_of_the_claim() -> None:
    source = Script([0, 0, 0])
    with substitute(source):
        Geometric(epsilon=Fraction(1, 3), sensitivity=2).draw(5)
        Laplace(epsilon=ONE, sensitivity=ONE, grid=Fraction(1, 4)).draw(np.array([0.5]))
    assert source.kinds[0] == ("discrete-laplace", {"scale": 6, "size": None})
    assert source.kinds[1] == ("discrete-laplace", {"scale": 4, "size": 1})
