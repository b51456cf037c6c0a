"""Sketches against dense matrices, brute force over units and simulation."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub import publish
from hubbub.errors import HubbubError, ParameterError
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import Contribution, CountSketch, JohnsonLindenstrauss, Noise, Terms, distance_squared
from hubbub.publish.strategies.hashed import PRIME, Hashed, Signs
from tests.publish.brute import reached

FALSE_ALARM = 1e-6
Z = stats.norm.isf(FALSE_ALARM / 4)
SHAPE = (3, 4)
CELLS = np.random.default_rng(5).integers(0, 50, SHAPE)


def layers() -> list[Hashed | Signs]:
    return [Hashed.draw(SHAPE, rows=3, width=5), Signs.draw(SHAPE, size=9)]


def dense(layer: Hashed | Signs) -> np.ndarray:
    unit = np.eye(math.prod(layer.shape), dtype=np.int64).reshape(-1, *layer.shape)
    return np.stack([layer.apply(one) for one in unit], axis=1)


@pytest.mark.parametrize("layer", layers(), ids=["hashed", "signs"])
def test_a_layer_is_its_matrix(layer: Hashed | Signs) -> None:
    matrix = dense(layer)
    assert matrix.shape == (layer.size, 12)
    assert set(np.unique(matrix)) <= {-1, 0, 1}
    assert np.array_equal(layer.apply(CELLS), matrix @ CELLS.reshape(-1))
    values = np.random.default_rng(6).normal(size=layer.size)
    assert np.allclose(layer.transpose(values).reshape(-1), matrix.T @ values)


@pytest.mark.parametrize("layer", layers(), ids=["hashed", "signs"])
def test_numbers_of_any_size_are_added_exactly(layer: Hashed | Signs) -> None:
    for factor in (1 << 49, 1 << 55, 10**30):
        wide = CELLS.astype(object) * factor
        cells = wide.astype(np.int64) if factor < 1 << 56 else wide
        assert [int(x) for x in layer.apply(cells)] == [int(x) * factor for x in layer.apply(CELLS)]


def test_every_cell_is_once_in_every_row() -> None:
    matrix = dense(Hashed.draw((7,), rows=4, width=3))
    assert (np.abs(matrix).reshape(4, 3, 7).sum(axis=1) == 1).all()


@pytest.mark.parametrize("neighbors", list(Neighbors)[:2])
@pytest.mark.parametrize(("cells", "each"), [(1, 1), (2, 1), (1, 2), (3, 1)])
def test_reach_is_above_every_unit_and_reached_by_one_cell(cells: int, each: int, neighbors: Neighbors) -> None:
    one = Contribution(cells=cells, each=each, neighbors=neighbors)
    units = [np.array(u) for u in itertools.product(range(each + 1), repeat=6) if np.count_nonzero(u) <= cells]
    changes = units if neighbors is Neighbors.ADD_REMOVE else [a - b for a in units for b in units]
    for layer in (Hashed.draw((6,), rows=2, width=3), Hashed.draw((6,), rows=2, width=1), Signs.draw((6,), size=4)):
        moved = np.array(changes) @ dense(layer).T
        l1, l2 = np.abs(moved).sum(axis=1).max(), np.square(moved).sum(axis=1).max()
        reach = reached(layer, one)
        assert l1 <= reach[0]
        assert l2 <= reach[1]
        if cells == 1 and neighbors is Neighbors.ADD_REMOVE:
            assert (l1, l2) == reach


def test_hashes_spread_evenly_and_signs_are_fair() -> None:
    """A chi-square over 4 numbers and the sign of 400 hashes of two cells each: false alarm 1e-6."""
    seen = np.zeros((4, 4, 2))
    for _ in range(400):
        (place, sign) = next(Hashed.draw((2,), rows=1, width=4).hashes())
        seen[place[0], place[1], int(sign[0] == sign[1])] += 1
    # pairs are independent up to 1/p, but for a ≥ 1, which never puts both cells on the same residue
    assert stats.chisquare(seen.reshape(-1)).pvalue > FALSE_ALARM
    signs = Signs.draw((1000,), size=100).matrix
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.sum()) < Z * math.sqrt(signs.size)


def test_fresh_maps_differ() -> None:
    assert Hashed.draw((9,), rows=2, width=4) != Hashed.draw((9,), rows=2, width=4)
    assert Signs.draw((99,), size=9).text != Signs.draw((99,), size=9).text


def test_wide_sketches_give_cells_back() -> None:
    truth = np.zeros(1000, dtype=np.int64)
    truth[[3, 500, 998]] = (700, 300, 900)
    release = publish.run(truth, CountSketch(rows=7, width=400), epsilon=100)
    assert np.abs(release.cells - truth).max() < 20


def test_unbiased_with_the_stated_deviation() -> None:
    """One row: the error of a cell is noise and what else is in its number. 600 fresh sketches, false alarm 1e-6."""
    truth = np.array([40, 10, 0, 25, 5, 60])
    errors, stated = [], []
    for _ in range(600):
        release = publish.run(truth, CountSketch(rows=1, width=4), epsilon=1)
        errors.append(release.cells[0] - truth[0])
        prepared: Any = release.prepared
        stated.append(prepared.deviation(release.noisy[0]) ** 2)
    others = float(np.square(truth[1:]).sum()) / 4
    deviation = math.sqrt(others + prepared.variance)
    assert abs(np.mean(errors)) < Z * deviation / math.sqrt(600)
    # squares of sums of a few bounded and Laplace terms have a kurtosis below 12 here
    assert abs(np.mean(np.square(errors)) / deviation**2 - 1) < Z * math.sqrt(12 / 600)
    # the stated one also counts the cell itself: (Σx²/4 + σ²)
    both = float(np.square(truth).sum()) / 4 + prepared.variance
    assert abs(np.mean(stated) / both - 1) < Z * math.sqrt(12 / 600)


@pytest.mark.parametrize("strategy", [CountSketch(rows=1, width=64), JohnsonLindenstrauss(size=64)])
def test_norms_products_and_distances(strategy: CountSketch | JohnsonLindenstrauss) -> None:
    """Means over 300 pairs of releases with fresh maps against the exact numbers: false alarm 1e-6 each."""
    x, y = np.array([30, 0, 12, 7, 0, 21]), np.array([28, 4, 0, 9, 0, 25])
    norms, products, distances = [], [], []
    for _ in range(300):
        first = publish.run(x, strategy, epsilon=5, delta=1e-6)
        prepared: Any = first.prepared
        same = strategy.pin(prepared)
        second = publish.run(y, same, epsilon=5, delta=1e-6)
        norms.append(prepared.square(first.noisy[0]))
        products.append(prepared.inner(first.noisy[0], second.noisy[0]))
        distances.append(distance_squared(first, second))
    for found, exact in ((norms, x @ x), (products, x @ y), (distances, (x - y) @ (x - y))):
        assert abs(np.mean(found) - exact) < 1.5 * Z * np.std(found) / math.sqrt(300)
        assert np.std(found) < 10 * max(exact, 100)


def test_distances_need_the_same_map() -> None:
    strategy = JohnsonLindenstrauss(size=8)
    one, other = (publish.run(CELLS, strategy, epsilon=1) for _ in range(2))
    with pytest.raises(ParameterError, match="same hashes or signs"):
        distance_squared(one, other)
    with pytest.raises(ParameterError, match="a sketch"):
        distance_squared(publish.run(CELLS, publish.Flat(), epsilon=1), one)


def test_the_better_law_is_taken() -> None:
    assert JohnsonLindenstrauss(size=100).prepare((5,), Terms.at(1, 1e-6)).noise is Noise.GAUSSIAN
    assert JohnsonLindenstrauss(size=1).prepare((5,), Terms.at(1, 1e-6)).noise is Noise.LAPLACE
    with pytest.raises(ParameterError, match="delta"):
        CountSketch(noise=Noise.GAUSSIAN).prepare((5,), Terms.at(1))


@pytest.mark.parametrize("strategy", [CountSketch(rows=3, width=5), JohnsonLindenstrauss(size=7)])
def test_saved_with_their_maps(strategy: CountSketch | JohnsonLindenstrauss, tmp_path: Path) -> None:
    release = publish.run(CELLS, strategy, epsilon=1)
    release.save(tmp_path / "sketch.json")
    assert np.array_equal(publish.load(tmp_path / "sketch.json").cells, release.cells)
    with pytest.raises(HubbubError, match="mixes cells"):
        release.prepared.variances(np.ones((1, *SHAPE)))


@pytest.mark.parametrize(
    "numbers",
    [((0, 1, 1, 1, 1, 1),), ((1, PRIME, 1, 1, 1, 1),), ((1, 1, 1),), ((1,) * 6, (1,) * 6), ((1, -1, 1, 1, 1, 1),)],
)
def test_other_hashes_are_refused(numbers: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ParameterError, match="hashes"):
        CountSketch(rows=1, width=4, hashes=numbers).prepare((5,), Terms.at(1))
    CountSketch(rows=1, width=4, hashes=((1, PRIME - 1, 0, 0, 0, 0),)).prepare((5,), Terms.at(1))


def test_other_signs_are_refused() -> None:
    text = Signs.draw((20,), size=4).text
    JohnsonLindenstrauss(size=4, signs=text).prepare((20,), Terms.at(1))
    for size, shape in ((5, (20,)), (4, (30,))):
        with pytest.raises(ParameterError, match="signs"):
            JohnsonLindenstrauss(size=size, signs=text).prepare(shape, Terms.at(1))


@pytest.mark.parametrize("make", [lambda: CountSketch(rows=0), lambda: CountSketch(width=0)])
def test_nothing_is_no_sketch(make: Callable[[], CountSketch]) -> None:
    with pytest.raises(ParameterError):
        make()
    with pytest.raises(ParameterError):
        JohnsonLindenstrauss(size=0)
