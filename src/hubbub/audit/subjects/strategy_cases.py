"""Every strategy of ``hubbub.publish`` as it is audited: on few cells, for units that add to several of them.

A strategy has more than one subject where its proof has more than one case: Gaussian noise answers for another norm,
replaced units for differences of what they add, and several dimensions for products.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.subjects.strategies import OfStrategy
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import (
    Contribution,
    CountSketch,
    Cube,
    Flat,
    Fourier,
    Hierarchy,
    JohnsonLindenstrauss,
    Marginals,
    Matrix,
    Noise,
    Prefixes,
    Sensing,
    TopDown,
    Wavelet,
)
from hubbub.publish.strategies.hashed import PRIME
from hubbub.publish.strategies.layer import Shape
from hubbub.publish.strategies.strategy import Strategy

_CELLS: Shape = (12,)
_SUMS = 9
_STATES = {"county": {place: place // 3 for place in range(12)}, "state": {0: 0, 1: 0, 2: 0, 3: 1}}


@dataclass(frozen=True, slots=True)
class _Case:
    """The suffix of a strategy's name, and its meaning."""

    words: str = ""
    noise: Noise = Noise.LAPLACE
    neighbors: Neighbors = Neighbors.ADD_REMOVE


_PLAIN = _Case()
_GAUSSIAN = _Case(", gaussian", Noise.GAUSSIAN)
_REPLACED = _Case(", gaussian, replace-one", Noise.GAUSSIAN, Neighbors.REPLACE_ONE)
_LAPLACE_REPLACED = _Case(", replace-one", Noise.LAPLACE, Neighbors.REPLACE_ONE)


def strategies() -> list[OfStrategy]:
    """All of them."""
    return [
        *_subjects("flat", (8,), _flat, (_PLAIN, _GAUSSIAN, _REPLACED, _LAPLACE_REPLACED)),
        *_subjects("hierarchy", _CELLS, _hierarchy, (_PLAIN, _GAUSSIAN, _REPLACED)),
        *_subjects("hierarchy in two dimensions", (4, 5), _hierarchy, (_GAUSSIAN,)),
        *_subjects("wavelet", (11,), _wavelet, (_PLAIN, _GAUSSIAN, _REPLACED)),
        *_subjects("wavelet in two dimensions", (4, 3), _wavelet, (_PLAIN, _GAUSSIAN)),
        *_subjects("matrix", (16,), _prefixes, (_PLAIN, _GAUSSIAN, _REPLACED)),
        *_subjects("matrix for one cell a unit", (8,), _matrix, (_GAUSSIAN, _REPLACED), cells=1),
        *_subjects("matrix in two dimensions", (4, 3), _matrix, (_GAUSSIAN,)),
        *_subjects("marginals", (2, 3, 2), _marginals, (_PLAIN, _GAUSSIAN, _REPLACED)),
        *_subjects("cube", (2, 3, 2), _cube, (_PLAIN, _GAUSSIAN, _REPLACED)),
        *_subjects("top-down", _CELLS, _top_down, (_PLAIN, _GAUSSIAN)),
        *_subjects("count-sketch", _CELLS, _count_sketch, (_PLAIN, _GAUSSIAN, _REPLACED)),
        *_subjects("johnson-lindenstrauss", _CELLS, _johnson_lindenstrauss, (_PLAIN, _GAUSSIAN)),
        *_subjects("sensing", _CELLS, _sensing, (_GAUSSIAN,)),
        *_subjects("fourier", (8,), _fourier, (_PLAIN, _GAUSSIAN)),
    ]


def _subjects(
    title: str, shape: Shape, make: Callable[[Noise], Strategy], cases: tuple[_Case, ...], *, cells: int = 3
) -> list[OfStrategy]:
    """With less than all of its cells full, where a unit has several."""
    total = 2 * cells - (cells > 1)
    return [
        OfStrategy(
            title=f"{title}{case.words}",
            make=partial(make, case.noise),
            shape=shape,
            contribution=Contribution(cells=cells, each=2, total=total, neighbors=case.neighbors),
            delta=Fraction(1, 20) if case.noise is Noise.GAUSSIAN else Fraction(0),
        )
        for case in cases
    ]


def _flat(noise: Noise) -> Strategy:
    return Flat(noise=noise)


def _hierarchy(noise: Noise) -> Strategy:
    return Hierarchy(branching=2, noise=noise, even=True)


def _wavelet(noise: Noise) -> Strategy:
    return Wavelet(noise=noise, even=True)


def _matrix(noise: Noise) -> Strategy:
    return Matrix(noise=noise)


def _prefixes(noise: Noise) -> Strategy:
    """Of few ranges the cells themselves are the best strategy for Laplace noise; of as many prefixes they are not."""
    return Matrix(noise=noise, workload=Prefixes(length=16))


def _marginals(noise: Noise) -> Strategy:
    return Marginals(ways=2, noise=noise)


def _cube(noise: Noise) -> Strategy:
    return Cube(ways=2, noise=noise)


def _top_down(noise: Noise) -> Strategy:
    made = TopDown.along(range(12), _STATES, weights=(3, 2, 1))
    return TopDown(levels=made.levels, weights=made.weights, noise=noise)


def _count_sketch(noise: Noise) -> Strategy:
    return CountSketch(rows=3, width=4, noise=noise, hashes=_hashes(3))


def _johnson_lindenstrauss(noise: Noise) -> Strategy:
    return JohnsonLindenstrauss(size=_SUMS, noise=noise, signs=_signs())


def _sensing(noise: Noise) -> Strategy:
    return Sensing(sparsity=2, size=_SUMS, noise=noise, signs=_signs())


def _fourier(noise: Noise) -> Strategy:
    return Fourier(noise=noise, least=4)


@cache
def _hashes(rows: int) -> tuple[tuple[int, ...], ...]:
    """Fixed, as those of one release are: an audit asks again and again about the same map."""
    chance = Chance("hashes")
    return tuple(tuple(1 + chance.below(PRIME - 1) for _ in range(6)) for _ in range(rows))


@cache
def _signs() -> str:
    bits = Chance("signs").many_below(256, _SUMS * -(-_CELLS[0] // 8)).astype(np.uint8)
    return base64.b64encode(bits.tobytes()).decode()
