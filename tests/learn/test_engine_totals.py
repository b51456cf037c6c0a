"""Learning where the rows are: the same whole numbers as on an array of them, to the last one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import open_read
from hubbub.audit.subjects.in_process.totals import _MEANING, adding
from hubbub.gate.secret import open_sealed
from hubbub.learn import PCA, GaussianNB, KMeans, LinearRegression, Ridge, StandardScaler
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.query.totals import (
    FUNCTIONS,
    WEIGHT,
    WIDE,
    Code,
    Number,
    SumsRequest,
    Totals,
    beside,
    column,
    columns,
    number,
)
from tests.learn.engine_made import BOUNDS, CLASSES, in_engine, lesson_of, made, on_array, opened

Array = np.ndarray[Any, Any]
ALL = ("a", "b", "c")


def bounds(columns: tuple[str, ...]) -> Any:
    return tuple([float(BOUNDS[one][side]) for one in columns] for side in (0, 1))


FITS: dict[str, tuple[Any, tuple[str, ...], str | None]] = {
    "k-means": (KMeans(3, epsilon=8.0, bounds=bounds(("a", "b"))), ("a", "b"), None),
    "k-means, gaussian, three columns": (KMeans(4, epsilon=6.0, delta=0.01, bounds=bounds(ALL)), ALL, None),
    "k-means, one column": (KMeans(2, epsilon=6.0, bounds=bounds(("b",))), ("b",), None),
    "k-means, lloyd": (KMeans(5, epsilon=6.0, algorithm="lloyd", bounds=bounds(ALL)), ALL, None),
    "scaler": (StandardScaler(bounds=bounds(ALL)), ALL, None),
    "regression": (
        LinearRegression(epsilon=5.0, delta=0.01, bounds=bounds(("a", "b")), y_bounds=(-5, 50)), ("a", "b"), "y",
    ),
    "ridge": (
        Ridge(2.0, fit_intercept=False, epsilon=5.0, bounds=bounds(ALL), y_bounds=(-5, 50)), ALL, "y",
    ),
    "components": (PCA(2, epsilon=5.0, delta=0.01, bounds=bounds(ALL)), ALL, None),
    "classes": (GaussianNB(epsilon=5.0, classes=list(CLASSES), bounds=bounds(ALL)), ALL, "label"),
    "two classes": (
        GaussianNB(epsilon=5.0, delta=0.01, classes=["up", "left"], bounds=bounds(("a", "b"))), ("a", "b"), "label",
    ),
}  # fmt: skip
OWNED = {"single": (None, None), "one row counts": (40, 1), "three rows count": (60, 3)}


@pytest.fixture(scope="module", params=list(OWNED))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    people, most = OWNED[request.param]
    data = made(260, seed=len(request.param), people=people)
    with opened(data, tmp_path_factory.mktemp("rows"), single=people is None) as db:
        yield data, db, most


@pytest.mark.parametrize("fit", list(FITS))
def test_every_measurement_is_of_the_same_numbers(world: Any, fit: str) -> None:
    data, db, most = world
    estimator, columns, target = FITS[fit]
    lesson = lesson_of(db, estimator, columns=columns, target=target, rows=most)
    assert (lesson.single, lesson.most) == (most is None, most or 1)
    far, learned = in_engine(db, lesson)
    near, plain = on_array(estimator, data, columns, target, most=most)
    assert len(far) == len(near) > 0
    for one, other in zip(far, near, strict=True):
        assert np.array_equal(one.value, other.value), (one.facts, other.facts)
        assert one.facts == other.facts
        assert one.event == other.event
    kept = {name: value for name, value in vars(plain).items() if name.endswith("_") and name not in _NAMED}
    assert kept
    for name, value in kept.items():
        assert np.array_equal(getattr(learned, name), value), name


_NAMED = {"feature_names_in_", "claim_"}
"""Of a table with names, and of units."""


@pytest.mark.parametrize("rows", [1, 2, None])
def test_bounds_are_bought_from_the_same_numbers(rows: int | None, tmp_path: Path) -> None:
    data = made(150, seed=5, people=None if rows is None else 50)
    data.x[:60, 0] = np.ldexp(1.0, np.arange(-30, 30)) * np.where(np.arange(60) % 3, 1, -1)  # ends of cells
    with opened(data, tmp_path, single=rows is None, bounds=None) as db:
        lesson = lesson_of(db, StandardScaler(epsilon=9.0), columns=ALL, rows=rows)
        assert lesson.estimator.bounds is None
        far, learned = in_engine(db, lesson)
    near, plain = on_array(StandardScaler(epsilon=9.0), data, ALL, None, most=rows)
    assert [one.value.tolist() for one in far] == [one.value.tolist() for one in near]
    assert np.array_equal(learned.low_, plain.low_)


def test_nobodys_rows_and_an_empty_table(tmp_path: Path) -> None:
    data = made(30, seed=1, people=5)
    empty = data.kept(~data.owned)
    assert len(empty.owners)
    with opened(empty, tmp_path) as db:
        for estimator, columns, target in FITS.values():
            found, _ = in_engine(db, lesson_of(db, estimator, columns=columns, target=target, rows=1))
            assert not any(np.any(one.value) for one in found)


# Numbers one by one


def reals(many: int) -> list[Number]:
    return [column(place) for place in range(many)]


def _numbers() -> dict[str, Number]:
    a, b, _ = (one.fill_missing(0.0).clip(-1e6, 1e6) for one in reals(3))
    place = (b * 3.0).floor().clip(0.0, 3.0)
    return {
        "known": column(0).fill_missing(2.5).clip(-1e9, 1e9), "add": a + b, "subtract": a - b, "multiply": a * b,
        "divide": a / 7.0, "least": Number("least", (a, b)), "greatest": Number("greatest", (a, b)),
        "truncate": (a * 1.5).truncate(), "floor": (a * 1.5).floor(), "sqrt": (a * a).sqrt() * 64.0,
        "log2": (a * a + 1.0).log2() * 64.0, "asinh": a.asinh() * 64.0, "sign": a.sign(), "above": a.above(30.0),
        "equal": a.equal(100.0), "pick": place.pick((5.0, -3.0, 0.5, 11.0)) * 2.0,
        "place": Number("place", (Number("least", (a, b)), a, b)), "weight": WEIGHT * 1000.0,
        "constant": number(-0.3) * 10.0, "column": column(0).equal(column(0)).fill_missing(0.0),
    }  # fmt: skip


def test_every_function_means_what_the_interpreter_says(tmp_path: Path) -> None:
    made_ = _numbers()
    assert made_.keys() == FUNCTIONS == _MEANING.keys()
    data = made(120, seed=3, people=25)
    known = data.kept(data.owned)
    crowd = Crowd.of(np.array(known.owners, dtype=np.int64), rows=len(known.owners), most=2)
    with opened(data, tmp_path) as db:
        lesson = lesson_of(db, StandardScaler(), columns=ALL, rows=2)
        values = beside(*(one.truncate() for one in made_.values()))
        code = Code(number=(column(2).fill_missing(0.0) * 2.0 + 2.0).clip(0.0, 3.0).floor(), size=3)
        for codes in ((), (code,), (code, Code(number=number(0.0), size=1))):
            sums = SumsRequest(values=values, codes=codes)
            far = open_read(db, lesson.totals(sums))
            near = adding(known.x, crowd)(sums)
            here = open_sealed(Features.of(known.x, crowd).add_up(sums))
            for one, other, third in zip(far, near, here, strict=True):
                assert one.tolist() == other.tolist() == third.tolist()


def _wide() -> dict[str, Number]:
    rows = columns(0, 3).fill_missing([0.5, -0.5, 0.25]).clip([-1.0, 0.0, -2.0], [1.0, 3.0, 2.0])
    place = (rows[1] * 1.3).floor()
    return {
        "columns": columns(1, 2).fill_missing([0.0, 7.0]).clip(-1e6, 1e6), "constants": number([1.0, -2.0]),
        "part": rows[:2],
        "beside": beside(rows, 2.0, rows[0]) * 3.0, "added": (rows * 100.0).added(),
        "clip": (rows * 9.0).clip(-3.0, 5.0), "known_by": (rows * 9.0).known_by(columns(0, 3), -7.0),
        "exponent": columns(0, 3).exponent(-4, 6),
        "shorten": rows.shorten(bits=12, weight=WEIGHT),
        "nearest": (rows * 50.0).truncate().nearest([[0.0, 1.0, 2.0], [40.0, 40.0, -90.0], [0.0, 1.0, 2.0]]),
        "pick": place.pick_row([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
    }  # fmt: skip


def test_numbers_side_by_side_are_the_same_everywhere(tmp_path: Path) -> None:
    made_ = _wide()
    assert made_.keys() - {"pick"} == WIDE - {"project"}  # which is for arrays alone
    data = made(150, seed=4, people=30)
    known = data.kept(data.owned)
    crowd = Crowd.of(np.array(known.owners, dtype=np.int64), rows=len(known.owners), most=2)
    here, scalar = Features.of(known.x, crowd), adding(known.x, crowd)
    values = beside(*((one * 8.0).truncate() for one in made_.values()))
    bins = Code(number=(columns(0, 2).fill_missing([0.0, 0.0]) - [-20.0, 0.0]).clip(0.0, 7.0).floor(), size=7)
    short = columns(0, 3).fill_missing([0.0, 0.0, 0.0]).shorten(bits=16, weight=WEIGHT)
    with opened(data, tmp_path) as db:
        lesson = lesson_of(db, StandardScaler(), columns=ALL, rows=2)
        for sums in (
            SumsRequest(values=values),
            SumsRequest(values=values, codes=(bins,)),
            SumsRequest(values=short, products=True, bits=16),
        ):
            far = open_read(db, lesson.totals(sums))
            exact: list[Any] = open_sealed(here.add_up(sums))
            for one, other, third in zip(far, scalar(sums), exact, strict=True):
                assert one.tolist() == other.tolist() == third.tolist()
                assert one.any()


def test_what_is_nowhere_is_not_counted(tmp_path: Path) -> None:
    with opened(made(50, seed=2), tmp_path, single=True) as db:
        lesson = lesson_of(db, StandardScaler(), columns=("a",), rows=None)
        nowhere = Code(number=number(4.0), size=4)
        (found,) = open_read(db, lesson.totals(SumsRequest(codes=(nowhere,))))
        assert found.tolist() == [[0]] * 4
        (all_,) = open_read(db, lesson.totals(SumsRequest()))
        assert all_.tolist() == [[50]]


def test_large_sums_are_exact(tmp_path: Path) -> None:
    """Two rows of 2^52 times many: beyond 64 bits nothing wraps."""
    data = made(4100, seed=2, people=None)
    with opened(data, tmp_path, single=True) as db:
        lesson = lesson_of(db, StandardScaler(), columns=("a",), rows=None)
        (found,) = open_read(db, lesson.totals(SumsRequest(values=number(float(1 << 52)))))
        assert found.tolist() == [[4100 << 52]]
        assert found.dtype == object
        (here,) = open_sealed(Features.of(data.x, Crowd(rows=4100)).add_up(SumsRequest(values=number(float(1 << 52)))))
        assert here.tolist() == found.tolist()


def test_rows_are_not_counted_where_weights_are_needed() -> None:
    with pytest.raises(hb.HubbubError, match="values"):
        Totals(input=None, columns=(), sums=SumsRequest(), single=False)  # type: ignore[arg-type]


def test_a_unit_with_many_rows_weighs_no_more_than_it_may(tmp_path: Path) -> None:
    data = made(90, seed=8, people=2)
    with opened(data, tmp_path) as db:
        for most in (1, 7, 1000):
            lesson = lesson_of(db, StandardScaler(), columns=("a",), rows=most)
            (found,) = open_read(db, lesson.totals(SumsRequest(values=(WEIGHT * float(1 << 40)).truncate())))
            counts = [min(most, sum(one == owner for one in data.owners)) for owner in (0, 1)]
            assert sum(counts) * (1 << 40) - 200 <= found[0, 0] <= sum(counts) * (1 << 40)
