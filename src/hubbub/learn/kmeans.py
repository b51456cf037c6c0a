"""k-means: clusters of cells of a noisy grid, then a few rounds of noisy sums around what was found."""

from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.learn.blocks import parts_of
from hubbub.learn.bought import bounds_of
from hubbub.learn.cells import Array
from hubbub.learn.crowd import Crowd
from hubbub.learn.estimator import Private
from hubbub.learn.kmeans_box import DEEP, Box, Shadow
from hubbub.learn.kmeans_grid import FLAT, Buyer, Found, gridded
from hubbub.learn.kmeans_rounds import Round, farness, improved, spread_points
from hubbub.learn.steps import cleaned
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
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.algorithm = algorithm
        self.max_rows = max_rows
        self.meter = meter
        self.account = account
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:  # noqa: N803
        """Find centres."""
        clusters = whole("n_clusters", self.n_clusters, least=1, most=1 << 14)
        if self.algorithm not in ALGORITHMS:
            raise ParameterError("algorithm", f"one of {', '.join(ALGORITHMS)}", self.algorithm)
        x = self._features(X, reset=True)
        return self._study(partial(self._measure, x, clusters), x=x, groups=groups)

    def _measure(self, x: Any, clusters: int, tuition: Tuition, crowd: Crowd) -> str:
        """Measure bounds, cells and sums."""
        low, high = bounds_of(self.bounds, x, crowd=crowd, tuition=tuition)
        box = Box.of(x, low, high)
        price = tuition.left
        rows = max(float(clusters), tuition.count(crowd, share=price * COUNTED))
        buyer = Buyer(tuition=tuition, crowd=crowd, rows=rows)
        lloyd = self.algorithm == "lloyd"
        found, error = (_lloyd if lloyd else _grid)(box, clusters, buyer=buyer, price=price)
        self.low_, self.high_ = low, high
        self.cluster_centers_ = box.placed(found.centres)
        self._n_features_out = clusters
        excess = error * box.unit**2
        return f"Noise in the sums adds about {excess:.3g} to the mean squared distance."

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The nearest centre of each row that is passed: post-processing for whoever has these rows."""
        return np.asarray(self._squared(X).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None, *, groups: Any = None) -> Array:  # noqa: N803
        """Fit, then predict. Centres are private; a label is its row's own, and belongs to whoever has the row."""
        return self.fit(X, y, groups=groups).predict(X)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """The distance of each row that is passed from each centre."""
        return np.asarray(np.sqrt(self._squared(X)))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Minus the sum of squared distances of the rows that are passed: of the caller's own, and not private."""
        return -float(self._squared(X).min(axis=1).sum())

    def _squared(self, rows: Any) -> Array:
        check_is_fitted(self)
        x = self._features(rows, reset=False)
        inside = np.clip(cleaned(x, missing=(self.low_ + self.high_) / 2), self.low_, self.high_)
        found = np.empty((len(x), len(self.cluster_centers_)))
        for part in parts_of(len(x), size=1 << 12):
            found[part] = ((inside[part, None, :] - self.cluster_centers_[None]) ** 2).sum(axis=2)
        return found


def _grid(box: Box, clusters: int, *, buyer: Buyer, price: Fraction) -> tuple[Found, float]:
    """Cells first; then one round, or two where cells of many columns are coarse."""
    width = len(box.ends)
    many = 1 if width <= FLAT else 2
    last = price * Fraction(1, 5)
    seen = Shadow.of(box, directions=DIRECTIONS) if width > DEEP else box
    share = price * (1 - COUNTED - HISTOGRAMS) - many * last
    found = gridded(seen, clusters, buyer=buyer, histograms=price * HISTOGRAMS, share=share)
    error = 0.0
    for number in range(many):
        first = number == 0 and seen is not box
        if first:
            measured = Round(origin=np.zeros(width), far=np.maximum(box.ends, 1.0), counts=True)
        else:
            measured = Round(origin=found.centres, far=farness(found.spread, box.ends), counts=False)
        found, error = improved(
            found, box, buyer=buyer, share=last if number < many - 1 else buyer.tuition.left, measured=measured,
            seen=seen if first else box, label=f"sums {number + 1}",
        )  # fmt: skip
        if first and isinstance(seen, Shadow):
            spread = np.full(width, float(np.sqrt((found.spread**2).mean())) * seen.shrunk)
            found = Found(centres=found.centres, weights=found.weights, spread=spread)
    return found, error


def _lloyd(box: Box, clusters: int, *, buyer: Buyer, price: Fraction) -> tuple[Found, float]:
    """Sums and counts, jointly, again and again."""
    even = np.full(clusters, buyer.rows / clusters)
    found = Found(centres=spread_points(clusters, box.ends), weights=even, spread=box.ends)
    error = 0.0
    for number in range(ROUNDS):
        share = price * (1 - COUNTED) / ROUNDS if number < ROUNDS - 1 else buyer.tuition.left
        measured = Round(origin=np.zeros(len(box.ends)), far=np.maximum(box.ends, 1.0), counts=True)
        found, error = improved(
            found, box, buyer=buyer, share=share, measured=measured, seen=box, label=f"sums and counts {number + 1}"
        )
    return found, error
