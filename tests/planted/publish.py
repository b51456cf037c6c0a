"""Bugs in what is published at once: in how far one unit moves a tree, a wavelet, a matrix, a table or a sketch."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.staged.resolution import Resolution
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.publish import terms
from hubbub.publish.marginals import cube_basis
from hubbub.publish.marginals.cube_basis import Coefficients
from hubbub.publish.marginals.records import Axes, DenseRecords
from hubbub.publish.marginals.residual import Residuals
from hubbub.publish.strategies import layer as layers
from hubbub.publish.strategies import strategy
from hubbub.publish.strategies.haar import Band
from hubbub.publish.strategies.hashed import Hashed, Signs
from hubbub.publish.strategies.layer import Array, CellLayer, Nodes, Shape
from hubbub.publish.strategies.nested import Groups
from hubbub.publish.strategies.rounded_matrix import Along
from hubbub.publish.strategies.topdown import TopDown
from hubbub.publish.terms import Contribution, Noise, Terms
from tests.planted.plant import Caught, Patch, Planted, both, in_place, named

_through, _of_band, _of_matrix, _of_residuals = Contribution.through, Band.reach, Along.reach, Residuals.reach
_mechanisms, _score_reach = terms.mechanisms, Resolution.score_reach


def _reach(layer: type, wrong: Callable[[Any, Contribution], Sensitivity]) -> Patch:
    return in_place(layer, "reach", wrong)


# What one unit adds


def _each_of_one(self: CellLayer, one: Contribution) -> Sensitivity:
    return one.through(column_l1=1, squares=one.cells, signed=False)


def _cells_alone(self: Contribution, **bounds: Any) -> Sensitivity:
    return _through(replace(self, each=1, total=self.cells), **bounds)


def _as_if_added(self: Contribution, **bounds: Any) -> Sensitivity:
    return _through(replace(self, neighbors=Neighbors.ADD_REMOVE), **bounds)


# Trees and wavelets


def _one_node_a_cell(self: Nodes | Groups, one: Contribution) -> Sensitivity:
    return one.through(column_l1=1, squares=one.pack(1), signed=False)


def _wrapped(cells: Array, *, terms: int) -> Array:
    return cells.astype(np.int64)


def _unsigned(self: Band, one: Contribution) -> Sensitivity:
    if not any(self.band):
        return _of_band(self, one)
    return one.through(column_l1=1, squares=one.pack(math.prod(self.blocks) // 2), signed=False)


def _base_of_one_cell(self: Band, one: Contribution) -> Sensitivity:
    return _of_band(self, one if any(self.band) else Contribution(each=one.each, neighbors=one.neighbors))


# Prices


def _whole_price(
    terms: Terms, noise: Noise, reaches: Sequence[Sensitivity], shares: Sequence[Fraction]
) -> tuple[Geometric | Gaussian, ...]:
    return tuple(_mechanisms(terms, noise, [reach], [Fraction(1)])[0] for reach in reaches)


def _one_by_one(
    terms: Terms, noise: Noise, reaches: Sequence[Sensitivity], shares: Sequence[Fraction]
) -> tuple[Geometric | Gaussian, ...]:
    return tuple(_mechanisms(terms, noise, [reach], [share])[0] for reach, share in zip(reaches, shares, strict=True))


def _of_the_greatest(self: TopDown, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
    weights = [Fraction(one) for one in self.weights]
    return tuple(one / max(weights) for one in weights)


# Matrices


def _before_rounding(self: Along, one: Contribution) -> Sensitivity:
    """Columns have length 1 until they are rounded, on a grid of 2^-16."""
    return one.through(column_l1=1 << 16, squares=(one.total << 16) ** 2, signed=False)


def _mean_column(self: Along, one: Contribution) -> Sensitivity:
    (factor,) = self.factors
    squares = int(np.square(factor.entries).sum(axis=0).mean())
    return one.through(column_l1=factor.column_l1, squares=one.total**2 * squares, signed=False)


def _orthogonal_columns(self: Along, one: Contribution) -> Sensitivity:
    squares = one.pack(1) * math.prod(factor.column_squares for factor in self.factors)
    return one.through(column_l1=math.prod(factor.column_l1 for factor in self.factors), squares=squares, signed=False)


def _one_factor(self: Along, one: Contribution) -> Sensitivity:
    return _of_matrix(Along(shape=(self.shape[0],), factors=self.factors[:1]), one)


# Tables and sketches


def _one_set(self: Residuals, one: Contribution) -> Sensitivity:
    each = [
        _of_residuals(Residuals(shape=self.shape, sets=(held,), scales=(scale,)), one)
        for held, scale in zip(self.sets, self.scales, strict=True)
    ]
    return max(each, key=lambda found: found.l1 or 0)


def _one_coefficient(self: Coefficients, one: Contribution) -> Sensitivity:
    return one.through(column_l1=1, squares=one.total**2, signed=True)


def _one_row(self: Hashed, one: Contribution) -> Sensitivity:
    return one.through(column_l1=1, squares=one.total**2, signed=True)


def _norms_kept(self: Signs, one: Contribution) -> Sensitivity:
    return one.through(column_l1=self.size, squares=self.size * one.pack(1), signed=True)


def _by_its_size(self: DenseRecords, axes: Axes) -> Array:
    """NumPy takes unsigned numbers for a single sum above 2^63, and floats for those beside signed ones."""
    rest = tuple(axis for axis in range(self._cells.ndim) if axis not in axes)
    return np.asarray(self._cells.sum(axis=rest))


def _signed_by_size(table: Array) -> Array:
    for axis in reversed(range(table.ndim)):
        if table.shape[axis] == 2:
            table = np.take(table, 0, axis=axis) - np.take(table, 1, axis=axis)
    return np.asarray(table)


def _score_of_one_row(self: Resolution, blocks: int) -> int:
    return -(-_score_reach(self, blocks) // self.reach)


PUBLISH = (
    Planted(
        name="one node for each cell of a unit",
        about="A unit's cells may lie under one node of a tree, and the L2 norm was that of cells far apart.",
        subject=named("publish: hierarchy, gaussian"),
        patch=_reach(Nodes, _one_node_a_cell),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="one place for each cell of a unit",
        about="The same in a geography: a unit's blocks may all lie in one county.",
        subject=named("publish: top-down, gaussian"),
        patch=_reach(Groups, _one_node_a_cell),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="every level at the whole price",
        about="Each level of a tree is a histogram, and each gets the ε of one.",
        subject=named("publish: hierarchy"),
        patch=in_place(strategy, "mechanisms", _whole_price),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="shares of the greatest",
        about="Shares of a price relative to the greatest of them and not to their sum, and nobody adds them up.",
        subject=named("publish: top-down"),
        patch=both(in_place(strategy, "mechanisms", _one_by_one), in_place(TopDown, "shares", _of_the_greatest)),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="sums that wrap",
        about="Blocks are added up in 64 bits: one unit more, and a large sum is a large negative one.",
        subject=named("publish: hierarchy"),
        patch=in_place(layers, "exact", _wrapped),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="a wavelet's signs forgotten",
        about="Replaced units in one half and in the other of a block: the differences add up, and do not cancel.",
        subject=named("publish: wavelet, gaussian, replace-one"),
        patch=_reach(Band, _unsigned),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="a wavelet's base for one cell",
        about="The sum of all cells moves by all that a unit adds, and was given the noise of one cell.",
        subject=named("publish: wavelet"),
        patch=_reach(Band, _base_of_one_cell),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="the matrix before it was rounded",
        about="A matrix is rounded to a grid, and the norms of its columns are those that it had before.",
        subject=named("publish: matrix for one cell a unit, gaussian"),
        patch=_reach(Along, _before_rounding),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="the mean column of a matrix",
        about="The sensitivity of a strategy by its mean column: the greatest decides.",
        subject=named("publish: matrix for one cell a unit, gaussian"),
        patch=_reach(Along, _mean_column),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="columns of a matrix as if at right angles",
        about="Squares of a unit's cells added up, though their columns overlap.",
        subject=named("publish: matrix, gaussian"),
        patch=_reach(Along, _orthogonal_columns),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="one factor of a product",
        about="The sensitivity of a product of matrices is that of the first.",
        subject=named("publish: matrix in two dimensions, gaussian"),
        patch=_reach(Along, _one_factor),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="marginals charged once",
        about="A row is in every marginal, and the noise was for one of them.",
        subject=named("publish: marginals"),
        patch=_reach(Residuals, _one_set),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="one coefficient of a cube",
        about="A row is in every coefficient of a cube, and the noise was for one.",
        subject=named("publish: cube"),
        patch=_reach(Coefficients, _one_coefficient),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="a sum that takes its type by its size",
        about="A total above 2^63 becomes a float, which is refused: the error tells how many rows there are.",
        subject=named("publish: cube"),
        patch=both(
            in_place(DenseRecords, "marginal", _by_its_size), in_place(cube_basis, "contrast_pairs", _signed_by_size)
        ),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="one row of a sketch",
        about="A cell is in a number of every row of a sketch, and the noise was for one row.",
        subject=named("publish: count-sketch"),
        patch=_reach(Hashed, _one_row),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="a sketch that keeps norms",
        about="Random sums keep norms on the average, and a unit's cells need not be average.",
        subject=named("publish: johnson-lindenstrauss, gaussian"),
        patch=_reach(Signs, _norms_kept),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="cells of one row each",
        about="A unit has up to two rows in each of its cells, and each was taken for one.",
        subject=named("publish: flat, gaussian"),
        patch=_reach(CellLayer, _each_of_one),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="cells in place of rows",
        about="How many cells a unit has is taken for how many rows it has in them.",
        subject=named("publish: flat"),
        patch=in_place(Contribution, "through", _cells_alone),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="cells of replaced units as of added ones",
        about="What one unit adds, where it may also take another's place.",
        subject=named("publish: flat, replace-one"),
        patch=in_place(Contribution, "through", _as_if_added),
        caught=Caught.DISTANCE,
    ),
    Planted(
        name="a number of cosines for one row",
        about="A unit moves the score of a choice with all its rows, and the choice was made for one.",
        subject=named("publish: fourier"),
        patch=in_place(Resolution, "score_reach", _score_of_one_row),
        caught=Caught.DISTANCE,
    ),
)
