"""Specimens of key selections."""

from fractions import Fraction
from typing import Any

from hubbub.mechanisms.keys.key_selection import OptimalKeys, TruncatedThreshold, WeightedGaussianThreshold
from hubbub.mechanisms.keys.threshold import GaussianThreshold, LaplaceThreshold
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen, as_items


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    one, tenth, fifth = Fraction(1), Fraction(1, 10), Fraction(1, 5)
    unknown: tuple[dict[str, int], dict[str, int]] = ({}, {"a": 1})
    weighted = WeightedGaussianThreshold(epsilon=one, delta=fifth, weight_bits=3)
    return (
        Specimen(
            name="laplace threshold",
            mechanism=LaplaceThreshold(epsilon=one, delta=tenth),
            pair=unknown,
            twin=LaplaceThreshold(epsilon=one, delta=Fraction(1, 2)),
            outputs=_shown(2, 40),
            cell=as_items,
        ),
        Specimen(
            name="laplace threshold, shared key",
            mechanism=LaplaceThreshold(epsilon=one, delta=Fraction(1, 10**6)),
            pair=({"a": 40}, {"a": 41}),
            twin=LaplaceThreshold(epsilon=TWIN, delta=Fraction(1, 10**6)),
            outputs=_shown(2, 75),
            cell=as_items,
            loose=True,
        ),
        Specimen(
            name="gaussian threshold",
            mechanism=GaussianThreshold(epsilon=one, delta=fifth),
            pair=unknown,
            twin=GaussianThreshold(epsilon=one, delta=Fraction(3, 5)),
            outputs=_shown(2, 40),
            cell=as_items,
            loose=True,
        ),
        Specimen(
            name="truncated threshold",
            mechanism=TruncatedThreshold(epsilon=one, delta=tenth),
            pair=unknown,
            twin=TruncatedThreshold(epsilon=one, delta=Fraction(1, 2)),
            outputs=_shown(1, 12),
            cell=as_items,
        ),
        Specimen(
            name="optimal keys",
            mechanism=OptimalKeys(epsilon=one, delta=tenth),
            pair=unknown,
            twin=OptimalKeys(epsilon=one, delta=TWIN * tenth),
            outputs=((), (("a", 0),)),
            cell=as_items,
        ),
        Specimen(
            name="weighted gaussian threshold",
            mechanism=weighted,
            pair=({}, {"a": weighted.weight(1)}),
            twin=WeightedGaussianThreshold(epsilon=one, delta=Fraction(2, 5), weight_bits=3),
            outputs=_shown(2, 160),
            cell=as_items,
            loose=True,
        ),
    )


def _shown(low: int, high: int) -> tuple[Any, ...]:
    """List every answer of a key selection that knows the one key "a"."""
    return ((), *((("a", count),) for count in range(low, high)))
