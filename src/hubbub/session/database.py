"""The database: data, policy, ledger and engine behind one object that answers questions.

import hubbub as hb

db = hb.open("stays.parquet", unit="patient_id", budget=hb.Budget(epsilon=4), bounds={"cost": (0, 50_000)}, …)
db.explain("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=0.5)
db.sql("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=0.5)

Every method makes a job of what it is asked and hands it to the one door (``session.session``), or plans for nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from hubbub.engines.base import Engine
from hubbub.engines.dialects.show import show_statement
from hubbub.engines.public import PublicFacts, before_the_charge
from hubbub.errors import NotAllowed, ParameterError
from hubbub.gate.attempt import Log
from hubbub.ledger import OWNER, Ledger
from hubbub.parameters import Real
from hubbub.policy.tables import Policy, Value
from hubbub.query.aggregates.function import CONFIDENCE
from hubbub.query.answer.answer import Answer
from hubbub.query.answer.diagnose import diagnostics
from hubbub.query.answer.diagnosis import Diagnosis
from hubbub.query.answer.explain import Explanation
from hubbub.query.answer.listing import Listing, check_table, list_columns, list_tables
from hubbub.query.expression import Expression
from hubbub.query.frame.columns import quote
from hubbub.query.frame.frame import Asking, Frame
from hubbub.query.ops import Relation
from hubbub.query.plan.covering import Covers
from hubbub.query.plan.plan import Plan
from hubbub.query.read.rows import rows_of
from hubbub.query.read.scope import Fanout
from hubbub.query.read.text.show import read_show
from hubbub.session.balance import Balance, balance_of
from hubbub.session.catalogue import PublicTables
from hubbub.session.job import Draft, Job
from hubbub.session.learning import fit_job
from hubbub.session.questions import QuestionTerms, diagnosis_job, draft_joint, draft_sql, plan_diagnosis
from hubbub.session.session import Session

if TYPE_CHECKING:  # whoever asks in SQL does not wait for strategies to be loaded
    from hubbub.publish.release.prospect import Prospect
    from hubbub.publish.strategies.strategy import Releasing, Strategy
    from hubbub.query.answer.advice import Advice
    from hubbub.session.publishing import Over

P = ParamSpec("P")
T = TypeVar("T")


def require_grant(method: Callable[Concatenate["Database", P], T]) -> Callable[Concatenate["Database", P], T]:
    """Let a method begin only for the owner, and for principals whose grant is good at that moment (SOUNDNESS 40)."""

    @wraps(method)
    def check(self: "Database", /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.check_grant()
        return method(self, *args, **kwargs)

    return check


class Database:
    """Private data that can be asked. Close it, or use it in a ``with`` block.

    A principal other than the owner needs a grant for everything here, free methods included: without one it learns
    nothing, not even what tables there are.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        ledger: Ledger,
        engine: Engine,
        principal: str = OWNER,
        log: Log | None = None,
        where: str | None = None,
    ) -> None:
        self._engine, self._where = engine, where
        self._session = Session(policy, ledger=ledger, engine=engine, principal=principal, log=log)
        self._public = PublicFacts()
        self.check_grant()
        ledger.open_account(policy.account, policy.budget)

    @property
    def policy(self) -> Policy:
        """Return what the owner declares, without what was seen of files that were written to since."""
        return self._session.policy

    @property
    def ledger(self) -> Ledger:
        """Return the ledger that pays."""
        return self._session.ledger

    @property
    def principal(self) -> str:
        """Return the principal who asks."""
        return self._session.principal

    @property
    def log(self) -> Log | None:
        """Return the log that receives the true cause of failures after a charge: for the owner alone."""
        return self._session.log

    def check_grant(self) -> None:
        """Raise GrantError where whoever asks has no grant, or no longer one."""
        self._session.check_grant()

    @require_grant
    def run(self, asked: Job[T] | Draft[Any, T], *, key: str | None = None) -> T:
        """Answer a job through the one door: paid before anything is read, and free where it was answered before."""
        return self._session.run(asked, key=key)

    @overload
    def sql(
        self,
        /,
        text: str,
        *,
        epsilon: Real,
        delta: Real | None = None,
        within: None = None,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
        key: str | None = None,
    ) -> Answer: ...

    @overload
    def sql(
        self,
        /,
        text: str,
        *,
        epsilon: None = None,
        delta: Real | None = None,
        within: Real,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
        key: str | None = None,
    ) -> Answer: ...

    @overload
    def sql(
        self,
        /,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
        key: str | None = None,
    ) -> Any: ...

    @require_grant
    def sql(
        self,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
        key: str | None = None,
    ) -> Answer | Listing:
        """Answer a question, with error bars. Paid before anything is read; free where it was answered before.

        ``epsilon`` is the price; or say ``within``: the margin of error of counts and sums, with this confidence. It
        may also stand in the question: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) …

        ``error`` says what intervals cover: the "noise" alone; what limits drop, too ("dropped"), which an eighth of
        the price measures, and which is the default where the owner declares max_total_rows; or the "whole" error of
        every aggregate, by whatever makes the intervals the shortest.

        SHOW TABLES and DESCRIBE t are answered by the policy, and have no price.
        """
        show = read_show(text)
        if show is not None:
            if epsilon is not None or within is not None:
                raise NotAllowed("What is declared costs nothing to ask. Leave the price out.")
            return list_tables(self.policy) if show.table is None else list_columns(self.policy, show.table)
        self._engine.rouse()
        price = QuestionTerms(epsilon=epsilon, delta=delta, within=within, confidence=confidence, error=error)
        return self._session.run(self._draft(text, price), key=key)

    @require_grant
    def ask(
        self,
        questions: Sequence[str | Asking],
        *,
        epsilon: Real,
        delta: Real | None = None,
        key: str | None = None,
    ) -> list[Answer]:
        """Answer several questions at one price: all of them or none, and they share the noise that (ε, δ) buys.

        Asked one by one at ε/n each they would be noisier, wherever the account has a δ.
        """
        if isinstance(questions, str | Asking) or not questions:
            raise ParameterError("questions", "a list of questions", questions)
        texts = [asked.sql if isinstance(asked, Asking) else asked for asked in questions]
        catalogue = self._catalogue()
        draft = draft_joint(texts, epsilon=epsilon, delta=delta, policy=self.policy, catalogue=catalogue)
        return self._session.run(draft, key=key)

    @require_grant
    def explain(
        self,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
    ) -> Explanation:
        """Say what a question would cost and how noisy it would be. Free: nothing private is read."""
        price = QuestionTerms(epsilon=epsilon, delta=delta, within=within, confidence=confidence, error=error)
        foreseen = self._session.foresee(self._draft(text, price))
        from hubbub.session.advising import compare_limits

        payer, told = self._session.payer(), compare_limits(self._session, self._catalogue(), foreseen.plan)
        known, unknown = foreseen.known, foreseen.unknown
        return Explanation(
            plan=foreseen.plan, payer=payer, known=known, unknown=unknown, where=self._where, advice=told
        )

    @require_grant
    def statements(
        self,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        error: str | None = None,
    ) -> list[str]:
        """Return the SQL that the engine would run for a question: for the owner alone, who may want to read it.

        Secret numbers are parameters of it. Where facts would be bought first, they are any ones here.
        """
        if self.principal != OWNER:
            raise NotAllowed("What the engine runs is for the owner of the data to read.")
        draft = self._draft(text, QuestionTerms(epsilon=epsilon, delta=delta, within=within, error=error))
        job = draft.job(self._session.foresee(draft).plan)
        with before_the_charge("A table of the question could not be opened. Ask the owner."):
            shown = [self._engine.show(request, tables=self.policy.tables) for request in job.requests]
        return [show_statement(statement) for statement in shown]

    @require_grant
    def plan(
        self,
        text: str,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
    ) -> Plan:
        """Return what would be measured, and how; refused here if it cannot be."""
        price = QuestionTerms(epsilon=epsilon, delta=delta, within=within, confidence=confidence, error=error)
        return self._session.plan(self._draft(text, price))

    @require_grant
    def diagnose(
        self, text: str, *, epsilon: Real | None = None, delta: Real | None = None, key: str | None = None
    ) -> Diagnosis:
        """Count the units of which the limits and bounds of a question drop or clip something: private, and paid for.

        It is free when it is asked again.
        """
        draft = self._draft(text, QuestionTerms(epsilon=epsilon, delta=delta, error=Covers.NOISE))
        diagnostics(self._session.foresee(draft).plan)  # refused before facts are bought, if it is
        diagnosis = Draft(
            wanted=draft.wanted,
            price=draft.price,
            plan=lambda facts, purchase: plan_diagnosis(draft.plan(facts, replace(purchase, ways=None)), purchase),
            job=lambda made: diagnosis_job(made, price=draft.price),
        )
        return self._session.run(diagnosis, key=key)

    @require_grant
    def advise(
        self,
        *,
        epsilon: Real,
        price: Real = 1,
        table: str | None = None,
        by: Sequence[str] | None = None,
        key: str | None = None,
    ) -> "Advice":
        """Advise limits and bounds for the policy, out of a private look at how much people have; paid for once.

        ``epsilon`` is what the look costs, and ``price`` what questions will cost: limits are those at which these err
        the least, noise and what is dropped together. ``by`` names columns that are grouped by, with public keys;
        without it they are all that have any.
        """
        from hubbub.session.advising import advice_job, remember_advice

        job = advice_job(self.policy, self._catalogue(), epsilon=epsilon, price=price, table=table, by=by)
        found = self._session.run(job, key=key)
        remember_advice(self._session, found, by=by)
        return found

    @require_grant
    def publish(
        self,
        strategy: "Releasing[T]",
        *,
        over: "Over",
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> T:
        """Publish the number of rows in every cell, with the noise of a strategy: paid once, asked at will.

        ``over`` names columns, or expressions, with the values that have a cell: a range, a list, or
        ``publish.bins(low, high, steps)``. A unit counts in at most ``cells`` of them with at most ``each`` rows, and
        with at most ``rows`` altogether, or as the owner declared (max_groups, max_rows, max_total_rows); where nobody
        said, cells and rows in a cell are bought with a share of the price, but ``rows`` alone is enough.

        With ``publish.Marginals`` or ``publish.Cube`` there may be any number of cells: what has rows is counted, and
        what is published are marginals, up to 5·10^7 noisy numbers::

            release = db.publish(publish.Marginals(ways=3), over=fifteen_columns, rows=4, epsilon=1, delta=1e-9)
            release.marginal("age", "ward").values    # a table with the standard deviation of every cell
            release.table("ward", "outcome")          # the same as rows with intervals
            db.explain_publish(publish.Marginals(ways=3), over=fifteen_columns, rows=4, epsilon=1)  # free

        With a filter of ``publish.sparse`` there may be 2^63 cells, of which the large ones are shown::

            release = db.publish(sparse.Threshold(expected_false=10), over={"code": range(1 << 40)}, rows=4, epsilon=1)
            release.to_table(), release.cell({"code": 77})
        """
        from hubbub.publish.offer import Wish
        from hubbub.session.publishing import draft_publication

        said = {"table": table, "where": where, "cells": cells, "each": each, "rows": rows}
        wish = Wish(strategy=strategy, over=over, epsilon=epsilon, delta=delta, **said)  # type: ignore[arg-type]
        return self._session.run(  # type: ignore[no-any-return]
            draft_publication(wish, session=self._session, catalogue=self._catalogue()), key=key
        )

    @require_grant
    def explain_publish(
        self,
        strategy: "Strategy",
        *,
        over: "Over",
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
    ) -> "Prospect":
        """Say what that would cost, and how far ranges or marginals would be off. Free: nothing private is read."""
        from hubbub.publish.offer import Wish
        from hubbub.session.publishing import prospect

        said = {"table": table, "where": where, "cells": cells, "each": each, "rows": rows}
        wish = Wish(strategy=strategy, over=over, epsilon=epsilon, delta=delta, **said)  # type: ignore[arg-type]
        return prospect(wish, session=self._session, catalogue=self._catalogue())

    @require_grant
    def learn(
        self,
        frame: Frame,
        estimator: Any,
        *,
        columns: Sequence[str],
        target: str | None = None,
        epsilon: Real | None = None,
        delta: Real | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Any:
        """Fit an estimator where the rows are: ``frame.learn(estimator, …)``."""
        from hubbub.learn import lesson

        wish = lesson.LearnWish(
            frame=frame, estimator=estimator, columns=columns, target=target, epsilon=epsilon, delta=delta, rows=rows
        )
        taken = lesson.read(wish, self.policy, self._catalogue())
        taken.rehearse()
        return self._session.run(fit_job(taken, policy=self.policy), key=key)

    @require_grant
    def schema(self, table: str | None = None) -> Listing:
        """List the columns of a table, or of all tables, with what is declared of them. Free: no row is read."""
        return list_columns(self.policy, table)

    @property
    def budget(self) -> Balance:
        """Return what is left to whoever asks. Free."""
        self.check_grant()
        return balance_of(self._session)

    @require_grant
    def table(self, name: str) -> Frame:
        """Return a table to ask in Python: ``db.table("stays").group_by("ward").agg(n=hb.count()).answer(epsilon=1)``.

        Each step makes a new frame, and nothing is read before ``answer``."""
        check_table(self.policy, name)
        return Frame(asker=self, source=quote(name), name=name)

    @require_grant
    def read_rows(self, text: str) -> tuple[Relation, tuple[tuple[str, Expression], ...]]:
        """Read a query whose rows go to a sandbox: the relation and its columns, not the rows."""
        return rows_of(text, self._catalogue())

    @require_grant
    def fanout(self, relation: Relation, keys: Sequence[Expression]) -> Fanout:
        """Count how many rows of a public relation can share one combination of keys."""
        return self._tables().fanout(relation, keys)

    @require_grant
    def values(self, table: str, column: str) -> tuple[Value, ...]:
        """Return the values in a public table's column, sorted."""
        return self._tables().values(table, column)

    def _draft(self, text: str, price: QuestionTerms) -> Draft[Plan, Answer]:
        catalogue = self._catalogue()
        return draft_sql(text, price, session=self._session, catalogue=catalogue)

    def _catalogue(self) -> PublicTables:
        """Return what questions are read against, as of now."""
        self._session.drop_stale_facts()
        return self._tables()

    def _tables(self) -> PublicTables:
        return PublicTables(self.policy, engine=self._engine, facts=self._public)

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
