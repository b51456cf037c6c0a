"""The law test: its false-alarm rate is what it says, and it sees a scale that is 2% off."""

import math

import numpy as np
import pytest
from scipy import stats

from hubbub.audit import law

LEVEL = 1e-6


def geometric(scale: float, reach: int = 60) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-reach, reach + 1))


def observe(
    masses: np.ndarray[tuple[int], np.dtype[np.float64]], draws: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    rng = np.random.default_rng(seed)
    return rng.multinomial(draws, np.append(masses, max(0.0, 1 - masses.sum())))


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("wrong", [0.98, 1.02])
def test_a_scale_two_percent_off_is_rejected_with_a_million_draws(scale: float, wrong: float) -> None:
    stated, real = geometric(scale), geometric(scale * wrong)
    assert law.power(stated, real, draws=1_000_000, false_alarm=LEVEL) > 0.9999
    for seed in range(10):
        assert law.fit(observe(real, 1_000_000, seed), stated).rejects(false_alarm=LEVEL)
        assert not law.fit(observe(stated, 1_000_000, seed), stated).rejects(false_alarm=LEVEL)


def test_a_wide_law_is_also_looked_at_in_coarse_cells() -> None:
    stated, real = geometric(400.0, reach=8000), geometric(408.0, reach=8000)
    assert law.power(stated, real, draws=1_000_000, false_alarm=LEVEL) > 0.999
    assert law.fit(observe(real, 1_000_000, 1), stated).rejects(false_alarm=LEVEL)
    assert not law.fit(observe(stated, 1_000_000, 1), stated).rejects(false_alarm=LEVEL)


def test_a_ripple_that_coarse_cells_hide_is_seen_in_fine_ones() -> None:
    stated = np.full(200, 1 / 200)
    real = stated * np.where(np.arange(200) % 2, 1.03, 0.97)
    assert law.fit(observe(real, 1_000_000, 1), stated).rejects(false_alarm=LEVEL)


def test_p_values_are_not_too_small() -> None:
    """At a rate that can be counted: 4,000 honest samples, of which at most 1% may look as bad as 1 in 100 (1e-6)."""
    stated = geometric(1.0)
    found = [law.fit(observe(stated, 2_000, seed), stated).p_value for seed in range(4_000)]
    allowed = stats.binom.isf(LEVEL, 4_000, 0.01)
    assert 0 < sum(p <= 0.01 for p in found) <= allowed


def test_what_is_impossible_is_never_pooled_away() -> None:
    stated = np.array([0.5, 0.5, 0.0])
    assert law.fit(np.array([500_000, 499_999, 1, 0]), stated).p_value == 0.0
    assert law.fit(np.array([500_000, 499_999, 0, 1]), stated).p_value > LEVEL
    assert law.fit(np.array([500_000, 499_990, 0, 10]), stated).rejects(false_alarm=LEVEL)
    assert law.fit(np.array([500_000, 500_000, 0, 0]), stated).p_value == 1.0


def test_small_cells_are_pooled_and_counted() -> None:
    stated = np.array([0.9, 0.0989, 0.0005, 0.0006])
    assert law.fit(np.array([9000, 989, 5, 6, 0]), stated).cells == 3
    assert law.fit(np.array([900, 99, 0, 1, 0]), stated).cells == 2
    assert law.fit(np.array([1, 0, 0, 0, 0]), stated).p_value == 1.0


def test_rejects_at_its_level_exactly() -> None:
    found = law.Fit(p_value=LEVEL, draws=1, cells=1)
    assert found.rejects(false_alarm=LEVEL)
    assert not law.Fit(p_value=LEVEL * 1.01, draws=1, cells=1).rejects(false_alarm=LEVEL)


def test_no_power_where_there_is_one_cell() -> None:
    assert law.power(np.array([1.0]), np.array([1.0]), draws=100, false_alarm=LEVEL) == 0.0


def test_tally_counts_what_is_listed_and_everything_else() -> None:
    outputs = (1, 2, ("a", 3))
    assert law.tally(np.array([1, 1, 2, 7]), outputs, lambda value: value).tolist() == [2, 1, 0, 1]
    assert law.tally([1, ("a", 3), "?", ("a", 3)], outputs, lambda value: value).tolist() == [1, 0, 2, 1]
    assert law.tally(np.array([[1, 1], [2, 5]]), outputs, lambda row: int(row[0])).tolist() == [1, 1, 0, 0]
    assert law.tally([np.array([1, 2])], ((1, 2),), lambda row: row).tolist() == [1, 0]
    assert law.tally(np.array([1.4, 0.6]), outputs, round).tolist() == [2, 0, 0, 0]
