"""Filters that choose the noisy cells to release: set by the domain's size and the price, before anything is read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hubbub.errors import ParameterError
from hubbub.mechanisms import SparseFirst, SparseLargest, SparsePriority, SparseSample, SparseThreshold, SparseVector
from hubbub.mechanisms.sparse.sparse_counts import level_for
from hubbub.mechanisms.sparse.sparse_samples import DIGITS
from hubbub.parameters import Real, between, positive, whole
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish.sparse.prepared import PreparedSparse
from hubbub.publish.strategies.layer import CellLayer, Shape
from hubbub.publish.strategies.strategy import Foretold, Strategy
from hubbub.publish.terms import Noise, Terms, mechanisms

if TYPE_CHECKING:
    from hubbub.publish.release.published import Published
    from hubbub.publish.sparse.release import SparseRelease


class SparseFilter(Strategy, Protocol):
    """Public and frozen; gives the mechanism for a domain at a price."""

    def mechanism(self, size: int, terms: Terms) -> Any: ...


class Filtered(Foretold):
    """The base of filters, which makes strategies of them: for any domain of up to 2^63 cells."""

    __slots__ = ()
    name: str

    def release(self, published: "Published") -> "SparseRelease":  # type: ignore[override]
        from hubbub.publish.sparse.release import SparseRelease

        return SparseRelease.of(published)

    def prepare(self, shape: Shape, terms: Terms) -> PreparedSparse:
        return PreparedSparse.of(self, shape, terms)


def common(size: int, terms: Terms) -> dict[str, Any]:
    """Return the parameters that all mechanisms of noisy cells share: noise for the L1 reach of one unit.

    Privacy:
        Claim: a mechanism with these costs terms.epsilon, for cells that units added to as terms.contribution says.
        Proof: ``Cells.reach`` bounds the L1 distance of neighbours' cells, and ``terms.mechanisms`` calibrates for it.
        Needs: Contribution enforced before the cells were counted.
        Ref: Dwork, McSherry, Nissim, Smith 2006.
    """
    (law,) = mechanisms(terms, Noise.LAPLACE, [CellLayer(shape=(size,)).reach(terms.contribution)], [_WHOLE])
    return {
        "epsilon": law.epsilon,  # type: ignore[union-attr]
        "sensitivity": law.sensitivity,  # type: ignore[union-attr]
        "neighbors": law.neighbors,
        "size": size,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(Filtered):
    """Whatever reaches a number; or the one that so many empty cells are expected to reach.

    Privacy:
        Claim: epsilon, as SparseThreshold.
        Proof: the threshold depends on the size of the domain and the price alone: on no count.
        Needs: SparseThreshold, ``common``.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    at: int | None = None
    expected_false: Real | None = None
    name: str = "threshold"

    def __post_init__(self) -> None:
        if (self.at is None) is (self.expected_false is None):
            raise ParameterError("at", "given, or else expected_false, and not both", self.at)

    def mechanism(self, size: int, terms: Terms) -> SparseThreshold:
        given = common(size, terms)
        if self.at is not None:
            return SparseThreshold(threshold=self.at, **given)
        scale = given["sensitivity"] / given["epsilon"]
        expected = float(positive("expected_false", self.expected_false))
        return SparseThreshold(threshold=max(1, level_for(size, scale, expected)), **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest(Filtered):
    """The ``count`` largest of all noisy cells.

    Privacy:
        Claim: epsilon, as SparseLargest.
        Proof: the number is public.
        Needs: SparseLargest, ``common``.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    count: int
    name: str = "largest"

    def mechanism(self, size: int, terms: Terms) -> SparseLargest:
        return SparseLargest(count=self.count, **common(size, terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class HighPass(Filtered):
    """Whatever is at least ``least`` away from 0, on both sides; or where so many empty cells are expected to be.

    Privacy:
        Claim: epsilon, as SparseSample at level 1.
        Proof: the bound depends on the size of the domain and the price alone.
        Needs: SparseSample, ``common``.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    least: int | None = None
    expected_false: Real | None = None
    name: str = "high-pass"

    def __post_init__(self) -> None:
        if (self.least is None) is (self.expected_false is None):
            raise ParameterError("least", "given, or else expected_false, and not both", self.least)

    def mechanism(self, size: int, terms: Terms) -> SparseSample:
        given = common(size, terms)
        least = self.least
        if least is None:
            expected = float(positive("expected_false", self.expected_false)) / 2
            least = max(1, level_for(size, given["sensitivity"] / given["epsilon"], expected))
        return SparseSample(level=1, least=least, **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Filtered):
    """Each noisy number with a probability that grows with it, such that about so many empty cells are shown.

    Privacy:
        Claim: epsilon, as SparseSample.
        Proof: the level is the least power of two at which no more are expected, from public numbers alone.
        Needs: SparseSample, ``common``.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    expected_false: Real
    least: int = 1
    name: str = "sample"

    def mechanism(self, size: int, terms: Terms) -> SparseSample:
        given, expected = common(size, terms), float(positive("expected_false", self.expected_false))
        for power in range(DIGITS + 1):
            made = SparseSample(level=1 << power, least=self.least, **given)
            if made.false_cells <= expected:
                return made
        raise ParameterError("expected_false", "more, for a domain of this size", self.expected_false)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority(Filtered):
    """A sample of exactly so many, by priorities; only of numbers at least ``least`` away from 0.

    Privacy:
        Claim: epsilon, as SparsePriority.
        Proof: size of the sample and least are public.
        Needs: SparsePriority, ``common``.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012; Duffield, Lund, Thorup 2007.
    """

    count: int
    least: int = 1
    name: str = "priority sample"

    def mechanism(self, size: int, terms: Terms) -> SparsePriority:
        return SparsePriority(count=self.count, least=self.least, **common(size, terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAbove(Filtered):
    """The first ``count`` cells above ``at``, by a sparse vector: the noise does not grow with a unit's cells.

    Privacy:
        Claim: epsilon, as SparseFirst.
        Proof: one unit moves every cell by at most contribution.each, all upwards if it is added; replaced, by the same
            either way, since both of its rows are from 0 to ``each``.
        Needs: SparseFirst; Contribution enforced before the cells were counted.
        Ref: Dwork, Naor, Reingold, Rothblum, Vadhan 2009.
    """

    at: int
    count: int = 1
    numbers: Real = 0
    name: str = "first above"

    def mechanism(self, size: int, terms: Terms) -> SparseFirst:
        vector = SparseVector(
            epsilon=terms.epsilon,
            threshold=self.at,
            count=whole("count", self.count, least=1),
            sensitivity=terms.contribution.each,
            monotone=terms.contribution.neighbors is Neighbors.ADD_REMOVE,
            numbers=between("numbers", self.numbers, 0, 1, high_open=True),
            neighbors=terms.contribution.neighbors,
        )
        return SparseFirst(vector=vector, size=size)


_WHOLE = positive("share", 1)
