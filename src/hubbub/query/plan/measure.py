"""Measure a plan: what the engine returned under seal becomes noisy numbers, ready to be stored."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed
from hubbub.query.answer import stored
from hubbub.query.ops import Cell, ExactCounts
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.selection import first_keys, restrict
from hubbub.query.plan.statistic import vector

__all__ = ["flatten", "measure_plan", "measure_sets", "vector"]


def measure_sets(planned: Plan, results: Sequence[Sealed[ExactCounts]], meter: Meter) -> str:
    """Measure a plan, or the plan of each of its grouping sets one after the other; return the text to store."""
    if not planned.sets:
        (result,) = results
        return measure_plan(planned, result, meter)
    parts = [measure_plan(each, result, meter) for each, result in zip(planned.sets, results, strict=True)]
    return stored.write_sets(planned, parts)


def measure_plan(planned: Plan, sealed: Sealed[ExactCounts], meter: Meter) -> str:
    """Measure everything that a plan asks for; return the text to store."""
    account, neighbors = planned.policy.account, planned.policy.budget.neighbors
    shown = select_keys(planned, sealed, meter)
    numbers: dict[int, list[int]] = {}
    if shown is not None:
        numbers[id(planned.selection)] = list(shown.values())
        groups, most = planned.aggregate.groups, planned.policy.limits.max_cells
        sealed = sealed.map(lambda counted: restrict(counted, groups, shown, most=most))
    for measurement in planned.measurements if shown is None or shown else ():  # without keys there are no groups
        drawn = measurement.measure(sealed, meter, account=account, neighbors=neighbors).value
        numbers[id(measurement)] = flatten(drawn)
    noisy = [numbers.get(id(slot), []) for slot in planned.slots]
    return stored.write_answer(planned, stored.DrawnAnswer(noisy, None if shown is None else tuple(shown)))


def select_keys(planned: Plan, sealed: Sealed[ExactCounts], meter: Meter) -> dict[Cell, int] | None:
    """Select private keys; return those that are shown with the noisy numbers by which they have passed."""
    if planned.selection is None:
        return None
    account, neighbors = planned.policy.account, planned.policy.budget.neighbors
    drawn = planned.selection.measure(sealed, meter, account=account, neighbors=neighbors).value
    most = planned.policy.limits.max_cells
    return {held: int(drawn[held]) for held in first_keys(planned.aggregate.groups, drawn, most=most)}


def flatten(drawn: Any) -> list[int]:
    """Return what was drawn in all groups, one after the other: a number each, or several where values are chosen."""
    if isinstance(drawn, np.ndarray) and drawn.ndim == 1:
        return [int(step) for step in drawn.tolist()]
    return [int(step) for group in drawn for step in np.atleast_1d(group)]
