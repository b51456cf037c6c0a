"""Shuffling to the last float: which way its inputs are rounded, how it is summed, what it refuses."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats
from mpmath import mp, mpf

from hubbub.errors import AccountingError, ParameterError
from hubbub.privacy import amplify
from hubbub.privacy.rounding import float_down, float_up
from tests.privacy.exact import real

LOCAL = Fraction(9, 2)


def test_epsilon_is_rounded_down_to_a_float() -> None:
    """Less ε, more δ: between two floats the answer is that of the lower one."""
    shown = 0
    for epsilon in (Fraction(1, 3), Fraction(2, 3), Fraction(10, 7), Fraction(31, 10), Fraction(13, 3)):
        low, high = (
            amplify.shuffled_delta_rounded_up(LOCAL, 50, Fraction(near(epsilon))) for near in (float_down, float_up)
        )
        assert amplify.shuffled_delta_rounded_up(LOCAL, 50, epsilon) == low
        shown += low != high
    assert shown > 0


def test_no_chance_is_above_one() -> None:
    """Beside e^-60 one report alone hides nothing, and room for rounding is added."""
    assert amplify._hidden_among(np.arange(3), 60.0, 0.0).max() == 1
    assert amplify.shuffled_delta_rounded_up(Fraction(60), 1, Fraction(0)) == 1


def test_no_epsilon_is_above_that_of_one_answer_by_itself() -> None:
    nearly = 1 - Fraction(1, 1 << 300)
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(10, 3)):
        assert amplify.sampled_epsilon_rounded_up(epsilon, nearly) == epsilon


@pytest.mark.parametrize("local", [Fraction(1, 10), Fraction(1, 3), Fraction(3)])
def test_one_report_alone_is_not_hidden_by_rounding(local: Fraction) -> None:
    """1/10 lies between two floats: the lower one is not enough."""
    assert amplify.shuffled_epsilon_rounded_up(local, 1, Fraction(1, 10**9)) == local


def test_a_delta_that_is_met_exactly_is_enough() -> None:
    met = amplify.shuffled_delta_rounded_up(Fraction(1), 100, Fraction(1, 2))
    assert 0 < met < 1
    assert amplify.shuffled_epsilon_rounded_up(Fraction(1), 100, met) <= Fraction(1, 2)
    less = met * (1 - Fraction(1, 1 << 40))
    assert amplify.shuffled_epsilon_rounded_up(Fraction(1), 100, less) > Fraction(1, 2)


class Watched:
    """scipy's binomial law, which remembers the chances it was asked about, and may have a dent."""

    def __init__(self, *, dent: tuple[int, float] = (-1, 0.0)) -> None:
        self.law, self.chances, self.dent = scipy.stats.binom, set[float](), dent

    def cdf(self, k: Any, n: Any, p: float) -> Any:
        self.chances.add(p)
        place, depth = self.dent
        return self.law.cdf(k, n, p) - np.where(k == place, depth, 0.0)

    def sf(self, k: Any, n: Any, p: float) -> Any:
        return self.law.sf(k, n, p)


@pytest.mark.parametrize("power", [1, 2, 3, 5])
def test_the_chance_of_a_clone_is_rounded_down(power: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """e^-ε₀ is a hair below a power of two, and the float must be below it too."""
    watched = Watched()
    monkeypatch.setattr(scipy.stats, "binom", watched)
    with mp.workdps(80):
        local = Fraction(int(mp.ceil(mp.log(2) * power * mpf(10) ** 60)), 10**60)
        amplify.shuffled_delta_rounded_up(local, 100, local / 2)
        (chance,) = watched.chances
        assert mpf(chance) < mp.exp(-real(local)) < mpf(2) ** -power
        assert mpf(chance) > mpf(2) ** -power * (1 - mpf(2) ** -50)


def test_a_tail_that_does_not_rise_takes_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A float error that makes the mass of a count negative must not be multiplied by the δ of few clones."""
    right = amplify.shuffled_delta_rounded_up(Fraction(1), 100, Fraction(1, 10))
    monkeypatch.setattr(scipy.stats, "binom", Watched(dent=(10, 1e-6)))
    dented = amplify.shuffled_delta_rounded_up(Fraction(1), 100, Fraction(1, 10))
    assert right < dented < right + Fraction(1, 10**6)


def test_counts_that_are_not_summed_are_added_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A millionth below the first count, where there is none: added, and twice, since scipy's tails are floats."""
    right = amplify.shuffled_delta_rounded_up(Fraction(1), 100, Fraction(1, 10))
    monkeypatch.setattr(scipy.stats, "binom", Watched(dent=(-1, -1e-6)))
    tailed = amplify.shuffled_delta_rounded_up(Fraction(1), 100, Fraction(1, 10))
    assert float(tailed - right) == pytest.approx(2e-6, rel=1e-6)


@pytest.mark.parametrize("reports", [1500, 3000, 4000])
def test_thousands_of_clones_are_summed_one_by_one(reports: int) -> None:
    """No block bounds several counts by its least before there are twice as many counts as blocks."""
    clone, epsilon = math.exp(-1), Fraction(1, 64)
    counts = np.arange(reports)
    masses = scipy.stats.binom.pmf(counts, reports - 1, clone)
    direct = float(np.sum(masses * amplify._hidden_among(counts, 1.0, float(epsilon))))
    bound = float(amplify.shuffled_delta_rounded_up(Fraction(1), reports, epsilon))
    assert direct * (1 - 1e-9) < bound < direct * (1 + 1e-7)


def test_the_closed_form_takes_what_the_theorem_takes() -> None:
    bad: tuple[Any, ...] = (0, 1, -1, 1.5, math.nan, True)
    for delta in bad:
        with pytest.raises(ParameterError, match="delta"):
            amplify.shuffled_epsilon_closed_form(epsilon=1, reports=10**6, delta=delta)
    with pytest.raises(AccountingError, match="closed form"):
        amplify.shuffled_epsilon_closed_form(epsilon=1, reports=1, delta=0.5)
    with pytest.raises(ParameterError, match="reports"):
        amplify.shuffled_epsilon_closed_form(epsilon=1, reports=0, delta=0.5)


@pytest.mark.parametrize(("reports", "delta"), [(10**6, 1e-6), (10**4, 0.5), (10**9, 1e-12)])
def test_the_closed_form_ends_where_its_theorem_does(reports: int, delta: float) -> None:
    most = math.log(reports / (16 * math.log(2 / delta)))
    assert amplify.shuffled_epsilon_closed_form(epsilon=most * (1 - 1e-9), reports=reports, delta=delta) > 0
    with pytest.raises(AccountingError, match="closed form"):
        amplify.shuffled_epsilon_closed_form(epsilon=most * (1 + 1e-9), reports=reports, delta=delta)
