"""A function as a text of its own: itself, and what it uses of its file, and nothing that it once saw. Or a command.

What a file does when it is run (opening databases, printing) is left out, so that a script can name one of its own
functions. A question about the same function has the same text, whatever else changes in the file.
"""

import ast
import inspect
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The text of a module, and the name of the function in it."""

    text: str
    name: str
    command: tuple[str, ...] = ()
    """A program of the system with its arguments, instead of a function."""

    @classmethod
    def of(cls, function: Callable[..., Any] | Sequence[str]) -> "Program":
        """A function with the imports, functions, classes and assignments of its module that it uses; or a command,
        which gets its rows as CSV and prints its numbers."""
        if not callable(function):
            return cls._of_command(function)
        name = getattr(function, "__qualname__", "")
        if not inspect.isfunction(function) or "." in name or "<" in name:
            raise ParameterError("program", "a function with a name, defined outside of others", function)
        try:
            own = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            raise ParameterError("program", "a function whose source can be found", function) from None
        try:
            module = ast.parse(inspect.getsource(inspect.getmodule(function) or function))
        except (OSError, TypeError, SyntaxError):
            module = ast.parse(own)
        return cls(text=_needed_statements(module, name), name=name)

    @classmethod
    def _of_command(cls, command: Sequence[str]) -> "Program":
        parts = () if isinstance(command, str) else tuple(command)
        if not parts or not all(isinstance(one, str) and "\0" not in one for one in parts):
            raise ParameterError("program", 'a function, or a command such as ["/usr/bin/awk", "…"]', command)
        if not os.path.isabs(parts[0]) or not os.access(parts[0], os.X_OK):
            raise ParameterError("program", "a command by its whole path, which can be run", parts[0])
        return cls(text="\0".join(parts), name=parts[0], command=parts)


def _needed_statements(module: ast.Module, name: str) -> str:
    """The top-level statements that the name needs, and those need, in their order."""
    bound: dict[str, list[ast.stmt]] = {}
    for statement in module.body:
        for one in _binds(statement):
            bound.setdefault(one, []).append(statement)
    wanted, todo = set[int](), [name]
    while todo:
        for statement in bound.pop(todo.pop(), []):
            if id(statement) not in wanted:
                wanted.add(id(statement))
                todo += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    kept = [statement for statement in module.body if id(statement) in wanted or _future(statement)]
    return "\n".join(ast.unparse(statement) for statement in kept) + "\n"


def _binds(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for one in names:
                yield (one.asname or one.name).partition(".")[0]
        case ast.Assign(targets=targets):
            yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            yield name


def _future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
