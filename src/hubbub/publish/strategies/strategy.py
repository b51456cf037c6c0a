"""Publication of a vector of cells: its measurements, their shares of the price, and the estimation of the cells.

A ``Strategy`` is public and frozen. ``prepare`` makes a ``Prepared`` for a shape and a price, without any data: its
measurements, what they cost, and how far any answer will be off. ``Layered`` is the base of all strategies that add
noise to linear maps and solve for the cells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from hubbub.errors import HubbubError
from hubbub.gate.measurement import Measurement
from hubbub.mechanisms.base import Mechanism
from hubbub.parameters import Real
from hubbub.privacy.events.event import Event
from hubbub.publish.strategies.layer import Array, Layer, Shape
from hubbub.publish.terms import Contribution, Noise, Terms, mechanisms, variance
from hubbub.publish.workload.expected_error import DENSE, Expected, error, expect
from hubbub.publish.workload.gram import Covariance
from hubbub.publish.workload.workload import Workload

if TYPE_CHECKING:
    from hubbub.publish.release.published import Published

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLayer:
    """A layer and the mechanism that its numbers go through."""

    layer: Layer
    mechanism: Mechanism

    def measurement(self, contribution: Contribution) -> Measurement[Array]:
        """Return what is measured of sealed cells to which one unit has contributed no more than this."""
        return Measurement(mechanism=self.mechanism, sensitivity=self.layer.reach(contribution), take=self.layer.apply)


class Prepared(Protocol):
    """A strategy for one shape at one price: all of it public."""

    @property
    def shape(self) -> Shape: ...

    @property
    def terms(self) -> Terms: ...

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]: ...

    def estimate(self, noisy: Sequence[Any]) -> Array:
        """The cells as floats, from what each mechanism gave: post-processing."""
        ...

    def variances(self, queries: Array) -> Array:
        """Of the answers to linear queries (one more dimension than the cells, the first): exact, and public.

        Raises where the error depends on the data, and says so.
        """
        ...


class Strategy(Protocol):
    """A way to publish cells; frozen, and made of public parameters alone."""

    @property
    def name(self) -> str: ...

    def prepare(self, shape: Shape, terms: Terms) -> Prepared: ...

    def release(self, published: "Published") -> Any:
        """Return what users get of what was published."""
        ...


class Releasing(Protocol[R_co]):
    """A strategy that says in what form its users get what was published."""

    def release(self, published: "Published") -> R_co: ...


class OfCells:
    """The base of strategies whose users get cells and ranges."""

    __slots__ = ()

    def release(self, published: "Published") -> "Published":
        """Return what was published as it is; a strategy that publishes something else makes that of it."""
        return published


class Foretold(OfCells):
    """The base of strategies: ``error`` before anything is spent, or the reason why it depends on the data."""

    __slots__ = ()

    def error(
        self: Strategy,
        workload: Workload,
        epsilon: Real,
        *,
        delta: Real = 0,
        contribution: Contribution | None = None,
    ) -> Expected:
        """Return the error of a workload's answers at this price: exact, and free."""
        return error(self, workload, epsilon=epsilon, delta=delta, contribution=contribution)


class Inference(Protocol):
    """An unbiased linear estimate of the cells from the noisy numbers of all layers."""

    def estimate(self, noisy: Sequence[Array]) -> Array: ...

    def influence(self, queries: Array) -> list[Array]:
        """Return the weight of each noisy number of each layer in each answer: (queries, layer.size) for each layer."""
        ...


@runtime_checkable
class Factored(Protocol):
    """Inference that knows the covariance of its estimate, as a Kronecker product; optional."""

    def covariance(self, variances: Sequence[float]) -> Covariance:
        """From the variance of each layer's noise."""
        ...


class Layered(Protocol):
    """Noise on linear maps, and a linear estimate. Implement these; ``prepare_layers`` does the rest."""

    @property
    def name(self) -> str: ...

    def layers(self, shape: Shape, noise: Noise) -> tuple[Layer, ...]: ...

    def shares(self, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
        """Of ε or ρ, one for each layer, from public facts."""
        ...

    def inference(self, shape: Shape, noise: Noise, variances: Sequence[float]) -> Inference: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedLayers:
    """A layered strategy with one law of noise."""

    shape: Shape
    terms: Terms
    noise: Noise
    measurements: tuple[NoisyLayer, ...]
    inference: Inference

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(one.mechanism.event for one in self.measurements)

    def estimate(self, noisy: Sequence[Any]) -> Array:
        return self.inference.estimate([np.asarray(one, dtype=float) for one in noisy])

    def variances(self, queries: Array) -> Array:
        parts = self.inference.influence(np.asarray(queries, dtype=float))
        each = [variance(one.mechanism) for one in self.measurements]  # type: ignore[arg-type]
        total: Array = sum(
            (scale * np.sum(np.square(part), axis=1) for scale, part in zip(each, parts, strict=True)),
            start=np.zeros(len(queries)),
        )
        return total

    def covariance(self) -> Covariance | None:
        """Of all cells; None where it has no structure, and too many cells to be written out."""
        each = [variance(one.mechanism) for one in self.measurements]  # type: ignore[arg-type]
        if isinstance(self.inference, Factored):
            return self.inference.covariance(each)
        cells = math.prod(self.shape)
        if cells > DENSE:
            return None
        whole = np.zeros((cells, cells))
        for scale, part in zip(each, self.inference.influence(np.eye(cells).reshape(cells, *self.shape)), strict=True):
            whole += scale * (part @ part.T)
        return Covariance(factors=(whole,))


def prepare_layers(
    strategy: Layered, shape: Shape, terms: Terms, *, noise: Noise | None = None, workload: Workload | None = None
) -> PreparedLayers:
    """With the law that is named, or with the one whose error is less: on the workload, where one is given."""
    kinds = terms.kinds if noise is None else (Noise(noise),)
    if len(kinds) == 1:
        return _with(strategy, shape, terms, kinds[0])
    made = (_with(strategy, shape, terms, one) for one in kinds)
    if workload is None:
        return min(made, key=_spread)
    return min(made, key=lambda one: expect(one, workload).variance)


def _with(strategy: Layered, shape: Shape, terms: Terms, noise: Noise) -> PreparedLayers:
    layers = strategy.layers(shape, noise)
    reaches = [layer.reach(terms.contribution) for layer in layers]
    laws = mechanisms(terms, noise, reaches, strategy.shares(shape, noise))
    found = strategy.inference(shape, noise, [variance(one) for one in laws])
    return PreparedLayers(
        shape=shape,
        terms=terms,
        noise=noise,
        measurements=tuple(NoisyLayer(layer=layer, mechanism=law) for layer, law in zip(layers, laws, strict=True)),
        inference=found,
    )


def _spread(one: PreparedLayers) -> float:
    """The variance of a few fixed queries, which stand for all where no workload was named."""
    return float(np.mean(one.variances(_few(one.shape))))


def _few(shape: Shape) -> Array:
    """Boxes from nothing to everything along all axes at once: a handful."""
    corners = [[max(1, round(length * part / 8)) for length in shape] for part in (1, 3, 5, 7)]
    queries = np.zeros((len(corners), *shape))
    for query, corner in zip(queries, corners, strict=True):
        query[tuple(slice(0, end) for end in corner)] = 1
    return queries


def no_public_error(why: str) -> HubbubError:
    """For strategies whose error depends on the data."""
    return HubbubError(f"There is no error to state before or after: {why}")
