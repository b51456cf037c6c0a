"""Opening data: a file, a glob, a frame or a policy, with the facts that the owner's check saw hold.

It is the owner's, like the policy itself: whoever can change one could change the other. A policy whose declarations or
version differ from what was checked is not covered, nor is a file that was written to since (``policy.stamps``), and
everything is bounded as before. What is covered is believed for the files as they are stamped when the data is opened,
and checked again at each read (``engines.held``).
"""

import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.owner_check import OwnerReport
from hubbub.engines.public import before_the_charge
from hubbub.errors import ParameterError
from hubbub.ledger import OWNER, Ledger, Marks
from hubbub.parameters import Real, positive
from hubbub.policy.build import single_table
from hubbub.policy.files.read import read_policy
from hubbub.policy.in_python import Declarations, PrivateTable, merge_declarations, warn_of_old, with_keys_seen
from hubbub.policy.paths import PathStep
from hubbub.policy.servers import is_server, postgres
from hubbub.policy.sources import SNAPSHOT, source_of, table_name
from hubbub.policy.stamps import Stamp, stamp_at_rest, stamp_of
from hubbub.policy.tables import Limits, Policy, Table, TableSource
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database
from hubbub.session.engines import EngineRoom

FORMAT = 2
"""Records of format 1 had sizes and times alone, and no write-ahead logs: they are not believed. Check again."""


def place(policy: str | os.PathLike[str]) -> Path:
    """Return the path of a policy file's record."""
    path = Path(policy)
    return path.with_name(path.name + ".checked")


def stamps(policy: Policy) -> dict[str, Stamp]:
    """Stamp the files of each table with something declared unique; a table that is being written to has no stamp.

    Where rows find their unit in other tables, it is looked up in the files of these too. What was seen of a server's
    rows is kept for nobody: they may be others at any time, and constraints say what holds of them.
    """
    taken = {
        table.name: stamp_at_rest(lambda table=table: _of(table, policy))  # type: ignore[misc]
        for table in policy.tables.values()
        if (table.unique or any(column.unique for column in table.columns))
        and not any(policy.tables[name].source.format in SNAPSHOT for name in _with_path(table))
    }
    return {name: stamp for name, stamp in taken.items() if stamp is not None}


def _of(table: Table, policy: Policy, take: Callable[[TableSource], Stamp] = stamp_of) -> Stamp:
    stamp = take(table.source)
    for step in table.path:
        stamp |= take(policy.tables[step.table].source)
    return stamp


def _with_path(table: Table) -> tuple[str, ...]:
    """Name a table and those in which its rows find their unit."""
    return (table.name, *(step.table for step in table.path))


def record(path: str | os.PathLike[str], report: OwnerReport, *, before: dict[str, Stamp], read: Stamp) -> None:
    """Keep what was seen of files that were like this before it was looked at, and still are, and were ``read``.

    What does not hold is not in it.
    """
    still = {table: stamp.as_json() for table, stamp in before.items() if stamp.holds() and stamp.agrees(read)}
    content = {
        "format": FORMAT,
        "fingerprint": report.fingerprint,
        "version": report.version,
        "unique": {table: still[table] for table in sorted(report.unique) if table in still},
        "keys": [[table, column, still[table]] for table, column in sorted(report.keys) if table in still],
    }
    kept = place(path)
    fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        fresh.replace(kept)
    finally:
        fresh.unlink(missing_ok=True)


def with_enforced(
    policy: Policy,
    path: str | os.PathLike[str],
    *,
    at_rest: Callable[[Table], Stamp | None],
    converted: Callable[[TableSource], Stamp],
) -> Policy:
    """Return the policy with what its record says, if the record is about these declarations, version and files.

    ``at_rest`` stamps what the engine reads for a table. That is done first: if the files are then still what the
    record says, they were so all the time; a path that led elsewhere meanwhile was stamped as another file.
    ``converted`` is the state of text from which the engine has made what it
    reads, which must be the same: it was made before the record was looked at.
    """
    try:
        content = json.loads(place(path).read_text(encoding="utf-8"))
        about = (content["format"], content["fingerprint"], content["version"])
        if about != (FORMAT, policy.fingerprint, policy.version):
            return policy
        facts: list[tuple[str, str | None, Stamp]] = [
            *((str(table), None, Stamp.of_json(files)) for table, files in content["unique"].items()),
            *((str(table), str(column), Stamp.of_json(files)) for table, column, files in content["keys"]),
        ]
        names = {name for table, _, _ in facts for name in _with_path(policy.tables[table])}
        read = {name: stamp for name in names if (stamp := at_rest(policy.tables[name])) is not None}
        now = stamps(policy)
        holds = [
            (table, column)
            for table, column, files in facts
            if now.get(table) == files == _of(policy.tables[table], policy, converted)
            and all(name in read and files.agrees(read[name]) for name in _with_path(policy.tables[table]))
        ]
        unique = frozenset(table for table, column in holds if column is None)
        keys = frozenset((table, column) for table, column in holds if column is not None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return policy
    return replace(policy, enforced=unique, enforced_keys=keys, seen=read)


_UNREAD = (
    "A table with a unique column could not be read, or not in time. Is it what was declared? If it is large, give it "
    "more time: limits=hubbub.Limits(seconds=600)."
)

_IN_LIMITS = {field: f"limits=hubbub.Limits({field}=…)" for field in ("max_groups", "max_rows", "max_total_rows")}


def open(
    data: Any,
    *,
    unit: str | PathStep | None = None,
    budget: Budget | Real | None = None,
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
    """Open one private table (a file, a glob, a frame, a table of a database), or a ``hubbub.toml``.

    ``unit`` names the column of the privacy unit, ``budget`` what all answers together may cost (a number is its ε),
    ``limits`` how much of a unit counts and how much work a question may make. ``bounds`` and ``keys`` say the most
    common things of columns; ``columns`` says all that a policy file does: ``{"day": "date", "cost": {"grid": 1}}``. A
    column that is declared ``unique``, for paths to the unit and joins, is looked at here, and refused if rows share a
    value of it.

    ``tables`` are beside it, by name: public, unless they are said to be ``private(…)``.

    A table of a PostgreSQL database is ``hubbub.postgres(url, table="stays")``; the URL alone stands for the table of
    schema public that is called by its ``name`` here.

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
    engines = EngineRoom(limits=chosen, log=log, progress=progress)
    opening = secrets.token_hex(16) if version is None else None
    book = None
    try:
        if _is_policy(data):
            declared = read_policy(data, describe=engines.describe)
            book = _book(ledger, declared, data, marks)
            book.check_grant(declared.account, principal)
            engine, choice = engines.settle(declared.tables, declared.limits)
            if isinstance(engine, DuckDB):  # a server's rows are other ones at any time: no record is about them
                declared = with_enforced(declared, data, at_rest=engine.stamp_at_rest, converted=engine.stamp_source)
            policy = engines.with_constraints(declared, engine)
        else:
            if unit is None or budget is None:
                missing = "unit" if unit is None else "budget"
                raise ParameterError(missing, "declared: whose each row is, and what all answers may cost", None)
            source, own = _source(data, name, opening)
            private = single_table(
                name=own,
                source=source,
                schema=engines.describe(source),
                unit=unit,
                **declarations,
            )
            beside = [_beside(engines, other, held, opening) for other, held in (tables or {}).items()]
            policy = Policy(
                account=account,
                budget=budget if isinstance(budget, Budget) else Budget(positive("budget", budget)),
                tables={one.name: one for one in (private, *beside)},
                limits=chosen,
                version="1" if version is None else version,
            )
            book = _book(ledger, policy, data, marks)
            book.check_grant(account, principal)  # before anything private is read
            engine, choice = engines.settle(policy.tables, chosen)
            with before_the_charge(_UNREAD):
                policy = with_keys_seen(policy, engine.count_repeated, engine.stamp_at_rest)
        if principal == OWNER:  # files that have an account under another name are warned of
            book.open_account(policy.account, policy.budget, sources=policy.private_sources)
        return Database(policy, ledger=book, engine=engine, principal=principal, log=log, where=choice.sentence)
    except BaseException:
        engines.close()
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
    return isinstance(data, str | os.PathLike) and not is_server(data) and Path(data).suffix == ".toml"


def _source(data: Any, name: str | None, opening: str | None) -> tuple[TableSource, str]:
    if is_server(data):
        if name is None:
            named = 'a table of the database: hubbub.postgres(url, table="stays"), or a policy with a path and a table'
            raise ParameterError("data", named, "postgresql://…")
        data = postgres(data, table=name)
    if isinstance(data, TableSource):
        return data, name or data.table or "data"
    if isinstance(data, str | os.PathLike) or (isinstance(data, list | tuple) and data):
        source = source_of(data, name=name)
        return source, name or source.table or table_name(source.paths[0])
    return TableSource(format="frame", frame=data, opening=opening), name or "data"


def _beside(engines: EngineRoom, name: str, held: Any, opening: str | None) -> Table:
    source, _ = _source(held.data if isinstance(held, PrivateTable) else held, name, opening)
    schema = engines.describe(source)
    if isinstance(held, PrivateTable):
        return held.table(name=name, source=source, schema=schema)
    return single_table(name=name, source=source, schema=schema, unit=None)
