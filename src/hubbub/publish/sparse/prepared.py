"""A filter for one domain at one price, as all strategies are prepared: what is drawn, and what it is made for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError, TooHeavy
from hubbub.mechanisms import Nonzeros, SparseFirst, SparsePriority
from hubbub.noise.scattered import MOST_SHOWN
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.publish.strategies.layer import Array, CellLayer, Shape
from hubbub.publish.strategies.strategy import NoisyLayer, no_public_error
from hubbub.publish.terms import Contribution, Terms

_MOST_LISTED = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scarce:
    """All cells, of which only those that are not empty are written down."""

    shape: Shape

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def apply(self, cells: Any) -> Nonzeros:
        """From cells that are all listed, or from those that are not empty."""
        if isinstance(cells, Nonzeros):
            return cells
        flat = np.asarray(cells).reshape(-1)
        places = np.flatnonzero(flat)
        return Nonzeros.of(places, flat[places], size=self.size)

    def transpose(self, values: Array) -> Array:
        return np.asarray(values, dtype=float).reshape(self.shape)

    def reach(self, one: Contribution) -> Sensitivity:
        """As cells, and each of them alone.

        Privacy:
            Claim: neighbours' cells are this far apart in L1 and L2, each by at most ``one.each``; and where units are
                added alone, none is smaller.
            Proof: ``Cells.reach``; what a unit adds to a cell is from 0 to ``each``, so two of them differ by no more.
            Needs: a contribution that was enforced before cells were counted.
            Ref: Dwork, McSherry, Nissim, Smith 2006.
        """
        rising = one.neighbors is Neighbors.ADD_REMOVE
        return replace(CellLayer(shape=(self.size,)).reach(one), linf=Fraction(one.each), monotone=rising)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSparse:
    """The mechanism of a filter. What comes out is a list of cells, and never all of them."""

    shape: Shape
    terms: Terms
    mechanism: Any

    @classmethod
    def of(cls, shown: Any, shape: Shape, terms: Terms) -> "PreparedSparse":
        """Refused where too many empty cells could be shown: the size of the domain and the price tell."""
        mechanism = shown.mechanism(math.prod(shape), terms)
        false = getattr(mechanism, "false_cells", 0.0)
        if 2 * false > MOST_SHOWN:
            raise ParameterError("filter", f"such that at most 2^26 empty cells are shown, not {false:.3g}", shown)
        return cls(shape=tuple(shape), terms=terms, mechanism=mechanism)

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]:
        return (NoisyLayer(layer=Scarce(shape=self.shape), mechanism=self.mechanism),)  # type: ignore[arg-type]

    @property
    def deviation(self) -> float | None:
        """Of the noise of each cell, shown or not; None where cells have no noise of a law of their own."""
        variance = getattr(self.mechanism, "variance", None)
        return None if variance is None else math.sqrt(variance)

    @property
    def foretold(self) -> str:
        """The expected result, as far as it is known beforehand, in a sentence."""
        if self.deviation is None:
            return "of what is shown depends on the data, and is not told"
        false = getattr(self.mechanism, "false_cells", None)
        beside = "" if false is None else f"; about {false:,.3g} empty cells are shown"
        return f"± {self.deviation:,.4g} a cell (rms), before it is decided which are shown{beside}"

    def keep(self, answer: Any) -> Array:
        """An answer as one array of whole numbers: rows of the same length."""
        if isinstance(self.mechanism, SparseFirst):
            return np.array([row for row in answer if row] or [[], []], dtype=np.int64)
        return np.asarray(answer)

    def open(self, kept: Any) -> Any:
        """The answer again."""
        rows = np.asarray(kept)
        if rows.ndim != 2 or rows.dtype.kind not in "iu" or len(rows) not in (2, 3) or not self._in_order(rows[0]):
            raise ParameterError("noisy numbers", "places of the domain in order, with their numbers", rows.shape)
        if isinstance(self.mechanism, SparseFirst):
            found = [tuple(row) for row in rows.tolist()]
            return tuple(found) if len(found) == 3 else (*found, ())
        return rows

    def _in_order(self, places: Array) -> bool:
        if isinstance(self.mechanism, SparsePriority):
            if places[-2:].tolist() != [-1, -2]:
                return False
            places = places[:-2]
        ends = len(places) == 0 or (int(places[0]) >= 0 and int(places[-1]) < math.prod(self.shape))
        return ends and bool((places[1:] > places[:-1]).all())

    def estimate(self, noisy: Sequence[Any]) -> Array:
        """All cells, where they can be listed: what is not shown counts as 0."""
        size = math.prod(self.shape)
        if size > _MOST_LISTED:
            raise TooHeavy(f"There are {size:,} cells; at most {_MOST_LISTED:,} can be listed. Ask for what is shown.")
        codes, values, _ = cells_of(self.mechanism, self.open(noisy[0]))
        cells = np.zeros(size)
        cells[codes] = values
        return cells.reshape(self.shape)

    def variances(self, queries: Array) -> Array:
        raise no_public_error("which cells are shown depends on the data, and what is not shown counts as 0.")


def cells_of(mechanism: Any, answer: Any) -> tuple[Array, Array, Array]:
    """Places in order, the estimate of each, and its noisy number."""
    if isinstance(mechanism, SparseFirst):
        values = np.array(mechanism.vector.estimates(tuple(answer)), dtype=float)
        return np.array(answer[0], dtype=np.int64), values, values
    drawn = np.asarray(answer)
    estimates = getattr(mechanism, "estimates", None)
    shown = drawn[:, :-2] if isinstance(mechanism, SparsePriority) else drawn
    codes, noisy = shown[0].astype(np.int64), shown[1]
    return codes, noisy.astype(float) if estimates is None else estimates(drawn), noisy
