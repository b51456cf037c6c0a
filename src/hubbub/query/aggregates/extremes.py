"""min and max: about the least and the greatest value, chosen by rank from a histogram."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from hubbub.mechanisms import Extreme, Mechanism
from hubbub.policy.kinds import Kind, Type
from hubbub.query.aggregates.function import (
    CONFIDENCE,
    AggregateFunction,
    Margins,
    NoisyCell,
    NoisyCells,
    list_clamps,
    whole_numbers,
)
from hubbub.query.plan.choice import Choice, lay_out
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hubbub.query.check.bounds import Interval
    from hubbub.query.expression import Expression
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFunction(AggregateFunction):
    """A value that is chosen from a histogram: its error is one of ranks, so it has no interval of values."""

    has_interval: ClassVar[bool] = False

    def describe_choice(self, asked: Asked, rows: int) -> str:
        """Say how far what is chosen may be from what is meant."""
        return f"at most {rows:,} rows between it and the exact one"

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return what was chosen, with the rows that may lie between it and what was meant."""
        return NoisyNumber(
            self.read_value(asked, part, cell), ranks=self.count_ranks(asked, part, cell.margins, cell.confidence)
        )

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return what was chosen in all groups, each with the same bound."""
        ranks = self.count_ranks(asked, part, cells.margins, cells.confidence)
        return [NoisyNumber(self.read_value(asked, part, cell), ranks=ranks) for cell in cells]

    @abstractmethod
    def read_value(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> Any:
        """Return what was chosen in a group."""

    def count_ranks(self, asked: Asked, part: Ingredients, margins: Margins, confidence: float) -> int:
        """Return the most rows between a choice and what was meant, with this confidence, whatever the data are."""
        choice = part.choice
        assert isinstance(choice, Choice)
        return math.ceil(choice.bound_rank_error(margins.find_choice(choice).mechanism, 1 - confidence, asked.level))

    def explain(self, asked: Asked, part: Ingredients, margins: Margins) -> dict[str, Any]:
        """Say how many rows lie between the value and what was meant."""
        choice = part.choice
        assert isinstance(choice, Choice)
        mechanism = margins.find_choice(choice).mechanism
        off = self.count_ranks(asked, part, margins, CONFIDENCE)
        inner = type(getattr(mechanism, "mechanism", mechanism)).__name__
        bounds = None if part.bounds is None else [float(end) for end in part.bounds]
        return {
            "text": asked.text,
            "mechanism": inner,
            "margin": None,
            "rank_margin": off,
            "bounds": bounds,
            "rows_per_group": choice.rows,
            "sentence": f"{self.describe_choice(asked, off)} ({CONFIDENCE:.0%}), {inner}; no interval of values"
            + (f"; values clamped to {bounds[0]:g} … {bounds[1]:g}" if bounds else ""),
        }

    def clamps(self, asked: Asked, part: Ingredients) -> "Iterator[tuple[str, Expression, Interval]]":
        """Say where the histogram ends; codes of listed values are always within theirs."""
        assert part.choice is not None
        return list_clamps([(asked.text, part.choice.histogram)])


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFunction(ChosenFunction):
    """A value of a number, chosen by its rank."""

    keeps_whole: ClassVar[bool] = True
    """Whether it is a whole number where the values are."""

    def measure_histogram(self, asked: Asked, collector: Collector) -> tuple[Any, Any]:
        """Return the histogram of the values within their bounds, and these."""
        assert asked.argument is not None
        bounds = collector.bound(asked.argument)
        step = collector.step(asked.argument)
        return lay_out(asked.argument, bounds, step, rows=collector.rows, cells=collector.cells), bounds

    def kind(self, asked: Asked) -> Kind:
        """Return whole numbers where the values are whole, else reals."""
        assert asked.argument is not None
        whole = self.keeps_whole and asked.argument.kind.type is Type.INTEGER
        return whole_numbers() if whole else Kind(type=Type.REAL)

    def read_value(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> int | float:
        """Return the value of the step that was chosen."""
        return self.read_step(part, self.pick(asked, part, cell))

    def read_step(self, part: Ingredients, step: int) -> int | float:
        """Return the value of a step."""
        assert part.choice is not None
        histogram = part.choice.histogram
        value = histogram.origin + step * histogram.grid
        whole = self.keeps_whole and histogram.argument.kind.type is Type.INTEGER
        return int(value) if whole else float(value)

    def pick(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> int:
        """Return the step that was chosen."""
        assert part.choice is not None
        return cell.read(part.choice)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeChoice(Choice):
    """The choice of a step near one end of the values."""

    is_highest: bool

    def choose_in_group(self, epsilon: Fraction) -> Mechanism:
        """Return the mechanism for an end."""
        return Extreme(
            epsilon=epsilon,
            bounds=(Fraction(0), Fraction(self.top)),
            grid=Fraction(1),
            rows=self.rows,
            neighbors=self.reach.neighbors,
            highest=self.is_highest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extreme(RankedFunction):
    """The value at one end."""

    is_highest: bool

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read the end of numbers."""
        return (Asked(function=self, argument=reader.read_number(node, node.this), text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Choose an end from a histogram."""
        histogram, bounds = self.measure_histogram(asked, collector)
        choice = collector.choose(ExtremeChoice, histogram, is_highest=self.is_highest)
        return Ingredients(choice=choice, bounds=bounds)


MIN = _Extreme(name="min", titles=("MIN",), nodes=(exp.Min,), is_highest=False)
MAX = _Extreme(name="max", titles=("MAX",), nodes=(exp.Max,), is_highest=True)
