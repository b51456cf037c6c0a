"""The time of an answer, as an output: whoever asks holds a clock.

`lower_bound_of_time` audits the time alone, as a finding of its own: noise of the machine can then neither hide what
answers give away nor add to it. `time_answers` makes a function whose output is (answer, bucket of its time), for
those who want to look at both at once. `examine_time` does it for a subject and its worst pairs.

Times are whole nanoseconds. By default thresholds are quantiles of the draws that choose the event, as for any number;
with ``powers`` a time is first put into the bucket [2^k, 2^(k+1)), which is coarse, and enough for a loop that runs or
does not.

What it can see: a difference that moves a good part of the times past a threshold, such as a branch, a retry, a sleep,
an early end. On a busy machine, where a call of a millisecond may take ten, small differences drown: a pass says less
than any other pass in this package, and nothing about the last microsecond, or about time summed over many questions.

What it must not say: that the machine's own moods depend on the data. Turns are taken, and a coin of ours says which
input goes first in each, so that drift, clocks that step and collections of garbage come on both inputs alike; the
first calls, which load and cache, are not counted. Still, the confidence is that of independent draws, and times of a
real machine are not quite independent; an accusation on a busy one should be looked at again on a quiet one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from hubbub.audit.blackbox import CONFIDENCE, lower_bound
from hubbub.audit.bounds import level_of
from hubbub.audit.chance import Chance
from hubbub.audit.finding import Finding
from hubbub.audit.outputs import Outputs, Raised
from hubbub.audit.report import Counterexample, Report, Tried
from hubbub.audit.subject import Pair, Subject
from hubbub.errors import ParameterError
from hubbub.parameters import whole

Clock = Callable[[], int]
"""Nanoseconds from some beginning."""

Buckets = Literal["quantiles", "powers"]

_SAMPLES = 4_000
_WARM = 16
"""Turns before the first that counts."""


def time_answers(
    mechanism: Any, *, buckets: Buckets = "powers", clock: Clock = time.perf_counter_ns
) -> Callable[[Any], tuple[Any, int]]:
    """A function whose output is (answer, bucket of how long it took); an error is an answer, and took time too."""
    draw, bucket = _draw(mechanism), _bucket(buckets)

    def answer_and_time(value: Any) -> tuple[Any, int]:
        start = clock()
        answer: Any
        try:
            answer = draw(value)
        except Exception as error:
            answer = Raised(type(error).__name__, str(error))
        return answer, bucket(clock() - start)

    return answer_and_time


def lower_bound_of_time(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    samples: int = _SAMPLES,
    confidence: float = CONFIDENCE,
    delta: float = 0.0,
    buckets: Buckets = "quantiles",
    warm: int = _WARM,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
) -> Finding:
    """A lower bound on ε at ``delta`` from the time that answers take, and from nothing else."""
    samples, warm = whole("samples", samples, least=100), whole("warm", warm)
    ask = time_answers(mechanism, buckets=buckets, clock=clock)
    chance = Chance(f"{seed}/turns")
    taken: tuple[list[int], list[int]] = ([], [])
    for turn in range(warm + samples):
        first = chance.below(2)
        for side in (first, 1 - first):
            _, bucket = ask((x, y)[side])
            if turn >= warm:
                taken[side].append(bucket)
    found = lower_bound(_Taken(taken), 0, 1, samples=samples, confidence=confidence, delta=delta)
    unit = "nanoseconds" if buckets == "quantiles" else "the binary logarithm of nanoseconds, rounded down,"
    return replace(found, event=found.event.replace("output", unit))


def examine_time(
    subject: Subject,
    *,
    pairs: int = 2,
    samples: int = _SAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
) -> Report:
    """The worst pairs of a subject, by time alone; they share the confidence.

    A time that loses more than the claim refutes it for (answer, time); a mechanism that claims its answers alone is
    told where its claim ends.
    """
    start = time.monotonic()
    named = list(islice(subject.pairs(Chance(f"{seed}/{subject.name}")), whole("pairs", pairs, least=1)))
    epsilon, delta = subject.claim.points[0]
    share = 1 - level_of(confidence) / max(1, len(named))
    tried = Tried()
    found: list[tuple[Pair, Finding]] = []
    for pair in named:
        tried = tried.more(pairs=1, draws=2 * samples)
        bound = lower_bound_of_time(
            lambda value: subject.answers(value, times=1),
            pair.x,
            pair.y,
            samples=samples,
            confidence=share,
            delta=delta,
            seed=seed,
            clock=clock,
        )
        found.append((pair, bound))
    accused = [(pair, one) for pair, one in found if one.accuses(epsilon, delta=delta)]
    return Report(
        subject=f"how long {subject.name} takes",
        claim=subject.claim,
        findings=tuple(one for _, one in found),
        counterexample=_counterexample(subject, *accused[0]) if accused else None,
        tried=tried,
        confidence=confidence,
        seed=seed,
        seconds=time.monotonic() - start,
    )


def _counterexample(subject: Subject, pair: Pair, finding: Finding) -> Counterexample:
    return Counterexample(about=pair.about, shown=subject.show_pair(pair), sentences=(str(finding),), finding=finding)


@dataclass(frozen=True, slots=True)
class _Taken:
    """Times that were taken already, as `lower_bound` asks for them."""

    by_side: tuple[list[int], list[int]]

    def repeat(self, value: int, *, times: int) -> Outputs:
        return self.by_side[value][:times]


def _bucket(buckets: Buckets) -> Callable[[int], int]:
    if buckets == "quantiles":
        return lambda passed: passed
    if buckets == "powers":
        return lambda passed: passed.bit_length() - 1
    raise ParameterError("buckets", "'quantiles' or 'powers'", buckets)


def _draw(mechanism: Any) -> Callable[[Any], Any]:
    draw = getattr(mechanism, "draw", mechanism)
    if not callable(draw):
        raise ParameterError("mechanism", "a callable or an object with draw(value)", mechanism)
    return draw  # type: ignore[no-any-return]
