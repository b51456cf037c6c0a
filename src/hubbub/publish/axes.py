"""From axes to a question over one private table: expressions are read as SQL, and groups made of them.

A group's values are listed to the engine one by one. Where an axis has very many whole numbers or bins, nobody lists
them: the place of a row is worked out, and rows beyond the range are left out (engines.codes). A text over an alphabet
is one group a letter. Rows outside the domain are left out before a unit's cells are chosen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.errors import ParameterError, TooHeavy, TypeMisfit
from hubbub.policy.kinds import Type
from hubbub.publish.domain import Axis, Bins, Domain
from hubbub.publish.marginals.records import Weighted
from hubbub.publish.strategies.layer import Array
from hubbub.publish.words import Words, len_of
from hubbub.query.aggregates.count import ROWS
from hubbub.query.check.keys import MOST_VALUES
from hubbub.query.expression import Expression, literal
from hubbub.query.frame.columns import quote
from hubbub.query.functions import call
from hubbub.query.ops import Filter, Group, Relation
from hubbub.query.question import Asked, Question
from hubbub.query.read.rows import RowValues, read_values
from hubbub.query.read.scalars import as_real
from hubbub.query.read.scope import Catalogue

_BLOCK = 4096
"""The most places of an axis that are listed one by one."""
_COUNTED = 1 << 62
"""The most places that one group counts: more are two groups, the place divided and the rest."""
_HALF = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The question, and how its groups become the domain's cells."""

    domain: Domain
    question: Question
    groups: tuple[int, ...]
    """How many groups of the question belong to each axis."""

    @property
    def group_count(self) -> int:
        """The number of groups of the question."""
        return math.prod(len(group.values) for group in self.question.groups)

    def places(self, found: Sequence[Array]) -> list[Array]:
        """The place of each row on each axis, out of its places in the groups."""
        columns, left = [], list(zip(self.question.groups, found, strict=True))
        for axis, many in zip(self.domain.axes, self.groups, strict=True):
            own, left = left[:many], left[many:]
            if isinstance(axis.labels, Words):
                columns.append(axis.labels.spelt([column for _, column in own]))
                continue
            column = own[0][1]
            for group, place in own[1:]:
                column = column.astype(np.int64) * len(group.values) + place
            columns.append(column)
        return columns

    def weigh(self, places: Sequence[Array], counts: Array) -> Weighted:
        """The combinations that have rows, by the codes of the axes, out of their places in the groups."""
        return Weighted(self.places(places), counts, self.domain.shape)

    def cells(self, counts: Array) -> Array:
        """The cells of the domain, out of the groups' numbers in the order of their codes."""
        return np.ascontiguousarray(counts.reshape(self.domain.shape))


def lay_out(domain: Domain, table: str, where: str | None, catalogue: Catalogue) -> Layout:
    """The question that counts the rows of every cell."""
    read = _read_axes(domain, table, where, catalogue)
    relation, groups, many = read.relation, list[Group](), []
    for axis, expression in zip(domain.axes, read.values, strict=True):
        relation, own = _group_axis(axis, expression, relation)
        groups += own
        many.append(len(own))
    names = ", ".join(f"{axis.name} ({len_of(axis.labels):,})" for axis in domain.axes)
    return Layout(
        domain=domain,
        question=Question(
            text=f"OVER {names} OF {read.text} /* cells {domain.fingerprint} */",
            relation=relation,
            groups=tuple(groups),
            asked=(Asked(function=ROWS, argument=None, text="count(*)"),),
            outputs=(),
            columns=read.columns,
        ),
        groups=tuple(many),
    )


def _read_axes(domain: Domain, table: str, where: str | None, catalogue: Catalogue) -> RowValues:
    """Read what each axis is; a name is a column, or else an expression."""
    declared = catalogue.policy.tables[table]
    written = [quote(axis.name) if declared.column(axis.name) else axis.name for axis in domain.axes]
    condition = "" if where is None else f" WHERE ({where})"
    return read_values(written, lambda listed: f"SELECT {listed} FROM {quote(table)}{condition}", catalogue)


def _group_axis(axis: Axis, expression: Expression, relation: Relation) -> tuple[Relation, list[Group]]:
    """The groups of an axis, and the rows that lie on it."""
    labels, type_ = axis.labels, expression.kind.type
    if isinstance(labels, Bins):
        if type_ not in {Type.REAL, Type.INTEGER}:
            raise TypeMisfit(f"{axis.name} holds {type_} values, and bins are for numbers.")
        value = as_real(expression)
        ends = ("ge", "lt"), (literal(labels.edge(0)), literal(labels.edge(len(labels))))
        relation = _filter(relation, [call(how, value, end) for how, end in zip(*ends, strict=True)])
        steps = call("divide", call("subtract", value, literal(labels.edge(0))), literal(float(labels.width)))
        place = call("least", call("floor", steps), literal(len(labels) - 1))
        return relation, _place_groups(axis.name, place, len(labels))
    if isinstance(labels, Words):
        return _spelt(axis.name, labels, expression, relation)
    if type_ is Type.REAL:
        raise TypeMisfit(f"{axis.name} holds reals. Say bins for it: publish.bins(low, high, steps).")
    many = len_of(labels)
    if many > _BLOCK and isinstance(labels, range) and labels.step == 1 and type_ is Type.INTEGER:
        ends = ("ge", "le"), (literal(labels.start), literal(labels.stop - 1))
        relation = _filter(relation, [call(how, expression, end) for how, end in zip(*ends, strict=True)])
        return relation, _place_groups(axis.name, call("subtract", expression, literal(labels.start)), many)
    if many > MOST_VALUES:
        raise TooHeavy(f"{axis.name} has {many:,} values. List at most {MOST_VALUES:,}, or use a range.")
    _check(axis, type_)
    return relation, [Group(name=axis.name, expression=expression, values=tuple(labels))]


def _check(axis: Axis, type_: Type) -> None:
    whole = {Type.INTEGER: int, Type.TEXT: str, Type.BOOLEAN: bool}.get(type_)
    wrong: Sequence[Any] = [] if whole is None else [one for one in axis.labels if type(one) not in (whole, type(None))]
    if wrong:
        raise ParameterError(f"values of {axis.name}", f"of type {type_}", wrong[0])


def _filter(relation: Relation, conditions: list[Expression]) -> Relation:
    return Filter(input=relation, condition=call("and", *conditions))


def _place_groups(name: str, place: Expression, many: int) -> list[Group]:
    """Places from 0 on as groups: listed where they are few, which is faster, and else worked out."""
    if many <= _COUNTED:
        return [Group(name=name, expression=place, values=tuple(range(many)) if many <= _BLOCK else range(many))]
    high, low = (call(how, place, literal(_HALF)) for how in ("quotient", "remainder"))
    return [
        Group(name=f"{name}, divided", expression=high, values=range(-(-many // _HALF))),
        Group(name=f"{name}, rest", expression=low, values=range(_HALF)),
    ]


def _spelt(name: str, words: Words, text: Expression, relation: Relation) -> tuple[Relation, list[Group]]:
    """A group a letter; behind the end of a text the letter is empty. Rows with other letters or lengths have none."""
    if text.kind.type is not Type.TEXT:
        raise TypeMisfit(f"{name} holds {text.kind.type} values, and sparse.Words are for texts.")
    ends = ("ge", "le"), (literal(words.lengths[0]), literal(words.length))
    length = call("length", text)
    relation = _filter(relation, [call(how, length, end) for how, end in zip(*ends, strict=True)])
    letters = []
    for place in range(1, words.length + 1):
        values = (*words.alphabet, "") if place > words.lengths[0] else tuple(words.alphabet)
        letter = call("substring", text, literal(place), literal(1))
        letters.append(Group(name=f"{name}, letter {place}", expression=letter, values=values))
    return relation, letters
