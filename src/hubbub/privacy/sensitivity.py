"""Neighbouring relations, and the distance by which one unit can move a value under them, as a proof knows it.

A unit changes at most ``l0`` coordinates, none by more than ``linf``, their absolute sum by at most ``l1`` and the sum
of their squares by at most ``l2_squared``. Whatever is known implies bounds on the rest; all of them are exact
rationals.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.parameters import Real, positive, whole


class Neighbors(StrEnum):
    """The neighbouring relation a claim is about. Two claims are only comparable under the same one."""

    ADD_REMOVE = "add-remove"
    """One unit, with all its rows, is added or removed."""

    REPLACE_ONE = "replace-one"
    """One unit, with all its rows, is replaced by another: a group of two under add/remove."""

    LOCAL = "local"
    """One device's whole input is replaced by any other; the collector sees only its report."""


class Norm(StrEnum):
    """The distance between the values of neighbouring datasets for which a mechanism is calibrated."""

    L1 = "L1"
    """The sum of absolute changes (Laplace, geometric)."""
    L2 = "L2"
    """The root of the sum of squares (Gaussian); compared through its square, which is exact."""
    SCORE = "score"
    """The largest change of any one score (selection)."""
    ROWS = "rows"
    """How many values of a multiset are added or removed (quantiles). Where a unit is replaced, so many may go and as
    many come: the mechanism answers for both."""
    LOCAL = "local"
    """An answer with its local sensitivities by distance in rows: how many rows a unit changes (smooth sensitivity)."""
    BLOCKS = "blocks"
    """Outputs of fixed blocks of units: how many of them a unit changes, each to anything (sample-and-aggregate)."""
    UNITS = "units"
    """Counts of units a key: by at most one, on at most so many keys (selection of unknown keys)."""
    WEIGHTS = "weights"
    """Sums of weights a key, where a unit with t keys gives each at most 1/√t (weighted selection of unknown keys)."""
    REPORT = "report"
    """One device's whole input (the local model)."""


ADDITIVE = frozenset({Norm.L1, Norm.L2})
"""The norms of mechanisms that add noise to numbers: there grids scale values, and errors follow from the law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Bounds on the change of a value, in units of its grid. Leave out what is not known."""

    l0: int | None = None
    l1: Fraction | None = None
    l2_squared: Fraction | None = None
    linf: Fraction | None = None
    rows: int | None = None
    local: int | None = None
    """An answer with bounds on its local sensitivity at distance, of which a unit changes at most so many rows."""
    blocks: int | None = None
    weighted: int | None = None
    """A unit holds at most so many keys and gives each of its t keys the weight 1/√t, rounded down."""
    monotone: bool = False
    """Adding a unit moves every score the same way (never true of replacing one)."""
    rising: bool = False
    """Adding a unit lowers no score: monotone, and together with other rising values too."""

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared", "linf"):
            value: Real | None = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, positive(name, value))
        for name in ("l0", "rows", "local", "blocks", "weighted"):
            count: int | None = getattr(self, name)
            if count is not None:
                object.__setattr__(self, name, whole(name, count, least=1))
        if self.rising:
            object.__setattr__(self, "monotone", True)
        known = ("l0", "l1", "l2_squared", "linf", "rows", "local", "blocks", "weighted")
        if all(getattr(self, name) is None for name in known):
            raise ParameterError("sensitivity", "bounded in at least one norm", self)

    def in_norm(self, norm: Norm) -> Fraction | None:
        """The least bound that follows in this norm (squared for L2), or None where none does."""
        match norm:
            case Norm.L1:
                return _least(self.l1, _product(self.l0, self.linf))
            case Norm.L2:
                l1 = self.in_norm(Norm.L1)
                return _least(
                    self.l2_squared,
                    _product(self.l0, _product(self.linf, self.linf)),
                    _product(l1, self.linf),
                    _product(l1, l1),
                )
            case Norm.SCORE:
                return _least(self.linf, self.l1)
            case Norm.ROWS:
                return None if self.rows is None else Fraction(self.rows)
            case Norm.LOCAL:
                return None if self.local is None else Fraction(self.local)
            case Norm.BLOCKS:
                return None if self.blocks is None else Fraction(self.blocks)
            case Norm.UNITS:
                return Fraction(self.l0) if self.l0 is not None and self.linf is not None and self.linf <= 1 else None
            case Norm.WEIGHTS:
                return None if self.weighted is None else Fraction(self.weighted)
            case Norm.REPORT:
                return Fraction(1)


def _product(a: Fraction | int | None, b: Fraction | int | None) -> Fraction | None:
    return None if a is None or b is None else Fraction(a) * b


def _least(*bounds: Fraction | None) -> Fraction | None:
    return min((bound for bound in bounds if bound is not None), default=None)
