"""Subjects that are asked about tables made up from a policy: how neighbours are found, and how a person reads them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hubbub.audit.chance import Chance
from hubbub.audit.subject import Pair
from hubbub.policy.tables import Policy
from hubbub.query.ops import Relation, Scan, below
from hubbub.query.plan.plan import Plan
from hubbub.testing.made_up import Data, Part, Schema

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


class OfTables:
    """Databases that differ in the rows of one unit: the worst that are known first, then others."""

    _schema: Schema

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        """See audit.subject."""
        for pair in self._schema.pairs(chance):
            yield self._register(pair)

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        """See audit.subject."""
        for _ in range(8):
            own = self._schema.changed(pair.x.mine, chance)
            if own is not None:
                made = replace(_change(pair, mine=own), about=f"near: {pair.about.removeprefix('near: ')}")
                return self._register(made)
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """See audit.subject."""
        if any(pair.x.others.values()) and any(len(rows) > 1 for rows in pair.x.mine.values()):
            nobody = dict.fromkeys(pair.x.others, ())
            for mine in self._schema.few(pair.x.mine):
                yield self._register(_change(pair, others=nobody, mine=mine))
        for way in (fewer, self._schema.simpler):
            for others in way(pair.x.others):
                yield self._register(_change(pair, others=others))
            for mine in way(pair.x.mine):
                yield self._register(_change(pair, mine=mine))
            for instead in way(pair.y.mine):
                yield self._register(_change(pair, instead=instead))

    def _register(self, pair: Pair) -> Pair:
        """Register the pair, where both sides must know each other."""
        return pair


def fewer(part: Part) -> Iterator[Part]:
    """Fewer rows: none, one half, every second one, then all but a few."""
    if not any(part.values()):
        return
    yield dict.fromkeys(part, ())
    for table, rows in part.items():
        sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, 128) if size <= len(rows)]
        for pieces in sizes[1:3]:
            step = -(-len(rows) // pieces)
            for at in range(pieces):
                yield {**part, table: rows[at * step : (at + 1) * step]}
                yield {**part, table: rows[at::pieces]}
        for pieces in dict.fromkeys([*sizes, min(len(rows), 24)]):
            step = -(-len(rows) // pieces) if rows else 1
            for at in range(0, len(rows), step):
                yield {**part, table: (*rows[:at], *rows[at + step :])}


def _change(pair: Pair, *, others: Part | None = None, mine: Part | None = None, instead: Part | None = None) -> Pair:
    rest = pair.x.others if others is None else others
    x = Data(others=rest, mine=pair.x.mine if mine is None else mine)
    y = Data(others=rest, mine=pair.y.mine if instead is None else instead)
    return Pair(x=x, y=y, about=pair.about)
