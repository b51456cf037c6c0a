"""What naive Bayes needs of a table that stays in its engine: sums within classes, and cells of scores."""

import math

import numpy as np

from hubbub.learn.asked import Asked, Formula
from hubbub.learn.cells import Array
from hubbub.learn.tally import AskedCodes
from hubbub.query.totals import WEIGHT, Code, Number, added, number

MOST_ODDS = 1e4
"""Log-odds beyond this are all alike."""


def class_totals(rows: Formula, codes: Asked, classes: int, *, bits: int) -> Array:
    """Sums of rows within [−1, 1] in each class; ``codes`` is one column, and what is no class counts nowhere."""
    parts = [one.clipped(-1.0, 1.0) * float(1 << bits) for one in rows.numbers]
    whole = [(one if rows.weight is None else one * WEIGHT).truncated() for one in parts]
    return rows.total(whole, [Code(number=_or_nowhere(codes, classes), size=classes)])


def _or_nowhere(codes: Asked, size: int) -> Number:
    """A code, or ``size`` where it is missing or below 0."""
    (given,) = codes.columns
    code = given.known(-1.0)
    return code + number(-1.0).equal(code) * float(size + 1)


def log_odds(x: Asked, low: Array, high: Array, *, priors: Array, means: Array, variances: Array) -> Number:
    """Of the second of two classes, for rows clipped to their bounds."""
    half = (high - low) / 2
    each = []
    for place, one in enumerate(x.columns):
        middle, side = float((low + half)[place]), float(half[place])
        unit = ((one.known(middle) - middle) / side).clipped(-1.0, 1.0) if side > 0 else number(0.0)
        inside = (unit + 1.0) * side + float(low[place])
        far = [inside - float(mean) for mean in means[:, place]]
        each.append(
            far[0] * far[0] / (2 * float(variances[0, place])) - far[1] * far[1] / (2 * float(variances[1, place]))
        )
    fixed = float(np.log(priors[1] / priors[0]) - 0.5 * np.sum(np.log(variances[1] / variances[0])))
    return added([number(fixed), *each])


def scored(x: Asked, codes: Asked, odds: Number, *, cells: int) -> AskedCodes:
    """Twice the cell of a row's score between 0 and 1, and 1 more in the second class."""
    place = odds.clipped(-MOST_ODDS, MOST_ODDS).asinh() / (2 * math.asinh(MOST_ODDS)) + 0.5
    cell = (place.clipped(0.0, 1.0) * float(cells)).floor().clipped(0.0, float(cells - 1))
    (given,) = codes.columns
    code = given.known(-1.0)
    nowhere = number(-1.0).equal(code)
    found = (cell * 2.0 + code) * (number(1.0) - nowhere) + nowhere * float(2 * cells)
    return AskedCodes(table=x, families=(Code(number=found, size=2 * cells),))
