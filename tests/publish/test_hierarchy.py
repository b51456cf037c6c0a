"""Hierarchies against the obvious: matrices, dense least squares, every possible unit, simulation."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.errors import MisfitError, ParameterError
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import Contribution, Hierarchy, Noise, Prefixes, Ranges, Terms, Workload, all_ranges, run
from hubbub.publish.inference.tree_inference import TreeInference
from hubbub.publish.strategies.hierarchy import LevelPlan, nest_levels
from hubbub.publish.strategies.layer import Nodes, gather, spread
from hubbub.publish.strategies.split import Demand, fractions_rounded_down, gains, tree_shares, tree_variance
from hubbub.publish.strategies.strategy import PreparedLayers
from hubbub.publish.terms import variance
from tests.publish.brute import CONTRIBUTIONS, matrix, norms, paid, reached, units

LEVELS = [
    ((8,), [(1,), (2,), (4,), (8,)]),
    ((8,), [(8,)]),
    ((13,), [(3,), (13,)]),
    ((11,), [(1,), (2,), (4,), (11,)]),
    ((6,), [(2,), (4,), (6,)]),
    ((4, 6), [(1, 1), (2, 2), (4, 6)]),
    ((5, 7), [(2, 2), (4, 7), (5, 7)]),
    ((3, 1, 5), [(1, 1, 1), (3, 1, 2), (3, 1, 5)]),
]


def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def parts_of(prepared: PreparedLayers) -> list[tuple[int, ...]]:
    """Of each level, coarsest first."""
    found = [one.layer for one in prepared.measurements]
    assert all(isinstance(layer, Nodes) for layer in found)
    return [layer.parts for layer in found if isinstance(layer, Nodes)]


@pytest.mark.parametrize(("shape", "levels"), LEVELS)
def test_levels_are_nested_sums_of_consecutive_cells(shape: tuple[int, ...], levels: list[tuple[int, ...]]) -> None:
    dense = [matrix(Nodes(shape=shape, parts=parts), shape) for parts in levels]
    for parts, one in zip(levels, dense, strict=True):
        layer = Nodes(shape=shape, parts=parts)
        assert one.shape == (layer.size, math.prod(shape))
        assert (one.sum(axis=0) == 1).all()
        sizes = one.sum(axis=1)
        assert sizes.max() == layer.holds
        assert sizes.min() >= math.prod(length // many for length, many in zip(shape, parts, strict=True)) >= 1
        values = rng().normal(size=layer.size)
        assert np.allclose(layer.transpose(values).reshape(-1), one.T @ values)
    for coarse, fine, parts, finer in zip(dense, dense[1:], levels, levels[1:], strict=False):
        together = matrix(Nodes(shape=finer, parts=parts), finer)
        assert (together @ fine == coarse).all()


def test_sums_keep_leading_dimensions_and_spread_is_their_transpose() -> None:
    values, weights = rng().normal(size=(3, 10, 12)), rng().normal(size=(3, 4, 3))
    assert np.allclose(gather(values, (4, 3))[1], gather(values[1], (4, 3)))
    left = np.sum(gather(values, (4, 3)) * weights)
    assert left == pytest.approx(np.sum(values * spread(weights, (10, 12))))


@pytest.mark.parametrize("each", [2, 3, 5, 60])
def test_every_way_of_adding_gives_the_same_sums(each: int) -> None:
    values = rng().integers(-9, 9, (2, 60, 2))
    wanted = values.reshape(2, 60 // each, each, 2).sum(axis=2)
    assert (gather(values, (60 // each, 2)) == wanted).all()
    turned = np.ascontiguousarray(np.moveaxis(values, 1, 2))
    assert (gather(turned, (60 // each,)) == np.moveaxis(wanted, 1, 2)).all()


def test_sums_do_not_wrap() -> None:
    cells = np.full(6, 1 << 62, dtype=np.int64)
    assert list(Nodes(shape=(6,), parts=(2,)).apply(cells)) == [3 << 62] * 2
    assert list(Nodes(shape=(6,), parts=(2,)).apply(-cells)) == [-3 << 62] * 2
    assert Nodes(shape=(6,), parts=(3,)).apply(cells // 2).dtype == np.int64
    assert Nodes(shape=(6,), parts=(6,)).apply(cells).dtype == np.int64


@pytest.mark.parametrize(("shape", "levels"), LEVELS)
def test_two_passes_are_weighted_least_squares(shape: tuple[int, ...], levels: list[tuple[int, ...]]) -> None:
    layers = [Nodes(shape=shape, parts=parts) for parts in levels]
    variances = list(rng().uniform(0.2, 5, size=len(levels)))
    dense = np.vstack([matrix(layer, shape) for layer in layers])
    weights = np.repeat(1 / np.array(variances), [layer.size for layer in layers])
    solve = np.linalg.inv(dense.T * weights @ dense) @ (dense.T * weights)
    noisy = rng().normal(size=len(dense))
    parts = np.split(noisy, np.cumsum([layer.size for layer in layers])[:-1])
    tree = TreeInference(levels=levels, variances=variances)
    before = [part.copy() for part in parts]
    found = tree.estimate(parts)
    assert found.shape == shape
    assert np.allclose(found.reshape(-1), solve @ noisy)
    assert all((part == kept).all() for part, kept in zip(parts, before, strict=True))
    queries = rng().normal(size=(5, *shape))
    influence = np.hstack(tree.influence(queries))
    assert np.allclose(influence, queries.reshape(5, -1) @ solve)


@pytest.mark.parametrize("one", CONTRIBUTIONS, ids=str)
@pytest.mark.parametrize(("length", "parts"), [(8, 1), (8, 2), (8, 4), (8, 8), (7, 3), (5, 2)])
def test_no_unit_reaches_further_than_is_claimed(length: int, parts: int, one: Contribution) -> None:
    layer = Nodes(shape=(length,), parts=(parts,))
    l1, squares = norms(matrix(layer, (length,)), length, one)
    reach = reached(layer, one)
    assert reach[0] >= l1
    assert reach[1] >= squares
    room = parts == 1 or 2 * one.cells <= length  # both units' cells side by side
    if length == 8 and room:
        assert reach == (l1, squares)


def test_reach_of_boxes_by_trying_everything() -> None:
    layer, one = Nodes(shape=(2, 4), parts=(1, 2)), Contribution(cells=3, each=2, total=5)
    assert reached(layer, one) == norms(matrix(layer, (2, 4)), 8, one)


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_l2_of_a_whole_tree_counts_cells_that_meet(neighbors: Neighbors) -> None:
    """Cells of one unit meet in upper nodes: levels × cells, as if they never did, is too little, and so is √ of L1."""
    one = Contribution(cells=2, neighbors=neighbors)
    levels = nest_levels((8,), 2)
    dense = np.vstack([matrix(Nodes(shape=(8,), parts=parts), (8,)) for parts in levels])
    _, squares = norms(dense, 8, one)
    claimed = sum(reached(Nodes(shape=(8,), parts=parts), one)[1] for parts in levels)
    times = 1 if neighbors is Neighbors.ADD_REMOVE else 2
    assert claimed >= squares
    if neighbors is Neighbors.ADD_REMOVE:
        assert claimed == squares == 2 + 4 + 4 + 4
    else:  # the root is moved by one of the two units, and all below it by both
        assert claimed == 4 + 2 * (4 + 4 + 2)
        assert squares == claimed - 4
    assert squares > len(levels) * one.cells * times


def test_a_mechanism_for_units_that_never_meet_is_refused() -> None:
    terms = Terms.at(1, 1e-6, contribution=Contribution(cells=4))
    prepared = Hierarchy(branching=2, noise=Noise.GAUSSIAN, even=True).prepare((16,), terms)
    upper = prepared.measurements[1]
    assert isinstance(upper.mechanism, Gaussian)
    assert parts_of(prepared)[1] == (2,)
    assert upper.mechanism.needs.sensitivity == 16
    meter = Meter({"a": Budget(epsilon=Fraction(100), delta=Fraction(1, 2))})
    cells, measurement = Sealed(np.zeros(16, dtype=np.int64)), upper.measurement(terms.contribution)
    measurement.measure(cells, meter, account="a", neighbors=terms.contribution.neighbors)
    cut = replace(measurement, mechanism=replace(upper.mechanism, sensitivity_squared=Fraction(4)))
    with pytest.raises(MisfitError):
        cut.measure(cells, meter, account="a", neighbors=terms.contribution.neighbors)


@pytest.mark.parametrize("shape", [(1,), (2,), (16,), (60,), (4, 5), (1, 9)])
@pytest.mark.parametrize("one", [CONTRIBUTIONS[0], CONTRIBUTIONS[7]], ids=str)
@pytest.mark.parametrize("noise", list(Noise))
def test_shares_keep_the_price_and_every_layer_fits(shape: tuple[int, ...], one: Contribution, noise: Noise) -> None:
    terms = Terms.at(1, 1e-6, contribution=one)
    prepared = Hierarchy(noise=noise).prepare(shape, terms)
    if noise is Noise.LAPLACE:
        assert all(isinstance(one.mechanism, Geometric) for one in prepared.measurements)
        total = sum(paid(prepared.events))
        assert Fraction(999999, 1000000) < total <= 1
    elif len(prepared.events) > 1:
        assert all(isinstance(one.mechanism, Gaussian) for one in prepared.measurements)
        rho = rho_rounded_down(terms.epsilon, terms.delta)
        assert rho * Fraction(999, 1000) < sum(paid(prepared.events, rho=True)) <= rho
    cells = rng().integers(0, 99, shape)
    published = run(cells, Hierarchy(noise=noise), epsilon=1, delta=1e-6, contribution=one)
    assert published.cells.shape == shape


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("shape", [(64,), (60,), (8, 8)])
def test_what_levels_are_chosen_by_is_the_exact_error(noise: Noise, shape: tuple[int, ...]) -> None:
    """Exact where blocks have one size, and within 3% where sizes differ by one."""
    for branching, even in ((2, True), (2, False), (4, False), (None, False)):
        strategy = Hierarchy(branching=branching, noise=noise, even=even)
        prepared = strategy.prepare(shape, Terms.at(1, 1e-6))
        levels = tuple(parts_of(prepared))
        model = LevelPlan(levels=levels, split=(), model=0.0).expect(Demand.of(shape, None), prepared)
        exact = strategy.error(all_ranges(shape), 1, delta=1e-6)
        alike = all(length % part == 0 for parts in levels for length, part in zip(shape, parts, strict=True))
        assert model == pytest.approx(exact.variance / exact.queries, rel=1e-9 if alike else 0.03)


def rmse(strategy: Hierarchy, workload: Workload, scale: float) -> float:
    return strategy.error(workload, Fraction(1, 1000), delta=1e-6).rmse * scale


def test_textbook_trees_have_the_known_errors() -> None:
    """H2 and H4 with equal shares, times ε/√2, at an ε where discrete noise is as good as continuous."""
    for branching, prefix, ranges in ((2, 12.23, 15.44), (4, 9.32, 11.74)):
        tree = Hierarchy(branching=branching, noise=Noise.LAPLACE, even=True)
        assert rmse(tree, Prefixes(length=1024), 1e-3 / math.sqrt(2)) == pytest.approx(prefix, abs=0.01)
        assert rmse(tree, Ranges(length=1024), 1e-3 / math.sqrt(2)) == pytest.approx(ranges, abs=0.01)


def test_chosen_trees_are_better() -> None:
    ranges = Ranges(length=256)
    chosen = rmse(Hierarchy(noise=Noise.LAPLACE), ranges, 1)
    for branching in (2, 4, 8, 16):
        even = rmse(Hierarchy(branching=branching, noise=Noise.LAPLACE, even=True), ranges, 1)
        kept = rmse(Hierarchy(branching=branching, noise=Noise.LAPLACE), ranges, 1)
        assert kept < even
        assert chosen <= kept * (1 + 1e-9)
    for_prefixes = Hierarchy(noise=Noise.LAPLACE, workload=Prefixes(length=256))
    assert rmse(for_prefixes, Prefixes(length=256), 1) < rmse(Hierarchy(noise=Noise.LAPLACE), Prefixes(length=256), 1)


def test_theory_recommends_wide_trees_for_laplace_binary_for_gaussian_and_none_for_short_domains() -> None:
    terms = Terms.at(0.1, 1e-6)
    wide = [parts for (parts,) in parts_of(Hierarchy(noise=Noise.LAPLACE).prepare((4096,), terms))]
    assert all(10 <= fine / coarse <= 20 for coarse, fine in itertools.pairwise(wide))
    assert len(wide) == 3
    binary = [parts for (parts,) in parts_of(Hierarchy(noise=Noise.GAUSSIAN).prepare((64,), terms))]
    assert binary == [1, 2, 4, 8, 16, 32, 64]
    assert parts_of(Hierarchy().prepare((16,), terms)) == [(16,)]


def test_the_law_with_less_noise_is_taken() -> None:
    shape, long = (4096,), Terms.at(1, 1e-6, contribution=Contribution(cells=50))
    assert Hierarchy().prepare(shape, long).noise is Noise.GAUSSIAN
    assert Hierarchy().prepare(shape, Terms.at(1, 1e-12)).noise is Noise.LAPLACE
    assert Hierarchy().prepare(shape, Terms.at(1)).noise is Noise.LAPLACE


@pytest.mark.parametrize("noise", list(Noise))
def test_shares_cannot_be_improved_nearby(noise: Noise) -> None:
    gain, units = np.array([3.0, 2.0, 4.0, 9.0]), np.array([64.0, 16.0, 4.0, 1.0])
    power = 2 if noise is Noise.LAPLACE else 1
    shares = tree_shares(gain, units, noise)
    least = tree_variance(gain, units * shares**power)
    assert shares.sum() == pytest.approx(1)
    for step in rng().normal(size=(200, 4)) * 0.05:
        other = shares * np.exp(step)
        assert tree_variance(gain, units * (other / other.sum()) ** power) >= least * (1 - 1e-6)
    assert least < tree_variance(gain, units * np.full(4, 0.25) ** power)


def test_shares_count_what_a_unit_can_do_on_each_level() -> None:
    """Cells that meet make upper levels dearer in L2: shares follow, and cells get more of the price."""
    terms = Terms.at(1, 1e-6, contribution=Contribution(cells=2))
    prepared = Hierarchy(branching=2, noise=Noise.GAUSSIAN).prepare((256,), terms)
    levels = parts_of(prepared)
    sizes = np.array([256 / parts for (parts,) in levels])
    squares = np.array([2 if parts == (256,) else 4 for parts in levels])
    wanted = tree_shares(gains(Demand.of((256,), None), [[size] for size in sizes]), sizes / squares, Noise.GAUSSIAN)
    spent = np.array([float(rho) for rho in paid(prepared.events, rho=True)])
    assert len(levels) > 4
    assert spent / spent.sum() == pytest.approx(wanted, abs=1e-4)


def test_fractions_never_sum_to_more_than_one() -> None:
    for shares in ([1.0], [1 / 3] * 3, [1.0, 0.0], [0.1] * 10):
        found = fractions_rounded_down(np.array(shares))
        assert sum(found) <= 1
        assert min(found) > 0
        assert all(abs(float(one) - share) < 1e-6 for one, share in zip(found, shares, strict=True))


@pytest.mark.parametrize("noise", list(Noise))
def test_variances_agree_with_simulation(noise: Noise) -> None:
    """Kurtosis is at most 6 (and a little more on integers): 2,000 squares are off by 0.4 once in a million times at
    most. The mean is off by more than 5.5 of its standard errors less often than that.
    """
    prepared = Hierarchy(noise=noise, branching=3).prepare((10,), Terms.at(1, 0.01, contribution=Contribution(cells=2)))
    cells = rng().integers(0, 50, 10)
    queries = np.vstack([np.ones(10), np.arange(10) < 7, np.arange(10) == 4]).astype(float)
    truth, times = queries @ cells, 2000
    exact = [one.layer.apply(cells) for one in prepared.measurements]
    errors = np.array(
        [
            queries
            @ prepared.estimate(
                [m.mechanism.draw(value) for m, value in zip(prepared.measurements, exact, strict=True)]
            )
            - truth
            for _ in range(times)
        ]
    )
    expected = prepared.variances(queries)
    assert np.abs(errors.mean(axis=0) / np.sqrt(expected / times)).max() < 5.5
    assert np.abs(np.square(errors).mean(axis=0) / expected - 1).max() < 0.4


def test_without_noise_the_cells_come_back() -> None:
    cells = rng().integers(0, 1000, (9, 11))
    prepared = Hierarchy(branching=2).prepare((9, 11), Terms.at(1))
    assert np.allclose(prepared.estimate([one.layer.apply(cells) for one in prepared.measurements]), cells)


def test_choices_do_not_depend_on_the_data() -> None:
    """Different cells, the same laws: all that is prepared comes from shape and terms."""
    first = run(np.zeros(60, dtype=int), Hierarchy(), epsilon=1)
    second = run(np.arange(60) * 1000, Hierarchy(), epsilon=1)
    assert [one.mechanism for one in first.prepared.measurements] == [
        one.mechanism for one in second.prepared.measurements
    ]


def test_parameters_are_checked() -> None:
    wrong: Any
    for wrong in (1, 0, 2.5):
        with pytest.raises(ParameterError):
            Hierarchy(branching=wrong)


def test_brute_force_lists_every_unit_once() -> None:
    found = units(3, Contribution(cells=2, each=2, total=3))
    assert len(found) == len(np.unique(found, axis=0)) == 1 + 3 * 2 + 3 * 3
    assert variance(Geometric(epsilon=Fraction(1))) == pytest.approx(1.8413, abs=1e-3)
