"""Questions of a granted principal, asked with one call broken after their charge, and what must then be so."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import hubbub as hb
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.errors import EngineError
from hubbub.ledger import Entry, Ledger
from hubbub.session.database import Database
from tests.session.faulting import Calls, Window, broken, chosen, listed

ANN, ACCOUNT = "ann", "people"
BUDGET = hb.Budget(epsilon=Fraction(10**6), delta=Fraction(1, 4))
_NUMBERS = itertools.count(10**6)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something that is asked, where a granted principal asks it."""

    ask: Callable[["Desk"], Any]
    window: Window
    buys: bool = False
    again: bool = True
    """Whether asking again is free: what is asked without a key costs again, and so does a question whose facts were
    bought before it failed, which then has the whole price to itself."""


@dataclass(kw_only=True)
class Desk:
    """One principal's way to the data: fresh for each trial, so that nothing was asked before."""

    db: Database
    log: list[str]

    @property
    def meter(self) -> hb.Meter:
        return hb.Meter.on(self.db.ledger, principal=ANN, log=self.log.append)


class House:
    """Data, a ledger with a grant for a principal, and trials that know nothing of each other."""

    def __init__(self, owner: Database, engine: DuckDB) -> None:
        self.ledger: Ledger = owner.ledger
        self.ledger.grant(ACCOUNT, ANN, limit=BUDGET)
        self._policy, self._engine, self._seen = owner.policy, engine, 0

    def desk(self, *, buys: bool) -> Desk:
        limits = replace(self._policy.limits, max_groups=None if buys else 2, max_rows=3, buy=buys)
        policy = replace(self._policy, version=str(next(_NUMBERS)), limits=limits)
        log: list[str] = []
        db = Database(policy, ledger=self.ledger, engine=self._engine, principal=ANN, log=log.append)
        return Desk(db=db, log=log)

    @property
    def spent(self) -> int:
        return self.ledger.statement(ACCOUNT).spent.loss

    @property
    def failures(self) -> int:
        return sum(one.many for one in self.ledger.failures())

    def news(self) -> list[Entry]:
        """What was written since it was asked last."""
        found = [*self.ledger.entries(first=self._seen + 1)]
        self._seen += len(found)
        return found


def calls_of(house: House, question: Question) -> tuple[Calls, int]:
    """What is called, once tables that noise is drawn from are made, and what it costs."""
    question.ask(house.desk(buys=question.buys))
    before = house.spent
    with listed(replace(question.window)) as calls:
        question.ask(house.desk(buys=question.buys))
    return calls, house.spent - before


def trial(house: House, question: Question, broke: tuple[str, type[BaseException], int], cost: int) -> str | None:
    """One call broken: None where it was as it must be, else what was not; a call that was not made is skipped."""
    name, problem, at = broke
    desk, before = house.desk(buys=question.buys), house.spent
    house.news()
    failure: BaseException | None = None
    with broken(name, problem, at=at, window=replace(question.window)) as raised:
        try:
            question.ask(desk)
        except BaseException as error:
            failure = error
    if not raised:
        assert failure is None, failure
        return None
    if raised == [True] and failure is None:  # a block without an answer, which is none of the question's failures
        return None if (house.failures, house.spent - before) == (0, cost) else "a block's fault was counted or paid"
    if type(failure) is not EngineError or failure.args != EngineError().args:
        return f"it ended with {failure!r}"
    if failure.__context__ is not None or failure.__cause__ is not None:
        return f"its context is {failure.__context__!r}"
    if house.failures != 1:
        return f"{house.failures} failures were counted"
    news = house.news()
    (failed,) = (one.content["charge"] for one in news if one.kind == "failure")
    stored = failed in [one.content["charge"] for one in news if one.kind == "answer"]
    if stored and not (question.window.whole or question.window.asking):
        return "an answer was stored"
    house.ledger.thaw(ACCOUNT, ANN)
    question.ask(desk)
    if question.again and house.spent - before != cost:
        return f"{house.spent - before} was charged with another try, and {cost} without a fault"
    return None


def check(house: House, title: str, question: Question, *, most: int) -> None:
    """Break calls of a question one by one, and see that each gives the one fixed error and a counted failure."""
    calls, cost = calls_of(house, question)
    assert len(calls.times) > (3 if "watch" in title else 10), calls
    assert house.failures == 0
    wrong = {}
    for broke in chosen(title, calls, most=most):
        told = trial(house, question, broke, cost)
        if told is not None:
            wrong[broke] = told
            house.ledger.thaw(ACCOUNT, ANN)
    assert not wrong, wrong
    house.ledger.verify()
