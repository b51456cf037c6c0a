"""The effect of limits and bounds, as questions of their own: how many units a plan does not count with all they have.

Each number is one of units: a unit counts in it once, however many of its rows and groups are cut (SOUNDNESS 14). The
rows are those of the question. They are reduced to one row for each unit and group, then to one for each unit, and each
number counts the units whose row fulfils a condition.

Privacy:
    Claim: adding or removing a unit moves each number by at most 1.
    Proof: Reduce makes of each unit's rows one row, a function of that unit's rows alone (query.ops); UNITS counts it
        as 0 or 1. Which numbers there are, and what they are held against, follows from the plan, which is public.
    Needs: query.ops for the relation below; query.plan.together, which makes the noise for all numbers and prices it.
    Ref: SOUNDNESS 10, 14.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from hubbub.errors import NotAllowed
from hubbub.policy.kinds import Type, integer
from hubbub.query.aggregates.count import UNITS
from hubbub.query.answer.unit_rows import MANY, Units, any_of, rows_of
from hubbub.query.check.bounds import Interval, interval_of
from hubbub.query.check.prune import prune
from hubbub.query.check.shape import private
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Cap, Filter, Match, Measure, Reduce, Relation, RelationUnion, Tally, Together, below
from hubbub.query.plan.plan import Plan, one_row_a_unit
from hubbub.query.question import Asked, Output, Question, noisy_name

_NOISY = integer(-(1 << 62), 1 << 62, nullable=False)


class Cut(StrEnum):
    """The kinds of limits and bounds that can drop or clip what a unit has."""

    NOTHING = "nothing"
    """All units of the question: what the others are a share of."""
    GROUPS = "groups"
    ROWS = "rows"
    TOGETHER = "together"
    VALUES = "values"
    BELOW = "below"
    ABOVE = "above"
    SUM = "sum"
    JOIN = "join"


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """One number of units: which they are, and what would let them count with all they have."""

    cut: Cut
    what: str
    remedy: str
    condition: Expression | None
    """Over the one row of each unit; None for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A question that counts units, and what each of its numbers is about."""

    question: Question
    numbers: tuple[Affected, ...]


def diagnostics(plan: Plan) -> tuple[Diagnostic, ...]:
    """All that may be cut off, or NotAllowed where nothing can be. The first number is that of all units."""
    if plan.beside is not None:
        plan = plan.beside.plan
    groups, relation = plan.question.groups, plan.question.relation
    every = tuple(range(len(groups)))
    whole = Units(relation, groups, plan.question.sets or (every,))
    numbers = [
        Affected(cut=Cut.NOTHING, what="all units", remedy="", condition=None),
        *(() if plan.sets else _diagnose_bounds(plan, whole)),
        *_outside((plan.sets or (plan,))[0], whole),
    ]
    made = [_diagnostic(plan, whole.relation, numbers)]
    for one in plan.sets:
        own = one.question.groups
        units = Units(relation, own, (tuple(range(len(own))),))
        bounded = [replace(number, what=f"{number.what} ({_of(one)})") for number in _diagnose_bounds(one, units)]
        made += [_diagnostic(plan, units.relation, bounded)] if bounded else []
    made += _diagnose_caps(plan)
    if sum(len(one.numbers) for one in made) == 1:
        raise NotAllowed("No limit and no bound can cut off anything of this question. Ask it with db.sql.")
    return tuple(made)


# The numbers


def _diagnose_bounds(plan: Plan, units: Units) -> Iterator[Affected]:
    """Groups, rows, different values, sums and averages of one grouping."""
    aggregate = plan.aggregate
    where = " in a group" if aggregate.groups else ""
    most, unlisted = aggregate.most_groups, any(group.private for group in aggregate.groups)
    if not aggregate.single and aggregate.groups and (unlisted or most < plan.cells):
        yield Affected(
            cut=Cut.GROUPS,
            what=f"in more than {_count(most, 'group')}",
            remedy=f"They count in {_count(most, 'group')} each: let max_groups be larger, group more coarsely, or "
            "accept the bias.",
            condition=call("gt", units.groups(), literal(most)),
        )
    for limit, counted in () if aggregate.single else _row_limits(plan):
        yield Affected(
            cut=Cut.ROWS,
            what=f"with more than {_count(limit, 'row')}{where}",
            remedy=f"{_count(limit, 'row')} of theirs count{where}: let max_rows be larger, ask about units instead of "
            "rows, or accept the bias.",
            condition=any_of([call("gt", units.rows(argument), literal(limit)) for argument in counted]),
        )
    if aggregate.together is not None:
        yield _over_groups(aggregate.together, units)
    for tally in aggregate.tallies:
        text = _texts(plan, tally)
        if tally.measure is Measure.DISTINCT and tally.argument is not None:
            if not aggregate.single and tally.bounds[1] < _possible(tally.argument):
                yield _different(text, where, tally.bounds[1], units.different(tally.argument))
        elif tally.measure is Measure.TOTAL and _may_be_beyond(tally, single=aggregate.single):
            yield _beyond(text, where, tally, units)


def _may_be_beyond(tally: Tally, *, single: bool) -> bool:
    """Return whether what a unit adds can be clamped after its values were."""
    rows = 1 if single else tally.most_rows
    if rows is None or tally.clamp is None:
        return True
    if rows > 1:  # a sum that is cut to so many rows has the bounds of so many values
        return False
    ends = [round((end - tally.origin) / tally.grid) for end in tally.clamp]
    return ends[0] < tally.bounds[0] or ends[1] > tally.bounds[1]


def _over_groups(together: Together, units: Units) -> Affected:
    """Units of which more rows than the total would count, if all their groups did."""
    total, rows = _count(together.total, "row"), _count(together.rows, "row")
    return Affected(
        cut=Cut.TOGETHER,
        what=f"with more than {total} over all groups, at most {rows} of each",
        remedy=f"{total} of theirs count over all groups: let max_total_rows be larger, or accept the bias.",
        condition=call("gt", units.count_rows(together.rows), literal(together.total)),
    )


def _different(text: str, where: str, most: int, values: Expression) -> Affected:
    return Affected(
        cut=Cut.VALUES,
        what=f"with more than {_count(most, 'value')}{where} for {text}",
        remedy=f"{_count(most, 'value')} of theirs count{where}: let max_rows be larger, or accept the bias.",
        condition=call("gt", values, literal(most)),
    )


def _beyond(text: str, where: str, tally: Tally, units: Units) -> Affected:
    low, high = (_number(end * tally.grid + tally.origin) for end in tally.bounds)
    added = "a sum" if tally.most_rows is None else "an average"
    return Affected(
        cut=Cut.SUM,
        what=f"with {added} beyond {low} … {high}{where} for {text}",
        remedy="It counts as the end that is nearer: let max_rows be larger, give or declare wider bounds, or accept "
        "the bias.",
        condition=units.beyond(tally),
    )


def _row_limits(plan: Plan) -> list[tuple[int, list[Expression | None]]]:
    """List the limits on a unit's rows with what each counts. The limit of an average goes with its own count."""
    counts = [(one.bounds[1], one.argument) for one in plan.aggregate.tallies if one.measure is Measure.ROWS]
    counts += [(one.most_rows, one.argument) for one in plan.aggregate.histograms]
    found: dict[int, list[Expression | None]] = {}
    for limit, argument in counts:
        counted = argument if argument is not None and argument.kind.nullable else None
        same = found.setdefault(limit, [])
        same += [] if counted in same else [counted]
    return sorted(found.items(), key=lambda one: one[0])


def _outside(plan: Plan, units: Units) -> Iterator[Affected]:
    """Values below and above where they are clamped, once for all aggregates that clamp them there."""
    looked: dict[tuple[Expression, Interval], list[str]] = {}
    for said, clamped in _clamps(plan):
        texts = looked.setdefault(clamped, [])
        texts += [said] if said not in texts else []
    for (argument, (low, high)), texts in looked.items():
        whole = argument.kind.type is Type.INTEGER
        natural = argument.kind.range if whole else interval_of(argument, lambda _: None)
        text = ", ".join(texts)
        ends = (
            (Cut.BELOW, low, natural is None or natural[0] < low),
            (Cut.ABOVE, high, natural is None or natural[1] > high),
        )
        for cut, end, possible in ends:
            if possible:
                yield Affected(
                    cut=cut,
                    what=f"with a value {cut} {_number(end)} for {text}",
                    remedy=f"Such a value counts as {_number(end)}: give or declare wider bounds, or accept the bias.",
                    condition=units.outside(argument, end, below=cut is Cut.BELOW),
                )


def _clamps(plan: Plan) -> Iterator[tuple[str, tuple[Expression, Interval]]]:
    """Yield each clamp: its description, the values that it clamps, and the bounds."""
    for asked, part in zip(plan.question.asked, plan.parts, strict=True):
        for said, argument, ends in asked.function.clamps(asked, part):
            yield said, (argument, ends)


def _diagnose_caps(plan: Plan) -> Iterator[Diagnostic]:
    """Units with more rows than are joined with each other, among those of the question."""
    found: list[Cap] = []
    waiting: list[Relation] = [plan.question.relation]
    while waiting:
        op = waiting.pop()
        waiting.extend(one for one in below(op) if private(one))
        if isinstance(op, Cap) and op not in found and not one_row_a_unit(op.input, plan.policy):
            found.append(op)
    for most in sorted({cap.most for cap in found}):
        many = Column("rows", MANY)
        over = tuple(
            Filter(
                input=Reduce(input=cap.input, keys=(), columns=(rows_of("rows", None),)),
                condition=call("gt", many, literal(most)),
            )
            for cap in found
            if cap.most == most
        )
        units = Reduce(input=plan.question.relation, keys=())
        number = Affected(
            cut=Cut.JOIN,
            what=f"with more than {_count(most, 'row')} before a join",
            remedy=f"{_count(most, 'row')} of theirs are joined: filter before the join, let the owner declare a "
            "larger max_unit_rows, or accept the bias.",
            condition=None,
        )
        matched = Match(input=units, other=over[0] if len(over) == 1 else RelationUnion(inputs=over))
        yield _diagnostic(plan, prune(matched, frozenset()), [number])


# Questions and words


def _diagnostic(plan: Plan, relation: Relation, numbers: Sequence[Affected]) -> Diagnostic:
    """Units of the relation, all or those that fulfil a condition."""
    asked = tuple(
        Asked(
            function=UNITS,
            argument=None
            if one.condition is None
            else call("case", one.condition, literal(True), literal(None, Type.BOOLEAN)),
            text=one.what,
        )
        for one in numbers
    )
    outputs = tuple(
        Output(name=one.what, expression=Column(noisy_name(place), _NOISY)) for place, one in enumerate(numbers)
    )
    question = Question(
        text=f"diagnose {plan.question.identity}",
        relation=relation,
        groups=(),
        asked=asked,
        outputs=outputs,
        columns={},
    )
    return Diagnostic(question=question, numbers=tuple(numbers))


def _texts(plan: Plan, tally: Tally) -> str:
    """Name the aggregates that a tally is for."""
    pairs = zip(plan.question.asked, plan.parts, strict=True)
    return ", ".join(dict.fromkeys(asked.text for asked, part in pairs if tally in part.tallies))


def _of(one: Plan) -> str:
    names = [group.name for group in one.question.groups]
    return f"by {', '.join(names)}" if names else "all rows together"


def _possible(argument: Expression) -> int | float:
    """Count the different values that are possible at all."""
    if argument.kind.type is Type.BOOLEAN:
        return 2
    if argument.kind.type is Type.INTEGER:
        return argument.kind.range[1] - argument.kind.range[0] + 1
    return math.inf


def _count(many: int, noun: str) -> str:
    return f"{many:,} {noun}{'' if many == 1 else 's'}"


def _number(value: Fraction) -> str:
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.6g}"
