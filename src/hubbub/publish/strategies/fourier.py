"""A histogram as a sum of few cosines, as many as the data deserve: their number is chosen privately.

Noise on Fourier coefficients themselves is dear in pure ε: one cell is in all of them, so that k coefficients cost k/√n
in L1 (or √k where that is used as a bound). The same k coefficients are therefore read off the sums of k equal blocks,
which are measured as a tree, exactly and in whole numbers: nothing has to be rounded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.staged.resolution import Resolution
from hubbub.parameters import Real, probability, whole
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.publish.strategies.layer import Array, Shape, check_cells
from hubbub.publish.strategies.strategy import Foretold, NoisyLayer, no_public_error
from hubbub.publish.terms import Contribution, Noise, Terms

CHOOSING, LEAST = Fraction(1, 5), 8
"""Best on made-up histograms and MEDCOST (9 shapes, 10^3 and 10^5 rows, ε = 0.1); not those it is compared on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fourier(Foretold):
    """The first k cosines of the histogram: little noise on ranges of smooth data, with k chosen by a score.

    Cells are taken in the order of the array (its last axis first), and cosines run over all of them. ``choosing`` is
    the share of the price for k; ``least`` the fewest cosines that are considered.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one run of mechanisms.Resolution on the cells, at ε·choosing and the rest; with Gaussian noise at a ρ
            that gives (ε, δ), of which the choice takes its share as ε₁²/8. Cosines are fitted to released numbers.
        Needs: mechanisms.Resolution; a contribution that was enforced before cells were counted.
        Ref: Ács, Castelluccia, Chen 2012; Rastogi, Nath 2010.
    """

    noise: Noise | None = None
    choosing: Real = CHOOSING
    least: int = LEAST
    name: str = "fourier"

    def __post_init__(self) -> None:
        object.__setattr__(self, "choosing", probability("choosing", self.choosing))
        whole("least", self.least, least=1)

    def prepare(self, shape: Shape, terms: Terms) -> "PreparedFourier":
        if self.noise is not None and self.noise not in terms.kinds:
            raise ParameterError("delta", "above 0 for Gaussian noise", terms.delta)
        kinds = terms.kinds if self.noise is None else (self.noise,)
        return min((self._with(shape, terms, kind) for kind in kinds), key=lambda one: one.spread)

    def _with(self, shape: Shape, terms: Terms, noise: Noise) -> "PreparedFourier":
        share, one = Fraction(self.choosing), terms.contribution
        size = math.prod(shape)
        if noise is Noise.LAPLACE:
            chosen = whole_units_rounded_down(terms.epsilon * share)
            price = {"choosing": chosen, "epsilon": terms.epsilon - chosen}
        else:
            rho = rho_rounded_down(terms.epsilon, terms.delta)
            chosen = whole_units_rounded_down(Fraction(math.sqrt(float(8 * share * rho))))
            price = {"choosing": chosen, "rho": rho - chosen**2 / 8}
        mechanism = Resolution(size=size, rows=one.total, neighbors=one.neighbors, least=self.least, **price)
        return PreparedFourier(shape=shape, terms=terms, noise=noise, mechanism=mechanism)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFourier:
    """One shape at one price."""

    shape: Shape
    terms: Terms
    noise: Noise
    mechanism: Resolution

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]:
        return (NoisyLayer(layer=RowCells(shape=self.shape), mechanism=self.mechanism),)

    @property
    def spread(self) -> float:
        """The effect of noise on ranges, in the middle of the possible choices."""
        return self.mechanism.offsets[len(self.mechanism.offsets) // 2]

    def estimate(self, noisy: Sequence[Any]) -> Array:
        blocks, sums = int(noisy[0][0]), np.asarray(noisy[0][1:], dtype=float)
        if blocks not in self.mechanism.blocks or sums.shape != (self.mechanism.tree(blocks).size,):
            raise ParameterError("noisy numbers", "a number of blocks and the sums of its tree", f"{blocks} blocks")
        settled = self.mechanism.tree(blocks).solve_leaves(sums)
        cells = curve(coefficients(settled, cells=self.mechanism.padding), cells=self.mechanism.padding)
        return cells[: self.mechanism.size].reshape(self.shape)

    def variances(self, queries: Array) -> Array:
        raise no_public_error("how many cosines are kept depends on the data, and what the others held is not known.")


def coefficients(sums: Array, *, cells: int) -> Array:
    """The k orthonormal cosine coefficients of the only curve of k cosines over ``cells`` with these block sums.

    A cosine's sum over a block of L cells is its value in the middle, times sin(πjL/2n) / sin(πj/2n).
    """
    from scipy import fft  # late: it takes longer to load than all of ours

    blocks = len(sums)
    length = cells // blocks
    order = np.arange(1, blocks)
    found: Array = fft.dct(sums, norm="ortho") / math.sqrt(length)
    found[1:] *= length * np.sin(np.pi * order / (2 * cells)) / np.sin(np.pi * order / (2 * blocks))
    return found


def curve(found: Array, *, cells: int) -> Array:
    """The cells of a sum of cosines."""
    from scipy import fft

    padded = np.zeros(cells)
    padded[: len(found)] = found
    drawn: Array = fft.idct(padded, norm="ortho")
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCells:
    """The cells as a multiset of places: what a unit adds is counted in rows."""

    shape: Shape

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def apply(self, cells: Array) -> Array:
        return check_cells(cells, self.shape).reshape(-1)

    def transpose(self, values: Array) -> Array:
        return np.asarray(values, dtype=float).reshape(self.shape)

    def reach(self, one: Contribution) -> Sensitivity:
        """Bound the rows that a unit adds: at most ``total``, however they lie in cells.

        Privacy:
            Claim: the cells of neighbours are x and x + c, or x + c and x + c' where a unit is replaced, with c and c'
                whole, not negative and of at most ``total`` each: Norm.ROWS counts what goes and what comes apart.
            Proof: a unit adds such a c by the definition of Contribution. c and c' may lie in different cells, so that
                they are 2·total apart in L1 and no further; a mechanism made for ``rows`` of replaced units answers for
                both sides (``Resolution.moved``), and doubling here would count them twice.
            Needs: a contribution that was enforced before cells were counted.
            Ref: Dwork, McSherry, Nissim, Smith 2006.
        """
        return Sensitivity(rows=one.total)
