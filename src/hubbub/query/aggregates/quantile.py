"""Quantiles and the median: all of one value are chosen together from one histogram.

quantile_cont, quantile_disc, median, approx_quantile, percentile_cont and percentile_disc WITHIN GROUP (ORDER BY …).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.errors import NotAllowed
from hubbub.mechanisms import Mechanism, PerGroup, Quantile, Quantiles
from hubbub.mechanisms.selection.quantile import DENOMINATOR
from hubbub.query.aggregates.extremes import MAX, MIN, RankedFunction
from hubbub.query.aggregates.function import NoisyCell
from hubbub.query.plan.choice import Choice
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader

_MOST_LEVELS = 99
_LONGEST_LEVEL = 30
_LEVEL_IN: dict[type[exp.Expr], str] = {exp.Quantile: "quantile", exp.ApproxQuantile: "quantile"}
"""Where a call has its level, if not in its second argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileChoice(Choice):
    """The choice of steps at several levels, ascending."""

    levels: tuple[Fraction, ...]

    @property
    def numbers(self) -> int:
        """One for each level."""
        return len(self.levels)

    @property
    def equal_parts(self) -> int:
        """The depth of the tree by which the levels are gone through."""
        return len(self.levels).bit_length()

    def choose_in_group(self, epsilon: Fraction) -> Mechanism:
        """Return the mechanism for one quantile, or for several."""
        ends, step, neighbors = (Fraction(0), Fraction(self.top)), Fraction(1), self.reach.neighbors
        if len(self.levels) == 1:
            (level,) = self.levels
            return Quantile(epsilon=epsilon, bounds=ends, grid=step, rows=self.rows, neighbors=neighbors, q=level)
        return Quantiles(
            epsilon=epsilon, bounds=ends, grid=step, rows=self.rows, neighbors=neighbors, targets=self.levels
        )

    def bound_rank_error(self, mechanism: Mechanism, beta: float, level: Fraction | None = None) -> float:
        """Return by how many rows a quantile may be off; of several, one by itself."""
        assert isinstance(mechanism, PerGroup)
        inner = mechanism.mechanism
        if not isinstance(inner, Quantiles) or level is None:
            return inner.error(beta=beta)
        return inner.bound_rank(self.levels.index(level), beta)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantile(RankedFunction):
    """A value below which a share of the values lies."""

    is_ordered: ClassVar[bool] = True

    def read_operands(self, node: exp.Expr) -> frozenset[str]:
        """Return the part that has the level; MEDIAN has none."""
        return frozenset() if isinstance(node, exp.Median) else frozenset({_level_of(node)})

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a quantile, or a list of them; WITHIN GROUP (ORDER BY x DESC) counts from above."""
        if isinstance(node, exp.Median):
            return (self._ask(node, node.this, Fraction(1, 2), reader),)
        argument, given = node.this, node.args.get(_level_of(node))
        falling = False
        if order is not None:
            given, (argument, falling) = node.this, reader.read_order(order)
        elif isinstance(given, exp.Order):  # the same, as it is written out
            ordered, falling = reader.read_order(given)
            given = given.this if ordered == argument else None
        several = isinstance(given, exp.Array)
        nodes = given.expressions if isinstance(given, exp.Array) else [given]
        levels = [read_level(level) for level in nodes]
        if several and not (1 <= len(levels) <= _MOST_LEVELS and len(set(levels)) == len(levels)):
            raise NotAllowed(f"A list of quantiles has from 1 to {_MOST_LEVELS} of them, all different.")
        levels = [1 - level if falling else level for level in levels]
        return tuple(self._ask(node, argument, level, reader) for level in levels)

    def _ask(self, node: exp.Expr, argument: exp.Expr, level: Fraction, reader: "AggregateReader") -> Asked:
        """Ask for a quantile; 0 and 1 are the least and the greatest value."""
        value = reader.read_number(node, argument)
        if level in {0, 1}:
            return Asked(function=MAX if level else MIN, argument=value, text="")
        return Asked(function=self, argument=value, level=level, text="")

    def is_list(self, node: exp.Expr, order: exp.Expr | None) -> bool:
        """Return whether several levels are asked for."""
        if isinstance(node, exp.Median):
            return False
        given = node.this if order is not None else node.args.get(_level_of(node))
        return isinstance(given, exp.Array)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Choose the quantiles of one value together, from one histogram."""
        histogram, bounds = self.measure_histogram(asked, collector)
        every = [one for one in collector.question.asked if isinstance(one.function, _Quantile)]
        levels = tuple(sorted({_level(one) for one in every if one.argument == asked.argument}))
        return Ingredients(choice=collector.choose(QuantileChoice, histogram, levels=levels), bounds=bounds)

    def pick(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> int:
        """Return the step of this level among those that were chosen together."""
        assert isinstance(part.choice, QuantileChoice)
        return cell.read(part.choice)[part.choice.levels.index(_level(asked))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContinuousQuantile(_Quantile):
    """A quantile that may lie between values."""

    keeps_whole: ClassVar[bool] = False


def _level_of(node: exp.Expr) -> str:
    return _LEVEL_IN.get(type(node), "expression")


def _level(asked: Asked) -> Fraction:
    assert asked.level is not None
    return asked.level


def read_level(node: exp.Expr | None, *, inside: bool = False) -> Fraction:
    """Read a constant from 0 to 1, or ``inside`` of these."""
    if isinstance(node, exp.Literal) and not node.is_string and len(node.name) <= _LONGEST_LEVEL:
        try:
            found = Fraction(node.name).limit_denominator(DENOMINATOR)
        except (ValueError, ZeroDivisionError):
            found = Fraction(-1)
        if 0 < found < 1 or (0 <= found <= 1 and not inside):
            return found
    if inside:
        raise NotAllowed("The quantile of an interval is a constant above 0 and below 1: quantile_interval(x, 0.9).")
    raise NotAllowed("A quantile is a constant from 0 to 1, or a list of them: quantile_cont(x, [0.25, 0.75]).")


QUANTILE_CONT = _ContinuousQuantile(
    name="quantile_cont", titles=("MEDIAN", "QUANTILE_CONT"), nodes=(exp.Median, exp.PercentileCont)
)
QUANTILE_DISC = _Quantile(
    name="quantile_disc", titles=("QUANTILE_DISC",), nodes=(exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
)
