"""From a question to what will be measured: tallies, their mechanisms, and the price. Public facts alone decide."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.errors import NotAllowed, QueryError, TooHeavy
from hubbub.mechanisms import Mechanism
from hubbub.parameters import Real, between, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Charge, price_of, whole_units_rounded_down
from hubbub.privacy.shares import deviation
from hubbub.privacy.ways import ChosenWay, Payer
from hubbub.query.aggregates.function import CONFIDENCE, Margins
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
    Tally,
    Together,
    Window,
)
from hubbub.query.plan.choice import HistogramStatistic
from hubbub.query.plan.collect import Collector, Ingredients, over_sets
from hubbub.query.plan.conditions import are_alike, find_filters, find_parts, name_grouped
from hubbub.query.plan.covering import (
    SHARE,
    SHARES,
    Covers,
    WayMarks,
    put_marks,
    raise_limits,
    read_marks,
    take_off_marks,
)
from hubbub.query.plan.plan_terms import BEFORE, Measured, PlanTerms, pair
from hubbub.query.plan.selection import MOST_KEYS, KeyCounts, Selection, reuse_tallies
from hubbub.query.plan.statistic import QueryMeasurement, Reach, Statistic
from hubbub.query.question import Question

_LEAST = 2.0**-1000


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
    ways: tuple[ChosenWay, ...] = ()
    """The way in which it is measured, and the ε that is used, which is ``epsilon`` or less; one for each set."""
    is_covered: bool = False
    """Whether limits drop nothing of a unit with at most ``max_total_rows`` rows, or it is measured what they drop."""
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

    bought: Fraction = Fraction(0)
    """The ε of the facts that were bought for it first."""

    @property
    def price(self) -> Fraction:
        """Return the ε that is charged for it, facts that were bought for it included."""
        return self.bought + self.used

    @property
    def used_delta(self) -> Fraction:
        """Return the δ of the answer: none where pure noise was used, and no keys were selected."""
        pure = bool(self.ways) and all(name.startswith("pure") for name, _ in take_off_marks(self.ways) or ())
        return Fraction(0) if pure and not self._selects else self.delta

    @property
    def _selects(self) -> bool:
        return any(one.selection is not None for one in self.sets or (self,))

    @property
    def used(self) -> Fraction:
        """Return the ε that the measurements use together: at most what was asked for."""
        return sum((epsilon for _, epsilon in self.ways), Fraction(0)) if self.ways else self.epsilon

    @property
    def cost(self) -> Charge:
        """Return what the account will be charged."""
        return price_of(self.policy.budget.filter, self.events)

    @property
    def margins(self) -> Margins:
        """Return how far each tally may be off."""
        limits = raise_limits(self.policy).limits if self.is_raised else self.policy.limits
        return Margins(self.all_measurements, limits.rows, self.aggregate.single)

    @property
    def is_raised(self) -> bool:
        """Return whether limits were raised so that they drop nothing of a unit with at most ``max_total_rows``."""
        return read_marks(self.ways).is_raised

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
    question: Question,
    policy: Policy,
    *,
    epsilon: Real,
    delta: Real | None = None,
    most_cells: int | None = None,
    payer: Payer | None = None,
    ways: Sequence[ChosenWay] | None = None,
    covers: Covers = Covers.NOISE,
) -> Plan:
    """Plan tallies that are enough for all aggregates, each once, and the least noise for (ε, δ) over all of them.

    ``most_cells`` in place of the policy's limit, for whoever makes no list of them. ``payer`` is who pays: a new
    account, if nobody is named. ``ways`` are those of a plan that was made before; none at all are those of the first
    version, which stored none. ``covers`` says what intervals are to cover; ways that were chosen before say it
    themselves.
    """
    payer = payer or Payer.of(policy.budget)
    asked = whole_units_rounded_down(positive("epsilon", epsilon))
    slack = policy.budget.delta / 100 if delta is None else between("delta", delta, 0, 1, high_open=True)
    if question.sets:
        return over_sets(question, policy, epsilon=asked, delta=slack, payer=payer, ways=ways, covers=covers, plan=plan)
    terms = PlanTerms(policy=policy, epsilon=asked, delta=slack, payer=payer, ways=take_off_marks(ways))
    marks = read_marks(ways)
    if ways is not None:
        covers = Covers.NOISE if marks.share is None else Covers.DROPPED
        terms = replace(terms, share=marks.share or SHARE)
    if marks.is_raised:
        return _raise(question, terms, most_cells)
    if covers is Covers.WHOLE and policy.limits.max_total_rows is not None:
        return _cover_whole(question, terms, most_cells)
    if not marks.is_beside:
        apart = _calibrate(_shape(question, policy, most_cells, covers), terms)
        if ways is not None:
            return apart
        single = apart.aggregate.single
    else:
        apart, single = None, one_row_a_unit(question.relation, policy)
    grouping = find_filters(question, policy, single=single)
    if grouping is None:
        assert apart is not None
        return apart
    try:
        whole_terms = replace(terms, policy=grouping.policy)
        whole_shape = _shape(grouping.question, grouping.policy)
        whole = _calibrate(whole_shape, whole_terms)
    except QueryError:  # too large a sum for one grouping, or a bound that it lacks
        if apart is None:
            raise
        return apart
    beside = _show_beside(name_grouped(question), policy, whole, grouping.places)
    if apart is None or question.grouped:
        return beside
    if _can_pay(payer, [apart]) and not _can_pay(payer, [beside]):
        whole = _calibrate(whole_shape, replace(whole_terms, lower=True))
        beside = _show_beside(name_grouped(question), policy, whole, grouping.places)
    elif _can_pay(payer, [beside]) and not _can_pay(payer, [apart]):
        apart = _calibrate(_shape(question, policy, most_cells), replace(terms, lower=True))
    return beside if _errs_less([beside], [apart], payer) else apart


def _cover_whole(question: Question, terms: PlanTerms, most_cells: int | None) -> Plan:
    """Plan a question so that the intervals of the whole error are the shortest, of what can be paid for."""
    plans = [_raise(question, terms, most_cells)]
    limits = terms.policy.limits
    if limits.max_rows is not None and (limits.max_groups is not None or not question.groups):
        shape = _shape(question, terms.policy, most_cells, Covers.DROPPED)
        if shape.is_covered and any(part.dropped for part in shape.parts):
            plans += [_calibrate(shape, replace(terms, share=share)) for share in SHARES]
    payable = [made for made in plans if terms.payer.can_pay(made.events)]
    return min(payable or plans, key=_log_width)


def _raise(question: Question, terms: PlanTerms, most_cells: int | None) -> Plan:
    """Plan a question with limits that drop nothing."""
    raised = raise_limits(terms.policy)
    made = _calibrate(_shape(question, raised, most_cells), replace(terms, policy=raised))
    return replace(made, policy=terms.policy, ways=put_marks(made.ways, WayMarks(is_raised=True)))


def _log_width(planned: Plan) -> float:
    """Return the product of the widths of all intervals, as a logarithm: of noise, and of what is dropped beside it."""
    margins, beta = planned.margins, 1 - CONFIDENCE
    widths = [
        2 * margins.bound(tally, beta)
        + sum((margins.bound(lost, beta) for lost in part.dropped[at : at + 1]), Fraction(0))
        for part in planned.parts
        for at, tally in enumerate(part.tallies)
    ]
    return sum(math.log(max(float(width), 2.0**-1000)) for width in widths)


def _mark(planned: Plan) -> Plan:
    return replace(planned, ways=put_marks(planned.ways, WayMarks(is_beside=True)))


def _show_beside(question: Question, policy: Policy, whole: Plan, places: Sequence[tuple[int, int]]) -> Plan:
    """Return the plan of a question whose aggregates are groups of another one."""
    parts = tuple(whole.parts[at] for at, _ in places)
    cells = tuple(cell for _, cell in places)
    shown = SideBySide(plan=whole, places=cells)
    return _mark(replace(whole, question=question, policy=policy, parts=parts, cells=1, beside=shown))


def _errs_less(beside: Sequence[Plan], apart: Sequence[Plan], payer: Payer) -> bool:
    """Return whether conditions side by side can be paid for alone, or err less by the product of all errors."""
    payable, other = _can_pay(payer, beside), _can_pay(payer, apart)
    if payable is not other:
        return payable
    return _log_errors(beside) < _log_errors(apart)


def _can_pay(payer: Payer, plans: Sequence[Plan]) -> bool:
    return payer.can_pay([event for each in plans for event in each.events])


def _log_errors(plans: Sequence[Plan]) -> tuple[float, float]:
    """Return the product of all margins, and where it is equal of all deviations, as logarithms.

    Ways are compared by margins first too (``plan_terms.size_of``): by another order, the best of better ones could be
    the worse one.
    """
    margins = [math.log(max(error, _LEAST)) for each in plans for error in _margins(each)]
    spreads = [math.log(max(error, _LEAST)) for each in plans for error in _spreads(each)]
    return sum(margins), sum(spreads)


def _margins(planned: Plan) -> list[float]:
    beta, tallies = 1 - CONFIDENCE, [tally for part in planned.parts for tally in part.tallies]
    bounds = [float(planned.margins.bound(tally, beta)) for tally in tallies]
    return [*bounds, *(mechanism.error(beta=beta) for mechanism in _choices(planned))]


def _spreads(planned: Plan) -> list[float]:
    margins, tallies = planned.margins, [tally for part in planned.parts for tally in part.tallies]
    noise = [deviation(own.mechanism) * own.take.scale_of(tally) for tally in tallies for own in [margins.find(tally)]]
    return [*noise, *map(deviation, _choices(planned))]


def _choices(planned: Plan) -> list[Mechanism]:
    return [planned.margins.find_choice(part.choice).mechanism for part in planned.parts if part.choice is not None]


def together(
    questions: Sequence[Question],
    policy: Policy,
    *,
    epsilon: Real,
    delta: Real | None = None,
    payer: Payer | None = None,
    ways: Sequence[ChosenWay] | None = None,
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
    payer = payer or Payer.of(policy.budget)
    terms = PlanTerms(policy=policy, epsilon=asked, delta=slack, payer=payer, ways=take_off_marks(ways))
    if ways is not None:
        grouped = read_marks(ways).is_beside
    shapes = [_shape(one, policy) for one in questions]
    apart = _share(shapes, terms)
    members = [] if grouped is False else _find_members(shapes)
    single = all(shapes[at].aggregate.single for at in members)
    grouping = find_parts([questions[at] for at in members], policy, single=single) if len(members) > 1 else None
    if grouping is None:
        return apart
    try:
        whole_shape = _shape(grouping.question, grouping.policy)
        rest = [shape for at, shape in enumerate(shapes) if at not in members]
        shared = [whole_shape, *rest]
        beside = _show_all(questions, policy, _share(shared, terms), members, grouping.places)
    except QueryError:
        return apart
    if grouped:
        return beside
    if _can_pay(payer, apart) and not _can_pay(payer, beside):
        less = _share(shared, replace(terms, lower=True))
        beside = _show_all(questions, policy, less, members, grouping.places)
    elif _can_pay(payer, beside) and not _can_pay(payer, apart):
        apart = _share(shapes, replace(terms, lower=True))
    return beside if _errs_less(beside, apart, payer) else apart


def _show_all(
    questions: Sequence[Question],
    policy: Policy,
    planned: Sequence[Plan],
    members: Sequence[int],
    places: Sequence[tuple[int, int]],
) -> tuple[Plan, ...]:
    """Return the plan of each of several questions, of which the members are groups of the first plan."""
    whole, *others = planned
    waiting, remaining = iter(others), iter(places)
    shown_all = []
    for at, one in enumerate(questions):
        if at not in members:
            shown_all.append(_mark(next(waiting)))
            continue
        shown = _show_beside(one, policy, whole, list(itertools.islice(remaining, len(one.asked))))
        assert shown.beside is not None
        shown_all.append(replace(shown, beside=replace(shown.beside, shared=at != members[0])))
    return tuple(shown_all)


def _share(shapes: Sequence["_Shape"], terms: PlanTerms) -> tuple[Plan, ...]:
    every = [statistic for shape in shapes for statistic in shape.statistics]
    terms_found = terms.measure(every)
    measured = iter(terms_found.made)
    return tuple(
        _finish(shape, terms, tuple(itertools.islice(measured, len(shape.statistics))), way=terms_found.way)
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
    is_covered: bool = False
    """Whether it is measured what limits drop, of everything of which they can drop something."""


def _shape(question: Question, policy: Policy, most_cells: int | None = None, covers: Covers = Covers.NOISE) -> _Shape:
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
    if covers is Covers.DROPPED:
        pairs = zip(question.asked, parts, strict=True)
        parts = tuple(collector.add_dropped(part) if asked.function.covers_dropped else part for asked, part in pairs)
    aggregate = Aggregate(
        input=question.relation,
        groups=question.groups,
        tallies=tuple(collector.tallies),
        histograms=tuple(collector.histograms),
        most_groups=most,
        single=single,
        together=shared_out if any(_is_shared_out(tally) for tally in collector.tallies) else None,
    )
    return _Shape(
        question=question,
        aggregate=aggregate,
        parts=parts,
        statistics=collector.statistics,
        cells=cells,
        is_covered=all(map(collector.is_covered, parts)),
    )


def _is_shared_out(tally: Tally) -> bool:
    return tally.a_row is not None and tally.dropped is None


def _together(policy: Policy, groups: int) -> Together | None:
    """Count rows over all groups together where that allows a unit fewer than its groups do one by one."""
    rows, total = policy.limits.rows, policy.limits.max_total_rows
    return None if rows is None or total is None or total >= groups * rows else Together(rows=rows, total=total)


def _calibrate(shape: _Shape, terms: PlanTerms) -> Plan:
    if not any(group.private for group in shape.question.groups):
        means = [part.mean for part in shape.parts if part.mean is not None]
        found = terms.measure(shape.statistics, means=means, aggregate=shape.aggregate)
        return _finish(shape, terms, found.made, way=found.way)
    selection, measured, way = _select(shape, terms)
    weighted = replace(shape, aggregate=replace(shape.aggregate, weight_bits=selection.weight_bits))
    return replace(_finish(weighted, terms, measured, way=way), selection=selection)


def _finish(shape: _Shape, terms: PlanTerms, measurements: Measured, *, way: ChosenWay) -> Plan:
    marks = WayMarks(share=terms.share) if any(part.dropped for part in shape.parts) else WayMarks()
    return Plan(
        question=shape.question,
        policy=terms.policy,
        epsilon=terms.epsilon,
        delta=terms.delta,
        aggregate=shape.aggregate,
        parts=shape.parts,
        measurements=measurements,
        cells=shape.cells,
        is_covered=shape.is_covered,
        ways=() if way[0] == BEFORE else put_marks([way], marks),
    )


def _select(shape: _Shape, terms: PlanTerms) -> tuple[Selection, Measured, ChosenWay]:
    """Plan how keys are selected, and how everything is measured that the selection does not tell itself."""
    aggregate = shape.aggregate
    told = reuse_tallies(aggregate.groups, aggregate.tallies)
    others = [one for one in shape.statistics if not any(tally in told for tally in one.tells)]
    (mechanism, rest), way = terms.select(others, keys_per_unit=aggregate.most_groups, counts=bool(told))
    return Selection.of_keys(KeyCounts(told=told, mechanism=mechanism)), pair(others, rest), way


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
