"""The one door: a job goes from its price to its answer here, and nowhere else.

Privacy:
    Claim: whatever is asked of a database, its events are charged durably before anything private is read, nothing
        exact leaves the gate, and what is shown is the one answer that is stored for the charge.
    Proof: engines return sealed results only, and the gate alone opens seals (``gate.secret``); it lets a job measure
        what its events have paid for and no more (``purse.Prepaid``). Requests are prepared before the charge from
        public facts, and run after it; whatever fails then is one error and is counted (``gate.meter.answered``).
        Facts that a draft lacks are jobs of their own (``session.facts``).
    Needs: ``gate.meter``; jobs whose identity, events and requests are functions of public facts.
    Ref: SOUNDNESS 17, 18, 35, 40.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from hubbub.engines.base import Engine, Run
from hubbub.engines.public import before_the_charge
from hubbub.errors import BudgetExceeded
from hubbub.gate.attempt import Log
from hubbub.gate.meter import answered
from hubbub.gate.receipts import Receipts
from hubbub.gate.secret import Sealed
from hubbub.ledger import Ask, Ledger
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import FREE
from hubbub.privacy.ways import Payer
from hubbub.query.missing.bought import WantedFact
from hubbub.query.missing.looks import Look, any_facts, shares, whole_price
from hubbub.query.plan.conditions import is_grouped
from hubbub.query.requests import Request
from hubbub.session.facts import Buyer
from hubbub.session.job import Draft, Foreseen, Job, Known, Purchase
from hubbub.session.stages import tell

T = TypeVar("T")
P = TypeVar("P")


class Session:
    """A principal, the policy under which it asks, the ledger that pays and the engine that reads."""

    def __init__(self, policy: Policy, *, ledger: Ledger, engine: Engine, principal: str, log: Log | None) -> None:
        self.policy, self.ledger, self.principal, self.log = policy, ledger, principal, log
        self._engine = engine

    def check_grant(self) -> None:
        """Raise GrantError where whoever asks has no grant, or no longer one."""
        self.ledger.check_grant(self.policy.account, self.principal)

    def drop_stale_facts(self) -> None:
        """Plan without what was seen of files that were written to since. (The engine relies on none of it anyway.)"""
        self.policy = self.policy.without_stale_facts()

    def run(self, asked: Job[T] | Draft[Any, T], *, key: str | None = None) -> T:
        """Answer a job: buy what it lacks, pay, read, measure, store, and present what is stored.

        What was answered before is served from the ledger, and nothing is read.
        """
        self.check_grant()
        receipts = Receipts()
        try:
            job = self._complete(asked, key=key, receipts=receipts) if isinstance(asked, Draft) else asked
            while True:
                try:
                    return self._ready(job, self.ask_of(job, key=key), receipts)()
                except BudgetExceeded:
                    # Somebody else has spent since it was planned. Nothing was charged or read for it: it is planned
                    # again.
                    again = self._complete(asked, key=key, receipts=receipts) if isinstance(asked, Draft) else job
                    if again.events == job.events:
                        raise
                    job = again
        except KeyboardInterrupt:
            raise KeyboardInterrupt(str(receipts)) from None

    def foresee(self, draft: Draft[P, Any]) -> Foreseen[P]:
        """Plan a draft for nothing: with the facts that the asker holds, and with any values for the others."""
        known, unknown = self.facts(draft.wanted)
        each, rest = shares(unknown, draft.price)
        purchase = Purchase(rest=rest, payer=self.payer(buying=each))
        return Foreseen(plan=draft.plan(known | any_facts(each), purchase), known=known, unknown=each)

    def plan(self, draft: Draft[P, Any]) -> P:
        """Plan a draft with the facts that the asker holds, and with none for the others."""
        known, _ = self.facts(draft.wanted)
        return draft.plan(known, Purchase(rest=draft.price, payer=self.payer()))

    def ask_of(self, job: Job[Any], *, key: str | None = None) -> Ask:
        """Return what is asked of the ledger for a job."""
        return Ask(
            account=self.policy.account,
            question=job.question,
            events=job.events,
            epsilon=job.epsilon,
            delta=job.delta,
            principal=self.principal,
            policy=job.policy.fingerprint,
            version=self.policy.version,
            key=key,
            ways=job.ways,
            bought=job.bought,
        )

    def payer(self, *, buying: Mapping[Look, Fraction] | None = None) -> Payer:
        """Return who pays for what the asker asks now, once these looks are bought."""
        found = self.ledger.payer(self.policy.account, self.principal)
        return found.after(whole_price(FREE, buying or {}, self.policy))

    def _complete(self, draft: Draft[Any, T], *, key: str | None, receipts: Receipts) -> Job[T]:
        """Buy the facts that a draft lacks; everything that can be refused is refused before the first charge."""
        known, unknown = self.facts(draft.wanted)
        each, rest = shares(unknown, draft.price)

        def job_with(facts: Known, buying: Mapping[Look, Fraction]) -> Job[T]:
            ordered = {fact: facts[fact] for fact in draft.wanted if fact in facts}
            purchase = Purchase(rest=rest, payer=self.payer(buying=buying))
            job = draft.job(draft.plan(ordered, purchase))
            ask = self.ask_of(job, key=key)
            waiting, grouped = self.ledger.waiting(ask), None
            if waiting is None and job.renamed is not None and not self.ledger.is_served(ask):
                # What is left has changed, and the plan with it: it may have been asked in the other way.
                other = replace(ask, question=job.renamed)
                waiting = self.ledger.waiting(other)
                grouped = is_grouped(job.renamed) if waiting is not None or self.ledger.is_served(other) else None
            if waiting is None:
                again = replace(purchase, grouped=grouped)
                return job if grouped is None else draft.job(draft.plan(ordered, again))
            if (waiting.ways, waiting.bought) == (job.ways, job.bought):
                return job
            as_paid = replace(purchase, rest=draft.price - waiting.bought, ways=waiting.ways, grouped=grouped)
            return draft.job(draft.plan(ordered, as_paid))

        if unknown:
            bought = self._buyer(receipts).obtain(
                unknown, price=draft.price, then=lambda facts: self.ask_of(job_with(known | facts, each), key=key)
            )
            known |= bought
        return job_with(known, {})

    def facts(self, wanted: Sequence[WantedFact]) -> tuple[Known, tuple[WantedFact, ...]]:
        """Return the facts that the asker holds, and those that it does not."""
        known = self._buyer().held(wanted)
        return known, tuple(fact for fact in wanted if fact not in known)

    def _buyer(self, receipts: Receipts | None = None) -> Buyer:
        charged = Receipts() if receipts is None else receipts
        return Buyer(
            policy=self.policy,
            ledger=self.ledger,
            principal=self.principal,
            ready=lambda job, ask: self._ready(job, ask, charged),
        )

    def _ready(self, job: Job[T], ask: Ask, receipts: Receipts) -> Callable[[], T]:
        """Prepare a job that lacks nothing, and return what takes it from its charge to what it presents."""
        runs = [(request, self._prepare(request)) for request in job.requests]

        def read(request: Request) -> Sealed[Any]:
            for prepared, run in runs:
                if prepared is request:
                    return run()
            return self._engine.prepare(request, tables=self.policy.tables)()

        def answer() -> T:
            tell(job.stage)
            try:
                return answered(
                    self.ledger,
                    ask,
                    lambda meter: job.measure(read, meter),
                    present=job.present,
                    meanwhile=runs[0][1].begin if runs and self.ledger.would_charge(ask) else None,
                    log=self.log,
                    receipts=receipts,
                )
            finally:
                for _, run in runs:
                    run.end()

        return answer

    def _prepare(self, request: Request) -> Run[Any]:
        with before_the_charge("A table of the question could not be opened. Ask the owner."):
            return self._engine.prepare(request, tables=self.policy.tables)
