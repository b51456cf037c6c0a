"""Answers as the ledger keeps them, and the aggregates that are computed from what was drawn.

Where the groups were listed, a short name for the lists is kept, since they may come from a public table that changes.
Where keys were selected, those that were shown are kept, each as JSON of its own type.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from hubbub.errors import LedgerCorrupt, PolicyError
from hubbub.ledger.entry import digest_of
from hubbub.policy.kinds import Type
from hubbub.privacy.ways import ChosenWay
from hubbub.query.aggregates.function import CONFIDENCE, Margins, NoisyCell, NoisyCells
from hubbub.query.expression import Value
from hubbub.query.ops import Cell
from hubbub.query.plan.collect import Ingredients
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import NoisyNumber, QueryMeasurement
from hubbub.query.question import Asked

__all__ = ["CONFIDENCE", "combine"]

Numbers = Callable[[QueryMeasurement], Sequence[int]]
"""Returns what was drawn for a measurement."""


def combine(
    plan: Plan, noisy: Sequence[Sequence[int]], *, confidence: float = CONFIDENCE, cells: int | None = None
) -> list[list[NoisyNumber]]:
    """Return for each cell one number for each aggregate that was asked; with private keys, of so many cells.

    ``noisy`` is what a stored answer has in each of its positions (``Plan.slots``).
    """
    numbers_of = read_numbers(plan, noisy)
    asked = zip(plan.question.asked, plan.parts, strict=True)
    if plan.beside is not None:  # one row, each of its numbers from the group of its condition
        cell_at = [
            (NoisyCell(plan.margins, numbers_of, place, confidence), each, part)
            for place, (each, part) in zip(plan.beside.places, asked, strict=True)
        ]
        return [[each.function.combine(each, part, cell) for cell, each, part in cell_at]]
    places, margins = range(plan.cells if cells is None else cells), plan.margins
    columns = [_combine_column(each, part, margins, numbers_of, places, confidence) for each, part in asked]
    return [list(numbers) for numbers in zip(*columns, strict=True)] if columns else [[] for _ in places]


def read_numbers(plan: Plan, noisy: Sequence[Sequence[int]]) -> Numbers:
    """Return what finds the numbers of a measurement in a stored answer."""
    drawn: dict[int, Sequence[int]] = {}
    for slot, numbers in zip(plan.slots, noisy, strict=True):
        if slot is not None:
            drawn[id(slot)] = numbers
        elif numbers:
            raise LedgerCorrupt("A stored answer cannot be read by this version of Hubbub.")  # measured by itself
    return lambda measurement: drawn[id(measurement)]


def _combine_column(  # noqa: PLR0917
    asked: Asked, part: Ingredients, margins: Margins, numbers_of: Numbers, places: Sequence[int], confidence: float
) -> list[NoisyNumber]:
    """Return one aggregate of all groups; with what limits drop, where that was measured."""
    if not part.dropped:
        return asked.function.combine_all(asked, part, NoisyCells(margins, numbers_of, places, confidence))
    shown = _widen_column(asked, part, NoisyCells(margins, numbers_of, places, CONFIDENCE))
    if confidence == CONFIDENCE:
        return shown
    others = _widen_column(asked, part, NoisyCells(margins, numbers_of, places, confidence))
    return [_take_ends(*pair) for pair in zip(shown, others, strict=True)]


def _widen_column(asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
    """Return an aggregate with what limits drop. What an interval may miss is divided as at the usual confidence, so
    that those of more confidence hold those of less."""
    share = asked.function.divide_beta(part, cells.margins, 1 - CONFIDENCE) / (1 - CONFIDENCE)
    beta = share * (1 - cells.confidence)
    every, rest = replace(cells, confidence=1 - beta), 1 - cells.confidence - beta
    numbers = asked.function.combine_all(asked, part, every)
    return [asked.function.widen(asked, part, *each, rest) for each in zip(numbers, every, strict=True)]


def _take_ends(shown: NoisyNumber, other: NoisyNumber) -> NoisyNumber:
    """Return a number that is shown with the interval of another confidence, and in it.

    Whether what was dropped is added to a number depends on whether that is plain at the usual confidence: with another
    one the number would be another, and so would the rows that HAVING, ORDER BY and LIMIT leave.
    """
    if shown.value is None or other.low is None or other.high is None:
        return replace(other, value=shown.value)
    return replace(other, value=shown.value, low=min(other.low, shown.value), high=max(other.high, shown.value))


@dataclass(frozen=True, slots=True)
class DrawnAnswer:
    """The draws for one grouping: noisy tallies, and the combinations of private keys that have passed."""

    noisy: list[list[int]]
    shown: tuple[Cell, ...] | None = None


def write_answer(planned: Plan, drawn: DrawnAnswer) -> str:
    """One grouping's answer."""
    return json.dumps(_header(planned) | _body(drawn))


def write_sets(planned: Plan, parts: Sequence[str]) -> str:
    """The answers of several grouping sets, each written before, as one."""
    return json.dumps(_header(planned) | {"sets": [json.loads(part) for part in parts]})


def _header(planned: Plan) -> dict[str, Any]:
    return {
        "bought": str(planned.bought),
        "delta": str(planned.delta),
        "epsilon": str(planned.epsilon),
        "groups": groups_name(planned),
        "ways": [[name, str(epsilon)] for name, epsilon in planned.ways],
    }


def _body(drawn: DrawnAnswer) -> dict[str, Any]:
    if drawn.shown is None:
        return {"noisy": drawn.noisy}
    return {"keys": [[_as_json(value) for value in cell] for cell in drawn.shown], "noisy": drawn.noisy}


def groups_name(planned: Plan) -> str:
    """A short name for the groups that an answer is about, and the values that it chooses among: both may come from a
    public table."""
    listed = [None if group.private else [str(value) for value in group.values] for group in planned.question.groups]
    chosen = [[str(value) for value in asked.values] for asked in planned.question.asked if asked.values]
    return digest_of([listed, chosen] if chosen else listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTerms:
    """What an answer was drawn for, as a plan of it says too."""

    epsilon: Fraction
    delta: Fraction
    ways: tuple[ChosenWay, ...]
    """Empty for answers of the first version, which had one rule."""
    bought: Fraction

    @classmethod
    def of(cls, planned: Plan) -> "DrawnTerms":
        """Return those of a plan."""
        return cls(epsilon=planned.epsilon, delta=planned.delta, ways=planned.ways, bought=planned.bought)


def _terms(found: Mapping[str, Any]) -> DrawnTerms:
    return DrawnTerms(
        epsilon=Fraction(found["epsilon"]),
        delta=Fraction(found["delta"]),
        ways=tuple((name, Fraction(epsilon)) for name, epsilon in found.get("ways", [])),
        bought=Fraction(found.get("bought", 0)),
    )


def read(stored: str, planned: Plan) -> tuple[DrawnTerms, list[DrawnAnswer]]:
    """For what it was drawn, and what was drawn for each grouping set."""
    try:
        found = json.loads(stored)
        groups, terms = found["groups"], _terms(found)
        parts = found["sets"] if planned.sets else [found]
        drawn = [_read(part, one) for part, one in zip(parts, planned.sets or (planned,), strict=True)]
    except (ValueError, KeyError, TypeError) as problem:
        raise LedgerCorrupt("A stored answer cannot be read by this version of Hubbub.") from problem
    check_groups(groups, planned)
    return terms, drawn


def check_groups(groups: str, planned: Plan) -> None:
    """Refuse to show for these groups what was drawn for others."""
    if groups != groups_name(planned):
        raise PolicyError(
            "This question was answered for other groups: a public table has changed since. Let the owner name a new "
            "version of the data."
        )


def _read(part: dict[str, Any], planned: Plan) -> DrawnAnswer:
    if planned.selection is None:
        return DrawnAnswer(part["noisy"])
    types = [group.type for group in planned.question.groups if group.private]
    shown = [tuple(_from_json(one, type_) for one, type_ in zip(cell, types, strict=True)) for cell in part["keys"]]
    return DrawnAnswer(part["noisy"], tuple(shown))


def _as_json(value: Value) -> bool | int | str | None:
    """A key as JSON: dates and times as text, everything else as it is. There are no keys that are reals."""
    if value is None or isinstance(value, bool | int | str):
        return value
    assert not isinstance(value, float)
    return value.isoformat()


def _from_json(stored: Any, type_: Type) -> Value:
    """The key that was stored, which must be of its type."""
    match type_, stored:
        case _, None:
            return None
        case Type.BOOLEAN, bool():
            return stored
        case Type.TEXT, str():
            return stored
        case Type.INTEGER, int() if not isinstance(stored, bool):
            return stored
        case Type.DATE, str():
            return date.fromisoformat(stored)
        case Type.TIMESTAMP, str():
            return datetime.fromisoformat(stored)
    raise TypeError("a key of another type")
