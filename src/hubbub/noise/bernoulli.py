"""Coins with exactly the probability asked for, rational or not, and uniform integers."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, overload

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise import entropy
from hubbub.noise.entropy import Source, words
from hubbub.noise.exact import WORD, Exact, Uniform, exactly, exp_minus, fresh_uniform
from hubbub.parameters import Real, between, non_negative, size_of_draw, whole

Booleans = np.ndarray[Any, np.dtype[np.bool_]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

FLOAT_SLACK = 2.0**-40
"""How far a float probability may be from the truth (really under 2^-44). Inside the slack exact digits decide."""


@overload
def bernoulli(p: Real | Exact, *, size: None = None) -> bool: ...
@overload
def bernoulli(p: Real | Exact, *, size: int) -> Booleans: ...
def bernoulli(p: Real | Exact, *, size: int | None = None) -> bool | Booleans:
    """True with probability exactly ``p``: a rational in [0, 1], or an Exact number known only by its digits."""
    size = size_of_draw(size)
    number = as_probability("p", p)
    source = entropy.begin("bernoulli", size=size)
    return flip(source, number) if size is None else flips(source, number, size)


def bernoulli_for_each(chances: Sequence[Exact]) -> list[bool]:
    """Draw a coin for each of these probabilities; their number comes from the data, so the source is not given it."""
    source = entropy.begin("bernoulli-for-each")
    return [flip(source, chance) for chance in chances]


@overload
def bernoulli_exp(x: Real, *, size: None = None) -> bool: ...
@overload
def bernoulli_exp(x: Real, *, size: int) -> Booleans: ...
def bernoulli_exp(x: Real, *, size: int | None = None) -> bool | Booleans:
    """True with probability exactly exp(-x), for a rational x at or above zero."""
    return bernoulli(exp_minus(non_negative("x", x)), size=size)


@overload
def uniform_below(n: int, *, size: None = None) -> int: ...
@overload
def uniform_below(n: int, *, size: int) -> np.ndarray[Any, Any]: ...
def uniform_below(n: int, *, size: int | None = None) -> int | np.ndarray[Any, Any]:
    """A uniform integer in [0, n). Arrays are int64 for n up to 2^63 and hold Python ints beyond."""
    n = whole("n", n, least=1)
    size = size_of_draw(size)
    source = entropy.begin("uniform", n=n, size=size)
    return below(source, n) if size is None else below_many(source, n, size)


def uniform_within(width: int) -> int:
    """Draw a uniform integer in [0, width), where the width comes from the data, so the source is not given it."""
    width = whole("width", width, least=1)
    return below(entropy.begin("uniform-within"), width)


def uniform_digits(count: int, width: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Draw uniform integers of ``width`` bits; their number comes from the data, so the source is not given it."""
    count, width = whole("count", count), whole("width", width, least=1, most=WORD - 1)
    source = entropy.begin("uniform-digits", width=width)
    return entropy.digits(source, count, width)


def flip(source: Source, number: Exact) -> bool:
    """One coin."""
    return fresh_uniform(source).below(number)


def flips(source: Source, number: Exact, size: int) -> Booleans:
    """Independent coins of the same probability."""
    low, high = number.bounds(WORD)
    drawn = words(source, size)
    heads: Booleans = np.ones(size, dtype=np.bool_) if low > _TOP else drawn < np.uint64(low)
    maybe = np.flatnonzero(~heads & (drawn < np.uint64(high))) if high <= _TOP else np.flatnonzero(~heads)
    for index in maybe:
        heads[index] = Uniform(source, int(drawn[index]), WORD).below(number)
    return heads


def flips_exp(source: Source, approximate: Floats, exponent: Callable[[int], Fraction]) -> Booleans:
    """Independent coins, the i-th with probability exactly exp(-exponent(i)); ``approximate`` holds float exponents."""
    return flips_near(source, np.exp(-approximate), lambda index: exp_minus(exponent(index)))


def flips_near(source: Source, approximate: Floats, chance: Callable[[int], Exact]) -> Booleans:
    """Independent coins, the i-th with probability exactly chance(i).

    ``approximate`` holds the probabilities in floating point. A coin whose 64-bit uniform is within 2^-40 of the float
    probability is undecided: it is settled by the exact probability and as many further digits as it takes.
    """
    drawn = words(source, len(approximate))
    gap = drawn * 2.0**-WORD - approximate
    heads: Booleans = gap < 0
    for index in np.flatnonzero(np.abs(gap) <= FLOAT_SLACK):
        heads[index] = Uniform(source, int(drawn[index]), WORD).below(chance(int(index)))
    return heads


def below(source: Source, n: int) -> int:
    """A uniform integer in [0, n), by rejection from the least sufficient number of bits."""
    width = (n - 1).bit_length()
    while width:
        value = entropy.bits(source, width)
        if value < n:
            return value
    return 0


def below_many(source: Source, n: int, size: int) -> np.ndarray[Any, Any]:
    """Independent uniform integers in [0, n)."""
    width = (n - 1).bit_length()
    if width > WORD - 1:
        return np.array([below(source, n) for _ in range(size)], dtype=object)
    out = np.zeros(size, dtype=np.int64)
    pending = np.arange(size if width else 0)
    while len(pending):
        value = (words(source, len(pending)) >> np.uint64(WORD - width)).astype(np.int64)
        fits = value < n
        out[pending[fits]] = value[fits]
        pending = pending[~fits]
    return out


def as_probability(name: str, p: Real | Exact) -> Exact:
    """A probability given as a rational in [0, 1] or as an Exact number."""
    if isinstance(p, Exact):
        low, high = p.bounds(WORD)
        if low > 1 << WORD or high < 0:
            raise ParameterError(name, "a number in [0, 1]", p)
        return p
    return exactly(between(name, p, 0, 1))


_TOP = (1 << WORD) - 1
