"""weighted_avg(x, w): a noisy total of weight times value over a noisy total of weights.

Rows count that have both. Weights are clamped to their bounds, and to 0 from below: a negative weight counts as 0. As
in DuckDB there is no number where all weights are 0, which is told here by the noisy total of weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from hubbub.errors import MissingBounds
from hubbub.policy.kinds import outward
from hubbub.query.aggregates.function import JointFunction, Margins, NoisyCells, list_clamps
from hubbub.query.aggregates.joint_sums import divide_sums_of
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression
from hubbub.query.functions import call
from hubbub.query.plan.collect import Collector, Ingredients, beside, clamp_real, distance
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


class WeightedAverage(exp.Expression, exp.AggFunc):
    """weighted_avg(x, w)."""

    arg_types = {"this": True, "expression": True}  # noqa: RUF012
    _sql_names = ["WEIGHTED_AVG"]  # noqa: RUF012


@dataclass(frozen=True, slots=True, kw_only=True)
class _WeightedAverage(JointFunction):
    """A mean in which each row has a weight."""

    operands: ClassVar[frozenset[str]] = frozenset({"expression"})

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a value and its weight."""
        value, weight = (reader.read_number(node, operand) for operand in (node.this, node.expression))
        return (Asked(function=self, argument=value, second=weight, text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up weights, and weights times distances from the middle of the values' bounds.

        Both sums of a unit are cut in proportion to the same rows, so that their ratio is that of its own averages.
        """
        value, weight = asked.arguments
        bounds, (low, high) = collector.bound(value), collector.bound(weight)
        if high <= 0:
            raise MissingBounds("Weights have an upper bound above 0. Declare another one, or write greatest(w, 0).")
        weights = max(low, Fraction(0)), high
        half = (bounds[1] - bounds[0]) / 2
        there = beside(weight, value)
        product = call("multiply", clamp_real(there, weights), distance(value, bounds))
        added = collector.add_reals(product, (-half * high, half * high))
        grid = collector.grid(weight, weights)
        total = collector.add_steps(there, outward(weights, grid), Fraction(0), grid, in_proportion=True)
        return Ingredients(tallies=(total, added), bounds=bounds, other_bounds=weights)

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the ratios, about the middle of the bounds."""
        assert part.bounds is not None
        middle = Fraction(float((part.bounds[0] + part.bounds[1]) / 2))  # as the rows had it subtracted
        return divide_sums_of(part, cells, origin=middle, bounds=part.bounds, least=0)

    def clamps(self, asked: Asked, part: Ingredients) -> Iterator[tuple[str, Expression, Interval]]:
        """Say where values and weights are clamped."""
        assert part.bounds is not None
        yield f"{asked.text} (value)", beside(*asked.arguments), part.bounds
        yield from list_clamps([(f"{asked.text} (weight)", part.tallies[0])])

    def explain(self, asked: Asked, part: Ingredients, margins: Margins) -> dict[str, Any]:
        """Say what any function of sums says, and where weights are clamped."""
        found = super(_WeightedAverage, self).explain(asked, part, margins)
        assert part.other_bounds is not None
        low, high = (float(end) for end in part.other_bounds)
        return found | {"sentence": f"{found['sentence']}; weights clamped to {low:g} … {high:g}"}


WEIGHTED_AVG = _WeightedAverage(
    name="weighted_avg",
    titles=("WEIGHTED_AVG",),
    nodes=(WeightedAverage,),
    spellings=(("WEIGHTED_AVG", WeightedAverage.from_arg_list), ("WAVG", WeightedAverage.from_arg_list)),
)
