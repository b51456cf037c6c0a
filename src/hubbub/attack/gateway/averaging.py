"""One question, asked again and again: fresh noise averages out, a stored answer or a spent budget does not.

The mean of k answers with noise of deviation σ is off by σ/√k. Whoever draws noise afresh for the same question gives
the answer away after some (8σ)² questions.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import MadeUp
from hubbub.errors import HubbubError, ParameterError

Ask = Callable[[int], float]
"""From the number of the attempt to an answer. What the target refuses, it refuses by an error."""
CLOSE = 0.5
"""A count is known when it is known to less than this."""
_DEVIATIONS = 4.0


def fresh_noise(truth: float, *, scale: float, seed: int = 0) -> Ask:
    """A target that answers the same question with new noise each time, and keeps no account."""
    source = MadeUp(seed, "averaging")
    return lambda _: truth + float(source.laplace(1, scale)[0])


def averaging(ask: Ask, *, truth: float, times: int, target: str) -> AttackFinding:
    """Repeat a question, and see how near the mean comes to the truth that only the lab knows.

    It works where the attacker can be sure: several answers that differ, whose mean is off by less than one half with
    four standard errors to spare, and that is right. One answer that happens to be near tells nobody that it is.
    """
    if times < 2:
        raise ParameterError("times", "at least 2", times)
    told: list[float] = []
    stopped = ""
    for attempt in range(times):
        try:
            told.append(float(ask(attempt)))
        except HubbubError as refused:
            stopped = refused.code
            break
    different = len(set(told))
    means = np.cumsum(told) / np.arange(1, len(told) + 1) if told else np.array([])
    error = float(np.std(told, ddof=1) / np.sqrt(len(told))) if different > 1 else float("inf")
    mean = float(means[-1]) if told else float("nan")
    works = different > 1 and _DEVIATIONS * error < CLOSE and abs(mean - truth) < CLOSE
    if works:
        verdict = f"{len(told):,} answers average to {mean:.2f}: the exact number, {truth:g}, is known."
    elif not told:
        verdict = "Every question was refused."
    elif different == 1:
        verdict = f"All {len(told):,} answers are the same: asking again tells nothing new."
    else:
        verdict = f"{len(told):,} answers average to {mean:.2f} ± {error:.2f}: the exact number is not known."
    return AttackFinding(
        title=f"Averaging: {target}",
        verdict=verdict,
        works=works,
        notes=(f"After {len(told):,} answers the target refused: {stopped}.",) if stopped else (),
        columns=("answers", "mean so far", "off by"),
        rows=tuple(
            (f"{place:,}", f"{means[place - 1]:.2f}", f"{abs(means[place - 1] - truth):.2f}")
            for place in _milestones(len(told))
        ),
        numbers={"answers": len(told), "different": different} | ({"mean": mean} if told else {}),
        draw=partial(_draw, means, truth),
    )


def _milestones(count: int) -> list[int]:
    places = [10**power for power in range(7) if 10**power <= count]
    return sorted({*places, count}) if count else []


def _draw(means: Any, truth: float, axes: Any) -> None:
    axes.semilogx(np.arange(1, len(means) + 1), means, color="crimson", label="mean of the answers")
    axes.axhline(truth, color="black", linestyle="--", label="the truth")
    axes.set_xlabel("answers")
    axes.legend()
