"""Text in place of nodes, for faults that no node can say, and nodes as DuckDB's text. For tests alone."""

from dataclasses import dataclass

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.dialects.duckdb import DUCKDB
from hubbub.engines.dialects.printer import FORMS, Printer, print_node, print_statement
from hubbub.engines.nodes.queries import Lowered, Query, RowSource
from hubbub.engines.nodes.scalars import Node, Scalar


@dataclass(frozen=True, slots=True)
class Raw(Scalar, Query, RowSource):
    """Text, with nodes in it."""

    parts: tuple[str | Node, ...]


def raw(*parts: str | Node) -> Raw:
    return Raw(parts)


def _print(printer: Printer, node: Raw) -> str:
    return "".join(part if isinstance(part, str) else printer.say(part) for part in node.parts)


FORMS[Raw] = _print


def sql(node: Node) -> str:
    """A node in DuckDB's words."""
    return print_node(node, DUCKDB)


def printed(lowered: Lowered) -> SqlStatement:
    """A statement in DuckDB's words."""
    return print_statement(lowered, DUCKDB)
