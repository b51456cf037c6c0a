"""Facts that a question lacks and that would have to be bought for it. The question and the policy alone decide.

Bounds are about values, whatever rows the question keeps, so that one fact serves many questions. Limits and totals are
about its own rows and groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from hubbub.policy.kinds import Kind, Type, integer
from hubbub.policy.tables import Policy
from hubbub.query.check.bounds import Interval, interval_of
from hubbub.query.check.prune import prune
from hubbub.query.check.shape import private, shape
from hubbub.query.expression import Column, Expression, columns_of, literal
from hubbub.query.functions import call
from hubbub.query.missing.bought import LIMITS, REALS, VALUE, WHOLE, Lacking, WantedFact
from hubbub.query.ops import (
    Cap,
    Filter,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Reduce,
    Reduced,
    Reduction,
    Relation,
    Window,
)
from hubbub.query.plan.plan import one_row_a_unit
from hubbub.query.question import Asked, Question
from hubbub.query.read.scalars import as_real

_MOST_LISTED = 256
_MOST_ROWS = integer(1, 1 << 40, nullable=False)
_FARTHEST = Fraction(1 << 43)
"""Beyond all edges: where values are clamped that are added up before any bounds are known."""
_FINEST = Fraction(1, 1 << 19)
"""The steps of reals there: one value is at most 2^62 of them, and less than half a step is nothing."""


def lacking(question: Question, policy: Policy) -> tuple[WantedFact, ...]:
    """All that the question needs and nobody declared, if the owner lets it be bought.

    Sums alone need no limit of rows, but bounds of what a unit adds with all of them: one fact in place of two.
    """
    if not policy.limits.buy:
        return ()
    if one_row_a_unit(question.relation, policy):
        return tuple(_bounds(question, policy))
    relation = _relation_of_groups(question)
    keys = tuple((f"key {place}", group.expression) for place, group in enumerate(question.groups))
    by = () if question.sets else keys
    of_rows = [one for one in question.asked if one.function.counts_rows and one.per_group is None]
    unlimited = policy.limits.max_rows is None
    alone = policy.limits.max_total_rows is None and all(_adds_unbounded(one, question) for one in of_rows)
    if of_rows and unlimited and alone:
        found = _totals(of_rows, relation, by)
    else:
        found = _bounds(question, policy)
        if of_rows and unlimited:
            found.append(_limit(Lacking.ROWS, Reduce(input=relation, keys=by, columns=(_many(VALUE),))))
    if keys and policy.limits.max_groups is None:
        groups = Reduce(input=relation, keys=keys)
        found.append(_limit(Lacking.GROUPS, Reduce(input=groups, keys=(), columns=(_many(VALUE),))))
    return tuple(found)


def _relation_of_groups(question: Question) -> Relation:
    """The rows in groups that are shown, where these are few enough to be asked for."""
    relation = question.relation
    for group in question.groups:
        if group.private or question.sets or len(group.values) > _MOST_LISTED:
            continue
        key, there = group.expression, [literal(value) for value in group.values if value is not None]
        kept = [call("in", key, *there)] if there else []
        kept += [call("is_null", key)] if len(there) < len(group.values) else []
        if kept:
            relation = Filter(input=relation, condition=kept[0] if len(kept) == 1 else call("or", *kept))
    return relation


def _many(name: str) -> Reduced:
    return Reduced(name=name, reduction=Reduction.ROWS, argument=None, kind=_MOST_ROWS)


def _limit(what: Lacking, counted: Reduce) -> WantedFact:
    """Return the fact of a limit: a unit's rows in a group that it is in, one group of each; or its groups."""
    text = "rows of a unit in a group" if what is Lacking.ROWS else "groups of a unit"
    relation = prune(counted, frozenset({VALUE, *(name for name, _ in counted.keys)}))
    return WantedFact(lacking=what, text=text, relation=relation, edges=LIMITS, single=not counted.keys)


def _adds_unbounded(asked: Asked, question: Question) -> bool:
    """Return whether the aggregate is a sum of values without bounds."""
    return asked.function.is_total and asked.per_row is None and _lacks_bounds(_summand_of(asked), question)


def _summand_of(asked: Asked) -> Expression:
    assert asked.argument is not None
    return asked.argument


def _lacks_bounds(argument: Expression, question: Question) -> bool:
    def declared_bounds(name: str) -> Interval | None:
        facts = question.columns.get(name)
        return None if facts is None else facts.bounds

    known = interval_of(argument, declared_bounds) is not None or not columns_of(argument)
    return not known and argument.kind.type in {Type.INTEGER, Type.REAL}


def _totals(sums: Sequence[Asked], rows: Relation, keys: tuple[tuple[str, Expression], ...]) -> list[WantedFact]:
    """Of each sum, what a unit adds to a group that it is in, one group of each."""
    found: dict[Expression, WantedFact] = {}
    for asked in sums:
        argument = _summand_of(asked)
        whole = argument.kind.type is Type.INTEGER
        total = Reduced(
            name=VALUE,
            reduction=Reduction.TOTAL,
            argument=argument,
            kind=Kind(type=Type.REAL),
            clamp=(-_FARTHEST, _FARTHEST),
            grid=Fraction(1) if whole else _FINEST,
        )
        counted = Reduce(input=rows, keys=keys, columns=(total,))
        found[argument] = WantedFact(
            lacking=Lacking.TOTALS,
            text=f"bounds for a unit's {asked.text}",
            relation=prune(counted, frozenset({VALUE, *(name for name, _ in keys)})),
            edges=WHOLE if whole else REALS,
            single=not keys,
            arguments=(argument,),
        )
    return list(found.values())


def _bounds(question: Question, policy: Policy) -> list[WantedFact]:
    found: dict[Relation, WantedFact] = {}
    for asked in question.asked:
        if not asked.function.buys_bounds or asked.per_group or asked.per_row:
            continue
        for argument in asked.arguments:
            if not _lacks_bounds(argument, question):
                continue
            relation, value = behind(question.relation, argument)
            named = Project(input=relation, columns=((VALUE, make_real(value)),))
            rows = prune(named, frozenset({VALUE}))
            if rows not in found:
                found[rows] = WantedFact(
                    lacking=Lacking.BOUNDS,
                    text=f"bounds for {asked.text}",
                    relation=rows,
                    edges=WHOLE if argument.kind.type is Type.INTEGER else REALS,
                    single=one_row_a_unit(rows, policy),
                )
            if argument not in found[rows].arguments:
                found[rows] = replace(found[rows], arguments=(*found[rows].arguments, argument))
    return list(found.values())


def make_real(value: Expression) -> Expression:
    """As a real; of integers with more than 64 bits, what is beyond all edges is cut off first."""
    if value.kind.type is Type.INTEGER and value.kind.wide:
        most = int(WHOLE[-1]) * 2
        value = call("least", call("greatest", value, literal(-most)), literal(most))
    return as_real(value)


def behind(relation: Relation, value: Expression) -> tuple[Relation, Expression]:
    """The fewest operations that make a value: which rows a question keeps does not matter for where values lie."""
    match relation:
        case Filter(input=rows) | Cap(input=rows):
            return behind(rows, value)
        case Project(input=rows, columns=columns):
            made = _put(value, dict(columns))
            return (relation, value) if made is None else behind(rows, made)
        case JoinPublic(input=rows) | Match(input=rows) | Window(input=rows) if columns_of(value) <= shape(rows).keys():
            return behind(rows, value)
        case JoinOwn(input=rows, other=other):
            for side in (rows, other):
                if columns_of(value) <= shape(side).keys() and private(side):
                    return behind(side, value)
            return relation, value
        case _:
            return relation, value


def _put(value: Expression, made: Mapping[str, Expression]) -> Expression | None:
    """A column of a projection as what it is made of; longer expressions stay where they are."""
    return made.get(value.name) if isinstance(value, Column) else None
