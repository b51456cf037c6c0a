"""What the aggregates of a question are made of: tallies, histograms, and what is chosen from these. Each only once."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import MissingBounds
from hubbub.policy.grid import default_grid, outward
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Policy
from hubbub.query.bounds import Interval, bounds_of, interval_of
from hubbub.query.choices import UNLISTED, Choice, Wanted, codes, histogram
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.ops import Histogram, Measure, Tally
from hubbub.query.question import CHOSEN, PAIRED, Aggregation, Asked, Question
from hubbub.query.scalars import as_real

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

    def __init__(self, question: Question, policy: Policy, *, cells: int, single: bool) -> None:
        self._question, self._policy, self._single = question, policy, single
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
            return Part(count=self._count(argument))
        if asked.function is Aggregation.DISTINCT:
            most = min(self._rows, _possible(argument))
            return Part(count=self._place(Tally(measure=Measure.DISTINCT, argument=argument, bounds=(0, most))))
        if asked.function is Aggregation.MODE:
            return self._mode(asked, argument)
        if asked.function in CHOSEN:
            return self._chosen(asked, argument)
        if asked.function in PAIRED:
            assert asked.second is not None
            return self._paired(asked.function, argument, asked.second)
        bounds = self._bounds(argument)
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
        return self._policy.limits.max_rows

    def _bounds(self, argument: Expression) -> Interval:
        bought = self._question.bought.get(argument)
        if bought is not None and interval_of(argument, self._declared) is None:
            return bought
        return bounds_of(argument, self._declared)

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

    def _count(self, argument: Expression | None) -> int:
        counted = argument if argument is not None and argument.kind.nullable else None
        return self._place(Tally(measure=Measure.ROWS, argument=counted, bounds=(0, self._rows)))

    def _total(self, argument: Expression, bounds: Interval, *, centred: bool, grid: Fraction | None = None) -> int:
        """Steps of the grid from 0, or from the middle, where one row moves the sum by half as much."""
        grid = grid or self._grid(argument, bounds)
        bounds = outward(bounds, grid)
        origin = round((bounds[0] + bounds[1]) / 2 / grid) * grid if centred else Fraction(0)
        return self._place(_tally(argument, bounds, origin, grid, self._rows, proportioned=centred))

    def _squares(self, argument: Expression, bounds: Interval) -> int:
        """The squares of the distances from the middle of the bounds, counted from the middle of their own range."""
        distance = _distance(argument, bounds)
        most = ((bounds[1] - bounds[0]) / 2) ** 2
        return self._reals(call("multiply", distance, distance), (Fraction(0), most))

    def _reals(self, argument: Expression, within: Interval) -> int:
        grid = default_grid(within)
        within = outward(within, grid)
        origin = round((within[0] + within[1]) / 2 / grid) * grid
        return self._place(_tally(argument, within, origin, grid, self._rows, proportioned=True))

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

    def _mode(self, asked: Asked, argument: Expression) -> Part:
        return Part(choice=self._choose(codes(argument, asked.values, rows=self._rows), Wanted.MODE))

    def _choose(self, wanted: Histogram, what: Wanted, levels: tuple[Fraction, ...] = ()) -> int:
        if wanted not in self.histograms:
            self.histograms.append(wanted)
        top = round((wanted.clamp[1] - wanted.clamp[0]) / wanted.grid)
        choice = Choice(
            histogram=self.histograms.index(wanted), wanted=what, levels=levels, top=top, rows=wanted.most_rows
        )
        if choice not in self.choices:
            self.choices.append(choice)
        return self.choices.index(choice)


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


def _tally(
    argument: Expression, bounds: Interval, origin: Fraction, grid: Fraction, rows: int, *, proportioned: bool
) -> Tally:
    """A sum by itself is clamped for each unit; one that is divided by a count is cut in proportion to its rows."""
    low, high = (round((end - origin) / grid) for end in bounds)
    return Tally(
        measure=Measure.TOTAL,
        argument=argument,
        clamp=bounds,
        origin=origin,
        grid=grid,
        bounds=(min(low, 0, low * rows), max(high, 0, high * rows)),
        most_rows=rows if proportioned else None,
    )
