"""More for replay to ask: aggregates with bounds of their own, top values and histograms."""

from random import Random

from hubbub.query.choices import Wanted
from hubbub.query.ops import Counted
from hubbub.query.plan import Plan

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


def counted(rng: Random, own: str) -> str:
    """Of public values, or of a number between edges."""
    listed = rng.choice(("ward", "urgent", "month(day)", "least(greatest(nights, 0), 3)"))
    kept = rng.choice(("", " FILTER (WHERE nights > 1)"))
    edges = sorted(rng.sample((-1000, -10, -1, 0, 0.5, 3, 100, 2**31), rng.randint(1, 5)))
    asked = (f"approx_top_k({listed}, {rng.randint(1, 2)})", f"histogram({listed})", f"histogram({own}, {edges})")
    return f"{rng.choice(asked)}{kept}"


def exact_choices(plan: Plan, found: Counted) -> list[tuple[int, ...]]:
    """In the place of what is drawn: all exact counts of a histogram, and nothing where a value is chosen."""
    return [
        tuple(one.value(found.histograms[one.histogram]).tolist()) if one.wanted is Wanted.COUNTS else ()
        for one in plan.choices
    ]
