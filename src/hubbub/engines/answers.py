"""What engines that run statements have in common: answers as text, read back, and statements that rest on no fact."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any, TypeVar

from hubbub.engines.lower import blocks, cells, histogram, totals
from hubbub.engines.lower import private_keys as keyed
from hubbub.engines.lower.aggregate import aggregate as lowered
from hubbub.engines.lower.relations import Origins
from hubbub.engines.nodes.queries import Lowered
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Table
from hubbub.query.expression import Value
from hubbub.query.ops import Aggregate, Cap, ExactCounts, Relation, Scan, below
from hubbub.query.requests import BlockRows, DenseCells, Request, SparseCells, Tallies
from hubbub.query.totals import Totals

Op = TypeVar("Op", Aggregate, Totals)


def make_decoder(aggregate: Aggregate) -> Callable[[Aggregate, list[list[Any]]], ExactCounts]:
    """Return what makes exact numbers of the rows of an answer, for every combination of public keys."""
    keys = tuple(itertools.product(*(group.values for group in aggregate.groups)))

    def decode(op: Aggregate, rows: list[list[Any]]) -> ExactCounts:
        if keyed.is_private(op):
            return keyed.read_counts(op, rows, read_text)
        return histogram.read_counts(op, keys, rows)

    return decode


def lower_request(request: Request, tables: Mapping[str, Table], origins: Origins) -> Lowered:
    """Return the statement of a request as nodes, for an owner who wants to read it."""
    match request:
        case Tallies(aggregate=aggregate):
            return lowered(aggregate, tables, origins)
        case DenseCells(aggregate=aggregate) | SparseCells(aggregate=aggregate):
            return cells.statement(aggregate, tables, origins)
        case Totals():
            return totals.statement(request, tables, origins)
        case BlockRows(relation=relation, columns=columns, blocks=many):
            return blocks.statement(relation, columns, tables, origins, blocks=many)


def relation_of(request: Request) -> Relation:
    """Return the rows that a request is about."""
    match request:
        case Totals(input=rows):
            return rows
        case BlockRows(relation=rows):
            return rows
    return request.aggregate.input


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
