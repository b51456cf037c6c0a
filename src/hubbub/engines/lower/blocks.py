"""Rows dealt out to blocks, each unit's all to one: what sample-and-aggregate runs its programs on.

A unit's block is a hash of the unit under fresh secret numbers, and of nothing else. Within a block rows are in the
order of their values, so that a block's content is a function of the units in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.engines.lower.relations import Lowering, Origins
from hubbub.engines.lower.scalars import lower
from hubbub.engines.lower.unit_operations import UNIT
from hubbub.engines.nodes.queries import Lowered
from hubbub.engines.nodes.scalars import Scalar, Tag
from hubbub.engines.nodes.words import alias, cast, hash_keyed, infix, name, number, select, within
from hubbub.errors import ParameterError
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Table
from hubbub.query.expression import Expression
from hubbub.query.ops import Relation, Scan, below

MOST_BLOCKS = 1 << 16

Rows = dict[str, tuple[str, list[Any]]]
"""Columns: their type, and their values."""


def statement(
    relation: Relation,
    columns: Sequence[tuple[str, Expression]],
    tables: Mapping[str, Table],
    origins: Origins,
    *,
    blocks: int,
) -> Lowered:
    """Give every row the number of its unit's block, block after block."""
    if not 1 <= blocks <= MOST_BLOCKS:
        raise ParameterError("blocks", f"between 1 and {MOST_BLOCKS:,}", blocks)
    rows, names = Lowering(tables, origins).relation(relation)
    block = cast(infix("%", hash_keyed(Tag.BLOCK, name(UNIT)), cast(number(blocks), "uint64")), "int32")
    made = [alias(_show(lower(one, names), one), f"v{place}") for place, (_, one) in enumerate(columns)]
    dealt = select(within(rows), alias(block, "block"), *made)
    order = [name("block"), *(name(f"v{place}") for place in range(len(columns)))]
    return Lowered(select(within(dealt), *order, order=order), secrets=2)


def _show(value: Scalar, expression: Expression) -> Scalar:
    """Show a value as it can travel: what JSON has no word for, as text."""
    wide = expression.kind.type is Type.INTEGER and expression.kind.wide
    if wide:
        return cast(value, "real")
    return cast(value, "text") if expression.kind.type in {Type.DATE, Type.TIMESTAMP} else value


def dealt(columns: Sequence[tuple[str, Expression]], rows: Sequence[Sequence[Any]], *, blocks: int) -> list[Rows]:
    """Deal rows out to their blocks, by columns; blocks that got none are empty."""
    found: list[Rows] = [{called: (_type(one), []) for called, one in columns} for _ in range(blocks)]
    for place, *values in rows:
        for (called, _), value in zip(columns, values, strict=True):
            found[place][called][1].append(value)
    return found


def _type(expression: Expression) -> str:
    kind = expression.kind
    return "real" if kind.type is Type.INTEGER and kind.wide else kind.type.value


def make_up_rows(columns: Sequence[tuple[str, Expression]], *, many: int = 32) -> Rows:
    """Make up rows that nobody has, for a rehearsal."""
    values: dict[Type, list[Any]] = {
        Type.BOOLEAN: [place % 2 == 0 for place in range(many)],
        Type.INTEGER: [place * 7 % 11 for place in range(many)],
        Type.REAL: [place * 0.37 % 1 for place in range(many)],
        Type.TEXT: [f"text {place % 5}" for place in range(many)],
        Type.DATE: [f"2000-01-{1 + place % 28:02}" for place in range(many)],
        Type.TIMESTAMP: [f"2000-01-{1 + place % 28:02} 12:00:00" for place in range(many)],
    }
    return {called: (_type(one), list(values[one.kind.type])) for called, one in columns}


def private(relation: Relation) -> bool:
    """Return whether rows belong to units."""
    return relation.unit is not None if isinstance(relation, Scan) else private(below(relation)[0])
