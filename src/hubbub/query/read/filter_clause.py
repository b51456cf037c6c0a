"""Read FILTER as what it means: an aggregate of values that are missing in rows which are left out."""

from sqlglot import exp

from hubbub.errors import NotAllowed


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
