"""The Adult census extract as one-hot columns, from categories and bins set by hand: nothing is read off rows.

Every row has one 1 for each of the eleven columns used, so that its L2 norm is √11 and public. fnlwgt (a sampling
weight), education (the same as education-num) and native-country are left out.
"""

import csv
import gzip
import math
from typing import Any

import numpy as np

from bench.data import shared

Array = np.ndarray[Any, Any]
_NAMES = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
_CATEGORIES = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked ?",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces ?",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
}
BINS: dict[str, dict[str, tuple[int, ...]]] = {
    "tens from 25": {
        "age": (25, 35, 45, 55, 65),
        "education-num": (9, 10, 13, 14),
        "capital-gain": (1, 5000),
        "capital-loss": (1,),
        "hours-per-week": (35, 41, 50),
    },
    "tens": {
        "age": (20, 30, 40, 50, 60, 70),
        "education-num": (5, 9, 10, 11, 13, 14, 15),
        "capital-gain": (1, 5000, 10000),
        "capital-loss": (1, 1000, 2000),
        "hours-per-week": (20, 30, 40, 41, 50, 60),
    },
    "fives": {
        "age": tuple(range(20, 75, 5)),
        "education-num": tuple(range(2, 17)),
        "capital-gain": (1, 2500, 5000, 7500, 10000, 15000),
        "capital-loss": (1, 500, 1000, 1500, 2000, 2500),
        "hours-per-week": (10, 20, 30, 35, 40, 41, 45, 50, 60),
    },
}
"""Cut points in round numbers, from coarse to fine; degrees and full-time work have ends of their own."""
CHOSEN = "tens from 25"
"""The best on a fifth of the training file that was held back (``python -m bench learn-choices``)."""


def sizes(bins: str = CHOSEN) -> tuple[int, ...]:
    """How many cells each column has, in the order of the one-hot blocks."""
    return *(len(edges) + 1 for edges in BINS[bins].values()), *(len(words.split()) for words in _CATEGORIES.values())


SIZES = sizes()
NORM = math.sqrt(len(_CATEGORIES) + len(BINS[CHOSEN]))


def adult(part: str, *, bins: str = CHOSEN) -> tuple[Array, Array]:
    """One-hot rows and whether they earn more than 50,000; ``part`` is "data" (to train on) or "test"."""
    with gzip.open(shared("adult", f"adult.{part}.gz"), "rt", newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(_NAMES)]
    columns = dict(zip(_NAMES, zip(*rows, strict=True), strict=True))
    parts = [_binned(columns[name], edges) for name, edges in BINS[bins].items()]
    parts += [_coded(columns[name], words.split()) for name, words in _CATEGORIES.items()]
    return np.hstack(parts), np.array([label.startswith(">50K") for label in columns["income"]])


def codes(hot: Array, *, bins: str = CHOSEN) -> Array:
    """The cell of each column in place of its one-hot block; what is in none of them is missing."""
    columns = np.split(hot, np.cumsum(sizes(bins))[:-1], axis=1)
    return np.column_stack([np.where(one.any(axis=1), one.argmax(axis=1), np.nan) for one in columns])


def _binned(values: Any, edges: tuple[int, ...]) -> Array:
    place = np.digitize(np.array(values, dtype=np.float64), edges)
    return np.eye(len(edges) + 1)[place]


def _coded(values: Any, words: list[str]) -> Array:
    """What is not among the categories is in none of them."""
    known = {word: place for place, word in enumerate(words)}
    return np.vstack([np.eye(len(words)), np.zeros(len(words))])[[known.get(value, len(words)) for value in values]]
