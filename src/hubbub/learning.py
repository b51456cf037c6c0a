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
    Needs: ``meter.answered``; estimators that learn from measurements alone.
    Ref: SOUNDNESS 1, 16, 29, 31; Rogers, Roth, Ullman, Vadhan 2016.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.attempt import Log
from hubbub.engines.run import Run
from hubbub.ledger import Ask, Ledger
from hubbub.meter import Meter, Reply, answered
from hubbub.parameters import Real
from hubbub.policy.tables import Policy
from hubbub.query.frame import Frame
from hubbub.query.ops import Aggregate
from hubbub.query.scope import Catalogue
from hubbub.query.totals import Code, Number, Totals

if TYPE_CHECKING:
    from hubbub.learn.estimator import Private
    from hubbub.learn.lesson import Lesson, Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Classroom:
    """The database's side: what is public of it, the ledger, and what prepares the engine."""

    catalogue: Catalogue
    policy: Policy
    ledger: Ledger
    principal: str
    prepare: Callable[[Aggregate], Run]
    totals: Callable[[Totals], Callable[[], list[Any]]]
    log: Log | None

    def learn(self, wish: "Wish", *, key: str | None) -> "Private":
        """Read, rehearse for free, pay, fit, store, and give what is stored."""
        from hubbub.learn import kept, lesson

        taken = lesson.read(wish, self.policy, self.catalogue)
        taken.rehearse()
        ask = Ask(
            account=self.policy.account,
            question=taken.text,
            events=(taken.event,),
            epsilon=taken.epsilon,
            delta=taken.delta,
            principal=self.principal,
            policy=self.policy.fingerprint,
            version=self.policy.version,
            key=key,
        )

        def present(reply: Reply) -> "Private":
            told: Mapping[str, Any] = json.loads(reply.answer)
            price = {name: float(Fraction(told[name])) for name in ("epsilon", "delta")}
            pupil = taken.estimator.set_params(account=self.policy.account, **price)
            return kept.taught(pupil, {**told["learned"], "entry_": reply.entry, "stored_": reply.stored})

        return answered(self.ledger, ask, self._work(taken), present=present, log=self.log)

    def _work(self, taken: "Lesson") -> Callable[[Meter], str]:
        """What is done once it is paid: only exact totals come out of the engine, and they go under seal."""
        from hubbub.learn import kept

        count = self.prepare(taken.rows)

        def added_up(values: Sequence[Number], codes: Sequence[Code]) -> list[Any]:
            return self.totals(taken.totals(values, codes))()

        def work(meter: Meter) -> str:
            pupil = taken.fitted(meter, self.policy.account, added_up, lambda: int(count().tallies[0][0]))
            price = {"epsilon": str(taken.epsilon), "delta": str(taken.delta)}
            return json.dumps({**price, "learned": kept.learned(pupil)})

        return work


class Learning:
    """What a database inherits: learning where the rows are."""

    def _classroom(self) -> Classroom:
        raise NotImplementedError

    def learn(
        self, frame: Frame, estimator: Any, *, columns: Sequence[str], target: str | None = None,
        epsilon: Real | None = None, delta: Real | None = None, rows: int | None = None, key: str | None = None,
    ) -> Any:  # fmt: skip
        """``frame.learn(estimator, …)``."""
        from hubbub.learn.lesson import Wish

        wish = Wish(
            frame=frame, estimator=estimator, columns=columns, target=target, epsilon=epsilon, delta=delta, rows=rows
        )
        return self._classroom().learn(wish, key=key)
