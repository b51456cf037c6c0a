"""Flat blocks: the law without chance, every path by forced words, and both sides of what floats may leave open."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from hubbub.errors import CapacityError
from hubbub.noise import discrete, entropy, flat_blocks, table
from hubbub.noise.bernoulli import FLOAT_SLACK
from hubbub.noise.entropy import digits
from hubbub.noise.exact import Exact
from hubbub.noise.flat_blocks import FlatBlocks, table_of_blocks
from tests.noise.sources import Script, follows

TOP = (1 << 64) - 1
MAKE = {"laplace": discrete._laplace, "gaussian": discrete._gaussian}


def wide(name: str, scale: int | Fraction) -> FlatBlocks:
    law = MAKE[name](Fraction(scale))
    assert isinstance(law, FlatBlocks)
    return law


def real(number: Exact, bits: int = 300) -> Any:
    low, high = number.bounds(bits)
    assert high - low <= 1 << 16
    return mpf(low) / mpf(2) ** bits


def mass(name: str, x: int, scale: Fraction) -> Any:
    """exp(-|x|/s) or exp(-x²/2s²): proportional to the law."""
    exponent = abs(x) / scale if name == "laplace" else x * x / (2 * scale * scale)
    return mp.exp(-mpf(exponent.numerator) / exponent.denominator)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("scale", [Fraction(33), Fraction(355, 7), Fraction(100), Fraction(1023)])
def test_the_law_follows_from_table_and_rejection_without_chance(name: str, scale: Fraction) -> None:
    """P(x) is the flat part of its block, plus what of its wedge is kept: proportional to the law, in 50 digits."""
    law = wide(name, scale)
    with mp.workprec(420):
        cumulative = [mpf(low) / mpf(2) ** 300 for low, _ in law.table._cumulative(300)]
        parts = [after - before for before, after in itertools.pairwise([mpf(0), *cumulative])]
        share = dict(zip(law.table.values.tolist(), parts, strict=False))
        assert len(share) == 4 * law.reach
        length = 1 << law.shift
        scaled = share[0] / mass(name, length, scale)  # of a flat part, to g at its outer end
        for block in {0, -1, 1, -2, law.reach // 7, ~(law.reach // 7), law.reach - 1, -law.reach}:
            for low in {0, 1, length // 3, length - 2, length - 1}:
                rejected = real(law._rejection(block, low, is_far=False))
                found = share[block] + share[block + 3 * law.reach] * (1 - rejected)
                wanted = scaled * mass(name, (block << law.shift) + low, scale)
                assert abs(found / wanted - 1) < mpf(10) ** -50


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("scale", [Fraction(32) + Fraction(1, 10**9), Fraction(64), Fraction(449, 7), Fraction(10**9)])
def test_the_table_leaves_the_mass_of_all_blocks_beyond_it(name: str, scale: Fraction) -> None:
    """At the least scales of a length of blocks and between them: what is left is twice the envelope beyond."""
    law = wide(name, scale)
    with mp.workprec(420):
        cumulative = [mpf(low) / mpf(2) ** 400 for low, _ in law.table._cumulative(400)]
        assert len(cumulative) == 4 * law.reach
        flat = cumulative[0] / mass(name, 1 << law.shift, scale)
        beyond, block = mpf(0), law.reach
        while True:
            part = 2 * flat * mass(name, block << law.shift, scale)
            beyond, block = beyond + part, block + 1
            if part < beyond * mpf(10) ** -20:
                break
        assert abs((1 - cumulative[-1]) / beyond - 1) < mpf(10) ** -17


@pytest.mark.parametrize("name", MAKE)
def test_what_lies_beyond_the_table_is_kept_in_proportion_to_the_law(name: str) -> None:
    scale = Fraction(100)
    law = wide(name, scale)
    with mp.workprec(420):
        inner = mpf(mass(name, law.reach << law.shift, scale))
        for block, low in ((law.reach, 0), (law.reach, 3), (~law.reach, 0), (~law.reach, 3)):
            kept = 1 - real(law._rejection(block, low, is_far=True))
            assert abs(kept * inner / mass(name, (block << law.shift) + low, scale) - 1) < mpf(10) ** -50


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("scale", [33, 1000, 10**9, 1 << 50])
def test_floats_are_far_closer_to_the_exact_rejection_than_the_slack(
    name: str, scale: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = wide(name, scale)
    generator = np.random.default_rng(7)
    blocks = generator.integers(-law.reach, law.reach, 300)
    blocks[:6] = [0, -1, law.reach - 1, -law.reach, 0, -1]
    low = generator.integers(0, 1 << law.shift, 300)
    low[:6] = [0, (1 << law.shift) - 1, 0, 0, 1, 0]
    outcomes = (blocks + 3 * law.reach << law.shift) + low
    asked: list[tuple[Any, Any]] = []

    def keep(source: Any, approximate: Any, chance: Any) -> Any:
        asked.append((approximate, chance))
        return np.zeros(len(approximate), dtype=np.bool_)

    monkeypatch.setattr(flat_blocks, "flips_near", keep)
    assert law._settle(Script(), outcomes).tolist() == ((blocks << law.shift) + low).tolist()
    ((approximate, chance),) = asked
    for index in range(300):
        number: Exact = chance(index)
        bounds = number.bounds(100)
        assert (bounds[0] - 2**40) / 2**100 <= approximate[index] + 2.0**-48
        assert (bounds[1] + 2**40) / 2**100 >= approximate[index] - 2.0**-48


def words_of(law: FlatBlocks) -> dict[int, int]:
    """A word in the middle of each outcome of the table."""
    edges = [0, *law.table._first_list, 1 << 64]
    middles = [(low + high) // 2 for low, high in itertools.pairwise(edges)]
    return dict(zip(law.table.values.tolist(), middles, strict=True))


def scripted(law: FlatBlocks, outcomes: list[int], low: list[int], *follow: Any) -> Script:
    """What ``many`` draws: the blocks' words, the digits in their smallest type, and what follows."""
    known = words_of(law)
    width = np.dtype(np.min_scalar_type((1 << law.shift) - 1)).itemsize
    raw = b"".join((known[outcome]).to_bytes(8, "little") for outcome in outcomes)
    raw += b"".join((digit << 8 * width - law.shift).to_bytes(width, "little") for digit in low)
    for part in follow:
        raw += part if isinstance(part, bytes) else part.to_bytes(8, "little")
    return Script(raw=raw)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("scale", [33, 1000, 10**6])
def test_flat_parts_need_a_block_and_a_digit_and_nothing_more(name: str, scale: int) -> None:
    law = wide(name, scale)
    last = (1 << law.shift) - 1
    blocks, low = [0, -1, 3, -4, law.reach - 1, -law.reach], [0, last, 1, last - 1, last, 0]
    wanted = [block * (1 << law.shift) + digit for block, digit in zip(blocks, low, strict=True)]
    source = scripted(law, blocks, low)
    assert law.many(source, 6).tolist() == wanted
    assert source.left == 0
    known = words_of(law)
    for block, digit, value in zip(blocks, low, wanted, strict=True):
        source = Script([known[block], digit << 64 - law.shift])
        assert law.one(source) == value
        assert source.left == 0


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("scale", [33, 1000, 10**9])
@pytest.mark.parametrize("block", [0, -1, 10, -11])
def test_wedges_are_kept_with_the_exact_probability(name: str, scale: int, block: int) -> None:
    """On both sides of what floats may leave open; exact digits do the rest. What is not kept is drawn again."""
    law = wide(name, scale)
    digit = 1 << law.shift - 1  # the middle: neither end, where it is certain
    reject = law._rejection(block, digit, is_far=False).bounds(200)[0] >> 136
    outcome, value = block + 3 * law.reach, (block << law.shift) + digit
    known = words_of(law)
    for gap in (64, 1 << 20, 1 << 26):
        source = scripted(law, [outcome], [digit], reject + gap)
        assert law.many(source, 1).tolist() == [value]
        assert source.left == 0
        assert law.one(Script([known[outcome], digit << 64 - law.shift, reject + gap])) == value
        again = scripted(law, [2], [1])
        source = scripted(law, [outcome], [digit], reject - gap, again._bytes)
        assert law.many(source, 1).tolist() == [(2 << law.shift) + 1]
        assert source.left == 0
        words = [known[outcome], digit << 64 - law.shift, reject - gap, known[2], 1 << 64 - law.shift]
        assert law.one(Script(words)) == (2 << law.shift) + 1


@pytest.mark.parametrize("name", MAKE)
def test_ends_of_wedges_are_certain(name: str) -> None:
    """The inner end of a positive block is g's top: kept by any word. The outer end of a negative one is never kept."""
    law = wide(name, 1000)
    for block in (0, 5):
        source = scripted(law, [block + 3 * law.reach], [0], 0)
        assert law.many(source, 1).tolist() == [block << law.shift]
        assert source.left == 0
    for block in (-1, -6):
        again = scripted(law, [0], [0])
        source = scripted(law, [block + 3 * law.reach], [0], TOP - (1 << 30), again._bytes)
        assert law.many(source, 1).tolist() == [0]
        assert source.left == 0


def test_samples_that_are_not_flat_keep_their_places() -> None:
    law = wide("laplace", 1000)
    far, wedge = 4 * law.reach, 7 + 3 * law.reach
    again = scripted(law, [-3], [4])
    # the geometric excess is 2, twice; signs are + and -; then three coins: far kept, wedge rejected, far kept
    excess = math.floor((1 - math.exp(-2.5 * (1 << law.shift) / 1000)) * 2**64)
    source = scripted(
        law, [1, far, wedge, 2, far], [9, 1, 5, 6, 31], excess, TOP, excess, 0, TOP, 1 << 50, TOP, again._bytes
    )
    place = 1 << law.shift
    assert law.many(source, 5).tolist() == [
        place + 9,
        (law.reach + 2) * place + 1,
        -3 * place + 4,
        2 * place + 6,
        -(law.reach + 3) * place + 31,
    ]
    assert source.left == 0


def test_single_samples_beyond_the_table() -> None:
    law = wide("laplace", 1000)
    known, place = words_of(law), 1 << law.shift
    excess = math.floor((1 - math.exp(-2.5 * place / 1000)) * 2**64)
    digit = 1 << 64 - law.shift
    assert law.one(Script([known[4 * law.reach], digit, excess, TOP, TOP])) == (law.reach + 2) * place + 1
    assert law.one(Script([known[4 * law.reach], digit, excess, 0, TOP])) == -(law.reach + 3) * place + 1
    assert law.one(Script([known[4 * law.reach], digit, excess, TOP, 5, known[0], 0])) == 0


def far_law(height: int, shift: int) -> FlatBlocks:
    """A law whose table holds nothing but what lies beyond it, at one height."""
    always = table_of_blocks(2, lambda bits: [(0, 0)] * 8)
    return FlatBlocks(
        table=always,
        reach=2,
        shift=shift,
        drop=lambda h, along, unit: along * unit,
        unit=Fraction(1, 1 << 80),
        beyond=lambda source: height,
    )


def test_a_sample_beyond_int64_is_refused_and_not_wrapped() -> None:
    """Up to 2^62 and not beyond; a Python integer has no such bound."""
    most = (1 << 12) - 1
    law = far_law(most, 50)
    script = [5, 0, TOP, 1 << 60]
    assert law.many(Script(script), 1).tolist() == [most << 50]
    assert law.many(Script([5, 0, 0, 1 << 60]), 1).tolist() == [~most << 50]
    law = far_law(most + 1, 50)
    with pytest.raises(CapacityError, match="wrapped") as caught:
        law.many(Script(script), 1)
    assert str(caught.value).startswith("[out-of-range] ")
    assert law.one(Script(script)) == most + 1 << 50


def test_large_arrays_are_filled_from_the_first_place_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces, with what is not flat settled at the end: the law of the whole, and of every piece."""
    law = wide("laplace", 40)
    monkeypatch.setattr(flat_blocks, "CHUNK", 3000)
    drawn = law.many(entropy.begin("test"), 40_001)
    support = range(-700, 701)
    weights = np.exp(-np.abs(np.array(support)) / 40)
    assert follows(drawn, support, weights / weights.sum())
    assert follows(drawn[-20_000:], support, weights / weights.sum())
    assert law.many(Script(), 0).tolist() == []


def test_the_table_names_flat_parts_wedges_and_the_rest() -> None:
    made = table_of_blocks(3, table.laplace_blocks(Fraction(1), 3))
    assert made.values.tolist() == [0, -1, 1, -2, 2, -3, 9, 8, 10, 7, 11, 6, 12]


@pytest.mark.parametrize(
    ("count", "itemsize"), [(0, 1), (1, 1), (7, 1), (8, 1), (9, 2), (16, 2), (17, 4), (32, 4), (33, 8), (63, 8)]
)
def test_digits_take_the_highest_bits_of_the_smallest_type(count: int, itemsize: int) -> None:
    source = Script(raw=b"\xff" * 2 * itemsize + b"\x00" * itemsize + b"\x00" * (itemsize - 1) + b"\x80")
    drawn = digits(source, 4, count)
    assert drawn.dtype == np.int64
    assert source.left == 0
    most = (1 << count) - 1
    assert drawn.tolist() == [most, most, 0, most + 1 >> 1 if count else 0]


def test_the_slack_is_what_these_tests_take_it_for() -> None:
    assert FLOAT_SLACK == 2.0**-40
