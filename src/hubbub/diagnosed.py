"""A diagnosis through the gate: numbers of units that limits and bounds cut off, at one price, all of them or none.

db.diagnose("SELECT ward, sum(cost) FROM stays GROUP BY ward", epsilon=0.5)

It goes the way of every question: planned from public facts, charged before anything is read, stored, and free when it
is asked again.
"""

import json
from collections.abc import Callable
from fractions import Fraction

from hubbub.attempt import Log
from hubbub.engines.run import Run
from hubbub.errors import PolicyError
from hubbub.ledger import Ask, Ledger
from hubbub.meter import Meter, Reply, answered
from hubbub.query import stored
from hubbub.query.diagnose import diagnostics
from hubbub.query.diagnosis import Diagnosis, diagnosis_of
from hubbub.query.plan import Plan, together


def plans_of(planned: Plan) -> tuple[Plan, ...]:
    """How the units that a plan cuts off are counted, with the (ε, δ) that the plan would have had."""
    questions = [diagnostic.question for diagnostic in diagnostics(planned)]
    return together(questions, planned.policy, epsilon=planned.epsilon, delta=planned.delta)


def ask_of(planned: Plan, *, price: Fraction, principal: str, key: str | None) -> Ask:
    """What is asked of the ledger for the diagnosis of a plan."""
    return Ask(
        account=planned.policy.account,
        question=f"diagnose {planned.question.identity}",
        events=tuple(event for counted in plans_of(planned) for event in counted.events),
        epsilon=price,
        delta=planned.delta,
        principal=principal,
        policy=planned.policy.fingerprint,
        version=planned.policy.version,
        key=key,
    )


def diagnosed(
    planned: Plan,
    *,
    price: Fraction,
    ledger: Ledger,
    principal: str,
    key: str | None,
    prepare: Callable[[Plan], Run],
    measure: Callable[[Plan, Run, Meter], str],
    log: Log | None,
) -> Diagnosis:
    """Count the units that a plan cuts something off of, with the (ε, δ) that the plan would have had."""
    about, plans = diagnostics(planned), plans_of(planned)
    questions, policy = [one.question for one in about], planned.policy
    runs = [prepare(one) for one in plans]
    ask = ask_of(planned, price=price, principal=principal, key=key)
    named = [stored.groups_name(planned), [number.what for one in about for number in one.numbers]]

    def work(meter: Meter) -> str:
        parts = [measure(one, run, meter) for one, run in zip(plans, runs, strict=True)]
        return json.dumps({"about": named, "parts": parts})

    def present(reply: Reply) -> Diagnosis:
        told = json.loads(reply.answer)
        if told["about"] != named:
            raise PolicyError(
                "This was diagnosed for other groups: a public table has changed since. Let the owner name a new "
                "version of the data."
            )
        parts, shown = told["parts"], plans
        terms = stored.read(parts[0], plans[0])[0]
        if terms != (planned.epsilon, planned.delta):  # numbers at a higher ε: their error bars are their own
            shown = together(questions, policy, epsilon=terms[0], delta=terms[1])
        drawn = [stored.read(part, one)[1][0].noisy for one, part in zip(shown, parts, strict=True)]
        return diagnosis_of(about, shown, drawn, entry=reply.entry, stored=reply.stored)

    return answered(ledger, ask, work, present=present, log=log)
