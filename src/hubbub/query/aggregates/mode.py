"""mode: the most frequent of public values, in each group."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.mechanisms import Exponential, Mechanism
from hubbub.policy.kinds import Kind
from hubbub.query.aggregates.extremes import ChosenFunction
from hubbub.query.aggregates.function import NoisyCell
from hubbub.query.expression import Value
from hubbub.query.plan.choice import FrequencyChoice, encode_values
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChoice(FrequencyChoice):
    """The choice of the most frequent candidate."""

    def choose_in_group(self, epsilon: Fraction) -> Mechanism:
        """Return the exponential mechanism over counts."""
        return Exponential(
            epsilon=epsilon,
            sensitivity=Fraction(self.rows),
            monotone=self.is_monotone,
            neighbors=self.reach.neighbors,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mode(ChosenFunction):
    """The most frequent value."""

    is_ordered: ClassVar[bool] = True
    buys_bounds: ClassVar[bool] = False

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a value that can be listed."""
        return (reader.read_listed("MODE", node.this if order is None else reader.read_order(order)[0], self),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Choose among counts of the values."""
        assert asked.argument is not None
        histogram = encode_values(asked.argument, asked.values, rows=collector.rows)
        return Ingredients(choice=collector.choose(ModeChoice, histogram))

    def read_value(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> Value:
        """Return the value that was chosen."""
        assert part.choice is not None
        return asked.values[cell.read(part.choice)[0]]

    def kind(self, asked: Asked) -> Kind:
        """Return the kind of the values."""
        assert asked.argument is not None
        return replace(asked.argument.kind, nullable=True)

    def describe_choice(self, asked: Asked, rows: int) -> str:
        """Say how much less frequent the value may be."""
        return f"one of {len(asked.values)} values, with at most {rows:,} rows less than the most frequent one"


MODE = _Mode(name="mode", titles=("MODE",), nodes=(exp.Mode,))
