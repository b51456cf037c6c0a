"""Bounds and classes that are bought: sane for any column, seldom fooled by noise, and never for nothing."""

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("sklearn")

from hubbub.engines.arrays.engine import Arrays
from hubbub.errors import ParameterError
from hubbub.gate.secret import open_sealed
from hubbub.learn.statistics.bounds import CELLS, SHARE, SIZES, _powers, buy_bounds, code_magnitudes
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.classes import choose_classes, count_names, place_labels
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.histograms import histograms, tally
from hubbub.learn.tuition import Tuition
from hubbub.query.totals import Code, column, columns


def bought(x: Array, *, epsilon: float = 2.0, delta: float = 1e-6, groups: Array | None = None) -> tuple[Array, Array]:
    tuition = Tuition.at(epsilon=epsilon, delta=delta)
    data = Features.of(x, Crowd.of(groups, rows=len(x)))
    found = buy_bounds(None, data.x, data, tuition=tuition)
    assert tuition.left == 1 - SHARE
    return found


def test_columns_of_every_kind() -> None:
    chance = np.random.default_rng(0)
    many = 20_000
    x = np.column_stack(
        [
            chance.uniform(2011, 2012, many),
            chance.normal(0, 3, many),
            -(10.0 ** chance.uniform(0, 5, many)),
            np.full(many, 7.0),
            np.zeros(many),
            np.full(many, np.nan),
            np.full(many, np.inf),
            np.full(many, 1e300),
            np.full(many, 1e-30),
        ]
    )
    low, high = bought(x, epsilon=10.0)
    assert (low < high).all()
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert 1900 <= low[0] <= 2011.1  # as far as noise lets it be seen, from 1024 on
    assert 2011.9 <= high[0] <= 2020
    assert -12 < low[1] < -4
    assert 4 < high[1] < 12
    assert -1.1e5 < low[2] < -3e4
    assert high[2] <= 0
    assert low[3] <= 7.0 <= high[3]
    assert high[3] - low[3] < 3
    assert low[4] <= 0 <= high[4]
    assert high[4] < 1e-3
    assert (low[5], high[5]) == (low[6], high[6]) == (-1.0, 1.0)
    assert high[7] == 2.0**40
    assert low[8] <= 0 <= high[8] < 1e-3


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_is_not_taken_for_values(delta: float) -> None:
    """Each fit is fooled with probability at most 1e-3; more than 6 of 60 would have probability below 1e-10."""
    x = np.column_stack([np.linspace(1.0, 1.9, 3_000)] * 6)
    fooled = 0
    for _ in range(60):
        low, high = bought(x, delta=delta, epsilon=1.0)
        fooled += bool((low < -1).any() or (high > 2.0).any())
    assert fooled <= 6


def test_few_rows_leave_the_default() -> None:
    low, high = bought(np.array([[5.0]] * 3), epsilon=0.1)
    assert (low[0], high[0]) == (-1.0, 1.0)


def test_declared_bounds_cost_nothing() -> None:
    tuition = Tuition.at(epsilon=1.0)
    data = Features.of(np.zeros((3, 2)), Crowd(rows=3))
    low, high = buy_bounds((0, [1, 2]), data.x, data, tuition=tuition)
    assert tuition.left == 1
    assert low.tolist() == [0, 0]
    assert high.tolist() == [1, 2]


def test_people_buy_with_shared_weights() -> None:
    x = np.linspace(16.0, 31.0, 30_000)[:, None]
    low, high = bought(x, epsilon=5.0, groups=np.arange(30_000) // 3)
    assert 16 <= low[0] < 18
    assert 29 < high[0] <= 32


def test_cells_of_the_first_stage_hold_what_they_say() -> None:
    edges = _powers()
    values = np.array([-5.0, -1.0, -1e-9, 0.0, 1e-9, 0.75, 1.0, 1.5, 2.0, 1e30, -1e30, np.nan, np.inf])
    cells = Arrays(values[:, None]).rows(code_magnitudes(columns(0, 1)).number)[:, 0].astype(np.int64)
    assert len(edges) == CELLS + 1
    for value, cell in zip(values[:9].tolist(), cells[:9].tolist(), strict=True):
        if abs(value) < 1e-6:
            assert cell == SIZES
        else:
            assert (
                min(abs(edges[cell]), abs(edges[cell + 1])) <= abs(value) <= max(abs(edges[cell]), abs(edges[cell + 1]))
            )
            assert np.sign(edges[cell] + edges[cell + 1]) == np.sign(value)
    assert cells[9] == CELLS - 1
    assert cells[10] == 0
    assert (cells[11:] == CELLS).all()


def counted(codes: Array, sizes: list[int], crowd: Crowd) -> Array:
    data = Features.of(codes.T.astype(np.float64), crowd)
    families = [Code(number=column(place), size=size) for place, size in enumerate(sizes)]
    return np.concatenate([one[:, 0] for one in open_sealed(data.add_up(histograms(families, data)))])


def test_histograms_count_rows_and_shares_of_rows() -> None:
    codes = np.array([[0, 1, 2, 2], [1, 1, 0, 3]])
    plain = counted(codes, [2, 3], Crowd(rows=4))
    assert plain.tolist() == [1, 1, 1, 2, 0]  # the last code of each counts nowhere
    crowd = Crowd.of(np.array([0, 0, 1, 2]), rows=4)
    shared = counted(codes, [2, 3], crowd)
    half = int((1 << 20) * 0.5 * (1 - 2.0**-40))
    assert shared.tolist() == [half, half, 1 << 20, 2 * half, 0]


def test_a_tally_is_charged_for_every_column() -> None:
    data = Features.of(np.zeros((4, 4)), Crowd(rows=4))
    one = tally([Code(number=column(0), size=1)], data, tuition=Tuition.at(epsilon=1.0, delta=1e-6), share=Fraction(1),
                label="a")  # fmt: skip
    four = tally([Code(number=data.x, size=1)], data, tuition=Tuition.at(epsilon=1.0, delta=1e-6), share=Fraction(1),
                 label="a")  # fmt: skip
    assert four.deviation == pytest.approx(2 * one.deviation, rel=1e-3)
    pure = tally([Code(number=data.x, size=1)], data, tuition=Tuition.at(epsilon=1.0), share=Fraction(1), label="a")
    assert pure.tail == 4.0
    assert four.tail == 0.0
    assert four.beyond(4, log_tests=2.0) == pytest.approx(four.deviation * 4)
    # One cell: e^-x/b / 2 is the truth, and the bound is above it, but not far.
    single = float(pure.beyond(1, log_tests=10.0))
    assert 4 * (10 - np.log(2)) < single < 4 * 14
    assert float(pure.beyond(100, log_tests=2.0)) == pytest.approx(pure.deviation * 20, rel=0.02)


def owned(rows: int) -> Features:
    return Features.of(np.zeros((rows, 1)), Crowd(rows=rows))


def test_classes_are_found_when_enough_people_have_them() -> None:
    y = np.array(["yes"] * 600 + ["no"] * 600 + ["rare"])
    tuition = Tuition.at(epsilon=2.0, delta=1e-6)
    found = choose_classes(None, y, owned(len(y)), tuition=tuition)
    assert found.tolist() == ["no", "yes"]
    assert tuition.left == Fraction(19, 20)
    assert place_labels(y, found)[[0, 600, 1200]].tolist() == [1, 0, -1]


def test_no_class_is_shown_of_a_few_people() -> None:
    for y in (np.array([3, 3, 4]), np.array(["a", "b", "b"]), np.array([np.nan, 1.0, 2.0])):
        found = choose_classes(None, y, owned(3), tuition=Tuition.at(epsilon=1.0, delta=1e-9))
        assert len(found) == 1
        assert found.dtype.kind == y.dtype.kind
        assert not found[0]


def test_a_person_names_one_class() -> None:
    y = np.array([1, 2, 2, 1, 5], dtype=np.int64)
    crowd = Crowd.of(np.array([0, 0, 0, 1, 2]), rows=5, most=3)
    assert count_names(y, crowd) == {1: 2, 5: 1}
    assert count_names(np.array([None, "a", np.nan, "a", "b"], dtype=object), Crowd(rows=5)) == {"a": 2, "b": 1}


def test_classes_without_a_delta_must_be_declared() -> None:
    tuition = Tuition.at(epsilon=1.0)
    with pytest.raises(ParameterError, match="delta"):
        choose_classes(None, np.array([0, 1]), owned(2), tuition=tuition)
    with pytest.raises(ParameterError, match="different"):
        choose_classes([1, 1], np.array([0, 1]), owned(2), tuition=tuition)
    assert choose_classes([1, 0], np.array([0, 1]), owned(2), tuition=tuition).tolist() == [0, 1]
    assert tuition.left == 1


def test_codes_of_labels_of_any_kind() -> None:
    assert place_labels(np.array(["b", "a", "c"], dtype=object), np.array(["a", "b"])).tolist() == [1, 0, -1]
    assert place_labels(np.array([2.0, 1.0, np.nan]), np.array([1, 2])).tolist() == [1, 0, -1]
    assert place_labels(np.array([10, 9]), np.array(["10", "9"])).tolist() == [0, 1]
