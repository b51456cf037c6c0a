"""Statistical queries: noisy means of functions of one row, which is all that many learners need to know.

The functions are the data owner's own code and run in this process on every row: nothing here protects against one that
writes rows down. What is promised is about answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.attempt import attempt
from hubbub.gate.secret import Sealed
from hubbub.learn.statistics.cells import Array, array, column
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import ball_steps, fill_missing, in_ball
from hubbub.learn.tuition import ACCOUNT, Tuition, reach_of
from hubbub.parameters import positive, whole
from hubbub.privacy.filter import whole_units_rounded_down

COUNT = Fraction(1, 20)
"""Of the price, for the number of rows, which all means are divided by."""
BETA = 0.05

Question = Callable[[Any, Any], Any]
"""From a row and its label to a number in [−1, 1], or to a vector of L2 norm at most 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleAnswer:
    """A noisy mean, and how far off it is at most, 19 times in 20 (each number of it)."""

    value: Any
    error: float

    def __float__(self) -> float:
        return float(self.value)


class StatisticalQueryOracle:
    """Answers statistical queries about labelled rows: means of functions with values in [−1, 1], within a tolerance.

    Every algorithm in Kearns's model runs on it. ``questions`` is how many will be asked, for equal parts of the price;
    without it each question says what it may cost (``ask(…, epsilon=…)``). ``groups`` says whose each row is, and a
    person counts for at most ``max_rows`` of them. A function that fails on a row, or gives no number, gives 0 there,
    and other values are clipped: so answers stay private whatever the function is, as long as it looks at one row only,
    and remembers none.

    Privacy:
        Claim: (ε, δ) for each unit over all answers.
        Proof: each row's answer is cleaned, put into the ball and cut to whole steps; ``Crowd`` bounds a unit's sum,
            ``Tuition`` spends the share. The number of rows is one more measurement, made once. What a function raises
            is not seen outside.
        Needs: functions of one row, deterministic; ``Tuition``.
        Ref: Kearns 1998; Blum, Dwork, McSherry, Nissim 2005.
    """

    def __init__(
        self, X: Any, y: Any = None, *, epsilon: float = 1.0, delta: float = 0.0, questions: int | None = None,  # noqa: N803
        groups: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT,
    ) -> None:  # fmt: skip
        self._rows = list(X) if isinstance(X, list | tuple) else list(array(X, name="X"))
        self._labels = [None] * len(self._rows) if y is None else column(y, name="y", rows=len(self._rows)).tolist()
        self._crowd = Crowd.of(groups, rows=len(self._rows), most=max_rows)
        self._tuition = Tuition.at(epsilon=epsilon, delta=delta, meter=meter, account=account or ACCOUNT)
        self._questions = None if questions is None else whole("questions", questions, least=1)
        self._data = Features.of(np.empty((len(self._rows), 0)), self._crowd)
        self.rows = self._tuition.guard(lambda: self._tuition.count(self._data, share=COUNT))
        """The noisy number of rows."""
        self._rows_off = _error(self._tuition)
        self._each = None if self._questions is None else self._tuition.left / self._questions

    @property
    def left(self) -> float:
        """The share of the price that is not spent."""
        return float(self._tuition.left)

    def ask(self, question: Question, *, width: int | None = None, epsilon: float | None = None) -> OracleAnswer:
        """The noisy mean of a function of a row and its label; with ``width``, of a vector, as one joint question."""
        if not callable(question):
            raise ParameterError("question", "a function of a row and its label", question)
        share, wide = self._share(epsilon), 1 if width is None else whole("width", width, least=1)
        part = self._tuition.spend(share)
        total = self._tuition.guard(lambda: self._measure(question, wide, part))
        off = _error(self._tuition)
        mean = np.clip(total / self.rows, -1.0, 1.0)
        # |s/n − S/N| <= (|s − S| + |s/n|·|n − N|)/N, and |S/N| <= 1.
        least = max(1.0, self.rows - self._rows_off)
        error = min(2.0, (off + self._rows_off * float(np.abs(mean).max())) / least)
        return OracleAnswer(value=float(mean[0]) if width is None else mean, error=error)

    def _share(self, epsilon: float | None) -> Fraction:
        if epsilon is None:
            if self._each is None:
                raise ParameterError(
                    "epsilon", "what this question may cost (or questions= when the oracle is made)", None
                )
            return min(self._each, self._tuition.left)
        part = whole_units_rounded_down(positive("epsilon", epsilon) / self._tuition.epsilon)
        return part if self._tuition.rho is None else part * part

    def _measure(self, question: Question, width: int, part: Fraction) -> Array:
        """Noisy sums of what the function says of rows; it is asked after the charge."""
        steps = ball_steps(width)
        reach = reach_of(steps, self._data)
        mechanism = self._tuition.additive(part, reach)
        exact = Sealed.later(lambda: self._crowd.total(in_ball(self._ask_rows(question, width))))
        noisy = self._tuition.measure(mechanism, exact, reach, grid=steps.grid, label="statistical query")
        return np.asarray(noisy, dtype=np.float64)

    def _ask_rows(self, question: Question, width: int) -> Array:
        found = np.zeros((len(self._rows), width))
        for place, (row, label) in enumerate(zip(self._rows, self._labels, strict=True)):
            said, failed = attempt(partial(_one, question, row, label, width), log=None)
            if not failed:
                found[place] = said
        return found


def _one(question: Question, row: Any, label: Any, width: int) -> Array:
    """Return what the function says of one row; nothing it does about a row is seen but its number."""
    said = np.asarray(question(np.array(row), label), dtype=np.float64).reshape(-1)
    return fill_missing(said) if said.shape == (width,) else np.zeros(width)


def _error(tuition: Tuition) -> float:
    """Return what the noise of the last answer exceeds one time in 40: of a mean, two such errors count."""
    last = tuition.releases[-1]
    return float(last.mechanism.error(beta=BETA / 2)) * float(last.grid)
