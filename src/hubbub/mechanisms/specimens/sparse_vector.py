"""Specimens of the sparse vector.

Its worst pair: answers on the noisy threshold's least place; the unit lifts one that stays below and lowers those that
are above. Then the claim is attained, however few questions there are.
"""

import itertools
from fractions import Fraction
from typing import Any

from hubbub.mechanisms.sparse.sparse_vector import SparseVector
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen


def _on(bar: int, epsilon: Fraction, **options: Any) -> SparseVector:
    """Calibrated so that the noisy threshold starts at ``bar``: mechanism and twin then differ in their noise alone."""
    raised = SparseVector(epsilon=epsilon, threshold=0, **options).least_bar
    return SparseVector(epsilon=epsilon, threshold=bar - raised, **options)


def _outputs(questions: int, count: int, gaps: int, numbers: tuple[int, ...] = ()) -> tuple[Any, ...]:
    """Every answer with gaps below a bound, and with these numbers."""
    found = []
    for size in range(count + 1):
        for places in itertools.combinations(range(questions), size):
            for each in itertools.product(range(gaps), repeat=size):
                for bought in itertools.product(numbers, repeat=size) if numbers else [()]:
                    found.append((places, each, bought))
    return tuple(found)


def _specimen(name: str, claim: int, pair: tuple[Any, Any], outputs: tuple[Any, ...], **options: Any) -> Specimen:
    epsilon = Fraction(claim)
    mechanism, twin = _on(0, epsilon, **options), _on(0, TWIN * epsilon, **options)
    return Specimen(name=name, mechanism=mechanism, pair=pair, twin=twin, outputs=outputs)


def build() -> tuple[Specimen, ...]:
    """Build one of each form."""
    one, numbers = ((-1, 0), (0, -1)), tuple(range(-20, 21))
    two, twice = ((-1, 0, 0), (0, -1, -1)), ((-1, 0, -1, 0), (0, 0, 0, 0))
    return (
        _specimen("sparse vector", 1, one, _outputs(2, 1, 60)),
        _specimen("sparse vector, monotone", 1, ((-1, 0), (0, 0)), _outputs(2, 1, 40), monotone=True),
        _specimen("sparse vector, two above", 2, two, _outputs(3, 2, 44), count=2),
        _specimen("sparse vector, renewed", 2, twice, _outputs(4, 2, 36), count=2, renewed=True, monotone=True),
        _specimen("sparse vector, numbers", 2, one, _outputs(2, 1, 60, numbers), numbers=Fraction(1, 2)),
    )
