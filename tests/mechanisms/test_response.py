"""Randomized response: the two probabilities, unbiased estimates, and devices that never fail."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.mechanisms import RandomizedResponse
from hubbub.noise.exact import exactly
from hubbub.privacy.rounding import log_down
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.noise.sources import FALSE_ALARM, follows

ONE = Fraction(1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), ONE, Fraction(3)])
@pytest.mark.parametrize("categories", [2, 3, 7])
def test_the_law_and_the_claim(epsilon: Fraction, categories: int) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)
    grow = math.exp(float(epsilon))
    for truth in range(categories):
        mass = [math.exp(mechanism.log_mass(truth, answer)) for answer in range(categories)]
        assert mass[truth] == pytest.approx(grow / (grow + categories - 1))
        assert sum(mass) == pytest.approx(1)
        assert max(mass) / min(mass) == pytest.approx(grow)
        assert follows(mechanism.repeat(truth, times=100_000), range(categories), mass)
    low, high = mechanism.honest.bounds(60)
    assert low / 2**60 == pytest.approx(mechanism.honest_float)
    assert high - low <= 2
    assert mechanism.event.epsilon == epsilon
    assert mechanism.needs.neighbors is mechanism.event.neighbors is Neighbors.LOCAL
    assert (mechanism.needs.norm, mechanism.needs.sensitivity) == (Norm.REPORT, ONE)
    assert mechanism.log_mass(0, categories) == mechanism.log_mass(0, -1) == -math.inf
    assert mechanism.log_mass(categories, 0) == mechanism.log_mass(-1, 0) == mechanism.log_mass(0, 0)


def test_two_percent_of_epsilon_are_seen() -> None:
    wrong = RandomizedResponse(epsilon=Fraction(102, 100))
    mass = [math.exp(RandomizedResponse(epsilon=ONE).log_mass(0, answer)) for answer in range(2)]
    assert not follows(wrong.repeat(0, times=4 * 10**6), range(2), mass)


def test_the_die_of_the_lectures() -> None:
    basic = RandomizedResponse.basic()
    assert basic.truth == Fraction(2, 3)
    assert basic.honest.bounds(200) == exactly(Fraction(2, 3)).bounds(200)  # e^ε / (e^ε + 1) would be more
    assert math.log(2) <= float(basic.epsilon) <= math.log(2) + 1e-15
    assert basic.epsilon > Fraction(math.log(2)) - Fraction(1, 10**15)
    assert basic.log_mass(1, 1) == pytest.approx(math.log(2 / 3))
    assert follows(basic.repeat(1, times=100_000), range(2), [1 / 3, 2 / 3])
    three = RandomizedResponse.with_truth(truth=Fraction(1, 2), categories=3)
    assert float(three.epsilon) == pytest.approx(math.log(2))
    assert follows(three.repeat(2, times=100_000), range(3), [0.25, 0.25, 0.5])


def test_a_truth_that_loses_more_than_is_claimed_is_refused() -> None:
    exact = RandomizedResponse.with_truth(truth=Fraction(3, 4)).epsilon
    RandomizedResponse(epsilon=exact, truth=Fraction(3, 4))
    with pytest.raises(ParameterError, match="loss of this truth"):
        RandomizedResponse(epsilon=exact - Fraction(1, 10**18), truth=Fraction(3, 4))
    with pytest.raises(ParameterError, match="loss of this truth"):
        RandomizedResponse(epsilon=exact, truth=Fraction(3, 4), categories=3)
    short = log_down(Fraction(3))
    assert short < exact
    with pytest.raises(ParameterError, match="loss of this truth"):
        RandomizedResponse(epsilon=short, truth=Fraction(3, 4))


@pytest.mark.parametrize("truth", [Fraction(1, 2), 1, 0, Fraction(1, 3), math.nan, True])
def test_truths_that_are_refused(truth: Any) -> None:
    with pytest.raises(ParameterError, match="truth must be"):
        RandomizedResponse.with_truth(truth=truth)
    with pytest.raises(ParameterError, match="truth must be"):
        RandomizedResponse(epsilon=Fraction(50), truth=truth)


@pytest.mark.parametrize("held", [-1, 3, 10**30, math.nan, None, "a", math.inf, object(), 1j])
def test_answers_that_are_no_category_count_as_the_first(held: Any) -> None:
    mechanism = RandomizedResponse(epsilon=Fraction(50), categories=3)
    assert mechanism.draw(held) == 0
    boxed = np.empty(2, dtype=object)
    boxed[:] = [held, 2]
    assert np.asarray(mechanism.draw(boxed)).tolist() == [0, 2]


def test_scalars_and_arrays_of_every_kind() -> None:
    mechanism = RandomizedResponse(epsilon=Fraction(50), categories=3)
    assert mechanism.draw(2) == mechanism.draw(int(np.int8(2))) == 2
    assert type(mechanism.draw(2)) is int
    assert mechanism.draw(True) == 1
    assert np.asarray(mechanism.draw([0, 1, 2])).tolist() == [0, 1, 2]  # type: ignore[arg-type]
    assert np.asarray(mechanism.draw(np.array([True, False]))).tolist() == [1, 0]
    assert np.asarray(mechanism.draw(np.array([1.0, math.nan, 2.0, 7.0, -1.0]))).tolist() == [1, 0, 2, 0, 0]
    assert np.asarray(mechanism.draw(np.array([], dtype=np.int64))).shape == (0,)


def test_people_in_a_square_are_noised_independently() -> None:
    """Coins shared along an axis would show who agrees with whom."""
    drawn = np.asarray(RandomizedResponse(epsilon=Fraction(1, 10)).draw(np.zeros((64, 64), dtype=np.int64)))
    assert drawn.shape == (64, 64)
    assert len({tuple(row) for row in drawn.tolist()}) == 64
    assert len({tuple(row) for row in drawn.T.tolist()}) == 64


class TestEstimates:
    def test_they_are_unbiased_and_their_deviation_is_right(self) -> None:
        mechanism = RandomizedResponse(epsilon=ONE, categories=3)
        answers = np.repeat([0, 1, 2], [2000, 700, 300])
        runs = np.array([mechanism.estimate(mechanism._reports(answers)).counts for _ in range(1500)])
        for at, truth in enumerate((2000, 700, 300)):
            spread = mechanism.deviation(reports=3000, share=truth / 3000)
            assert abs(runs[:, at].mean() - truth) < 5 * spread / math.sqrt(1500)
            chi = ((runs[:, at] - truth) ** 2).sum() / spread**2
            assert FALSE_ALARM < stats.chi2.cdf(chi, 1500) < 1 - FALSE_ALARM

    def test_estimates_of_known_reports(self) -> None:
        mechanism = RandomizedResponse.basic()
        found = mechanism.estimate(np.array([1] * 40 + [0] * 50))
        assert found.counts.tolist() == pytest.approx([60.0, 30.0])  # (50 - 30) · 3, (40 - 30) · 3
        spread = math.sqrt(90 * (2 / 9)) / (1 / 3)
        assert found.standard_deviation.tolist() == pytest.approx([spread, spread])

    def test_reports_outside_are_not_counted_but_are_people(self) -> None:
        mechanism = RandomizedResponse.basic()
        found = mechanism.estimate(np.array([1, 0, 7, -1, 2**62]))
        assert found.counts.tolist() == pytest.approx([3 * (1 - 5 / 3)] * 2)
        with pytest.raises(ParameterError, match="whole numbers"):
            mechanism.estimate(np.array([0.5]))
        with pytest.raises(ParameterError, match="whole numbers"):
            mechanism.estimate(np.array([[0]]))

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(4)])
    @pytest.mark.parametrize("share", [0, 0.25, 1])
    def test_seed_003_root_mean_square(self, epsilon: Fraction, share: float) -> None:
        """e^(ε/2) / (e^ε - 1) · √n, whatever the share."""
        e = float(epsilon)
        expected = math.exp(e / 2) / math.expm1(e) * math.sqrt(5000)
        assert RandomizedResponse(epsilon=epsilon).deviation(reports=5000, share=share) == pytest.approx(expected)

    def test_without_a_share_half_of_the_people_hold_it(self) -> None:
        mechanism = RandomizedResponse(epsilon=ONE, categories=5)
        assert mechanism.deviation(reports=100) == mechanism.deviation(reports=100, share=0.5)
        assert mechanism.deviation(reports=100) > mechanism.deviation(reports=100, share=0.4)

    def test_error_is_a_bound_that_holds(self) -> None:
        mechanism = RandomizedResponse(epsilon=ONE)
        answers = np.repeat([0, 1], [600, 400])
        bound = mechanism.error(beta=0.1, reports=1000)
        misses = sum(abs(mechanism.estimate(mechanism._reports(answers)).counts[1] - 400) > bound for _ in range(1000))
        assert stats.binomtest(misses, 1000, 0.1, alternative="greater").pvalue > FALSE_ALARM
        p = mechanism.honest_float
        assert bound == pytest.approx(math.sqrt(1000 * math.log(20) / 2) / (2 * p - 1))


def test_impossible_estimates_still_have_the_deviation_of_possible_ones() -> None:
    """All of 100 reports alike: the estimate passes 100, and its deviation is that of 100 holders, not of more."""
    mechanism = RandomizedResponse(epsilon=Fraction(1), categories=4)
    found = mechanism.estimate(np.zeros(100, dtype=np.int64))
    p = mechanism.honest_float
    r = (1 - p) / 3
    assert found.counts[0] > 100
    assert found.counts[1] < 0
    assert found.standard_deviation[0] == pytest.approx(math.sqrt(100 * p * (1 - p)) / (p - r))
    assert found.standard_deviation[1] == pytest.approx(math.sqrt(100 * r * (1 - r)) / (p - r))
