"""approx_top_k: the most frequent of public values, as a list in a cell.

It peels the engine's histogram over public values: the most frequent value by the exponential mechanism, then the most
frequent of those that are left, and so on.

Privacy:
    Claim: one unit moves the score of a value by at most ``rows``, in at most ``groups`` groups.
    Proof: a unit adds to the bins of a group as many as it has rows there, each to one bin, and at most ``rows`` are
        kept, by a function of its own rows (ops.Histogram). Which values there are follows from public facts. A top-k
        is TopK in each group (plan.choice).
    Needs: ops.Histogram and ops.Aggregate; public values from query.check.keys.
    Ref: SOUNDNESS 5 and 10; Durfee, Rogers 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.errors import NotAllowed
from hubbub.mechanisms import Mechanism, TopK
from hubbub.policy.kinds import Kind
from hubbub.query.aggregates.extremes import ChosenFunction
from hubbub.query.aggregates.function import NoisyCell
from hubbub.query.answer.columns import Nesting
from hubbub.query.expression import Value
from hubbub.query.plan.choice import FrequencyChoice, encode_values
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


class TopValues(exp.Expression, exp.AggFunc):
    """approx_top_k(x, k), which BigQuery calls APPROX_TOP_COUNT."""

    arg_types = {"this": True, "expression": True}  # noqa: RUF012
    _sql_names = ["APPROX_TOP_K"]  # noqa: RUF012


@dataclass(frozen=True, slots=True, kw_only=True)
class TopChoice(FrequencyChoice):
    """The choice of the k most frequent candidates, one after the other."""

    best: int

    @property
    def numbers(self) -> int:
        """One for each that is chosen."""
        return self.best

    @property
    def equal_parts(self) -> int:
        """One for each that is chosen."""
        return self.best

    def choose_in_group(self, epsilon: Fraction) -> Mechanism:
        """Return the mechanism for k candidates."""
        return TopK(
            epsilon=epsilon,
            sensitivity=Fraction(self.rows),
            monotone=self.is_monotone,
            neighbors=self.reach.neighbors,
            k=self.best,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Top(ChosenFunction):
    """The most frequent values, in a noisy order."""

    operands: ClassVar[frozenset[str]] = frozenset({"expression"})
    is_nested: ClassVar[bool] = True
    buys_bounds: ClassVar[bool] = False

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a value that can be listed, and how many are asked for."""
        found = reader.read_listed("A top-k", node.this, self)
        return (replace(found, many=_read_count(node.expression, found.values)),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Choose among counts of the values."""
        assert asked.argument is not None
        histogram = encode_values(asked.argument, asked.values, rows=collector.rows)
        return Ingredients(choice=collector.choose(TopChoice, histogram, best=asked.many))

    def read_value(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> list[Value]:
        """Return the values that were chosen."""
        assert part.choice is not None
        return [asked.values[step] for step in cell.read(part.choice)]

    def kind(self, asked: Asked) -> Kind:
        """Return the kind of the values."""
        assert asked.argument is not None
        return replace(asked.argument.kind, nullable=True)

    def nesting(self, asked: Asked) -> Nesting:
        """Return a list."""
        return Nesting(lists=True)

    def describe_choice(self, asked: Asked, rows: int) -> str:
        """Say how much less frequent each value may be."""
        return f"{asked.many} of {len(asked.values)} values, each with at most {rows:,} rows less than any that is left"


def _read_count(node: exp.Expr, values: Sequence[Value]) -> int:
    """Read the k of a top-k."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit() or len(node.name) > 9:
        raise NotAllowed("A top-k takes a value and a whole number: approx_top_k(ward, 3).")
    if not 1 <= int(node.name) <= len(values):
        raise NotAllowed(f"There are {len(values)} values, and {node.name} are asked for. Ask for 1 to {len(values)}.")
    return int(node.name)


TOP = _Top(
    name="approx_top_k",
    titles=("APPROX_TOP_K",),
    nodes=(TopValues,),
    spellings=(("APPROX_TOP_K", TopValues.from_arg_list), ("APPROX_TOP_COUNT", TopValues.from_arg_list)),
)
