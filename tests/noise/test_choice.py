"""Weighted choice and permute-and-flip: exact weights, huge gaps, and the settled boundaries."""

import itertools
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from hubbub.errors import ParameterError
from hubbub.noise import choice, race
from hubbub.noise.choice import Rest, _exponents, _Weights, _whole_vector
from hubbub.noise.entropy import substitute
from hubbub.noise.exact import Uniform, exp_minus_bounds
from tests.noise.sources import FALSE_ALARM, Script, surprise

TOP = (1 << 64) - 1
ONE = Fraction(1)


def exact_mass(levels: Sequence[int], rate: Fraction, counts: Sequence[int] | None = None) -> list[Any]:
    with mp.workprec(2000):
        held = counts or [1] * len(levels)
        least = min(level for level, count in zip(levels, held, strict=True) if count)
        weights = [
            count * mp.exp(-mpf((level - least) * rate.numerator) / rate.denominator) if count else mpf(0)
            for level, count in zip(levels, held, strict=True)
        ]
        total = mp.fsum(weights)
        return [weight / total for weight in weights]


def draws(size: int, **arguments: Any) -> np.ndarray[Any, Any]:
    return choice(size=size, **arguments)


class TestLaw:
    @pytest.mark.parametrize(
        ("levels", "rate", "counts"),
        [
            ([0, 1, 2, 3], ONE, None),
            ([5, 3, 4], Fraction(1, 2), [1, 2, 3]),
            ([-7, -7, -5], Fraction(1, 3), [10, 1, 0]),
            ([0, 0, 0], ONE, None),
            ([0, 5, 9], Fraction(0), [3, 2, 1]),
            ([10**30, 10**30 + 1], ONE, [1, 2]),
            ([0, 1], ONE, [1 << 200, 3 << 200]),
            ([0, 3], ONE, [1, (1 << 256) - 1]),
            ([-(2**63), 2**63 - 1, 2**63 - 2], Fraction(1, 1 << 63), None),
            ([0, 800, 801], ONE, [0, 1, 1]),
            ([4], ONE, [5]),
        ],
    )
    def test_draws_follow_the_weights(self, levels: list[int], rate: Fraction, counts: list[int] | None) -> None:
        mass = [float(m) for m in exact_mass(levels, rate, counts)]
        held = None if counts is None else np.array(counts, dtype=object)
        for dtype in (object, np.int64) if max(map(abs, levels)) < 2**62 else (object,):
            drawn = draws(100_000, levels=np.array(levels, dtype=dtype), rate=rate, counts=held)
            assert drawn.dtype == np.int64
            assert surprise(np.bincount(drawn, minlength=len(levels)), mass) > FALSE_ALARM
        one = [choice(levels=np.array(levels, dtype=object), rate=rate, counts=held) for _ in range(3000)]
        assert type(one[0]) is int
        assert surprise(np.bincount(one, minlength=len(levels)), mass) > FALSE_ALARM

    def test_two_percent_of_rate_are_seen(self) -> None:
        mass = [float(m) for m in exact_mass([0, 1, 2], ONE)]
        drawn = draws(10**6, levels=np.array([0, 1, 2]), rate=Fraction(102, 100))
        assert surprise(np.bincount(drawn), mass) < FALSE_ALARM

    def test_small_integers_do_not_wrap(self) -> None:
        for dtype in (np.int8, np.int64, np.uint64):
            edge = np.iinfo(dtype)
            levels = np.array([edge.min, edge.max], dtype=dtype)
            assert not draws(100, levels=levels, rate=1).any()
            assert race(levels=levels, rate=1, size=100).sum() == 0

    def test_gaps_beyond_every_float(self) -> None:
        levels = np.array([10**400, 0, 10**500], dtype=object)
        for rate in (ONE, Fraction(10) ** 400, Fraction(1, 10**300)):
            assert (draws(50, levels=levels, rate=rate) == 1).all()
            assert (race(levels=levels, rate=rate, size=50) == 1).all()

    def test_rates_below_every_float(self) -> None:
        levels = np.array([0, 10**400], dtype=object)
        drawn = draws(50_000, levels=levels, rate=Fraction(1, 10**400))
        mass = [1 / (1 + math.exp(-1)), 1 / (1 + math.e)]
        assert surprise(np.bincount(drawn, minlength=2), mass) > FALSE_ALARM


class TestRest:
    """Outcomes that are listed only where one might be drawn have their exact probability all the same."""

    @staticmethod
    def split(levels: list[int], counts: list[int], first: int) -> tuple[dict[str, Any], list[int]]:
        """The first ones as they are and the others as the rest, and how often those were listed."""
        asked: list[int] = []

        def listed() -> tuple[Any, Any]:
            asked.append(1)
            return np.array(levels[first:]), np.array(counts[first:])

        rest = Rest(level=min(levels[first:]), count=sum(counts[first:]), listed=listed)
        return {"levels": np.array(levels[:first]), "counts": np.array(counts[:first]), "rest": rest}, asked

    @pytest.mark.parametrize(
        ("levels", "counts", "first"),
        [([0, 1, 2, 3], [1, 1, 1, 1], 2), ([0, 0, 0], [1, 5, 1], 1), ([2, 4, 3], [1, 9, 0], 1)],
    )
    def test_a_heavy_rest_is_drawn_as_often_as_it_should(
        self, levels: list[int], counts: list[int], first: int
    ) -> None:  # fmt: skip
        given, asked = self.split(levels, counts, first)
        mass = [float(m) for m in exact_mass(levels, ONE, counts)]
        assert surprise(np.bincount(draws(3000, rate=ONE, **given), minlength=len(levels)), mass) > FALSE_ALARM
        single = [choice(rate=ONE, **given) for _ in range(3000)]
        assert surprise(np.bincount(single, minlength=len(levels)), mass) > FALSE_ALARM
        assert asked

    def test_a_faint_rest_is_not_even_listed(self) -> None:
        given, asked = self.split([0, 1, 80], [1, 1, 100], 2)
        assert draws(10_000, rate=ONE, **given).max() == 1
        assert not asked

    def test_a_word_that_falls_on_a_faint_rest_finds_it(self) -> None:
        given, _ = self.split([0, 40, 41], [1, 3, 5], 1)
        for word, outcome in ((TOP, 2), (TOP - 100, 2), (TOP - 200, 1), (TOP - 300, 1), (TOP - 500, 0)):
            with substitute(Script([word, *[0] * 8])):
                assert choice(rate=ONE, **given) == outcome

    def test_a_rest_that_is_likelier_than_the_others_is_refused(self) -> None:
        given, _ = self.split([1, 0], [1, 1], 1)
        with pytest.raises(ParameterError, match="rest"):
            choice(rate=ONE, **given)


class TestSettled:
    """Words beside a boundary are settled in exact arithmetic, whatever the floats say."""

    @pytest.mark.parametrize(
        ("levels", "counts", "rate"),
        [
            ([0, 1, 2], [1, 1, 1], ONE),
            ([3, 0, 0, 5], [7, 1, 2, 9], Fraction(1, 3)),
            ([0, 60, 0], [1, 1, 1], ONE),
            ([0, 90, 95, 1], [1, 5, 0, 1], ONE),
            ([90, 0], [1, 1], ONE),
        ],
    )
    def test_both_sides_of_every_boundary(self, levels: list[int], counts: list[int], rate: Fraction) -> None:
        weights = _Weights(np.array(levels), rate, np.array(counts))
        with mp.workprec(2000):
            edges = list(itertools.accumulate(exact_mass(levels, rate, counts)))[:-1]
            digits = [int(mp.floor(edge * mpf(2) ** 192)) for edge in edges]
        for at, edge in enumerate(digits):
            before = max((i for i in range(at + 1) if self.wide(levels, counts, rate, i)), default=None)
            after = min(i for i in range(at + 1, len(levels)) if self.wide(levels, counts, rate, i))
            for value, outcome in ((edge - 1, before), (edge + 1, after)):
                if outcome is None or value < 0:
                    continue
                words = [value >> 128, value >> 64 & TOP, value & TOP]
                assert weights._settle(Uniform(Script(words[1:]), words[0], 64)) == outcome
                assert weights.sample(Script(words), 1).tolist() == [outcome]
                assert weights.one(Script(words)) == outcome

    @staticmethod
    def wide(levels: list[int], counts: list[int], rate: Fraction, at: int) -> bool:
        """Whether an outcome is wider than the step of 2^-192 taken here."""
        return bool(exact_mass(levels, rate, counts)[at] > mpf(2) ** -190)

    def test_an_outcome_too_unlikely_for_floats_is_still_drawn(self) -> None:
        """exp(-60) of the mass lies at the very end, and at the very start: words 0 and 2^64 - 1 decide nothing yet."""
        last = _Weights(np.array([0, 60]), ONE, None)
        assert last.sample(Script([TOP, TOP, TOP - (1 << 40)]), 1).tolist() == [1]
        assert last.one(Script([TOP, TOP, TOP - (1 << 40)])) == 1
        assert last.sample(Script([TOP, 0]), 1).tolist() == [0]
        assert last.one(Script([TOP, 0])) == 0
        first = _Weights(np.array([60, 0]), ONE, None)
        assert first.sample(Script([0, 0]), 1).tolist() == [0]
        assert first.one(Script([0, 0])) == 0
        assert first.sample(Script([0, TOP]), 1).tolist() == [1]
        assert first.one(Script([0, TOP])) == 1

    def test_an_outcome_of_no_weight_is_never_drawn(self) -> None:
        weights = _Weights(np.array([0, 0, 0, 0]), ONE, np.array([0, 1, 0, 0]))
        for word in (0, 1, TOP - 1, TOP):
            assert weights.sample(Script([word] + [word] * 4), 1).tolist() == [1]
            assert weights.one(Script([word] + [word] * 4)) == 1

    @pytest.mark.parametrize("counts", [None, [3, 0, 1 << 40, 5]])
    def test_one_is_the_first_of_many(self, counts: list[int] | None) -> None:
        """From the same words, and no more of them: also where floats cannot tell, which takes words of its own."""
        weights = _Weights(np.array([0, 2, 1, 30]), ONE, None if counts is None else np.array(counts))
        ends = [
            round(float(end / weights.running[-1]) * 2**64) + step for end in weights.running for step in (-9, 0, 9)
        ]
        for word in (*(max(0, min(TOP, end)) for end in ends), *range(0, TOP, TOP // 999)):
            one, many = Script([word, 7, 7, 7]), Script([word, 7, 7, 7])
            assert weights.one(one) == weights.sample(many, 1)[0]
            assert one.left == many.left

    def test_the_allowance_covers_the_floats(self) -> None:
        rng = np.random.default_rng(1)
        levels = rng.integers(0, 700, size=300)
        weights = _Weights(levels, Fraction(0.9999), None)
        with mp.workprec(300):
            exact = [mp.exp(-mpf(int(step)) * mpf(0.9999)) for step in weights.steps]
            running = list(itertools.accumulate(exact))
            assert all(
                abs(mpf(float(f)) - e) < mpf(weights.allowance) / 4
                for f, e in zip(weights.running, running, strict=True)
            )
        assert weights.allowance < 1e-11 * weights.running[-1]
        many = _Weights(np.zeros(1 << 14, dtype=np.int64), ONE, None)
        assert many.allowance >= (2.0**-41 + (1 << 14) * 2.0**-53) * many.running[-1]

    @pytest.mark.parametrize("off", [-1, 1])
    def test_floats_that_are_off_by_less_than_the_allowance_do_no_harm(self, off: int) -> None:
        """Words between the true boundary and the one that the floats see, and beside both."""
        weights = _Weights(np.array([0, 1, 2]), ONE, None)
        weights.running[:-1] += off * weights.allowance / 2
        near = int(weights.allowance / weights.running[-1] * 2**64) // 4
        with mp.workprec(300):
            edges = list(itertools.accumulate(exact_mass([0, 1, 2], ONE)))[:-1]
            digits = [int(mp.floor(edge * mpf(2) ** 64)) for edge in edges]
        for at, edge in enumerate(digits):
            for gap in (1, near, 3 * near):
                assert weights.sample(Script([edge - gap]), 1).tolist() == [at]
                assert weights.sample(Script([edge + gap]), 1).tolist() == [at + 1]

    def test_weights_of_which_nothing_is_known_yet_decide_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Weights 1 and 1/e meet at 0.731: 0.6 is below, 0.8 is above, and in between two equal weights would meet."""

        def vague_at_first(exponent: Fraction, bits: int) -> tuple[int, int]:
            return exp_minus_bounds(exponent, bits) if bits > 128 else (0, 1 << bits)

        monkeypatch.setattr(sys.modules[_Weights.__module__], "exp_minus_bounds", vague_at_first)
        weights = _Weights(np.array([0, 1]), ONE, None)
        for tenths, outcome in ((4, 0), (6, 0), (8, 1)):
            source = Script([0])
            assert weights._settle(Uniform(source, (tenths << 64) // 10, 64)) == outcome
            assert source.left == 0

    @given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(0, TOP), st.integers(0, TOP))
    @settings(max_examples=60)
    def test_settling_agrees_with_rationals(self, levels: list[int], word: int, follow: int) -> None:
        """With rate 0 all weights are whole, and the outcome is known without any approximation."""
        counts = [level % 4 for level in levels]
        if not any(counts):
            counts[0] = 1
        weights = _Weights(np.array(levels), Fraction(0), np.array(counts))
        uniform = Fraction(word << 64 | follow, 1 << 128) * sum(counts)
        expected = next(i for i, total in enumerate(itertools.accumulate(counts)) if uniform < total)
        boundary = uniform.denominator == 1 or (uniform + Fraction(sum(counts), 1 << 128)) // 1 != uniform // 1
        if not boundary:
            assert weights._settle(Uniform(Script([follow]), word, 64)) == expected
            assert weights.sample(Script([word, follow]), 1).tolist() == [expected]


class TestRace:
    @staticmethod
    def brute_force(levels: Sequence[int], rate: float) -> list[float]:
        """Visit in every order; stop at the first that passes."""
        passes = [math.exp(-rate * (level - min(levels))) for level in levels]
        out = [0.0] * len(levels)
        orders = list(itertools.permutations(range(len(levels))))
        for order in orders:
            alive = 1.0
            for at in order:
                out[at] += alive * passes[at] / len(orders)
                alive *= 1 - passes[at]
        return out

    @pytest.mark.parametrize("levels", [[0], [0, 1], [3, 1, 2], [0, 0, 4, 1], [2, 2, 2, 2, 2]])
    @pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2)])
    def test_law(self, levels: list[int], rate: Fraction) -> None:
        mass = self.brute_force(levels, float(rate))
        for dtype in (np.int64, object):
            drawn = race(levels=np.array(levels, dtype=dtype), rate=rate, size=20_000)
            assert surprise(np.bincount(drawn, minlength=len(levels)), mass) > FALSE_ALARM
        one = [race(levels=np.array(levels), rate=rate) for _ in range(2000)]
        assert type(one[0]) is int
        assert surprise(np.bincount(one, minlength=len(levels)), mass) > FALSE_ALARM

    def test_a_winner_is_uniform_among_those_that_passed(self) -> None:
        flips = [0, 0, 0]
        for word, winner in ((0, 0), (1 << 62, 1), (2 << 62, 2)):
            with substitute(Script([*flips, word])):
                assert race(levels=np.array([5, 5, 5]), rate=1) == winner
        with substitute(Script([*flips, 3 << 62, 1 << 62])):  # two bits say 3: drawn again
            assert race(levels=np.array([5, 5, 5]), rate=1) == 1

    def test_a_coin_too_close_for_floats_takes_its_own_exponent(self) -> None:
        """Levels 0 and 2 at a rate of 1/3: the second passes below exp(-2/3), and a lone winner takes no more bits."""
        edge = exp_minus_bounds(Fraction(2, 3), 64)[0]
        for word, more, winner in ((edge - 2, [TOP], 1), (edge + 2, [], 0)):
            source = Script([0, word, *more])
            with substitute(source):
                assert race(levels=np.array([0, 2]), rate=Fraction(1, 3)) == winner
            assert source.left == 0


def test_vectors_of_whole_numbers() -> None:
    edge = 1 << 61
    assert _whole_vector("x", np.array([edge - 1, 1 - edge])).dtype == np.int64
    assert _whole_vector("x", np.array([edge])).dtype == object
    assert _whole_vector("x", np.array([-edge])).dtype == object
    assert _whole_vector("x", np.array([1], dtype=np.int8)).dtype == np.int64
    assert _whole_vector("x", [2**70]).tolist() == [2**70]


@pytest.mark.parametrize("rate", [ONE, Fraction(1, 10**290), Fraction(10**290), Fraction(1, 10), Fraction(0)])
def test_exponents_are_right_or_far(rate: Fraction) -> None:
    steps = [0, 1, 7, 1 << 60, 10**290]
    found = _exponents(np.array(steps, dtype=object), rate)
    for value, step in zip(found, steps, strict=True):
        exact = min(step * rate, Fraction(10_000))
        assert abs(Fraction(float(value)) - exact) <= exact / (1 << 51)
    small = _exponents(np.array(steps[:4], dtype=np.int64), rate)
    assert np.allclose(small, found[:4], rtol=2.0**-51, atol=0)


def test_exponents_of_small_steps_at_rates_beyond_every_float() -> None:
    steps = np.array([0, 1, 1 << 60], dtype=np.int64)
    assert _exponents(steps, Fraction(1 << 1100)).tolist() == [0.0, 10_000.0, 10_000.0]
    assert _exponents(steps, Fraction(1, 1 << 1100)).tolist() == [0.0, 0.0, 2.0**-1040]


def test_choices_do_not_tell_how_many_there_are() -> None:
    source = Script([1 << 60, 1 << 60, 0])
    with substitute(source):
        choice(levels=np.array([0, 1]), rate=1)
        race(levels=np.array([0]), rate=1)
    assert source.kinds == [("choice", {"rate": 1, "size": None}), ("race", {"rate": 1, "size": None})]
