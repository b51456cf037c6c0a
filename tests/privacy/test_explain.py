"""Readings and study plans: against the definition, the seed's exercises and simulation."""

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import CapacityError, ParameterError
from hubbub.privacy import explain, sample_size
from hubbub.privacy.rounding import log_down, log_up


def test_the_range_of_a_probability_at_ln_five_quarters() -> None:
    reading = explain(math.log(1.25))
    assert reading.probability_of(0.2) == pytest.approx((0.16, 0.25))
    assert reading.probability_of(0.5) == pytest.approx((0.4, 0.6))
    assert reading.probability_of(0) == (0.0, 0.0)
    assert reading.probability_of(1) == (1.0, 1.0)


@given(st.floats(0.01, 5), st.sampled_from([0.0, 1e-6, 0.05]), st.floats(0, 1))
def test_ranges_satisfy_the_definition_and_are_attained(epsilon: float, delta: float, p: float) -> None:
    low, high = explain(epsilon, delta).probability_of(p)
    grow = math.exp(epsilon)
    assert 0 <= low <= p <= high <= 1
    for other in (low, high):
        for one, two in ((p, other), (other, p), (1 - p, 1 - other), (1 - other, 1 - p)):
            assert one <= grow * two + delta + 1e-12
    for beyond in (low - 1e-6, high + 1e-6):
        if 0 <= beyond <= 1:
            pairs = ((p, beyond), (beyond, p), (1 - p, 1 - beyond), (1 - beyond, 1 - p))
            assert any(one > grow * two + delta for one, two in pairs)


def test_odds_posterior_harm_power_and_guesses() -> None:
    reading = explain(math.log(3), 0.01, prior=0.25)
    assert reading.odds == pytest.approx((1 / 3.03, 3.03))
    assert reading.chance == pytest.approx(1.0), "of δ = 0.01 nothing is left to say"
    assert reading.harm == pytest.approx((1 / 3, 3))
    assert reading.posterior == pytest.approx((1 / 10.09, 1.01 / 2.01))
    exact = explain(math.log(3), prior=0.25)
    assert exact.odds == pytest.approx((1 / 3, 3))
    assert exact.chance == 0
    assert exact.posterior == pytest.approx((0.1, 0.5))
    assert reading.power(0.05) == pytest.approx(0.16)
    assert reading.power(0.9) == pytest.approx(1 - (0.1 - 0.01) / 3)
    assert reading.power(0) == pytest.approx(0.01)
    assert explain(math.log(3)).advantage == pytest.approx(0.75)
    assert explain(math.log(3), 0.5).advantage == pytest.approx(0.875)
    assert explain(0).advantage == 0.5
    assert explain(1).prior == 0.5


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.25, 1e-5), (4, 1e-9), (1, 0.002)])
def test_odds_move_further_with_no_greater_chance_than_is_said(epsilon: float, delta: float) -> None:
    """Gaussian noise of just this (ε, δ), whose odds move by more than e^ε with a chance of many times δ."""
    below = NormalDist().cdf

    def passed(sigma: float, loss: float) -> float:
        return below(1 / (2 * sigma) - loss * sigma)

    low, high = 0.01, 1000.0
    for _ in range(200):
        sigma = (low + high) / 2
        spent = passed(sigma, epsilon) - math.exp(epsilon) * below(-1 / (2 * sigma) - epsilon * sigma)
        low, high = (sigma, high) if spent > delta else (low, sigma)
    reading = explain(epsilon, delta)
    assert passed(high, math.log(reading.odds[1])) <= reading.chance
    assert passed(high, epsilon) > 2 * delta, "so that δ itself would say too little"


def test_a_person_can_read_it() -> None:
    text = str(explain(math.log(3), 1e-6, prior=0.25))
    assert text.startswith("ε = 1.09861, δ = 1e-6:\n")
    assert "between 0.33 and 3.03, but for a chance 0.000101" in text
    assert "thought 0.25 likely thinks between 0.0991 and 0.502 afterwards" in text
    assert "at most 3 times that of staying out, and 1e-6 of the greatest harm more." in text
    assert "probability 0.1 happens with 0.0333 to 0.3." in text
    assert "chance" not in str(explain(1)).replace("a chance", "x") or "but for" not in str(explain(1))


def test_sample_sizes_of_the_exercises() -> None:
    assert sample_size(alpha=0.01, epsilon=0.5) == math.ceil(math.sqrt(2) / (0.01 * 0.5)) == 283
    e = math.exp(0.5)
    plan = sample_size(alpha=0.01, epsilon=0.5, method="randomized-response")
    assert plan == math.ceil(e / ((e - 1) ** 2 * 0.01**2)) == 39177
    assert sample_size(alpha=0.01, epsilon=0.5, beta=0.05) == math.ceil(math.log(20) / 0.005) == 600
    stretch = (e + 1) / (e - 1)
    hoeffding = math.ceil(stretch**2 * math.log(40) / (2 * 0.01**2))
    assert sample_size(alpha=0.01, epsilon=0.5, beta=0.05, method="randomized-response") == hoeffding


def test_halving_alpha_or_epsilon() -> None:
    base: dict[str, Any] = {"alpha": 2.0**-6, "epsilon": 2.0**-6}
    for changed in ("alpha", "epsilon"):
        halved = base | {changed: 2.0**-7}
        assert sample_size(**halved) / sample_size(**base) == pytest.approx(2, rel=1e-3)
        response: Any = {"method": "randomized-response"}
        ratio = sample_size(**halved, **response) / sample_size(**base, **response)
        assert ratio == pytest.approx(4, rel=1e-3)


def test_the_least_n_is_exact_at_the_border() -> None:
    n = sample_size(alpha=2.0**-8, epsilon=1)
    assert n * n >= 2 * 2**16 > (n - 1) ** 2
    assert sample_size(alpha=1, epsilon=2) == 1
    assert sample_size(alpha=Fraction(756, 1000), epsilon=1) == 2  # 2 / alpha² is 3.4994
    assert sample_size(alpha=Fraction(707, 1000), epsilon=1) == 3  # 2 / alpha² is 4.0012
    many = sample_size(alpha=1, epsilon=Fraction(1, 10**40), method="randomized-response")
    assert 10**80 - 1 <= many <= 10**80 + (10**80 >> 100)
    assert sample_size(alpha=10, epsilon=900, method="randomized-response") == 1
    assert sample_size(alpha=1, epsilon=10**3000, method="randomized-response") == 1
    for n, alpha in ((600, log_up(Fraction(20)) / 600), (601, log_down(Fraction(20)) / 600)):
        assert sample_size(alpha=alpha, epsilon=1, beta=Fraction(1, 20)) == n


@pytest.mark.parametrize("method", ["laplace", "randomized-response"])
def test_plans_hold_in_simulation(method: Any) -> None:
    alpha, epsilon, beta, runs = 0.05, 0.7, 0.1, 20_000
    rng = np.random.default_rng(7)

    def errors(n: int) -> Any:
        if method == "laplace":
            return rng.laplace(scale=1 / (n * epsilon), size=runs)
        truth = 1 / (1 + math.exp(-epsilon))
        ones = rng.binomial(n // 2, truth, size=runs) + rng.binomial(n - n // 2, 1 - truth, size=runs)
        return (ones / n - (1 - truth)) / (2 * truth - 1) - (n // 2) / n

    spread = errors(sample_size(alpha=alpha, epsilon=epsilon, method=method)).std()
    assert spread == pytest.approx(alpha, rel=0.06)
    missed = (np.abs(errors(sample_size(alpha=alpha, epsilon=epsilon, beta=beta, method=method))) > alpha).mean()
    assert missed <= beta + 5 * math.sqrt(beta * (1 - beta) / runs)  # false alarm below 1e-6
    assert method == "randomized-response" or missed >= beta - 5 * math.sqrt(beta * (1 - beta) / runs)


@pytest.mark.parametrize("bad", [float("nan"), -1, float("inf"), True, "1", None], ids=repr)
def test_bad_numbers_are_refused(bad: Any) -> None:
    for make in (
        lambda: explain(bad),
        lambda: explain(1, bad),
        lambda: explain(1, prior=bad),
        lambda: explain(1).probability_of(bad),
        lambda: explain(1).power(bad),
        lambda: sample_size(alpha=bad, epsilon=1),
        lambda: sample_size(alpha=1, epsilon=bad),
    ):
        with pytest.raises(ParameterError):
            make()
    for zero in (0, 1e-400):
        with pytest.raises(ParameterError):
            sample_size(alpha=zero, epsilon=1)
        with pytest.raises(ParameterError):
            explain(1, prior=zero)
    with pytest.raises(ParameterError):
        explain(1, 1)
    with pytest.raises(ParameterError, match="method"):
        sample_size(alpha=1, epsilon=1, method="magic")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="beta"):
        sample_size(alpha=1, epsilon=1, beta=1)
    for large in (701, 700 + Fraction(1, 10**40)):
        with pytest.raises(CapacityError):
            explain(large)
    assert explain(700).epsilon == 700
