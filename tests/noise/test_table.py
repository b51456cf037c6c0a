"""Exact inversion: every word beside a threshold, the undecided path in each of the three samplers, and the law."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.noise import table
from hubbub.noise.exact import exactly
from hubbub.noise.table import BUCKET_BITS, GUIDE_FROM, LawTable
from tests.noise.sources import Script

TOP = (1 << 64) - 1
THIRD = TOP // 3
"""The first 64 digits of 1/3 (and, repeated, the next)."""
TWO_THIRDS = 2 * THIRD


def thirds(bits: int) -> list[tuple[int, int]]:
    return [exactly(Fraction(j, 3)).bounds(bits) for j in (1, 2)]


@pytest.fixture
def three() -> LawTable:
    return LawTable([10, 20, 30], thirds)


CASES = [
    ([0], 10),
    ([THIRD - 1], 10),
    ([THIRD, THIRD - 1], 10),
    ([THIRD, THIRD + 1], 20),
    ([THIRD, THIRD, 0], 10),
    ([THIRD, THIRD, TOP], 20),
    ([THIRD + 1], 20),
    ([TWO_THIRDS - 1], 20),
    ([TWO_THIRDS, TWO_THIRDS - 1], 20),
    ([TWO_THIRDS, TWO_THIRDS + 1], 30),
    ([TWO_THIRDS, TWO_THIRDS, TWO_THIRDS, 0], 20),
    ([TWO_THIRDS + 1], 30),
    ([TOP], 30),
]


@pytest.mark.parametrize(("words", "outcome"), CASES)
def test_one(three: LawTable, words: list[int], outcome: int) -> None:
    source = Script(words)
    assert three.one(source) == outcome
    assert source.left == 0


@pytest.mark.parametrize(("words", "outcome"), CASES)
def test_many_without_a_guide(three: LawTable, words: list[int], outcome: int) -> None:
    source = Script([words[0], 0, TOP, *words[1:]])
    assert three.many(source, 3).tolist() == [outcome, 10, 30]
    assert source.left == 0


@pytest.mark.parametrize(("words", "outcome"), CASES)
def test_many_with_a_guide(three: LawTable, words: list[int], outcome: int) -> None:
    """The first sample takes its sixteen bits from the bucket and the other 48 of its first word only if it must."""
    bucket = words[0] >> 48
    open_bucket = bucket in (THIRD >> 48, TWO_THIRDS >> 48)
    buckets = np.zeros(GUIDE_FROM, dtype=np.uint16)
    buckets[0] = bucket
    follow = [(words[0] << BUCKET_BITS) & TOP, *words[1:]] if open_bucket else []
    source = Script(follow)
    source._bytes = buckets.tobytes() + source._bytes
    drawn = three.many(source, GUIDE_FROM)
    assert drawn[0] == outcome
    assert (drawn[1:] == 10).all()
    assert source.left == 0


def test_every_bucket_of_the_guide_belongs_to_one_outcome_or_is_open(three: LawTable) -> None:
    """Against the words at both ends of each bucket."""
    for law in (three, LawTable(range(18), table.geometric(Fraction(1), 17))):
        guide = law._build_guide()
        for bucket in range(1 << BUCKET_BITS):
            if guide[bucket] != law._undecided:
                first, last = bucket << 48, (bucket + 1 << 48) - 1
                assert law.one(Script([first])) == law.one(Script([last])) == guide[bucket]
        opened = {int(b) for b in np.flatnonzero(guide == law._undecided)}
        assert opened == {low >> 112 for low, _ in law._cumulative(128)}


def test_chunks_are_filled_completely(three: LawTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CHUNK", 1000)
    source = Script(raw=np.full(2500, 0xFFFF, dtype=np.uint16).tobytes())
    assert (three.many(source, 2500) == 30).all()
    assert source.left == 0


def test_a_threshold_of_one_is_never_passed() -> None:
    law = LawTable([1, 2], lambda bits: [(1 << bits, 1 << bits)])
    assert law.one(Script([TOP, TOP])) == 1
    assert law.many(Script([TOP, TOP]), 1).tolist() == [1]
    assert law.one(Script([TOP - 1])) == 1


def test_a_threshold_of_zero_is_always_passed() -> None:
    law = LawTable([1, 2], lambda bits: [(0, 0)])
    assert law.one(Script([0, 0])) == 2
    assert law.one(Script([1])) == 2


def test_bounds_that_straddle_a_word_are_not_trusted() -> None:
    """1/2 bracketed from both sides: both neighbouring words are open."""
    half = 1 << 63
    law = LawTable([0, 1], lambda bits: [((1 << bits - 1) - 1, (1 << bits - 1) + 1)])
    assert law.one(Script([half - 2])) == 0
    assert law.one(Script([half - 1, TOP - 1])) == 0
    assert law.one(Script([half, 1])) == 1
    assert law.one(Script([half + 1])) == 1
    with pytest.raises(AssertionError, match="run out"):
        law.one(Script([half - 1, TOP]))
    with pytest.raises(AssertionError, match="run out"):
        law.one(Script([half, 0]))


def test_a_single_value_needs_no_threshold() -> None:
    assert LawTable([7], lambda bits: []).many(Script([0, TOP]), 2).tolist() == [7, 7]


def test_values_too_large_for_small_integers() -> None:
    edge = np.iinfo(np.int16).max
    for value, dtype in ((edge - 1, np.int16), (edge, np.int64), (-edge, np.int64), (1 << 40, np.int64)):
        law = LawTable([0, value], lambda bits: [(1 << bits - 1, 1 << bits - 1)])
        source = Script(raw=np.full(GUIDE_FROM, 0xFFFF, dtype=np.uint16).tobytes())
        drawn = law.many(source, GUIDE_FROM)
        assert drawn.dtype == dtype
        assert (drawn == value).all()


def test_small_and_large_draws_take_different_paths(three: LawTable) -> None:
    assert Script([0] * (GUIDE_FROM - 1)).left == 8 * (GUIDE_FROM - 1)
    few, many = Script([0] * (GUIDE_FROM - 1)), Script(raw=bytes(2 * GUIDE_FROM))
    assert len(three.many(few, GUIDE_FROM - 1)) == GUIDE_FROM - 1
    assert len(three.many(many, GUIDE_FROM)) == GUIDE_FROM
    assert few.left == many.left == 0
