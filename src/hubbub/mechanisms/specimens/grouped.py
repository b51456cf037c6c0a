"""Specimens of what is chosen in every group of a grouping."""

import itertools
from fractions import Fraction

from hubbub.mechanisms.selection.extreme import Extreme
from hubbub.mechanisms.selection.grouped import PerGroup
from hubbub.mechanisms.selection.select import Exponential
from hubbub.mechanisms.specimens.specimen import Specimen

_ONE = Fraction(1)
_FLAT, _MOVED = (0,) * 12, (1,) + (-1,) * 11


def _extreme(epsilon: Fraction) -> Extreme:
    return Extreme(epsilon=epsilon, bounds=(Fraction(0), Fraction(12)), grid=_ONE, inside=1)


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    return (
        Specimen(
            name="extreme",
            mechanism=_extreme(_ONE),
            pair=((1, 1, 1), (1, 1, 1, 12)),
            twin=_extreme(Fraction(7, 5)),
            outputs=tuple(range(13)),
            loose=True,
        ),
        Specimen(
            name="per group",
            mechanism=PerGroup(mechanism=Exponential(epsilon=_ONE / 2), groups=2),
            pair=((_FLAT, _FLAT), (_MOVED, _MOVED)),
            twin=PerGroup(
                mechanism=Exponential(epsilon=_ONE), groups=2
            ),  # what a unit in two groups costs is forgotten
            outputs=tuple(itertools.product(range(12), repeat=2)),
            cell=tuple,
            loose=True,
        ),
    )
