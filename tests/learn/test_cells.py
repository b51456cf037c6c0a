"""Cells, labels and ids that are none: a fit is the same to its last bit as one in which they are missing."""

import math
import warnings
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import learn
from hubbub.audit.subjects.in_process.poisoned import NOBODY, POISON, SAME, SECRET, Raising
from hubbub.errors import ParameterError
from hubbub.learn.estimator import read_labels
from hubbub.learn.statistics.cells import Array, number_of, table
from hubbub.learn.statistics.classes import count_names, place_labels
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.labels import value_of
from hubbub.testing.replay import replayed
from tests.learn.test_nobody import ESTIMATORS, learned

ROWS = 3 * len(POISON)


def data() -> tuple[Any, Any, list[Any]]:
    chance = np.random.default_rng(7)
    return chance.uniform(size=(ROWS, 3)), chance.integers(0, 2, ROWS), [f"p{place // 3}" for place in range(ROWS)]


def objects(cells: list[list[Any]]) -> Any:
    found = np.empty((len(cells), len(cells[0])), dtype=object)
    for place, row in enumerate(cells):
        for at, cell in enumerate(row):
            found[place, at] = cell
    return found


def framed(cells: list[list[Any]]) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({f"x{at}": pandas.Series(objects(cells)[:, at], dtype=object) for at in range(3)})


CONTAINERS: dict[str, Callable[[list[list[Any]]], Any]] = {
    "list": lambda cells: cells,
    "tuple": lambda cells: tuple(tuple(row) for row in cells),
    "objects": objects,
    "frame": framed,
    "masked": lambda cells: np.ma.MaskedArray(objects(cells), mask=False),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_cell_that_is_no_number_is_missing(name: str) -> None:
    x, y, owners = data()
    cells = x.tolist()
    for place, poison in enumerate(POISON):
        cells[3 * place][place % 3] = poison
        x[3 * place, place % 3] = number_of(poison)
    wanted = learned(name, x, y, owners)
    for given in CONTAINERS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning would tell as much as an error
            warnings.filterwarnings("ignore", message=".*feature names.*")
            found = learned(name, given(cells), y, owners)
        found.pop("feature_names_in_", None)
        assert found == wanted
    x[0, 0] = 0.25  # instead of a text
    assert learned(name, x, y, owners) != wanted


LABELLED = [name for name in ESTIMATORS if hasattr(ESTIMATORS[name], "predict") and name[:6] != "KMeans"]


@pytest.mark.parametrize("name", LABELLED)
def test_a_target_that_is_none_is_missing(name: str) -> None:
    x, y, owners = data()
    poisons = [one for one in POISON if value_of(one) not in (0, 1, "0", "1", b"1") and math.isnan(number_of(one))]
    given, missing = y.tolist(), y.tolist()
    for place, poison in enumerate(poisons):
        given[3 * place], missing[3 * place] = poison, None
    wanted = learned(name, x, missing, owners)
    assert learned(name, x, given, owners) == wanted
    assert learned(name, x, objects([[one] for one in given])[:, 0], owners) == wanted
    assert learned(name, x, y, owners) != wanted


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_id_without_a_value_is_nobodys_and_equal_ones_are_one(name: str) -> None:
    x, y, owners = data()
    strange, plain = list(owners), list(owners)
    for place, one in enumerate(NOBODY):
        strange[place], plain[place] = one, None
    for place, one in enumerate(SAME, len(NOBODY)):
        strange[place], plain[place] = one, "seven"
    wanted = learned(name, x, y, plain)
    assert learned(name, x, y, strange) == wanted
    assert learned(name, x, y, objects([[one] for one in strange])[:, 0]) == wanted


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_table_without_rows_is_one_to_learn_from(name: str) -> None:
    none = learned(name, np.empty((0, 3)), [], [])
    assert none == learned(name, np.full((2, 3), 0.5), [0, 1], [None, None])


def labels(y: Any, *, rows: int) -> Array:
    found = read_labels(y, Features.of(np.zeros((rows, 1)), Crowd(rows=rows)))
    assert found is not None
    return found


@pytest.mark.parametrize("other", ["x", None, 1 << 70, 2.5, Raising(), [0], b"x"])
@pytest.mark.parametrize("made", [list, lambda labels: objects([[one] for one in labels])[:, 0]])
def test_one_label_does_not_change_how_others_are_read(other: Any, made: Any) -> None:
    """In an array of NumPy's own making a text turns all numbers beside it into texts: 1.0 is no longer the class 1."""
    y = [0.0, 1.0, 1, True, np.float32(0), "1", 0, other]
    given = labels(made(y), rows=len(y))
    codes = place_labels(given, np.array([0, 1]))
    assert codes[:-1].tolist() == [0, 1, 1, 1, 0, 1, 0]
    assert codes[-1] == -1
    counted = count_names(given[:-1], Crowd(rows=len(y) - 1))
    assert counted == {0: 3, 1: 3, "1": 1}
    assert {type(name) for name in counted} == {int, str}


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        (["a", "b", "\ud800"], ["a", "\ud800"], [0, -1, 1]),
        (np.array([0, 1, 2]), ["0", "2"], [0, -1, 1]),
        (np.array(["0", "1", "x"]), [0, 1], [0, 1, -1]),
        (np.array([b"a", b"\xff"]), ["a", "b"], [0, -1]),
        ([np.datetime64("2024-01-01", "ns"), np.datetime64("NaT")], np.array(["2024-01-01"], dtype="M8[ns]"), [0, -1]),
        ([None, float("nan"), "None", "nan"], [0, 1], [-1, -1, -1, -1]),
        ([Fraction(1, 2), 0.5, 10**400], [0.5, 1.0], [0, 0, -1]),
        ([2**53, 2**53 + 1, "x"], [2**53, 2**53 + 1], [0, 1, -1]),
    ],
)
def test_labels_are_classes_that_they_equal_or_are_called_like(y: Any, classes: Any, codes: list[int]) -> None:
    assert place_labels(labels(y, rows=len(y)), np.asarray(classes)).tolist() == codes


def test_classes_that_are_bought_have_the_type_of_what_is_shown() -> None:
    x = np.zeros((600, 1))
    for labels, shown in (
        ([0, 1] * 299 + ["x", None], [0, 1]),
        ([0.5, 1.0] * 300, [0.5, 1.0]),
        (["a", 1] * 299 + [1.0, Raising()], ["1", "a"]),
        ([1 << 80, 3] * 300, [3, 1 << 80]),
        ([True, False] * 300, [0, 1]),
        ([date(2024, 2, 29), "\ud800"] * 300, ["2024-02-29", "\ud800"]),
        ([2**53 + 1, 0.5] * 300, [0.5, 2**53 + 1]),
    ):
        found = learn.GaussianNB(bounds=(0, 1), epsilon=20, delta=1e-6).fit(x, labels).classes_
        assert found.tolist() == shown
        assert {type(one) for one in found.tolist()} == {type(one) for one in shown}


def test_series_of_other_libraries_keep_what_they_hold() -> None:
    """A missing id makes a column of floats of NumPy's, in which 2^53 and 2^53 + 1 are one person."""
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    ids = [2**53, 2**53 + 1, None]
    kinds = [polars.Series(ids), pandas.Series(ids, dtype="Int64"), pandas.Series(ids, dtype="category"), ids]
    assert [Crowd.of(one, rows=3).units.tolist() for one in kinds] == [[0, 1, -1]] * 4  # type: ignore[union-attr]
    frame = polars.DataFrame({"a": [1, None, 3], "b": ["4", "x", None]})
    assert repr(table(frame).tolist()) == "[[1.0, 4.0], [nan, nan], [3.0, nan]]"
    moments = np.array(["2024-01-01", "NaT", "2024-01-01"], dtype="M8[ns]")
    assert Crowd.of(moments, rows=3).count == 1
    assert Crowd.of(pandas.Series(moments), rows=3).count == 1


N, Y = 17, [0] * 17
SHAPES: list[tuple[Any, Any, Any]] = [
    ([SECRET] * N, Y, None),
    (np.array([SECRET] * N), Y, None),
    (np.full((N, 2, 1), 0.123), Y, None),
    (np.empty((N, 0)), Y, None),
    (np.full((N, 2), 0.123 + 1j), Y, None),
    (np.full((N, 2), "2024-02-29", dtype="M8[D]"), Y, None),
    (np.zeros((N, 2)), [SECRET] * 18, None),
    (np.zeros((N, 2)), np.full((N, 2), SECRET), None),
    (np.zeros((N, 2)), Y, [SECRET] * 18),
    (np.zeros((N, 2)), Y, np.full((N, 2), SECRET)),
    (object(), Y, None),
    (Raising(), Y, None),
]


@pytest.mark.parametrize("place", range(len(SHAPES)))
def test_shapes_and_types_are_public_and_an_error_about_them_holds_no_cell(place: int) -> None:
    x, y, groups = SHAPES[place]
    model = learn.LogisticRegression(bounds=(0, 1), classes=[0, 1])
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        model.fit(x, y, groups=groups)
    said = str(refused.value)
    for private in (SECRET, "0.123", "2024", "17", "18"):
        assert private not in said
    assert refused.value.__context__ is None


def test_a_row_of_another_length_is_missing() -> None:
    with replayed(3):
        ragged = learn.StandardScaler(bounds=(0, 1)).fit([[0.2, 0.3], [0.5], [0.4, 0.1], [1, 2, 3], []])
    with replayed(3):
        missing = learn.StandardScaler(bounds=(0, 1)).fit(
            [[0.2, 0.3], [None, None], [0.4, 0.1], [None, None], [None, None]]
        )
    assert ragged.mean_.tolist() == missing.mean_.tolist()
    assert ragged.n_features_in_ == 2


def test_sparse_tables_are_refused_by_their_type() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="dense data is required"):
        learn.StandardScaler(bounds=(0, 1)).fit(sparse.csr_matrix(np.eye(3)))


@pytest.mark.parametrize("bounds", [(-1e151, 0), (0, 1e308), ([0, 0], [1, 1e200])])
def test_bounds_whose_squares_are_no_numbers_are_refused(bounds: Any) -> None:
    with pytest.raises(ParameterError, match="within ±1e\\+150"):
        learn.StandardScaler(bounds=bounds).fit(np.zeros((3, 2)))
    assert np.isfinite(learn.StandardScaler(bounds=(-1e150, 1e150)).fit(np.zeros((3, 2))).scale_).all()


@pytest.mark.parametrize("names", [{"solver": "best"}, {"rounds": 0}, {"C": -1}, {"max_norm": 0}, {"classes": [0, 0]}])
def test_parameters_are_refused_before_anything_is_paid(names: dict[str, Any]) -> None:
    model = learn.LogisticRegression(**{"delta": 1e-6, **names})  # bounds are bought first
    with pytest.raises(ParameterError, match=next(iter(names))):
        model.fit([[0.5], [0.6]], [0, 1])
