"""From a question to what will be measured: tallies, their mechanisms, and the price. Public facts alone decide."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.errors import NotAllowed, QueryError, TooHeavy
from hubbub.mechanisms import Mechanism
from hubbub.parameters import Real, between, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Charge, price_of, whole_units_rounded_down
from hubbub.privacy.shares import calibrate, deviation
from hubbub.query.aggregates.function import Margins
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
    RelationUnion,
    Scan,
    Together,
    Window,
)
from hubbub.query.plan.both_ends import measure_both_ends
from hubbub.query.plan.choice import HistogramStatistic
from hubbub.query.plan.collect import Collector, Ingredients, over_sets
from hubbub.query.plan.conditions import are_alike, find_filters, find_parts, name_grouped
from hubbub.query.plan.selection import MOST_KEYS, KeyCounts, Selection, reuse_tallies, share_with_selection
from hubbub.query.plan.statistic import QueryMeasurement, Reach, Statistic
from hubbub.query.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is known before anything is paid or read."""

    question: Question
    policy: Policy
    epsilon: Fraction
    delta: Fraction
    aggregate: Aggregate
    parts: tuple[Ingredients, ...]
    """What each aggregate that was asked is made of."""
    measurements: tuple[QueryMeasurement, ...]
    """Everything that is measured once keys are selected: tallies, then what is chosen or counted of histograms."""
    cells: int
    """How many groups there are; with private keys, for each combination of these."""
    selection: Selection | None = None
    """How private keys are selected, where there are any: before everything else is measured, on what is shown."""
    sets: tuple["Plan", ...] = ()
    """With several grouping sets: the plan of each. They are asked one after the other, and what they cost adds up."""
    beside: "SideBySide | None" = None
    """Where conditions are measured as one grouping: that one, whose aggregate and measurements are these."""

    def cell_of(self, asked: int, cell: int) -> int:
        """Return in which group an aggregate of the question is: its condition, where these are the groups."""
        return cell if self.beside is None else self.beside.places[asked]

    @property
    def is_read_elsewhere(self) -> bool:
        """Return whether another question at the same price measures what this one shows."""
        return self.beside is not None and self.beside.shared

    @property
    def all_measurements(self) -> tuple[QueryMeasurement, ...]:
        """The selection of keys, if there is one, and the measurements."""
        return self.measurements if self.selection is None else (self.selection, *self.measurements)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Return the mechanism of each measurement."""
        return tuple(measurement.mechanism for measurement in self.measurements)

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the events of everything that will be drawn: keys first, then a measurement after the other."""
        if self.sets:
            return tuple(event for one in self.sets for event in one.events)
        if self.is_read_elsewhere:
            return ()
        return tuple(measurement.mechanism.event for measurement in self.all_measurements)

    @property
    def cost(self) -> Charge:
        """Return what the account will be charged."""
        return price_of(self.policy.budget.filter, self.events)

    @property
    def margins(self) -> Margins:
        """Return how far each tally may be off."""
        return Margins(self.all_measurements, self.policy.limits.rows, self.aggregate.single)

    @property
    def slots(self) -> tuple[QueryMeasurement | None, ...]:
        """Return the measurement behind each position of a stored answer: one for each tally, then one for each choice.

        None where a tally is told by numbers that stand in the position of another one.
        """
        tallies = []
        for tally in self.aggregate.tallies:
            telling = next(one for one in self.all_measurements if tally in one.take.tells)
            tallies.append(telling if telling.take.is_stored_at(tally) else None)
        return *tallies, *(one for one in self.measurements if isinstance(one.take, HistogramStatistic))


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """The plan of a grouping by conditions, and the condition of each aggregate."""

    plan: Plan
    places: tuple[int, ...]
    shared: bool = False
    """Whether another question of the same price measures and pays for it."""

    @property
    def sentence(self) -> str:
        """Say under how many conditions a unit counts: intervals are about what is counted."""
        most, many = self.plan.aggregate.most_groups, self.plan.cells
        return f"a unit counts under at most {most} of {many} conditions, which were measured side by side"


def plan(
    question: Question, policy: Policy, *, epsilon: Real, delta: Real | None = None, most_cells: int | None = None
) -> Plan:
    """Plan tallies that are enough for all aggregates, each once, and the least noise for (ε, δ) over all of them.

    ``most_cells`` in place of the policy's limit, for whoever makes no list of them.
    """
    asked = whole_units_rounded_down(positive("epsilon", epsilon))
    slack = policy.budget.delta / 100 if delta is None else between("delta", delta, 0, 1, high_open=True)
    if question.sets:
        return over_sets(question, policy, epsilon=asked, delta=slack, plan=plan)
    apart = _calibrate(_shape(question, policy, most_cells), policy, asked, slack)
    grouping = find_filters(question, policy, single=apart.aggregate.single)
    if grouping is None:
        return apart
    try:
        whole = _calibrate(_shape(grouping.question, grouping.policy), grouping.policy, asked, slack)
    except QueryError:  # too large a sum for one grouping, or a bound that it lacks
        return apart
    beside = _show_beside(name_grouped(question), policy, whole, grouping.places)
    return beside if question.grouped or _errs_less([beside], [apart]) else apart


def _show_beside(question: Question, policy: Policy, whole: Plan, places: Sequence[tuple[int, int]]) -> Plan:
    """Return the plan of a question whose aggregates are groups of another one."""
    parts = tuple(whole.parts[at] for at, _ in places)
    cells = tuple(cell for _, cell in places)
    return replace(
        whole, question=question, policy=policy, parts=parts, cells=1, beside=SideBySide(plan=whole, places=cells)
    )


def _errs_less(beside: Sequence[Plan], apart: Sequence[Plan]) -> bool:
    """Return whether the errors of everything together are less, by their product."""
    return sum(_log_error(one) for one in beside) < sum(_log_error(one) for one in apart)


def _log_error(one: Plan) -> float:
    margins, tallies = one.margins, [tally for part in one.parts for tally in part.tallies]
    chosen = [margins.find_choice(part.choice).mechanism for part in one.parts if part.choice is not None]
    noise = [deviation(own.mechanism) * own.take.scale_of(tally) for tally in tallies for own in [margins.find(tally)]]
    return sum(math.log(max(error, 2.0**-1000)) for error in (*noise, *map(deviation, chosen)))


def together(
    questions: Sequence[Question],
    policy: Policy,
    *,
    epsilon: Real,
    delta: Real | None = None,
    grouped: bool | None = False,
) -> tuple[Plan, ...]:
    """Plan several questions that share (ε, δ): the least noise over all of them, paid for in one charge.

    ``grouped`` says whether questions that differ in their conditions are measured as one grouping by these
    (plan.conditions); None decides by the noise. The first of them then measures and pays for all.
    """
    asked = whole_units_rounded_down(positive("epsilon", epsilon))
    slack = policy.budget.delta / 100 if delta is None else between("delta", delta, 0, 1, high_open=True)
    if any(one.sets or any(group.private for group in one.groups) for one in questions):
        raise NotAllowed("Grouping sets, and groups whose keys are selected, are asked by themselves.")
    shapes = [_shape(one, policy) for one in questions]
    apart = _share(shapes, policy, asked, slack)
    members = [] if grouped is False else _find_members(shapes)
    single = all(shapes[at].aggregate.single for at in members)
    grouping = find_parts([questions[at] for at in members], policy, single=single) if len(members) > 1 else None
    if grouping is None:
        return apart
    try:
        whole_shape = _shape(grouping.question, grouping.policy)
        rest = [shape for at, shape in enumerate(shapes) if at not in members]
        whole, *others = _share([whole_shape, *rest], policy, asked, slack)
    except QueryError:
        return apart
    waiting, places = iter(others), iter(grouping.places)
    planned = []
    for at, one in enumerate(questions):
        if at not in members:
            planned.append(next(waiting))
            continue
        shown = _show_beside(one, policy, whole, list(itertools.islice(places, len(one.asked))))
        assert shown.beside is not None
        planned.append(replace(shown, beside=replace(shown.beside, shared=at != members[0])))
    return tuple(planned) if grouped or _errs_less(planned, apart) else apart


def _share(shapes: Sequence["_Shape"], policy: Policy, epsilon: Fraction, delta: Fraction) -> tuple[Plan, ...]:
    every = [statistic for shape in shapes for statistic in shape.statistics]
    mechanisms = iter(calibrate(every, policy.budget, epsilon=epsilon, delta=delta))
    return tuple(
        _finish(
            shape, policy, epsilon, delta, _pair(shape.statistics, itertools.islice(mechanisms, len(shape.statistics)))
        )
        for shape in shapes
    )


def _find_members(shapes: Sequence["_Shape"]) -> list[int]:
    """Return the questions that may stand under conditions side by side: sums, over the rows of the first of them."""
    able = [
        at
        for at, shape in enumerate(shapes)
        if not shape.question.groups
        and isinstance(shape.question.relation, Filter)
        and all(part.choice is None for part in shape.parts)
    ]
    return [at for at in able if are_alike(shapes[able[0]].question.relation, shapes[at].question.relation)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """The measurements of a plan, before it is known with how much noise."""

    question: Question
    aggregate: Aggregate
    parts: tuple[Ingredients, ...]
    statistics: tuple[Statistic, ...]
    cells: int


def _shape(question: Question, policy: Policy, most_cells: int | None = None) -> _Shape:
    private = any(group.private for group in question.groups)
    cells = math.prod(len(group.values) for group in question.groups if not group.private)
    limit = policy.limits.max_cells if most_cells is None else most_cells
    if cells > limit:
        raise TooHeavy(f"The answer would have {cells:,} groups; the limit is {limit:,}.")
    single = one_row_a_unit(question.relation, policy)
    groups = MOST_KEYS if private else max(1, cells)
    most = min(policy.limits.groups, groups) if question.groups and not single else 1
    shared_out = None if single else _together(policy, most)
    listed = None if private else max(1, cells)
    reach = Reach(groups=most, neighbors=policy.budget.neighbors, together=shared_out, cells=listed)
    collector = Collector(question, policy, cells=cells, single=single, reach=reach)
    parts = tuple(asked.function.measure(asked, collector) for asked in question.asked)
    aggregate = Aggregate(
        input=question.relation,
        groups=question.groups,
        tallies=tuple(collector.tallies),
        histograms=tuple(collector.histograms),
        most_groups=most,
        single=single,
        together=shared_out if any(tally.a_row is not None for tally in collector.tallies) else None,
    )
    return _Shape(question=question, aggregate=aggregate, parts=parts, statistics=collector.statistics, cells=cells)


def _together(policy: Policy, groups: int) -> Together | None:
    """Count rows over all groups together where that allows a unit fewer than its groups do one by one."""
    rows, total = policy.limits.rows, policy.limits.max_total_rows
    return None if rows is None or total is None or total >= groups * rows else Together(rows=rows, total=total)


def _calibrate(shape: _Shape, policy: Policy, epsilon: Fraction, delta: Fraction) -> Plan:
    if not any(group.private for group in shape.question.groups):
        mechanisms = calibrate(shape.statistics, policy.budget, epsilon=epsilon, delta=delta)
        means = [part.mean for part in shape.parts if part.mean is not None]
        measured = measure_both_ends(
            means, shape.aggregate, _pair(shape.statistics, mechanisms), policy.budget, epsilon=epsilon
        )
        return _finish(shape, policy, epsilon, delta, measured)
    selection, measured = _select(shape, policy, epsilon, delta)
    weighted = replace(shape, aggregate=replace(shape.aggregate, weight_bits=selection.weight_bits))
    return replace(_finish(weighted, policy, epsilon, delta, measured), selection=selection)


def _pair(statistics: Sequence[Statistic], mechanisms: Iterable[Mechanism]) -> tuple[QueryMeasurement, ...]:
    pairs = zip(statistics, mechanisms, strict=True)
    return tuple(QueryMeasurement.of(statistic, mechanism) for statistic, mechanism in pairs)


def _finish(
    shape: _Shape, policy: Policy, epsilon: Fraction, delta: Fraction, measurements: tuple[QueryMeasurement, ...]
) -> Plan:
    return Plan(
        question=shape.question,
        policy=policy,
        epsilon=epsilon,
        delta=delta,
        aggregate=shape.aggregate,
        parts=shape.parts,
        measurements=measurements,
        cells=shape.cells,
    )


def _select(
    shape: _Shape, policy: Policy, epsilon: Fraction, delta: Fraction
) -> tuple[Selection, tuple[QueryMeasurement, ...]]:
    """Plan how keys are selected, and how everything is measured that the selection does not tell itself."""
    aggregate = shape.aggregate
    told = reuse_tallies(aggregate.groups, aggregate.tallies)
    others = [one for one in shape.statistics if not any(tally in told for tally in one.tells)]
    mechanism, rest = share_with_selection(
        epsilon=epsilon,
        delta=delta,
        keys_per_unit=aggregate.most_groups,
        counts=bool(told),
        others=len(others),
        pure=lambda amount: calibrate(others, policy.budget, epsilon=amount, delta=Fraction(0)),
        zcdp=lambda rho: tuple(one.calibrate_zcdp(rho) for one in others),
        terms=policy.budget.filter,
    )
    return Selection.of_keys(KeyCounts(told=told, mechanism=mechanism)), _pair(others, rest)


def one_row_a_unit(relation: Relation, policy: Policy) -> bool:
    """Return whether no unit can have two rows: the owner's check saw one in the table, and no join makes it more.

    Both hold for the files that were looked at. The engine sees to it that these are the ones that it reads, and bounds
    what a unit adds where they are not (``engines.files_behind``).
    """
    match relation:
        case Scan(table=table, unit=unit, path=path, held=held):
            if held != policy.files_behind(table):  # read under another state of the files than the policy is about
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
        case JoinOwn() | RelationUnion():
            return False
