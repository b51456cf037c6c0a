"""Marginals: against Kronecker products, dense linear algebra, enumeration of units, a solver, and simulation."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from hubbub import publish
from hubbub.errors import CapacityError, HubbubError, ParameterError
from hubbub.gate.meter import Meter
from hubbub.mechanisms import Gaussian
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.allocation import Influence, Least, best_scales, cost
from hubbub.publish.marginals.marginals import Marginals
from hubbub.publish.marginals.records import Counted, DenseRecords, Records
from hubbub.publish.marginals.residual import Residuals, below, column_l1, contrast, squares_of
from hubbub.publish.terms import Contribution, Noise, Terms

FALSE_ALARM = 1e-6
SHAPE = (3, 2, 5, 4)
DOMAIN = Domain.of({"age": range(3), "sex": ["f", "m"], "ward": range(5), "class": list("abcd")})
DELTA = Fraction(1, 10**6)


def table(rows: int = 300, shape: tuple[int, ...] = SHAPE, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, n, rows) for n in shape], axis=1)


def dense(codes: Any, shape: tuple[int, ...] = SHAPE) -> Any:
    cells = np.zeros(shape, dtype=np.int64)
    np.add.at(cells, tuple(codes.T), 1)
    return cells


def matrix(layer: Residuals) -> Any:
    """Row by row, from Kronecker products over all columns."""
    blocks = []
    for one, scale in zip(layer.sets, layer.scales, strict=True):
        block = np.array([[scale]], dtype=object)
        for axis, n in enumerate(layer.shape):
            block = np.kron(block, contrast(n).matrix if axis in one else np.ones((1, n), dtype=np.int64))
        blocks.append(block)
    return np.vstack(blocks)


def layer_of(shape: tuple[int, ...], ways: int, **terms: Any) -> Residuals:
    return Marginals(ways=ways).prepare(shape, Terms.at(1, DELTA, **terms)).layer


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 16, 42, 85, 99, 100])
def test_contrasts_lose_less_than_one_in_a_hundred_by_rounding(n: int) -> None:
    found = contrast(n)
    assert found.matrix.shape == (n - 1, n)
    assert found.matrix.dtype == np.int64
    gram = found.matrix.T @ found.matrix
    assert found.squares == max(gram.diagonal())
    assert found.least_product == gram.min()
    assert found.column_l1 == np.abs(found.matrix).sum(axis=0).max()
    assert found.largest == np.abs(found.matrix).max()
    # Orthonormal contrasts have columns of squared length (n - 1)/n, and n - 1 rows to undo.
    best = (n - 1) ** 2 / n
    assert best * (1 - 1e-12) <= found.squares * found.spread[:, 1].sum() < 1.01 * best
    assert 1 - 1e-12 <= n * found.spread[:, 0].sum() < 1.01
    stacked = np.vstack([np.ones(n), found.matrix])
    assert np.allclose(stacked @ found.inverse, np.eye(n), atol=1e-12)


def test_binary_contrast_is_exact() -> None:
    assert contrast(2).matrix.tolist() == [[1, -1]]
    assert contrast(1).matrix.shape == (0, 1)


def test_residuals_are_kronecker_products_of_every_kind_of_source() -> None:
    codes = table()
    layer = layer_of(SHAPE, 3)
    expected = matrix(layer) @ dense(codes).reshape(-1)
    pairs = itertools.combinations(range(4), 3)
    counted = Counted(shape=SHAPE, counts={one: DenseRecords(dense(codes)).marginal(one) for one in pairs})
    for source in (
        Records(codes, DOMAIN),
        dense(codes),
        dense(codes).astype(object),
        DenseRecords(dense(codes)),
        counted,
    ):
        found = layer.apply(source)
        assert len(found) == layer.size
        assert found.tolist() == expected.tolist()
    assert np.allclose(
        layer.transpose(np.arange(layer.size)).reshape(-1), (matrix(layer).T @ np.arange(layer.size)).astype(float)
    )


@pytest.mark.parametrize("size", [1, 10**6, 10**8, 10**10, 10**12, 10**16])
def test_residuals_are_exact_however_large_the_counts(size: int) -> None:
    cells = dense(table()) * size + np.arange(math.prod(SHAPE)).reshape(SHAPE)
    layer = layer_of(SHAPE, 3)
    found = layer.apply(cells)
    assert found.tolist() == (matrix(layer) @ cells.reshape(-1).astype(object)).tolist()


def test_rows_without_a_label_are_left_out() -> None:
    codes = table()
    wild = np.vstack([codes, [[3, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 4]]])
    assert Records(wild, DOMAIN).marginal((0, 3)).tolist() == Records(codes, DOMAIN).marginal((0, 3)).tolist()
    columns: dict[str, Any] = {
        "age": [0, 2, 7],
        "sex": ["m", "f", "f"],
        "ward": [4, 1, 1],
        "class": ["a", ["a"], "b"],
        "else": [1],
    }
    found = Records.of(columns, DOMAIN)
    assert found.rows == 1
    assert np.argwhere(found.marginal((0, 1, 2, 3))).tolist() == [[0, 1, 4, 0]]
    assert "sealed" in repr(found)
    reals = Domain.of({"height": publish.bins(1, 2, 4)})
    heights = [1, 1.25, 1.2499, 1.999, 2, 0.999, float("nan"), None, "1.5", True]
    assert Records.of({"height": heights}, reals).marginal((0,)).tolist() == [2, 1, 0, 1]
    with pytest.raises(ParameterError, match="ward"):
        Records.of({"age": [1], "sex": ["m"], "class": ["a"]}, DOMAIN)
    with pytest.raises(ParameterError, match="whole numbers"):
        Records(codes.astype(float), DOMAIN)


def units(shape: tuple[int, ...], most: int) -> Iterator[Any]:
    """All that a unit with at most so many rows can add."""
    cells = math.prod(shape)
    for rows in range(most + 1):
        for where in itertools.combinations_with_replacement(range(cells), rows):
            yield np.bincount(where, minlength=cells) if rows else np.zeros(cells, dtype=np.int64)


@pytest.mark.parametrize(
    ("shape", "ways", "most"), [((2, 3), 2, 2), ((2, 2, 3), 2, 1), ((3, 2, 2), 3, 1), ((5, 3), 1, 2)]
)
@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_reach_against_every_unit(shape: tuple[int, ...], ways: int, most: int, neighbors: Neighbors) -> None:
    one = Contribution(cells=most, each=most, total=most, neighbors=neighbors)
    layer = layer_of(shape, ways, contribution=one)
    rows = matrix(layer).astype(np.int64)
    moved = np.array([rows @ unit for unit in units(shape, most)])
    if neighbors is Neighbors.REPLACE_ONE:
        moved = (moved[:, np.newaxis] - moved[np.newaxis]).reshape(-1, layer.size)
    squares, absolute = int((moved**2).sum(axis=1).max()), int(np.abs(moved).sum(axis=1).max())
    reach = layer.reach(one)
    assert reach.l1 is not None
    assert reach.l2_squared is not None
    assert reach.l2_squared >= squares
    assert reach.l1 >= absolute
    if neighbors is Neighbors.ADD_REMOVE:
        assert reach.l2_squared == squares
        assert reach.l1 == absolute
    else:
        assert reach.l2_squared < 2 * squares


def test_replacing_a_row_of_long_columns_costs_twice_and_not_four_times() -> None:
    for n, most in ((2, 4.0), (100, 2.1)):
        ratio = squares_of((n, n), (0, 1), Neighbors.REPLACE_ONE) / squares_of((n, n), (0, 1), Neighbors.ADD_REMOVE)
        assert 2 < ratio <= most


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("least", list(Least))
def test_the_division_is_the_one_that_a_solver_finds(noise: Noise, least: Least) -> None:
    shape = (2, 3, 5)
    workload = ((0, 1), (1, 2), (0,))
    sets = below(workload, shape)
    reach = np.array(
        [
            float(squares_of(shape, one, Neighbors.ADD_REMOVE) if noise is Noise.GAUSSIAN else column_l1(shape, one))
            for one in sets
        ]
    )
    influence = Influence.of(workload, sets, shape, least)

    def objective(scales: Any) -> float:
        each = cost(influence, scales, reach, noise)
        return float(each.max() if least is Least.MAX else each.sum())

    ours = objective(np.array(best_scales(influence, reach, noise, least), dtype=float))
    starts = [np.zeros(len(sets)), np.linspace(-1, 1, len(sets))]
    found = min(
        optimize.minimize(
            lambda logs: math.log(objective(np.exp(logs - logs.mean()))),
            start,
            method="Nelder-Mead",
            options={"maxiter": 40000, "maxfev": 40000, "xatol": 1e-9, "fatol": 1e-12, "adaptive": True},
        ).fun
        for start in starts
    )
    assert ours <= math.exp(found) * 1.002
    assert objective(np.ones(len(sets))) > 1.05 * ours


@pytest.mark.parametrize("noise", list(Noise))
def test_estimates_are_unbiased_and_variances_are_those_of_dense_algebra(noise: Noise) -> None:
    codes = table()
    ready = Marginals(ways=2, noise=noise).prepare(SHAPE, Terms.at(1, DELTA))
    exact = ready.layer.apply(Records(codes, DOMAIN))
    release = publish.run_table(codes, DOMAIN, Marginals(ways=2, noise=noise), epsilon=1, delta=DELTA)
    quiet = publish.MarginalRelease(
        strategy=release.strategy, prepared=release.prepared, domain=DOMAIN, noisy=(exact,), account="a", entry=0
    )
    rows = matrix(ready.layer).astype(float)
    assert np.linalg.matrix_rank(rows) == ready.layer.size
    inverse = np.linalg.pinv(rows)
    for names in [("age", "sex"), ("class", "age"), ("ward",)]:
        axes = [[axis.name for axis in DOMAIN.axes].index(name) for name in names]
        rising = np.argsort(np.argsort(axes))
        truth = Records(codes, DOMAIN).marginal(tuple(sorted(axes))).transpose(rising)
        found = quiet.marginal(*names)
        assert np.allclose(found.values, truth, atol=1e-9)
        for place in np.ndindex(*truth.shape):
            query = np.zeros(SHAPE)
            index: list[Any] = [slice(None)] * 4
            for axis, at in zip(axes, place, strict=True):
                index[axis] = at
            query[tuple(index)] = 1
            expected = ready.variance * ((query.reshape(-1) @ inverse) ** 2).sum()
            assert found.deviation is not None
            assert found.deviation[place] ** 2 == pytest.approx(expected, rel=1e-9)
            assert ready.variances(query[np.newaxis])[0] == pytest.approx(expected, rel=1e-9)


def test_cells_of_no_marginal_have_no_public_error() -> None:
    ready = Marginals(ways=2).prepare(SHAPE, Terms.at(1, DELTA))
    single = np.zeros((1, *SHAPE))
    single[0, 0, 0, 0, 0] = 1
    with pytest.raises(HubbubError, match="not a sum of cells"):
        ready.variances(single)
    cells = dense(table())
    found = ready.estimate((ready.layer.apply(cells),))
    assert np.allclose(found.sum(axis=(1, 3)), cells.sum(axis=(1, 3)))
    with pytest.raises(CapacityError, match="Ask for marginals"):
        Marginals(ways=1).prepare((100,) * 5, Terms.at(1)).estimate((np.zeros(496),))


@pytest.mark.parametrize("noise", list(Noise))
def test_errors_are_those_of_simulation(noise: Noise) -> None:
    """The mean of squared, standardised errors: its own deviation is estimated from independent releases."""
    codes, shape = table(shape=(3, 2, 4)), (3, 2, 4)
    domain = Domain.without_names(shape)
    truth = Records(codes, domain).marginal((0, 2))
    draws = []
    for _ in range(400):
        release = publish.run_table(codes, domain, Marginals(ways=2, noise=noise), epsilon=1, delta=DELTA)
        found = release.marginal("axis0", "axis2")
        asked = release.range(axis0=(0, 1), axis2=(1, 3))
        assert asked.value == pytest.approx(found.values[:2, 1:4].sum())
        assert asked.deviation is not None
        box = ((asked.value - truth[:2, 1:4].sum()) / asked.deviation) ** 2
        draws.append([(((found.values - truth) / found.deviation) ** 2).mean(), box])
    errors = np.array(draws) - 1
    score = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / math.sqrt(len(errors)))
    # Squares are skewed, and their means a little: a thousandth of the rate leaves room for that.
    assert (np.abs(score) < -stats.norm.ppf(FALSE_ALARM / 1000)).all()
    assert (errors.std(axis=0) / math.sqrt(len(errors)) < 0.15).all()


def test_marginals_agree_on_what_they_share() -> None:
    release = publish.run_table(table(), DOMAIN, Marginals(of=(("age", "ward"), ("ward", "sex", "class"))), epsilon=1)
    assert release.prepared.noise is Noise.LAPLACE
    one, other = release.marginal("age", "ward").values, release.marginal("class", "ward", "sex").values
    assert np.allclose(one.sum(axis=0), other.sum(axis=(0, 2)), rtol=0, atol=1e-8)
    assert np.allclose(release.marginal("ward").values, one.sum(axis=0), rtol=0, atol=1e-8)
    assert np.allclose(release.marginal("sex", "ward").values, other.sum(axis=0).T, rtol=0, atol=1e-8)
    assert release.names == (("age", "ward"), ("sex", "ward", "class"))
    for wrong in (("age", "sex"), ("age", "age"), ("nobody",)):
        with pytest.raises(ParameterError):
            release.marginal(*wrong)


def test_rows_have_labels_and_intervals() -> None:
    release = publish.run_table(table(), DOMAIN, Marginals(ways=2), epsilon=1, delta=DELTA)
    rows = release.table("sex", "class")
    found = release.marginal("sex", "class")
    assert [(row["sex"], row["class"]) for row in rows] == list(itertools.product("fm", "abcd"))
    assert found.deviation is not None
    assert rows[5]["value"] == found.values[1, 1]
    assert rows[5]["high"] - rows[5]["low"] == pytest.approx(2 * 1.959964 * found.deviation[1, 1])
    empty = release.marginal()
    assert empty.values.shape == ()


def test_a_known_total_is_exact_and_keeps_error_bars() -> None:
    release = publish.run_table(table(), DOMAIN, Marginals(ways=2), epsilon=1, delta=DELTA)
    known = release.with_total(300)
    assert known.marginal("age", "sex").values.sum() == pytest.approx(300, abs=1e-9)
    assert known.range().deviation == 0
    before, after = release.marginal("age").deviation, known.marginal("age").deviation
    assert before is not None
    assert after is not None
    assert (after < before).all()
    assert known.steps == ("with the given total 300",)
    assert known.why_no_interval is None


def test_one_column_of_one_value_and_fewer_columns_than_ways() -> None:
    codes = np.array([[0, 1], [0, 0], [0, 1]])
    release = publish.run_table(codes, Domain.without_names((1, 2)), Marginals(ways=3), epsilon=50)
    assert release.prepared.layer.sets == ((), (1,))
    assert np.rint(release.marginal("axis0", "axis1").values).tolist() == [[1, 2]]


def test_three_way_marginals_are_better_than_noise_on_each() -> None:
    """16 binary columns at ε = 1, δ = 1e-9: the figure for Gaussian noise on all 560 tables is 0.0405 of 21,574."""
    ready = Marginals(ways=3).prepare((2,) * 16, Terms.at(1, 1e-9))
    plain = Gaussian.at(epsilon=1, delta=1e-9, coordinates=560).standard_deviation
    ours = math.sqrt(ready.objective / (560 * 8))
    assert ready.noise is Noise.GAUSSIAN
    assert ours < 0.27 * plain
    # Orthogonal coefficients, in closed form: (Σ √v)² over 1, 16, 120 and 560 sets in 560, 105, 14 and 1 tables.
    closed = (math.sqrt(560) + 16 * math.sqrt(105) + 120 * math.sqrt(14) + 560) ** 2 / (560 * 64)
    assert ours**2 == pytest.approx(closed * plain**2 / 560, rel=2e-3)


def test_the_gate_is_charged_for_the_whole_release() -> None:
    meter = Meter({"study": Budget(epsilon=Fraction(3))})
    for _ in range(3):
        publish.run_table(table(), DOMAIN, Marginals(ways=2), epsilon=1, meter=meter, account="study")
    with pytest.raises(HubbubError):
        publish.run_table(table(), DOMAIN, Marginals(ways=1), epsilon=0.01, meter=meter, account="study")
    ready = Marginals(ways=2).prepare(SHAPE, Terms.at(1, contribution=Contribution(total=5, cells=5)))
    (only,) = ready.measurements
    assert only.mechanism.needs.sensitivity == ready.layer.reach(ready.terms.contribution).l1
    assert only.mechanism.event.epsilon == 1


def test_what_is_asked_for_is_checked() -> None:
    with pytest.raises(ParameterError, match="not both"):
        Marginals()
    with pytest.raises(ParameterError, match="not both"):
        Marginals(ways=2, of=(("a",),))
    with pytest.raises(ParameterError, match="different columns"):
        Marginals(of=((0, 0),)).workload((2, 2))
    with pytest.raises(ParameterError, match="different columns"):
        Marginals(of=(("age",),)).workload((2, 2))
    with pytest.raises(ParameterError, match="counts over the domain"):
        publish.run_table(DenseRecords(np.zeros((2, 2), dtype=int)), DOMAIN, Marginals(ways=1), epsilon=1)
    assert Marginals(of=((2, 0), (0, 2))).workload((2, 2, 2)) == ((0, 2),)


def test_a_dense_release_is_saved_with_places_for_names(tmp_path: Path) -> None:
    strategy = Marginals(of=(("age", "sex"), ("ward",)), noise="laplace", least="mean")  # type: ignore[arg-type]
    release = publish.run(dense(table()), strategy, epsilon=1, delta=DELTA, domain=DOMAIN)
    assert release.strategy == Marginals(of=((0, 1), (2,)), noise=Noise.LAPLACE, least=Least.MEAN)
    release.save(tmp_path / "release.json")
    again = publish.load(tmp_path / "release.json")
    assert again.range(age=(0, 1), sex="f") == release.range(age=(0, 1), sex="f")
    assert again.range(age=1, sex="f").deviation is not None
    assert again.range(age=1, ward=2).deviation is None


def test_marginals_of_many_columns_are_saved_as_they_were_drawn(tmp_path: Path) -> None:
    shape = (9,) * 15
    domain = Domain.without_names(shape)
    release = publish.run_table(table(100, shape), domain, Marginals(ways=2), epsilon=1, delta=DELTA)
    release.with_total(100).save(tmp_path / "release.json")
    again = publish.MarginalRelease.of(publish.load(tmp_path / "release.json"))
    assert again.strategy == release.strategy
    assert again.marginal("axis3", "axis1").rows() == release.marginal("axis3", "axis1").rows()
    with pytest.raises(ParameterError, match="a release of Marginals"):
        publish.MarginalRelease.of(publish.run(np.ones(3, dtype=int), publish.Flat(), epsilon=1))
