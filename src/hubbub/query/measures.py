"""The aggregates of a question, as SQL writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from hubbub.errors import MissingKeys, NotAllowed, TooHeavy, TypeMisfit
from hubbub.mechanisms.quantile import DENOMINATOR
from hubbub.policy.kinds import Kind, Type, integer
from hubbub.query.choices import MOST_VALUES
from hubbub.query.clauses import Said, TopValues, ValueCounts, taken_off
from hubbub.query.expression import Expression, Literal
from hubbub.query.filtered import within_case
from hubbub.query.keys import public_values
from hubbub.query.question import CHOSEN, COUNTS, Aggregation, Asked
from hubbub.query.relation import RowNames
from hubbub.query.scalars import read
from hubbub.query.scope import Scope
from hubbub.query.tops import edges_of, how_many

_MOST_NOISY = 1 << 62
_MOST_LEVELS = 99
_LONGEST_LEVEL = 30

_OF_ONE: Mapping[type[exp.Expr], Aggregation] = {
    exp.Sum: Aggregation.SUM,
    exp.Avg: Aggregation.AVG,
    exp.VariancePop: Aggregation.VAR_POP,
    exp.Variance: Aggregation.VAR_SAMP,
    exp.StddevPop: Aggregation.STDDEV_POP,
    exp.Stddev: Aggregation.STDDEV_SAMP,
    exp.StddevSamp: Aggregation.STDDEV_SAMP,
    exp.Min: Aggregation.MIN,
    exp.Max: Aggregation.MAX,
}
_OF_TWO: Mapping[type[exp.Expr], Aggregation] = {
    exp.CovarPop: Aggregation.COVAR_POP,
    exp.CovarSamp: Aggregation.COVAR_SAMP,
    exp.Corr: Aggregation.CORR,
    exp.RegrSlope: Aggregation.REGR_SLOPE,
    exp.RegrIntercept: Aggregation.REGR_INTERCEPT,
}
_QUANTILES: Mapping[type[exp.Expr], tuple[Aggregation, str]] = {
    exp.PercentileCont: (Aggregation.QUANTILE_CONT, "expression"),
    exp.PercentileDisc: (Aggregation.QUANTILE_DISC, "expression"),
    exp.Quantile: (Aggregation.QUANTILE_DISC, "quantile"),
    exp.ApproxQuantile: (Aggregation.QUANTILE_DISC, "quantile"),
}
_KNOWN = (
    "COUNT, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, "
    "REGR_INTERCEPT, MIN, MAX, MEDIAN, QUANTILE_CONT, QUANTILE_DISC, MODE, APPROX_TOP_K, HISTOGRAM"
)


@dataclass(frozen=True, slots=True)
class Measures:
    """Reads aggregates over the rows of a relation."""

    rows: RowNames
    scope: Scope
    conditions: Sequence[Expression]
    """What WHERE says: it may list the values of a mode."""

    def asked(self, node: exp.Expr) -> tuple[Asked, ...]:
        """What an aggregate asks for: one number, or one for each quantile of a list."""
        made = self._read(node)
        text = node.sql(dialect="duckdb", comments=False).lower()
        if not listed(node):
            return tuple(replace(one, text=text) for one in made)
        return tuple(replace(one, text=f"{text} at {_shown(one)}") for one in made)

    def _read(self, node: exp.Expr) -> tuple[Asked, ...]:
        inner, order = (node.this, node.expression) if isinstance(node, exp.WithinGroup) else (node, None)
        bare, said = taken_off(inner)
        if bare is not inner:
            return tuple(bounded(one, said) for one in self._read(bare))
        _check(inner, order)
        match inner:
            case exp.Count():
                return (self._count(inner),)
            case exp.ApproxDistinct():
                return (self._distinct(inner.this),)
            case exp.Median():
                return (self._chosen(inner, Aggregation.QUANTILE_CONT, inner.this, Fraction(1, 2)),)
            case exp.Mode():
                return (self._mode(inner.this if order is None else _ordered(order)[0]),)
            case TopValues():
                found = self._listed("A top-k", inner.this, Aggregation.TOP)
                return (replace(found, many=how_many(inner.expression, found.values)),)
            case ValueCounts():
                return (self._histogram(inner),)
        if type(inner) in _QUANTILES:
            return self._quantiles(inner, order)
        if type(inner) in _OF_TWO:
            first, second = (self._number(inner, one) for one in (inner.this, inner.expression))
            return (Asked(function=_OF_TWO[type(inner)], argument=first, second=second, text=""),)
        if type(inner) not in _OF_ONE:
            raise NotAllowed(f"{_name(inner)} in this form is not among the aggregates: {_KNOWN}.")
        return (Asked(function=_OF_ONE[type(inner)], argument=self._number(inner, inner.this), text=""),)

    def _number(self, node: exp.Expr, argument: exp.Expr) -> Expression:
        value = read(argument, self.rows)
        if value.kind.type not in {Type.INTEGER, Type.REAL}:
            raise TypeMisfit(f"{_name(node)} takes numbers, not {value.kind}.")
        return value

    def _count(self, node: exp.Count) -> Asked:
        inner = node.this
        if inner is None or (isinstance(inner, exp.Star) and not any(inner.args.values())):
            return Asked(function=Aggregation.ROWS, argument=None, text="")
        if isinstance(inner, exp.Distinct):
            if len(inner.expressions) != 1:
                raise NotAllowed("COUNT(DISTINCT …) takes one value.")
            return self._distinct(inner.expressions[0])
        value = read(inner, self.rows)
        constant = isinstance(value, Literal) and value.value is not None
        if constant or not value.kind.nullable:
            return Asked(function=Aggregation.ROWS, argument=None, text="")
        return Asked(function=Aggregation.VALUES, argument=value, text="")

    def _distinct(self, node: exp.Expr) -> Asked:
        """Units, or the different values of anything else."""
        value = read(node, self.rows)
        if isinstance(node.unnest(), exp.Column | exp.Coalesce) and self.scope.names_unit(value):
            own = None if self.scope.is_unit(value) else value
            return Asked(function=Aggregation.UNITS, argument=own, text="")
        chosen = within_case(node)
        if isinstance(chosen.unnest(), exp.Column) and self.scope.names_unit(read(chosen, self.rows)):
            return Asked(function=Aggregation.UNITS, argument=value, text="")  # the unit, or missing
        if isinstance(value, Literal):
            raise NotAllowed("COUNT(DISTINCT …) counts different values, and this is one constant.")
        return Asked(function=Aggregation.DISTINCT, argument=value, text="")

    def _mode(self, node: exp.Expr) -> Asked:
        return self._listed("MODE", node, Aggregation.MODE)

    def _histogram(self, node: ValueCounts) -> Asked:
        """Of public values, or of numbers between constant edges."""
        edges = node.args.get("expression")
        if edges is None:
            return self._listed("A histogram without edges", node.this, Aggregation.HISTOGRAM)
        value = read(node.this, self.rows)
        return Asked(function=Aggregation.HISTOGRAM, argument=value, edges=edges_of(edges, value), text="")

    def _listed(self, what: str, node: exp.Expr, function: Aggregation) -> Asked:
        value = read(node, self.rows)
        if value.kind.type is Type.REAL or isinstance(value, Literal):
            raise TypeMisfit(f"{what} takes values that can be listed, not reals or constants. Take floor(…) of them.")
        name = node.sql(dialect="duckdb", comments=False)
        values = public_values(name, value, self.conditions, self.scope)
        if values is None:  # what FILTER leaves out is missing, and the others have values of their own
            values = public_values(name, read(within_case(node), self.rows), self.conditions, self.scope)
        if values is None:
            raise MissingKeys(
                f"The values of {name} are not public. List them (WHERE … IN (…)), or let the owner declare its keys.",
                key=name,
            )
        found = tuple(one for one in values if one is not None)
        if not 1 <= len(found) <= MOST_VALUES:
            raise TooHeavy(f"{what} is over 1 to {MOST_VALUES} values; {name} has {len(found):,}. List others.")
        return Asked(function=function, argument=value, values=found, text="")

    def _quantiles(self, node: exp.Expr, order: exp.Expr | None) -> tuple[Asked, ...]:
        function, place = _QUANTILES[type(node)]
        argument, given = node.this, node.args.get(place)
        falling = False
        if order is not None:
            given, (argument, falling) = node.this, _ordered(order)
        elif isinstance(given, exp.Order):  # the same, as it is written out
            ordered, falling = _ordered(given)
            given = given.this if ordered == argument else None
        several = isinstance(given, exp.Array)
        nodes = given.expressions if isinstance(given, exp.Array) else [given]
        levels = [_level(one) for one in nodes]
        if several and not (1 <= len(levels) <= _MOST_LEVELS and len(set(levels)) == len(levels)):
            raise NotAllowed(f"A list of quantiles has from 1 to {_MOST_LEVELS} of them, all different.")
        levels = [1 - one if falling else one for one in levels]
        return tuple(self._chosen(node, function, argument, level) for level in levels)

    def _chosen(self, node: exp.Expr, function: Aggregation, argument: exp.Expr, level: Fraction) -> Asked:
        """A quantile; 0 and 1 are the least and the greatest value."""
        value = self._number(node, argument)
        if level in {0, 1}:
            return Asked(function=Aggregation.MAX if level else Aggregation.MIN, argument=value, text="")
        return Asked(function=function, argument=value, level=level, text="")


def bounded(asked: Asked, said: Said) -> Asked:
    """With the bounds that the question gives it."""
    if asked.function is Aggregation.UNITS or asked.function is Aggregation.DISTINCT:
        raise NotAllowed("COUNT(DISTINCT …) takes no bounds. Leave them out.")
    return replace(asked, per_group=said.per_group, per_row=said.per_row)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a part of a question is an aggregate."""
    return isinstance(node, exp.AggFunc | exp.WithinGroup)


def listed(node: exp.Expr) -> bool:
    """Whether an aggregate is a list of quantiles, which makes several columns."""
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    given = (
        inner.this if isinstance(node, exp.WithinGroup) else inner.args.get(_QUANTILES.get(type(inner), ("", ""))[1])
    )
    return type(inner) in _QUANTILES and isinstance(given, exp.Array)


def suffixed(name: str, asked: Asked) -> str:
    """What the column of one quantile of a list is called."""
    return f"{name}_{_shown(asked)}"


def _shown(asked: Asked) -> str:
    return asked.function.value if asked.level is None else f"{float(asked.level):g}"


def noisy_kind(asked: Asked) -> Kind:
    """What the numbers of an answer are."""
    if asked.function in COUNTS or asked.function is Aggregation.HISTOGRAM:
        return integer(-_MOST_NOISY, _MOST_NOISY, nullable=False)
    assert asked.argument is not None
    if asked.function in {Aggregation.MODE, Aggregation.TOP}:
        return replace(asked.argument.kind, nullable=True)
    whole = asked.function in CHOSEN and asked.function is not Aggregation.QUANTILE_CONT
    if whole and asked.argument.kind.type is Type.INTEGER:
        return integer(-_MOST_NOISY, _MOST_NOISY)
    return Kind(type=Type.REAL)


def _name(node: exp.Expr) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else "This"


def _check(node: exp.Expr, order: exp.Expr | None) -> None:
    """Nothing but what is read: DISTINCT, further arguments and the like are no part of an aggregate here."""
    known = {"this", "big_int"}
    if type(node) in _OF_TWO or isinstance(node, TopValues | ValueCounts):
        known |= {"expression"}
    if type(node) in _QUANTILES and order is None:
        known |= {_QUANTILES[type(node)][1]}
    extra = [name for name, value in node.args.items() if value and name not in known]
    distinct = isinstance(node.this, exp.Distinct) and not isinstance(node, exp.Count)
    apart = order is not None and not (type(node) in _QUANTILES or isinstance(node, exp.Mode))
    if extra or distinct or apart or (node.this is None and order is None and not isinstance(node, exp.Count)):
        raise NotAllowed(f"{_name(node)} in this form is not among the aggregates: {_KNOWN}.")


def _ordered(order: exp.Expr) -> tuple[exp.Expr, bool]:
    """The one value behind WITHIN GROUP (ORDER BY …), and whether it falls."""
    if len(order.expressions) != 1:
        raise NotAllowed("WITHIN GROUP (ORDER BY …) takes one value.")
    (only,) = order.expressions
    return only.this, bool(only.args.get("desc"))


def _level(node: exp.Expr | None) -> Fraction:
    if isinstance(node, exp.Literal) and not node.is_string and len(node.name) <= _LONGEST_LEVEL:
        try:
            found = Fraction(node.name).limit_denominator(DENOMINATOR)
        except (ValueError, ZeroDivisionError):
            found = Fraction(-1)
        if 0 <= found <= 1:
            return found
    raise NotAllowed("A quantile is a constant from 0 to 1, or a list of them: quantile_cont(x, [0.25, 0.75]).")
