"""Sources from which marginals are counted: coded rows, combinations that an engine counted, cells, or marginals
themselves.

A table of fifteen columns has more cells than any memory; its marginals are counted from its rows, one after the other.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.domain import Axis, Bins, Domain
from hubbub.publish.strategies.layer import Array, Shape

Axes = tuple[int, ...]
"""Places of columns, rising."""
_INT64 = 1 << 63
_EXACT_FLOAT = 1 << 53


class MarginalSource(Protocol):
    """Anything that can be counted along some of its axes."""

    @property
    def shape(self) -> Shape: ...

    @property
    def rows(self) -> int:
        """At least the sum of all counts: decides how wide numbers must be, and nothing that is shown."""
        ...

    def marginal(self, axes: Axes) -> Array:
        """Exact counts, one dimension for each axis."""
        ...


class Records:
    """Rows of codes, a column an axis: code j stands for the j-th label.

    Rows with a value that has no label are left out. Whether a row is kept depends on that row alone, so neighbours
    stay neighbours, and nothing is said about it.
    """

    def __init__(self, codes: Any, domain: Domain) -> None:
        array = np.asarray(codes)
        if array.ndim != 2 or array.shape[1] != len(domain.axes) or array.dtype.kind not in "iu":
            raise ParameterError("codes", f"whole numbers in {len(domain.axes)} columns", str(array.dtype))
        most = np.array(domain.shape)
        kept = array[((array >= 0) & (array < most)).all(axis=1)]
        self.domain = domain
        self._columns = np.ascontiguousarray(kept.T.astype(np.int64))

    def __repr__(self) -> str:
        return f"<Records over {', '.join(axis.name for axis in self.domain.axes)}, sealed>"

    @classmethod
    def of(cls, table: Mapping[str, Sequence[Any]], domain: Domain) -> "Records":
        """From columns of labels, by the names of the axes."""
        missing = [axis.name for axis in domain.axes if axis.name not in table]
        if missing:
            raise ParameterError("table", f"columns for all axes of its domain ({', '.join(missing)})", sorted(table))
        columns = [_codes(axis, table[axis.name]) for axis in domain.axes]
        if len({len(column) for column in columns}) > 1:
            raise ParameterError("table", "columns of the same length", "others")
        return cls(np.stack(columns, axis=1), domain)

    @property
    def shape(self) -> Shape:
        return self.domain.shape

    @property
    def rows(self) -> int:
        return int(self._columns.shape[1])

    def marginal(self, axes: Axes) -> Array:
        sizes = tuple(self.shape[axis] for axis in axes)
        place = np.zeros(self.rows, dtype=np.int64)
        for axis, size in zip(axes, sizes, strict=True):
            place = place * size + self._columns[axis]
        return np.bincount(place, minlength=math.prod(sizes)).reshape(sizes)


class Weighted:
    """Combinations of codes, each with a number of rows, in any order: what an engine makes of rows that it bounded."""

    def __init__(self, columns: Sequence[Array], counts: Array, shape: Shape) -> None:
        if len(columns) != len(shape) or any(len(column) != len(counts) for column in columns):
            raise ParameterError("columns", f"codes in {len(shape)} columns of one length", len(columns))
        for column, size in zip(columns, shape, strict=True):
            if len(column) and not (int(column.min()) >= 0 and int(column.max()) < size):
                raise ParameterError("codes", f"from 0 to {size - 1}", "others")
        self.shape, self.rows = shape, sum_of_sizes(counts)
        self._columns = tuple(columns)
        self._counts = counts
        # Sums of floats are exact while all of them are whole and below 2^53.
        alike = bool(len(counts)) and int(counts.min()) == int(counts.max()) == 1
        self._weights = None if alike else counts.astype(float) if self.rows < _EXACT_FLOAT else counts.astype(object)

    def __repr__(self) -> str:
        return "<Weighted, sealed>"

    def marginal(self, axes: Axes) -> Array:
        sizes = tuple(self.shape[axis] for axis in axes)
        many = math.prod(sizes)
        place = np.zeros(len(self._counts), dtype=np.int64)
        for axis, size in zip(axes, sizes, strict=True):
            place *= size
            place += self._columns[axis]
        if self._weights is None:
            found = np.bincount(place, minlength=many)
        elif self._weights.dtype == object:
            found = np.zeros(many, dtype=object)
            np.add.at(found, place, self._weights)
        else:
            found = np.bincount(place, self._weights, minlength=many).astype(np.int64)
        return found.reshape(sizes)


class DenseRecords:
    """All cells at once, where they fit into memory."""

    def __init__(self, cells: Array) -> None:
        self.shape: Shape = cells.shape
        self.rows = sum_of_sizes(cells)
        self._cells = cells if self.rows < _INT64 else cells.astype(object)

    def marginal(self, axes: Axes) -> Array:
        """A single sum too stays in the arithmetic of the cells: alone, it would take one by its size."""
        rest = tuple(axis for axis in range(self._cells.ndim) if axis not in axes)
        kind = object if self._cells.dtype == object else np.int64
        return np.asarray(self._cells.sum(axis=rest), dtype=kind)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Counted:
    """Marginals that an engine counted; each unit was bounded in every one of them before."""

    shape: Shape
    counts: Mapping[Axes, Array]

    @property
    def rows(self) -> int:
        return max(sum_of_sizes(one) for one in self.counts.values())

    def marginal(self, axes: Axes) -> Array:
        """As it was counted, or summed up from the smallest that holds it."""
        holds = [one for one in self.counts if set(axes) <= set(one)]
        if not holds:
            raise ParameterError("counts", f"a marginal that holds the axes {axes}", sorted(self.counts))
        one = min(holds, key=lambda held: (math.prod(self.shape[axis] for axis in held), held))
        return DenseRecords(self.counts[one]).marginal(tuple(place for place, axis in enumerate(one) if axis in axes))


def sum_of_sizes(counts: Array) -> int:
    """Exact: in 64 bits where the greatest of them leaves room for all."""
    if not counts.size:
        return 0
    most = max(int(counts.max()), -int(counts.min()))
    wide = counts.dtype == object or most * counts.size >= _INT64
    return int(np.abs(counts.astype(object) if wide else counts.astype(np.int64)).sum())


def _codes(axis: Axis, column: Sequence[Any]) -> Array:
    if isinstance(axis.labels, Bins):
        return np.array([_bin(axis.labels, value) for value in column], dtype=np.int64)
    place = {label: code for code, label in reversed(list(enumerate(axis.labels)))}
    return np.array([_code(place, value) for value in column], dtype=np.int64)


def _code(place: Mapping[Any, int], value: Any) -> int:
    try:
        return place.get(value, -1)
    except TypeError:  # what cannot be hashed is no label
        return -1


def _bin(bins: Bins, value: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return -1
    if not math.isfinite(value):
        return -1
    found = math.floor((Fraction(value.item() if isinstance(value, np.generic) else value) - bins.low) / bins.width)
    return found if 0 <= found < bins.steps else -1
