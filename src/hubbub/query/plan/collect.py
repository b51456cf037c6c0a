"""Collect what the aggregates of a question are made of, in each of its groupings.

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
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeVar

from hubbub.errors import MayOverflow, MissingBounds, TooHeavy
from hubbub.policy.kinds import Type, default_grid, outward
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.ways import ChosenWay, Payer
from hubbub.query.check.bounds import Interval, bounds_of, interval_of
from hubbub.query.check.shape import always_there
from hubbub.query.check.size import public_size
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Dropped, Histogram, Measure, Tally
from hubbub.query.plan.choice import UNLISTED, HistogramStatistic
from hubbub.query.plan.covering import Covers
from hubbub.query.plan.statistic import Reach, Statistic, TallyStatistic, count_dropped
from hubbub.query.question import Question
from hubbub.query.read.scalars import as_real

if TYPE_CHECKING:
    from hubbub.query.plan.plan import Plan

_MOST_STEPS = 1 << 62

S = TypeVar("S", bound=HistogramStatistic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """The parts of one aggregate of the question: tallies or a choice, and the interval of its values."""

    tallies: tuple[Tally, ...] = ()
    """All that it needs, in the order in which its error is divided among them."""
    choice: HistogramStatistic | None = None
    bounds: Interval | None = None
    other_bounds: Interval | None = None
    """Of two values, where the other one lies."""
    per_group: Interval | None = None
    """Where the question itself clamps what one unit adds to a group."""
    mean: tuple[Tally, Tally] | None = None
    """A count and a total of which a mean is made: the two may be measured together."""
    size: int | None = None
    """How many values there are, where that is public: nothing counts them."""
    dropped: tuple[Tally, ...] = ()
    """What limits drop of each tally, where that is measured."""

    @property
    def shift(self) -> Fraction:
        """Return what is to be added to a total that was counted from an origin, where that is public."""
        return Fraction(0) if self.size is None else self.size * self.tallies[0].origin


class Collector:
    """A collection of what a question needs, aggregate by aggregate; what is needed twice is there once."""

    def __init__(self, question: Question, policy: Policy, *, cells: int, single: bool, reach: Reach) -> None:
        """Collect for ``cells`` groups; where a unit has a single row at most, there is no limit of rows."""
        self.question = question
        self._policy, self._single, self._reach = policy, single, reach
        self.cells = cells * (UNLISTED if any(group.private for group in question.groups) else 1)
        self.tallies: list[Tally] = []
        self.histograms: list[Histogram] = []
        self._chosen: list[HistogramStatistic] = []

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Everything that is measured: tallies, then what is chosen or counted of histograms."""
        tallies = [
            TallyStatistic(tally=tally, column=column, reach=self._reach) for column, tally in enumerate(self.tallies)
        ]
        return *tallies, *self._chosen

    def add(self, tally: Tally) -> Tally:
        """Add a tally; one that is there already is returned instead."""
        if tally not in self.tallies:
            self.tallies.append(tally)
        return self.tallies[self.tallies.index(tally)]

    def choose(self, kind: type[S], histogram: Histogram, **options: object) -> S:
        """Add what is chosen from a histogram, or counted of it."""
        if histogram not in self.histograms:
            self.histograms.append(histogram)
        column = self.histograms.index(histogram)
        made = kind(histogram=histogram, column=column, reach=self._reach, **options)
        same = [one for one in self._chosen if one == made]
        if same:
            found = same[0]
            assert isinstance(found, kind)
            return found
        self._chosen.append(made)
        return made

    def add_dropped(self, part: Ingredients) -> Ingredients:
        """Add what limits drop of each tally of an aggregate, where a unit is known to have no more than so many rows.

        Nothing is added where that cannot be: nobody said so; no limit can drop anything; the question itself bounds
        what a unit adds to a group; keys are selected, or the engine looks at the rows themselves.
        """
        limits = self._policy.limits
        most = limits.max_total_rows
        if most is None or most > _MOST_DROPPED or self._single or part.choice is not None or self.histograms:
            return part
        if part.per_group is not None or part.size is not None or any(one.private for one in self.question.groups):
            return part
        if any(tally.measure is Measure.DISTINCT for tally in (*self.tallies, *part.tallies)):
            return part
        dropped = Dropped(rows=min(limits.rows or most, most), within=most)
        made = [replace(tally, a_row=_range_of_row(tally, limits.rows), dropped=dropped) for tally in part.tallies]
        if not all(count_dropped(tally, dropped, self._reach) for tally in made):
            return part
        return replace(part, dropped=tuple(map(self.add, made)))

    def is_covered(self, part: Ingredients) -> bool:
        """Return whether limits drop nothing of an aggregate, or it is measured what they drop."""
        most, rows = self._policy.limits.max_total_rows, self._policy.limits.rows
        if self._single or part.dropped or most is None:
            return self._single or bool(part.dropped)
        if part.per_group is not None:
            return False
        chosen = [] if part.choice is None else [Tally(measure=Measure.ROWS, argument=None)]
        dropped = Dropped(rows=min(rows or 1, most), within=most)
        return not any(count_dropped(tally, dropped, self._reach) for tally in (*part.tallies, *chosen))

    # What is public about values

    @property
    def rows(self) -> int:
        """The most rows of one unit that count in one group."""
        if self._single:
            return 1
        if self._policy.limits.max_rows is None:
            raise MissingBounds(
                "How many rows of one unit count in one group was not declared. Let the owner declare max_rows, or ask "
                "for COUNT(DISTINCT unit)."
            )
        assert self._policy.limits.rows is not None
        return self._policy.limits.rows

    def bound(self, argument: Expression) -> Interval:
        """Return declared bounds of a value, or bought ones."""
        bought = self.question.bought.get(argument)
        if bought is not None and interval_of(argument, self._declared) is None:
            return bought
        return bounds_of(argument, self._declared)

    def bound_if_declared(self, argument: Expression) -> Interval | None:
        """Return declared bounds, if there are any: none are bought where the question gives its own."""
        return None if interval_of(argument, self._declared) is None else bounds_of(argument, self._declared)

    def _declared(self, name: str) -> Interval | None:
        facts = self.question.columns.get(name)
        return None if facts is None else facts.bounds

    def step(self, argument: Expression) -> Fraction | None:
        """Return the declared step of a column."""
        facts = self.question.columns.get(argument.name) if isinstance(argument, Column) else None
        return None if facts is None else facts.step

    def grid(self, argument: Expression, bounds: Interval) -> Fraction:
        """Return the steps in which a value is added up."""
        if argument.kind.type is Type.INTEGER:
            return Fraction(1)
        return self.step(argument) or default_grid(bounds)

    # Tallies

    def count(self, argument: Expression | None, most: int | None = None) -> Tally:
        """Count rows that have a value, or all rows; of a unit as many as the policy, or the question, lets count."""
        counted = None if argument is None else self.drop_if_always_there(argument)
        rows = self.rows if most is None else min(most, 1) if self._single else most
        a_row = (0, 1) if self._reach.together is not None and most is None else None
        return self.add(Tally(measure=Measure.ROWS, argument=counted, bounds=(0, rows), a_row=a_row))

    def public_count(self, argument: Expression) -> int | None:
        """Return how many values there are, where that is public and they are one group: no row lacks one."""
        if not self._single or self.question.groups or self.drop_if_always_there(argument) is not None:
            return None
        return public_size(self.question.relation, self._policy)

    def drop_if_always_there(self, argument: Expression) -> Expression | None:
        """Return a value that some row may lack; None for one in every row, so that its count is that of all rows."""
        return None if always_there(argument, self.question.relation) else argument

    def add_up(self, argument: Expression, bounds: Interval, *, centred: bool, grid: Fraction | None = None) -> Tally:
        """Add up steps of the grid from 0, or from the middle, where one row moves the sum by half as much."""
        grid = grid or self.grid(argument, bounds)
        bounds = outward(bounds, grid)
        origin = middle_of(bounds, grid) if centred else Fraction(0)
        return self.add_steps(argument, bounds, origin, grid, in_proportion=centred)

    def add_squares(self, argument: Expression, bounds: Interval) -> Tally:
        """Add up squares of distances from the middle of the bounds, counted from the middle of their own range."""
        away = distance(argument, bounds)
        most = ((bounds[1] - bounds[0]) / 2) ** 2
        return self.add_reals(call("multiply", away, away), (Fraction(0), most))

    def add_reals(self, argument: Expression, within: Interval, *, centred: bool = True) -> Tally:
        """Add up reals that nobody declared a step for."""
        grid = default_grid(within)
        within = outward(within, grid)
        origin = middle_of(within, grid) if centred else Fraction(0)
        return self.add_steps(argument, within, origin, grid, in_proportion=True)

    def add_steps(
        self, argument: Expression, bounds: Interval, origin: Fraction, grid: Fraction, *, in_proportion: bool
    ) -> Tally:
        """Add up steps: a sum by itself is clamped for each unit, a part of a ratio is cut in proportion to rows."""
        low, high = (round((end - origin) / grid) for end in bounds)
        a_row, rows = (min(low, 0), max(high, 0)), self.rows
        tally = Tally(
            measure=Measure.TOTAL,
            argument=argument,
            clamp=bounds,
            origin=origin,
            grid=grid,
            bounds=(a_row[0] * rows, a_row[1] * rows),
            most_rows=rows if in_proportion else None,
            a_row=a_row if self._reach.together is not None else None,
        )
        return self.add(tally)


_MOST_DROPPED = 1 << 20
"""Rows of a unit of which it is measured what limits drop: beyond that an engine cannot cut totals in proportion."""


def _range_of_row(tally: Tally, rows: int | None) -> tuple[int, int]:
    """Return what one row can add to a tally that so many rows of a unit add to."""
    if tally.measure is not Measure.TOTAL or rows is None:
        return 0, 1
    return tally.a_row or (tally.bounds[0] // rows, tally.bounds[1] // rows)


def middle_of(bounds: Interval, grid: Fraction) -> Fraction:
    """Return the multiple of the grid that is nearest to the middle."""
    return round((bounds[0] + bounds[1]) / 2 / grid) * grid


def count_steps(bounds: Interval, origin: Fraction, grid: Fraction) -> tuple[int, int]:
    """Return ends on the grid, counted from the origin: so few that an engine can hold them."""
    low, high = (round((end - origin) / grid) for end in bounds)
    if max(abs(low), abs(high)) > _MOST_STEPS:
        raise MayOverflow("What one unit may add is more than 2^62 steps of the grid. Give closer bounds.")
    return low, high


def beside(value: Expression, *others: Expression) -> Expression:
    """Return a value where the others are there too."""
    for other in others:
        if other.kind.nullable:
            value = call("case", call("is_null", other), literal(None, value.kind.type), value)
    return value


def clamp_real(argument: Expression, bounds: Interval) -> Expression:
    """Return a value as a real within bounds."""
    low, high = (literal(float(end)) for end in bounds)
    return call("greatest", call("least", as_real(argument), high), low)


def distance(argument: Expression, bounds: Interval) -> Expression:
    """Return how far a value is from the middle of the bounds, within them."""
    return call("subtract", clamp_real(argument, bounds), literal(float((bounds[0] + bounds[1]) / 2)))


MOST_SETS = 16
"""Grouping sets of one question: each gets an equal share of its budget."""

Set = tuple[int, ...]
"""The places of a set's keys, ascending."""


class _Planner(Protocol):
    def __call__(
        self,
        question: Question,
        policy: Policy,
        *,
        epsilon: Fraction,
        delta: Fraction,
        payer: Payer,
        ways: Sequence[ChosenWay] | None,
        covers: Covers,
    ) -> "Plan": ...


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


def over_sets(
    question: Question,
    policy: Policy,
    *,
    epsilon: Fraction,
    delta: Fraction,
    payer: Payer,
    ways: Sequence[ChosenWay] | None,
    covers: Covers,
    plan: _Planner,
) -> "Plan":
    """The plan of each set, with an equal share of the budget each; the first stands for all where one is looked at."""
    many = len(question.sets)
    share = whole_units_rounded_down(epsilon / many)
    plans: list[Plan] = []
    for place, chosen in enumerate(question.sets):  # all are one charge: the next set pays with what this one leaves
        own = ways[place : place + 1] if ways else ways
        one = one_set(question, chosen)
        made = plan(one, policy, epsilon=share, delta=delta / many, payer=payer, ways=own, covers=covers)
        plans, payer = [*plans, made], payer.after(payer.price(made.events))
    cells = sum(one.cells for one in plans)
    if cells > policy.limits.max_cells:
        raise TooHeavy(f"The answer would have {cells:,} groups; the limit is {policy.limits.max_cells:,}.")
    used = tuple(way for one in plans for way in one.ways)
    return replace(plans[0], question=question, epsilon=epsilon, delta=delta, sets=tuple(plans), cells=cells, ways=used)


def one_set(question: Question, chosen: Set) -> Question:
    """The question about one grouping set: its aggregates, without what is made of them afterwards."""
    return replace(question, groups=tuple(question.groups[place] for place in chosen), sets=())
