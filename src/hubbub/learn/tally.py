"""Histograms of several columns of codes, measured together.

Privacy:
    Claim: a unit moves the concatenated histograms of d columns by at most ``most``·d in L1 and ``most``·√d in L2.
    Proof: a row adds its weight to at most one cell a column (a code outside the cells adds nothing). Over a unit's
        rows each column gets at most ``most`` in L1, and so at most ``most`` in L2; columns are disjoint coordinates.
    Needs: codes that depend on their own row and on earlier releases alone.
    Ref: SOUNDNESS 5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.learn.asked import Asked, counted_formula
from hubbub.learn.blocks import NONE, parts_of
from hubbub.learn.cells import Array
from hubbub.learn.crowd import Crowd
from hubbub.learn.steps import Steps
from hubbub.learn.tuition import Tuition, reached
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.query.totals import Code

SHARED_BITS = 20
BLOCK = 1 << 15
TILTS = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCodes:
    """Codes of rows that stay in an engine."""

    table: Asked
    families: tuple[Code, ...]


Codes = Callable[[int, slice], Array] | AskedCodes
"""The codes of a column's rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """One noisy histogram a column, and the law of each cell's noise in rows."""

    tables: tuple[Array, ...]
    deviation: float
    tail: float
    """The scale of an exponential tail; 0 for Gaussian noise, which has none."""

    def beyond(self, cells: Array | int, *, log_tests: float) -> Array:
        """What a sum of so many cells' noise exceeds with probability at most e^-log_tests (Chernoff)."""
        many = np.asarray(cells, dtype=np.float64)
        if not self.tail:
            return np.asarray(self.deviation * np.sqrt(2 * log_tests * many))
        # E e^(τZ/b) = 1/(1 − τ²) for Laplace noise of scale b; geometric noise of that scale has a little less.
        bounds = (log_tests - many[..., None] * np.log1p(-TILTS * TILTS)) / TILTS
        return np.asarray(self.tail * bounds.min(axis=-1))


def counted(codes: Codes, sizes: Sequence[int], *, crowd: Crowd) -> Array:
    """All histograms one after the other, exactly: rows, or 2^-20 of rows where units share weights."""
    if isinstance(codes, AskedCodes):
        return counted_formula(codes.families, codes.table, bits=SHARED_BITS)
    weights = None if crowd.units is None else np.trunc(crowd.weights * (1 << SHARED_BITS))
    found = [np.zeros(size + 1, dtype=np.int64) for size in sizes]
    for part in parts_of(crowd.rows, size=BLOCK):
        heavy = None if weights is None else weights[part]
        for place, size in enumerate(sizes):
            found[place] += np.bincount(codes(place, part), weights=heavy, minlength=size + 1).astype(np.int64)
    return np.concatenate([one[:-1] for one in found])


def tally(codes: Codes, sizes: Sequence[int], *, crowd: Crowd, tuition: Tuition, share: Fraction, label: str) -> Tally:
    """Noisy histograms of columns of codes from 0 to size − 1; the code ``size`` counts nowhere."""
    unit, width = 1 if crowd.units is None else 1 << SHARED_BITS, len(sizes)
    steps = Steps(
        parts=NONE, grid=Fraction(1, unit), l1=width * unit, l2_squared=width * unit * unit, linf=unit, l0=width
    )
    reach = reached(steps, crowd)
    mechanism = tuition.additive(tuition.spend(share), reach)
    noisy = tuition.measure(mechanism, lambda: counted(codes, sizes, crowd=crowd), reach, grid=steps.grid, label=label)
    tables = np.split(np.asarray(noisy, dtype=np.float64), np.cumsum(sizes)[:-1])
    return Tally(
        tables=tuple(tables), deviation=mechanism.standard_deviation / unit, tail=_tail(mechanism) / unit
    )  # fmt: skip


def _tail(mechanism: Geometric | Gaussian) -> float:
    return float(mechanism.scale) if isinstance(mechanism, Geometric) else 0.0
