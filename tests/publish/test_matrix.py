"""The matrix mechanism: against known figures and bounds, dense algebra, Python's whole numbers and brute force."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from hubbub import publish
from hubbub.errors import CapacityError, ParameterError
from hubbub.mechanisms import Gaussian
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish.release import saved
from hubbub.publish.strategies import matrix
from hubbub.publish.strategies import matrix as matrices
from hubbub.publish.strategies.flat import Flat
from hubbub.publish.strategies.matrix import Matrix, optimise_matrices
from hubbub.publish.strategies.rounded_matrix import Along, Rounded
from hubbub.publish.terms import Contribution, Noise, Terms
from hubbub.publish.workload.gram import Identity
from hubbub.publish.workload.listed_queries import Boxes, Explicit
from hubbub.publish.workload.products import Union, all_marginals, all_ranges
from hubbub.publish.workload.workload import EachCell, Prefixes, Ranges, Total

DELTA = 1e-6


def units(strategy: Any, workload: Any, noise: Noise) -> float:
    """RMSE per query for sensitivity 1: in √2/ε for Laplace noise, in σ for Gaussian."""
    if noise is Noise.LAPLACE:
        return float(strategy.error(workload, 0.01).rmse * 0.01 / math.sqrt(2))
    (only,) = strategy.prepare(workload.shape, Terms.at(1, DELTA)).measurements
    assert isinstance(only.mechanism, Gaussian)
    sigma = float(only.mechanism.sigma) / math.sqrt(only.mechanism.sensitivity_squared)
    return float(strategy.error(workload, 1, delta=DELTA).rmse / sigma)


def lower_bound(workload: Any) -> float:
    """Of Gaussian strategies: (sum of singular values)² / (cells · queries)."""
    values = np.linalg.eigvalsh(workload.gram[0].dense())
    return math.sqrt(np.sqrt(np.maximum(values, 0)).sum() ** 2 / len(values) / workload.count)


def tree(length: int, branching: int) -> Any:
    rows, size = [], length
    while size >= 1:
        rows.append(np.kron(np.eye(length // size, dtype=int), np.ones((1, size), dtype=int)))
        size //= branching
    return np.vstack(rows)


def haar(length: int) -> Any:
    rows, size = [np.ones((1, length), dtype=int)], length
    while size > 1:
        pair = np.repeat([[1, -1]], size // 2, axis=1).reshape(1, 2, -1).reshape(1, size)
        rows.append(np.kron(np.eye(length // size, dtype=int), pair))
        size //= 2
    return np.vstack(rows)


@pytest.mark.parametrize(
    ("entries", "noise", "known"),
    [
        (tree(1024, 2), Noise.LAPLACE, (12.23, 15.44)),
        (tree(1024, 4), Noise.LAPLACE, (9.32, 11.74)),
        (haar(1024), Noise.LAPLACE, (12.16, 14.32)),
        (tree(1024, 2), Noise.GAUSSIAN, (3.69, 4.65)),
        (haar(1024), Noise.GAUSSIAN, (3.67, 4.32)),
    ],
    ids=["H2", "H4", "Haar", "H2 Gaussian", "Haar Gaussian"],
)
def test_matrices_of_others_have_their_known_figures(entries: Any, noise: Noise, known: tuple[float, float]) -> None:
    strategy = Matrix(matrices=(Rounded(entries=entries),), noise=noise)
    found = tuple(round(units(strategy, one, noise), 2) for one in (Prefixes(length=1024), Ranges(length=1024)))
    assert found == known


@pytest.mark.parametrize(
    ("workload", "floor"),
    [
        (Prefixes(length=64), 3.78),
        (Ranges(length=64), 3.94),
        (Prefixes(length=256), 5.23),
        (Ranges(length=256), 5.72),
        (all_ranges((256, 256)), 32.69),
    ],
    ids=str,
)
def test_laplace_strategies_are_at_least_as_good_as_the_reference(workload: Any, floor: float) -> None:
    assert units(Matrix(workload=workload), workload, Noise.LAPLACE) <= floor


@pytest.mark.parametrize("workload", [Prefixes(length=64), Ranges(length=64), Ranges(length=45)], ids=str)
def test_gaussian_strategies_are_close_to_the_bound(workload: Any) -> None:
    found = units(Matrix(workload=workload, noise=Noise.GAUSSIAN), workload, Noise.GAUSSIAN)
    bound = lower_bound(workload)
    assert bound <= found <= 1.031 * bound
    root = np.linalg.cholesky(workload.gram[0].dense())
    values, vectors = np.linalg.eigh(root @ root.T)
    square_root = (vectors * np.sqrt(values)) @ vectors.T
    scaled = square_root / np.sqrt(np.outer(np.diagonal(square_root), np.diagonal(square_root)))
    simple = math.sqrt(np.sum(workload.gram[0].dense() * np.linalg.inv(scaled)) / workload.count)
    assert found <= simple + 1e-4


def test_the_search_descends_along_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def caught(objective: Any, start: Any, **_: Any) -> Any:
        seen.update(objective=objective, start=start)
        raise KeyboardInterrupt

    monkeypatch.setattr("scipy.optimize.minimize", caught)
    gram = Ranges(length=9).gram[0].factors[0]
    start = np.random.default_rng(1).random((9, 2))
    with pytest.raises(KeyboardInterrupt):
        matrix._search(gram, start)
    value, slope = seen["objective"](seen["start"])
    strategy = np.vstack([np.eye(9), start.T]) / (1 + start.sum(axis=1))
    exact = np.sum(gram.dense() * np.linalg.inv(strategy.T @ strategy)) / np.sum(gram.diagonal)
    assert value == pytest.approx(exact, rel=1e-12)
    near = approx_fprime(seen["start"], lambda at: seen["objective"](at)[0], 1e-7)
    np.testing.assert_allclose(slope, near, atol=1e-5)


def test_single_cells_are_measured_as_they_are() -> None:
    (found,) = optimise_matrices(EachCell(length=40), Noise.LAPLACE)
    np.testing.assert_array_equal(found.entries, np.eye(40))
    assert Matrix(workload=EachCell(length=40)).error(EachCell(length=40), 1) == Flat().error(EachCell(length=40), 1)


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize(
    "workload",
    [
        all_marginals((4, 5, 3), ways=2),
        Union(parts=(all_ranges((8, 8)), all_marginals((8, 8), ways=1)), weights=(1.0, 10.0)),
        Boxes(shape=(4, 5), lows=np.array([[0, 0], [1, 1], [2, 3]]), highs=np.array([[4, 5], [3, 3], [4, 5]])),
        Explicit(matrix=np.triu(np.ones((20, 20)))),
        Total(length=20),
    ],
    ids=["marginals", "union", "boxes", "explicit", "total"],
)
def test_any_workload_gets_a_strategy_that_beats_flat(workload: Any, noise: Noise) -> None:
    delta = DELTA if noise is Noise.GAUSSIAN else 0
    ours = Matrix(workload=workload, noise=noise).error(workload, 0.01, delta=delta)
    flat = Flat(noise=noise).error(workload, 0.01, delta=delta)
    assert ours.rmse <= flat.rmse * (1 + 1e-3)


def test_a_search_is_kept() -> None:
    first, again = (optimise_matrices(Ranges(length=33), Noise.LAPLACE) for _ in range(2))
    assert first is again
    assert optimise_matrices(Ranges(length=33), Noise.GAUSSIAN) is not first


def test_too_long_an_axis_is_refused() -> None:
    with pytest.raises(CapacityError, match="at most 4096"):
        matrix.laplace(Identity(length=4097))
    with pytest.raises(CapacityError, match="at most 4096"):
        matrix.gaussian(Identity(length=4097))


# The rounded matrix


def test_rounding_keeps_every_column_even() -> None:
    added = np.random.default_rng(2).random((30, 4))
    exact = np.vstack([np.eye(30), added.T]) / (1 + added.sum(axis=1))
    found = Rounded.with_even_columns(exact, bits=9)
    assert set(np.abs(found.entries).sum(axis=0).tolist()) == {512}
    assert np.abs(found.entries[30:] / 512 - exact[30:]).max() <= 0.5 / 512
    plain = Rounded.of(exact, bits=9)
    assert np.abs(plain.entries / 512 - exact).max() <= 0.5 / 512


def test_norms_are_those_of_the_entries() -> None:
    found = Rounded(entries=np.array([[1, -2, 0], [3, 4, -7]]))
    assert (found.column_l1, found.column_squares, found.row_l1) == (7, 49, 14)
    np.testing.assert_array_equal(found.gram, found.entries.T @ found.entries)
    assert found == Rounded(entries=np.array([[1, -2, 0], [3, 4, -7]]))
    assert found != Rounded(entries=np.array([[1, -2, 0], [3, 4, 7]]))


@pytest.mark.parametrize("most", [9, (1 << 40) - 1, (1 << 62) + 12345, (1 << 63) - 1])
@pytest.mark.parametrize("shape", [(5,), (4, 3)])
def test_application_is_exact_whatever_the_cells(most: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    factors = tuple(Rounded(entries=rng.integers(-(1 << 16), 1 << 16, (n + 2, n))) for n in shape)
    layer = Along(shape=shape, factors=factors)
    cells = rng.integers(0, most, shape, endpoint=True)
    cells.reshape(-1)[0], cells.reshape(-1)[-1] = most, -most
    whole = np.ones((1, 1), dtype=object)
    for factor in factors:
        whole = np.kron(whole, factor.entries.astype(object))
    exact = whole @ cells.reshape(-1).astype(object)
    found = layer.apply(cells)
    assert [int(one) for one in found] == [int(one) for one in exact]
    assert layer.size == len(exact)
    values = rng.normal(size=layer.size)
    np.testing.assert_allclose(layer.transpose(values).reshape(-1), whole.T.astype(float) @ values)


def test_matrices_that_leave_sixty_four_bits_are_refused_before_any_data() -> None:
    with pytest.raises(CapacityError):
        Rounded(entries=np.array([[1 << 27]]))
    assert Rounded(entries=np.array([[(1 << 26) - 1]])).row_l1 == (1 << 26) - 1
    wide = Rounded(entries=np.full((1, 16), 1 << 20))
    with pytest.raises(CapacityError):
        Along(shape=(16, 16, 16), factors=(wide, wide, wide))
    assert Along(shape=(16, 16), factors=(wide, wide)).size == 1
    with pytest.raises(ParameterError, match="matrices must be for cells"):
        Along(shape=(4, 4), factors=(Rounded(entries=np.eye(4, dtype=int)),))
    with pytest.raises(TypeError):
        Rounded(entries=np.eye(2))
    with pytest.raises(ParameterError, match="cells can be solved for"):
        Matrix(matrices=(Rounded(entries=np.array([[1, 1]])),)).prepare((2,), Terms.at(1)).estimate([np.zeros(1)])


# Reach


def added_by_one(one: Contribution, cells: int) -> list[Any]:
    found = itertools.product(range(one.each + 1), repeat=cells)
    return [np.array(c) for c in found if sum(map(bool, c)) <= one.cells and sum(c) <= one.total]


REACHES = [
    Contribution(),
    Contribution(each=3),
    Contribution(cells=2, each=2),
    Contribution(cells=3, each=2, total=5),
    Contribution(cells=4, each=1, total=3),
]


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
@pytest.mark.parametrize("bounds", REACHES, ids=str)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_reach_covers_everything_that_a_unit_can_add(
    shape: tuple[int, ...], signed: bool, bounds: Contribution, neighbors: Neighbors
) -> None:
    rng = np.random.default_rng(5)
    one = Contribution(cells=bounds.cells, each=bounds.each, total=bounds.total, neighbors=neighbors)
    factors = tuple(Rounded(entries=rng.integers(-6 * signed, 7, (n + 1, n))) for n in shape)
    layer = Along(shape=shape, factors=factors)
    units_cells = added_by_one(one, 4)
    results = np.array([layer.apply(c.reshape(shape)) for c in units_cells])
    moves = results if neighbors is Neighbors.ADD_REMOVE else (results[:, np.newaxis] - results).reshape(-1, layer.size)
    l1, l2_squared = int(np.abs(moves).sum(axis=1).max()), int((moves**2).sum(axis=1).max())
    reach = layer.reach(one)
    assert reach.l1 is not None
    assert reach.l2_squared is not None
    assert l1 <= reach.l1
    assert l2_squared <= reach.l2_squared
    if one.cells == 1 and (neighbors is Neighbors.ADD_REMOVE or len(shape) == 1):
        assert l2_squared == reach.l2_squared
    if one.cells == 1 and neighbors is Neighbors.ADD_REMOVE:
        assert l1 == reach.l1
    columns = math.prod(factor.column_squares for factor in factors)
    if one.cells > 1 and len(shape) == 1 and neighbors is Neighbors.ADD_REMOVE:
        assert reach.l2_squared < one.total**2 * columns, "overlap is less than the triangle inequality allows"


@pytest.mark.parametrize("bounds", REACHES, ids=str)
def test_reach_is_reached_where_columns_are_alike(bounds: Contribution) -> None:
    layer = Along(shape=(4,), factors=(Rounded(entries=np.full((2, 4), 3)),))
    results = np.array([layer.apply(c) for c in added_by_one(bounds, 4)])
    reach = layer.reach(bounds)
    assert reach.l1 == np.abs(results).sum(axis=1).max()
    assert reach.l2_squared == (results**2).sum(axis=1).max()


def test_opposite_columns_are_twice_as_far_apart() -> None:
    one = Contribution(neighbors=Neighbors.REPLACE_ONE)
    opposite, single = Rounded(entries=np.array([[3, -3]])), Rounded(entries=np.array([[1]]))
    for layer in (Along(shape=(2, 1), factors=(opposite, single)), Along(shape=(2,), factors=(opposite,))):
        reach = layer.reach(one)
        assert (reach.l1, reach.l2_squared) == (Fraction(6), Fraction(36))


# As a strategy


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("shape", [(12,), (5, 4)])
def test_estimates_are_least_squares_with_the_rounded_matrix(shape: tuple[int, ...], noise: Noise) -> None:
    strategy = Matrix(noise=noise)
    prepared = strategy.prepare(shape, Terms.at(1, DELTA))
    (only,) = prepared.measurements
    cells = np.random.default_rng(6).integers(0, 100, shape)
    exact = only.layer.apply(cells)
    np.testing.assert_allclose(prepared.estimate([exact]), cells, atol=1e-8)
    whole: Any = np.ones((1, 1))
    for factor in strategy.factors(shape, noise):
        whole = np.kron(whole, factor.entries)
    noisy = exact + np.random.default_rng(7).integers(-(1 << 20), 1 << 20, only.layer.size)
    solved = np.linalg.lstsq(whole, noisy.astype(float))[0]
    np.testing.assert_allclose(prepared.estimate([noisy]).reshape(-1), solved, atol=1e-6)
    queries = np.random.default_rng(8).normal(size=(3, *shape))
    (influence,) = prepared.inference.influence(queries)
    np.testing.assert_allclose(influence, queries.reshape(3, -1) @ np.linalg.pinv(whole), atol=1e-9)


def test_a_run_pays_once_and_is_close() -> None:
    cells = np.random.default_rng(9).poisson(1000, (16, 12))
    found = publish.run(cells, Matrix(), epsilon=1, contribution=Contribution(cells=2))
    estimate = found.answer(np.ones((16, 12)))
    assert estimate.deviation is not None
    # The noise is at most as heavy as Laplace: 25 deviations have a chance below 1e-6 by far.
    assert abs(estimate.value - cells.sum()) < 25 * estimate.deviation
    (only,) = found.prepared.measurements
    assert only.mechanism.event.epsilon == 1


def test_what_was_measured_is_kept_with_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.random.default_rng(10).poisson(50, 24)
    made = publish.run(cells, Matrix(workload=Prefixes(length=24)), epsilon=1)
    told = json.loads(json.dumps(saved.to_json(made)))
    monkeypatch.setattr(matrices, "optimise_matrices", lambda *_: pytest.fail("searched again"))
    read = saved.from_json(told)
    np.testing.assert_array_equal(read.cells, made.cells)


@pytest.mark.parametrize(
    "workload",
    [
        Explicit(matrix=np.triu(np.ones((6, 6)))),
        Boxes(shape=(6,), lows=np.array([[0], [2]]), highs=np.array([[3], [6]])),
        Union(parts=(Ranges(length=6), Total(length=6)), weights=(1.0, 3.0)),
    ],
    ids=["explicit", "boxes", "union"],
)
def test_workloads_are_kept_with_the_release(workload: Any) -> None:
    made = publish.run(np.arange(6), Matrix(workload=workload), epsilon=1)
    read = saved.from_json(json.loads(json.dumps(saved.to_json(made))))
    np.testing.assert_array_equal(read.cells, made.cells)
    assert isinstance(read.strategy, Matrix)
    assert read.strategy.workload is not None
    np.testing.assert_array_equal(read.strategy.workload.answers(made.cells), workload.answers(made.cells))


def test_a_workload_for_other_cells_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"workload must be for cells of shape \(5,\)"):
        Matrix(workload=Ranges(length=4)).prepare((5,), Terms.at(1))
