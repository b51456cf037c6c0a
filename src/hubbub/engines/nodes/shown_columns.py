"""The names of the columns that a query shows, for dialects that have to list them."""

from collections.abc import Mapping

from hubbub.engines.nodes.queries import Join, Query, RowSource, Select, Subquery, TableName, UnionAll, WithOnce
from hubbub.engines.nodes.scalars import Alias, Name, Star
from hubbub.errors import NotAllowed

Queries = Mapping[str, tuple[str, ...]]
"""The columns of queries that were made once, by their names, where they can be seen."""


def list_columns(query: Query, once: Queries) -> tuple[str, ...]:
    """Name the columns of a query, in order."""
    match query:
        case Select(source=source, shown=shown):
            return tuple(column for one in shown for column in _name_shown(one, source, once))
        case UnionAll(queries=queries):
            return list_columns(queries[0], once)
        case WithOnce(query=rows, called=called, then=then):
            return list_columns(then, {**once, called: list_columns(rows, once)})
    raise NotAllowed("The columns of a part of this question cannot be listed. Ask without it.")


def list_source(source: RowSource | None, once: Queries) -> tuple[str, ...]:
    """Name the columns of what a query selects from."""
    match source:
        case None:
            return ()
        case Subquery(query=query, columns=columns):
            return columns or list_columns(query, once)
        case TableName(parts=(called,)) if called in once:
            return once[called]
        case Join(left=left, right=right, form=form):
            return list_source(left, once) + (() if form in {"semi", "anti"} else list_source(right, once))
    raise NotAllowed("The columns of a table in this question cannot be listed. Ask without it.")


def _name_shown(one: object, source: RowSource | None, once: Queries) -> tuple[str, ...]:
    match one:
        case Alias(called=called):
            return (called,)
        case Name(column=column):
            return (column,)
        case Star(of=None, but=but):
            return tuple(column for column in list_source(source, once) if column not in but)
        case Star(of=str() as relation):
            return list_source(_find(relation, source), once)
    return ("?",)


def _find(called: str, source: RowSource | None) -> RowSource | None:
    """Find a relation by the name that it has in a query."""
    match source:
        case Subquery(called=own) if own == called:
            return source
        case TableName(parts=parts, called=own) if called == (own or parts[-1]):
            return source
        case Join(left=left, right=right):
            return _find(called, left) or _find(called, right)
    return None
