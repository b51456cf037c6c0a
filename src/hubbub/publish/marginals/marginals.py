"""All k-way marginals at once, at one price that is divided in the best way, and agreeing with each other."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.parameters import whole
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.allocation import Influence, Least, best_scales
from hubbub.publish.marginals.records import Axes
from hubbub.publish.marginals.residual import Residuals, along, below, column_l1, contrast, refuse_large, squares_of
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import Foretold, NoisyLayer, no_public_error
from hubbub.publish.terms import Noise, Terms, mechanisms, variance

if TYPE_CHECKING:
    from hubbub.publish.marginals.marginal_release import MarginalRelease
    from hubbub.publish.release.published import Published

FULL = Fraction(1)
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals(Foretold):
    """All marginals of so many columns (``ways``), or those that are named (``of``), and everything below them.

    What is measured is what each set of columns adds to the smaller ones, once, so marginals agree on what they share,
    and each draws on all that was measured. For Gaussian noise no other way to measure them linearly is better by more
    than the rounding of matrices (less than 1 in 100).

    Privacy:
        Claim: (ε, δ) of the terms for rows that one unit adds within its contribution.
        Proof: one measurement, ``residual.Residuals``, at the whole price; its scales come from the sizes of
            columns; everything after it is post-processing.
        Needs: mechanisms.Geometric or mechanisms.Gaussian.
        Ref: Xiao, He, Zhang, Kifer 2023, An optimal and scalable matrix mechanism for noisy marginals.
    """

    ways: int | None = None
    of: tuple[tuple[str | int, ...], ...] = ()
    """Columns by their names, or by their places where there are no names."""
    least: Least = Least.SUM
    noise: Noise | None = None
    name: str = "marginals"

    def __post_init__(self) -> None:
        if (self.ways is None) is not bool(self.of):
            raise ParameterError("ways", "given, or of= the marginals themselves, and not both", self.ways)
        if self.ways is not None:
            whole("ways", self.ways, least=1)
        object.__setattr__(self, "of", tuple(tuple(one) for one in self.of))
        object.__setattr__(self, "least", Least(self.least))
        if self.noise is not None:
            object.__setattr__(self, "noise", Noise(self.noise))

    def name_axes(self, domain: Domain) -> "Marginals":
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
        found = []
        for marginal in self.of:
            places = [one for one in marginal if isinstance(one, int) and 0 <= one < len(shape)]
            if len(set(places)) != len(marginal):
                raise ParameterError("of", "different columns by their places, or by names of a domain", marginal)
            found.append(tuple(sorted(places)))
        return tuple(dict.fromkeys(found))

    def release(self, published: "Published") -> "MarginalRelease":  # type: ignore[override]
        from hubbub.publish.marginals.marginal_release import MarginalRelease

        return MarginalRelease.of(published)

    def prepare(self, shape: Shape, terms: Terms) -> "PreparedMarginals":
        kinds = terms.kinds if self.noise is None else (self.noise,)
        found = [self._with(shape, terms, noise) for noise in kinds]
        return min(found, key=lambda one: one.objective)

    def _with(self, shape: Shape, terms: Terms, noise: Noise) -> "PreparedMarginals":
        workload = self.workload(shape)
        sets = below(workload, shape)
        neighbors = terms.contribution.neighbors
        reach = np.array(
            [
                float(squares_of(shape, one, neighbors) if noise is Noise.GAUSSIAN else column_l1(shape, one))
                for one in sets
            ]
        )
        influence = Influence.of(workload, sets, shape, self.least)
        scales = best_scales(influence, reach, noise, self.least)
        layer = Residuals(shape=shape, sets=sets, scales=scales)
        (law,) = mechanisms(terms, noise, [layer.reach(terms.contribution)], [FULL])
        wide = np.array(scales, dtype=float)
        each = influence.on_marginals(variance(law) / wide**2)
        return PreparedMarginals(
            shape=shape,
            terms=terms,
            noise=noise,
            workload=workload,
            layer=layer,
            measurements=(NoisyLayer(layer=layer, mechanism=law),),
            variance=variance(law),
            objective=float(each.max() if self.least is Least.MAX else each.sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMarginals:
    """The measurements, and the inference of marginals from them."""

    shape: Shape
    terms: Terms
    noise: Noise
    workload: tuple[Axes, ...]
    layer: Residuals
    measurements: tuple[NoisyLayer, ...]
    variance: float
    """Of the noise of one number."""
    objective: float
    """What the division made small: a sum or the greatest of variances."""

    def coefficients(self, noisy: Sequence[Any]) -> Array:
        """Unbiased estimates of the residuals of all sets, one after the other."""
        flat = np.asarray(noisy[0], dtype=float)
        start = 0
        out = np.empty(len(flat))
        for (_, part), scale in zip(self.layer.blocks(flat), self.layer.scales, strict=True):
            out[start : start + part.size] = part.reshape(-1) / scale
            start += part.size
        return out

    def spread(self) -> dict[Axes, float]:
        """The variance of an estimate in each set."""
        pairs = zip(self.layer.sets, self.layer.scales, strict=True)
        return {one: self.variance / scale**2 for one, scale in pairs}

    def cell_variance(self, axes: Axes) -> float:
        """The mean over all cells of a marginal."""
        means = [contrast(self.shape[axis]).spread.mean(axis=0)[np.newaxis] for axis in axes]
        return float(cell_variances(axes, self.spread(), means).item())

    def estimate(self, noisy: Sequence[Any]) -> Array:
        """Cells with these marginals, of which sets that were not measured add nothing: not more than the marginals."""
        refuse_large(self.shape)
        parts = dict(self.layer.blocks(self.coefficients(noisy)))
        return from_parts(tuple(range(len(self.shape))), self.shape, parts)

    def variances(self, queries: Array) -> Array:
        """Exact for sums of cells of the marginals; other queries have an error that depends on the data."""
        asked = np.asarray(queries, dtype=float)
        total = np.zeros(len(asked))
        spread = self.spread()
        inverses = [contrast(n).inverse for n in self.shape]
        for number, query in enumerate(asked):
            weights = along(query, [inverse.T for inverse in inverses])
            size = float(np.abs(query).max(initial=0)) or 1.0
            for one, found in spread.items():
                places = _block(tuple(range(len(self.shape))), one)
                total[number] += found * float(np.square(weights[places]).sum())
                weights[places] = 0
            if np.abs(weights).max(initial=0) > size * _NOTHING * math.prod(self.shape):
                raise no_public_error("this is not a sum of cells of the marginals that were published.")
        return total


def cell_variances(marginal: Axes, spread: Mapping[Axes, float], along_axes: Sequence[Array]) -> Array:
    """Of the cells of a marginal: what each set below brings to them, which is a product over the axes."""
    variances = np.zeros([2] * len(marginal))
    for bits in itertools.product((0, 1), repeat=len(marginal)):
        held = tuple(axis for axis, bit in zip(marginal, bits, strict=True) if bit)
        variances[bits] = spread.get(held, 0.0)
    return along(variances, along_axes)


def from_parts(marginal: Axes, shape: Shape, parts: dict[Axes, Array]) -> Array:
    """A marginal from the residuals of all sets below it."""
    stacked = np.zeros([shape[axis] for axis in marginal])
    held = set(marginal)
    for one, part in parts.items():
        if held.issuperset(one):
            stacked[_block(marginal, one)] = part
    return along(stacked, [contrast(shape[axis]).inverse for axis in marginal])


def _block(marginal: Axes, one: Axes) -> tuple[slice | int, ...]:
    """Return the block of a set among the stacked residuals of a marginal."""
    return tuple(slice(1, None) if axis in one else 0 for axis in marginal)
