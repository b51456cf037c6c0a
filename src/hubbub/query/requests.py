"""Requests that an engine answers: everything that leaves one is the sealed result of one of these."""

from dataclasses import dataclass

from hubbub.query.expression import Expression
from hubbub.query.ops import Aggregate, Relation
from hubbub.query.totals import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallies:
    """Every tally and histogram of an aggregate, for every group: a ``Counted``."""

    aggregate: Aggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseCells:
    """The one tally of an aggregate with very many groups, as an array of all of them."""

    aggregate: Aggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseCells:
    """The same where there are more groups than anybody lists: those that have rows, with their numbers."""

    aggregate: Aggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRows:
    """Rows themselves, dealt out to blocks by their units: for a sandbox alone."""

    relation: Relation
    columns: tuple[tuple[str, Expression], ...]
    blocks: int


Request = Tallies | DenseCells | SparseCells | Totals | BlockRows
