"""Strategies for maps: brute force without noise, least squares written out, what a unit can move, what is paid."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import noise, publish
from hubbub.errors import HubbubError, ParameterError
from hubbub.mechanisms import Geometric
from hubbub.mechanisms.staged.quads import Quads
from hubbub.mechanisms.staged.splits import Cuts, Splits
from hubbub.mechanisms.staged.staged import GRAIN, Staged, Sums
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import Contribution, Published, Terms, spatial
from hubbub.publish.inference.nested_groups import Stage, solve_cells
from hubbub.publish.spatial.auto import weigh_nodes
from hubbub.publish.spatial.prepared import PreparedMap
from hubbub.publish.spatial.regions import geometric
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import NoisyLayer, Prepared, Strategy
from tests.publish.brute import CONTRIBUTIONS, matrix, norms

RNG = np.random.default_rng(9)
LOOKING: list[Strategy] = [
    spatial.UniformGrid(),
    spatial.UniformGrid(side=4),
    spatial.AdaptiveGrid(),
    spatial.KdTree(height=2),
    spatial.KdTree(),
    spatial.Hybrid(kd=1, quad=2),
    spatial.Hybrid(),
    spatial.Auto(top=1),
]
EPSILON = Fraction(1)


def a_map(shape: Shape = (16, 16), rows: int = 4000) -> Array:
    cells = RNG.gamma(0.2, size=shape)
    return RNG.multinomial(rows, (cells / cells.sum()).reshape(-1)).reshape(shape).astype(np.int64)


def staged(made: Prepared) -> PreparedMap:
    """What all strategies that look at the map prepare."""
    assert isinstance(made, PreparedMap)
    return made


def stages_of(found: Published) -> list[Stage]:
    return staged(found.prepared).stages(found.noisy[0])


def groups_of(found: Published) -> list[int]:
    """How many groups each step has summed."""
    steps, _ = staged(found.prepared).mechanism.parse(found.noisy[0])
    return [len(step.weights) for step in steps if isinstance(step, Sums)]


def law(one: NoisyLayer) -> Geometric:
    assert isinstance(one.mechanism, Geometric)
    return one.mechanism


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law of no noise at all."""

    def nothing(*, scale: object, size: int | None = None) -> Any:
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(noise, "discrete_laplace", nothing)
    monkeypatch.setattr(noise, "choice", lambda *, levels, rate, size: np.full(size, np.argmin(levels)))


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("strategy", LOOKING, ids=lambda one: f"{one.name} {getattr(one, 'side', '')}")
@pytest.mark.parametrize("shape", [(16, 16), (13, 21)])
def test_without_noise_every_group_has_its_true_sum(strategy: Strategy, shape: Shape) -> None:
    cells = a_map(shape)
    found = publish.run(cells, strategy, epsilon=1)
    stages = stages_of(found)
    assert found.cells.sum() == pytest.approx(cells.sum())
    for stage in stages:
        for group in range(len(stage.noisy)):
            inside = stage.labels == group
            assert found.cells[inside].sum() == pytest.approx(cells[inside].sum())
    finest = np.full(shape, -1)
    for depth, stage in enumerate(stages):
        finest = np.where(stage.labels >= 0, stage.labels + 10_000 * depth, finest)
    for group in np.unique(finest):
        assert np.ptp(found.cells[finest == group]) == pytest.approx(0, abs=1e-9)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("shares", list(spatial.Shares))
def test_without_noise_a_quadtree_answers_every_rectangle(shares: spatial.Shares) -> None:
    cells = a_map((8, 11))
    found = publish.run(cells, spatial.QuadTree(shares=shares), epsilon=1)
    for top, left in itertools.product(range(8), range(11)):
        box = (slice(top, min(top + 3, 8)), slice(left, min(left + 5, 11)))
        assert found.cells[box].sum() == pytest.approx(cells[box].sum())


def dense_least_squares(stages: Sequence[Stage], shape: Shape) -> Array:
    """Cells of least norm among those that fit best: what is not told apart is spread evenly."""
    size, rows, values = math.prod(shape), [], []
    for stage in stages:
        for group, (noisy, variance) in enumerate(zip(stage.noisy, stage.variances, strict=True)):
            if np.isfinite(variance):
                rows.append((stage.labels.reshape(-1) == group) / math.sqrt(variance))
                values.append(float(noisy) / math.sqrt(variance))
    found: Array = np.linalg.pinv(np.array(rows, dtype=float).reshape(-1, size)) @ np.array(values)
    return found.reshape(shape)


@pytest.mark.parametrize("strategy", LOOKING, ids=lambda one: f"{one.name} {getattr(one, 'side', '')}")
def test_estimates_are_least_squares(strategy: Strategy) -> None:
    cells = a_map((8, 9))
    found = publish.run(cells, strategy, epsilon=1)
    stages = stages_of(found)
    assert np.allclose(found.cells, dense_least_squares(stages, (8, 9)), atol=1e-6)


def test_least_squares_of_groups_with_gaps() -> None:
    top = Stage(labels=np.zeros((2, 3), dtype=int), noisy=np.array([12]), variances=np.array([4.0]))
    halves = Stage(labels=np.array([[0, 0, 1]] * 2), noisy=np.array([0, 5]), variances=np.array([np.inf, 2.0]))
    cells = Stage(
        labels=np.array([[0, 1, -1], [2, 3, -1]]),
        noisy=np.array([1, 2, 3, 4]),
        variances=np.array([1.0, 2.0, 1.0, 3.0]),
    )
    stages = [top, halves, cells]
    assert np.allclose(solve_cells(stages), dense_least_squares(stages, (2, 3)))
    lost = replace(cells, labels=np.array([[0, 1, -1], [2, -1, -1]]))
    with pytest.raises(TypeError, match="without cells"):
        solve_cells([top, halves, lost])


@pytest.mark.parametrize("height", [0, 2, None])
@pytest.mark.parametrize("shares", list(spatial.Shares))
def test_a_quadtree_is_weighted_least_squares_with_exact_variances(height: int | None, shares: spatial.Shares) -> None:
    shape = (6, 8)
    made = spatial.QuadTree(height=height, shares=shares).prepare(shape, Terms.at(1))
    noisy = [RNG.normal(size=one.layer.size) * 10 for one in made.measurements]
    deviations = [law(one).standard_deviation for one in made.measurements]
    dense = np.concatenate([matrix(one.layer, shape) / s for one, s in zip(made.measurements, deviations, strict=True)])
    values = np.concatenate([one / s for one, s in zip(noisy, deviations, strict=True)])
    inverse = np.linalg.pinv(dense)
    assert np.allclose(made.estimate(noisy).reshape(-1), inverse @ values)
    queries = RNG.integers(0, 2, (5, *shape)).astype(float)
    assert np.allclose(made.variances(queries), np.square(queries.reshape(5, -1) @ inverse).sum(axis=1))


def test_shares_grow_towards_the_leaves_by_the_third_root_of_two() -> None:
    made = spatial.QuadTree().prepare((8, 8), Terms.at(1))
    prices = [float(law(one).epsilon) for one in made.measurements]
    assert np.allclose(np.array(prices[1:]) / prices[:-1], 2 ** (1 / 3), rtol=1e-5)
    assert 1 - 1e-6 < sum(law(one).epsilon for one in made.measurements) <= 1
    counts = geometric(GRAIN, 4)
    assert GRAIN - 4 <= sum(counts) <= GRAIN
    assert np.allclose(np.array(counts[1:]) / counts[:-1], 2 ** (1 / 3), rtol=1e-4)


def test_optimised_shares_are_best_and_even_ones_worst() -> None:
    whole = publish.all_ranges((32, 32))
    optimised, bent, even = (
        spatial.QuadTree(shares=shares).error(whole, 1).variance
        for shares in (spatial.Shares.OPTIMISED, spatial.Shares.GEOMETRIC, spatial.Shares.UNIFORM)
    )
    assert optimised < 0.75 * bent < 0.5 * even


@pytest.mark.parametrize("one", CONTRIBUTIONS)
def test_no_unit_moves_a_level_further_than_its_reach(one: Contribution) -> None:
    shape = (2, 3)
    for measured in spatial.QuadTree().prepare(shape, Terms.at(1, contribution=one)).measurements:
        l1, squares = norms(matrix(measured.layer, shape), 6, one)
        reach = measured.layer.reach(one)
        assert reach.l1 is not None
        assert reach.l2_squared is not None
        assert reach.l1 >= l1
        assert reach.l2_squared >= squares
        assert law(measured).sensitivity == reach.l1


@pytest.mark.parametrize("strategy", LOOKING, ids=lambda one: f"{one.name} {getattr(one, 'side', '')}")
@pytest.mark.parametrize("one", [Contribution(total=3), Contribution(total=2, neighbors=Neighbors.REPLACE_ONE)])
def test_every_cell_pays_the_price_and_rows_of_a_unit_add_up(strategy: Strategy, one: Contribution) -> None:
    """Given the answers, each step's loss for a unit is what its rows' cells are charged."""
    made = strategy.prepare((8, 8), Terms.at(EPSILON, contribution=one))
    (measured,) = made.measurements
    mechanism = measured.mechanism
    assert isinstance(mechanism, Staged)
    assert mechanism.event.epsilon == EPSILON
    assert measured.layer.reach(one).rows == mechanism.rows == one.total
    base = a_map((8, 8), rows=200)
    steps, told = mechanism.parse(mechanism.draw(base))
    spent = np.sum([step.charges for step in steps], axis=0)
    assert spent.max() <= GRAIN
    assert spent.min() > 0.98 * GRAIN
    times = 1 if one.neighbors is Neighbors.ADD_REMOVE else 2
    assert mechanism.price.moved == times * one.total
    for _ in range(5):
        places = RNG.integers(0, 64, times * one.total)
        other = base + np.bincount(places, minlength=64).reshape(8, 8)
        lost = 0.0
        for step, answer in zip(steps, told, strict=True):
            loss = abs(step.log_mass(other, answer, mechanism.price) - step.log_mass(base, answer, mechanism.price))
            bound = float(mechanism.price.of_a_row(1)) * step.charges.reshape(-1)[places].sum()
            assert loss <= bound + 1e-9
            lost += loss
        assert lost <= EPSILON + 1e-9


@pytest.mark.parametrize("strategy", LOOKING, ids=lambda one: f"{one.name} {getattr(one, 'side', '')}")
def test_the_same_noise_gives_the_same_partition(strategy: Strategy) -> None:
    """What was released decides all groups: reading it again, or for a neighbour, gives the same ones."""
    made, remade = (staged(strategy.prepare((16, 16), Terms.at(1))) for _ in range(2))
    drawn = made.mechanism.draw(a_map())
    first, again = made.stages(drawn), remade.stages(drawn.tolist())
    assert len(first) == len(again)
    for one, two in zip(first, again, strict=True):
        assert np.array_equal(one.labels, two.labels)
        assert np.array_equal(one.variances, two.variances)


@pytest.mark.parametrize(
    "strategy", [*LOOKING, spatial.QuadTree(stop=50, shares=spatial.Shares.UNIFORM)], ids=lambda one: one.name
)
def test_a_release_is_kept_and_read_again(strategy: Strategy, tmp_path: Path) -> None:
    found = publish.run(a_map(), strategy, epsilon=1)
    found.save(tmp_path / "map.json")
    again = publish.load(tmp_path / "map.json")
    assert np.array_equal(again.cells, found.cells)
    assert again.strategy == found.strategy
    with pytest.raises(HubbubError, match="no error to state"):
        found.prepared.variances(np.ones((1, 16, 16)))


@pytest.mark.usefixtures("silent")
def test_sides_follow_from_the_noisy_number_of_rows() -> None:
    cells = np.full((64, 64), 10)
    found = publish.run(cells, spatial.UniformGrid(counting=Fraction(1, 2)), epsilon=Fraction(1, 2))
    # √(40,960 · 0.5 · 0.5 / 5) is 45.3
    assert groups_of(found) == [1, 46 * 46]
    several = Contribution(total=16)
    found = publish.run(
        cells, spatial.UniformGrid(counting=Fraction(1, 2)), epsilon=Fraction(1, 2), contribution=several
    )
    assert groups_of(found) == [1, 12 * 12]
    found = publish.run(cells * 0, spatial.UniformGrid(), epsilon=1)
    assert groups_of(found) == [1, 1]


@pytest.mark.usefixtures("silent")
def test_an_adaptive_grid_is_fine_where_rows_are() -> None:
    cells = np.zeros((64, 64), dtype=np.int64)
    cells[:6, :6] = 50
    found = publish.run(cells, spatial.AdaptiveGrid(counting=Fraction(1, 100)), epsilon=1)
    fine = stages_of(found)[-1].labels
    assert len(np.unique(fine[:6, :6])) == 36
    assert len(np.unique(fine[14:21, 14:21])) == 1


@pytest.mark.usefixtures("silent")
def test_kd_leaves_hold_about_as_many_rows_each() -> None:
    cells = a_map((64, 64), rows=100_000)
    found = publish.run(cells, spatial.KdTree(height=2), epsilon=1)
    leaves = stages_of(found)[-1].noisy
    assert len(leaves) == 16
    assert leaves.max() < 2 * leaves.min()
    corner = np.zeros((16, 16), dtype=np.int64)
    corner[0, 0] = 100
    assert publish.run(corner, spatial.Hybrid(kd=1, quad=3), epsilon=1).cells[0, 0] > 20


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(("rows", "height"), [(0, 1), (100, 2), (1_200, 4), (10**9, 5)])
def test_levels_follow_from_the_noisy_number_of_rows(rows: int, height: int) -> None:
    """log₄ of a quarter of the rows at ε = 1, between one level and cells."""
    cells = np.zeros((32, 32), dtype=np.int64)
    cells[:, 7] = rows // 32
    found = publish.run(cells, spatial.KdTree(), epsilon=1)
    steps, _ = staged(found.prepared).mechanism.parse(found.noisy[0])
    assert len(steps) == 1 + 2 * height + height + 1
    found = publish.run(cells, spatial.Hybrid(kd=1), epsilon=1)
    steps, _ = staged(found.prepared).mechanism.parse(found.noisy[0])
    assert len(steps) == 1 + 2 + height + 1
    named = publish.run(cells, spatial.Hybrid(kd=1, quad=2), epsilon=1)
    assert groups_of(named)[0] == 1
    assert len(staged(named.prepared).mechanism.parse(named.noisy[0])[0]) == 2 + 4


@pytest.mark.usefixtures("silent")
def test_auto_tells_full_edges_from_empty_land() -> None:
    """Rows along two edges only: the cuts part them from what lies within, which is then one block without rows."""
    cells = np.zeros((64, 64), dtype=np.int64)
    cells[0, :], cells[:, 0] = 30, 30
    found = publish.run(cells, spatial.Auto(top=0), epsilon=1)
    steps, told = staged(found.prepared).mechanism.parse(found.noisy[0])
    assert [one.tolist() for one, step in zip(told, steps, strict=True) if isinstance(step, Cuts)] == [[1], [1, 1]]
    assert np.allclose(found.cells[1:, 1:], 0, atol=1e-9)


@pytest.mark.usefixtures("silent")
def test_auto_looks_where_rows_are_and_pays_for_what_it_finds() -> None:
    cells = np.zeros((32, 32), dtype=np.int64)
    cells[3, 4] = 10_000
    found = publish.run(cells, spatial.Auto(), epsilon=1)
    assert np.allclose(found.cells, cells, atol=1e-6)
    stages = stages_of(found)
    assert sum(np.isfinite(stage.variances).sum() for stage in stages) < 60


@pytest.mark.parametrize("split", ["none", "all", "corner"])
def test_weights_along_every_path_are_the_price(split: str) -> None:
    quads = Quads((8, 8))
    chosen = [np.arange(0 if split == "none" else 1 if split == "corner" else 4**depth) for depth in range(3)]
    found = weigh_nodes(quads, chosen, 1000 << 10)
    spent = np.zeros((8, 8), dtype=np.int64)
    for depth, (nodes, charges) in enumerate(found):
        each = np.zeros(4**depth, dtype=np.int64)
        each[nodes] = charges
        spent += each[quads.labels(depth)]
    assert (spent == 1000 << 10).all()
    assert [len(nodes) for nodes, _ in found] == {"none": [1, 0, 0, 0], "all": [1, 4, 16, 64], "corner": [1, 4, 4, 4]}[
        split
    ]


def test_pruned_nodes_are_spread_evenly_and_nothing_else_moves() -> None:
    plain = spatial.QuadTree().prepare((8, 8), Terms.at(1))
    cells = np.zeros((8, 8), dtype=np.int64)
    cells[:4, :4] = np.arange(50, 66).reshape(4, 4)
    cells[7, 7] = 6
    noisy = [one.layer.apply(cells) for one in plain.measurements]
    found = spatial.QuadTree(stop=10).prepare((8, 8), Terms.at(1)).estimate(noisy)
    assert np.allclose(found[:4, :4], cells[:4, :4])
    assert np.allclose(found[4:, 4:], 6 / 16)
    coarse = spatial.QuadTree(least=4).prepare((8, 8), Terms.at(1)).estimate(noisy)
    assert np.allclose(coarse[:2, :2], cells[:2, :2].mean())
    assert not np.isclose(coarse[0, 0], coarse[0, 2])


def test_leaves_alone_where_least_squares_is_not_wanted() -> None:
    made = spatial.QuadTree(least_squares=False, shares=spatial.Shares.UNIFORM).prepare((4, 4), Terms.at(1))
    noisy = [np.full(one.layer.size, 7 + place) for place, one in enumerate(made.measurements)]
    assert (made.estimate(noisy) == 9).all()
    leaf = law(made.measurements[-1]).standard_deviation ** 2
    assert made.variances(np.ones((1, 4, 4))) == pytest.approx(16 * leaf)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: spatial.KdTree(height=0),
        lambda: spatial.Hybrid(quad=10),
        lambda: spatial.UniformGrid(side=0),
        lambda: spatial.QuadTree(shares="other"),  # type: ignore[arg-type]
        lambda: spatial.QuadTree(least=0),
        lambda: spatial.Auto(splitting=2),
        lambda: spatial.Auto().prepare((8,), Terms.at(1)),
        lambda: spatial.QuadTree().prepare((2, 2, 2), Terms.at(1)),
    ],
)
def test_mistakes_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises((ParameterError, ValueError)):
        wrong()


def test_steps_are_of_the_kinds_that_are_proven() -> None:
    made = spatial.Hybrid().prepare((16, 16), Terms.at(1)).mechanism
    assert {type(step) for step in made.parse(made.draw(a_map()))[0]} == {Cuts, Sums}
    made = spatial.Auto().prepare((16, 16), Terms.at(1)).mechanism
    assert {type(step) for step in made.parse(made.draw(a_map()))[0]} == {Cuts, Splits, Sums}
