"""The whole path: a file, a question in SQL, the ledger, the engine in its own process, noise, an answer."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import (
    BudgetExceeded,
    EngineError,
    Frozen,
    HubbubError,
    KeyConflict,
    MissingBounds,
    MissingKeys,
    NotAllowed,
    ParameterError,
    PolicyError,
)
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.testing.replay import replayed

WARDS = ("a", "b", "c")


def table(folder: Path, rows: str, name: str = "stays") -> Path:
    """A Parquet file with the columns that these tests ask for."""
    path = folder / f"{name}.parquet"
    connection = duckdb.connect()
    connection.execute(
        f"COPY (SELECT * FROM (VALUES {rows}) AS t(person, ward, cost, nights)) TO '{path}' (FORMAT parquet)"
    )
    connection.close()
    return path


def people(many: int) -> str:
    """Each person has two stays in one ward."""
    rows = [
        f"({number}, '{WARDS[number % 3]}', {float(number % 7)}::DOUBLE, {number % 5}::INTEGER)"
        for number in range(many)
        for _ in range(2)
    ]
    return ", ".join(rows)


def opening(folder: Path, path: Path, **changes: Any) -> hb.Database:
    options: dict[str, Any] = {
        "unit": "person",
        "budget": hb.Budget(epsilon=Fraction(1000)),
        "bounds": {"cost": (0, 10), "nights": (0, 10)},
        "keys": {"ward": [*WARDS, "empty"]},
        "limits": Limits(max_groups=2, max_rows=2),
        "ledger": folder / "stays.ledger",
        "marks": Marks(folder / "state"),
    }
    return hb.open(path, **(options | changes))


@pytest.fixture
def fixed_noise() -> Iterator[None]:
    """The same noise every time, so that figures can be compared without a false alarm."""
    with replayed(seed=1):
        yield


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    """300 people, 600 stays, and an ε at which noise is nearly nothing."""
    with opening(tmp_path, table(tmp_path, people(300))) as made:
        yield made


@pytest.mark.usefixtures("fixed_noise")
def test_counts_sums_and_means_are_right_where_noise_is_small(db: hb.Database) -> None:
    answer = db.sql(
        "SELECT ward, count(*) AS n, count(DISTINCT person) AS who, sum(nights) AS s, avg(cost) AS m FROM stays "
        "GROUP BY ward",
        epsilon=400,
    )
    assert answer.columns == ("ward", "n", "who", "s", "m")
    rows = {row["ward"]: row for row in answer.to_dicts()}
    assert [*rows] == [*WARDS, "empty"]
    for place, ward in enumerate(WARDS):
        members = range(place, 300, 3)
        assert rows[ward]["n"] == pytest.approx(200, abs=1)
        assert rows[ward]["who"] == pytest.approx(100, abs=1)
        assert rows[ward]["s"] == pytest.approx(sum(2 * (person % 5) for person in members), abs=2)
        assert rows[ward]["m"] == pytest.approx(np.mean([person % 7 for person in members]), abs=0.1)
        assert rows[ward]["n_low"] <= rows[ward]["n"] <= rows[ward]["n_high"]
    assert rows["empty"]["n"] == pytest.approx(0, abs=1)
    assert rows["empty"]["m"] is None


@pytest.mark.usefixtures("fixed_noise")
def test_spreads_are_right_where_noise_is_small(db: hb.Database) -> None:
    answer = db.sql("SELECT var_pop(cost) AS v, stddev(cost) AS s FROM stays", epsilon=900).to_dicts()[0]
    values = [float(person % 7) for person in range(300)]
    assert answer["v"] == pytest.approx(np.var(values), abs=0.1)
    assert answer["s"] == pytest.approx(np.std(values, ddof=1), abs=0.05)
    assert answer["v_low"] <= answer["v"] <= answer["v_high"]


@pytest.mark.usefixtures("fixed_noise")
def test_post_processing_is_free_and_exact(db: hb.Database) -> None:
    answer = db.sql(
        "SELECT ward, count(*) * 2 + 1 AS d FROM stays GROUP BY ward HAVING count(*) > 100 ORDER BY ward DESC LIMIT 2",
        epsilon=400,
    )
    assert [row[0] for row in answer.rows] == ["c", "b"]
    assert all(row[1] == pytest.approx(401, abs=2) for row in answer.rows)
    assert "d_low" not in answer.to_dicts()[0]


def test_the_same_question_is_served_again_for_nothing(db: hb.Database) -> None:
    text = "SELECT ward, count(*) FROM stays GROUP BY ward"
    first = db.sql(text, epsilon=1)
    again = db.sql("select   ward, COUNT(*) from stays group by ward  -- the same", epsilon=Fraction(1, 2))
    assert again.rows == first.rows
    assert again.entry == first.entry
    assert again.highs == first.highs, "error bars belong to the noise that was drawn"
    assert db.ledger.statement("people").spent.charges == 1
    assert db.sql(text, epsilon=2).entry != first.entry


def test_explain_costs_nothing_and_tells_the_price_that_is_charged(db: hb.Database) -> None:
    text = "SELECT ward, sum(cost) AS s, avg(nights) FROM stays GROUP BY ward"
    told = db.explain(text, epsilon=1).to_dict()
    assert db.ledger.statement("people").spent.charges == 0
    db.sql(text, epsilon=1)
    assert db.ledger.statement("people").spent.loss == told["cost"]["loss_units"]
    assert told["unit"] == "person"
    assert told["groups_per_unit"] == 2
    shown = str(db.explain(text, epsilon=1))
    assert "each row belongs to its person" in shown
    assert "values clamped to 0 … 10" in shown


def test_the_price_is_at_most_what_was_asked(db: hb.Database) -> None:
    db.sql("SELECT count(*), sum(cost), avg(nights), stddev(cost) FROM stays", epsilon=1)
    assert 0.999 < float(db.ledger.statement("people").spent.loss / (1 << 40)) <= 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT * FROM stays", NotAllowed),
        ("SELECT person, count(*) FROM stays GROUP BY person", MissingKeys),
        ("SELECT string_agg(ward) FROM stays", NotAllowed),
        ("SELECT count(*) FROM read_csv('/etc/passwd')", NotAllowed),
        ("SELECT sum(NULL) FROM stays", MissingBounds),
    ],
)
def test_refusals_cost_nothing(db: hb.Database, text: str, error: type[HubbubError]) -> None:
    with pytest.raises(error):
        db.sql(text, epsilon=1)
    assert db.ledger.statement("people").spent.charges == 0


def test_a_budget_that_is_spent_refuses(tmp_path: Path) -> None:
    with opening(tmp_path, table(tmp_path, people(30)), budget=hb.Budget(epsilon=Fraction(1))) as db:
        db.sql("SELECT count(*) FROM stays", epsilon=Fraction(3, 4))
        with pytest.raises(BudgetExceeded, match=r'account "people" has ε = 0\.25 left'):
            db.sql("SELECT count(*) FROM stays", epsilon=1)


def test_a_ledger_remembers_across_openings_and_keys_find_answers(tmp_path: Path) -> None:
    path = table(tmp_path, people(30))
    with opening(tmp_path, path) as db:
        first = db.sql("SELECT count(*) FROM stays", epsilon=1, key="k")
    with opening(tmp_path, path) as db:
        assert db.sql("SELECT count(*) FROM stays", epsilon=1, key="k").rows == first.rows
        with pytest.raises(KeyConflict):
            db.sql("SELECT count(*) FROM stays", epsilon=2, key="k")
        assert db.ledger.statement("people").spent.charges == 1


def test_another_version_of_the_data_is_another_question(tmp_path: Path) -> None:
    path = table(tmp_path, people(30))
    entries = []
    for version in ("1", "2"):
        with opening(tmp_path, path, version=version) as db:
            entries.append(db.sql("SELECT count(*) FROM stays", epsilon=1).entry)
    assert entries[0] != entries[1]


def test_an_engine_that_fails_says_one_sentence_and_the_charge_stands(tmp_path: Path) -> None:
    path = table(tmp_path, people(30))
    heard: list[str] = []
    with opening(tmp_path, path, log=heard.append) as db:
        path.unlink()
        with pytest.raises(EngineError) as failed:
            db.sql("SELECT count(*) FROM stays", epsilon=1)
        assert "stays" not in str(failed.value)
        assert heard
        assert db.ledger.statement("people").spent.charges == 1


def test_a_principal_whom_the_engine_failed_three_times_is_frozen_until_the_owner_looks(tmp_path: Path) -> None:
    path = table(tmp_path, people(30))
    kept = path.read_bytes()
    with opening(tmp_path, path) as owner:
        owner.ledger.grant("people", "ann")
        owner.ledger.grant("people", "bob")
        ledger = owner.ledger
        with opening(tmp_path, path, principal="ann", ledger=ledger) as ann:
            first = ann.sql("SELECT count(*) FROM stays", epsilon=1, key="k")
            path.unlink()
            for times in range(3):
                with pytest.raises(EngineError) as failed:
                    ann.sql("SELECT sum(nights) FROM stays", epsilon=1 + times // 2)
                assert str(failed.value) == str(EngineError())
                assert failed.value.__context__ is None
            path.write_bytes(kept)
            entries = len([*ledger.entries()])
            for text, key in (("SELECT count(*) FROM stays", "k"), ("SELECT sum(nights) FROM stays", None)):
                with pytest.raises(Frozen, match="failed 3 times"):
                    ann.sql(text, epsilon=1, key=key)
            ann.explain("SELECT count(*) FROM stays", epsilon=1)
            assert len([*ledger.entries()]) == entries
            with opening(tmp_path, path, principal="bob", ledger=ledger) as bob:
                assert bob.sql("SELECT count(*) FROM stays", epsilon=1).rows == first.rows
                ledger.thaw("people", "ann")
                assert ann.sql("SELECT count(*) FROM stays", epsilon=1, key="k").rows == first.rows
                charged = ledger.statement("people").spent.charges
                assert ann.sql("SELECT sum(nights) FROM stays", epsilon=1).rows
                assert ledger.statement("people").spent.charges == charged, "it had been paid for"
                ledger.verify()


def test_the_owner_is_never_frozen(tmp_path: Path) -> None:
    path = table(tmp_path, people(30))
    kept = path.read_bytes()
    with opening(tmp_path, path) as db:
        path.unlink()
        for _ in range(4):
            with pytest.raises(EngineError):
                db.sql("SELECT count(*) FROM stays", epsilon=1)
        assert [one.many for one in db.ledger.failures()] == [4]
        path.write_bytes(kept)
        assert db.sql("SELECT count(*) FROM stays", epsilon=1).rows


@pytest.mark.usefixtures("fixed_noise")
def test_public_tables_give_keys_and_bounds_on_fan_out(tmp_path: Path) -> None:
    wards = tmp_path / "wards.parquet"
    connection = duckdb.connect()
    connection.execute(f"COPY (SELECT * FROM (VALUES ('a', 1), ('b', 2), ('c', 2)) t(ward, floor)) TO '{wards}'")
    connection.close()
    with opening(tmp_path, table(tmp_path, people(300)), tables={"wards": wards}) as db:
        answer = db.sql(
            "SELECT w.floor, count(DISTINCT s.person) AS n FROM stays s JOIN wards w ON s.ward = w.ward "
            "GROUP BY w.floor",
            epsilon=400,
        )
    assert [row[0] for row in answer.rows] == [1, 2]
    assert [row[1] for row in answer.rows] == [pytest.approx(100, abs=1), pytest.approx(200, abs=1)]


def test_an_answer_about_other_groups_is_not_shown_under_new_names(tmp_path: Path) -> None:
    wards = tmp_path / "wards.parquet"
    path = table(tmp_path, people(30))
    text = "SELECT w.floor, count(DISTINCT s.person) FROM stays s JOIN wards w ON s.ward = w.ward GROUP BY w.floor"
    for floors, changed in ((("1", "2", "3"), False), (("1", "2", "4"), True)):
        rows = ", ".join(f"('{ward}', {floor})" for ward, floor in zip(WARDS, floors, strict=True))
        connection = duckdb.connect()
        connection.execute(f"COPY (SELECT * FROM (VALUES {rows}) t(ward, floor)) TO '{wards}' (FORMAT parquet)")
        connection.close()
        with opening(tmp_path, path, tables={"wards": wards}) as db:
            if changed:
                with pytest.raises(PolicyError, match="new version of the data"):
                    db.sql(text, epsilon=1)
            else:
                assert [row[0] for row in db.sql(text, epsilon=1).rows] == [1, 2, 3]
            assert db.ledger.statement("people").spent.charges == 1


def test_a_zcdp_account_takes_gaussian_noise_where_it_errs_less(tmp_path: Path) -> None:
    budget = hb.Budget(epsilon=Fraction(10), delta=Fraction(1, 10**6))
    with opening(tmp_path, table(tmp_path, people(60)), budget=budget, limits=Limits(max_groups=4, max_rows=2)) as db:
        many = db.plan(
            "SELECT ward, count(*), sum(cost), avg(cost), stddev(nights) FROM stays GROUP BY ward", epsilon=1
        )
        one = db.plan("SELECT count(DISTINCT person) FROM stays", epsilon=1)
        assert {type(mechanism).__name__ for mechanism in many.mechanisms} == {"Gaussian"}
        assert {type(mechanism).__name__ for mechanism in one.mechanisms} == {"Geometric"}
        db.sql("SELECT ward, count(*), sum(cost), avg(cost), stddev(nights) FROM stays GROUP BY ward", epsilon=1)
        assert db.ledger.statement("people").odometer.epsilon_at(budget.delta) <= 10


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward, count(*) AS n, count(DISTINCT person) AS w, sum(cost), avg(nights) FROM stays GROUP BY ward",
        "SELECT count(cost), stddev(cost) FROM stays WHERE nights > 1",
    ],
)
@pytest.mark.parametrize(
    "poison",
    [
        "(9999, 'a', 1e308::DOUBLE, 2147483647), (9999, 'b', '-inf'::DOUBLE, NULL), (9999, NULL, 'nan'::DOUBLE, 1)",
        ", ".join(["(9999, 'c', 10.0::DOUBLE, 10::INTEGER)"] * 50),
        "(9999, 'nowhere', 1.0::DOUBLE, 1::INTEGER)",
    ],
)
def test_one_persons_rows_change_nothing_but_the_secrets_and_those_within_bounds(
    tmp_path: Path, text: str, poison: str
) -> None:
    """The same question with the same noise on two tables that differ in one person: replay."""
    shown = []
    for name, rows in (("with", f"{people(40)}, {poison}"), ("without", people(40))):
        folder = tmp_path / name
        folder.mkdir()
        with opening(folder, table(folder, rows)) as db, replayed(seed=3) as source:
            answer = db.sql(text, epsilon=1)
            plan = answer.plan
        shown.append((plan, [(draw.kind, draw.public) for draw in source.draws], answer))
    (left, left_draws, with_), (right, right_draws, without) = shown
    assert left_draws == right_draws
    assert left.cost == right.cost
    assert with_.columns == without.columns
    assert [row[0] for row in with_.rows] == [row[0] for row in without.rows] or not left.question.groups
    for slot, a, b in zip(left.slots, _noisy(with_), _noisy(without), strict=True):
        if slot is None:
            assert a == b
            continue
        moved, proven = [abs(x - y) for x, y in zip(a, b, strict=True) if x != y], slot.sensitivity
        assert proven.l0 is not None
        assert proven.linf is not None
        assert len(moved) <= proven.l0 <= 2 * left.aggregate.most_groups
        assert all(change <= proven.linf for change in moved)


def _noisy(answer: Any) -> list[list[int]]:
    """The stored tallies: with the same noise on both sides, they differ as the exact ones do."""
    return list(answer.noisy)


def test_what_must_be_declared(tmp_path: Path) -> None:
    path = table(tmp_path, people(3))
    with pytest.raises(ParameterError, match="unit must be declared"):
        hb.open(path, budget=hb.Budget(epsilon=Fraction(1)))
    with pytest.raises(ParameterError, match="budget must be declared"):
        hb.open(path, unit="person")
    with opening(tmp_path, path, limits=Limits(buy=False)) as db:
        with pytest.raises(MissingBounds, match="max_rows"):
            db.sql("SELECT count(*) FROM stays", epsilon=1)
        db.sql("SELECT count(DISTINCT person) FROM stays", epsilon=1)


def test_an_answer_can_be_shown_and_certified(db: hb.Database) -> None:
    answer = db.sql("SELECT ward, count(*) AS n FROM stays GROUP BY ward", epsilon=1)
    text = repr(answer)
    assert "ward" in text
    assert "±" in text
    assert "ε = 1" in text
    assert f"entry {answer.entry}" in text
    assert "<table>" in answer._repr_html_()
    assert '"events":[' in answer.certificate()
