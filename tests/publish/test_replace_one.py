"""One unit replaced: what every layered strategy measures moves within its claim, in the norm of its mechanism.

First by trying every pair of units there could be on few cells, then through ``db.publish`` with units at their limits,
by the short statement and by the long one that is run where facts have fallen.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest

from hubbub import publish
from hubbub.engines import held
from hubbub.mechanisms.staged.resolution import Resolution
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.publish import Contribution, Noise, Terms, sparse, spatial
from tests.publish.brute import changes, matrix, units
from tests.publish.replay_faults import beyond, too_far
from tests.publish.replaying import STRATEGIES, Case, published
from tests.query.inside import World, row

REPLACED = [
    Contribution(cells=cells, each=each, total=total, neighbors=Neighbors.REPLACE_ONE)
    for cells, each, total in itertools.product((1, 2, 3), (1, 2, 3), (0, 2, 3, 5))
]
"""Every combination of max_groups, max_rows and max_total_rows up to what four cells can tell apart."""
HALVES = publish.TopDown(levels=(publish.Level(called="half", places=("low", "high"), of=(0, 0, 1, 1)),))
LAYERED: dict[str, tuple[Any, tuple[int, ...]]] = {
    "flat": (publish.Flat(), (4,)),
    "hierarchy": (publish.Hierarchy(branching=2), (4,)),
    "hierarchy of two axes": (publish.Hierarchy(branching=2), (2, 2)),
    "wavelet": (publish.Wavelet(), (4,)),
    "matrix": (publish.Matrix(), (4,)),
    "topdown": (HALVES, (4,)),
    "marginals": (publish.Marginals(ways=1), (2, 2)),
    "cube": (publish.Cube(ways=2), (2, 2)),
    "fourier": (publish.Fourier(least=1), (4,)),
    "fourier of three cells": (publish.Fourier(least=1), (3,)),
    "count-sketch": (publish.CountSketch(rows=2, width=2), (4,)),
    "sensing": (publish.Sensing(sparsity=1, size=3), (4,)),
    "sparse threshold": (sparse.Threshold(at=2), (4,)),
    "sparse largest": (sparse.Largest(count=2), (4,)),
    "kd-tree": (spatial.KdTree(height=1), (2, 2)),
    "uniform grid": (spatial.UniformGrid(), (2, 2)),
}


def greatest(moved: np.ndarray, norm: Norm) -> int:
    """How far apart neighbours are at most, where a unit is replaced."""
    gone, come = np.where(moved > 0, moved, 0).sum(axis=1), np.where(moved < 0, -moved, 0).sum(axis=1)
    match norm:
        case Norm.L1:
            return int((gone + come).max())
        case Norm.L2:
            return int(np.square(moved).sum(axis=1).max())
        case Norm.ROWS:
            return int(np.maximum(gone, come).max())
    raise AssertionError(norm)


def prepared(title: str, one: Contribution, noise: Noise) -> Any:
    strategy, shape = LAYERED[title]
    if noise is Noise.GAUSSIAN:
        strategy = replace(strategy, noise=noise)
    return strategy.prepare(shape, Terms.at(1, 1e-6 if noise is Noise.GAUSSIAN else 0, contribution=one))


def kinds(title: str) -> list[Noise]:
    return [Noise.LAPLACE, Noise.GAUSSIAN] if hasattr(LAYERED[title][0], "noise") else [Noise.LAPLACE]


@pytest.mark.parametrize("title", LAYERED)
def test_every_pair_of_units_is_within_the_claim(title: str) -> None:
    shape = LAYERED[title][1]
    tight = 0
    for one, noise in itertools.product(REPLACED, kinds(title)):
        for measurement in prepared(title, one, noise).measurements:
            dense = np.eye(int(np.prod(shape)), dtype=np.int64)
            if not title.startswith("sparse"):  # whose cells are listed, and measured as they are
                dense = matrix(measurement.layer, shape)
            far = changes(int(np.prod(shape)), one) @ dense.T
            needs, reach = measurement.mechanism.needs, measurement.layer.reach(one)
            moved, claimed = greatest(far, needs.norm), reach.in_norm(needs.norm)
            assert claimed is not None
            assert moved <= claimed <= needs.sensitivity, (one, noise)
            assert reach.l0 is None or (far != 0).sum(axis=1).max() <= reach.l0, (one, noise)
            tight += moved == needs.sensitivity
    if LAYERED[title][0].name in ("flat", "hierarchy", "fourier"):
        assert tight, "the claim is never reached: something else was compared"


# What Fourier's mechanism makes of rows


@pytest.mark.parametrize("one", REPLACED, ids=str)
@pytest.mark.parametrize("noise", list(Noise))
def test_every_number_that_fourier_draws_from_moves_within_its_law(one: Contribution, noise: Noise) -> None:
    """All sums of all trees and all scores, on every table of up to two rows a cell beside the unit."""
    made: Resolution = prepared("fourier", one, noise).mechanism
    assert made.rows == one.total, "rows that go and come are doubled by the mechanism, and not twice"
    added, others = units(4, one), np.array(list(itertools.product((0, 2), repeat=4)), dtype=np.int64)
    for law, blocks in zip(made.laws, made.blocks, strict=True):
        sums = np.array([made.sums(unit, blocks) for unit in added])
        far = np.unique((sums[:, np.newaxis] - sums[np.newaxis]).reshape(-1, sums.shape[1]), axis=0)
        assert greatest(far, law.needs.norm) <= law.needs.sensitivity
    for other in others:
        scores = np.array([made.scores(other + unit) for unit in added]).astype(np.int64)
        spans = scores.max(axis=0) - scores.min(axis=0)
        assert all(span <= made.score_reach(blocks) for span, blocks in zip(spans, made.blocks, strict=True))
        assert max(spans) <= made.selection.sensitivity


@pytest.mark.parametrize("one", [unit for unit in REPLACED if unit.total <= 3], ids=str)
def test_what_fourier_loses_on_replaced_units_is_within_its_price(one: Contribution) -> None:
    """By exact masses: all blocks, with answers on either side of both tables, where the loss is greatest."""
    made: Resolution = prepared("fourier", one, Noise.LAPLACE).mechanism
    assert made.event.epsilon == 1
    worst = 0.0
    added = [unit for unit in units(4, one) if unit.sum() in (0, one.total)]
    for near, far in itertools.combinations(added, 2):
        for blocks in made.blocks:
            answers = [made.sums(side, blocks) for side in (near, far)]
            for answer in answers:
                shown = (blocks, *answer.tolist())
                worst = max(worst, abs(made.log_mass(near, shown) - made.log_mass(far, shown)))
    assert 0.4 < worst <= 1 + 1e-9


# Through the engine

LIMITS = [
    Limits(max_groups=groups, max_rows=rows, max_total_rows=total)
    for groups, rows, total in itertools.product((1, 2, 3), (1, 2, 3), (None, 2, 5))
]
ASKED: dict[str, Any] = {name: make(1) for name, make in STRATEGIES}
FULL = {
    "nothing": [],
    "one cell": [0] * 8,
    "another cell": [5] * 8,
    "each cell": [*range(6)] * 3,
    "two cells": [1, 4] * 5,
    "a row": [2],
}
"""The nights of all rows of a unit: where limits bind hardest."""


@pytest.fixture(scope="module", params=[0, Fraction(1, 10**6)], ids=["pure", "gaussian"])
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[World]:
    budget = Budget(epsilon=Fraction(10**6), delta=request.param, neighbors=Neighbors.REPLACE_ONE)
    made = World(tmp_path_factory.mktemp("replaced"), budget=budget)
    yield made
    made.close()


@pytest.mark.parametrize("fallen", [False, True], ids=["short", "long"])
def test_a_unit_that_is_replaced_moves_every_layer_within_its_claim(world: World, fallen: bool) -> None:
    """All strategies and limits. The long statement is run where a unit was seen to have one row and has many."""
    reached: Counter[str] = Counter()
    others = [row(unit, nights=night) for unit in range(5) for night in (unit, 3)]
    versions = itertools.count(1)
    for (name, strategy), limits in itertools.product(ASKED.items(), LIMITS):
        rng = Random(f"{name} {limits}")
        seen = []
        pair = rng.sample(sorted(FULL), 2)
        for nights in (FULL[side] for side in pair):
            rows = [*others, *(row(77, nights=night) for night in nights)]
            case = Case(
                strategy=name, over={"nights": range(6)}, asked={"strategy": strategy, "epsilon": Fraction(40)},
                limits=limits, buys=False, rows=rows, other=rows, what="unit", seed=7, unique=fallen,
            )  # fmt: skip
            with mock.patch.object(held.Held, "holds", return_value=not fallen):
                seen.append(published(world, case, rng.sample(rows, len(rows)), version=next(versions)))
        near, far = seen
        assert near.outcome == far.outcome == "answered", near.outcome
        assert len(near.opened) == len(far.opened) > 0
        said = near.prepared.terms.contribution
        assert said.neighbors is Neighbors.REPLACE_ONE
        assert not fallen or (said.cells, said.each) == (1, 1)
        faults = [fault for a, b in zip(near.opened, far.opened, strict=True) for fault in too_far(a, b)]
        assert not faults + beyond(near, far), (name, str(limits), pair)
        reached[name] += near.counts != far.counts
    assert set(reached) == set(ASKED), reached
    assert min(reached.values()) > len(LIMITS) // 2, reached


def test_a_claim_for_half_a_replaced_unit_is_seen() -> None:
    """A planted fault: rows that come are not counted beside rows that go."""
    wrong = mock.patch.object(Resolution, "reach", property(lambda made: made.rows))
    with wrong, pytest.raises(AssertionError):
        test_every_number_that_fourier_draws_from_moves_within_its_law(REPLACED[0], Noise.LAPLACE)
