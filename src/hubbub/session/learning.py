"""Learning from a session: an estimator is fitted where the rows are, and only noisy sums of them ever leave.

db.table("stays").learn(KMeans(5), columns=["age", "cost"], epsilon=1)

It goes the way of every question: read and rehearsed from public facts, charged before anything is read, stored, and
free when it is asked again. What an estimator needs of rows (numbers in cells, sums, products, sums about centres) is
added up by the engine in exact integers, a unit counting for at most so many rows; the table is never loaded.

Privacy:
    Claim: a fit costs at most (ε, δ), whatever one unit has in the tables, and what is stored is all that it learned.
    Proof: one charge for the whole price comes first: ε, or the ρ that (ε, δ) buys, as that of one Gaussian. The fit
        then measures through a gate that lets through what was paid for (``purse.Prepaid``) and nothing beyond; each
        of its measurements is proven where it is made (``learn.tuition``, ``query.totals``). A fit that ends before its
        answer is stored has shown nothing: who asks again draws again, for the same charge.
    Needs: ``session.session``; estimators that learn from measurements alone.
    Ref: SOUNDNESS 1, 16, 29, 31; Rogers, Roth, Ullman, Vadhan 2016.
"""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.gate.meter import Meter, Reply
from hubbub.policy.tables import Policy
from hubbub.session.job import Job, SealedReader

if TYPE_CHECKING:
    from hubbub.learn.estimator import Private
    from hubbub.learn.lesson import Lesson


def fit_job(lesson: "Lesson", *, policy: Policy) -> "Job[Private]":
    """Make the job that fits an estimator where the rows are; its totals are read as the fit asks for them."""
    from hubbub.learn import estimator

    def measure(read: SealedReader, meter: Meter) -> str:
        pupil = lesson.fit(meter, policy.account, read)
        price = {"epsilon": str(lesson.epsilon), "delta": str(lesson.delta)}
        return json.dumps({**price, "learned": estimator.learned_attributes(pupil)})

    def present(reply: Reply) -> "Private":
        stored: Mapping[str, Any] = json.loads(reply.answer)
        price = {name: float(Fraction(stored[name])) for name in ("epsilon", "delta")}
        pupil = lesson.estimator.set_params(account=policy.account, **price)
        learned = estimator.taught(pupil, {**stored["learned"], "entry_": reply.entry, "stored_": reply.stored})
        learned.warn_of_claim()
        return learned

    return Job(
        question=lesson.text,
        policy=policy,
        events=(lesson.event,),
        epsilon=lesson.epsilon,
        delta=lesson.delta,
        requests=(lesson.rows,),
        measure=measure,
        present=present,
    )
