"""Real-valued noise, rounded to the nearest whole number, where the scale is itself a secret.

Rounding real noise is post-processing, so a proof about densities holds for whole numbers as it stands, with no sum
over the grid to be compared, if the whole number has exactly the law of the rounded real one. It has here: no real
number is ever formed; digits of uniform reals are drawn until the rounded value is certain. The scale, which comes from
the data, is not told to the source, and results are cut at a public ``reach``.

Privacy:
    Claim: every function here draws from exactly the law its docstring names.
    Proof: Student's law is b/a for a point (a, b) uniform below the curve a = √density(b/a), which for t with d degrees
        is (a² + b²/d)^(d+1) <= a^(2d-2), a condition on rationals. A cell of known digits that lies wholly inside (or
        outside) settles acceptance, and one on which b/a rounds alike settles the value; others are refined. Floats
        decide only what they cannot get wrong. A rounded exponential of scale s is 0 with probability 1 - exp(-1/2s),
        else 1 plus a geometric number.
    Needs: uniform, independent, secret bits from ``entropy``; ``discrete`` for the geometric law.
    Ref: Kinderman, Monahan 1977 for ratios of uniforms; Canonne, Kamath, Steinke 2020 for the geometric law.
"""

from fractions import Fraction
from typing import Any, overload

import numpy as np

from hubbub.noise import entropy
from hubbub.noise.bernoulli import below, flip, flips
from hubbub.noise.digits import geometric_sampler
from hubbub.noise.entropy import Integers, Source, words
from hubbub.noise.exact import MORE_BITS, WORD, exp_minus
from hubbub.parameters import positive, size_of_draw, whole

_SLACK = 2.0**-30
"""Floats decide at this relative distance from a boundary; their error is under 2^-40 where they are asked."""
_SMALL = np.uint64(1 << 24)
"""Below this the first 64 digits are too few for a float to be that good."""
_SURE = 2.0**42
MOST_REACH = 1 << 62


@overload
def rounded_student(*, scale: Fraction, degrees: int, reach: int, size: None = None) -> int: ...
@overload
def rounded_student(*, scale: Fraction, degrees: int, reach: int, size: int) -> Integers: ...
def rounded_student(*, scale: Fraction, degrees: int, reach: int, size: int | None = None) -> int | Integers:
    """``scale`` · T, rounded to the nearest integer and cut at ± ``reach``; T is Student's t with whole ``degrees``."""
    scale, degrees = positive("scale", scale), whole("degrees", degrees, least=1, most=64)
    reach, size = whole("reach", reach, least=1, most=MOST_REACH), size_of_draw(size)
    source = entropy.begin("rounded-student", degrees=degrees, reach=reach, size=size)
    out = np.zeros(1 if size is None else size, dtype=np.int64)
    pending = np.arange(len(out))
    while len(pending):
        magnitude, kept = _ratios(source, len(pending), scale, degrees, reach)
        out[pending[kept]] = magnitude[kept]
        pending = pending[~kept]
    _give_signs(source, out)
    return int(out[0]) if size is None else out


@overload
def rounded_laplace(*, scale: Fraction, reach: int, size: None = None) -> int: ...
@overload
def rounded_laplace(*, scale: Fraction, reach: int, size: int) -> Integers: ...
def rounded_laplace(*, scale: Fraction, reach: int, size: int | None = None) -> int | Integers:
    """Laplace noise of ``scale``, rounded to the nearest integer and cut at ± ``reach``."""
    scale = positive("scale", scale)
    reach, size = whole("reach", reach, least=1, most=MOST_REACH), size_of_draw(size)
    source = entropy.begin("rounded-laplace", reach=reach, size=size)
    if size is None:
        magnitude = 1 + _geometric(source, scale) if flip(source, exp_minus(1 / (2 * scale))) else 0
        return min(magnitude, reach) * (1 - 2 * entropy.bits(source, 1))
    out = flips(source, exp_minus(1 / (2 * scale)), size).astype(np.int64)
    excess = geometric_sampler(1 / scale)
    for index in np.flatnonzero(out):
        out[index] = min(1 + excess.one(source), reach)
    _give_signs(source, out)
    return out


def _geometric(source: Source, scale: Fraction) -> int:
    """P(k) proportional to exp(-k/scale), without a table: a scale from the data comes once, and is not kept.

    With scale = n/d, u below n is kept with probability exp(-u/n); u + n·v, v geometric of scale 1, then has ratio
    exp(-1/n), and whole d-ths of it exp(-d/n).
    """
    n, d = scale.numerator, scale.denominator
    while True:
        u = below(source, n)
        if flip(source, exp_minus(Fraction(u, n))):
            return (u + n * geometric_sampler(Fraction(1)).one(source)) // d


def _ratios(
    source: Source, size: int, scale: Fraction, degrees: int, reach: int
) -> tuple[Integers, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Draw the magnitudes of a number of proposals, and mark those that are accepted."""
    across, along = words(source, size), words(source, size)
    a, b = across * 2.0**-WORD, along * 2.0**-WORD
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = (degrees + 1) * np.log(a * a + b * b / degrees) - (2 * degrees - 2) * np.log(a)
        value = float(scale) * b / a + 0.5
        whole_part = np.floor(value)
        kept = gap < 0
        near = np.abs(value - np.rint(value)) <= _SLACK * value
    unsure = (across < _SMALL) | ~(np.abs(gap) > _SLACK) | (kept & (near | ~(value < _SURE)))
    magnitude = np.minimum(np.where(unsure, 0, np.minimum(whole_part, _SURE)), reach).astype(np.int64)
    for index in np.flatnonzero(unsure):
        settled = _settle(source, int(across[index]), int(along[index]), scale=scale, degrees=degrees, reach=reach)
        kept[index] = settled is not None
        magnitude[index] = settled or 0
    return magnitude, kept


def _settle(source: Source, a: int, b: int, *, scale: Fraction, degrees: int, reach: int) -> int | None:
    """The rounded ratio of the point whose first 64 digits are ``a`` and ``b``, or None if it lies above the curve."""
    bits, accepted = WORD, False
    while True:
        inside, outside = _below_curve(a, b, bits, degrees)
        if outside:
            return None
        accepted = accepted or inside
        if accepted:
            low = min(_round_half_up(scale * Fraction(b, a + 1)), reach)
            high = min(_round_half_up(scale * Fraction(b + 1, a)), reach) if a else reach
            if low == high:
                return low
        a = a << MORE_BITS | entropy.bits(source, MORE_BITS)
        b = b << MORE_BITS | entropy.bits(source, MORE_BITS)
        bits += MORE_BITS


def _below_curve(a: int, b: int, bits: int, degrees: int) -> tuple[bool, bool]:
    """Decide if the cell a … a + 1 by b … b + 1, in units of 2^-bits, is wholly below the curve, or wholly above it."""
    # (a² + b²/d)^(d+1) <= a^(2d-2), times d^(d+1) and a power of two
    shift = 4 * bits
    factor = degrees ** (degrees + 1)
    most = (degrees * (a + 1) ** 2 + (b + 1) ** 2) ** (degrees + 1)
    least = (degrees * a * a + b * b) ** (degrees + 1)
    inside = most <= factor * a ** (2 * degrees - 2) << shift
    outside = least > factor * (a + 1) ** (2 * degrees - 2) << shift
    return inside, outside


def _round_half_up(value: Fraction) -> int:
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def _give_signs(source: Source, out: Integers) -> None:
    """A fair sign for each magnitude; of 0 there is one kind only, since the real number behind it may be either."""
    negative = np.unpackbits(np.frombuffer(words(source, -(-len(out) // WORD)), dtype=np.uint8))[: len(out)]
    np.negative(out, out=out, where=negative.astype(np.bool_))
