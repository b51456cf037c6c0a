"""The wrong versions of a module: each is one small edit of its text that a privacy bug could look like.

Edits are found on the syntax tree and applied to the source, so that everything else stays as it was written. Left
alone are what cannot change a law or a charge: docstrings, annotations, decorators, what a ``raise`` says and
f-strings (which are messages here).
"""

import ast
import builtins
import copy
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Mod: ast.FloorDiv,
}
_TWINS = {"min": "max", "minimum": "maximum", "floor": "ceil", "any": "all", "ROUND_FLOOR": "ROUND_CEILING"}
_TWINS |= {right: left for left, right in _TWINS.items()}
_CLAMPS = frozenset({"min", "max", "minimum", "maximum"})
_DIRECTIONS = (("_up", "_down"), ("_down", "_up"), ("_above", "_below"), ("_below", "_above"))
_VALIDATORS = frozenset({"rational", "positive", "non_negative", "between", "probability", "whole", "interval"})
_Node = ast.expr | ast.stmt
_IMPORT = re.compile(r"__import__\([^)]*\)\.")
_SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit. ``within``, ``before``, ``after`` and ``turn`` name it even when lines move."""

    module: str
    line: int
    within: str
    span: tuple[int, int]
    """The lines of the innermost function around the edit; (0, 0) for code that runs at import."""
    before: str
    after: str
    turn: int
    """Counts equal edits within one function."""
    source: str
    """The whole mutated module."""

    @property
    def identity(self) -> tuple[str, str, str, str, int]:
        """What the argued list refers to."""
        return self.module, self.within, self.before, self.after, self.turn

    @property
    def digest(self) -> str:
        """Names the mutated text."""
        return hashlib.sha256(f"{self.module}\n{self.source}".encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.module}:{self.line}  {self.before}  →  {self.after}"


@dataclass(frozen=True, slots=True)
class _Scope:
    name: str = "module"
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class _Names:
    """What a module can call: without this, a swapped name that was never imported would die of that alone."""

    helpers: frozenset[str]
    homes: dict[str, str]
    bound: frozenset[str]

    @classmethod
    def of(cls, tree: ast.Module, helpers: frozenset[str]) -> "_Names":
        homes: dict[str, str] = {}
        bound = set(dir(builtins))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                homes |= {alias.asname or alias.name: node.module for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
        return cls(helpers, homes, frozenset(bound | homes.keys()))

    def here(self, name: str, other: str) -> str:
        """``other`` as this module can say it, fetched from where ``name`` came from if need be."""
        if other in self.bound or name not in self.homes:
            return other
        return f"__import__({self.homes[name]!r}, fromlist=[{other!r}]).{other}"


def mutants(module: str, source: str, *, helpers: frozenset[str] = frozenset()) -> list[Mutant]:
    """Every mutant of one module, in the order of its lines.

    ``helpers`` are the names defined anywhere in the package: ``x_rounded_up`` is only swapped for ``x_rounded_down``
    where the other one exists.
    """
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()
    seen: set[str] = {source}
    turns: Counter[tuple[str, str, str]] = Counter()
    found = []
    tree = ast.parse(source)
    names = _Names.of(tree, helpers)
    for node, text, scope in sorted(_walk(tree, _Scope(), names), key=lambda edit: _position(edit[0])):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        mutated = (raw[:begin] + text.encode() + raw[end:]).decode()
        if mutated in seen:
            continue
        seen.add(mutated)
        compile(mutated, module, "exec", dont_inherit=True)
        before, after = " ".join(ast.unparse(node).split()), _IMPORT.sub("", " ".join(text.split()))
        turns[scope.name, before, after] += 1
        turn = turns[scope.name, before, after]
        found.append(
            Mutant(
                module=module,
                line=node.lineno,
                within=scope.name,
                span=scope.span,
                before=before,
                after=after,
                turn=turn,
                source=mutated,
            )
        )
    return found


def _position(node: _Node) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _walk(node: ast.AST, scope: _Scope, names: _Names) -> Iterator[tuple[_Node, str, _Scope]]:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.IfExp) and _is_text(node.body) and _is_text(node.orelse):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        name = node.name if scope.name == "module" else f"{scope.name}.{node.name}"
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        is_class = isinstance(node, ast.ClassDef)
        scope = _Scope(name, scope.span if is_class else (first, node.end_lineno or node.lineno))
    if isinstance(node, ast.If) and not isinstance(node.test, ast.Constant):
        guard = isinstance(node.body[-1], ast.Raise)
        for forced in ("(False)",) if guard else ("(False)", "(True)"):
            yield node.test, forced, scope
    if isinstance(node, ast.expr | ast.stmt):
        for text in _replacements(node, names):
            yield node, text, scope
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_params", "bases"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, scope, names)


def _replacements(node: _Node, names: _Names) -> Iterator[str]:
    """The texts that may stand in the place of ``node``; expressions come back in parentheses."""
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                if type(operator) in _COMPARE:
                    changed = copy.deepcopy(node)
                    changed.ops[index] = _COMPARE[type(operator)]()
                    yield _text(changed)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            yield _text(ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), left), ast.FloorDiv(), right)))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            if not (_is_text(left) or _is_text(right)):
                yield _text(ast.BinOp(left, _ARITHMETIC[type(operator)](), right))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _text(ast.BoolOp(other, node.values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _text(operand)
        case ast.IfExp(body=body, orelse=orelse):
            yield _text(body)
            yield _text(orelse)
        case ast.Constant(value=value):
            yield from (f"({other!r})" for other in _numbers(value))
        case ast.Call():
            yield from _calls(node)
        case ast.Name(id=name, ctx=ast.Load()):
            yield from (names.here(name, other) for other in _twins(name, names.helpers))
        case ast.Attribute(value=owner, attr=name, ctx=ast.Load()):
            yield from (ast.unparse(ast.Attribute(owner, other)) for other in _twins(name, names.helpers))
        case ast.AugAssign(target=target, op=operator, value=value):
            yield "pass"
            if type(operator) in _ARITHMETIC and not _is_text(value):
                yield ast.unparse(ast.AugAssign(target, _ARITHMETIC[type(operator)](), value))
        case ast.Expr(value=ast.Call()):
            yield "pass"


def _calls(node: ast.Call) -> Iterator[str]:
    name = _called(node)
    if name in _CLAMPS and len(node.args) == 2 and not any(isinstance(item, ast.Starred) for item in node.args):
        yield from (_text(argument) for argument in node.args)
    if name in {"clip", "nextafter"} and node.args:
        yield _text(node.args[0])
    if name in _VALIDATORS and isinstance(node.func, ast.Name) and len(node.args) >= 2:
        yield _text(node.args[1])
    for index, keyword in enumerate(node.keywords):
        if keyword.arg == "side" and isinstance(keyword.value, ast.Constant) and keyword.value.value in _SIDES:
            changed = copy.deepcopy(node)
            changed.keywords[index].value = ast.Constant(_SIDES[keyword.value.value])
            yield _text(changed)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _twins(name: str, helpers: frozenset[str]) -> Iterator[str]:
    if name in _TWINS:
        yield _TWINS[name]
    for ending, other in _DIRECTIONS:
        if name.endswith(ending) and name.removesuffix(ending) + other in helpers:
            yield name.removesuffix(ending) + other


def _numbers(value: object) -> Iterator[object]:
    match value:
        case bool():
            yield not value
        case int():
            yield value // 2 if value > 2 else value + 1
        case float() if value:
            yield value / 2


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
