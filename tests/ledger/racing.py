"""Many at once, all after the last of a budget."""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from hubbub.errors import BudgetExceeded
from hubbub.gate.meter import answered
from hubbub.ledger import OWNER, Ask, Ledger, Marks
from hubbub.ledger.stores.opening import store_at
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Budget, FamilyFilter
from tests.ledger.asking import gaussian, pure, thresholded
from tests.ledger.crashing import Trap, TrappedMarks, TrappedStore

TENTH = Fraction(1, 10)
_TINY = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A budget, what each attempt costs, and who asks; the narrowest of the caps decides how many fit."""

    event: Event
    budget: Budget
    project: Budget | None = None
    limit: Budget | None = None
    principal: str = OWNER

    def set_up(self, ledger: Ledger) -> None:
        """Accounts and limits."""
        ledger.open_account("patients", self.budget)
        if self.project is not None:
            ledger.open_project("patients", "study", self.project)
        if self.principal != OWNER:
            project = None if self.project is None else "study"
            ledger.grant("patients", self.principal, limit=self.limit, project=project)

    def ask(self, number: int) -> Ask:
        """One of many attempts, all different questions."""
        return Ask(
            account="patients",
            question=f"number {number}",
            events=(self.event,),
            epsilon=TENTH,
            principal=self.principal,
            key=f"key {number}",
        )

    @property
    def fits(self) -> int:
        """How many attempts the narrowest cap holds, in whole units."""
        counts = []
        for budget in filter(None, (self.budget, self.project, self.limit)):
            terms = budget.filter
            cost = terms.charge_of(self.event)
            by_epsilon = terms.pure_cap // cost.pure if isinstance(terms, FamilyFilter) and cost.pure else 0
            counts.append(max(terms.loss_cap // cost.loss, by_epsilon))
            if cost.failure:
                counts.append(terms.failure_cap // cost.failure)
        return min(counts)


def _zcdp(epsilon: Fraction | int, delta: Fraction = _TINY) -> Budget:
    return Budget(epsilon=Fraction(epsilon), delta=delta)


RACES: dict[str, Race] = {
    "pure": Race(event=pure(Fraction(1, 16)), budget=Budget(epsilon=Fraction(11, 16))),
    "pure less a unit": Race(
        event=pure(Fraction(1, 16)), budget=Budget(epsilon=Fraction(11, 16) - Fraction(1, 1 << 40))
    ),
    "epsilon beside rho": Race(event=pure(Fraction(1, 16)), budget=_zcdp(Fraction(11, 16), Fraction(1, 10**9))),
    "epsilon beside rho, below an account": Race(
        event=pure(Fraction(1, 16)),
        budget=_zcdp(Fraction(12, 16), Fraction(1, 10**9)),
        project=_zcdp(Fraction(11, 16), Fraction(1, 10**9)),
        limit=_zcdp(Fraction(7, 16), Fraction(1, 10**9)),
        principal="ann",
    ),
    "rho": Race(event=gaussian(Fraction(1, 150)), budget=_zcdp(2)),
    "failure pool": Race(event=thresholded(Fraction(1, 100), Fraction(1, 10**6) / 20), budget=_zcdp(2)),
    "principal": Race(
        event=pure(Fraction(1, 16)),
        budget=Budget(epsilon=Fraction(12, 16)),
        project=Budget(epsilon=Fraction(11, 16)),
        limit=Budget(epsilon=Fraction(7, 16)),
        principal="ann",
    ),
    "project": Race(
        event=thresholded(Fraction(1, 100), Fraction(1, 10**6) / 20),
        budget=_zcdp(2),
        project=_zcdp(2, _TINY / 2),
        limit=_zcdp(1),
        principal="ann",
    ),
}
"""Each holds some of sixteen attempts, and not all."""


EACH = 25
RUSH = Race(event=pure(Fraction(1, 16)), budget=Budget(epsilon=Fraction(16 * EACH - 7, 16)))
"""For sixteen who try ``EACH`` times: all but the last seven fit."""


Prepared = Callable[[Callable[[], None]], "list[Attempt]"]
"""Work that gets ready, calls what it is given to wait for the others, and then tries."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended: with what it gave back, "refused", or an error; and how long it was waited for."""

    outcome: str
    seconds: float


def attempt(work: Callable[[], str]) -> Attempt:
    """Try."""
    began = time.monotonic()
    try:
        outcome = work()
    except BudgetExceeded:
        outcome = "refused"
    except Exception as problem:
        outcome = repr(problem)
    return Attempt(outcome, time.monotonic() - began)


def among_threads(works: list[Callable[[], str]]) -> list[Attempt]:
    """All at once in this process."""
    start = threading.Barrier(len(works))
    attempts: list[Attempt] = []

    def run(work: Callable[[], str]) -> None:
        start.wait()
        attempts.append(attempt(work))

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return attempts


def among_forks(works: list[Prepared]) -> list[Attempt]:
    """All at once, each in a child of its own."""
    from tests.ledger.nursery import forked

    gate, starter = os.pipe()
    ready, report = os.pipe()
    results, result = os.pipe()

    def wait() -> None:
        os.write(report, b".")
        os.read(gate, 1)  # ends when the parent closes the other side

    def run(work: Prepared) -> None:
        os.close(starter)
        try:
            ended = work(wait)
        except Exception as problem:
            ended = [Attempt(repr(problem), 0.0)]
            os.write(report, b".")  # nobody waits for who could not get ready
        os.write(result, b"".join(json.dumps(asdict(one)).encode() + b"\n" for one in ended))

    numbers = [forked(partial(run, work)) for work in works]
    for number in (gate, report, result):
        os.close(number)
    waiting = len(works)
    while waiting > 0 and (dots := os.read(ready, waiting)):
        waiting -= len(dots)
    os.close(starter)
    with open(results) as pipe:
        attempts = [Attempt(**json.loads(line)) for line in pipe]
    os.close(ready)
    for number in numbers:
        os.waitpid(number, 0)
    return attempts


def paid(ledger: Ledger, ask: Ask) -> str:
    """One charge."""
    ledger.reserve(ask)
    return "paid"


def replied(ledger: Ledger, ask: Ask) -> str:
    """One charge and its answer: everybody would answer differently."""
    return answered(ledger, ask, lambda meter: uuid.uuid4().hex).answer


def race(order: dict[str, Any]) -> None:
    """For a nursery: so many processes, each with a ledger that it has opened itself, or with the one of its parent."""
    from tests.ledger.nursery import tell

    which, each = (RUSH, EACH) if order["race"] == "rush" else (RACES[order["race"]], 1)

    def work(ledger: Ledger | None, number: int) -> Prepared:
        def run(wait: Callable[[], None]) -> list[Attempt]:
            with ledger or _opened(order) as own:
                wait()
                if order["same"]:
                    return [attempt(partial(replied, own, which.ask(0)))]
                return [attempt(partial(paid, own, which.ask(number * each + time))) for time in range(each)]

        return run

    with _busy(order) if order["inherited"] else nullcontext() as ledger:
        attempts = among_forks([work(ledger, number) for number in range(order["processes"])])
    for ended in attempts:
        tell("attempt", **asdict(ended))


def creation(order: dict[str, Any]) -> None:
    """For a nursery: so many processes make the same ledger at once, or one that dies at a point of doing so."""
    from tests.ledger.nursery import tell

    def make() -> str:
        trap = Trap(order["point"])
        trap.armed = True
        store = TrappedStore(store_at(order["location"], patience=5.0), trap)
        with Ledger(store, marks=TrappedMarks(order["state"], trap)) as ledger:
            return ledger.name

    def run(wait: Callable[[], None]) -> list[Attempt]:
        wait()
        return [attempt(make)]

    for ended in among_forks([run] * order["processes"]):
        tell("attempt", **asdict(ended))


@contextmanager
def _busy(order: dict[str, Any]) -> Iterator[Ledger]:
    """A ledger that is being written to all the time, so that a fork falls into the middle of something."""
    enough = threading.Event()

    def spend() -> None:
        while not enough.is_set():
            ledger.reserve(replace(RACES["pure"].ask(0), account="elsewhere", key=uuid.uuid4().hex, epsilon=None))

    with _opened(order) as ledger:
        ledger.open_account("elsewhere", Budget(epsilon=Fraction(1 << 20)))
        threads = [threading.Thread(target=spend) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            yield ledger
        finally:
            enough.set()
            for thread in threads:
                thread.join()


def _opened(order: dict[str, Any]) -> Ledger:
    return Ledger(order["location"], create=False, marks=Marks(order["state"]))
