"""Facts that questions lack, through the gate: what the asker holds, what others have bought, and what is bought now.

Each look has a charge and a stored answer of its own, before the question's own charge. Everything that can be refused
is refused before the first of them: the plan that any facts would give is made, and the price of all of it is held
against every cap that the asker counts against.

Privacy:
    Claim: for nothing, an asker learns of facts only those that it has been given, or that are public; and no question
        is refused for its price that would not be if nobody else had bought anything.
    Proof: free paths know what ``held`` returns, which goes by the ledger's holdings. A fact that the asker does not
        hold takes the share of the price that it would cost to buy, whether it is then bought or served. Another's fact
        is served where the limits can pay for that and for the rest; otherwise the asker buys its own with that share,
        which fits wherever the price of the question does.
    Needs: ``ledger.serving``; names that tell facts apart (query.missing.bought).
    Ref: SOUNDNESS 12, 23, 40.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hubbub.errors import BudgetExceeded, HubbubError, LedgerCorrupt
from hubbub.gate.measurement import Measurement
from hubbub.gate.meter import Meter, Reply
from hubbub.gate.receipts import FACT
from hubbub.ledger import Ask, Fact, Ledger
from hubbub.ledger.entry import digest_of
from hubbub.policy.tables import Policy
from hubbub.query.missing.bought import WantedFact
from hubbub.query.missing.looks import Look, any_facts, shares
from hubbub.query.requests import Tallies
from hubbub.session.job import Job, Known, SealedReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Buyer:
    """Whoever asks, and the ledger that pays."""

    policy: Policy
    ledger: Ledger
    principal: str
    ready: Callable[[Job[Reply], Ask], Callable[[], Reply]]
    """The door: prepares a job, and returns what takes it from the charge to what it presents."""

    def held(self, wanted: Sequence[WantedFact]) -> Known:
        """Return what this asker knows already, about the same rows and expressions under the same policy."""
        found: Known = {}
        for fact in wanted:
            record = self._recall(self._own(fact)) or self._recall(fact.name(self.policy))
            if record is not None and self.ledger.holds(record.paid, self.principal):
                found[fact] = record.value["value"]
        return found

    def obtain(self, wanted: Sequence[WantedFact], *, price: Fraction, then: Callable[[Known], Ask]) -> Known:
        """Come by facts that the asker does not hold: those of others where its limits can pay, else its own.

        ``then`` says what is asked once they are known. All of it is held against every cap before the first charge.
        """
        each, rest = shares(wanted, price)
        unknown = replace(then(any_facts(each)), epsilon=None)  # an answer to it cannot be found yet
        others = {fact: record for fact in wanted if (record := self._recall(fact.name(self.policy))) is not None}
        try:
            follows = self._follow(others, then) if len(others) == len(wanted) else None
            bought = self._check(wanted, others, price=price, then=follows or unknown)
        except BudgetExceeded:
            if not others:
                raise
            others = {}
            bought = self._check(wanted, others, price=price, then=unknown)
        ready = [(look, self.ready(look_job(look, self.policy, ask, rest=rest), ask)) for look, ask in bought.items()]
        found: Known = {}
        for name, epsilon in _looks_of(others.values()):
            found |= self._serve(name, epsilon, others)
        for look, answer in ready:
            found |= self._keep(look, answer())
        return found

    def _follow(self, others: Mapping[WantedFact, Fact], then: Callable[[Known], Ask]) -> Ask | None:
        """The question with facts of others, which may be answered already; its errors are not told before they are."""
        try:
            return then({fact: record.value["value"] for fact, record in others.items()})
        except HubbubError:
            return None

    def _check(
        self, wanted: Sequence[WantedFact], others: Mapping[WantedFact, Fact], *, price: Fraction, then: Ask
    ) -> dict[Look, Ask]:
        """Requests for the looks that are not served; BudgetExceeded where all of it would not fit."""
        served = [self._ask(name, epsilon) for name, epsilon in _looks_of(others.values())]
        each, _ = shares([fact for fact in wanted if fact not in others], price)
        bought = {look: self._ask(look.name(self.policy), epsilon) for look, epsilon in each.items()}
        after = then.events
        for look in reversed(list(bought)):
            bought[look] = replace(bought[look], beside=after)
            after += bought[look].events
        self.ledger.check([*served, *bought.values(), then])
        return bought

    def _serve(self, name: str, epsilon: Fraction, others: Mapping[WantedFact, Fact]) -> Known:
        """Be given the answer of a look that somebody else has paid for: charged, once, to the asker's own limits."""
        ticket = self.ledger.reserve(self._ask(name, epsilon))
        if ticket.answer is None:
            raise LedgerCorrupt("A fact is remembered, and the answer that it is from is not. Restore the backup.")
        values = json.loads(ticket.answer)["values"]
        found: Known = {}
        for fact, record in others.items():
            if (record.value["look"], Fraction(record.value["epsilon"])) == (name, epsilon):
                found[fact] = values[record.value["place"]]
                self._remember(fact, record.value | {"value": found[fact]}, paid=ticket.entry)
        return found

    def _keep(self, look: Look, reply: Reply) -> Known:
        """Remember each fact that a look gives under its name."""
        stored: Mapping[str, Any] = json.loads(reply.answer)
        found: Known = {}
        for place, (fact, value) in enumerate(zip(look.facts, stored["values"], strict=True)):
            record = {"about": fact.text, "epsilon": stored["epsilon"], "place": place, "value": value}
            self._remember(fact, record | {"look": look.name(self.policy)}, paid=reply.entry)
            found[fact] = value
        return found

    def _remember(self, fact: WantedFact, record: Mapping[str, Any], *, paid: int) -> None:
        """Keep a fact for everyone to be served, where nobody has one yet; else for this asker alone."""
        name = fact.name(self.policy)
        known = self._recall(name)
        if known is None or known.paid != paid:
            own = name if known is None else self._own(fact)
            self.ledger.remember(self.policy.account, own, dict(record), paid=paid, version=self.policy.version)

    def _own(self, fact: WantedFact) -> str:
        return f"{fact.name(self.policy)} of {digest_of(self.principal)}"

    def _recall(self, name: str) -> Fact | None:
        return self.ledger.recall(self.policy.account, name, version=self.policy.version)

    def _ask(self, look: str, epsilon: Fraction) -> Ask:
        return Ask(
            account=self.policy.account,
            question=f"{FACT}{look}",
            events=(Look.mechanism(epsilon, self.policy.budget.neighbors).event,),
            epsilon=epsilon,
            principal=self.principal,
            policy=self.policy.fingerprint,
            version=self.policy.version,
        )


def _looks_of(records: Iterable[Fact]) -> list[tuple[str, Fraction]]:
    """The looks that facts are from, each with its ε: several facts may be of one."""
    return sorted({(record.value["look"], Fraction(record.value["epsilon"])) for record in records})


def look_job(look: Look, policy: Policy, ask: Ask, *, rest: Fraction) -> Job[Reply]:
    """Make the job that measures a look: all bins at once, empty ones too. ``rest`` is what the question has left."""
    epsilon, neighbors = ask.epsilon, policy.budget.neighbors
    assert epsilon is not None
    request = Tallies(aggregate=look.aggregate)
    bins = Measurement(
        mechanism=look.mechanism(epsilon, neighbors), sensitivity=look.sensitivity(neighbors), take=look.counts
    )

    def measure(read: SealedReader, meter: Meter) -> str:
        release = bins.measure(read(request), meter, account=policy.account, neighbors=neighbors)
        noisy = [int(count) for count in release.value]
        values = look.read(noisy, epsilon=epsilon, rest=rest, neighbors=neighbors)
        return json.dumps({"epsilon": str(epsilon), "noisy": noisy, "values": [values[fact] for fact in look.facts]})

    return Job(
        question=ask.question,
        policy=policy,
        events=ask.events,
        epsilon=epsilon,
        delta=Fraction(0),
        requests=(request,),
        measure=measure,
        present=lambda reply: reply,
        stage=f"buying {look.text}",
    )
