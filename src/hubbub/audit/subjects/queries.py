"""SQL questions as subjects of an audit: asked through the whole product, about tables made up from the policy.

A pair is replayed through the public API with the same noise on both sides, and everything that a question shows or
does is compared: outcome, plan, price, draws, exact numbers against the sensitivities that were proven, what was in the
ledger when the data was read and what is in it afterwards. Then answers are drawn to be counted.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.examine import Progress, Settings, examine
from hubbub.audit.outputs import Outputs, Raised
from hubbub.audit.report import Report
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects import draws as drawn
from hubbub.audit.subjects.in_process.apart import apart
from hubbub.audit.subjects.in_process.inside import FIXED, Seen, World, ask, counted_by, faults
from hubbub.audit.subjects.made_up_tables import OfTables, print_pair
from hubbub.audit.subjects.projections import Looked
from hubbub.errors import EngineError, HubbubError, NotAllowed
from hubbub.ledger import Ask
from hubbub.parameters import Real, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.events.event import ComposedEvent, DiscreteGaussianEvent, Event, RepeatedEvent
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT, FamilyFilter, Spent
from hubbub.query.ops import ExactCounts
from hubbub.query.plan.plan import Plan
from hubbub.session.database import Database
from hubbub.testing.made_up import Data, Schema, with_declared_keys

_KEYS = (FIXED, *((place * 0x9E3779B97F4A7C15 + 0x1234567) % (1 << 64) for place in range(1, 6)))
"""Secrets that choose the groups of units: the same on both sides, since the claim holds for each of them. Under the
first of them questions are asked, so that what was counted then need not be counted again."""
_EACH = 300
"""Answers under one secret before another one is taken: a pilot, which only ranks pairs, looks under two of them."""
_LITERAL = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])(-?\d+(?:\.\d+)?)(?![\w.])")
_MOST_UNITS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One question asked about one database, with what was seen on the way."""

    db: Database
    seen: Seen
    held: tuple[ExactCounts, ...]
    reads: tuple[Spent, ...]


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both sides of a pair, which do not keep each other, and how their answers are looked at under each secret."""

    x: ReferenceType[Data]
    y: ReferenceType[Data]
    looked: dict[int, Looked | None] = field(default_factory=dict)


class OfQuery(OfTables):
    """A question under a policy, at a price."""

    def __init__(self, policy: Policy, text: str, *, epsilon: Real | None = None, delta: Real | None = None) -> None:
        self.name = " ".join(text.split())
        self._text = text
        self._epsilon = None if epsilon is None else positive("epsilon", epsilon)
        self._delta = None if delta is None else Fraction(delta)
        held = with_declared_keys(policy)
        self._schema = Schema(policy=held, hints=literals(text))
        self._world = World(held)
        self._world.put(self._schema.public)
        self._world.put({table.name: () for table in self._schema.private})
        self._plan = self._make_plan(self._world.opened())
        chosen = [one.selection for one in self._plan.sets or (self._plan,) if one.selection is not None]
        if chosen:
            needed = max(int(one.mechanism.half_point()) + 1 for one in chosen)
            self._schema = replace(self._schema, crowd=min(_MOST_UNITS, max(6, needed)))
        self._known: WeakKeyDictionary[Data, list[tuple[ExactCounts, ...]]] = WeakKeyDictionary()
        self._sides: WeakKeyDictionary[Data, _Sides] = WeakKeyDictionary()
        self._keyed = True
        self._turns = 0
        self._walls: list[str] | None = None

    def _make_plan(self, db: Database) -> Plan:
        explained = db.explain(self._text, epsilon=self._epsilon, delta=self._delta)
        if explained.unknown:
            raise NotAllowed(
                "The question buys facts that it lacks, and is then another one for each of them. Declare "
                f"{', '.join(one.text for one in explained.unknown)} in the policy to audit it."
            )
        return explained.plan

    @property
    def claim(self) -> Claim:
        return Claim.of(_compose(self._plan.events))

    def _register(self, pair: Pair) -> Pair:
        """Both sides know each other: their answers are looked at in one and the same way."""
        self._sides[pair.x] = self._sides[pair.y] = _Sides(ref(pair.x), ref(pair.y))
        return pair

    def faults(self, pair: Pair) -> list[str]:
        one, other = (self._run_trial(data) for data in (pair.x, pair.y))
        found = [*_check_answered(one), *_compare(one, other, same=False)]
        found = found or [*_paid(one), *_paid(other), *self._ask_again(one)]
        found = found or [*_check_stated(one), *_check_stated(other), *self._vary(pair.x, one)]
        if not found and self._walls is None:  # whatever the data is: looked at once
            self._walls = [*self._check_refusal(), *self._broken()]
        if not found:
            self._note(pair.x, one)
            self._note(pair.y, other)
        return list(dict.fromkeys(found or self._walls or []))

    def answers(self, value: Any, *, times: int) -> Outputs:
        try:
            exact = self._exact(value, keys=min(len(_KEYS), max(1, times // _EACH)))
        except HubbubError as error:
            return [Raised(type(error).__name__, str(error))] * times
        self._turns += 1
        turns = Chance(f"{self.name}/{self._turns}").many_below(len(exact), times)
        found: list[Any] = [None] * times
        for place, held in enumerate(exact):
            where = np.flatnonzero(turns == place).tolist()
            raw = drawn.answers(self._plan, held, times=len(where))
            looked = self._look(value, place)
            for at, answer in zip(where, raw if looked is None else looked.of(raw), strict=True):
                found[at] = answer
        return drawn.plain(found)

    def _look(self, value: Data, key: int) -> Looked | None:
        """Return how answers under one of the secrets are looked at, on both sides."""
        sides = self._sides[value]
        if key not in sides.looked:
            sides.looked[key] = self._looking(sides.x(), sides.y(), key)
        return sides.looked[key]

    def _looking(self, x: Data | None, y: Data | None, key: int) -> Looked | None:
        if x is None or y is None:
            return None
        try:
            one, other = (self._exact(side, keys=key + 1) for side in (x, y))
        except HubbubError:
            return None
        return Looked.at(self._plan, one[key % len(one)], other[key % len(other)])

    def show_pair(self, pair: Pair) -> str:
        return print_pair(pair, policy=self._schema.policy, public=self._schema.public, plan=self._plan)

    # Asking

    def _run_trial(self, data: Data, *, shuffled: bool = False, orphans: bool = False, threads: int = 1) -> _Trial:
        tables = data.tables()
        if orphans:
            tables = {name: [*rows, *self._schema.orphans()[name]] for name, rows in tables.items()}
        if shuffled:
            chance = Chance("shuffled")
            tables = {name: chance.shuffle(rows) for name, rows in tables.items()}
        self._world.put(tables, threads=threads)
        db = self._world.opened()
        seen = self._ask(db)
        engine = self._world.engine
        return _Trial(db=db, seen=seen, held=tuple(engine.counted), reads=tuple(engine.reads))

    def _ask(self, db: Database, *, seed: int = 0) -> Seen:
        engine = self._world.engine
        engine.reads.clear()
        engine.counted.clear()
        engine.watch = lambda: db.ledger.statement(db.policy.account).spent
        return ask(db, self._text, epsilon=self._epsilon, delta=self._delta, seed=seed)

    def _note(self, data: Data, trial: _Trial) -> None:
        """Keep what was counted for an answer to this very plan: it is what would be counted again."""
        asked, own = (one.sets or (one,) for one in (trial.seen.plan or self._plan, self._plan))
        if not self._known.get(data) and [one.aggregate for one in asked] == [one.aggregate for one in own]:
            self._known[data] = [trial.held[-len(own) :]]
            self._keyed = trial.seen.keyed

    def _exact(self, data: Data, *, keys: int) -> list[tuple[ExactCounts, ...]]:
        """The exact numbers under each of so many secrets; under one, where nothing depends on a secret."""
        known = self._known.setdefault(data, [])
        if len(known) < keys and (not known or self._keyed):
            self._world.put(data.tables())
            found, self._keyed = counted_by(self._world.opened(), self._plan, keys=_KEYS[len(known) : keys])
            known += found
        return known[:keys]

    # What is looked at

    def _ask_again(self, trial: _Trial) -> list[str]:
        again = self._ask(trial.db, seed=1)
        found = []
        if again.outcome != "answered" or again.noisy != trial.seen.noisy:
            found.append("asked again, it gave another answer")
        if again.charged:
            found.append(f"asked again, it cost {float(again.charged * LOSS_UNIT):.6g}")
        if again.draws or self._world.engine.reads:
            found.append("asked again, it read the data, or drew noise")
        return found

    def _vary(self, data: Data, trial: _Trial) -> list[str]:
        """Rows in another order, rows of nobody, other threads: none of it may be seen."""
        ways: list[tuple[str, dict[str, Any]]] = [
            ("rows in another order", {"shuffled": True}),
            ("rows that belong to nobody", {"orphans": True}),
            ("two threads", {"threads": 2}),
        ]
        together = {name: value for _, way in ways for name, value in way.items()}
        if not _compare(trial, self._run_trial(data, **together), same=True):
            return []
        found = [
            f"with {words} besides: {fault}"
            for words, way in ways
            for fault in _compare(trial, self._run_trial(data, **way), same=True)
        ]
        return found or ["rows in another order, rows of nobody and two threads, together, can be seen"]

    def _check_refusal(self) -> list[str]:
        """An account with less left than it costs: nothing is read, drawn or paid.

        Where an account keeps several sums, a question that one of them does not pay for any more may be asked in
        another way: so all of them are spent.
        """
        db = self._world.opened()
        cost, terms = self._plan.cost, db.policy.budget.filter
        times = terms.remaining(Spent()).count(cost) or 1
        self._spend(db, RepeatedEvent(event=_compose(self._plan.events), count=times))
        left = terms.remaining(db.ledger.statement(db.policy.account).spent).loss * LOSS_UNIT
        if isinstance(terms, FamilyFilter) and left:
            noise = DiscreteGaussianEvent(
                sigma=Fraction(1), sensitivity_squared=2 * left, dimension=None, neighbors=terms.neighbors
            )
            self._spend(db, noise)
        if terms.fits(db.ledger.statement(db.policy.account).spent, cost):
            return []
        seen = self._ask(db)
        if not seen.outcome.startswith("BudgetExceeded"):
            return [f"asked of an account with too little left, it was not refused: {seen.outcome}"]
        if self._world.engine.reads or seen.draws or seen.charged:
            return ["it was refused, and read the data, drew noise or charged before that"]
        return []

    def _spend(self, db: Database, event: Event) -> None:
        with suppress(HubbubError):  # what is rounded up once may not fit where its parts would
            asked = Ask(account=db.policy.account, question=event.tag, events=(event,), epsilon=None)
            db.ledger.reserve(asked)

    def _broken(self) -> list[str]:
        """An engine that fails: one fixed sentence, and the charge stands."""
        db = self._world.opened()
        self._world.engine.broken = True
        seen = self._ask(db)
        self._world.engine.broken = False
        found = []
        if seen.outcome != f"{EngineError.__name__}: {EngineError()}":
            found.append(f"the engine failed, and it said: {seen.outcome}")
        if seen.charged != self._plan.cost.loss:
            found.append("the engine failed, and it was not charged")
        return found


def audit_of(
    data: Database | Policy,
    text: str,
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Audit a question under a policy; of a database, its policy alone is looked at."""
    policy = data.policy if isinstance(data, Database) else data
    return examine(OfQuery(policy, text, epsilon=epsilon, delta=delta), settings=settings, seed=seed, progress=progress)


def literals(text: str) -> tuple[Any, ...]:
    """Texts, numbers and dates that a question names."""
    found: list[Any] = []
    for quoted, number in _LITERAL.findall(text):
        if number:
            found.append(float(number) if "." in number else int(number))
            continue
        found.append(quoted.replace("''", "'"))
        with suppress(ValueError):
            found.append(date.fromisoformat(quoted[:10]))
    return tuple(dict.fromkeys(found))


def _compose(events: tuple[Event, ...]) -> Event:
    return events[0] if len(events) == 1 else ComposedEvent(events=events)


def _check_answered(trial: _Trial) -> list[str]:
    """Whatever the data, a question that was planned is answered."""
    return [] if trial.seen.plan is not None else [f"it was not answered: {trial.seen.outcome}"]


def _check_stated(trial: _Trial) -> list[str]:
    """Check that the release is what the plan's mechanisms give for these exact numbers and this noise, and no more."""
    plan = trial.seen.plan
    assert plan is not None
    held = trial.held[-len(plan.sets or (plan,)) :]
    told = "given the same exact numbers and the same noise, its mechanisms give something else than it released"
    return [] if drawn.as_stated(plan, held) else [told]


def _compare(one: _Trial, other: _Trial, *, same: bool) -> list[str]:
    """List what differs and may not, and exact numbers that differ by more than was proven."""
    left, right = one.seen, other.seen
    plan = left.plan
    if plan is None or right.plan is None or not (plan.sets or plan.selection):
        bins = [trial.held[-1].histograms if trial.held else () for trial in (one, other)]
        found = faults(replace(left, bins=bins[0]), replace(right, bins=bins[1]), same=same)
    else:
        whats = ("outcome", "public", "charged") + (("draws", "noisy") if same else ())
        found = [f"{what} differ" for what in whats if getattr(left, what) != getattr(right, what)]
    if found or plan is None:
        return found
    parts = plan.sets or (plan,)
    pairs = zip(parts, one.held[-len(parts) :], other.held[-len(parts) :], strict=True)
    return [fault for own, a, b in pairs for fault in apart(own, a, b, same=same)]


def _paid(trial: _Trial) -> list[str]:
    """The charge is there before the data is read, it is what was stated, and what was drawn costs no more."""
    plan, found = trial.seen.plan, []
    assert plan is not None
    ledger, account = trial.db.ledger, trial.db.policy.account
    cost, spent = plan.cost, ledger.statement(account).spent
    price = cost.loss, cost.failure, cost.pure
    if not trial.reads or any((one.loss, one.failure, one.pure) != price for one in trial.reads):
        found.append("the data was read before the whole price was in the ledger")
    if (spent.loss, spent.failure, spent.pure) != price:
        found.append(f"the account was charged {spent.loss} units, and {cost.loss} was the price")
    pure = trial.db.policy.budget.delta == 0
    loss = drawn.total(plan, of="epsilon" if pure else "rho")
    failure = drawn.total(plan, of="failure")
    if loss is None or failure is None or cost.loss * LOSS_UNIT < loss or cost.failure * DELTA_UNIT < failure:
        found.append(f"its mechanisms cost {loss} beside {failure}, and it was charged {cost.loss * LOSS_UNIT}")
    if pure and (loss is None or loss > plan.epsilon):
        found.append(f"it was asked at ε = {plan.epsilon}, and its mechanisms cost {loss}")
    assert trial.seen.entry is not None
    stored = [one for one in ledger.entries(first=trial.seen.entry) if one.kind == "answer"]
    if not any(one.content["charge"] == trial.seen.entry for one in stored):
        found.append("the answer was given before it was stored")
    return found
