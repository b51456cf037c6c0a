"""Bounds on the contribution of one unit to a vector of cells, and on the change of a linear map of it.

A unit adds whole, non-negative numbers: at most ``each`` to a cell, to at most ``cells`` of them, at most ``total``
altogether.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.parameters import whole
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The bounds that were enforced before the cells were counted.

    What is left out beside a ``total`` is bounded by that alone: m rows may lie in one cell or in m. Without a total,
    what is left out is 1.
    """

    cells: int = 0
    each: int = 0
    total: int = 0
    """0 stands for cells × each."""
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        unsaid = whole("total", self.total, least=0) or 1
        cells, each = whole("cells", self.cells or unsaid, least=1), whole("each", self.each or unsaid, least=1)
        total = self.total or cells * each
        if self.neighbors is Neighbors.LOCAL:
            raise ParameterError("neighbors", "add-remove or replace-one, for cells that one place counts", "local")
        object.__setattr__(self, "cells", min(cells, total))
        object.__setattr__(self, "each", min(each, total))
        object.__setattr__(self, "total", min(total, self.cells * self.each))

    def pack(self, holds: int) -> int:
        """The greatest sum of squares of a unit's totals over parts that have at most ``holds`` cells each.

        Squares are convex, so the worst is to fill one part after the other.
        """
        most = min(holds, self.cells) * self.each
        full, rest = divmod(self.total, most)
        return full * most**2 + rest**2

    def through(self, *, column_l1: int, squares: int, signed: bool) -> Sensitivity:
        """The reach of a linear map, from bounds for one unit that is added to an empty table.

        ``column_l1`` bounds the absolute sum of each column, ``squares`` the squared L2 norm of A·c for every c that
        one unit can add; ``signed`` says whether the map has negative entries.

        Privacy:
            Claim: for neighbours x and x', ‖A(x - x')‖₁, ‖A(x - x')‖₂² and how many differ are at most as returned.
            Proof: a unit more or less changes x by one such c: ‖A·c‖₁ <= Σ c_j·‖A_j‖₁ <= total · column_l1. Replacing
                one changes it by c - c': L1 norms add, and ‖Ac - Ac'‖² = ‖Ac‖² + ‖Ac'‖² - 2⟨Ac, Ac'⟩, where the last
                product is not negative if A and c are not; else it is at least -‖Ac‖·‖Ac'‖.
                Results are whole, so each that changes adds at least 1 to both, and the lesser bounds their number.
            Needs: bounds that were enforced on every unit before cells were counted.
            Ref: Dwork, McSherry, Nissim, Smith 2006.
        """
        if self.neighbors is Neighbors.ADD_REMOVE:
            times, squared = 1, 1
        else:
            times, squared = 2, 4 if signed else 2
        l1, l2_squared = times * self.total * column_l1, squared * squares
        return Sensitivity(l0=min(l1, l2_squared), l1=Fraction(l1), l2_squared=Fraction(l2_squared))
