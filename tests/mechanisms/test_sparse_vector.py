"""Sparse vector: masses against the obvious computation, the claim kept and attained, and every boundary."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms import SparseVector
from hubbub.mechanisms.sparse.sparse_vector import Found
from hubbub.noise import laws
from hubbub.noise.entropy import substitute
from hubbub.privacy.events.event import ComposedEvent, DiscreteLaplaceEvent, PureEvent, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.testing import replayed
from tests.noise.sources import FALSE_ALARM, Untouchable, follows

ONE, HALF = Fraction(1), Fraction(1, 2)
NOTHING: Found = ((), (), ())
FORMS: list[dict[str, Any]] = [
    {},
    {"monotone": True},
    {"count": 2},
    {"count": 2, "monotone": True},
    {"count": 2, "renewed": True},
    {"numbers": HALF},
    {"count": 2, "renewed": True, "numbers": Fraction(1, 4), "monotone": True},
]
forms = pytest.mark.parametrize("form", FORMS, ids=str)


def made(epsilon: Any = ONE, threshold: int = 0, **form: Any) -> SparseVector:
    return SparseVector(epsilon=epsilon, threshold=threshold, **form)


def on(bar: int, epsilon: Any = ONE, **form: Any) -> SparseVector:
    """With a noisy threshold that starts at ``bar``."""
    return made(epsilon, bar - made(epsilon, **form).least_bar, **form)


def outputs(mechanism: SparseVector, questions: int, gaps: int, numbers: range = range(0)) -> list[Found]:
    found = []
    for size in range(mechanism.count + 1):
        for places in itertools.combinations(range(questions), size):
            for each in itertools.product(range(gaps), repeat=size):
                bought = itertools.product(numbers, repeat=size) if mechanism.numbers else [()]
                found += [(places, each, extra) for extra in bought]
    return found


def geometric(k: int, scale: Fraction) -> float:
    q = math.exp(-1 / scale)
    return (1 - q) * q**k if k >= 0 else 0.0


def obvious(mechanism: SparseVector, value: list[int], output: Found, reach: int) -> float:
    """P(output), by walking through every value of the noisy thresholds, question by question."""
    places, gaps, numbers = output

    def walk(at: int, found: int, bar: int | None) -> float:
        if found == mechanism.count or at == len(value):
            return float(found == len(places))
        if bar is None:
            return sum(
                geometric(z, mechanism.bar_scale) * walk(at, found, mechanism.least_bar + z) for z in range(reach)
            )
        if found < len(places) and at == places[found]:
            mass = geometric(bar + gaps[found] - value[at], mechanism.question_scale)
            if mechanism.number_scale is not None:
                mass *= math.exp(laws.laplace_log_mass(numbers[found] - value[at], mechanism.number_scale))
            return mass * walk(at + 1, found + 1, None if mechanism.renewed else bar)
        below = sum(geometric(k, mechanism.question_scale) for k in range(bar - value[at]))
        return below * walk(at + 1, found, bar)

    return walk(0, 0, None)


@forms
@pytest.mark.parametrize("value", [[0], [2, -1, 1], [-3, 4, 0]])
def test_masses_against_the_obvious_computation(form: dict[str, Any], value: list[int]) -> None:
    mechanism = on(0, 8, **form)
    for output in outputs(mechanism, len(value), 2, range(1, 2)):
        mass = math.exp(mechanism.log_mass(value, output))
        assert mass == pytest.approx(obvious(mechanism, value, output, 24), rel=1e-6, abs=1e-12)


@forms
def test_masses_add_up_and_draws_follow_them(form: dict[str, Any]) -> None:
    """Numbers apart: their law is Geometric's, whatever the comparisons were."""
    mechanism, value = on(0, 6, **form), [1, -2, 0]
    unbought = on(0, 6 * (1 - mechanism.numbers), **(form | {"numbers": Fraction(0)}))
    assert (unbought.bar_scale, unbought.question_scale) == (mechanism.bar_scale, mechanism.question_scale)
    support = outputs(unbought, 3, 30)
    law = [math.exp(unbought.log_mass(value, output)) for output in support]
    assert sum(law) == pytest.approx(1, abs=1e-6)
    places = {output[:2]: index for index, output in enumerate(support)}
    drawn = mechanism.repeat(value, times=20_000)
    assert follows(np.array([places.get(output[:2], -1) for output in drawn]), range(len(support)), law)
    if mechanism.number_scale is not None:
        errors = [x - value[at] for output in drawn for at, x in zip(output[0], output[2], strict=True)]
        masses = [math.exp(laws.laplace_log_mass(k, mechanism.number_scale)) for k in range(-40, 41)]
        assert follows(np.array(errors), range(-40, 41), masses)
        assert mechanism.log_mass(value, ((0,), (3,), (5,))) == pytest.approx(
            unbought.log_mass(value, ((0,), (3,), ())) + laws.laplace_log_mass(4, mechanism.number_scale)
        )
    one = mechanism.draw(value)
    assert all(type(number) is int for part in one for number in part)


def test_masses_where_many_stay_below() -> None:
    """Then the noisy threshold must have been far up: the sum has to reach there."""
    mechanism, many = on(0, 40, count=50), 5_000
    z = np.arange(1, 4_000)
    logs = np.log(-np.expm1(-1 / float(mechanism.bar_scale))) - z / float(mechanism.bar_scale)
    logs = logs + many * np.log(-np.expm1(-z / float(mechanism.question_scale)))
    assert mechanism.log_mass([0] * many, NOTHING) == pytest.approx(float(np.logaddexp.reduce(logs)), rel=1e-9)


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ([0, 0], ((0, 1), (0, 0), ())),
        ([0, 0], ((2,), (0,), ())),
        ([0, 0], ((-1,), (0,), ())),
        ([0, 0], ((0,), (-1,), ())),
        ([0, 0], ((0,), (), ())),
        ([0, 0], ((), (0,), ())),
        ([0, 0], ((0,), (0,), (3,))),
        ([], ((0,), (0,), ())),
    ],
)
def test_what_cannot_come_out_has_no_mass(value: list[int], output: Found) -> None:
    assert made().log_mass(value, output) == -math.inf


def test_orders_and_numbers_that_cannot_come_out() -> None:
    two = made(count=2)
    assert two.log_mass([0, 0], ((0, 1), (0, 0), ())) > -math.inf
    assert two.log_mass([0, 0], ((1, 0), (0, 0), ())) == -math.inf
    assert two.log_mass([0, 0], ((1, 1), (0, 0), ())) == -math.inf
    bought = made(numbers=HALF)
    assert bought.log_mass([0], ((0,), (0,), (7,))) > -math.inf
    assert bought.log_mass([0], ((0,), (0,), ())) == -math.inf
    assert bought.log_mass([0], ((), (), (7,))) == -math.inf


def test_nothing_asked() -> None:
    assert made().draw([]) == NOTHING
    assert made().log_mass([], NOTHING) == pytest.approx(0, abs=1e-12)


@given(
    form=st.sampled_from(FORMS),
    epsilon=st.fractions(HALF, 3, max_denominator=4),
    sensitivity=st.integers(1, 2),
    value=st.lists(st.integers(-3, 3), min_size=1, max_size=4),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_the_loss_is_within_the_claim(
    form: dict[str, Any], epsilon: Fraction, sensitivity: int, value: list[int], data: st.DataObject
) -> None:
    mechanism = on(0, epsilon, sensitivity=sensitivity, **form)
    least = 0 if mechanism.monotone else -sensitivity
    moves = data.draw(st.lists(st.integers(least, sensitivity), min_size=len(value), max_size=len(value)))
    other = [a + b for a, b in zip(value, moves, strict=True)]
    for output in outputs(mechanism, len(value), 2, range(-1, 2)):
        loss = mechanism.log_mass(value, output) - mechanism.log_mass(other, output)
        assert abs(loss) <= float(epsilon) + 1e-9


@forms
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_claim_is_attained(form: dict[str, Any], sensitivity: int) -> None:
    mechanism = on(0, ONE, sensitivity=sensitivity, **form)
    rounds = [[0, *[0] * (mechanism.count // mechanism.rounds)] for _ in range(mechanism.rounds)]
    value = [x for part in rounds for x in part]
    lifted = [
        [part[0] + sensitivity, *(x - (not mechanism.monotone) * sensitivity for x in part[1:])] for part in rounds
    ]
    other = [x for part in lifted for x in part]
    places = tuple(at for at in range(len(value)) if at % len(rounds[0]))
    numbers = (50,) * mechanism.count if mechanism.numbers else ()
    losses = []
    for bought in (numbers, tuple(-n for n in numbers)):
        output = (places, (0,) * mechanism.count, bought)
        losses.append(mechanism.log_mass(value, output) - mechanism.log_mass(other, output))
    if mechanism.monotone and mechanism.numbers:  # a number of what stays where it is costs nothing
        assert max(losses) == pytest.approx(float(1 - mechanism.numbers))
    else:
        assert max(losses) == pytest.approx(1, abs=1e-9)


def test_half_the_noise_is_for_monotone_answers_only() -> None:
    mechanism = on(0, ONE, monotone=True)
    output = ((1,), (0,), ())
    assert mechanism.log_mass([0, 0], output) - mechanism.log_mass([1, -1], output) == pytest.approx(1.5, abs=1e-9)


class TestCalibration:
    """ε₂/ε₁ is 4 for steps = 8."""

    @pytest.mark.parametrize(
        ("form", "bar", "question", "number"),
        [
            ({"count": 4}, 5, 10, None),
            ({"count": 8, "monotone": True}, 5, 10, None),
            ({"count": 4, "sensitivity": 3}, 15, 30, None),
            ({"count": 4, "numbers": HALF}, 10, 20, 8),
            ({"count": 4, "numbers": HALF, "sensitivity": 3}, 30, 60, 24),
            ({"monotone": True}, 2, 2, None),
            ({"monotone": True, "renewed": True, "count": 4}, 8, 8, None),
            ({"renewed": True, "count": 4}, Fraction(2587, 250), 8 * Fraction(2587, 1587), None),
            ({"neighbors": Neighbors.REPLACE_ONE, "count": 4}, 5, 10, None),
        ],
    )
    def test_scales(self, form: dict[str, Any], bar: Any, question: Any, number: Any) -> None:
        mechanism = made(**form)
        assert (mechanism.bar_scale, mechanism.question_scale, mechanism.number_scale) == (bar, question, number)

    @pytest.mark.parametrize("form", [{}, {"count": 5}, {"count": 30, "monotone": True}])
    def test_the_split_has_the_least_variance(self, form: dict[str, Any]) -> None:
        mechanism = made(Fraction(1, 10), **form)
        steps = (1 if mechanism.monotone else 2) * mechanism.count
        first = 1 / mechanism.bar_scale
        assert steps / mechanism.question_scale + first == Fraction(1, 10)

        def variance(share: Fraction) -> Fraction:
            return share**-2 + (steps / (Fraction(1, 10) - share)) ** 2

        assert variance(first) == mechanism.bar_scale**2 + mechanism.question_scale**2
        assert variance(first) < variance(first * Fraction(99, 100))
        assert variance(first) < variance(first * Fraction(101, 100))

    @pytest.mark.parametrize("epsilon", [Fraction(1, 50), HALF, Fraction(3), Fraction(40)])
    @forms
    def test_the_threshold_is_a_toss_up(self, epsilon: Fraction, form: dict[str, Any]) -> None:
        """At the threshold above is at least as likely as below, one lower it is less likely."""
        mechanism = made(epsilon, threshold=5, **(form | {"numbers": Fraction(0)}))
        assert math.exp(mechanism.log_mass([5], NOTHING)) <= 0.5 + 1e-12
        assert math.exp(mechanism.log_mass([4], NOTHING)) > 0.5

    def test_events(self) -> None:
        assert made().event == PureEvent(bound=ONE)
        assert made(count=3).event == PureEvent(bound=ONE)
        third = PureEvent(bound=Fraction(1, 3))
        assert made(count=3, renewed=True).event == RepeatedEvent(event=third, count=3)
        assert made(renewed=True).event == PureEvent(bound=ONE)
        half, number = PureEvent(bound=HALF), DiscreteLaplaceEvent(scale=Fraction(4), sensitivity=2)
        assert made(numbers=HALF, sensitivity=2).event == ComposedEvent(events=(half, number))
        twice = made(numbers=HALF, count=2, neighbors=Neighbors.REPLACE_ONE).event
        assert twice == ComposedEvent(
            events=(
                PureEvent(bound=HALF, neighbors=Neighbors.REPLACE_ONE),
                RepeatedEvent(event=DiscreteLaplaceEvent(scale=Fraction(4), neighbors=Neighbors.REPLACE_ONE), count=2),
            )
        )
        assert all(made(Fraction(7, 3), **form).event.epsilon == Fraction(7, 3) for form in FORMS)

    def test_renewing_is_cheaper_in_zcdp_and_noisier(self) -> None:
        once, renewed = made(count=10), made(count=10, renewed=True)
        assert once.event.rho is not None
        assert renewed.event.rho is not None
        assert renewed.event.rho < once.event.rho / 9
        assert renewed.question_scale > once.question_scale
        assert renewed.bar_scale > once.bar_scale

    def test_what_is_derived_is_not_part_of_it(self) -> None:
        shown = repr(made(numbers=HALF))
        assert "numbers=" in shown
        assert not any(name in shown for name in ("bar_scale", "question_scale", "number_scale", "least_bar"))
        assert made(numbers=0.5) == made(numbers=HALF)
        assert hash(made(numbers=0.5)) == hash(made(numbers=HALF))

    def test_needs(self) -> None:
        needs = made(sensitivity=4, monotone=True).needs
        assert (needs.norm, needs.sensitivity, needs.neighbors) == (Norm.SCORE, Fraction(4), Neighbors.ADD_REMOVE)
        assert needs.monotone
        assert needs.integers
        assert not made().needs.monotone
        assert made(neighbors=Neighbors.REPLACE_ONE).needs.neighbors is Neighbors.REPLACE_ONE


class _Fixed:
    """Noise that a test has chosen, draw by draw."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, geometric: list[Any], laplace: Any = ()) -> None:
        self.asked: list[tuple[str, Fraction, int | None]] = []
        self._left = {"geometric": list(geometric), "discrete_laplace": list(laplace)}
        for name in self._left:
            monkeypatch.setattr(noise, name, self._drawer(name))

    def _drawer(self, name: str) -> Any:
        def draw(*, scale: Fraction, size: int | None = None) -> Any:
            self.asked.append((name, scale, size))
            drawn = self._left[name].pop(0)
            return drawn if size is None else np.array(drawn, dtype=np.int64)

        return draw


class TestBoundaries:
    def test_ties_are_above(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mechanism = made(threshold=100)
        bar = mechanism.least_bar + 7
        _Fixed(monkeypatch, [[7], [0, 3, 3]])
        assert mechanism.draw([bar - 1, bar - 4, bar - 3]) == ((2,), (0,), ())

    def test_it_stops_after_its_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mechanism = on(0, count=2)
        fixed = _Fixed(monkeypatch, [[1], [0, 0, 0, 0, 0]])
        assert mechanism.draw([5, 0, 1, 9, 9]) == ((0, 2), (4, 0), ())
        assert fixed.asked == [("geometric", mechanism.bar_scale, 1), ("geometric", mechanism.question_scale, 5)]

    def test_fewer_above_than_paid_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _Fixed(monkeypatch, [[1], [0, 0]])
        assert on(0, count=2).draw([5, 0]) == ((0,), (4,), ())

    def test_the_next_threshold_is_for_what_comes_next(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mechanism = on(0, count=3, renewed=True)
        fixed = _Fixed(monkeypatch, [[1, 6, 2], [0] * 6])
        assert mechanism.draw([2, 5, 6, 1, 2, 99]) == ((0, 2, 4), (1, 0, 0), ())
        assert fixed.asked[0] == ("geometric", mechanism.bar_scale, 3)

    def test_numbers_have_noise_of_their_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mechanism = on(0, count=2, numbers=HALF)
        fixed = _Fixed(monkeypatch, [[0], [3, 0, 0]], [[-10, 20]])
        assert mechanism.draw([1, -1, 5]) == ((0, 2), (4, 5), (-9, 25))
        assert fixed.asked[1] == ("discrete_laplace", mechanism.number_scale, 2)

    def test_rows_of_several_runs_are_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _Fixed(monkeypatch, [[0, 9], [1, 0, 0, 8]])
        assert on(0).repeat([0, 1], times=2) == [((0,), (1,), ()), ((1,), (0,), ())]

    def test_numbers_of_any_size(self) -> None:
        far = 1 << 70
        mechanism = made(threshold=1 << 62)
        assert mechanism.draw([-far, far])[0] == (1,)
        assert mechanism.draw([-(1 << 63), (1 << 63) - 1])[0] == (1,)
        assert mechanism.draw(np.array([0, (1 << 64) - 1], dtype=np.uint64))[0] == (1,)
        assert made(threshold=-(1 << 62)).draw(np.array([0]))[0] == (0,)

    @pytest.mark.parametrize("value", [[1.5], 3, [[1, 2]], ["1"], None, [True]])
    def test_values_of_the_wrong_kind(self, value: Any) -> None:
        with substitute(Untouchable()), pytest.raises(ParameterError, match="value must be"):
            made().draw(value)

    @pytest.mark.parametrize(
        ("name", "bad"),
        [
            ("threshold", (1 << 62) + 1),
            ("threshold", -(1 << 62) - 1),
            ("threshold", 1.0),
            ("count", (1 << 20) + 1),
            ("numbers", 1),
            ("numbers", -HALF),
            ("numbers", "half"),
        ],
    )
    def test_bad_parameters(self, name: str, bad: Any) -> None:
        with pytest.raises(ParameterError, match=f"{name} must be"):
            SparseVector(**({"epsilon": ONE, "threshold": 0} | {name: bad}))

    def test_parameters_at_the_edge(self) -> None:
        assert made(threshold=1 << 62, count=1 << 20, numbers=0.25).numbers == Fraction(1, 4)
        with pytest.raises(ParameterError, match="monotone must be False"):
            made(monotone=True, neighbors=Neighbors.REPLACE_ONE)
        with pytest.raises(ParameterError, match="numbers"):
            made(numbers=Fraction(1, 1 << 61))
        with pytest.raises(ParameterError, match="questions must be"):
            made().error(beta=0.1, questions=0)

    @forms
    def test_draws_of_noise_do_not_depend_on_the_answers(self, form: dict[str, Any]) -> None:
        seen = []
        for value in ([0, 0, 0], [900, 900, 900], [-900, -900, -900]):
            with replayed(4) as source:
                made(**form).draw(value)
            seen.append(source.draws)
        assert seen[0] == seen[1] == seen[2]


class TestErrors:
    def test_worked_values(self) -> None:
        # 2.587·ln 40 = 9.54 and 3.260·ln 40 = 12.03: noise above 9, and above 12, has chance 1/40
        assert made().least_bar == 0
        assert made().error(beta=0.05) == 12
        # 3.260·ln 400,000 = 42.06
        assert made().error(beta=0.05, questions=10_000) == 42
        assert made(numbers=HALF).number_error(beta=0.05) == laws.laplace_quantile(0.05, Fraction(2)) == 6
        with pytest.raises(ParameterError, match="numbers must be above 0"):
            made().number_error(beta=0.05)

    @pytest.mark.parametrize("epsilon", [Fraction(1, 20), ONE, Fraction(20)])
    @forms
    def test_they_hold_and_are_not_idle(self, form: dict[str, Any], epsilon: Fraction) -> None:
        """With one question: P(called above | T - t - 1) and P(called below | T + t), summed exactly."""
        mechanism = made(epsilon, **(form | {"numbers": Fraction(0)}))
        t = mechanism.error(beta=0.05)
        for far, bound in ((t, 0.05), (t // 4, 1.0)):
            wrongly_above = 1 - math.exp(mechanism.log_mass([-far - 1], NOTHING))
            wrongly_below = math.exp(mechanism.log_mass([far], NOTHING))
            assert max(wrongly_above, wrongly_below) <= bound
        if epsilon < 1:
            assert max(wrongly_above, wrongly_below) > 0.05

    def test_the_threshold_is_raised_where_it_counts(self) -> None:
        mechanism = made(Fraction(1, 10), count=50)
        raised = mechanism.least_bar
        assert raised > 100
        bar = next(t for t in range(10**5) if math.exp(-(t + 1) / mechanism.bar_scale) <= 0.25)
        question = next(t for t in range(10**5) if math.exp(-(t + 1) / mechanism.question_scale) <= 0.25)
        assert mechanism.error(beta=0.5) == max(raised + bar, question - raised)
        renewed = made(Fraction(1, 10), count=50, renewed=True)
        bar = next(t for t in range(10**6) if math.exp(-(t + 1) / renewed.bar_scale) <= 0.25 / 50)
        assert renewed.error(beta=0.5) == renewed.least_bar + bar

    def test_estimates_from_gaps(self) -> None:
        """Far above the threshold they have no bias, and the variance of both noises."""
        mechanism, truth, runs = made(Fraction(1, 2)), 500, 20_000
        found = np.array([mechanism.estimates(out)[0] for out in mechanism.repeat([truth], times=runs)])
        variance = (laws.laplace_variance(mechanism.bar_scale) + laws.laplace_variance(mechanism.question_scale)) / 2
        sigmas = float(stats.norm.isf(FALSE_ALARM / 4))
        assert abs(found.mean() - truth) < sigmas * math.sqrt(variance / runs)
        assert found.var() == pytest.approx(variance, rel=0.15)  # 1e-6 for a kurtosis of 9 is 0.13

    def test_estimates_weigh_gap_and_number(self) -> None:
        mechanism = made(numbers=HALF, count=2)
        known = (laws.laplace_variance(mechanism.bar_scale) + laws.laplace_variance(mechanism.question_scale)) / 2
        assert mechanism.number_scale == 4
        weight = laws.laplace_variance(Fraction(4)) / (known + laws.laplace_variance(Fraction(4)))
        means = [1 / math.expm1(1 / scale) for scale in (mechanism.bar_scale, mechanism.question_scale)]
        gap_says = mechanism.least_bar + 30 + means[0] - means[1]
        assert mechanism.estimates(((3, 9), (30, 31), (70, 70)))[0] == pytest.approx(
            weight * gap_says + (1 - weight) * 70
        )
        assert made().estimates(NOTHING) == ()
        assert 0 < weight < 0.5
        with pytest.raises(ValueError, match="shorter"):
            mechanism.estimates(((3,), (30,), ()))

    def test_hardly_any_noise_has_no_error(self) -> None:
        assert made(Fraction(40)).error(beta=0.5) == 0


def test_one_sided_noise_misses_less() -> None:
    """It misses less than two-sided noise of the same scale, and false alarms are within two in a hundred."""
    mechanism = made(Fraction(1, 10))
    for far in (1, 10, 30, 100):
        missed, alarmed = (math.exp(mechanism.log_mass([at], NOTHING)) for at in (far, -far))
        two_sided = _two_sided_below(mechanism, far)
        assert missed < two_sided
        assert 1 - alarmed < 1 - _two_sided_below(mechanism, -far) + 0.02


def _two_sided_below(mechanism: SparseVector, at: int) -> float:
    """P(at + Laplace < Laplace) with the scales of the mechanism."""
    reach = 40 * math.ceil(mechanism.bar_scale)
    return sum(
        math.exp(laws.laplace_log_mass(z, mechanism.bar_scale))
        * (1 - laws.laplace_tail(z - at, mechanism.question_scale))
        for z in range(-reach, reach + 1)
    )
