"""Learning from a session: paid first, stored, free when asked again, and refused for public reasons alone."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import hubbub as hb
from hubbub.audit.subjects.estimators import ACCOUNT, Coupled
from hubbub.audit.subjects.in_process.fitted import Fitted, differences, unpaid, written
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.errors import (
    BudgetExceeded,
    EngineError,
    Frozen,
    HubbubError,
    MissingKeys,
    NotAllowed,
    ParameterError,
    TypeMisfit,
    UnknownName,
)
from hubbub.gate.release import Release
from hubbub.learn import (
    PCA,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    StandardScaler,
)
from hubbub.policy.tables import Limits
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.privacy.sensitivity import Neighbors
from hubbub.testing.replay import replayed
from tests.learn.engine_made import CLASSES, LOUD, QUIET, Made, lesson_of, made, opened, reader_of
from tests.learn.test_engine_totals import FITS

PURE = hb.Budget(epsilon=Fraction(10))
SLACK = hb.Budget(epsilon=Fraction(10), delta=Fraction(1, 10**5))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    with opened(made(400, seed=1, people=120), tmp_path, budget=PURE) as found:
        yield found


def spent(db: hb.Database) -> int:
    return db.ledger.statement("people").spent.loss


class Reads:
    """How often the engine was asked, and what happens then."""

    def __init__(self, db: hb.Database, monkeypatch: pytest.MonkeyPatch, *, fails_at: int | None = None) -> None:
        self.count, self.problem = 0, Exception("the process ended")
        assert isinstance(db._engine, DuckDB)
        real = db._engine._find_rows

        def ask(*given: Any) -> Any:
            self.count += 1
            if self.count == fails_at:
                raise self.problem
            return real(*given)

        monkeypatch.setattr(db._engine, "_find_rows", ask)
        monkeypatch.setattr(db._engine, "_begin", lambda *_: None)  # so that every read is seen


def centres(db: hb.Database, **more: Any) -> Any:
    return db.table("rows").learn(KMeans(3), columns=["a", "b"], **{"epsilon": 2, "rows": 2, **more})


def test_a_fit_is_paid_once_and_free_when_asked_again(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    first = centres(db)
    assert spent(db) * LOSS_UNIT == 2
    assert first.cluster_centers_.shape == (3, 2)
    assert first.epsilon == first.claim_.epsilon == 2
    assert first.meter is None
    assert first.n_features_in_ == 2
    assert first.feature_names_in_.tolist() == ["a", "b"]
    reads = Reads(db, monkeypatch)
    again = centres(db)
    assert np.array_equal(again.cluster_centers_, first.cluster_centers_)
    assert (again.claim_, again.entry_) == (first.claim_, first.entry_)
    less = centres(db, epsilon=1)  # the answer at a higher price is there
    assert np.array_equal(less.cluster_centers_, first.cluster_centers_)
    assert less.epsilon == 2
    assert reads.count == 0
    assert spent(db) * LOSS_UNIT == 2
    other = centres(db, rows=1)
    assert other.entry_ != first.entry_
    assert spent(db) * LOSS_UNIT == 4


def test_another_process_gets_the_same_answer(tmp_path: Path) -> None:
    data = made(200, seed=2, people=60)
    with opened(data, tmp_path, budget=SLACK) as one:
        first = one.table("rows").learn(
            GaussianNB(classes=["up", "left"]), columns=["a", "b"], target="label", epsilon=1
        )
    with opened(data, tmp_path, budget=SLACK) as other:
        again = other.table("rows").learn(
            GaussianNB(classes=["up", "left"]), columns=["a", "b"], target="label", epsilon=1
        )
    kept = {name for name in vars(first) if name.endswith("_")}
    assert {"theta_", "var_", "classes_", "calibration_", "claim_"} <= kept
    for name in kept - {"stored_"}:
        assert written(getattr(first, name)) == written(getattr(again, name)), name
    assert first.stored_ is None
    assert again.stored_ is not None, "it says that it was served again, and of when it is"


@pytest.mark.parametrize(("budget", "most"), [(PURE, 10), (SLACK, 10)])
def test_the_whole_budget_can_be_spent_on_one_fit_and_nothing_on_a_second(
    budget: hb.Budget, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(made(60, seed=3, people=20), tmp_path, budget=budget) as db:
        frame = db.table("rows")
        frame.learn(LinearRegression(), columns=["a", "b"], target="y", epsilon=most, delta=budget.delta)
        assert spent(db) == math.floor(_price(budget) / LOSS_UNIT)
        reads = Reads(db, monkeypatch)
        with pytest.raises(BudgetExceeded):
            frame.learn(KMeans(2), columns=["a"], epsilon=Fraction(1, 100), delta=budget.delta)
        assert reads.count == 0


def _price(budget: hb.Budget) -> Fraction:
    return budget.epsilon if not budget.delta else rho_rounded_down(budget.epsilon, budget.delta / 2)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_crash_in_between_shows_nothing_and_costs_nothing_more(
    at: int, db: hb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        reads = Reads(db, patch, fails_at=at)
        with pytest.raises(EngineError):
            centres(db)
        assert reads.count == at
    assert spent(db) * LOSS_UNIT == 2  # paid before the first row was read
    found = centres(db)
    assert found.cluster_centers_.shape == (3, 2)
    assert spent(db) * LOSS_UNIT == 2


def test_failures_of_the_engine_are_counted(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(db, monkeypatch)

    def fail(*_: Any) -> Any:
        reads.count += 1
        raise EngineError

    monkeypatch.setattr(db._engine, "_find_rows", fail)
    db.ledger.grant("people", "ana", limit=hb.Budget(epsilon=Fraction(8)))
    analyst = hb.Database(db.policy, ledger=db.ledger, engine=db._engine, principal="ana")
    for clusters in (2, 3, 4):
        with pytest.raises(EngineError):
            analyst.table("rows").learn(KMeans(clusters), columns=["a"], epsilon=1)
    with pytest.raises(Frozen):
        analyst.table("rows").learn(KMeans(5), columns=["a"], epsilon=1)
    assert reads.count == 3


def test_bounds_are_the_owners_or_the_estimators_or_bought(db: hb.Database) -> None:
    frame = db.table("rows")
    declared = frame.learn(StandardScaler(), columns=["b", "c"], epsilon=1)
    assert (declared.low_.tolist(), declared.high_.tolist()) == ([0, -1], [1, 1])
    own = frame.learn(StandardScaler(bounds=(-3, 5)), columns=["b", "c"], epsilon=1)
    assert (own.low_.tolist(), own.high_.tolist()) == ([-3, -3], [5, 5])
    line = frame.learn(Ridge(), columns=["a"], target="y", epsilon=1)
    assert (line.low_.tolist(), line.high_.tolist()) == ([-20, -5], [100, 50])
    assert not any("bounds" in one for one in line.claim_.measured)


def test_bounds_that_nobody_declared_are_bought(tmp_path: Path) -> None:
    with opened(made(300, seed=6, people=None), tmp_path, budget=PURE, bounds={"a": (-20, 100)}) as db:
        bought = db.table("rows").learn(StandardScaler(), columns=["a", "b"], epsilon=5)
    assert sum(one.startswith("bounds, stage") for one in bought.claim_.measured) == 3


def test_rows_that_a_condition_leaves_out_do_not_count(db: hb.Database) -> None:
    """Noise from a fixed stream: it cannot fail by chance."""
    frame = db.table("rows")
    with replayed(1):
        all_ = frame.learn(StandardScaler(), columns=["c"], epsilon=4, rows=4)
        some = frame.where(hb.col("b") > 0.9).learn(StandardScaler(), columns=["c"], epsilon=4, rows=4)
    assert some.n_samples_seen_ < 0.5 * all_.n_samples_seen_


def test_classes_are_declared_or_the_owners_keys(tmp_path: Path) -> None:
    with opened(made(300, seed=4, people=100), tmp_path, budget=PURE, keys={"label": list(CLASSES)}) as db:
        frame = db.table("rows")
        assert frame.learn(GaussianNB(), columns=["a"], target="label", epsilon=1).classes_.tolist() == sorted(CLASSES)
        own = frame.learn(GaussianNB(classes=["up"]), columns=["a"], target="label", epsilon=1)
        assert own.classes_.tolist() == ["up"]


REFUSED: list[tuple[Any, dict[str, Any], type[HubbubError], str]] = [
    (LogisticRegression(), {"target": "label"}, NotAllowed, "LogisticRegression is not learned where the rows are"),
    (Perceptron(), {"target": "label"}, NotAllowed, "Fit it on an array"),
    (object(), {}, NotAllowed, "object is not learned"),
    (KMeans(2, random_state=1), {}, ParameterError, "the session pays"),
    (KMeans(2, meter=object()), {}, ParameterError, "the session pays"),
    (KMeans(0), {}, ParameterError, "n_clusters"),
    (KMeans(300), {}, NotAllowed, "at most 256 clusters"),
    (KMeans(2, algorithm="elkan"), {}, ParameterError, "algorithm"),
    (KMeans(2), {"columns": "a"}, ParameterError, "columns"),
    (KMeans(2), {"columns": []}, ParameterError, "columns"),
    (KMeans(2), {"columns": ["a", "a"]}, ParameterError, "different names"),
    (KMeans(2), {"columns": ["a", "nothing"]}, UnknownName, "nothing"),
    (KMeans(2), {"columns": ["a", "label"]}, TypeMisfit, "label holds text values"),
    (KMeans(2), {"target": "y"}, ParameterError, "left out, for KMeans"),
    (PCA(3), {}, ParameterError, "n_components"),
    (LinearRegression(), {}, ParameterError, "the name of a column, for LinearRegression"),
    (LinearRegression(), {"target": "a"}, ParameterError, "columns"),
    (GaussianNB(), {"target": "label"}, MissingKeys, "classes"),
    (StandardScaler(), {"rows": 0}, ParameterError, "rows"),
    (StandardScaler(), {"rows": 5}, NotAllowed, "the owner allows 4"),
    (StandardScaler(), {"epsilon": 0}, ParameterError, "epsilon"),
    (StandardScaler(), {"delta": 1}, ParameterError, "delta"),
    (StandardScaler(bounds=(1, 0)), {}, ParameterError, "bounds"),
]


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    limits = replace(QUIET, max_rows=4)
    with opened(made(30, seed=1, people=9), tmp_path_factory.mktemp("strict"), budget=PURE, limits=limits) as db:
        yield db


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_cannot_be_learned_is_refused_before_anything_is_paid(place: int, strict: hb.Database) -> None:
    estimator, more, kind, words = REFUSED[place]
    with pytest.raises(kind, match=words):
        strict.table("rows").learn(estimator, **{"columns": ["a", "b"], "epsilon": 1, **more})
    assert spent(strict) == 0


def test_more_columns_than_a_grid_has_are_refused_before_anything_is_paid(tmp_path: Path) -> None:
    place = tmp_path / "wide.csv"
    names = [f"x{number}" for number in range(13)]
    place.write_text(",".join(["who", *names]) + "\n" + ",".join(["1"] * 14) + "\n")
    types = {"who": "integer", **dict.fromkeys(names, "real")}
    bounds = dict.fromkeys(names, (0, 1))
    with hb.open(
        place, unit="who", budget=PURE, columns=types, bounds=bounds, ledger=tmp_path / "ledger", limits=QUIET
    ) as db:
        with pytest.raises(NotAllowed, match="at most 12 columns"):
            db.table("wide").learn(KMeans(2), columns=names, epsilon=1)
        assert spent(db) == 0
        lloyd = db.table("wide").learn(KMeans(2, algorithm="lloyd"), columns=names, epsilon=1)
        assert lloyd.cluster_centers_.shape == (2, 13)


def test_accounts_that_replace_units_are_refused(tmp_path: Path) -> None:
    budget = hb.Budget(epsilon=Fraction(1), neighbors=Neighbors.REPLACE_ONE)
    with opened(made(20, seed=1), tmp_path, budget=budget) as db, pytest.raises(NotAllowed, match="add or remove"):
        db.table("rows").learn(StandardScaler(), columns=["a"], epsilon=1)


# Neighbours, in the engine itself


def fitted(data: Made, place: Path, name: str, *, most: int, answers: tuple[Release, ...] = ()) -> Fitted:
    estimator, columns, target = FITS[name]
    meter = Coupled(answers)
    with opened(data, place) as db, replayed(0) as source:
        lesson = lesson_of(db, estimator, columns=columns, target=target, rows=most)
        pupil = lesson.fit(meter, ACCOUNT, reader_of(db))
    return Fitted(
        measurements=tuple(meter.measurements),
        releases=tuple(meter.releases),
        draws=tuple(source.draws),
        kept={key: written(value) for key, value in vars(pupil).items() if key.endswith("_")},
        outcome="fitted",
    )


@pytest.mark.parametrize("name", ["k-means", "k-means, gaussian, three columns", "regression", "two classes"])
def test_nothing_but_the_secrets_differs_between_neighbours(name: str, tmp_path: Path) -> None:
    data = made(120, seed=9, people=25)
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    one = fitted(data, tmp_path / "x", name, most=2)
    someone = next(who for who, label in zip(data.owners, data.label, strict=True) if label == "up" and who is not None)
    other = fitted(data.without(someone), tmp_path / "y", name, most=2, answers=one.releases)
    assert differences(one, other) == []
    estimator = FITS[name][0]
    assert unpaid(one, epsilon=Fraction(estimator.epsilon), delta=Fraction(estimator.delta)) == []
    moved = [not np.array_equal(a.value, b.value) for a, b in zip(one.measurements, other.measurements, strict=True)]
    assert any(moved)  # the person was there


def test_limits_can_be_declared(tmp_path: Path) -> None:
    assert Limits().max_rows is None
    with opened(made(50, seed=1, people=9), tmp_path, budget=LOUD, limits=replace(QUIET, max_total_rows=3)) as db:
        found = db.table("rows").learn(StandardScaler(), columns=["a"], epsilon=1)
        assert found.max_rows == 3
        assert "for each unit, which counts for at most 3 rows; measured: moments (" in str(found.claim_)


def test_columns_that_are_never_missing_are_learned_from(tmp_path: Path) -> None:
    data = made(60, seed=3, people=20)
    data.x[:], data.y[:] = np.nan_to_num(data.x, posinf=0.0, neginf=0.0), np.nan_to_num(data.y)
    with opened(data, tmp_path, nullable={"a": False, "b": False}) as db:
        found = db.table("rows").learn(StandardScaler(), columns=["a", "b", "c"], epsilon=1)
        assert found.mean_.shape == (3,)
