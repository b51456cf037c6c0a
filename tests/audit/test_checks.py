"""Each check of the conformance suite, on small mechanisms that are right, and on ones that are wrong in one way."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.audit import conform, conformance
from hubbub.errors import ConformanceError

RNG = np.random.default_rng(7)


@dataclass(frozen=True)
class Claimed:
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    failure: Fraction = Fraction(0)


@dataclass(frozen=True)
class Response:
    """Truth or lie, by NumPy: a subject for tests.

    Privacy:
        Claim: Pure(epsilon) for one person's answer.
        Proof: both answers have probability e^ε/(1+e^ε) or 1/(1+e^ε).
        Needs: a fair generator.
        Ref: Warner 1965.
    """

    epsilon: float
    claim: Claimed
    bias: float = 0.0
    draw_bias: float = 0.0
    mass_error: float = 0.0

    @property
    def event(self) -> Any:
        return self.claim

    def draw(self, value: int) -> int:
        return int(self._answers(value, 1, self.draw_bias)[0])

    def repeat(self, value: int, *, times: int) -> Any:
        return self._answers(value, times, self.bias)

    def _answers(self, value: int, times: int, bias: float) -> Any:
        honest = RNG.random(times) < 1 / (1 + math.exp(-self.epsilon)) + bias
        return np.where(honest, value, 1 - value)

    def log_mass(self, value: int, output: int) -> float:
        return (self.epsilon if output == value else 0.0) - math.log1p(math.exp(self.epsilon)) + self.mass_error


@dataclass(frozen=True)
class Subject:
    """What the registry's specimens are made of."""

    mechanism: Any
    twin: Any
    name: str = "subject"
    pair: tuple[Any, Any] = (0, 1)
    outputs: tuple[Any, ...] = (0, 1)
    cell: Callable[[Any], Any] = field(default=lambda answer: answer)
    large: bool = True
    loose: bool = False


PURE = Claimed(epsilon=Fraction(1), rho=Fraction(1, 2))


def subject(**changed: Any) -> Any:
    return replace(Subject(mechanism=Response(1.0, PURE), twin=Response(1.25, PURE)), **changed)


def expect_failing(check: Callable[[Any], str], specimen: Any, words: str) -> None:
    with pytest.raises(ConformanceError, match=words) as caught:
        check(specimen)
    assert str(caught.value).startswith("[not-conforming] subject: ")
    assert isinstance(caught.value, AssertionError)
    with pytest.raises(ConformanceError, match=words):
        conform(specimen)


def test_a_good_mechanism_passes_and_the_report_has_a_line_for_each_question() -> None:
    report = conform(subject())
    assert [line.partition(":")[0] for line in report.lines] == ["statement", "mass", "ratio", "law", "audit", "twin"]
    text = str(report)
    assert text.startswith("subject\n  statement: Pure(epsilon) for one person's answer.")
    assert "exact loss 1 of the claimed ε = 1" in text
    assert "1000000 by repeat" in text
    assert "10000 by draw" in text


def test_small_means_fewer_draws() -> None:
    assert conformance.check_law(subject(large=False)).startswith("100000 by repeat")


class Silent(Response):
    pass


class Partial(Response):
    """Says little.

    Privacy:
        Claim: Pure(epsilon).
        Proof:
        Ref: none.
    """


class Elsewhere(Response):
    """The words are there, but in another section.

    Notes:
        Claim: a
        Proof: b
        Needs: c
        Ref: d
    """


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Silent, "Silent has no Privacy section"),
        (Elsewhere, "Elsewhere has no Privacy section"),
        (Partial, "Partial does not state: Proof, Needs"),
    ],
)
def test_a_claim_must_be_stated_by_the_class_itself(kind: type[Response], words: str) -> None:
    expect_failing(conformance.check_statement, subject(mechanism=kind(1.0, PURE)), words)


@pytest.mark.parametrize("wrong", [1e-6, -2e-6])
def test_masses_that_do_not_add_up(wrong: float) -> None:
    expect_failing(conformance.check_mass, subject(mechanism=Response(1.0, PURE, mass_error=wrong)), "add up to")
    expect_failing(conformance.check_mass, subject(twin=Response(1.25, PURE, mass_error=wrong)), "add up to")


def test_a_claim_that_is_broken_by_a_hair() -> None:
    expect_failing(
        conformance.check_ratio, subject(mechanism=Response(1.0 + 2e-9, PURE)), "the claim is broken: exact loss 1"
    )
    assert conformance.check_ratio(subject(mechanism=Response(1.0 + 5e-10, PURE)))


def test_a_pair_that_is_not_the_worst() -> None:
    timid = Response(0.85, replace(PURE, rho=None))
    expect_failing(conformance.check_ratio, subject(mechanism=timid), "not the worst one")
    assert conformance.check_ratio(subject(mechanism=timid, loose=True))
    assert conformance.check_ratio(subject(mechanism=replace(timid, epsilon=0.91)))


def test_a_zcdp_claim_is_held_at_every_order() -> None:
    tight = Fraction(math.tanh(0.5)).limit_denominator(10**6) + Fraction(1, 10**5)
    assert conformance.check_ratio(subject(mechanism=Response(1.0, Claimed(epsilon=Fraction(1), rho=tight))))
    low = Claimed(epsilon=Fraction(1), rho=Fraction(4, 10))
    expect_failing(conformance.check_ratio, subject(mechanism=Response(1.0, low)), "αρ = .* at α = ")


def test_an_event_that_claims_nothing() -> None:
    expect_failing(conformance.check_ratio, subject(mechanism=Response(1.0, Claimed())), "claims neither")


def test_a_failure_mass_is_a_hockey_stick_sum() -> None:
    """At ε = 1/2, a response at 1 has δ = (e − e^½)/(1 + e)."""
    exact = Fraction((math.e - math.exp(0.5)) / (1 + math.e))
    good = Claimed(epsilon=Fraction(1, 2), failure=exact)
    assert "0.287649" in conformance.check_ratio(subject(mechanism=Response(1.0, good)))
    greedy = replace(good, failure=exact - Fraction(1, 10**8))
    expect_failing(conformance.check_ratio, subject(mechanism=Response(1.0, greedy)), "claim is broken: .* at δ = ")
    both = Claimed(rho=Fraction(1, 100), failure=Fraction(1, 100))
    expect_failing(conformance.check_ratio, subject(mechanism=Response(1.0, both)), "claim is broken: .* δ = ")


@pytest.mark.parametrize("bias", [0.003, -0.003])
def test_a_biased_sampler(bias: float) -> None:
    expect_failing(
        conformance.check_law, subject(mechanism=Response(1.0, PURE, bias=bias)), "1000000 answers by repeat do not"
    )


def test_a_draw_that_is_not_what_repeat_is() -> None:
    expect_failing(
        conformance.check_law, subject(mechanism=Response(1.0, PURE, draw_bias=0.1)), "10000 answers by draw do not"
    )


class Short(Response):
    """Gives one answer too few.

    Privacy:
        Claim: Pure(epsilon).
        Proof: as above.
        Needs: nothing.
        Ref: none.
    """

    def repeat(self, value: int, *, times: int) -> Any:
        return super().repeat(value, times=times - 1)


def test_answers_that_are_missing() -> None:
    expect_failing(conformance.check_law, subject(mechanism=Short(1.0, PURE)), "999999 answers instead of 1000000")


def test_draws_that_lose_more_than_the_masses_say() -> None:
    leaking = subject(mechanism=Response(1.0, PURE, bias=0.1))
    with pytest.raises(ConformanceError, match="an audit refutes the claim ε = 1: <Finding ε ≥ 1"):
        conformance.check_audit(leaking)


def test_a_twin_that_is_not_caught() -> None:
    """Its masses say 1.25; its draws are honest."""
    sheep = Response(1.25, PURE, bias=1 / (1 + math.exp(-1.0)) - 1 / (1 + math.exp(-1.25)))
    expect_failing(conformance.check_twin, subject(twin=sheep), "does not see that the twin breaks the claim ε = 1")


@pytest.mark.parametrize("twin", [1.0, 1.23, 1.27, 2.0])
def test_a_twin_loses_a_quarter_more_and_not_anything_else(twin: float) -> None:
    words = "the twin loses only" if twin < 1.25 else "is what an audit has to see"
    expect_failing(conformance.check_twin, subject(twin=Response(twin, PURE)), words)


def test_a_loose_claim_may_need_more_of_its_twin() -> None:
    assert conformance.trial_of(subject(twin=Response(2.0, PURE), loose=True)).samples == 10_000


def test_an_audit_gets_the_draws_it_needs_or_says_so() -> None:
    half, tenth = Claimed(epsilon=Fraction(1, 2)), Claimed(epsilon=Fraction(1, 10))
    small = subject(mechanism=Response(0.5, half), twin=Response(0.625, half))
    assert conformance.trial_of(small).samples == 30_000
    assert conformance.check_twin(small)
    tiny = subject(mechanism=Response(0.1, tenth), twin=Response(0.125, tenth), large=False)
    expect_failing(conformance.check_twin, tiny, "more than 400000")


def test_a_claim_with_a_failure_mass_is_tried_in_delta() -> None:
    failure = Fraction((math.e - math.exp(0.5)) / (1 + math.e))
    claim = Claimed(epsilon=Fraction(1, 2), failure=failure)
    louder = subject(mechanism=Response(1.0, claim), twin=Response(1.2, claim))
    trial = conformance.trial_of(louder)
    assert trial.delta == pytest.approx(float(failure))
    assert "(ε, δ) = (0.5, " in str(trial)
    assert conformance.check_audit(louder)
    assert conformance.check_twin(louder)


def test_a_zcdp_claim_is_tried_on_its_exact_curve() -> None:
    claim = Claimed(rho=Fraction(1, 2))
    louder = subject(mechanism=Response(1.0, claim), twin=Response(1.25, claim))
    trial = conformance.trial_of(louder)
    assert trial.bounds == "delta"
    assert trial.delta >= 0.05
    assert conform(replace(louder, loose=True))
