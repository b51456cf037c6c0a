"""Geography: against dense least squares, enumeration of units and simulation; families add up."""

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub import publish
from hubbub.errors import ParameterError
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish.inference.projection import onto_simplex
from hubbub.publish.strategies.flat import Flat
from hubbub.publish.strategies.nested import Groups, Level, levels
from hubbub.publish.strategies.topdown import TopDown, topdown
from hubbub.publish.terms import Contribution, Noise, Terms, variance

FALSE_ALARM = 1e-6
BLOCKS = [f"b{number}" for number in range(24)]
COUNTY = {
    block: f"c{number // 3 if number < 12 else 4 + number // 12 + number % 2}" for number, block in enumerate(BLOCKS)
}
STATE = {county: "north" if county in ("c0", "c1") else "south" for county in dict.fromkeys(COUNTY.values())}
MAP = {"county": COUNTY, "state": STATE}
PLACES = TopDown.along(BLOCKS, MAP, weights=(2, 1, 1))
COUNTS = np.random.default_rng(4).poisson(np.random.default_rng(5).gamma(0.3, 20, 24))


def matrices(strategy: TopDown) -> list[Any]:
    return [np.eye(24), *(np.eye(max(level.of) + 1)[:, list(level.of)] for level in strategy.levels)]


def test_levels_follow_the_maps() -> None:
    county, state = PLACES.levels
    assert county.called == "county"
    assert [county.places[number] for number in county.of] == [COUNTY[block] for block in BLOCKS]
    assert [state.places[number] for number in state.of] == [STATE[COUNTY[block]] for block in BLOCKS]
    with pytest.raises(ParameterError, match="b0"):
        levels(BLOCKS, {"county": {}})
    crossed = (Level(called="x", places=(0,), of=(0, 0)), Level(called="y", places=(0, 1), of=(0, 1)))
    with pytest.raises(ParameterError, match="nested"):
        TopDown(levels=crossed)
    with pytest.raises(ParameterError, match="3 numbers"):
        TopDown(levels=PLACES.levels, weights=(1, 2))
    with pytest.raises(ParameterError, match="one dimension"):
        PLACES.prepare((23,), Terms.at(1))


def test_shares_are_relative_and_alike_where_none_are_given() -> None:
    assert PLACES.shares((24,), Noise.LAPLACE) == (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    assert TopDown.along(BLOCKS, MAP).shares((24,), Noise.LAPLACE) == (Fraction(1, 3),) * 3


@pytest.mark.parametrize("noise", list(Noise))
def test_estimates_and_errors_are_those_of_dense_least_squares(noise: Noise) -> None:
    strategy = TopDown(levels=PLACES.levels, weights=(5, 1, 3), noise=noise)
    ready = strategy.prepare((24,), Terms.at(1, Fraction(1, 10**6)))
    rows = matrices(strategy)
    for layer, row in zip((one.layer for one in ready.measurements), rows, strict=True):
        assert layer.apply(COUNTS).tolist() == (row @ COUNTS).tolist()
        assert layer.apply(COUNTS * 10**17).tolist() == [int(item) * 10**17 for item in row @ COUNTS]
        assert np.allclose(layer.transpose(np.arange(layer.size)), row.T @ np.arange(layer.size))
    spread = [variance(one.mechanism) for one in ready.measurements]  # type: ignore[arg-type]
    weights = np.concatenate([np.full(len(row), 1 / v) for row, v in zip(rows, spread, strict=True)])
    all_rows = np.vstack(rows)
    inverse = np.linalg.inv(all_rows.T @ (weights[:, np.newaxis] * all_rows))
    noisy = [np.random.default_rng(1).normal(9, 30, len(row)) for row in rows]
    assert np.allclose(ready.estimate(noisy), inverse @ all_rows.T @ (weights * np.concatenate(noisy)))
    found = strategy.deviations(ready)
    assert list(found) == ["cell", "county", "state"]
    for deviations, row in zip(found.values(), rows, strict=True):
        expected = np.einsum("ij,jk,ik->i", row, inverse, row)
        assert np.allclose(deviations**2, expected)
        assert np.allclose(ready.variances(row), expected)


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
@pytest.mark.parametrize(("cells", "each", "total"), [(1, 1, 1), (2, 1, 2), (3, 2, 4), (2, 3, 3)])
def test_reach_against_every_unit(cells: int, each: int, total: int, neighbors: Neighbors) -> None:
    one = Contribution(cells=cells, each=each, total=total, neighbors=neighbors)
    layer = Groups(shape=(5,), of=(0, 0, 1, 1, 1))
    moved = np.array([
        layer.apply(np.array(unit))
        for unit in itertools.product(range(each + 1), repeat=5)
        if sum(unit) <= total and np.count_nonzero(unit) <= cells
    ])  # fmt: skip
    if neighbors is Neighbors.REPLACE_ONE:
        moved = (moved[:, np.newaxis] - moved[np.newaxis]).reshape(-1, 2)
    reach = layer.reach(one)
    assert reach.l2_squared == (moved**2).sum(axis=1).max()
    assert reach.l1 == np.abs(moved).sum(axis=1).max()


def test_errors_by_level_are_those_of_simulation() -> None:
    ready = PLACES.prepare((24,), Terms.at(1))
    expected = PLACES.deviations(ready)
    draws = []
    for _ in range(500):
        sums = PLACES.sums(publish.run(COUNTS, PLACES, epsilon=1).cells)
        truth = PLACES.sums(COUNTS)
        draws.append([np.mean(((sums[name] - truth[name]) / expected[name]) ** 2) for name in expected])
    errors = np.array(draws) - 1
    score = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / math.sqrt(len(errors)))
    # Squares are skewed, and their means a little: a thousandth of the rate leaves room for that.
    assert (np.abs(score) < -stats.norm.ppf(FALSE_ALARM / 1000)).all()


def test_families_add_up_to_whole_numbers_that_are_not_negative() -> None:
    for _ in range(5):
        release = publish.run(COUNTS, PLACES, epsilon=0.2)
        made = topdown(release)
        assert made.cells.dtype == np.int64
        assert made.cells.min() >= 0
        assert made.steps == ("non-negative and whole from the top down",)
        assert made.range(0, 4).low is None
        reals = topdown(release, whole=False)
        assert reals.cells.min() >= 0
        # The top is what all levels say of it, cut off at zero, and rounded by less than 1.
        least_squares = np.maximum(_inside(release)[-1], 0)
        assert np.allclose(PLACES.sums(reals.cells)["state"], least_squares)
        assert np.abs(PLACES.sums(made.cells)["state"] - least_squares).max() < 1
    with pytest.raises(ParameterError, match="a release of TopDown"):
        topdown(publish.run(COUNTS, Flat(), epsilon=1))


def _inside(release: Any) -> list[Any]:
    """For every place, least squares over what was measured inside it."""
    rows = matrices(PLACES)
    spread = [variance(one.mechanism) for one in release.prepared.measurements]
    found = []
    for number, row in enumerate(rows):
        level = []
        for place in row:
            mine = place > 0
            parts = [(one[:, mine], y, v) for one, y, v in zip(rows, release.noisy, spread, strict=True)][: number + 1]
            kept = [(one[one.any(axis=1)], np.asarray(y)[one.any(axis=1)], v) for one, y, v in parts]
            a = np.vstack([one / math.sqrt(v) for one, _, v in kept])
            b = np.concatenate([y / math.sqrt(v) for _, y, v in kept])
            level.append(np.linalg.lstsq(a, b, rcond=None)[0].sum())
        found.append(np.array(level))
    return found


def test_a_family_is_the_nearest_that_adds_up() -> None:
    """One county of three blocks under one state: projection of the blocks onto what the top was found to be."""
    strategy = TopDown.along("abc", {"all": dict.fromkeys("abc", "x")})
    release = publish.run(np.array([40, 1, 0]), strategy, epsilon=0.5)
    made = topdown(release, whole=False)
    top = max(0.0, float(release.cells.sum()))
    assert np.allclose(made.cells, onto_simplex(np.asarray(release.noisy[0], dtype=float), total=top))


def test_upper_levels_beat_noisy_blocks() -> None:
    """300 blocks in 3 states at ε = 0.1: sums of 100 noisy blocks against states that were measured themselves."""
    blocks = list(range(300))
    strategy = TopDown.along(blocks, {"county": {b: b // 10 for b in blocks}, "state": {c: c // 10 for c in range(30)}})
    truth = np.random.default_rng(8).poisson(40, 300)
    states = strategy.sums(truth)["state"]
    ready = strategy.prepare((300,), Terms.at(0.1))
    flat = Flat().prepare((300,), Terms.at(0.1))
    by_blocks = float(flat.variances(matrices_of(strategy)[-1])[0])
    assert (strategy.deviations(ready)["state"] ** 2 < 0.2 * by_blocks).all()
    ours, theirs = [], []
    for _ in range(40):
        made = topdown(publish.run(truth, strategy, epsilon=0.1))
        ours.append(np.mean((strategy.sums(made.cells)["state"] - states) ** 2))
        noisy = publish.run(truth, Flat(), epsilon=0.1).cells
        theirs.append(np.mean((strategy.sums(noisy)["state"] - states) ** 2))
    # 120 squared errors a side: a ratio of means above 1 where 0.1 is expected has a chance far below 1e-6.
    assert np.mean(ours) < np.mean(theirs)


def matrices_of(strategy: TopDown) -> list[Any]:
    return [np.eye(max(level.of) + 1)[:, list(level.of)] for level in strategy.levels]


def test_geography_is_saved_with_the_release(tmp_path: Path) -> None:
    release = publish.run(COUNTS, PLACES, epsilon=1)
    release.save(tmp_path / "release.json")
    again = publish.load(tmp_path / "release.json")
    assert again.strategy == PLACES
    assert topdown(again).cells.tolist() == topdown(release).cells.tolist()
