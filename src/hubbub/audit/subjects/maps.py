"""Maps and sparse domains as subjects of an audit: strategies of one mechanism that says how likely its answers are.

What it draws depends on what it drew before, or shows some cells and no others. So nothing is said about layers: the
loss on a pair is that of answers, and each of a few that are drawn gives it exactly. Two answers of one pair may differ
in what they lose, but none may lose more than is claimed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Pair
from hubbub.audit.subjects.strategies import CellsSide, OfStrategy
from hubbub.mechanisms.staged.staged import Staged
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.publish import sparse, spatial
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import NoisyLayer, Strategy
from hubbub.publish.terms import Contribution

_DRAWS = 3
"""Answers of each side of a pair whose loss is looked at."""
_SLACK = 1 + 1e-9
_MAP: Shape = (3, 4)
_FEW: Shape = (2, 3)
_HEAPS = (1, 1, 3, 100)
"""Some masses are sums over all numbers up to the largest cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMasses(OfStrategy):
    """A strategy with one mechanism, whose ``log_mass`` is exact."""

    @property
    def measurement(self) -> NoisyLayer:
        (found,) = self.prepared.measurements
        return found

    def faults(self, pair: Pair) -> list[str]:
        """Check that cells move within the mechanism's reach, and that drawn answers lose no more than the claim."""
        one = self.measurement
        near, far = pair.x.cells, pair.y.cells
        moved = [abs(int(b) - int(a)) for a, b in zip(near.flat, far.flat, strict=True)]
        reached = {Norm.L1: sum(moved), Norm.ROWS: _rows(near, far, self.contribution), Norm.SCORE: max(moved)}
        needs = one.mechanism.needs
        found = []
        if reached[needs.norm] > needs.sensitivity:
            found.append(
                f"one unit moves it by {reached[needs.norm]} in {needs.norm}, and {needs.sensitivity} was proven"
            )
        try:
            worst = max(self._losses(one, pair))
        except Exception as problem:
            return [*found, f"an error tells what the cells are: {problem}"]
        if worst > float(self.epsilon) * _SLACK:
            found.append(
                f"an answer that was drawn loses ε = {worst:.6g} on this pair, and {self.claim.words} is claimed"
            )
        return found

    def _losses(self, one: NoisyLayer, pair: Pair) -> list[float]:
        near, far = (one.layer.apply(side.cells) for side in (pair.x, pair.y))
        answers = [*one.mechanism.repeat(near, times=_DRAWS), *one.mechanism.repeat(far, times=_DRAWS)]
        both = [(one.mechanism.log_mass(near, answer), one.mechanism.log_mass(far, answer)) for answer in answers]
        return [abs(there - here) if there != here else 0.0 for here, there in both]

    def answers(self, value: CellsSide, *, times: int) -> Outputs:
        """One number of each answer: what it says where the pair differs; of stages, what the first of them says."""
        one = self.measurement
        if isinstance(one.mechanism, Staged):
            first = one.mechanism.plan.step(())
            assert first is not None
            told = first.repeat(value.cells.astype(object), one.mechanism.price, times)
            return np.array([float(sum(answer.tolist())) for answer in told])
        drawn = one.mechanism.repeat(one.layer.apply(value.cells), times=times)
        step = np.sign((value.other - value.cells).reshape(-1)) * (1 if value.first else -1)
        return np.array([_project(answer, step) for answer in drawn])


def _rows(near: Array, far: Array, one: Contribution) -> int:
    """Rows that differ: of a unit that is replaced, the more of what goes and of what comes."""
    step = [int(b) - int(a) for a, b in zip(near.flat, far.flat, strict=True)]
    come, gone = sum(one for one in step if one > 0), -sum(one for one in step if one < 0)
    return max(come, gone) if one.neighbors is Neighbors.REPLACE_ONE else come + gone


def _project(answer: Any, step: Array) -> float:
    places, numbers, *_ = answer
    shown = [(int(place), float(number)) for place, number in zip(places, numbers, strict=True) if place >= 0]
    return sum(float(step[place]) * (number + 0.5) for place, number in shown)


def maps() -> list[OfStrategy]:
    """Every strategy of ``publish.spatial``, and every filter of ``publish.sparse``."""
    grids: tuple[tuple[str, Callable[[], Strategy]], ...] = (
        ("uniform grid", partial(spatial.UniformGrid)),
        ("adaptive grid", partial(spatial.AdaptiveGrid)),
        ("kd-tree", partial(spatial.KdTree)),
        ("hybrid", partial(spatial.Hybrid)),
        ("auto", partial(spatial.Auto)),
    )
    filters: tuple[tuple[str, Callable[[], Strategy]], ...] = (
        ("sparse threshold", partial(sparse.Threshold, at=2)),
        ("sparse largest", partial(sparse.Largest, count=2)),
        ("sparse high-pass", partial(sparse.HighPass, least=2)),
        ("sparse sample", partial(sparse.Sample, expected_false=3)),
        ("sparse priority", partial(sparse.Priority, count=2)),
        ("sparse first above", partial(sparse.FirstAbove, at=3, count=2)),
    )
    trees: list[OfStrategy] = [
        OfStrategy(
            title=f"map: quadtree{words}", make=partial(spatial.QuadTree), shape=_MAP, contribution=_one(neighbors)
        )
        for words, neighbors in _NEIGHBORS
    ]
    return [
        *trees,
        *(
            OfMasses(title=f"map: {title}{words}", make=make, shape=_MAP, contribution=_one(neighbors))
            for title, make in grids
            for words, neighbors in _NEIGHBORS[: 2 if title == "adaptive grid" else 1]
        ),
        *(
            OfMasses(title=f"{title}{words}", make=make, shape=_FEW, contribution=_one(neighbors), heaps=_HEAPS)
            for title, make in filters
            for words, neighbors in _NEIGHBORS[: 2 if title == "sparse threshold" else 1]
        ),
    ]


_NEIGHBORS = (("", Neighbors.ADD_REMOVE), (", replace-one", Neighbors.REPLACE_ONE))


def _one(neighbors: Neighbors) -> Contribution:
    return Contribution(cells=3, each=2, total=5, neighbors=neighbors)
