"""median_interval(x) and quantile_interval(x, q): a quantile with an interval of values, which a shown share buys.

What a choice by ranks says of values depends on the data, so that a quantile has a bound on ranks alone. Here the
quantile has a third of its share of the budget, and two other choices have a third each: one aims so many ranks below
it and one so many above that the exact quantile is between them with 95%, whatever the data are.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from hubbub.mechanisms import Mechanism, PerGroup, QuantileBracket
from hubbub.query.aggregates.extremes import RankedFunction
from hubbub.query.aggregates.function import CONFIDENCE, Margins, NoisyCell, NoisyCells
from hubbub.query.aggregates.quantile import read_level
from hubbub.query.plan.choice import Choice
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


class MedianInterval(exp.Expression, exp.AggFunc):
    """median_interval(x)."""

    arg_types = {"this": True}  # noqa: RUF012
    _sql_names = ["MEDIAN_INTERVAL"]  # noqa: RUF012


class QuantileInterval(exp.Expression, exp.AggFunc):
    """quantile_interval(x, q)."""

    arg_types = {"this": True, "quantile": True}  # noqa: RUF012
    _sql_names = ["QUANTILE_INTERVAL"]  # noqa: RUF012


@dataclass(frozen=True, slots=True, kw_only=True)
class BracketChoice(Choice):
    """The choice of a quantile and of two values that hold it between them."""

    level: Fraction

    @property
    def numbers(self) -> int:
        """The quantile and both ends."""
        return 3

    @property
    def equal_parts(self) -> int:
        """A third of ε for each."""
        return 3

    def choose_in_group(self, epsilon: Fraction) -> Mechanism:
        """Return the mechanism for a quantile and both ends."""
        return QuantileBracket(
            epsilon=epsilon,
            bounds=(Fraction(0), Fraction(self.top)),
            grid=Fraction(1),
            rows=self.rows,
            neighbors=self.reach.neighbors,
            q=self.level,
            beta=1 - Fraction(str(CONFIDENCE)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuantileInterval(RankedFunction):
    """A quantile with an interval of values."""

    has_interval: ClassVar[bool] = True

    def read_operands(self, node: exp.Expr) -> frozenset[str]:
        """Return the part that has the level; that of a median is known."""
        return frozenset({"quantile"}) if isinstance(node, QuantileInterval) else frozenset()

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a value and a level above 0 and below 1."""
        level = read_level(node.args.get("quantile"), inside=True) if "quantile" in node.args else Fraction(1, 2)
        return (Asked(function=self, argument=reader.read_number(node, node.this), level=level, text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Choose a quantile and both ends from one histogram."""
        assert asked.level is not None
        histogram, bounds = self.measure_histogram(asked, collector)
        return Ingredients(choice=collector.choose(BracketChoice, histogram, level=asked.level), bounds=bounds)

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the quantile between its ends, which have the confidence that they were drawn for and no more."""
        assert part.choice is not None
        chosen, *ends = cell.read(part.choice)
        value, low, high = (self.read_step(part, step) for step in (chosen, *ends))
        if cell.confidence > CONFIDENCE:
            return NoisyNumber(value)
        return NoisyNumber(value, min(low, value), max(high, value))

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the quantiles of all groups."""
        return [self.combine(asked, part, cell) for cell in cells]

    def explain(self, asked: Asked, part: Ingredients, margins: Margins) -> dict[str, Any]:
        """Say how many ranks the ends aim away from the quantile."""
        assert part.choice is not None
        chosen = margins.find_choice(part.choice).mechanism
        assert isinstance(chosen, PerGroup)
        assert isinstance(chosen.mechanism, QuantileBracket)
        found = super(_QuantileInterval, self).explain(asked, part, margins)
        own = f"; a third of its share for each of _low and _high, which aim {chosen.mechanism.aside:,} ranks away"
        return found | {"sentence": found["sentence"].replace("; no interval of values", own)}


QUANTILE_INTERVAL = _QuantileInterval(
    name="quantile_interval",
    titles=("MEDIAN_INTERVAL", "QUANTILE_INTERVAL"),
    nodes=(MedianInterval, QuantileInterval),
    spellings=(
        ("MEDIAN_INTERVAL", MedianInterval.from_arg_list),
        ("QUANTILE_INTERVAL", QuantileInterval.from_arg_list),
    ),
)
