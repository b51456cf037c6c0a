"""Means and medians of block outputs: snapping, sensitivities, and what a wild block can do."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.errors import MisfitError, ParameterError
from hubbub.gate.secret import Facts
from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.mechanisms.local_sensitivity.subsample import BlockMean, BlockMedian, snap
from hubbub.privacy.sensitivity import Neighbors, Norm, Sensitivity
from hubbub.testing.replay import replayed

ONE = Fraction(1)
TEN = (Fraction(0), Fraction(10))


@pytest.mark.parametrize(
    ("output", "steps"),
    [
        (0, 0), (10, 10), (-5, 0), (11.5, 10), (2.5, 3), (2.4999, 2), (3.5, 4), (-0.0, 0), (10**400, 10),
        (math.nan, 5), (math.inf, 5), (-math.inf, 5), (None, 5), ("3", 5), (1e308, 10), (True, 1),
    ],
)  # fmt: skip
def test_outputs_are_clamped_and_snapped(output: Any, steps: int) -> None:
    assert snap(output, TEN, ONE, 10) == steps


def test_a_grid_that_does_not_end_on_the_bound_stays_within() -> None:
    mean = BlockMean(epsilon=ONE, bounds=(Fraction(0), Fraction(5, 2)), grid=ONE, blocks=1)
    assert mean.top == 2
    assert mean.steps([2.5]) == mean.steps([99.0]) == 2


@pytest.mark.parametrize(("neighbors", "moved"), [(Neighbors.ADD_REMOVE, 1), (Neighbors.REPLACE_ONE, 2)])
def test_the_mean_is_noised_for_one_block_or_two(neighbors: Neighbors, moved: int) -> None:
    mean = BlockMean(epsilon=ONE, bounds=TEN, grid=Fraction(1, 2), blocks=4, neighbors=neighbors)
    assert mean.event == Geometric(epsilon=ONE, sensitivity=20 * moved, neighbors=neighbors).event
    assert mean.needs.sensitivity == moved
    assert mean.needs.norm is Norm.BLOCKS
    assert mean.error(beta=0.05) == mean._noisy.error(beta=0.05) / 8


def test_the_default_grid_has_a_million_steps() -> None:
    assert BlockMean(epsilon=ONE, bounds=TEN, blocks=4).top == 1 << 20


def test_the_mean_is_the_mean() -> None:
    mean = BlockMean(epsilon=Fraction(10**6), bounds=TEN, grid=Fraction(1, 4), blocks=4)
    with replayed(1):
        assert mean.draw([1.0, 2.0, None, 12.0]) == pytest.approx((1 + 2 + 5 + 10) / 4, abs=0.01)
    assert mean.value_of(mean.steps([1.0, 2.0, 3.0, 4.0])) == 2.5
    assert mean.log_mass([1.0, 2.0, 3.0, 4.0], 2.5) == pytest.approx(mean._noisy.log_mass(40, 40))
    many = mean.repeat([1.0, 2.0, 3.0, 4.0], times=100)
    assert np.all(np.abs(many - 2.5) < 0.01)


def test_the_median_does_not_mind_wild_blocks() -> None:
    """With 99 blocks and ε = 2, 20 wild ones cannot take it out of the others' range (false alarm below 1e-6)."""
    median = BlockMedian(epsilon=Fraction(2), bounds=(Fraction(0), Fraction(100)), grid=ONE, blocks=99)
    outputs = [50.0 + place % 3 for place in range(79)] + [1e300] * 20
    assert set(median.repeat(outputs, times=200).tolist()) <= {50.0, 51.0, 52.0}


@pytest.mark.parametrize(("neighbors", "rate"), [(Neighbors.ADD_REMOVE, 2), (Neighbors.REPLACE_ONE, 4)])
def test_the_median_is_calibrated_for_replaced_outputs(neighbors: Neighbors, rate: int) -> None:
    median = BlockMedian(epsilon=ONE, bounds=TEN, grid=ONE, blocks=3, neighbors=neighbors)
    assert median._inner.rate == Fraction(1, rate)
    assert median.event.neighbors is neighbors
    assert median.event.epsilon == 1
    assert sum(math.exp(median.log_mass([1.0, 2.0, 3.0], step)) for step in range(11)) == pytest.approx(1)


@pytest.mark.parametrize("mechanism", [BlockMean, BlockMedian])
def test_what_makes_no_sense_is_refused(mechanism: Any) -> None:
    good: dict[str, Any] = {"epsilon": ONE, "bounds": TEN, "blocks": 3}
    for name, value in (("epsilon", 0), ("bounds", (1, 1)), ("bounds", (2, 1)), ("blocks", 0), ("grid", 0)):
        with pytest.raises(ParameterError):
            mechanism(**{**good, name: value})
    with pytest.raises(ValueError, match="3 outputs"):
        mechanism(**good).draw([1.0, 2.0])


def test_the_gate_asks_for_blocks() -> None:
    mean = BlockMean(epsilon=ONE, bounds=TEN, blocks=3)
    Facts(account="a", sensitivity=Sensitivity(blocks=1), grid=None).check_fit(mean)
    with pytest.raises(MisfitError):
        Facts(account="a", sensitivity=Sensitivity(blocks=2), grid=None).check_fit(mean)
    with pytest.raises(MisfitError):
        Facts(account="a", sensitivity=Sensitivity(rows=1), grid=None).check_fit(mean)
