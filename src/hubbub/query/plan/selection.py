"""Keys that nobody listed: which of them an answer shows, and what it says about those.

First the combinations of private keys that units have go through a selection (``mechanisms.keys``), which lets one
pass if its noisy number of units reaches a threshold. What passes is public. Then everything else is measured on these
groups and no others, as if they had been listed. With public keys beside private ones, the selection is over the
private part alone, and every combination that passes is shown with all public values: which rows there are tells which
combinations have passed, and nothing else. A selection over whole cells would show holes where few units are.

Privacy:
    Claim: selection and measurements together cost what their events say; the question is (ε, δ)-DP.
    Proof: after bounding, a unit is in at most most_groups cells, so in at most most_groups combinations of private
        keys: it moves the number of units of so many, each by one, and what only it holds has one unit. That is what
        the selection is calibrated for, δ for all new combinations of the unit at once. Let S be any set of
        combinations. The vector of a tally on S × public values, zero where no unit is, is defined for both neighbours
        and differs in at most most_groups cells, each within the tally's bounds: restricting a vector to a set that
        does not depend on the data moves it no further. So each measurement is, for every S, what its event says, and
        adaptive composition adds up the events. That S holds a combination that the neighbour does not have is the
        selection's failure; its mass is charged with it. Where COUNT(DISTINCT unit) is asked and there are no public
        keys, the number that passed is shown itself: it is part of the selection's output, whose event covers it.
        Shares: pure parts add up to at most ε with the failure mass at most δ; in zCDP the parts add up to a ρ that
        gives (ε, δ/2), with the failure mass at most δ/2.
    Needs: distinct units after bounding (engines.keyed); add-remove neighbours; parameters from public facts alone.
    Ref: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Desfontaines, Voss, Gipson, Mandayam 2022; SOUNDNESS 9.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.errors import AccountingError, MissingKeys, NotAllowed
from hubbub.mechanisms import (
    GaussianThreshold,
    LaplaceThreshold,
    Mechanism,
    OptimalKeys,
    TruncatedThreshold,
    WeightedGaussianThreshold,
)
from hubbub.mechanisms.keys.threshold import KeySelection
from hubbub.mechanisms.selection.pieces import EMPTY
from hubbub.noise.weighted_sums import NoiseLaw
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import Filter, whole_units_rounded_down
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.privacy.shares import deviation, is_payable
from hubbub.privacy.ways import Chosen, Way
from hubbub.query.expression import Value
from hubbub.query.ops import Cell, ExactCounts, Group, Measure, Tally
from hubbub.query.plan.statistic import NoisyNumber, NoisySum, QueryMeasurement, Statistic, TallySteps

MOST_KEYS = 1 << 20
"""Keys of one unit that a selection can be calibrated for."""
_MOST_WEIGHTED = 256
"""Keys of a unit up to which the weighted selection is looked at: its threshold is searched over all of them."""


_LEAST_OPTIMAL = Fraction(1, 32)
"""The ε of one key from which the optimal selection is looked at: with less, its steps to certainty are too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCounts(Statistic):
    """The units of each combination of private keys, and the tallies whose noisy numbers are those that have passed."""

    told: tuple[Tally, ...]
    mechanism: KeySelection
    """The selection that they go through; it decides whether units are counted or weighed."""

    def __call__(self, counted: ExactCounts) -> dict[Cell, int]:
        """Take the numbers of units, by their keys."""
        return dict(counted.units)

    @property
    def sensitivity(self) -> Sensitivity:
        """Bound what one unit can do to the numbers that are selected by."""
        keys = self.mechanism.keys_per_unit
        return Sensitivity(weighted=keys) if self.weight_bits is not None else Sensitivity(l0=keys, linf=Fraction(1))

    @property
    def weight_bits(self) -> int | None:
        """In what steps units are weighed; None where they are counted."""
        return self.mechanism.weight_bits if isinstance(self.mechanism, WeightedGaussianThreshold) else None

    def calibrate_pure(self, epsilon: Fraction) -> Mechanism:
        """Return the selection, which ``selection_ways`` has calibrated."""
        return self.mechanism

    def calibrate_zcdp(self, rho: Fraction) -> Mechanism:
        """Return the selection, which ``selection_ways`` has calibrated."""
        return self.mechanism

    @property
    def tells(self) -> tuple[Tally, ...]:
        """The tallies that count these very units."""
        return self.told

    def bound_error(self, mechanism: Mechanism, tally: Tally, beta: float) -> Fraction:
        """Return how far the noise goes."""
        return Fraction(spread(self.mechanism, beta)) * tally.grid

    def list_laws(self, mechanism: Mechanism, steps: TallySteps, beta: float) -> tuple[NoiseLaw, ...]:
        """Return a Laplace law for each group that goes, with probability ``beta``, as far as the interval of a count
        that is shown because it is large enough."""
        reach = [self._find_reach(count, beta) for count in steps.numerators]
        return (NoiseLaw(np.array(reach, dtype=np.float64) / -math.log(beta)),)

    def _find_reach(self, count: int, beta: float) -> int:
        low, high = interval(self.mechanism, count, beta)
        return max(count - low, high - count)

    def estimate_sum(
        self, mechanism: Mechanism, steps: int | Fraction, tally: Tally, margin: Fraction, beta: float
    ) -> NoisySum:
        """Return a count of units that is shown because it is large enough."""
        return NoisySum(Fraction(int(steps)), Fraction(self._find_reach(int(steps), beta)))

    def estimate_number(
        self, mechanism: Mechanism, steps: int | Fraction, tally: Tally, margin: Fraction, beta: float
    ) -> NoisyNumber:
        """Return it with the interval of its law among counts that are shown."""
        return NoisyNumber(int(steps), *interval(self.mechanism, int(steps), beta))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(QueryMeasurement):
    """The measurement that selects keys."""

    mechanism: KeySelection
    take: KeyCounts

    @classmethod
    def of_keys(cls, counts: KeyCounts) -> "Selection":
        """Select keys by the numbers of their units."""
        return cls(mechanism=counts.mechanism, sensitivity=counts.sensitivity, take=counts)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The tallies whose noisy numbers are the very ones that have passed."""
        return self.take.told

    @property
    def weight_bits(self) -> int | None:
        """In what steps units are weighed; None where they are counted."""
        return self.take.weight_bits


def counts_units(tally: Tally) -> bool:
    """Return whether a tally is the number of units that have a row in the group, whatever their rows hold."""
    if tally.argument is not None:
        return False
    return tally.measure is Measure.UNITS or (tally.measure is Measure.ROWS and tally.bounds == (0, 1))


def reuse_tallies(groups: Sequence[Group], tallies: Sequence[Tally]) -> tuple[Tally, ...]:
    """Return the tallies that the selection's own numbers answer: none where public keys split those."""
    if not all(group.private for group in groups):
        return ()
    return tuple(tally for tally in tallies if counts_units(tally))


Parts = tuple[KeySelection, tuple[Mechanism, ...]]


def selection_ways(
    *,
    delta: Fraction,
    keys_per_unit: int,
    counts: bool,
    others: int,
    pure: Callable[[Fraction], tuple[Mechanism, ...]],
    zcdp: Callable[[Fraction], tuple[Mechanism, ...]],
) -> tuple[Way[Parts], ...]:
    """Return the ways to select keys and measure so many other things, each with an equal share of (ε, δ).

    ``pure`` makes the others for all of an ε together, ``zcdp`` for a ρ each.
    """
    if delta == 0:
        raise MissingKeys("Keys that nobody listed are shown with a chance of failure. Ask with delta above 0.")

    def by_pure(kind: type[KeySelection]) -> Callable[[Fraction], Parts]:
        def make(epsilon: Fraction) -> Parts:
            share = whole_units_rounded_down(epsilon / (others + 1))
            fitting = [one for one in _pure(share, delta, keys_per_unit, counts) if isinstance(one, kind)]
            if not fitting:
                raise NotAllowed("This selection of keys is not looked at for so little.")
            return fitting[0], pure(epsilon - share) if others else ()

        return make

    def by_zcdp(epsilon: Fraction) -> Parts:
        if not others:
            return _zcdp(epsilon, delta, keys_per_unit, counts, None)[0], ()
        each = rho_rounded_down(epsilon, delta / 2) / (others + 1)
        return _zcdp(epsilon, delta, keys_per_unit, counts, each)[0], zcdp(each)

    kinds: tuple[tuple[str, type[KeySelection]], ...] = (
        ("pure: optimal", OptimalKeys),
        ("pure: truncated", TruncatedThreshold),
        ("pure: laplace", LaplaceThreshold),
    )
    made = [(name, by_pure(kind)) for name, kind in kinds] + [("gaussian", by_zcdp)]
    return tuple(
        Way(
            name=name,
            make=make,
            events=lambda parts: [one.event for one in (parts[0], *parts[1])],
            size=lambda parts: (_error(parts),),
        )
        for name, make in made
    )


def choose_selection_as_before(ways: Sequence[Way[Parts]], terms: Filter, *, epsilon: Fraction) -> Chosen[Parts]:
    """Choose as the first version did, which stored no choice: what the account's ρ could ever pay for comes first."""
    made = []
    for way in ways:
        with suppress(AccountingError, NotAllowed):
            made.append(way.make(epsilon))
    best = min(made, key=lambda parts: (not is_payable((parts[0], *parts[1]), terms), _error(parts)))
    return Chosen(name="before", epsilon=epsilon, made=best)


@lru_cache(maxsize=256)
def _pure(epsilon: Fraction, delta: Fraction, keys_per_unit: int, counts: bool) -> tuple[KeySelection, ...]:
    optimal = not counts and epsilon / keys_per_unit >= _LEAST_OPTIMAL
    kinds: tuple[type[KeySelection], ...] = (OptimalKeys,) if optimal else (TruncatedThreshold, LaplaceThreshold)
    return tuple(kind(epsilon=epsilon, delta=delta, keys_per_unit=keys_per_unit) for kind in kinds)


@lru_cache(maxsize=256)
def _zcdp(
    epsilon: Fraction, delta: Fraction, keys_per_unit: int, counts: bool, rho: Fraction | None
) -> tuple[KeySelection, ...]:
    if counts or keys_per_unit > _MOST_WEIGHTED:
        return (GaussianThreshold(epsilon=epsilon, delta=delta, keys_per_unit=keys_per_unit, rho=rho),)
    return (WeightedGaussianThreshold(epsilon=epsilon, delta=delta, keys_per_unit=keys_per_unit, rho=rho),)


def _error(parts: Parts) -> float:
    """Multiply the units that a key needs by the deviations of the other numbers."""
    deviations = [deviation(one) for one in parts[1]]
    return math.log(parts[0].half_point()) + sum(math.log(one) for one in deviations)


# What is shown


def restrict(counted: ExactCounts, groups: Sequence[Group], shown: Iterable[Cell], *, most: int) -> ExactCounts:
    """Return the numbers of every cell of the combinations that have passed, with zeros where no unit is.

    Cells come in the order of their keys: private ones by value, public ones as they were listed. There are at most
    so many; of more, the combinations that come first, which depends on what was shown alone.
    """
    cells = cells_of(groups, shown, most=most)
    place = {cell: index for index, cell in enumerate(counted.cells)}
    found = [place.get(cell) for cell in cells]
    nothing = (0,) * (len(counted.tallies[0]) if counted.tallies else 0)
    return ExactCounts(
        cells=cells,
        tallies=[nothing if at is None else counted.tallies[at] for at in found],
        histograms=tuple(tuple(EMPTY if at is None else one[at] for at in found) for one in counted.histograms),
    )


def cells_of(groups: Sequence[Group], shown: Iterable[Cell], *, most: int) -> tuple[Cell, ...]:
    """List every combination of private keys that has passed, with every combination of public values."""
    cells: list[Cell] = []
    for held in first_keys(groups, shown, most=most):
        own = iter(held)
        lists: list[Sequence[Value]] = [(next(own),) if group.private else group.values for group in groups]
        cells += itertools.product(*lists)
    places = [{} if group.private else {value: at for at, value in enumerate(group.values)} for group in groups]
    return tuple(sorted(cells, key=lambda cell: _ranks(cell, places)))


def first_keys(groups: Sequence[Group], shown: Iterable[Cell], *, most: int) -> list[Cell]:
    """List combinations of private keys in their order: as many as have room in so many cells."""
    public = math.prod(len(group.values) for group in groups if not group.private)
    return sorted(shown, key=_ranks)[: max(1, most // max(1, public))]


def _ranks(cell: Cell, places: Sequence[Mapping[Value, int]] | None = None) -> list[tuple[bool, Value]]:
    listed = places or [{} for _ in cell]
    return [(False, at[value]) if at else (value is None, value) for value, at in zip(cell, listed, strict=True)]


def private_part(groups: Sequence[Group], cell: Cell) -> Cell:
    """Return the private keys of a cell."""
    return tuple(value for group, value in zip(groups, cell, strict=True) if group.private)


# Intervals of the numbers that have passed


@lru_cache(maxsize=65536)
def interval(mechanism: KeySelection, noisy: int, beta: float) -> tuple[int, int]:
    """Bound the number of units whose noisy count has passed, except with probability ``beta``.

    The law is the noise's among draws that pass: a small count that is shown is one that the noise has made larger. So
    the lower end is further away than the upper one, down to 1 near the threshold. Both tests are monotone in the
    number of units, since the noise is log-concave.
    """
    threshold = mechanism.threshold

    def above(units: int) -> float:
        """P(at least this noisy | shown)."""
        shown = mechanism.noise_tail(threshold - units)
        return mechanism.noise_tail(noisy - units) / shown if shown > 0 else 0.0

    def below(units: int) -> float:
        """P(at most this noisy | shown)."""
        shown = mechanism.noise_tail(threshold - units)
        return 1 - mechanism.noise_tail(noisy + 1 - units) / shown if shown > 0 else 0.0

    reach = spread(mechanism, beta) + 1
    low, high = max(1, noisy - 8 * reach), max(1, noisy)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if above(middle) > beta / 2 else (middle + 1, high)
    least, most = low, max(low, noisy + 8 * reach)
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if below(middle) > beta / 2 else (least, middle - 1)
    return low, least


@lru_cache(maxsize=1024)
def spread(mechanism: KeySelection, beta: float) -> int:
    """Bound how far the noise goes, either way, except with probability ``beta``."""
    low, high = -1, 1
    while 2 * mechanism.noise_tail(high + 1) > beta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if 2 * mechanism.noise_tail(middle + 1) <= beta else (middle, high)
    return high
