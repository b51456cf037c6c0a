"""What the aggregates of a question are made of: tallies, histograms, and what is chosen from these. Each only once."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import MayOverflow, MissingBounds, TooHeavy
from hubbub.policy.grid import default_grid, outward
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Policy
from hubbub.query.bounds import Interval, bounds_of, interval_of
from hubbub.query.choices import MOST_BINS, UNLISTED, Choice, Wanted, codes, histogram
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Histogram, Measure, Tally
from hubbub.query.present import always_there
from hubbub.query.question import CHOSEN, LISTED, PAIRED, Aggregation, Asked, Question
from hubbub.query.scalars import as_real
from hubbub.query.tops import binned, bins_of

_MOST_STEPS = 1 << 62
_LISTED = {
    Aggregation.MODE: Wanted.MODE,
    Aggregation.TOP: Wanted.TOP,
    Aggregation.HISTOGRAM: Wanted.COUNTS,
}
_SPREADS = frozenset({Aggregation.VAR_POP, Aggregation.VAR_SAMP, Aggregation.STDDEV_POP, Aggregation.STDDEV_SAMP})
_OF_FIRST_SQUARES = frozenset({Aggregation.CORR})
_OF_SECOND_SQUARES = frozenset({Aggregation.CORR, Aggregation.REGR_SLOPE, Aggregation.REGR_INTERCEPT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one aggregate of the question is made of: places of tallies, and the interval of its values."""

    count: int | None = None
    total: int | None = None
    squares: int | None = None
    bounds: Interval | None = None
    products: int | None = None
    each: Interval | None = None
    """Where the question itself clamps what one unit adds to a group."""
    second: "Part | None" = None
    """Of two values, the total, the squares and the bounds of the other one."""
    choice: int | None = None
    """Where the value is chosen, and which of those that are chosen there."""
    level: int = 0

    @property
    def places(self) -> list[int]:
        """Its tallies."""
        own = [one for one in (self.count, self.total, self.squares, self.products) if one is not None]
        return own if self.second is None else [*own, *self.second.places]


class Needed:
    """Collects what a question needs. ``rows`` is what one unit may add to a group, once that is asked for."""

    def __init__(self, question: Question, policy: Policy, *, cells: int, single: bool, together: bool = False) -> None:
        """``together``: rows are counted over all groups, where the question does not say itself what a unit adds."""
        self._question, self._policy, self._single, self._together = question, policy, single, together
        self._cells = cells * (UNLISTED if any(group.private for group in question.groups) else 1)
        self.tallies: list[Tally] = []
        self.histograms: list[Histogram] = []
        self.choices: list[Choice] = []

    def parts(self) -> tuple[Part, ...]:
        """One for each aggregate."""
        return tuple(self._part(one) for one in self._question.asked)

    def _part(self, asked: Asked) -> Part:
        argument = asked.argument
        if asked.function is Aggregation.UNITS:
            return Part(count=self._place(Tally(measure=Measure.UNITS, argument=argument)))
        if asked.function in {Aggregation.ROWS, Aggregation.VALUES} or argument is None:
            most = None if asked.per_group is None else int(asked.per_group[1])
            return Part(count=self._count(argument, most), each=asked.per_group)
        if asked.function is Aggregation.DISTINCT:
            most = min(self._rows, _possible(argument))
            return Part(count=self._place(Tally(measure=Measure.DISTINCT, argument=argument, bounds=(0, most))))
        if asked.function in LISTED:
            return self._listed(asked, argument)
        if asked.function in CHOSEN:
            return self._chosen(asked, argument)
        if asked.function in PAIRED:
            assert asked.second is not None
            return self._paired(asked.function, argument, asked.second)
        if asked.per_group is not None:
            return self._bounded(asked, argument, asked.per_group)
        bounds = asked.per_row or self._bounds(argument)
        if asked.function is Aggregation.SUM:
            return Part(total=self._total(argument, bounds, centred=False), bounds=bounds)
        total = self._total(argument, bounds, centred=True)
        squares = self._squares(argument, bounds) if asked.function in _SPREADS else None
        return Part(count=self._count(argument), total=total, squares=squares, bounds=bounds)

    def _place(self, tally: Tally) -> int:
        if tally not in self.tallies:
            self.tallies.append(tally)
        return self.tallies.index(tally)

    @property
    def _rows(self) -> int:
        if self._single:
            return 1
        if self._policy.limits.max_rows is None:
            raise MissingBounds(
                "How many rows of one unit count in one group was not declared. Let the owner declare max_rows, or ask "
                "for COUNT(DISTINCT unit)."
            )
        assert self._policy.limits.rows is not None
        return self._policy.limits.rows

    def _bounds(self, argument: Expression) -> Interval:
        bought = self._question.bought.get(argument)
        if bought is not None and interval_of(argument, self._declared) is None:
            return bought
        return bounds_of(argument, self._declared)

    def _known(self, argument: Expression) -> Interval | None:
        """Declared bounds, if there are any: none are bought where the question gives its own."""
        return None if interval_of(argument, self._declared) is None else bounds_of(argument, self._declared)

    def _declared(self, name: str) -> Interval | None:
        facts = self._question.columns.get(name)
        return None if facts is None else facts.bounds

    def _step(self, argument: Expression) -> Fraction | None:
        facts = self._question.columns.get(argument.name) if isinstance(argument, Column) else None
        return None if facts is None else facts.step

    def _grid(self, argument: Expression, bounds: Interval) -> Fraction:
        if argument.kind.type is Type.INTEGER:
            return Fraction(1)
        return self._step(argument) or default_grid(bounds)

    def _count(self, argument: Expression | None, most: int | None = None) -> int:
        counted = None if argument is None else self._lacked(argument)
        rows = self._rows if most is None else min(most, 1) if self._single else most
        a_row = (0, 1) if self._together and most is None else None
        return self._place(Tally(measure=Measure.ROWS, argument=counted, bounds=(0, rows), a_row=a_row))

    def _lacked(self, argument: Expression) -> Expression | None:
        """A value that some row may lack; None for one that is in every row, so that its count is that of all rows."""
        return None if always_there(argument, self._question.relation) else argument

    def _bounded(self, asked: Asked, argument: Expression, each: Interval) -> Part:
        """A sum of which the question says what a unit may add, or a mean of units' own averages within such bounds.

        Values are clamped first: as the question says, or the owner, or else to what could matter at all.
        """
        reach = max(abs(end) for end in each)
        mean = asked.function is Aggregation.AVG
        values = asked.per_row or self._known(argument) or (each if mean else (-reach, reach))
        grid = self._grid(argument, values)
        values, within = outward(values, grid), outward(each, grid)
        origin = round((within[0] + within[1]) / 2 / grid) * grid if mean else Fraction(0)
        in_steps(values, origin, grid)
        tally = Tally(
            measure=Measure.TOTAL,
            argument=argument,
            clamp=values,
            origin=origin,
            grid=grid,
            bounds=in_steps(within, origin, grid),
            most_rows=1 if mean else None,
        )
        if not mean:
            return Part(total=self._place(tally), bounds=values, each=each)
        count = self._place(Tally(measure=Measure.UNITS, argument=self._lacked(argument)))
        return Part(count=count, total=self._place(tally), bounds=each, each=each)

    def _total(self, argument: Expression, bounds: Interval, *, centred: bool, grid: Fraction | None = None) -> int:
        """Steps of the grid from 0, or from the middle, where one row moves the sum by half as much."""
        grid = grid or self._grid(argument, bounds)
        bounds = outward(bounds, grid)
        origin = round((bounds[0] + bounds[1]) / 2 / grid) * grid if centred else Fraction(0)
        return self._summed(argument, bounds, origin, grid, proportioned=centred)

    def _squares(self, argument: Expression, bounds: Interval) -> int:
        """The squares of the distances from the middle of the bounds, counted from the middle of their own range."""
        distance = _distance(argument, bounds)
        most = ((bounds[1] - bounds[0]) / 2) ** 2
        return self._reals(call("multiply", distance, distance), (Fraction(0), most))

    def _reals(self, argument: Expression, within: Interval) -> int:
        grid = default_grid(within)
        within = outward(within, grid)
        origin = round((within[0] + within[1]) / 2 / grid) * grid
        return self._summed(argument, within, origin, grid, proportioned=True)

    def _summed(
        self, argument: Expression, bounds: Interval, origin: Fraction, grid: Fraction, *, proportioned: bool
    ) -> int:
        """A sum by itself is clamped for each unit; one that is divided by a count is cut in proportion to its rows."""
        low, high = (round((end - origin) / grid) for end in bounds)
        a_row, rows = (min(low, 0), max(high, 0)), self._rows
        tally = Tally(
            measure=Measure.TOTAL,
            argument=argument,
            clamp=bounds,
            origin=origin,
            grid=grid,
            bounds=(a_row[0] * rows, a_row[1] * rows),
            most_rows=rows if proportioned else None,
            a_row=a_row if self._together else None,
        )
        return self._place(tally)

    def _paired(self, function: Aggregation, first: Expression, second: Expression) -> Part:
        """Sums over the rows that have both values, each about the middle of its bounds."""
        bounds = self._bounds(first), self._bounds(second)
        grids = self._grid(first, bounds[0]), self._grid(second, bounds[1])
        one, other = _beside(first, second), _beside(second, first)
        reach = (bounds[0][1] - bounds[0][0]) / 2 * ((bounds[1][1] - bounds[1][0]) / 2)
        product = call("multiply", _distance(one, bounds[0]), _distance(second, bounds[1]))
        return Part(
            count=self._count(one),
            total=self._total(one, bounds[0], centred=True, grid=grids[0]),
            squares=self._squares(one, bounds[0]) if function in _OF_FIRST_SQUARES else None,
            bounds=bounds[0],
            products=self._reals(product, (-reach, reach)),
            second=Part(
                total=self._total(other, bounds[1], centred=True, grid=grids[1]),
                squares=self._squares(other, bounds[1]) if function in _OF_SECOND_SQUARES else None,
                bounds=bounds[1],
            ),
        )

    def _chosen(self, asked: Asked, argument: Expression) -> Part:
        """All quantiles of one value are chosen together, from one histogram; its ends are chosen by themselves."""
        bounds = self._bounds(argument)
        wanted = histogram(argument, bounds, self._step(argument), rows=self._rows, cells=self._cells)
        if asked.function in {Aggregation.MIN, Aggregation.MAX}:
            end = Wanted.LEAST if asked.function is Aggregation.MIN else Wanted.MOST
            return Part(choice=self._choose(wanted, end), bounds=bounds)
        levels = sorted({_level(one) for one in self._question.asked if one.argument == argument and one.level})
        choice = self._choose(wanted, Wanted.QUANTILES, tuple(levels))
        return Part(choice=choice, level=levels.index(_level(asked)), bounds=bounds)

    def _listed(self, asked: Asked, argument: Expression) -> Part:
        """Counts of public values, or of bins between constants: all of them, or the most frequent ones."""
        many = len(bins_of(asked))
        if asked.function is Aggregation.HISTOGRAM and self._cells * many > MOST_BINS:
            raise TooHeavy(f"Histograms have at most {MOST_BINS:,} bins over all groups. Ask for fewer groups or bins.")
        if asked.edges:
            wanted = binned(argument, asked.edges, rows=self._rows)
        else:
            wanted = codes(argument, asked.values, rows=self._rows)
        return Part(choice=self._choose(wanted, _LISTED[asked.function], best=asked.many))

    def _choose(self, wanted: Histogram, what: Wanted, levels: tuple[Fraction, ...] = (), *, best: int = 1) -> int:
        if wanted not in self.histograms:
            self.histograms.append(wanted)
        top = round((wanted.clamp[1] - wanted.clamp[0]) / wanted.grid)
        choice = Choice(
            histogram=self.histograms.index(wanted),
            wanted=what,
            levels=levels,
            top=top,
            rows=wanted.most_rows,
            best=best,
        )
        if choice not in self.choices:
            self.choices.append(choice)
        return self.choices.index(choice)


def in_steps(bounds: Interval, origin: Fraction, grid: Fraction) -> tuple[int, int]:
    """Ends on the grid, counted from the origin: so few that an engine can hold them."""
    low, high = (round((end - origin) / grid) for end in bounds)
    if max(abs(low), abs(high)) > _MOST_STEPS:
        raise MayOverflow("What one unit may add is more than 2^62 steps of the grid. Give closer bounds.")
    return low, high


def _level(asked: Asked) -> Fraction:
    assert asked.level is not None
    return asked.level


def _possible(argument: Expression) -> int:
    """How many different values there can be at all, where that is known."""
    if argument.kind.type is Type.BOOLEAN:
        return 2
    if argument.kind.type is Type.INTEGER:
        return argument.kind.range[1] - argument.kind.range[0] + 1
    return 1 << 62


def _beside(value: Expression, other: Expression) -> Expression:
    """A value where the other one is there too."""
    if not other.kind.nullable:
        return value
    return call("case", call("is_null", other), literal(None, value.kind.type), value)


def _distance(argument: Expression, bounds: Interval) -> Expression:
    """From the middle of the bounds, within them."""
    low, high, middle = (literal(float(one)) for one in (*bounds, (bounds[0] + bounds[1]) / 2))
    return call("subtract", call("greatest", call("least", as_real(argument), high), low), middle)
