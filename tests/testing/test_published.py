"""Strategies as subjects of an audit: their pairs are neighbours, wrong reaches are told, and counting can see them.

Every statistical test has a false-alarm rate below 1e-6.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

from hubbub import publish
from hubbub.audit.chance import Chance
from hubbub.audit.examine import Settings, examine
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects.strategies import OfStrategy, gaussian_delta, worst_units
from hubbub.audit.subjects.strategy_cases import strategies
from hubbub.mechanisms import Gaussian
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish.strategies.flat import Flat
from hubbub.publish.strategies.hierarchy import Hierarchy
from hubbub.publish.strategies.layer import CellLayer, Shape
from hubbub.publish.strategies.strategy import NoisyLayer, OfCells, Prepared, Strategy
from hubbub.publish.terms import Contribution, Noise, Terms
from tests.planted.gallery import GALLERY

SUBJECTS = {one.title: one for one in strategies()}
PURE = ("flat", "hierarchy", "matrix", "cube", "count-sketch", "fourier")
SEVERAL = Contribution(cells=3, each=2, total=5)
MANY = Settings(samples=80_000)
PLANTED = {bug.subject().name for bug in GALLERY}


def first(subject: OfStrategy, many: int = 24, *, seed: int = 0) -> list[Pair]:
    return list(islice(subject.pairs(Chance(seed)), many))


def within(part: np.ndarray[Any, Any], one: Contribution) -> bool:
    most, total = int(part.max(initial=0)), int(part.sum())
    return int(np.count_nonzero(part)) <= one.cells and most <= one.each and total <= one.total


@pytest.mark.parametrize("title", SUBJECTS)
def test_pairs_are_neighbours(title: str) -> None:
    """What a pair gains and what it loses must each be something that one unit may add."""
    subject = SUBJECTS[title]
    one, chance = subject.contribution, Chance("near")
    found = [pair for seed in range(3) for pair in first(subject, 30, seed=seed)]
    found += [near for pair in found[:10] if (near := subject.near(pair, chance)) is not None]
    found += [smaller for pair in found[:30] for smaller in subject.smaller(pair)]
    for pair in found:
        gained = np.maximum(pair.y.cells - pair.x.cells, 0)
        lost = np.maximum(pair.x.cells - pair.y.cells, 0)
        assert within(gained, one), pair
        assert within(lost, one), pair
        assert one.neighbors is Neighbors.REPLACE_ONE or not lost.any(), pair
        assert min(pair.x.cells.min(), pair.y.cells.min()) >= 0


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_pairs_go_to_the_bounds(neighbors: Neighbors) -> None:
    one = replace(SEVERAL, neighbors=neighbors)
    subject = OfStrategy(title="", make=Flat, shape=(8,), contribution=one)
    moved = [pair.y.cells - pair.x.cells for pair in first(subject)]
    times = 1 if neighbors is Neighbors.ADD_REMOVE else 2
    assert max(np.abs(step).sum() for step in moved) == times * one.total
    assert max(np.square(step).sum() for step in moved) == times * one.pack(1)
    assert {int(unit.sum()) for unit in worst_units(one, (8,)).values()} == {one.total, one.each}


def test_every_strategy_is_a_subject() -> None:
    named = {getattr(publish, name) for name in publish.__all__}
    known = {kind for kind in named if isinstance(kind, type) and hasattr(kind, "prepare")}
    audited = {type(one.make()) for one in SUBJECTS.values()}
    assert audited == known - {publish.Workload}


@pytest.mark.parametrize("title", [title for title, one in SUBJECTS.items() if one.name not in PLANTED])
def test_none_of_ours_is_accused(title: str) -> None:
    """The others are audited beside the bugs that were planted in them."""
    report = examine(SUBJECTS[title])
    assert not report.accused, str(report)
    assert report.findings


@pytest.mark.parametrize("title", SUBJECTS)
def test_layers_are_exact_beyond_64_bits(title: str) -> None:
    subject = SUBJECTS[title]
    pair = next(one for one in first(subject) if "64 bits" in one.about)
    cells = math.prod(subject.shape)
    for one in subject.prepared.measurements:
        columns = np.array([one.layer.apply(cell.reshape(subject.shape)) for cell in np.eye(cells, dtype=np.int64)])
        for side in (pair.x, pair.y):
            exact = side.cells.reshape(-1).astype(object) @ columns.astype(object)
            assert [int(number) for number in one.layer.apply(side.cells)] == exact.tolist()


# What is told


@dataclass(frozen=True)
class Handed:
    """A strategy with one measurement, whatever it is."""

    measurement: NoisyLayer
    name: str = "handed"

    def prepare(self, shape: Shape, terms: Terms) -> "Handed":
        return self

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]:
        return (self.measurement,)


def handed(law: Gaussian) -> OfStrategy:
    strategy: Strategy = Handed(NoisyLayer(layer=CellLayer(shape=(8,)), mechanism=law))  # type: ignore[assignment]
    return OfStrategy(title="handed", make=lambda: strategy, shape=(8,), contribution=SEVERAL, delta=Fraction(1, 20))


def test_a_reach_that_is_exact_is_no_fault() -> None:
    wide = Fraction(100)
    assert [
        handed(Gaussian(sigma=wide, sensitivity_squared=Fraction(9))).faults(one)
        for one in first(handed(Gaussian(sigma=wide, sensitivity_squared=Fraction(9))))
    ] == [[]] * 24


def test_a_wrong_reach_is_told() -> None:
    subject = handed(Gaussian(sigma=Fraction(100), sensitivity_squared=Fraction(8)))
    assert subject.faults(first(subject)[0]) == ["layer 0: one unit moves it by 9 in L2², and 8 was proven"]


def test_one_coordinate_where_several_move_is_told() -> None:
    subject = handed(Gaussian(sigma=Fraction(100), sensitivity_squared=Fraction(9), dimension=1))
    assert subject.faults(first(subject)[0]) == ["layer 0: one unit moves 3 numbers, and 1 was proven"]


def test_too_little_noise_is_told() -> None:
    subject = handed(Gaussian(sigma=Fraction(3), sensitivity_squared=Fraction(9)))
    (told,) = subject.faults(first(subject)[0])
    assert told == "together the layers lose ρ = 0.5 on this pair, which gives more than the δ claimed"


def test_a_pure_loss_is_added_up_over_layers() -> None:
    dear = Cut(Hierarchy(branching=2, noise=Noise.LAPLACE, even=True), Fraction(5, 4))
    subject = OfStrategy(title="dear", make=lambda: dear, shape=(12,), contribution=SEVERAL)
    (told,) = subject.faults(first(subject)[0])
    assert told == "together the layers lose ε = 1.25 on this pair, and 1 is claimed"


def test_what_is_shown_is_small() -> None:
    subject = handed(Gaussian(sigma=Fraction(100), sensitivity_squared=Fraction(3)))
    found = examine(subject).counterexample
    assert found is not None
    assert found.sentences == ("layer 0: one unit moves it by 4 in L2², and 3 was proven",)
    assert "x = [0, 0, 0, 0, 0, 0, 0, 0]" in found.shown


@pytest.mark.parametrize(("rho", "epsilon"), [(0.1, 0.5), (0.25, 1.0), (2.0, 1.0)])
def test_the_delta_of_a_gaussian_is_the_integral(rho: float, epsilon: float) -> None:
    shift = math.sqrt(2 * rho)
    at = np.linspace(-12, 12 + shift, 400_001)
    here, there = (np.exp(-((at - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (shift, 0))
    exact = np.maximum(here - math.exp(epsilon) * there, 0).sum() * (at[1] - at[0])
    assert gaussian_delta(rho, epsilon) == pytest.approx(exact, rel=1e-6)
    assert gaussian_delta(0, epsilon) == 0


# What counting sees


@pytest.mark.parametrize("title", PURE)
def test_what_is_looked_at_is_the_likelihood_ratio(title: str) -> None:
    """Its exponential has mean 1 on x, and its inverse has on y: Hoeffding, between e^-ε and e^ε."""
    subject, times = SUBJECTS[title], 20_000
    margin = (math.e - 1 / math.e) * math.sqrt(math.log(4e6) / (2 * times))
    pair = first(subject)[2]
    on_x, on_y = (np.asarray(subject.answers(side, times=times)) for side in (pair.x, pair.y))
    assert np.exp(on_x).mean() == pytest.approx(1, abs=margin)
    assert np.exp(-on_y).mean() == pytest.approx(1, abs=margin)
    assert max(np.abs(on_x).max(), np.abs(on_y).max()) <= 1 + 1e-9


@dataclass(frozen=True)
class Cut(OfCells):
    """A strategy at a higher price than is claimed."""

    of: Strategy
    times: Fraction
    name: str = "cut"

    def prepare(self, shape: Shape, terms: Terms) -> Prepared:
        return self.of.prepare(shape, replace(terms, epsilon=terms.epsilon * self.times))


@dataclass(frozen=True)
class Blind:
    """A subject that only counts."""

    of: OfStrategy

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def claim(self) -> Claim:
        return self.of.claim

    def faults(self, pair: Pair) -> list[str]:
        return []

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        return self.of.pairs(chance)

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return self.of.near(pair, chance)

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        return self.of.smaller(pair)

    def answers(self, value: Any, *, times: int) -> Outputs:
        return self.of.answers(value, times=times)

    def show_pair(self, pair: Pair) -> str:
        return self.of.show_pair(pair)


@pytest.mark.parametrize(
    ("strategy", "one"),
    [
        (Flat(noise=Noise.LAPLACE), Contribution()),
        (Flat(noise=Noise.LAPLACE), SEVERAL),
        (Hierarchy(branching=4, noise=Noise.LAPLACE, even=True), Contribution()),
    ],
    ids=["flat", "flat, several cells", "hierarchy"],
)
def test_counting_sees_a_quarter_too_much(strategy: Strategy, one: Contribution) -> None:
    """With four times the draws of an audit, bounds on the twins' ε lie eleven of their deviations above 1."""
    honest = OfStrategy(title="honest", make=lambda: strategy, shape=(8,), contribution=one, epsilon=Fraction(1))
    twin = replace(honest, title="twin", make=lambda: Cut(strategy, Fraction(5, 4)))
    assert not examine(Blind(honest), settings=MANY).accused
    report = examine(Blind(twin), settings=MANY)
    assert report.accused, str(report)
    assert report.counterexample is not None
    assert report.counterexample.finding is not None
