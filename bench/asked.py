"""A question as an analyst writes it, what it gives without privacy, and what it gives with: for benches and tests.

The exact answer is the product's own path with the noise left out: the engine's tallies, and the middle of what a
choice would choose from, made into an answer as ever. It is held against what DuckDB itself says to the same text.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np

from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.privacy.filter import Budget
from hubbub.query.aggregates.extremes import ExtremeChoice
from hubbub.query.aggregates.mode import ModeChoice
from hubbub.query.aggregates.quantile import QuantileChoice
from hubbub.query.answer import stored
from hubbub.query.answer.answer import answer_of
from hubbub.query.ops import ExactCounts
from hubbub.query.plan.choice import Choice
from hubbub.query.plan.measure import measure_plan
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.selection import KeyCounts
from hubbub.query.plan.statistic import Statistic
from hubbub.session.database import Database

Cells = dict[tuple[Any, ...], tuple[Any, ...]]
"""The numbers of each group, by its keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the limits that suit it."""

    name: str
    text: str
    keys: int
    """How many of its columns, from the left, name the group."""
    max_groups: int
    max_rows: int
    epsilon: Fraction = Fraction(1)


def without_limit(planned: Plan) -> Plan:
    """The same, with all of its rows: an order that noise changes would change which are shown."""
    return replace(planned, question=replace(planned.question, limit=None, offset=0, having=None))


def noiseless(planned: Plan, counted: ExactCounts) -> Cells:
    """The answer that has no noise."""
    exact = [[] if slot is None else _noiseless(slot.take, counted) for slot in planned.slots]
    shown = None
    if planned.selection is not None:
        private = [place for place, group in enumerate(planned.question.groups) if group.private]
        assert len(private) == len(planned.question.groups), "mixed keys are not compared here"
        shown = counted.cells
    return cells_of(planned, [stored.DrawnAnswer(exact, shown)])


def _noiseless(statistic: Statistic, counted: ExactCounts) -> list[int]:
    if isinstance(statistic, Choice):
        return [step for bins in statistic.bins(counted) for step in _exactly(statistic, bins)]
    if isinstance(statistic, KeyCounts):
        return list(statistic(counted).values())
    return [int(value) for value in statistic(counted)]


def _exactly(choice: Choice, bins: StepCounts) -> list[int]:
    """The steps that the exact quantiles, ends or mode lie on; 0 where there are no rows."""
    pairs = sorted(bins.pairs())
    if not pairs:
        return [0] * choice.numbers
    steps, many = (np.array(side) for side in zip(*pairs, strict=True))
    if isinstance(choice, ModeChoice):
        return [int(steps[np.argmax(many)])]
    if isinstance(choice, ExtremeChoice):
        return [int(steps[-1] if choice.is_highest else steps[0])]
    assert isinstance(choice, QuantileChoice)
    upto = np.cumsum(many)
    ranks = [max(1, math.ceil(level * int(upto[-1]))) for level in choice.levels]
    return [int(steps[np.searchsorted(upto, rank)]) for rank in ranks]


def noisy(db: Database, planned: Plan, counted: ExactCounts) -> Cells:
    """One draw of the answer that is paid for."""
    meter = Meter({db.policy.account: Budget(epsilon=Fraction(10**9), delta=db.policy.budget.delta)})
    return cells_of(planned, stored.read(measure_plan(planned, Sealed(counted), meter), planned)[1])


def cells_of(planned: Plan, drawn: Sequence[stored.DrawnAnswer]) -> Cells:
    """What an answer shows, by the keys of its groups."""
    found = answer_of(planned, drawn, entry=0)
    wide = len(planned.question.groups)
    return {row[:wide]: row[wide:] for row in found.rows}


def differences(exact: Cells, plain: Mapping[tuple[Any, ...], Sequence[Any]], *, tolerance: float) -> list[str]:
    """Where the answer without noise is not DuckDB's own; groups that only one of them has count for nothing there."""
    found = []
    for cell in exact.keys() | plain.keys():
        ours, theirs = (side.get(cell, ()) for side in (exact, plain))
        for mine, other in zip(ours or (0,) * len(theirs), theirs or (0,) * len(ours), strict=True):
            if not math.isclose(float(mine or 0), float(other or 0), rel_tol=tolerance, abs_tol=1e-9):
                found.append(f"{cell}: {mine} and not {other}")
    return found


def relative(cells: Cells, truth: Mapping[tuple[Any, ...], Sequence[Any]]) -> list[float]:
    """The relative errors of all numbers that the truth has; of a group that is not shown, 1."""
    errors = []
    for cell, numbers in truth.items():
        shown = cells.get(cell, (None,) * len(numbers))
        for mine, other in zip(shown, numbers, strict=True):
            if other:
                errors.append(1.0 if mine is None else abs(float(mine) - float(other)) / abs(float(other)))
    return errors


def typical(cells: Cells, truth: Mapping[tuple[Any, ...], Sequence[Any]]) -> float:
    """The median of these."""
    return median(relative(cells, truth))
