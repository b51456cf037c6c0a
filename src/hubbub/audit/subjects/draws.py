"""Many independent answers to one question about exact numbers that are at hand, quickly.

The gate draws one answer at a time, with all its checks. Where it gives, bit by bit, what the plan's mechanisms give
when they are handed the same numbers and the same random words, they are asked for thousands at once instead; where it
does not, whatever it does is what is looked at, one by one.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.outputs import Outputs, Raised
from hubbub.errors import EngineError
from hubbub.gate.meter import Meter
from hubbub.gate.purse import Prepaid
from hubbub.gate.secret import Sealed
from hubbub.ledger import Ticket
from hubbub.mechanisms import Gaussian, Geometric, Mechanism
from hubbub.privacy.filter import Charge
from hubbub.query.ops import Cell, ExactCounts
from hubbub.query.plan.measure import flatten, measure_sets
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.selection import first_keys, restrict
from hubbub.query.plan.statistic import QueryMeasurement
from hubbub.testing.replay import replayed

_PLENTY = Charge(loss=1 << 90, failure=1 << 90)


def answers(plan: Plan, held: Sequence[ExactCounts], *, times: int) -> list[Any]:
    """So many answers; a number, a tuple of numbers, or numbers by their keys where those are selected."""
    if as_stated(plan, held):
        parts = [_many(one, own, times) for one, own in zip(plan.sets or (plan,), held, strict=True)]
        return [_join(part) for part in zip(*parts, strict=True)]
    return [_through_the_gate(plan, held) for _ in range(times)]


def plain(found: Sequence[Any]) -> Outputs:
    """Answers of one whole number each as an array, which is looked at faster."""
    if all(isinstance(one, int) and abs(one) < 1 << 53 for one in found):
        return np.array(found, dtype=np.int64)
    return found


def as_stated(plan: Plan, held: Sequence[ExactCounts]) -> bool:
    """Return whether the gate gives what the mechanisms give."""
    with replayed(1):
        gate = _through_the_gate(plan, held)
    with replayed(1):
        parts = [_many(one, own, None)[0] for one, own in zip(plan.sets or (plan,), held, strict=True)]
    return bool(gate == _join(parts))


def _through_the_gate(plan: Plan, held: Sequence[ExactCounts]) -> Any:
    terms = plan.policy.budget.filter
    meter = Meter(
        Prepaid(Ticket(entry=1, account=plan.policy.account, paid=_PLENTY, cost=_PLENTY, answer=None, terms=terms))
    )
    results = [Sealed(exact) for exact in held]
    try:
        stored = json.loads(measure_sets(plan, results, meter))
    except EngineError as error:  # what else is raised is a mistake of the audit itself, and ends it
        return Raised(type(error).__name__, str(error))
    parts = []
    for one, part in zip(plan.sets or (plan,), stored["sets"] if plan.sets else [stored], strict=True):
        if one.selection is None:
            parts.append(_flat(part["noisy"]))
        else:
            cells = [tuple(map(str, cell)) for cell in part["keys"]]
            parts.append(_name_by_key(cells, part["noisy"]))
    return _join(parts)


def _many(plan: Plan, held: ExactCounts, times: int | None) -> list[Any]:
    """Answers of one grouping; with None one, drawn as the gate draws it."""
    if plan.selection is None:
        found = {id(one): _repeat(one, held, times) for one in plan.measurements}
        each = 1 if times is None else times
        drawn_at = [found.get(id(slot), [[]] * each) for slot in plan.slots]
        return [_flat(numbers) for numbers in zip(*drawn_at, strict=True)]
    groups, most = plan.aggregate.groups, plan.policy.limits.max_cells
    chosen, units = plan.selection.mechanism, dict[Any, int](held.units)
    drawn: list[dict[Any, int]] = [chosen.draw(units)] if times is None else list(chosen.repeat(units, times=times))
    passed = [{key: int(one[key]) for key in first_keys(groups, one, most=most)} for one in drawn]
    places: dict[tuple[Cell, ...], list[int]] = {}
    for at, shown in enumerate(passed):
        places.setdefault(tuple(shown), []).append(at)
    out: list[Any] = [None] * len(passed)
    for cells, where in places.items():
        part = restrict(held, groups, cells, most=most)
        again = None if times is None else len(where)
        fresh = {id(one): _repeat(one, part, again) for one in plan.measurements} if cells else {}
        named = [tuple(str(_as_stored(value)) for value in cell) for cell in cells]
        for index, at in enumerate(where):
            own = {id(plan.selection): list(passed[at].values())}
            own |= {key: numbers[index] for key, numbers in fresh.items()}
            out[at] = _name_by_key(named, [own.get(id(slot), []) for slot in plan.slots])
    return out


def _repeat(measurement: QueryMeasurement, held: ExactCounts, times: int | None) -> list[list[int]]:
    """Draw answers of one measurement, in steps; with None one, as the gate draws it."""
    mechanism, value = measurement.mechanism, measurement.take(held)
    if times is None:
        return [flatten(mechanism.draw(value))]
    if isinstance(mechanism, Geometric | Gaussian):
        return _vectors(mechanism, value, times)
    return [flatten(one) for one in mechanism.repeat(value, times=times)]


def _vectors(mechanism: Mechanism, value: Any, times: int) -> list[list[int]]:
    """Noise is independent in each coordinate: many vectors are one long one."""
    size = len(value)
    drawn = mechanism.draw(np.tile(value, times))
    found: list[list[int]] = np.asarray(drawn).reshape(times, size).tolist()
    return found


def _flat(noisy: Sequence[Sequence[int]]) -> Any:
    found = tuple(value for tally in noisy for value in tally)
    return found[0] if len(found) == 1 else found


def _name_by_key(cells: Sequence[tuple[str, ...]], noisy: Sequence[Sequence[int]]) -> dict[Any, int]:
    """Every number under the key that it is about, and its place; a key that was shown, even without numbers."""
    found: dict[Any, int] = {}
    for tally, numbers in enumerate(noisy):
        each = max(1, len(numbers) // max(1, len(cells)))
        for at, number in enumerate(numbers):
            key = ", ".join(cells[at // each]) if at // each < len(cells) else "?"
            found[f"{key} #{tally}.{at % each}" if len(noisy) > 1 or each > 1 else key] = number
    return found


def _join(parts: Sequence[Any]) -> Any:
    """The answers of several grouping sets as one."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, dict) for part in parts):
        return {f"{at}: {key}": number for at, part in enumerate(parts) for key, number in part.items()}
    return tuple(value for part in parts for value in (part if isinstance(part, tuple) else (part,)))


def _as_stored(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else value.isoformat()


def total(plan: Plan, *, of: str) -> Fraction | None:
    """Add up what the plan's own mechanisms say that they cost; None where one of them does not say."""
    events = [one.mechanism.event for part in plan.sets or (plan,) for one in part.all_measurements]
    costs = [getattr(event, of) for event in events]
    return None if None in costs else sum(costs, Fraction(0))
