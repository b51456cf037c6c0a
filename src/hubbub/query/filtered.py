"""FILTER and COUNT_IF, as what they mean: an aggregate of values that are missing in rows which are left out."""

from sqlglot import exp

from hubbub.errors import NotAllowed


def unfiltered(node: exp.Expr) -> exp.Expr:
    """An aggregate of CASE: count(*) FILTER (WHERE c) is count(CASE WHEN c THEN 1 END), and sum(x) FILTER (WHERE c) is
    sum(CASE WHEN c THEN x END). Any other part of a question is itself."""
    if isinstance(node, exp.CountIf) and node.this is not None and not isinstance(node.this, exp.Distinct):
        return exp.Count(this=_where(node.this, exp.Literal.number(1)))
    if not isinstance(node, exp.Filter):
        return node
    inner = unfiltered(node.this)
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
        made.set("this", exp.Distinct(expressions=[_where(condition, value.expressions[0])]))
    else:
        made.set("this", _where(condition, value))
    return made


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def within_case(node: exp.Expr) -> exp.Expr:
    """The only value of CASE WHEN … THEN value END; of anything else, itself."""
    bare = node.unnest()
    if isinstance(bare, exp.Case) and len(bare.args["ifs"]) == 1 and bare.args.get("default") is None:
        value: exp.Expr = bare.args["ifs"][0].args["true"]
        return value
    return node
