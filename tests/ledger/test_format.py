"""What is written today is read the same way for ever; newer formats add to older ones and rewrite nothing."""

import sqlite3
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import LedgerFormat, LedgerUnreachable
from hubbub.ledger import Entry, Ledger, Marks
from hubbub.ledger.effects import EFFECTS
from hubbub.ledger.entry import GENESIS, canonical, chain_hash, digest_of
from hubbub.ledger.stores import opening
from hubbub.ledger.stores.store import MIGRATIONS
from hubbub.ledger.terms import Ask
from hubbub.ledger.verify.verify import verify
from hubbub.privacy.events.event import PureEvent, event_classes, event_from_json

FIRST_FORMAT = Path(__file__).parents[1] / "fixtures" / "ledger_v1.sql"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger of the first format, as it was written in 2026."""
    path = tmp_path / "old.ledger"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST_FORMAT.read_text())
    connection.close()
    return path


@pytest.fixture
def state(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "state")


def test_a_ledger_of_the_first_format_opens_verifies_and_goes_on(old: Path, state: Marks) -> None:
    with Ledger(old, marks=state) as ledger:
        before = [*ledger.entries()]
        assert verify(ledger).entries == len(before)
        left = ledger.statement("pure").left
        ask = Ask(account="pure", question="new", events=(PureEvent(bound=Fraction(1)),), epsilon=Fraction(1))
        ledger.reserve(ask)
        assert ledger.statement("pure").left.loss == left.loss - (1 << 40)
        assert [*ledger.entries()][:-1] == before


def test_it_holds_every_kind_of_entry_and_of_event(old: Path, state: Marks) -> None:
    with Ledger(old, marks=state) as ledger:
        entries = [*ledger.entries()]
    tags = {event["event"] for entry in entries if entry.kind == "charge" for event in entry.content["events"]}
    assert {entry.kind for entry in entries} == set(EFFECTS) - {"adopt", "budget"}
    assert tags == {cls.tag for cls in event_classes().values() if cls.version == 1}


def test_stored_events_cost_what_they_cost_when_they_were_charged(old: Path, state: Marks) -> None:
    with Ledger(old, marks=state) as ledger:
        filters = {one.account: one.budget.filter for one in ledger.statements() if one.kind == "account"}
        checked: Counter[str] = Counter()
        for entry in ledger.entries():
            if entry.kind == "charge":
                content = entry.content
                costs = [filters[content["account"]].charge_of(event_from_json(part)) for part in content["events"]]
                assert sum(cost.loss for cost in costs) == content["loss"], content["question"]
                assert sum(cost.failure for cost in costs) == content["failure"], content["question"]
                checked[content["account"]] += 1
    assert checked["patients"] > 20
    assert checked["swapped"] > 2


def test_the_texts_of_the_chain_are_frozen() -> None:
    assert canonical({"b": [1, "é", None], "a": True}) == '{"a":true,"b":[1,"\\u00e9",null]}'
    assert digest_of(["q", "p", "v"]) == "6f42c74b3d7231f142597bdd33d6c037a23faae20f5553dfe2effebb35ba82e8"
    link = chain_hash(GENESIS, seq=1, time=2, kind="ledger", body="{}")
    assert link == "150b964760fa61e24303c0d4be2b039de3e1878731f1d976848f656b56774193"
    assert Entry(seq=1, time=1_000_001, kind="ledger", body="{}", hash=link).moment.isoformat() == (
        "1970-01-01T00:00:01.000001+00:00"
    )


def test_a_newer_hubbub_migrates_and_rewrites_nothing(old: Path, state: Marks, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(old, marks=state) as ledger:
        before = [*ledger.entries()]
    newer = (*MIGRATIONS, "ALTER TABLE facts ADD COLUMN note TEXT; CREATE TABLE added (seq {whole} PRIMARY KEY)")
    monkeypatch.setattr(opening, "MIGRATIONS", newer)
    with pytest.raises(LedgerFormat, match="for writing once"):
        Ledger(old, marks=state, writes=False)
    with Ledger(old, marks=state) as ledger:
        assert [*ledger.entries()] == before
    with Ledger(old, marks=state, writes=False) as ledger:
        assert [*ledger.entries()] == before
    connection = sqlite3.connect(old)
    assert connection.execute("SELECT format FROM head").fetchall() == [(3,)]
    assert connection.execute("SELECT count(*) FROM added").fetchall() == [(0,)]
    connection.close()
    monkeypatch.setattr(opening, "MIGRATIONS", MIGRATIONS)
    with pytest.raises(LedgerFormat, match=r"has format 3; this Hubbub reads up to 2\. Upgrade Hubbub"):
        Ledger(old, marks=state)


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    old: Path, state: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        opening, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE added (x TEXT); CREATE TABLE facts (x TEXT)")
    )
    with pytest.raises(LedgerUnreachable):
        Ledger(old, marks=state)
    monkeypatch.setattr(opening, "MIGRATIONS", MIGRATIONS)
    with Ledger(old, marks=state) as ledger:
        assert verify(ledger).entries == len([*ledger.entries()])
