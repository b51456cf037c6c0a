"""Two neighbouring databases as a person reads them: small tables, with the rows that differ marked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.audit.subject import Pair
from hubbub.policy.tables import Policy
from hubbub.query.ops import Relation, Scan, below
from hubbub.query.plan.plan import Plan

_MOST = 24
"""Rows of a table that are printed; of alike ones, one."""


def print_pair(pair: Pair, *, policy: Policy, public: Mapping[str, Sequence[Any]], plan: Plan) -> str:
    """The question, and its tables on both sides: + stands before rows of x alone, - before those of y alone."""
    asked = f"{plan.question.text}  (ε = {float(plan.epsilon):.6g}"
    first = asked + (f", δ = {float(plan.delta):.6g})" if policy.budget.delta else ")")
    return "\n".join([first, *tables_of(pair, policy=policy, public=public, relation=plan.aggregate.input)])


def tables_of(pair: Pair, *, policy: Policy, public: Mapping[str, Sequence[Any]], relation: Relation) -> list[str]:
    """All private tables, and the public ones that are read."""
    lines: list[str] = []
    for name, table in policy.tables.items():
        columns = [column.name for column in table.columns]
        if table.unit is None:
            if name in _scanned_tables(relation):
                lines += _table(f"{name} (public)", columns, [(" ", row) for row in public[name]])
            continue
        mine = [("+", row) for row in pair.x.mine.get(name, ())] + [("-", row) for row in pair.y.mine.get(name, ())]
        lines += _table(name, columns, [*mine, *((" ", row) for row in pair.x.others.get(name, ()))])
    return lines


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Rows that are alike are one line, with their number behind it."""
    cells = [(mark, tuple(_cell(row[column]) for column in columns)) for mark, row in rows]
    counts = Counter(cells)
    if not counts:
        return [f"{title}: no rows"]
    shown = list(counts)[:_MOST]
    widths = [max(len(column), *(len(row[at]) for _, row in shown)) for at, column in enumerate(columns)]
    lines = [title, "    " + " │ ".join(column.ljust(width) for column, width in zip(columns, widths, strict=True))]
    for mark, row in shown:
        line = " │ ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        times = counts[mark, row]
        lines.append(f"  {mark} {line}{f'  × {times}' if times > 1 else ''}".rstrip())
    left = sum(counts.values()) - sum(counts[one] for one in shown)
    return [*lines, *([f"    … and {left} rows more"] if left else [])]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 32 else text[:31] + "…"


def _scanned_tables(op: Relation) -> set[str]:
    if isinstance(op, Scan):
        return {op.table, *(step.table for step in op.path)}
    return {table for one in below(op) for table in _scanned_tables(one)}
