"""Ctrl-C says what was paid, and who asks again pays nothing more."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.ledger import Ledger, Marks
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.session.stages import listen

SUM = "SELECT sum(cost) FROM stays"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect() as connection:
        connection.sql("SELECT i // 2 AS id, i % 60 AS cost FROM range(200) t(i)").write_parquet(
            str(tmp_path / "stays.parquet")
        )
    return tmp_path


def opened(folder: Path) -> hb.Database:
    return hb.open(
        folder / "stays.parquet", unit="id", budget=10, ledger=folder / "a.ledger", marks=Marks(folder / "state")
    )


def spent(db: hb.Database) -> Fraction:
    return db.ledger.statement("people").spent.loss * LOSS_UNIT


def break_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have the engine broken off when it reads for the n-th time."""
    real, reads = DuckDB.prepare, iter(range(number))

    class Broken:
        def begin(self) -> None: ...

        def end(self) -> None: ...

        def __call__(self) -> Any:
            raise KeyboardInterrupt

    def prepare(self: DuckDB, request: Any, **options: Any) -> Any:
        return Broken() if next(reads, number) == number - 1 else real(self, request, **options)

    monkeypatch.setattr(DuckDB, "prepare", prepare)


@pytest.mark.parametrize(("question", "read"), [("SELECT count(DISTINCT id) FROM stays", 1), (SUM, 1), (SUM, 2)])
def test_each_charge_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, question: str, read: int) -> None:
    """Broken off at the question, at the fact that it buys first, or at the question after that."""
    with opened(folder) as db:
        with monkeypatch.context() as changed:
            break_at(changed, read)
            with pytest.raises(KeyboardInterrupt) as broken:
                db.sql(question, epsilon=1)
        said = str(broken.value)
        assert said.startswith("Broken off. Paid from account 'people': ε = ")
        assert broken.value.__cause__ is None
        charges = [entry.seq for entry in db.ledger.entries() if entry.kind == "charge"]
        assert all(f"(entry {seq})" in said for seq in charges)
        assert said.count("(entry ") == len(charges) == read
        answer = db.sql(question, epsilon=1)
        assert said.endswith("Ask exactly the same again: what was paid is not paid twice.")
        assert answer.price == spent(db) == 1


def test_nothing_is_paid_before_the_ledger_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(*args: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    with opened(folder) as db:
        with monkeypatch.context() as changed:
            changed.setattr(Ledger, "check", broken_off)
            with pytest.raises(KeyboardInterrupt, match=r"^Broken off\. Nothing was paid\.$"):
                db.sql(SUM, epsilon=1)
        with monkeypatch.context() as changed:
            changed.setattr(Ledger, "reserve", broken_off)
            with pytest.raises(KeyboardInterrupt, match=r"may have been written: hubbub budget shows it\.$"):
                db.sql(SUM, epsilon=1)
        assert spent(db) == 0


def test_an_answer_that_was_stored_costs_nothing_to_break_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as db:
        db.sql(SUM, epsilon=1)

        def broken_off(*args: Any, **options: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr("hubbub.session.questions.answer_of", broken_off)
        with pytest.raises(KeyboardInterrupt, match="Nothing was paid"):
            db.sql(SUM, epsilon=1)


def test_stages_are_told_in_public_words(folder: Path) -> None:
    """They are those of a plan, the same whatever the rows are."""
    told: list[str] = []
    with opened(folder) as db:
        wanted = [one["what"] for one in db.explain(SUM, epsilon=1).to_dict()["to_buy"]]
        with listen(told.append):
            db.sql(SUM, epsilon=1)
        db.sql("SELECT count(*) FROM stays", epsilon=1)
    assert told == [*(f"buying {what}" for what in wanted), "answering"]
    assert wanted
