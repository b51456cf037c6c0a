"""Counts over domains of up to 2^63 cells, of which few are not empty: ``publish.sparse``."""

from hubbub.publish.sparse.filters import FirstAbove, HighPass, Largest, Priority, Sample, Threshold
from hubbub.publish.sparse.keys import Keys, Words
from hubbub.publish.sparse.release import SparseRelease, load
from hubbub.publish.sparse.run import run

__all__ = [
    "FirstAbove",
    "HighPass",
    "Keys",
    "Largest",
    "Priority",
    "Sample",
    "SparseRelease",
    "Threshold",
    "Words",
    "load",
    "run",
]
