"""Printed statements for an owner to read: as they are run, with a line for each parameter."""

import json

from hubbub.engines.dialects.dialect import SqlStatement


def show_statement(statement: SqlStatement) -> str:
    """Write a statement with comments on its parameters: texts, public keys and secret numbers."""
    lines = [f"-- text {place}: {_write(value)}" for place, value in enumerate(statement.texts, 1)]
    for keys in statement.keys:
        lines.append(f"-- table {keys.table} ({keys.type}): {', '.join(map(_write, keys.values))}")
    if statement.secrets:
        lines.append(f"-- and {statement.secrets} secret number{'s' * (statement.secrets > 1)}, drawn for each run")
    return "\n".join([*lines, statement.sql])


def _write(value: str | None) -> str:
    """Write a text on one line."""
    return json.dumps(value, ensure_ascii=False)
