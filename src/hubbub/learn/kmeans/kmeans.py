"""k-means: clusters of cells of a noisy grid, then a few rounds of noisy sums around what was found."""

from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.learn.estimator import Private
from hubbub.learn.kmeans.axes import DEEP, Box, Shadow
from hubbub.learn.kmeans.grid import FLAT, Found, GridBudget, cluster_cells
from hubbub.learn.kmeans.rounds import Round, farness, improve, spread_points
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import fill_missing
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.parameters import whole

ALGORITHMS = ("auto", "grid", "lloyd")
COUNTED, HISTOGRAMS = Fraction(1, 50), Fraction(1, 5)
"""Shares of what is left after the bounds: for the number of rows, and for the histograms of columns."""
DIRECTIONS = 8
ROUNDS = 5
"""Of Lloyd's algorithm without a grid."""


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Private):  # type: ignore[misc]
    """Cluster centres that are private; there are no ``labels_`` and no ``inertia_``, which would not be.

    ``algorithm``: "grid" counts rows in cells of a grid that follows noisy histograms, clusters the cells, and moves
    the centres by noisy sums; "lloyd" starts from points spread over the box and spends everything on sums and counts.
    "auto" is the grid, which is never much worse; in more than 12 columns it is a grid over random directions.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: rows are read by tallies of cells and by sums around earlier centres alone (``kmeans_grid``,
            ``kmeans_rounds``), each for its share; how many cells, and how large they are, follows from public
            parameters, a noisy number of rows and noisy histograms. Clustering cells is post-processing.
        Needs: ``Tuition``.
        Ref: Su, Cao, Li, Bertino, Jin 2016; Balcan, Dick, Liang, Mou, Zhang 2017.
    """

    def __init__(
        self, n_clusters: int = 8, *, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None,
        algorithm: str = "auto", max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:  # noqa: N803
        """Find centres."""
        clusters = whole("n_clusters", self.n_clusters, least=1, most=1 << 14)
        if self.algorithm not in ALGORITHMS:
            raise ParameterError("algorithm", f"one of {', '.join(ALGORITHMS)}", self.algorithm)
        return self._study(partial(self._measure, clusters), self._data(X, groups))

    def _measure(self, clusters: int, data: Features, tuition: Tuition) -> str:
        """Measure bounds, cells and sums."""
        low, high = buy_bounds(self.bounds, data.x, data, tuition=tuition)
        box = Box.of(data, low, high)
        price = tuition.left
        rows = max(float(clusters), tuition.count(data, share=price * COUNTED))
        buyer = GridBudget(tuition=tuition, data=data, rows=rows)
        lloyd = self.algorithm == "lloyd"
        found, error = (_lloyd if lloyd else _grid)(box, clusters, buyer=buyer, price=price)
        self.low_, self.high_ = low, high
        self.cluster_centers_ = box.place(found.centres)
        self._n_features_out = clusters
        excess = error * box.unit**2
        # 0: no sum was worth its noise. The other end is what one centre in the middle of even rows would have.
        tuition.useless = excess <= 0 or excess >= float(((high - low) ** 2).sum()) / 12
        return f"Noise in the sums adds about {excess:.3g} to the mean squared distance."

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The nearest centre of each row that is passed: post-processing for whoever has these rows."""
        return np.asarray(self._squared_distances(X).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None, *, groups: Any = None) -> Array:  # noqa: N803
        """Fit, then predict. Centres are private; a label is its row's own, and belongs to whoever has the row."""
        return self.fit(X, y, groups=groups).predict(X)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """The distance of each row that is passed from each centre."""
        return np.asarray(np.sqrt(self._squared_distances(X)))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Minus the sum of squared distances of the rows that are passed: of the caller's own, and not private."""
        return -float(self._squared_distances(X).min(axis=1).sum())

    def _squared_distances(self, rows: Any) -> Array:
        check_is_fitted(self)
        x = self._features(rows)
        inside = np.clip(fill_missing(x, missing=(self.low_ + self.high_) / 2), self.low_, self.high_)
        found = np.empty((len(x), len(self.cluster_centers_)))
        for start in range(0, len(x), 1 << 12):
            part = slice(start, start + (1 << 12))
            found[part] = ((inside[part, None, :] - self.cluster_centers_[None]) ** 2).sum(axis=2)
        return found


def _grid(box: Box, clusters: int, *, buyer: GridBudget, price: Fraction) -> tuple[Found, float]:
    """Cells first; then one round, or two where cells of many columns are coarse."""
    width = len(box.ends)
    many = 1 if width <= FLAT else 2
    last = price * Fraction(1, 5)
    seen = Shadow.of(box, directions=DIRECTIONS) if width > DEEP else box
    share = price * (1 - COUNTED - HISTOGRAMS) - many * last
    found = cluster_cells(seen, clusters, buyer=buyer, histograms=price * HISTOGRAMS, share=share)
    error = 0.0
    for number in range(many):
        first = number == 0 and seen is not box
        if first:
            measured = Round(origin=np.zeros(width), far=np.maximum(box.ends, 1.0), counts=True)
        else:
            measured = Round(origin=found.centres, far=farness(found.spread, box.ends), counts=False)
        found, error = improve(
            found, box, buyer=buyer, share=last if number < many - 1 else buyer.tuition.left, measured=measured,
            seen=seen if first else box, label=f"sums {number + 1}",
        )  # fmt: skip
        if first and isinstance(seen, Shadow):
            spread = np.full(width, float(np.sqrt((found.spread**2).mean())) * seen.shrunk)
            found = Found(centres=found.centres, weights=found.weights, spread=spread)
    return found, error


def _lloyd(box: Box, clusters: int, *, buyer: GridBudget, price: Fraction) -> tuple[Found, float]:
    """Sums and counts, jointly, again and again."""
    even = np.full(clusters, buyer.rows / clusters)
    found = Found(centres=spread_points(clusters, box.ends), weights=even, spread=box.ends)
    error = 0.0
    for number in range(ROUNDS):
        share = price * (1 - COUNTED) / ROUNDS if number < ROUNDS - 1 else buyer.tuition.left
        measured = Round(origin=np.zeros(len(box.ends)), far=np.maximum(box.ends, 1.0), counts=True)
        found, error = improve(
            found, box, buyer=buyer, share=share, measured=measured, seen=box, label=f"sums and counts {number + 1}"
        )
    return found, error
