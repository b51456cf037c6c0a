"""Binomial and hypergeometric counts against their exact masses, from one trial to 2^200."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from hubbub.noise import binomial, counting, entropy, hypergeometric
from hubbub.noise.counting import _binomial_law, _hypergeometric, _rational_binomial
from hubbub.noise.entropy import substitute
from hubbub.noise.exact import Exact, exactly, exp_minus, log_bounds, log_factorial_bounds
from tests.noise.sources import FALSE_ALARM, Script, follows

TOP = (1 << 64) - 1


def normal(drawn: np.ndarray[Any, Any], mean: Fraction, variance: Fraction) -> bool:
    """Mean and variance of a count so large that it is normal; compared exactly, as Python integers."""
    size = len(drawn)
    shift = [float(int(value) - mean) / math.sqrt(variance) for value in drawn]
    z = sum(shift) / math.sqrt(size)
    chi = sum(x * x for x in shift)
    worst = min(2 * stats.norm.sf(abs(z)), 2 * min(stats.chi2.cdf(chi, size), stats.chi2.sf(chi, size)))
    return bool(worst > FALSE_ALARM)


class TestBinomial:
    @pytest.mark.parametrize(
        ("n", "p"),
        [
            (1, Fraction(1, 3)),
            (10, 0.1),
            (512, Fraction(1, 7)),
            (513, Fraction(1, 7)),
            (600, Fraction(1, 2)),
            (700, 0.999),
            (5000, Fraction(1, 3)),
            (1000, Fraction(1, 5000)),
            (10**6, 1e-06),
        ],
    )
    def test_law(self, n: int, p: float | Fraction) -> None:
        drawn = binomial(n=n, p=p, size=4000)
        assert drawn.dtype == np.int64
        centre, reach = int(n * p), int(8 * math.sqrt(n * p * (1 - p)) + 12)
        support = range(max(0, centre - reach), min(n, centre + reach) + 1)
        assert follows(drawn, support, stats.binom.pmf(np.array(support), n, float(p)))

    def test_a_wrong_probability_is_seen(self) -> None:
        drawn = binomial(n=5000, p=Fraction(1, 3) * Fraction(98, 100), size=4000)
        support = range(1300, 2100)
        assert not follows(drawn, support, stats.binom.pmf(np.array(support), 5000, 1 / 3))

    def test_enormous_and_rare(self) -> None:
        """n = 2^62, p = 1e-15: exactly the mass of a binomial with mean 4611.686."""
        n, p = 1 << 62, Fraction(1, 10**15)
        drawn = binomial(n=n, p=p, size=2000)
        mean = n * p
        support = range(4612 - 560, 4612 + 560)
        mass = [
            math.exp(k * math.log(mean) - float(mean) - math.lgamma(k + 1)) for k in support
        ]  # Poisson within 1e-12
        assert follows(drawn, support, mass)
        assert normal(drawn, mean, mean * (1 - p))

    def test_enormous_and_irrational(self) -> None:
        p = exactly(1) / (exactly(1) + exp_minus(Fraction(1)))
        n = 1 << 200
        drawn = binomial(n=n, p=p, size=60)
        assert drawn.dtype == object
        assert all(type(value) is int for value in drawn)
        low, high = p.bounds(400)
        truth = Fraction(low + high, 1 << 401)
        assert normal(drawn, n * truth, n * truth * (1 - truth))

    def test_irrational_law(self) -> None:
        p = exp_minus(Fraction(1, 2))
        drawn = binomial(n=2000, p=p, size=4000)
        support = range(1000, 1420)
        assert follows(drawn, support, stats.binom.pmf(np.array(support), 2000, math.exp(-0.5)))

    @pytest.mark.parametrize("n", [0, 1, 512, 513, 1 << 62, 1 << 70])
    def test_never_and_always(self, n: int) -> None:
        assert binomial(n=n, p=0) == 0
        assert binomial(n=n, p=1) == n
        assert type(binomial(n=n, p=Fraction(1, 2))) is int

    def test_dtype(self) -> None:
        assert binomial(n=(1 << 63) - 1, p=Fraction(1, 2), size=2).dtype == np.int64
        assert binomial(n=1 << 63, p=Fraction(1, 2), size=2).dtype == object
        assert binomial(n=5, p=0.5, size=0).shape == (0,)

    def test_open_trials_draw_on(self) -> None:
        """A number of which only four digits a round are known: most trials stay open, and the law is still exact."""

        def bounds(bits: int) -> tuple[int, int]:
            known = bits // 64
            low = Fraction(1, 3) - Fraction(1, 8**known)
            high = Fraction(1, 3) + Fraction(1, 8**known)
            return math.floor(max(low, Fraction(0)) * 2**bits), math.ceil(high * 2**bits)

        drawn = np.array([counting._binomial(entropy.begin("test"), 900, Exact(bounds)) for _ in range(1500)])
        support = range(200, 400)
        assert follows(drawn, support, stats.binom.pmf(np.array(support), 900, 1 / 3))

    def test_bounds_may_be_looser_than_earlier_ones(self) -> None:
        """What was decided stays decided: a lower bound that falls back puts no trial below it again."""

        def bounds(bits: int) -> tuple[int, int]:
            known = bits // 64
            off = Fraction(1, 8**known) if known % 2 else Fraction(2, 8 ** (known - 1))
            low, high = Fraction(1, 3) - off, Fraction(1, 3) + off
            return math.floor(max(low, Fraction(0)) * 2**bits), math.ceil(high * 2**bits)

        drawn = np.array([counting._binomial(entropy.begin("test"), 900, Exact(bounds)) for _ in range(1500)])
        support = range(200, 400)
        assert follows(drawn, support, stats.binom.pmf(np.array(support), 900, 1 / 3))

    @pytest.mark.parametrize("sure", [0, 1])
    def test_nothing_is_decided_while_nothing_is_known(self, sure: int) -> None:
        def bounds(bits: int) -> tuple[int, int]:
            return (0, 1 << bits) if bits == 64 else (sure << bits, sure << bits)

        assert counting._binomial(Script(), 1000, Exact(bounds)) == 1000 * sure

    def test_certain_parts_need_no_draw(self) -> None:
        assert _rational_binomial(Script(), 1000, 0, 5) == 0
        assert _rational_binomial(Script(), 1000, 5, 5) == 1000
        assert _rational_binomial(Script(), 0, 1, 5) == 0
        assert _rational_binomial(Script([0, TOP]), 2, 1, 5) == 1


class TestHypergeometric:
    @pytest.mark.parametrize(
        ("population", "marked", "draws"),
        [
            (10, 4, 3),
            (10, 4, 8),
            (10, 10, 3),
            (10, 0, 3),
            (10, 3, 0),
            (10, 3, 10),
            (0, 0, 0),
            (1, 1, 1),
            (100, 50, 50),
            (1000, 10, 500),
            (5000, 3000, 400),
        ],
    )
    def test_law(self, population: int, marked: int, draws: int) -> None:
        drawn = hypergeometric(population=population, marked=marked, draws=draws, size=3000)
        assert drawn.dtype == np.int64
        support = range(max(0, draws - population + marked), min(draws, marked) + 1)
        mass = [
            float(
                Fraction(math.comb(marked, k) * math.comb(population - marked, draws - k), math.comb(population, draws))
            )
            for k in support
        ]
        assert follows(drawn, support, mass)
        assert set(drawn.tolist()) <= set(support)

    def test_enormous(self) -> None:
        population, marked, draws = 1 << 90, 1 << 88, 3 << 70
        drawn = hypergeometric(population=population, marked=marked, draws=draws, size=100)
        assert drawn.dtype == object
        mean = Fraction(draws, 4)
        assert normal(drawn, mean, mean * Fraction(3, 4) * Fraction(population - draws, population - 1))

    def test_one_is_an_int(self) -> None:
        assert type(hypergeometric(population=10, marked=5, draws=5)) is int


class TestEnvelope:
    """The proposal must lie above the law everywhere, and its acceptance be P(k) over it."""

    @pytest.mark.parametrize(
        "law",
        [
            _binomial_law(600, Fraction(1, 3)),
            _binomial_law(600, Fraction(1, 2)),
            _binomial_law(599, Fraction(1, 100)),
            _binomial_law(599, Fraction(1, 600)),
            _binomial_law(600, Fraction(599, 600)),
            _hypergeometric(900, 300, 200),
            _hypergeometric(50, 49, 20),
            _hypergeometric(7, 3, 3),
        ],
    )
    def test_it_is_above_the_law(self, law: counting._Envelope) -> None:
        inner = law.law
        masses = []
        for k in range(inner.low, inner.high + 1):
            product = Fraction(1)
            for offset, sign in inner.terms:
                product *= math.factorial(offset + sign * k)
            masses.append(inner.odds**k / product)
        top = max(masses)
        assert masses[inner.mode - inner.low] == top
        for k, mass in enumerate(masses, start=inner.low):
            low, high = inner.log_ratio(k, 64)
            truth = _log(mass / top)
            assert low / 2**64 - 1e-9 <= truth <= high / 2**64 + 1e-9
            assert high - low < 1 << 20
            step = abs(k - inner.mode)
            region = 1 if step < law.width else 2
            lift = 0.0 if region == 1 else float(law.rate) * step
            accept_low, accept_high = law._acceptance(k, region).bounds(64)
            assert abs(accept_low / 2**64 - math.exp(min(0.0, truth + lift))) < 1e-9
            assert accept_high - accept_low < 1 << 12
            assert truth + lift <= 1e-12
            with mp.workprec(300):
                ratio = mpf(mass.numerator) / mass.denominator * top.denominator / top.numerator
                accept = ratio * (mp.exp(mpf(law.rate.numerator) / law.rate.denominator * step) if region == 2 else 1)
                for bits in (8, 64):
                    low, high = law._acceptance(k, region).bounds(bits)
                    assert low <= accept * mpf(2) ** bits <= high

    @pytest.mark.parametrize("loose_below_at_mode", [True, False])
    @pytest.mark.parametrize("k", [150, 230])
    def test_ratios_are_bracketed_however_loose_their_parts(
        self, monkeypatch: pytest.MonkeyPatch, loose_below_at_mode: bool, k: int
    ) -> None:
        """The truth is put at either end of each part's bounds."""
        law, loose = _binomial_law(600, Fraction(1, 3)).law, 1 << 60
        at_mode = {offset + sign * law.mode for offset, sign in law.terms}

        def widened(bounds: tuple[int, int], *, below: bool) -> tuple[int, int]:
            return (bounds[0] - loose, bounds[1]) if below else (bounds[0], bounds[1] + loose)

        def factorial(number: int, bits: int) -> tuple[int, int]:
            return widened(log_factorial_bounds(number, bits), below=(number in at_mode) is loose_below_at_mode)

        def odds(number: int, bits: int) -> tuple[int, int]:
            below = (number == law.odds.numerator) is (loose_below_at_mode is (k > law.mode))
            return widened(log_bounds(number, bits), below=below)

        monkeypatch.setattr(counting, "log_factorial_bounds", factorial)
        monkeypatch.setattr(counting, "log_bounds", odds)
        low, high = law.log_ratio(k, 64)
        with mp.workprec(300):
            masses = [mpf(math.comb(600, at)) * mpf(2) ** -at for at in (k, law.mode)]
            assert low <= mp.log(masses[0] / masses[1]) * mpf(2) ** 64 <= high

    def test_falling_is_checked_up_to_both_ends(self) -> None:
        """Three fair coins: P(0) = P(2) / 3 and P(3) = P(2) / 3, where 2 is the mode."""
        law = _binomial_law(3, Fraction(1, 2)).law
        assert (law.low, law.mode, law.high) == (0, 2, 3)
        assert law.falls_below(-2, Fraction(54, 100))  # ln 3 = 1.0986
        assert not law.falls_below(-2, Fraction(55, 100))
        assert law.falls_below(1, Fraction(109, 100))
        assert not law.falls_below(1, Fraction(110, 100))
        assert law.falls_below(-3, Fraction(10**6))
        assert law.falls_below(2, Fraction(10**6))

    def test_proposals_at_the_edges_of_the_regions(self) -> None:
        law = _binomial_law(600, Fraction(1, 3))
        mode, width = law.law.mode, law.width
        values = 2 * width - 1
        shift = 64 - values.bit_length()
        assert law.one(Script([0, 0, 0])) == mode - width
        assert law.one(Script([TOP, 0, 0])) == mode + width
        assert law.one(Script([1 << 63, 0, 0])) == mode - width + 1
        assert law.one(Script([1 << 63, values - 1 << shift, 0])) == mode + width - 1
        assert law.one(Script([1 << 63, values << shift, width - 1 << shift, 0])) == mode

    def test_its_regions(self) -> None:
        """Left, middle and right, with the weights of the envelope."""
        law = _binomial_law(600, Fraction(1, 3))
        rate, width = float(law.rate), law.width
        side = math.exp(-rate * width) / -math.expm1(-rate)
        total = 2 * side + 2 * width - 1
        (low, _), (high, _) = law.region._cumulative(64)
        assert low / 2**64 == pytest.approx(side / total, rel=1e-12)
        assert high / 2**64 == pytest.approx((side + 2 * width - 1) / total, rel=1e-12)

    def test_it_is_not_wasteful(self) -> None:
        for law in (_binomial_law(1 << 62, Fraction(1, 3)), _binomial_law(1 << 62, Fraction(1, 10**15))):
            deviation = math.sqrt(law.law.variance)
            assert law.width < 12 * deviation
            assert law.rate > Fraction(1, 3) / Fraction(deviation)


def _log(ratio: Fraction) -> float:
    return math.log(ratio) if ratio > Fraction(1, 10**300) else math.log(ratio.numerator) - math.log(ratio.denominator)


def test_draws_are_announced() -> None:
    source = Script([1 << 63] * 3 + [1 << 63, 0, 0])
    with substitute(source):
        binomial(n=3, p=0.5)
        hypergeometric(population=1, marked=0, draws=1)
    assert source.kinds == [
        ("binomial", {"n": 3, "size": None}),
        ("hypergeometric", {"population": 1, "marked": 0, "draws": 1, "size": None}),
    ]
