"""Covariance, correlation and regression out of noisy sums over the rows that have both values.

All sums are about the middles of the bounds, where they are smallest. ``pair_moments`` computes the numbers and their
intervals from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.query.aggregates.function import JointFunction, NoisyCells, list_clamps
from hubbub.query.aggregates.joint_sums import Middle, join_sums
from hubbub.query.aggregates.pair_moments import Moment, PairMoments, combine_moments
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression
from hubbub.query.functions import call
from hubbub.query.plan.collect import Collector, Ingredients, beside, distance
from hubbub.query.plan.inversion import NoisyArray
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paired(JointFunction):
    """A function of two values, over rows that have both."""

    moment: Moment
    operands: ClassVar[frozenset[str]] = frozenset({"expression"})

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read two numbers."""
        first, second = (reader.read_number(node, operand) for operand in (node.this, node.expression))
        return (Asked(function=self, argument=first, second=second, text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up both values, what squares are needed, and their products, each about the middle of its bounds."""
        first, second = asked.arguments
        bounds = collector.bound(first), collector.bound(second)
        grids = collector.grid(first, bounds[0]), collector.grid(second, bounds[1])
        one, other = beside(first, second), beside(second, first)
        reach = (bounds[0][1] - bounds[0][0]) / 2 * ((bounds[1][1] - bounds[1][0]) / 2)
        product = call("multiply", distance(one, bounds[0]), distance(second, bounds[1]))
        size = collector.public_count(one)
        counted = [] if size is not None else [collector.count(one)]
        total = collector.add_up(one, bounds[0], centred=True, grid=grids[0])
        squares = [collector.add_squares(one, bounds[0])] if self.moment.of_first_squares else []
        products = collector.add_reals(product, (-reach, reach))
        others = [collector.add_up(other, bounds[1], centred=True, grid=grids[1])]
        others += [collector.add_squares(other, bounds[1])] if self.moment.of_second_squares else []
        return Ingredients(
            tallies=(*counted, total, *squares, products, *others),
            bounds=bounds[0],
            other_bounds=bounds[1],
            mean=(counted[0], total) if counted else None,
            size=size,
        )

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the numbers that were asked for."""
        assert part.bounds is not None
        assert part.other_bounds is not None
        middles = Middle.of(part.bounds), Middle.of(part.other_bounds)
        return combine_moments(self.moment, read_pairs(part, cells, middles, self.moment), middles)

    def clamps(self, asked: Asked, part: Ingredients) -> Iterator[tuple[str, Expression, Interval]]:
        """Say where either value is clamped."""
        first = 1 if part.size is None else 0
        second = first + (3 if self.moment.of_first_squares else 2)
        named = ((first, "first"), (second, "second"))
        return list_clamps([(f"{asked.text} ({called} value)", part.tallies[at]) for at, called in named])


def read_pairs(part: Ingredients, cells: NoisyCells, middles: tuple[Middle, Middle], moment: Moment) -> PairMoments:
    """Return the noisy moments of both values, in units of their half widths."""
    halves = [middle.half for middle in middles]
    own = [False, moment.of_first_squares, moment.of_second_squares]
    units = [halves[0], *[halves[0] ** 2] * own[1], halves[0] * halves[1], halves[1], *[halves[1] ** 2] * own[2]]
    sums = join_sums(part, cells, units)
    tallies = iter(part.tallies if part.size is not None else part.tallies[1:])
    read = iter(zip(sums.others, tallies, units, strict=True))

    def take(middle: Middle | None) -> NoisyArray:
        """Return the next sum, counted from the middle of its values' bounds."""
        number, tally, unit = next(read)
        return number.plus(sums.count, float(tally.origin / unit) if middle is None else middle.shift(tally))

    first = take(middles[0])
    first_squares = take(None) if own[1] else None
    products = take(None)
    second = take(middles[1])
    second_squares = take(None) if own[2] else None
    return PairMoments(sums, first, second, products, first_squares, second_squares)


COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, REGR_INTERCEPT = (
    _Paired(name=moment.value, titles=(moment.value.upper(),), nodes=(node,), moment=moment)
    for moment, node in (
        (Moment.COVAR_POP, exp.CovarPop),
        (Moment.COVAR_SAMP, exp.CovarSamp),
        (Moment.CORR, exp.Corr),
        (Moment.REGR_SLOPE, exp.RegrSlope),
        (Moment.REGR_INTERCEPT, exp.RegrIntercept),
    )
)
