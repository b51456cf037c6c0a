"""Questions written in Python, step by step: a frame is SQL that is not finished, and an asking is a whole question.

db.table("stays").where(hb.col("cost") > 0).group_by("ward").agg(n=hb.count(), cost=hb.mean("cost")).answer(epsilon=1)

Both are values: each step makes a new one. Nothing is read, paid or checked before ``explain`` or ``answer``, and there
the text goes the way of every question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hubbub.errors import ParameterError
from hubbub.parameters import Real
from hubbub.query.aggregates.function import CONFIDENCE
from hubbub.query.answer.answer import Answer
from hubbub.query.answer.diagnosis import Diagnosis
from hubbub.query.answer.explain import Explanation
from hubbub.query.frame.columns import Operand, Term, bracket, col, quote


class Asker(Protocol):
    """Whoever answers: a database."""

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
    ) -> Answer:
        """The answer to a question."""

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
        """Explain what the question would cost."""

    def diagnose(
        self, text: str, *, epsilon: Real | None = None, delta: Real | None = None, key: str | None = None
    ) -> Diagnosis:
        """Estimate how many units the question's limits and bounds cut off."""

    def learn(
        self,
        frame: "Frame",
        estimator: Any,
        *,
        columns: Sequence[str],
        target: str | None = None,
        epsilon: Real | None = None,
        delta: Real | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Any:
        """An estimator fitted where the rows are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Rows that a question can be asked of."""

    asker: Asker
    source: str
    """What stands behind FROM."""
    name: str
    conditions: tuple[Term, ...] = ()

    def alias(self, name: str) -> "Frame":
        """The same rows under another name, for joining a table with itself."""
        return Frame(asker=self.asker, source=f"{self._whole()} AS {quote(name)}", name=name)

    def where(self, *conditions: Term) -> "Frame":
        """The rows for which all conditions are true."""
        return replace(self, conditions=(*self.conditions, *(_condition(one) for one in conditions)))

    def join(self, other: "Frame | str", *, on: str | Sequence[str] | Term, how: str = "inner") -> "Frame":
        """Rows of another table beside these: ``on`` names columns that both have, or is a condition."""
        if how not in {"inner", "left", "full"}:
            raise ParameterError("how", '"inner", "left" or "full"', how)
        right = Frame(asker=self.asker, source=quote(other), name=other) if isinstance(other, str) else other
        if self.conditions:
            raise ParameterError("join", "before where, so that it is clear whose columns are meant", self.name)
        if isinstance(on, Term):
            said = f"ON {bracket(on)}"
        else:
            names = [on] if isinstance(on, str) else list(on)
            said = f"USING ({', '.join(quote(one) for one in names)})"
        joined = f"{self.source} {how.upper()} JOIN {right._whole()} {said}"
        return replace(self, source=joined)

    def select(self, *columns: str, **named: Operand) -> "Frame":
        """New columns, row by row; the unit must be among them if rows are to be anybody's."""
        shown = [quote(one) for one in columns]
        shown += [f"{bracket(term)} AS {quote(called)}" for called, term in named.items()]
        if not shown:
            raise ParameterError("columns", "at least one", ())
        text = f"SELECT {', '.join(shown)} FROM {self.source}{self._filter()}"
        return Frame(asker=self.asker, source=f"({text}) AS {quote(self.name)}", name=self.name)

    def group_by(self, *columns: str | Term, **named: Operand) -> "Grouped":
        """A group for each combination of these values."""
        keys: dict[str, Term] = {}
        given = [(key if isinstance(key, str) else key.text, _column(key)) for key in columns]
        for called, term in [*given, *((called, _term(term)) for called, term in named.items())]:
            if keys.setdefault(called, term).text != term.text:
                raise ParameterError("columns", "under different names; name an expression: group_by(name=…)", called)
        return Grouped(frame=self, keys=keys)

    def agg(self, **aggregates: Term) -> "Asking":
        """Aggregates of all rows together."""
        return Grouped(frame=self, keys={}).agg(**aggregates)

    def learn(
        self,
        estimator: Any,
        *,
        columns: Sequence[str],
        target: str | None = None,
        epsilon: Real | None = None,
        delta: Real | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Any:
        """An estimator of ``hubbub.learn``, fitted where the rows are: the table is never loaded.

        The price is ``epsilon`` (and ``delta``), or the estimator's own; it is paid before anything is read, and the
        same fit is free when it is asked for again. A unit counts for at most ``rows`` rows, or as the owner declared.
        Declared bounds of the columns are the estimator's ``bounds``; where there are none it buys them.
        """
        return self.asker.learn(
            self, estimator, columns=columns, target=target, epsilon=epsilon, delta=delta, rows=rows, key=key
        )

    def select_sql(self, listed: str) -> str:
        """Write a query for a list of expressions over its rows, for what reads expressions from it."""
        return f"SELECT {listed} FROM {self.source}{self._filter()}"

    def rows_sql(self, *columns: str) -> str:
        """Its rows with some columns, as a query: for what is done with rows rather than asked of them."""
        if not columns:
            raise ParameterError("columns", "at least one", ())
        return f"SELECT {', '.join(quote(one) for one in columns)} FROM {self.source}{self._filter()}"

    def __repr__(self) -> str:
        return f"<Rows of {self.source}{self._filter()}; nothing is read before .agg(…).answer(epsilon=…)>"

    def _whole(self) -> str:
        """As one thing to join with."""
        if not self.conditions:
            return self.source
        return f"(SELECT * FROM {self.source}{self._filter()}) AS {quote(self.name)}"

    def _filter(self) -> str:
        return f" WHERE {' AND '.join(bracket(one) for one in self.conditions)}" if self.conditions else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Rows in groups."""

    frame: Frame
    keys: Mapping[str, Term]

    def agg(self, **aggregates: Term) -> "Asking":
        """Ask for aggregates of each group, each under its name."""
        if not aggregates or not all(isinstance(one, Term) for one in aggregates.values()):
            raise ParameterError("aggregates", "named terms, such as n=hb.count()", tuple(aggregates))
        if aggregates.keys() & self.keys.keys():
            raise ParameterError("aggregates", "under other names than the keys", min(aggregates.keys() & self.keys))
        return Asking(grouped=self, aggregates=aggregates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A whole question."""

    grouped: Grouped
    aggregates: Mapping[str, Term]
    kept: tuple[Term, ...] = ()
    order: tuple[str, ...] = ()
    most: int | None = None

    def having(self, *conditions: Term) -> "Asking":
        """Only groups whose noisy numbers fulfil this; it costs nothing."""
        return replace(self, kept=(*self.kept, *(_condition(one) for one in conditions)))

    def order_by(self, *columns: str | Term, descending: bool = False) -> "Asking":
        """Sorted by columns of the answer."""
        way = " DESC" if descending else ""
        return replace(self, order=(*self.order, *(f"{bracket(_column(one))}{way}" for one in columns)))

    def limit(self, most: int) -> "Asking":
        """At most so many rows of the answer."""
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise ParameterError("limit", "a whole number from 0 on", most)
        return replace(self, most=most)

    @property
    def sql(self) -> str:
        """The question as SQL: what is read, planned and remembered."""
        frame, keys = self.grouped.frame, self.grouped.keys
        shown = [f"{bracket(term)} AS {quote(called)}" for called, term in {**keys, **self.aggregates}.items()]
        parts = [f"SELECT {', '.join(shown)} FROM {frame.source}{frame._filter()}"]
        parts += [f"GROUP BY {', '.join(bracket(term) for term in keys.values())}"] if keys else []
        parts += [f"HAVING {' AND '.join(bracket(one) for one in self.kept)}"] if self.kept else []
        parts += [f"ORDER BY {', '.join(self.order)}"] if self.order else []
        parts += [] if self.most is None else [f"LIMIT {self.most}"]
        return " ".join(parts)

    def explain(
        self,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
    ) -> Explanation:
        """Explain what the question would cost and how noisy the answer would be; free."""
        asker = self.grouped.frame.asker
        return asker.explain(self.sql, epsilon=epsilon, delta=delta, within=within, confidence=confidence, error=error)

    def answer(
        self,
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        within: Real | None = None,
        confidence: Real = CONFIDENCE,
        error: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """The answer, with error bars."""
        asker = self.grouped.frame.asker
        return asker.sql(
            self.sql, epsilon=epsilon, delta=delta, within=within, confidence=confidence, error=error, key=key
        )

    def diagnose(self, *, epsilon: Real | None = None, delta: Real | None = None, key: str | None = None) -> Diagnosis:
        """Estimate how many units the question's limits and bounds cut off, with error bars."""
        return self.grouped.frame.asker.diagnose(self.sql, epsilon=epsilon, delta=delta, key=key)


def _term(operand: Operand) -> Term:
    return operand if isinstance(operand, Term) else Term(bracket(operand))


def _column(named: str | Term) -> Term:
    return col(named) if isinstance(named, str) else _term(named)


def _condition(condition: object) -> Term:
    if not isinstance(condition, Term):
        raise ParameterError("condition", 'a term, such as hb.col("cost") > 0', condition)
    return condition
