"""What is declared, told for nothing: db.schema, SHOW TABLES, DESCRIBE and db.budget."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.errors import NotAllowed, UnknownName
from hubbub.policy.kinds import Type, of
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import TableColumn
from hubbub.query.answer.listing import list_columns, list_tables
from hubbub.query.read.text.show import Show, read_show
from tests.query.asking import POLICY
from tests.query.inside import World
from tests.session.granting import COUNT, entries, granted, loaded

STATEMENTS = [
    ("SHOW TABLES", Show(None)),
    (" show\n tables ; ", Show(None)),
    ("SHOW ALL TABLES", Show(None)),
    ("DESCRIBE stays", Show("stays")),
    ("desc STAYS;", Show("STAYS")),
    ("DESCRIBE TABLE stays", Show("stays")),
    ("SHOW COLUMNS FROM stays", Show("stays")),
    ('DESCRIBE "my ""odd"" table"', Show('my "odd" table')),
    ("DESCRIBE", None),
    ("DESCRIBE stays, wards", None),
    ("DESCRIBE SELECT 1", None),
    ("SHOW TABLES FROM x", None),
    ("SHOW TABLES; SELECT 1", None),
    ("SELECT 'SHOW TABLES'", None),
    ("SHOWTABLES", None),
    (None, None),
]


@pytest.mark.parametrize(("text", "shown"), STATEMENTS)
def test_statements_about_the_schema_are_read(text: Any, shown: Show | None) -> None:
    assert read_show(text) == shown


def test_all_that_is_declared_is_there() -> None:
    told = {(row["table"], row["column"]): row for row in list_columns(POLICY).to_dicts()}
    for table in POLICY.tables.values():
        for column in table.columns:
            row = told[table.name, column.name]
            assert row["type"] == str(column.kind)
            assert ("bounds" in row["declared"]) is (column.bounds is not None)
            assert ("keys" in row["declared"]) is (column.keys is not None)
            assert ("the unit" in row["declared"]) is (table.unit == column.name)
    assert [row["table"] for row in list_tables(POLICY).to_dicts()] == list(POLICY.tables)
    assert {row["rows"] == "public" for row in list_tables(POLICY).to_dicts() if POLICY.tables[row["table"]].unit} == {
        False
    }


def test_what_the_check_saw_is_not_told() -> None:
    """Whether a declared fact holds is a function of rows (SOUNDNESS 7)."""
    stays = replace(POLICY.tables["stays"], unique=True)
    declared = replace(POLICY, tables={**POLICY.tables, "stays": stays})
    seen = replace(declared, enforced=frozenset({"stays"}), seen={"stays": NO_FILES})
    assert repr(list_tables(seen)) == repr(list_tables(declared))
    assert repr(list_columns(seen)) == repr(list_columns(declared))
    assert "as declared" in repr(list_tables(seen))


def test_many_keys_are_cut_and_odd_names_cannot_act() -> None:
    column = TableColumn(name="k", kind=of(Type.TEXT), keys=("a\x1b[1m<b>", None, *"bcdefgh"))
    stays = POLICY.tables["stays"]
    policy = replace(POLICY, tables={"stays": replace(stays, columns=(*stays.columns, column))})
    listing = list_columns(policy, "STAYS")
    assert listing.rows[-1][-1].endswith("missing, b, c, d, e and 3 more")
    assert "\x1b" not in repr(listing)
    assert "&lt;b&gt;" in listing._repr_html_()
    assert "<b>" not in listing._repr_html_()


def test_listings_are_free_and_have_no_price(tmp_path: Path) -> None:
    world = World(tmp_path)
    db = loaded(world)
    before = entries(db)
    shown = db.sql("SHOW TABLES")
    assert shown.to_dicts() == list_tables(db.policy).to_dicts()
    assert repr(db.sql("DESCRIBE stays")) == repr(db.schema("stays"))
    assert shown.to_pandas().shape == shown.to_polars().shape == (len(shown), 3)
    assert entries(db) == before
    for wrong in ({"epsilon": 1}, {"within": 5}):
        with pytest.raises(NotAllowed, match="Leave the price out"):
            db.sql("SHOW TABLES", **wrong)  # type: ignore[call-overload]
    for ask in (lambda: db.sql("DESCRIBE nowhere"), lambda: db.schema("nowhere")):
        with pytest.raises(UnknownName, match="There is no table 'nowhere'"):
            ask()
    world.close()


def test_the_budget_is_that_of_whoever_asks(tmp_path: Path) -> None:
    world = World(tmp_path)
    db = loaded(world)
    ann = granted(db, "ann", 2)
    ann.sql(COUNT, epsilon=Fraction(1, 2))
    db.sql(COUNT, epsilon=7)
    assert ann.budget.left == "ε = 1.5"
    assert repr(ann.budget).startswith("ε = 1.5 left to 'ann' of account 'people', whose budget is ")
    assert db.budget.left == ann_explained(db) != ann.budget.left
    assert "<p>" in db.budget._repr_html_()
    assert ann.budget.to_dict()["principal"] == "ann"
    world.close()


def ann_explained(db: hb.Database) -> str:
    """What an explanation says is left."""
    return str(db.explain(COUNT, epsilon=1).to_dict()["left"])
