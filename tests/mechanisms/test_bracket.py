"""A quantile between two ends: they hold the exact one whatever the values are, and what one unit moves."""

import itertools
import math
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.errors import ParameterError
from hubbub.mechanisms import QuantileBracket
from hubbub.mechanisms.selection import bracket
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.privacy.sensitivity import Neighbors

ONE, TOP, DRAWS, FALSE_ALARM = Fraction(1), 1000, 2000, 1e-6


def make(**arguments: Any) -> QuantileBracket:
    return QuantileBracket(**{"epsilon": ONE, "bounds": (0, TOP), "grid": ONE, **arguments})


DATA: dict[str, list[int]] = {
    "one": [700],
    "three": [5, 5, 999],
    "crowd": [400] * 5000,
    "two crowds": [0] * 300 + [TOP] * 301,
    "a crowd beside the end": [TOP - 1] * 2000 + [3],
    "even": list(range(1001)) * 2,
    "a lone middle": [0] * 40 + [500] + [TOP] * 40,
}


def misses(mechanism: QuantileBracket, values: list[int], q: Fraction) -> int:
    """Count answers whose ends do not hold a value that is a q-quantile."""
    ordered = sorted(values)
    least, most = ordered[math.ceil(q * len(values)) - 1], ordered[min(len(values) - 1, math.floor(q * len(values)))]
    drawn = mechanism.repeat(values, times=DRAWS)
    return sum(low > most or high < least for _, low, high in drawn)


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 50)])
@pytest.mark.parametrize("name", DATA)
def test_ends_hold_the_quantile_whatever_the_values_are(name: str, q: Fraction) -> None:
    assert misses(make(q=q), DATA[name], q) <= binom.ppf(1 - FALSE_ALARM, DRAWS, 0.05)


def test_without_values_on_the_bounds_few_values_are_not_held() -> None:
    """A twin whose ends aim as far away and no more: of one value it knows nothing, and says that it does."""
    with mock.patch.object(bracket, "_add_values", lambda held, step, many: held):
        assert misses(make(), DATA["one"], Fraction(1, 2)) > binom.ppf(1 - FALSE_ALARM, DRAWS, 0.05)


def test_nothing_is_held_by_everything() -> None:
    drawn = np.array(make(epsilon=Fraction(20)).repeat([], times=200))
    assert (drawn[:, 1] == 0).mean() > 0.9
    assert (drawn[:, 2] == TOP).mean() > 0.9


def test_the_ends_of_many_values_are_close() -> None:
    mechanism = make(q=Fraction(1, 4))
    aside = mechanism.aside
    assert aside == math.ceil(math.log(2 * 1001 / 0.05) * 3 * 2 * 0.75)
    values = np.repeat(np.arange(1001), 10)
    drawn = np.array(mechanism.repeat(values, times=300))
    off = np.abs(drawn - [250, 250 - aside / 10, 250 + aside / 10])
    assert np.quantile(off, 0.9) < 5


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("rows", [1, 2])
def test_one_unit_moves_the_law_by_no_more_than_is_claimed(neighbors: Neighbors, rows: int) -> None:
    """Exact masses of all answers, for random small data and every way to add or replace a unit's rows."""
    mechanism = make(bounds=(0, 3), rows=rows, neighbors=neighbors, q=Fraction(1, 3), epsilon=Fraction(2))
    answers = list(itertools.product(range(4), repeat=3))
    rng, most = np.random.default_rng(4), 0.0
    for _ in range(12):
        held = rng.integers(0, 4, rng.integers(0, 30)).tolist()
        laws = []
        for own in itertools.combinations_with_replacement(range(4), rows):
            laws.append([mechanism.log_mass(held + list(own), answer) for answer in answers])
        if neighbors is Neighbors.ADD_REMOVE:
            laws = [[mechanism.log_mass(held, answer) for answer in answers], *laws]
            pairs = [(laws[0], other) for other in laws[1:]]
        else:
            pairs = list(itertools.combinations(laws, 2))
        most = max(most, *(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True)))
    assert 0.3 < most <= 2 + 1e-9


def test_masses_are_those_of_draws() -> None:
    mechanism = make(bounds=(0, 2), epsilon=Fraction(3))
    values = [0, 1, 1, 2]
    answers = list(itertools.product(range(3), repeat=3))
    masses = [math.exp(mechanism.log_mass(values, answer)) for answer in answers]
    assert sum(masses) == pytest.approx(1)
    counted = StepCounts.of([(0, 1), (1, 2), (2, 1)])
    drawn = [tuple(int(one) for one in mechanism.draw(counted)) for _ in range(600)]
    repeated = [tuple(int(one) for one in row) for row in mechanism.repeat(values, times=20_000)]
    for found in (drawn, repeated):
        for answer, mass in zip(answers, masses, strict=True):
            off = abs(found.count(answer) / len(found) - mass)
            assert off <= 6 * math.sqrt(mass * (1 - mass) / len(found)) + 1 / len(found)


def test_what_it_takes_and_costs() -> None:
    mechanism = make(epsilon=Fraction(3))
    assert mechanism.event.epsilon == 3
    assert mechanism.event.rho == 3 * Fraction(1, 8)
    for wrong in ({"q": 0}, {"q": 1}, {"beta": 0}, {"beta": 2}):
        with pytest.raises(ParameterError):
            make(**wrong)
