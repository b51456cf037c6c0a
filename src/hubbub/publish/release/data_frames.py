"""A release cell by cell, for data frames: labels, value, deviation."""

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.policy.kinds import Type
from hubbub.query.answer.columns import Shown, make_column
from hubbub.query.answer.columns import to_arrow as arrow
from hubbub.query.answer.columns import to_pandas as pandas
from hubbub.query.answer.columns import to_polars as polars

if TYPE_CHECKING:
    from hubbub.publish.release.published import Published

VALUE, DEVIATION = "value", "deviation"


def columns(published: "Published") -> list[tuple[str, Type, list[Any]]]:
    """The axes, then the value of each cell and its standard deviation: names, types and cells."""
    domain = published.domain
    shape = domain.shape
    found: list[tuple[str, Type, list[Any]]] = []
    for place, axis in enumerate(domain.axes):
        labels = list(axis.labels)
        inside, outside = int(np.prod(shape[place + 1 :])), int(np.prod(shape[:place]))
        spread = [label for label in labels for _ in range(inside)] * outside
        found.append((axis.name, type_of(labels), spread))
    taken = {axis.name for axis in domain.axes}
    deviations = published.deviations
    number = [None] * domain.size if deviations is None else deviations.reshape(-1).tolist()
    found.append((free(VALUE, taken), Type.REAL, published.cells.reshape(-1).tolist()))
    found.append((free(DEVIATION, taken), Type.REAL, number))
    return found


def free(name: str, taken: set[str]) -> str:
    """A name that no column has."""
    while name in taken:
        name += "_"
    return name


def type_of(labels: list[Any]) -> Type:
    """Of all of them together; text where they have none in common."""
    known = [label for label in labels if label is not None]
    for kind, type_ in (
        (bool, Type.BOOLEAN),
        (int, Type.INTEGER),
        (float, Type.REAL),
        (datetime, Type.TIMESTAMP),
        (date, Type.DATE),
    ):
        if known and all(type(one) is kind for one in known):
            return type_
    return Type.TEXT


def _columns_of(published: "Published") -> list[Shown]:
    made = []
    for name, type_, values in columns(published):
        told = [None if one is None else str(one) for one in values] if type_ is Type.TEXT else values
        made.append(make_column(name, type_, told))
    return made


def to_pandas(published: "Published") -> Any:
    """A pandas DataFrame."""
    return pandas(_columns_of(published))


def to_polars(published: "Published") -> Any:
    """A polars DataFrame."""
    return polars(_columns_of(published))


def to_arrow(published: "Published") -> Any:
    """A pyarrow Table."""
    return arrow(_columns_of(published))
