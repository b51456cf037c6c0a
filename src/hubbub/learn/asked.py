"""A table that stays in its engine: the same rows and the same sums, as formulas that are sent where the rows are.

Every function here says in ``Number``s what its namesake does with arrays, operation by operation, so that both add up
the same whole numbers and prove the same sensitivity. Nothing of the table comes back but exact totals, which go under
seal at once.

Privacy:
    Claim: totals of formulas move with a unit by at most what is proven of those of arrays (``blocks``, ``gram``).
    Proof: the operations are the same ones of 64-bit floats on one row, and weights are those of ``Crowd.weights``.
        Where rounding differs at all, in the order of a sum of squares, ``shortened`` holds the whole numbers
        themselves against the bound, as that of ``blocks`` does.
    Needs: ``query.totals``, and an engine that computes what it is told.
    Ref: SOUNDNESS 29.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.errors import NotAllowed
from hubbub.learn.cells import Array
from hubbub.learn.crowd import Crowd
from hubbub.query.totals import WEIGHT, Code, Number, added, column

UNKNOWN = 1 << 40
"""What stands for the number of rows where nobody may know it: more than any sum of theirs needs room for."""

Ask = Callable[[Sequence[Number], Sequence[Code]], list[Array]]
"""Exact totals of values, in each family of codes (``query.totals``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCrowd(Crowd):
    """Owners whom the engine knows, and how many rows of theirs count in all: each unit's at most ``most``."""

    numbered: Callable[[], int] = field(repr=False)

    @classmethod
    def over(cls, numbered: Callable[[], int], *, most: int, single: bool) -> "AskedCrowd":
        """``single``: the owner's check saw that a unit has one row at most."""
        units = None if single else np.empty(0, dtype=np.int64)
        return cls(rows=UNKNOWN, units=units, most=1 if single else most, numbered=numbered)

    def counted_rows(self) -> Array:
        return np.array([self.numbered()], dtype=np.int64)

    @property
    def weights(self) -> Array:
        raise NotAllowed("This estimator looks at rows one by one. Fit it on an array of them.")

    def each(self, parts: Array) -> Array:
        raise NotAllowed("This estimator looks at rows one by one. Fit it on an array of them.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Some columns of a table. Its shape is public; how many rows it has is not, and nobody is told."""

    names: tuple[str, ...]
    crowd: AskedCrowd
    ask: Ask = field(repr=False)
    first: int = 0
    """The place of its first column among those that the engine reads."""

    @property
    def shape(self) -> tuple[int, int]:
        return UNKNOWN, len(self.names)

    @property
    def columns(self) -> list[Number]:
        """Reals that may be missing."""
        return [column(self.first + place) for place in range(len(self.names))]

    def __len__(self) -> int:
        return UNKNOWN

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise NotAllowed("This estimator looks at rows one by one. Fit it on an array of them.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """Rows of finite numbers, each computed from one row of a table."""

    numbers: tuple[Number, ...]
    source: Asked

    @property
    def weight(self) -> Number | None:
        """What a row counts for; None where each counts for 1."""
        return None if self.source.crowd.units is None else WEIGHT

    def of(self, numbers: Sequence[Number]) -> "Formula":
        """Others over the same rows."""
        return Formula(numbers=tuple(numbers), source=self.source)

    def box_total(self, *, bits: int) -> Array:
        """``blocks.box_total``."""
        parts = [_weighed(one.clipped(-1.0, 1.0), self.weight) for one in self.numbers]
        return self.total([(one * float(1 << bits)).truncated() for one in parts])

    def ball_total(self, *, bits: int) -> Array:
        """The sum in ``blocks.ball_sums``."""
        whole = self.shortened(bits=bits, weight=None)
        return self.total([_weighed(one, self.weight).truncated() if self.weight else one for one in whole])

    def products(self, *, bits: int) -> Array:
        """``gram.total_of``."""
        whole = self.shortened(bits=bits, weight=self.weight)
        width = len(whole)
        upper = [(one, other) for one in range(width) for other in range(one, width)]
        sums = self.total([whole[one] * whole[other] for one, other in upper])
        found = np.zeros((width, width), dtype=sums.dtype)
        for (one, other), exact in zip(upper, sums.tolist(), strict=True):
            found[one, other] = found[other, one] = exact
        return found

    def shortened(self, *, bits: int, weight: Number | None) -> list[Number]:
        """``blocks.shortened``: whole numbers of squared length at most weight·2^2bits."""
        most = float(1 << bits)
        length = added([one * one for one in self.numbers]).sqrt()
        scale = _constant(most) / Number("greatest", (length, _constant(1.0)))
        limit = _constant(most * most)
        if weight is not None:
            scale, limit = scale * weight.sqrt(), limit * weight
        whole = [(one * scale).truncated() for one in self.numbers]
        beyond = added([one * one for one in whole]).above(limit)
        return [one - one.sign() * beyond for one in whole]

    def total(self, values: Sequence[Number], codes: Sequence[Code] = ()) -> Array:
        """Exact sums: of all rows, or of the rows of each place of one family."""
        (found,) = self.source.ask(values, codes)
        return found if codes else found[0]


def unit_formula(
    tables: Sequence[Asked], low: Array, high: Array, *, slope: Array | float, shift: Array | float,
    leading: float | None,
) -> Formula:  # fmt: skip
    """``blocks.unit_rows``."""
    half = (high - low) / 2
    middle = (low + half).tolist()
    with np.errstate(divide="ignore"):
        inverse = np.where(half > 0, 1.0 / half, 0.0).tolist()
    moved = np.ndim(slope) > 0 or np.ndim(shift) > 0 or slope != 1.0 or shift != 0.0
    slopes, shifts = (np.broadcast_to(each, half.shape).tolist() for each in (slope, shift))
    found = [] if leading is None else [_constant(leading)]
    given = [one for table in tables for one in table.columns]
    for place, one in enumerate(given):
        unit = ((one.known(middle[place]) - middle[place]) * inverse[place]).clipped(-1.0, 1.0)
        found.append(unit * slopes[place] + shifts[place] if moved else unit)
    return Formula(numbers=tuple(found), source=tables[0])


def widened_formula(units: Formula) -> Formula:
    """``moments.widened``: (1, u, 2u² − 1)."""
    squares = [one * one * 2.0 - 1.0 for one in units.numbers]
    return units.of([_constant(1.0), *units.numbers, *squares])


def residual_formula(rows: Formula, weights: Array, *, radius: float, short: float, reach: float) -> Formula:
    """What a regression's second round adds up: x·(y − x·weights), rows shortened and residuals clipped."""
    *x, y = rows.numbers
    length = added([one * one for one in x]).sqrt() * radius
    part = _constant(short) / Number("greatest", (length, _constant(short)))
    kept = _constant(radius) * Number("least", (_constant(1.0), part))
    told = added([_constant(0.0), *(one * weight for one, weight in zip(x, weights.tolist(), strict=True))])
    off = ((y - told) * kept).clipped(-reach, reach)
    factor = kept * off / (short * reach)
    return rows.of([one * factor for one in x])


def counted_formula(codes: Sequence[Code], source: Asked, *, bits: int) -> Array:
    """``tally.counted``: all histograms one after the other, in rows, or in 2^-bits of rows where units share."""
    single = source.crowd.units is None
    values = [] if single else [(WEIGHT * float(1 << bits)).truncated()]
    return np.concatenate([one[:, 0] for one in source.ask(values, codes)])


def _weighed(one: Number, weight: Number | None) -> Number:
    return one if weight is None else one * weight


def _constant(value: float) -> Number:
    return Number("constant", (), (value,))
