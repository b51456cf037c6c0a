"""Learning where the rows are on PostgreSQL: the same whole numbers as on an array of them, to the last one."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from hubbub.audit.subjects.in_process.inside import open_read
from hubbub.engines.postgres.engine import Postgres
from hubbub.gate.secret import open_sealed
from hubbub.learn import StandardScaler
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.policy.servers import postgres
from hubbub.query.totals import WEIGHT, Code, SumsRequest, beside, column, columns, number
from hubbub.session.database import Database
from tests.engines.stored import StoredTables
from tests.learn.engine_made import Made, in_engine, lesson_of, made, on_array, opened
from tests.learn.test_engine_totals import _NAMED, ALL, FITS, OWNED, _numbers, _wide
from tests.postgres import PostgresServer, running_server


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@contextmanager
def served(server: PostgresServer, data: Made, folder: Path, *, single: bool = False) -> Iterator[Database]:
    """The rows on a server, under the policy that files of them have."""
    stored = StoredTables(server.fresh_database())
    with opened(data, folder, single=single) as db:
        kinds = [(one.name, one.kind) for one in db.policy.tables["rows"].columns]
        rows = [
            {"who": owner, **dict(zip(ALL, map(_known, row), strict=True)), "y": _known(y), "label": label}
            for owner, row, y, label in zip(data.owners, data.x, data.y, data.label, strict=True)
        ]
        stored.fill("rows", kinds, rows)
        if single:
            stored.execute("ALTER TABLE data.rows ADD UNIQUE (who)")
        source = postgres(stored.url, table="rows", schema="data")
        told: list[str] = []
        policy = replace(db.policy, tables={"rows": replace(db.policy.tables["rows"], source=source)})
        engine = Postgres(limits=policy.limits, dsn=stored.url, log=told.append)
        yield Database(policy, ledger=db.ledger, engine=engine)
        assert told == []
    stored.close()


def _known(value: float) -> float | None:
    """What is no number is missing."""
    return None if math.isnan(value) else float(value)


@pytest.fixture(scope="module", params=list(OWNED))
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, server: PostgresServer
) -> Iterator[Any]:
    people, most = OWNED[request.param]
    data = made(260, seed=len(request.param), people=people)
    with served(server, data, tmp_path_factory.mktemp("rows"), single=people is None) as db:
        yield data, db, most


@pytest.mark.parametrize("fit", list(FITS))
def test_every_measurement_is_of_the_same_numbers(world: Any, fit: str) -> None:
    data, db, most = world
    estimator, columns_, target = FITS[fit]
    lesson = lesson_of(db, estimator, columns=columns_, target=target, rows=most)
    assert lesson.single is (most is None)
    far, learned = in_engine(db, lesson)
    near, plain = on_array(estimator, data, columns_, target, most=most)
    assert len(far) == len(near) > 0
    for one, other in zip(far, near, strict=True):
        assert np.array_equal(one.value, other.value), (one.facts, other.facts)
        assert one.facts == other.facts
    kept = {name: value for name, value in vars(plain).items() if name.endswith("_") and name not in _NAMED}
    for name, value in kept.items():
        assert np.array_equal(getattr(learned, name), value), name


def test_every_function_means_what_arrays_say(server: PostgresServer, tmp_path: Path) -> None:
    data = made(120, seed=3, people=25)
    known = data.kept(data.owned)
    crowd = Crowd.of(np.array(known.owners, dtype=np.int64), rows=len(known.owners), most=2)
    with served(server, data, tmp_path) as db:
        lesson = lesson_of(db, StandardScaler(), columns=ALL, rows=2)
        values = beside(*(one.truncate() for one in _numbers().values()))
        code = Code(number=(column(2).fill_missing(0.0) * 2.0 + 2.0).clip(0.0, 3.0).floor(), size=3)
        for codes in ((), (code,), (code, Code(number=number(0.0), size=1))):
            sums = SumsRequest(values=values, codes=codes)
            here = open_sealed(Features.of(known.x, crowd).add_up(sums))
            for one, other in zip(open_read(db, lesson.totals(sums)), here, strict=True):
                assert one.tolist() == other.tolist()


def test_numbers_side_by_side_are_the_same(server: PostgresServer, tmp_path: Path) -> None:
    data = made(150, seed=4, people=30)
    known = data.kept(data.owned)
    crowd = Crowd.of(np.array(known.owners, dtype=np.int64), rows=len(known.owners), most=2)
    here = Features.of(known.x, crowd)
    values = beside(*((one * 8.0).truncate() for one in _wide().values()))
    bins = Code(number=(columns(0, 2).fill_missing([0.0, 0.0]) - [-20.0, 0.0]).clip(0.0, 7.0).floor(), size=7)
    short = columns(0, 3).fill_missing([0.0, 0.0, 0.0]).shorten(bits=16, weight=WEIGHT)
    with served(server, data, tmp_path) as db:
        lesson = lesson_of(db, StandardScaler(), columns=ALL, rows=2)
        for sums in (
            SumsRequest(values=values),
            SumsRequest(values=values, codes=(bins,)),
            SumsRequest(values=short, products=True, bits=16),
        ):
            exact: list[Any] = open_sealed(here.add_up(sums))
            for one, other in zip(open_read(db, lesson.totals(sums)), exact, strict=True):
                assert one.tolist() == other.tolist()
                assert one.any()


def test_large_sums_are_exact(server: PostgresServer, tmp_path: Path) -> None:
    data = made(4100, seed=2, people=None)
    with served(server, data, tmp_path, single=True) as db:
        lesson = lesson_of(db, StandardScaler(), columns=("a",), rows=None)
        (found,) = open_read(db, lesson.totals(SumsRequest(values=number(float(1 << 52)))))
        assert found.tolist() == [[4100 << 52]]
