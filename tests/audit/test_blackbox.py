"""The audit against mechanisms whose loss we know: the honest are left alone, the broken are caught.

Every audit here accuses at confidence 1 − 1e-6, so a test that leaves n honest mechanisms alone fails by chance with
probability at most n·1e-6.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hubbub.audit import Finding, lower_bound, lower_bound_delta
from hubbub.errors import ParameterError

Mechanism = Callable[[Any], Any]


@dataclass(frozen=True)
class Additive:
    """A value plus noise, by NumPy's generator: a subject for audits, nothing else."""

    law: str
    scale: float
    rng: np.random.Generator

    def repeat(self, value: Any, *, times: int) -> Any:
        if self.law == "geometric":
            success = -math.expm1(-1 / self.scale)
            return value + self.rng.geometric(success, times) - self.rng.geometric(success, times)
        return value + getattr(self.rng, self.law)(0, self.scale, times)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


@pytest.mark.parametrize("law", ["laplace", "geometric"])
def test_the_honest_are_left_alone(law: str, rng: np.random.Generator) -> None:
    honest = Additive(law, 1.0, rng)
    findings = [lower_bound(honest, 3, 4) for _ in range(150)]
    assert not any(finding.accuses(1.0) for finding in findings)
    assert np.mean([finding.epsilon for finding in findings]) > 0.85


@pytest.mark.parametrize("law", ["laplace", "geometric"])
@pytest.mark.parametrize("claim", [1.0, 2.0])
def test_a_quarter_too_much_loss_is_seen_every_time(law: str, claim: float, rng: np.random.Generator) -> None:
    twin = Additive(law, 1 / (1.25 * claim), rng)
    assert all(lower_bound(twin, 3, 4).accuses(claim) for _ in range(60))


def test_the_honest_gaussian_is_left_alone_and_its_twin_is_not(rng: np.random.Generator) -> None:
    """σ = 1: δ(1) = Φ(−1/2) − e·Φ(−3/2) = 0.12693; σ = 0.87: 0.1666, that is 1.31 times as much."""
    delta = 0.126937
    honest = lower_bound_delta(Additive("normal", 1.0, rng), 0, 1, epsilon=1.0)
    assert not honest.accuses(1.0, delta=delta)
    assert 0.1 < honest.delta < delta
    twin = lower_bound_delta(Additive("normal", 0.87, rng), 0, 1, epsilon=1.0)
    assert twin.accuses(1.0, delta=delta)
    assert twin.bounds == "delta"
    assert twin.epsilon == 1.0


def test_delta_lowers_the_bound(rng: np.random.Generator) -> None:
    subject = Additive("laplace", 0.5, rng)
    assert lower_bound(subject, 0, 1).epsilon > 1.5
    eased = lower_bound(subject, 0, 1, delta=0.2)
    assert eased.delta == 0.2
    assert eased.epsilon < 1.5
    assert not eased.accuses(2.0)
    assert eased.accuses(0.5) == (eased.epsilon > 0.5)


def test_both_orders_are_looked_at(rng: np.random.Generator) -> None:
    """Under one input some outputs never come: only one order of the pair tells."""

    def one_sided(value: int) -> int:
        return int(rng.random() < 0.3) if value else 0

    for pair in ((1, 0), (0, 1)):
        finding = lower_bound(one_sided, *pair, samples=4000)
        assert finding.epsilon > 3
        assert finding.likelier == ("x" if pair[0] else "y")
        assert finding.event == "output ≥ 1"
        assert finding.counts.other_hits == 0
        assert finding.counts.hits == pytest.approx(1050, abs=200)


# What must never pass: each is a bug that has shipped somewhere.


def half_noise(rng: np.random.Generator) -> Mechanism:
    return lambda value: value + rng.laplace(0, 0.5)


def deterministic(rng: np.random.Generator) -> Mechanism:
    return lambda value: value


def sampling_alone(rng: np.random.Generator) -> Mechanism:
    """Publish each record with probability 1/10, unchanged."""
    return lambda value: tuple(name for name in ["ann", "bob", "eve"][: value - 1] if rng.random() < 0.1)


def sampled_count(rng: np.random.Generator) -> Mechanism:
    """Count a random half of the records, and add nothing."""
    return lambda value: rng.binomial(value, 0.5)


def wrong_sensitivity(rng: np.random.Generator) -> Mechanism:
    """A sum of values up to 3, noised as if they were up to 1."""
    return lambda value: 3 * value + rng.laplace(0, 1.0)


def noise_reused(rng: np.random.Generator) -> Mechanism:
    def answer(value: int) -> tuple[float, float]:
        noise = rng.laplace(0, 2.0)
        return 10 + noise, value + noise

    return answer


def noise_cached(rng: np.random.Generator) -> Mechanism:
    noise = float(rng.laplace(0, 1.0))
    return lambda value: value + noise


def clamped_at_the_exact_count(rng: np.random.Generator) -> Mechanism:
    return lambda value: min(value + rng.laplace(0, 1.0), value)


def rounded_after_noise_is_fine_but_errors_are_not(rng: np.random.Generator) -> Mechanism:
    def answer(value: int) -> float:
        if value == 4:
            raise ZeroDivisionError
        return float(value + rng.laplace(0, 1.0))

    return answer


def error_message_tells(rng: np.random.Generator) -> Mechanism:
    def answer(value: int) -> float:
        raise ValueError(f"cannot cast row {value}")

    return answer


def shape_tells(rng: np.random.Generator) -> Mechanism:
    return lambda value: rng.laplace(0, 1.0, size=value)


def missing_key_tells(rng: np.random.Generator) -> Mechanism:
    return lambda value: {f"group {i}": i + rng.laplace(0, 1.0) for i in range(value)}


def nothing_tells(rng: np.random.Generator) -> Mechanism:
    return lambda value: None if value == 3 else rng.laplace(0, 1.0)


def integer_noise_on_reals(rng: np.random.Generator) -> Mechanism:
    """The noise is whole, the value is not: what is behind the decimal point is in the clear."""
    return lambda value: 0.1 * value + round(rng.laplace(0, 20.0))


def minus_zero_tells(rng: np.random.Generator) -> Mechanism:
    return lambda value: math.copysign(0.0, value - 3.5)


def array_type_tells(rng: np.random.Generator) -> Mechanism:
    return lambda value: np.array([1, 2]) if value == 3 else [1, 2]


def argmax_of_exact_scores(rng: np.random.Generator) -> Mechanism:
    return lambda value: np.roll([5.0, 1.0, 1.0], value) + rng.normal(0, 0.5, size=3)


BROKEN = [
    argmax_of_exact_scores,
    array_type_tells,
    clamped_at_the_exact_count,
    deterministic,
    error_message_tells,
    half_noise,
    integer_noise_on_reals,
    minus_zero_tells,
    missing_key_tells,
    noise_cached,
    noise_reused,
    nothing_tells,
    rounded_after_noise_is_fine_but_errors_are_not,
    sampled_count,
    sampling_alone,
    shape_tells,
    wrong_sensitivity,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda function: function.__name__)
def test_a_broken_mechanism_is_caught(broken: Callable[..., Mechanism], rng: np.random.Generator) -> None:
    finding = lower_bound(broken(rng), 3, 4)
    assert finding.accuses(1.0), finding


def test_errors_that_do_not_depend_on_the_input_tell_nothing(rng: np.random.Generator) -> None:
    def fails_now_and_then(value: int) -> float:
        if rng.random() < 0.5:
            raise OSError("busy")
        return float(rng.laplace(0, 1))

    assert lower_bound(fails_now_and_then, 3, 4, samples=4000).epsilon == 0.0


def test_a_mechanism_that_wears_out_is_not_blamed_for_it(rng: np.random.Generator) -> None:
    """Turns are taken: a budget that ends half way ends for both inputs."""
    left = [5000]

    def answer(value: int) -> float:
        left[0] -= 1
        if left[0] < 0:
            raise PermissionError("budget spent")
        return float(value + rng.laplace(0, 1.0))

    assert not lower_bound(answer, 3, 4, samples=4000).accuses(1.0)


def test_strings_and_huge_integers_and_mixtures(rng: np.random.Generator) -> None:
    def answer(value: int) -> Any:
        return [10**400, "text", b"bytes", None, math.nan, -math.inf, value][rng.integers(0, 7)]

    finding = lower_bound(answer, 3, 4, samples=4000)
    assert finding.epsilon > 2
    assert finding.event in {"output is 3", "output is 4"}


def test_a_randomized_responder_is_judged_by_its_categories(rng: np.random.Generator) -> None:
    def respond(value: str) -> str:
        return value if rng.random() < 0.75 else "no" if value == "yes" else "yes"

    finding = lower_bound(respond, "yes", "no")
    assert 0.95 < finding.epsilon < math.log(3)
    assert not finding.accuses(math.log(3))
    assert finding.event in {"output is 'yes'", "output is 'no'"}


def test_a_mechanism_with_repeat_is_asked_at_once_and_one_with_draw_one_by_one(rng: np.random.Generator) -> None:
    asked: list[str] = []

    class Both:
        def draw(self, value: int) -> int:
            asked.append("draw")
            return 0

        def repeat(self, value: int, *, times: int) -> list[int]:
            asked.append("repeat")
            return [0] * times

    class Refusing(Both):
        def repeat(self, value: int, *, times: int) -> list[int]:
            raise ValueError("not this value")

    class Short(Both):
        def repeat(self, value: int, *, times: int) -> list[int]:
            return [0] * (times - 1)

    lower_bound(Both(), 0, 1, samples=100)
    assert asked == ["repeat", "repeat"]
    lower_bound(Refusing(), 0, 1, samples=100)
    assert asked[2:] == ["draw"] * 200
    with pytest.raises(ParameterError, match="gives 100 answers"):
        lower_bound(Short(), 0, 1, samples=100)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"samples": 99}, "samples must be"),
        ({"samples": 1e4}, "samples must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": -0.1}, "delta must be"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_drawn(given: dict[str, Any], complaint: str) -> None:
    def never(value: int) -> int:
        raise AssertionError("drawn")

    with pytest.raises(ParameterError, match=complaint):
        lower_bound(never, 0, 1, **given)


def test_epsilon_is_not_negative_and_a_mechanism_is_callable() -> None:
    with pytest.raises(ParameterError, match="epsilon must be"):
        lower_bound_delta(abs, 0, 1, epsilon=-1.0)
    with pytest.raises(ParameterError, match="mechanism must be"):
        lower_bound(3, 0, 1)


def test_a_finding_reads_like_a_sentence() -> None:
    finding = lower_bound(lambda value: value, 3, 4, samples=1000)
    assert repr(finding) == (
        "<Finding ε ≥ 3.9263 at δ = 0 (confidence 1 − 1e-06): output ≤ 3: 875 of 875 draws on x, 0 of 875 on y>"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding.epsilon = 0.0  # type: ignore[misc]


def test_a_finding_shows_its_intervals_and_the_textbook_bound() -> None:
    finding = lower_bound(lambda value: value, 3, 4, samples=1000)
    (p_low, p_high), (q_low, q_high) = finding.probabilities
    assert 0.98 < p_low < p_high == 1.0
    assert 0.0 == q_low < q_high < 0.02
    assert finding.box == pytest.approx(4.0, abs=0.1)
    by_delta = lower_bound_delta(lambda value: value, 3, 4, epsilon=1.0, samples=1000)
    assert isinstance(by_delta, Finding)
    assert 0.9 < by_delta.delta < 1.0
    assert by_delta.box == pytest.approx(by_delta.delta, abs=0.02)
    assert repr(by_delta).startswith("<Finding δ ≥ 0.9")
    assert by_delta.accuses(1.0)
    assert by_delta.accuses(1.0, delta=by_delta.delta - 1e-6)
    assert not by_delta.accuses(1.0, delta=by_delta.delta + 1e-6)
