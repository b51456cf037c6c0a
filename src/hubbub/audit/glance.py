"""The number of draws to begin with, when draws are compared with a stated law.

Nearly every mechanism is honest, and its draws are the dearest part of its audit. So an audit looks at some of them
first, goes on to all of them where these look odd at all (a p-value up to `SUSPICION`), and gives its verdict by all.

    Claim: an honest mechanism is accused no more often than by all draws at once.
    Proof: it is accused only where the test of all its draws rejects; whether they are drawn is decided before.
    Claim: a wrong law is missed more often than by all draws at once by no more than the chance that the first look
        finds nothing odd in it, which is computed here and not guessed.

For answers drawn singly, the first look is the least of a few sizes at which that chance, against the twin (the law
that loses 1.25 times the claim, which is what an audit is to see), is at most a thousandth or a quarter of what all
draws miss themselves. Where no smaller size will do, all are drawn. For answers drawn together it is a quarter of all:
of a million draws from a law whose scale is 2% off, which is what all of them are to see, a quarter looks odd but for
one time in ten thousand (the tests compute it).
"""

from typing import TYPE_CHECKING

import numpy as np

from hubbub.audit import law
from hubbub.audit.exact import Laws

if TYPE_CHECKING:
    from hubbub.mechanisms.specimens.specimen import Specimen

SUSPICION = 0.05
FEW = 10_000
"""Answers drawn singly, on each input."""
_SIZES = (1_000, 1_500, 2_000, 3_000, 5_000, 7_000)
_MISSED, _SHARE = 1e-3, 0.25
_PART = 4


def many(specimen: "Specimen") -> int:
    """Answers drawn together, on each input."""
    return 1_000_000 if specimen.large else 100_000


def first_looks(specimen: "Specimen", *, honest: Laws, twin: Laws, level: float) -> tuple[int, int]:
    """Return the number of answers, drawn together and drawn singly, of the first look; ``level``
    is that of the verdict.
    """
    singly = next((size for size in _SIZES if _enough(size, honest, twin, level)), FEW)
    return many(specimen) // _PART, singly


def miss_probability(honest: Laws, other: Laws, *, draws: int, level: float) -> float:
    """Return the probability that this many draws of the other law on each input pass for the honest one."""
    pairs = (honest.first, other.first), (honest.second, other.second)
    return min(1 - law.power(np.exp(one), np.exp(two), draws=draws, false_alarm=level) for one, two in pairs)


def _enough(size: int, honest: Laws, twin: Laws, level: float) -> bool:
    at_most = max(_MISSED, _SHARE * miss_probability(honest, twin, draws=FEW, level=level))
    return miss_probability(honest, twin, draws=size, level=SUSPICION) <= at_most
