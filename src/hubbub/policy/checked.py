"""What the owner's check has seen to hold, kept beside the policy: a file that names the declarations and the version.

It is the owner's, like the policy itself: whoever can change one could change the other. A policy whose declarations or
version differ from what was checked is not covered, nor is a file that was written to since (by its size and time), and
everything is bounded as before.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

from hubbub.policy.check import Report
from hubbub.policy.tables import Policy

FORMAT = 1


def place(policy: str | os.PathLike[str]) -> Path:
    """Where the record of a policy file lies."""
    path = Path(policy)
    return path.with_name(path.name + ".checked")


def stamps(policy: Policy) -> dict[str, list[list[str | int]]]:
    """The size and the time of the last change of each file of each table with something declared unique.

    Where rows find their unit in other tables, it is looked up in the files of these too.
    """
    return {
        table.name: [
            [path, (found := os.stat(path)).st_size, found.st_mtime_ns]
            for name in (table.name, *(step.table for step in table.path))
            for path in policy.tables[name].source.paths
        ]
        for table in policy.tables.values()
        if table.unique or any(column.unique for column in table.columns)
    }


def record(path: str | os.PathLike[str], report: Report, *, before: dict[str, list[list[str | int]]]) -> None:
    """Keep what was seen of files that were like this before it was looked at. What does not hold is not in it."""
    content = {
        "format": FORMAT,
        "fingerprint": report.fingerprint,
        "version": report.version,
        "unique": {table: before[table] for table in sorted(report.unique)},
        "keys": [[table, column, before[table]] for table, column in sorted(report.keys)],
    }
    kept = place(path)
    fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        fresh.replace(kept)
    finally:
        fresh.unlink(missing_ok=True)


def with_enforced(policy: Policy, path: str | os.PathLike[str]) -> Policy:
    """The policy with what its record says, if the record is about these declarations and this version."""
    try:
        content = json.loads(place(path).read_text(encoding="utf-8"))
        about = (content["format"], content["fingerprint"], content["version"])
        if about != (FORMAT, policy.fingerprint, policy.version):
            return policy
        now = stamps(policy)
        unique = frozenset(
            str(table) for table, files in content["unique"].items() if files and files == now.get(table)
        )
        keys = frozenset(
            (str(table), str(column))
            for table, column, files in content.get("keys", [])
            if files and files == now.get(table)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return policy
    return replace(policy, enforced=unique, enforced_keys=keys)
