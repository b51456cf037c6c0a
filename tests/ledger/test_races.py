"""Everybody after the last of a budget at once: as many succeed as fit, and not one unit more is spent."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import KeyConflict
from hubbub.ledger import Ask, Ledger, Marks
from tests.ledger.checking import findings
from tests.ledger.conftest import OpenLedger
from tests.ledger.nursery import Nursery
from tests.ledger.racing import RACES, Attempt, among_threads, paid, replied

MANY = 16

pytestmark = pytest.mark.usefixtures("location")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


Raced = Callable[..., list[Attempt]]


@pytest.fixture
def raced(nursery: Nursery, location: str | Path, marks: Marks) -> Raced:
    """One race between processes."""

    def raced(name: str, **how: Any) -> list[Attempt]:
        order = {"location": str(location), "state": str(marks.folder), "race": name, "processes": MANY}
        story = nursery.story("race", order | {"inherited": False, "same": False} | how)
        return [Attempt(told["outcome"], told["seconds"]) for told in story]

    return raced


def check(name: str, ledger: Ledger, attempts: list[Attempt]) -> None:
    fits = RACES[name].fits
    assert 0 < fits < MANY
    assert Counter(attempt.outcome for attempt in attempts) == {"paid": fits, "refused": MANY - fits}
    found = findings(ledger)
    assert found.problems == []
    assert {spent[2] for who, spent in found.balances.items() if who.startswith("patients/")} == {fits}


@pytest.mark.parametrize("name", RACES)
def test_of_16_threads_exactly_as_many_are_paid_for_as_fit(name: str, open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    RACES[name].set_up(ledger)
    asks = [RACES[name].ask(number) for number in range(MANY)]
    attempts = among_threads([partial(paid, ledger, ask) for ask in asks])
    check(name, ledger, attempts)


@pytest.mark.parametrize("name", ["pure less a unit", "project"])
def test_of_16_threads_with_a_ledger_each_exactly_as_many_are_paid_for_as_fit(
    name: str, marks: Marks, open_ledger: OpenLedger
) -> None:
    RACES[name].set_up(open_ledger())
    own = [open_ledger(marks=Marks(marks.folder)) for _ in range(MANY)]
    asks = [RACES[name].ask(number) for number in range(MANY)]
    attempts = among_threads([partial(paid, ledger, ask) for ledger, ask in zip(own, asks, strict=True)])
    check(name, open_ledger(), attempts)


@pytest.mark.parametrize("name", ["pure", "failure pool", "principal", "project"])
def test_of_16_processes_exactly_as_many_are_paid_for_as_fit(name: str, raced: Raced, open_ledger: OpenLedger) -> None:
    with open_ledger() as ledger:
        RACES[name].set_up(ledger)
    attempts = raced(name)
    check(name, open_ledger(), attempts)


@pytest.mark.parametrize("name", ["pure", "project"])
def test_of_16_forks_of_one_busy_ledger_exactly_as_many_are_paid_for_as_fit(
    name: str, raced: Raced, open_ledger: OpenLedger
) -> None:
    with open_ledger() as ledger:
        RACES[name].set_up(ledger)
    attempts = raced(name, inherited=True)
    check(name, open_ledger(), attempts)


def test_16_processes_that_make_the_same_ledger_at_once_make_one(
    nursery: Nursery, location: str | Path, marks: Marks, open_ledger: OpenLedger
) -> None:
    order = {"location": str(location), "state": str(marks.folder), "point": None, "processes": MANY}
    names = [told["outcome"] for told in nursery.story("creation", order)]
    ledger = open_ledger()
    assert names == [ledger.name] * MANY
    assert findings(ledger).entries == 1


def one_answer(ledger: Ledger, attempts: list[Attempt], asked: int) -> None:
    (outcome,) = {attempt.outcome for attempt in attempts}
    assert len(attempts) == asked
    assert [entry.content["answer"] for entry in ledger.entries() if entry.kind == "answer"] == [outcome]
    found = findings(ledger)
    assert found.problems == []
    assert found.balances["patients/account/"][2] == 1


def test_16_threads_with_the_same_question_are_charged_once_and_all_get_the_stored_answer(
    open_ledger: OpenLedger,
) -> None:
    ledger = open_ledger()
    RACES["pure"].set_up(ledger)
    ask = RACES["pure"].ask(0)
    attempts = among_threads([partial(replied, ledger, ask)] * MANY)
    one_answer(ledger, attempts, MANY)


def test_16_threads_with_the_same_question_and_keys_of_their_own_are_charged_once(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    RACES["pure"].set_up(ledger)
    asks = [replace(RACES["pure"].ask(0), key=f"mine {number}") for number in range(MANY)]
    attempts = among_threads([partial(replied, ledger, ask) for ask in asks])
    one_answer(ledger, attempts, MANY)


@pytest.mark.parametrize("inherited", [False, True], ids=["own", "forked"])
def test_8_processes_with_the_same_key_make_one_charge_and_get_one_answer(
    inherited: bool, raced: Raced, open_ledger: OpenLedger
) -> None:
    with open_ledger() as ledger:
        RACES["pure"].set_up(ledger)
    attempts = raced("pure", same=True, inherited=inherited, processes=8)
    one_answer(open_ledger(), attempts, 8)


def test_of_16_threads_with_one_key_and_different_questions_one_is_paid_for_and_the_rest_conflict(
    open_ledger: OpenLedger,
) -> None:
    ledger = open_ledger()
    RACES["pure"].set_up(ledger)
    asks = [replace(RACES["pure"].ask(number), key="the one") for number in range(MANY)]

    def outcome(ask: Ask) -> str:
        try:
            return paid(ledger, ask)
        except KeyConflict:
            return "conflict"

    attempts = among_threads([partial(outcome, ask) for ask in asks])
    assert Counter(attempt.outcome for attempt in attempts) == {"paid": 1, "conflict": MANY - 1}
    found = findings(ledger)
    assert found.problems == []
    assert found.charges == 1
