"""Faults after the charge, where the engine is a process of its own and blocks run in their sandbox."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub import learn, publish
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.ledger import Marks
from tests.engines import programs
from tests.session.faulted import BUDGET, House, Question, check
from tests.session.faulting import Window
from tests.session.test_blocks import _works

pytestmark = [  # a fault between two steps of starting a process leaves its socket to the garbage collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
FEW = 4
"""Calls that are broken of each question, where not all are: an engine's process takes a tenth of a second."""


def asked(ask: Any) -> Question:
    return Question(ask=ask, window=Window())


QUESTIONS: dict[str, Question] = {
    "grouped": asked(lambda desk: desk.db.sql("SELECT t, count(*), avg(x) FROM stays GROUP BY t", epsilon=1)),
    "median": asked(lambda desk: desk.db.sql("SELECT median(x) FROM stays", epsilon=1)),
    "flat": asked(lambda desk: desk.db.publish(publish.Flat(), over={"n": range(16)}, epsilon=1)),
    "learn": asked(lambda desk: desk.db.table("stays").learn(learn.StandardScaler(), columns=["x"], epsilon=1)),
    "blocks": asked(
        lambda desk: hb.sample_and_aggregate(
            desk.db.table("stays"), programs.mean, columns=["x"], bounds=(0, 100), blocks=2, seconds=0.2, epsilon=1
        )
    ),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("sessions")
    rows = "SELECT i // 3 AS person, (i % 50)::DOUBLE AS x, i % 16 AS n, 'a' AS t FROM range(600) AS t(i)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{folder}/stays.parquet'")
    with hb.open(
        folder / "stays.parquet",
        unit="person",
        budget=BUDGET,
        bounds={"x": (0, Fraction(100))},
        keys={"t": ["a", "b"]},
        ledger=folder / "ledger",
        marks=Marks(folder / "marks"),
    ) as db:
        assert isinstance(db._engine, DuckDB)
        yield House(db, db._engine)


@pytest.mark.parametrize("title", QUESTIONS)
def test_a_fault_after_the_charge_is_one_fixed_error_and_counted(house: House, title: str) -> None:
    why = _works() if title == "blocks" else ""
    if why:
        pytest.skip(why)
    check(house, title, QUESTIONS[title], most=2 if title == "blocks" else FEW)
