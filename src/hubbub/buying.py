"""Facts that questions lack, through the gate: recalled where they were bought before, else paid, measured and kept.

Each look has a charge and a stored answer of its own, before the question's own charge. Everything that can be refused
is refused before the first of them: the plan that any facts would give is made, and the price of all of it is held
against what is left.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hubbub.attempt import Log
from hubbub.engines.run import Run
from hubbub.errors import LedgerCorrupt
from hubbub.ledger import OWNER, Ask, Ledger
from hubbub.meter import Meter, answered
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import Charge
from hubbub.query.bought import Wanted
from hubbub.query.looks import Look
from hubbub.query.ops import Aggregate
from hubbub.query.plan import Plan
from hubbub.secret import Facts, Secret

Known = dict[Wanted, Any]


def recalled(wanted: Sequence[Wanted], policy: Policy, ledger: Ledger) -> Known:
    """What was bought before, about the same rows and expressions under the same policy and version."""
    found = {one: ledger.recall(policy.account, one.name(policy), version=policy.version) for one in wanted}
    return {one: fact.value["value"] for one, fact in found.items() if fact is not None}


def serve_again(known: Known, policy: Policy, *, ledger: Ledger, principal: str) -> None:
    """What somebody else has bought is charged, once, to the principal's own limit; the owner has none.

    The ledger finds the stored answer of the look's own charge, as it does for any question that is asked again.
    """
    if principal == OWNER:
        return
    facts = [ledger.recall(policy.account, one.name(policy), version=policy.version) for one in known]
    for look, epsilon in sorted({(one.value["look"], one.value["epsilon"]) for one in facts if one is not None}):
        ticket = ledger.reserve(_ask(look, policy, Fraction(epsilon), principal))
        if ticket.answer is None:
            raise LedgerCorrupt("A fact is remembered, and the answer that it is from is not. Restore the backup.")


def check_price(planned: Plan, shares: Mapping[Look, Fraction], ledger: Ledger) -> None:
    """BudgetExceeded, before anything is paid, where facts and answer together would not fit into the account."""
    stands, policy = ledger.statement(planned.policy.account), planned.policy
    terms = stands.budget.filter
    parts = [terms.charge_of(one.mechanism(share, policy.budget.neighbors).event) for one, share in shares.items()]
    whole = Charge(
        loss=planned.cost.loss + sum(one.loss for one in parts),
        failure=planned.cost.failure + sum(one.failure for one in parts),
    )
    terms.spend(stands.spent, whole, whose=f"account {policy.account!r}")


def buy(
    shares: Mapping[Look, Fraction],
    policy: Policy,
    *,
    rest: Fraction,
    ledger: Ledger,
    principal: str,
    prepare: Callable[[Aggregate], Run],
    log: Log | None,
) -> Known:
    """Pay for each look, measure it, and remember what it tells, each fact under its name."""
    runs = [(one, prepare(one.aggregate)) for one in shares]
    found: Known = {}
    for one, run in runs:
        look = one.name(policy)
        ask, work = _ask(look, policy, shares[one], principal), _work(one, run, policy, shares[one], rest)
        reply = answered(ledger, ask, work, log=log)
        told: Mapping[str, Any] = json.loads(reply.answer)
        for fact, value in zip(one.facts, told["values"], strict=True):
            kept = {"about": fact.text, "epsilon": told["epsilon"], "look": look, "value": value}
            ledger.remember(policy.account, fact.name(policy), kept, paid=reply.entry, version=policy.version)
            found[fact] = value
    return found


def _ask(look: str, policy: Policy, each: Fraction, principal: str) -> Ask:
    return Ask(
        account=policy.account,
        question=f"fact: {look}",
        events=(Look.mechanism(each, policy.budget.neighbors).event,),
        epsilon=each,
        principal=principal,
        policy=policy.fingerprint,
        version=policy.version,
    )


def _work(look: Look, run: Run, policy: Policy, each: Fraction, rest: Fraction) -> Callable[[Meter], str]:
    """What is measured: all bins at once, empty ones too."""
    neighbors = policy.budget.neighbors
    facts = Facts(account=policy.account, sensitivity=look.sensitivity(neighbors), neighbors=neighbors)

    def work(meter: Meter) -> str:
        drawn = meter.measure(look.mechanism(each, neighbors), Secret(look.counts(run()), facts)).value
        noisy = [int(one) for one in drawn]
        told = look.read(noisy, epsilon=each, rest=rest, neighbors=neighbors)
        return json.dumps({"epsilon": str(each), "noisy": noisy, "values": [told[one] for one in look.facts]})

    return work
