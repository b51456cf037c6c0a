"""The line under an answer: the limits that applied, the whole price, and whether it is fresh or served again."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import hubbub as hb
from hubbub import publish
from hubbub.ledger import Marks
from hubbub.privacy.filter import LOSS_UNIT

BEYOND = "rows and values beyond are not in the interval"
PRICE = "price in all ε = 1"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    path = tmp_path / "stays.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            "SELECT i // 4 AS id, i % 5 AS ward, (i % 60)::DOUBLE AS cost, i % 90 AS age FROM range(2000) t(i)"
        ).write_parquet(str(path))
    with hb.open(
        path, unit="id", budget=100, limits=hb.Limits(max_groups=2, max_rows=3), marks=Marks(tmp_path / "state"),
        bounds={"cost": (0, 1000), "age": (0, 100)}, keys={"ward": range(5)}, ledger=tmp_path / "a.ledger",
    ) as opened:  # fmt: skip
        yield opened


@pytest.mark.parametrize(
    ("question", "limits"),
    [
        ("SELECT count(*) FROM stays", "at most 3 rows"),
        ("SELECT count(DISTINCT id) FROM stays", ""),
        ("SELECT ward, count(DISTINCT id) FROM stays GROUP BY ward", "at most 2 groups"),
        ("SELECT ward, count(*) FROM stays GROUP BY ward", "at most 2 groups; at most 3 rows a group"),
        ("SELECT ward > 1, count(*) FROM stays GROUP BY ward > 1", "at most 3 rows a group"),  # of 2 groups, both
        ("SELECT avg(cost), sum(age) FROM stays",
         "at most 3 rows; values of avg(cost) in 0 … 1,000; values of sum(age) in 0 … 100"),
        ("SELECT corr(age, cost), median(cost) FROM stays",
         "at most 3 rows; values of corr(age, cost) in 0 … 100 and 0 … 1,000; values of median(cost) in 0 … 1,000"),
        ("SELECT count(DISTINCT age) FROM stays", "at most 3 rows"),
    ],
)  # fmt: skip
def test_limits_that_applied_are_said(db: hb.Database, question: str, limits: str) -> None:
    answer = db.sql(question, epsilon=1)
    counted = f"of each id: {limits}; {BEYOND} · " if limits else ""
    fresh = f"± 95% · {counted}{PRICE} · entry {answer.entry} of account 'people' · fresh"
    assert answer.terms == fresh == str(answer).splitlines()[-1]
    assert fresh in answer._repr_html_().replace("&#x27;", "'")
    again = db.sql(question, epsilon=1)
    assert again.terms.startswith(fresh.removesuffix("fresh") + "served again, stored 20")


def test_the_price_is_all_that_was_paid_facts_included(tmp_path: Path, db: hb.Database) -> None:
    with pytest.warns(UserWarning, match="two budgets"):
        opened = hb.open(tmp_path / "stays.parquet", unit="id", budget=100, account="us", ledger=db.ledger)
    with opened as own:
        asked = "SELECT ward, sum(cost) FROM stays WHERE ward IN (0, 1, 2) GROUP BY ward"
        answer = own.sql(asked, epsilon=1)
        spent = own.ledger.statement("us").spent.loss * LOSS_UNIT
        assert answer.price == spent == 1
        assert answer.plan.epsilon < 1
        assert "price in all ε = 1 ·" in answer.terms
        assert "of each id: its part of sum(cost) in " in answer.terms, "limits that were bought applied too"
        assert own.sql(asked, epsilon=Fraction(1, 2)).price == 1, "it was drawn at that price"
        follow = own.sql(asked.replace("sum", "avg"), epsilon=1)
        assert follow.price == own.ledger.statement("us").spent.loss * LOSS_UNIT - 1
        found = own.diagnose(asked, epsilon=2)
        assert "price in all ε = 2 ·" in repr(found)
        assert repr(found).endswith("fresh")


def test_publications_say_their_terms_too(db: hb.Database) -> None:
    cells = {"ward": range(5)}
    flat = db.publish(publish.Flat(), over=cells, cells=2, each=3, epsilon=1)
    line = repr(flat).splitlines()[-1]
    assert "of each unit at most 2 cells, with 3 rows in each; rows beyond are not in the interval · ε = 1 ·" in line
    assert line.endswith("· fresh")
    marginals = db.publish(publish.Marginals(ways=1), over={**cells, "age": range(90)}, rows=1, epsilon=1)
    assert "of each unit at most 1 row; rows beyond are not in the interval · ε = 1 ·" in repr(marginals)
    assert "served again" in repr(db.publish(publish.Flat(), over=cells, cells=2, each=3, epsilon=1))
