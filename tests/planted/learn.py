"""Bugs in what is learned: exact numbers beside noisy ones, bounds that do not bound, and shares spent twice."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.learn import (
    asked,
    blocks,
    classes,
    estimator,
    gram,
    kmeans,
    kmeans_rounds,
    regression,
    scaler,
    steps,
    tuition,
)
from hubbub.learn.cells import Array
from hubbub.learn.crowd import Crowd
from hubbub.query import totals
from tests.planted.plant import Caught, Planted, both, in_place, named

_fit, _fitted_scaler = kmeans.KMeans.fit, scaler.StandardScaler.fit
_summed, _reached = kmeans_rounds.summed, tuition.reached


def _labelled(self: Any, X: Any, y: Any = None, *, groups: Any = None) -> Any:  # noqa: N803
    _fit(self, X, y, groups=groups)
    self.labels_ = self.predict(X)
    return self


def _with_means(self: Any, X: Any, y: Any = None, *, groups: Any = None) -> Any:  # noqa: N803
    _fit(self, X, y, groups=groups)
    self.cluster_centers_[0] = np.nan_to_num(np.clip(X, -1, 1)).mean(axis=0)
    return self


def _missing_counted(self: Any, X: Any, y: Any = None, *, groups: Any = None) -> Any:  # noqa: N803
    _fitted_scaler(self, X, y, groups=groups)
    self.n_missing_ = int(np.isnan(X).sum())
    return self


def _low_twice(parts: Sequence[Array], low: Array, high: Array) -> Callable[[slice], Array]:
    half = (high - low) / 2

    def rows(part: slice) -> Array:
        moved = steps.cleaned(np.hstack([one[part] for one in parts]), missing=low) - low - half
        return np.minimum(np.maximum(np.maximum(moved / half, -1.0), -1.0), 1e6)

    return rows


def _not_clipped_again(rows: Callable[[slice], Array], *, width: int, crowd: Crowd, bits: int = steps.BITS) -> Array:
    total: Array = np.trunc(rows(slice(0, crowd.rows)) * (1 << bits)).sum(axis=0).astype(np.int64)
    return total


def _unspent(self: tuition.Tuition, share: Any) -> Fraction:
    return Fraction(share)


def _by_true_rows(self: tuition.Tuition, crowd: Crowd, *, share: Any, label: str = "number of rows") -> float:
    self.spend(share)
    return float(crowd.rows)


def _unclipped(centres: Array, points: Any, *, buyer: Any, measured: Any, ends: Array, seen: Any) -> Array:
    """Sums whose coordinates are cut off four times further out than their noise was made for."""
    far = replace(measured, far=4 * measured.far)
    return _summed(centres, points, buyer=buyer, measured=far, ends=4 * ends, seen=seen)


def _rows_of_one(parts: steps.Steps, crowd: Crowd) -> Any:
    return _reached(parts, Crowd(rows=crowd.rows, units=crowd.units, most=1))


def _at_full_length(block: Array, *, bits: int, weights: Array | None) -> Array:
    return np.asarray(np.trunc(block * (1 << bits)))


def _exact_ends(bounds: Any, x: Array, *, crowd: Crowd, tuition: Any, share: Fraction = Fraction(0)) -> Any:
    known = np.where(np.isfinite(x), x, 0.0)
    return known.min(axis=0) - 1.0, known.max(axis=0) + 1.0


def _converted_at_once(x: Any) -> Array:
    """All cells by one call of NumPy's, which stops at the first one that is no number."""
    return np.asarray(x, dtype=np.float64)


def _labels_at_once(given: Array) -> list[Any]:
    """Labels through one array, whose type all of them share: a text makes texts of the numbers beside it."""
    shared = np.asarray([one if isinstance(one, int | float | str) else 0 for one in given.tolist()])
    return [str(one) if shared.dtype.kind == "U" else one for one in shared.tolist()]


def _no_weight(_: asked.Formula) -> None:
    return None


def _as_it_is(value: totals.Number, _: float, __: float) -> totals.Number:
    return value


LEARN: tuple[Planted, ...] = (
    Planted(
        name="exact labels kept",
        about="Labels of the rows that were fitted stand beside the private centres.",
        subject=named("learn: KMeans"),
        patch=in_place(kmeans.KMeans, "fit", _labelled),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a mean without noise",
        about="One of the centres is the exact mean of the rows.",
        subject=named("learn: KMeans"),
        patch=in_place(kmeans.KMeans, "fit", _with_means),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="missing values counted",
        about="A scaler keeps how many values were missing.",
        subject=named("learn: StandardScaler"),
        patch=in_place(scaler.StandardScaler, "fit", _missing_counted),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="lower bound used twice",
        about="Values are clipped at their lower bound, and at their lower bound again.",
        subject=named("learn: StandardScaler"),
        patch=both(in_place(scaler, "unit_rows", _low_twice), in_place(blocks, "box_total", _not_clipped_again)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a share spent twice",
        about="What one measurement of a fit has spent is still there for the next.",
        subject=named("learn: KMeans"),
        patch=in_place(tuition.Tuition, "spend", _unspent),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a grid by the true number of rows",
        about="How many cells are counted follows from how many rows there are.",
        subject=named("learn: KMeans, many rows"),
        patch=in_place(tuition.Tuition, "count", _by_true_rows),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="offsets clipped too late",
        about="Rows far from their centre count for more than the noise of the sums was made for.",
        subject=named("learn: KMeans"),
        patch=in_place(kmeans_rounds, "summed", _unclipped),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a person taken for one row",
        about="Sums over people with two rows each are noised for one.",
        subject=named("learn: KMeans, people"),
        patch=both(in_place(tuition, "reached", _rows_of_one), in_place(kmeans_rounds, "reached", _rows_of_one)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="rows of products not shortened",
        about="Rows that are longer than the noise of their products was made for count at full length.",
        subject=named("learn: PCA"),
        patch=in_place(gram, "shortened", _at_full_length),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="bounds read off the data",
        about="Columns are scaled by their exact ends, for nothing.",
        subject=named("learn: LinearRegression, bounds bought"),
        patch=in_place(regression, "bounds_of", _exact_ends),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="cells converted at once",
        about="A table is handed to NumPy, whose error has the first cell in it that is no number.",
        subject=named("learn, poisoned: StandardScaler, bounds bought"),
        patch=in_place(estimator, "table", _converted_at_once),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="labels of one type",
        about="One label that is a text turns everybody's numbers into texts, and none of them is a class any more.",
        subject=named("learn, poisoned: LogisticRegression"),
        patch=in_place(classes, "values_of", _labels_at_once),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="rows in an engine not weighed",
        about="A person with many rows counts with all of them in sums that an engine makes.",
        subject=named("learn, in an engine: PCA, people"),
        patch=in_place(asked.Formula, "weight", property(_no_weight)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="values in an engine not clipped",
        about="Formulas that are sent to an engine leave out where values are cut off.",
        subject=named("learn, in an engine: StandardScaler, bounds bought, people"),
        patch=in_place(totals.Number, "clipped", _as_it_is),
        caught=Caught.REPLAY,
    ),
)
