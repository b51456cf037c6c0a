"""Data cubes against the obvious: dense matrices, exact counts without noise, brute force over units, simulation."""

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub.errors import HubbubError, ParameterError
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import Contribution, Domain, Flat, Noise, Terms, load, run
from hubbub.publish.marginals.cube import Cube, PreparedCube
from hubbub.publish.marginals.cube_basis import Coefficients, below
from hubbub.publish.marginals.cube_release import CubeRelease, run_cube
from hubbub.publish.marginals.records import DenseRecords
from tests.publish.brute import paid

FALSE_ALARM = 1e-6
SHAPE = (2, 3, 2, 4)
CELLS = np.random.default_rng(1).integers(0, 9, SHAPE)


def prepare(
    shape: tuple[int, ...] = SHAPE,
    ways: int = 2,
    *,
    delta: float = 0,
    noise: Noise | None = None,
    contribution: Contribution | None = None,
    epsilon: float = 1,
) -> PreparedCube:
    return Cube(ways=ways, noise=noise).prepare(shape, Terms.at(epsilon, delta, contribution=contribution))


def exact(prepared: PreparedCube, cells: np.ndarray) -> list[np.ndarray]:
    return [one.layer.apply(cells) for one in prepared.measurements]


def coefficients(prepared: PreparedCube) -> list[Coefficients]:
    found = [one.layer for one in prepared.measurements]
    assert all(isinstance(layer, Coefficients) for layer in found)
    return [layer for layer in found if isinstance(layer, Coefficients)]


def matrix(layer: Coefficients) -> np.ndarray:
    unit = np.eye(math.prod(layer.shape), dtype=np.int64).reshape(-1, *layer.shape)
    return np.stack([layer.apply(one) for one in unit], axis=1)


@pytest.mark.parametrize("shape", [SHAPE, (2, 2, 2), (5, 1, 2)])
def test_without_noise_every_marginal_is_exact(shape: tuple[int, ...]) -> None:
    cells = np.random.default_rng(2).integers(0, 9, shape)
    prepared = prepare(shape)
    found = prepared.coefficients(exact(prepared, cells))
    for size in range(3):
        for axes in itertools.combinations(range(len(shape)), size):
            rest = tuple(axis for axis in range(len(shape)) if axis not in axes)
            assert np.allclose(prepared.marginal(axes, found), cells.sum(axis=rest), atol=1e-9)


def test_with_all_ways_the_cells_come_back() -> None:
    prepared = prepare(ways=4)
    assert np.allclose(prepared.estimate(exact(prepared, CELLS)), CELLS)


def test_binary_columns_are_hadamard_rows() -> None:
    layer = Coefficients(shape=(2, 2, 2), sets=below([(0, 1, 2)], (2, 2, 2)))
    found = matrix(layer)
    assert set(np.unique(found)) == {-1, 1}
    assert np.array_equal(found @ found.T, 8 * np.eye(8))


def test_transposed_is_the_transpose() -> None:
    layer = Coefficients(shape=SHAPE, sets=below([(0, 1), (1, 3), (2,)], SHAPE))
    dense = matrix(layer)
    values = np.random.default_rng(3).normal(size=layer.size)
    assert dense.shape == (layer.size, math.prod(SHAPE))
    assert np.allclose(layer.transpose(values).reshape(-1), dense.T @ values)


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
@pytest.mark.parametrize(("cells", "each"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2)])
def test_reach_is_above_every_unit(shape: tuple[int, ...], cells: int, each: int, neighbors: Neighbors) -> None:
    one = Contribution(cells=cells, each=each, neighbors=neighbors)
    layer = Coefficients(shape=shape, sets=below([(0, 1)], shape))
    units = [
        np.array(unit)
        for unit in itertools.product(range(each + 1), repeat=math.prod(shape))
        if np.count_nonzero(unit) <= cells
    ]
    changes = units if neighbors is Neighbors.ADD_REMOVE else [a - b for a in units for b in units]
    moved = np.array(changes) @ matrix(layer).T
    l1, l2 = np.abs(moved).sum(axis=1).max(), np.square(moved).sum(axis=1).max()
    reach = layer.reach(one)
    assert l1 <= reach.l1
    assert l2 <= reach.l2_squared
    if neighbors is Neighbors.ADD_REMOVE:
        assert l1 == reach.l1 or cells > 1
        assert l2 == reach.l2_squared or cells > 1


def test_shares_stay_within_the_price() -> None:
    prepared = prepare((2,) * 6, 3)
    assert len(prepared.measurements) == 4
    spent = paid(one.mechanism.event for one in prepared.measurements)
    assert Fraction(999, 1000) < sum(spent) <= 1
    by_order = [own / len(layer.sets) for own, layer in zip(spent, coefficients(prepared), strict=True)]
    assert by_order == sorted(by_order, reverse=True)


def test_shares_are_the_best() -> None:
    """For binary columns, moving ε between two orders either way only makes the total error larger."""
    prepared = prepare((2,) * 6, 3)
    spent = np.array([float(own) for own in paid(one.mechanism.event for one in prepared.measurements)])
    weights = np.array([float(len(layer.sets) ** 3) for layer in coefficients(prepared)])
    # each marginal of three has 8 cells, and a coefficient of j columns is in C(6 - j, 3 - j) of them
    weights *= [math.comb(6 - j, 3 - j) for j in range(4)]

    def error(shares: np.ndarray) -> float:
        return float(np.sum(weights / shares**2))

    for a, b in itertools.permutations(range(4), 2):
        moved = spent.copy()
        moved[a], moved[b] = moved[a] + 0.01, moved[b] - 0.01
        assert error(moved) > error(spent)


@pytest.mark.parametrize("noise", list(Noise))
def test_variance_is_that_of_the_dense_estimate(noise: Noise | None) -> None:
    """The estimate as a matrix, row by row, against the formula; and least squares is not better on any marginal."""
    prepared = prepare(delta=1e-6, noise=noise)
    laws: list[Any] = [one.mechanism for one in prepared.measurements]
    variances = [law.standard_deviation**2 for law in laws]
    sizes = [one.layer.size for one in prepared.measurements]
    each = np.repeat(variances, sizes)
    eye = np.eye(sum(sizes))
    columns = [prepared.estimate(np.split(one, np.cumsum(sizes)[:-1])) for one in eye]
    estimate = np.stack([column.reshape(-1) for column in columns], axis=1)
    strategy = np.concatenate([matrix(layer) for layer in coefficients(prepared)])
    precise = np.linalg.pinv(strategy.T @ (strategy / each[:, None]))
    for axes in [(0, 1), (1, 3), (2,), ()]:
        query = np.zeros(SHAPE)
        query[tuple(0 if axis in axes else slice(None) for axis in range(4))] = 1
        flat = query.reshape(-1)
        expected = float(np.sum((flat @ estimate) ** 2 * each))
        assert prepared.variances(query[None])[0] == pytest.approx(expected)
        assert prepared.cell_variance(axes) == pytest.approx(expected)
        assert flat @ precise @ flat == pytest.approx(expected)


def test_a_query_beyond_the_marginals_has_no_public_error() -> None:
    query = np.zeros((1, *SHAPE))
    query[0, 0, 0, 0, 0] = 1
    with pytest.raises(HubbubError, match="not a sum of cells of the marginals"):
        prepare().variances(query)


def test_marginals_agree_and_their_errors_are_as_stated() -> None:
    """400 releases, chi-square on one cell's error: false alarm 1e-6."""
    domain = Domain.of({"a": range(2), "b": range(3), "c": range(2), "d": range(4)})
    strategy, errors = Cube(ways=2), []
    deviation = math.sqrt(strategy.prepare(SHAPE, Terms.at(1)).cell_variance((0, 1)))
    for _ in range(400):
        release = run(CELLS, strategy, epsilon=1, domain=domain)
        prepared = release.prepared
        assert isinstance(prepared, PreparedCube)
        found = prepared.coefficients(release.noisy)
        first, second = prepared.marginal((0, 1), found), prepared.marginal((1, 3), found)
        assert np.allclose(first.sum(axis=0), second.sum(axis=1))
        errors.append(first[1, 2] - CELLS.sum(axis=(2, 3))[1, 2])
    z = stats.norm.isf(FALSE_ALARM / 4)
    assert abs(np.mean(errors)) < z * deviation / 20
    # the kurtosis of a sum of Laplace noises is at most 6, so the variance of a mean square is below 5σ⁴/400
    assert abs(np.mean(np.square(errors)) / deviation**2 - 1) < z * math.sqrt(5 / 400)


def test_thirty_columns_from_rows() -> None:
    codes = np.random.default_rng(4).integers(0, 2, (500, 30))
    domain = Domain.of({f"c{place}": range(2) for place in range(30)})
    release = run_cube(codes, domain, Cube(ways=2), epsilon=10**6)
    found = release.marginal("c7", "c3")
    exact_table = np.array([[np.sum((codes[:, 7] == i) & (codes[:, 3] == j)) for j in (0, 1)] for i in (0, 1)])
    assert np.allclose(found.values, exact_table, atol=0.5)
    assert found.deviation is not None
    with pytest.raises(ParameterError, match="published together"):
        release.marginal("c1", "c2", "c3")
    with pytest.raises(ParameterError, match="different columns"):
        release.marginal("c1", "c1")
    with pytest.raises(HubbubError, match="too many cells"):
        release.prepared.estimate(release.noisy)


def test_saved_and_read_again(tmp_path: Path) -> None:
    domain = Domain.of({"a": ("x", "y"), "b": range(3), "c": range(2), "d": range(4)})
    release = run_cube(DenseRecords(CELLS), domain, Cube(of=(("d", "a"), ("b",))), epsilon=1)
    assert release.names == (("a", "d"), ("b",))
    release.save(tmp_path / "cube.json")
    again = CubeRelease.of(load(tmp_path / "cube.json"))
    assert np.array_equal(again.marginal("d", "a").values, release.marginal("d", "a").values)
    rows = again.table("b", confidence=0.9)
    assert [row["b"] for row in rows] == [0, 1, 2]
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
    with pytest.raises(ParameterError, match="a release of Cube"):
        CubeRelease.of(run(CELLS, Flat(), epsilon=1))
    with pytest.raises(ParameterError, match="over the domain"):
        run_cube(DenseRecords(CELLS[:1]), domain, Cube(ways=1), epsilon=1)


def test_named_marginals() -> None:
    domain = Domain.of({"a": range(2), "b": range(3), "c": range(2), "d": range(4)})
    prepared = Cube(of=(("d", "a"), ("b",))).name_axes(domain).prepare(SHAPE, Terms.at(1))
    assert prepared.workload == ((0, 3), (1,))
    assert set(prepared.variance) == {(), (0,), (1,), (3,), (0, 3)}


@pytest.mark.parametrize("options", [{}, {"ways": 2, "of": ((0,),)}, {"ways": 0}])
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Cube(**options)


def test_columns_that_are_not_there_are_refused() -> None:
    with pytest.raises(ParameterError):
        Cube(of=((0, 9),)).prepare(SHAPE, Terms.at(1))
    with pytest.raises(ParameterError, match="delta"):
        prepare(noise=Noise.GAUSSIAN)
