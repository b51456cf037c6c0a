"""Columns by their ranks: private quantiles, for uniform or normal scores, and for cells of equal weight."""

import math
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.gate.secret import Sealed
from hubbub.learn.estimator import Private
from hubbub.learn.statistics.bounds import SHARE as BOUNDS
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import fill_missing
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.mechanisms import Quantiles
from hubbub.parameters import whole
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.sensitivity import Sensitivity

MOST_QUANTILES = 1024
TIE_BITS = 20
CLIPPED = 5.199337582605575
"""Normal scores end where 10^-7 of a normal law is left, as in scikit-learn."""


def measure_quantiles(
    data: Features, low: Array, high: Array, count: int, *, tuition: Tuition, share: Fraction
) -> Array:
    """Measure ``count`` quantiles of each column between its ends, one row a quantile, ascending.

    Privacy:
        Claim: the share of the price that is taken.
        Proof: each column's values are handed to ``Quantiles``, at most ``most`` of a unit (the first ones), for an
            equal part of the share: ε over columns if pure; with a δ, ``levels`` choices of bounded range ε/levels have
            ρ = ε²/(8·levels), which gives ε. What is no finite number is put in the middle of its column's bounds.
        Needs: ``Quantiles``.
        Ref: Kaplan, Schnapp, Stemmer 2022.
    """
    x, crowd = data.here.table, data.here.crowd
    part = tuition.spend(share) / data.width
    targets = tuple(Fraction(place, count + 1) for place in range(1, count + 1))
    levels = count.bit_length()
    if tuition.rho is None:
        epsilon = tuition.pure(part)
    else:
        root = Fraction(math.isqrt(levels << 80), 1 << 40)  # of the levels, rounded down
        epsilon = whole_units_rounded_down(tuition.selection(part) * root)
    found = np.empty((count, x.shape[1]))
    for place, (one, other) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        mechanism = Quantiles(
            epsilon=epsilon, bounds=(Fraction(one), Fraction(other)), rows=crowd.most, targets=targets,
            tie_bits=TIE_BITS,
        )  # fmt: skip
        found[:, place] = tuition.measure(
            mechanism, Sealed.later(partial(_values, x[:, place], crowd, missing=(one + other) / 2)),
            Sensitivity(rows=crowd.most), grid=None, label=f"quantiles of column {place}",
        )  # fmt: skip
    return np.maximum.accumulate(np.clip(found, low, high), axis=0)


def _values(column: Array, crowd: Crowd, *, missing: float) -> Array:
    """The values that count."""
    kept = first_rows(crowd)
    return fill_missing(column if kept is None else column[kept], missing=missing)


def first_rows(crowd: Crowd) -> Array | None:
    """Mark the rows that are among the first ``most`` of their unit; None for all."""
    if crowd.units is None:
        return None
    order = np.argsort(crowd.units, kind="stable")
    owned = np.bincount(crowd.units + 1, minlength=crowd.count + 1)
    place = np.arange(len(order)) - np.repeat(np.cumsum(owned) - owned, owned)
    kept = np.zeros(len(order), dtype=bool)
    kept[order] = place < crowd.most
    return kept & (crowd.units >= 0)


class QuantileTransformer(OneToOneFeatureMixin, TransformerMixin, Private):  # type: ignore[misc]
    """Every column to a uniform or normal one, by quantiles that were paid for.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds that are declared or bought, then ``measure_quantiles``.
        Needs: ``Tuition``.
        Ref: Kaplan, Schnapp, Stemmer 2022.
    """

    def __init__(
        self, *, n_quantiles: int = 31, output_distribution: str = "uniform", epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure quantiles of each column."""
        if self.output_distribution not in ("uniform", "normal"):
            raise ParameterError("output_distribution", "'uniform' or 'normal'", self.output_distribution)
        count = whole("n_quantiles", self.n_quantiles, least=1, most=MOST_QUANTILES)
        return self._study(partial(self._measure, count), self._data(X, groups))

    def _measure(self, count: int, data: Features, tuition: Tuition) -> str:
        """Measure bounds and quantiles."""
        low, high = buy_bounds(self.bounds, data.x, data, tuition=tuition)
        inner = measure_quantiles(data, low, high, count, tuition=tuition, share=tuition.left)
        self.n_quantiles_ = count
        self.quantiles_ = np.vstack([low, inner, high])
        self.references_ = np.linspace(0.0, 1.0, count + 2)
        return ranks(tuition)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Ranks between 0 and 1, or normal scores; a value that many share gets the middle of its ranks."""
        check_is_fitted(self)
        x = self._features(X)
        middle = (self.quantiles_[0] + self.quantiles_[-1]) / 2
        known = fill_missing(x, missing=middle)
        out = np.empty_like(known)
        for place, cuts in enumerate(self.quantiles_.T):
            up = np.interp(known[:, place], cuts, self.references_)
            down = -np.interp(-known[:, place], -cuts[::-1], -self.references_[::-1])
            out[:, place] = (up + down) / 2
        return np.clip(ndtri(out), -CLIPPED, CLIPPED) if self.output_distribution == "normal" else out

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """From ranks or scores back to values."""
        check_is_fitted(self)
        ranked = np.asarray(X, dtype=np.float64)
        if self.output_distribution == "normal":
            ranked = ndtr(ranked)
        columns = [np.interp(ranked[:, place], self.references_, cuts) for place, cuts in enumerate(self.quantiles_.T)]
        return np.column_stack(columns)


class KBinsDiscretizer(OneToOneFeatureMixin, TransformerMixin, Private):  # type: ignore[misc]
    """Every column to whole numbers 0 … n_bins − 1: cells of about equal weight, or (for nothing) of equal width.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``; equal widths between declared bounds cost nothing.
        Proof: bounds that are declared or bought, then ``measure_quantiles``.
        Needs: ``Tuition``.
        Ref: Kaplan, Schnapp, Stemmer 2022.
    """

    def __init__(
        self, n_bins: int = 16, *, strategy: str = "quantile", epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:  # noqa: N803
        """Find the ends of the cells."""
        if self.strategy not in ("quantile", "uniform"):
            raise ParameterError("strategy", "'quantile' or 'uniform'", self.strategy)
        count = whole("n_bins", self.n_bins, least=2, most=MOST_QUANTILES)
        return self._study(partial(self._measure, count), self._data(X, groups))

    def _measure(self, count: int, data: Features, tuition: Tuition) -> str:
        """Measure bounds, and quantiles between them."""
        equal = self.strategy == "uniform"
        low, high = buy_bounds(
            self.bounds, data.x, data, tuition=tuition, share=Fraction(1) if equal else BOUNDS
        )  # fmt: skip
        inner = np.linspace(low, high, count + 1)[1:-1]
        if not equal:
            inner = measure_quantiles(data, low, high, count - 1, tuition=tuition, share=tuition.left)
        self.bin_edges_ = np.vstack([low, inner, high])
        self.n_bins_ = np.full(data.width, count)
        return "" if equal else ranks(tuition)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """The cell of each value, as a float; what is missing goes with the middle of the bounds."""
        check_is_fitted(self)
        x = self._features(X)
        return code_cells(x, self.bin_edges_).astype(np.float64)


def code_cells(x: Array, edges: Array) -> Array:
    """Find the cell of each value in its column's edges (one column of edges a column), the outermost without end."""
    known = fill_missing(x, missing=(edges[0] + edges[-1]) / 2)
    return np.column_stack(
        [np.searchsorted(edges[1:-1, place], known[:, place], side="right") for place in range(x.shape[1])]
    )


def ranks(tuition: Tuition) -> str:
    """Describe what to expect of quantiles, in rows.

    A question errs by some 1/rate rows on either side where values lie close together, and each level by itself.
    """
    asked = [one.mechanism for one in tuition.releases if isinstance(one.mechanism, Quantiles)]
    usual = max(math.sqrt(2 * one.levels) / float(one.rate(Fraction(1, 2))) for one in asked)
    error = max(one.error(beta=0.05) for one in asked)
    return (
        f"Expected error of a quantile: about {usual:.3g} rows of rank where values lie close together; more than "
        f"{error:.3g} in at most one column of 20, whatever the rows are."
    )
