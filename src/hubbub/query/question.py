"""A question that was read: what is asked of which rows, and what is made of the noisy numbers afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hubbub.query.expression import Expression
from hubbub.query.ops import Group, Relation


class Aggregation(StrEnum):
    """What can be asked of a group."""

    ROWS = "count(*)"
    VALUES = "count"
    UNITS = "count distinct units"
    SUM = "sum"
    AVG = "avg"
    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"


COUNTS = frozenset({Aggregation.ROWS, Aggregation.VALUES, Aggregation.UNITS})
"""The aggregations that need no values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One aggregate of the question."""

    function: Aggregation
    argument: Expression | None
    """What is counted or added up; None for rows and units."""
    text: str
    """As the question writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One column of the answer, over ``key 0``, ``key 1``, … and ``noisy 0``, ``noisy 1``, …"""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How the answer is sorted; ties stay in the order of the public keys."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One grouping of one private relation. Everything after the aggregates is post-processing."""

    text: str
    """Canonical: the same question always reads the same."""
    relation: Relation
    groups: tuple[Group, ...]
    asked: tuple[Asked, ...]
    outputs: tuple[Output, ...]
    columns: Mapping[str, tuple[str, str]]
    """The table and column behind each name in the operations."""
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0


def key_name(place: int) -> str:
    """How an output names a key of the grouping."""
    return f"key {place}"


def noisy_name(place: int) -> str:
    """How an output names a noisy aggregate."""
    return f"noisy {place}"
