"""More ε never brings less: over conditions side by side too, with any balance that earlier questions have left."""

import math
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from hubbub.errors import HubbubError
from hubbub.privacy.charge import LOSS_UNIT, Charge
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.privacy.ways import Payer
from hubbub.query.plan.plan import Plan, plan, together
from hubbub.query.question import Question
from hubbub.query.read.sql import question
from tests.query import policies
from tests.query.asking import Catalogue
from tests.query.generate import TIMES

STEPS = 10


def left(rng: Random, budget: Budget) -> Payer:
    """What Gaussian and pure questions have left of an account."""
    payer = Payer.of(budget)
    for _ in range(rng.randint(0, 3)):
        gaussian = Charge(loss=payer.room.loss * rng.randint(1, 50) // 100, pure=None)
        pure = Charge(loss=int(Fraction(1, 8) / LOSS_UNIT), pure=int(Fraction(1, 2) / LOSS_UNIT))
        payer = payer.after(gaussian if rng.random() < 0.4 else pure)
    return payer


def size(plans: list[Plan]) -> float:
    """The product of the margins of all counts and sums that were asked for, as a logarithm."""
    margins = [float(one.margins.bound(tally, 0.05)) for one in plans for part in one.parts for tally in part.tallies]
    return sum(map(math.log, margins))


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_margins_of_one_aggregate_under_conditions_never_grow(neighbors: Neighbors) -> None:
    """One aggregate under each condition: so there is one margin, and no two to be weighed."""
    turned = 0
    for number in range(25 * min(TIMES, 20)):
        rng = Random(f"more {neighbors} {number}")
        kind = "replace gaussian" if neighbors is Neighbors.REPLACE_ONE else "gaussian"
        budget = Budget(epsilon=4, delta=Fraction(1, 10 ** rng.choice((3, 6, 9))), neighbors=neighbors)
        policy = replace(policies.any_policy(rng, kind), budget=budget)
        same = rng.choice(("count(*)", "sum(nights)", "sum(cost)", "sum(-7)", "count(cost)", "count(DISTINCT person)"))
        conditions, payer, catalogue = policies.conditions(rng), left(rng, budget), Catalogue(policy)
        filtered = f"SELECT {', '.join(f'{same} FILTER (WHERE {one})' for one in conditions)} FROM stays"
        parts = [question(f"SELECT {same} FROM stays WHERE {one}", catalogue) for one in conditions]
        asked: Question | None = None if rng.random() < 0.5 else question(filtered, catalogue)
        start, before, ways = Fraction(rng.randint(5, 150), 100), math.inf, set[tuple[bool, str]]()
        for step in range(STEPS):
            epsilon = start * (1 + Fraction(step, 12))
            try:
                if asked is None:
                    plans = list(together(parts, policy, epsilon=epsilon, payer=payer, grouped=None))
                else:
                    plans = [plan(asked, policy, epsilon=epsilon, payer=payer)]
            except HubbubError:
                break
            if not payer.can_pay([event for one in plans for event in one.events]):
                break
            assert size(plans) <= before + 1e-9, (number, filtered, float(epsilon), ways, plans[0].ways)
            before = size(plans)
            ways.add((plans[0].beside is None, plans[0].ways[0][0]))
        turned += len(ways) > 1
    assert turned >= 3, "in some the way turns as ε grows"
