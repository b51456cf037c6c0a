"""The least ε for an answer that is not off by more than was asked for, where the law of the error is public.

Only counts and sums: their noise depends on the question and the policy alone. How far an average or a quantile is off
depends on the data, and a price that follows from it would tell about the data.
"""

from fractions import Fraction

from hubbub.errors import NotAllowed
from hubbub.parameters import Real, between, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.privacy.ways import Payer
from hubbub.query.aggregates.function import CONFIDENCE
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.question import Question

_CLOSE = 64
"""The search ends when the least ε is known to one part in so many."""


def least_epsilon(
    question: Question,
    policy: Policy,
    *,
    within: Real,
    confidence: Real = CONFIDENCE,
    delta: Real | None = None,
    payer: Payer | None = None,
) -> Fraction:
    """Find an ε at which every number is within so much of the exact one, each with this confidence."""
    check_additive(question)

    def good(epsilon: Fraction) -> bool:
        planned = plan(question, policy, epsilon=epsilon, delta=delta, payer=payer)
        return is_within(planned, within=within, confidence=confidence)

    high = policy.budget.epsilon if payer is None else payer.terms.epsilon
    if not good(high):
        raise NotAllowed(
            f"Not even the whole budget brings it within {float(within):g}. Allow more, ask for fewer groups a unit or "
            "tighter bounds, or take a lower confidence."
        )
    low = LOSS_UNIT
    while high - low > high / _CLOSE:
        middle = (low + high) / 2 if high < 4 * low else _geometric(low, high)
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def check_additive(question: Question) -> None:
    """Refuse what has no margin that is known beforehand."""
    if any(not asked.function.is_additive for asked in question.asked) or not question.asked:
        raise NotAllowed(
            "How far it is off is known beforehand for counts and sums alone. Ask for those, or say epsilon."
        )
    if question.sets or any(group.private for group in question.groups):
        raise NotAllowed("Groups whose keys are selected, and grouping sets, are asked with epsilon.")


def is_within(planned: Plan, *, within: Real, confidence: Real = CONFIDENCE) -> bool:
    """Return whether every number of a plan is within so much of the exact one, each with this confidence."""
    most = positive("within", within)
    beta = 1 - float(between("confidence", confidence, 0, 1, low_open=True, high_open=True))
    return all(one <= most for one in margins(planned, beta))


def margins(planned: Plan, beta: float) -> list[Fraction]:
    """Bound how far each number that was asked for may be off, each except with probability ``beta``."""
    known = planned.margins
    return [known.bound(tally, beta) for part in planned.parts for tally in part.tallies]


def _geometric(low: Fraction, high: Fraction) -> Fraction:
    """Somewhere between, by the number of binary digits."""
    digits = (high / low).__floor__().bit_length()
    return low * (1 << (digits // 2))
