"""Strategies of ``hubbub.publish`` as subjects of an audit: arrays of cells that differ by what one unit may add.

What is drawn is looked at through the log-likelihood ratio of the pair, which is a function of the output alone once
the pair is fixed, and tells the two apart as well as anything can. So a loss that is spread over all levels of a tree
is seen in one number.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, count
from statistics import NormalDist
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.integers import as_integers
from hubbub.mechanisms.staged.resolution import Resolution
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import NoisyLayer, Prepared, Strategy
from hubbub.publish.terms import Contribution, Terms

_SLACK, _DISCRETE = 1 + 1e-9, 1.02
"""Floats that add up exact losses may be off by so much; and the δ of Gaussians on whole numbers from that on reals."""
_MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class CellsSide:
    """One of two neighbours: its cells, and those of the other one, to look through."""

    cells: Array
    other: Array
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OfStrategy:
    """A strategy for one shape at one price."""

    title: str
    make: Callable[[], Strategy]
    """Made when it is asked for, so that subjects can be listed without a search for their matrices."""
    shape: Shape
    contribution: Contribution
    epsilon: Fraction = Fraction(1)
    delta: Fraction = Fraction(0)
    heaps: tuple[int, ...] = (1, 1, 3, 1000)
    """How many rows come to a cell at a time, in tables that are made up."""
    _kept: list[Prepared] | None = field(default=None, repr=False, compare=False)
    """What was prepared, for as long as one audit lasts; None: nothing is kept."""

    def remembering(self) -> "OfStrategy":
        return replace(self, _kept=[])

    @property
    def name(self) -> str:
        return f"publish: {self.title}"

    @property
    def terms(self) -> Terms:
        return Terms(epsilon=self.epsilon, delta=self.delta, contribution=self.contribution)

    @property
    def prepared(self) -> Prepared:
        if self._kept is None:
            return self.make().prepare(self.shape, self.terms)
        if not self._kept:
            self._kept.append(self.make().prepare(self.shape, self.terms))
        return self._kept[0]

    @property
    def claim(self) -> Claim:
        return Claim.pure(float(self.epsilon), float(self.delta))

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        nothing = np.zeros(self.shape, dtype=np.int64)
        units = worst_units(self.contribution, self.shape)
        if self.contribution.neighbors is Neighbors.REPLACE_ONE:
            for (here, one), (there, other) in combinations(units.items(), 2):
                yield self._pair(nothing, other, one, f"nobody else, and one unit in {here} or in {there}")
        for about, one in units.items():
            yield self._pair(nothing, one, nothing, f"nobody, and one unit in {about}")
        full, unit = nothing.copy(), units["the first cells"]
        full.reshape(-1)[0] = _MOST - self.contribution.each
        yield self._pair(full, unit, nothing, "a cell as large as 64 bits hold, and one unit in the first cells")
        for _ in count():
            base = self._some(chance, chance.between(0, 40))
            yield self._pair(base, self.unit(chance), self.unit(chance), "some cells, and one unit")

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        base = np.minimum(pair.x.cells, pair.y.cells)
        return self._pair(base, self.unit(chance), self.unit(chance), "the same cells, and another unit")

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Without what both have; then without one of the cells in which they differ."""
        x, y = pair.x.cells, pair.y.cells
        low = np.minimum(x, y)
        if low.any():
            yield _sides(x - low, y - low, f"{pair.about}, without what both have")
        for place in np.flatnonzero((x != y).reshape(-1)):
            kept = np.ones(x.size, dtype=np.int64)
            kept[place] = 0
            less = low + (x - low) * kept.reshape(x.shape), low + (y - low) * kept.reshape(x.shape)
            yield _sides(*less, pair.about)

    def faults(self, pair: Pair) -> list[str]:
        """Check that all numbers move within the reach of their noise, and all of them together within the claim."""
        found: list[str] = []
        losses, rhos = [], []
        for place, one in enumerate(self.prepared.measurements):
            try:
                near, far = (_exact(one, side.cells) for side in (pair.x, pair.y))
            except Exception as problem:
                return [*found, f"layer {place}: an error tells what the cells are: {problem}"]
            if isinstance(one.mechanism, Resolution):
                found += _faults_of_choice(one.mechanism, near, far)
            else:
                found += _faults(f"layer {place}", one.mechanism, near, far)
            loss, rho = _losses_of(one.mechanism, near, far)
            losses.append(loss)
            rhos.append(rho)
        told = "together the layers lose"
        pure, rho = sum(losses), sum(rhos)
        if self.delta == 0 and pure > float(self.epsilon) * _SLACK:
            found.append(f"{told} ε = {pure:.6g} on this pair, and {float(self.epsilon):g} is claimed")
        exceeds = gaussian_delta(rho, float(self.epsilon)) > float(self.delta) * _DISCRETE
        if self.delta and exceeds and pure > float(self.epsilon) * _SLACK:
            found.append(f"{told} ρ = {rho:.6g} on this pair, which gives more than the δ claimed")
        return found

    def answers(self, value: CellsSide, *, times: int) -> Outputs:
        """Return the log-likelihood ratio of each of ``times`` outputs for the second of the pair."""
        x, y = (value.cells, value.other) if value.first else (value.other, value.cells)
        total: Array = np.zeros(times)
        for one in self.prepared.measurements:
            exact, near, far = (_exact(one, cells) for cells in (value.cells, x, y))
            if isinstance(one.mechanism, Resolution):
                total += _ratio_of_choice(one.mechanism, exact, near, far, times)
            else:
                differ = np.flatnonzero(near != far)
                drawn = one.mechanism.draw(np.tile(exact[differ], (times, 1)))
                total += _ratio(one.mechanism, np.asarray(drawn), near[differ], far[differ])
        return total

    def show_pair(self, pair: Pair) -> str:
        return f"x = {pair.x.cells.tolist()}\ny = {pair.y.cells.tolist()}\n{self.make()!r} at {self.claim.words}"

    def unit(self, chance: Chance) -> Array:
        """Draw the contribution of one unit, within its bounds: often all that it may, and often in
        cells beside each other.
        """
        one = self.contribution
        made = np.zeros(math.prod(self.shape), dtype=np.int64)
        many = min(one.cells, made.size)
        start = chance.between(0, made.size - many)
        places = range(start, start + many) if chance.one_in(2) else chance.sample(range(made.size), many)
        left = one.total if chance.one_in(2) else chance.between(0, one.total)
        for place in places:
            made[place] = min(left, one.each if chance.one_in(2) else chance.between(0, one.each))
            left -= int(made[place])
        return made.reshape(self.shape)

    def _pair(self, base: Array, added: Array, replaced: Array, about: str) -> Pair:
        other = base + replaced if self.contribution.neighbors is Neighbors.REPLACE_ONE else base
        return _sides(other, base + added, about)

    def _some(self, chance: Chance, rows: int) -> Array:
        made = np.zeros(self.shape, dtype=np.int64)
        for _ in range(rows):
            made.reshape(-1)[chance.below(made.size)] += chance.choice(self.heaps)
        return made


def _sides(x: Array, y: Array, about: str) -> Pair:
    return Pair(x=CellsSide(cells=x, other=y, first=True), y=CellsSide(cells=y, other=x, first=False), about=about)


def worst_units(one: Contribution, shape: Shape) -> dict[str, Array]:
    """All that a unit may add: in cells beside each other, from either end; in cells far apart; in one alone."""
    size = math.prod(shape)
    many = min(one.cells, size)
    ways = {
        "the first cells": range(many),
        "the last cells": range(size - many, size),
        "cells far apart": [place * size // many for place in range(many)],
        "the cells behind the first": range(min(many, size - many), min(2 * many, size)),
        "one cell": [0],
    }
    found = {}
    for about, places in ways.items():
        made, left = np.zeros(size, dtype=np.int64), one.total
        for place in places:
            made[place] = min(left, one.each)
            left -= int(made[place])
        found[about] = made.reshape(shape)
    return found


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The δ of Gaussian noise that costs just this ρ: no more than what zCDP promises of it."""
    if rho == 0:
        return 0.0
    shift, normal = math.sqrt(2 * rho), NormalDist()
    return normal.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * normal.cdf(-shift / 2 - epsilon / shift)


def _exact(one: NoisyLayer, cells: Array) -> Array:
    """Return the whole numbers that the mechanism is handed."""
    return np.asarray(as_integers(one.layer.apply(cells)))


def _distances(near: Array, far: Array) -> list[int]:
    return [abs(int(b) - int(a)) for a, b in zip(near.flat, far.flat, strict=True)]


def _faults(about: str, mechanism: Mechanism, near: Array, far: Array) -> list[str]:
    needs, moved, found = mechanism.needs, _distances(near, far), []
    square = needs.norm is Norm.L2
    reached = sum(step ** (2 if square else 1) for step in moved)
    if reached > needs.sensitivity:
        norm = f"{needs.norm}{'²' if square else ''}"
        found.append(f"{about}: one unit moves it by {reached} in {norm}, and {needs.sensitivity} was proven")
    if needs.coordinates is not None and sum(map(bool, moved)) > needs.coordinates:
        found.append(f"{about}: one unit moves {sum(map(bool, moved))} numbers, and {needs.coordinates} was proven")
    return found


def _faults_of_choice(mechanism: Resolution, near: Array, far: Array) -> list[str]:
    found = []
    moved, proven = (
        max(_distances(mechanism.scores(near), mechanism.scores(far))),
        mechanism.selection.needs.sensitivity,
    )
    if moved > proven:
        found.append(f"a choice of blocks: one unit moves a score by {moved}, and {proven} was proven")
    for blocks, law in zip(mechanism.blocks, mechanism.laws, strict=True):
        found += _faults(f"{blocks} blocks", law, mechanism.sums(near, blocks), mechanism.sums(far, blocks))
    return found


def _losses_of(mechanism: Mechanism, near: Array, far: Array) -> tuple[float, float]:
    """ε (infinite where noise is Gaussian) and ρ on this pair."""
    if isinstance(mechanism, Geometric):
        return float(sum(_distances(near, far)) / mechanism.scale), float(mechanism.event.rho or 0)
    if isinstance(mechanism, Gaussian):
        squares = sum(step**2 for step in _distances(near, far))
        return math.inf if squares else 0.0, float(squares / (2 * mechanism.sigma**2))
    assert isinstance(mechanism, Resolution)
    sums = (
        _losses_of(law, mechanism.sums(near, blocks), mechanism.sums(far, blocks))
        for blocks, law in zip(mechanism.blocks, mechanism.laws, strict=True)
    )
    losses, rhos = zip(*sums, strict=True)
    choice = mechanism.selection.event
    return float(choice.epsilon or 0) + max(losses), float(choice.rho or 0) + max(rhos)


def _ratio(mechanism: Mechanism, drawn: Array, near: Array, far: Array) -> Array:
    """By how much each row of noisy numbers is likelier for ``far``."""
    a, b = (drawn - near).astype(float), (drawn - far).astype(float)
    if isinstance(mechanism, Geometric):
        each = (np.abs(a) - np.abs(b)) / float(mechanism.scale)
    else:
        assert isinstance(mechanism, Gaussian)
        each = (a**2 - b**2) / (2 * float(mechanism.sigma) ** 2)
    told: Array = each.sum(axis=1)
    return told


def _ratio_of_choice(mechanism: Resolution, exact: Array, near: Array, far: Array, times: int) -> Array:
    """The same where the number of blocks was chosen first: by the choice, and by the sums of that many."""
    drawn: list[tuple[Any, ...]] = mechanism.repeat(exact, times=times)
    chosen = np.array([one[0] for one in drawn])
    scores = mechanism.scores(near), mechanism.scores(far)
    found = np.zeros(times)
    for place, blocks in enumerate(mechanism.blocks):
        at = np.flatnonzero(chosen == blocks)
        if len(at):
            before, after = (mechanism.selection.log_mass(one, place) for one in scores)
            rows = np.array([drawn[number][1:] for number in at])
            sums = mechanism.sums(near, blocks), mechanism.sums(far, blocks)
            found[at] = after - before + _ratio(mechanism.laws[place], rows, *sums)
    return found
