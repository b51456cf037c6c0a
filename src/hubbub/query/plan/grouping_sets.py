"""Several groupings in one question: ROLLUP, CUBE and GROUPING SETS.

Every unit counts in every grouping set: the sets are questions of their own, about the same rows, whose answers stand
one below the other. Keys that a set leaves out are missing (NULL) in its rows, and GROUPING tells such a row from one
whose key is missing in the data.

Privacy:
    Claim: k sets at (ε/k, δ/k) each are together (ε, δ)-DP, and cost the sum of their events.
    Proof: each set is bounded by itself, and its plan is (ε/k, δ/k)-DP; sequential composition. Rows that appear in two
        sets are paid for twice: nothing is taken to be disjoint.
    Needs: the plan of each set (query.plan); a number of sets that the question fixes.
    Ref: SOUNDNESS 10.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from hubbub.errors import TooHeavy
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.query.question import Question

if TYPE_CHECKING:
    from hubbub.query.plan.plan import Plan

MOST_SETS = 16
"""Grouping sets of one question: each gets an equal share of its budget."""

Set = tuple[int, ...]
"""The places of a set's keys, ascending."""


class _Planner(Protocol):
    def __call__(self, question: Question, policy: Policy, *, epsilon: Fraction, delta: Fraction) -> "Plan": ...


def rollup(keys: Sequence[Set]) -> list[Set]:
    """All keys, all but the last, and so on, down to none."""
    return [union(keys[:many]) for many in range(len(keys), -1, -1)]


def cube(keys: Sequence[Set]) -> list[Set]:
    """Every choice of keys, all of them first; 2 to the power of their number."""
    _check(1 << len(keys))
    sizes = range(len(keys), -1, -1)
    return [union(chosen) for size in sizes for chosen in itertools.combinations(keys, size)]


def cross_sets(parts: Sequence[Sequence[Set]]) -> list[Set]:
    """Combine several parts as GROUP BY does: a set of each, put together in every way, in the order of the parts."""
    found: list[Set] = [()]
    for part in parts:
        _check(len(found) * len(part))
        found = [union((one, other)) for one in found for other in part]
    return found


def union(sets: Iterable[Set]) -> Set:
    """The keys of several sets, each once."""
    return tuple(sorted({place for one in sets for place in one}))


def _check(many: int) -> None:
    if many > MOST_SETS:
        raise TooHeavy(
            f"The question has more than {MOST_SETS} grouping sets, which would share its budget. Ask for fewer."
        )


def over_sets(question: Question, policy: Policy, *, epsilon: Fraction, delta: Fraction, plan: _Planner) -> "Plan":
    """The plan of each set, with an equal share of the budget each; the first stands for all where one is looked at."""
    many = len(question.sets)
    share = whole_units_rounded_down(epsilon / many)
    plans = tuple(
        plan(one_set(question, chosen), policy, epsilon=share, delta=delta / many) for chosen in question.sets
    )
    cells = sum(one.cells for one in plans)
    if cells > policy.limits.max_cells:
        raise TooHeavy(f"The answer would have {cells:,} groups; the limit is {policy.limits.max_cells:,}.")
    return replace(plans[0], question=question, epsilon=epsilon, delta=delta, sets=plans, cells=cells)


def one_set(question: Question, chosen: Set) -> Question:
    """The question about one grouping set: its aggregates, without what is made of them afterwards."""
    return replace(question, groups=tuple(question.groups[place] for place in chosen), sets=())
