"""Data cubes: all marginals of a few columns from their Fourier coefficients, each measured once."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.errors import CapacityError, ParameterError
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.parameters import whole
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.cube_basis import Coefficients, below, cell_share, center, extend, holds, project
from hubbub.publish.marginals.records import Axes
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import Foretold, NoisyLayer, no_public_error
from hubbub.publish.terms import Noise, Terms, mechanisms, variance

if TYPE_CHECKING:
    from hubbub.publish.marginals.cube_release import CubeRelease
    from hubbub.publish.release.published import Published

MOST_CELLS = 1 << 27
_SHARES = 1 << 20
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cube(Foretold):
    """All marginals of at most ``ways`` columns, or those that are named (``of``) with everything below them.

    One noise for each coefficient, whole numbers before it: marginals agree on what they share. More of the price goes
    to coefficients that are in more cells of more marginals. This is the one for Laplace noise, above all where columns
    have many values; with Gaussian noise ``Marginals`` is better by some tenths.

    Privacy:
        Claim: (ε, δ) of the terms for rows that one unit adds within its contribution.
        Proof: one layer (``cube_basis.Coefficients``) for coefficients of like weight, each at its share of
            the price (``publish.terms``); shares come from the sizes of columns.
        Needs: mechanisms.Geometric or mechanisms.Gaussian.
        Ref: Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar 2007.
    """

    ways: int | None = None
    of: tuple[tuple[str | int, ...], ...] = ()
    """Columns by their names, or by their places where there are no names."""
    noise: Noise | None = None
    name: str = "cube"

    def __post_init__(self) -> None:
        if (self.ways is None) is not bool(self.of):
            raise ParameterError("ways", "given, or of= the marginals themselves, and not both", self.ways)
        if self.ways is not None:
            whole("ways", self.ways, least=1)
        object.__setattr__(self, "of", tuple(map(_columns, self.of)))

    def name_axes(self, domain: Domain) -> "Cube":
        """With places for names."""
        names = [axis.name for axis in domain.axes]
        places = [
            tuple(names.index(domain.axis(one).name) if isinstance(one, str) else one for one in marginal)
            for marginal in self.of
        ]
        return replace(self, of=tuple(places))

    def workload(self, shape: Shape) -> tuple[Axes, ...]:
        """The marginals as places of columns, rising."""
        if self.ways is not None:
            return tuple(itertools.combinations(range(len(shape)), min(self.ways, len(shape))))
        for marginal in self.of:
            fits = all(isinstance(one, int) and 0 <= one < len(shape) for one in marginal)
            if not fits or len(set(marginal)) != len(marginal):
                raise ParameterError("of", "different columns by their places, or by names of a domain", marginal)
        return tuple(dict.fromkeys(tuple(sorted(int(axis) for axis in marginal)) for marginal in self.of))

    def release(self, published: "Published") -> "CubeRelease":  # type: ignore[override]
        from hubbub.publish.marginals.cube_release import CubeRelease

        return CubeRelease.of(published)

    def prepare(self, shape: Shape, terms: Terms) -> "PreparedCube":
        if self.noise is not None and self.noise not in terms.kinds:
            raise ParameterError("delta", "above 0 for Gaussian noise", terms.delta)
        kinds = terms.kinds if self.noise is None else (self.noise,)
        return min((self._with(shape, terms, noise) for noise in kinds), key=lambda one: one.total_variance)

    def _with(self, shape: Shape, terms: Terms, noise: Noise) -> "PreparedCube":
        workload = self.workload(shape)
        weights = _weights(workload, shape)
        groups: dict[int, list[Axes]] = {}
        for one, weight in weights.items():
            groups.setdefault(round(2 * math.log2(weight)), []).append(one)
        layers = [Coefficients(shape=shape, sets=tuple(sets)) for sets in groups.values()]
        totals = [sum(weights[one] for one in layer.sets) for layer in layers]
        reaches = [layer.reach(terms.contribution) for layer in layers]
        costs = [float((one.l1 if noise is Noise.LAPLACE else one.l2_squared) or 0) for one in reaches]
        laws = mechanisms(terms, noise, reaches, _shares(totals, costs, noise))
        pairs = zip(layers, laws, strict=True)
        return PreparedCube(
            shape=shape,
            terms=terms,
            noise=noise,
            workload=workload,
            layers=tuple(layers),
            measurements=tuple(NoisyLayer(layer=layer, mechanism=law) for layer, law in pairs),
            variance=_combine(layers, laws, shape),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCube:
    """The measurements, and the inference of marginals from them."""

    shape: Shape
    terms: Terms
    noise: Noise
    workload: tuple[Axes, ...]
    layers: tuple[Coefficients, ...]
    measurements: tuple[NoisyLayer, ...]
    variance: Mapping[Axes, float]
    """Of one estimated number of each set, before it is centred."""

    @property
    def total_variance(self) -> float:
        """Summed over all cells of the marginals that were asked for."""
        cells = [math.prod(self.shape[axis] for axis in one) for one in self.workload]
        return sum(self.cell_variance(one) * many for one, many in zip(self.workload, cells, strict=True))

    def coefficients(self, noisy: Sequence[Any]) -> dict[Axes, Array]:
        """Of each set, centred: its own numbers and those of sets that hold it, weighted by their variances."""
        found: dict[Axes, Array] = {}
        for layer, measurement, values in zip(self.layers, self.measurements, noisy, strict=True):
            each = variance(_law(measurement.mechanism))
            for held, table in layer.parts(np.asarray(values, dtype=float)):
                for one, many in holds(held, self.shape):
                    part = self.variance[one] / (each * many) * project(table, held, one, self.shape)
                    found[one] = found[one] + part if one in found else part
        return {one: center(table) for one, table in found.items()}

    def marginal(self, axes: Axes, found: Mapping[Axes, Array]) -> Array:
        """A marginal whose columns were published together."""
        self._check(axes)
        table = np.zeros([self.shape[axis] for axis in axes])
        for one in below([axes], self.shape):
            table = table + extend(found[one], one, axes, self.shape)
        return table

    def cell_variance(self, axes: Axes) -> float:
        """Of every cell of a marginal: exact, and the same for all."""
        self._check(axes)
        return sum(self.variance[one] * cell_share(one, axes, self.shape) for one in below([axes], self.shape))

    def estimate(self, noisy: Sequence[Any]) -> Array:
        """Cells with these marginals, to which sets that were not measured add nothing: no more than the marginals."""
        if math.prod(self.shape) > MOST_CELLS:
            raise CapacityError("There are too many cells to list: ask for marginals instead.")
        everything = tuple(range(len(self.shape)))
        found = self.coefficients(noisy)
        return sum((extend(values, one, everything, self.shape) for one, values in found.items()), np.zeros(self.shape))

    def variances(self, queries: Array) -> Array:
        """Exact for sums of cells of the marginals; other queries have an error that depends on the data."""
        asked = np.asarray(queries, dtype=float)
        return np.array([self._variance(query) for query in asked])

    def _variance(self, query: Array) -> float:
        total, left = 0.0, float(np.square(query).sum())
        everything = tuple(range(len(self.shape)))
        for one, each in self.variance.items():
            layer = Coefficients(shape=self.shape, sets=(one,))
            ((_, table),) = layer.parts(_influence(query, one, self.shape).reshape(-1))
            held = center(table)
            total += each * float(np.square(held).sum())
            left -= float(np.sum(query * extend(held * _scale(one, self.shape), one, everything, self.shape)))
        if left > _NOTHING * float(np.square(query).sum()):
            raise no_public_error("this is not a sum of cells of the marginals that were published.")
        return total

    def _check(self, axes: Axes) -> None:
        if tuple(axis for axis in axes if self.shape[axis] > 1) not in self.variance:
            raise ParameterError("axes", "columns that were published together", axes)


def _columns(marginal: Any) -> tuple[str | int, ...]:
    """One column may stand by itself."""
    return (marginal,) if isinstance(marginal, str | int) else tuple(marginal)


def _influence(query: Array, one: Axes, shape: Shape) -> Array:
    """Return the weight of each number of a set in an answer: the transpose of ``extend``."""
    for axis in reversed(range(query.ndim)):
        if axis not in one:
            query = query.mean(axis=axis)
        elif shape[axis] == 2:
            query = (np.take(query, 0, axis=axis) - np.take(query, 1, axis=axis)) / 2
    return np.asarray(query)


def _scale(one: Axes, shape: Shape) -> float:
    """raised(influence · this) is the projection of a query onto a set's space."""
    return math.prod((2 if axis in one else n) if n == 2 or axis not in one else 1 for axis, n in enumerate(shape))


def _weights(workload: Sequence[Axes], shape: Shape) -> dict[Axes, float]:
    """The squared error in all cells of all marginals that noise of variance 1 on a set brings."""
    weights = dict.fromkeys(below(workload, shape), 0.0)
    for marginal in workload:
        cells = math.prod(shape[axis] for axis in marginal)
        for one in below([marginal], shape):
            weights[one] += cells * cell_share(one, marginal, shape)
    return weights


def _shares(weights: Sequence[float], costs: Sequence[float], noise: Noise) -> tuple[Fraction, ...]:
    """Least Σ w·(c/s)² for Laplace noise, Σ w·c/s for Gaussian: s ∝ (w·c²)^⅓, or √(w·c). Rounded down."""
    wanted = [
        (weight * cost**2) ** (1 / 3) if noise is Noise.LAPLACE else math.sqrt(weight * cost)
        for weight, cost in zip(weights, costs, strict=True)
    ]
    whole_parts = [max(1, int(_SHARES * one / sum(wanted))) for one in wanted]
    return tuple(Fraction(part, max(_SHARES, sum(whole_parts))) for part in whole_parts)


def _combine(layers: Sequence[Coefficients], laws: Sequence[Geometric | Gaussian], shape: Shape) -> dict[Axes, float]:
    precision: dict[Axes, float] = {}
    for layer, law in zip(layers, laws, strict=True):
        for held in layer.sets:
            for one, many in holds(held, shape):
                precision[one] = precision.get(one, 0.0) + 1 / (variance(law) * many)
    return {one: 1 / each for one, each in precision.items()}


def _law(mechanism: Any) -> Geometric | Gaussian:
    assert isinstance(mechanism, Geometric | Gaussian)
    return mechanism
