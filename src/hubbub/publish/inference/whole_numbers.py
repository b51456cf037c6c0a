"""Whole numbers for estimates: every one moves by less than 1, and the sum stays."""

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.strategies.layer import Array


def whole_with_total(values: Array, *, total: int | None = None) -> Array:
    """Rounded up where the fractions are greatest, down elsewhere, so that the sum is ``total``.

    Without a total, the whole number nearest to the sum of the values. A given one must lie between the sums of all
    numbers rounded down and of all rounded up: then nothing moves by 1 or more.
    """
    flat = np.asarray(values, dtype=float).reshape(-1)
    low = np.floor(flat)
    fractions = flat - low
    base = int(low.sum())
    ups = int(np.rint(fractions.sum())) if total is None else total - base
    if not 0 <= ups <= int((fractions > 0).sum()):
        raise ParameterError("total", f"from {base} to {base + int((fractions > 0).sum())} for these numbers", total)
    out = low.astype(np.int64)
    out[np.argsort(-fractions, kind="stable")[:ups]] += 1
    return np.asarray(out.reshape(np.shape(values)))
