"""The classic mistakes around local sensitivity, propose-test-release and pricing, each caught by the audit.

Each is the honest mechanism with one thing wrong, claims what the honest one claims, and is accused on the pair of
inputs where that matters; the honest one, asked the same, is not. False alarms: 1e-6 each.
"""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from examples.seeds import local
from hubbub import noise
from hubbub.audit import lower_bound, lower_bound_delta
from hubbub.mechanisms import Price, ProposedQuantile, SmoothQuantile, SmoothSensitivity, StableMode
from hubbub.mechanisms.local_sensitivity.dilation import Student
from hubbub.mechanisms.local_sensitivity.distance import FLOOR, around, quantile_rank
from hubbub.privacy.sensitivity import Neighbors

ONE = Fraction(1)
T = 60
MEDIAN = SmoothQuantile(epsilon=ONE, bounds=(Fraction(0), Fraction(T)), grid=ONE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Twin:
    """The honest median's noise, or another, in proportion to another bound."""

    measure: Callable[[Any], tuple[int, Fraction]] = MEDIAN.measure
    noise: Callable[..., Any] = MEDIAN.law.draw
    tells: bool = False

    def repeat(self, rows: Any, *, times: int) -> Any:
        exact, bound = self.measure(rows)
        answers = np.clip(exact + self.noise(bound, reach=T, size=times), 0, T)
        return [(answer, round(float(bound), 6)) for answer in answers.tolist()] if self.tells else answers


def local_bound(rows: Any) -> tuple[int, Fraction]:
    steps = MEDIAN.steps(rows)
    rank = quantile_rank(len(steps), Fraction(1, 2))
    down, up = around(steps, rank, T, 1)
    return int(steps[rank - 1]), max(Fraction(int(max(up[-1] - up[0], down[0] - down[-1]))), FLOOR)


def laplace_as_if_pure(bound: Fraction, *, reach: int, size: int) -> Any:
    return noise.rounded_laplace(scale=MEDIAN.law.multiplier * bound, reach=reach, size=size)


HASTY = dataclasses.replace(MEDIAN, epsilon=Fraction(100), beta=4 * MEDIAN.decay)
BROKEN: dict[str, tuple[Twin, Any, Any]] = {
    "the local sensitivity itself": (Twin(measure=local_bound), (0, 0, 30, 30, 30, T, T), (0, 0, 30, 30, T, T)),
    "beta four times what the noise is for": (Twin(measure=HASTY.measure), (30,) * 11, (30,) * 10),
    "light tails, as if they were pure": (Twin(noise=laplace_as_if_pure), (30,) * 37, (30,) * 36),
    "the scale told beside the answer": (Twin(tells=True), (30,) * 5, (30,) * 4),
    "a quarter of the noise": (
        Twin(noise=lambda bound, **options: MEDIAN.law.draw(bound / 4, **options)),
        (0, 20, 20, 20, 30, 40, 40, 40, 60, 60, 60),
        (0, 20, 20, 20, 30, 30, 40, 40, 40, 60, 60, 60),
    ),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_mistake_in_smooth_sensitivity_is_caught(mistake: str) -> None:
    broken, x, y = BROKEN[mistake]
    samples = 300_000 if "light tails" in mistake else 60_000  # what is far out is rare
    assert lower_bound(broken, x, y, samples=samples).accuses(1.0)
    assert not lower_bound(MEDIAN, x, y, samples=60_000).accuses(1.0)


def test_rows_are_not_units() -> None:
    """40 rows of one unit move everything: seen at once where the noise is for one row each."""
    x, y = (5,) * 30, (5,) * 30 + (55,) * 40
    assert lower_bound(MEDIAN, x, y, samples=4_000).accuses(1.0)
    assert not lower_bound(dataclasses.replace(MEDIAN, rows=40), x, y, samples=4_000).accuses(1.0)


def test_the_slides_example_is_an_attack() -> None:
    """X and X' of lecture 001: the attacker reads the scale off one answer; with smooth sensitivity he cannot."""
    broken, sound = local.attack(local.local_median, runs=2_000), local.attack(local.smooth_median, runs=2_000)
    assert broken.right > 0.98
    assert broken.finding.accuses(float(local.EPSILON))
    assert sound.right <= local.most_right(float(local.EPSILON)) + 0.06  # five standard errors of 4,000 guesses
    assert not sound.finding.accuses(float(local.EPSILON))


TENTH = Fraction(1, 10)
PROPOSED = ProposedQuantile(
    epsilon=Fraction(2), delta=TENTH, bounds=(Fraction(0), Fraction(T)), grid=ONE, proposed=Fraction(2)
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Careless:
    """The honest noise after another test."""

    passes: Callable[[int, int], Any]

    def repeat(self, rows: Any, *, times: int) -> Any:
        exact, away = PROPOSED.measure(rows)
        noisy = PROPOSED.noise.repeat(exact, times=times).tolist()
        return [answer if yes else None for answer, yes in zip(noisy, self.passes(away, times), strict=True)]


CARELESS: dict[str, tuple[Careless, Any, Any]] = {
    "no noise on the distance": (
        Careless(passes=lambda away, times: [away + 1 >= PROPOSED.test.threshold] * times),
        (30,) * 5,
        (30,) * 4,
    ),
    "a threshold off by one": (
        Careless(passes=lambda away, times: PROPOSED.test.passes(away + 2, times)),
        (0, T),
        (0, T, T),
    ),
    "no test": (Careless(passes=lambda away, times: [True] * times), (0, T), (0, T, T)),
}


@pytest.mark.parametrize("mistake", CARELESS)
def test_a_mistake_in_propose_test_release_is_caught(mistake: str) -> None:
    broken, x, y = CARELESS[mistake]
    failure = float(PROPOSED.event.failure)
    assert lower_bound_delta(broken, x, y, epsilon=2.0, samples=20_000).accuses(2.0, delta=failure)
    assert not lower_bound_delta(PROPOSED, x, y, epsilon=2.0, samples=20_000).accuses(2.0, delta=failure)


MODE = StableMode(epsilon=ONE, delta=TENTH)


class LargerLead:
    """The lead counted from 1, as for a proposal: a lead of 1 is then shown too often."""

    def repeat(self, counts: Any, *, times: int) -> Any:
        mode = max(sorted(counts), key=lambda key: counts[key])
        second = max([0, *(count for key, count in counts.items() if key != mode)])
        return [mode if yes else None for yes in MODE.test.passes(counts[mode] - second + 1, times)]


def test_a_mistake_about_the_mode_is_caught() -> None:
    x, y = {"a": 2, "b": 3}, {"a": 3, "b": 3}
    failure = float(MODE.event.failure)
    assert lower_bound_delta(LargerLead(), x, y, epsilon=1.0, samples=20_000).accuses(1.0, delta=failure)
    assert not lower_bound_delta(MODE, x, y, epsilon=1.0, samples=20_000).accuses(1.0, delta=failure)
    x, y = {"a": 4, "b": 2}, {"a": 3, "b": 3}  # one unit replaced, where the test is for units that come and go
    swapped = StableMode(epsilon=ONE, delta=TENTH, neighbors=Neighbors.REPLACE_ONE)
    assert lower_bound_delta(MODE, x, y, epsilon=1.0, samples=20_000).accuses(1.0, delta=failure)
    assert not lower_bound_delta(swapped, x, y, epsilon=1.0, samples=20_000).accuses(1.0, delta=failure)


def test_a_mistake_about_prices_is_caught() -> None:
    """The exponent for added bids under replaced ones; the top price forgotten; demand that is not cut."""
    prices = (Fraction(1), Fraction(5))
    honest = Price(epsilon=ONE, prices=prices, neighbors=Neighbors.REPLACE_ONE)
    added_only = Price(epsilon=ONE, prices=prices)
    x, y = np.array([[5, 0]] * 2), np.array([[5, 0], [0, 1]])
    assert lower_bound(added_only, x, y, samples=40_000).accuses(1.0)
    assert not lower_bound(honest, x, y, samples=40_000).accuses(1.0)
    top_forgotten = Price(epsilon=5 * ONE, prices=prices)
    x, y = np.array([[5, 0]]), np.array([[5, 0], [0, 1]])
    assert lower_bound(top_forgotten, x, y, samples=20_000).accuses(1.0)

    def uncut(table: Any) -> int:
        scores = (np.asarray(table) * [1, 5]).sum(axis=0)
        return int(added_only.choosing.draw(scores))

    greedy = np.array([[5, 0], [0, 9]])
    assert lower_bound(uncut, x, greedy, samples=4_000).accuses(1.0)
    assert not lower_bound(added_only, x, greedy, samples=20_000).accuses(1.0)


def test_bounds_that_do_not_cover_the_neighbours_are_caught() -> None:
    """Local sensitivities at distance whose k-th is not covered by a neighbour's next one."""
    mechanism = SmoothSensitivity(epsilon=ONE, bounds=(Fraction(0), Fraction(T)), grid=ONE, distances=20)
    x, y = (30, (0,) * 20), (30, (T,) * 20)
    assert lower_bound(mechanism, x, y, samples=5_000).accuses(1.0)
    assert isinstance(mechanism.law, Student)
    assert math.isclose(float(mechanism.measure(y)[1]), T, rel_tol=1e-9)
