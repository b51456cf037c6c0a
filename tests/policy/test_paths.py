"""Paths to the unit: declared, followed, checked, and void when what was checked has changed."""

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli.app import app
from hubbub.engines.duckdb.owner_check import Check, check
from hubbub.errors import HubbubError, ParameterError, PolicyError
from hubbub.ledger import Marks
from hubbub.policy.files.read import parse_policy
from hubbub.policy.fingerprint import canonical
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.paths import MOST_STEPS, PathStep, follow_path, through
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget
from hubbub.session.opening import place

GOOD = """\
[budget]
account = "people"
epsilon = 1000

[limits]
max_groups = 2
max_rows = 50

[tables.items]
path = "items.parquet"
unit = { through = "order_id", to = "orders", key = "id" }
columns.price = { type = "integer", bounds = [0, 9] }
columns.order_id = { type = "integer" }
columns.moment = { type = "timestamp" }

[tables.orders]
path = "orders.parquet"
unit = { through = "cust", to = "customers" }
columns.id = { type = "integer", unique = true }
columns.cust = { type = "text" }
columns.prio = { type = "text", keys = ["x", "y"] }

[tables.customers]
path = "customers.parquet"
unit = "person"
columns.cust = { type = "text", unique = true }
columns.person = { type = "integer" }

[tables.places]
path = "places.parquet"
public = true
columns.id = { type = "integer", unique = true }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "customers", "SELECT 'c' || i AS cust, i // 2 AS person FROM range(8) AS t(i)")
    write(tmp_path, "orders", "SELECT i AS id, 'c' || i % 9 AS cust, ['x', 'y'][1 + i % 2] AS prio FROM range(20) t(i)")
    write(
        tmp_path, "items", "SELECT i % 23 AS order_id, i % 9 AS price, now()::TIMESTAMP AS moment FROM range(100) t(i)"
    )
    write(tmp_path, "places", "SELECT 1 AS id")
    (tmp_path / "hubbub.toml").write_text(GOOD)
    return tmp_path


def write(folder: Path, table: str, select: str) -> None:
    duckdb.connect().execute(f"COPY ({select}) TO '{folder / table}.parquet'")


def read(folder: Path, text: str = GOOD) -> Policy:
    return parse_policy(text, file=folder / "hubbub.toml")


def test_paths_are_followed_to_the_unit(folder: Path) -> None:
    tables = read(folder).tables
    first, second = PathStep(column="order_id", table="orders", key="id"), through("cust", to="customers")
    assert tables["items"].path == (first, second)
    assert tables["orders"].path == (second,)
    assert tables["customers"].path == ()
    for name in ("items", "orders", "customers"):
        assert tables[name].unit == "person"
        column = tables[name].column("PERSON")
        assert column is not None
        assert column.kind.type is Type.INTEGER
    assert [column.name for column in tables["items"].columns] == ["price", "order_id", "moment"]
    assert [column.name for column in tables["items"].show_pair] == ["price", "order_id", "moment", "person"]


def test_a_policy_that_is_made_again_has_the_same_paths(folder: Path) -> None:
    policy = read(folder)
    assert follow_path(policy.tables, "items") == policy.tables["items"]


def test_a_table_alone_is_private_and_nothing_can_be_asked_of_it() -> None:
    column = TableColumn(name="a", kind=of(Type.INTEGER))
    table = Table(
        name="t", source=TableSource(format="frame"), columns=(column,), unit=None, through=through("A", to="u")
    )
    assert table.unit is not None
    assert table.column(table.unit) is None
    assert table.through == PathStep(column="a", table="u", key="A")


WRONG = [
    ('to = "orders"', 'to = "order"', 11, "goes to order, which is not a table. Did you mean orders?"),
    ('to = "orders"', 'to = "places"', 11, "goes to places, which is public: its rows belong to nobody. Give it"),
    ('to = "orders"', 'to = "items"', 11, "goes in a circle: items → items."),
    ('to = "customers"', 'to = "items", key = "price"', 11, "goes in a circle: items → orders → items."),
    ('through = "order_id"', 'through = "order"', 11, "Table items has no usable column order that leads to its unit."),
    ('through = "order_id"', 'through = "moment"', 11, "holds timestamp values, which are rounded"),
    ('key = "id"', 'key = "no"', 11, "needs a usable column no of table orders."),
    (', key = "id"', "", 11, "needs a usable column order_id of table orders."),
    ('key = "id"', 'key = "prio"', 11, "goes by prio of table orders, which is not declared unique: a row could have"),
    ('key = "id"', 'key = "prio"', 11, "Add unique = true to [tables.orders.columns.prio], if it holds."),
    ('columns.id = { type = "integer", unique = true }', 'columns.id = { type = "integer" }', 11, "not declared u"),
    ('columns.id = { type = "integer"', 'columns.id = { type = "text"', 11, "compares order_id of table items, which"),
    ('unit = { through = "cust", to = "customers" }', 'unit = "ID"\nunique = "no"', 19, "unique of table orders must"),
    ('to = "orders", key = "id"', 'key = "id"', 11, 'unit = { through = "column", to = "table" }'),
    ('to = "orders", key = "id"', 'to = 3', 11, 'unit = { through = "column", to = "table" }'),
    ('key = "id"', 'keys = "id"', 11, "[tables.items.unit] has no key keys. Did you mean key?"),
    ('columns.price = { type', 'columns.person = { type = "text" }\ncolumns.price = { type', 11, "has a column of"),
    ('path = "items.parquet"', 'path = "items.parquet"\npublic = true', 11, "said to be public and to have a unit"),
    ('unique = true }\ncolumns.cust', 'unique = 1 }\ncolumns.cust', 19, "unique of column id must be true or false"),
    ('path = "items.parquet"', 'path = "items.parquet"\nthrough = "id"', 11, "A path to the unit is said so: unit = {"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "said"), WRONG, ids=[f"{new[:40]}" for _, new, _, _ in WRONG])
def test_mistakes(folder: Path, old: str, new: str, line: int, said: str) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(PolicyError) as caught:
        read(folder, GOOD.replace(old, new, 1))
    assert said in caught.value.message
    assert f"hubbub.toml, line {line}: " in caught.value.message


def _chain(steps: int) -> dict[str, Table]:
    columns = (TableColumn(name="a", kind=of(Type.INTEGER)), TableColumn(name="k", kind=integer(0, 9), unique=True))
    tables: dict[str, Table] = {}
    for one in range(steps + 1):
        end = one == steps
        made: dict[str, Any] = {"unit": "a"} if end else {"unit": None, "through": through("k", to=f"t{one + 1}")}
        own = columns if end else columns[1:]
        tables[f"t{one}"] = Table(name=f"t{one}", source=TableSource(format="frame"), columns=own, **made)
    return tables


def test_the_longest_path() -> None:
    assert len(follow_path(_chain(MOST_STEPS), "t0").path) == MOST_STEPS
    with pytest.raises(PolicyError, match="takes more than 8 steps"):
        follow_path(_chain(MOST_STEPS + 1), "t0")


def test_a_table_with_one_row_a_unit_is_a_key_of_its_own() -> None:
    """The unit of a table in which each unit has one row is unique there; in a table with a path it is no column."""
    columns = (TableColumn(name="who", kind=of(Type.INTEGER)), TableColumn(name="x", kind=of(Type.INTEGER)))
    source = TableSource(format="frame")
    people = Table(name="people", source=source, columns=columns, unit="who", unique=True)
    seen = Table(
        name="seen", source=source, columns=columns[1:], unit=None, through=through("x", to="people", key="who")
    )
    facts: dict[str, Any] = {"account": "a", "budget": Budget(epsilon=Fraction(1))}
    tables = {"people": people, "seen": seen}
    assert not Policy(**facts, tables=tables).has_key("people", "who")
    policy = Policy(**facts, tables=tables, enforced=frozenset({"people"}), seen={"people": NO_FILES})
    assert policy.has_key("people", "who")
    assert not policy.has_key("people", "x")
    for wrong in (("people", "x"), ("nobody", "who")):
        with pytest.raises(ParameterError, match="enforced_keys"):
            Policy(**facts, tables=tables, enforced_keys=frozenset({wrong}))


def test_the_fingerprint_has_the_path_and_what_was_seen(folder: Path) -> None:
    policy = read(folder)
    prints = {policy.fingerprint}
    for old, new in (
        ('unit = { through = "order_id", to = "orders", key = "id" }', 'unit = "order_id"'),
        ('unit = { through = "order_id"', 'unit = { through = "price"'),
        ('columns.id = { type = "integer", unique = true }\n', 'columns.id = { type = "integer" }\n'),
    ):  # fmt: skip
        changed = GOOD[: GOOD.index("[tables.places]")] + GOOD[GOOD.index("[tables.places]") :].replace(old, new)
        text = GOOD.replace(old, new, 1) if old.startswith("unit") else changed
        prints.add(read(folder, text).fingerprint)
    assert len(prints) == 4
    assert '"path":[["order_id","orders","id"],["cust","customers","cust"]]' in canonical(policy)


# The owner's check


def test_what_the_check_counts(folder: Path) -> None:
    write(folder, "orders", "SELECT i // 2 AS id, 'c' || i % 9 AS cust, 'x' AS prio FROM range(20) t(i) UNION ALL "
          "SELECT NULL, 'c1', 'x' FROM range(3)")  # fmt: skip
    connection = duckdb.connect()
    for name in ("items", "orders", "customers", "places"):
        connection.execute(f"CREATE VIEW {name} AS FROM '{folder / name}.parquet'")
    report = check(read(folder), lambda sql: connection.execute(sql).fetchall())
    found = {(one.table, one.column, one.fact): (one.against, one.out_of) for one in report.findings}
    assert found["orders", "id", Check.KEY] == (10, 10)
    assert found["customers", "cust", Check.KEY] == (0, 8)
    assert found["orders", "cust", Check.UNIT] == (2, 23)
    assert found["orders", "person", Check.ROWS] == (0, 4)
    assert not report.holds
    assert report.keys == {("customers", "cust"), ("places", "id")}
    assert "orders.id: each value once: not 10 of 10 values. Take the declaration back: unique = false." in str(report)


def test_rows_without_an_owner_are_counted_for_the_owner(folder: Path) -> None:
    made = CliRunner().invoke(app, ["check", "--policy", str(folder / "hubbub.toml"), "--json"])
    assert made.exit_code == 0
    found = {(one["table"], one["column"], one["fact"]): one for one in json.loads(made.output)["findings"]}
    # orders 8 and 17 lead to c8, who is nobody; orders 20, 21 and 22 are not there
    whose = [i % 23 for i in range(100)]
    lost = sum(one in {8, 17, 20, 21, 22} for one in whose)
    assert found["items", "order_id", "unit present"]["against"] == lost
    assert found["items", "order_id", "unit present"]["out_of"] == 100


def opened(folder: Path) -> hb.Database:
    return hb.open(folder / "hubbub.toml", ledger=folder / "ledger", marks=Marks(folder / "marks"))


def checked(folder: Path) -> int:
    return CliRunner().invoke(app, ["check", "--policy", str(folder / "hubbub.toml")]).exit_code


def asked(folder: Path) -> Any:
    with opened(folder) as db:
        return db.sql("SELECT sum(price) AS s, count(DISTINCT person) AS n FROM items", epsilon=500).to_dicts()[0]


def test_answered_once_it_was_checked(folder: Path) -> None:
    with pytest.raises(HubbubError, match="id of orders, which was not seen to be unique"):
        asked(folder)
    assert checked(folder) == 0
    assert asked(folder)["n"] == 4  # noise of scale 1/250: false alarm below 1e-100


@pytest.mark.parametrize("what", ["orders", "customers", "touched", "version", "gone", "older", "torn"])
def test_what_changed_since_is_not_covered(folder: Path, what: str) -> None:
    assert checked(folder) == 0
    record = place(folder / "hubbub.toml")
    match what:
        case "orders":
            write(folder, "orders", "SELECT 1 AS id, 'c1' AS cust, 'x' AS prio FROM range(3)")
        case "customers":
            write(folder, "customers", "SELECT 'c1' AS cust, i AS person FROM range(3) AS t(i)")
        case "touched":
            os.utime(folder / "orders.parquet", (1, 1))
        case "version":
            (folder / "hubbub.toml").write_text('version = "2"\n' + GOOD)
        case "gone":
            record.unlink()
        case "older":  # a record from before there were keys
            content = json.loads(record.read_text())
            del content["keys"]
            record.write_text(json.dumps(content))
        case "torn":
            content = json.loads(record.read_text())
            content["keys"] = [["orders", "id"]]
            record.write_text(json.dumps(content))
    with pytest.raises(HubbubError, match="which was not seen to be unique"):
        asked(folder)


def test_a_key_that_is_there_twice_is_not_on_record(folder: Path) -> None:
    assert checked(folder) == 0
    write(folder, "orders", "SELECT i // 2 AS id, 'c' || i % 9 AS cust, 'x' AS prio FROM range(20) t(i)")
    assert checked(folder) == 1
    kept = json.loads(place(folder / "hubbub.toml").read_text())["keys"]
    assert [one[:2] for one in kept] == [["customers", "cust"], ["places", "id"]]
    with pytest.raises(HubbubError, match="id of orders, which was not seen to be unique"):
        asked(folder)


def test_one_row_a_unit_by_a_path_is_void_when_the_path_changes(folder: Path) -> None:
    """Whose rows are is said by the files of the path: a check of the table rests on them too."""

    def seen() -> frozenset[str]:
        with opened(folder) as db:
            return db.policy.enforced

    text = GOOD.replace('unit = { through = "cust"', 'unique = true\nunit = { through = "cust"')
    (folder / "hubbub.toml").write_text(text)
    write(folder, "orders", "SELECT i AS id, 'c' || 2 * i AS cust, 'x' AS prio FROM range(4) t(i)")
    assert checked(folder) == 0
    assert seen() == {"orders"}
    write(folder, "customers", "SELECT 'c' || i AS cust, 1 AS person FROM range(8) AS t(i)")
    assert seen() == frozenset()
    assert checked(folder) == 1
    assert seen() == frozenset()


# In Python


def test_opened_in_python(folder: Path) -> None:
    tables = {
        "orders": hb.private(
            folder / "orders.parquet",
            unit=hb.through("cust", to="customers"),
            columns={"id": {"unique": True}},
            keys={"prio": ["x", "y"]},
        ),
        "customers": hb.private(folder / "customers.parquet", unit="person", columns={"cust": {"unique": True}}),
        "places": folder / "places.parquet",
    }
    given: dict[str, Any] = {
        "unit": hb.through("order_id", to="orders", key="id"),
        "budget": hb.Budget(epsilon=Fraction(1000)),
        "bounds": {"price": (0, 9)},
        "max_groups": 2,
        "max_rows": 50,
        "tables": tables,
    }
    with hb.open(folder / "items.parquet", **given, ledger=folder / "ledger", marks=Marks(folder / "marks")) as db:
        assert db.policy.enforced_keys == {("orders", "id"), ("customers", "cust")}
        found = db.sql("SELECT count(DISTINCT person) AS n FROM items JOIN orders ON order_id = id", epsilon=500)
        assert found.to_dicts()[0]["n"] == 4
    write(folder, "orders", "SELECT i // 2 AS id, 'c' || i % 9 AS cust, 'x' AS prio FROM range(20) t(i)")
    with pytest.raises(PolicyError, match="Column id of table orders is declared unique, and some rows share a value"):
        hb.open(folder / "items.parquet", **given, ledger=folder / "ledger2", marks=Marks(folder / "marks"))
