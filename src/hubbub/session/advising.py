"""Advice on limits and bounds as a job: private looks at how much people have, paid once for the account."""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hubbub.gate.measurement import Measurement
from hubbub.gate.meter import Meter, Reply
from hubbub.ledger.entry import digest_of
from hubbub.parameters import Real, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.query.answer.advice import Advice, advise
from hubbub.query.answer.explain import table_of
from hubbub.query.frame.columns import quote
from hubbub.query.missing.advising import AdvisingLook, choose_columns, choose_table, list_looks
from hubbub.query.missing.looks import Look
from hubbub.query.plan.plan import Plan
from hubbub.query.read.rows import rows_of
from hubbub.query.read.scope import Catalogue
from hubbub.query.requests import Tallies
from hubbub.session.job import Job, SealedReader
from hubbub.session.session import Session

_FORMAT = 1


def advice_job(
    policy: Policy,
    catalogue: Catalogue,
    *,
    epsilon: Real,
    price: Real,
    table: str | None,
    by: Sequence[str] | None,
) -> Job[Advice]:
    """Make the job that looks at a table: all looks at the same share, in one charge."""
    private = choose_table(policy, table)
    keyed, numbers = choose_columns(private, by)
    names = list(dict.fromkeys(column.name for column in (*keyed, *numbers))) or [str(private.unit)]
    relation, columns = rows_of(f"SELECT {', '.join(map(quote, names))} FROM {quote(private.name)}", catalogue)
    named = [(name, expression) for name, (_, expression) in zip(names, columns, strict=True)]
    looks = list_looks(relation, named, policy, keyed, numbers)
    whole = whole_units_rounded_down(positive("epsilon", epsilon))
    each, of_questions = whole_units_rounded_down(whole / len(looks)), positive("price", price)
    neighbors = policy.budget.neighbors
    mechanism = Look.mechanism(each, neighbors)
    requests = tuple(Tallies(aggregate=one.look.aggregate) for one in looks)

    def measure(read: SealedReader, meter: Meter) -> str:
        noisy = []
        for one, request in zip(looks, requests, strict=True):
            bins = Measurement(mechanism=mechanism, sensitivity=Look.sensitivity(neighbors), take=one.look.counts)
            drawn = bins.measure(read(request), meter, account=policy.account, neighbors=neighbors).value
            noisy.append([int(count) for count in drawn])
        return json.dumps({"epsilon": str(each), "noisy": noisy})

    def present(reply: Reply) -> Advice:
        stored = json.loads(reply.answer)
        drawn = Fraction(stored["epsilon"])  # of a higher one, where the same was asked for more before
        noise = drawn / Look.mechanism(drawn, neighbors).sensitivity
        return Advice(
            table=private.name,
            limits=advise(looks, stored["noisy"], noise=noise, price=of_questions),
            price=of_questions,
            epsilon=drawn * len(looks),
            account=policy.account,
            entry=reply.entry,
            drawn=reply.answer,
            stored=reply.stored,
        )

    return Job(
        question=f"advise {json.dumps([_FORMAT, private.name, [_name(one) for one in looks]])}",
        policy=policy,
        events=(mechanism.event,) * len(looks),
        epsilon=whole,
        delta=Fraction(0),
        requests=requests,
        measure=measure,
        present=present,
        stage="looking at how much people have",
    )


def remember_advice(session: Session, found: Advice, *, by: Sequence[str] | None) -> None:
    """Keep in the ledger, for whoever bought it, where advice is to be found: ``explain`` reads it for nothing."""
    policy, name = session.policy, _name_fact(session, found.table)
    known = session.ledger.recall(policy.account, name, version=policy.version)
    if known is None or known.paid != found.entry:
        record = {"by": None if by is None else list(by), "drawn": found.drawn, "epsilon": str(found.epsilon)}
        session.ledger.remember(policy.account, name, record, paid=found.entry, version=policy.version)


def recall_advice(session: Session, catalogue: Catalogue, table: str, *, price: Fraction) -> Advice | None:
    """Return the advice about a table that whoever asks has bought, for questions at a price; None where it has none.

    Privacy:
        Claim: nothing is spent, and nobody is told what somebody else has bought.
        Proof: it is kept under the asker's own name, and the ledger says whether the asker holds the charge.
        Ref: SOUNDNESS 12, 40.
    """
    policy = session.policy
    record = session.ledger.recall(policy.account, _name_fact(session, table), version=policy.version)
    if record is None or not session.ledger.holds(record.paid, session.principal):
        return None
    told = record.value
    by, epsilon = told["by"], Fraction(told["epsilon"])
    job = advice_job(policy, catalogue, epsilon=epsilon, price=price, table=table, by=by)
    return job.present(Reply(entry=record.paid, answer=told["drawn"]))


def compare_limits(session: Session, catalogue: Catalogue, planned: Plan) -> tuple[dict[str, Any], ...]:
    """Say which limit would make the whole error of a question least, where whoever asks has bought advice."""
    table, keys = table_of(planned.question.relation), [group.name for group in planned.question.groups]
    found = recall_advice(session, catalogue, table, price=planned.epsilon)
    return () if found is None else found.compare(keys, planned.policy.limits)


def _name_fact(session: Session, table: str) -> str:
    return f"advice {digest_of([_FORMAT, table, session.policy.fingerprint, session.principal])}"


def _name(one: AdvisingLook) -> list[str | None]:
    return [str(one.advised), one.column]
