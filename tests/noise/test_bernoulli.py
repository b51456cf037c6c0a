"""Coins and uniform integers: exact at the edges, undecided where they must be, and right in law."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hubbub.noise import bernoulli, bernoulli_exp, entropy, uniform_below, uniform_digits, uniform_within
from hubbub.noise.bernoulli import FLOAT_SLACK, below, below_many, flip, flips, flips_exp
from hubbub.noise.entropy import substitute
from hubbub.noise.exact import exactly, exp_minus
from tests.noise.sources import FALSE_ALARM, Script, surprise

TOP = (1 << 64) - 1
THIRD = TOP // 3
third = exactly(Fraction(1, 3))


def fair(heads: int, size: int, p: float) -> bool:
    return bool(stats.binomtest(heads, size, p).pvalue > FALSE_ALARM)


class TestCoins:
    @pytest.mark.parametrize("p", [Fraction(1, 3), 0.1, Fraction(999, 1000), 0.02, Fraction(1, 2)])
    def test_law(self, p: Fraction | float) -> None:
        assert fair(int(bernoulli(p, size=10**6).sum()), 10**6, float(p))
        assert fair(sum(bernoulli(p) for _ in range(20_000)), 20_000, float(p))
        assert not fair(int(bernoulli(Fraction(p) * Fraction(98, 100), size=10**7).sum()), 10**7, float(p))

    @pytest.mark.parametrize("x", [Fraction(1, 3), 1, 0.01, 5])
    def test_exponential_law(self, x: Fraction | float) -> None:
        assert fair(int(bernoulli_exp(x, size=10**6).sum()), 10**6, math.exp(-float(x)))
        assert fair(sum(bernoulli_exp(x) for _ in range(20_000)), 20_000, math.exp(-float(x)))

    def test_irrational(self) -> None:
        p = exactly(1) / (exactly(1) + exp_minus(Fraction(1)))
        assert fair(int(bernoulli(p, size=10**6).sum()), 10**6, 1 / (1 + math.exp(-1)))

    def test_never_and_always(self) -> None:
        assert not bernoulli(0, size=10**5).any()
        assert bernoulli(1, size=10**5).all()
        assert bernoulli_exp(0, size=10**5).all()
        assert not bernoulli_exp(10**6, size=10**5).any()
        assert bernoulli(1) is True
        assert bernoulli(0) is False
        with substitute(Script([0, TOP, 0, TOP])):
            assert bernoulli(0, size=2).tolist() == [False, False]
            assert bernoulli(1, size=2).tolist() == [True, True]

    def test_types(self) -> None:
        assert type(bernoulli(0.5)) is bool
        assert bernoulli(0.5, size=3).dtype == np.bool_
        assert bernoulli(0.5, size=0).shape == (0,)

    CASES = (
        ([THIRD - 1], True),
        ([THIRD, THIRD - 1], True),
        ([THIRD, THIRD + 1], False),
        ([THIRD, THIRD, 0], True),
        ([THIRD, THIRD, TOP], False),
        ([THIRD + 1], False),
    )

    @pytest.mark.parametrize(("words", "heads"), CASES)
    def test_undecided(self, words: list[int], heads: bool) -> None:
        source = Script(words)
        assert flip(source, third) is heads
        assert source.left == 0

    @pytest.mark.parametrize(("words", "heads"), CASES)
    def test_undecided_in_a_vector(self, words: list[int], heads: bool) -> None:
        source = Script([0, words[0], TOP, *words[1:]])
        assert flips(source, third, 3).tolist() == [True, heads, False]
        assert source.left == 0

    def test_a_dyadic_coin_is_decided_by_one_word(self) -> None:
        half = exactly(Fraction(1, 2))
        assert flips(Script([(1 << 63) - 1, 1 << 63]), half, 2).tolist() == [True, False]

    def test_probabilities_just_below_one(self) -> None:
        almost = exactly(1 - Fraction(1, 1 << 70))
        assert flips(Script([TOP, 0, TOP - 1]), almost, 1).tolist() == [True]
        assert flips(Script([TOP, TOP]), almost, 1).tolist() == [False]
        assert flips(Script([TOP, TOP - (1 << 58)]), almost, 1).tolist() == [True]


class TestExponentialCoins:
    """The float comparison may decide outside the slack only; inside it exact digits do."""

    exponent = Fraction(1)
    truth = math.floor(Fraction(exp_minus(Fraction(1)).bounds(128)[0], 1 << 128) * 2**64)

    def flip_one(self, *words: int, approximate: float = 1.0) -> bool:
        source = Script(words)
        found = flips_exp(source, np.array([approximate]), lambda i: self.exponent)
        assert source.left == 0
        return bool(found[0])

    def test_far_from_the_probability_floats_decide(self) -> None:
        far = int(2 * FLOAT_SLACK * 2**64)
        assert self.flip_one(self.truth - far)
        assert not self.flip_one(self.truth + far)

    def test_near_it_the_exact_exponent_decides(self) -> None:
        near = int(FLOAT_SLACK / 2 * 2**64)
        assert self.flip_one(self.truth - near)
        assert not self.flip_one(self.truth + near)
        # floats that are off by less than the slack do no harm
        off = FLOAT_SLACK / 4
        for wrong in (1 - off, 1 + off):
            assert self.flip_one(self.truth - 1, approximate=wrong)
            assert not self.flip_one(self.truth + 1, approximate=wrong)

    def test_the_probability_s_own_word_takes_more_digits(self) -> None:
        assert self.flip_one(self.truth, 0)
        assert not self.flip_one(self.truth, TOP)

    def test_each_coin_has_its_own_exponent(self) -> None:
        words = [TOP, self.truth - 1, self.truth - 1]
        drawn = flips_exp(Script(words), np.array([0.0, 1.0, 1.0]), Fraction)
        assert drawn.tolist() == [True, True, False]

    def test_law(self) -> None:
        exponents = [Fraction(1, 10), Fraction(2), Fraction(5)]
        index = np.arange(300_000) % 3
        approximate = np.array([float(x) for x in exponents])[index]
        heads = flips_exp(entropy.begin("test"), approximate, lambda i: exponents[index[i]])
        for at, exponent in enumerate(exponents):
            assert fair(int(heads[index == at].sum()), 100_000, math.exp(-float(exponent)))


class TestUniform:
    @pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 100])
    def test_law(self, n: int) -> None:
        drawn = uniform_below(n, size=200_000)
        assert drawn.dtype == np.int64
        assert surprise(np.bincount(drawn, minlength=n), np.full(n, 1 / n)) > FALSE_ALARM
        one = Counter(uniform_below(n) for _ in range(20_000))
        assert surprise([one[value] for value in range(n)], np.full(n, 1 / n)) > FALSE_ALARM
        within = Counter(uniform_within(n) for _ in range(20_000))
        assert surprise([within[value] for value in range(n)], np.full(n, 1 / n)) > FALSE_ALARM

    def test_rejection_is_exact_at_the_edge(self) -> None:
        """n = 5 takes three bits: 4 is kept, 5, 6 and 7 are drawn again."""
        bits = [value << 61 for value in (5, 6, 7, 4)]
        assert below(Script(bits), 5) == 4
        assert below_many(Script([bits[3], bits[0], 0, bits[1], bits[3]]), 5, 3).tolist() == [4, 4, 0]

    def test_powers_of_two_reject_nothing(self) -> None:
        assert below(Script([TOP]), 8) == 7
        assert below_many(Script([TOP, 0]), 8, 2).tolist() == [7, 0]

    def test_one_needs_no_bits(self) -> None:
        assert below(Script(), 1) == 0
        assert below_many(Script(), 1, 3).tolist() == [0, 0, 0]

    @pytest.mark.parametrize("n", [(1 << 62) + 1, 1 << 63])
    def test_int64_up_to_its_end(self, n: int) -> None:
        drawn = uniform_below(n, size=2000)
        assert drawn.dtype == np.int64
        assert (drawn >= 0).all()
        assert max(drawn.tolist()) < n
        assert surprise(np.bincount((drawn >> 59), minlength=16)[: -(-n >> 59)], self._shares(n, 59)) > FALSE_ALARM

    @pytest.mark.parametrize("n", [(1 << 63) + 1, 1 << 64, 10**30, 1 << 200])
    def test_python_integers_beyond(self, n: int) -> None:
        drawn = uniform_below(n, size=2000)
        assert drawn.dtype == object
        assert all(type(value) is int and 0 <= value < n for value in drawn)
        shift = n.bit_length() - 4
        seen = np.bincount([value >> shift for value in drawn], minlength=-(-n >> shift))
        assert surprise(seen, self._shares(n, shift)) > FALSE_ALARM

    @staticmethod
    def _shares(n: int, shift: int) -> list[float]:
        width = 1 << shift
        return [float(Fraction(min(width, n - start), n)) for start in range(0, n, width)]

    def test_digits(self) -> None:
        drawn = uniform_digits(100_000, 4)
        assert drawn.dtype == np.int64
        assert surprise(np.bincount(drawn, minlength=16), np.full(16, 1 / 16)) > FALSE_ALARM
        with substitute(Script([TOP, 0])):
            assert uniform_digits(2, 63).tolist() == [(1 << 63) - 1, 0]
        with substitute(Script(raw=b"\xff\x7f")):
            assert uniform_digits(2, 1).tolist() == [1, 0]

    def test_widths_that_come_from_the_data_are_not_told(self) -> None:
        source = Script([0, 0])
        with substitute(source):
            uniform_within(5)
            uniform_digits(1, 3)
        assert source.kinds == [("uniform-within", {}), ("uniform-digits", {"width": 3})]
