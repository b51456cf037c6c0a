"""Compressed sensing: a histogram with few large cells, recovered from few random sums of all of them.

The noise in an estimate of a cell hardly depends on how many sums there are, so that k large cells among n are found
with an error of about √k instead of √n, up to logarithms.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hubbub.noise import uniform_below
from hubbub.parameters import Real, whole
from hubbub.publish.run import run
from hubbub.publish.strategies.flat import Flat
from hubbub.publish.strategies.hashed import Signs
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.sketch import JohnsonLindenstrauss, PreparedSketch
from hubbub.publish.strategies.strategy import Foretold, NoisyLayer, Strategy, no_public_error
from hubbub.publish.terms import Contribution, Noise, Terms

ROUNDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensing(Foretold):
    """Random signs, and the ``sparsity`` cells that explain their sums best; all others are 0.

    ``size`` is how many sums are measured; left out, 4·k·ln(e·n/k), enough to find k cells among n.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: what is measured is a JohnsonLindenstrauss sketch; sparsity and size are public; recovery sees released
            numbers alone.
        Needs: publish.sketch.JohnsonLindenstrauss.
        Ref: Li, Zhang, Winslett, Yang 2011; Dai, Milenkovic 2009 for the recovery.
    """

    sparsity: int
    size: int | None = None
    noise: Noise | None = None
    signs: str = field(default="", repr=False)
    """Those of another release, to read it again; fresh ones if left out."""
    name: str = "sensing"

    def __post_init__(self) -> None:
        whole("sparsity", self.sparsity, least=1)
        if self.size is not None:
            whole("size", self.size, least=1)

    def prepare(self, shape: Shape, terms: Terms) -> "PreparedSensing":
        cells = math.prod(shape)
        kept = min(self.sparsity, cells)
        size = self.size or min(cells, math.ceil(4 * kept * math.log(math.e * cells / kept)))
        sketch = JohnsonLindenstrauss(size=size, noise=self.noise, signs=self.signs).prepare(shape, terms)
        return PreparedSensing(sparsity=min(kept, size), sketch=sketch)

    def pin(self, prepared: "PreparedSensing") -> "Sensing":
        """With the signs of a release."""
        assert isinstance(prepared.sketch.layer, Signs)
        return replace(self, signs=prepared.sketch.layer.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSensing:
    """A sketch of signs, and how it is solved."""

    sparsity: int
    sketch: PreparedSketch

    @property
    def shape(self) -> Shape:
        return self.sketch.shape

    @property
    def terms(self) -> Terms:
        return self.sketch.terms

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]:
        return self.sketch.measurements

    def estimate(self, noisy: Sequence[Any]) -> Array:
        assert isinstance(self.sketch.layer, Signs)
        found = recover(self.sketch.layer.matrix, np.asarray(noisy[0], dtype=float), sparsity=self.sparsity)
        return found.reshape(self.shape)

    def variances(self, queries: Array) -> Array:
        raise no_public_error("which cells are large, and what the others hold, depends on the data.")


def recover(matrix: Array, sums: Array, *, sparsity: int) -> Array:
    """The best fit of ``sparsity`` columns, by subspace pursuit.

    Columns that the rest of the sums points at join those that are held; the largest of a common fit stay. It ends when
    the rest does not get smaller.
    """
    held = _largest(matrix.T @ sums, sparsity)
    fit = _fit(matrix, sums, held)
    rest = sums - matrix[:, held] @ fit
    for _ in range(ROUNDS):
        joined = np.union1d(held, _largest(matrix.T @ rest, sparsity))
        wide = _fit(matrix, sums, joined)
        kept = np.sort(joined[_largest(wide, sparsity)])
        better = _fit(matrix, sums, kept)
        left = sums - matrix[:, kept] @ better
        if left @ left >= rest @ rest:
            break
        held, fit, rest = kept, better, left
    cells = np.zeros(matrix.shape[1])
    cells[held] = fit
    return cells


@dataclass(frozen=True, slots=True, kw_only=True)
class SensingError:
    """The root of the summed squared error over all cells, averaged over releases of made-up data."""

    cells: int
    sparsity: int
    size: int
    recovered: float
    flat: float
    """Of a histogram with noise on every cell, at the same price."""


def sensing_errors(
    *,
    cells: Sequence[int],
    sparsities: Sequence[int],
    epsilon: Real = 1,
    delta: Real = 1e-6,
    height: int = 1000,
    releases: int = 5,
) -> Iterator[SensingError]:
    """Error against the number of cells and of those that are not empty, on data that is made up here."""
    for kept in sparsities:
        for size in cells:
            strategy, errors, flats = Sensing(sparsity=kept), [], []
            for _ in range(whole("releases", releases, least=1)):
                truth = _spikes(size, kept, height)
                errors.append(_error(truth, strategy, epsilon, delta))
                flats.append(_error(truth, Flat(), epsilon, delta))
            measured = strategy.prepare((size,), Terms.at(epsilon, delta, contribution=Contribution()))
            yield SensingError(
                cells=size,
                sparsity=kept,
                size=measured.sketch.layer.size,
                recovered=float(np.mean(errors)),
                flat=float(np.mean(flats)),
            )


def _error(truth: Array, strategy: Strategy, epsilon: Real, delta: Real) -> float:
    return float(np.linalg.norm(run(truth, strategy, epsilon=epsilon, delta=delta).cells - truth))


def _spikes(cells: int, kept: int, height: int) -> Array:
    """So many different cells, each from half the height to all of it."""
    row = np.zeros(cells, dtype=np.int64)
    while np.count_nonzero(row) < kept:
        row[uniform_below(cells)] = height // 2 + uniform_below(height - height // 2 + 1)
    return row


def _largest(values: Array, count: int) -> Array:
    if count >= len(values):
        return np.arange(len(values))
    first = len(values) - count
    return np.sort(np.argpartition(np.abs(values), first)[first:])


def _fit(matrix: Array, sums: Array, columns: Array) -> Array:
    found: Array = np.linalg.lstsq(matrix[:, columns], sums, rcond=None)[0]
    return found
