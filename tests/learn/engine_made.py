"""Made-up tables in a file, and the same fit twice: where the rows are, and on an array of them."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import open_read
from hubbub.gate.secret import Sealed
from hubbub.learn.lesson import LearnWish, Lesson, read
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits
from hubbub.testing.replay import RecordingMeter, ReplayedMeasurement, replayed

Array = np.ndarray[Any, Any]
ODD = (math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, 5e-324, 100.0, -20.0, None)
"""What is no number, what lies far outside, and ends of the bounds."""
BOUNDS = {"a": (-20, 100), "b": (0, 1), "c": (-1, 1), "y": (-5, 50)}
CLASSES = ("left", "right", "up")
LOUD = hb.Budget(epsilon=Fraction(1 << 20), delta=Fraction(1, 2))
QUIET = Limits(threads=1, memory="500MB", temporary="1GB")


@dataclass(frozen=True, slots=True)
class Made:
    """Rows with owners, some of them nobody's."""

    owners: tuple[int | None, ...]
    x: Array
    y: Array
    label: tuple[str | None, ...]

    @property
    def owned(self) -> Array:
        """The rows that are somebody's: the others are dropped."""
        return np.array([one is not None for one in self.owners])

    def without(self, owner: int) -> "Made":
        keep = np.array([one != owner for one in self.owners])
        return self.kept(keep)

    def kept(self, keep: Array) -> "Made":
        places = np.flatnonzero(keep).tolist()
        return Made(
            tuple(self.owners[at] for at in places), self.x[keep], self.y[keep], tuple(self.label[at] for at in places)
        )


def made(rows: int, *, seed: int, people: int | None = None) -> Made:
    """``people``: rows belong to so many, and to nobody sometimes; None: to a different one each."""
    chance = np.random.default_rng(seed)
    x = np.column_stack(
        [chance.normal(30, 25, rows), chance.uniform(-0.2, 1.2, rows), chance.choice([-1.0, 0.25, 1.0], rows)]
    )
    y = 20 * x[:, 1] - 0.3 * x[:, 0] + chance.normal(0, 2, rows)
    for place in range(rows):
        if chance.random() < 0.1:
            x[place, chance.integers(3)] = _number(ODD[chance.integers(len(ODD))])
        if chance.random() < 0.05:
            y[place] = _number(ODD[chance.integers(len(ODD))])
    label = tuple([*CLASSES, "elsewhere", None][n] for n in chance.choice(5, rows, p=[0.4, 0.3, 0.2, 0.05, 0.05]))
    owners = range(rows) if people is None else chance.integers(0, people, rows).tolist()
    named = tuple(None if people is not None and chance.random() < 0.05 else owner for owner in owners)
    return Made(named, x, y, label)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def stored(data: Made, place: Path) -> Path:
    """As a CSV file, in an order that has nothing to do with owners; NaN is written, or left out."""
    shown = [
        ",".join(
            [
                "" if owner is None else str(owner),
                *("" if math.isnan(value) and at % 2 else repr(float(value)) for value in (*row, y)),
                label or "",
            ]
        )
        for at, (owner, row, y, label) in enumerate(zip(data.owners, data.x, data.y, data.label, strict=True))
    ]
    place.write_text("\n".join(["who,a,b,c,y,label", *shown]) + "\n")
    return place


def opened(
    data: Made, place: Path, *, single: bool = False, budget: hb.Budget = LOUD, bounds: Any = BOUNDS, **more: Any
) -> hb.Database:
    types = {"who": "integer", **dict.fromkeys(("a", "b", "c", "y"), "real"), "label": "text"}
    db = hb.open(
        stored(data, place / "rows.csv"), unit="who", name="rows", budget=budget, columns=types, bounds=bounds,
        ledger=place / "ledger", limits=more.pop("limits", QUIET), **more,
    )  # fmt: skip
    if single:  # what the owner's check would have seen
        tables = {"rows": replace(db.policy.tables["rows"], unique=True)}
        db._session.policy = replace(db.policy, tables=tables, enforced=frozenset({"rows"}), seen={"rows": NO_FILES})
    return db


def lesson_of(db: hb.Database, estimator: Any, *, columns: Any, target: str | None = None, rows: int | None) -> Lesson:
    wish = LearnWish(
        frame=db.table("rows"), estimator=estimator, columns=columns, target=target, epsilon=None,
        delta=estimator.delta, rows=rows,
    )  # fmt: skip
    return read(wish, db.policy, db)


def reader_of(db: hb.Database) -> Any:
    """What reads for a fit, as a session does."""
    return lambda request: Sealed(open_read(db, request))


def in_engine(db: hb.Database, lesson: Lesson, *, seed: int = 0) -> tuple[list[ReplayedMeasurement], Any]:
    """What a fit through the engine measured, exactly, and what it learned, with replayed noise."""
    meter = RecordingMeter({"people": LOUD})
    with replayed(seed):
        pupil = lesson.fit(meter, "people", reader_of(db))
    return meter.measurements, pupil


def on_array(
    estimator: Any, data: Made, columns: Any, target: str | None, *, most: int | None, seed: int = 0
) -> tuple[list[ReplayedMeasurement], Any]:
    """The same on arrays; ``most`` is None where every row is its owner's only one."""
    known = data.kept(data.owned)
    meter = RecordingMeter({"people": LOUD})
    pupil = clone(estimator).set_params(meter=meter, account="people", max_rows=most or 1)
    x = known.x[:, ["abc".index(column) for column in columns]]
    y = {None: None, "y": known.y, "label": np.array([one or "missing" for one in known.label])}[target]
    with replayed(seed):
        pupil.fit(x, y, **({} if most is None else {"groups": np.array(known.owners, dtype=np.int64)}))
    return meter.measurements, pupil
