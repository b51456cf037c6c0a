"""Tables whose rows find their unit in others, from SQL to exact tallies.

A question means what it says of the rows that have an owner; one person moves it by what was proven, whether the rows
that led to that person go too or stay and lead nowhere; and all of it rests on keys that were seen to be unique.
"""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hubbub as hb
from bench import trade
from bench.asked import Asked, differences, noiseless
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import HubbubError
from hubbub.ledger import Ledger, Marks
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.paths import through
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget
from hubbub.query.ops import Cap, Relation, Scan, below
from hubbub.session.database import Database
from tests.query import inside
from tests.query.owned import fill
from tests.query.test_relations_sql import NARROW, PLACES, WIDE, cells

PRIO, FLAG, SEG = ("x", "y", "z"), ("a", "b"), ("s", "t")
CUSTOMERS = (
    TableColumn(name="cust", kind=integer(0, 1 << 40), unique=True),
    TableColumn(name="person", kind=of(Type.INTEGER)),
    TableColumn(name="seg", kind=of(Type.TEXT), keys=SEG),
)
ORDERS = (
    TableColumn(name="order_id", kind=of(Type.TEXT), unique=True),
    TableColumn(name="cust", kind=of(Type.INTEGER)),
    TableColumn(name="prio", kind=of(Type.TEXT), keys=PRIO),
    TableColumn(name="day", kind=integer(0, 99), bounds=(Fraction(0), Fraction(99))),
)
ITEMS = (
    TableColumn(name="order_id", kind=of(Type.TEXT)),
    TableColumn(name="flag", kind=of(Type.TEXT), keys=FLAG),
    TableColumn(name="price", kind=integer(0, 9), bounds=(Fraction(0), Fraction(9))),
)
PUBLIC = [{"id": "x", "floor": 1}, {"id": "x", "floor": 2}, {"id": "y", "floor": 2}]
COLUMNS = {"customers": CUSTOMERS, "orders": ORDERS, "items": ITEMS, "places": PLACES}
KEYS = frozenset({("customers", "cust"), ("orders", "order_id")})
QUESTIONS = [
    line
    for line in (Path(__file__).parents[1] / "fixtures" / "plans" / "paths.sql").read_text().splitlines()
    if line and not line.startswith("--")
]
Rows = dict[str, list[dict[str, Any]]]


def _table(name: str, **given: Any) -> Table:
    source = TableSource(format="duckdb", paths=("/nowhere.duckdb",), table=name)
    return Table(name=name, source=source, columns=COLUMNS[name], **{"unit": None, **given})


TABLES = {
    "items": _table("items", through=through("ORDER_ID", to="Orders")),
    "orders": _table("orders", through=through("cust", to="customers")),
    "customers": _table("customers", unit="person"),
    "places": _table("places"),
}


def policy(**changes: Any) -> Policy:
    facts: dict[str, Any] = {"account": "people", "budget": Budget(epsilon=Fraction(10**6)), "tables": TABLES}
    return Policy(
        **(facts | {"limits": WIDE, "enforced_keys": KEYS, "seen": dict.fromkeys(TABLES, NO_FILES)} | changes)
    )


class World:
    """The shop, on a connection of this process."""

    def __init__(self, folder: Path) -> None:
        self.engine = inside.Inside(inside.connected())
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
        fill(self.engine.connection, "places", inside._kinds(PLACES), PUBLIC)

    def put(self, rows: Rows, limits: Limits) -> Database:
        for name, held in rows.items():
            fill(self.engine.connection, name, inside._kinds(COLUMNS[name]), held)
        version = str(next(inside._VERSIONS))
        return Database(policy(limits=limits, version=version), ledger=self.ledger, engine=self.engine)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("paths"))
    yield made
    made.engine.connection.close()
    made.ledger.close()


def shop(rng: Random, people: int) -> Rows:
    """Persons with one or two customers each, with orders and items; some lead nowhere, some to nobody."""

    def maybe(value: Any, often: float = 0.08) -> Any:
        return None if rng.random() < often else value

    customers = [
        {"cust": n, "person": maybe(n // 2 % people), "seg": maybe(rng.choice(SEG))} for n in range(people * 2)
    ]
    customers += [{"cust": None, "person": 1, "seg": "s"}, {"cust": None, "person": 2, "seg": "t"}]
    orders = [
        {
            "order_id": maybe(f"o{n}"),
            "cust": maybe(rng.randrange(people * 2 + 2)),
            "prio": maybe(rng.choice(PRIO)),
            "day": rng.randrange(99),
        }
        for n in range(people * 5)
    ]
    items = [
        {
            "order_id": maybe(f"o{rng.randrange(people * 5 + 3)}"),
            "flag": maybe(rng.choice(FLAG)),
            "price": rng.randint(0, 9),
        }
        for _ in range(people * 12)
    ]
    return {"customers": customers, "orders": orders, "items": items}


def owners(rows: Rows) -> dict[str, list[Any]]:
    """Whose each row is, table by table; None for nobody's."""
    by_cust = {row["cust"]: row["person"] for row in rows["customers"] if row["cust"] is not None}
    of_orders = [by_cust.get(row["cust"]) for row in rows["orders"]]
    by_order = dict(zip((row["order_id"] for row in rows["orders"]), of_orders, strict=True))
    by_order[None] = None
    return {
        "customers": [row["person"] for row in rows["customers"]],
        "orders": of_orders,
        "items": [by_order.get(row["order_id"]) for row in rows["items"]],
    }


def kept(rows: Rows, stays: Any, tables: tuple[str, ...] = ("customers", "orders", "items")) -> Rows:
    """The rows of those who stay; in tables that are not named, all."""
    whose = owners(rows)
    return {
        name: [row for row, owner in zip(held, whose[name], strict=True) if name not in tables or stays(owner)]
        for name, held in rows.items()
    }


def shuffled(rng: Random, rows: Rows) -> Rows:
    return {name: rng.sample(held, len(held)) for name, held in rows.items()}


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_means_what_it_says(world: World, text: str) -> None:
    for seed in range(2):
        rows = shop(Random(seed), 6)
        db = world.put(rows, WIDE)
        found, keys = cells(db, text), len(db.plan(text, epsilon=1).question.groups)
        plain = inside.connected()
        fill(plain, "places", inside._kinds(PLACES), PUBLIC)
        whose = owners(rows)
        for name, held in kept(rows, lambda owner: owner is not None).items():
            own = [owner for owner in whose[name] if owner is not None]
            columns = {**dict(inside._kinds(COLUMNS[name])), "person": of(Type.INTEGER)}
            told = [{**row, "person": owner} for row, owner in zip(held, own, strict=True)]
            fill(plain, name, list(columns.items()), told)
        expected = {
            tuple(row[:keys]): row[keys:]
            for row in plain.execute(text.replace("avg(price)", "sum(price), count(price)")).fetchall()
        }
        shown = {cell: tuple(int(value or 0) for value in expected.get(cell, ())) for cell in found}
        assert any(any(one) for one in shown.values())
        if "avg(" in text:  # a mean is centred: its count is compared
            shown = {cell: one[1:] for cell, one in shown.items()}
            found = {cell: one[-1:] for cell, one in found.items()}
        assert {cell: one for cell, one in found.items() if any(one)} == {
            c: one for c, one in shown.items() if any(one)
        }
        plain.close()


def moved(world: World, text: str, rng: Random, rows: Rows) -> list[str]:
    """What goes wrong when one person's rows go, and when rows are in another order."""
    one = inside.ask(world.put(rows, NARROW), text)
    assert one.outcome == "answered", one.outcome
    found = inside.faults(one, inside.ask(world.put(shuffled(rng, rows), NARROW), text), same=True)
    for gone in rng.sample(range(6), 2):
        for tables in (("customers", "orders", "items"), ("customers", "orders"), ("customers",)):
            fewer = shuffled(rng, kept(rows, lambda owner, gone=gone: owner != gone, tables))
            found += inside.faults(one, inside.ask(world.put(fewer, NARROW), text))
    lost = {**rows, "items": [*rows["items"], *[{"order_id": "lost", "flag": "a", "price": 9}] * 20]}
    return found + inside.faults(one, inside.ask(world.put(lost, NARROW), text), same=True)


@pytest.mark.parametrize("text", QUESTIONS)
def test_one_person_moves_it_by_what_was_proven(world: World, text: str) -> None:
    rng = Random(text)
    assert moved(world, text, rng, shop(rng, 6)) == []


def test_keys_that_are_believed_are_seen_by_replay(world: World) -> None:
    """The planted fault: a path by a key that is not unique. One person's orders take others' items along."""
    seen = []
    for text in QUESTIONS[:12]:
        rng = Random(text)
        rows = shop(rng, 6)
        for order in rows["orders"]:
            order["order_id"] = rng.choice(("o1", "o2", "o3"))
        seen += moved(world, text, rng, rows)
    assert any("was proven" in one for one in seen)


def test_a_key_that_slipped_in_twice_counts_for_each_of_its_owners(world: World) -> None:
    """Nobody's rows are taken away, or over, by another's: what is lost is that the row itself is hidden."""
    rows: Rows = {
        "customers": [{"cust": one, "person": one, "seg": "s"} for one in range(3)],
        "orders": [{"order_id": "o", "cust": one, "prio": "x", "day": 0} for one in range(3)],
        "items": [{"order_id": "o", "flag": "a", "price": 5}],
    }
    db = world.put(rows, WIDE)
    assert inside.exact(db, "select count(*), count(distinct person), sum(price) from items") == [(3, 3, 15)]
    assert inside.exact(db, "select count(*) from items where person = 1") == [(1,)]


# Refused


REFUSED = [
    ("not-owned", "select count(*) from items join orders on items.price = orders.day"),
    ("not-owned", "select count(*) from items join orders on items.flag = orders.prio"),
    ("not-owned", "select count(*) from items join orders on items.order_id = orders.prio"),
    ("not-owned", "select count(*) from items join orders on upper(items.order_id) = orders.order_id"),
    ("not-owned", "select count(*) from items join orders on items.order_id = coalesce(orders.order_id, 'o1')"),
    ("not-owned", "select count(*) from items a join items b on a.flag = b.flag"),
    ("not-owned", "select count(*) from orders o join customers c on o.day = c.cust"),
    ("not-owned", "select count(*) from items join (select lower(order_id) as k from orders) o on order_id = k"),
    ("not-owned", "select count(*) from items join (select prio as order_id from orders) o using (order_id)"),
    ("not-owned", "select count(*) from items where order_id in (select prio from orders)"),
    ("not-owned", "select count(*) from items where order_id not in (select prio from orders where prio is not null)"),
    ("not-owned", "select count(*) from items where flag in (select order_id from orders)"),
    ("not-owned", "select count(*) from items i where exists (select 1 from orders o where o.prio = i.order_id)"),
    ("not-owned", "select count(*) from items i where not exists (select 1 from orders where order_id = i.flag)"),
    ("not-owned", "select count(*) from (select flag, sum(price) as t from items group by flag)"),
    ("not-owned", "select count(*) from (select upper(order_id), sum(price) as t from items group by 1)"),
    ("not-owned", "select count(*) from (select order_id, count(*) as n from orders group by order_id)"),
    ("not-owned", "select 1 from (select o.cust, count(*) from customers left join orders o using (cust) group by 1)"),
    ("not-owned", "select count(*) from (select distinct flag, price from items)"),
    ("not-owned", "select sum(r) from (select row_number() over (partition by flag order by price) as r from items)"),
    ("not-owned", "select count(*) from (select b, max(price) from (select price, lag(order_id) over (partition by "
     "person order by price) as b from items) group by b)"),
    ("unknown-name", "select count(customer) from items"),
    ("not-owned", "select floor from places left join items on id = flag"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text"), REFUSED)
def test_refused(world: World, code: str, text: str) -> None:
    with pytest.raises(HubbubError) as caught:
        world.put(shop(Random(1), 2), WIDE).plan(text, epsilon=1)
    assert caught.value.code == code


@pytest.mark.parametrize("seen", [frozenset(), frozenset({("orders", "order_id")}), frozenset({("customers", "cust")})])
def test_nothing_is_answered_until_every_key_was_seen(world: World, seen: frozenset[tuple[str, str]]) -> None:
    db = Database(policy(enforced_keys=seen), ledger=world.ledger, engine=world.engine)
    with pytest.raises(HubbubError, match=r"which was not seen to be unique .* hubbub check") as caught:
        db.plan("select count(*) from items", epsilon=1)
    assert caught.value.code == "not-owned"
    needed = ("customers", "cust") in seen
    with nullcontext() if needed else pytest.raises(HubbubError, match="cust of customers"):
        db.plan("select count(*) from orders", epsilon=1)
    db.plan("select count(*) from customers", epsilon=1)


def test_a_key_that_was_not_seen_joins_nothing(world: World) -> None:
    tables = {**TABLES, "orders": _table("orders", unit="cust"), "items": _table("items", unit="order_id")}
    for keys, outcome in ((KEYS, nullcontext()), (frozenset(), pytest.raises(HubbubError, match="their unit"))):
        db = Database(policy(tables=tables, enforced_keys=keys), ledger=world.ledger, engine=world.engine)
        with outcome:
            db.plan("select count(*) from orders a join orders b on a.order_id = b.order_id", epsilon=1)


# What is made of it


def ops(relation: Relation) -> list[Relation]:
    return [relation, *(one for op in below(relation) for one in ops(op))]


@pytest.mark.parametrize(
    ("text", "caps"),
    [
        ("select count(*) from items join orders using (order_id)", 0),
        ("select count(*) from orders left join items using (order_id)", 0),
        ("select count(*) from items join orders using (order_id) join customers using (cust)", 0),
        ("select count(*) from items join (select * from orders where day > 3) o using (order_id)", 0),
        ("select count(*) from items a join items b on a.order_id = b.order_id", 2),
        ("select count(*) from items i join orders o on i.person = o.person", 2),
    ],
)
def test_one_partner_needs_no_cap(world: World, text: str, caps: int) -> None:
    db = world.put(shop(Random(1), 2), WIDE)
    assert sum(isinstance(op, Cap) for op in ops(db.plan(text, epsilon=1).aggregate.input)) == caps


def test_the_path_is_read_and_explained(world: World) -> None:
    db = world.put(shop(Random(1), 2), WIDE)
    planned = db.plan("select sum(price) from items", epsilon=1)
    (scan,) = (op for op in ops(planned.aggregate.input) if isinstance(op, Scan))
    assert [(step.column, step.table, step.key) for step in scan.path] == [
        ("order_id", "orders", "order_id"),
        ("cust", "customers", "cust"),
    ]
    assert scan.unit == "person"
    assert [(one.name, one.reads) for one in scan.columns] == [("items.price", "price")]
    said = str(db.explain("select sum(price) from items", epsilon=1))
    assert "each row belongs to the person found by its order_id in orders, then cust in customers" in said


def test_frames_ask_the_same(world: World) -> None:
    db = world.put(shop(Random(1), 6), WIDE)
    frame = db.table("items").join(db.table("orders"), on="order_id").group_by("prio").agg(n=hb.count())
    assert [row["prio"] for row in frame.answer(epsilon=1).to_dicts()] == list(PRIO)


# The questions after TPC-H, as TPC-H writes them: lines have no customer's key


LINES = [one for one in trade.QUESTIONS if "lineitem" in one.text]


@pytest.fixture(scope="module")
def traded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("trade")
    engine = inside.Inside(inside.connected())
    run = engine.connection.execute
    trade.make(run, customers=600)
    run("ALTER TABLE lineitem DROP l_custkey")

    def source(name: str) -> TableSource:
        return TableSource(format="duckdb", paths=("/nowhere.duckdb",), table=name)

    def schema(name: str) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in run(f"DESCRIBE {name}").fetchall()]

    tables = trade.declared(source, schema, normal=True)
    ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
    with_keys = Policy(
        account="people",
        budget=Budget(epsilon=Fraction(10**6)),
        tables=tables,
        limits=Limits(max_groups=10_000, max_rows=900, max_unit_rows=900),
        enforced=frozenset({"customer"}),
        seen={"customer": NO_FILES, "orders": NO_FILES},
        enforced_keys=frozenset({("orders", "o_orderkey")}),
    )
    yield Database(with_keys, ledger=ledger, engine=engine)
    engine.connection.close()
    ledger.close()


@pytest.mark.parametrize("asked", LINES, ids=lambda one: one.name.split()[0])
def test_tpch_as_it_is_written(traded: Database, asked: Asked) -> None:
    text = re.sub(r"\b[lo]_custkey = [lo]_custkey\s+AND |l_custkey = c_custkey\s+AND ", "", asked.text)
    text = text.replace("(o_custkey, o_orderkey) IN", "o_orderkey IN").replace("l_custkey, l_orderkey", "l_orderkey")
    text = text.replace("lineitem, customer,", "orders, lineitem, customer,").replace(
        "c_custkey = l_custkey", "c_custkey = o_custkey AND o_orderkey = l_orderkey"
    )
    assert "l_custkey" not in text
    planned = traded.plan(text, epsilon=1)
    assert any(isinstance(op, Scan) and op.path for op in ops(planned.aggregate.input))
    rows = traded._engine.connection.execute(text).fetchall()  # type: ignore[attr-defined]
    expected = {tuple(row[: asked.keys]): tuple(row[asked.keys :]) for row in rows}
    assert any(value for numbers in expected.values() for value in numbers)
    assert differences(noiseless(planned, exact_of(traded, planned.aggregate)), expected, tolerance=1e-5) == []
