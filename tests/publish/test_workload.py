"""Workloads and expected error: against written-out matrices, known figures and simulation."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub import publish
from hubbub.errors import CapacityError, ParameterError
from hubbub.publish.strategies.flat import Flat
from hubbub.publish.strategies.matrix import Matrix
from hubbub.publish.strategies.rounded_matrix import Rounded
from hubbub.publish.terms import Contribution, Noise, Terms
from hubbub.publish.workload import expected_error as expected
from hubbub.publish.workload import gram
from hubbub.publish.workload.listed_queries import Boxes, Explicit, batches, variances
from hubbub.publish.workload.products import Product, Union, all_marginals, all_ranges, one_marginal
from hubbub.publish.workload.workload import EachCell, Prefixes, Ranges, Total

FALSE_ALARM = 1e-6
BOXES = Boxes(shape=(3, 4), lows=np.array([[0, 0], [1, 2], [2, 0]]), highs=np.array([[3, 4], [2, 4], [3, 1]]))
WEIGHTS = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
WORKLOADS = (
    Prefixes(length=6),
    Ranges(length=6),
    Total(length=5),
    EachCell(length=4),
    Explicit(matrix=WEIGHTS),
    Explicit(matrix=np.arange(12.0).reshape(2, 6), shape=(2, 3)),
    BOXES,
    all_ranges((3, 4)),
    Product(parts=(Prefixes(length=3), Explicit(matrix=WEIGHTS), Total(length=2))),
    all_marginals((2, 3, 4), ways=2),
    Union(parts=(all_ranges((3, 4)), BOXES), weights=(2.0, 0.5)),
)


def written(workload: Any) -> Any:
    return workload.rows(np.arange(workload.count)).reshape(workload.count, -1)


def by_hand(workload: Any) -> Any:
    """The matrix from the words of the docstrings, for those that have any."""
    n = workload.shape[0]
    match workload:
        case Prefixes():
            return [[float(j <= i) for j in range(n)] for i in range(n)]
        case Ranges():
            return [[float(a <= j <= b) for j in range(n)] for a in range(n) for b in range(a, n)]
        case Total():
            return [[1.0] * n]
        case EachCell():
            return [[float(i == j) for j in range(n)] for i in range(n)]
        case Product():
            found = np.ones((1, 1))
            for part in workload.parts:
                found = np.kron(found, by_hand(part))
            return found
        case Explicit():
            return workload.matrix
        case Union():
            parts = zip(workload.parts, workload.weights, strict=True)
            return np.vstack([weight * np.asarray(by_hand(part)) for part, weight in parts])
        case Boxes():
            places = [np.array(place) for place in np.ndindex(*workload.shape)]
            ends = zip(workload.lows, workload.highs, strict=True)
            return [[float((low <= place).all() and (place < high).all()) for place in places] for low, high in ends]
    raise AssertionError(workload)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: type(one).__name__)
def test_a_workload_is_its_matrix(workload: Any) -> None:
    matrix = np.asarray(by_hand(workload))
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 50, workload.shape)
    half = rng.normal(size=(matrix.shape[1],) * 2)
    covariance = half @ half.T
    spread = np.einsum("qi,ij,qj->q", matrix, covariance, matrix)

    assert workload.count == len(matrix)
    assert math.prod(workload.shape) == matrix.shape[1]
    np.testing.assert_array_equal(written(workload), matrix)
    np.testing.assert_allclose(sum(term.dense() for term in workload.gram), matrix.T @ matrix)
    np.testing.assert_allclose(np.asarray(workload.answers(cells)).reshape(-1), matrix @ cells.reshape(-1))
    assert workload.worst((covariance,)) == pytest.approx(spread.max())
    some = np.array([workload.count - 1, 0])
    np.testing.assert_array_equal(workload.rows(some).reshape(2, -1), matrix[some])


@pytest.mark.parametrize("workload", [one for one in WORKLOADS if one.axes], ids=lambda one: type(one).__name__)
def test_variances_of_products_are_products(workload: Any) -> None:
    rng = np.random.default_rng(2)
    halves = [rng.normal(size=(length, length)) for length in workload.shape]
    factors: list[Any] = [half @ half.T for half in halves]
    factors[-1] = workload.shape[-1]  # a length stands for the identity
    whole = gram.Covariance(factors=tuple(factors), scale=3.0).dense()
    matrix = np.asarray(by_hand(workload))
    spread = np.einsum("qi,ij,qj->q", matrix, whole, matrix)

    assert 3.0 * workload.worst(tuple(factors)) == pytest.approx(spread.max())
    traces = [
        term.scale * math.prod(gram.along(g, one) for g, one in zip(term.factors, factors, strict=True))
        for term in workload.gram
    ]
    assert 3.0 * sum(traces) == pytest.approx(spread.sum())
    np.testing.assert_allclose(3.0 * variances(written(workload).reshape(-1, *workload.shape), tuple(factors)), spread)


@pytest.mark.parametrize(
    "one",
    [
        Prefixes(length=7).gram[0].factors[0],
        Ranges(length=7).gram[0].factors[0],
        gram.Identity(length=7),
        gram.Dense(entries=np.arange(49.0).reshape(7, 7)),
        gram.WeightedGram(parts=(gram.Identity(length=7), Ranges(length=7).gram[0].factors[0]), weights=(2.0, 0.5)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_grams_multiply_and_shrink_as_matrices_do(one: Any) -> None:
    dense, columns, places = one.dense(), np.random.default_rng(3).normal(size=(7, 3)), np.array([1, 4, 6])
    assert one.length == 7
    np.testing.assert_allclose(one.diagonal, np.diagonal(dense))
    np.testing.assert_allclose(one.times(columns), dense @ columns)
    np.testing.assert_allclose(one.among(places).dense(), dense[np.ix_(places, places)])


def test_marginals_keep_the_named_axes() -> None:
    cells = np.random.default_rng(4).integers(0, 9, (2, 3, 4))
    np.testing.assert_array_equal(one_marginal((2, 3, 4), [2, 0]).answers(cells), cells.sum(axis=1).reshape(-1))
    every = [cells.sum(axis=(1, 2)), cells.sum(axis=(0, 2)), cells.sum(axis=(0, 1))]
    np.testing.assert_array_equal(all_marginals((2, 3, 4), ways=1).answers(cells), np.concatenate(every))
    assert all_marginals((2, 3), ways=0).count == 1


def test_flat_has_the_known_figures_on_a_thousand_cells() -> None:
    """RMSE per query in units of √2/ε: 22.64 on prefixes, 18.49 on all ranges; the longest range is 32 units off."""
    epsilon = 0.01
    unit = math.sqrt(2) / epsilon
    prefixes, ranges = (Flat().error(one, epsilon) for one in (Prefixes(length=1024), Ranges(length=1024)))
    assert (round(prefixes.rmse / unit, 2), round(ranges.rmse / unit, 2)) == (22.64, 18.49)
    assert prefixes.worst / unit == pytest.approx(32, rel=1e-4)
    assert ranges.worst == prefixes.worst
    assert ranges.queries == 1024 * 1025 // 2


def test_flat_is_never_written_out() -> None:
    found = Flat().error(all_ranges((5000, 3000)), 1)
    per_cell = found.variance / found.queries / (5002 / 3) / (3002 / 3)
    assert per_cell == pytest.approx(Flat().error(EachCell(length=1), 1).variance, rel=1e-12)


@pytest.mark.parametrize("workload", [one for one in WORKLOADS if len(one.shape) <= 2], ids=lambda one: str(one.shape))
def test_every_path_gives_the_same_error(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By factors, by a covariance that is written out, and query by query."""
    tree = np.vstack([np.eye(4, dtype=int), np.ones((1, 4), dtype=int)])
    pieces = {2: tree[[0, 4], :2], 3: tree[[0, 1, 2, 4], :3], 4: tree, 5: np.eye(5, dtype=int), 6: np.eye(6, dtype=int)}
    strategy = Matrix(matrices=tuple(Rounded(entries=pieces[length]) for length in workload.shape))
    contribution = Contribution(cells=2, each=3)
    prepared = strategy.prepare(workload.shape, Terms.at(0.5, contribution=contribution))
    covariance = prepared.covariance()
    assert covariance is not None
    matrix = np.asarray(by_hand(workload))
    spread = np.einsum("qi,ij,qj->q", matrix, covariance.dense(), matrix)

    found = strategy.error(workload, 0.5, contribution=contribution)
    assert found.variance == pytest.approx(spread.sum())
    assert found.worst**2 == pytest.approx(spread.max())
    assert found.rmse**2 == pytest.approx(spread.mean())
    monkeypatch.setattr(expected, "DENSE", 0)
    monkeypatch.setattr(type(prepared), "covariance", lambda self: None)
    one_by_one = expected.expect(prepared, workload)
    assert one_by_one.variance == pytest.approx(found.variance)
    assert one_by_one.worst == pytest.approx(found.worst)


@pytest.mark.parametrize("noise", list(Noise))
def test_expected_error_is_what_draws_show(noise: Noise) -> None:
    workload = Union(parts=(all_ranges((4, 3)), one_marginal((4, 3), [1])), weights=(1.0, 2.0))
    strategy = Matrix(workload=workload, noise=noise)
    delta = 0 if noise is Noise.LAPLACE else 1e-5
    prepared = strategy.prepare(workload.shape, Terms.at(1, delta))
    (only,) = prepared.measurements
    zeros = np.zeros(only.layer.size, dtype=np.int64)
    errors = [workload.answers(prepared.estimate([only.mechanism.draw(zeros)])) for _ in range(3000)]
    squares = np.sum(np.square(errors), axis=1)
    found = strategy.error(workload, 1, delta=delta)
    step = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - found.variance) < stats.norm.isf(FALSE_ALARM / 2) * step
    assert step < 0.02 * found.variance, "so that a tenth more or less would be seen"


def test_the_law_of_the_noise_follows_the_workload() -> None:
    """At (1, 1e-9) one cell a unit is best with Laplace noise, and prefixes by an optimised matrix with Gaussian."""
    terms = Terms.at(1, 1e-9)
    assert Flat(workload=EachCell(length=256)).prepare((256,), terms).noise is Noise.LAPLACE
    assert Matrix(workload=EachCell(length=256)).prepare((256,), terms).noise is Noise.LAPLACE
    loose = Terms.at(1, 0.01)
    chosen = Matrix(workload=Prefixes(length=256)).prepare((256,), loose)
    assert chosen.noise is Noise.GAUSSIAN
    named = Matrix(workload=Prefixes(length=256), noise=Noise.LAPLACE).prepare((256,), loose)
    workload = Prefixes(length=256)
    assert expected.expect(chosen, workload).variance < expected.expect(named, workload).variance


def test_refused() -> None:
    with pytest.raises(ParameterError, match=r"workload must be for cells of shape \(4,\)"):
        expected.expect(Flat().prepare((4,), Terms.at(1)), Prefixes(length=5))
    with pytest.raises(CapacityError, match="too many to look at one by one"):
        expected.expect(_NoCovariance(), Ranges(length=5000))
    for wrong in (
        lambda: Prefixes(length=0),
        lambda: Ranges(length=0),
        lambda: Total(length=0),
        lambda: EachCell(length=0),
        lambda: Explicit(matrix=np.array([[np.nan]])),
        lambda: Explicit(matrix=np.ones(3)),
        lambda: Explicit(matrix=np.ones((2, 6)), shape=(2, 2)),
        lambda: Boxes(shape=(4,), lows=np.array([[2]]), highs=np.array([[2]])),
        lambda: Boxes(shape=(4,), lows=np.array([[0]]), highs=np.array([[5]])),
        lambda: Boxes(shape=(4,), lows=np.array([[-1]]), highs=np.array([[2]])),
        lambda: Product(parts=()),
        lambda: Product(parts=(BOXES,)),  # type: ignore[arg-type]
        lambda: Union(parts=()),
        lambda: Union(parts=(Prefixes(length=3), Prefixes(length=4))),
        lambda: Union(parts=(Prefixes(length=3),), weights=(0.0,)),
        lambda: Union(parts=(Prefixes(length=3),), weights=(1.0, 2.0)),
        lambda: all_marginals((2, 3), ways=3),
        lambda: one_marginal((2, 3), [2]),
    ):
        with pytest.raises(ParameterError):
            wrong()
    assert Boxes(shape=(4,), lows=np.array([[0]]), highs=np.array([[4]])).count == 1


class _NoCovariance:
    shape = (5000,)

    def variances(self, queries: Any) -> Any:
        raise AssertionError


def test_batches_cover_every_query_once() -> None:
    parts = batches(10, (1 << 22) // 4)
    assert [len(part) for part in parts] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(10))
    assert len(batches(3, 1 << 30)) == 3


def test_public_names() -> None:
    assert publish.all_ranges((2, 2)) == Product(parts=(Ranges(length=2), Ranges(length=2)))
    assert hash(publish.all_ranges((2, 2))) == hash(publish.all_ranges((2, 2)))
