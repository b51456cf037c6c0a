"""Tables to cluster, scaled by public ranges to [−1, 1], and how good centres are on them."""

import gzip
from typing import Any

import numpy as np

from bench.data import shared

Array = np.ndarray[Any, Any]
ADULT = {0: (17, 90), 2: (12_285, 1_484_705), 4: (1, 16), 10: (0, 99_999), 11: (0, 4_356), 12: (1, 99)}
"""Numeric columns of the Adult extract with their public ranges."""
WEATHER = slice(12, 16)
"""Columns of the hourly hires that are numbers of the weather."""


def adult_numbers() -> Array:
    """Age, weight, years of education, gains, losses and hours of 32,561 people."""
    with gzip.open(shared("adult", "adult.data.gz"), "rt") as file:
        lines = [line.split(",") for line in file if line.strip()]
    rows = np.array([[float(line[column]) for column in ADULT] for line in lines])
    low, high = np.array(list(ADULT.values()), dtype=np.float64).T
    return np.asarray(np.clip((rows - low) / (high - low) * 2 - 1, -1, 1))


def sipu(name: str) -> Array:
    """A set of Fränti and Sieranoja, by the ends of its own range, as everybody scales it."""
    with gzip.open(shared("clustering", f"{name}.data.gz"), "rt") as file:
        rows = np.loadtxt(file)
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.asarray((rows - low) / (high - low) * 2 - 1)


def weather() -> Array:
    """Temperature, felt temperature, humidity and wind of 17,379 hours, which their file has between 0 and 1."""
    with gzip.open(shared("regression", "hour.csv.gz"), "rt") as file:
        rows = np.genfromtxt(file, delimiter=",")
    return np.asarray(np.clip(rows[:, WEATHER] * 2 - 1, -1, 1))


def airfoils() -> Array:
    """Frequency, angle, length, speed and thickness of 1,503 measurements, by their public ranges."""
    rows = np.genfromtxt(shared("regression", "airfoil_self_noise.dat.txt"))[:, :5]
    low, high = np.array([[200, 0, 0, 31, 0], [20_000, 23, 0.31, 72, 0.06]])
    return np.asarray(np.clip((rows - low) / (high - low) * 2 - 1, -1, 1))


def mixture(*, rows: int, columns: int, clusters: int, deviation: float, seed: int) -> Array:
    """Round clumps at random places, of unequal sizes."""
    chance = np.random.default_rng(seed)
    centres = chance.uniform(-0.8, 0.8, (clusters, columns))
    owner = chance.choice(clusters, rows, p=chance.dirichlet(np.full(clusters, 3.0)))
    return np.clip(centres[owner] + chance.normal(0, deviation, (rows, columns)), -1, 1)


def distance(rows: Array, centres: Array) -> float:
    """The mean squared distance to the nearest centre."""
    total = 0.0
    for part in np.array_split(rows, max(1, len(rows) // 20_000)):
        each = (part * part).sum(axis=1)[:, None] - 2 * part @ centres.T + (centres * centres).sum(axis=1)
        total += float(np.maximum(each.min(axis=1), 0.0).sum())
    return total / len(rows)
