"""Audits by one run: the bound against all private algorithms there are, and against algorithms that we know.

Accusations are made at confidence 1 − 1e-6, so each honest algorithm here is accused by chance with probability at most
1e-6. Tests of power say what they need; their coins are fixed.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from hubbub.audit.canaries import Guessed, one_run, p_value, proven, sizes
from hubbub.audit.report import Report
from hubbub.errors import ParameterError

Rows = list[Any]


def truth_of(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def guess_vectors(canaries: int, guesses: int) -> list[tuple[int, ...]]:
    """1: in, 0: out, −1: nothing is said."""
    return [one for one in itertools.product((-1, 0, 1), repeat=canaries) if sum(part >= 0 for part in one) == guesses]


def worst(canaries: int, guesses: int, least: int, *, epsilon: float, delta: float) -> float:
    """The greatest P(W ≥ least) over ALL (ε, δ)-private algorithms: a linear programme over their laws.

    An algorithm is a law of guess vectors for each vector of coins; (ε, δ) for one coin changed, by slack variables.
    """
    coins = list(itertools.product((0, 1), repeat=canaries))
    outputs = guess_vectors(canaries, guesses)
    edges = [(s, s ^ (1 << i)) for s in range(len(coins)) for i in range(canaries)]
    laws, slacks = len(coins) * len(outputs), len(edges) * len(outputs)
    rows: list[tuple[int, int, float]] = []
    bounds: list[float] = []
    for e, (one, other) in enumerate(edges):
        for y in range(len(outputs)):
            at = len(bounds)
            rows += [(at, one * len(outputs) + y, 1.0), (at, other * len(outputs) + y, -math.exp(epsilon))]
            rows.append((at, laws + e * len(outputs) + y, -1.0))
            bounds.append(0.0)
    for e in range(len(edges)):
        rows += [(len(bounds), laws + e * len(outputs) + y, 1.0) for y in range(len(outputs))]
        bounds.append(delta)
    matrix = np.zeros((len(bounds), laws + slacks))
    for at, column, value in rows:
        matrix[at, column] = value
    whole = np.zeros((len(coins), laws + slacks))
    gain = np.zeros(laws + slacks)
    for s, coin in enumerate(coins):
        whole[s, s * len(outputs) : (s + 1) * len(outputs)] = 1
        for y, guess in enumerate(outputs):
            gain[s * len(outputs) + y] = (sum(a == b for a, b in zip(coin, guess, strict=True)) >= least) / len(coins)
    solved = optimize.linprog(-gain, A_ub=matrix, b_ub=bounds, A_eq=whole, b_eq=np.ones(len(coins)))
    assert solved.success
    return -float(solved.fun)


@pytest.mark.parametrize(("canaries", "guesses"), [(2, 2), (3, 3), (3, 2), (3, 1)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.0), (1.0, 0.01), (0.5, 0.2)])
def test_no_private_algorithm_at_all_passes_the_bound(
    canaries: int, guesses: int, epsilon: float, delta: float
) -> None:
    for least in range(1, guesses + 1):
        best = worst(canaries, guesses, least, epsilon=epsilon, delta=delta)
        bound = p_value(least, guesses=guesses, canaries=canaries, epsilon=epsilon, delta=delta)
        assert best <= bound * (1 + 1e-7)
        if least == guesses == canaries:
            assert bound <= best * (1 + 1e-6), "all right: some algorithm reaches the bound"


@pytest.mark.parametrize("guesses", [1, 7, 40])
def test_randomized_response_reaches_the_pure_bound(guesses: int) -> None:
    for right in range(1, guesses + 1):
        exact = float(stats.binom.sf(right - 1, guesses, truth_of(1.3)))
        assert p_value(right, guesses=guesses, canaries=50, epsilon=1.3) == pytest.approx(exact, rel=1e-7)


def test_no_right_guess_says_nothing() -> None:
    assert p_value(0, guesses=5, canaries=9, epsilon=0.1, delta=0.3) == 1.0
    with pytest.raises(ParameterError):
        p_value(6, guesses=5, canaries=9, epsilon=0.1)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_what_is_proven_is_where_the_bound_meets_the_level(delta: float) -> None:
    found = proven(190, guesses=200, canaries=200, delta=delta, level=1e-6)
    assert p_value(190, guesses=200, canaries=200, epsilon=found - 1e-6, delta=delta) <= 1e-6
    assert p_value(190, guesses=200, canaries=200, epsilon=found + 1e-6, delta=delta) > 1e-6
    assert proven(100, guesses=200, canaries=200, delta=delta, level=1e-6) == 0.0


def test_a_delta_above_the_level_proves_nothing() -> None:
    assert proven(200, guesses=200, canaries=200, delta=1.01e-6, level=1e-6) == 0.0
    assert proven(200, guesses=200, canaries=200, delta=0.9e-6, level=1e-6) > 2.0


def every_case(canaries: int, epsilon: float) -> Iterator[tuple[float, Any, Any]]:
    """Coins and the bits that randomized response makes of them, with their probability."""
    truth = truth_of(epsilon)
    for coins in itertools.product((False, True), repeat=canaries):
        for lies in itertools.product((False, True), repeat=canaries):
            wrong = sum(lies)
            chance = truth ** (canaries - wrong) * (1 - truth) ** wrong / 2**canaries
            yield chance, np.array(coins), np.array(coins) ^ np.array(lies)


def said(bits: Any, rows: Rows) -> Any:
    return bits


@pytest.mark.parametrize("level", [0.3, 0.05])
def test_false_alarms_of_the_whole_audit_by_enumeration(level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five canaries, every coin and every output of randomized response at the very claim: summed, not sampled."""
    flips: list[bool] = []
    monkeypatch.setattr("hubbub.audit.canaries.Chance.one_in", lambda self, many: flips.pop(0))
    alarm = highest = 0.0
    for chance, coins, bits in every_case(5, 1.0):
        flips[:] = coins.tolist()
        report = one_run(
            partial(said, bits),
            canaries=range(5),
            score=lambda output, canary: float(output[canary]),
            epsilon=1.0,
            confidence=1 - level,
            seed=0,
        )
        alarm += chance * report.accused
        highest = max(highest, report.findings[0].epsilon)
    assert alarm <= level
    assert (alarm > 0) == (highest >= 1.0)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_false_alarms_at_the_level_of_accusations(epsilon: float) -> None:
    """400 canaries: each number of guesses accuses randomized response at its claim with probability 1e-6/5 at most.

    The least count that accuses is the least that may: one right guess fewer would be too likely.
    """
    tried = sizes(400, 200)
    for guesses in map(sum, tried):
        found = [proven(one, guesses=guesses, canaries=400, delta=0.0, level=2e-7) for one in range(guesses + 1)]
        accusing = [right for right, bound in enumerate(found) if 0.0 < bound >= epsilon]
        if not accusing:
            assert stats.binom.sf(guesses - 1, guesses, truth_of(epsilon)) > 2e-7
            continue
        assert accusing == list(range(accusing[0], guesses + 1))
        assert stats.binom.sf(accusing[0] - 1, guesses, truth_of(epsilon)) <= 2e-7
        assert stats.binom.sf(accusing[0] - 2, guesses, truth_of(epsilon)) > 2e-7 * (1 - 1e-6)


def test_sizes_follow_from_the_number_alone() -> None:
    assert sizes(400, 190) == [(190, 210), (100, 100), (50, 50), (50, 0), (12, 0)]
    assert sizes(7, 0) == [(0, 7), (1, 1)]
    assert sizes(2, 2) == [(2, 0)]
    totals = {tuple(map(sum, sizes(40, above))) for above in range(41)}
    assert totals == {(40, 20, 10, 5, 1)}


def one_hot(place: int, many: int) -> Any:
    row = np.zeros(many)
    row[place] = 1.0
    return row


def audited(
    algorithm: Callable[[Rows], Any], *, many: int, epsilon: float = 1.0, delta: float = 0.0, seed: int = 7
) -> Report:
    """Each canary is a basis vector, and its score the coordinate."""
    canaries = [one_hot(place, many) for place in range(many)]
    base = [np.full(many, 1 / many)] * 20
    return one_run(
        algorithm,
        canaries=canaries,
        score=lambda output, canary: float(output @ canary),
        base=base,
        epsilon=epsilon,
        delta=delta,
        seed=seed,
    )


def summed(scale: float) -> Callable[[Rows], Any]:
    """A sum of vectors of L1 norm 1, with Laplace noise."""
    rng = np.random.default_rng(11)
    return lambda rows: np.sum(rows, axis=0) + (rng.laplace(0, scale, len(rows[0])) if scale else 0)


def mean(scale: float, *, size: int = 500) -> Callable[[Rows], Any]:
    return lambda rows: summed(scale)(rows) / size


REGULARISED = 1e-3


def logistic(noise: float) -> Callable[[Rows], Any]:
    """Output perturbation, Chaudhuri, Monteleoni and Sarwate 2011: ``noise`` is the scale of ‖b‖'s law, times n.

    All labels are 1; minimised by Newton's method; λ = 1e-3, so that ε needs noise = 2/(λ·ε).
    """
    rng = np.random.default_rng(5)

    def fit(rows: Rows) -> Any:
        x = np.array(rows)
        many, width = 400, x.shape[1]
        weights = np.zeros(width)
        for _ in range(12):
            slope = 1 / (1 + np.exp(x @ weights))
            gradient = -x.T @ slope / many + REGULARISED * weights
            curve = (x.T * (slope * (1 - slope))) @ x / many + REGULARISED * np.eye(width)
            weights -= np.linalg.solve(curve, gradient)
        direction = rng.normal(size=width)
        return weights + direction / np.linalg.norm(direction) * rng.gamma(width, noise / many)

    return fit


@pytest.mark.parametrize(
    ("broken", "many"),
    [(summed(0.0), 100), (mean(0.5), 800), (logistic(2.0), 250)],
    ids=["a sum without noise", "a mean with half its noise", "a regression whose noise forgets λ"],
)
def test_the_broken_are_accused(broken: Callable[[Rows], Any], many: int) -> None:
    report = audited(broken, many=many)
    assert report.accused
    assert report.counterexample is not None
    assert "guessed in, was in" in report.counterexample.shown
    assert report.counterexample.finding is report.findings[0]
    assert report.findings[0].epsilon > 1.0


@pytest.mark.parametrize(
    ("honest", "many"),
    [(summed(1.0), 800), (mean(1.0), 800), (logistic(2.0 / REGULARISED), 250)],
    ids=["a sum", "a mean", "a regression"],
)
def test_the_honest_are_left_alone(honest: Callable[[Rows], Any], many: int) -> None:
    assert not any(audited(honest, many=many, seed=seed).accused for seed in range(2))


def test_delta_is_part_of_the_claim() -> None:
    """Without noise, 100 canaries refute (1, 1e-9) and cannot refute (1, 1e-2): the report says so."""
    assert audited(summed(0.0), many=100, delta=1e-9).accused
    eased = audited(summed(0.0), many=100, delta=1e-2)
    assert not eased.accused
    assert eased.sight is None
    assert isinstance(eased.findings[0], Guessed)
    assert eased.findings[0].most == 0.0


def test_records_that_are_copied_are_seen_by_the_top_alone() -> None:
    """One record in three that were in is copied; of the others nothing is known."""

    def copies(rows: Rows) -> Any:
        return {row for place, row in enumerate(rows) if place % 3 == 0}

    canaries = [f"canary {place}" for place in range(800)]
    report = one_run(copies, canaries=canaries, score=lambda out, one: float(one in out), epsilon=1.0, seed=3)
    assert report.accused
    assert report.findings[0].counts.hits == report.findings[0].counts.draws == 100
    assert "the 0 of the lowest out" in report.findings[0].event


def test_the_report_says_what_it_can_see() -> None:
    """100 canaries: all right prove ln(a/(1 − a)) with a = (1e-6/4)^(1/100) and no more."""
    report = audited(summed(1.0), many=100)
    found = report.findings[0]
    assert isinstance(found, Guessed)
    share = (1e-6 / found.tests) ** (1 / 100)
    assert found.most == pytest.approx(math.log(share / (1 - share)), rel=1e-6)
    assert f"100 canaries can prove ε ≥ {found.most:.4g} at most" in str(report)
    assert report.sight is not None
    right = round(100 * truth_of(report.sight))
    assert p_value(right, guesses=100, canaries=100, epsilon=1.0) <= 1e-6 / found.tests
    assert p_value(right - 1, guesses=100, canaries=100, epsilon=1.0) > 1e-6 / found.tests
    assert report.to_dict()["findings"][0]["hits"] == [found.counts.hits, found.counts.draws]


def test_nobody_can_prove_more_than_all_of_them_right() -> None:
    report = audited(summed(0.0), many=100)
    found = report.findings[0]
    assert isinstance(found, Guessed)
    assert found.epsilon == pytest.approx(found.most)
    assert found.accuses(found.epsilon - 1e-6)
    assert not found.accuses(found.epsilon + 1e-6)


def test_an_error_is_an_output_that_says_nothing() -> None:
    def failing(rows: Rows) -> Any:
        raise ValueError("no convergence")

    report = audited(failing, many=100)
    assert not report.accused
    assert "its run ended with ValueError: no convergence" in str(report)


def test_what_is_no_number_ranks_lowest() -> None:
    report = one_run(
        set,
        canaries=range(100),
        score=lambda out, one: 1.0 if one in out else math.nan,
        epsilon=1.0,
        seed=1,
    )
    assert report.accused


def test_the_same_seed_flips_the_same_coins_and_no_seed_fresh_ones() -> None:
    seen: list[list[int]] = []
    for seed in (5, 5, 6, None, None):
        one_run(seen.append, canaries=range(60), score=lambda out, one: 0.0, epsilon=1.0, seed=seed)
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]
    assert seen[3] != seen[4]


def test_arguments_are_checked() -> None:
    for wrong in ({"epsilon": -1.0}, {"delta": 1.0}, {"canaries": range(1)}, {"confidence": 1.0}):
        given: dict[str, Any] = {"canaries": range(10), "epsilon": 1.0} | wrong
        with pytest.raises(ParameterError):
            one_run(lambda rows: 0, score=lambda out, one: 0.0, **given)
    with pytest.raises(ParameterError, match="one number"):
        one_run(lambda rows: 0, canaries=range(4), score=lambda out, one: [1.0, 2.0], epsilon=1.0)  # type: ignore[arg-type, return-value]
