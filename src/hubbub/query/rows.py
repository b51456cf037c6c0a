"""The rows of a query, for what is done with rows behind the wall rather than asked of them (sample-and-aggregate)."""

from hubbub.errors import NotAllowed, NotOwned, QueryError
from hubbub.query.expression import Expression, columns_of
from hubbub.query.ops import Relation
from hubbub.query.prune import pruned
from hubbub.query.reading import Reading
from hubbub.query.scope import Catalogue
from hubbub.query.text import at, parsed


def rows_of(text: str, catalogue: Catalogue) -> tuple[Relation, tuple[tuple[str, Expression], ...]]:
    """A private relation and the columns over it, or a refusal with a caret."""
    tree = parsed(text)
    reading = Reading(catalogue, tree)
    try:
        found = reading.derived(tree, {})
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
    return pruned(found.relation, used), columns
