"""From text to a syntax tree, with every limit checked before the parser sees it."""

import logging
import re
import unicodedata

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from hubbub.errors import NotAllowed, NotSql, QueryError, TooHeavy
from hubbub.query.read.text.dialect import Spoken

MOST_CHARACTERS = 50_000
MOST_DEPTH = 30
"""Brackets within brackets: the parser takes many calls for each, and must not run out of stack."""
MOST_LEVELS = 180
MOST_NODES = 10_000

# What cannot be asked is refused below; the parser need not log a question that it only half knows.
logging.getLogger("sqlglot").addFilter(lambda record: "unsupported syntax" not in record.getMessage())

_CARET_BEFORE = 60
_CARET_AFTER = 40

# Quoted text and comments, in which brackets do not nest; a quote that is never closed runs to the end.
SKIPPED = re.compile(r"'(?:[^']|'')*(?:'|\Z)|\"(?:[^\"]|\"\")*(?:\"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


def parse_select(text: str) -> exp.Select:
    """One SELECT statement, or an error that says why not."""
    _check_text(text)
    try:
        statements = sqlglot.parse(text, read=Spoken)
    except (ParseError, TokenError) as problem:
        raise _not_sql(text, problem) from None
    except RecursionError:
        raise TooHeavy("The question nests too deeply. Split it.") from None
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError):
        raise NotSql("This could not be read as SQL. Write one SELECT statement.") from None
    found = [statement for statement in statements if statement is not None]
    if not found:
        raise NotSql("There is no question. Write one SELECT statement.")
    if len(found) > 1:
        raise NotAllowed("There are several statements. Ask one question at a time.")
    (tree,) = found
    if not isinstance(tree, exp.Select):
        raise NotAllowed(f"{_name(tree, text)} is not a question that can be asked. Write one SELECT statement.")
    _check_size(tree)
    return tree


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise NotSql(f"A question must be text. Got {type(text).__name__} instead.")
    if len(text) > MOST_CHARACTERS:
        raise TooHeavy(f"The question has {len(text):,} characters. Write at most {MOST_CHARACTERS:,}.")
    for place, character in enumerate(text):
        if unicodedata.category(character) in {"Cc", "Cs", "Cn"} and character not in "\t\n\r":
            raise NotSql(f"Character {place + 1} of the question is not text. Remove it.")
    depth = deepest = 0
    for character in SKIPPED.sub(" ", text):
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(character, 0)
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        raise TooHeavy(f"The question nests {deepest:,} brackets. Nest at most {MOST_DEPTH}.")


def _check_size(tree: exp.Expr) -> None:
    """Long chains nest too; what walks the tree later must not run out of stack."""
    level: list[exp.Expr] = [tree]
    nodes = depth = 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > MOST_NODES or depth > MOST_LEVELS:
            raise TooHeavy("The question is too long or nests too deeply. Split it, or write long lists with IN.")
        level = [child for node in level for child in node.iter_expressions()]


def _not_sql(text: str, problem: ParseError | TokenError) -> NotSql:
    details = problem.errors[0] if isinstance(problem, ParseError) and problem.errors else {}
    last = _offset(text, details.get("line"), details.get("col"))
    first = None if last is None else max(0, last + 1 - len(details.get("highlight") or "x"))
    return NotSql("This could not be read as SQL. Write one SELECT statement." + picture(text, first, last))


def _offset(text: str, line: int | None, column: int | None) -> int | None:
    if line is None or column is None:
        return None
    lines = text.split("\n")
    return min(len(text) - 1, sum(len(one) + 1 for one in lines[: line - 1]) + max(0, column - 1))


def _name(tree: exp.Expr, text: str) -> str:
    """Name the kind of statement: its first word, where that says so."""
    if isinstance(tree, exp.SetOperation | exp.Subquery):
        return type(tree).__name__.upper()
    first = re.search(r"\w+", SKIPPED.sub(" ", text))
    return first.group()[:40].upper() if first else "This"


def picture(text: str, start: int | None, end: int | None) -> str:
    """The line of the question that is meant, with carets under the place; nothing where there is no place."""
    if start is None or end is None or not 0 <= start < len(text):
        return ""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    line = text[first : len(text) if last < 0 else last].expandtabs(1)
    begin, many = start - first, max(1, min(end, first + len(line) - 1) - start + 1)
    cut = max(0, begin - _CARET_BEFORE)
    shown = line[cut : begin + many + _CARET_AFTER]
    return f"\n    {'…' if cut else ''}{shown}\n    {' ' * (begin - cut + bool(cut))}{'^' * many}"


def place_of(node: exp.Expr) -> tuple[int | None, int | None]:
    """Find where a part of the question stands in its text."""
    marks = [child.meta for child in node.walk() if "start" in child.meta]
    if not marks:
        return None, None
    return min(mark["start"] for mark in marks), max(mark["end"] for mark in marks)


def at(error: QueryError, node: exp.Expr, text: str) -> QueryError:
    """The same error with a caret at its place, unless it has one."""
    start, end = place_of(node)
    if start is None or "start" in error.operands:
        return error
    return type(error)(error.message + picture(text, start, end), **error.operands, start=start, end=end)
