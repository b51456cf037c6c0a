"""More for replay to ask: aggregates with bounds of their own, top values and histograms."""

from collections.abc import Sequence
from random import Random

from hubbub.query.ops import ExactCounts
from hubbub.query.plan.both_ends import BothEnds
from hubbub.query.plan.choice import Choice
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import QueryMeasurement

NESTED = ("histogram(", "approx_top_k(")
"""How an aggregate begins that stands alone in SELECT."""


def bounded(rng: Random, own: str) -> str:
    """With bounds of its own, whatever is declared."""
    low, high = sorted(rng.sample((-1000, -10, -1, 0, 0.5, 5, 100, 2**31), 2))
    return rng.choice(
        (
            f"sum({own}, contribution_bounds_per_group => ({low}, {high}))",
            f"avg({own}, contribution_bounds_per_group => ({low}, {high}))",
            f"{rng.choice(('sum', 'avg'))}({own}, contribution_bounds_per_row => ({low}, {high}))",
            f"count({rng.choice(('*', own))}, contribution_bounds_per_group => (0, {rng.choice((1, 2, 50))}))",
        )
    )


def averaged(rng: Random, own: str, other: str) -> str:
    """A geometric mean, a weighted average, or whether a condition holds everywhere or anywhere."""
    low, high = sorted(rng.sample((0.25, 1, 5, 100, 2**31), 2))
    return rng.choice(
        (
            f"geometric_mean(least(greatest({own}, {low}), {high}))",
            f"weighted_avg({own}, least(greatest({other}, {rng.choice((-5, 0, 1))}), {high}))",
            f"{rng.choice(('bool_and', 'bool_or'))}({rng.choice(('urgent', f'{own} > {low}'))})",
        )
    )


def counted(rng: Random, own: str) -> str:
    """Of public values, or of a number between edges."""
    listed = rng.choice(("ward", "urgent", "month(day)", "least(greatest(nights, 0), 3)"))
    kept = rng.choice(("", " FILTER (WHERE nights > 1)"))
    edges = sorted(rng.sample((-1000, -10, -1, 0, 0.5, 3, 100, 2**31), rng.randint(1, 5)))
    asked = (f"approx_top_k({listed}, {rng.randint(1, 2)})", f"histogram({listed})", f"histogram({own}, {edges})")
    return f"{rng.choice(asked)}{kept}"


def exact_slots(plan: Plan, found: ExactCounts) -> list[list[int]]:
    """In the position of what is stored: what is measured, without noise, and nothing where a value is chosen."""
    return [
        [] if slot is None or isinstance(slot.take, Choice) else list(map(int, slot.take(found))) for slot in plan.slots
    ]


def exact_tallies(plan: Plan, rows: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """The same of tallies alone, cell by cell."""
    return exact_slots(plan, ExactCounts(cells=(), tallies=list(rows)))


def raw_tallies(plan: Plan, slots: Sequence[Sequence[int]], cells: int) -> list[tuple[int, ...]]:
    """The tallies of each cell, out of what is measured without noise."""
    own = {id(slot): numbers for slot, numbers in zip(plan.slots, slots, strict=True) if slot is not None}
    telling = [(tally, plan.margins.find(tally)) for tally in plan.aggregate.tallies]
    return [tuple(int(one.take.decode(own[id(one)], cell, tally)) for tally, one in telling) for cell in range(cells)]


def both_ends_of(plan: Plan) -> QueryMeasurement | None:
    """The measurement of a count and a total together, if there is one."""
    return next((one for one in plan.measurements if isinstance(one.take, BothEnds)), None)
