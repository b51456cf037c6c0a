"""The definition of an aggregate: its SQL, what it measures, how noisy numbers are combined, and their noise.

Everything here is post-processing: it sees noisy numbers and public facts, and nothing else.

A function is one value of a subclass, in a file of its own, and one line of ``table.FUNCTIONS``. Nothing else knows
which functions there are. ``docs/adding.md`` says how to add one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from hubbub.mechanisms.base import Mechanism
from hubbub.policy.kinds import Kind, Type, integer
from hubbub.query.answer.columns import PLAIN, Nesting
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression
from hubbub.query.ops import Tally
from hubbub.query.plan.choice import HistogramStatistic
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.ratios import Ratios
from hubbub.query.plan.statistic import NoisyNumber, NoisySum, QueryMeasurement, Statistic, scale_steps
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Margins:
    """The margin of error of each tally of a plan: the same in every group."""

    measurements: Sequence[QueryMeasurement]
    rows: int | None
    """The most rows of one unit that count in one group."""
    single: bool = False
    """Whether a unit has one row at most."""
    _telling: dict[int, tuple[Tally, QueryMeasurement]] = field(default_factory=dict, compare=False, repr=False)
    _known: dict[tuple[int, float], Fraction] = field(default_factory=dict, compare=False, repr=False)

    def find(self, tally: Tally) -> QueryMeasurement:
        """Return the measurement that tells a tally."""
        known = self._telling.get(id(tally))
        if known is None:
            known = tally, next(one for one in self.measurements if tally in one.take.tells)
            self._telling[id(tally)] = known  # it is kept, so that nothing else gets its id
        return known[1]

    def find_choice(self, statistic: Statistic | None) -> QueryMeasurement:
        """Return the measurement of what is chosen, or counted, from a histogram."""
        return next(one for one in self.measurements if one.take == statistic)

    def mechanism(self, tally: Tally) -> Mechanism:
        """Return what measures a tally."""
        return self.find(tally).mechanism

    def bound(self, tally: Tally, beta: float) -> Fraction:
        """Return how far a tally may be off, in its own units, except with probability ``beta``."""
        own = self.find(tally)
        if (id(tally), beta) not in self._known:
            self._known[id(tally), beta] = own.take.bound_error(own.mechanism, tally, beta)
        return self._known[id(tally), beta]


@dataclass(frozen=True, slots=True)
class NoisyCell:
    """The noisy numbers of one group."""

    margins: Margins
    numbers: Callable[[QueryMeasurement], Sequence[int]]
    cell: int
    confidence: float

    def sum(self, tally: Tally, beta: float) -> NoisySum:
        """Return a noisy sum or count in its own units, with its margin."""
        own = self.margins.find(tally)
        return own.take.estimate_sum(
            own.mechanism, self._steps(own, tally), tally, self.margins.bound(tally, beta), beta
        )

    def number(self, tally: Tally) -> NoisyNumber:
        """Return a sum or count that is shown as it is, with its interval."""
        own, beta = self.margins.find(tally), 1 - self.confidence
        steps = self._steps(own, tally)
        return own.take.estimate_number(own.mechanism, steps, tally, self.margins.bound(tally, beta), beta)

    def _steps(self, own: QueryMeasurement, tally: Tally) -> int | Fraction:
        return own.take.decode(self.numbers(own), self.cell, tally)

    @property
    def alone(self) -> "NoisyCells":
        """Return it as the only one of several groups."""
        return NoisyCells(self.margins, self.numbers, (self.cell,), self.confidence)

    def read(self, statistic: HistogramStatistic) -> Sequence[int]:
        """Return what was drawn for a choice, or for the bins of a histogram."""
        return statistic.read_group(self.numbers(self.margins.find_choice(statistic)), self.cell)


@dataclass(frozen=True, slots=True)
class NoisyCells:
    """The noisy numbers of several groups: of all, or of one by itself."""

    margins: Margins
    numbers: Callable[[QueryMeasurement], Sequence[int]]
    places: Sequence[int]
    confidence: float

    def __iter__(self) -> Iterator[NoisyCell]:
        for place in self.places:
            yield NoisyCell(self.margins, self.numbers, place, self.confidence)

    def list_numbers(self, tally: Tally) -> list[NoisyNumber]:
        """Return a sum or count that is shown as it is, of all groups."""
        own, beta = self.margins.find(tally), 1 - self.confidence
        margin, numbers = self.margins.bound(tally, beta), self.numbers(own)
        return own.take.estimate_numbers(own.mechanism, numbers, tally, places=self.places, margin=margin, beta=beta)

    def list_ratios(self, tally: Tally) -> Ratios:
        """Return a sum or count of all groups, exactly, in its own units."""
        own = self.margins.find(tally)
        return scale_steps(own.take.list_steps(self.numbers(own), self.places, tally), tally)


Builder = Callable[[Sequence[Any]], exp.Expr]
"""Makes a node of the arguments of a call."""
MOST_NOISY = 1 << 62
"""Noisy whole numbers are taken to lie within this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction(ABC):
    """One aggregate. The flags say what the rest of a question may rely on."""

    name: str
    """As it is called in explanations, and by itself."""
    titles: tuple[str, ...] = ()
    """The names by which refusals list it."""
    nodes: tuple[type[exp.Expr], ...] = ()
    """The parsed calls that it reads."""
    spellings: tuple[tuple[str, Builder], ...] = ()
    """Names that the parser does not know, or reads otherwise, and what they are read as."""

    operands: ClassVar[frozenset[str]] = frozenset()
    """Parts of a call beside its first argument."""
    bounds_taken: ClassVar[tuple[str, ...]] = ()
    """The named bounds that may stand in a call."""
    is_ordered: ClassVar[bool] = False
    """Whether it may stand before WITHIN GROUP (ORDER BY …)."""
    is_nested: ClassVar[bool] = False
    """Whether it puts a list or a mapping into a cell, of which nothing further is computed."""
    is_additive: ClassVar[bool] = False
    """Whether it is one noisy tally as it is, so that its error is public before anything is drawn."""
    is_total: ClassVar[bool] = False
    """Whether what a unit adds to a group can be bounded as a whole, where no bounds of values are known."""
    has_interval: ClassVar[bool] = True
    """Whether its error is one of values; that of a choice is one of ranks."""
    counts_rows: ClassVar[bool] = True
    """Whether it needs to know how many rows of a unit count in a group."""
    covers_dropped: ClassVar[bool] = False
    """Whether its interval can cover what limits drop (``widen``)."""
    buys_bounds: ClassVar[bool] = True
    """Whether bounds of its arguments that nobody declared can be bought for it."""

    # Reading

    @abstractmethod
    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a call: one number, or one for each quantile of a list."""

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        """Return a call that means the same, where it is read as another function."""
        return node

    def is_list(self, node: exp.Expr, order: exp.Expr | None) -> bool:
        """Return whether a call makes several columns."""
        return False

    def read_operands(self, node: exp.Expr) -> frozenset[str]:
        """Return the parts of a call that are read."""
        return self.operands

    # Measuring and combining

    @abstractmethod
    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add what it needs, and return what it is made of."""

    @abstractmethod
    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the number that was asked for, with the interval that its law gives."""

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the numbers of all groups: those of ``combine``, for whoever can make them faster."""
        return [self.combine(asked, part, cell) for cell in cells]

    def divide_beta(self, part: Ingredients, margins: Margins, beta: float) -> float:
        """Return how much of what an interval may miss ``combine`` gets, where ``widen`` gets the rest."""
        return beta

    def widen(self, asked: Asked, part: Ingredients, number: NoisyNumber, cell: NoisyCell, beta: float) -> NoisyNumber:
        """Return the number of ``combine`` with what limits drop, and an interval that covers that too."""
        return number

    # What is public about it

    def kind(self, asked: Asked) -> Kind:
        """Return what its numbers are."""
        return Kind(type=Type.REAL)

    def nesting(self, asked: Asked) -> Nesting:
        """Return what a cell holds."""
        return PLAIN

    def clamps(self, asked: Asked, part: Ingredients) -> Iterator[tuple[str, Expression, Interval]]:
        """Say which values are clamped where, and for what."""
        yield from list_clamps((asked.text, tally) for tally in part.tallies[-1:] if part.bounds is not None)

    def explain(self, asked: Asked, part: Ingredients, margins: Margins) -> dict[str, Any]:
        """Say what it costs in error: here, of a function of several noisy sums."""
        return explain_sums(asked, part, margins, *self.describe_error(part, margins))

    def describe_error(self, part: Ingredients, margins: Margins) -> tuple[str, float | None]:
        """Say how far it may be off, and by how much where that is known beforehand."""
        tallies, beta = part.tallies, (1 - CONFIDENCE) / len(part.tallies)
        needed = ", ".join(f"± {shorten(margins.bound(tally, beta))}" for tally in tallies)
        name = name_mechanism(tallies[0], margins)
        if part.size is not None:
            needed += f", and {part.size:,} rows, as declared"
        return f"from {len(tallies)} noisy sums ({needed}), {name}; its own interval follows from them", None

    def describe_group_bounds(self) -> str:
        """Say what is clamped where the question bounds what a unit adds to a group."""
        return "what a unit adds to a group"


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFunction(AggregateFunction):
    """A function of several noisy sums, whose interval follows from the joint law of their noise."""

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the number of one group, as that of several."""
        (number,) = self.combine_all(asked, part, cell.alone)
        return number

    @abstractmethod
    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the numbers of all groups, with the intervals that the joint law gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveFunction(AggregateFunction):
    """One noisy tally, shown as it is."""

    is_additive: ClassVar[bool] = True

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the noisy tally."""
        return cell.number(part.tallies[0])

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the noisy tallies."""
        return cells.list_numbers(part.tallies[0])

    def describe_error(self, part: Ingredients, margins: Margins) -> tuple[str, float | None]:
        """Say the margin of the tally."""
        around = margins.bound(part.tallies[0], 1 - CONFIDENCE)
        name = name_mechanism(part.tallies[0], margins)
        return f"± {shorten(around)} ({CONFIDENCE:.0%}), {name}", float(around)


def explain_sums(
    asked: Asked, part: Ingredients, margins: Margins, sentence: str, expected: float | None
) -> dict[str, Any]:
    """Return the explanation of a function of tallies: its error, then where values are clamped."""
    bounds, each = (None if ends is None else [float(end) for end in ends] for ends in (part.bounds, part.per_group))
    if bounds and part.per_group != part.bounds:
        sentence += f"; values clamped to {bounds[0]:g} … {bounds[1]:g}"
    if each:
        whose = asked.function.describe_group_bounds()
        sentence += f"; {whose} clamped to {each[0]:g} … {each[1]:g}"
    return {
        "text": asked.text,
        "mechanism": name_mechanism(part.tallies[0], margins),
        "margin": expected,
        "bounds": bounds,
        "rows_per_group": 1 if margins.single else margins.rows if each is None else None,
        "each": each,
        "sentence": sentence,
    }


def list_clamps(tallies: Any) -> Iterator[tuple[str, Expression, Interval]]:
    """Say which values tallies clamp."""
    for text, tally in tallies:
        if tally.argument is not None and tally.clamp is not None:
            yield text, tally.argument, tally.clamp


def name_mechanism(tally: Tally, margins: Margins) -> str:
    """Return the name of what measures a tally."""
    return type(margins.mechanism(tally)).__name__


def shorten(value: Fraction) -> str:
    """Write a margin."""
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.6g}"


def whole_numbers(*, nullable: bool = True) -> Kind:
    """Return the kind of noisy whole numbers."""
    return integer(-MOST_NOISY, MOST_NOISY, nullable=nullable)


def lift_count(number: NoisyNumber) -> NoisyNumber:
    """Return a count with 0 for what is negative: an interval that holds the exact one still does."""
    return number if number.low >= 0 else NoisyNumber(*(max(0, end) for end in (number.value, number.low, number.high)))
