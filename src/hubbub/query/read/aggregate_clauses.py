"""Read the clauses of an aggregate: FILTER, and its own bounds in the words that BigQuery has for them.

SUM(cost, contribution_bounds_per_group => (0, 500)), COUNT(*, contribution_bounds_per_group => (0, 3))

Bounds that stand in a question are public like the question. They decide where values are clamped, and the noise
follows from them; so they may be narrower than what the owner declared, wider, or stand where nothing was declared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser

from hubbub.errors import NotAllowed
from hubbub.query.check.bounds import Interval


def apply_filter(node: exp.Filter, inner: exp.Expr) -> exp.Expr:
    """Return an aggregate of CASE.

    count(*) FILTER (WHERE c) is count(CASE WHEN c THEN 1 END), and sum(x) FILTER (WHERE c) is sum(CASE WHEN c THEN x
    END).
    """
    if not isinstance(inner, exp.AggFunc) or not isinstance(node.expression, exp.Where):
        raise NotAllowed("FILTER (WHERE …) stands behind an aggregate of one value.")
    made, condition, value = inner.copy(), node.expression.this, inner.this
    if isinstance(inner, exp.Count) and (value is None or isinstance(value, exp.Star)):
        if value is not None and any(value.args.values()):
            raise NotAllowed("COUNT takes one value, or * alone.")
        value = exp.Literal.number(1)
    if isinstance(value, exp.Distinct):
        if len(value.expressions) != 1:
            raise NotAllowed("COUNT(DISTINCT …) takes one value.")
        made.set("this", exp.Distinct(expressions=[filter_value(condition, value.expressions[0])]))
    else:
        made.set("this", filter_value(condition, value))
    return made


def filter_value(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    """Return a value where a condition is true."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def find_case_value(node: exp.Expr) -> exp.Expr:
    """Return the only value of CASE WHEN … THEN value END; of anything else, itself."""
    bare = node.unnest()
    if isinstance(bare, exp.Case) and len(bare.args["ifs"]) == 1 and bare.args.get("default") is None:
        value: exp.Expr = bare.args["ifs"][0].args["true"]
        return value
    return node


PER_GROUP, PER_ROW = "contribution_bounds_per_group", "contribution_bounds_per_row"
_LONGEST = 30
_MOST = 1 << 62
_CLOSEST = Fraction(1, 1 << 100)


class BoundedSum(exp.Sum):
    """SUM with named arguments behind its value."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012
    is_var_len_args = True
    _sql_names = ["SUM"]  # noqa: RUF012


class BoundedAvg(exp.Avg):
    """AVG with named arguments behind its value."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012
    is_var_len_args = True
    _sql_names = ["AVG"]  # noqa: RUF012


_PLAIN: dict[type[exp.Expr], type[exp.Expr]] = {BoundedSum: exp.Sum, BoundedAvg: exp.Avg}


_Builder = Callable[[Sequence[Any]], exp.Expr]


def take_bounds(name: str, bounded: Any = None, plain: Any = None) -> _Builder:
    """Read calls of a function with named arguments behind its value as a node of their own, if it has one.

    Names are not case-sensitive: one question is written in one way.
    """
    with_bounds: _Builder = DuckDBParser.FUNCTIONS[name] if bounded is None else bounded.from_arg_list
    without: _Builder = DuckDBParser.FUNCTIONS[name] if plain is None else plain.from_arg_list

    def build(arguments: Sequence[Any]) -> exp.Expr:
        named = [one for one in arguments[1:] if isinstance(one, exp.Kwarg) and isinstance(one.this, exp.Var)]
        for one in named:
            one.this.set("this", one.this.name.lower())
        return (with_bounds if named else without)(arguments)

    return build


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The bounds that an aggregate names; None where it names none."""

    per_group: Interval | None = None
    """Of what one unit adds to one group; of an average, of a unit's own average there."""
    per_row: Interval | None = None
    """Of each value."""


def take_off_bounds(node: exp.Expr) -> tuple[exp.Expr, Said]:
    """Return the aggregate without its named arguments, and what these say."""
    named = node.args.get("expressions") or []
    if not isinstance(node, exp.Count | BoundedSum | BoundedAvg) or not any(isinstance(x, exp.Kwarg) for x in named):
        return node, Said()
    if not all(isinstance(one, exp.Kwarg) for one in named):
        raise NotAllowed(f"{node.sql_name()} takes one value, and bounds behind it: {PER_GROUP} => (0, 10).")
    counted = isinstance(node, exp.Count)
    found: dict[str, Interval] = {}
    for one in named:
        name = one.this.name.lower()
        if name not in ({PER_GROUP} if counted else {PER_GROUP, PER_ROW}) or name in found:
            known = PER_GROUP if counted else f"{PER_GROUP} and {PER_ROW}"
            raise NotAllowed(f"{node.sql_name()} takes {known}, each once, as name => (low, high).")
        found[name] = _interval(name, one.expression)
    if counted:
        _check_count(found[PER_GROUP])
    bare = node.copy()
    bare.set("expressions", None)
    plain = _PLAIN.get(type(node))
    made = bare if plain is None else plain(this=bare.this)
    return made, Said(per_group=found.get(PER_GROUP), per_row=found.get(PER_ROW))


def _interval(name: str, node: exp.Expr) -> Interval:
    if not isinstance(node, exp.Tuple) or len(node.expressions) != 2:
        raise NotAllowed(f"Bounds are two constants: {name} => (low, high).")
    low, high = (read_constant(one) for one in node.expressions)
    if low is None or high is None:
        raise NotAllowed(f"Bounds are two constants, each a number within 2^62: {name} => (low, high).")
    if high - low < _CLOSEST:
        raise NotAllowed(f"Bounds are a low number and a higher one: {name} => (low, high).")
    return low, high


def _check_count(bounds: Interval) -> None:
    if bounds[0] != 0 or bounds[1].denominator != 1:
        raise NotAllowed(f"COUNT takes a whole number of rows from 1 on: {PER_GROUP} => (0, 3).")


def read_constant(node: exp.Expr) -> Fraction | None:
    """Read a number as it is written, with or without a sign; None for anything else, and beyond all range."""
    sign, bare = 1, node.unnest()
    if isinstance(bare, exp.Neg):
        sign, bare = -1, bare.this.unnest()
    if not isinstance(bare, exp.Literal) or bare.is_string or len(bare.name) > _LONGEST:
        return None
    _, _, exponent = bare.name.lower().partition("e")
    if len(exponent.lstrip("+-")) > 3:
        return None
    try:
        found = Fraction(bare.name)
    except (ValueError, ZeroDivisionError):
        return None
    return sign * found if found <= _MOST else None
