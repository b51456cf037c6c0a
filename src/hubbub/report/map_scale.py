"""The scale of the colours of a map: few places hold most, and noise goes below zero."""

from dataclasses import dataclass

import numpy as np

from hubbub.publish.strategies.layer import Array

_ROOT, _LOG = 6.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ColourScale:
    """From 0, or anything below, to the top."""

    name: str
    top: float
    middle: float
    """What counts as small on a logarithmic scale."""

    def shares(self, values: Array) -> Array:
        """Between 0 and 1."""
        inside = np.clip(values, 0, self.top) / self.top
        if self.name == "root":
            return np.asarray(np.sqrt(inside))
        if self.name == "log":
            return np.asarray(np.log1p(inside * self.top / self.middle) / np.log1p(self.top / self.middle))
        return np.asarray(inside)


def scale_for(values: Array, sizes: Array | None = None) -> ColourScale:
    """By how far the largest is above the mean of those that are above zero: even, square root, or logarithm.

    The mean is over the land, where zones have ``sizes``.
    """
    above = values > 0
    shown = values[above]
    if not shown.size:
        return ColourScale(name="even", top=1.0, middle=1.0)
    land = np.broadcast_to(1.0 if sizes is None else sizes, values.shape)[above]
    top, mean = float(shown.max()), float(np.average(shown, weights=land))
    skewed = top / mean
    name = "even" if skewed < _ROOT else "root" if skewed < _LOG else "log"
    return ColourScale(name=name, top=top, middle=float(np.median(shown)))
