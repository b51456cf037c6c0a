"""From a question to what will be measured: tallies, their mechanisms, and the price. Public facts alone decide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import MayOverflow, MissingBounds, TooHeavy
from hubbub.mechanisms import Gaussian, Geometric, Mechanism
from hubbub.noise.discrete import MOST_SCALE
from hubbub.parameters import Real, between, positive
from hubbub.policy.grid import default_grid, outward
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Column, Policy
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.event import Event
from hubbub.privacy.filter import Charge, whole_units_rounded_down
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Norm, Sensitivity
from hubbub.query.bounds import Interval, bounds_of
from hubbub.query.expression import Column as Named
from hubbub.query.expression import Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Aggregate, Filter, JoinPublic, Measure, Project, Relation, Scan, Tally
from hubbub.query.question import Aggregation, Asked, Question
from hubbub.query.scalars import as_real

_SPREADS = frozenset({Aggregation.VAR_POP, Aggregation.VAR_SAMP, Aggregation.STDDEV_POP, Aggregation.STDDEV_SAMP})


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one aggregate of the question is made of: places of tallies, and the interval of its values."""

    count: int | None = None
    total: int | None = None
    squares: int | None = None
    bounds: Interval | None = None


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
    """One for each tally."""
    cells: int
    """How many groups there are."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What will be drawn, a tally after the other."""
        return tuple(mechanism.event for mechanism in self.mechanisms)

    @property
    def cost(self) -> Charge:
        """What the account will be charged."""
        parts = [self.policy.budget.filter.charge_of(event) for event in self.events]
        return Charge(loss=sum(part.loss for part in parts), failure=sum(part.failure for part in parts))

    def sensitivity(self, place: int) -> Sensitivity:
        """How far one unit can move a tally's vector."""
        return _sensitivity(self.aggregate, self.aggregate.tallies[place], self.policy)


def plan(question: Question, policy: Policy, *, epsilon: Real, delta: Real | None = None) -> Plan:
    """Tallies that are enough for all aggregates, each once, and the least noise for (ε, δ) over all of them."""
    asked = whole_units_rounded_down(positive("epsilon", epsilon))
    slack = policy.budget.delta / 100 if delta is None else between("delta", delta, 0, 1, high_open=True)
    cells = math.prod(len(group.values) for group in question.groups)
    if cells > policy.limits.max_cells:
        raise TooHeavy(f"The answer would have {cells:,} groups; the limit is {policy.limits.max_cells:,}.")
    tallies: list[Tally] = []
    parts = tuple(_part(one, question, policy, tallies) for one in question.asked)
    single = one_row_a_unit(question.relation, policy)
    most = min(policy.limits.max_groups, max(1, cells)) if question.groups and not single else 1
    aggregate = Aggregate(
        input=question.relation, groups=question.groups, tallies=tuple(tallies), most_groups=most, single=single
    )
    sensitivities = [_sensitivity(aggregate, tally, policy) for tally in tallies]
    return Plan(
        question=question,
        policy=policy,
        epsilon=asked,
        delta=slack,
        aggregate=aggregate,
        parts=parts,
        mechanisms=_calibrated(sensitivities, policy, asked, slack),
        cells=cells,
    )


def one_row_a_unit(relation: Relation, policy: Policy) -> bool:
    """Whether no unit can have two rows: the owner's check saw one in the table, and no join makes it more."""
    match relation:
        case Scan(table=table):
            return table in policy.enforced
        case Filter(input=below) | Project(input=below):
            return one_row_a_unit(below, policy)
        case JoinPublic(input=below, most=most):
            return most <= 1 and one_row_a_unit(below, policy)


def _sensitivity(aggregate: Aggregate, tally: Tally, policy: Policy) -> Sensitivity:
    """How far one unit moves a tally's vector.

    Replacing a unit takes one away and adds another: in twice the groups, or, in groups that both are in, from the
    least that one can add to the most that the other can, which is further than either alone where signs differ.
    """
    groups, most = aggregate.most_groups, Fraction(tally.linf)
    if policy.budget.neighbors is not Neighbors.REPLACE_ONE:
        return Sensitivity(l0=groups, linf=most)
    width = Fraction(max(tally.bounds[1], 0) - min(tally.bounds[0], 0))
    return Sensitivity(l0=2 * groups, l1=2 * groups * most, l2_squared=groups * max(width**2, 2 * most**2), linf=width)


def _part(asked: Asked, question: Question, policy: Policy, tallies: list[Tally]) -> Part:
    def place(tally: Tally) -> int:
        if tally not in tallies:
            tallies.append(tally)
        return tallies.index(tally)

    if asked.function is Aggregation.UNITS:
        return Part(count=place(Tally(measure=Measure.UNITS, argument=None)))
    rows = 1 if one_row_a_unit(question.relation, policy) else _most_rows(policy)
    argument = asked.argument
    counted = argument if argument is not None and argument.kind.nullable else None
    count = Tally(measure=Measure.ROWS, argument=counted, bounds=(0, rows))
    if asked.function in {Aggregation.ROWS, Aggregation.VALUES} or argument is None:
        return Part(count=place(count))
    bounds = bounds_of(argument, lambda name: _declared(question, policy, name))
    if asked.function is Aggregation.SUM:
        return Part(total=place(_total(argument, bounds, policy, question, rows, centred=False)), bounds=bounds)
    total = place(_total(argument, bounds, policy, question, rows, centred=True))
    squares = place(_squares(argument, bounds, rows)) if asked.function in _SPREADS else None
    return Part(count=place(count), total=total, squares=squares, bounds=bounds)


def _most_rows(policy: Policy) -> int:
    if policy.limits.max_rows is None:
        raise MissingBounds(
            "How many rows of one unit count in one group was not declared. Let the owner declare max_rows, or ask for "
            "COUNT(DISTINCT unit)."
        )
    return policy.limits.max_rows


def _column(question: Question, policy: Policy, name: str) -> Column | None:
    table, column = question.columns.get(name, ("", ""))
    return policy.tables[table].column(column) if table else None


def _declared(question: Question, policy: Policy, name: str) -> Interval | None:
    column = _column(question, policy, name)
    return None if column is None else column.clamp


def _grid(argument: Expression, bounds: Interval, policy: Policy, question: Question) -> Fraction:
    if argument.kind.type is Type.INTEGER:
        return Fraction(1)
    column = _column(question, policy, argument.name) if isinstance(argument, Named) else None
    return default_grid(bounds) if column is None or column.step is None else column.step


def _total(
    argument: Expression, bounds: Interval, policy: Policy, question: Question, rows: int, *, centred: bool
) -> Tally:
    """Steps of the grid from 0, or from the middle, where one row moves the sum by half as much."""
    grid = _grid(argument, bounds, policy, question)
    bounds = outward(bounds, grid)
    origin = round((bounds[0] + bounds[1]) / 2 / grid) * grid if centred else Fraction(0)
    return _tally(argument, bounds, origin, grid, rows, proportioned=centred)


def _squares(argument: Expression, bounds: Interval, rows: int) -> Tally:
    """The squares of the distances from the middle of the bounds, counted from the middle of their own range."""
    low, high, middle = (literal(float(one)) for one in (*bounds, (bounds[0] + bounds[1]) / 2))
    clamped = call("greatest", call("least", as_real(argument), high), low)
    distance = call("subtract", clamped, middle)
    most = ((bounds[1] - bounds[0]) / 2) ** 2
    grid = default_grid((Fraction(0), most))
    within = outward((Fraction(0), most), grid)
    origin = round(most / 2 / grid) * grid
    return _tally(call("multiply", distance, distance), within, origin, grid, rows, proportioned=True)


def _tally(
    argument: Expression, bounds: Interval, origin: Fraction, grid: Fraction, rows: int, *, proportioned: bool
) -> Tally:
    """A sum by itself is clamped for each unit; one that is divided by a count is cut in proportion to its rows."""
    low, high = (round((end - origin) / grid) for end in bounds)
    return Tally(
        measure=Measure.TOTAL,
        argument=argument,
        clamp=bounds,
        origin=origin,
        grid=grid,
        bounds=(min(low, 0, low * rows), max(high, 0, high * rows)),
        most_rows=rows if proportioned else None,
    )


def _calibrated(
    sensitivities: Sequence[Sensitivity], policy: Policy, epsilon: Fraction, delta: Fraction
) -> tuple[Mechanism, ...]:
    """Laplace with an equal share of ε each, or Gaussian with an equal share of ρ, whichever errs less over all."""
    many, neighbors = len(sensitivities), policy.budget.neighbors
    share = whole_units_rounded_down(epsilon / many)
    if any(_in(one, Norm.L1) > share * MOST_SCALE for one in sensitivities):
        raise MayOverflow(
            "What one unit may add is more than 2^60 times this ε. Bound the values more tightly, or let the owner "
            "declare a coarser grid."
        )
    geometric: list[Mechanism] = [
        Geometric(epsilon=share, sensitivity=_in(one, Norm.L1), neighbors=neighbors) for one in sensitivities
    ]
    if policy.budget.delta == 0 or delta == 0:
        return tuple(geometric)
    if many == 1:
        (only,) = sensitivities
        gaussian: list[Mechanism] = [
            Gaussian.at(epsilon=epsilon, delta=delta, sensitivity=_in(only, Norm.L1), neighbors=neighbors)
            if only.l0 == 1
            else Gaussian.at(epsilon=epsilon, delta=delta, coordinates=_in(only, Norm.L2), neighbors=neighbors)
        ]
    else:
        rho = rho_rounded_down(epsilon, delta) / many
        gaussian = [
            Gaussian.at_rho(rho=rho, sensitivity_squared=_in(one, Norm.L2), neighbors=neighbors)
            for one in sensitivities
        ]
    ratios = [_deviation(new) / _deviation(old) for new, old in zip(gaussian, geometric, strict=True)]
    return tuple(gaussian if math.prod(ratios) < 1 else geometric)


def _in(sensitivity: Sensitivity, norm: Norm) -> int:
    """A sensitivity in steps (squared for L2): whole, since every tally's is."""
    found = sensitivity.in_norm(norm)
    assert found is not None
    return math.ceil(found)


def _deviation(mechanism: Mechanism) -> float:
    return float(getattr(mechanism, "standard_deviation"))  # noqa: B009
