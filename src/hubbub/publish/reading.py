"""From axes to a question over one private table: expressions are read as SQL, and groups made of them.

A group's values are listed to the engine one by one. An axis with very many whole numbers or bins becomes two groups,
its place divided into blocks and the place within a block, so that a domain of ten million cells lists a few thousand
values. Rows outside the domain are left out before a unit's cells are chosen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.errors import NotAllowed, ParameterError, TooHeavy, TypeMisfit
from hubbub.policy.kinds import Type
from hubbub.publish.domain import Axis, Bins, Domain
from hubbub.publish.layer import Array
from hubbub.publish.records import Weighted
from hubbub.query.expression import Expression, literal
from hubbub.query.functions import call
from hubbub.query.keys import MOST_VALUES
from hubbub.query.ops import Filter, Group, Relation
from hubbub.query.question import Aggregation, Asked, Question
from hubbub.query.scalars import as_real
from hubbub.query.scope import Catalogue
from hubbub.query.sql import question
from hubbub.query.terms import quoted

_BLOCK = 4096
"""The most places of an axis that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The question, and how its groups become the domain's cells."""

    domain: Domain
    question: Question
    lengths: tuple[int, ...]
    """Of each axis, with what the last block has too much."""

    @property
    def padded(self) -> int:
        """How many groups the question has."""
        return math.prod(self.lengths)

    def weighted(self, places: Sequence[Array], counts: Array) -> Weighted:
        """The combinations that have rows, by the codes of the axes, out of their places in the groups."""
        columns, left = [], list(zip(self.question.groups, places, strict=True))
        for length in self.lengths:
            first, column = left.pop(0)
            many = len(first.values)
            while many < length:
                inner, place = left.pop(0)
                column = column.astype(np.int64) * len(inner.values) + place
                many *= len(inner.values)
            columns.append(column)
        return Weighted(columns, counts, self.domain.shape)

    def cells(self, counts: Array) -> Array:
        """The cells of the domain, out of the groups' numbers in the order of their codes."""
        inside = tuple(slice(0, length) for length in self.domain.shape)
        return np.ascontiguousarray(counts.reshape(self.lengths)[inside])


def laid_out(domain: Domain, table: str, where: str | None, catalogue: Catalogue) -> Layout:
    """The question that counts the rows of every cell."""
    expressions, read = _read(domain, table, where, catalogue)
    relation, groups, lengths = read.relation, [], []
    for axis, expression in zip(domain.axes, expressions, strict=True):
        relation, own = _grouped(axis, expression, relation)
        groups += own
        lengths.append(math.prod(len(group.values) for group in own))
    names = ", ".join(f"{axis.name} ({len(axis.labels):,})" for axis in domain.axes)
    return Layout(
        domain=domain,
        question=Question(
            text=f"OVER {names} OF {read.text} /* cells {domain.fingerprint} */",
            relation=relation,
            groups=tuple(groups),
            asked=(Asked(function=Aggregation.ROWS, argument=None, text="count(*)"),),
            outputs=(),
            columns=read.columns,
        ),
        lengths=tuple(lengths),
    )


def _read(domain: Domain, table: str, where: str | None, catalogue: Catalogue) -> tuple[list[Expression], Question]:
    """What each axis is, by a question that looks at all of them; a name is a column, or else an expression."""
    declared = catalogue.policy.tables[table]
    written = [quoted(axis.name) if declared.column(axis.name) else axis.name for axis in domain.axes]
    found: list[Expression] = []
    read: Question | None = None
    condition = "" if where is None else f" WHERE ({where})"
    for one in written:
        alone = question(f"SELECT count({one}) FROM {quoted(table)}{condition}", catalogue)
        _only(alone, one)
        argument = alone.asked[0].argument
        assert argument is not None
        found.append(argument)
    read = question(
        f"SELECT {', '.join(f'count({one})' for one in written)} FROM {quoted(table)}{condition}", catalogue
    )
    return found, read


def _only(read: Question, written: str) -> None:
    """Nothing but what was meant may stand in an axis or a condition."""
    more = read.groups or read.sets or read.having or read.order or read.limit is not None or read.offset
    if more or len(read.asked) != 1:
        raise NotAllowed("where= is one condition, and an axis one expression.")
    if read.asked[0].function is not Aggregation.VALUES or read.asked[0].argument is None:
        raise NotAllowed(f"An axis is a column or an expression of columns; {written} is not.")


def _grouped(axis: Axis, expression: Expression, relation: Relation) -> tuple[Relation, list[Group]]:
    """The groups of an axis, and the rows that lie on it."""
    labels, type_ = axis.labels, expression.kind.type
    if isinstance(labels, Bins):
        if type_ not in {Type.REAL, Type.INTEGER}:
            raise TypeMisfit(f"{axis.name} holds {type_} values, and bins are for numbers.")
        value = as_real(expression)
        ends = ("ge", "lt"), (literal(labels.edge(0)), literal(labels.edge(len(labels))))
        relation = _filtered(relation, [call(how, value, end) for how, end in zip(*ends, strict=True)])
        steps = call("divide", call("subtract", value, literal(labels.edge(0))), literal(float(labels.width)))
        place = call("least", call("floor", steps), literal(len(labels) - 1))
        return relation, _blocks(axis.name, place, len(labels))
    if type_ is Type.REAL:
        raise TypeMisfit(f"{axis.name} holds reals. Say bins for it: publish.bins(low, high, steps).")
    if len(labels) > _BLOCK and isinstance(labels, range) and labels.step == 1 and type_ is Type.INTEGER:
        ends = ("ge", "le"), (literal(labels[0]), literal(labels[-1]))
        relation = _filtered(relation, [call(how, expression, end) for how, end in zip(*ends, strict=True)])
        return relation, _blocks(axis.name, call("subtract", expression, literal(labels[0])), len(labels))
    if len(labels) > MOST_VALUES:
        raise TooHeavy(f"{axis.name} has {len(labels):,} values. List at most {MOST_VALUES:,}, or use a range.")
    _check(axis, type_)
    return relation, [Group(name=axis.name, expression=expression, values=tuple(labels))]


def _check(axis: Axis, type_: Type) -> None:
    whole = {Type.INTEGER: int, Type.TEXT: str, Type.BOOLEAN: bool}.get(type_)
    wrong: Sequence[Any] = [] if whole is None else [one for one in axis.labels if type(one) not in (whole, type(None))]
    if wrong:
        raise ParameterError(f"values of {axis.name}", f"of type {type_}", wrong[0])


def _filtered(relation: Relation, conditions: list[Expression]) -> Relation:
    return Filter(input=relation, condition=call("and", *conditions))


def _blocks(name: str, place: Expression, many: int) -> list[Group]:
    """Places from 0 on as groups: by themselves where they are few, else in blocks of one length."""
    if many <= _BLOCK:
        return [Group(name=name, expression=place, values=tuple(range(many)))]
    blocks = math.ceil(many / _BLOCK)
    length = math.ceil(many / blocks)
    return [
        Group(name=f"{name}, blocks", expression=call("quotient", place, literal(length)), values=tuple(range(blocks))),
        Group(
            name=f"{name}, places", expression=call("remainder", place, literal(length)), values=tuple(range(length))
        ),
    ]
