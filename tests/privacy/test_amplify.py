"""Amplification: formulas, relations, and the clones bound against a sum over every outcome."""

import math
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from hubbub.errors import AccountingError, ParameterError
from hubbub.privacy import amplify
from hubbub.privacy.sensitivity import Neighbors
from tests.privacy.exact import hockey_stick, real

ADD, REPLACE, LOCAL = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE, Neighbors.LOCAL
MILLIONTH = Fraction(1, 10**6)


def test_sampling_formulas() -> None:
    sampled = amplify.poisson(epsilon=1, delta=MILLIONTH, rate=Fraction(1, 100), neighbors=ADD)
    exact = mp.log(1 + (mp.e - 1) / 100)
    assert exact <= real(sampled.epsilon) <= exact * (1 + mpf(10) ** -18)
    assert sampled.delta == MILLIONTH / 100
    fixed = amplify.fixed_size(epsilon=1, delta=MILLIONTH, size=7, population=700, neighbors=REPLACE)
    assert fixed == sampled
    assert amplify.poisson(epsilon=2, rate=1, neighbors=ADD).epsilon == 2
    assert amplify.poisson(epsilon=2000, rate=Fraction(1, 2), neighbors=ADD).epsilon == 2000
    tiny = amplify.sampled_epsilon_rounded_up(Fraction(1, 10**30), Fraction(1, 2))
    assert Fraction(1, 2 * 10**30) <= tiny <= Fraction(1, 2 * 10**30) * (1 + Fraction(1, 10**18))
    assert amplify.sampled_epsilon_rounded_up(Fraction(1001), Fraction(1, 2)) == 1001
    large = real(amplify.sampled_epsilon_rounded_up(Fraction(1000), Fraction(1, 2)))
    assert 1000 - mp.log(2) <= large <= 1000 - mp.log(2) + mpf(10) ** -15


def test_a_sample_of_a_pure_answer_is_pure() -> None:
    assert amplify.poisson(epsilon=1, rate=Fraction(1, 2), neighbors=ADD).delta == 0
    assert amplify.fixed_size(epsilon=1, size=1, population=2, neighbors=REPLACE).delta == 0


def test_a_sample_of_everybody_hides_nobody() -> None:
    for everybody in (1, 2, 9):
        sample = amplify.fixed_size(epsilon=1, size=everybody, population=everybody, neighbors=REPLACE)
        assert sample.epsilon == 1
        assert sample.delta == 0


def test_wrong_relations_are_refused() -> None:
    for relation in (REPLACE, LOCAL):
        with pytest.raises(AccountingError, match="only proven for add-remove"):
            amplify.poisson(epsilon=1, rate=Fraction(1, 2), neighbors=relation)
    for relation in (ADD, LOCAL):
        with pytest.raises(AccountingError, match="only proven for replace-one"):
            amplify.fixed_size(epsilon=1, size=1, population=2, neighbors=relation)
    for relation in (ADD, REPLACE):
        with pytest.raises(AccountingError, match="only proven for local"):
            amplify.shuffle(epsilon=1, reports=100, delta=MILLIONTH, neighbors=relation)


def test_bad_numbers_are_refused() -> None:
    numbers: list[Any] = [float("nan"), -1, 0, float("inf"), 1e-400, True, "1"]
    for bad in numbers:
        with pytest.raises(ParameterError):
            amplify.poisson(epsilon=bad, rate=0.5, neighbors=ADD)
        with pytest.raises(ParameterError):
            amplify.poisson(epsilon=1, rate=bad, neighbors=ADD)
        with pytest.raises(ParameterError):
            amplify.fixed_size(epsilon=1, size=bad, population=9, neighbors=REPLACE)
        with pytest.raises(ParameterError):
            amplify.fixed_size(epsilon=1, size=1, population=bad, neighbors=REPLACE)
        with pytest.raises(ParameterError):
            amplify.shuffle(epsilon=bad, reports=9, delta=0.1, neighbors=LOCAL)
        with pytest.raises(ParameterError):
            amplify.shuffle(epsilon=1, reports=bad, delta=0.1, neighbors=LOCAL)
    with pytest.raises(ParameterError):
        amplify.fixed_size(epsilon=1, size=10, population=9, neighbors=REPLACE)
    with pytest.raises(ParameterError, match="rate"):
        amplify.poisson(epsilon=1, rate=1 + MILLIONTH, neighbors=ADD)
    for mass in (1 + MILLIONTH, -MILLIONTH):  # half of the first would be a probability
        with pytest.raises(ParameterError, match="delta"):
            amplify.poisson(epsilon=1, delta=mass, rate=Fraction(1, 2), neighbors=ADD)
    with pytest.raises(ParameterError):
        amplify.shuffle(epsilon=1, reports=9, delta=1, neighbors=LOCAL)


def clones(local: Fraction, reports: int) -> tuple[dict[tuple[int, int], mpf], dict[tuple[int, int], mpf]]:
    """The dominating pair, outcome by outcome: clones, and how many of all look like the first input."""
    e0 = real(local)
    stay, shown = mp.exp(-e0), 1 / (1 + mp.exp(-e0))
    laws: list[dict[tuple[int, int], mpf]] = [{}, {}]
    for c in range(reports):
        chance = mp.binomial(reports - 1, c) * stay**c * (1 - stay) ** (reports - 1 - c)
        for a in range(c + 1):
            fair = chance * mp.binomial(c, a) / mpf(2) ** c
            for own, weight in ((1, shown), (0, 1 - shown)):
                for law, w in zip(laws, (weight, 1 - weight), strict=True):
                    law[c, a + own] = law.get((c, a + own), mpf(0)) + fair * w
    return laws[0], laws[1]


@pytest.mark.parametrize(
    ("local", "reports"), [(Fraction(1), 1), (Fraction(1), 12), (Fraction(3), 25), (Fraction(1, 4), 40)]
)
def test_the_clones_bound_is_its_exact_sum(local: Fraction, reports: int) -> None:
    p, q = clones(local, reports)
    for part in (0, 1, 3, 9):
        epsilon = local * part / 10
        exact = hockey_stick(p, q, epsilon)
        bound = real(amplify.shuffled_delta_rounded_up(local, reports, epsilon))
        assert exact <= bound <= exact * (1 + mpf(10) ** -7) + mpf(10) ** -14
    assert amplify.shuffled_delta_rounded_up(local, reports, local) == 0


def test_shuffled_randomized_response_is_within_the_bound() -> None:
    local, reports = Fraction(1), 200
    truth = 1 / (1 + mp.exp(-real(local)))

    def ones(own: mpf) -> dict[int, mpf]:
        """The number of ones when every other device holds 0 and answers truthfully with chance ``truth``."""
        n, lie = reports - 1, 1 - truth
        base = [mp.binomial(n, k) * lie**k * truth ** (n - k) for k in range(n + 1)] + [mpf(0)]
        return {k: base[k] * (1 - own) + (base[k - 1] * own if k else mpf(0)) for k in range(n + 2)}

    p, q = ones(truth), ones(1 - truth)
    for epsilon in (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)):
        exact = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        assert exact <= real(amplify.shuffled_delta_rounded_up(local, reports, epsilon))


def test_shuffled_epsilon_is_least_and_below_the_closed_form() -> None:
    for local, reports, delta in [(1, 1000, 1e-6), (2, 10**4, 1e-6), (4, 10**5, 1e-8), (1, 10**9, 1e-9)]:
        loss = amplify.shuffle(epsilon=local, reports=reports, delta=delta, neighbors=LOCAL)
        assert amplify.shuffled_delta_rounded_up(Fraction(local), reports, loss.epsilon) <= Fraction(delta)
        smaller = loss.epsilon * (1 - Fraction(1, 10**5))
        assert amplify.shuffled_delta_rounded_up(Fraction(local), reports, smaller) > Fraction(delta)
        closed = amplify.shuffled_epsilon_closed_form(epsilon=local, reports=reports, delta=delta)
        assert closed / 8 < loss.epsilon < closed
    root = 8 * math.sqrt(math.e * math.log(4 / 1e-6) / 1e6) + 8 * math.e / 1e6
    assert amplify.shuffled_epsilon_closed_form(epsilon=1, reports=10**6, delta=1e-6) == pytest.approx(
        math.log1p((math.e - 1) / (math.e + 1) * root), rel=1e-12
    )


def test_shuffling_never_hurts() -> None:
    alone = amplify.shuffle(epsilon=1, reports=1, delta=MILLIONTH, neighbors=LOCAL).epsilon
    assert 1 - Fraction(3, 10**6) < alone <= 1
    assert amplify.shuffle(epsilon=1, reports=10**6, delta=0, neighbors=LOCAL).epsilon == 1
    assert amplify.shuffle(epsilon=61, reports=10**6, delta=MILLIONTH, neighbors=LOCAL).epsilon == 61
    assert amplify.shuffle(epsilon=1, reports=10**6, delta=Fraction(1, 2), neighbors=LOCAL).epsilon == 0
    blocks = amplify.shuffled_delta_rounded_up(Fraction(1), 10**7, Fraction(1, 400))
    assert 0 < blocks < 1
    with pytest.raises(AccountingError, match="closed form"):
        amplify.shuffled_epsilon_closed_form(epsilon=9, reports=100, delta=1e-6)
