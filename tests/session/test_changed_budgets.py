"""Budgets that their owner has changed, or that are renewed, as whoever opens the data sees them."""

from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

import hubbub as hb
from hubbub.errors import EngineError, HubbubError, ParameterError, PolicyError
from hubbub.ledger import Ledger, Marks, Renewal
from hubbub.privacy.sensitivity import Neighbors
from hubbub.session import publishing

COUNT = "SELECT count(DISTINCT id) AS n FROM people"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    duckdb.connect().execute(f"COPY (SELECT i AS id FROM range(50) AS t(i)) TO '{tmp_path}/people.parquet'")
    return tmp_path


def opened(folder: Path, *, budget: hb.Budget, principal: str = "owner") -> hb.Database:
    return hb.open(
        folder / "people.parquet",
        unit="id",
        budget=budget,
        principal=principal,
        ledger=folder / "ledger",
        marks=Marks(folder / "marks"),
    )


def owners(folder: Path) -> Ledger:
    return Ledger(folder / "ledger", marks=Marks(folder / "marks"))


def test_a_renewed_account_can_be_asked(people: Path) -> None:
    with owners(people) as ledger:
        ledger.open_account("people", hb.Budget(1), renewal=Renewal(days=30))
        ledger.grant("people", "ann")
    with opened(people, budget=hb.Budget(1)) as db:
        assert db.sql(COUNT, epsilon=0.5).entry
        assert db.ledger.statement("people").renewal == Renewal(days=30)
    with opened(people, budget=hb.Budget(1), principal="ann") as db:
        assert db.sql(COUNT, epsilon=0.25).entry


def test_the_budget_that_is_told_is_the_one_in_force(people: Path) -> None:
    with opened(people, budget=hb.Budget(1)) as db:
        db.ledger.set_budget("people", hb.Budget(5))
        assert "ε = 5 left" in repr(db.budget)
        assert "whose budget is ε = 5" in repr(db.budget)
        assert db.budget.to_dict()["budget"] == "ε = 5"


def test_whoever_names_another_budget_hears_what_to_do(people: Path) -> None:
    opened(people, budget=hb.Budget(1)).close()
    with pytest.raises(ParameterError) as refused:
        opened(people, budget=hb.Budget(2))
    assert "opened with (ε = 1, add-remove)" in str(refused.value)
    assert "hubbub budget set" in str(refused.value)
    assert "an account of another name" in str(refused.value)
    assert "Got ε = 2 instead" in str(refused.value)
    with pytest.raises(ParameterError, match="Got 'replace-one' instead"):
        opened(people, budget=hb.Budget(Fraction(1), neighbors=Neighbors.REPLACE_ONE))


def test_odds_about_rows_are_those_of_neighbours_where_units_are_replaced(people: Path) -> None:
    with opened(people, budget=hb.Budget(1, neighbors=Neighbors.REPLACE_ONE)) as db:
        told = db.explain(COUNT, epsilon=1).to_dict()["odds"]
    assert told["rows_posterior"] == told["posterior"] == pytest.approx(0.7310585786)
    assert "something that one person's rows say" in told["sentence"]
    assert "in the data" not in told["sentence"]


def test_a_publication_says_all_that_was_charged(people: Path) -> None:
    """Limits were bought first: what the numbers cost is less than what was asked for."""
    with opened(people, budget=hb.Budget(4)) as db:
        over = {"id": range(50)}
        release = db.publish(hb.publish.Flat(), over=over, epsilon=0.5)
        charged = db.ledger.statement("people").spent.loss / (1 << 40)
        assert release.epsilon < Fraction(1, 2)
        assert charged == 0.5
        assert "ε = 0.5, bounds and limits that were bought included" in repr(release)
        again = db.publish(hb.publish.Flat(), over=over, epsilon=0.5).receipt
        assert again is not None
        assert again.charged == "1/2"
        assert db.ledger.statement("people").spent.loss / (1 << 40) == charged
        release.save(people / "release.json")
        assert hb.publish.load(people / "release.json").receipt == release.receipt
        exact = db.publish(hb.publish.Flat(), over=over, epsilon=0.75, cells=1, each=1)
        assert "· ε = 0.75 ·" in repr(exact)
        db.ledger.verify()


def test_a_publication_that_failed_is_drawn_for_what_was_paid(people: Path) -> None:
    """Once its limits are known they cost nothing, and it would be another plan, for all of the price."""
    with opened(people, budget=hb.Budget(4)) as db:
        over = {"id": range(50)}
        with mock.patch.object(publishing, "measure_layers", side_effect=ValueError), pytest.raises(EngineError):
            db.publish(hb.publish.Flat(), over=over, epsilon=0.5)
        spent = db.ledger.statement("people").spent
        db.publish(hb.publish.Flat(), over=over, epsilon=0.5)
        assert db.ledger.statement("people").spent == spent


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda db: db.ask(COUNT, epsilon=1), "questions must be a list of questions"),
        (lambda db: db.sql(COUNT, epsilon=1, within=5), "within must be left out beside an epsilon"),
        (lambda db: db.sql(COUNT), "epsilon must be given"),
        (lambda db: db.schema(5), "table must be the name of a table"),
        (lambda db: db.table("nobody"), "There is no table 'nobody'. There are: people."),
    ],
)
def test_small_mistakes_are_named(people: Path, ask: Any, words: str) -> None:
    with opened(people, budget=hb.Budget(4)) as db, pytest.raises(HubbubError) as refused:
        ask(db)
    assert words in str(refused.value)


def test_a_frame_says_what_it_is(people: Path) -> None:
    with opened(people, budget=hb.Budget(4)) as db:
        assert repr(db.table("people").where(hb.col("id") > 5)) == (
            "<Rows of people WHERE (id > 5); nothing is read before .agg(…).answer(epsilon=…)>"
        )


def test_a_misspelt_unit_of_a_text_file_is_named(people: Path) -> None:
    """None of its columns has a type of its own, and that is not what is wrong."""
    (people / "stays.csv").write_text("patient,cost\n1,2\n")
    with pytest.raises(PolicyError, match=r"no column patiend to name the unit\. Did you mean patient\?"):
        hb.open(people / "stays.csv", unit="patiend", budget=1, ledger=people / "ledger", marks=Marks(people / "marks"))
