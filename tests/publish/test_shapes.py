"""Polygons and discs on a release: shares of cells against other ways to find them, and answers against brute force."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub import publish
from hubbub.errors import ParameterError
from hubbub.ledger import Marks
from hubbub.publish import spatial
from hubbub.publish.release.shapes import disc_shares, kilometres, polygon_shares

X, Y = np.linspace(0, 4, 9), np.array([-1.0, -0.5, 0.25, 0.5, 2.0])
SHARP = 200
"""An ε at which there is no noise to speak of."""
Ring = list[tuple[Fraction, Fraction]]


def clipped(ring: Ring, axis: int, bound: Fraction, *, above: bool) -> Ring:
    """The part of a polygon on one side of a line, corner by corner, in exact numbers."""
    found: Ring = []
    for here, there in zip(ring, [*ring[1:], *ring[:1]], strict=True):
        ins = [(one[axis] >= bound) if above else (one[axis] <= bound) for one in (here, there)]
        if ins[0]:
            found.append(here)
        if ins[0] != ins[1]:
            share = (bound - here[axis]) / (there[axis] - here[axis])
            found.append(tuple(a + share * (b - a) for a, b in zip(here, there, strict=True)))  # type: ignore[arg-type]
    return found


def area(ring: Ring) -> Fraction:
    pairs = zip(ring, [*ring[1:], *ring[:1]], strict=True)
    return abs(sum((a[0] * b[1] - b[0] * a[1] for a, b in pairs), Fraction(0))) / 2


def exact_shares(corners: Any, x: Any, y: Any) -> np.ndarray[Any, Any]:
    """By clipping the polygon to every cell."""
    ring = [(Fraction(a), Fraction(b)) for a, b in corners]
    found = np.zeros((len(x) - 1, len(y) - 1))
    for row in range(len(x) - 1):
        for column in range(len(y) - 1):
            left, right, low, high = (Fraction(float(one)) for one in (x[row], x[row + 1], y[column], y[column + 1]))
            part = clipped(clipped(ring, 0, left, above=True), 0, right, above=False)
            part = clipped(clipped(part, 1, low, above=True), 1, high, above=False)
            found[row, column] = area(part) / ((right - left) * (high - low)) if part else 0
    return found


def star(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Corners around (2, 0.3), by their angle: a polygon that does not cross itself, seldom a convex one."""
    turns = sorted(points)
    return [(2 + far * math.cos(turn), 0.3 + far * math.sin(turn)) for turn, far in turns]


CORNERS = st.lists(
    st.tuples(st.floats(0, 6.25), st.floats(0.05, 4)), min_size=4, max_size=9, unique_by=lambda one: round(one[0], 1)
)


@given(CORNERS)
def test_shares_are_those_of_exact_clipping(points: list[tuple[float, float]]) -> None:
    corners = star(points)
    try:
        found = polygon_shares(corners, (), X, Y)
    except ParameterError:  # all corners within half a turn: the last edge may cross
        return
    assert np.abs(found - exact_shares(corners, X, Y)).max() < 1e-12
    assert np.abs(found - polygon_shares(corners[::-1], (), X, Y)).max() < 1e-12


def test_corners_on_lines_and_a_hole() -> None:
    square = [(0.5, -0.5), (2.5, -0.5), (2.5, 0.5), (0.5, 0.5), (0.5, -0.5)]
    found = polygon_shares(square, [[(1, -0.5), (1.5, 0.25), (1, 0.25)]], X, Y)
    expected = np.zeros((8, 4))
    expected[1:5, 1:3] = 1
    expected[2, 1] = 0.5
    assert np.abs(found - expected).max() < 1e-15


@given(st.floats(-1, 5), st.floats(-2, 3), st.floats(0.01, 6))
def test_discs_are_polygons_of_many_corners(right: float, up: float, radius: float) -> None:
    """Of 4,000 corners, whose polygon covers all but 4e-7 of the disc."""
    turns = np.linspace(0, 2 * math.pi, 4000, endpoint=False)
    corners = np.column_stack([right + radius * np.cos(turns), up + radius * np.sin(turns)])
    x, y = X, Y
    whole = polygon_area_shares(corners, x, y)
    most = 5e-7 * math.pi * radius**2 / float(np.multiply.outer(np.diff(x), np.diff(y)).min())
    found = disc_shares((right, up), radius, x, y)
    assert np.abs(found - whole).max() < most + 1e-9
    assert found.min() >= 0
    assert found.max() <= 1


def polygon_area_shares(corners: Any, x: Any, y: Any) -> Any:
    from hubbub.publish.release import shapes

    covered = shapes._below(corners, x, y) * shapes._turn(corners)
    return np.clip(covered / np.multiply.outer(np.diff(x), np.diff(y)), 0, 1)


def test_a_disc_that_is_inside_has_its_area() -> None:
    cells = np.multiply.outer(np.diff(X), np.diff(Y))
    found = float((disc_shares((1.5, 0.2), 0.75, X, Y) * cells).sum())
    assert found == pytest.approx(math.pi * 0.75**2, rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        [(0, 0), (1, 1)],
        [(0, 0), (1, 1), (0, 1), (1, 0)],
        [(0, 0), (1, 1), (2, 2)],
        [(0, 0), (1, math.nan), (2, 0)],
        [(0, 0, 0), (1, 1, 1), (2, 0, 0)],
        "none",
    ],
)
def test_what_is_no_polygon_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError):
        polygon_shares(wrong, (), X, Y)


def released(strategy: Any, *, epsilon: float = SHARP, **over: Any) -> tuple[np.ndarray[Any, Any], publish.Published]:
    domain = publish.Domain.of(over or {"lon": publish.bins(0, 4, 16), "lat": publish.bins(50, 52, 8)})
    cells = np.random.default_rng(3).integers(0, 90, domain.shape)
    return cells, publish.run(cells, strategy, epsilon=epsilon, domain=domain)


MAPS = (spatial.QuadTree(), publish.Flat(), publish.Wavelet())


@pytest.mark.parametrize("strategy", MAPS, ids=lambda one: one.name)
def test_answers_without_noise_are_brute_force(strategy: Any) -> None:
    cells, found = released(strategy)
    corners = [(0.3, 50.1), (3.9, 50.4), (2.1, 51.0), (3.0, 51.9), (0.2, 51.5)]
    shares = exact_shares(corners, np.linspace(0, 4, 17), np.linspace(50, 52, 9))
    assert found.polygon(corners).value == pytest.approx(float((shares * cells).sum()), rel=1e-6)
    disc = disc_shares((2.0, 51.0), 0.8, np.linspace(0, 4, 17), np.linspace(50, 52, 9))
    assert found.radius((2, 51), 0.8).value == pytest.approx(float((disc * cells).sum()), rel=1e-6)


def test_a_rectangle_is_a_polygon() -> None:
    _, found = released(spatial.QuadTree(), epsilon=1)
    box, outline = found.range(lon=(1, 3), lat=(50, 51)), found.polygon([(1, 50), (3, 50), (3, 51), (1, 51)])
    assert outline.value == pytest.approx(box.value)
    assert outline.deviation == pytest.approx(box.deviation)


def test_the_error_is_that_of_the_linear_combination() -> None:
    """Of cells with noise of their own: the root of the sum of squared shares, times the noise of one."""
    _, found = released(publish.Flat(), epsilon=1)
    corners = [(0.3, 50.1), (3.9, 50.4), (2.1, 51.0)]
    shares = exact_shares(corners, np.linspace(0, 4, 17), np.linspace(50, 52, 9))
    one = found.polygon([(0, 50), (0.25, 50), (0.25, 50.25), (0, 50.25)]).deviation
    assert one is not None
    assert found.polygon(corners).deviation == pytest.approx(one * math.sqrt(float((shares**2).sum())))
    assert found.polygon(corners, confidence=0.5).high < found.polygon(corners, confidence=0.99).high  # type: ignore[operator]


def test_no_interval_where_the_error_depends_on_the_data() -> None:
    _, found = released(spatial.Auto(), epsilon=1)
    told = found.radius((2, 51), 0.5)
    assert told.low is None
    assert "depends on the data" in str(told.why_no_interval)


def test_other_axes_are_summed_or_named() -> None:
    cells, found = released(publish.Flat(), lat=publish.bins(0, 2, 4), hour=range(3), lon=publish.bins(0, 4, 8))
    square = [(1, 0.5), (3, 0.5), (3, 1.5), (1, 1.5)]
    assert found.polygon(square, axes=("lon", "lat")).value == pytest.approx(float(cells[1:3, :, 2:6].sum()), rel=1e-6)
    assert found.polygon(square, axes=("lon", "lat"), hour=1).value == pytest.approx(float(cells[1:3, 1, 2:6].sum()))
    with pytest.raises(ParameterError):
        found.polygon(square, axes=("lon", "lat"), lon=(0, 4))
    _, swapped = released(publish.Flat(), lat=publish.bins(0, 2, 4), lon=publish.bins(0, 4, 8))
    assert swapped.polygon(square).value == pytest.approx(float(swapped.cells[1:3, 2:6].sum()))


def test_kilometres_are_those_of_the_place() -> None:
    wide, tall = kilometres(60)
    assert wide == pytest.approx(tall / 2)
    cells, found = released(publish.Flat(), lon=publish.bins(0, 4, 64), lat=publish.bins(59, 61, 64))
    disc = disc_shares((2 * wide, 60 * tall), 40, np.linspace(0, 4, 65) * wide, np.linspace(59, 61, 65) * tall)
    assert found.radius((2, 60), km=40).value == pytest.approx(float((disc * cells).sum()), rel=1e-6)
    area_km = float(disc.sum()) * (4 / 64 * wide) * (2 / 64 * tall)
    assert area_km == pytest.approx(math.pi * 1600, rel=1e-9)
    for wrong in ({}, {"distance": 1, "km": 1}, {"km": -1}):
        with pytest.raises(ParameterError):
            found.radius((2, 60), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "over", [{"a": ["x", "y"], "b": range(4)}, {"a": range(4)}, {"a": range(4, 0, -1), "b": range(3)}]
)
def test_what_is_no_map_is_refused(over: dict[str, Any]) -> None:
    _, found = released(publish.Flat(), **over)
    with pytest.raises(ParameterError):
        found.polygon([(0, 0), (1, 0), (1, 1)])


def test_points_of_several_a_person_through_the_engine(tmp_path: Path) -> None:
    """Each has 6 points in 3 cells; 2 rows in each of 2 cells count, and 3 of them together."""
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT i // 6 AS rider, 10.1 + (i % 3) AS lon, 50.1 + (i // 6) % 2 AS lat FROM range(6000) t(i)) "
            f"TO '{tmp_path}/points.parquet'"
        )
    grid = {"lon": publish.bins(10, 14, 8), "lat": publish.bins(50, 52, 4)}
    paid: dict[str, Any] = {"budget": hb.Budget(epsilon=Fraction(10**4)), "marks": Marks(tmp_path / "marks")}
    with hb.open(tmp_path / "points.parquet", unit="rider", ledger=tmp_path / "l", **paid) as db:
        asked: dict[str, Any] = {"over": grid, "epsilon": 600, "cells": 2, "each": 2, "rows": 3}
        for strategy in (spatial.QuadTree(), spatial.Auto(), spatial.AdaptiveGrid()):
            found = db.publish(strategy, **asked)
            assert found.prepared.terms.contribution == publish.Contribution(cells=2, each=2, total=3)
            assert found.polygon([(10, 50), (14, 50), (14, 52), (10, 52)]).value == pytest.approx(3000, abs=0.5)
            assert found.radius((11.1, 50.6), 50).value == pytest.approx(3000, abs=0.5)
            assert found.polygon([(10, 50), (14, 50), (14, 51), (10, 51)]).value == pytest.approx(1500, abs=0.5)
            assert np.count_nonzero(np.rint(found.cells)) == 6
