"""k-means: close to what one finds without privacy, sound on every table, and bounded where it says so."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.cluster import KMeans as Plain
from sklearn.pipeline import make_pipeline

from hubbub.audit.canaries import one_run
from hubbub.engines.arrays.engine import Arrays
from hubbub.errors import ParameterError
from hubbub.gate.secret import open_sealed
from hubbub.learn import KMeans, StandardScaler
from hubbub.learn.kmeans.axes import FINE, BinnedAxis, Box, Grid, Shadow
from hubbub.learn.kmeans.grid import faint
from hubbub.learn.kmeans.rounds import Round, farness, spread_points, sum_offsets
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.histograms import NoisyHistogram
from hubbub.query.totals import columns
from hubbub.testing.replay import replayed

Array = np.ndarray[Any, Any]
PLACES = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])


def clumps(rows: int = 3000, *, columns: int = 2, seed: int = 1) -> Array:
    chance = np.random.default_rng(seed)
    middles = np.pad(PLACES, ((0, 0), (0, columns - 2)), constant_values=0.3)
    return np.clip(middles[chance.integers(0, 3, rows)] + chance.normal(0, 0.08, (rows, columns)), -1, 1)


def off(x: Array, centres: Array) -> float:
    return float(((x[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).mean())


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("columns", [2, 5, 16])
def test_centres_are_nearly_as_good_as_without_privacy(columns: int, delta: float) -> None:
    """Noise from a fixed stream: it cannot fail by chance."""
    x = clumps(columns=columns)
    plain = off(x, Plain(3, n_init=5, random_state=0).fit(x).cluster_centers_)
    with replayed(3):
        model = KMeans(3, epsilon=4.0, delta=delta, bounds=(-1, 1)).fit(x)
    assert off(x, model.cluster_centers_) <= 1.3 * plain


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_rounds_alone_lead_where_they_lead_without_noise(delta: float) -> None:
    x = clumps()
    first = spread_points(4, np.ones(2))
    plain = Plain(4, init=first, n_init=1, max_iter=5).fit(x)
    with replayed():
        model = KMeans(4, epsilon=20.0, delta=delta, bounds=(-1, 1), algorithm="lloyd").fit(x)
    assert off(x, model.cluster_centers_) <= 1.1 * off(x, plain.cluster_centers_)


def test_units_of_columns_are_those_of_the_table() -> None:
    """A column in thousandths has a thousand times its weight, as in scikit-learn."""
    x = clumps() * np.array([1.0, 1000.0]) + np.array([5.0, 0.0])
    bounds = ([4.0, -1000.0], [6.0, 1000.0])
    with replayed():
        model = KMeans(2, epsilon=20.0, bounds=bounds).fit(x)
    plain = Plain(2, n_init=5, random_state=0).fit(x)
    assert off(x, model.cluster_centers_) <= 1.05 * off(x, plain.cluster_centers_)


def test_bounds_that_are_far_too_wide_are_closed_in_on() -> None:
    x = clumps(20_000) / 16 + 0.25
    with replayed():
        model = KMeans(3, epsilon=2.0, bounds=(-1, 1)).fit(x)
    assert "columns, closer" in str(model.claim_)
    assert off(x, model.cluster_centers_) <= 2 * off(x, Plain(3, n_init=5, random_state=0).fit(x).cluster_centers_)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308, 0.0])
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_no_table_is_refused(value: float, rows: int) -> None:
    for bounds in ((-1, 1), None):
        model = KMeans(4, bounds=bounds).fit(np.full((rows, 3), value))
        assert model.cluster_centers_.shape == (4, 3)
        assert np.isfinite(model.cluster_centers_).all()
        assert model.predict(np.full((2, 3), value)).shape == (2,)


def test_centres_stay_within_the_bounds_at_any_price() -> None:
    model = KMeans(6, epsilon=0.001, bounds=([0, -2], [1, 3])).fit(clumps(40))
    assert (model.cluster_centers_ >= [0, -2]).all()
    assert (model.cluster_centers_ <= [1, 3]).all()


def test_it_keeps_nothing_exact_and_says_what_it_paid() -> None:
    model = KMeans(3, epsilon=0.7, bounds=(-1, 1)).fit(clumps(), groups=np.arange(3000) // 3)
    learned = {name for name in vars(model) if name.endswith("_")}
    assert learned == {"cluster_centers_", "n_features_in_", "low_", "high_", "claim_"}
    assert "ε = 0.7 for each group, which counts for at most 1 row" in str(model.claim_)
    assert "mean squared distance" in str(model.claim_)


def test_it_goes_where_scikit_learn_goes() -> None:
    x = clumps(300)
    model = clone(KMeans(3, epsilon=9.0, bounds=(-1, 1))).fit(x)
    apart = model.transform(x)
    assert apart.shape == (300, 3)
    assert (model.predict(x) == apart.argmin(axis=1)).all()
    assert model.score(x) == pytest.approx(-(apart.min(axis=1) ** 2).sum())
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]
    assert make_pipeline(StandardScaler(bounds=(-1, 1)), KMeans(3, bounds=(-4, 4))).fit(x).predict(x).shape == (300,)
    assert KMeans(3, bounds=(-1, 1)).fit_predict(x).shape == (300,)


@pytest.mark.parametrize(("wrong", "word"), [({"algorithm": "best"}, "algorithm"), ({"n_clusters": 0}, "n_clusters")])
def test_wrong_parameters_are_refused(wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        KMeans(**wrong).fit(clumps(5))


def test_canaries_are_not_told() -> None:
    """128 rows of their own, one run; honest ε = 1 is accused once in a million runs."""
    corners = [tuple(row) for row in np.random.default_rng(5).choice([-1.0, 1.0], (128, 8)).tolist()]

    def fitted(rows: list[Any]) -> Array:
        return np.asarray(KMeans(4, bounds=(-1, 1)).fit(np.array(rows)).cluster_centers_)

    report = one_run(
        fitted, canaries=corners, score=lambda out, row: -float(((out - row) ** 2).sum(axis=1).min()),
        epsilon=1.0, base=[(0.0,) * 8] * 4, seed=7,
    )  # fmt: skip
    assert not report.accused, report


# What is proven, tried on everything that is small


def summed(centres: Array, box: Box, data: Features, *, measured: Round, ends: Array) -> Array:
    (found,) = open_sealed(data.add_up(sum_offsets(centres, box, data, measured=measured, ends=ends, seen=box)))
    return np.asarray(found)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("pure", [True, False])
def test_one_row_moves_the_sums_of_a_round_by_its_reach_at_most(counts: bool, pure: bool) -> None:
    ends_of_box = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    centres = np.array([[-200_000.0, 1000.0], [300_000.0, -5.0]])
    measured = Round(origin=centres, far=np.array([9_000.0, 400_000.0]), counts=counts)
    ends = measured.ends(pure=pure)
    odd = (-1.0, -0.2, 0.0, 0.3, 1.0, math.nan, math.inf, 7.0)
    nobody = np.zeros((len(centres), len(ends)), dtype=np.int64)
    largest = 0
    for row in product(odd, repeat=2):
        data = Features.of(np.array([row]), Crowd(rows=1))
        moved = summed(centres, Box.of(data, *ends_of_box), data, measured=measured, ends=ends) - nobody
        assert (np.abs(moved) <= ends).all()
        assert (moved != 0).any(axis=1).sum() <= 1
        largest = max(largest, int(np.abs(moved).sum()))
    assert largest == int(ends.sum())


def test_rows_of_one_person_share_their_weight() -> None:
    x = np.full((5, 2), 0.9)
    data = Features.of(x, Crowd.of(np.zeros(5, dtype=int), rows=5, most=2))
    box = Box.of(data, np.full(2, -1.0), np.full(2, 1.0))
    measured = Round(origin=np.zeros(2), far=box.ends, counts=True)
    ends = measured.ends(pure=True)
    alone = summed(np.zeros((1, 2)), box, data, measured=measured, ends=ends)
    assert (np.abs(alone) <= 2 * ends).all()
    assert alone[0, 2] >= 2 * ends[2] - 5


def test_a_row_chooses_its_cell_and_its_centre_by_itself() -> None:
    """The same row decides the same beside any others, in blocks of any size: ties go to the first."""
    x = clumps(2000, columns=7)
    box = Box.of(Features.of(x, Crowd(rows=2000)), np.full(7, -1.0), np.full(7, 1.0))
    with replayed():
        shadow = Shadow.of(box, directions=3)
    grid = Grid.of(tuple(BinnedAxis(start=-end, stop=end) for end in box.ends.tolist()), cells=500)
    centres = np.rint(Arrays(x[:5]).rows(box.rows))
    for wanted in (box.rows.nearest(centres.tolist()), grid.code(box.rows).number, shadow.rows):
        whole = Arrays(x).rows(wanted)
        pieces = np.concatenate([Arrays(x[at : at + 7]).rows(wanted) for at in range(0, 2000, 7)])
        assert (whole == pieces).all()
    assert Arrays(np.array([[0.0], [1.0]])).rows(columns(0, 1).nearest([[1.0], [-1.0]])).tolist() == [0, 0]


# Grids


def test_cells_go_where_rows_differ() -> None:
    humps = np.zeros(16)
    humps[[1, 2, 12, 13]] = 0.25
    one = np.zeros(16)
    one[5] = 1.0
    grid = Grid.of((BinnedAxis(start=-8, stop=8, mass=humps), BinnedAxis(start=-8, stop=8, mass=one)), cells=2)
    assert grid.shape == (2, 1)
    means, variances = grid.describe(np.arange(2))
    assert means.tolist() == [[-6.0, -2.5], [5.0, -2.5]]
    assert np.allclose(variances, [[0.25 + 1 / 12, 1 / 12]] * 2)
    rows = np.array([[-7.0, 0.0], [4.0, -8.0], [99.0, 99.0], [-99.0, 0.0]])
    codes = Arrays(rows).rows(grid.code(columns(0, 2)).number)
    assert codes.tolist() == [0, 1, 1, 0]


def test_the_best_cuts_are_the_best_of_all() -> None:
    chance = np.random.default_rng(2)
    mass = chance.dirichlet(np.ones(7))
    axis = BinnedAxis(start=0, stop=7, mass=mass)
    for many, (cost, edges) in enumerate(axis.cuts(7), start=1):
        assert edges is not None
        assert len(edges) == many + 1
        tried = [
            sum((axis.describe(np.array(way))[1] * np.add.reduceat(mass, way[:-1])).tolist())
            for inner in product(range(1, 7), repeat=many - 1)
            if list(inner) == sorted(set(inner)) and (way := [0, *inner, 7])
        ]
        assert cost == pytest.approx(min(tried))


def test_an_even_axis_has_even_parts_and_a_point_has_one() -> None:
    axis = BinnedAxis(start=-10.0, stop=10.0)
    assert axis.bins == FINE
    assert axis.describe(np.array([0, FINE // 2, FINE]))[0].tolist() == [-5.0, 5.0]
    assert Grid.of((axis, BinnedAxis(start=0.0, stop=0.0)), cells=40).shape == (40, 1)


@pytest.mark.parametrize("tail", [0.0, 10.0])
def test_faint_cells_are_those_that_noise_would_fill(tail: float) -> None:
    """Counts of 10^6 empty cells, drawn by NumPy from the law that the tally states: within a tenth of what is said."""
    chance = np.random.default_rng(8)
    deviation = 10.0 * math.sqrt(2)
    noise = chance.laplace(0, 10.0, 1_000_000) if tail else chance.normal(0, deviation, 1_000_000)
    told = NoisyHistogram(tables=(), deviation=deviation, tail=tail)
    level = faint(1_000_000, told, rows=1e6, share=0.02)
    assert noise[noise > level].sum() <= 0.022 * 1e6
    assert noise[noise > level - deviation / 2].sum() > 0.018 * 1e6


def test_first_points_are_far_from_each_other_and_within_the_box() -> None:
    points = spread_points(9, np.array([1.0, 10.0]))
    assert (np.abs(points) <= [0.8, 8.0]).all()
    gaps = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)) + 99 * np.eye(9)
    assert gaps.min() > 1.0


def test_how_far_rows_may_lie_is_never_nothing_and_never_more_than_the_box() -> None:
    ends = np.array([2048.0, 2048.0, 0.0])
    assert farness(np.array([0.0, 1e9, 0.0]), ends).tolist() == [2.0, 4096.0, 2.0]
    assert farness(np.array([100.0, 100.0, 0.0]), ends).tolist() == [250.0, 250.0, 2.0]


def test_shares_never_exceed_the_price() -> None:
    for width, algorithm in ((1, "auto"), (2, "auto"), (3, "auto"), (13, "auto"), (2, "lloyd")):
        x = np.zeros((500, width))
        model = KMeans(2, epsilon=8.0, bounds=(-1, 1), algorithm=algorithm).fit(x)
        paid = [Fraction(part.split("ε = ")[1].rstrip(")")) for part in model.claim_.measured]
        assert abs(sum(paid, Fraction(0)) - 8) < Fraction(1, 1000)
