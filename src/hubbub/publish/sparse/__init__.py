"""Counts over domains of up to 2^63 cells, of which few are not empty: ``publish.sparse``."""

from hubbub.publish.sparse.filters import FirstAbove, HighPass, Largest, Priority, Sample, Threshold
from hubbub.publish.sparse.keys import Keys
from hubbub.publish.sparse.release import SparseRelease
from hubbub.publish.sparse.run import run
from hubbub.publish.sparse.saved import load
from hubbub.publish.words import Words

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
