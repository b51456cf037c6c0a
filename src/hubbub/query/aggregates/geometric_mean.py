"""geometric_mean (geomean): the exponential of a mean of logarithms.

Values are clamped to bounds above 0, and their logarithms are added up in steps of a grid, exactly. As in DuckDB,
missing values do not count. Where DuckDB gives 0 for a zero and NaN for a negative number, such a value counts here as
the lower bound: one row must not decide the answer of a whole group.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.errors import MissingBounds
from hubbub.query.aggregates.average import combine_means
from hubbub.query.aggregates.function import JointFunction, NoisyCells
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression
from hubbub.query.functions import call
from hubbub.query.plan.collect import Collector, Ingredients, clamp_real
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


class GeometricMean(exp.Expression, exp.AggFunc):
    """geometric_mean(x)."""

    arg_types = {"this": True}  # noqa: RUF012
    _sql_names = ["GEOMETRIC_MEAN"]  # noqa: RUF012


@dataclass(frozen=True, slots=True, kw_only=True)
class _GeometricMean(JointFunction):
    """The root of the product of all values, of as high a degree as there are values."""

    buys_bounds: ClassVar[bool] = False  # bought bounds begin at 0 or below

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read the geometric mean of numbers."""
        return (Asked(function=self, argument=reader.read_number(node, node.this), text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up logarithms from the middle of their bounds, and count values."""
        argument = asked.argument
        assert argument is not None
        bounds = collector.bound(argument)
        if bounds[0] <= 0:
            raise MissingBounds(
                "A geometric mean is of values with a lower bound above 0. Declare one, or write "
                "geometric_mean(greatest(x, 1))."
            )
        total = collector.add_reals(call("ln", clamp_real(argument, bounds)), _bound_logarithms(bounds))
        size = collector.public_count(argument)
        if size is not None:
            return Ingredients(tallies=(total,), bounds=bounds, size=size)
        count = collector.count(argument)
        return Ingredients(tallies=(count, total), bounds=bounds, mean=(count, total))

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the exponentials of the means and of the ends of their intervals, within the bounds."""
        assert part.bounds is not None
        low, high = (float(end) for end in part.bounds)

        def raise_to(end: float | None) -> float | None:
            return None if end is None else max(low, min(high, math.exp(end)))

        means = combine_means(replace(part, bounds=_bound_logarithms(part.bounds)), cells)
        return [NoisyNumber(*map(raise_to, (mean.value, mean.low, mean.high))) for mean in means]

    def clamps(self, asked: Asked, part: Ingredients) -> Iterator[tuple[str, Expression, Interval]]:
        """Say where values are clamped, before their logarithms are taken."""
        assert asked.argument is not None
        assert part.bounds is not None
        yield asked.text, asked.argument, part.bounds


def _bound_logarithms(bounds: Interval) -> Interval:
    """Bound the logarithms of values within bounds, whichever way an engine rounds them."""
    low, high = (math.log(float(end)) for end in bounds)
    slack = 2.0**-40 * max(1.0, abs(low), abs(high))
    return Fraction(low - slack), Fraction(high + slack)


GEOMETRIC_MEAN = _GeometricMean(
    name="geometric_mean",
    titles=("GEOMETRIC_MEAN",),
    nodes=(GeometricMean,),
    spellings=(("GEOMETRIC_MEAN", GeometricMean.from_arg_list), ("GEOMEAN", GeometricMean.from_arg_list)),
)
