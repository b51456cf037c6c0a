"""Do draws fit the stated law? A χ² test whose false-alarm rate is what it says.

Nearly every mechanism is honest, and its draws are the dearest part of its audit. So an audit looks at some of them
first, goes on to all of them where these look odd at all (a p-value up to `SUSPICION`), and gives its verdict by all.

    Claim: an honest mechanism is accused no more often than by all draws at once.
    Proof: it is accused only where the test of all its draws rejects; whether they are drawn is decided before.
    Claim: a wrong law is missed more often than by all draws at once by no more than the chance that the first look
        finds nothing odd in it, which is computed here and not guessed.

For answers drawn singly, the first look is the least of a few sizes at which that chance, against the twin (the law
that loses 1.25 times the claim, which is what an audit is to see), is at most a thousandth or a quarter of what all
draws miss themselves. Where no smaller size will do, all are drawn. For answers drawn together it is a quarter of all:
of a million draws from a law whose scale is 2% off, which is what all of them are to see, a quarter looks odd but for
one time in ten thousand (the tests compute it).

The statistic is the likelihood-ratio χ², 2·Σ O·ln(O/E), with Williams' correction, on cells pooled until each expects
at least 10 draws. Pearson's Σ(O−E)²/E would be the familiar choice, but so far out it is not calibrated: with cells
that expect 10, an exact convolution of the cells' Poisson laws gives a true rate of 9e-6 at a nominal 1e-6 (rare cells
have heavier tails than normal ones). The corrected likelihood ratio gives between 1.0e-6 and 1.32e-6 for 4 to 500
cells, so tests run at two thirds of the rate they promise.

Outputs the law calls impossible, and outputs beyond the list, are tested apart, by exact binomial tails.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.exact import Laws

if TYPE_CHECKING:
    from hubbub.mechanisms.specimens.specimen import Specimen

SUSPICION = 0.05
FEW = 10_000
"""Answers drawn singly, on each input."""
_SIZES = (1_000, 1_500, 2_000, 3_000, 5_000, 7_000)
_MISSED, _SHARE = 1e-3, 0.25
_PART = 4


def many(specimen: "Specimen") -> int:
    """Answers drawn together, on each input."""
    return 1_000_000 if specimen.large else 100_000


def first_looks(specimen: "Specimen", *, honest: Laws, twin: Laws, level: float) -> tuple[int, int]:
    """Return the number of answers, drawn together and drawn singly, of the first look; ``level``
    is that of the verdict.
    """
    singly = next((size for size in _SIZES if _enough(size, honest, twin, level)), FEW)
    return many(specimen) // _PART, singly


def miss_probability(honest: Laws, other: Laws, *, draws: int, level: float) -> float:
    """Return the probability that this many draws of the other law on each input pass for the honest one."""
    pairs = (honest.first, other.first), (honest.second, other.second)
    return min(1 - power(np.exp(one), np.exp(two), draws=draws, false_alarm=level) for one, two in pairs)


def _enough(size: int, honest: Laws, twin: Laws, level: float) -> bool:
    at_most = max(_MISSED, _SHARE * miss_probability(honest, twin, draws=FEW, level=level))
    return miss_probability(honest, twin, draws=size, level=SUSPICION) <= at_most


Floats = NDArray[np.float64]

LEAST_EXPECTED = 10.0
COARSE_CELLS = 64
_CALIBRATION = 1.5
_MASS_ERROR = 1e-9
"""How far the sum of the stated masses may be from what it is, by rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The fit of draws to a law."""

    p_value: float
    """At most the true probability of a fit as bad as this, over all tests made here together."""

    draws: int
    cells: int

    def rejects(self, *, false_alarm: float) -> bool:
        """Return True if a law-abiding sampler would do this with probability at most ``false_alarm``."""
        return self.p_value <= false_alarm


def tally(draws: Any, outputs: Sequence[Hashable], cell: Callable[[Any], Hashable]) -> NDArray[np.int64]:
    """Count each output; one more entry, the last, counts everything that is not on the list."""
    places = {output: place for place, output in enumerate(outputs)}
    counts = np.zeros(len(outputs) + 1, dtype=np.int64)
    if isinstance(draws, np.ndarray) and draws.ndim == 1 and draws.dtype.kind in "biuf":
        values, times = np.unique(draws, return_counts=True)
        for value, count in zip(values.tolist(), times.tolist(), strict=True):
            counts[places.get(cell(value), len(outputs))] += count
    else:
        for key, count in Counter(_hashable(cell(draw)) for draw in draws).items():
            counts[places.get(key, len(outputs))] += count
    return counts


def fit(observed: NDArray[np.int64], masses: Floats) -> Fit:
    """Compare counts (the last one: everything not on the list) with the stated masses of the listed outputs."""
    draws = int(observed.sum())
    beyond = max(0.0, 1.0 - math.fsum(masses))
    expected = draws * np.append(masses, beyond)
    impossible = masses <= 0
    p_values = [0.0 if observed[:-1][impossible].any() else 1.0]
    p_values.append(_binomial_tail(int(observed[-1]), draws, min(1.0, beyond + _MASS_ERROR)))
    groups = [_fine(expected)]
    if groups[0].max() >= COARSE_CELLS:
        groups.append(_coarse(expected))
    p_values += [_CALIBRATION * _likelihood_ratio(observed, expected, group) for group in groups]
    tests = len(p_values) - 1  # what is impossible under the law costs no false alarms
    return Fit(p_value=min(1.0, tests * min(p_values)), draws=draws, cells=int(groups[0].max()) + 1)


def power(masses: Floats, true: Floats, *, draws: int, false_alarm: float) -> float:
    """The probability, to first order, that `fit` rejects ``masses`` when the draws really follow ``true``."""
    from scipy import special  # late: it takes longer to load than all of ours

    expected = draws * np.append(masses, max(0.0, 1.0 - math.fsum(masses)))
    really = draws * np.append(true, max(0.0, 1.0 - math.fsum(true)))
    groups = [_fine(expected)]
    if groups[0].max() >= COARSE_CELLS:
        groups.append(_coarse(expected))
    tests = 1 + len(groups)
    powers = []
    for group in groups:
        freedom = int(group.max())
        if freedom:
            is_, ought = np.bincount(group, really), np.bincount(group, expected)
            distance = 2 * float(np.sum(is_ * np.log(np.maximum(is_, 1e-300) / ought)))
            threshold = special.chdtri(freedom, false_alarm / (tests * _CALIBRATION))
            powers.append(float(1 - special.chndtr(threshold, freedom, max(distance, 0.0))))
    return max(powers, default=0.0)


def _binomial_tail(least: int, draws: int, probability: float) -> float:
    """Return the probability of at least so many successes; ``scipy.stats`` takes longer to load than a whole audit."""
    from scipy import special

    return 1.0 if least == 0 else float(special.betainc(least, draws - least + 1, probability))


def _likelihood_ratio(observed: NDArray[np.int64], expected: Floats, group: NDArray[np.int64]) -> float:
    """The p-value of the corrected likelihood-ratio χ² over groups of cells."""
    from scipy import special

    freedom = int(group.max())
    if freedom == 0:
        return 1.0
    seen, ought = np.bincount(group, observed), np.bincount(group, expected)
    total = float(ought.sum())
    statistic = 2 * float(np.sum(seen * np.log(np.maximum(seen, 1) / ought)))
    correction = 1 + (float(np.sum(total / ought)) - 1) / (6 * total * freedom)
    return float(special.chdtrc(freedom, max(statistic, 0.0) / correction))


def _fine(expected: Floats) -> NDArray[np.int64]:
    """Every cell that expects enough by itself; the rest together (with the smallest of the others, if need be)."""
    alone = expected >= LEAST_EXPECTED
    rest = float(expected[~alone].sum())
    if alone.any() and (~alone).any() and rest < LEAST_EXPECTED:
        alone[np.flatnonzero(alone)[np.argmin(expected[alone])]] = False
    group = np.zeros(len(expected), dtype=np.int64)
    group[alone] = np.arange(int(alone.sum())) + (0 if alone.all() else 1)
    return group


def _coarse(expected: Floats) -> NDArray[np.int64]:
    """Neighbours on the list together, in runs of about equal expectation: sees a wrong scale that fine cells hide."""
    enough = max(LEAST_EXPECTED, float(expected.sum()) / COARSE_CELLS)
    group = np.zeros(len(expected), dtype=np.int64)
    run, gathered = 0, 0.0
    for place, share in enumerate(expected):
        if gathered >= enough:
            run, gathered = run + 1, 0.0
        group[place] = run
        gathered += share
    if gathered < LEAST_EXPECTED and run:
        group[group == run] = run - 1
    return group


def _hashable(value: Any) -> Hashable:
    """A vector as the tuple that stands for it among the outputs."""
    found: Hashable = tuple(value.tolist()) if isinstance(value, np.ndarray) else value
    return found
