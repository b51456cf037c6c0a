"""Nobody counts for more than a stated number of rows: tried on every tiny crowd."""

from itertools import product

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.gate.secret import open_sealed
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features

VALUES = (-4, -1, 0, 3, 4)
BOUND = 4


def total(rows: list[tuple[int, int]], owners: list[int], most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    parts = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
    return np.asarray(Crowd.of(np.array(owners, dtype=np.int64), rows=len(rows), most=most).total(parts))


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("owned", [1, 2, 3, 4])
def test_one_unit_moves_the_total_by_its_rows_and_no_more(most: int, owned: int) -> None:
    """Every unit with up to four rows out of a few values, in L1 and L2, beside somebody else."""
    others = [(2, -3), (4, 4)]
    before = total(others, [8, 9], most)
    reached = 0
    for firsts in product(VALUES, repeat=owned):
        rows = [(value, BOUND - abs(value)) for value in firsts]  # L1 norm 4 each
        moved = np.abs(total([*others, *rows], [8, 9, *[1] * owned], most) - before)
        assert moved.sum() <= most * BOUND
        assert (moved**2).sum() <= (most * BOUND) ** 2
        reached = max(reached, int(moved.sum()))
    assert reached == min(most, owned) * BOUND


def test_a_unit_with_as_many_rows_as_allowed_loses_nothing_and_one_more_is_shared() -> None:
    assert total([(3, 0), (4, 0)], [1, 1], 2).tolist() == [7, 0]
    assert total([(3, 0), (4, 0), (4, 0)], [1, 1, 1], 2).tolist() == [7, 0]  # 11 · 2 // 3
    assert total([(-3, 0), (-4, 0), (-4, 0)], [1, 1, 1], 2).tolist() == [-7, 0]  # towards zero


def test_without_groups_each_row_is_a_unit() -> None:
    crowd = Crowd.of(None, rows=3, most=5)
    assert (crowd.count, crowd.most) == (3, 1)
    assert crowd.total(np.array([[1], [2], [3]])).tolist() == [6]


class _NotKnown:
    """As pandas' NA: it is not known whether it equals anything."""

    def __eq__(self, other: object) -> "_NotKnown":  # type: ignore[override]
        return self

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError


def test_rows_without_an_owner_count_nowhere() -> None:
    crowd = Crowd.of([None, None, float("nan"), "a", "a", np.float64("nan"), _NotKnown(), np.int64(3)], rows=8)
    assert crowd.count == 2
    assert crowd.total(np.array([[1], [2], [4], [8], [8], [16], [32], [64]])).tolist() == [8 + 64]
    assert crowd.weights.tolist() == [0, 0, 0, 0.5 * (1 - 2.0**-40), 0.5 * (1 - 2.0**-40), 0, 0, 1]


def test_a_crowd_of_nobody_adds_up_to_nothing() -> None:
    crowd = Crowd.of([None, None], rows=2)
    assert (
        crowd.count,
        crowd.weights.tolist(),
        open_sealed(Features.of(np.zeros((2, 1)), crowd).count()).tolist(),
    ) == (0, [0, 0], [0])


@pytest.mark.parametrize("owned", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_weights_of_a_unit_sum_to_at_most_its_rows(owned: int, most: int) -> None:
    weights = Crowd.of(np.zeros(owned, dtype=np.int64), rows=owned, most=most).weights
    assert weights.max() <= 1.0
    assert weights.sum() <= most
    assert weights.sum() >= min(owned, most) * (1 - 2.0**-39)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ParameterError, match="groups must be one value for each row"):
        Crowd.of([1, 2], rows=3)
    with pytest.raises(ParameterError, match="max_rows"):
        Crowd.of(None, rows=1, most=0)
    with pytest.raises(TypeError, match="whole numbers"):
        Crowd.of(None, rows=1).total(np.array([[0.5]]))


def test_equal_ids_of_several_types_are_one_owner() -> None:
    crowd = Crowd.of([7, 7.0, np.int64(7), np.float64(7), "7"], rows=5)
    assert crowd.count == 2  # the text is somebody else
    assert crowd.total(np.ones((5, 1), dtype=np.int64)).tolist() == [2]
