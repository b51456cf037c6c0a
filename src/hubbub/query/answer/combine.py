"""From noisy numbers to the aggregates that were asked for, each with the interval that its law gives."""

from collections.abc import Sequence

from hubbub.errors import LedgerCorrupt
from hubbub.query.aggregates.noisy import CONFIDENCE, NoisyCell
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import NoisyNumber, QueryMeasurement

__all__ = ["CONFIDENCE", "combine"]


def combine(
    plan: Plan, noisy: Sequence[Sequence[int]], *, confidence: float = CONFIDENCE, cells: int | None = None
) -> list[list[NoisyNumber]]:
    """Return for each cell one number for each aggregate that was asked; with private keys, of so many cells.

    ``noisy`` is what a stored answer has in each of its positions (``Plan.slots``).
    """
    drawn: dict[int, Sequence[int]] = {}
    for slot, numbers in zip(plan.slots, noisy, strict=True):
        if slot is not None:
            drawn[id(slot)] = numbers
        elif numbers:
            raise LedgerCorrupt("A stored answer cannot be read by this version of Hubbub.")  # measured by itself

    def numbers_of(measurement: QueryMeasurement) -> Sequence[int]:
        return drawn[id(measurement)]

    margins = plan.margins
    asked = list(zip(plan.question.asked, plan.parts, strict=True))
    found = []
    for cell in range(plan.cells if cells is None else cells):
        noisy_cell = NoisyCell(margins, numbers_of, cell, confidence)
        found.append([each.function.combine(each, part, noisy_cell) for each, part in asked])
    return found
