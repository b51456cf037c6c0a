"""What engines that run statements have in common: answers as text, read back, and statements that rest on no fact."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from typing import Any, TypeVar

from hubbub.engines.lower import histogram
from hubbub.engines.lower import private_keys as keyed
from hubbub.policy.kinds import Type
from hubbub.query.expression import Value
from hubbub.query.ops import Aggregate, Cap, ExactCounts, Relation, Scan, below
from hubbub.query.totals import Totals

Op = TypeVar("Op", Aggregate, Totals)


def make_decoder(aggregate: Aggregate) -> Callable[[Aggregate, list[list[Any]]], ExactCounts]:
    """Return what makes exact numbers of the rows of an answer, for every combination of public keys."""
    cells = tuple(itertools.product(*(group.values for group in aggregate.groups)))

    def decode(op: Aggregate, rows: list[list[Any]]) -> ExactCounts:
        if keyed.is_private(op):
            return keyed.read_counts(op, rows, read_text)
        return histogram.read_counts(op, cells, rows)

    return decode


def doubt_facts(op: Op) -> Op:
    """Return the same operation for rows of which nothing is known, bounded to what was assumed of them.

    An aggregate bounds its units itself. The values of totals were written for rows that need no weight, so that they
    get no more rows of a unit than that instead.
    """
    if isinstance(op, Totals):
        return replace(op, input=Cap(input=op.input, most=op.most))
    return replace(op, single=False)


def tables_of(op: Relation) -> set[str]:
    """Return the names of the tables that a relation is read from, those of paths among them."""
    if isinstance(op, Scan):
        return {op.table, *(step.table for step in op.path)}
    return {table for one in below(op) for table in tables_of(one)}


def read_text(shown: str, type_: Type) -> Value:
    """A value out of the engine's text for it."""
    match type_:
        case Type.BOOLEAN:
            return shown == "true"
        case Type.INTEGER:
            return int(shown)
        case Type.REAL:
            return float(shown)
        case Type.DATE:
            return date.fromisoformat(shown)
        case Type.TIMESTAMP:
            return datetime.fromisoformat(shown)
        case Type.TEXT:
            return shown
