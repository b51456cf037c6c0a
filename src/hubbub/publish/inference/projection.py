"""The nearest vector without negative entries and with a given sum: one sort."""

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.strategies.layer import Array


def onto_simplex(values: Array, *, total: float, variances: Array | None = None) -> Array:
    """The x >= 0 with Σx = ``total`` that is nearest to the values, in the metric of their variances.

    Nearest is x = max(0, y - θ·v) for the one θ that gives the sum; entries leave in the order of y/v.
    """
    if not total >= 0:
        raise ParameterError("total", "a number at least 0", total)
    flat = np.asarray(values, dtype=float).reshape(-1)
    spread = np.ones(len(flat)) if variances is None else np.asarray(variances, dtype=float).reshape(-1)
    if len(spread) != len(flat) or not (spread > 0).all():
        raise ParameterError("variances", "one above 0 for each value", spread)
    order = np.argsort(-flat / spread, kind="stable")
    price = (np.cumsum(flat[order]) - total) / np.cumsum(spread[order])
    kept = np.flatnonzero(flat[order] / spread[order] > price)
    last = kept[-1] if len(kept) else 0
    return np.asarray(np.maximum(flat - price[last] * spread, 0).reshape(np.shape(values)))
