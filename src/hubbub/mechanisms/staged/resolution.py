"""A row of counts, measured as finely as it is worth: the number of blocks is chosen privately, then their sums are
noised.

Every node of a level has as many children as the next, and all nodes get noise of the same law; then least squares is
one pass up and one down.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import HubbubError, ParameterError
from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.selection.select import Exponential, PermuteAndFlip
from hubbub.parameters import positive, whole
from hubbub.privacy.events.event import ComposedEvent, PureEvent
from hubbub.privacy.sensitivity import Neighbors, Norm

_QUERIES = 64


@dataclass(frozen=True, slots=True)
class Fans:
    """The number of children of the nodes of each level, the top first; the top itself is not measured."""

    children: tuple[int, ...]

    @classmethod
    def over(cls, leaves: int, *, bits: int) -> "Fans":
        """For a power of two of leaves: as few levels as have at most 2^bits children a node, spread evenly."""
        power = leaves.bit_length() - 1
        levels = max(1, -(-power // bits))
        each, more = divmod(power, levels)
        return cls(tuple(1 << (each + (level < more)) for level in range(levels)))

    @property
    def levels(self) -> int:
        return len(self.children)

    @property
    def widths(self) -> tuple[int, ...]:
        """The nodes of each level, leaves last."""
        return tuple(math.prod(self.children[: level + 1]) for level in range(self.levels))

    @property
    def size(self) -> int:
        return sum(self.widths)

    def sums(self, leaves: Array) -> Array:
        """All nodes of all levels, top first, exactly: every leaf is in one node of each level."""
        return np.concatenate([leaves.reshape(width, -1).sum(axis=1) for width in self.widths])

    def solve_leaves(self, nodes: Array) -> Array:
        """The leaves by least squares, for nodes whose noise has one law. The last axis holds the nodes.

        Going up, a node's own number and the sum of its children are weighted by their variances. Going down, what a
        node differs from the sum of its children is shared out equally.
        """
        ends = np.cumsum(self.widths)
        levels = np.split(np.asarray(nodes, dtype=float), ends[:-1], axis=-1)
        risen, variance = [levels[-1]], 1.0
        for own, fan in zip(levels[-2::-1], self.children[:0:-1], strict=True):
            below = fan * variance
            risen.append((own * below + _group(risen[-1], fan).sum(axis=-1)) / (1 + below))
            variance = below / (1 + below)
        found = risen[-1]
        for level, fan in zip(risen[-2::-1], self.children[1:], strict=True):
            parts = _group(level, fan)
            apart = (found - parts.sum(axis=-1)) / fan
            found = (parts + apart[..., np.newaxis]).reshape(level.shape)
        return found

    def spread(self) -> float:
        """The mean variance of sums of the first leaves, for noise of variance 1.

        qᵀ(AᵀA)⁻¹q, where (AᵀA)⁻¹q is what least squares makes of q on the leaves and 0 above.
        """
        leaves = self.widths[-1]
        ends = np.unique(np.linspace(1, leaves, min(leaves, _QUERIES)).astype(int))
        queries = (np.arange(leaves) < ends[:, np.newaxis]).astype(float)
        nodes = np.concatenate([np.zeros((len(ends), self.size - leaves)), queries], axis=1)
        return float(np.mean(np.sum(queries * self.solve_leaves(nodes), axis=1)))


def _group(level: Array, fan: int) -> Array:
    return level.reshape(*level.shape[:-1], -1, fan)


STEPS = 1 << 10
"""A score counts this many steps to one row."""
_LAPLACE_BITS, _GAUSSIAN_BITS = 4, 2
_LIMB = 20
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """First how many equal blocks of a row of ``size`` cells to measure, then a tree of sums over them.

    The value is a row of whole counts, padded with empty cells to a power of two. An answer is how many blocks were
    chosen, followed by the noisy sums of ``tree(blocks)``. Blocks are 2^i, from ``least`` to one a cell. A choice is
    scored by the error that it would give to sums over the first cells, as a root of mean squares: what noise adds, and
    what k blocks cannot tell, namely how far running totals are from straight lines within the blocks.

    Sums get geometric noise at ``epsilon``, or discrete Gaussian noise at ``rho``. ``error`` has no public answer.

    Privacy:
        Claim: Pure(choosing + epsilon), or Zcdp(choosing²/8 + rho), for rows of counts where one unit adds at most
            ``rows`` in all.
        Proof: let P be the running totals and B_k the linear map from counts to how far P is from the lines between the
            edges of k blocks of L cells. ‖B_k·x‖ is a seminorm, so that a unit moves it by at most rows·max_i
            ‖B_k·e_i‖ (twice that if it is replaced). Within its block e_i leaves u/L at the u-th cell before it and
            1 - u/L from it on; the sum of squares is convex in i's place and greatest at both ends of the block:
            (L-1)(2L-1)/6L. A score is ⌊√(A + c)⌋ with √A = STEPS·‖B_k·x‖/√(2·size) and a public c >= 0, computed
            exactly: √(A + c) moves by no more than √A does, and floors of numbers within D of each other are within
            ⌈D⌉. The choice is PermuteAndFlip or Exponential on such scores. Then each level of the tree holds every
            cell once: one unit moves the sums by rows·levels in L1, and by rows²·levels in L2². Noise is calibrated
            for that whichever k was chosen, so that the two parts add up.
        Needs: PermuteAndFlip or Exponential, Geometric or Gaussian; ``rows`` enforced before cells were counted.
        Ref: Ács, Castelluccia, Chen 2012 for the private number of coefficients; McKenna, Sheldon 2020.
    """

    size: int
    choosing: Fraction
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    rows: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    least: int = 8

    blocks: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """What is chosen from."""
    selection: PermuteAndFlip | Exponential = field(init=False, repr=False, compare=False)
    laws: tuple[Geometric | Gaussian, ...] = field(init=False, repr=False, compare=False)
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """What noise adds to each score, squared and in steps."""
    needs: Needs = field(init=False, repr=False, compare=False)
    event: ComposedEvent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size, rows = whole("size", self.size, least=1, most=1 << 40), whole("rows", self.rows, least=1)
        least, choosing = whole("least", self.least, least=1), positive("choosing", self.choosing)
        if (self.epsilon is None) is (self.rho is None):
            raise ParameterError("epsilon", "given, or else rho, and not both", self.epsilon)
        if self.epsilon is not None:
            settle(self, epsilon=positive("epsilon", self.epsilon))
        if self.rho is not None:
            settle(self, rho=positive("rho", self.rho))
        settle(self, size=size, rows=rows, choosing=choosing)
        powers = [1 << power for power in range(self.padding.bit_length())]
        blocks = tuple(power for power in powers if power >= min(least, self.padding))
        settle(self, blocks=blocks)
        laws = tuple(self._law(self.tree(count).levels) for count in blocks)
        spreads = [
            self.tree(count).spread() * law.standard_deviation**2 for count, law in zip(blocks, laws, strict=True)
        ]
        kind: Any = PermuteAndFlip if self.rho is None else Exponential
        step = Fraction(max(self.score_reach(count) for count in blocks))
        selection = kind(epsilon=choosing, sensitivity=max(step, Fraction(1)), neighbors=self.neighbors)
        worst = max((law.event for law in laws), key=lambda event: event.rho)
        measured = worst if self.epsilon is None else PureEvent(bound=self.epsilon, neighbors=self.neighbors)
        settle(
            self,
            selection=selection,
            laws=laws,
            offsets=tuple(int(STEPS**2 * spread) for spread in spreads),
            needs=Needs(norm=Norm.ROWS, sensitivity=Fraction(rows), neighbors=self.neighbors, integers=False),
            event=ComposedEvent(events=(selection.event, measured)),
        )

    @property
    def padding(self) -> int:
        """The least power of two that holds all cells."""
        return 1 << (self.size - 1).bit_length()

    @property
    def reach(self) -> int:
        """The distance between neighbours in all cells together."""
        return self.rows * (1 if self.neighbors is Neighbors.ADD_REMOVE else 2)

    def tree(self, blocks: int) -> Fans:
        """Return the tree over this many blocks: wide for Laplace noise, narrow for Gaussian."""
        return Fans.over(blocks, bits=_LAPLACE_BITS if self.rho is None else _GAUSSIAN_BITS)

    def score_reach(self, blocks: int) -> int:
        """Bound the number of steps by which a unit can move the score of this many blocks, rounded up."""
        length = self.padding // blocks
        square = Fraction((STEPS * self.reach) ** 2 * (length - 1) * (2 * length - 1), 12 * length * self.padding)
        return 0 if square == 0 else math.isqrt(math.ceil(square) - 1) + 1

    def scores(self, value: Array) -> Array:
        """Whole numbers, one a number of blocks; none above 0."""
        cells = self._row(value)
        return np.array([-self._score(cells, place) for place in range(len(self.blocks))], dtype=object)

    def sums(self, value: Array, blocks: int) -> Array:
        """The exact numbers that get noise once this many blocks are chosen."""
        return self.tree(blocks).sums(self._row(value).reshape(blocks, -1).sum(axis=1))

    def draw(self, value: Array) -> Array:
        place = self.selection.draw(self.scores(value))
        noisy = np.asarray(self.laws[place].draw(self.sums(value, self.blocks[place])))
        return np.concatenate([np.array([self.blocks[place]], dtype=noisy.dtype), noisy])

    def repeat(self, value: Array, *, times: int) -> list[tuple[int, ...]]:
        places = np.asarray(self.selection.repeat(self.scores(value), times=times))
        drawn: list[Any] = [None] * times
        for place in np.unique(places):
            at = np.flatnonzero(places == place)
            sums = self.sums(value, self.blocks[place])
            noisy = np.asarray(self.laws[place].draw(np.tile(sums, (len(at), 1))))
            for where, row in zip(at, noisy.tolist(), strict=True):
                drawn[where] = (self.blocks[place], *row)
        return drawn

    def log_mass(self, value: Array, output: Sequence[int]) -> float:
        blocks, *noisy = output
        if blocks not in self.blocks or len(noisy) != self.tree(blocks).size:
            return -math.inf
        place = self.blocks.index(blocks)
        sums = self.sums(value, blocks)
        measured = [self.laws[place].log_mass(int(x), int(y)) for x, y in zip(sums, noisy, strict=True)]
        return self.selection.log_mass(self.scores(value), place) + sum(measured)

    def error(self, *, beta: float) -> float:
        raise HubbubError("There is no error to state: how many blocks are measured depends on the data.")

    def _law(self, levels: int) -> Geometric | Gaussian:
        if self.epsilon is not None:
            return Geometric(epsilon=self.epsilon, sensitivity=levels * self.reach, neighbors=self.neighbors)
        assert self.rho is not None
        return Gaussian.at_rho(rho=self.rho, sensitivity_squared=levels * self.reach**2, neighbors=self.neighbors)

    def _row(self, value: Any) -> Array:
        """The padded row: 64 bits where running totals times a block's length fit, else whole numbers of any size."""
        cells = np.asarray(value)
        if cells.shape != (self.size,) or (cells.dtype.kind not in "iu" and cells.dtype != object):
            raise ParameterError("value", f"a row of {self.size} whole numbers", f"{cells.dtype} {cells.shape}")
        most = 8 * self.padding * float(np.abs(cells.astype(float)).sum())
        row = np.zeros(self.padding, dtype=np.int64 if most < _INT64 else object)
        row[: self.size] = cells
        return row

    def _score(self, cells: Array, place: int) -> int:
        blocks = self.blocks[place]
        length = self.padding // blocks
        totals = np.cumsum(cells.reshape(blocks, length), axis=1)
        apart = length * totals - np.arange(1, length + 1) * totals[:, -1:]
        squares = _sum_of_squares(apart.reshape(-1))
        return math.isqrt(squares * STEPS**2 // (2 * length**2 * self.padding) + self.offsets[place])


def _sum_of_squares(numbers: Array) -> int:
    """Exactly, in limbs of twenty bits, whose products add up within 64 bits for 2^23 numbers."""
    if numbers.dtype == object or len(numbers) > 1 << 22:
        return sum(int(number) ** 2 for number in numbers.tolist())
    left, limbs = np.abs(numbers), []
    while left.any():
        limbs.append(left & ((1 << _LIMB) - 1))
        left = left >> _LIMB
    return sum(
        int(np.dot(low, high)) << (_LIMB * (i + j)) for i, low in enumerate(limbs) for j, high in enumerate(limbs)
    )
