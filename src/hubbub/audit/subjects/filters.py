"""Budget filters as subjects: made-up mechanisms are put through one until it refuses, and what it let through is
composed exactly.

The asker is an adversary: in the end, for each answer seen so far, it spends what is left on the coin that hurts most
among those that the filter still lets through. A filter on which some such run loses more than its (ε, δ) is refuted,
and the shortest run that was found is printed.
"""

import gc
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects import laws
from hubbub.audit.subjects.gate import coins
from hubbub.audit.subjects.gate.coins import charge_step, last_question
from hubbub.audit.subjects.laws import LawStep, TwoLaws
from hubbub.noise import entropy
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT, Budget, Charge, FamilyFilter, PureFilter, Spent
from hubbub.privacy.sensitivity import Neighbors

_TINY = Fraction(1, 1 << 42)
_SLACK = 1e-9
"""What floats may be wrong by, relative to what they are compared with."""
_CACHED = type(coins._coin_rho_rounded_up)
_MOST = 48
"""Runs of one step, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingPlan:
    """Steps in this order, each as often as it is let through and no more often than said."""

    steps: tuple[tuple[LawStep, int], ...]
    greedy: bool = False
    """Whether the last question is chosen by the answers to all before it."""


@dataclass(frozen=True, slots=True)
class FilterSide:
    """One of the two neighbours that a plan is played on."""

    plan: SpendingPlan
    second: bool


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a plan."""

    through: tuple[tuple[LawStep, int], ...]
    laws: TwoLaws
    spent: Any
    coins: tuple[tuple[float, LawStep | None], ...]
    """For each loss seen before the last question: what was asked then."""
    faults: tuple[str, ...]

    @property
    def loss(self) -> Fraction | None:
        """The exact sum of largest losses, where all are rational and nothing was chosen by answers."""
        parts = [None if step.loss is None else times * step.loss for step, times in self.through]
        known = [one for one in parts if one is not None]
        return sum(known, Fraction(0)) if len(known) == len(parts) and not self.coins else None


@dataclass(frozen=True, slots=True)
class OfFilter:
    """The filter of one budget."""

    name: str
    budget: Budget
    _known: dict[int, tuple[SpendingPlan, Played]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def claim(self) -> Claim:
        words = f"whatever is asked, all answers together keep {_words(self.budget)} ({self.budget.neighbors})"
        return replace(Claim.pure(float(self.budget.epsilon), float(self.budget.delta)), words=words)

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        forget()
        self._known.clear()
        yield from (self._pair(plan, about) for about, plan in _known_plans(self.budget))
        while True:
            yield self._pair(_make_plan(self.budget, chance), "a run that was made up")

    def _pair(self, plan: SpendingPlan, about: str) -> Pair:
        return Pair(x=FilterSide(plan, False), y=FilterSide(plan, True), about=about)

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        plan: SpendingPlan = pair.x.plan
        steps = plan.steps
        if plan.greedy:
            yield self._pair(replace(plan, greedy=False), pair.about)
        for place, (step, times) in enumerate(steps):
            before, after = steps[:place], steps[place + 1 :]
            yield self._pair(replace(plan, steps=(*before, *after)), pair.about)
            for fewer in sorted({1, times // 2, times - 1} - {0, times}):
                yield self._pair(replace(plan, steps=(*before, (step, fewer), *after)), pair.about)

    def faults(self, pair: Pair) -> list[str]:
        played = self._play_plan(pair.x.plan)
        return [*played.faults, *self._too_much(played)]

    def answers(self, value: Any, *, times: int) -> Outputs:
        """Return an asker's view of it all: the likelihood ratio of each run on one side against the other."""
        both = self._play_plan(value.plan).laws
        mass, loss = (both.q if value.second else both.p), np.round(both.losses, 6)
        ends = np.cumsum(mass) / mass.sum()
        uniform = entropy.words(entropy.begin("uniform", size=times), times) / 2.0**64
        return loss[np.minimum(np.searchsorted(ends, uniform, side="right"), len(ends) - 1)]

    def show_pair(self, pair: Pair) -> str:
        played = self._play_plan(pair.x.plan)
        lines = [f"an account with {_words(self.budget)} ({self.budget.neighbors}) lets through:"]
        lines += [f"  {times} × {step.words}" for step, times in played.through]
        for loss, asked in played.coins:
            if asked is not None:
                lines.append(f"  and where that has told {loss:.4g} so far: {asked.words}")
        return "\n".join(lines)

    def _play_plan(self, plan: SpendingPlan) -> Played:
        if id(plan) not in self._known:
            self._known[id(plan)] = plan, self._play(plan)
        return self._known[id(plan)][1]

    def _play(self, plan: SpendingPlan) -> Played:
        terms = self.budget.filter
        spent: Any = Spent()
        both = TwoLaws.of([1], [1])
        through: list[tuple[LawStep, int]] = []
        faults: list[str] = []
        for step, times in plan.steps:
            passed = 0
            for _ in range(times):
                found = charge_step(terms, spent, step)
                if found is None:
                    break
                if not passed:
                    faults += _check_price(terms, found[0], step)
                passed, spent, both = passed + 1, found[1], both.then(step.laws)
            through += [(step, passed)] if passed else []
        last: list[tuple[float, LawStep | None]] = []
        if plan.greedy:
            both, last = last_question(terms, spent, both, self.budget, before=_steering(self.budget))
        return Played(tuple(through), both, spent, tuple(last), tuple(faults))

    def _too_much(self, played: Played) -> Iterator[str]:
        epsilon, delta = self.budget.epsilon, self.budget.delta
        if delta == 0 and played.loss is not None:
            if played.loss > epsilon:
                yield f"All of it was let through, and loses ε = {_digits(played.loss, epsilon)}, not {epsilon}."
            return
        real = played.laws.delta(float(epsilon))
        if real > float(delta) * (1 + _SLACK) + 1e-13:
            yield f"At ε = {float(epsilon):g} the δ of it all is really {real:.6g}, and {float(delta):.6g} is promised."
        if played.coins:
            return
        told = self.budget.filter.odometer(played.spent)
        at, most = float(getattr(told, "epsilon", math.inf)), float(getattr(told, "delta", 0))
        real = played.laws.delta(at * (1 + _SLACK))
        if real > most * (1 + _SLACK) + 1e-12:
            yield f"The odometer says {told}; at that ε the δ is really {real:.6g}."


def _check_price(terms: Any, charge: Any, step: LawStep) -> Iterator[str]:
    """Compare the charge of one event with its true cost."""
    if step.event.neighbors is not terms.neighbors:
        yield f"An event about {step.event.neighbors} neighbours was let through by an account of {terms.neighbors}."
    if not isinstance(charge, Charge) or not isinstance(terms, PureFilter | FamilyFilter):
        return
    paid, failure = charge.loss * LOSS_UNIT, charge.failure * DELTA_UNIT
    if failure < step.failure:
        yield f"{step.words}: δ₀ = {float(failure):.6g} was charged, and it is {float(step.failure):.6g}."
    if isinstance(terms, PureFilter):
        short = step.laws.delta(float(paid)) > 1e-12 if step.loss is None else paid < step.loss
        if step.failure or short:
            yield f"{step.words}: ε = {float(paid):.15g} was charged."
        return
    if charge.pure is not None:
        pure = charge.pure * LOSS_UNIT
        short = step.inside.delta(float(pure)) > 1e-12 if step.loss is None else pure < step.loss
        if step.event.epsilon is None or short:
            yield f"{step.words}: ε = {float(pure):.15g} was charged, and it loses more."
    real, stated = step.inside.rho(), step.event.rho or Fraction(0)
    if float(paid) < real * (1 - _SLACK) or paid < stated:
        yield f"{step.words}: ρ = {float(paid):.15g} was charged, and it loses {max(real, float(stated)):.15g}."


def _known_plans(budget: Budget) -> Iterator[tuple[str, SpendingPlan]]:
    """Runs on which filters have been wrong."""
    relation = budget.neighbors
    other = Neighbors.REPLACE_ONE if relation is Neighbors.ADD_REMOVE else Neighbors.ADD_REMOVE
    tenth = budget.epsilon / 10
    quiet = laws.response(Fraction(3, 10), neighbors=relation)
    yield "one coin", SpendingPlan(steps=(), greedy=True)
    yield (
        "questions whose price is just over a unit",
        SpendingPlan(steps=((laws.response(budget.epsilon / 4 + _TINY, neighbors=relation), 4),)),
    )
    yield (
        "one question that is just too dear",
        SpendingPlan(steps=((laws.response(budget.epsilon + _TINY, neighbors=relation), 1),)),
    )
    yield "events about other neighbours", SpendingPlan(steps=((laws.response(tenth, neighbors=other), 20),))
    yield "a coin that was chosen by an answer", SpendingPlan(steps=((quiet, 1),), greedy=True)
    yield "a coin that was chosen by several answers", SpendingPlan(steps=((quiet, 4),), greedy=True)
    yield "many small responses", SpendingPlan(steps=((laws.response(tenth, neighbors=relation), _MOST),))
    for first, then in (pair, pair[::-1]) if (pair := _steering(budget)) else ():
        yield "one sum used up, and then the other", SpendingPlan(steps=((first, _MOST), (then, _MOST)))
        yield "one sum used up, and then a coin", SpendingPlan(steps=((first, _MOST),), greedy=True)
    yield (
        "answers that fail",
        SpendingPlan(
            steps=(
                (
                    laws.failing(laws.response(tenth / 100, neighbors=relation), budget.delta / 16 or Fraction(1, 99)),
                    20,
                ),
            ),
            greedy=True,
        ),
    )
    yield from (
        ("one law after another", SpendingPlan(steps=((step, _MOST),))) for step in _steps(budget, Chance("known"))
    )


def _steering(budget: Budget) -> tuple[LawStep, ...]:
    """Steps of which each uses up another sum of an account that has several: what an asker steers by."""
    if budget.delta == 0:
        return ()
    quiet, wide = budget.epsilon / 8, Fraction(8) / budget.epsilon
    if budget.neighbors is Neighbors.REPLACE_ONE:
        return (
            laws.of_two(laws.response(quiet / 2), laws.response(quiet)),
            laws.of_two(laws.gaussian(2 * wide), laws.gaussian(2 * wide, 2)),
        )
    return laws.response(quiet), laws.gaussian(wide)


def _make_plan(budget: Budget, chance: Chance) -> SpendingPlan:
    steps = [(chance.choice(list(_steps(budget, chance))), chance.between(1, 6)) for _ in range(chance.between(2, 5))]
    return SpendingPlan(steps=tuple(steps), greedy=chance.one_in(2))


def _steps(budget: Budget, chance: Chance) -> Iterator[LawStep]:
    """Mechanisms of every kind, in sizes of which a few fit into the budget."""
    part = budget.epsilon / chance.between(3, 12)
    wide = Fraction(chance.between(3, 9)) / budget.epsilon
    rate = Fraction(1, chance.between(2, 20))
    failure = budget.delta / chance.between(3, 40)
    if budget.neighbors is Neighbors.REPLACE_ONE:
        yield laws.of_two(laws.response(part), laws.response(2 * part))
        yield laws.of_two(laws.laplace(2 * wide), laws.laplace(2 * wide, 2))
        yield laws.of_two(laws.gaussian(2 * wide), laws.gaussian(2 * wide, 2))
        yield laws.sample_step(laws.response(part, neighbors=Neighbors.REPLACE_ONE), rate)
        if budget.delta:
            yield laws.shuffle_step(part, chance.between(20, 200), failure)
            yield laws.of_two_failing(part, failure / 8)
        return
    yield laws.response(part)
    yield laws.response(part, categories=chance.between(3, 9))
    yield laws.laplace(wide * 3, 3)
    yield laws.choice_step(part, part * Fraction(chance.between(1, 9), 10))
    yield laws.sample_step(laws.response(part), rate)
    yield laws.repeat_step(laws.response(part / 4), 4)
    yield laws.continuous(wide, normal=False)
    if budget.delta:
        yield laws.gaussian(wide)
        yield laws.sample_step(laws.gaussian(wide), rate)
        yield laws.continuous(wide, normal=True)
        yield laws.failing(laws.gaussian(wide), failure)
        yield laws.sample_step(laws.failing(laws.response(part / 9), failure), rate)


def forget() -> None:
    """Prices that were computed before are computed again: an audit takes nobody's word, and not its own of before."""
    for held in gc.get_objects():
        name = getattr(held, "__module__", None) if type(held) is _CACHED else None
        if isinstance(name, str) and name.startswith("hubbub."):
            held.cache_clear()


def _words(budget: Budget) -> str:
    at = f"ε = {float(budget.epsilon):g}"
    return at if budget.delta == 0 else f"({at}, δ = {float(budget.delta):g})"


def _digits(value: Fraction, beside: Fraction) -> str:
    return f"{float(value):.6g}" if float(value - beside) > 1e-5 else f"{beside} + {float(value - beside):.3g}"


def filters() -> list[OfFilter]:
    """One for each kind of budget."""
    replaced = Neighbors.REPLACE_ONE
    return [
        OfFilter("filter: pure", Budget(epsilon=Fraction(1))),
        OfFilter("filter: pure, replace-one", Budget(epsilon=Fraction(2), neighbors=replaced)),
        OfFilter("filter: family", Budget(epsilon=Fraction(8), delta=Fraction(1, 20))),
        OfFilter("filter: family, small", Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6))),
        OfFilter(
            "filter: family, replace-one", Budget(epsilon=Fraction(3), delta=Fraction(1, 100), neighbors=replaced)
        ),
    ]
