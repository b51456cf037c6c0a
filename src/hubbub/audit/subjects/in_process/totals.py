"""The meaning of ``Totals``, in numpy: for holding an engine against it, and for auditing formulas without one.

A missing value is NaN here, and an infinity is missing, as it is for whoever reads a table.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.gate.secret import Sealed
from hubbub.query.scalar_numbers import Scalars
from hubbub.query.totals import Number, SumsRequest

if TYPE_CHECKING:
    from hubbub.learn.statistics.crowd import Crowd
    from hubbub.learn.statistics.features import Features

Array = np.ndarray[Any, Any]


def interpreted(one: Number, columns: Array, weights: Array) -> Array:
    """The value of a Number in each row."""
    seen: dict[int, Array] = {}

    def value(of: Number) -> Array:
        if id(of) not in seen:
            seen[id(of)] = _MEANING[of.function](of, [value(part) for part in of.arguments], columns, weights)
        return seen[id(of)]

    with np.errstate(all="ignore"):
        return np.broadcast_to(value(one), weights.shape)


def adding(columns: Array, crowd: "Crowd") -> Callable[[SumsRequest], list[Array]]:
    """Add up rows of these columns, as an engine would that is told every number by itself."""
    known = np.where(np.isfinite(columns), columns, np.nan)
    weights = crowd.weights

    def add_up(sums: SumsRequest) -> list[Array]:
        scalars = Scalars()
        values = [] if sums.values is None else scalars.of(sums.values)
        parts = [interpreted(one, known, weights).astype(np.int64) for one in values] or [np.ones(crowd.rows, np.int64)]
        if sums.products:
            return [np.array([[int((one * other).sum()) for other in parts] for one in parts])]
        if not sums.codes:
            return [np.array([[int(part.sum()) for part in parts]])]
        found = []
        for family, size in ((one, code.size) for code in sums.codes for one in scalars.of(code.number)):
            total = np.zeros((size + 1, len(parts)), dtype=np.int64)
            np.add.at(total, interpreted(family, known, weights).astype(np.int64), np.stack(parts, axis=1))
            found.append(total[:-1])
        return found

    return add_up


def asked(columns: Array, crowd: "Crowd", *, names: Sequence[str]) -> "Features":
    """Return a table of some columns, and those behind them, that is asked as one in an engine is."""
    from hubbub.learn.statistics.features import Features

    add_up, held = adding(columns, crowd), Features.of(columns, crowd)
    return Features(
        width=len(names), names=tuple(names), most=crowd.most, single=crowd.units is None, count=held.count,
        add_up=lambda sums: Sealed.later(lambda: add_up(sums)),
    )  # fmt: skip


_Meaning = Callable[[Number, list[Array], Array, Array], Array]


def _plain(work: Callable[..., Any]) -> _Meaning:
    return lambda _, parts, __, ___: np.asarray(work(*parts))


def _place(_: Number, parts: list[Array], __: Array, weights: Array) -> Array:
    met, *among = (np.broadcast_to(part, weights.shape) for part in parts)
    return np.asarray(np.argmax(np.stack(among) == met, axis=0), dtype=np.float64)


_MEANING: Mapping[str, _Meaning] = {
    "column": lambda one, _, columns, __: columns[:, int(one.constants[0])],
    "weight": lambda _, __, ___, weights: weights,
    "constant": lambda one, _, __, weights: np.full(weights.shape, one.constants[0]),
    "known": _plain(lambda value, otherwise: np.where(np.isnan(value), otherwise, value)),
    "add": _plain(np.add),
    "subtract": _plain(np.subtract),
    "multiply": _plain(np.multiply),
    "divide": _plain(np.divide),
    "least": _plain(lambda *parts: np.min(np.stack(parts), axis=0)),
    "greatest": _plain(lambda *parts: np.max(np.stack(parts), axis=0)),
    "truncate": _plain(np.trunc),
    "floor": _plain(np.floor),
    "sqrt": _plain(np.sqrt),
    "log2": _plain(np.log2),
    "asinh": _plain(np.arcsinh),
    "sign": _plain(np.sign),
    "above": _plain(lambda one, other: (one > other).astype(np.float64)),
    "equal": _plain(lambda one, other: (one == other).astype(np.float64)),
    "pick": lambda one, parts, _, __: np.array(one.constants)[parts[0].astype(np.int64)],
    "place": _place,
}
