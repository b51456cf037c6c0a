"""Paths to the unit that tables could have, out of foreign keys or names of columns: drafts, for the owner to confirm.

No row is read for them. Whether a key is unique, without which no path goes by it, is for ``hubbub check`` to see.
"""

import re
from collections.abc import Mapping, Sequence

from hubbub.policy.paths import PathStep

_KEY = re.compile(r".*(?:(?:^|_)(?:id|key|no|nr|num|number|uuid|code)|[a-z](?:Id|ID|Key|No))", re.DOTALL)
"""Names of columns that look like keys: order_id, OrderID, key, invoice_no."""


def find_steps(
    columns: Mapping[str, Sequence[str]],
    units: Mapping[str, str],
    *,
    foreign: Mapping[str, Sequence[PathStep]] | None = None,
) -> dict[str, tuple[PathStep, ...]]:
    """Return for tables without a unit the steps that could lead to it; ``units`` are the tables that name theirs.

    A table leads to those that name the unit first, then to those that lead there themselves. ``foreign`` are the
    foreign keys of tables whose database knows them: names decide nothing there.
    """
    known = foreign or {}
    steps: dict[str, tuple[PathStep, ...]] = {}
    near, rest = dict.fromkeys(units), [table for table in columns if table not in units]
    while near:
        reached = {}
        for table in rest:
            shared = (
                PathStep(column=column, table=target, key=key)
                for target in near
                for column, key in _shared(columns[table], columns[target])
            )
            leads = [step for step in known[table] if step.table in near] if table in known else shared
            found = [step for step in leads if step.key.lower() != units.get(step.table, "").lower()]
            if found:
                reached[table] = tuple(found)
        steps |= reached
        near, rest = dict.fromkeys(reached), [table for table in rest if table not in reached]
    return steps


def _shared(own: Sequence[str], others: Sequence[str]) -> list[tuple[str, str]]:
    """Pair the columns of two tables that have one name, and look like keys."""
    named = {column.lower(): column for column in others}
    return [(column, named[column.lower()]) for column in own if column.lower() in named and _KEY.fullmatch(column)]


def write_step(step: PathStep) -> str:
    """Write a step as a policy file does."""
    from hubbub.policy.files.toml_text import text

    key = "" if step.key == step.column else f", key = {text(step.key)}"
    return f"unit = {{ through = {text(step.column)}, to = {text(step.table)}{key} }}"
