"""Where everything meets: data, policy, ledger and engine behind one object that answers questions.

import hubbub as hb

db = hb.open("stays.parquet", unit="patient_id", budget=hb.Budget(epsilon=4), bounds={"cost": (0, 50_000)}, …)
db.explain("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=0.5)
db.sql("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=0.5)
"""

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from hubbub.attempt import Log
from hubbub.buying import Buyer, Known
from hubbub.diagnosed import ask_of, diagnosed
from hubbub.engines.blocks import Rows
from hubbub.engines.duckdb import DuckDB
from hubbub.engines.public import PublicFacts, before_the_charge
from hubbub.engines.run import Run
from hubbub.errors import NotAllowed, ParameterError
from hubbub.learning import Classroom, Learning
from hubbub.ledger import OWNER, Ask, Ledger
from hubbub.meter import Meter, Reply, answered
from hubbub.parameters import Real, positive
from hubbub.policy.qualified_names import qualify
from hubbub.policy.tables import Policy, Value
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.publishing import Desk, Publishing
from hubbub.query import stored
from hubbub.query.answer import Answer, answer_of
from hubbub.query.bought import Wanted, informed
from hubbub.query.combine import CONFIDENCE
from hubbub.query.diagnose import diagnostics
from hubbub.query.diagnosis import Diagnosis
from hubbub.query.explain import Explanation
from hubbub.query.expression import Column, Expression
from hubbub.query.frame import Asking, Frame
from hubbub.query.keys import MOST_VALUES
from hubbub.query.lacking import lacking
from hubbub.query.looks import any_facts, shares
from hubbub.query.ops import Aggregate, Cell, Counted, Relation, Scan, ScanColumn
from hubbub.query.options import agreed, limited, taken_out
from hubbub.query.plan import Plan, plan, together
from hubbub.query.question import Question
from hubbub.query.scope import Fanout
from hubbub.query.selection import first_keys, restricted
from hubbub.query.sql import question
from hubbub.query.terms import quoted
from hubbub.query.totals import Totals
from hubbub.query.within import least_epsilon
from hubbub.secret import Facts, Secret

_INT64 = 1 << 62

P = ParamSpec("P")
T = TypeVar("T")


def granted(method: Callable[Concatenate["Database", P], T]) -> Callable[Concatenate["Database", P], T]:
    """Let a method begin only for the owner, and for principals whose grant is good at that moment (SOUNDNESS 40)."""

    @wraps(method)
    def checked(self: "Database", /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.check_grant()
        return method(self, *args, **kwargs)

    return checked


class Database(Learning, Publishing):
    """Private data that can be asked. Close it, or use it in a ``with`` block.

    A principal other than the owner needs a grant for everything here, free methods included: without one it learns
    nothing, not even what tables there are.
    """

    def __init__(
        self, policy: Policy, *, ledger: Ledger, engine: DuckDB, principal: str = OWNER, log: Log | None = None
    ) -> None:
        self.policy, self.ledger, self.principal = policy, ledger, principal
        self.log = log
        """Receives the true cause of failures after a charge: for the owner alone."""
        self._engine = engine
        self._public = PublicFacts()
        self.check_grant()
        ledger.open_account(policy.account, policy.budget)

    def check_grant(self) -> None:
        """Raise GrantError where whoever asks has no grant, or no longer one."""
        self.ledger.check_grant(self.policy.account, self.principal)

    @granted
    def sql(
        self,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
        key: str | None = None,
    ) -> Answer:
        """The answer, with error bars. Paid before anything is read; free where it was answered before.

        ``epsilon`` is the price; or say ``within``: how far counts and sums may be off, with this confidence. It may
        also stand in the question: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) …
        """
        planned, price = self._planned(
            text,
            epsilon=epsilon,
            delta=delta,
            within=within,
            confidence=confidence,
            asks=lambda planned, price: self._ask_of(planned, price, key),
        )
        runs = [self.counting(one) for one in planned.sets or (planned,)]
        ask = self._ask_of(planned, price, key)

        def present(reply: Reply) -> Answer:
            terms, drawn = stored.read(reply.answer, planned)
            if terms == (planned.epsilon, planned.delta):
                return answer_of(planned, drawn, entry=reply.entry, stored=reply.stored)
            higher = plan(planned.question, planned.policy, epsilon=terms[0], delta=terms[1])  # with its own error bars
            return answer_of(higher, drawn, entry=reply.entry, stored=reply.stored)

        try:
            return answered(
                self.ledger,
                ask,
                lambda meter: self._answered(planned, runs, meter),
                present=present,
                meanwhile=runs[0].begin,
                log=self.log,
            )
        finally:
            runs[0].end()

    @granted
    def ask(
        self,
        questions: Sequence[str | Asking],
        *,
        epsilon: Real,
        delta: Real | None = None,
        key: str | None = None,
    ) -> list[Answer]:
        """Several questions at one price: all of them are answered, or none, and they share the noise that (ε, δ) buys.

        Asked one by one at ε/n each they would be noisier, wherever the account has a δ.
        """
        if not questions:
            raise ParameterError("questions", "at least one", questions)
        self._let_go_of_stale_facts()
        texts = [one.sql if isinstance(one, Asking) else one for one in questions]
        asked = [question(text, self) for text in texts]
        plans = together(asked, self.policy, epsilon=epsilon, delta=delta)
        runs = [self.counting(one) for one in plans]
        ask = Ask(
            account=self.policy.account,
            question="ask " + json.dumps([one.text for one in asked], ensure_ascii=False),
            events=tuple(event for one in plans for event in one.events),
            epsilon=plans[0].epsilon,
            delta=plans[0].delta,
            principal=self.principal,
            policy=self.policy.fingerprint,
            version=self.policy.version,
            key=key,
        )

        def work(meter: Meter) -> str:
            return json.dumps([self._measured(one, run, meter) for one, run in zip(plans, runs, strict=True)])

        def present(reply: Reply) -> list[Answer]:
            parts = json.loads(reply.answer)
            terms, shown = stored.read(parts[0], plans[0])[0], plans
            if terms != (plans[0].epsilon, plans[0].delta):  # answers at a higher ε: their error bars are their own
                shown = together(asked, self.policy, epsilon=terms[0], delta=terms[1])
            return [
                answer_of(one, stored.read(part, one)[1], entry=reply.entry, stored=reply.stored)
                for one, part in zip(shown, parts, strict=True)
            ]

        return answered(self.ledger, ask, work, present=present, log=self.log)

    @granted
    def explain(
        self,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
    ) -> Explanation:
        """What it would cost and how noisy it would be. Free: nothing private is read."""
        asked, policy, price, slack = self._read(
            text, epsilon=epsilon, delta=delta, within=within, confidence=confidence
        )
        known, unknown = self._facts(asked, policy)
        each, rest = shares(unknown, price)
        any_of_them = known | any_facts(each)
        planned = plan(*informed(asked, policy, any_of_them), epsilon=rest, delta=slack)
        left = self.ledger.remaining(self.policy.account, self.principal)
        return Explanation(plan=planned, left=left, known=known, unknown=each)

    @granted
    def diagnose(
        self, text: str, *, epsilon: Real | None = None, delta: Real | None = None, key: str | None = None
    ) -> Diagnosis:
        """How many units the limits and bounds of a question cut off, privately and paid for; free when asked again."""
        diagnostics(self.explain(text, epsilon=epsilon, delta=delta).plan)  # refused before facts are bought, if it is
        planned, price = self._planned(
            text,
            epsilon=epsilon,
            delta=delta,
            within=None,
            confidence=CONFIDENCE,
            asks=lambda planned, price: ask_of(planned, price=price, principal=self.principal, key=key),
        )
        return diagnosed(
            planned,
            price=price,
            ledger=self.ledger,
            principal=self.principal,
            key=key,
            prepare=self.counting,
            measure=self._measured,
            log=self.log,
        )

    @granted
    def _desk(self) -> Desk:
        """What ``publish`` and ``explain_publish`` work with (hubbub.publishing)."""
        self._let_go_of_stale_facts()
        return Desk(
            catalogue=self,
            policy=self.policy,
            ledger=self.ledger,
            principal=self.principal,
            prepare=self._prepared,
            array=self._array,
            log=self.log,
            combinations=self._combinations,
        )

    @granted
    def _classroom(self) -> Classroom:
        """What ``learn`` works with (hubbub.learning)."""
        self._let_go_of_stale_facts()
        return Classroom(
            catalogue=self,
            policy=self.policy,
            ledger=self.ledger,
            principal=self.principal,
            prepare=self._prepared,
            totals=self._totals,
            log=self.log,
        )

    @granted
    def table(self, name: str) -> Frame:
        """A table to ask in Python: ``db.table("stays").group_by("ward").agg(n=hb.count()).answer(epsilon=1)``."""
        return Frame(asker=self, source=quoted(name), name=name)

    @granted
    def plan(
        self,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
    ) -> Plan:
        """What would be measured, and how; refused here if it cannot be."""
        return self._planned(text, epsilon=epsilon, delta=delta, within=within, confidence=confidence)[0]

    def _read(
        self, text: str, *, epsilon: Real | None, delta: Real | None, within: Real | None, confidence: Real
    ) -> tuple[Question, Policy, Fraction, Real | None]:
        """The question, what it says of the policy, and its price."""
        self._let_go_of_stale_facts()
        bare, said = taken_out(text)
        policy = limited(self.policy, said)
        asked = question(bare, self)
        slack = agreed("delta", delta, said.delta)
        price = agreed("epsilon", epsilon, said.epsilon)
        if (price is None) is (within is None):
            raise ParameterError("epsilon", "given, or within instead of it", price)
        if within is not None:
            known, unknown = self._facts(asked, policy)
            if unknown:
                raise NotAllowed(
                    "How far it is off is known once its bounds and limits are. Ask it with epsilon first, which buys "
                    "them, or let the owner declare them."
                )
            price = least_epsilon(*informed(asked, policy, known), within=within, confidence=confidence, delta=slack)
        assert price is not None
        return asked, policy, whole_units_rounded_down(positive("epsilon", price)), slack

    def _facts(self, asked: Question, policy: Policy) -> tuple[Known, tuple[Wanted, ...]]:
        """What the question lacks: what whoever asks knows of it by now, and what not."""
        wanted = lacking(asked, policy)
        known = self._buyer().held(wanted)
        return known, tuple(fact for fact in wanted if fact not in known)

    def _buyer(self) -> Buyer:
        """Whoever comes by facts for this principal (hubbub.buying)."""
        return Buyer(
            policy=self.policy,
            ledger=self.ledger,
            principal=self.principal,
            prepare=self._prepared,
            log=self.log,
        )

    def _planned(
        self,
        text: str,
        *,
        epsilon: Real | None,
        delta: Real | None,
        within: Real | None,
        confidence: Real,
        asks: Callable[[Plan, Fraction], Ask] | None = None,
    ) -> tuple[Plan, Fraction]:
        """The plan, and the price of all of it.

        With ``asks``, which says what will be asked of the ledger for a plan at this price, what the question lacks is
        bought first with a share of the price. Without it nothing is paid.
        """
        asked, policy, price, slack = self._read(
            text, epsilon=epsilon, delta=delta, within=within, confidence=confidence
        )
        known, unknown = self._facts(asked, policy)
        _, rest = shares(unknown if asks else (), price)

        def planned(facts: Known) -> Plan:
            ordered = {wanted: facts[wanted] for wanted in lacking(asked, policy) if wanted in facts}  # as recalled
            return plan(*informed(asked, policy, ordered), epsilon=rest, delta=slack)

        if unknown and asks is not None:
            known |= self._buyer().obtain(unknown, price=price, then=lambda facts: asks(planned(known | facts), price))
        return planned(known), price

    def _ask_of(self, planned: Plan, price: Fraction, key: str | None) -> Ask:
        """What is asked of the ledger for a question in SQL."""
        return Ask(
            account=self.policy.account,
            question=planned.question.identity,
            events=planned.events,
            epsilon=price,
            delta=planned.delta,
            principal=self.principal,
            policy=planned.policy.fingerprint,
            version=self.policy.version,
            key=key,
        )

    def _answered(self, planned: Plan, runs: Sequence[Run], meter: Meter) -> str:
        """What will be stored: grouping sets are measured one after the other."""
        if not planned.sets:
            (run,) = runs
            return self._measured(planned, run, meter)
        parts = [self._measured(one, run, meter) for one, run in zip(planned.sets, runs, strict=True)]
        return stored.written_sets(planned, parts)

    def _measured(self, planned: Plan, run: Callable[[], Counted], meter: Meter) -> str:
        """Exact cells from the engine go under seal at once; what comes out is noisy."""
        counted, shown = self._selected(planned, run(), meter)
        cells = counted.tallies
        noisy: list[list[int]] = []
        for place, mechanism in enumerate(planned.mechanisms):
            if shown is not None and (not shown or mechanism is planned.passed_by(place)):
                noisy.append(list(shown.values()))
                continue
            if planned.is_within(place):
                noisy.append([])
                continue
            facts = Facts(
                account=self.policy.account,
                sensitivity=planned.sensitivity(place),
                neighbors=self.policy.budget.neighbors,
            )
            choice = planned.choice(place)
            if choice is not None:
                held = Secret(choice.value(counted.histograms[choice.histogram]), facts)
                chosen = meter.measure(mechanism, held).value
                noisy.append([int(step) for group in chosen for step in np.atleast_1d(group)])
                continue
            secret = Secret(vector(planned.exact(cells, place)), facts)
            noisy.append([int(value) for value in meter.measure(mechanism, secret).value])
        return stored.written(planned, stored.Drawn(noisy, None if shown is None else tuple(shown)))

    def _selected(self, planned: Plan, counted: Counted, meter: Meter) -> tuple[Counted, dict[Cell, int] | None]:
        """Private keys that have passed, with the noisy numbers that they have passed with, and all cells of theirs."""
        if planned.selection is None:
            return counted, None
        facts = Facts(account=self.policy.account, sensitivity=planned.selection.sensitivity)
        drawn = meter.measure(planned.selection.mechanism, Secret(dict(counted.units), facts)).value
        groups, most = planned.aggregate.groups, self.policy.limits.max_cells
        shown = {held: int(drawn[held]) for held in first_keys(groups, drawn, most=most)}
        return restricted(counted, groups, shown, most=most), shown

    @granted
    def counting(self, planned: Plan) -> Run:
        """What reads the data of a plan when it is called: exact numbers, for a Secret alone."""
        return self._prepared(planned.aggregate)

    def _let_go_of_stale_facts(self) -> None:
        """Plan without what was seen of files that were written to since. (The engine relies on none of it anyway.)"""
        self.policy = self.policy.without_stale_facts()

    def _prepared(self, aggregate: Aggregate) -> Run:
        with before_the_charge("A table of the question could not be opened. Ask the owner."):
            return self._engine.prepare(aggregate, tables=self.policy.tables)

    def _array(self, aggregate: Aggregate) -> Callable[[], Any]:
        with before_the_charge("A table of the publication could not be opened. Ask the owner."):
            return self._engine.cells(aggregate, tables=self.policy.tables)

    def _totals(self, op: Totals) -> Callable[[], Any]:
        return self._engine.totals(op, tables=self.policy.tables)

    def _combinations(self, aggregate: Aggregate) -> Callable[[], Any]:
        with before_the_charge("A table of the publication could not be opened. Ask the owner."):
            return self._engine.combinations(aggregate, tables=self.policy.tables)

    @granted
    def blocks(
        self, relation: Relation, columns: Sequence[tuple[str, Expression]], *, blocks: int
    ) -> Callable[[], list[Rows]]:
        """What deals the rows out to blocks, each unit's to one, when it is called: exact rows, for a sandbox alone."""
        with before_the_charge("A table of the query could not be opened. Ask the owner."):
            return self._engine.blocks(relation, columns, tables=self.policy.tables, blocks=blocks)

    # What is public: questions are read against this.

    @granted
    def fanout(self, relation: Relation, keys: Sequence[Expression]) -> Fanout:
        """How many rows of a public relation can share one combination of keys."""
        with before_the_charge("A public table of the question could not be read. Ask the owner."):
            return self._public.recall(
                (relation, tuple(keys)),
                now=self._engine.stamp(relation, tables=self.policy.tables),
                look=lambda: self._engine.fanout(relation, keys, tables=self.policy.tables),
            )

    @granted
    def values(self, table: str, column: str) -> tuple[Value, ...]:
        """The values in a public table's column, sorted."""
        declared = self.policy.tables[table].column(column)
        assert declared is not None
        wanted = Column(qualify(table, column), declared.kind)
        scan = Scan(table=table, columns=(ScanColumn(wanted.name, wanted.kind, declared.name),), unit=None)
        with before_the_charge(f"The public table {table} could not be read. Ask the owner."):
            return self._public.recall(
                (scan, wanted),
                now=self._engine.stamp(scan, tables=self.policy.tables),
                look=lambda: self._engine.values(scan, wanted, tables=self.policy.tables, most=MOST_VALUES),
            )

    def close(self) -> None:
        """Let go of the engine and the ledger."""
        self._engine.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.principal != OWNER:  # whose grant may have ended, and then no table is named
            return f"Database(account {self.policy.account!r}, asked by {self.principal!r})"
        return f"Database({', '.join(sorted(self.policy.tables))}; account {self.policy.account!r})"


def vector(cells: Sequence[int]) -> Any:
    """Exact numbers as mechanisms take them."""
    fits = all(-_INT64 < cell < _INT64 for cell in cells)
    return np.array(cells, dtype=np.int64 if fits else object)
