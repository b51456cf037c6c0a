"""What is begun while a charge is written: it reads nothing, disturbs nobody, and leaves nothing behind."""

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.engines.base import Run
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.pool import Pool, Standby
from hubbub.errors import BudgetExceeded, EngineError, LedgerError
from hubbub.gate.secret import open_sealed
from hubbub.ledger import Ledger, Marks
from hubbub.policy.tables import Limits
from hubbub.query.requests import Tallies

COUNT = "SELECT ward, count(*) AS n FROM stays GROUP BY ward"


def written(path: Path, rows: int) -> Path:
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT i AS person, 'w' || (i % 2) AS ward FROM range({rows}) AS t(i)) TO '{path}' (FORMAT parquet)"
        )
    return path


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    ledger = Ledger(tmp_path / "ledger", marks=Marks(tmp_path / "marks"))
    with hb.open(
        written(tmp_path / "stays.parquet", 40),
        unit="person",
        budget=hb.Budget(epsilon=Fraction(10)),
        keys={"ward": ["w0", "w1"]},
        limits=hb.Limits(max_rows=1, max_groups=1),
        ledger=ledger,
    ) as made:
        yield made


def pool_of(db: hb.Database) -> Pool:
    engine = db._engine
    assert isinstance(engine, DuckDB)
    return engine._pool


def waiting(db: hb.Database) -> Standby:
    """The next process, once it is ready."""
    pool_of(db)._fill()
    standby = pool_of(db)._waiting[0]
    standby.ready()
    return standby


def run_of(db: hb.Database, text: str = COUNT) -> Run[Any]:
    request = Tallies(aggregate=db.plan(text, epsilon=1).aggregate)
    return db._engine.prepare(request, tables=db.policy.tables)


def test_what_is_begun_has_read_nothing(db: hb.Database, tmp_path: Path) -> None:
    run, standby = run_of(db), waiting(db)
    run.begin()
    assert standby not in pool_of(db)._waiting
    written(tmp_path / "other.parquet", 100)
    os.replace(tmp_path / "other.parquet", tmp_path / "stays.parquet")
    assert open_sealed(run()).tallies == [(50,), (50,)]


def test_a_file_that_is_not_there_is_missed_when_it_is_read_and_not_before(db: hb.Database, tmp_path: Path) -> None:
    run, _ = run_of(db), waiting(db)
    (tmp_path / "stays.parquet").rename(tmp_path / "away")
    run.begin()
    (tmp_path / "away").rename(tmp_path / "stays.parquet")
    assert open_sealed(run()).tallies == [(20,), (20,)]
    run.begin()
    (tmp_path / "stays.parquet").unlink()
    with pytest.raises(EngineError):
        run()


def test_it_waits_for_the_word(db: hb.Database) -> None:
    run, standby = run_of(db), waiting(db)
    run.begin()
    standby.channel.settimeout(0.3)
    with pytest.raises(TimeoutError):
        standby.channel.recv(1)
    assert open_sealed(run()).tallies == [(20,), (20,)]


def has_ended(process: int | None) -> bool:
    """Return whether a process is gone, or only waits for its parent to notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_what_was_begun_and_is_not_wanted_ends(db: hb.Database) -> None:
    run, standby = run_of(db), waiting(db)
    run.begin()
    process = standby.process
    run.end()
    assert has_ended(process)
    run.end()
    assert open_sealed(run()).tallies == [(20,), (20,)]


def test_nothing_is_begun_twice(db: hb.Database) -> None:
    run, _ = run_of(db), waiting(db)
    run.begin()
    first = run._begun
    pool_of(db)._fill()
    waiting(db)
    run.begin()
    assert first is not None
    assert run._begun is first
    assert open_sealed(run()).tallies == [(20,), (20,)]


def test_without_a_process_that_is_ready_it_is_read_as_ever(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(db)
    monkeypatch.setattr(Standby, "waits", lambda standby: False)
    run.begin()
    assert run._begun is None
    assert open_sealed(run()).tallies == [(20,), (20,)]


def test_a_begun_process_that_dies_is_one_failure_of_the_engine(db: hb.Database) -> None:
    run, standby = run_of(db), waiting(db)
    run.begin()
    assert standby.process is not None
    os.kill(standby.process, 9)
    with pytest.raises(EngineError):
        run()
    assert open_sealed(run()).tallies == [(20,), (20,)]


def test_a_statement_that_cannot_be_parsed_is_told_after_the_word(tmp_path: Path) -> None:
    told: list[str] = []
    request: dict[str, Any] = {
        "statement": "SELEC 1",
        "secrets": [],
        "keys": [],
        "paths": [],
        "files": [],
        "databases": {},
        "stored": [],
    }
    with DuckDB(limits=Limits(threads=1), log=told.append, standbys=1) as engine:
        engine._pool._waiting[0].ready()
        begun = engine._pool.begin(request)
        assert begun is not None
        answer = engine._pool.ask(request, seconds=10, begun=begun)
        assert "Parser" in answer["error"]
    assert told == []


def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens from now on, in its order."""
    seen: list[str] = []
    begin, answer = Standby.begin, Standby.answer

    def noted_begin(standby: Standby, request: Any) -> None:
        seen.append("begin")
        begin(standby, request)

    def noted_answer(standby: Standby, seconds: float) -> Any:
        seen.append("read")
        return answer(standby, seconds)

    monkeypatch.setattr(Standby, "begin", noted_begin)
    monkeypatch.setattr(Standby, "answer", noted_answer)
    return seen


def test_a_charge_is_on_disk_before_the_word_is_given(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = begun(monkeypatch)
    reserve = Ledger.reserve

    def noted(ledger: Ledger, ask: Any, **options: Any) -> Any:
        ticket = reserve(ledger, ask, **options)
        seen.append("charged")
        return ticket

    monkeypatch.setattr(Ledger, "reserve", noted)
    waiting(db)
    db.sql(COUNT, epsilon=1)
    assert seen == ["begin", "charged", "read"]


def test_a_stored_answer_and_a_refusal_take_no_process(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.sql(COUNT, epsilon=1)
    waiting(db)
    seen = begun(monkeypatch)
    db.sql(COUNT, epsilon=1)
    with pytest.raises(BudgetExceeded):
        db.sql("SELECT count(*) AS n FROM stays", epsilon=100)
    assert seen == []


def test_a_charge_that_cannot_be_written_ends_what_was_begun(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    standby = waiting(db)
    reserve = Ledger.reserve

    def failing(ledger: Ledger, ask: Any, **options: Any) -> Any:
        reserve(ledger, ask, **options)
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(Ledger, "reserve", failing)
    with pytest.raises(LedgerError):
        db.sql(COUNT, epsilon=1)
    assert standby.channel.fileno() == -1
