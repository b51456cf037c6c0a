"""The rectangles that maps are drawn from, and intervals for all cells at once."""

from typing import Any

import numpy as np
import pytest

from hubbub import publish
from hubbub.publish import spatial
from hubbub.publish.release import map_margins as each_margin
from hubbub.publish.release.map_margins import leaves

SHAPE = (16, 24)


def crowd(seed: int = 3, shape: tuple[int, int] = SHAPE) -> Any:
    rng = np.random.default_rng(seed)
    return rng.multinomial(20_000, rng.dirichlet(np.full(shape[0] * shape[1], 0.05))).reshape(shape)


TREES = [
    spatial.KdTree(height=2),
    spatial.Hybrid(kd=1, quad=1),
    spatial.Auto(),
    spatial.AdaptiveGrid(),
    spatial.UniformGrid(side=3),
    spatial.QuadTree(stop=300),
    spatial.QuadTree(stop=300, least=4),
    spatial.QuadTree(height=2),
]


@pytest.mark.parametrize("strategy", TREES, ids=lambda one: f"{one.name}")
def test_leaves_tile_the_map_and_are_even_within(strategy: Any) -> None:
    made = publish.run(crowd(), strategy, epsilon=0.1)
    found = leaves(made)
    assert found is not None
    assert 1 < len(found) < 16 * 24
    times = np.zeros(SHAPE, dtype=int)
    for top, bottom, left, right in found.tolist():
        inside = made.cells[top:bottom, left:right]
        times[top:bottom, left:right] += 1
        assert inside.max() - inside.min() == pytest.approx(0, abs=1e-6)
    assert np.all(times == 1)


def test_a_kd_tree_has_the_leaves_of_its_own_cuts() -> None:
    strategy = spatial.KdTree(height=1)
    made = publish.run(crowd(), strategy, epsilon=1)
    found = leaves(made)
    assert found is not None
    _, told = made.prepared.mechanism.parse(made.noisy[0])  # type: ignore[attr-defined]
    assert len(found) == 4
    assert {int(end) for end in found[:, 1]} == {int(told[0][0]), 16}
    assert {int(end) for end in found[:, 3]} == {*told[1].tolist(), 24}


def test_a_pruned_tree_keeps_whole_what_is_below_the_stop() -> None:
    cells = np.zeros((8, 8), dtype=int)
    cells[0, 0] = 10**7
    found = leaves(publish.run(cells, spatial.QuadTree(stop=10**5), epsilon=1))
    assert found is not None
    assert sorted((found[:, 1] - found[:, 0]).tolist()) == [1] * 4 + [2] * 3 + [4] * 3
    assert [0, 1, 0, 1] in found.tolist()
    assert [4, 8, 4, 8] in found.tolist()


@pytest.mark.parametrize(
    ("cells", "strategy"),
    [
        (crowd(), publish.Flat()),
        (crowd(), spatial.QuadTree()),
        (np.arange(8), publish.Hierarchy()),
    ],
)
def test_where_every_cell_stands_for_itself_there_are_none(cells: Any, strategy: Any) -> None:
    assert leaves(publish.run(cells, strategy, epsilon=1)) is None


def boxes(shape: tuple[int, ...]) -> Any:
    places = np.indices(shape).reshape(len(shape), -1).T
    return np.stack([places, places + 1], axis=2).reshape(len(places), -1)


@pytest.mark.parametrize(
    ("strategy", "shape"),
    [
        (publish.Flat(), (4, 6)),
        (spatial.QuadTree(), (4, 4)),
        (spatial.QuadTree(), (3, 5)),
        (spatial.QuadTree(height=1), (4, 4)),
        (publish.Hierarchy(), (4, 6)),
        (publish.Wavelet(), (4, 4)),
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_margins_of_all_cells_are_those_of_each(strategy: Any, shape: tuple[int, ...]) -> None:
    made = publish.run(np.ones(shape, dtype=int), strategy, epsilon=1)
    found, why = each_margin.margins(made, boxes(shape), beta=0.05)
    assert why is None
    assert found is not None
    for place in (0, len(found) // 2 - 1, len(found) - 1):
        query = np.zeros(shape)
        query.flat[place] = 1
        alone = made.answer(query, confidence=0.95)
        assert alone.high is not None
        assert found[place] == pytest.approx(alone.high - alone.value, rel=1e-6)


def test_many_kinds_of_cells_get_a_bound_that_is_quicker_and_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    made = publish.run(np.ones((3, 5), dtype=int), spatial.QuadTree(), epsilon=1)
    exact, _ = each_margin.margins(made, boxes((3, 5)), beta=0.05)
    monkeypatch.setattr(each_margin, "_MOST_KINDS", 0)
    bound, _ = each_margin.margins(made, boxes((3, 5)), beta=0.05)
    assert exact is not None
    assert bound is not None
    assert np.all(bound > exact)
    assert np.all(bound < 2 * exact)


def test_alike_is_only_what_divides_evenly() -> None:
    def alike(strategy: Any, shape: tuple[int, int]) -> bool:
        return each_margin.alike(publish.run(np.ones(shape, dtype=int), strategy, epsilon=1).prepared)

    assert alike(publish.Flat(), (3, 5))
    assert alike(spatial.QuadTree(), (8, 8))
    assert alike(spatial.QuadTree(), (8, 16))
    assert not alike(spatial.QuadTree(), (8, 12))
    assert not alike(spatial.QuadTree(), (7, 8))
    assert not alike(spatial.QuadTree(stop=5), (8, 8))
    assert not alike(publish.Wavelet(), (8, 8))


@pytest.mark.parametrize("strategy", [spatial.Auto(), spatial.QuadTree(stop=5)], ids=lambda one: one.name)
def test_no_margins_where_errors_depend_on_the_data(strategy: Any) -> None:
    found, why = each_margin.margins(publish.run(crowd(), strategy, epsilon=1), boxes(SHAPE), beta=0.05)
    assert found is None
    assert why is not None
    assert "data" in why


def test_no_margins_after_a_step_and_none_that_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = publish.run(crowd(), publish.Flat(), epsilon=1)
    assert "non-negative" in str(each_margin.margins(made.nonnegative(), boxes(SHAPE), beta=0.05)[1])
    monkeypatch.setattr(each_margin, "_MOST_COEFFICIENTS", 10)
    many = publish.run(crowd(), publish.Hierarchy(), epsilon=1)
    found, why = each_margin.margins(many, boxes(SHAPE), beta=0.05)
    assert found is None
    assert "range()" in str(why)
