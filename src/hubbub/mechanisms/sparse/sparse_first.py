"""The few large cells of a huge domain, by a sparse vector whose questions are all of the cells."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Needs, draw_each, settle
from hubbub.mechanisms.sparse.sparse_cells import Nonzeros
from hubbub.mechanisms.sparse.sparse_vector import Found, SparseVector
from hubbub.noise import scattered
from hubbub.parameters import whole
from hubbub.privacy.events.event import Event

_FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseFirst:
    """``SparseVector`` on all ``size`` cells, in order of their places, in time of those that are not empty.

    Privacy:
        Claim: what ``vector`` claims, for cells that one unit moves by at most ``vector.sensitivity`` each, however
            many it moves.
        Proof: the answer has exactly the law of ``vector`` on the list of all cells. The noisy threshold comes first.
            Given it, cells are independent: those that are not empty are drawn, and of the others only the first
            ``count`` that reach it, with the law of drawing all (``scattered.first_reached``); a place beyond the
            ``count``-th cannot be among the first that are above. Sorted by place, the first ``count`` are answered.
        Needs: SparseVector with one noisy threshold; all of the domain is public; noise.scattered.
        Ref: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    vector: SparseVector
    size: int

    def __post_init__(self) -> None:
        settle(self, size=whole("size", self.size, least=1, most=scattered.MOST_SIZE))
        if self.vector.renewed:
            raise ParameterError("renewed", "False for cells of a domain", True)

    @property
    def needs(self) -> Needs:
        return self.vector.needs

    @property
    def event(self) -> Event:
        return self.vector.event

    def draw(self, value: Nonzeros | Any) -> Found:
        cells, vector = Nonzeros.read(value, size=self.size), self.vector
        bar, spare = int(vector.bars(1)[0, 0]), vector.spare(1)[0].tolist()
        noisy = cells.counts + noise.scattered.one_sided(scale=vector.question_scale, count=len(cells.counts))
        reached = np.flatnonzero(noisy >= bar)[: vector.count]
        where, drawn = scattered.first_reached(
            size=self.size, taken=cells.places, scale=vector.question_scale, level=bar, wanted=vector.count
        )
        true = zip(cells.places[reached], noisy[reached], cells.counts[reached], strict=True)
        empty = zip(where, drawn, np.zeros_like(where), strict=True)
        first = sorted((int(p), int(n), int(c)) for p, n, c in (*true, *empty))[: vector.count]
        numbers = tuple(count + extra for (_, _, count), extra in zip(first, spare, strict=False))
        return tuple(p for p, _, _ in first), tuple(n - bar for _, n, _ in first), numbers

    def repeat(self, value: Any, *, times: int) -> list[Found]:
        cells = Nonzeros.read(value, size=self.size)
        if self.size <= _FEW:  # all of them, at once: the same law
            return self.vector.repeat(cells.dense(self.size), times=times)
        return draw_each(self, cells, times)

    def log_mass(self, value: Any, output: Found) -> float:
        if any(place >= self.size for place in output[0]):
            return -math.inf
        return self.vector.log_mass(Nonzeros.read(value, size=self.size).dense(self.size), output)

    def error(self, *, beta: float) -> int:
        """As ``vector.error``, over all cells."""
        return self.vector.error(beta=beta, questions=self.size)
