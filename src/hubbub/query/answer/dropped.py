"""The share of rows or units that limits dropped from an answer, in words, out of what was measured of it.

It is post-processing: noisy sums over all groups, and limits that are public.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hubbub.privacy.shares import deviation
from hubbub.query.answer.explain import table_of
from hubbub.query.answer.stored import read_numbers
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.plan import Plan

_PLAIN = 4
"""Standard deviations of the noise beyond which something was dropped for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedShare:
    """What limits dropped, of all rows or units of the groups that are shown."""

    what: str
    """What is counted: rows of a table, or units."""
    limits: str
    """The limits that drop it, with their values."""
    share: float | None
    """Of everything that there is; None where noise hides it."""
    within: int
    """The most rows of a unit, which whoever declares it answers for: of units with more, the rest is not counted."""

    @property
    def sentence(self) -> str:
        """Say it in words."""
        if self.share is None:
            return f"too few {self.what} lie beyond {self.limits} to be told from the noise"
        return f"about {100 * self.share:.2g}% of {self.what} lie beyond {self.limits}"


def list_dropped(plan: Plan, noisy: Sequence[Sequence[int]]) -> tuple[DroppedShare, ...]:
    """Return the shares of rows and of units that were dropped, where these were measured."""
    found: dict[Measure, DroppedShare] = {}
    for part in plan.parts:
        for kept, dropped in zip(part.tallies, part.dropped, strict=False):
            if kept.measure is not Measure.TOTAL and kept.measure not in found:
                found[kept.measure] = _share(plan, noisy, kept, dropped)
    return tuple(found.values())


def _share(plan: Plan, noisy: Sequence[Sequence[int]], kept: Tally, dropped: Tally) -> DroppedShare:
    limits = dropped.dropped
    assert limits is not None
    numbers_of = read_numbers(plan, noisy)
    sums = []
    for tally in (kept, dropped):
        own = plan.margins.find(tally)
        numbers = numbers_of(own)
        sums.append(float(sum(own.take.decode(numbers, cell, tally) for cell in range(plan.cells))))
    around = deviation(plan.margins.mechanism(dropped)) * math.sqrt(plan.cells)
    there, lost = max(0.0, sums[0]), sums[1]
    plain = lost > _PLAIN * around
    names = list(_name_limits(plan, kept, limits.within))
    table = table_of(plan.question.relation)
    what = f"rows of {table}" if kept.measure is Measure.ROWS else "units"
    return DroppedShare(
        what=what,
        limits=" and ".join(names),
        share=lost / (there + lost) if plain else None,
        within=limits.within,
    )


def _name_limits(plan: Plan, tally: Tally, within: int) -> Iterator[str]:
    aggregate, limits = plan.aggregate, plan.policy.limits
    if aggregate.groups and aggregate.most_groups < plan.cells:
        yield f"max_groups = {aggregate.most_groups:,}"
    if tally.measure is Measure.ROWS and limits.rows is not None and limits.rows < within:
        yield f"max_rows = {limits.rows:,}"
