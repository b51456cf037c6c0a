"""Sparse domains from a database: what is counted, bounded, charged, stored, read again and told."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub import publish
from hubbub.errors import BudgetExceeded, HubbubError, NotAllowed, ParameterError, TooHeavy, TypeMisfit
from hubbub.ledger import Marks
from hubbub.publish import sparse

SHARP = 60
"""An ε for each of three rows at which noise is 0 but for one time in 10^8."""
ROWS = """SELECT i // 3 AS person, (i % 3) * 300000000000 AS code, ['ab', 'b', 'zz'][1 + (i // 3) % 3] AS word,
    (i % 3) / 2.0::DOUBLE AS part FROM range(3000) AS t(i)"""
WORDS = sparse.Words(alphabet="ab", length=2, shorter=True)
OVER: dict[str, Any] = {"code": range(1 << 40), "word": WORDS}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    with duckdb.connect() as made:
        made.execute(f"COPY ({ROWS}) TO '{tmp_path}/rows.parquet'")
    paid: dict[str, Any] = {"budget": hb.Budget(epsilon=Fraction(1000)), "marks": Marks(tmp_path / "marks")}
    with hb.open(tmp_path / "rows.parquet", unit="person", ledger=tmp_path / "l", **paid) as opened:
        yield opened


def test_cells_are_those_that_were_counted(db: hb.Database) -> None:
    """The word zz has no place, so a third of the people are left out; the others have one row in each of 3 cells."""
    found = db.publish(sparse.Threshold(at=150), over=OVER, epsilon=SHARP, rows=3)
    codes = [place * 300_000_000_000 for place in range(3)]
    told = {(code, word): 334.0 if word == "ab" else 333.0 for code in codes for word in ("ab", "b")}
    table = found.to_table()
    assert dict(zip(zip(table["code"], table["word"], strict=True), table["value"], strict=True)) == told
    assert found.cell({"code": 0, "word": "ab"}).value == 334
    hidden = found.cell({"code": 1, "word": "a"})
    assert (hidden.value, hidden.low) == (0, 0)
    assert hidden.high == 150 + found.mechanism.error(beta=0.05)
    assert found.terms.contribution == publish.Contribution(total=3)


def test_a_unit_counts_in_as_many_cells_as_it_may(db: hb.Database) -> None:
    found = db.publish(sparse.Threshold(at=20), over=OVER, epsilon=SHARP, cells=1, each=1)
    assert sum(found.values) == 667
    assert all(value < 334 for value in found.values)


FILTERS = (
    sparse.Threshold(expected_false=3),
    sparse.Largest(count=4),
    sparse.HighPass(expected_false=3),
    sparse.Sample(expected_false=3),
    sparse.Priority(count=8),
    sparse.FirstAbove(at=200, count=3),
    sparse.FirstAbove(at=200, count=3, numbers=Fraction(1, 2)),
)


@pytest.mark.parametrize("shown", FILTERS, ids=lambda one: one.name)
def test_paid_once_and_read_as_it_was_written(db: hb.Database, shown: Any, tmp_path: Path) -> None:
    before = db.ledger.statement(db.policy.account).spent.charges
    found, again = (db.publish(shown, over=OVER, epsilon=6, rows=3) for _ in range(2))
    assert db.ledger.statement(db.policy.account).spent.charges == before + 1
    found.save(tmp_path / "release.json")
    read = sparse.load(tmp_path / "release.json")
    for other in (again, read):
        assert other.to_table() == found.to_table()
        assert other.certificate() == found.certificate()
        assert other.cell({"code": 0, "word": "b"}) == found.cell({"code": 0, "word": "b"})
    told = json.loads(found.certificate())
    assert told["loss_units"] == db.policy.budget.filter.charge_of(found.events[0]).loss
    assert (told["shape"], told["contribution"]) == ([1 << 40, 7], {"cells": 3, "each": 3, "total": 3})
    assert told["question"].startswith("PUBLISH ")
    assert found.receipt is not None


def test_bins_listed_values_and_expressions_are_axes_too(db: hb.Database) -> None:
    over = {"part": publish.bins(0, 2, 1 << 30), "word": ["b", "ab"], "code // 300000000000": range(10)}
    found = db.publish(sparse.Threshold(at=200), over=over, epsilon=SHARP, rows=3)
    places = [column.tolist() for column in found.keys.digits(found.codes)]
    assert places[0] == [0, 0, 1 << 28, 1 << 28, 1 << 29, 1 << 29]
    assert places[2] == [0, 0, 1, 1, 2, 2]
    assert found.within({"word": "b"}).value == 999


def test_domains_of_up_to_2_to_63_cells(db: hb.Database) -> None:
    found = db.publish(sparse.Threshold(at=500), over={"code": range(-(1 << 62), 1 << 62)}, epsilon=SHARP, rows=3)
    assert found.to_table() == {"code": [0, 300_000_000_000, 600_000_000_000], "value": [1000.0] * 3}
    with pytest.raises(ParameterError):
        db.publish(sparse.Threshold(at=500), over={"code": range(1 << 62), "part": publish.bins(0, 1, 3)}, epsilon=1)


def test_the_prospect_is_free_and_tells_the_noise(db: hb.Database) -> None:
    told = db.explain_publish(sparse.Threshold(expected_false=3), over=OVER, epsilon=1, rows=3)
    assert told.fits
    assert "empty cells are shown" in str(told)
    assert told.to_dict()["error"] is None
    assert told.range({"code": 7}) is None
    first = db.explain_publish(sparse.FirstAbove(at=9), over=OVER, epsilon=1, rows=3)
    assert "not told" in str(first)


def test_what_cannot_be_published_is_refused_before_it_is_paid(db: hb.Database) -> None:
    for kind, wrong in (
        (TooHeavy, {"strategy": publish.Flat(), "over": OVER}),
        (NotAllowed, {"strategy": publish.Flat(), "over": {"word": WORDS}}),
        (TypeMisfit, {"strategy": sparse.Threshold(at=9), "over": {"code": WORDS}}),
        (ParameterError, {"strategy": sparse.HighPass(least=1), "over": OVER}),
        (BudgetExceeded, {"strategy": sparse.Threshold(at=9), "over": OVER, "epsilon": 5000}),
    ):
        with pytest.raises(kind):
            db.publish(**({"epsilon": 1, "rows": 3} | wrong))  # type: ignore[arg-type]
    assert db.ledger.statement(db.policy.account).spent.charges == 0


def test_a_filter_is_a_strategy_for_arrays_too() -> None:
    cells = np.zeros((40, 30), dtype=np.int64)
    cells[3, 4], cells[39, 29] = 500, 700
    found = publish.run(cells, sparse.Threshold(at=100), epsilon=SHARP)
    assert (found.cells == cells).all()
    with pytest.raises(HubbubError, match="no error to state"):
        sparse.Threshold(at=100).error(publish.all_ranges((4, 4)), 1)
    assert found.range(axis0=(0, 5)).low is None
