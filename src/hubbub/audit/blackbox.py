"""Audits of anything that can be called: how much does it lose, at least, on this pair of inputs?"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hubbub.audit.bounds import Counts, delta_joint, epsilon_joint, level_of
from hubbub.audit.events import Candidates, Floats, Worth
from hubbub.audit.finding import Finding
from hubbub.audit.outputs import Batch, Outputs, Raised
from hubbub.errors import ParameterError
from hubbub.parameters import between, non_negative, whole

CONFIDENCE = 1 - 1e-6
"""Accusations are made at this confidence unless another is asked for."""

_CHOOSING_SHARE = 8
"""One draw in this many chooses the event; the rest test it."""

_MOST_CHOOSING = 20_000


def draws_that_count(samples: int) -> int:
    """Return the number of ``samples`` draws that test the event: those that did not choose it."""
    return samples - min(samples // _CHOOSING_SHARE, _MOST_CHOOSING)


def lower_bound(
    mechanism: Any, x: Any, y: Any, *, samples: int = 10_000, confidence: float = CONFIDENCE, delta: float = 0.0
) -> Finding:
    """A lower bound on ε at ``delta``, for any callable or mechanism and a pair of neighbouring inputs.

    ``samples`` answers are drawn on each input. The first eighth chooses, for each order of the pair, the event that
    should tell the inputs apart best; the rest count it. Each order gets half of 1 − confidence (Bonferroni) and the
    better bound is reported, so the claim of the Finding holds with ``confidence``, whatever the mechanism does, as
    long as its answers are independent. Errors raised by the mechanism are outputs.
    """
    return Drawn(mechanism, x, y, samples=samples).epsilon(delta=delta, confidence=confidence)


def lower_bound_delta(
    mechanism: Any, x: Any, y: Any, *, epsilon: float, samples: int = 100_000, confidence: float = CONFIDENCE
) -> Finding:
    """A lower bound on δ at ``epsilon``: the hockey-stick divergence that one event proves.

    The same audit as `lower_bound`, with max(P(E | x) − e^ε·P(E | y), P(E | y) − e^ε·P(E | x)) as its aim.
    """
    return Drawn(mechanism, x, y, samples=samples).delta(epsilon=epsilon, confidence=confidence)


class Drawn:
    """Answers on both inputs, from which any number of bounds may be read.

    Each bound holds with its own confidence whatever the others are read from: whoever reads several adds up what they
    may be wrong with (Bonferroni), and that needs no independence. So a claim at several (ε, δ) takes one set of draws.
    """

    def __init__(self, mechanism: Any, x: Any, y: Any, *, samples: int) -> None:
        samples = whole("samples", samples, least=100)
        self._drawing = mechanism, x, y
        self._hold(_answers(mechanism, x, y, times=samples))

    def _hold(self, answers: tuple[Outputs, Outputs]) -> None:
        self._answers = answers
        self._testing = draws_that_count(len(answers[0]))
        choosing = len(answers[0]) - self._testing
        self._tested = [Batch(side[choosing:]) for side in answers]
        self._candidates = Candidates(*(Batch(side[:choosing]) for side in answers))

    def more(self, samples: int) -> None:
        """So many more on each input: from then on bounds are read from all, as if they had been drawn at once."""
        further = _answers(*self._drawing, times=whole("samples", samples, least=1))
        one, other = (_join(*sides) for sides in zip(self._answers, further, strict=True))
        self._hold((one, other))

    def epsilon(self, *, delta: float = 0.0, confidence: float = CONFIDENCE) -> Finding:
        """A lower bound on ε at δ."""
        delta = float(between("delta", delta, 0, 1, high_open=True))

        def proven(counts: Counts, level: float) -> float:
            return epsilon_joint(counts, confidence=1 - level, delta=delta)

        def worth(p: Floats, q: Floats) -> Floats:
            return np.log(np.maximum(p - delta, 1e-12)) - np.log(q)

        bound, evidence = self._prove_bound(confidence=confidence, proven=proven, worth=worth)
        return Finding(epsilon=bound, delta=delta, bounds="epsilon", confidence=confidence, **evidence)

    def delta(self, *, epsilon: float, confidence: float = CONFIDENCE) -> Finding:
        """A lower bound on δ at ε."""
        epsilon = float(non_negative("epsilon", epsilon))
        growth = math.exp(min(epsilon, 700.0))

        def proven(counts: Counts, level: float) -> float:
            return delta_joint(counts, confidence=1 - level, epsilon=epsilon)

        def worth(p: Floats, q: Floats) -> Floats:
            return p - growth * q

        bound, evidence = self._prove_bound(confidence=confidence, proven=proven, worth=worth)
        return Finding(epsilon=epsilon, delta=bound, bounds="delta", confidence=confidence, **evidence)

    def _prove_bound(
        self, *, confidence: float, proven: Callable[[Counts, float], float], worth: Worth
    ) -> tuple[float, dict[str, Any]]:
        level = level_of(confidence) / 2
        found: list[tuple[float, dict[str, Any]]] = []
        for likelier, (first, second) in enumerate((self._tested, self._tested[::-1])):
            event = self._candidates.best(worth=worth, draws=self._testing, level=level, likelier=likelier)
            counts = Counts(
                hits=event.hits(first),
                draws=self._testing,
                other_hits=event.hits(second),
                other_draws=self._testing,
            )
            evidence = {"event": str(event), "likelier": "xy"[likelier], "counts": counts}
            found.append((proven(counts, level), evidence))
        return max(found, key=lambda one: one[0])


def _answers(mechanism: Any, x: Any, y: Any, *, times: int) -> tuple[Outputs, Outputs]:
    """Independent answers on both inputs: by ``repeat`` where there is one, else call by call, taking turns.

    Turns are taken so that a mechanism that wears out (a budget, a cache) does so on both inputs alike.
    """
    if hasattr(mechanism, "repeat"):
        try:
            first, second = (mechanism.repeat(value, times=times) for value in (x, y))
        except Exception:
            pass  # an input that it refuses: asked one by one, the refusals are outputs
        else:
            if len(first) == len(second) == times:
                return first, second
            raise ParameterError(
                "mechanism.repeat", f"a function that gives {times} answers", (len(first), len(second))
            )
    draw = getattr(mechanism, "draw", mechanism)
    if not callable(draw):
        raise ParameterError("mechanism", "a callable or an object with draw(value)", mechanism)
    on_x: list[Any] = []
    on_y: list[Any] = []
    for _ in range(times):
        on_x.append(_answer(draw, x))
        on_y.append(_answer(draw, y))
    return on_x, on_y


def _join(first: Outputs, further: Outputs) -> Outputs:
    if isinstance(first, np.ndarray) and isinstance(further, np.ndarray):
        return np.concatenate([first, further])
    return [*first, *further]


def _answer(draw: Callable[[Any], Any], value: Any) -> Any:
    try:
        return draw(value)
    except Exception as error:
        return Raised(type(error).__name__, str(error))
