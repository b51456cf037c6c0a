"""Naive Bayes over cells of columns, made less naive: columns that say the same are weighed down."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learn.bayes.bayes import SCORES, _Bayes
from hubbub.learn.estimator import column_bounds, read_labels
from hubbub.learn.linear.regression import Solver
from hubbub.learn.quantile_transformer import measure_quantiles
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.classes import choose_classes, code_classes, place_labels, read_classes
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.histograms import NoisyHistogram, tally
from hubbub.learn.statistics.moments import foresee_deviation, measure_products
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.parameters import between, whole
from hubbub.query.totals import Number, beside, number

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
            in one cell of each; ``measure_products`` of rows of log-odds, which follow from the row's cells and the
            tally; and ``calibrate``. Everything else is computed from these releases.
        Needs: ``Tuition``.
        Ref: Vaidya, Shafiq, Basu, Hong 2013; Dwork, Talwar, Thakurta, Zhang 2014.
    """

    def __init__(
        self, *, categories: Any = None, n_bins: int = 16, alpha: float = 1.0, weighted: bool = True,
        epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None, classes: Any = None, max_rows: int = 1,
        meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:  # noqa: N803
        """Count, weigh, calibrate."""
        data = self._data(X, groups)
        return self._study(partial(self._measure, read_labels(y, data)), data)

    def _check(self, *, width: int, grouped: bool) -> None:
        known = _read_categories(self.categories, columns=width)
        read_classes(self.classes, delta=self.delta)
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

    def _measure(self, named: Array | None, data: Features, tuition: Tuition) -> str:
        """Measure classes, cells, counts and scores."""
        alpha, rows = float(self.alpha), data.here
        known = _read_categories(self.categories, columns=data.width)
        self.classes_ = choose_classes(self.classes, named, data, tuition=tuition)
        assert named is not None
        self.cuts_ = self._cells(data, known, tuition=tuition)
        two = len(self.classes_) == 2
        scores = tuition.left * SCORES if two else Fraction(0)
        weights = (tuition.left - scores) * WEIGHTS if two and self.weighted else Fraction(0)
        codes = place_labels(named, self.classes_).astype(np.float64)
        data = Features.of(np.column_stack(self._code(rows.table)), rows.crowd).beside(codes)
        many = len(self.classes_)
        placed = [
            code_classes(data, (len(cut) + 2) * many, cell=data.x[place] * float(many))
            for place, cut in enumerate(self.cuts_)
        ]
        found = tally(
            placed, data, tuition=tuition, share=tuition.left - scores - weights, label="cells within classes"
        )
        self._read(found, alpha=alpha)
        self.weights_ = None
        # Where noise would drown the products, equal weights are better, and calibration gets what is left.
        width = data.width + 2
        if weights and DROWNED * float(self.class_count_.sum()) > width**1.5 * foresee_deviation(
            width=width, most=data.most, tuition=tuition, share=weights
        ):
            self.weights_ = self._weigh_columns(data, tuition=tuition, share=weights)
        self._calibrate(data, tuition=tuition)
        return f"Expected error of a cell's count: {found.deviation:.3g} rows, one in three."

    def _cells(self, data: Features, known: list[Array | None], *, tuition: Tuition) -> list[Array]:
        """Return cut points of each column, bought together where they are not declared."""
        open_ones = [place for place, cut in enumerate(known) if cut is None]
        if not open_ones:
            return [cut for cut in known if cut is not None]
        rows, count = data.here, whole("n_bins", self.n_bins, least=2, most=1024)
        part = Features.of(rows.table[:, open_ones], rows.crowd)
        low, high = buy_bounds(self._bounds(open_ones, columns=data.width), part.x, part, tuition=tuition)
        bought = measure_quantiles(part, low, high, count - 1, tuition=tuition, share=tuition.left * CELLS)
        for place, cut in zip(open_ones, bought.T, strict=True):
            known[place] = np.unique(cut)
        return [cut for cut in known if cut is not None]

    def _code(self, x: Array) -> list[Array]:
        """The cell of each value: between the cut points, or the last one where it is missing."""
        return [
            np.where(np.isfinite(column), np.searchsorted(cut, column, side="right"), len(cut) + 1)
            for cut, column in zip(self.cuts_, np.ascontiguousarray(x.T), strict=True)
        ]

    def _read(self, found: NoisyHistogram, *, alpha: float) -> None:
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

    def _each_odds(self, cells: Number) -> Number:
        """Return each column's log-odds of the second of two classes."""
        tables = ((odds[:, 1] - odds[:, 0]).tolist() for odds in self.log_odds_)
        return beside(*(cells[place].pick(table) for place, table in enumerate(tables)))

    def _odds(self, cells: Number) -> Number:
        return self._each_odds(cells).added() + float(np.log(self.class_prior_[1] / self.class_prior_[0]))

    def _weigh_columns(self, data: Features, *, tuition: Tuition, share: Fraction) -> Array:
        """Return an offset and a weight for each column's log-odds: least squares about equal weights."""
        each = [odds[:, 1] - odds[:, 0] for odds in self.log_odds_]
        heavy = [count.sum(axis=1) + 1e-9 for count in self.category_count_]
        mean = np.array([np.average(odds, weights=some) for odds, some in zip(each, heavy, strict=True)])
        square = np.array([np.average(odds**2, weights=some) for odds, some in zip(each, heavy, strict=True)])
        size = np.sqrt(np.maximum(square - mean**2, 0.0) + LEAST)
        rate = float(self.class_prior_[1])
        spread = float(np.sqrt(rate * (1 - rate)))
        width = len(each) + 1
        radius = float(np.sqrt(width + 1))
        standard = (self._each_odds(data.x) - mean.tolist()) / size.tolist()
        counts = number(1.0) - number(0.0).above(data.y)
        rows = beside(1.0, standard, (data.y - rate) / spread) * (counts / radius)
        found = measure_products(
            rows, data, radius=radius, tuition=tuition, share=share, label="products of columns' log-odds"
        )
        inner, right = found.matrix[:-1, :-1], found.matrix[:-1, -1]
        naive = np.append(0.0, size)
        naive *= max(0.0, float(naive @ right)) / max(float(naive @ inner @ naive), found.spread * float(naive @ naive))
        solver = Solver.of(found, width=width, times=RIDGE)
        weights = naive + solver.solve(right - inner @ naive, noise=found.beside)
        slopes = weights[1:] / size
        return np.append(weights[0] - slopes @ mean, slopes)

    def _score(self, x: Number) -> Number:
        if self.weights_ is None:
            return super()._score(x)
        score = (self._each_odds(x) * self.weights_[1:].tolist()).added() + float(self.weights_[0])
        place: Number = ((score - LOW) / (HIGH - LOW)).clip(0.0, 1.0)
        return place

    def _places(self, x: Array) -> Array:
        return super()._places(np.column_stack(self._code(x)))

    def _even_score(self) -> float | None:
        if self.weights_ is None:
            return None
        rate = float(self.class_prior_[1])
        return ((0.5 - rate) / max(float(np.sqrt(rate * (1 - rate))), np.finfo(float).tiny) - LOW) / (HIGH - LOW)

    def _joint_log_likelihood(self, x: Array) -> Array:
        start = np.broadcast_to(np.log(self.class_prior_), (len(x), len(self.classes_)))
        cells = self._code(x)
        return np.asarray(start + sum(odds[one] for odds, one in zip(self.log_odds_, cells, strict=True)))


def _read_categories(categories: Any, *, columns: int) -> list[Array | None]:
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
