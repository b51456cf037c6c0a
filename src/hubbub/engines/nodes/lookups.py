"""Values that are looked up for each group, as a join with the groups: for engines that would search all for each.

    SELECT code, …, (SELECT found FROM t WHERE t.of IS code) FROM … GROUP BY code

is the same as a left join of the groups with t, since t has one row for each group at most.
"""

from dataclasses import replace

from hubbub.engines.nodes.queries import Join, RowSource, Select, Subquery, TableName
from hubbub.engines.nodes.scalars import Alias, Apply, Cast, Infix, Name, Scalar, ScalarQuery

_GROUPS = "groups"


def join_lookups(node: Select) -> Select:
    """Return the query with its lookups joined; itself, where it has none."""
    if len(node.by) != 1:
        return node
    inner: list[Scalar] = [Alias(node.by[0], "key")]
    shown: list[Scalar] = []
    tables: dict[str, None] = {}
    for place, piece in enumerate(node.shown):
        joined = _join(piece, tables)
        if joined is None:
            inner.append(Alias(piece.piece if isinstance(piece, Alias) else piece, f"shown{place}"))
            joined = Name(f"shown{place}", _GROUPS)
        shown.append(joined)
    source: RowSource = Subquery(replace(node, shown=tuple(inner)), _GROUPS)
    for table in tables:
        same = Infix("same", (Name("of", table), Name("key", _GROUPS)))
        source = Join(source, TableName((table,)), (same,), "left")
    return Select(source, tuple(shown)) if tables else node


def _join(piece: Scalar, tables: dict[str, None]) -> Scalar | None:
    """Return what a lookup by the group is where its table is joined; None for anything else."""
    match piece:
        case Cast():
            inside = _join(piece.piece, tables)
            return None if inside is None else replace(piece, piece=inside)
        case Apply(function="coalesce", arguments=(first, *rest)):
            inside = _join(first, tables)
            return None if inside is None else replace(piece, arguments=(inside, *rest))
        case ScalarQuery(
            query=Select(
                source=TableName(parts=(table,)),
                shown=(Name(column=value),),
                where=(Infix(operator="same", pieces=(Name(column="of", of=of), Name())),),
            )
        ) if of == table:
            tables[table] = None
            return Name(value, table)
    return None
