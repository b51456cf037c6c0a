"""Bad input to the samplers: one sentence with a code, before anything is drawn."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.noise.entropy import substitute
from hubbub.noise.exact import Exact, exactly
from tests.noise.sources import Script, Untouchable

NOT_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, True, "1", None, 1j, [1], np.bool_(True), np.float64("nan")]
NOT_POSITIVE: list[Any] = [-1, 0, 0.0, float("1e-400")]
NOT_WHOLE: list[Any] = [*NOT_NUMBERS, 2.0, 0.5, Fraction(3), -1]
LEVELS = np.array([0, 1])


@pytest.fixture(autouse=True)
def _nothing_is_drawn() -> Iterator[None]:
    with substitute(Untouchable()):
        yield


def expect_refused(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"[invalid-parameter] {name} must be ")
    assert message.endswith(" instead.")
    assert "\n" not in message
    assert caught.value.operands["name"] == name


@pytest.mark.parametrize(
    "bad", [*NOT_NUMBERS, *NOT_POSITIVE, Fraction(1, (1 << 20) + 1), (1 << 60) + 1, 2.0**-21, 2.0**61]
)
def test_scales(bad: Any) -> None:
    for size in (None, 3):
        expect_refused(lambda size=size: noise.geometric(scale=bad, size=size), "scale")  # type: ignore[misc]
        expect_refused(lambda size=size: noise.discrete_laplace(scale=bad, size=size), "scale")  # type: ignore[misc]
        expect_refused(lambda size=size: noise.discrete_gaussian(sigma=bad, size=size), "sigma")  # type: ignore[misc]


@pytest.mark.parametrize("scale", [Fraction(1, 1 << 20), 2.0**-20, 1 << 60, 2.0**60, np.float32(2), np.int64(5)])
def test_the_ends_of_the_range_are_inside(scale: Any) -> None:
    with substitute(Script([0] * 60)):
        assert noise.geometric(scale=scale) == 0
        assert noise.discrete_laplace(scale=scale) == 0
        assert noise.discrete_gaussian(sigma=scale) == 0


@pytest.mark.parametrize("bad", [bad for bad in NOT_WHOLE if bad is not None])
def test_sizes(bad: Any) -> None:
    for call in (
        lambda: noise.geometric(scale=1, size=bad),
        lambda: noise.discrete_laplace(scale=1, size=bad),
        lambda: noise.discrete_gaussian(sigma=1, size=bad),
        lambda: noise.bernoulli(0.5, size=bad),
        lambda: noise.bernoulli_exp(1, size=bad),
        lambda: noise.uniform_below(5, size=bad),
        lambda: noise.choice(levels=LEVELS, rate=1, size=bad),
        lambda: noise.race(levels=LEVELS, rate=1, size=bad),
        lambda: noise.binomial(n=5, p=0.5, size=bad),
        lambda: noise.hypergeometric(population=5, marked=2, draws=2, size=bad),
    ):
        expect_refused(call, "size")


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, -1, 1.0000001, Fraction(-1, 10**9), Fraction(10**9 + 1, 10**9)])
def test_probabilities(bad: Any) -> None:
    expect_refused(lambda: noise.bernoulli(bad), "p")
    expect_refused(lambda: noise.bernoulli(bad, size=2), "p")
    expect_refused(lambda: noise.binomial(n=5, p=bad), "p")


def test_exact_probabilities_above_one() -> None:
    expect_refused(lambda: noise.bernoulli(exactly(Fraction(3, 2))), "p")
    expect_refused(lambda: noise.binomial(n=5, p=exactly(2)), "p")
    with substitute(Script([(1 << 64) - 1])):
        assert noise.bernoulli(exactly(1))


def test_exact_probabilities_below_zero() -> None:
    expect_refused(lambda: noise.bernoulli(Exact(lambda bits: (-1 << bits, -1))), "p")
    with substitute(Script([0])):
        assert not noise.bernoulli(exactly(0))


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, -1, -1e-9])
def test_exponents_and_rates(bad: Any) -> None:
    expect_refused(lambda: noise.bernoulli_exp(bad), "x")
    expect_refused(lambda: noise.choice(levels=LEVELS, rate=bad), "rate")
    expect_refused(lambda: noise.race(levels=LEVELS, rate=bad), "rate")


@pytest.mark.parametrize("bad", [*NOT_WHOLE, 0])
def test_ranges(bad: Any) -> None:
    expect_refused(lambda: noise.uniform_below(bad), "n")
    expect_refused(lambda: noise.uniform_within(bad), "width")
    expect_refused(lambda: noise.uniform_digits(3, bad), "width")


def test_digits() -> None:
    expect_refused(lambda: noise.uniform_digits(3, 64), "width")
    expect_refused(lambda: noise.uniform_digits(-1, 5), "count")


def test_keys_that_are_not_counted() -> None:
    for bad in (*NOT_NUMBERS, *NOT_POSITIVE):
        expect_refused(lambda bad=bad: noise.truncated_laplace(scale=bad, reach=3, size=1), "scale")  # type: ignore[misc]
        expect_refused(lambda bad=bad: noise.laplace_for_each(scale=bad, size=1), "scale")  # type: ignore[misc]
        expect_refused(lambda bad=bad: noise.gaussian_for_each(sigma=bad, size=1), "sigma")  # type: ignore[misc]
    for bad in NOT_WHOLE:
        expect_refused(lambda bad=bad: noise.truncated_laplace(scale=1, reach=bad, size=1), "reach")  # type: ignore[misc]
        expect_refused(lambda bad=bad: noise.truncated_laplace(scale=1, reach=3, size=bad), "size")  # type: ignore[misc]
        expect_refused(lambda bad=bad: noise.laplace_for_each(scale=1, size=bad), "size")  # type: ignore[misc]
        expect_refused(lambda bad=bad: noise.gaussian_for_each(sigma=1, size=bad), "size")  # type: ignore[misc]
    expect_refused(lambda: noise.truncated_laplace(scale=1, reach=0, size=1), "reach")
    with substitute(Script([0])):
        assert noise.truncated_laplace(scale=1, reach=1, size=1).tolist() == [0]


BAD_VECTORS: list[Any] = [[], 5, [[1, 2]], [0.5, 1], ["1"], [None], [math.nan, 1.0], np.array([1.0]), [True, 0.5]]
BAD_VECTORS += [[1, None], np.array([1, 0.5], dtype=object)]


@pytest.mark.parametrize("bad", BAD_VECTORS)
def test_levels(bad: Any) -> None:
    expect_refused(lambda: noise.choice(levels=bad, rate=1), "levels")
    expect_refused(lambda: noise.race(levels=bad, rate=1), "levels")


@pytest.mark.parametrize("bad", [*BAD_VECTORS, [0, 0], [1], [1, 2, 3], [-1, 2], [1 << 256, 1]])
def test_counts(bad: Any) -> None:
    expect_refused(lambda: noise.choice(levels=LEVELS, rate=1, counts=bad), "counts")


def test_counts_up_to_the_limit() -> None:
    with substitute(Script([5])):
        assert noise.choice(levels=LEVELS, rate=1, counts=np.array([0, (1 << 256) - 1], dtype=object)) == 1


@pytest.mark.parametrize("bad", NOT_WHOLE)
def test_populations(bad: Any) -> None:
    expect_refused(lambda: noise.binomial(n=bad, p=0.5), "n")
    expect_refused(lambda: noise.hypergeometric(population=bad, marked=0, draws=0), "population")
    expect_refused(lambda: noise.hypergeometric(population=5, marked=bad, draws=0), "marked")
    expect_refused(lambda: noise.hypergeometric(population=5, marked=0, draws=bad), "draws")


def test_more_marked_or_drawn_than_there_are() -> None:
    expect_refused(lambda: noise.hypergeometric(population=5, marked=6, draws=1), "marked")
    expect_refused(lambda: noise.hypergeometric(population=5, marked=1, draws=6), "draws")
