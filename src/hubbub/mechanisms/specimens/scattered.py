"""Specimens of what shows few of very many noisy counts: on domains so small that every answer can be listed."""

import itertools
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.mechanisms.sparse.sparse_counts import SparseFirst, SparseLargest, SparseThreshold
from hubbub.mechanisms.sparse.sparse_samples import SparsePriority, SparseSample
from hubbub.mechanisms.sparse.sparse_vector import SparseVector
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen

_ONE = Fraction(1)
_PAIR = ((0, 0), (1, 0))


def key(answer: Any) -> Hashable:
    """Rows as tuples."""
    return tuple(tuple(row) for row in np.asarray(answer).tolist())


def list_outputs(size: int, numbers: Iterable[int], counts: Iterable[int]) -> tuple[Any, ...]:
    """Every answer with so many places, and these numbers."""
    held = tuple(numbers)
    return tuple(
        (places, each)
        for count in counts
        for places in itertools.combinations(range(size), count)
        for each in itertools.product(held, repeat=count)
    )


def with_cuts(size: int, numbers: Iterable[int], count: int, digits: int) -> tuple[Any, ...]:
    """Every answer of priorities, with each cut that there may be."""
    held = tuple(numbers)
    cuts = tuple(itertools.product(range(1, max(map(abs, held)) + 1), range(1, (1 << digits) + 1)))
    return tuple(
        ((*places, -1, -2), (*each, *cut))
        for places, each in list_outputs(size, held, range(count + 1))
        for cut in ((0, 0), *(cuts if len(places) == count else ()))
    )


def _first(epsilon: Fraction) -> SparseFirst:
    """With the noisy threshold at 0 or above."""
    raised = SparseVector(epsilon=epsilon, threshold=0).least_bar
    return SparseFirst(vector=SparseVector(epsilon=epsilon, threshold=-raised), size=2)


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    return (
        Specimen(
            name="sparse threshold",
            mechanism=SparseThreshold(epsilon=_ONE, size=2, threshold=1),
            pair=_PAIR,
            twin=SparseThreshold(epsilon=TWIN, size=2, threshold=1),
            outputs=list_outputs(2, range(1, 24), range(3)),
            cell=key,
        ),
        Specimen(
            name="sparse largest",
            mechanism=SparseLargest(epsilon=_ONE, size=2, count=1),
            pair=_PAIR,
            twin=SparseLargest(epsilon=TWIN, size=2, count=1),
            outputs=list_outputs(2, range(-22, 26), (1,)),
            cell=key,
        ),
        Specimen(
            name="sparse sample",
            mechanism=SparseSample(epsilon=_ONE, size=2, level=4),
            pair=_PAIR,
            twin=SparseSample(epsilon=TWIN, size=2, level=4),
            outputs=list_outputs(2, [*range(-22, 0), *range(1, 24)], range(3)),
            cell=key,
        ),
        Specimen(
            name="sparse priority",
            mechanism=SparsePriority(epsilon=_ONE, size=2, count=1, digits=2),
            pair=_PAIR,
            twin=SparsePriority(epsilon=TWIN, size=2, count=1, digits=2),
            outputs=with_cuts(2, [*range(-18, 0), *range(1, 20)], 1, 2),
            cell=key,
        ),
        Specimen(
            name="sparse vector over cells",
            mechanism=_first(_ONE),
            pair=((-1, 0), (0, -1)),
            twin=_first(TWIN),
            outputs=tuple(
                (places, gaps, ()) for count in range(2) for places, gaps in list_outputs(2, range(60), (count,))
            ),
        ),
    )
