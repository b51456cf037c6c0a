"""The checks that judge crashes and races can fail: each finds the fault that was planted for it."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.ledger import Ledger
from hubbub.ledger import effects as effects_of_entries
from hubbub.ledger.book import Transaction
from hubbub.ledger.entry import canonical
from hubbub.ledger.holder import ACCOUNT, keep, present
from hubbub.ledger.ledger import wall_clock
from hubbub.ledger.stores.store import StoreSession
from hubbub.ledger.terms import budget_json
from hubbub.privacy.filter import Budget, Spent
from tests.ledger.asking import ask
from tests.ledger.checking import Findings, findings, lent
from tests.ledger.conftest import OpenLedger

MINE: dict[str, Any] = {"principal": "owner", "key": "mine"}


@pytest.fixture
def ledger(sqlite_path: Path, open_ledger: OpenLedger) -> Ledger:
    """One charge (entry 3) with its answer (entry 4), under the key "mine"."""
    ledger = open_ledger(sqlite_path)
    ledger.open_account("patients", Budget(epsilon=Fraction(2)))
    ledger.settle(ledger.reserve(ask(key="mine")), "17")
    return ledger


def behind_its_back(ledger: Ledger, work: Callable[[StoreSession], object]) -> Findings:
    """What is found after somebody has written into the store."""
    with closing(ledger.store.writer()) as session:
        session.begin()
        work(session)
        session.commit()
    return findings(ledger)


def test_nothing_is_found_where_nothing_is_wrong(ledger: Ledger) -> None:
    seen: list[dict[str, Any]] = [
        MINE | {"saw": "paid", "entry": 3},
        MINE | {"saw": "read"},
        MINE | {"saw": "reply", "text": "17"},
        MINE | {"saw": "reply", "text": "17"},
        {"principal": "owner", "key": "other", "saw": "refused"},
    ]
    found = findings(ledger, seen)
    assert found.problems == []
    assert (found.charges, found.entries) == (1, 4)
    assert found.balances == {"patients/account/": [1 << 39, 0, 1, 1 << 39]}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (MINE | {"saw": "paid", "entry": 4}, "was paid for by entry 4"),
        (MINE | {"saw": "reply", "text": "18"}, "got '18', which the ledger does not have"),
        (MINE | {"saw": "refused"}, "was refused, and charged"),
        (MINE | {"saw": "error", "text": "Traceback"}, "Traceback"),
        (MINE | {"key": "lost", "saw": "paid", "entry": 5}, "was paid for by entry 5"),
        (MINE | {"key": "lost", "saw": "read"}, "nobody has paid"),
        (MINE | {"key": "lost", "saw": "reply", "text": "17"}, "which the ledger does not have"),
        (MINE | {"principal": "ann", "saw": "reply", "text": "17"}, "which the ledger does not have"),
    ],
)
def test_what_was_seen_and_is_not_true_is_found(ledger: Ledger, line: dict[str, Any], problem: str) -> None:
    (found,) = findings(ledger, [line]).problems
    assert problem in found


def test_two_replies_to_one_key_are_found(ledger: Ledger) -> None:
    found = findings(ledger, [MINE | {"saw": "reply", "text": text} for text in ("17", "18")])
    assert any("got 2 answers" in problem for problem in found.problems)


@pytest.mark.parametrize("lost", [Spent(loss=(1 << 39) - 1, charges=1), Spent(loss=1 << 39, charges=0), Spent()])
def test_a_balance_that_forgets_is_found(ledger: Ledger, lost: Spent) -> None:
    def forget(session: StoreSession) -> None:
        keep(session, replace(present(session, "patients", ACCOUNT, ""), spent=lost))

    found = behind_its_back(ledger, forget)
    assert any("but its balance says" in problem for problem in found.problems)
    assert any("verify" in problem for problem in found.problems)


@pytest.mark.parametrize(("cap", "over"), [(Fraction(1, 2), False), (Fraction(1, 2) - Fraction(1, 1 << 40), True)])
def test_one_unit_over_the_cap_is_found(ledger: Ledger, cap: Fraction, over: bool) -> None:
    def cut(session: StoreSession) -> None:
        terms = canonical(budget_json(Budget(epsilon=cap), None))
        keep(session, replace(present(session, "patients", ACCOUNT, ""), terms=terms))

    found = behind_its_back(ledger, cut)
    assert any("over its cap by 1 and 0" in problem for problem in found.problems) is over


@pytest.mark.parametrize(
    ("kind", "changes", "problem"),
    [
        ("charge", {}, "was used 2 times"),
        ("answer", {}, "charge 3 has 2 answers"),
        ("answer", {"charge": 2}, "an answer to entry 2, no charge"),
    ],
)
def test_an_entry_too_many_is_found(
    ledger: Ledger, kind: str, changes: dict[str, Any], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = (entry for entry in ledger.entries() if entry.kind == kind)

    def append(session: StoreSession) -> None:
        with monkeypatch.context() as patch:
            patch.setitem(effects_of_entries.EFFECTS, kind, lambda *_: None)
            transaction = Transaction(session, clock=wall_clock)
            transaction.append(kind, entry.content | changes)
            assert transaction.close()

    found = behind_its_back(ledger, append)
    assert any(problem in text for text in found.problems)


def test_a_changed_and_a_missing_entry_are_found(ledger: Ledger) -> None:
    def change(session: StoreSession) -> None:
        for name in ("changed", "deleted"):
            session.run(f"DROP TRIGGER entries_are_never_{name}")
        session.run("UPDATE entries SET time = time + 1 WHERE seq = 2")
        session.run("DELETE FROM entries WHERE seq = 3")

    found = behind_its_back(ledger, change)
    assert "entry 2 is not chained to the one before it" in found.problems
    assert "entry 3 is missing" in found.problems


def test_a_balance_that_goes_down_is_a_refund() -> None:
    assert lent({"a": [2, 1, 1]}, {"a": [2, 1, 1], "b": [0, 0, 0]}) == []
    for after in ({"a": [1, 1, 1]}, {"a": [2, 0, 1]}, {"a": [2, 1, 0]}, {}):
        assert len(lent({"a": [2, 1, 1]}, after)) == 1
