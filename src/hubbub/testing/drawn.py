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
from hubbub.errors import HubbubError
from hubbub.ledger import Ticket
from hubbub.mechanisms import Gaussian, Geometric, Mechanism
from hubbub.meter import Meter
from hubbub.privacy.filter import Charge
from hubbub.purse import Prepaid
from hubbub.query.ops import Cell, Counted
from hubbub.query.plan import Plan
from hubbub.query.selection import first_keys, restricted
from hubbub.session import Database, vector
from hubbub.testing.replay import replayed

_PLENTY = Charge(loss=1 << 90, failure=1 << 90)


def answers(db: Database, plan: Plan, held: Sequence[Counted], *, times: int) -> list[Any]:
    """So many answers; a number, a tuple of numbers, or numbers by their keys where those are selected."""
    if as_stated(db, plan, held):
        parts = [_many(one, own, times) for one, own in zip(plan.sets or (plan,), held, strict=True)]
        return [_joined(part) for part in zip(*parts, strict=True)]
    return [_through_the_gate(db, plan, held) for _ in range(times)]


def plain(found: Sequence[Any]) -> Outputs:
    """Answers of one whole number each as an array, which is looked at faster."""
    if all(isinstance(one, int) and abs(one) < 1 << 53 for one in found):
        return np.array(found, dtype=np.int64)
    return found


def as_stated(db: Database, plan: Plan, held: Sequence[Counted]) -> bool:
    """Whether the gate gives what the mechanisms give."""
    with replayed(1):
        gate = _through_the_gate(db, plan, held)
    with replayed(1):
        parts = [_many(one, own, None)[0] for one, own in zip(plan.sets or (plan,), held, strict=True)]
    return bool(gate == _joined(parts))


def _through_the_gate(db: Database, plan: Plan, held: Sequence[Counted]) -> Any:
    account = db.policy.account
    ticket = Ticket(entry=1, account=account, paid=_PLENTY, cost=_PLENTY, answer=None)
    meter = Meter(Prepaid(ticket, terms=db.policy.budget.filter))
    runs = [_giving(one) for one in held]
    try:
        stored = json.loads(db._answered(plan, runs, meter))
    except HubbubError as error:
        return Raised(type(error).__name__, str(error))
    parts = []
    for one, part in zip(plan.sets or (plan,), stored["sets"] if plan.sets else [stored], strict=True):
        if one.selection is None:
            parts.append(_flat(part["noisy"]))
        else:
            cells = [tuple(map(str, cell)) for cell in part["keys"]]
            parts.append(_keyed(cells, part["noisy"]))
    return _joined(parts)


def _giving(held: Counted) -> Any:
    return lambda: held


def _many(plan: Plan, held: Counted, times: int | None) -> list[Any]:
    """Answers of one grouping; with None one, drawn as the gate draws it."""
    if plan.selection is None:
        found = [_of_one(plan, held, place, times) for place in range(len(plan.mechanisms))]
        return [_flat(numbers) for numbers in zip(*found, strict=True)]
    groups, most = plan.aggregate.groups, plan.policy.limits.max_cells
    chosen, units = plan.selection.mechanism, dict[Any, int](held.units)
    drawn: list[dict[Any, int]] = [chosen.draw(units)] if times is None else list(chosen.repeat(units, times=times))
    passed = [{key: int(one[key]) for key in first_keys(groups, one, most=most)} for one in drawn]
    places: dict[tuple[Cell, ...], list[int]] = {}
    for at, shown in enumerate(passed):
        places.setdefault(tuple(shown), []).append(at)
    out: list[Any] = [None] * len(passed)
    for cells, where in places.items():
        part = restricted(held, groups, cells, most=most)
        fresh: dict[int, list[list[int]]] = {}
        for place, mechanism in enumerate(plan.mechanisms):
            if cells and mechanism is not plan.passed_by(place):
                fresh[place] = _of_one(plan, part, place, None if times is None else len(where))
        named = [tuple(str(_as_stored(value)) for value in cell) for cell in cells]
        for index, at in enumerate(where):
            own = list(passed[at].values())
            noisy = [fresh[place][index] if place in fresh else own for place in range(len(plan.mechanisms))]
            out[at] = _keyed(named, noisy)
    return out


def _of_one(plan: Plan, held: Counted, place: int, times: int | None) -> list[list[int]]:
    """Answers of one mechanism, in steps."""
    mechanism, choice = plan.mechanisms[place], plan.choice(place)
    if not _handed(plan, place):
        return [[] for _ in range(1 if times is None else times)]
    if choice is not None:
        value = choice.value(held.histograms[choice.histogram])
    else:
        value = vector(plan.exact(held.tallies, place))
    if times is None:
        return [_steps(mechanism.draw(value))]
    if isinstance(mechanism, Geometric | Gaussian):
        return _vectors(mechanism, value, times)
    return [_steps(one) for one in mechanism.repeat(value, times=times)]


def _vectors(mechanism: Mechanism, value: Any, times: int) -> list[list[int]]:
    """Noise is independent in each coordinate: many vectors are one long one."""
    size = len(value)
    drawn = mechanism.draw(np.tile(value, times))
    found: list[list[int]] = np.asarray(drawn).reshape(times, size).tolist()
    return found


def _steps(drawn: Any) -> list[int]:
    found: list[int] = []
    for group in drawn:
        if isinstance(group, int | np.integer):
            found.append(int(group))
        else:
            found += map(int, group if isinstance(group, list | tuple) else np.atleast_1d(group))
    return found


def _flat(noisy: Sequence[Sequence[int]]) -> Any:
    found = tuple(value for tally in noisy for value in tally)
    return found[0] if len(found) == 1 else found


def _keyed(cells: Sequence[tuple[str, ...]], noisy: Sequence[Sequence[int]]) -> dict[Any, int]:
    """Every number under the key that it is about, and its place; a key that was shown, even without numbers."""
    found: dict[Any, int] = {}
    for tally, numbers in enumerate(noisy):
        each = max(1, len(numbers) // max(1, len(cells)))
        for at, number in enumerate(numbers):
            key = ", ".join(cells[at // each]) if at // each < len(cells) else "?"
            found[f"{key} #{tally}.{at % each}" if len(noisy) > 1 or each > 1 else key] = number
    return found


def _joined(parts: Sequence[Any]) -> Any:
    """The answers of several grouping sets as one."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, dict) for part in parts):
        return {f"{at}: {key}": number for at, part in enumerate(parts) for key, number in part.items()}
    return tuple(value for part in parts for value in (part if isinstance(part, tuple) else (part,)))


def _as_stored(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else value.isoformat()


def total(plan: Plan, *, of: str) -> Fraction | None:
    """The sum of what the plan's own mechanisms say that they cost, None where one of them does not say.

    One whose numbers are those of a selection is not run, and one that nothing is handed to draws nothing.
    """
    parts = [plan] if not plan.sets else list(plan.sets)
    events = [
        mechanism.event
        for one in parts
        for mechanism in (
            *(() if one.selection is None else (one.selection.mechanism,)),
            *(own for place, own in enumerate(one.mechanisms) if one.passed_by(place) is None and _handed(one, place)),
        )
    ]
    costs = [getattr(event, of) for event in events]
    return None if None in costs else sum(costs, Fraction(0))


def _handed(plan: Plan, place: int) -> bool:
    """Whether a mechanism is handed any numbers."""
    return plan.choice(place) is not None or bool(plan.exact([(1,) * len(plan.aggregate.tallies)], place))
