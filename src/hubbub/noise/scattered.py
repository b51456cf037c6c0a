"""Noise on very many zeros, of which only the few that matter are ever drawn.

A vector of 2^63 cells that are empty but for some gets independent noise in every cell. Those empty cells whose noise
passes a test are binomially many, lie anywhere among the empty ones with equal probability, and have independent noise
of the law given that it passes. So they can be drawn without drawing the others: from the strictest test downwards,
each round among the cells that no earlier round has shown.

Privacy:
    Claim: what each function yields has exactly the joint law that noise drawn for every empty cell would give.
    Proof: cells are independent and alike, so those that pass are a uniform subset of binomial size, whose noise is
        independent given the subset. Given what earlier rounds showed, the other cells are again independent and alike,
        each with the law given that it passed no earlier test; the argument repeats. Tests: Z >= T, of probability
        q^T/(1+q), above which Z - T is geometric, and modulo m geometric given that it is below m. Or: |Z| >= θ and
        U·τ <= |Z|·M for a uniform U of 1 … M, where τ divides M: that is, the first ⌈U·τ/M⌉ = j is at most |Z| and
        τ. For each j the mass is 2q^max(j, θ)/(1+q)τ: j is flat up to θ and geometric beyond, then |Z| is max(j, θ)
        plus a geometric number, and U uniform in the j-th of τ equal parts.
    Needs: ``counting`` draws binomials of probabilities that are known by their digits; ``discrete`` and ``bernoulli``.
    Ref: Cormode, Procopiuc, Srivastava, Tran 2012; Duffield, Lund, Thorup 2007 for priorities.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import CapacityError
from hubbub.noise import counting, entropy
from hubbub.noise.bernoulli import below_many, flips
from hubbub.noise.digits import geometric_sampler
from hubbub.noise.discrete import _laplace, check_scale
from hubbub.noise.entropy import Integers, Source, words
from hubbub.noise.exact import WORD, Exact, exactly, exp_minus
from hubbub.noise.laws import laplace_tail_exactly

MOST_SIZE = 1 << 63
MOST_SHOWN = 1 << 27
"""No more empty cells than this are shown at once: beyond it there is no sparse answer."""


def above(*, size: int, taken: Integers, scale: Fraction, levels: Sequence[int]) -> Iterator[tuple[Integers, Integers]]:
    """Empty cells with noise at or above each level in turn, and below the one before: places in order, and noise.

    Levels fall, from 1 at least; a last level of 0 stands for all cells that are left. ``taken`` are the places of the
    other cells, in order; how many there are comes from the data and so is not told to the source.
    """
    scale = check_scale("scale", scale)
    source = entropy.begin("scattered", size=size, scale=scale)
    sampler, seen, last = geometric_sampler(1 / scale), taken, None
    for level in levels:
        left = size - len(seen)
        if level < 1:
            places = subset_of_rest(source, size, seen, _check_count(left))
            yield places, _below(source, scale, len(places), last)
            return
        chance = laplace_tail_exactly(level, scale)
        before = None if last is None else laplace_tail_exactly(last, scale)
        count = counting._binomial(source, left, _conditional(chance, before))
        places = subset_of_rest(source, size, seen, _check_count(count))
        excess = sampler.many(source, len(places))
        yield places, level + (excess if last is None else excess % (last - level))
        seen, last = merge(seen, places), level


def sample_empty(
    *, size: int, taken: Integers, scale: Fraction, least: int, digits: int, levels: Sequence[int]
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Empty cells with |noise| >= least whose draw U of 1 … 2^digits has U·level <= |noise|·2^digits, at each level in
    turn and at none before: places in order, noise, draws.

    Levels are powers of two up to 2^digits, and fall.
    """
    scale = check_scale("scale", scale)
    source = entropy.begin("scattered-sample", size=size, scale=scale, least=least)
    seen, last = taken, 0
    for level in levels:
        chance = keeping(scale, least, level)
        before = keeping(scale, least, last) if last else None
        count = _check_count(counting._binomial(source, size - len(seen), _conditional(chance, before)))
        places = subset_of_rest(source, size, seen, count)
        law: dict[str, Any] = {"scale": scale, "least": least, "level": level, "digits": digits}
        magnitude, draws = _draw_kept(source, count, **law)
        if last:
            pending = np.flatnonzero(passes(magnitude, draws, last, digits))
            while len(pending):
                magnitude[pending], draws[pending] = _draw_kept(source, len(pending), **law)
                pending = pending[passes(magnitude[pending], draws[pending], last, digits)]
        negative = words(source, count) >> np.uint64(WORD - 1) == 1
        yield places, np.where(negative, -magnitude, magnitude), draws
        seen, last = merge(seen, places), level


def uniform_draws(*, count: int, digits: int) -> Integers:
    """Draw uniform whole numbers of 1 … 2^digits, for cells whose number the source is not given."""
    return _uniform(entropy.begin("scattered-draws", digits=digits), count, digits)


def passes(magnitude: Integers, draws: Integers, level: int, digits: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Test U·level <= |noise|·2^digits, without leaving 64 bits."""
    part = (1 << digits) // level
    found: np.ndarray[Any, np.dtype[np.bool_]] = (magnitude >= level) | (draws <= np.minimum(magnitude, level) * part)
    return found


def keeping(scale: Fraction, least: int, level: int) -> Exact:
    """P(|Z| >= least and U·level <= |Z|·M) of one empty cell: Σ over j = 1 … level of 2q^max(j, least)/(1+q)level."""
    flat, rising = _parts(scale, least, level)
    total = flat if rising is None else flat + rising
    return exactly(Fraction(2, level)) * total / (exactly(1) + exp_minus(1 / scale))


def subset_of_rest(source: Source, size: int, taken: Integers, count: int) -> Integers:
    """A uniform subset of the places that are not taken, in order.

    The r-th free place is r plus the number of taken places before it, which are those with at most r free ones before.
    """
    ranks = _subset(source, size - len(taken), count)
    before = taken - np.arange(len(taken), dtype=np.int64)
    places: Integers = ranks + np.searchsorted(before, ranks, side="right")
    return places


def merge(first: Integers, second: Integers) -> Integers:
    """Two sorted arrays as one; stable sorting of two runs takes linear time."""
    return np.sort(np.concatenate([first, second]), kind="stable")


def _subset(source: Source, population: int, count: int) -> Integers:
    """Return the first ``count`` different values of a sequence of uniform ones, sorted: all such
    sets are equally likely.
    """
    if 2 * count > population:
        inside = np.ones(population, dtype=np.bool_)
        inside[_subset(source, population, population - count)] = False
        return np.flatnonzero(inside)
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        fresh = below_many(source, population, (count - len(found)) + (count - len(found)) // 8 + 16)
        both = np.concatenate([found, fresh])
        _, first = np.unique(both, return_index=True)
        found = both[np.sort(first)[:count]]
    return np.sort(found)


def _parts(scale: Fraction, least: int, level: int) -> tuple[Exact, Exact | None]:
    """The weights of j at most ``least``, and of those beyond it up to ``level``."""
    flat = exactly(min(least, level)) * exp_minus(least / scale)
    if level <= least:
        return flat, None
    ratio = exp_minus(1 / scale)
    return flat, exp_minus((least + 1) / scale) * exp_minus((level - least) / scale).complement() / ratio.complement()


def _draw_kept(
    source: Source, count: int, *, scale: Fraction, least: int, level: int, digits: int
) -> tuple[Integers, Integers]:
    """Magnitudes and draws of empty cells that are kept at this level."""
    sampler = geometric_sampler(1 / scale)
    flat, rising = _parts(scale, least, level)
    part = below_many(source, min(least, level), count)
    if rising is not None:
        beyond = np.flatnonzero(flips(source, rising / (flat + rising), count))
        part[beyond] = least + sampler.many(source, len(beyond)) % (level - least)
    magnitude = np.maximum(part + 1, least) + sampler.many(source, count)
    width = digits - (level.bit_length() - 1)
    return magnitude, (part << width) + _uniform(source, count, width)


def _uniform(source: Source, count: int, width: int) -> Integers:
    """Draw uniform whole numbers of 1 … 2^width."""
    return entropy.digits(source, count, width) + 1


def _below(source: Source, scale: Fraction, count: int, bound: int | None) -> Integers:
    """Noise given that it is below a bound of at least 1: more than every other sample is."""
    law = _laplace(scale)
    out = law.many(source, count)
    if bound is None:
        return out
    pending = np.flatnonzero(out >= bound)
    while len(pending):
        out[pending] = law.many(source, len(pending))
        pending = pending[out[pending] >= bound]
    return out


def _conditional(chance: Exact, before: Exact | None) -> Exact:
    """P(this test | not the one before, which is stricter): (p - p₀) / (1 - p₀)."""
    if before is None:
        return chance

    def bounds(bits: int) -> tuple[int, int]:
        wide = bits + 8
        (low, high), (least, most) = chance.bounds(wide), before.bounds(wide)
        return max(0, low - most) >> 8, -(-(high - least) >> 8)

    return Exact(bounds) / before.complement()


def _check_count(count: int) -> int:
    if count > MOST_SHOWN:
        raise CapacityError("More empty cells pass than a sparse answer can hold. Use a stricter filter or less noise.")
    return count


def first_reached(*, size: int, taken: Integers, scale: Fraction, level: int, wanted: int) -> tuple[Integers, Integers]:
    """The first empty cells, no more than ``wanted``, whose one-sided noise is at least ``level``: places and noise."""
    scale = check_scale("scale", scale)
    source = entropy.begin("scattered-first", size=size, scale=scale, wanted=wanted)
    left = size - len(taken)
    passing = left if level <= 0 else counting._binomial(source, left, exp_minus(level / scale))
    ranks = _lowest(source, left, passing, min(wanted, passing))
    before = taken - np.arange(len(taken), dtype=np.int64)
    places: Integers = ranks + np.searchsorted(before, ranks, side="right")
    return places, max(level, 0) + geometric_sampler(1 / scale).many(source, len(places))


def _lowest(source: Source, population: int, count: int, wanted: int) -> Integers:
    """The least ``wanted`` members of a uniform subset: how many of it lie in the first half is hypergeometric."""
    if count == population:
        return np.arange(wanted, dtype=np.int64)
    if count <= 4 * wanted + 64:
        return _subset(source, population, count)[:wanted]
    half = population // 2
    inside = counting._hypergeometric(population, half, count).one(source)
    low = _lowest(source, half, inside, min(wanted, inside))
    if len(low) == wanted:
        return low
    rest = _lowest(source, population - half, count - inside, wanted - len(low))
    return np.concatenate([low, half + rest])


def one_sided(*, scale: Fraction, count: int) -> Integers:
    """Draw ``geometric`` for cells whose number comes from the data, so that the source is not given it."""
    scale = check_scale("scale", scale)
    return geometric_sampler(1 / scale).many(entropy.begin("scattered-one-sided", scale=scale), count)
