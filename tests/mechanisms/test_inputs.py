"""Bad parameters of every mechanism: one sentence with a code, before anything is drawn."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import mechanisms
from hubbub.errors import ParameterError
from hubbub.mechanisms import (
    Exponential,
    Extreme,
    Gaussian,
    GaussianThreshold,
    Geometric,
    GridGaussian,
    IntervalExponential,
    Laplace,
    LaplaceThreshold,
    NoisyMax,
    ObjectivePerturbation,
    OptimalKeys,
    PerGroup,
    PermuteAndFlip,
    Price,
    ProposedQuantile,
    ProposeTestRelease,
    Quantile,
    QuantileBracket,
    Quantiles,
    RandomizedResponse,
    Resolution,
    SmoothQuantile,
    SmoothSensitivity,
    SparseFirst,
    SparseLargest,
    SparsePriority,
    SparseSample,
    SparseThreshold,
    SparseVector,
    StableMode,
    Staged,
    TopK,
    TruncatedGeometric,
    TruncatedThreshold,
    WeightedGaussianThreshold,
    select_keys,
)
from hubbub.mechanisms.objective.convex import MarginLoss
from hubbub.mechanisms.specimens.staged import CountThenLook
from hubbub.noise.entropy import substitute
from tests.noise.sources import Untouchable

ONE, TENTH = Fraction(1), Fraction(1, 10)
NOT_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, True, "1", None, 1j, np.bool_(True), [1], np.float64("nan")]
NOT_POSITIVE: list[Any] = [*NOT_NUMBERS, -1, 0, 0.0, float("1e-400")]
NOT_COUNTS: list[Any] = [*NOT_NUMBERS, 0, -1, 1.0, Fraction(3, 2), 2.5]
NOT_PROBABILITIES: list[Any] = [*NOT_POSITIVE, 1, 1.0, 1.5, Fraction(3, 2)]


@pytest.fixture(autouse=True)
def _nothing_is_drawn() -> Iterator[None]:
    with substitute(Untouchable()):
        yield


def quantiles(**arguments: Any) -> Quantiles:
    return Quantiles(**{"targets": (Fraction(1, 2),), **arguments})


def geometric_end(**arguments: Any) -> TruncatedGeometric:
    return TruncatedGeometric(**{"low": 0, "high": 5, **arguments})


MADE: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Geometric": (Geometric, {"epsilon": ONE}),
    "TruncatedGeometric": (geometric_end, {"epsilon": ONE}),
    "Laplace": (Laplace, {"epsilon": ONE, "sensitivity": ONE}),
    "Gaussian": (Gaussian, {"sigma": ONE}),
    "Gaussian.at": (Gaussian.at, {"epsilon": ONE, "delta": TENTH}),
    "Gaussian.at_rho": (Gaussian.at_rho, {"rho": ONE}),
    "GridGaussian": (GridGaussian, {"rho": ONE, "sensitivity": ONE}),
    "Exponential": (Exponential, {"epsilon": ONE}),
    "PermuteAndFlip": (PermuteAndFlip, {"epsilon": ONE}),
    "NoisyMax": (NoisyMax, {"epsilon": ONE}),
    "TopK": (TopK, {"epsilon": ONE}),
    "SparseVector": (SparseVector, {"epsilon": ONE, "threshold": 0}),
    "IntervalExponential": (IntervalExponential, {"epsilon": ONE, "bounds": (0, 1)}),
    "Quantile": (Quantile, {"epsilon": ONE, "bounds": (0, 1)}),
    "Quantiles": (quantiles, {"epsilon": ONE, "bounds": (0, 1)}),
    "QuantileBracket": (QuantileBracket, {"epsilon": ONE, "bounds": (0, 1)}),
    "Extreme": (Extreme, {"epsilon": ONE, "bounds": (0, 1)}),
    "PerGroup": (PerGroup, {"mechanism": Geometric(epsilon=ONE)}),
    "SmoothQuantile": (SmoothQuantile, {"epsilon": ONE, "bounds": (0, 1)}),
    "SmoothSensitivity": (SmoothSensitivity, {"epsilon": ONE, "bounds": (0, 1), "distances": 2}),
    "ProposedQuantile": (ProposedQuantile, {"epsilon": ONE, "delta": TENTH, "bounds": (0, 1), "proposed": ONE}),
    "ProposeTestRelease": (
        ProposeTestRelease,
        {"epsilon": ONE, "delta": TENTH, "bounds": (0, 1), "proposed": ONE, "distances": 2},
    ),
    "StableMode": (StableMode, {"epsilon": ONE, "delta": TENTH}),
    "Price": (Price, {"epsilon": ONE, "prices": (1, 2)}),
    "RandomizedResponse": (RandomizedResponse, {"epsilon": ONE}),
    "LaplaceThreshold": (LaplaceThreshold, {"epsilon": ONE, "delta": TENTH}),
    "GaussianThreshold": (GaussianThreshold, {"epsilon": ONE, "delta": TENTH}),
    "TruncatedThreshold": (TruncatedThreshold, {"epsilon": ONE, "delta": TENTH}),
    "OptimalKeys": (OptimalKeys, {"epsilon": ONE, "delta": TENTH}),
    "WeightedGaussianThreshold": (WeightedGaussianThreshold, {"epsilon": ONE, "delta": TENTH}),
    "select_keys": (select_keys, {"epsilon": ONE, "delta": TENTH}),
    "Resolution": (Resolution, {"size": 8, "choosing": TENTH, "epsilon": ONE}),
    "SparseThreshold": (SparseThreshold, {"epsilon": ONE, "size": 9, "threshold": 3}),
    "SparseLargest": (SparseLargest, {"epsilon": ONE, "size": 9, "count": 2}),
    "SparseSample": (SparseSample, {"epsilon": ONE, "size": 9, "level": 1}),
    "SparsePriority": (SparsePriority, {"epsilon": ONE, "size": 9, "count": 2}),
    "SparseFirst": (SparseFirst, {"vector": SparseVector(epsilon=ONE, threshold=0), "size": 9}),
    "ObjectivePerturbation": (ObjectivePerturbation.at, {"epsilon": ONE, "loss": MarginLoss.HINGE, "width": 2}),
    "Staged": (Staged, {"epsilon": ONE, "plan": CountThenLook()}),
}
POSITIVE = {
    "epsilon": [name for name, (_, given) in MADE.items() if "epsilon" in given],
    "sensitivity": [
        "Laplace",
        "GridGaussian",
        "Exponential",
        "PermuteAndFlip",
        "NoisyMax",
        "TopK",
        "IntervalExponential",
    ],
    "score_grid": ["IntervalExponential"],
    "grid": ["Laplace", "GridGaussian", "Exponential", "PermuteAndFlip", "NoisyMax", "TopK"],
    "rho": ["Gaussian.at_rho", "GridGaussian"],
    "choosing": ["Resolution"],
    "proposed": ["ProposedQuantile", "ProposeTestRelease"],
    "sigma": ["Gaussian"],
    "sensitivity_squared": ["Gaussian", "Gaussian.at_rho"],
}
COUNTS = {
    "sensitivity": ["Geometric", "TruncatedGeometric", "Gaussian.at", "SparseVector", "SparseThreshold"],
    "count": ["SparseVector", "SparseLargest", "SparsePriority"],
    "size": ["Resolution", "SparseThreshold", "SparseLargest", "SparseSample", "SparsePriority", "SparseFirst"],
    "threshold": ["SparseThreshold"],
    "least": ["Resolution"],
    "groups": ["PerGroup"],
    "coordinates": ["Laplace", "GridGaussian", "Gaussian.at"],
    "rows": [
        "Quantile",
        "Quantiles",
        "QuantileBracket",
        "Extreme",
        "IntervalExponential",
        "SmoothQuantile",
        "SmoothSensitivity",
        "ProposedQuantile",
        "ProposeTestRelease",
        "Price",
        "Resolution",
        "Staged",
    ],
    "distances": ["SmoothSensitivity", "ProposeTestRelease"],
    "k": ["TopK"],
    "keys_per_unit": [
        "LaplaceThreshold",
        "GaussianThreshold",
        "TruncatedThreshold",
        "OptimalKeys",
        "select_keys",
        "StableMode",
    ],
    "weight_bits": ["WeightedGaussianThreshold"],
}
PROBABILITIES = {
    "delta": [name for name, (_, given) in MADE.items() if "delta" in given],
    "q": ["Quantile", "SmoothQuantile", "ProposedQuantile"],
}


def pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, parameter) for parameter, names in table.items() for name in names]


def expect_refused(call: Callable[[], Any], name: str | None = None) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith("[invalid-parameter] ")
    assert " must be " in message
    assert message.endswith(" instead.")
    assert "\n" not in message
    if name is not None:
        assert caught.value.operands["name"] == name


def made(name: str, **more: Any) -> Any:
    make, arguments = MADE[name]
    return make(**{**arguments, **more})


def test_every_public_mechanism_is_tried() -> None:
    public = {name for name in mechanisms.__all__ if name not in ("Mechanism", "Needs", "Nonzeros")}
    assert public <= set(MADE)
    for name in MADE:
        made(name)


@pytest.mark.parametrize(("name", "parameter"), pairs(POSITIVE))
@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=repr)
def test_positive_numbers(name: str, parameter: str, bad: Any) -> None:
    expect_refused(lambda: made(name, **{parameter: bad}), parameter)


@pytest.mark.parametrize(("name", "parameter"), pairs(COUNTS))
@pytest.mark.parametrize("bad", NOT_COUNTS, ids=repr)
def test_counts(name: str, parameter: str, bad: Any) -> None:
    expect_refused(lambda: made(name, **{parameter: bad}), parameter)


@pytest.mark.parametrize(("name", "parameter"), pairs(PROBABILITIES))
@pytest.mark.parametrize("bad", NOT_PROBABILITIES, ids=repr)
def test_probabilities(name: str, parameter: str, bad: Any) -> None:
    expect_refused(lambda: made(name, **{parameter: bad}), parameter)


@pytest.mark.parametrize(
    "name", ["Geometric", "NoisyMax", "LaplaceThreshold", "TruncatedThreshold", "TruncatedGeometric", "SparseVector"]
)
@pytest.mark.parametrize("epsilon", [Fraction(1 << 22), Fraction(1, 1 << 62)])
def test_scales_that_no_sampler_takes_are_refused_before_the_charge(name: str, epsilon: Fraction) -> None:
    expect_refused(lambda: made(name, epsilon=epsilon))


@pytest.mark.parametrize("bad", NOT_COUNTS, ids=repr)
def test_sensitivities_on_several_coordinates(bad: Any) -> None:
    expect_refused(lambda: made("Gaussian.at", sensitivity=bad, coordinates=2), "sensitivity")


def test_sigmas_that_no_sampler_takes() -> None:
    for sigma in (Fraction(1, 1 << 21), Fraction(1 << 61)):
        expect_refused(lambda sigma=sigma: Gaussian(sigma=sigma), "sigma")  # type: ignore[misc]
    expect_refused(lambda: Gaussian.at_rho(rho=Fraction(1, 1 << 130)), "sigma")


@pytest.mark.parametrize("name", POSITIVE["epsilon"])
def test_deltas_and_epsilons_may_be_floats_and_are_kept_exactly(name: str) -> None:
    mechanism = made(name, epsilon=0.3)
    if name not in ("Gaussian.at", "ObjectivePerturbation"):  # these keep what the ε has bought
        assert (type(mechanism.epsilon), mechanism.epsilon) == (Fraction, Fraction(0.3))


def test_rho_may_be_a_float_and_is_kept_exactly() -> None:
    rho = made("GridGaussian", rho=0.3).rho
    assert (type(rho), rho) == (Fraction, Fraction(0.3))


@pytest.mark.parametrize(
    "kind", [LaplaceThreshold, GaussianThreshold, TruncatedThreshold, OptimalKeys, WeightedGaussianThreshold]
)
def test_deltas_too_small_for_thresholds(kind: Any) -> None:
    expect_refused(lambda: kind(epsilon=ONE, delta=Fraction(1, (1 << 100) + 1)), "delta")
    expect_refused(lambda: kind(epsilon=ONE, delta=Fraction(1, 10**400)), "delta")
    assert kind(epsilon=ONE, delta=Fraction(1, 1 << 100)).event.failure <= Fraction(1, 1 << 100)
    expect_refused(lambda: kind(epsilon=ONE, delta=TENTH, keys_per_unit=(1 << 20) + 1), "keys_per_unit")


class TestRanges:
    @pytest.mark.parametrize(
        "bounds",
        [
            (0, math.inf),
            (-math.inf, 0),
            (math.nan, 1),
            (1, 1),
            (2, 1),
            (0,),
            (0, 1, 2),
            5,
            None,
            "01",
            ("0", "1"),
            (True, 2),
            (0, 10**400),
            (-1.7e308, 1.7e308),
            (0, Fraction(1, 10**320)),
        ],
        ids=repr,
    )
    def test_bounds(self, bounds: Any) -> None:
        expect_refused(lambda: Quantile(epsilon=ONE, bounds=bounds), "bounds")
        expect_refused(lambda: quantiles(epsilon=ONE, bounds=bounds), "bounds")

    @pytest.mark.parametrize(
        "grid", [bad for bad in NOT_POSITIVE if bad is not None] + [2, Fraction(1, 1 << 61)], ids=repr
    )
    def test_grids(self, grid: Any) -> None:
        expect_refused(lambda: made("Quantile", grid=grid), "grid")

    def test_grids_at_the_edge(self) -> None:
        assert made("Quantile", grid=ONE).top == 1
        assert made("Quantile", grid=Fraction(1, (1 << 61) - 1)).top == (1 << 61) - 1

    def test_numbers_at_the_edge_of_floats(self) -> None:
        least, most = Fraction(1, 1 << 1000), 1 << 1023
        assert made("Quantile", bounds=(0, 9 * least), grid=least).top == 9
        expect_refused(lambda: made("Quantile", bounds=(0, 9 * least), grid=Fraction(1, (1 << 1000) + 1)), "bounds")
        wide = {"grid": 1 << 1000}
        assert made("Quantile", bounds=(-most + 1, most - 1), **wide).top == (1 << 24) - 1
        expect_refused(lambda: made("Quantile", bounds=(0, most), **wide), "bounds")
        expect_refused(lambda: made("Quantile", bounds=(-most, 0), **wide), "bounds")

    @pytest.mark.parametrize(
        "targets", [(), (0.5, 0.5), (0.6, 0.4), (0,), (1,), (0.5, math.nan), (True,), ("0.5",)], ids=repr
    )
    def test_targets(self, targets: Any) -> None:
        expect_refused(lambda: made("Quantiles", targets=targets), "targets")

    @pytest.mark.parametrize("bits", [-1, 1.0, 62, None], ids=repr)
    def test_tie_bits(self, bits: Any) -> None:
        expect_refused(lambda: quantiles(epsilon=ONE, bounds=(0, 1), tie_bits=bits), "tie_bits")

    @pytest.mark.parametrize(
        ("low", "high"), [(0, 0), (1, 0), (0.0, 5), (0, math.inf), (None, 5), (0, (1 << 62) + 1), (-(1 << 62) - 1, 0)]
    )
    def test_ends(self, low: Any, high: Any) -> None:
        expect_refused(lambda: TruncatedGeometric(epsilon=ONE, low=low, high=high))

    def test_ends_at_the_edge(self) -> None:
        assert TruncatedGeometric(epsilon=ONE, low=-(1 << 62), high=1 << 62).high == 1 << 62
        assert TruncatedGeometric(epsilon=ONE, low=0, high=1).high == 1


class TestOthers:
    @pytest.mark.parametrize("prior", [(0, 0), (-1, 2), (0.5, 1), (True, 1), ((1 << 128) + 1, 0), ()], ids=repr)
    def test_priors(self, prior: Any) -> None:
        expect_refused(lambda: Exponential(epsilon=ONE, prior=prior), "prior")

    def test_a_prior_at_the_edge(self) -> None:
        assert Exponential(epsilon=ONE, prior=(1 << 128, 0)).prior == (1 << 128, 0)

    @pytest.mark.parametrize("categories", [1, 0, -1, 2.0, True, None], ids=repr)
    def test_categories(self, categories: Any) -> None:
        expect_refused(lambda: RandomizedResponse(epsilon=ONE, categories=categories), "categories")
        expect_refused(
            lambda: RandomizedResponse.with_truth(truth=Fraction(9, 10), categories=categories), "categories"
        )

    @pytest.mark.parametrize("bad", [*NOT_POSITIVE, 1, 2], ids=repr)
    def test_betas(self, bad: Any) -> None:
        for name in MADE:
            if name not in ("WeightedGaussianThreshold", "Resolution", "Staged"):  # the last two state no error
                expect_refused(lambda name=name: made(name).error(beta=bad), "beta")  # type: ignore[misc]
        expect_refused(lambda: made("WeightedGaussianThreshold").error(beta=bad), "beta")

    def test_a_weighted_key_is_shown_more_often_than_not(self) -> None:
        expect_refused(lambda: made("WeightedGaussianThreshold").error(beta=0.5), "beta")
        made("WeightedGaussianThreshold").error(beta=math.nextafter(0.5, 0))

    @pytest.mark.parametrize("bad", [0, -1, 1.5, None], ids=repr)
    def test_what_errors_are_asked_for(self, bad: Any) -> None:
        for name in ("Geometric", "Laplace", "Gaussian", "GridGaussian"):
            expect_refused(lambda name=name: made(name).error(beta=0.1, dimension=bad), "dimension")  # type: ignore[misc]
        for name in ("Exponential", "PermuteAndFlip", "NoisyMax", "TopK"):
            expect_refused(lambda name=name: made(name).error(beta=0.1, candidates=bad), "candidates")  # type: ignore[misc]
        expect_refused(lambda: made("RandomizedResponse").error(beta=0.1, reports=bad), "reports")
        expect_refused(lambda: made("RandomizedResponse").deviation(reports=bad), "reports")
        expect_refused(lambda: made("RandomizedResponse").deviation(reports=5, share=2), "share")

    @pytest.mark.parametrize(
        "bad", [1.5, None, "1", True, [1.5], np.array([0.5]), object()], ids=lambda bad: type(bad).__name__
    )
    def test_values_of_the_wrong_kind(self, bad: Any) -> None:
        for name in ("Geometric", "TruncatedGeometric", "Gaussian"):
            expect_refused(lambda name=name: made(name).draw(bad), "value")  # type: ignore[misc]

    def test_neighbours_that_are_none(self) -> None:
        for name in ("Geometric", "Gaussian", "Laplace"):
            expect_refused(lambda name=name: made(name, neighbors="anyone"), "neighbors")  # type: ignore[misc]


@pytest.mark.parametrize("name", [name for name in MADE if "." not in name])
def test_mechanisms_are_frozen(name: str) -> None:
    mechanism = made(name)
    with pytest.raises((AttributeError, TypeError)):
        mechanism.epsilon = Fraction(100)
    with pytest.raises((AttributeError, TypeError)):
        mechanism.anything = 1
