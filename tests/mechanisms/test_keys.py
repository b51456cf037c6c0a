"""The optimal and the weighted selection of keys, and the choice between all of them."""

import itertools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from hubbub.mechanisms import (
    GaussianThreshold,
    LaplaceThreshold,
    OptimalKeys,
    TruncatedThreshold,
    WeightedGaussianThreshold,
    select_keys,
)
from hubbub.mechanisms.keys import key_selection as key_module
from hubbub.privacy import calibrate
from hubbub.privacy.events.event import ApproxEvent, WithFailure
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.noise.sources import follows

ONE = Fraction(1)
PRECISION = 200


def real(x: Fraction) -> Any:
    return mpf(x.numerator) / x.denominator


class TestOptimalKeys:
    CASES = tuple(itertools.product([Fraction(1, 4), ONE, Fraction(3)], [Fraction(1, 10), Fraction(1, 10**8)], [1, 4]))

    @pytest.mark.parametrize(("epsilon", "delta", "keys"), CASES)
    def test_chances_meet_both_inequalities_exactly(self, epsilon: Fraction, delta: Fraction, keys: int) -> None:
        """In high precision, from the very brackets that the coins are flipped with."""
        mechanism = OptimalKeys(epsilon=epsilon, delta=delta, keys_per_unit=keys)
        floats = mechanism.chances()
        with mp.workprec(PRECISION + 40):
            grow, each = mp.exp(real(epsilon) / keys), real(mechanism.each)
            assert 1 - (1 - each) ** keys <= real(delta)
            assert 1 - (1 - each * (1 + mpf(10) ** -9)) ** keys > real(delta) * (1 - mpf(10) ** -8)
            slack = mpf(2) ** (8 - PRECISION)
            exact = []
            for units in range(min(len(floats), 90)):
                low, high = mechanism.chance(units).bounds(PRECISION)
                assert high - low <= 4
                exact.append(mpf(low + high) / mpf(2) ** (PRECISION + 1))
                assert float(exact[-1]) == pytest.approx(floats[units], rel=1e-9)
            assert exact[0] == 0
            for a, b in itertools.pairwise(exact):
                assert a <= b <= grow * a + each + slack
                assert 1 - a <= grow * (1 - b) + each + slack
                closest = min(grow * a + each, 1 - (1 - a - each) / grow, mpf(1))
                assert abs(b - closest) <= slack

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE])
    @pytest.mark.parametrize("delta", [Fraction(1, 10**18), Fraction(1, 10**25)])
    def test_a_delta_below_float_precision_is_still_kept(self, epsilon: Fraction, delta: Fraction) -> None:
        """Floats reach 1 (or stand still) while the true chance is short of it by more than δ: the coin is exact."""
        mechanism = OptimalKeys(epsilon=epsilon, delta=delta)
        last = len(mechanism.chances()) - 1
        low, _ = mechanism.chance(last).bounds(PRECISION)
        before, _ = mechanism.chance(last - 1).bounds(PRECISION)
        hidden, hidden_before = (1 << PRECISION) - low, (1 << PRECISION) - before
        assert hidden_before <= math.exp(float(epsilon)) * 1.0001 * hidden + 2 * float(delta) * 2.0**PRECISION
        assert hidden > 5 * delta * (1 << PRECISION)

    def test_delta_exhaustively_on_small_data(self) -> None:
        epsilon, delta = ONE, Fraction(1, 10)
        for keys in (1, 2):
            mechanism = OptimalKeys(epsilon=epsilon, delta=delta, keys_per_unit=keys)
            chances = [*mechanism.chances(), 1.0, 1.0]
            for counts in itertools.product(range(len(chances) - 2), repeat=2):
                for added in itertools.product((0, 1), repeat=2):
                    if not 1 <= sum(added) <= keys:
                        continue
                    p, q = (
                        np.outer([1 - chances[pair[0]], chances[pair[0]]], [1 - chances[pair[1]], chances[pair[1]]])
                        for pair in (counts, tuple(map(sum, zip(counts, added, strict=True))))
                    )
                    for a, b in ((p, q), (q, p)):
                        assert np.maximum(0, a - math.exp(1) * b).sum() <= float(delta) + 1e-12

    def test_draws_follow_the_chances(self) -> None:
        mechanism = OptimalKeys(epsilon=ONE, delta=Fraction(1, 10))
        value: dict[Hashable, int] = {"a": 1, "b": 2, "c": 10**6}
        sets: list[dict[Hashable, int]] = [
            dict.fromkeys(kept, 0) for size in range(4) for kept in itertools.combinations("abc", size)
        ]
        mass = [math.exp(mechanism.log_mass(value, one)) for one in sets]
        assert sum(mass) == pytest.approx(1)
        chances = mechanism.chances()
        assert mass[-1] == pytest.approx(chances[1] * chances[2])
        drawn = [sets.index(shown) for shown in mechanism.repeat(value, times=8000)]
        assert follows(np.array(drawn), range(8), mass)
        assert mechanism.log_mass({"a": 1}, {"z": 0}) == -math.inf

    def test_answers_are_keys_alone_in_their_own_order(self) -> None:
        mechanism = OptimalKeys(epsilon=Fraction(3), delta=Fraction(1, 10))
        shown = mechanism.draw({"b": 10**9, 3: 10**9, "a": 10**9})
        assert list(shown.items()) == [(3, 0), ("a", 0), ("b", 0)]
        assert mechanism.draw({}) == {}
        assert mechanism.noise_of(3).tolist() == [0, 0, 0]
        assert (mechanism.noise_log_mass(0), mechanism.noise_log_mass(1)) == (0, -math.inf)
        assert (mechanism.noise_tail(0), mechanism.noise_tail(1)) == (1, 0)

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE])
    def test_half_point_and_error(self, epsilon: Fraction) -> None:
        mechanism = OptimalKeys(epsilon=epsilon, delta=Fraction(1, 10**6))
        chances = mechanism.chances()
        half = int(mechanism.half_point())
        assert chances[half] >= 0.5 > chances[half - 1]
        for beta in (0.3, 1e-3):
            units = int(mechanism.error(beta=beta))
            assert chances[units] >= 1 - beta > chances[units - 1]
        assert OptimalKeys(epsilon=epsilon, delta=Fraction(1, 2)).half_point() == 1  # exactly every other time

    def test_each_key_gets_all_of_delta_and_no_more(self) -> None:
        assert OptimalKeys(epsilon=ONE, delta=Fraction(1, 8)).each == Fraction(1, 8)
        for parts in range(1, 30):  # floats put some of these too close to 1
            delta = 1 - Fraction(parts, 10 << 53)
            mechanism = OptimalKeys(epsilon=ONE, delta=delta, keys_per_unit=4)
            assert 1 - (1 - mechanism.each) ** 4 <= delta
        nearly = OptimalKeys(epsilon=ONE, delta=1 - Fraction(1, 1 << 40), keys_per_unit=4)
        assert 0 <= 1 - nearly.each - Fraction(1, 1 << 10) <= Fraction(1, 1 << 39)

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 4), Fraction(3)])
    @pytest.mark.parametrize("delta", [Fraction(9, 10), Fraction(1, 4), Fraction(1, 100)])
    def test_chances_are_bracketed_without_any_guard_bits(
        self, epsilon: Fraction, delta: Fraction, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Guard bits make the bounds tight; that they are bounds must come from the direction of every rounding."""
        mechanism = OptimalKeys(epsilon=epsilon, delta=delta)
        with mp.workprec(400):
            grow, each = mp.exp(real(epsilon)), real(mechanism.each)
            truth = [mpf(0)]
            for _ in range(12):
                truth.append(min(grow * truth[-1] + each, 1 - (1 - truth[-1] - each) / grow, mpf(1)))
            monkeypatch.setattr(key_module, "_GUARD", 0)
            for bits in range(6, 30):
                for units, exact in enumerate(truth):
                    low, high = mechanism.chance(units).bounds(bits)
                    assert low <= exact * 2**bits <= high

    def test_what_is_shown_is_shown_as_zero(self) -> None:
        assert OptimalKeys(epsilon=ONE, delta=Fraction(1, 8)).threshold == 0

    @pytest.mark.parametrize("epsilon", [Fraction(40), Fraction(41), Fraction(1000), Fraction(10**400)])
    def test_any_epsilon_is_drawn_with(self, epsilon: Fraction) -> None:
        mechanism = OptimalKeys(epsilon=epsilon, delta=Fraction(1, 10))
        assert mechanism.rate == 40
        assert mechanism.draw({"a": 10**6}) == {"a": 0}
        assert mechanism.chances() == pytest.approx([0, 0.1, 1])
        for units, chance in enumerate(mechanism.chances()):
            low, high = mechanism.chance(units).bounds(32)
            assert low / 2**32 - 1e-9 <= chance <= high / 2**32 + 1e-9
            assert high - low <= 4
        assert OptimalKeys(epsilon=Fraction(39), delta=Fraction(1, 10)).rate == 39
        assert OptimalKeys(epsilon=Fraction(50), delta=Fraction(1, 10), keys_per_unit=2).rate == 25

    def test_extreme_parameters(self) -> None:
        assert OptimalKeys(epsilon=ONE, delta=1 - Fraction(1, 10**20)).chances()[-1] == 1
        huge = OptimalKeys(epsilon=Fraction(50), delta=Fraction(1, 1000))
        assert huge.chances()[1] == pytest.approx(1e-3)
        assert isinstance(huge.event, ApproxEvent)
        assert huge.event.failure <= Fraction(1, 1000)

    def test_no_other_strategy_shows_a_key_earlier(self) -> None:
        for epsilon, delta, keys in self.CASES:
            best = OptimalKeys(epsilon=epsilon, delta=delta, keys_per_unit=keys).half_point()
            for kind in (LaplaceThreshold, TruncatedThreshold):
                assert best <= kind(epsilon=epsilon, delta=delta, keys_per_unit=keys).half_point()


class TestWeighted:
    @pytest.mark.parametrize("bits", [1, 3, 20, 30])
    def test_weights_keep_the_norm_and_no_larger_would(self, bits: int) -> None:
        mechanism = WeightedGaussianThreshold(epsilon=ONE, delta=Fraction(1, 10), weight_bits=bits)
        for keys in (*range(1, 200), 10**6):
            weight = mechanism.weight(keys)
            assert keys * weight**2 <= 1 << 2 * bits
            assert keys * (weight + 1) ** 2 > 1 << 2 * bits
        assert mechanism.weight(1) == 1 << bits
        assert mechanism.inner.sensitivity_squared == 1 << 2 * bits

    @pytest.mark.parametrize("keys", [1, 3, 100])
    @pytest.mark.parametrize("bits", [3, 20])
    def test_sigma_is_the_least_for_half_of_delta(self, keys: int, bits: int) -> None:
        delta = Fraction(math.exp(-10))
        mechanism = WeightedGaussianThreshold(epsilon=Fraction(3), delta=delta, keys_per_unit=keys, weight_bits=bits)
        least = calibrate.gaussian_sigma_vector(
            epsilon=3, delta=delta / 2, sensitivity_squared=1 << 2 * bits, coordinates=keys
        )
        assert mechanism.inner.sigma == least
        assert mechanism.event.rho == Fraction(1 << 2 * bits) / (2 * least**2)
        assert float(least) / (1 << bits) == pytest.approx(1.33279, rel=1e-5 if bits == 20 else 5e-3)

    def test_weigh(self) -> None:
        mechanism = WeightedGaussianThreshold(epsilon=ONE, delta=Fraction(1, 10), keys_per_unit=4, weight_bits=4)
        total = mechanism.weigh([["a"], ["a", "b", "a"], ["a", "b", "c", "d"], []])
        assert total == {"a": 16 + 11 + 8, "b": 11 + 8, "c": 8, "d": 8}

    @pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
    @pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**6)])
    @pytest.mark.parametrize("keys", [1, 2, 9])
    def test_the_threshold_is_the_least_over_every_number_of_keys(
        self, epsilon: Fraction, delta: Fraction, keys: int
    ) -> None:
        mechanism = WeightedGaussianThreshold(epsilon=epsilon, delta=delta, keys_per_unit=keys, weight_bits=4)
        with mp.workdps(40):
            s = real(mechanism.inner.sigma)
            reach = int(25 * mechanism.inner.sigma) + 40
            weights = [mp.exp(-(mpf(k) ** 2) / (2 * s * s)) for k in range(reach)]
            total = 2 * mp.fsum(weights) - 1

            def shows(threshold: int, t: int) -> Any:
                k = threshold - mechanism.weight(t)
                tail = mp.fsum(weights[k:]) / total if k > 0 else mpf(1)
                return 1 - (1 - tail) ** t

            worst = max(shows(mechanism.threshold, t) for t in range(1, keys + 1))
            assert worst <= real(delta) / 2
            assert max(shows(mechanism.threshold - 1, t) for t in range(1, keys + 1)) > real(delta) / 2
            failure = mechanism.event.failure
            assert worst <= real(failure) <= worst * (1 + mpf(10) ** -8)

    def test_the_threshold_is_the_least_where_there_is_hardly_any_noise(self) -> None:
        """One step of the grid is many deviations: the search must begin above the whole weight all the same."""
        mechanism = WeightedGaussianThreshold(epsilon=Fraction(10**4), delta=Fraction(1, 10), weight_bits=10)
        sigma, half = mechanism.inner.sigma, Fraction(1, 20)
        assert 40 * sigma < 1 << 10 < mechanism.threshold
        assert (
            mechanism._failure(mechanism.threshold, sigma) <= half < mechanism._failure(mechanism.threshold - 1, sigma)
        )

    def test_draws_follow_the_masses(self) -> None:
        mechanism = WeightedGaussianThreshold(epsilon=ONE, delta=Fraction(1, 5), weight_bits=2)
        value: dict[Hashable, int] = {"a": mechanism.threshold}
        support = [0, *range(mechanism.threshold, mechanism.threshold + 60)]
        mass = np.exp([mechanism.log_mass(value, {}), *(mechanism.log_mass(value, {"a": n}) for n in support[1:])])
        drawn = [shown.get("a", 0) for shown in mechanism.repeat(value, times=20_000)]
        assert follows(np.array(drawn), support, mass)

    def test_event_needs_half_point_and_error(self) -> None:
        mechanism = WeightedGaussianThreshold(epsilon=ONE, delta=Fraction(1, 10**6), keys_per_unit=4, weight_bits=10)
        assert isinstance(mechanism.event, WithFailure)
        assert mechanism.event.event == mechanism.inner.event
        needs = mechanism.needs
        assert (needs.norm, needs.sensitivity, needs.neighbors) == (Norm.WEIGHTS, Fraction(4), Neighbors.ADD_REMOVE)
        assert mechanism.half_point() == mechanism.threshold / mechanism.weight(4)
        units = mechanism.error(beta=0.01)
        assert mechanism.noise_tail(math.ceil(mechanism.threshold - units * mechanism.weight(4))) >= 0.99 - 1e-12
        assert units < mechanism.half_point() + 8 * float(mechanism.inner.sigma) / mechanism.weight(4)


class TestSelectKeys:
    @pytest.mark.parametrize("keys", [1, 5, 60])
    @pytest.mark.parametrize("epsilon", [0.1, 3])
    @pytest.mark.parametrize("counts", [True, False])
    def test_it_picks_the_least_half_point(self, keys: int, epsilon: float, counts: bool) -> None:
        chosen = select_keys(epsilon=epsilon, delta=1e-6, keys_per_unit=keys, counts=counts)
        kinds: tuple[Any, ...] = (OptimalKeys, WeightedGaussianThreshold)
        if counts:
            kinds = (TruncatedThreshold, LaplaceThreshold, GaussianThreshold)
        all_of_them = [kind(epsilon=Fraction(epsilon), delta=Fraction(1e-6), keys_per_unit=keys) for kind in kinds]
        assert isinstance(chosen, kinds)
        assert chosen.half_point() == min(mechanism.half_point() for mechanism in all_of_them)
        assert (chosen.epsilon, chosen.delta, chosen.keys_per_unit) == (Fraction(epsilon), Fraction(1e-6), keys)

    def test_few_keys_like_cut_laplace_and_many_like_gaussian(self) -> None:
        assert isinstance(select_keys(epsilon=1, delta=1e-6), TruncatedThreshold)
        assert isinstance(select_keys(epsilon=1, delta=1e-6, keys_per_unit=200), GaussianThreshold)
        assert isinstance(select_keys(epsilon=1, delta=1e-6, counts=False), OptimalKeys)
        assert isinstance(
            select_keys(epsilon=1, delta=1e-6, keys_per_unit=200, counts=False), WeightedGaussianThreshold
        )
