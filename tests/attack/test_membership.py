"""Tracing: exact means give people away where attributes are many, as the law says; noisy ones do not."""

import math

import numpy as np
import pytest

from hubbub.attack.membership import (
    INNER_PRODUCT,
    LIKELIHOOD_RATIO,
    advantage,
    against_model,
    examples,
    population,
    recognise,
    scores,
    tracing,
)
from hubbub.errors import ParameterError


class TestTracing:
    def test_exact_means_of_many_attributes(self) -> None:
        inside, outside, shares = population(people=100, strangers=2000, attributes=2000)
        found = tracing(inside, outside, inside.mean(axis=0), shares=shares, target="means")
        assert found.works
        # The score of a member is √(d/n) = 4.5 deviations higher: Φ(4.5 − 2.33) = 98.5%, less six deviations of 100.
        assert found.numbers["power"] > 0.9
        assert "inner product" in str(found)

    def test_few_attributes_tell_little(self) -> None:
        inside, outside, shares = population(people=400, strangers=2000, attributes=40)
        found = tracing(inside, outside, inside.mean(axis=0), shares=shares, target="means")
        assert not found.works

    def test_the_means_of_others_tell_nothing(self) -> None:
        inside, outside, shares = population(people=100, strangers=2000, attributes=2000)
        others, _, _ = population(people=100, strangers=1, attributes=2000, seed=1)
        found = tracing(inside, outside, others.mean(axis=0), shares=shares, target="means")
        assert not found.works
        assert found.numbers["lead"] < 0.3

    def test_the_likelihood_ratio_by_hand(self) -> None:
        rows, published, shares = np.array([[1, 0]]), np.array([0.75, 0.5]), np.array([0.5, 0.25])
        told = scores(rows, published, shares, statistic=LIKELIHOOD_RATIO)
        assert told[0] == pytest.approx(math.log(0.75 / 0.5) + math.log(0.5 / 0.75))
        told = scores(rows, published, shares, statistic=INNER_PRODUCT)
        assert told[0] == pytest.approx(0.5 * 0.25 - 0.25 * 0.25)

    def test_an_unknown_statistic(self) -> None:
        with pytest.raises(ParameterError, match="statistic"):
            scores(np.zeros((1, 2)), np.zeros(2), np.full(2, 0.5), statistic="a hunch")


class TestModel:
    def test_a_model_that_remembers(self) -> None:
        taught, others = examples(people=60, strangers=500, columns=120)
        weights = np.linalg.lstsq(taught[0], taught[1].astype(float), rcond=None)[0]
        found = against_model(lambda x, y: (x @ weights - y) ** 2, taught, others, target="a model")
        assert found.works
        assert found.numbers["power"] == 1.0

    def test_a_model_that_knows_nothing(self) -> None:
        taught, others = examples(people=60, strangers=500, columns=120)
        found = against_model(lambda x, y: np.ones(len(y)), taught, others, target="a model")
        assert not found.works
        assert found.numbers["power"] == 0


def test_the_bar_is_above_all_but_the_share() -> None:
    outside = np.arange(100.0)
    assert recognise(np.array([98.5, 99.5, 98.0]), outside, wrong=0.01) == (2 / 3, 0.01)
    assert recognise(np.array([99.0]), outside, wrong=0.001) == (0.0, 0.0)
    with pytest.raises(ParameterError, match="wrong"):
        recognise(outside, outside, wrong=1.0)


def test_the_best_lead() -> None:
    assert advantage(np.array([1.0, 2, 3, 4]), np.array([0.0, 0, 0, 2.5])) == pytest.approx(0.75)
    assert advantage(np.zeros(3), np.zeros(5)) == 0
