"""histogram: how often each public value is there, or how many numbers lie up to each edge, as a mapping in a cell.

All of it is shown, with noise in every bin, empty ones too.

Privacy:
    Claim: one unit moves the bins of at most ``groups`` groups, those of one group together by at most ``rows`` in L1,
        so the vector of all bins by groups · rows in L1 and groups · rows² in L2²; a unit that is replaced by at most
        2 · rows and 2 · rows² in a group that both units are in (``Reach.bound_groups``), and a histogram of one bin by
        ``rows`` and rows² there.
    Proof: a unit adds to the bins of a group as many as it has rows there, each to one bin, and at most ``rows`` are
        kept, by a function of its own rows (ops.Histogram); a sum of squares of whole numbers is at most the square of
        their sum. Replaced, it takes rows away and adds others: the squares of a difference of numbers that are not
        negative add up to no more than those of both, and in a single bin the numbers lie between 0 and ``rows``. Bins
        follow from constants of the question and public values, so which there are tells nothing.
    Needs: ops.Histogram and ops.Aggregate; public values from query.check.keys.
    Ref: SOUNDNESS 5 and 10.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sqlglot import exp

from hubbub.errors import NotAllowed, TooHeavy, TypeMisfit
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.additive.added import AddedNoise
from hubbub.policy.kinds import Kind, Type
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.aggregates.function import (
    CONFIDENCE,
    AggregateFunction,
    Margins,
    NoisyCell,
    list_clamps,
    whole_numbers,
)
from hubbub.query.answer.columns import Nesting
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression, Value, literal
from hubbub.query.functions import call
from hubbub.query.ops import ExactCounts, Histogram
from hubbub.query.plan.choice import MOST_BINS, MOST_VALUES, HistogramStatistic, encode_values
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked
from hubbub.query.read.aggregate_clauses import read_constant

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


class ValueCounts(exp.Expression, exp.AggFunc):
    """histogram(x), or histogram(x, [edges, …])."""

    arg_types = {"this": True, "expression": False}  # noqa: RUF012
    _sql_names = ["HISTOGRAM"]  # noqa: RUF012


@dataclass(frozen=True, slots=True, kw_only=True)
class BinCounts(HistogramStatistic):
    """The counts of all bins, in all groups."""

    def __call__(self, counted: ExactCounts) -> Any:
        """Take the counts, group by group."""
        return np.concatenate(self.scores(counted))

    @property
    def numbers(self) -> int:
        """One for each bin."""
        return self.top + 1

    @property
    def sensitivity(self) -> Sensitivity:
        """Bound how far one unit moves all counts together."""
        rows, bins, reach = Fraction(self.rows), self.top + 1, self.reach
        times = 1 if bins == 1 else 2
        touched = reach.bound_groups(alone=Fraction(min(self.rows, bins)), both=Fraction(min(times * self.rows, bins)))
        return Sensitivity(
            l0=int(touched),
            l1=reach.bound_groups(alone=rows, both=times * rows),
            l2_squared=reach.bound_groups(alone=rows**2, both=times * rows**2),
            linf=rows,
        )

    @property
    def _noise(self) -> AddedNoise:
        return AddedNoise(sensitivity=self.sensitivity, neighbors=self.reach.neighbors)

    def calibrate_pure(self, epsilon: Fraction) -> Mechanism:
        """Return Laplace noise for this ε."""
        return self._noise.calibrate_pure(epsilon)

    def calibrate_zcdp(self, rho: Fraction) -> Mechanism:
        """Return Gaussian noise for this ρ."""
        return self._noise.calibrate_zcdp(rho)

    def calibrate_alone(self, epsilon: Fraction, delta: Fraction) -> Mechanism | None:
        """Return Gaussian noise for (ε, δ)."""
        return self._noise.calibrate_alone(epsilon, delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Histogram(AggregateFunction):
    """Counts of values, or of numbers between edges."""

    operands: ClassVar[frozenset[str]] = frozenset({"expression"})
    is_nested: ClassVar[bool] = True
    buys_bounds: ClassVar[bool] = False

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read public values, or numbers between constant edges."""
        edges = node.args.get("expression")
        if edges is None:
            return (reader.read_listed("A histogram without edges", node.this, self),)
        value = reader.read_value(node.this)
        return (Asked(function=self, argument=value, edges=_read_edges(edges, value), text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Count rows in all bins."""
        assert asked.argument is not None
        if collector.cells * len(name_bins(asked)) > MOST_BINS:
            raise TooHeavy(f"Histograms have at most {MOST_BINS:,} bins over all groups. Ask for fewer groups or bins.")
        if asked.edges:
            histogram = lay_bins(asked.argument, asked.edges, rows=collector.rows)
        else:
            histogram = encode_values(asked.argument, asked.values, rows=collector.rows)
        return Ingredients(choice=collector.choose(BinCounts, histogram))

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return a mapping from bins to noisy numbers, each with its own interval."""
        assert part.choice is not None
        drawn, bins = cell.read(part.choice), name_bins(asked)
        margin = _bound_counts(part, cell.margins, 1 - cell.confidence)
        value, low, high = (
            dict(zip(bins, [max(0, count + away) for count in drawn], strict=True)) for away in (0, -margin, margin)
        )
        return NoisyNumber(value, low, high)

    def kind(self, asked: Asked) -> Kind:
        """Return whole numbers, which are always there."""
        return whole_numbers(nullable=False)

    def nesting(self, asked: Asked) -> Nesting:
        """Return a mapping from the values, or from the upper ends of the bins."""
        assert asked.argument is not None
        return Nesting(keys=Type.REAL if asked.edges else asked.argument.kind.type)

    def explain(self, asked: Asked, part: Ingredients, margins: Margins) -> dict[str, Any]:
        """Say how noisy each bin is."""
        assert part.choice is not None
        around, many = _bound_counts(part, margins, 1 - CONFIDENCE), part.choice.numbers
        mechanism = type(margins.find_choice(part.choice).mechanism).__name__
        return {
            "text": asked.text,
            "mechanism": mechanism,
            "margin": float(around),
            "bounds": None,
            "rows_per_group": part.choice.rows,
            "bins": many,
            "sentence": f"{many} bins, each ± {around:,} ({CONFIDENCE:.0%}), {mechanism}",
        }

    def clamps(self, asked: Asked, part: Ingredients) -> Iterator[tuple[str, Expression, Interval]]:
        """Say where the bins end; codes of listed values are always within theirs."""
        assert part.choice is not None
        return list_clamps([(asked.text, part.choice.histogram)])


def _bound_counts(part: Ingredients, margins: Margins, beta: float) -> int:
    """Bound how far each count may be off."""
    return math.ceil(margins.find_choice(part.choice).mechanism.error(beta=beta))


def _read_edges(node: exp.Expr, argument: Expression) -> tuple[Fraction, ...]:
    """Read the upper ends of the bins of a histogram, ascending; one more bin has what is above the last."""
    if argument.kind.type not in {Type.INTEGER, Type.REAL}:
        raise TypeMisfit(f"A histogram has edges where it is of numbers, not of {argument.kind}.")
    found = [read_constant(one) for one in node.expressions] if isinstance(node, exp.Array) else []
    edges = tuple(one for one in found if one is not None)
    if not edges or len(edges) < len(found) or not 1 <= len(edges) < MOST_VALUES:
        raise NotAllowed(
            f"The edges of a histogram are a list of 1 to {MOST_VALUES - 1} constants: histogram(cost, [10, 20, 50])."
        )
    exact = argument.kind.type is Type.INTEGER
    ends = edges if exact else tuple(Fraction(float(one)) for one in edges)
    if any(low >= high for low, high in itertools.pairwise(ends)):
        raise NotAllowed("The edges of a histogram ascend, each above the one before.")
    return edges


def _end(edge: Fraction, argument: Expression) -> int | float:
    """Return what a value is compared with: of whole numbers, the last one that is not above the edge."""
    return math.floor(edge) if argument.kind.type is Type.INTEGER else float(edge)


def name_bins(asked: Asked) -> tuple[Value, ...]:
    """Name the bins: values, or the upper ends of ranges, the last one of which has none."""
    if not asked.edges:
        return asked.values
    assert asked.argument is not None
    whole = asked.argument.kind.type is Type.INTEGER
    return *(int(one) if whole and one.denominator == 1 else float(one) for one in asked.edges), math.inf


def lay_bins(argument: Expression, edges: Sequence[Fraction], *, rows: int) -> Histogram:
    """Find the bin of each value: 0 up to the first edge and including it, i above edge i - 1 and up to edge i."""
    place = _place(argument, [_end(one, argument) for one in edges], 0, len(edges))
    if argument.kind.nullable:
        place = call("case", call("is_null", argument), literal(None, Type.INTEGER), place)
    ends = Fraction(0), Fraction(len(edges))
    return Histogram(argument=place, clamp=ends, origin=Fraction(0), grid=Fraction(1), most_rows=rows)


def _place(value: Expression, ends: Sequence[int | float], low: int, high: int) -> Expression:
    """Find the bin by halving: few comparisons a row."""
    if low == high:
        return literal(low)
    middle = (low + high) // 2
    below, above = _place(value, ends, low, middle), _place(value, ends, middle + 1, high)
    return call("case", call("le", value, literal(ends[middle])), below, above)


HISTOGRAM = _Histogram(
    name="histogram",
    titles=("HISTOGRAM",),
    nodes=(ValueCounts,),
    spellings=(("HISTOGRAM", ValueCounts.from_arg_list),),
)
