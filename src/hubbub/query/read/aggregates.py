"""Read the aggregates of a question, as SQL writes them. Which there are, ``aggregates.table`` says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from hubbub.errors import MissingKeys, NotAllowed, TooHeavy, TypeMisfit
from hubbub.policy.kinds import Type
from hubbub.query.aggregates.function import AggregateFunction
from hubbub.query.aggregates.table import TITLES, find_function
from hubbub.query.check.keys import public_values
from hubbub.query.expression import Expression, Literal
from hubbub.query.plan.choice import MOST_VALUES
from hubbub.query.question import Asked
from hubbub.query.read.aggregate_clauses import Said, apply_filter, find_case_value, take_off_bounds
from hubbub.query.read.relation import RowNames
from hubbub.query.read.scalars import read
from hubbub.query.read.scope import Scope


@dataclass(frozen=True, slots=True)
class AggregateReader:
    """Reads aggregates over the rows of a relation."""

    rows: RowNames
    scope: Scope
    conditions: Sequence[Expression]
    """What WHERE says: it may list the values of a mode."""

    def read(self, node: exp.Expr) -> tuple[Asked, ...]:
        """Read what an aggregate asks for: one number, or one for each quantile of a list."""
        made = self._read(node)
        text = node.sql(dialect="duckdb", comments=False).lower()
        if not is_list(node):
            return tuple(replace(asked, text=text) for asked in made)
        return tuple(replace(asked, text=f"{text} at {_level_text(asked)}") for asked in made)

    def _read(self, node: exp.Expr) -> tuple[Asked, ...]:
        inner, order = _split(node)
        bare, said = take_off_bounds(inner)
        if bare is not inner:
            return tuple(_give_bounds(asked, said) for asked in self._read(bare))
        function = find_function(inner)
        if function is None or not _is_known_form(function, inner, order):
            raise self.refuse(inner)
        return function.read(inner, order, self)

    # What functions read their calls with

    def read_value(self, node: exp.Expr) -> Expression:
        """Read an expression over the rows."""
        return read(node, self.rows)

    def read_number(self, node: exp.Expr, argument: exp.Expr) -> Expression:
        """Read an argument of a call, which must be a number."""
        value = read(argument, self.rows)
        if value.kind.type not in {Type.INTEGER, Type.REAL}:
            raise TypeMisfit(f"{_name(node)} takes numbers, not {value.kind}.")
        return value

    def read_listed(self, what: str, node: exp.Expr, function: AggregateFunction) -> Asked:
        """Read a value of which all that it may be is public."""
        value = read(node, self.rows)
        if value.kind.type is Type.REAL or isinstance(value, Literal):
            raise TypeMisfit(f"{what} takes values that can be listed, not reals or constants. Take floor(…) of them.")
        name = node.sql(dialect="duckdb", comments=False)
        values = public_values(name, value, self.conditions, self.scope)
        if values is None:  # what FILTER leaves out is missing, and the others have values of their own
            values = public_values(name, read(find_case_value(node), self.rows), self.conditions, self.scope)
        if values is None:
            raise MissingKeys(
                f"The values of {name} are not public. List them (WHERE … IN (…)), or let the owner declare its keys.",
                key=name,
            )
        found = tuple(listed for listed in values if listed is not None)
        if not 1 <= len(found) <= MOST_VALUES:
            raise TooHeavy(f"{what} is over 1 to {MOST_VALUES} values; {name} has {len(found):,}. List others.")
        return Asked(function=function, argument=value, values=found, text="")

    def read_order(self, order: exp.Expr) -> tuple[exp.Expr, bool]:
        """Read the one value behind WITHIN GROUP (ORDER BY …), and whether it falls."""
        if len(order.expressions) != 1:
            raise NotAllowed("WITHIN GROUP (ORDER BY …) takes one value.")
        (only,) = order.expressions
        return only.this, bool(only.args.get("desc"))

    def refuse(self, node: exp.Expr) -> NotAllowed:
        """Return the refusal of a call in a form that no aggregate has."""
        return NotAllowed(f"{_name(node)} in this form is not among the aggregates: {TITLES}.")


def _give_bounds(asked: Asked, said: Said) -> Asked:
    """Return an aggregate with the bounds that the question gives it."""
    if not asked.function.bounds_taken:
        raise NotAllowed("COUNT(DISTINCT …) takes no bounds. Leave them out.")
    return replace(asked, per_group=said.per_group, per_row=said.per_row)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a part of a question is an aggregate."""
    return isinstance(node, exp.AggFunc | exp.WithinGroup | exp.Filter)


def rewrite(node: exp.Expr) -> exp.Expr:
    """Return an aggregate as what it means: without FILTER, and as the function that it is read as."""
    if isinstance(node, exp.Filter):
        return apply_filter(node, rewrite(node.this))
    function = find_function(node)
    return node if function is None else function.rewrite(node)


def is_list(node: exp.Expr) -> bool:
    """Return whether an aggregate is a list of quantiles, which makes several columns."""
    inner, order = _split(node)
    function = find_function(inner)
    return function is not None and function.is_list(inner, order)


def is_nested(node: exp.Expr) -> bool:
    """Return whether an aggregate makes lists or mappings, of which nothing further is computed."""
    function = find_function(node.this if isinstance(node, exp.Filter) else node)
    return function is not None and function.is_nested


def name_level(name: str, asked: Asked) -> str:
    """Name the column of one quantile of a list."""
    return f"{name}_{_level_text(asked)}"


def _level_text(asked: Asked) -> str:
    return asked.function.name if asked.level is None else f"{float(asked.level):g}"


def _split(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """Return a call, and WITHIN GROUP (ORDER BY …) behind it."""
    return (node.this, node.expression) if isinstance(node, exp.WithinGroup) else (node, None)


def _name(node: exp.Expr) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else "This"


def _is_known_form(function: AggregateFunction, node: exp.Expr, order: exp.Expr | None) -> bool:
    """Return whether nothing stands in a call but what is read: no DISTINCT, no further arguments and the like."""
    known = {"this", "big_int"} | (function.read_operands(node) if order is None else set())
    if any(value and name not in known for name, value in node.args.items()):
        return False
    if isinstance(node, exp.Count):
        return order is None
    if isinstance(node.this, exp.Distinct) or (order is not None and not function.is_ordered):
        return False
    return node.this is not None or order is not None
