"""Thresholds for unknown keys: exact tails on both sides, δ over every number of new keys, and the order of answers."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from hubbub.mechanisms import Gaussian, GaussianThreshold, LaplaceThreshold, TruncatedThreshold
from hubbub.mechanisms.keys import key_selection as key_module
from hubbub.mechanisms.keys.threshold import any_of, key_order, least_threshold
from hubbub.noise import laws
from hubbub.noise.entropy import substitute
from hubbub.privacy.events.event import ApproxEvent, WithFailure
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.noise.sources import Script, follows

ONE = Fraction(1)
COUNTING: list[Any] = [LaplaceThreshold, GaussianThreshold, TruncatedThreshold]
CASES = list(itertools.product([Fraction(1, 3), ONE, Fraction(4)], [Fraction(1, 10), Fraction(1, 10**6)], [1, 3, 20]))


def real(x: Fraction) -> Any:
    return mpf(x.numerator) / x.denominator


def at_least(mechanism: Any) -> Callable[[int], Any]:
    """P(noise >= k) for k >= 1 at forty digits, without the code under test."""
    if isinstance(mechanism, GaussianThreshold):
        s = real(mechanism.inner.sigma)
        reach = int(20 * mechanism.inner.sigma) + 20
        weights = [mp.exp(-(mpf(k) ** 2) / (2 * s * s)) for k in range(reach)]
        total = 2 * mp.fsum(weights) - 1
        return lambda k: mp.fsum(weights[k:]) / total
    q = mp.exp(-real(mechanism.epsilon) / mechanism.keys_per_unit)
    return lambda k: q**k / (1 + q)


def shows(mechanism: Any, threshold: int, keys: int) -> Any:
    """The chance that one unit shows at least one of so many keys that it alone holds."""
    tail = at_least(mechanism)
    each = tail(threshold - 1)
    if isinstance(mechanism, TruncatedThreshold):
        reach = threshold - 1  # the noise is cut at the threshold less one
        each = (tail(reach) - tail(reach + 1)) / (1 - 2 * tail(reach + 1))
    return 1 - (1 - each) ** keys


@pytest.mark.parametrize("kind", COUNTING)
@pytest.mark.parametrize(("epsilon", "delta", "keys"), CASES)
def test_the_threshold_is_the_least_that_is_private(kind: Any, epsilon: Fraction, delta: Fraction, keys: int) -> None:
    with mp.workdps(40):
        mechanism = kind(epsilon=epsilon, delta=delta, keys_per_unit=keys)
        allowed = real(delta) / (2 if kind is GaussianThreshold else 1)
        threshold = mechanism.threshold
        assert all(shows(mechanism, threshold, t) <= allowed for t in range(1, keys + 1))
        if threshold > 2:
            assert shows(mechanism, threshold - 1, keys) > allowed
        failure = mechanism.event.failure
        assert shows(mechanism, threshold, keys) <= real(failure) <= allowed
        assert real(failure) <= shows(mechanism, threshold, keys) * (1 + mpf(10) ** -8)


@pytest.mark.parametrize("kind", [LaplaceThreshold, TruncatedThreshold])
@pytest.mark.parametrize("keys", [1, 3])
def test_a_delta_that_is_met_exactly_is_enough(kind: Any, keys: int) -> None:
    mechanism = kind(epsilon=ONE, delta=Fraction(1, 10), keys_per_unit=keys)
    exact = mechanism.event.failure
    assert kind(epsilon=ONE, delta=exact, keys_per_unit=keys).threshold == mechanism.threshold
    less = kind(epsilon=ONE, delta=exact * (1 - Fraction(1, 1 << 60)), keys_per_unit=keys)
    assert less.threshold == mechanism.threshold + 1


@pytest.mark.parametrize("kind", COUNTING)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE])
def test_the_threshold_is_above_one_unit_however_large_delta_is(kind: Any, epsilon: Fraction) -> None:
    assert kind(epsilon=epsilon, delta=Fraction(99, 100)).threshold == 2


@pytest.mark.parametrize("kind", COUNTING)
@pytest.mark.parametrize("keys", [1, 2])
def test_delta_exhaustively_on_small_data(kind: Any, keys: int) -> None:
    """The hockey stick between a table and the same with one more unit, over all of its answers, for every way in which
    that unit can hold up to its cap of shared and new keys."""
    epsilon, delta = ONE, Fraction(1, 10)
    mechanism = kind(epsilon=epsilon, delta=delta, keys_per_unit=keys)
    top = mechanism.threshold + 45
    shown = range(mechanism.threshold, top)

    def one_key(count: int) -> np.ndarray[Any, Any]:
        if not count:
            return np.array([1.0] + [0.0] * len(shown))
        hidden = mechanism.log_mass({"a": count}, {})
        return np.exp([hidden, *(mechanism.log_mass({"a": count}, {"a": n}) for n in shown)])

    for counts in itertools.product((0, 1, 3), repeat=2):
        for added in itertools.product((0, 1), repeat=2):
            if not 1 <= sum(added) <= keys:
                continue
            before = np.outer(one_key(counts[0]), one_key(counts[1]))
            after = np.outer(one_key(counts[0] + added[0]), one_key(counts[1] + added[1]))
            assert after.sum() == pytest.approx(1, abs=1e-9)
            for p, q in ((before, after), (after, before)):
                assert np.maximum(0, p - math.exp(1) * q).sum() <= float(delta) + 1e-9


@pytest.mark.parametrize("kind", COUNTING)
class TestEach:
    def test_draws_follow_the_masses(self, kind: Any) -> None:
        mechanism = kind(epsilon=ONE, delta=Fraction(1, 10))
        for units in (1, mechanism.threshold):
            value = {"a": units}
            support = [0, *range(mechanism.threshold, mechanism.threshold + 30)]
            mass = np.exp(
                [mechanism.log_mass(value, ())] + [mechanism.log_mass(value, (("a", n),)) for n in support[1:]]
            )
            assert mass.sum() == pytest.approx(1, abs=1e-6)
            drawn = [shown.get("a", 0) for shown in mechanism.repeat(value, times=20_000)]
            assert follows(np.array(drawn), support, mass)
            singly = [mechanism.draw(value).get("a", 0) for _ in range(3000)]
            assert follows(np.array(singly), support, mass)

    def test_masses_of_impossible_answers(self, kind: Any) -> None:
        mechanism = kind(epsilon=ONE, delta=Fraction(1, 10))
        assert mechanism.log_mass({"a": 5}, {"b": 50}) == -math.inf
        assert mechanism.log_mass({"a": 10**6}, {}) == -math.inf
        assert mechanism.log_mass({"a": 5}, {"a": mechanism.threshold - 1}) == -math.inf
        two = mechanism.log_mass({"a": 5, "b": 2}, {"a": mechanism.threshold})
        assert two == pytest.approx(
            mechanism.log_mass({"a": 5}, {"a": mechanism.threshold}) + mechanism.log_mass({"b": 2}, {})
        )

    def test_keys_come_out_in_their_own_order(self, kind: Any) -> None:
        mechanism = kind(epsilon=Fraction(5), delta=Fraction(1, 10))
        keys = ["b", "a", 10, 9, ("x", 1), None, 2.5]
        forward = dict.fromkeys(keys, 1000)
        backward = dict.fromkeys(reversed(keys), 1000)
        expected = sorted(keys, key=key_order)
        assert list(mechanism.draw(forward)) == list(mechanism.draw(backward)) == expected
        assert list(mechanism.repeat(backward, times=1)[0]) == expected
        assert all(type(count) is int for count in mechanism.draw(forward).values())

    def test_the_noise_of_a_key_does_not_depend_on_where_it_stood(self, kind: Any) -> None:
        mechanism = kind(epsilon=Fraction(1, 50), delta=Fraction(1, 10))
        with substitute(Script([1 << 62, 3 << 62, *range(1, 60)])):
            forward = mechanism.draw({"a": 10**6, "b": 2 * 10**6})
        with substitute(Script([1 << 62, 3 << 62, *range(1, 60)])):
            assert mechanism.draw({"b": 2 * 10**6, "a": 10**6}) == forward

    def test_half_point_and_error(self, kind: Any) -> None:
        mechanism = kind(epsilon=ONE, delta=Fraction(1, 10**4), keys_per_unit=2)
        assert mechanism.half_point() == mechanism.threshold
        assert 0.5 <= mechanism.noise_tail(0) < 0.9
        for beta in (0.5, 0.1, 1e-4):
            units = int(mechanism.error(beta=beta))
            assert mechanism.noise_tail(mechanism.threshold - units) >= 1 - beta - 1e-12
            assert units == mechanism.threshold or mechanism.noise_tail(mechanism.threshold - units + 1) < 1 - beta

    def test_needs(self, kind: Any) -> None:
        needs = kind(epsilon=ONE, delta=Fraction(1, 10), keys_per_unit=7).needs
        assert (needs.norm, needs.sensitivity, needs.neighbors) == (Norm.UNITS, 7, Neighbors.ADD_REMOVE)

    def test_nothing_and_much(self, kind: Any) -> None:
        mechanism = kind(epsilon=ONE, delta=Fraction(1, 10))
        assert mechanism.draw({}) == {}
        shown = mechanism.draw({"a": 2**63 - 1})
        assert abs(shown["a"] - 2**63) < 1000


def test_events() -> None:
    laplace = LaplaceThreshold(epsilon=Fraction(2), delta=Fraction(1, 10), keys_per_unit=4)
    assert laplace.scale == 2
    assert isinstance(laplace.event, WithFailure)
    assert laplace.event.event.epsilon == 2
    gaussian = GaussianThreshold(epsilon=Fraction(2), delta=Fraction(1, 10), keys_per_unit=4)
    assert isinstance(gaussian.event, WithFailure)
    assert gaussian.event.event == gaussian.inner.event
    assert gaussian.inner.sensitivity_squared == 4
    assert gaussian.inner == Gaussian.at(epsilon=2, delta=Fraction(1, 20), coordinates=4)
    truncated = TruncatedThreshold(epsilon=Fraction(2), delta=Fraction(1, 10), keys_per_unit=4)
    assert isinstance(truncated.event, ApproxEvent)
    assert truncated.event.epsilon == 2 or truncated.event.bound == 2


class TestTruncated:
    def test_noise_stays_within_its_reach(self) -> None:
        mechanism = TruncatedThreshold(epsilon=ONE, delta=Fraction(1, 10))
        drawn = mechanism.noise_of(100_000)
        assert mechanism.reach == mechanism.threshold - 1
        assert (int(drawn.min()), int(drawn.max())) == (-mechanism.reach, mechanism.reach)
        support = range(-mechanism.reach, mechanism.reach + 1)
        mass = np.exp([mechanism.noise_log_mass(k) for k in support])
        assert mass.sum() == pytest.approx(1)
        assert follows(drawn, support, mass)
        assert (
            mechanism.noise_log_mass(mechanism.reach + 1) == mechanism.noise_log_mass(-mechanism.reach - 1) == -math.inf
        )
        assert mechanism.noise_tail(mechanism.reach + 1) == pytest.approx(0, abs=1e-15)
        assert mechanism.noise_tail(mechanism.reach + 2) == 0
        assert mechanism.noise_tail(-mechanism.reach) == pytest.approx(1)
        assert mechanism.noise_tail(1) == pytest.approx(mass[mechanism.reach + 1 :].sum())

    @pytest.mark.parametrize("keys", [1, 5])
    def test_a_shift_of_one_changes_masses_by_its_share_of_epsilon(self, keys: int) -> None:
        mechanism = TruncatedThreshold(epsilon=ONE, delta=Fraction(1, 100), keys_per_unit=keys)
        steps = [
            mechanism.noise_log_mass(k + 1) - mechanism.noise_log_mass(k)
            for k in range(-mechanism.reach, mechanism.reach)
        ]
        assert max(map(abs, steps)) == pytest.approx(1 / keys)

    @pytest.mark.parametrize("epsilon", [Fraction(1, 3), ONE, Fraction(4)])
    def test_the_end_is_never_below_the_truth(self, epsilon: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
        """With few bits every rounding shows: all of them must go up."""
        mechanism = TruncatedThreshold(epsilon=epsilon, delta=Fraction(1, 10))
        with mp.workdps(40):
            q = mp.exp(-real(epsilon))
            for reach in (1, 2, 5):
                truth = q**reach * (1 - q) / (1 + q - 2 * q ** (reach + 1))
                for bits in range(5, 40):
                    monkeypatch.setattr(key_module, "_BITS", bits)
                    found = real(mechanism._end(reach))
                    assert truth <= found <= truth + mpf(2) ** (6 - bits)

    def test_it_needs_fewer_units_than_the_open_tail(self) -> None:
        for epsilon, delta, keys in CASES:
            cut = TruncatedThreshold(epsilon=epsilon, delta=delta, keys_per_unit=keys)
            assert cut.threshold <= LaplaceThreshold(epsilon=epsilon, delta=delta, keys_per_unit=keys).threshold

    def test_the_least_reach_is_found_from_above(self) -> None:
        """Noise of -1, 0 and 1 alike shows none of twenty keys with probability (2/3)^20, about 3/10,000."""
        for epsilon in (Fraction(1, 3), Fraction(1, 1000)):
            cut = TruncatedThreshold(epsilon=epsilon, delta=Fraction(9998, 10000), keys_per_unit=20)
            assert (cut.threshold, cut.reach) == (2, 1)


class TestAnyOf:
    @given(st.fractions(0, 1, max_denominator=10**6), st.integers(1, 40))
    def test_it_is_rounded_up_and_close(self, each: Fraction, times: int) -> None:
        exact = 1 - (1 - each) ** times
        assert exact <= any_of(each, times) <= exact * (1 + Fraction(1, 1 << 60))

    def test_edges(self) -> None:
        assert any_of(Fraction(0), 5) == 0
        assert any_of(Fraction(1), 5) == any_of(Fraction(2), 1) == 1
        assert any_of(Fraction(3, 2), 1) == any_of(Fraction(3, 2), 2) == 1
        assert any_of(Fraction(1, 2), 2) == Fraction(3, 4)
        tiny = Fraction(1, 1 << 150)
        assert 2**20 * tiny * (1 - Fraction(1, 1 << 40)) <= any_of(tiny, 2**20) <= 2**20 * tiny
        tiniest = Fraction(1, 1 << 400)
        assert 1 - (1 - tiniest) ** 3 <= any_of(tiniest, 3) <= 3 * tiniest


def test_least_threshold_from_any_guess() -> None:
    for guess in (2, 6, 7, 8, 30):
        assert least_threshold(lambda t: t >= 7, guess) == 7
        assert least_threshold(lambda t: True, guess) == 2
    assert least_threshold(lambda t: True, 5, least=1) == 1


def test_key_order_is_total_and_by_kind_first() -> None:
    assert sorted(["b", "a"], key=key_order) == ["a", "b"]
    assert key_order("1") != key_order(1)
    assert key_order("x") == ("str", "x")
    assert key_order((1, "y")) == ("tuple", "(1, 'y')")


def test_gaussian_tails_beyond_the_sum_are_bounded_too() -> None:
    mechanism = GaussianThreshold(epsilon=Fraction(1, 2000), delta=Fraction(1, 10**6))
    assert mechanism.inner.sigma > laws.SUMMED_SIGMA
    assert laws.gaussian_tail(mechanism.threshold - 1, mechanism.inner.sigma) <= 0.5e-6
