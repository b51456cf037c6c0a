"""Exact bounds: against the binomial law itself, summed over every outcome."""

import math

import numpy as np
import pytest
from scipy import stats

from hubbub.audit.bounds import (
    Counts,
    at_least,
    at_most,
    clopper_pearson,
    delta_box,
    delta_joint,
    epsilon_box,
    epsilon_joint,
    level_of,
    refutes,
)
from hubbub.errors import ParameterError


def counts(hits: int, other_hits: int, draws: int = 1000) -> Counts:
    return Counts(hits=hits, draws=draws, other_hits=other_hits, other_draws=draws)


@pytest.mark.parametrize(("hits", "draws"), [(1, 10), (5, 10), (10, 10), (37, 1000), (999, 1000)])
def test_the_lower_limit_is_where_the_upper_tail_has_the_level(hits: int, draws: int) -> None:
    low = at_least(hits, draws, level=1e-3)
    assert stats.binom.sf(hits - 1, draws, low) == pytest.approx(1e-3, rel=1e-5)
    assert stats.binom.sf(hits - 1, draws, low) <= 1e-3


@pytest.mark.parametrize(("hits", "draws"), [(0, 10), (5, 10), (9, 10), (37, 1000), (999, 1000)])
def test_the_upper_limit_is_where_the_lower_tail_has_the_level(hits: int, draws: int) -> None:
    high = at_most(hits, draws, level=1e-3)
    assert stats.binom.cdf(hits, draws, high) == pytest.approx(1e-3, rel=2e-3)
    assert stats.binom.cdf(hits, draws, high) <= 1e-3


def test_nothing_and_everything_have_trivial_limits() -> None:
    assert at_least(0, 10, level=0.01) == 0.0
    assert at_most(10, 10, level=0.01) == 1.0


def test_a_published_interval() -> None:
    low, high = clopper_pearson(81, 263, confidence=0.95)
    assert low == pytest.approx(0.2527, abs=1e-4)
    assert high == pytest.approx(0.3676, abs=1e-4)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, math.nan, True, "0.9"])
def test_confidence_is_a_probability(confidence: object) -> None:
    with pytest.raises(ParameterError, match="confidence must be"):
        clopper_pearson(1, 10, confidence=confidence)  # type: ignore[arg-type]


@pytest.mark.parametrize(("hits", "other"), [(-1, 0), (11, 0), (0, 11), (1.0, 0), (True, 0)])
def test_counts_are_counts(hits: int, other: int) -> None:
    with pytest.raises(ParameterError, match="hits must be"):
        counts(hits, other, draws=10)


def test_no_draws_prove_nothing_and_are_refused() -> None:
    with pytest.raises(ParameterError, match="draws must be"):
        counts(0, 0, draws=0)


def test_level_of_confidence() -> None:
    assert level_of(1 - 1e-6) == pytest.approx(1e-6, rel=1e-9)


def test_the_box_is_the_ratio_of_its_corners() -> None:
    evidence = counts(500, 140)
    p_low, q_high = at_least(500, 1000, level=0.005), at_most(140, 1000, level=0.005)
    assert epsilon_box(evidence, confidence=0.99) == pytest.approx(math.log(p_low / q_high))
    assert epsilon_box(evidence, confidence=0.99, delta=0.1) == pytest.approx(math.log((p_low - 0.1) / q_high))
    assert delta_box(evidence, confidence=0.99, epsilon=0.5) == pytest.approx(p_low - math.exp(0.5) * q_high)


@pytest.mark.parametrize("bound", [epsilon_box, epsilon_joint])
def test_equal_counts_prove_nothing(bound: object) -> None:
    assert bound(counts(300, 300), confidence=0.99) == 0.0  # type: ignore[operator]
    assert bound(counts(300, 100), confidence=0.99, delta=0.5) == 0.0  # type: ignore[operator]


def test_the_joint_region_sees_more_than_the_box() -> None:
    evidence = counts(5000, 1433, draws=10_000)
    joint, box = epsilon_joint(evidence, confidence=1 - 1e-6), epsilon_box(evidence, confidence=1 - 1e-6)
    sigma = math.sqrt((1 / 5000 - 1 / 10_000) + (1 / 1433 - 1 / 10_000))
    assert 4.75 < (math.log(5000 / 1433) - joint) / sigma < 5.1
    assert 6.2 < (math.log(5000 / 1433) - box) / sigma < 6.5


def test_all_bounds_read_off_the_joint_region_agree() -> None:
    evidence = counts(600, 200)
    epsilon = epsilon_joint(evidence, confidence=0.999, delta=0.05)
    assert refutes(evidence, epsilon=epsilon - 1e-6, delta=0.05, confidence=0.999)
    assert not refutes(evidence, epsilon=epsilon + 1e-6, delta=0.05, confidence=0.999)
    assert delta_joint(evidence, confidence=0.999, epsilon=epsilon) == pytest.approx(0.05, abs=1e-6)
    assert delta_joint(evidence, confidence=0.999, epsilon=800) == 0.0
    assert epsilon_joint(evidence, confidence=0.9999, delta=0.05) < epsilon


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
def test_delta_is_below_one(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta must be"):
        epsilon_joint(counts(5, 1), confidence=0.9, delta=delta)


def test_the_joint_region_is_a_little_larger_than_it_must_be_and_no_more() -> None:
    """Against a fine search over the boundary U·V = e^-c, done another way."""
    evidence = counts(420, 150)
    alpha = 1e-3
    c = float(stats.gamma.isf(alpha, 2))
    levels = np.exp(-np.linspace(1e-6, c - 1e-6, 20_001))
    p = stats.beta.ppf(levels, 420, 581)
    q = stats.beta.isf(np.exp(-c) / levels, 151, 850)
    exact = float(np.log(p / q).min())
    found = epsilon_joint(evidence, confidence=1 - alpha)
    assert exact - 0.005 < found <= exact


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.7, 0.0), (1.2, 0.0), (0.7, 0.1), (0.0, 0.2)])
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_no_honest_mechanism_is_accused_more_often_than_stated(epsilon: float, delta: float, alpha: float) -> None:
    """Every outcome of 24 and 36 draws, weighed by its exact probability, for mechanisms right at the claim."""
    draws, other_draws = 24, 36
    accused = np.array(
        [
            [
                refutes(
                    Counts(hits=i, draws=draws, other_hits=j, other_draws=other_draws),
                    epsilon=epsilon,
                    delta=delta,
                    confidence=1 - alpha,
                )
                for j in range(other_draws + 1)
            ]
            for i in range(draws + 1)
        ]
    )
    worst = 0.0
    for q in np.linspace(0, (1 - delta) / math.exp(epsilon), 60):
        p = min(1.0, math.exp(epsilon) * q + delta)
        law = np.outer(
            stats.binom.pmf(np.arange(draws + 1), draws, p), stats.binom.pmf(np.arange(other_draws + 1), other_draws, q)
        )
        worst = max(worst, float(law[accused].sum()))
    assert worst <= alpha
    assert worst >= alpha / 50, "a test that never accuses would pass too"
