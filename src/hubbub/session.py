"""Where everything meets: data, policy, ledger and engine behind one object that answers questions.

import hubbub as hb

db = hb.open("stays.parquet", unit="patient_id", budget=hb.Budget(epsilon=4), bounds={"cost": (0, 50_000)}, …)
db.explain("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=0.5)
db.sql("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=0.5)
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from hubbub.engines.duckdb import DuckDB, Run
from hubbub.errors import EngineError, LedgerCorrupt, ParameterError, PolicyError
from hubbub.ledger import OWNER, Ask, Ledger, Marks
from hubbub.ledger.entry import digest_of
from hubbub.meter import Meter, answered
from hubbub.parameters import Real
from hubbub.policy.build import single_table
from hubbub.policy.checked import with_enforced
from hubbub.policy.read import read_policy
from hubbub.policy.sources import source_of, table_name
from hubbub.policy.tables import Limits, Policy, Source, Table, Value
from hubbub.privacy.budget import Budget
from hubbub.query.answer import Answer, answer
from hubbub.query.explain import Explanation
from hubbub.query.expression import Column, Expression
from hubbub.query.keys import MOST_VALUES
from hubbub.query.ops import Relation, Scan
from hubbub.query.plan import Plan, plan
from hubbub.query.sql import question
from hubbub.secret import Facts, Secret

_INT64 = 1 << 62


class Database:
    """Private data that can be asked. Close it, or use it in a ``with`` block."""

    def __init__(self, policy: Policy, *, ledger: Ledger, engine: DuckDB, principal: str = OWNER) -> None:
        self.policy, self.ledger, self.principal = policy, ledger, principal
        self._engine = engine
        self._public: dict[tuple[str, str], tuple[Value, ...]] = {}
        ledger.open_account(policy.account, policy.budget)

    def sql(self, text: str, *, epsilon: Real, delta: Real | None = None, key: str | None = None) -> Answer:
        """The answer, with error bars. Paid before anything is read; free where it was answered before."""
        planned, run = self._prepared(text, epsilon=epsilon, delta=delta)
        ask = Ask(
            account=self.policy.account,
            question=planned.question.text,
            events=planned.events,
            epsilon=planned.epsilon,
            delta=planned.delta,
            principal=self.principal,
            policy=self.policy.fingerprint,
            version=self.policy.version,
            key=key,
        )
        reply = answered(self.ledger, ask, lambda meter: self._measured(planned, run, meter))
        drawn, noisy = _read(reply.answer, planned)
        if drawn != (planned.epsilon, planned.delta):  # an answer at a higher ε: its error bars are its own
            planned = self.plan(text, epsilon=drawn[0], delta=drawn[1])
        return answer(planned, noisy, entry=reply.entry)

    def explain(self, text: str, *, epsilon: Real, delta: Real | None = None) -> Explanation:
        """What it would cost and how noisy it would be. Free: nothing private is read."""
        planned = self.plan(text, epsilon=epsilon, delta=delta)
        return Explanation(plan=planned, statement=self.ledger.statement(self.policy.account))

    def plan(self, text: str, *, epsilon: Real, delta: Real | None = None) -> Plan:
        """What would be measured, and how; refused here if it cannot be."""
        return self._prepared(text, epsilon=epsilon, delta=delta)[0]

    def _prepared(self, text: str, *, epsilon: Real, delta: Real | None) -> tuple[Plan, Run]:
        planned = plan(question(text, self), self.policy, epsilon=epsilon, delta=delta)
        with _before_the_charge("A table of the question could not be opened. Ask the owner."):
            return planned, self._engine.prepare(planned.aggregate, tables=self.policy.tables)

    def _measured(self, planned: Plan, run: Run, meter: Meter) -> str:
        """Exact cells from the engine go under seal at once; what comes out is noisy."""
        cells = run()
        noisy = []
        for place, mechanism in enumerate(planned.mechanisms):
            facts = Facts(
                account=self.policy.account,
                sensitivity=planned.sensitivity(place),
                neighbors=self.policy.budget.neighbors,
            )
            secret = Secret(_vector([row[place] for row in cells]), facts)
            noisy.append([int(value) for value in meter.measure(mechanism, secret).value])
        stored = {
            "delta": str(planned.delta),
            "epsilon": str(planned.epsilon),
            "groups": _groups(planned),
            "noisy": noisy,
        }
        return json.dumps(stored)

    # What is public: questions are read against this.

    def fanout(self, relation: Relation, keys: Sequence[Expression]) -> int:
        """How many rows of a public relation can share one combination of keys."""
        with _before_the_charge("A public table of the question could not be read. Ask the owner."):
            return self._engine.fanout(relation, keys, tables=self.policy.tables)

    def values(self, table: str, column: str) -> tuple[Value, ...]:
        """The values in a public table's column, sorted."""
        if (table, column) not in self._public:
            declared = self.policy.tables[table].column(column)
            assert declared is not None
            scan = Scan(table=table, columns=((column, declared.kind),), unit=None)
            wanted = Column(column, declared.kind)
            with _before_the_charge(f"The public table {table} could not be read. Ask the owner."):
                found = self._engine.values(scan, wanted, tables=self.policy.tables, most=MOST_VALUES)
            self._public[table, column] = found
        return self._public[table, column]

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
        return f"Database({', '.join(sorted(self.policy.tables))}; account {self.policy.account!r})"


def open(
    data: Any,
    *,
    unit: str | None = None,
    budget: Budget | None = None,
    bounds: Mapping[str, object] | None = None,
    keys: Mapping[str, object] | None = None,
    types: Mapping[str, object] | None = None,
    nullable: Mapping[str, bool] | None = None,
    grids: Mapping[str, object] | None = None,
    max_groups: int = 1,
    max_rows: int | None = None,
    limits: Limits | None = None,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    account: str = "people",
    version: str = "1",
    principal: str = OWNER,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    marks: Marks | None = None,
    log: Callable[[str], None] | None = None,
) -> Database:
    """Open one private table (a file, a glob, a frame), with public ``tables`` beside it, or a ``hubbub.toml``."""
    chosen = limits or Limits(max_groups=max_groups, max_rows=max_rows)
    engine = DuckDB(limits=chosen, log=log)
    try:
        if _is_policy(data):
            policy = with_enforced(read_policy(data, describe=lambda source: schema_of(engine, source)), data)
            engine.limits = policy.limits
        else:
            if unit is None or budget is None:
                missing = "unit" if unit is None else "budget"
                raise ParameterError(missing, "declared: whose each row is, and what all answers may cost", None)
            source, own = _source(data, name)
            private = single_table(
                name=own,
                source=source,
                schema=schema_of(engine, source),
                unit=unit,
                bounds=bounds,
                keys=keys,
                types=types,
                nullable=nullable,
                grids=grids,
            )
            public = [_public(engine, table, held) for table, held in (tables or {}).items()]
            policy = Policy(
                account=account,
                budget=budget,
                tables={table.name: table for table in (private, *public)},
                limits=chosen,
                version=version,
            )
        book = ledger if isinstance(ledger, Ledger) else Ledger(os.fspath(_place(ledger, policy, data)), marks=marks)
        return Database(policy, ledger=book, engine=engine, principal=principal)
    except BaseException:
        engine.close()
        raise


def _place(ledger: str | os.PathLike[str] | None, policy: Policy, data: Any) -> str | os.PathLike[str]:
    """What was said, what the policy says, what the environment says; else beside the policy, wherever it is read."""
    found = ledger or policy.ledger or os.environ.get("HUBBUB_LEDGER")
    return found or (Path(data).absolute().parent if _is_policy(data) else Path()) / "hubbub.ledger"


def _is_policy(data: Any) -> bool:
    return isinstance(data, str | os.PathLike) and Path(data).suffix == ".toml"


def _source(data: Any, name: str | None) -> tuple[Source, str]:
    if isinstance(data, str | os.PathLike) or (isinstance(data, list | tuple) and data):
        source = source_of(data, name=name)
        return source, name or source.table or table_name(source.paths[0])
    return Source(format="frame", frame=data), name or "data"


def schema_of(engine: DuckDB, source: Source) -> Sequence[tuple[str, str]]:
    """The names and types that a source declares itself; no value is read for it."""
    place = source.paths[0] if source.paths else "the frame"
    with _before_the_charge(f"The schema of {place} could not be read. Is it {source.format}, and readable?"):
        return engine.describe(source)


@contextmanager
def _before_the_charge(sentence: str) -> Iterator[None]:
    """Here the engine reads what is public, and nothing has been paid: its one error would say too much."""
    try:
        yield
    except EngineError:
        raise PolicyError(sentence) from None


def _public(engine: DuckDB, name: str, data: Any) -> Table:
    source, _ = _source(data, name)
    return single_table(name=name, source=source, schema=schema_of(engine, source), unit=None)


def _vector(cells: Sequence[int]) -> Any:
    fits = all(-_INT64 < cell < _INT64 for cell in cells)
    return np.array(cells, dtype=np.int64 if fits else object)


def _groups(planned: Plan) -> str:
    """A short name for the groups that an answer is about: they may come from a public table."""
    return digest_of([[str(value) for value in group.values] for group in planned.question.groups])


def _read(stored: str, planned: Plan) -> tuple[tuple[Fraction, Fraction], list[list[int]]]:
    try:
        read = json.loads(stored)
        groups, drawn = read["groups"], (Fraction(read["epsilon"]), Fraction(read["delta"]))
        noisy: list[list[int]] = read["noisy"]
    except (ValueError, KeyError, TypeError) as problem:
        raise LedgerCorrupt("A stored answer cannot be read by this version of Hubbub.") from problem
    if groups != _groups(planned):
        raise PolicyError(
            "This question was answered for other groups: a public table has changed since. Let the owner name a new "
            "version of the data."
        )
    return drawn, noisy
