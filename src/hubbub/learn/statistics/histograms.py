"""Histograms of several columns of codes, measured together.

Privacy:
    Claim: a unit moves the concatenated histograms of d columns by at most ``most``·d in L1 and ``most``·√d in L2.
    Proof: a row adds its weight to at most one cell a column (a code outside the cells adds nothing). Over a unit's
        rows each column gets at most ``most`` in L1, and so at most ``most`` in L2; columns are disjoint coordinates.
    Needs: codes that depend on their own row and on earlier releases alone.
    Ref: SOUNDNESS 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import Steps
from hubbub.learn.tuition import Tuition
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.query.totals import Code, SumsRequest

SHARED_BITS = 20
TILTS = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyHistogram:
    """One noisy histogram a column, and the law of each cell's noise in rows."""

    tables: tuple[Array, ...]
    deviation: float
    tail: float
    """The scale of an exponential tail; 0 for Gaussian noise, which has none."""

    def beyond(self, cells: Array | int, *, log_tests: float) -> Array:
        """Return what a sum of so many cells' noise exceeds with probability at most e^-log_tests (Chernoff)."""
        many = np.asarray(cells, dtype=np.float64)
        if not self.tail:
            return np.asarray(self.deviation * np.sqrt(2 * log_tests * many))
        # E e^(τZ/b) = 1/(1 − τ²) for Laplace noise of scale b; geometric noise of that scale has a little less.
        bounds = (log_tests - many[..., None] * np.log1p(-TILTS * TILTS)) / TILTS
        return np.asarray(self.tail * bounds.min(axis=-1))


def histograms(codes: Sequence[Code], data: Features) -> SumsRequest:
    """Ask for all histograms: of rows, or of 2^-20 of rows where units share weights."""
    values = None if data.weight is None else (data.weight * float(1 << SHARED_BITS)).truncate()
    return SumsRequest(values=values, codes=tuple(codes), bits=SHARED_BITS)


def tally(codes: Sequence[Code], data: Features, *, tuition: Tuition, share: Fraction, label: str) -> NoisyHistogram:
    """Measure histograms of families of codes; the code ``size`` counts nowhere."""
    sums = histograms(codes, data)
    unit, width = 1 if data.single else 1 << SHARED_BITS, len(sums.sizes)
    steps = Steps(grid=Fraction(1, unit), l1=width * unit, l2_squared=width * unit * unit, linf=unit, l0=width)
    noisy, mechanism = tuition.measure_sums(data, sums, steps, share=share, label=label)
    tables = tuple(np.split(noisy, np.cumsum(sums.sizes)[:-1]))
    return NoisyHistogram(tables=tables, deviation=mechanism.standard_deviation / unit, tail=_tail(mechanism) / unit)


def _tail(mechanism: Geometric | Gaussian) -> float:
    return float(mechanism.scale) if isinstance(mechanism, Geometric) else 0.0
