"""Facts that the owner's check saw hold, kept beside the policy: a file that names the declarations and the version.

It is the owner's, like the policy itself: whoever can change one could change the other. A policy whose declarations or
version differ from what was checked is not covered, nor is a file that was written to since (``policy.stamps``), and
everything is bounded as before. What is covered is believed for the files as they are stamped when the data is opened,
and checked again at each read (``engines.held``).
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hubbub.engines.duckdb.owner_check import OwnerReport
from hubbub.policy.stamps import Stamp, stamp_at_rest, stamp_of
from hubbub.policy.tables import Policy, Table, TableSource

FORMAT = 2
"""Records of format 1 had sizes and times alone, and no write-ahead logs: they are not believed. Check again."""


def place(policy: str | os.PathLike[str]) -> Path:
    """Return the path of a policy file's record."""
    path = Path(policy)
    return path.with_name(path.name + ".checked")


def stamps(policy: Policy) -> dict[str, Stamp]:
    """Stamp the files of each table with something declared unique; a table that is being written to has no stamp.

    Where rows find their unit in other tables, it is looked up in the files of these too.
    """
    taken = {
        table.name: stamp_at_rest(lambda table=table: _of(table, policy))  # type: ignore[misc]
        for table in policy.tables.values()
        if table.unique or any(column.unique for column in table.columns)
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
