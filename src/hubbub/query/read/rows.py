"""The rows of a query, for what is done with rows behind the wall rather than asked of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hubbub.errors import NotAllowed, NotOwned, QueryError
from hubbub.query.check.prune import prune
from hubbub.query.check.shape import ColumnFacts, shape
from hubbub.query.expression import Expression, columns_of
from hubbub.query.ops import Relation
from hubbub.query.read.from_clause import QuestionReader
from hubbub.query.read.scalars import read
from hubbub.query.read.scope import Catalogue
from hubbub.query.read.text.sql_text import at, parse_select


def rows_of(text: str, catalogue: Catalogue) -> tuple[Relation, tuple[tuple[str, Expression], ...]]:
    """A private relation and the columns over it, or a refusal with a caret."""
    tree = parse_select(text)
    reading = QuestionReader(catalogue, tree)
    try:
        found = reading.derive(tree, {})
        if found.unit is None:
            raise NotOwned("All tables of the query are public. Name a private one, or read them without Hubbub.")
        if len({output.name.lower() for output in found.outputs}) != len(found.outputs):
            raise NotAllowed("Two columns of the query have one name. Give each its own: SELECT x AS y.")
    except QueryError as problem:
        raise at(problem, reading.node, text) from None
    except RecursionError:
        raise NotAllowed("The query nests too deeply. Split it.") from None
    columns = tuple((output.name, output.expression) for output in found.outputs)
    used = frozenset(name for _, expression in columns for name in columns_of(expression))
    return prune(found.relation, used), columns


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValues:
    """Expressions over the rows of a private relation, and what is public about the columns that they look at."""

    text: str
    """What the rows and expressions are known as: the question that counts each of them."""
    relation: Relation
    values: tuple[Expression, ...]
    columns: Mapping[str, ColumnFacts]


def read_values(written: Sequence[str], select: Callable[[str], str], catalogue: Catalogue) -> RowValues:
    """Read expressions over rows; ``select`` writes the query for a list of them. Nothing else may stand in either."""
    for one in written:
        _read_listed([one], select, catalogue)
    counted = parse_select(select(", ".join(f"count({one})" for one in written)))
    text = counted.sql(dialect="duckdb", normalize=True, comments=False, copy=False)
    return replace(_read_listed(written, select, catalogue), text=text)


def _read_listed(written: Sequence[str], select: Callable[[str], str], catalogue: Catalogue) -> RowValues:
    text = select(", ".join(f"({one})" for one in written))
    tree = parse_select(text)
    if {name for name, value in tree.args.items() if value} - {"expressions", "from_", "joins", "where"}:
        raise NotAllowed("where= is one condition, and an axis one expression.")
    if len(tree.expressions) != len(written):
        raise NotAllowed("where= is one condition, and an axis one expression.")
    reading = QuestionReader(catalogue, tree)
    try:
        rows = reading.rows(tree, {})
        if rows.unit is None:
            raise NotOwned("All tables of the question are public. Name a private one, or read them without Hubbub.")
        values = []
        for node, one in zip(tree.expressions, written, strict=True):
            reading.look(node)
            values.append(read(node, rows.names))
            if not columns_of(values[-1]):
                raise NotAllowed(f"An axis is a column or an expression of columns; {one} is not.")
    except QueryError as problem:
        raise at(problem, reading.node, text) from None
    except RecursionError:
        raise NotAllowed("The question nests too deeply. Split it.") from None
    relation = prune(rows.relation, frozenset(name for value in values for name in columns_of(value)))
    facts, kept = rows.scope.all_facts(), shape(relation)
    known = {name: facts[name] for name in facts if name in kept}
    return RowValues(text=text, relation=relation, values=tuple(values), columns=known)
