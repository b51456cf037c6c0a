"""Opening data: a file, a glob or a frame with what is declared beside it, or a policy that says all of it."""

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.public import before_the_charge, schema_of
from hubbub.errors import ParameterError
from hubbub.ledger import OWNER, Ledger, Marks
from hubbub.policy.beside import PrivateTable, with_keys_seen
from hubbub.policy.build import single_table
from hubbub.policy.columns import Declarations, merge_declarations, warn_of_old
from hubbub.policy.files.read import read_policy
from hubbub.policy.paths import PathStep
from hubbub.policy.sources import source_of, table_name
from hubbub.policy.tables import Limits, Policy, Table, TableSource
from hubbub.privacy.budget import Budget
from hubbub.session.checked import with_enforced
from hubbub.session.database import Database

_UNREAD = (
    "A table with a unique column could not be read, or not in time. Is it what was declared? If it is large, give it "
    "more time: limits=hubbub.Limits(seconds=600)."
)

_IN_LIMITS = {field: f"limits=hubbub.Limits({field}=…)" for field in ("max_groups", "max_rows", "max_total_rows")}


def open(
    data: Any,
    *,
    unit: str | PathStep | None = None,
    budget: Budget | None = None,
    bounds: Mapping[str, object] | None = None,
    keys: Mapping[str, object] | None = None,
    columns: Declarations | None = None,
    limits: Limits | None = None,
    tables: Mapping[str, Any] | None = None,
    name: str | None = None,
    account: str = "people",
    version: str | None = None,
    principal: str = OWNER,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    marks: Marks | None = None,
    log: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **old: Any,
) -> Database:
    """Open one private table (a file, a glob, a frame), with ``tables`` beside it, or a ``hubbub.toml``.

    ``unit`` names the column of the privacy unit, ``budget`` what all answers together may cost, ``limits`` how much of
    a unit counts and how much work a question may make. ``bounds`` and ``keys`` say the most common things of columns;
    ``columns`` says all that a policy file does: ``{"day": "date", "cost": {"grid": 1}}``. A column that is
    declared ``unique``, for paths to the unit and joins, is looked at here, and refused if rows share a value of it.

    Tables beside it are public, unless they are said to be ``private(…)``.

    Text files (CSV, JSON) are converted to Parquet here, once; ``log`` is told what was left out of them, and
    ``progress`` how many bytes of a file were read, and how many there are.

    ``version`` is your name for the state of the data ("1" if you give none). Answers and bought facts are found again
    under the same version of the same files. A frame without a version shares them with no other opening.
    """
    warn_of_old("open", old, _IN_LIMITS)
    chosen = limits or Limits()
    unsaid = [field for field in _IN_LIMITS if getattr(chosen, field) is None and old.get(field) is not None]
    chosen = replace(chosen, **{field: old[field] for field in unsaid})
    declarations = merge_declarations(columns, bounds=bounds, keys=keys, old=old)
    engine = DuckDB(limits=chosen, log=log, progress=progress)
    opening = secrets.token_hex(16) if version is None else None
    book = None
    try:
        if _is_policy(data):
            declared = read_policy(data, describe=lambda source: schema_of(engine, source))
            policy = with_enforced(declared, data, at_rest=engine.stamp_at_rest, converted=engine.stamp_source)
            engine.limits = policy.limits
        else:
            if unit is None or budget is None:
                missing = "unit" if unit is None else "budget"
                raise ParameterError(missing, "declared: whose each row is, and what all answers may cost", None)
            source, own = _source(data, name, opening)
            private = single_table(
                name=own,
                source=source,
                schema=schema_of(engine, source),
                unit=unit,
                **declarations,
            )
            beside = [_beside(engine, table, held, opening) for table, held in (tables or {}).items()]
            policy = Policy(
                account=account,
                budget=budget,
                tables={table.name: table for table in (private, *beside)},
                limits=chosen,
                version="1" if version is None else version,
            )
            book = _book(ledger, policy, data, marks)
            book.check_grant(account, principal)  # before anything private is read
            with before_the_charge(_UNREAD):
                policy = with_keys_seen(policy, engine.count_repeated, engine.stamp_at_rest)
        book = book or _book(ledger, policy, data, marks)
        return Database(policy, ledger=book, engine=engine, principal=principal, log=log)
    except BaseException:
        engine.close()
        if book is not None and book is not ledger:
            book.close()
        raise


def _book(ledger: str | os.PathLike[str] | Ledger | None, policy: Policy, data: Any, marks: Marks | None) -> Ledger:
    """The ledger that was handed over, or the one that lies where it is said to."""
    return ledger if isinstance(ledger, Ledger) else Ledger(os.fspath(_place(ledger, policy, data)), marks=marks)


def _place(ledger: str | os.PathLike[str] | None, policy: Policy, data: Any) -> str | os.PathLike[str]:
    """Return the given path, the policy's or the environment's; else a file beside the policy, wherever it is read."""
    found = ledger or policy.ledger or os.environ.get("HUBBUB_LEDGER")
    return found or (Path(data).absolute().parent if _is_policy(data) else Path()) / "hubbub.ledger"


def _is_policy(data: Any) -> bool:
    return isinstance(data, str | os.PathLike) and Path(data).suffix == ".toml"


def _source(data: Any, name: str | None, opening: str | None) -> tuple[TableSource, str]:
    if isinstance(data, str | os.PathLike) or (isinstance(data, list | tuple) and data):
        source = source_of(data, name=name)
        return source, name or source.table or table_name(source.paths[0])
    return TableSource(format="frame", frame=data, opening=opening), name or "data"


def _beside(engine: DuckDB, name: str, held: Any, opening: str | None) -> Table:
    source, _ = _source(held.data if isinstance(held, PrivateTable) else held, name, opening)
    schema = schema_of(engine, source)
    if isinstance(held, PrivateTable):
        return held.table(name=name, source=source, schema=schema)
    return single_table(name=name, source=source, schema=schema, unit=None)
