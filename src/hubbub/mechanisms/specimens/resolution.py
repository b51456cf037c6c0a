"""Specimens of what is measured as finely as it is worth."""

import itertools
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from hubbub.mechanisms.specimens.specimen import Specimen
from hubbub.mechanisms.staged.resolution import Resolution


def _two_cells(epsilon: Fraction) -> Resolution:
    """One block or two, of two cells."""
    return Resolution(size=2, choosing=epsilon / 4, epsilon=epsilon * 3 / 4, least=1)


def _key(answer: Any) -> Hashable:
    return tuple(int(number) for number in answer)


_AROUND = range(-26, 32)


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    return (
        Specimen(
            name="resolution",
            mechanism=_two_cells(Fraction(1)),
            pair=((5, 0), (6, 0)),
            twin=_two_cells(Fraction(3, 2)),
            outputs=(
                *((1, total) for total in _AROUND),
                *((2, *both) for both in itertools.product(_AROUND, repeat=2)),
            ),
            cell=_key,
            loose=True,
        ),
    )
