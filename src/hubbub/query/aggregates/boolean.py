"""bool_and and bool_or: whether all values are true, or any is, as far as a noisy number of units can tell.

No private answer can depend on one row alone. So what is measured is how many units have a counterexample: a false
value for bool_and, a true one for bool_or. bool_and is false only where that noisy number is above its own margin of
error, so that at least one such unit is there with 95% confidence; otherwise it is true. bool_or is true only where the
number of units with a true value is above its margin. With a margin of m the answer is the exact one with 95%
confidence where no unit has a counterexample, and where more than 2 · m have; between these it may be either, and the
interval says so: from false to true.

Missing values do not count. A group without any value is true for bool_and and false for bool_or, where DuckDB has
NULL: that it has none is not told for free.

Privacy:
    Claim: one unit moves the number of units with a counterexample by at most 1, in at most ``groups`` groups.
    Proof: UNITS of ops.Tally, whose argument is a function of one row. The rest is post-processing.
    Needs: ops.Aggregate.
    Ref: SOUNDNESS 5, 10.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from hubbub.errors import TypeMisfit
from hubbub.policy.kinds import Kind, Type
from hubbub.query.aggregates.function import CONFIDENCE, AggregateFunction, Margins, NoisyCell, name_mechanism
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


class AllTrue(exp.Expression, exp.AggFunc):
    """bool_and(x)."""

    arg_types = {"this": True}  # noqa: RUF012
    _sql_names = ["BOOL_AND"]  # noqa: RUF012


class AnyTrue(exp.Expression, exp.AggFunc):
    """bool_or(x)."""

    arg_types = {"this": True}  # noqa: RUF012
    _sql_names = ["BOOL_OR"]  # noqa: RUF012


@dataclass(frozen=True, slots=True, kw_only=True)
class _Boolean(AggregateFunction):
    """A condition over all rows, decided by a counterexample: ``decides`` is the value that one gives the aggregate."""

    decides: bool
    counts_rows: ClassVar[bool] = False
    buys_bounds: ClassVar[bool] = False

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a condition."""
        value = reader.read_value(node.this)
        if value.kind.type is not Type.BOOLEAN:
            raise TypeMisfit(f"{self.titles[0]} takes conditions, not {value.kind}.")
        return (Asked(function=self, argument=value, text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Count units with a value that decides."""
        assert asked.argument is not None
        met = asked.argument if self.decides else call("not", asked.argument)
        shown = call("case", met, literal(True), literal(None, Type.BOOLEAN))
        return Ingredients(tallies=(collector.add(Tally(measure=Measure.UNITS, argument=shown)),))

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return what is certain of the noisy number of units, or else what is so without any."""
        (tally,) = part.tallies
        units, number = cell.sum(tally, 1 - CONFIDENCE), cell.number(tally)
        some, surely_some, surely_none = units.value > units.margin, number.low > 0, number.high < 1
        if self.decides:
            return NoisyNumber(some, surely_some, not surely_none)
        return NoisyNumber(not some, surely_none, not surely_some)

    def kind(self, asked: Asked) -> Kind:
        """Return true or false, and never missing."""
        return Kind(type=Type.BOOLEAN, nullable=False)

    def clamps(self, asked: Asked, part: Ingredients) -> Iterator[tuple[str, Expression, Interval]]:
        """Say that nothing is clamped."""
        return iter(())

    def explain(self, asked: Asked, part: Ingredients, margins: Margins) -> dict[str, Any]:
        """Say how many units decide."""
        (tally,) = part.tallies
        most, name = math.floor(margins.bound(tally, 1 - CONFIDENCE)), name_mechanism(tally, margins)
        word = str(self.decides).lower()
        return {
            "text": asked.text,
            "mechanism": name,
            "margin": None,
            "bounds": None,
            "rows_per_group": None,
            "sentence": f"{word} only if the noisy number of units with a {word} value is above {most:,}: right "
            f"({CONFIDENCE:.0%}) where none has one, or more than {2 * most:,} have, {name}",
        }


BOOL_AND = _Boolean(
    name="bool_and",
    titles=("BOOL_AND",),
    nodes=(AllTrue,),
    spellings=(("BOOL_AND", AllTrue.from_arg_list), ("LOGICAL_AND", AllTrue.from_arg_list)),
    decides=False,
)
BOOL_OR = _Boolean(
    name="bool_or",
    titles=("BOOL_OR",),
    nodes=(AnyTrue,),
    spellings=(("BOOL_OR", AnyTrue.from_arg_list), ("LOGICAL_OR", AnyTrue.from_arg_list)),
    decides=True,
)
