"""Time as an output, by a clock that only moves when it is told to: nothing here waits, and nothing is left to chance.

Accusations are made at confidence 1 − 1e-6; the noise of the fake clock is from a fixed seed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from hubbub.audit import lower_bound
from hubbub.audit.chance import Chance
from hubbub.audit.latency import examine_time, lower_bound_of_time, time_answers
from hubbub.audit.outputs import Outputs, Raised
from hubbub.audit.subject import Claim, Pair
from hubbub.errors import ParameterError


@dataclass
class Clock:
    """Nanoseconds that pass by order."""

    now: int = 0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def __call__(self) -> int:
        return self.now

    def passes(self, nanoseconds: float) -> None:
        self.now += int(nanoseconds)

    def noisy(self, nanoseconds: float) -> None:
        """About so long: as on a machine with something else to do."""
        self.passes(nanoseconds * self.rng.gamma(4, 0.25))


def sleeper(clock: Clock, extra: float) -> Callable[[Any], int]:
    """It takes a millisecond, and more for a row that matches."""

    def ask(rows: list[str]) -> int:
        clock.noisy(1e6 + extra * rows.count("eve"))
        return 0

    return ask


CLAIM = Claim.pure(1.0)
X, Y = ["ann", "bob"], ["ann", "bob", "eve"]


@pytest.mark.parametrize("buckets", ["quantiles", "powers"])
def test_a_sleep_that_depends_on_the_data_is_seen(buckets: Any) -> None:
    clock = Clock()
    ask = sleeper(clock, 9e6)
    found = lower_bound_of_time(ask, X, Y, samples=2_000, buckets=buckets, clock=clock)
    assert found.accuses(1.0)
    assert "nanoseconds" in found.event
    assert "output" not in found.event
    assert lower_bound(ask, X, Y, samples=2_000).epsilon == 0.0, "its answers give nothing away"


@pytest.mark.parametrize("buckets", ["quantiles", "powers"])
def test_time_that_has_nothing_to_do_with_the_data_is_left_alone(buckets: Any) -> None:
    clock = Clock()
    for _ in range(20):
        found = lower_bound_of_time(sleeper(clock, 0.0), X, Y, samples=1_000, buckets=buckets, clock=clock)
        assert not found.accuses(0.0)


def test_drift_does_not_accuse() -> None:
    """Every call takes longer than the one before it: asked one input after the other, they would be told apart."""
    clock = Clock()
    took = 1_000

    def slower(rows: list[str]) -> int:
        nonlocal took
        took += 10
        clock.passes(took)
        return 0

    assert not lower_bound_of_time(slower, X, Y, samples=2_000, clock=clock).accuses(0.0)


def test_what_comes_with_every_second_call_does_not_accuse() -> None:
    """A collection of garbage, say: with turns in a fixed order it would come on one input alone."""
    clock = Clock()
    calls = 0

    def collected(rows: list[str]) -> int:
        nonlocal calls
        calls += 1
        clock.passes(50_000 if calls % 2 else 1_000)
        return 0

    assert not lower_bound_of_time(collected, X, Y, samples=2_000, clock=clock).accuses(0.0)


def test_the_first_calls_are_not_counted() -> None:
    """The first sixteen turns load what is cached; both inputs have as many turns as were asked for beside them."""
    clock = Clock()
    calls: list[int] = []

    def loading(rows: list[str]) -> int:
        calls.append(len(rows))
        clock.passes(1_000 if len(calls) > 32 else 10**9 * len(rows))
        return 0

    found = lower_bound_of_time(loading, X, Y, samples=100, clock=clock)
    assert found.epsilon == 0.0
    assert calls.count(2) == calls.count(3) == 116
    calls.clear()
    lower_bound_of_time(loading, X, Y, samples=100, warm=0, clock=clock)
    assert calls.count(2) == 100


def test_answer_and_time_together() -> None:
    clock = Clock()

    def ask(rows: list[str]) -> int:
        clock.passes(1_024 if len(rows) == 2 else 1_023)
        if "eve" in rows:
            raise ValueError("no")
        return len(rows)

    assert time_answers(ask, clock=clock)(X) == (2, 10)
    assert time_answers(ask, clock=clock)(Y) == (Raised("ValueError", "no"), 9)
    assert time_answers(ask, buckets="quantiles", clock=clock)(X) == (2, 1_024)


def test_no_time_at_all_has_a_bucket_too() -> None:
    assert time_answers(len, clock=Clock())(X) == (2, -1)


def test_a_mechanism_may_be_an_object() -> None:
    class Mechanism:
        def draw(self, value: Any) -> Any:
            return value

    assert time_answers(Mechanism(), clock=Clock())(5) == (5, -1)
    with pytest.raises(ParameterError, match="mechanism must be"):
        time_answers(7)
    with pytest.raises(ParameterError, match="buckets must be"):
        time_answers(len, buckets="decades")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Query:
    """A subject whose answers are all alike, and whose time may not be."""

    ask: Callable[[Any], int]
    name: str = "a query"
    claim: Claim = CLAIM

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        yield Pair(x=X, y=X[:1], about="bob leaves")
        yield Pair(x=X, y=Y, about="eve comes")
        yield Pair(x=Y, y=X, about="never asked")

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        return iter(())

    def faults(self, pair: Pair) -> list[str]:
        return []

    def answers(self, value: Any, *, times: int) -> Outputs:
        return [self.ask(value) for _ in range(times)]

    def show_pair(self, pair: Pair) -> str:
        return f"x = {pair.x}\ny = {pair.y}"


def test_a_subject_is_examined_on_its_worst_pairs() -> None:
    clock = Clock()
    report = examine_time(Query(sleeper(clock, 9e6)), samples=1_000, clock=clock)
    assert report.accused
    assert report.counterexample is not None
    assert report.counterexample.about == "eve comes"
    assert "x = ['ann', 'bob']" in str(report)
    assert report.subject == "how long a query takes"
    assert (report.tried.pairs, report.tried.draws) == (2, 4_000)
    assert not report.findings[0].accuses(0.0)
    assert report.findings[1].confidence == pytest.approx(1 - 5e-7, abs=1e-12)


def test_a_subject_of_even_time_is_left_alone() -> None:
    clock = Clock()
    report = examine_time(Query(sleeper(clock, 0.0)), samples=1_000, clock=clock)
    assert not report.accused
    assert "no counterexample" in str(report)
