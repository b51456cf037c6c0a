"""The cut between two classes, and the certainty of a score: one small histogram, after the scores are fixed.

Naive Bayes ranks well and is far too sure of itself, since it takes columns for independent. How many rows of each
class have which score is a histogram in which a row counts once: it costs little and mends that.

Privacy:
    Claim: the share of the price that is taken.
    Proof: a ``tally`` of one column, the cell of a row's score in its class; the score follows from the row and from
        earlier releases. Cut and slope are computed from the noisy counts.
    Needs: ``tally``.
    Ref: Platt 1999 for the logistic slope.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.classes import code_classes
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.histograms import tally
from hubbub.learn.tuition import Tuition
from hubbub.query.totals import Number

CELLS = 64
SLOPES = np.geomspace(0.05, 500.0, 80)
SURE = 0.75
"""A cut is moved from where it is expected if it gains more than so many standard deviations of what noise gains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The log-odds of the second class are slope·(place − cut), for places between 0 and 1."""

    cut: float
    slope: float

    def log_odds(self, places: Array) -> Array:
        return np.asarray(self.slope * (places - self.cut))


def calibrate(
    score: Number, data: Features, *, tuition: Tuition, share: Fraction, expected: float | None = None
) -> Calibration:
    """Measure scores between 0 and 1, higher for the second class; rows of no class count nowhere.

    ``expected`` is where the classes part if the scores are right; None where they are not to be relied on.
    """
    cell = (score.clip(0.0, 1.0) * float(CELLS)).floor().clip(0.0, float(CELLS - 1))
    code = code_classes(data, 2 * CELLS, cell=cell * 2.0)
    found = tally([code], data, tuition=tuition, share=share, label="scores")
    table = found.tables[0].reshape(CELLS, 2)
    cut = _cut(table, expected=expected, deviation=found.deviation)
    return Calibration(cut=cut, slope=_slope(table, cut))


def _cut(table: Array, *, expected: float | None = None, deviation: float = 0.0) -> float:
    """Find the cut above which predicting the second class is right most often, as far as noise lets that be seen."""
    gain = np.append(np.cumsum((table[:, 1] - table[:, 0])[::-1])[::-1], 0.0)
    moved = np.abs(np.arange(CELLS + 1) - np.clip(0.5 if expected is None else expected, 0.0, 1.0) * CELLS)
    gain -= moved / (2 * CELLS)  # of cuts that are right as often, the nearest: half a row at most
    if expected is not None:
        gain -= SURE * deviation * np.sqrt(2 * moved)
    return float(np.argmax(gain)) / CELLS


def _slope(table: Array, cut: float) -> float:
    """The most likely one of a fixed list."""
    counts = np.maximum(table, 0.0)
    far = (np.arange(CELLS) + 0.5) / CELLS - cut
    odds = SLOPES[:, None] * far
    likely = -(np.logaddexp(0.0, -odds) * counts[:, 1] + np.logaddexp(0.0, odds) * counts[:, 0]).sum(axis=1)
    return float(SLOPES[int(np.argmax(likely))])
