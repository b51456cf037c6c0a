"""Least squares from noisy sums: how much to regularise, and how much of an answer to believe. All post-processing."""

from dataclasses import dataclass

import numpy as np

from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.second_moments import GramMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """A positive definite reading of a noisy matrix, in its eigenvectors.

    The ridge is the noise's own size, as in AdaSSP (Wang 2018), where the spectral norm of symmetric noise with entries
    of deviation s is about 2s√width; no eigenvalue is taken for less than the ridge.
    """

    values: Array
    vectors: Array

    @classmethod
    def of(cls, found: GramMatrix, *, width: int, penalty: Array | float = 0.0, times: float = 1.0) -> "Solver":
        """For the first ``width`` columns; ``penalty`` is added to the diagonal, the noise's size so many times."""
        ridge = times * found.spread
        added = found.matrix[:width, :width] + np.diag(np.broadcast_to(penalty, (width,))) + ridge * np.eye(width)
        values, vectors = np.linalg.eigh(added)
        return cls(values=np.maximum(values, max(ridge, np.finfo(float).tiny)), vectors=vectors)

    def solve(self, right: Array, *, noise: float) -> Array:
        """Solve for a noisy right side, and shrink towards 0 by the part of it that noise explains (James, Stein)."""
        inside = self.vectors.T @ right
        explained = float(np.sum(inside * inside / self.values))
        by_noise = noise * noise * float(np.sum(1 / self.values))
        believed = max(0.0, 1.0 - by_noise / explained) if explained > 0 else 0.0
        return np.asarray(self.vectors @ (inside / self.values)) * believed
