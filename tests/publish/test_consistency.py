"""Free post-processing: against general solvers, dense least squares, and what must stay as it was."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from hubbub import publish
from hubbub.errors import ParameterError
from hubbub.publish.domain import Domain
from hubbub.publish.inference.projection import onto_simplex
from hubbub.publish.inference.whole_numbers import whole_with_total
from hubbub.publish.marginals.consistency import reconcile
from hubbub.publish.marginals.marginals import Marginals
from hubbub.publish.strategies.flat import Flat

STIFF = 1e8
"""The weight of an equation in a least squares problem without equations."""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("total", [0.5, 3.0, 40.0])
def test_projection_is_the_quadratic_programme(seed: int, total: float) -> None:
    rng = np.random.default_rng(seed)
    values, variances = rng.normal(0, 4, 7), rng.uniform(0.3, 3, 7)
    found = onto_simplex(values, total=total, variances=variances)
    weights = 1 / np.sqrt(variances)
    rows = np.vstack([np.diag(weights), math.sqrt(STIFF) * np.ones(7)])
    expected, _ = optimize.nnls(rows, np.append(weights * values, math.sqrt(STIFF) * total))
    assert np.allclose(found, expected, atol=1e-5)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, abs=1e-9)


def test_projection_at_its_edges() -> None:
    assert onto_simplex(np.array([3.0, -1.0]), total=0).tolist() == [0, 0]
    assert onto_simplex(np.array([[1.0, 2.0], [3.0, 4.0]]), total=10).tolist() == [[1, 2], [3, 4]]
    assert onto_simplex(np.array([-5.0]), total=2).tolist() == [2]
    assert onto_simplex(np.array([1.0, 1.0, -7.0]), total=4).tolist() == [2, 2, 0]
    with pytest.raises(ParameterError, match="total"):
        onto_simplex(np.ones(2), total=-1)
    with pytest.raises(ParameterError, match="variances"):
        onto_simplex(np.ones(2), total=1, variances=np.array([1.0, 0.0]))


@pytest.mark.parametrize("seed", range(5))
def test_rounding_keeps_the_total_and_moves_nothing_by_one(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0, 30, (5, 8))
    found = whole_with_total(values)
    assert found.dtype == np.int64
    assert found.sum() == round(values.sum())
    assert np.abs(found - values).max() < 1
    # No other choice of ups and downs with this sum is nearer.
    fractions = np.sort((values - np.floor(values)).reshape(-1))
    ups = int(found.sum() - np.floor(values).sum())
    best = np.concatenate([fractions[: len(fractions) - ups], 1 - fractions[len(fractions) - ups :]])
    assert np.sort(np.abs(found - values).reshape(-1)) == pytest.approx(np.sort(best))


def test_rounding_to_a_given_total() -> None:
    values = np.array([1.5, 2.5, 3.0])
    assert whole_with_total(values, total=6).tolist() == [1, 2, 3]
    assert whole_with_total(values, total=8).tolist() == [2, 3, 3]
    for wrong in (5, 9):
        with pytest.raises(ParameterError, match="from 6 to 8"):
            whole_with_total(values, total=wrong)


def test_marginals_that_were_noised_apart_agree_by_least_squares() -> None:
    sizes = {"a": 2, "b": 3, "c": 4}
    sets = [("a", "b"), ("c", "b"), ("c",), ("b", "a", "c"), ()]
    variances = dict(zip(sets, [1.0, 4.0, 0.5, 9.0, 2.0], strict=True))
    rng = np.random.default_rng(5)
    noisy = {one: rng.normal(20, 5, [sizes[name] for name in one]) for one in sets}
    found = reconcile(noisy, variances)
    rows, right = [], []
    for one in sets:
        for place in np.ndindex(*noisy[one].shape):
            query = np.zeros((2, 3, 4))
            index: list[Any] = [slice(None)] * 3
            for name, at in zip(one, place, strict=True):
                index["abc".index(name)] = at
            query[tuple(index)] = 1
            rows.append(query.reshape(-1) / math.sqrt(variances[one]))
            right.append(noisy[one][place] / math.sqrt(variances[one]))
    cells = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0].reshape(2, 3, 4)
    assert np.allclose(found["a", "b"], cells.sum(axis=2))
    assert np.allclose(found["c", "b"], cells.sum(axis=0).T)
    assert np.allclose(found["c",], cells.sum(axis=(0, 1)))
    assert np.allclose(found["b", "a", "c"], cells.transpose(1, 0, 2))
    assert found[()] == pytest.approx(cells.sum())
    assert np.allclose(found["a", "b"].sum(axis=0), found["c", "b"].sum(axis=0), atol=1e-9)


def test_marginals_must_fit_together() -> None:
    with pytest.raises(ParameterError, match="of 2 values"):
        reconcile({("a",): np.ones(2), ("a", "b"): np.ones((3, 2))}, {("a",): 1, ("a", "b"): 1})
    with pytest.raises(ParameterError, match="one dimension for each"):
        reconcile({("a",): np.ones((2, 2))}, {("a",): 1})
    with pytest.raises(ParameterError, match="above 0"):
        reconcile({("a",): np.ones(2)}, {("a",): 0})


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 2, 2)])
@pytest.mark.parametrize("known", [False, True])
def test_nonnegative_marginals_are_the_quadratic_programme(shape: tuple[int, ...], known: bool) -> None:
    rng = np.random.default_rng(3)
    codes = np.stack([rng.binomial(n - 1, 0.12, 30) for n in shape], axis=1)
    domain = Domain.without_names(shape)
    release = publish.run_table(codes, domain, Marginals(ways=2), epsilon=1)
    layer = release.prepared.layer
    noise = np.concatenate([s * rng.normal(0, 25, math.prod(shape[a] - 1 for a in one)) * len(one)
                            for one, s in zip(layer.sets, layer.scales, strict=True)])  # fmt: skip
    release = replace(release, noisy=(layer.apply(publish.Records(codes, domain)) + noise,))
    release = release.with_total(30) if known else release
    before = [release.marginal(*one).values for one in release.names]
    assert min(table.min() for table in before) < -1
    ours = release.nonnegative(rounds=20000, tolerance=1e-4)

    spread = release.prepared.spread()
    weights = np.concatenate([np.full(part.size, 1 / spread[one]) for one, part in release.residuals.items()])
    start = np.concatenate([part.reshape(-1) for part in release.residuals.values()])

    def cells(flat: Any) -> Any:
        made = replace(release, made=flat)
        return np.concatenate([made.marginal(*one).values.reshape(-1) for one in release.names])

    linear = np.stack([cells(unit) for unit in np.eye(len(start))], axis=1)
    if known:
        weights[0] = STIFF
    # Through the dual, as non-negative least squares: x = y + W⁻¹Gᵀλ for the λ >= 0 that makes W^½·x least.
    prices, _ = optimize.nnls((linear / np.sqrt(weights)).T, -np.sqrt(weights) * start, maxiter=10000)
    expected = linear @ (start + linear.T @ prices / weights)
    assert expected.min() > -1e-6
    found = cells(np.concatenate([part.reshape(-1) for part in ours.residuals.values()]))
    assert np.allclose(found, expected, atol=0.05)
    assert np.abs(found - cells(start)).max() > 1
    for one, other in itertools.combinations(ours.names, 2):
        (shared,) = set(one) & set(other)
        sums = [ours.marginal(*names).values.sum(axis=1 - names.index(shared)) for names in (one, other)]
        assert np.allclose(sums[0], sums[1], atol=1e-9)
    assert ours.marginal("axis0").deviation is None
    assert "non-negative" in str(ours.why_no_interval)
    assert ours.range(axis0=0).low is None
    with pytest.raises(ParameterError, match="before nonnegative"):
        ours.with_total(30)


def test_one_table_made_non_negative_and_whole() -> None:
    rng = np.random.default_rng(2)
    codes = rng.binomial(1, 0.1, (40, 3))
    release = publish.run_table(codes, Domain.without_names((2, 2, 2)), Marginals(ways=3), epsilon=0.1).with_total(40)
    table = release.marginal("axis0", "axis1", "axis2").nonnegative().whole()
    assert table.values.sum() == 40
    assert table.values.min() >= 0
    assert table.values.dtype == np.int64
    assert table.deviation is None
    assert table.interval() is None
    assert "low" not in table.rows()[0]
    assert "non-negative" in str(table.why_no_interval)


def test_published_cells_made_non_negative_whole_and_with_a_total() -> None:
    counts = np.zeros((20, 10), dtype=int)
    counts[3, 4] = 5000
    release = publish.run(counts, Flat(), epsilon=0.05)
    positive = release.nonnegative()
    assert positive.cells.min() == 0
    assert positive.cells.sum() == pytest.approx(max(0, release.cells.sum()))
    assert positive.steps == ("non-negative",)
    answer = positive.range(axis0=(0, 4))
    assert answer.deviation is None
    assert "non-negative" in str(answer.why_no_interval)
    shifted = release.with_total(5000)
    assert shifted.cells.sum() == pytest.approx(5000)
    assert np.ptp(shifted.cells - release.cells) < 1e-9
    for made in (shifted.nonnegative().whole(), release.nonnegative().with_total(5000).whole()):
        assert made.cells.min() >= 0
        assert made.cells.sum() == 5000
        assert made.cells.dtype == np.int64
        assert len(made.steps) == 3
        with pytest.raises(ParameterError, match="before whole"):
            made.with_total(1)
        with pytest.raises(ParameterError, match="before whole"):
            made.nonnegative()
    # A projection onto what contains the truth comes nearer to it; that is so where the total is known first.
    nearer = shifted.nonnegative()
    assert np.sum((nearer.cells - counts) ** 2) < np.sum((release.cells - counts) ** 2)
    assert release.steps == ()
