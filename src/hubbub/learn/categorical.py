"""Naive Bayes over cells of columns, made less naive: columns that say the same are weighed down."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learn.bayes import SCORES, _Bayes
from hubbub.learn.blocks import row_products
from hubbub.learn.bought import bounds_of
from hubbub.learn.cells import Array
from hubbub.learn.classes import classes_of, codes_of, declared
from hubbub.learn.crowd import Crowd
from hubbub.learn.estimator import column_bounds, labels
from hubbub.learn.gram import foreseen, gram
from hubbub.learn.quantile import quantiles_of
from hubbub.learn.solving import Solver
from hubbub.learn.tally import Tally, tally
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.parameters import between, whole

CELLS = Fraction(1, 5)
"""Of the price, for cells of columns whose cells nobody declared."""
WEIGHTS = Fraction(1, 4)
"""Of what is left, for the weights of columns (two classes)."""
SMOOTH = 2.0
"""Counts are pulled towards the classes' shares as if so many standard deviations of noise had been rows there."""
MOST = 3.0
"""No cell of one column changes the log-odds by more."""
RIDGE = 2.0
"""Weights keep to the naive ones by so many times the noise's size."""
LEAST = 0.01
"""Added to the variance of a column's log-odds: one that says nothing is not blown up."""
DROWNED = 0.5
"""Products are measured only if their noise, as a matrix, is below this share of the rows."""
MOST_CELLS = 1 << 16
LOW, HIGH = -3.0, 5.0
"""Ends of weighed scores, in standard deviations of the label."""


class CategoricalNB(_Bayes):
    """Counts of every column's cells within classes.

    ``categories`` has one entry a column: a number k for codes 0 … k − 1, a list of cut points for numbers, or None for
    ``n_bins`` cells that are bought by private quantiles; None for all columns alike. What is missing has a cell of its
    own. With two classes the columns' log-odds are weighed by a regression on the label (``weighted``), which mends
    that columns repeat each other, and the final score is calibrated.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: classes, bounds and cells that are declared or bought; then a ``tally`` of all columns, in which a row is
            in one cell of each; ``gram`` of rows of log-odds, which follow from the row's cells and the tally; and
            ``calibrated``. Everything else is computed from these releases.
        Needs: ``Tuition``.
        Ref: Vaidya, Shafiq, Basu, Hong 2013; Dwork, Talwar, Thakurta, Zhang 2014.
    """

    def __init__(
        self, *, categories: Any = None, n_bins: int = 16, alpha: float = 1.0, weighted: bool = True,
        epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None, classes: Any = None, max_rows: int = 1,
        meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.categories = categories
        self.n_bins = n_bins
        self.alpha = alpha
        self.weighted = weighted
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.max_rows = max_rows
        self.meter = meter
        self.account = account
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:  # noqa: N803
        """Count, weigh, calibrate."""
        x = self._features(X, reset=True)
        named = labels(y, rows=len(x))
        return self._study(partial(self._measure, x, named), x=x, groups=groups)

    def _check(self, *, width: int, grouped: bool) -> None:
        known = _declared(self.categories, columns=width)
        declared(self.classes, delta=self.delta)
        between("alpha", self.alpha, 0, 1e12)
        whole("n_bins", self.n_bins, least=2, most=1024)
        open_ones = [place for place, cut in enumerate(known) if cut is None]
        if open_ones:
            column_bounds(self._bounds(open_ones, columns=width), columns=len(open_ones))

    def _bounds(self, open_ones: list[int], *, columns: int) -> Any:
        """The declared bounds of the columns whose cells are bought."""
        bounds = self.bounds
        if bounds is not None and np.ndim(bounds[0]) == 1 and len(bounds[0]) == columns:
            return tuple(np.asarray(side)[open_ones] for side in bounds)
        return bounds

    def _measure(self, x: Array, named: Array, tuition: Tuition, crowd: Crowd) -> str:
        """Measure classes, cells, counts and scores."""
        alpha = float(self.alpha)
        known = _declared(self.categories, columns=x.shape[1])
        self.classes_ = classes_of(self.classes, named, crowd=crowd, tuition=tuition)
        codes = codes_of(named, self.classes_)
        self.cuts_ = self._cells(x, known, crowd=crowd, tuition=tuition)
        two = len(self.classes_) == 2
        scores = tuition.left * SCORES if two else Fraction(0)
        weights = (tuition.left - scores) * WEIGHTS if two and self.weighted else Fraction(0)
        cells = self._coded(x)
        sizes = [(len(cut) + 2) * len(self.classes_) for cut in self.cuts_]

        def placed(place: int, part: slice) -> Array:
            return np.where(codes[part] < 0, sizes[place], cells[place][part] * len(self.classes_) + codes[part])

        found = tally(
            placed, sizes,
            crowd=crowd, tuition=tuition, share=tuition.left - scores - weights, label="cells within classes",
        )  # fmt: skip
        self._read(found, alpha=alpha)
        self.weights_ = None
        # Where noise would drown the products, equal weights are better, and calibration gets what is left.
        width = x.shape[1] + 2
        if weights and DROWNED * float(self.class_count_.sum()) > width**1.5 * foreseen(
            width=width, crowd=crowd, tuition=tuition, share=weights
        ):
            self.weights_ = self._weighed(cells, codes, crowd=crowd, tuition=tuition, share=weights)
        self._calibrate(x, codes, crowd=crowd, tuition=tuition)
        return f"Expected error of a cell's count: {found.deviation:.3g} rows, one in three."

    def _cells(self, x: Array, known: list[Array | None], *, crowd: Crowd, tuition: Tuition) -> list[Array]:
        """Cut points of each column, bought together where they are not declared."""
        open_ones = [place for place, cut in enumerate(known) if cut is None]
        if not open_ones:
            return [cut for cut in known if cut is not None]
        part, count = x[:, open_ones], whole("n_bins", self.n_bins, least=2, most=1024)
        low, high = bounds_of(self._bounds(open_ones, columns=x.shape[1]), part, crowd=crowd, tuition=tuition)
        bought = quantiles_of(part, low, high, count - 1, crowd=crowd, tuition=tuition, share=tuition.left * CELLS)
        for place, cut in zip(open_ones, bought.T, strict=True):
            known[place] = np.unique(cut)
        return [cut for cut in known if cut is not None]

    def _coded(self, x: Array) -> list[Array]:
        """The cell of each value: between the cut points, or the last one where it is missing."""
        return [
            np.where(np.isfinite(column), np.searchsorted(cut, column, side="right"), len(cut) + 1)
            for cut, column in zip(self.cuts_, np.ascontiguousarray(x.T), strict=True)
        ]

    def _read(self, found: Tally, *, alpha: float) -> None:
        """Log-odds of classes in each cell against their shares of all rows."""
        tables = [table.reshape(-1, len(self.classes_)) for table in found.tables]
        # Every column's sum estimates the same totals, with as many cells' noise as it has.
        parts = np.array([1 / len(table) for table in tables])
        totals = np.maximum(sum(part * table.sum(axis=0) for part, table in zip(parts, tables, strict=True)), 0.0)
        self.class_count_ = np.maximum(totals / parts.sum(), 1.0)
        self.class_prior_ = self.class_count_ / self.class_count_.sum()
        pull = alpha + SMOOTH * found.deviation
        self.log_odds_, self.category_count_ = [], []
        for table in tables:
            counts = np.maximum(table + (self.class_count_ - table.sum(axis=0)) / len(table), 0.0)
            shares = (counts + pull * self.class_prior_) / (counts.sum(axis=1) + pull)[:, None]
            self.log_odds_.append(np.clip(np.log(shares / self.class_prior_), -MOST, MOST))
            self.category_count_.append(counts)

    def _odds(self, cells: list[Array]) -> Array:
        """Each column's log-odds of the second of two classes."""
        pairs = zip(self.log_odds_, cells, strict=True)
        return np.column_stack([(odds[:, 1] - odds[:, 0])[one] for odds, one in pairs])

    def _weighed(self, cells: list[Array], codes: Array, *, crowd: Crowd, tuition: Tuition, share: Fraction) -> Array:
        """An offset and one weight for each column's log-odds: least squares about equal ones, the naive weights."""
        each = [odds[:, 1] - odds[:, 0] for odds in self.log_odds_]
        heavy = [count.sum(axis=1) + 1e-9 for count in self.category_count_]
        mean = np.array([np.average(odds, weights=some) for odds, some in zip(each, heavy, strict=True)])
        square = np.array([np.average(odds**2, weights=some) for odds, some in zip(each, heavy, strict=True)])
        size = np.sqrt(np.maximum(square - mean**2, 0.0) + LEAST)
        rate = float(self.class_prior_[1])
        spread = float(np.sqrt(rate * (1 - rate)))
        width = len(each) + 1
        radius = float(np.sqrt(width + 1))

        def rows(part: slice) -> Array:
            standard = (self._odds([one[part] for one in cells]) - mean) / size
            label = (codes[part] - rate) / spread
            block = np.column_stack([np.ones(len(label)), standard, label])
            block[codes[part] < 0] = 0.0
            return np.asarray(block / radius)

        found = gram(
            rows, width=width + 1, radius=radius, crowd=crowd, tuition=tuition, share=share,
            label="products of columns' log-odds",
        )  # fmt: skip
        inner, right = found.matrix[:-1, :-1], found.matrix[:-1, -1]
        naive = np.append(0.0, size)
        naive *= max(0.0, float(naive @ right)) / max(float(naive @ inner @ naive), found.spread * float(naive @ naive))
        solver = Solver.of(found, width=width, times=RIDGE)
        weights = naive + solver.solve(right - inner @ naive, noise=found.beside)
        slopes = weights[1:] / size
        return np.append(weights[0] - slopes @ mean, slopes)

    def _places(self, x: Array) -> Array:
        if self.weights_ is None:
            return super()._places(x)
        score = row_products(self._odds(self._coded(x)), self.weights_[1:]) + self.weights_[0]
        return np.asarray(np.clip((score - LOW) / (HIGH - LOW), 0.0, 1.0))

    def _expected(self) -> float | None:
        if self.weights_ is None:
            return None
        rate = float(self.class_prior_[1])
        return ((0.5 - rate) / max(float(np.sqrt(rate * (1 - rate))), np.finfo(float).tiny) - LOW) / (HIGH - LOW)

    def _joint_log_likelihood(self, x: Array) -> Array:
        start = np.broadcast_to(np.log(self.class_prior_), (len(x), len(self.classes_)))
        cells = self._coded(x)
        return np.asarray(start + sum(odds[one] for odds, one in zip(self.log_odds_, cells, strict=True)))


def _declared(categories: Any, *, columns: int) -> list[Array | None]:
    """Cut points of each column, None where they are to be bought."""
    if categories is None:
        return [None] * columns
    wanted = "one entry a column: a number of codes, a list of cut points, or None"
    if not isinstance(categories, Sequence | np.ndarray) or len(categories) != columns:
        raise ParameterError("categories", wanted, categories)
    found: list[Array | None] = []
    for one in categories:
        if one is None:
            found.append(None)
        elif np.ndim(one) == 0:
            found.append(np.arange(1, whole("categories", int(one), least=1, most=MOST_CELLS)) - 0.5)
        else:
            cut = np.asarray(one, dtype=np.float64)
            if cut.ndim != 1 or len(cut) > MOST_CELLS or not np.isfinite(cut).all() or np.any(np.diff(cut) <= 0):
                raise ParameterError("categories", "cut points that ascend", one)
            found.append(cut)
    return found
