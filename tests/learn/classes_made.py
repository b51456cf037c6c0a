"""Made-up classes for the tests of classifiers."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def blobs(count: int = 3000, *, centres: int = 2, seed: int = 3) -> tuple[Array, Array]:
    """Points around the corners of a polygon within [−1, 1]², and which corner."""
    rng = np.random.default_rng(seed)
    y = rng.integers(centres, size=count)
    angle = 2 * np.pi * y / centres
    x = 0.6 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(scale=0.15, size=(count, 2))
    return x, y
