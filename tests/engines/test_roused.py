"""Processes that rehearse a question before it comes: they read made-up rows alone, and answer as any other."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.engines.duckdb import nursery as nurseries
from hubbub.engines.duckdb import pool, wire, worker
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.pool import Standby
from hubbub.policy.tables import Limits


@pytest.fixture
def engine() -> Iterator[DuckDB]:
    with DuckDB(limits=Limits(threads=1), standbys=1) as made:
        made._pool._waiting[0].ready()
        yield made


def request(statement: str, *paths: Path) -> dict[str, Any]:
    files = [str(path) for path in paths]
    asked = {"statement": statement, "secrets": [], "keys": [], "databases": {}, "stored": []}
    return {**asked, "paths": files, "files": [["f", files]] if files else []}


def written(folder: Path, name: str, rows: int) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT range AS a, 1 AS b FROM range({rows})) TO '{folder / name}' (FORMAT parquet)")
    return folder / name


def rows_of(engine: DuckDB, asked: dict[str, Any]) -> list[list[Any]]:
    answer = engine._pool.ask(asked, seconds=60)
    assert "rows" in answer, answer
    rows: list[list[Any]] = answer["rows"]
    return rows


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is sent to processes from now on."""
    seen: list[Any] = []

    def noted(channel: Any, message: Any) -> None:
        seen.append(message)
        wire.send(channel, message)

    monkeypatch.setattr(pool, "send", noted)
    return seen


def test_a_roused_process_knows_its_own_files_alone(engine: DuckDB, tmp_path: Path) -> None:
    """Nothing of the rehearsal is left: no setting, no variable, no descriptor, and no right to the made-up rows."""
    path = written(tmp_path, "rows.parquet", 30)
    engine.rouse()
    time.sleep(pool._ROUSED)
    engine.rouse()
    settings = "current_setting('allowed_paths'), getvariable('made_up')"
    ((number, allowed, variable),) = rows_of(
        engine, request(f"SELECT count(*), {settings} FROM read_parquet(getvariable('f'))", path)
    )
    assert (number, variable) == (30, None)
    assert allowed == [str(path)]
    ((made_up,),) = ([one for one in Path(nurseries.nursery()._directory or "").iterdir() if one.suffix == ".parquet"],)
    engine.rouse()
    answer = engine._pool.ask(request(f"SELECT count(*) FROM '{made_up}'"), seconds=60)
    assert "disabled by configuration" in answer["error"]


def test_descriptors_of_a_rehearsal_are_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with duckdb.connect() as connection:
        opened = len(os.listdir("/proc/self/fd"))
        path = Path(f"/tmp/made-up-{os.getpid()}.parquet")
        worker.make_up(connection, str(path))
        try:
            for _ in range(3):
                worker.rehearse(connection, str(path))
        finally:
            path.unlink()
        assert connection.execute("SELECT getvariable('made_up')").fetchall() == [(None,)]
        assert len(os.listdir("/proc/self/fd")) == opened
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_rehearsed_statement_can_be_answered(tmp_path: Path) -> None:
    """A rehearsal says nothing where it fails: so it is held here to what it should find."""
    path = str(tmp_path / "made_up.parquet")
    with duckdb.connect() as connection:
        worker.make_up(connection, path)
        statement = worker._READ.replace("getvariable('made_up')", f"['{path}']")
        ((code, total),) = connection.execute(statement).fetchall()
    rows = [(i // 9, i % 7) for i in range(2000)]
    units = {a for a, _ in rows}
    assert code == 0
    assert int(total) == sum(min(9, sum(1 for a, b in rows if a == unit and b > 3.5)) for unit in units)


def test_whoever_asks_for_it_often_is_heard_once(engine: DuckDB, sent: list[Any]) -> None:
    for _ in range(20):
        engine._pool._waiting[0].roused = -pool._ROUSED
        engine.rouse()
        engine._pool._waiting[0].roused = time.monotonic() + 60
        for _ in range(20):
            engine.rouse()
    assert sent == [wire.ROUSE] * 20


def test_nobody_is_roused_while_others_ask_or_nothing_is_ready(
    engine: DuckDB, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine._pool._asking = 1
    engine.rouse()
    engine._pool._asking = 0
    with monkeypatch.context() as patched:
        patched.setattr(Standby, "waits", lambda standby: False)
        engine.rouse()
    assert sent == []
    engine.rouse()
    assert sent == [wire.ROUSE]


def test_a_process_that_has_gone_is_roused_for_nothing(engine: DuckDB) -> None:
    standby = engine._pool._waiting[0]
    assert standby.process is not None
    assert standby.handle is not None
    os.kill(standby.process, 9)
    assert wire.is_readable(standby.handle, 20)
    engine.rouse()
    assert rows_of(engine, request("SELECT 1")) == [[1]]


def test_a_closed_engine_rouses_nobody(sent: list[Any]) -> None:
    engine = DuckDB(limits=Limits(threads=1), standbys=1)
    engine.close()
    sent.clear()
    engine.rouse()
    assert sent == []


@pytest.mark.parametrize("many", [1, worker._FEW, worker._FEW + 1, 12])
def test_any_number_of_files_is_read_under_its_name(tmp_path: Path, many: int) -> None:
    """The names of few are written into the statement, those of many are set; text that looks alike is left alone."""
    paths = [written(tmp_path, f"rows{place}.parquet", 10 + place) for place in range(many)]
    alike = "'getvariable(''f'')'"
    statement = f"SELECT {alike}, count(*) FROM read_parquet(getvariable('f')) GROUP BY ALL"
    with duckdb.connect() as connection:
        ahead = worker.Ahead(connection, {**request(statement, *paths), "scratch": str(tmp_path)})
        assert ahead.rows() == [["getvariable('f')", sum(10 + place for place in range(many))]]


@pytest.mark.parametrize("phase", ["waiting", "begun", "reading"])
def test_a_process_ends_with_whoever_it_answers(engine: DuckDB, phase: str) -> None:
    """Also while the engine is busy, and without having read anything from the channel."""
    standby = engine._pool._waiting.popleft()
    assert standby.process is not None
    if phase != "waiting":
        both = "range(10000000) AS a, range(10000000) AS b"
        standby.begin(request(f"SELECT count(*) FROM {both} WHERE (a.range * b.range) % 7 = 9"))
    if phase == "reading":
        wire.send(standby.channel, wire.GO)
        time.sleep(0.3)
    assert standby.handle is not None
    assert not wire.is_readable(standby.handle)
    standby.channel.close()
    assert wire.is_readable(standby.handle, 20)
    standby.forget()
