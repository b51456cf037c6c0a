"""Cells that are measured in stages, where the releases so far decide the next measurement.

A plan is public: handed the answers so far, it names the next step, which tells what it charges to each cell. No cell
may be charged more than the whole price, whatever the answers were; that alone is what the claim rests on, so that
plans may be as clever as they like.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from hubbub.errors import HubbubError, ParameterError
from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import as_integers
from hubbub.parameters import positive, whole
from hubbub.privacy.events.event import PureEvent
from hubbub.privacy.sensitivity import Neighbors, Norm

GRAIN = 1 << 20
"""Charges are whole parts of the price, this many to all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """The cost of all steps of a mechanism together, and the number of rows that can differ between neighbours."""

    epsilon: Fraction
    moved: int
    neighbors: Neighbors

    def of_a_row(self, charge: int) -> Fraction:
        """Return the loss of one row of difference for a charge."""
        return self.epsilon * charge / (GRAIN * self.moved)


class Step(Protocol):
    """One release, of which a row may lose no more than its cell is charged.

    For each cell and every answer: one row more or less there changes ln P(answer) by at most ``charges`` of the cell
    in units of ``Tariff.of_a_row``; and changes of several rows add up.
    """

    @property
    def charges(self) -> Array:
        """Whole parts of the price, one for each cell."""
        ...

    def draw(self, cells: Array, price: Tariff) -> Array:
        """The answer: a flat array of whole numbers."""
        ...

    def repeat(self, cells: Array, price: Tariff, times: int) -> list[Array]:
        """Independent answers."""
        ...

    def log_mass(self, cells: Array, answer: Array, price: Tariff) -> float: ...

    def length(self, rest: Array) -> int:
        """Return how many of the remaining numbers belong to this step."""
        ...


class StagedPlan(Protocol):
    """Frozen, and made of public parameters."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def step(self, told: Sequence[Array]) -> Step | None:
        """Return the step that is released after these answers; None when all is done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A plan's steps, one after the other; an answer is all their numbers in a row. ``error`` has no public answer.

    Privacy:
        Claim: Pure(epsilon) for cells where one unit adds at most ``rows`` in all (twice that differ if one is
            replaced).
        Proof: let y = (y_1, …, y_k) be an answer. The steps that led to it are functions of y and of public facts, so
            they are the same for neighbours x and x', and ln P(y|x)/P(y|x') is the sum over steps of what they lose.
            x and x' differ by at most ``moved`` rows, and a row loses in a step at most the charge of its cell, as
            Tariff.of_a_row; over all steps a cell is charged at most GRAIN, which ``steps`` enforces. So the sum is at
            most moved · ε/moved = ε. Charges that depend on earlier answers need no more than that, since the bound
            holds for each y by itself.
        Needs: steps that keep to their charges; ``rows`` enforced before cells were counted; a public plan.
        Ref: Dwork, Rothblum, Vadhan 2010 for adaptive composition; McSherry 2009 for disjoint parts.
    """

    epsilon: Fraction
    plan: StagedPlan
    rows: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    price: Tariff = field(init=False, repr=False, compare=False)
    needs: Needs = field(init=False, repr=False, compare=False)
    event: PureEvent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        epsilon, rows = positive("epsilon", self.epsilon), whole("rows", self.rows, least=1)
        moved = rows if self.neighbors is Neighbors.ADD_REMOVE else 2 * rows
        settle(
            self,
            epsilon=epsilon,
            price=Tariff(epsilon=epsilon, moved=moved, neighbors=self.neighbors),
            needs=Needs(norm=Norm.ROWS, sensitivity=Fraction(rows), neighbors=self.neighbors, integers=False),
            event=PureEvent(bound=epsilon, neighbors=self.neighbors),
        )

    def steps(self, told: list[Array]) -> Iterator[Step]:
        """Yield the steps after the answers, which the caller appends to; none that overdraws a cell."""
        spent = np.zeros(self.plan.shape, dtype=np.int64)
        while (found := self._next(told, spent)) is not None:
            step, spent = found
            yield step

    def _next(self, told: Sequence[Array], spent: Array) -> tuple[Step, Array] | None:
        """The step after these answers, and what cells have been charged with it; None when all is done."""
        step = self.plan.step(tuple(told))
        if step is None:
            return None
        charges = step.charges
        if charges.shape != spent.shape or charges.dtype.kind != "i" or charges.min() < 0:
            raise TypeError("a step charges whole parts of the price to each cell")
        after: Array = spent + charges
        if after.max() > GRAIN:
            raise HubbubError("A plan charged more than the whole price to a cell. This is a mistake of the plan.")
        return step, after

    def draw(self, value: Array) -> Array:
        cells, told = self._check_cells(value), list[Array]()
        for step in self.steps(told):
            told.append(np.asarray(step.draw(cells, self.price)))
        return np.concatenate(told)

    def repeat(self, value: Array, *, times: int) -> list[tuple[int, ...]]:
        """Draw together wherever the same was released before, since the next step is then the same."""
        cells = self._check_cells(value)
        drawn: list[tuple[int, ...]] = [()] * times
        pending = [(list[Array](), np.zeros(self.plan.shape, dtype=np.int64), list(range(times)))]
        while pending:
            told, spent, places = pending.pop()
            found = self._next(told, spent)
            if found is None:
                answer = tuple(np.concatenate(told).tolist())
                for place in places:
                    drawn[place] = answer
                continue
            step, after = found
            alike: dict[tuple[int, ...], tuple[Array, list[int]]] = {}
            for place, one in zip(places, step.repeat(cells, self.price, len(places)), strict=True):
                alike.setdefault(tuple(one.tolist()), (one, []))[1].append(place)
            pending.extend(([*told, one], after, group) for one, group in alike.values())
        return drawn

    def parse(self, output: Any) -> tuple[list[Step], list[Array]]:
        """An answer as the steps that gave it and the numbers of each."""
        rest, told, found = _numbers(output), list[Array](), []
        for step in self.steps(told):
            length = step.length(rest)
            if length > len(rest):
                raise ParameterError("noisy numbers", "as many as the plan asks for", len(output))
            found.append(step)
            told.append(rest[:length])
            rest = rest[length:]
        if len(rest):
            raise ParameterError("noisy numbers", "as many as the plan asks for", len(output))
        return found, told

    def log_mass(self, value: Array, output: Any) -> float:
        try:
            steps, told = self.parse(output)
        except ParameterError:
            return -math.inf
        cells = self._check_cells(value)
        return sum(step.log_mass(cells, one, self.price) for step, one in zip(steps, told, strict=True))

    def error(self, *, beta: float) -> float:
        raise HubbubError("There is no error to state: what is measured depends on the data.")

    def _check_cells(self, value: Any) -> Array:
        cells = np.asarray(value)
        if cells.size != math.prod(self.plan.shape) or (cells.dtype.kind not in "iu" and cells.dtype != object):
            raise ParameterError("value", f"whole numbers of shape {self.plan.shape}", f"{cells.dtype} {cells.shape}")
        wide = cells.dtype == object or float(np.abs(cells.astype(float)).sum()) >= 1 << 60
        return cells.reshape(self.plan.shape).astype(object if wide else np.int64)


def _numbers(output: Any) -> Array:
    """Exactly: NumPy would make floats of a tuple with numbers on both sides of 2^63."""
    exact = np.asarray(as_integers(output))
    fits = exact.dtype == object and all(-(1 << 63) <= one < 1 << 63 for one in exact)
    return exact.astype(np.int64) if fits else exact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Noisy sums over disjoint groups of cells, each at a charge of its own; cells labelled -1 are in none.

    A group that is charged nothing is not looked at: its answer is 0.

    Privacy:
        Claim: a row loses at most the charge of its group (``Step``).
        Proof: a row is in at most one group, and moves its sum by 1. The sum gets geometric noise of scale
            1 / of_a_row(charge): ln P changes by at most of_a_row(charge) for each row of difference.
        Needs: mechanisms.Geometric.
        Ref: Dwork, McSherry, Nissim, Smith 2006.
    """

    labels: Array
    weights: Array
    """One for each group, in parts of the price."""

    @property
    def charges(self) -> Array:
        padded = np.append(self.weights, 0).astype(np.int64)
        return padded[self.labels]

    def sums(self, cells: Array) -> Array:
        """Exactly."""
        inside = self.labels >= 0
        total = np.zeros(len(self.weights), dtype=cells.dtype)
        np.add.at(total, self.labels[inside], cells[inside])
        return total

    def draw(self, cells: Array, price: Tariff) -> Array:
        return self.repeat(cells, price, 1)[0]

    def repeat(self, cells: Array, price: Tariff, times: int) -> list[Array]:
        exact = np.tile(self.sums(cells), (times, 1))
        noisy = np.zeros_like(exact)
        for weight in np.unique(self.weights):
            if weight:
                at = np.flatnonzero(self.weights == weight)
                drawn = np.asarray(self.law(int(weight), price).draw(exact[:, at]))
                noisy = noisy.astype(object) if drawn.dtype == object else noisy
                noisy[:, at] = drawn
        return list(noisy)

    def log_mass(self, cells: Array, answer: Array, price: Tariff) -> float:
        found = 0.0
        for exact, weight, noisy in zip(self.sums(cells), self.weights, answer, strict=True):
            if weight:
                found += self.law(int(weight), price).log_mass(int(exact), int(noisy))
            elif noisy:
                return -math.inf
        return found

    def length(self, rest: Array) -> int:
        return len(self.weights)

    def variances(self, price: Tariff) -> Array:
        """Of each number's noise; infinite where nothing was charged."""
        levels, places = np.unique(self.weights, return_inverse=True)
        each = [self.law(int(one), price).standard_deviation ** 2 if one else math.inf for one in levels]
        return np.array(each)[places]

    @staticmethod
    def law(weight: int, price: Tariff) -> Geometric:
        """For a group of this charge: a unit moves all groups together by ``moved`` rows at most."""
        return Geometric(
            epsilon=price.of_a_row(weight) * price.moved, sensitivity=price.moved, neighbors=price.neighbors
        )
