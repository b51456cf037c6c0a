"""Tables as callers hand them in, read cell by cell: no value fails, and none changes how another one is read.

NumPy and scikit-learn convert a whole table at once: one text makes a list of numbers an array of texts, and what
cannot be converted is an error with the value in it. Both tell of a row what nobody has paid for.

Privacy:
    Claim: what is read of a row depends on that row, on the type of the container, and on the number of dimensions,
        columns and rows; errors depend on the latter three alone, and none of them holds a cell.
    Proof: arrays of numbers are converted as a whole by their type, which the caller declared. In everything else each
        cell is converted by itself (``number_of``), and what is no finite number is missing, whatever it raised.
    Needs: containers whose type and shape are public. The number of columns of a list is what most of its rows have.
    Ref: SOUNDNESS 35.
"""

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from hubbub.errors import ParameterError
from hubbub.gate.attempt import attempt

Array = np.ndarray[Any, Any]

NUMBERS = (bool, int, float, Fraction, Decimal, np.bool_, np.integer, np.floating)
"""What is read as a number; of any other object no method is called."""
TEXTS = (str, bytes)
"""Read as Python's ``float`` reads them."""
_COLUMN = "A column-vector {0} was passed when a 1d array was expected. Pass {0}.ravel() instead."
_SCALAR = -1
"""The width of what is no row."""


def table(x: Any) -> Array:
    """Return a table as floats in two dimensions, with NaN or an infinity where there is no finite number."""
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise TypeError("Sparse data was passed for X, but dense data is required. Use X.toarray().")
    cells = _rows_as_objects(x) if isinstance(x, list | tuple) else array(x, name="X")
    if cells.ndim != 2:
        raise ParameterError(
            "X", "a table in two dimensions (Reshape your data with X.reshape(-1, 1) if it is one column)", cells.ndim
        )
    if cells.shape[1] == 0:
        raise ParameterError("X", "a table with at least one column", "0 feature(s)")
    return numbers(cells, name="X")


def array(given: Any, *, name: str) -> Array:
    """Return what is no list as an array of its own type; masked cells are None."""
    if isinstance(given, np.ma.MaskedArray):
        held = np.asarray(given.data).astype(object)
        held[np.ma.getmaskarray(given)] = None
        return held
    found, failed = attempt(lambda: np.asarray(given), log=None)
    if failed or found is None:
        raise ParameterError(name, "an array, a data frame or a list", type(given).__name__)
    return found


def numbers(cells: Array, *, name: str) -> Array:
    """Return cells as floats: all at once where their type is a number's, else one by one."""
    kind = cells.dtype.kind
    if kind in "biuf":
        with np.errstate(all="ignore"):
            return np.asarray(cells, dtype=np.float64)
    if kind == "c":
        raise ValueError(f"Complex data not supported: {name} has type {cells.dtype}.")
    if kind not in "OUST":
        raise ParameterError(name, "an array of numbers", f"type {cells.dtype}")
    found = np.array([number_of(cell) for cell in cells.reshape(-1).tolist()], dtype=np.float64)
    return found.reshape(cells.shape)


def number_of(cell: Any) -> float:
    """Return a cell as a float, and NaN where it is no number or does not fit into one."""
    if not issubclass(type(cell), (*NUMBERS, *TEXTS)):
        return math.nan
    try:
        return float(cell)
    except KeyboardInterrupt:
        raise
    except BaseException:  # whatever a cell raises, it says no more than that it is no number
        return math.nan


def column(given: Any, *, name: str, rows: int) -> Array:
    """Return one cell for each row, flat, with the type that the caller declared; lists have none, so objects.

    What stands in an array or a data frame of one column is that column.
    """
    cells = _as_array(given, name=name)
    if cells.ndim == 2 and cells.shape[1] == 1:
        warnings.warn(_COLUMN.format(name), DataConversionWarning, stacklevel=2)
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise ParameterError(name, "one value for each row", f"{cells.ndim} dimensions")
    if len(cells) != rows:
        raise ParameterError(name, "one value for each row", "another number of them")
    return cells


def _as_array(given: Any, *, name: str) -> Array:
    """Return an array as it is; of a list or a series whose type its values decide, the values as objects."""
    if isinstance(given, np.ndarray):
        return array(given, name=name)
    if isinstance(getattr(given, "dtype", None), np.dtype):
        return array(given, name=name)  # a pandas series of one of NumPy's types
    for method in ("to_pylist", "to_list", "tolist"):
        if not isinstance(given, list | tuple) and callable(getattr(given, method, None)):
            given = getattr(given, method)()
    if not isinstance(given, list | tuple):
        return array(given, name=name)
    found = np.empty(len(given), dtype=object)
    for place, value in enumerate(given):  # each in its place, whatever it holds itself
        found[place] = value
    return found


def _rows_as_objects(given: Sequence[Any]) -> Array:
    """Return a list of rows as objects; a row of another length than most have is missing."""
    width = _usual(given)
    if width == _SCALAR:
        return np.empty(len(given), dtype=object)  # one dimension, which is refused
    found = np.full((len(given), width), None, dtype=object)
    for place, row in enumerate(given):
        if _width(row) == width:
            for at, cell in enumerate(row):
                found[place, at] = cell
    return found


def _usual(given: Sequence[Any]) -> int:
    """Return the width that most rows have: no row that stands alone decides it."""
    widths = Counter(_width(row) for row in given)
    return max(widths, key=lambda width: (widths[width], width), default=_SCALAR)


def _width(row: Any) -> int:
    if isinstance(row, np.ndarray):
        return len(row) if row.ndim == 1 else _SCALAR
    return len(row) if type(row) in (list, tuple) else _SCALAR
