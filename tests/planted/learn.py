"""Bugs in what is learned: exact numbers beside noisy ones, bounds that do not bound, and shares spent twice."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.engines.arrays import blocks
from hubbub.learn import estimator, scaler, tuition
from hubbub.learn.kmeans import kmeans
from hubbub.learn.kmeans import rounds as kmeans_rounds
from hubbub.learn.linear import regression
from hubbub.learn.statistics import classes
from hubbub.learn.statistics import row_steps as steps
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.query import totals
from tests.planted.plant import Caught, Planted, both, in_place, named

_fit, _fitted_scaler = kmeans.KMeans.fit, scaler.StandardScaler.fit
_summed, _reached = kmeans_rounds.sum_offsets, tuition.reach_of


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


def _low_twice(x: totals.Number, low: Array, high: Array) -> totals.Number:
    half = (high - low) / 2
    moved: totals.Number = (x.fill_missing(low.tolist()) - (low + half).tolist()) / half.tolist()
    return moved._with("greatest", -1.0)


def _low_alone(value: totals.Number, low: Any, high: Any) -> totals.Number:
    return value._with("greatest", low)._with("least", 1e6)


def _unspent(self: tuition.Tuition, share: Any) -> Fraction:
    return Fraction(share)


def _by_true_rows(self: tuition.Tuition, data: Features, *, share: Any, label: str = "number of rows") -> float:
    self.spend(share)
    return float(len(data.here.table))


def _unclipped(centres: Array, points: Any, data: Features, *, measured: Any, ends: Array, seen: Any) -> Any:
    """Sums whose coordinates are cut off four times further out than their noise was made for."""
    far = replace(measured, far=4 * measured.far)
    return _summed(centres, points, data, measured=far, ends=4 * ends, seen=seen)


def _rows_of_one(parts: steps.Steps, data: Features) -> Any:
    return _reached(parts, replace(data, most=1))


def _at_full_length(rows: Array, most: float, weights: Array | None, *, out: Array, room: Array) -> Array:
    return np.trunc(np.multiply(rows, most, out=out), out=out)


def _exact_ends(bounds: Any, x: Any, data: Features, **_: Any) -> Any:
    known = data.here.arrays.rows(x.known([0.0] * x.width))
    return known.min(axis=0) - 1.0, known.max(axis=0) + 1.0


def _converted_at_once(x: Any) -> Array:
    """All cells by one call of NumPy's, which stops at the first one that is no number."""
    return np.asarray(x, dtype=np.float64)


def _labels_at_once(given: Array) -> list[Any]:
    """Labels through one array, whose type all of them share: a text makes texts of the numbers beside it."""
    shared = np.asarray([one if isinstance(one, int | float | str) else 0 for one in given.tolist()])
    return [str(one) if shared.dtype.kind == "U" else one for one in shared.tolist()]


def _no_weight(_: Features) -> None:
    return None


def _as_it_is(value: totals.Number, _: Any, __: Any) -> totals.Number:
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
        patch=both(in_place(scaler, "unit_rows", _low_twice), in_place(totals.Number, "clip", _low_alone)),
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
        patch=in_place(kmeans_rounds, "sum_offsets", _unclipped),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a person taken for one row",
        about="Sums over people with two rows each are noised for one.",
        subject=named("learn: KMeans, people"),
        patch=in_place(tuition, "reach_of", _rows_of_one),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="rows of products not shortened",
        about="Rows that are longer than the noise of their products was made for count at full length.",
        subject=named("learn: PCA"),
        patch=in_place(blocks, "shorten", _at_full_length),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="bounds read off the data",
        about="Columns are scaled by their exact ends, for nothing.",
        subject=named("learn: LinearRegression, bounds bought"),
        patch=in_place(regression, "buy_bounds", _exact_ends),
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
        patch=in_place(Features, "weight", property(_no_weight)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="values in an engine not clipped",
        about="Formulas that are sent to an engine leave out where values are cut off.",
        subject=named("learn, in an engine: StandardScaler, bounds bought, people"),
        patch=in_place(totals.Number, "clip", _as_it_is),
        caught=Caught.REPLAY,
    ),
)
