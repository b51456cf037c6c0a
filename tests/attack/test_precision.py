"""Doubles give the truth away; whole numbers do not."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from hubbub.attack.made_up import MadeUp
from hubbub.attack.precision import NUMPY, TEXTBOOK, floating_point, grain, possible, precision, whole
from hubbub.cli.lab.targets import counts
from hubbub.errors import ParameterError

ANSWERS = 200


@pytest.mark.parametrize("scale", [1.0, 2.0, 10.0])
class TestDoubles:
    def test_the_textbooks(self, scale: float) -> None:
        told = [(truth + MadeUp(3, f"{truth}").laplace(ANSWERS, scale)).tolist() for truth in (0, 1)]
        found = floating_point(
            told, truths=(0, 1), reaches=partial(possible, scale=scale, sampler=TEXTBOOK), target="doubles"
        )
        assert found.works
        assert found.numbers["right"] > 0.6
        assert found.numbers["wrong"] == 0

    def test_numpys(self, scale: float) -> None:
        source = np.random.default_rng(5)
        told = [source.laplace(truth, scale, ANSWERS).tolist() for truth in (0, 1)]
        for world, truth in enumerate((0.0, 1.0)):  # whatever was drawn is possible: the sampler is NumPy's own
            assert all(possible(one, truth, scale=scale, sampler=NUMPY) for one in told[world])
        reaches = partial(possible, scale=scale, sampler=NUMPY)
        found = floating_point(told, truths=(0, 1), reaches=reaches, target="NumPy")
        assert found.works
        assert found.numbers["right"] > 0.6


def test_how_fine_the_last_bit_is() -> None:
    told = [(truth + MadeUp(4, f"{truth}").laplace(ANSWERS, 1.0)).tolist() for truth in (0, 1)]
    found = precision(told, truths=(0, 1), target="doubles")
    assert found.works
    assert found.numbers["right"] > 0.1
    assert found.numbers["wrong"] == 0


def test_exact_noise_says_nothing() -> None:
    told = [counts(truth, epsilon=Fraction(1), times=100) for truth in (0, 1)]
    for found in (
        floating_point(told, truths=(0, 1), reaches=whole, target="ours"),
        precision(told, truths=(0, 1), target="ours"),
    ):
        assert not found.works
        assert found.numbers["right"] == found.numbers["wrong"] == 0
        assert "say nothing" in found.verdict


def test_grains() -> None:
    assert grain(1.0) == 1
    assert grain(6.0) == 2
    assert grain(0.75) == 0.25
    assert grain(-0.1) == 2.0**-55
    assert grain(0.0) == math.inf


def test_what_is_out_of_reach() -> None:
    assert not possible(100.0, 0.0, scale=1.0)
    assert not whole(1.5, 1.0)
    assert whole(-3.0, 1.0)


def test_two_lists_are_needed() -> None:
    with pytest.raises(ParameterError, match="answers"):
        precision([[1.0]], truths=(0, 1), target="one")
