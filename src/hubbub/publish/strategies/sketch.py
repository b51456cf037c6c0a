"""Sketches: few numbers that stand for many cells, with hashes or signs that are drawn before the data is seen.

How far an answer is off depends on the data too (what else fell into the same number), so that no error is public
before. After the release, what fell there is estimated from the sketch itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.parameters import whole
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.hashed import Hashed, Signs
from hubbub.publish.strategies.layer import Array, Layer, Shape
from hubbub.publish.strategies.strategy import Foretold, NoisyLayer, no_public_error
from hubbub.publish.terms import Noise, Terms, mechanisms, variance


@dataclass(frozen=True, slots=True, kw_only=True)
class CountSketch(Foretold):
    """``rows`` tables of ``width`` numbers; a cell is estimated by the median of what the rows say of it.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one layer, ``publish.strategies.hashed.Hashed``, at the whole price (``publish.terms``).
        Needs: mechanisms.Geometric or mechanisms.Gaussian; hashes drawn before the data is seen.
        Ref: Charikar, Chen, Farach-Colton 2002; Pagh, Thorup 2022.
    """

    rows: int = 5
    width: int = 256
    noise: Noise | None = None
    hashes: tuple[tuple[int, ...], ...] = ()
    """Those of another release, to compare the two or to read it again; fresh ones if left out."""
    name: str = "count-sketch"

    def __post_init__(self) -> None:
        whole("rows", self.rows, least=1)
        whole("width", self.width, least=1)

    def prepare(self, shape: Shape, terms: Terms) -> "PreparedSketch":
        if self.hashes:
            layer = Hashed(shape=shape, rows=self.rows, width=self.width, numbers=self.hashes)
        else:
            layer = Hashed.draw(shape, rows=self.rows, width=self.width)
        return _prepare_sketch(layer, terms, self.noise)

    def pin(self, prepared: "PreparedSketch") -> "CountSketch":
        """With the hashes of a release."""
        assert isinstance(prepared.layer, Hashed)
        return replace(self, hashes=prepared.layer.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class JohnsonLindenstrauss(Foretold):
    """``size`` random sums and differences of all cells: norms, distances and products are kept, and points roughly.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one layer, ``publish.strategies.hashed.Signs``, at the whole price (``publish.terms``).
        Needs: mechanisms.Geometric or mechanisms.Gaussian; signs drawn before the data is seen.
        Ref: Achlioptas 2003; Kenthapadi, Korolova, Mironov, Mishra 2013.
    """

    size: int = 256
    noise: Noise | None = None
    signs: str = field(default="", repr=False)
    """Those of another release, to compare the two or to read it again; fresh ones if left out."""
    name: str = "johnson-lindenstrauss"

    def __post_init__(self) -> None:
        whole("size", self.size, least=1)

    def prepare(self, shape: Shape, terms: Terms) -> "PreparedSketch":
        told = self.signs
        layer = Signs.from_text(shape, size=self.size, text=told) if told else Signs.draw(shape, size=self.size)
        return _prepare_sketch(layer, terms, self.noise)

    def pin(self, prepared: "PreparedSketch") -> "JohnsonLindenstrauss":
        """With the signs of a release."""
        assert isinstance(prepared.layer, Signs)
        return replace(self, signs=prepared.layer.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSketch:
    """A sketch with its map and its law of noise."""

    terms: Terms
    noise: Noise
    layer: Hashed | Signs
    mechanism: Geometric | Gaussian

    @property
    def shape(self) -> Shape:
        return self.layer.shape

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]:
        return (NoisyLayer(layer=self.layer, mechanism=self.mechanism),)

    @property
    def variance(self) -> float:
        """Of the noise of one number."""
        return variance(self.mechanism)

    def estimate(self, noisy: Sequence[Any]) -> Array:
        values = np.asarray(noisy[0], dtype=float)
        if isinstance(self.layer, Hashed):
            return np.asarray(np.median(self.layer.spread(values), axis=0)).reshape(self.shape)
        return self.layer.transpose(values) / self.layer.size

    def variances(self, queries: Array) -> Array:
        raise no_public_error("a sketch mixes cells, and what they hold decides how far answers are off.")

    def inner(self, noisy: Array, other: Array) -> float:
        """Of two vectors of cells, from two sketches with noise of their own: unbiased over hashes and noise."""
        first, second = (np.asarray(one, dtype=float) for one in (noisy, other))
        if isinstance(self.layer, Signs):
            return float(first @ second) / self.layer.size
        tables = (one.reshape(self.layer.rows, self.layer.width) for one in (first, second))
        return float(np.median(np.sum(next(tables) * next(tables), axis=1)))

    def square(self, noisy: Array, *, times: int = 1) -> float:
        """The squared norm of cells, from one sketch: what noise adds (``times`` over) is known, and taken off."""
        numbers = 1 if isinstance(self.layer, Signs) else self.layer.width
        return self.inner(noisy, noisy) - self.variance * times * numbers

    def deviation(self, noisy: Array) -> float:
        """Roughly how far one row's (or sum's) estimate of a cell is off: noise, and what else is in its number.

        From released numbers alone; for the median of several rows it is on the safe side.
        """
        square = max(0.0, self.square(noisy))
        if isinstance(self.layer, Signs):
            return math.sqrt((square + self.variance) / self.layer.size)
        return math.sqrt(square / self.layer.width + self.variance)


def distance_squared(one: Published, other: Published) -> float:
    """Of the cells of two releases with the same hashes or signs: unbiased over both noises, given the map."""
    first, second = _sketch(one), _sketch(other)
    if not _same(first.layer, second.layer) or first.variance != second.variance:
        raise ParameterError("other", "a sketch with the same hashes or signs, at the same price", "another")
    apart = np.asarray(one.noisy[0], dtype=float) - np.asarray(other.noisy[0], dtype=float)
    return first.square(apart, times=2)


def _sketch(release: Published) -> PreparedSketch:
    if not isinstance(release.prepared, PreparedSketch):
        raise ParameterError("release", "a sketch", type(release.prepared).__name__)
    return release.prepared


def _same(one: Hashed | Signs, other: Hashed | Signs) -> bool:
    if isinstance(one, Signs) and isinstance(other, Signs):
        return one.shape == other.shape and np.array_equal(one.bits, other.bits)
    return one == other


def _prepare_sketch(layer: Hashed | Signs, terms: Terms, noise: Noise | None) -> PreparedSketch:
    if noise is not None and noise not in terms.kinds:
        raise ParameterError("delta", "above 0 for Gaussian noise", terms.delta)
    found = [
        PreparedSketch(terms=terms, noise=kind, layer=layer, mechanism=law(layer, terms, kind))
        for kind in (terms.kinds if noise is None else (noise,))
    ]
    return min(found, key=lambda one: one.variance)


def law(layer: Layer, terms: Terms, noise: Noise) -> Geometric | Gaussian:
    """The whole price for one layer."""
    (found,) = mechanisms(terms, noise, [layer.reach(terms.contribution)], [Fraction(1)])
    return found
