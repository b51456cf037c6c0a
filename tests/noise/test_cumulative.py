"""Every threshold of every table against high-precision arithmetic, outward and tight."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from hubbub.noise import table

BITS = 128
AWKWARD = [Fraction(1, 1 << 20), Fraction(3, 7), Fraction(1), Fraction(355, 113), Fraction(0.1), Fraction(32)]


@pytest.fixture(autouse=True)
def _precise() -> Any:
    with mp.workprec(420):
        yield


def real(x: Fraction) -> Any:
    return mpf(x.numerator) / x.denominator


def check(
    bounds: Callable[[int], list[tuple[int, int]]], truth: list[Any], *, bits: int = BITS, width: int = 2
) -> None:
    found = bounds(bits)
    assert len(found) == len(truth)
    for (low, high), exact in zip(found, truth, strict=True):
        scaled = exact * mpf(2) ** bits
        assert low <= scaled <= high
        assert high - low <= width
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(
    "scale", [Fraction(33), Fraction(1000), Fraction(10**9, 7), Fraction(1 << 60), Fraction(0.1) * 10**6]
)
@pytest.mark.parametrize("bits", [BITS, 192])
def test_digit(scale: Fraction, bits: int) -> None:
    rate, base = 1 / scale, 1024
    r = mp.exp(-real(rate))
    truth = [(1 - r**j) / (1 - r**base) for j in range(1, base)]
    check(table.digit(rate, base), truth, bits=bits)


@pytest.mark.parametrize("scale", AWKWARD)
@pytest.mark.parametrize("bits", [BITS, 192])
def test_geometric(scale: Fraction, bits: int) -> None:
    rate = 1 / scale
    reach = table.reach(rate)
    r = mp.exp(-real(rate))
    check(table.geometric(rate, reach), [1 - r**j for j in range(1, reach + 1)], bits=bits)


@pytest.mark.parametrize("scale", AWKWARD)
@pytest.mark.parametrize("bits", [BITS, 192])
def test_laplace(scale: Fraction, bits: int) -> None:
    rate = 1 / scale
    reach = table.reach(rate)
    r = mp.exp(-real(rate))
    mass = {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-reach, reach + 1)}
    truth, total = [], mpf(0)
    for index in range(2 * reach - 1):
        total += mass[table.value_at(index)]
        truth.append(total)
    check(table.laplace(rate, reach), truth, bits=bits)


@pytest.mark.parametrize("sigma", AWKWARD)
@pytest.mark.parametrize("bits", [BITS, 192])
def test_gaussian(sigma: Fraction, bits: int) -> None:
    reach = table.gaussian_reach(sigma)
    variance = real(sigma) ** 2
    weight = [mp.exp(-(mpf(h) ** 2) / (2 * variance)) for h in range(int(25 * sigma) + 25)]
    total = 2 * mp.fsum(weight) - 1
    truth, running = [], mpf(0)
    for index in range(2 * reach - 1):
        running += weight[abs(table.value_at(index))]
        truth.append(running / total)
    check(table.gaussian(sigma**2, reach), truth, bits=bits)


def blocks_of(weight: list[Any], total: Any, count: int) -> list[Any]:
    """Cumulative probabilities of flat parts and of wedges, each block beside its mirror image, added up one by one."""
    flat = [weight[h + 1] for h in range(count) for _ in range(2)]
    wedges = [weight[h] - weight[h + 1] for h in range(count) for _ in range(2)]
    return list(itertools.accumulate(part / (2 * total) for part in flat + wedges))


NARROW = [Fraction(1, 2), Fraction(355, 113), Fraction(33, 2), Fraction(1000, 33), Fraction(0.1) * 300]


@pytest.mark.parametrize("scale", NARROW)
@pytest.mark.parametrize("bits", [BITS, 192])
def test_blocks(scale: Fraction, bits: int) -> None:
    rate, reach = 1 / scale, table.reach(1 / scale)
    r = mp.exp(-real(rate))
    truth = blocks_of([r**h for h in range(reach + 1)], 1 / (1 - r), reach)
    check(table.laplace_blocks(rate, reach), truth, bits=bits)
    reach = table.gaussian_reach(scale)
    weight = [mp.exp(-(mpf(h) ** 2) / (2 * real(scale) ** 2)) for h in range(int(25 * scale) + 25)]
    check(table.gaussian_blocks(scale**2, reach), blocks_of(weight, mp.fsum(weight), reach), bits=bits)


def test_signed_order_counts_every_integer_once() -> None:
    assert [table.value_at(index) for index in range(7)] == [0, 1, -1, 2, -2, 3, -3]


def test_reach_leaves_little_behind() -> None:
    assert table.reach(Fraction(1)) == 17
    assert table.reach(Fraction(1, 32)) == 17 * 32
    assert table.reach(Fraction(16, 17)) == 19  # 18.06 rounded up
    assert table.reach(Fraction(1 << 20)) == 2
    assert table.gaussian_reach(Fraction(2)) == 13
    assert table.gaussian_reach(Fraction(21, 10)) == 14
    assert table.gaussian_reach(Fraction(1, 1 << 20)) == 2


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(355, 113), Fraction(20)])
@pytest.mark.parametrize("bits", range(20, 60, 3))
def test_bounds_hold_without_any_guard_bits(scale: Fraction, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard bits make the bounds tight; that they are bounds must come from the direction of every rounding."""
    monkeypatch.setattr(table, "GUARD", 0)
    rate, count = 1 / scale, 40
    r = mp.exp(-real(rate))
    mass = {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-count, count + 1)}
    weight = [mp.exp(-(mpf(h) ** 2) / (2 * real(scale) ** 2)) for h in range(600)]
    one_sided = mp.fsum(weight)
    laws = {
        "digit": (table.digit(rate, count), [(1 - r**j) / (1 - r**count) for j in range(1, count)]),
        "geometric": (table.geometric(rate, count), [1 - r**j for j in range(1, count + 1)]),
        "laplace": (
            table.laplace(rate, count),
            [mp.fsum(mass[table.value_at(i)] for i in range(j)) for j in range(1, 2 * count)],
        ),
        "laplace blocks": (
            table.laplace_blocks(rate, count),
            blocks_of([r**h for h in range(count + 1)], 1 / (1 - r), count),
        ),
        "gaussian blocks": (table.gaussian_blocks(scale**2, count), blocks_of(weight, one_sided, count)),
        "gaussian": (
            table.gaussian(scale**2, count),
            [
                mp.fsum(weight[abs(table.value_at(i))] for i in range(j)) / (2 * one_sided - 1)
                for j in range(1, 2 * count)
            ],
        ),
    }
    for name, (bounds, truth) in laws.items():
        found = bounds(bits)
        assert len(found) == len(truth), name
        for (low, high), exact in zip(found, truth, strict=True):
            assert low <= exact * mpf(2) ** bits <= high, name


@pytest.mark.parametrize("wide", range(1, 9))
def test_gaussian_bounds_hold_at_the_coarsest(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of a few bits and quotients of many: whatever a weight, a sum or the rest lacks would show."""
    bits, count = 40, 2
    monkeypatch.setattr(table, "GUARD", wide - bits)
    for hundredths in range(20, 144, 2):  # coarse weights vanish where each is at most half of the one before
        variance = Fraction(hundredths, 100)
        weight = [mp.exp(-(mpf(h) ** 2) / (2 * real(variance))) for h in range(60)]
        half = mp.fsum(weight)
        signed = [mp.fsum(weight[(i + 1) // 2] for i in range(j + 1)) / (2 * half - 1) for j in range(3)]
        for found, truth in (
            (table.gaussian(variance, count)(bits), signed),
            (table.gaussian_blocks(variance, count)(bits), blocks_of(weight, half, count)),
        ):
            for (low, high), exact in zip(found, truth, strict=True):
                assert low <= exact * mpf(2) ** bits <= high


@pytest.mark.parametrize("wide", range(2, 9))
def test_laplace_blocks_hold_at_the_coarsest(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bits, count = 40, 3
    monkeypatch.setattr(table, "GUARD", wide - bits)
    for tenths in range(12, 40):
        rate = Fraction(tenths, 10)
        r = mp.exp(-real(rate))
        truth = blocks_of([r**h for h in range(count + 1)], 1 / (1 - r), count)
        for (low, high), exact in zip(table.laplace_blocks(rate, count)(bits), truth, strict=True):
            assert low <= exact * mpf(2) ** bits <= high
