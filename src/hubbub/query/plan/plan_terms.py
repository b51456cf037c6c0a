"""The terms of a plan: the price of a question and who pays. They decide with which noise it is measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from hubbub.mechanisms import Mechanism
from hubbub.policy.tables import Policy
from hubbub.privacy.events.event import Event
from hubbub.privacy.shares import calibrate_alike, calibrate_gaussian, choose_as_before, deviation
from hubbub.privacy.ways import Chosen, ChosenWay, Payer, Way, choose, make_again
from hubbub.query.aggregates.function import CONFIDENCE
from hubbub.query.ops import Aggregate, Tally
from hubbub.query.plan.both_ends import measure_both_ends
from hubbub.query.plan.covering import SHARE
from hubbub.query.plan.selection import Parts, choose_selection_as_before, selection_ways
from hubbub.query.plan.statistic import QueryMeasurement, Statistic

P = TypeVar("P")
Measured = tuple[QueryMeasurement, ...]

BEFORE = "before"
"""The name of the way in which the first version chose, which stored none."""
_LEAST = 2.0**-20
"""A margin of 0 is as good as this: the answer is exact then, except with a chance that the deviations compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerms:
    """What may be spent on one question."""

    policy: Policy
    epsilon: Fraction
    delta: Fraction
    payer: Payer
    ways: Sequence[ChosenWay] | None = None
    """The way of a plan that was made before; an empty one is that of the first version. None: it is to be chosen."""
    share: Fraction = SHARE
    """What is paid of it for what limits drop, where that is measured."""
    lower: bool = False
    """Whether less than ε is used where no way can be paid for at ε: another plan can."""

    @property
    def is_of_before(self) -> bool:
        """Return whether it is to be measured as the first version did."""
        return self.ways is not None and not self.ways

    def measure(
        self,
        statistics: Sequence[Statistic],
        *,
        means: Sequence[tuple[Tally, Tally]] = (),
        aggregate: Aggregate | None = None,
    ) -> Chosen[Measured]:
        """Choose how statistics are measured; the first mean of a question may be measured from both ends."""
        gaussian = self.policy.budget.delta > 0 and self.delta > 0

        kept = [one for one in statistics if not one.is_dropped]
        dropped = [one for one in statistics if one.is_dropped]
        share = self.share if kept and dropped else Fraction(0)

        def add_dropped(made: Measured, epsilon: Fraction) -> Measured:
            return (*made, *pair(dropped, calibrate_alike(dropped, epsilon=epsilon * share))) if dropped else made

        def apart(epsilon: Fraction) -> Measured:
            return add_dropped(pair(kept, calibrate_alike(kept, epsilon=epsilon * (1 - share))), epsilon)

        def join_ends(epsilon: Fraction) -> Measured:
            rest = epsilon * (1 - share)
            made = pair(kept, calibrate_alike(kept, epsilon=rest))
            joined = made if aggregate is None else measure_both_ends(means, aggregate, made, epsilon=rest)
            return add_dropped(joined, epsilon)

        def by_zcdp(epsilon: Fraction) -> Measured:
            weights = [(1 - share) / len(kept)] * len(kept) + [share / len(dropped) for _ in dropped]
            made = calibrate_gaussian([*kept, *dropped], epsilon=epsilon, delta=self.delta, weights=weights)
            return pair([*kept, *dropped], made)

        if self.is_of_before:
            if not gaussian:
                return Chosen(name=BEFORE, epsilon=self.epsilon, made=join_ends(self.epsilon))
            pure = [one.mechanism for one in apart(self.epsilon)]
            other = [one.mechanism for one in by_zcdp(self.epsilon)]
            taken = choose_as_before(pure, other, self.policy.budget)
            return Chosen(name=BEFORE, epsilon=self.epsilon, made=pair(statistics, taken))
        makers = {"pure": join_ends} | ({"pure apart": apart, "gaussian": by_zcdp} if gaussian else {})
        ways = [Way(name=name, make=make, events=_events_of, size=size_of) for name, make in makers.items()]
        return make_again(ways, self.ways[0]) if self.ways else self._choose(ways)

    def select(self, others: Sequence[Statistic], *, keys_per_unit: int, counts: bool) -> tuple[Parts, ChosenWay]:
        """Choose how private keys are selected, and how everything else is measured."""

        def pure(epsilon: Fraction) -> tuple[Mechanism, ...]:
            return calibrate_alike(others, epsilon=epsilon)

        def zcdp(rho: Fraction) -> tuple[Mechanism, ...]:
            return tuple(one.calibrate_zcdp(rho) for one in others)

        ways = selection_ways(
            delta=self.delta, keys_per_unit=keys_per_unit, counts=counts, others=len(others), pure=pure, zcdp=zcdp
        )
        if self.is_of_before:
            found = choose_selection_as_before(ways, self.policy.budget.filter, epsilon=self.epsilon)
        else:
            found = make_again(ways, self.ways[0]) if self.ways else self._choose(ways)
        return found.made, found.way

    def _choose(self, ways: Sequence[Way[P]]) -> Chosen[P]:
        return choose(ways, epsilon=self.epsilon, payer=self.payer, lower=self.lower)


def pair(statistics: Sequence[Statistic], mechanisms: Sequence[Mechanism]) -> Measured:
    """Measure each statistic by its mechanism."""
    return tuple(
        QueryMeasurement.of(statistic, mechanism) for statistic, mechanism in zip(statistics, mechanisms, strict=True)
    )


def size_of(measured: Sequence[QueryMeasurement]) -> tuple[float, float]:
    """Return what a plan errs: the product of all margins, and where it is equal of all deviations, as logarithms.

    What limits drop does not count: it is measured beside, however the rest is.
    """
    measured = [one for one in measured if not one.take.is_dropped]
    margins = [margin for measurement in measured for margin in _margins(measurement)]
    spreads = [deviation(measurement.mechanism) for measurement in measured]
    return _log_product(margins), _log_product(spreads)


def _log_product(sizes: Sequence[float]) -> float:
    return sum(math.log(max(size, _LEAST)) for size in sizes)


def _margins(measurement: QueryMeasurement) -> list[float]:
    """Return the margin of each number that a measurement tells, in steps."""
    take, mechanism, beta = measurement.take, measurement.mechanism, 1 - CONFIDENCE
    if take.tells:
        return [float(take.bound_error(mechanism, tally, beta) / tally.grid) for tally in take.tells]
    return [mechanism.error(beta=beta)]


def _events_of(measured: Measured) -> list[Event]:
    return [measurement.mechanism.event for measurement in measured]
