"""Groups over a threshold, asked of a table: what is found, what it costs, and what is refused."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.errors import NotAllowed, ParameterError, PolicyError
from hubbub.gate import meter
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.answer import stored
from hubbub.session import session as door
from hubbub.session.first_over import _watching
from tests.query.inside import World, row

WARDS = {"a": 30, "b": 400, "c": 420}


def opened(folder: Path, **budget: Any) -> tuple[World, hb.Database]:
    world = World(folder, budget=Budget(epsilon=Fraction(10**6), **budget))
    people = [ward for ward, many in WARDS.items() for _ in range(many)]
    rows = [row(n, ward=ward, cost=10.0, nights=n % 3) for n, ward in enumerate(people)]
    return world, world.load(rows, limits=Limits(max_groups=1, max_rows=1))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    world, made = opened(tmp_path)
    yield made
    world.close()


def wards(db: hb.Database, **aggregates: Any) -> Any:
    return db.table("stays").group_by("ward").agg(**(aggregates or {"n": hb.count()}))


def test_the_first_ward_over_a_hundred(db: hb.Database) -> None:
    """At ε = 5, a hundred from the threshold: false alarm below 1e-9."""
    before = db.ledger.statement("people").spent.loss
    found = hb.first_over(wards(db), over=200, epsilon=5)
    assert [one.keys for one in found.found] == [("b",)]
    assert found.found[0].estimate == pytest.approx(400, abs=60)
    assert not found.complete
    assert db.ledger.statement("people").spent.loss - before == 5 << 40, "the wards below were free"
    assert repr(found).startswith("b (about ")
    assert "others were not looked at (ε = 5, entry " in repr(found)
    again = hb.first_over(wards(db), over=200, epsilon=5)
    assert (again.found, again.entry) == (found.found, found.entry)
    assert hb.first_over(wards(db), over=201, epsilon=5).entry != found.entry


def test_what_was_drawn_at_a_higher_epsilon_is_shown_as_it_was_drawn(db: hb.Database) -> None:
    """A gap is brought back to a count by the ε that it was drawn at; the estimate was that of the ε asked for."""
    found = hb.first_over(wards(db), over=200, epsilon=5)
    lower = hb.first_over(wards(db), over=200, epsilon=Fraction(1, 2))
    assert lower.entry == found.entry
    assert (lower.found, lower.epsilon) == (found.found, Fraction(5))
    assert "(ε = 5, entry " in repr(lower)
    assert hb.first_over(wards(db), over=200, epsilon=6).entry != found.entry


def test_what_was_drawn_for_other_groups_is_not_shown(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place in the list of groups is another group once the public table that lists them has changed."""
    hb.first_over(wards(db), over=200, epsilon=5)
    monkeypatch.setattr(stored, "groups_name", lambda planned: "others")
    with pytest.raises(PolicyError, match="other groups"):
        hb.first_over(wards(db), over=200, epsilon=5)


def test_what_was_drawn_before_groups_were_named_is_shown(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def older(ledger: Any, ask: Any, work: Any, **more: Any) -> Any:
        return meter.answered(ledger, ask, lambda gate: json.dumps(json.loads(work(gate))[:2]), **more)

    monkeypatch.setattr(door, "answered", older)
    found = hb.first_over(wards(db), over=200, epsilon=5)
    monkeypatch.undo()
    assert hb.first_over(wards(db), over=200, epsilon=5) == found


def test_fewer_than_asked_for_means_all_others_are_below(db: hb.Database) -> None:
    found = hb.first_over(wards(db), over=200, epsilon=10, count=3)
    assert [one.keys for one in found.found] == [("b",), ("c",)]
    assert found.complete
    assert "all others are below" in repr(found)
    none = hb.first_over(wards(db), over=2000, epsilon=10)
    assert (none.found, none.complete) == ((), True)
    assert repr(none).startswith("none; all others are below")


def test_sums_in_their_own_units(db: hb.Database) -> None:
    """Costs are 10 each, bounded by 100: 300, 4,000 and 4,200."""
    found = hb.first_over(wards(db, s=hb.sum("cost")), over=2500, epsilon=10)
    assert [one.keys for one in found.found] == [("b",)]
    assert found.found[0].estimate == pytest.approx(4000, abs=900)


@pytest.mark.parametrize(
    ("at_least", "over", "threshold"), [(False, 7, 8), (True, 7, 7), (False, 7.5, 8), (True, 7.5, 8)]
)
def test_over_and_at_least(db: hb.Database, at_least: bool, over: float, threshold: int) -> None:
    planned = db.plan(wards(db).sql, epsilon=1)
    mechanism, facts = _watching(planned, Fraction(over), count=2, at_least=at_least, epsilon=1)
    assert mechanism.threshold == threshold
    assert mechanism.monotone
    assert facts.sensitivity.rising
    assert not mechanism.renewed


def test_replacing_a_unit_or_negative_values_are_not_monotone(tmp_path: Path) -> None:
    budgets: list[dict[str, Any]] = [{"neighbors": Neighbors.REPLACE_ONE}, {"delta": Fraction(1, 10**9)}]
    for place, budget in enumerate(budgets):
        (tmp_path / str(place)).mkdir()
        world, db = opened(tmp_path / str(place), **budget)
        mechanism, _ = _watching(db.plan(wards(db).sql, epsilon=1), Fraction(7), count=2, at_least=True, epsilon=1)
        assert mechanism.monotone is (place == 1)
        assert mechanism.renewed is (place == 1)
        world.close()


def test_less_than_nothing_is_not_monotone(db: hb.Database) -> None:
    planned = db.plan(wards(db, s=hb.sum(hb.col("cost") - 50)).sql, epsilon=1)
    assert not _watching(planned, Fraction(7), count=1, at_least=True, epsilon=1)[0].monotone


def test_what_has_no_threshold_is_refused(db: hb.Database) -> None:
    spent = db.ledger.statement("people").spent.loss
    for asking in (
        wards(db, m=hb.mean("cost")),
        wards(db, n=hb.count(), s=hb.sum("cost")),
        wards(db).having(hb.col("n") > 3),
        wards(db).order_by("n"),
    ):
        with pytest.raises(NotAllowed, match="one count or sum"):
            hb.first_over(asking, over=3, epsilon=1)
    wrongs: list[dict[str, Any]] = [{"epsilon": 0}, {"count": 0}, {"over": "x"}]
    for wrong in wrongs:
        with pytest.raises(ParameterError):
            hb.first_over(wards(db), **{"over": 3, "epsilon": 1, **wrong})
    assert db.ledger.statement("people").spent.loss == spent


def test_a_total_beyond_64_bits_is_compared_like_any_other(tmp_path: Path) -> None:
    """An exact total beyond 2^63 raised OverflowError after the charge, each time it was asked: a free oracle."""
    whole = "SELECT range AS id, 'b' AS ward, CAST(9223372036854775807 AS BIGINT) AS amount FROM range(4)"
    duckdb.connect().execute(f"COPY ({whole}) TO '{tmp_path / 'data.parquet'}'")
    with hb.open(
        tmp_path / "data.parquet",
        unit="id",
        budget=Budget(epsilon=Fraction(100)),
        bounds={"amount": (0, (1 << 63) - 1)},
        keys={"ward": ["a", "b"]},
        limits=hb.Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
    ) as db:
        asking = db.table("data").group_by("ward").agg(s=hb.sum("amount"))
        found = hb.first_over(asking, over=1 << 60, epsilon=50)
    assert [over.keys for over in found.found] == [("b",)]
    assert found.found[0].estimate == pytest.approx(4.0 * (1 << 63), rel=0.9)
