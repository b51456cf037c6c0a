"""Published tables that some rows are measured on. They are not part of the project: a bench without them says so."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np

from bench.record import MissingInput

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared(*parts: str) -> Path:
    """Where a published table lies."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        raise MissingInput(f"Needs the table {'/'.join(parts)} in ../shared/data, which is not here.")
    return path


def adult_ages() -> np.ndarray[Any, np.dtype[np.float64]]:
    """The ages of the Adult census extract (UCI, CC BY 4.0)."""
    with gzip.open(shared("adult", "adult.data.gz"), "rt") as file:
        return np.array([float(line.partition(",")[0]) for line in file if line.strip()])


def reddit() -> dict[str, list[str]]:
    """The distinct 2-grams of each author (SmartNoise's sample, MIT)."""
    held: dict[str, set[str]] = {}
    with gzip.open(shared("reddit", "reddit.csv.gz"), "rt", newline="") as file:
        for row in csv.DictReader(file):
            held.setdefault(row["author"], set()).add(row["ngram"])
    return {author: sorted(keys) for author, keys in held.items()}
