"""Counts for a geography: every level is measured with its own share, and the levels add up.

``TopDown`` estimates cells by least squares over all levels, with error bars; ``topdown`` then makes them non-negative
and whole from the top down, so that every place is the sum of its parts.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.parameters import Real, positive
from hubbub.publish.inference.projection import onto_simplex
from hubbub.publish.inference.whole_numbers import whole_with_total
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.layer import Array, CellLayer, Layer, Shape
from hubbub.publish.strategies.nested import Groups, Level, NestedInference, levels
from hubbub.publish.strategies.strategy import Foretold, PreparedLayers, prepare_layers
from hubbub.publish.terms import Noise, Terms, variance


@dataclass(frozen=True, slots=True, kw_only=True)
class TopDown(Foretold):
    """Sums over nested levels, finest first, and the cells below them.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one layer a level at its share of the price (``publish.terms``); levels come from a public map.
        Needs: mechanisms.Geometric or mechanisms.Gaussian; a geography that does not depend on the data.
        Ref: Abowd et al. 2022, The 2020 Census disclosure avoidance system TopDown algorithm.
    """

    levels: tuple[Level, ...]
    weights: tuple[Real, ...] = ()
    """Shares of the price, relative: for the cells first and then each level; none: all alike."""
    cells: str = "cell"
    noise: Noise | None = None
    name: str = "top-down"

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.levels) + 1:
            raise ParameterError("weights", f"{len(self.levels) + 1} numbers, the cells' first", self.weights)
        object.__setattr__(self, "weights", tuple(positive("weights", one) for one in self.weights))
        if self.noise is not None:
            object.__setattr__(self, "noise", Noise(self.noise))
        for finer, coarser in zip(self.levels, self.levels[1:], strict=False):
            if len(set(zip(finer.of, coarser.of, strict=True))) != len(set(finer.of)):
                raise ParameterError("levels", f"nested: no {finer.called} in two places", coarser.called)

    @classmethod
    def along(
        cls, cells: Sequence[Hashable], above: Mapping[str, Mapping[Any, Hashable]], *, weights: Sequence[Real] = ()
    ) -> "TopDown":
        """From mappings that lead one level up each: ``{"county": {block: county}, "state": {county: state}}``."""
        return cls(levels=levels(cells, above), weights=tuple(weights))

    def prepare(self, shape: Shape, terms: Terms) -> PreparedLayers:
        if any((len(level.of),) != shape for level in self.levels):
            raise ParameterError("cells", "one for each of the finest places, in one dimension", shape)
        return prepare_layers(self, shape, terms, noise=self.noise)

    def layers(self, shape: Shape, noise: Noise) -> tuple[Layer, ...]:
        return (CellLayer(shape=shape), *(Groups(shape=shape, of=level.of) for level in self.levels))

    def shares(self, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
        weights = [Fraction(one) for one in self.weights] or [Fraction(1)] * (len(self.levels) + 1)
        return tuple(one / sum(weights) for one in weights)

    def inference(self, shape: Shape, noise: Noise, variances: Sequence[float]) -> NestedInference:
        return NestedInference(self._groups(shape[0]), tuple(variances))

    def sums(self, cells: Array) -> dict[str, Array]:
        """The counts of every level that cells add up to."""
        found = {self.cells: np.asarray(cells)}
        return found | {one.called: _add_up(np.asarray(cells), np.array(one.of)) for one in self.levels}

    def deviations(self, prepared: PreparedLayers) -> dict[str, Array]:
        """The error by level: the standard deviation of the least squares estimate of every place, exact and public."""
        groups = self._groups(prepared.shape[0])
        up = _upwards(groups, _variances(prepared))
        found = [up[-1]]
        for number in reversed(range(len(up) - 1)):
            parent = _parents(groups, number)
            summed = np.bincount(parent, up[number])
            share = up[number] / summed[parent]
            found.append(up[number] + share**2 * (found[-1] - summed)[parent])
        names = [self.cells, *(level.called for level in self.levels)]
        return {name: np.sqrt(one) for name, one in zip(names, reversed(found), strict=True)}

    def _groups(self, cells: int) -> tuple[Array, ...]:
        return (np.arange(cells), *(np.array(level.of) for level in self.levels))


def topdown(published: Published, *, whole: bool = True) -> Published:
    """Non-negative (and whole) cells, from the top down: in every family the nearest that add up to their parent.

    Each place's estimate first draws on everything inside it; the top is cut off at zero and rounded; then families are
    projected in the metric of their variances, and rounded so that nothing moves by 1 or more. Post-processing: free.
    """
    strategy, ready = published.strategy, published.prepared
    if not isinstance(strategy, TopDown) or not isinstance(ready, PreparedLayers):
        raise ParameterError("published", "a release of TopDown", published.strategy.name)
    groups = strategy._groups(ready.shape[0])
    spread = _upwards(groups, _variances(ready))
    values = _estimates(groups, _variances(ready), spread, published.noisy)
    parents = np.maximum(values[-1], 0)
    if whole:
        parents = whole_with_total(parents)
    for number in reversed(range(len(groups) - 1)):
        parents = _families(values[number], spread[number], _parents(groups, number), parents, whole=whole)
    step = "non-negative and whole" if whole else "non-negative"
    return published.change(parents, f"{step} from the top down")


def _families(values: Array, spread: Array, parent: Array, totals: Array, *, whole: bool) -> Array:
    out = np.zeros(len(values), dtype=np.int64 if whole else float)
    order = np.argsort(parent, kind="stable")
    for family in np.split(order, np.flatnonzero(np.diff(parent[order])) + 1):
        total = totals[parent[family[0]]]
        near = onto_simplex(values[family], total=float(total), variances=spread[family])
        out[family] = whole_with_total(near, total=int(total)) if whole else near
    return out


def _upwards(groups: Sequence[Array], variances: Sequence[float]) -> list[Array]:
    """The variance of each place's estimate from everything inside it."""
    found = [np.full(len(groups[0]), variances[0])]
    for number, variance_here in enumerate(variances[1:]):
        below = np.bincount(_parents(groups, number), found[-1])
        found.append(below * variance_here / (below + variance_here))
    return found


def _estimates(
    groups: Sequence[Array], variances: Sequence[float], spread: Sequence[Array], noisy: Sequence[Any]
) -> list[Array]:
    found = [np.asarray(noisy[0], dtype=float)]
    for number, variance_here in enumerate(variances[1:]):
        parent = _parents(groups, number)
        below, sums = np.bincount(parent, spread[number]), np.bincount(parent, found[-1])
        own = np.asarray(noisy[number + 1], dtype=float)
        found.append((own * below + sums * variance_here) / (below + variance_here))
    return found


def _parents(groups: Sequence[Array], number: int) -> Array:
    """For every place of a level, the place above it."""
    out = np.zeros(int(groups[number].max()) + 1, dtype=np.intp)
    out[groups[number]] = groups[number + 1]
    return out


def _add_up(cells: Array, group: Array) -> Array:
    out = np.zeros(int(group.max()) + 1, dtype=cells.dtype)
    np.add.at(out, group, cells)
    return out


def _variances(ready: PreparedLayers) -> list[float]:
    return [variance(one.mechanism) for one in ready.measurements]  # type: ignore[arg-type]
