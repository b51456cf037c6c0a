"""From a question to what will be measured: tallies, their mechanisms, and the price. Public facts alone decide."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.errors import NotAllowed, TooHeavy
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.threshold import KeySelection
from hubbub.parameters import Real, between, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.event import Event
from hubbub.privacy.filter import Charge, price_of, whole_units_rounded_down
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Norm, Sensitivity
from hubbub.query.both_ends import BothEnds, measured_together
from hubbub.query.choices import Choice, Choosing, Wanted
from hubbub.query.ops import (
    Aggregate,
    Cap,
    Filter,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Reduce,
    Relation,
    Scan,
    Tally,
    Together,
    Union,
    Window,
)
from hubbub.query.question import Question
from hubbub.query.selection import MOST_KEYS, Selection, reused, shared
from hubbub.query.sets import over_sets
from hubbub.query.shares import Measured, at_rho
from hubbub.query.shares import calibrated as _calibrated
from hubbub.query.tallies import Needed, Part

__all__ = ["Part", "Plan", "plan", "together"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is known before anything is paid or read."""

    question: Question
    policy: Policy
    epsilon: Fraction
    delta: Fraction
    aggregate: Aggregate
    parts: tuple[Part, ...]
    """One for each aggregate that was asked."""
    mechanisms: tuple[Mechanism, ...]
    """One for each tally, then one for each choice."""
    cells: int
    """How many groups there are; with private keys, for each combination of these."""
    selection: Selection | None = None
    """How private keys are selected, where there are any: before everything else is measured, on what is shown."""
    choices: tuple[Choice, ...] = ()
    """What is chosen from histograms."""
    both_ends: BothEnds | None = None
    """A count and a total that are measured together, by the mechanism of the total."""
    sets: tuple["Plan", ...] = ()
    """With several grouping sets: the plan of each. They are asked one after the other, and what they cost adds up."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What will be drawn: keys first, then a tally after the other."""
        if self.sets:
            return tuple(event for one in self.sets for event in one.events)
        first = () if self.selection is None else (self.selection.mechanism.event,)
        fresh = [place for place in range(len(self.mechanisms)) if self.passed_by(place) is None]
        return (*first, *(self.mechanisms[place].event for place in fresh if not self.is_within(place)))

    @property
    def cost(self) -> Charge:
        """What the account will be charged."""
        return price_of(self.policy.budget.filter, self.events)

    def passed_by(self, place: int) -> KeySelection | None:
        """The selection whose own numbers are this tally's, if there is one."""
        chosen = self.selection
        return chosen.mechanism if chosen is not None and place in chosen.tallies else None

    def is_within(self, place: int) -> bool:
        """Whether a tally is measured with another one, in whose place its numbers are."""
        return self.both_ends is not None and place == self.both_ends.count

    def exact(self, rows: Sequence[Sequence[int]], place: int) -> list[int]:
        """What is measured in a place, out of the exact tallies of all cells; nothing where it is within another."""
        if self.both_ends is not None and place in {self.both_ends.count, self.both_ends.total}:
            return [] if self.is_within(place) else self.both_ends.exact(rows)
        return [row[place] for row in rows]

    def sensitivity(self, place: int) -> Sensitivity:
        """How far one unit can move a tally's vector, or what a choice is made of."""
        tallies = self.aggregate.tallies
        if self.both_ends is not None and place in {self.both_ends.count, self.both_ends.total}:
            return self.both_ends.sensitivity(self.aggregate.most_groups, self.policy.budget.neighbors)
        if place < len(tallies):
            return _sensitivity(self.aggregate, tallies[place], self.policy)
        return _choosing(self.aggregate, self.choices[place - len(tallies)], self.policy).sensitivity

    def choice(self, place: int) -> Choice | None:
        """The choice that a mechanism is for, if it is for one."""
        return self.choices[place - len(self.aggregate.tallies)] if place >= len(self.aggregate.tallies) else None


def plan(
    question: Question, policy: Policy, *, epsilon: Real, delta: Real | None = None, most_cells: int | None = None
) -> Plan:
    """Tallies that are enough for all aggregates, each once, and the least noise for (ε, δ) over all of them.

    ``most_cells`` in place of the policy's limit, for whoever makes no list of them.
    """
    asked = whole_units_rounded_down(positive("epsilon", epsilon))
    slack = policy.budget.delta / 100 if delta is None else between("delta", delta, 0, 1, high_open=True)
    if question.sets:
        return over_sets(question, policy, epsilon=asked, delta=slack, plan=plan)
    return _calibrate(_shaped(question, policy, most_cells), policy, asked, slack)


def together(
    questions: Sequence[Question], policy: Policy, *, epsilon: Real, delta: Real | None = None
) -> tuple[Plan, ...]:
    """The plans of several questions that share (ε, δ): the least noise over all of them, paid for in one charge."""
    asked = whole_units_rounded_down(positive("epsilon", epsilon))
    slack = policy.budget.delta / 100 if delta is None else between("delta", delta, 0, 1, high_open=True)
    if any(one.sets or any(group.private for group in one.groups) for one in questions):
        raise NotAllowed("Grouping sets, and groups whose keys are selected, are asked by themselves.")
    shapes = [_shaped(one, policy) for one in questions]
    mechanisms = iter(_calibrated([one for shape in shapes for one in shape.measured], policy, asked, slack))
    return tuple(
        _planned(shape, policy, asked, slack, tuple(itertools.islice(mechanisms, len(shape.measured))))
        for shape in shapes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What is measured, before it is known with how much noise."""

    question: Question
    aggregate: Aggregate
    parts: tuple[Part, ...]
    choices: tuple[Choice, ...]
    measured: tuple[Measured, ...]
    cells: int


def _shaped(question: Question, policy: Policy, most_cells: int | None = None) -> _Shape:
    private = any(group.private for group in question.groups)
    cells = math.prod(len(group.values) for group in question.groups if not group.private)
    limit = policy.limits.max_cells if most_cells is None else most_cells
    if cells > limit:
        raise TooHeavy(f"The answer would have {cells:,} groups; the limit is {limit:,}.")
    single = one_row_a_unit(question.relation, policy)
    groups = MOST_KEYS if private else max(1, cells)
    most = min(policy.limits.groups, groups) if question.groups and not single else 1
    shared_out = None if single else _together(policy, most)
    needed = Needed(question, policy, cells=cells, single=single, together=shared_out is not None)
    parts = needed.parts()
    aggregate = Aggregate(
        input=question.relation,
        groups=question.groups,
        tallies=tuple(needed.tallies),
        histograms=tuple(needed.histograms),
        most_groups=most,
        single=single,
        together=shared_out if any(tally.a_row is not None for tally in needed.tallies) else None,
    )
    measured: list[Measured] = [_sensitivity(aggregate, tally, policy) for tally in needed.tallies]
    chosen = [_choosing(aggregate, choice, policy) for choice in needed.choices]
    measured += [one.sensitivity if one.choice.wanted is Wanted.COUNTS else one for one in chosen]
    return _Shape(
        question=question,
        aggregate=aggregate,
        parts=parts,
        choices=tuple(needed.choices),
        measured=tuple(measured),
        cells=cells,
    )


def _together(policy: Policy, groups: int) -> Together | None:
    """Rows are counted over all groups together where that allows a unit fewer than its groups do one by one."""
    rows, total = policy.limits.rows, policy.limits.max_total_rows
    return None if rows is None or total is None or total >= groups * rows else Together(rows=rows, total=total)


def _calibrate(shape: _Shape, policy: Policy, epsilon: Fraction, delta: Fraction) -> Plan:
    if not any(group.private for group in shape.question.groups):
        apart = _calibrated(shape.measured, policy, epsilon, delta)
        means = [(one.count, one.total) for one in shape.parts if one.count is not None and one.total is not None]
        found = measured_together(means, shape.aggregate, shape.measured, policy, epsilon=epsilon, apart=apart)
        if found is None:
            return _planned(shape, policy, epsilon, delta, apart)
        return replace(_planned(shape, policy, epsilon, delta, found[1]), both_ends=found[0])
    selection, mechanisms = _selected(shape.aggregate, shape.measured, policy, epsilon, delta)
    weighted = replace(shape, aggregate=replace(shape.aggregate, weight_bits=selection.weight_bits))
    return replace(_planned(weighted, policy, epsilon, delta, mechanisms), selection=selection)


def _planned(
    shape: _Shape, policy: Policy, epsilon: Fraction, delta: Fraction, mechanisms: tuple[Mechanism, ...]
) -> Plan:
    return Plan(
        question=shape.question,
        policy=policy,
        epsilon=epsilon,
        delta=delta,
        aggregate=shape.aggregate,
        parts=shape.parts,
        mechanisms=mechanisms,
        cells=shape.cells,
        choices=shape.choices,
    )


def _selected(
    aggregate: Aggregate, measured: Sequence[Measured], policy: Policy, epsilon: Fraction, delta: Fraction
) -> tuple[Selection, tuple[Mechanism, ...]]:
    """How keys are selected, and the mechanisms of all tallies: of one that counts units, the selection itself."""
    places = reused(aggregate.groups, aggregate.tallies)
    others = [one for place, one in enumerate(measured) if place not in places]

    def gaussian(rho: Fraction) -> tuple[Mechanism, ...]:
        return tuple(at_rho(one, rho, policy.budget.neighbors) for one in others)

    chosen, rest = shared(
        epsilon=epsilon,
        delta=delta,
        keys_per_unit=aggregate.most_groups,
        counts=bool(places),
        others=len(others),
        pure=lambda amount: _calibrated(others, policy, amount, Fraction(0)),
        zcdp=gaussian,
        terms=policy.budget.filter,
    )
    left = iter(rest)
    mechanisms = tuple(chosen if place in places else next(left) for place in range(len(measured)))
    return Selection(mechanism=chosen, tallies=places), mechanisms


def one_row_a_unit(relation: Relation, policy: Policy) -> bool:
    """Return whether no unit can have two rows: the owner's check saw one in the table, and no join makes it more.

    Both hold for the files that were looked at. The engine sees to it that these are the ones that it reads, and bounds
    what a unit adds where they are not (``engines.held``).
    """
    match relation:
        case Scan(table=table, unit=unit, path=path, held=held):
            if held != policy.held(table):  # read under another state of the files than the policy is about
                return False
            return table in policy.enforced or (unit is not None and not path and policy.has_key(table, unit))
        case Filter(input=below) | Project(input=below):
            return one_row_a_unit(below, policy)
        case JoinPublic(input=below, most=most, held=held):
            return most <= 1 and held is not None and one_row_a_unit(below, policy)
        case Match(input=below) | Window(input=below):
            return one_row_a_unit(below, policy)
        case Cap(input=below, most=most):
            return most == 1 or one_row_a_unit(below, policy)
        case Reduce(keys=keys):
            return not keys
        case JoinOwn() | Union():
            return False


def _choosing(aggregate: Aggregate, choice: Choice, policy: Policy) -> Choosing:
    """A choice is made in every group; replacing a unit can change those of the one and those of the other."""
    replaced = policy.budget.neighbors is Neighbors.REPLACE_ONE
    groups = 2 * aggregate.most_groups if replaced else aggregate.most_groups
    return Choosing(choice=choice, groups=groups, neighbors=policy.budget.neighbors)


def _sensitivity(aggregate: Aggregate, tally: Tally, policy: Policy) -> Sensitivity:
    """How far one unit moves a tally's vector.

    Replacing a unit takes one away and adds another: in twice the groups, or, in groups that both are in, from the
    least that one can add to the most that the other can, which is further than either alone where signs differ.
    """
    groups, most = aggregate.most_groups, Fraction(tally.linf)
    if policy.budget.neighbors is not Neighbors.REPLACE_ONE:
        each = Sensitivity(l0=groups, linf=most)
    else:
        width = Fraction(max(tally.bounds[1], 0) - min(tally.bounds[0], 0))
        squares = groups * max(width**2, 2 * most**2)
        each = Sensitivity(l0=2 * groups, l1=2 * groups * most, l2_squared=squares, linf=width)
    if aggregate.together is None or tally.a_row is None:
        return each
    return _over_groups(each, aggregate.together, tally.a_row, policy.budget.neighbors)


def _over_groups(each: Sensitivity, together: Together, a_row: tuple[int, int], neighbors: Neighbors) -> Sensitivity:
    """The same where the rows of a unit are counted over all groups, if it is less than group by group.

    Privacy:
        Claim: a unit that comes or goes moves the vector by at most T·r in L1 and S·r² in squared L2, with T the total,
            S the most that the squares of its rows add up to, and r = max(p, q) for rows that add from −q to p steps.
            One that is replaced by another moves it by at most 2·T·r and 2·r·(p + q)·S.
        Proof: the first is the claim of Aggregate. Now let u and v be what the two units add, a and b their rows that
            count. L1 is the triangle inequality. |u − v|² = |u|² + |v|² − 2·u·v ≤ 2·r²·S − 2·u·v. Where u and v have
            different signs in a group, one is at most p and the other at most q times its rows: −u·v ≤ p·q·Σ a·b, and
            Σ a·b ≤ S (Cauchy, Schwarz). So it is at most 2·S·(r² + p·q), and r² + p·q = r·(p + q), since r is one of p
            and q. What was proven group by group holds beside it.
        Needs: the claim of Aggregate; Together.squares.
        Ref: SOUNDNESS 5, 6.
    """
    reach, width = max(-a_row[0], a_row[1]), a_row[1] - a_row[0]
    l1, squares = together.total * reach, together.squares * reach**2
    if neighbors is Neighbors.REPLACE_ONE:
        l1, squares = 2 * l1, 2 * reach * width * together.squares
    known = each.in_norm(Norm.L1), each.in_norm(Norm.L2)
    least = [min(Fraction(new), old) for new, old in zip((l1, squares), known, strict=True) if old is not None]
    return replace(each, l1=least[0], l2_squared=least[1])
