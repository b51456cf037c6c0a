"""Objective perturbation: what it costs is what the exact law of its minimum loses, and no minimum goes uncertified."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi

from hubbub.audit.exact import Laws
from hubbub.errors import ParameterError
from hubbub.mechanisms import ObjectivePerturbation
from hubbub.mechanisms.objective.convex import Examples, MarginLoss, bound_gradient, gradient, minimum
from hubbub.mechanisms.objective.objective import WITHIN
from hubbub.mechanisms.objective.tilt import Tilt, bend_rounded_up, ridge_for
from hubbub.mechanisms.specimens.objective import examples
from hubbub.privacy.sensitivity import Neighbors, Norm

STEP = Fraction(1, 64)
PAIRS = [((), (1,)), ((), (-1,)), ((1, 1, -1), (1, 1, -1, -1)), ((1,) * 6, (1,) * 5)]
OUTPUTS = tuple(float(place * STEP) for place in range(-600, 601))


def people(count: int, width: int, columns: int = 1, seed: int = 5) -> Examples:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, width))
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1)
    return Examples(
        features=features, signs=rng.choice([-1.0, 1.0], size=(count, columns)), weights=rng.uniform(0.2, 1, size=count)
    )


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("loss", list(MarginLoss))
def test_no_pair_loses_more_than_the_pure_claim(loss: MarginLoss, pair: tuple[tuple[int, ...], ...]) -> None:
    mechanism = ObjectivePerturbation.at(loss=loss, width=1, epsilon=1, step=STEP)
    laws = Laws.of(mechanism, (examples(*pair[0]), examples(*pair[1])), OUTPUTS)
    assert all(abs(total - 1) < 1e-6 for total in laws.totals)
    assert laws.epsilon(0.0) <= float(mechanism.event.epsilon or 0)
    assert mechanism.event.epsilon is not None
    assert Fraction(99, 100) < mechanism.event.epsilon <= 1


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("loss", list(MarginLoss))
def test_no_pair_loses_more_than_the_gaussian_claim(loss: MarginLoss, pair: tuple[tuple[int, ...], ...]) -> None:
    mechanism = ObjectivePerturbation.at(loss=loss, width=1, epsilon=1, delta=Fraction(1, 100), step=STEP)
    laws = Laws.of(mechanism, (examples(*pair[0]), examples(*pair[1])), OUTPUTS)
    assert laws.delta(1.0) <= float(mechanism.event.failure) <= 0.01


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 50), Fraction(1, 2)])
def test_zcdp_holds_at_every_order(rho: Fraction, pair: tuple[tuple[int, ...], ...]) -> None:
    mechanism = ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=1, rho=rho, step=STEP)
    held = mechanism.event.rho
    assert held is not None
    assert rho * Fraction(99, 100) < held <= rho
    laws = Laws.of(mechanism, (examples(*pair[0]), examples(*pair[1])), OUTPUTS)
    for order in (1.01, 1.5, 2.0, 4.0, 16.0, 64.0):
        assert laws.renyi(order) <= order * float(held)


def test_zcdp_is_not_claimed_where_a_unit_has_no_single_direction() -> None:
    for shape in ({"columns": 3}, {"rows": 2}, {"single": False}):
        with pytest.raises(ParameterError, match="several rows"):
            ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=2, rho=1, **shape)


def test_people_with_rows_on_both_sides_stay_within_their_claim() -> None:
    mechanism = ObjectivePerturbation.at(
        loss=MarginLoss.HINGE, width=1, rows=2, single=False, epsilon=1, delta=Fraction(1, 50), step=STEP
    )
    for more in ((1, 1), (1, -1), (-1, -1)):
        laws = Laws.of(mechanism, (examples(1, -1), examples(1, -1, *more)), OUTPUTS)
        assert laws.delta(1.0) <= float(mechanism.event.failure)


def test_the_curve_of_a_falling_loss_is_that_of_gaussian_noise() -> None:
    tilt = Tilt(bend=0.1, pull=0.5)
    exact = quad(
        lambda z: max(0.0, 1 - math.exp(0.9 - z)) * math.exp(-((z - 0.125) ** 2) / 0.5) / math.sqrt(0.5 * math.pi),
        0.9,
        9,
    )[0]
    assert exact < tilt.delta_rounded_up(1.0) < exact * (1 + 1e-6)
    assert tilt.delta_rounded_up(0.0999) == 1.0


@pytest.mark.parametrize("ways", [1, 3, 40])
def test_the_curve_in_several_dimensions_bounds_the_integral(ways: int) -> None:
    tilt = Tilt(bend=0.1, pull=0.2, ways=ways)
    bare = 0.1 + 0.02
    exact = quad(
        lambda r: max(0.0, 1 - math.exp(1.5 - bare - 0.2 * r)) * chi.pdf(r, ways), (1.5 - bare) / 0.2, 60, limit=200
    )[0]
    assert exact < tilt.delta_rounded_up(1.5) < exact * 1.1


def test_the_ridge_keeps_the_determinant_within_its_share() -> None:
    ridge = ridge_for(bend=0.1, trace=0.75, rank=3)
    assert (
        bend_rounded_up(trace=0.75, rank=3, ridge=ridge)
        <= 0.1
        < bend_rounded_up(trace=0.75, rank=3, ridge=ridge * 0.999)
    )


def test_a_ridge_that_is_too_small_is_raised_and_a_larger_one_kept() -> None:
    small = ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=3, epsilon=1, ridge=Fraction(1, 1000))
    assert small.ridge > 2
    assert small.event.epsilon is not None
    assert small.event.epsilon <= 1
    assert ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=3, epsilon=1, ridge=50).ridge == 50


@pytest.mark.parametrize("loss", list(MarginLoss))
@pytest.mark.parametrize("count", [0, 1, 40, 700])
def test_minima_are_certified_and_stationary(loss: MarginLoss, count: int) -> None:
    rows = people(count, 4, 2)
    linear = np.random.default_rng(1).normal(size=(4, 6)) * 30
    found = minimum(loss, rows, ridge=0.5, linear=linear, within=WITHIN)
    assert np.all(bound_gradient(loss, rows, 0.5, linear, found) <= WITHIN)
    slopes = gradient(loss, rows, ridge=0.5, theta=found) + linear
    assert np.abs(slopes).max() < 1e-6


def test_a_certificate_is_not_given_to_what_is_no_minimum() -> None:
    rows, linear = people(30, 3), np.ones((3, 1))
    found = minimum(MarginLoss.LOGISTIC, rows, ridge=1.0, linear=linear, within=WITHIN)
    assert bound_gradient(MarginLoss.LOGISTIC, rows, 1.0, linear, found + 1e-5)[0] > WITHIN


@pytest.mark.parametrize("loss", list(MarginLoss))
def test_slopes_and_bends_are_derivatives(loss: MarginLoss) -> None:
    margins = np.array([-800.0, -3.0, 0.49, 0.7, 1.2, 1.51, 3.0, 800.0])
    nearby = 1e-6
    slopes = (loss.cost(margins + nearby) - loss.cost(margins - nearby)) / (2 * nearby)
    assert np.allclose(loss.slope(margins), slopes, atol=1e-6)
    bends = (loss.slope(margins + nearby) - loss.slope(margins - nearby)) / (2 * nearby)
    assert np.allclose(loss.bend(margins), bends, atol=1e-5)
    assert np.all(loss.slope(margins) <= 0)
    assert np.all(loss.slope(margins) >= -1)
    assert float(loss.bend(np.linspace(-3, 3, 601)).max()) == float(loss.curvature)


def test_several_columns_are_drawn_together() -> None:
    mechanism = ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=2, columns=3, epsilon=100)
    rows = people(50, 2, 3)
    drawn = np.asarray(mechanism.repeat(rows, times=7))
    assert drawn.shape == (7, 2, 3)
    assert mechanism.draw(rows).shape == (2, 3)
    exact = minimum(MarginLoss.LOGISTIC, rows, ridge=float(mechanism.ridge), linear=np.zeros((2, 3)), within=WITHIN)
    assert np.abs(drawn - exact).max() < 1
    with pytest.raises(ParameterError, match="columns"):
        mechanism.draw(people(5, 2, 1))


def test_log_masses_by_density_agree_with_those_of_cells() -> None:
    fine = ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=1, epsilon=1, step=Fraction(1, 1 << 12))
    rows = examples(1, 1, -1)
    for output in (-1.0, 0.0, 0.5):
        density = fine.log_masses(rows, np.array([[[output]]]))[0]
        assert density == pytest.approx(fine.log_mass(rows, output), abs=1e-3)


def test_rows_apart_count_by_weight_and_length() -> None:
    one, more = examples(1, 1), examples(1, 1, -1)
    assert one.apart(more) == more.apart(one) == 1
    assert one.apart(one) == 0
    long = Examples(features=np.array([[2.0]]), signs=np.ones((1, 1)), weights=np.ones(1))
    assert long.apart(examples()) > Fraction(19, 10)


def test_statements_and_refusals() -> None:
    mechanism = ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=2, rows=3, single=False, epsilon=1)
    assert mechanism.needs.norm is Norm.ROWS
    assert mechanism.needs.sensitivity == 3
    assert mechanism.error(beta=0.01) > mechanism.error(beta=0.1) > 0
    with pytest.raises(ParameterError):
        ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=2)
    with pytest.raises(ParameterError):
        ObjectivePerturbation.at(loss=MarginLoss.LOGISTIC, width=2, epsilon=1, rho=1)
    with pytest.raises(ParameterError, match="added or removed"):
        ObjectivePerturbation(
            loss=MarginLoss.HINGE, width=1, ridge=Fraction(1), scale=Fraction(1), cover=Fraction(1),
            neighbors=Neighbors.REPLACE_ONE,
        )  # fmt: skip
    with pytest.raises(ParameterError):
        Examples(features=np.ones((2, 1)), signs=np.ones((1, 1)), weights=np.ones(2))
