"""Selection: masses against the obvious computation, losses on neighbouring scores, and scores of any size."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.mechanisms import Exponential, NoisyMax, PermuteAndFlip, TopK
from hubbub.mechanisms.selection.select import levels_of
from hubbub.noise.entropy import substitute
from hubbub.privacy.events.event import BoundedRangeEvent, PureEvent, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors, Norm
from tests.noise.sources import FALSE_ALARM, Script, follows

ONE = Fraction(1)
KINDS: list[Any] = [Exponential, PermuteAndFlip, NoisyMax]
epsilons = st.fractions(Fraction(1, 10), 3, max_denominator=10)
scores = st.lists(st.integers(-4, 4), min_size=1, max_size=5)


def masses(mechanism: Any, value: Any) -> list[float]:
    return [math.exp(mechanism.log_mass(value, output)) for output in range(len(value))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [[0], [0, 1], [2, 0, 1, 2], [-3, 4, 0]])
@pytest.mark.parametrize("monotone", [False, True])
def test_draws_follow_the_masses(kind: Any, value: list[int], monotone: bool) -> None:
    mechanism = kind(epsilon=ONE, monotone=monotone)
    law = masses(mechanism, value)
    assert sum(law) == pytest.approx(1)
    assert follows(mechanism.repeat(value, times=20_000), range(len(value)), law)
    one = [mechanism.draw(value) for _ in range(2000)]
    assert type(one[0]) is int
    assert follows(np.array(one), range(len(value)), law)


@pytest.mark.parametrize("kind", KINDS)
@given(epsilon=epsilons, value=scores, sensitivity=st.integers(1, 2), data=st.data())
@settings(max_examples=25)
def test_the_loss_on_neighbouring_scores_is_within_the_claim(
    kind: Any, epsilon: Fraction, value: list[int], sensitivity: int, data: st.DataObject
) -> None:
    for monotone in (False, True):
        least = 0 if monotone else -sensitivity
        moves = data.draw(st.lists(st.integers(least, sensitivity), min_size=len(value), max_size=len(value)))
        other = [a + b for a, b in zip(value, moves, strict=True)]
        mechanism = kind(epsilon=epsilon, sensitivity=Fraction(sensitivity), monotone=monotone)
        losses = [mechanism.log_mass(value, i) - mechanism.log_mass(other, i) for i in range(len(value))]
        assert max(map(abs, losses)) <= float(epsilon) + 1e-9
        if kind is Exponential:
            assert max(losses) - min(losses) <= float(epsilon) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_claim_cannot_be_halved(kind: Any) -> None:
    """On its worst pair each loses more than half of ε: twice the rate would break the claim."""
    for monotone, far in ((False, [41] + [39] * 40), (True, [41] + [40] * 40)):
        mechanism = kind(epsilon=ONE, monotone=monotone)
        pair = ([40] * 41, far)
        if kind is NoisyMax:
            pair = ([34, 40], [35, 40 if monotone else 39])
        assert max(mechanism.log_mass(pair[1], i) - mechanism.log_mass(pair[0], i) for i in range(len(far))[:2]) > 0.75


@given(
    value=st.lists(st.integers(-5, 0), min_size=1, max_size=5), rate=st.sampled_from([Fraction(1, 2), ONE, Fraction(4)])
)
@settings(max_examples=40)
def test_permute_and_flip_against_every_order(value: list[int], rate: Fraction) -> None:
    mechanism = PermuteAndFlip(epsilon=rate)
    passes = [math.exp(float(mechanism.rate) * (score - max(value))) for score in value]
    found = [0.0] * len(value)
    orders = list(itertools.permutations(range(len(value))))
    for order in orders:
        alive = 1.0
        for at in order:
            found[at] += alive * passes[at] / len(orders)
            alive *= 1 - passes[at]
    assert masses(mechanism, value) == pytest.approx(found)


def test_permute_and_flip_is_never_worse_than_exponential() -> None:
    for value in ([0, 1, 2, 3], [0, 0, 5], [1, 4, 4]):
        flip = masses(PermuteAndFlip(epsilon=ONE), value)
        exponential = masses(Exponential(epsilon=ONE), value)
        short = [max(value) - score for score in value]
        assert sum(map(float.__mul__, flip, map(float, short))) <= sum(
            map(float.__mul__, exponential, map(float, short))
        )


def test_noisy_max_against_a_direct_sum() -> None:
    """Two candidates: P(s0 + Z0 >= s1 + Z1), ties to the first."""
    mechanism = NoisyMax(epsilon=ONE)
    q = math.exp(-float(mechanism.rate))
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-90, 91)}
    for gap in (-2, 0, 3):
        first = sum(p * law[j] for k, p in law.items() for j in law if k + gap >= j)
        assert math.exp(mechanism.log_mass([gap, 0], 0)) == pytest.approx(first, rel=1e-9)
        assert math.exp(mechanism.log_mass([gap, 0], 1)) == pytest.approx(1 - first, rel=1e-9)


def test_noisy_max_of_scores_far_apart() -> None:
    """The sum reaches beyond both of them: each noise decides at its own score."""
    mechanism = NoisyMax(epsilon=ONE)
    assert mechanism.log_mass([0, 400], 1) == pytest.approx(0, abs=1e-12)
    q, gap = math.exp(-0.5), 400
    # Z - Z' >= gap for two discrete Laplace variables: its mass at d falls as (d + (1 + q²) / (1 - q²)) q^d
    weights = math.fsum((d + (1 + q * q) / (1 - q * q)) * q**d for d in range(gap, gap + 300))
    assert mechanism.log_mass([0, gap], 0) == pytest.approx(2 * math.log((1 - q) / (1 + q)) + math.log(weights))


class TestRates:
    def test_sensitivity_and_grid(self) -> None:
        for kind in KINDS:
            assert kind(epsilon=ONE).rate == Fraction(1, 2)
            assert kind(epsilon=ONE, monotone=True).rate == 1
            assert kind(epsilon=ONE, sensitivity=Fraction(3)).rate == Fraction(1, 6)
            assert kind(epsilon=ONE, sensitivity=Fraction(1, 2), grid=Fraction(1, 3)).rate == Fraction(1, 4)
            assert kind(epsilon=ONE, sensitivity=Fraction(1, 2)).rate == Fraction(1, 2)
            assert kind(epsilon=ONE, neighbors=Neighbors.REPLACE_ONE).rate == Fraction(1, 2)
        assert NoisyMax(epsilon=Fraction(1, 5)).scale == 10

    @pytest.mark.parametrize("kind", [*KINDS, TopK])
    @pytest.mark.parametrize("neighbors", [Neighbors.REPLACE_ONE, Neighbors.LOCAL])
    def test_monotone_is_for_add_remove_only(self, kind: Any, neighbors: Neighbors) -> None:
        with pytest.raises(ParameterError, match="monotone must be False"):
            kind(epsilon=ONE, monotone=True, neighbors=neighbors)
        assert kind(epsilon=ONE, neighbors=neighbors).needs.neighbors is neighbors

    def test_events_and_needs(self) -> None:
        three = Fraction(3)
        assert Exponential(epsilon=three).event == BoundedRangeEvent(range=three)
        assert PermuteAndFlip(epsilon=three).event == PureEvent(bound=three)
        assert NoisyMax(epsilon=three).event == PureEvent(bound=three)
        assert TopK(epsilon=three, k=3).event == RepeatedEvent(event=BoundedRangeEvent(range=ONE), count=3)
        assert TopK(epsilon=three, k=1).event == BoundedRangeEvent(range=three)
        assert TopK(epsilon=three, k=3).event.epsilon == 3
        needs = Exponential(epsilon=ONE, sensitivity=Fraction(5, 2), monotone=True).needs
        assert (needs.norm, needs.sensitivity, needs.monotone, needs.integers) == (
            Norm.SCORE,
            Fraction(5, 2),
            True,
            False,
        )
        replaced = Exponential(epsilon=ONE, neighbors=Neighbors.REPLACE_ONE)
        assert replaced.event.neighbors is Neighbors.REPLACE_ONE


class TestScores:
    def test_real_scores_are_rounded_to_the_grid(self) -> None:
        mechanism = Exponential(epsilon=ONE, grid=Fraction(1, 4))
        assert mechanism.levels([0.3, -0.3, math.nan, math.inf]).tolist() == [-1, 1, 0, 0]
        assert Exponential(epsilon=ONE).levels(np.array([0.5, -0.5])).tolist() == [-1, 0]

    @pytest.mark.parametrize("kind", [*KINDS, TopK])
    @pytest.mark.parametrize(
        "value",
        [
            np.array([-(2**63), 0]),
            np.array([-(2**63), 2**63 - 1]),
            [-(2.0**63), 0.0],
            [-(10**400), 0],
            [-1.7e308, 1.7e308],
            np.array([-1.7e308, 0.0]),
            np.array([2**61 - 1 - 2**62, 2**61 - 1]),
        ],
    )
    def test_hopeless_scores_never_win_whatever_their_size(self, kind: Any, value: Any) -> None:
        for epsilon in (ONE, Fraction(1 << 15)):
            mechanism = kind(epsilon=epsilon)
            for _ in range(20):
                assert mechanism.draw(value) == ((1,) if kind is TopK else 1)
        drawn = kind(epsilon=ONE).repeat(value, times=20)
        assert set(drawn) == ({(1,)} if kind is TopK else {1})

    @pytest.mark.parametrize("edge", [1 << 61, (1 << 63) - 1, -(1 << 61), -(1 << 63)])
    def test_neighbours_on_both_sides_of_every_edge_are_alike(self, edge: int) -> None:
        for kind in KINDS:
            mechanism = kind(epsilon=Fraction(1, 10))
            inside = edge + 1 if edge < 0 else edge - 1
            one = mechanism.repeat(np.array([edge, inside], dtype=object), times=3000)
            two = mechanism.repeat(np.array([inside, inside], dtype=object), times=3000)
            assert abs(float(np.mean(one)) - float(np.mean(two))) < 0.12

    def test_levels_are_wide_where_noise_could_wrap_them(self) -> None:
        edge = 1 << 61
        for inside in ([0, edge - 1], [-edge + 1, 0], [5, 5]):
            levels = levels_of(np.array(inside))
            assert (levels.dtype, levels.tolist()) == (np.int64, [-score for score in inside])
        for outside in ([0, edge], [-edge, 0], [0, (1 << 63) - 1], [-(1 << 63), 0], [edge, edge], [10**30, 0]):
            levels = levels_of(np.array(outside))
            assert (levels.dtype, levels.tolist()) == (object, [-score for score in outside])

    @pytest.mark.parametrize("bad", [[], [[1, 2]], 5.0])
    def test_shapes(self, bad: Any) -> None:
        for kind in [*KINDS, TopK]:
            with pytest.raises(ParameterError, match="scores must be a non-empty list"):
                kind(epsilon=ONE).levels(bad)


class TestPrior:
    def test_it_multiplies_the_masses(self) -> None:
        mechanism = Exponential(epsilon=ONE, prior=(1, 0, 3))
        law = masses(mechanism, [1, 9, 0])
        weight = [math.exp(0.5), 0.0, 3.0]
        assert law == pytest.approx([w / sum(weight) for w in weight])
        assert follows(mechanism.repeat([1, 9, 0], times=50_000), range(3), law)
        assert follows(np.array([mechanism.draw([1, 9, 0]) for _ in range(2000)]), range(3), law)

    def test_a_far_better_score_without_weight_does_no_harm(self) -> None:
        """Its weight is 0, and the others must not vanish beside it."""
        mechanism = Exponential(epsilon=Fraction(2), prior=(0, 1, 1))
        value = [0, -740, -744]
        share = 1 / (1 + math.exp(-4))
        assert follows(mechanism.repeat(value, times=200_000), range(3), [0.0, share, 1 - share])

    def test_it_must_fit_the_scores(self) -> None:
        mechanism = Exponential(epsilon=ONE, prior=(1, 2))
        for call in (mechanism.draw, lambda v: mechanism.repeat(v, times=2), lambda v: mechanism.log_mass(v, 0)):
            with pytest.raises(ParameterError, match="as long as the scores"):
                call([1, 2, 3])


class TestTopK:
    @pytest.mark.parametrize("monotone", [False, True])
    def test_masses_are_products_and_draws_follow_them(self, monotone: bool) -> None:
        mechanism = TopK(epsilon=Fraction(2), k=2, monotone=monotone)
        value = [1, 0, 2, 0]
        rate = 1.0 if monotone else 0.5
        weight = [math.exp(rate * score) for score in value]
        pairs = list(itertools.permutations(range(4), 2))
        law = [weight[a] / sum(weight) * weight[b] / (sum(weight) - weight[a]) for a, b in pairs]
        assert [math.exp(mechanism.log_mass(value, pair)) for pair in pairs] == pytest.approx(law)
        index: dict[tuple[int, ...], int] = {pair: at for at, pair in enumerate(pairs)}
        assert follows(np.array([index[pair] for pair in mechanism.repeat(value, times=20_000)]), range(12), law)
        one = [mechanism.draw(value) for _ in range(3000)]
        assert all(type(at) is int for at in one[0])
        assert follows(np.array([index[pair] for pair in one]), range(12), law)

    @given(value=st.lists(st.integers(-3, 3), min_size=3, max_size=4), k=st.integers(1, 3), data=st.data())
    @settings(max_examples=40)
    def test_the_loss_is_within_the_claim(self, value: list[int], k: int, data: st.DataObject) -> None:
        moves = data.draw(st.lists(st.integers(-1, 1), min_size=len(value), max_size=len(value)))
        other = [a + b for a, b in zip(value, moves, strict=True)]
        mechanism = TopK(epsilon=ONE, k=k)
        for output in itertools.permutations(range(len(value)), k):
            assert abs(mechanism.log_mass(value, output) - mechanism.log_mass(other, output)) <= 1 + 1e-9

    def test_all_of_them_and_too_many(self) -> None:
        mechanism = TopK(epsilon=ONE, k=3)
        assert sorted(mechanism.draw([1, 2, 3])) == [0, 1, 2]
        assert all(sorted(row) == [0, 1, 2] for row in mechanism.repeat([1, 2, 3], times=50))
        with pytest.raises(ParameterError, match="at most the number of candidates"):
            mechanism.draw([1, 2])

    def test_error_divides_beta_over_the_rounds(self) -> None:
        mechanism = TopK(epsilon=ONE, k=2)
        assert mechanism.error(beta=0.1, candidates=5) == pytest.approx(math.log(5 / 0.05) / 0.25)
        assert mechanism.error(beta=0.1) == pytest.approx(math.log(1 / 0.05) / 0.25)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_the_utility_bound_holds(kind: Any) -> None:
    """Seed 001/004: P(score < best - t) <= |R| exp(-rate · t), for every t; and error() is where it equals β."""
    rng = np.random.default_rng(3)
    mechanism = kind(epsilon=ONE)
    for _ in range(30):
        value = rng.integers(-20, 1, size=8).tolist()
        law = masses(mechanism, value)
        for t in range(25):
            short = sum(p for p, score in zip(law, value, strict=True) if score < max(value) - t)
            assert short <= 8 * math.exp(-0.5 * t)
    assert mechanism.error(beta=0.05, candidates=8) == pytest.approx(math.log(8 / 0.05) / 0.5)
    assert mechanism.error(beta=0.05) == pytest.approx(math.log(1 / 0.05) / 0.5)
    fine = kind(epsilon=ONE, sensitivity=ONE, grid=Fraction(1, 4))
    assert fine.error(beta=0.05, candidates=8) == pytest.approx((math.log(8 / 0.05) * 8 + 1) / 4)


def test_noisy_max_s_error_holds() -> None:
    mechanism = NoisyMax(epsilon=ONE)
    bound = mechanism.error(beta=0.1, candidates=6)
    value = np.array([0] + [-int(bound) - 1] * 5)
    misses = int((mechanism.repeat(value, times=20_000) != 0).sum())
    assert stats.binomtest(misses, 20_000, 0.1, alternative="greater").pvalue > FALSE_ALARM
    assert bound == 2 * 8
    assert mechanism.error(beta=0.1) == 2 * 5


def test_the_exponential_mechanism_on_counts_is_the_geometric_one() -> None:
    """Seed 001: scores -|count - m| over a long range, which is monotone to no one: rate ε/2, as Geometric at ε/2."""
    from hubbub.mechanisms import Geometric

    counts = Exponential(epsilon=Fraction(2))
    geometric = Geometric(epsilon=ONE)
    value = [-abs(m) for m in range(-60, 61)]
    for m in (-5, 0, 1, 30):
        assert counts.log_mass(value, m + 60) == pytest.approx(geometric.log_mass(0, m), rel=1e-9)


def test_noise_is_drawn_at_the_rate_of_the_claim() -> None:
    source = Script([1 << 61] * 9)
    with substitute(source):
        Exponential(epsilon=ONE).draw([0, 0])
        PermuteAndFlip(epsilon=ONE).draw([0, 0])
        NoisyMax(epsilon=ONE).draw([0, 0])
    assert source.kinds == [
        ("choice", {"rate": Fraction(1, 2), "size": None}),
        ("race", {"rate": Fraction(1, 2), "size": None}),
        ("discrete-laplace", {"scale": 2, "size": 2}),
    ]
