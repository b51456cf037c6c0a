"""Without a grant every path ends with that; with one, a principal is told what it can spend, not what others do."""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub import publish
from hubbub.errors import BudgetExceeded, GrantError, GrantExpired
from hubbub.gate.meter import Meter
from hubbub.learn import KMeans
from hubbub.ledger import Marks
from hubbub.mechanisms import Geometric
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.query.expression import Column
from hubbub.query.ops import Scan, ScanColumn
from hubbub.session.questions import sql_job
from tests.query.inside import World
from tests.session.granting import ALL, COUNT, ONE, TOTAL, asked_by, asked_by_owner, entries, frame, granted, loaded


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


METHODS: dict[str, Callable[[hb.Database], object]] = {
    "ask": lambda db: db.ask([COUNT], epsilon=1),
    "check_grant": lambda db: db.check_grant(),
    "read_rows": lambda db: db.read_rows("SELECT cost FROM stays"),
    "schema": lambda db: db.schema(),
    "run": lambda db: db.run(sql_job(asked_by_owner(db).plan(COUNT, epsilon=1), price=Fraction(1))),
    "advise": lambda db: db.advise(epsilon=1, table="stays"),
    "diagnose": lambda db: db.diagnose(COUNT, epsilon=1),
    "explain": lambda db: db.explain(COUNT, epsilon=1),
    "explain_publish": lambda db: db.explain_publish(publish.Flat(), **ALL),
    "fanout": lambda db: db.fanout(*public(db)),
    "learn": lambda db: db.learn(asked_by_owner(db).table("stays"), KMeans(2), columns=["cost"], epsilon=1),
    "plan": lambda db: db.plan(COUNT, epsilon=1),
    "publish": lambda db: db.publish(publish.Flat(), **ALL),
    "sql": lambda db: db.sql(COUNT, epsilon=1),
    "statements": lambda db: db.statements(COUNT, epsilon=1),
    "table": lambda db: db.table("stays"),
    "values": lambda db: db.values("places", "floor"),
}
PATHS: dict[str, Callable[[hb.Database], object]] = METHODS | {
    "a question that is wrong": lambda db: db.sql("SELECT nothing FROM nowhere", epsilon=1),
    "a table that is not there": lambda db: db.explain("SELECT count(*) FROM nowhere", epsilon=1),
    "within": lambda db: db.sql(COUNT, within=10),
    "a table's schema": lambda db: db.schema("stays"),
    "the schema of a table that is not there": lambda db: db.schema("nowhere"),
    "show tables": lambda db: db.sql("SHOW TABLES"),
    "describe": lambda db: db.sql("DESCRIBE stays"),
    "describe what is not there": lambda db: db.sql("DESCRIBE nowhere"),
    "budget": lambda db: db.budget,
    "explain within": lambda db: db.explain(COUNT, within=10),
    "plan within": lambda db: db.plan(COUNT, within=10),
    "facts that are for sale": lambda db: db.sql(TOTAL, epsilon=1),
    "their price": lambda db: db.explain(TOTAL, epsilon=1),
    "a diagnosis of them": lambda db: db.diagnose(TOTAL, epsilon=1),
    "marginals": lambda db: db.explain_publish(publish.Marginals(ways=1), **ALL),
    "frame explain": lambda db: wards(db).explain(epsilon=1),
    "frame explain within": lambda db: wards(db).explain(within=10),
    "frame answer": lambda db: wards(db).answer(epsilon=1),
    "frame diagnose": lambda db: wards(db).diagnose(epsilon=1),
    "frame learn": lambda db: frame(db).learn(KMeans(2), columns=["cost"], epsilon=1),
    "sample_and_aggregate": lambda db: hb.sample_and_aggregate(
        frame(db), ["true"], blocks=2, bounds=(0, 1), epsilon=1, columns=["nothing"]
    ),
    "first_over": lambda db: hb.first_over(wards(db), over=5, epsilon=1),
    "a meter's fits": lambda db: meter(db).fits(Geometric(epsilon=ONE), "people"),
    "a meter's spent": lambda db: meter(db).spent("people"),
    "what is left": lambda db: db.ledger.remaining("people", db.principal),
}


def public(db: hb.Database) -> tuple[Scan, list[Column]]:
    kind = next(column.kind for column in db.policy.tables["places"].columns if column.name == "id")
    return Scan(table="places", columns=(ScanColumn("id", kind, "id"),), unit=None), [Column("id", kind)]


def wards(db: hb.Database) -> Any:
    return frame(db).group_by("ward").agg(n=hb.count())


def meter(db: hb.Database) -> Meter:
    return Meter.on(db.ledger, principal=db.principal)


def test_no_method_of_a_database_is_left_out() -> None:
    public_ones = {name for name, _ in inspect.getmembers(hb.Database, callable) if not name.startswith("_")}
    assert public_ones - {"close"} == METHODS.keys()
    properties = {name for name, held in vars(hb.Database).items() if isinstance(held, property)}
    known_before = {"ledger", "log", "policy", "principal"}
    """Handed over by whoever opened it; the ledger has its own grants, and the policy is the opener's."""
    assert properties - known_before <= PATHS.keys()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("who", ["eve", "bob", "cat"])
def test_without_a_grant_every_path_ends_with_that(world: World, path: str, who: str) -> None:
    """Eve never had one, Bob's was revoked, and Cat's has expired."""
    db = loaded(world)
    db.ledger.grant("people", "bob")
    db.ledger.revoke("people", "bob")
    db.ledger.grant("people", "cat", expires=datetime.now(UTC) - timedelta(days=1))
    db.sql(TOTAL, epsilon=1)
    before = entries(db)
    with pytest.raises(GrantError):
        asked_by(db, who)
    db._session.principal = who
    with pytest.raises(GrantError) as refused:
        PATHS[path](db)
    assert type(refused.value) is (GrantExpired if who == "cat" else GrantError)
    assert set(refused.value.operands) == {"account", "principal"}
    assert "stays" not in str(refused.value) + repr(db)
    assert entries(db) == before


WRONG = {
    "a question that is wrong", "a table that is not there", "sample_and_aggregate",
    "the schema of a table that is not there", "describe what is not there", "statements",
}  # fmt: skip


@pytest.mark.parametrize("path", [path for path in PATHS if path not in WRONG])
def test_with_one_it_is_free_to_ask(world: World, path: str) -> None:
    PATHS[path](granted(loaded(world), "ann"))


def test_opening_reads_nothing_private_for_somebody_without_a_grant(tmp_path: Path) -> None:
    """That some rows share a value of a unique column would be told by the error that opening ends with."""
    import pyarrow as pa

    frames: dict[str, list[Any]] = {"person": [1, 2, 2], "ward": ["a", "b", "b"]}
    options: dict[str, Any] = {
        "unit": "person",
        "budget": hb.Budget(epsilon=ONE),
        "unique": ["person"],
        "ledger": tmp_path / "ledger",
        "marks": Marks(tmp_path / "state"),
    }
    for rows in (frames, {name: values[:2] for name, values in frames.items()}):
        with pytest.raises(GrantError):
            hb.open(pa.table(rows), principal="eve", **options)
    with hb.open(pa.table({"person": [1], "ward": ["a"]}), **options) as db:
        assert [entry.kind for entry in db.ledger.entries()] == ["ledger", "account"], "and eve opened no account"


# Balances


def test_a_principal_is_shown_what_it_can_spend_itself(world: World) -> None:
    db = loaded(world)
    db.ledger.open_project("people", "flu", hb.Budget(epsilon=Fraction(3)))
    ann = granted(db, "ann", 2, project="flu")
    bob = granted(db, "bob", 5, project="flu")

    def left(asker: hb.Database) -> list[Fraction]:
        told = asker.explain(COUNT, epsilon=1).payer, asker.explain_publish(publish.Flat(), **ALL).payer
        return [one.room.loss * LOSS_UNIT for one in told]

    assert left(db) == [10**6, 10**6]
    assert left(ann) == [2, 2]
    assert left(bob) == [3, 3], "the project's"
    bob.sql(COUNT, epsilon=2)
    assert left(ann) == [1, 1], "the project's, now that it has less"
    db.sql(COUNT, epsilon=10**6 - 3)
    assert left(db) == [1, 1]
    assert left(bob) == [1, 1]
    assert str(ann.explain(COUNT, epsilon=Fraction(1, 2))).endswith(
        "price       ε = 0.5 of ε = 1 left; ε = 0.5 afterwards"
    )
    assert ann.explain(COUNT, epsilon=2).to_dict()["fits"] is False


def test_refusals_tell_a_principal_nothing_of_what_others_did(world: World) -> None:
    db = loaded(world)
    db.sql(COUNT, epsilon=10**6 - 1)
    ann = granted(db, "ann", 10**6)
    with pytest.raises(BudgetExceeded) as refused:
        ann.sql(TOTAL, epsilon=2)
    assert 'costs ε = 2; account "people" has ε = 1 left of its budget ε = 1e6. Ask for less' in str(refused.value)
    assert "charge" not in str(refused.value)
    bob = granted(db, "bob", Fraction(1, 2))
    with pytest.raises(BudgetExceeded, match=r'principal "bob" of account "people" has ε = 0\.5 left') as refused:
        bob.sql(TOTAL, epsilon=2)
    assert refused.value.operands["left"].loss * LOSS_UNIT == Fraction(1, 2), "and not the account's"


def test_a_meter_shows_a_principal_its_own_balance(world: World) -> None:
    db = loaded(world)
    db.sql(COUNT, epsilon=7)
    ann = granted(db, "ann", 2)
    assert str(meter(ann).spent("people")) == "ε = 0"
    assert meter(ann).fits(Geometric(epsilon=2 * ONE), "people")
    assert not meter(ann).fits(Geometric(epsilon=3 * ONE), "people")
    assert str(meter(db).spent("people")) == "ε = 7"
