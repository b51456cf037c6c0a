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
_EDGES = {
    "age": (22, 26, 30, 35, 40, 50, 60, 66),
    "education-num": (9, 10, 11, 13, 14, 15),
    "capital-gain": (1, 4000, 7000),
    "capital-loss": (1, 1800, 2000),
    "hours-per-week": (20, 35, 40, 41, 50),
}
SIZES = (*(len(edges) + 1 for edges in _EDGES.values()), *(len(words.split()) for words in _CATEGORIES.values()))
"""How many cells each column has, in the order of the one-hot blocks."""
NORM = math.sqrt(len(_CATEGORIES) + len(_EDGES))


def adult(part: str) -> tuple[Array, Array]:
    """One-hot rows and whether they earn more than 50,000; ``part`` is "data" (to train on) or "test"."""
    with gzip.open(shared("adult", f"adult.{part}.gz"), "rt", newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(_NAMES)]
    columns = dict(zip(_NAMES, zip(*rows, strict=True), strict=True))
    parts = [_binned(columns[name], edges) for name, edges in _EDGES.items()]
    parts += [_coded(columns[name], words.split()) for name, words in _CATEGORIES.items()]
    return np.hstack(parts), np.array([label.startswith(">50K") for label in columns["income"]])


def _binned(values: Any, edges: tuple[int, ...]) -> Array:
    place = np.digitize(np.array(values, dtype=np.float64), edges)
    return np.eye(len(edges) + 1)[place]


def _coded(values: Any, words: list[str]) -> Array:
    """What is not among the categories is in none of them."""
    known = {word: place for place, word in enumerate(words)}
    return np.vstack([np.eye(len(words)), np.zeros(len(words))])[[known.get(value, len(words)) for value in values]]
