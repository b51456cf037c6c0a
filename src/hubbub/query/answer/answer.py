"""The answer to a question: a table of noisy numbers with their error bars, and what it cost. All of it is public."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import cmp_to_key, partial
from operator import itemgetter
from typing import Any, ClassVar

from hubbub.gate.pictures import find_drawer
from hubbub.ledger.entry import canonical, ratio
from hubbub.parameters import Real, between
from hubbub.policy.kinds import Type
from hubbub.query.answer.columns import PLAIN, Nesting, make_column, to_arrow, to_pandas, to_polars
from hubbub.query.answer.dropped import DroppedShare, list_dropped
from hubbub.query.answer.stored import CONFIDENCE, DrawnAnswer, combine
from hubbub.query.check.evaluate import evaluate
from hubbub.query.expression import Column, Expression
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.selection import cells_of
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Order, absent_name, key_name, noisy_name

Cell = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows in the order that was asked for, or that of the public keys."""

    plan: Plan
    entry: int
    """The charge in the ledger that paid for it."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""
    noisy: tuple[tuple[int, ...], ...]
    """What was drawn, in the positions that ``Plan.slots`` names, in steps: everything else here follows from it."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    lows: tuple[tuple[Cell, ...], ...]
    highs: tuple[tuple[Cell, ...], ...]
    """Where each number lies with this confidence, by its law; None for keys, and where there is no end."""
    dropped: tuple[DroppedShare, ...] = ()
    """How much limits dropped, where that was measured: the intervals cover it."""
    ranks: tuple[tuple[int | None, ...], ...] = ()
    """How many rows lie at most between what was chosen and what was meant, with this confidence; None elsewhere."""
    confidence: float = CONFIDENCE
    is_simultaneous: bool = False
    """Whether all intervals of a column hold together with this confidence, and not each by itself."""
    drawn: tuple[DrawnAnswer, ...] = field(default=(), compare=False, repr=False)
    """What was drawn, grouping by grouping: other intervals are made from it."""

    plotter: ClassVar[Callable[..., Any] | None] = None
    """Set by ``hubbub.report``, which is loaded when it is first needed."""

    @property
    def price(self) -> Fraction:
        """Return the whole ε, with that of the facts that were bought for it."""
        return self.plan.price

    @property
    def terms(self) -> str:
        """Say in a line what was left out, what it cost in all, and whether it is fresh."""
        from hubbub.query.answer.terms import write_terms

        return write_terms(self)

    def with_intervals(self, confidence: Real = CONFIDENCE, *, simultaneous: bool = False) -> "Answer":
        """Return the same numbers with other intervals, for nothing: they follow from what was drawn.

        ``simultaneous`` intervals hold in all groups of a column together, those that HAVING and LIMIT left out too, so
        that the greatest or the most surprising of many groups may be picked out by its interval.
        """
        sure = float(between("confidence", confidence, 0, 1, low_open=True, high_open=True))
        made = answer_of(
            self.plan, self.drawn, entry=self.entry, stored=self.stored, confidence=sure, simultaneous=simultaneous
        )
        return replace(self, **{name: getattr(made, name) for name in _OF_INTERVALS})

    def to_dicts(self) -> list[dict[str, Cell]]:
        """One dictionary a row, with ``_low`` and ``_high`` beside each noisy number, and ``_ranks`` beside choices."""
        parts = self._parts()
        return [{name: cells[place] for name, _, cells, _ in parts} for place in range(len(self.rows))]

    def to_pandas(self) -> Any:
        """A pandas DataFrame (needs pandas)."""
        return to_pandas([make_column(*part) for part in self._parts()])

    def to_polars(self) -> Any:
        """A polars DataFrame (needs polars)."""
        return to_polars([make_column(*part) for part in self._parts()])

    def to_arrow(self) -> Any:
        """A pyarrow Table (needs pyarrow)."""
        return to_arrow([make_column(*part) for part in self._parts()])

    def nesting(self, place: int) -> Nesting:
        """Return whether a column holds plain values, lists of them, or mappings from bins to them."""
        shows = _shows(self.plan, place)
        asked = None if shows is None else self.plan.question.asked[shows]
        return PLAIN if asked is None else asked.function.nesting(asked)

    def _parts(self) -> list[tuple[str, Type, tuple[Cell, ...], Nesting]]:
        """The columns with those of the intervals: name, type, cells and how these are nested."""
        found = []
        for place, (name, output) in enumerate(zip(self.columns, self.plan.question.outputs, strict=True)):
            tables = {name: self.rows}
            if _interval_of(self.plan, place) is not None:
                tables |= {f"{name}_low": self.lows, f"{name}_high": self.highs}
            for called, cells in tables.items():
                column = tuple(row[place] for row in cells)
                found.append((called, output.expression.kind.type, column, self.nesting(place)))
            if _is_chosen(self.plan, place):
                found.append((f"{name}_ranks", Type.INTEGER, tuple(row[place] for row in self.ranks), PLAIN))
        return found

    def plot(self, **options: Any) -> Any:
        """A picture with error bars (needs ``pip install "hubbub[plot]"``)."""
        return find_drawer(type(self), "plotter")(self, **options)

    def certificate(self) -> str:
        """JSON from which an outsider can recompute the loss: question, policy, events, charge and entry."""
        plan = self.plan
        return canonical(
            {
                "account": plan.policy.account,
                "delta": ratio(plan.delta),
                "entry": self.entry,
                "epsilon": ratio(plan.epsilon),
                "events": [event.to_json() for event in plan.events],
                "failure_units": plan.cost.failure,
                "loss_units": plan.cost.loss,
                "neighbors": plan.policy.budget.neighbors.value,
                "policy": plan.policy.fingerprint,
                "question": plan.question.identity,
                "version": plan.policy.version,
            }
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        from hubbub.query.answer.render import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from hubbub.query.answer.render import as_html

        return as_html(self)


_OF_INTERVALS = ("lows", "highs", "ranks", "confidence", "is_simultaneous")


def answer(plan: Plan, noisy: Sequence[Sequence[int]], *, entry: int) -> Answer:
    """The table of one grouping whose keys were listed."""
    return answer_of(plan, [DrawnAnswer([list(steps) for steps in noisy])], entry=entry)


def answer_of(
    plan: Plan,
    drawn: Sequence[DrawnAnswer],
    *,
    entry: int,
    stored: datetime | None = None,
    confidence: float = CONFIDENCE,
    simultaneous: bool = False,
) -> Answer:
    """Make the table: aggregates, expressions over them, HAVING, ORDER BY, LIMIT."""
    question = plan.question
    each = share_confidence(confidence, sum(_count_groups(*pair) for pair in _pair_sets(plan, drawn)))
    made: list[tuple[dict[str, Cell], list[NoisyNumber]]] = []
    names = [noisy_name(place) for place in range(len(question.asked))]
    for row, cell in _rows(plan, drawn, confidence=each if simultaneous else confidence):
        row.update(zip(names, [number.value for number in cell], strict=True))
        if question.having is None or evaluate(question.having, row) is True:
            made.append((row, cell))
    if question.order:
        sign = cmp_to_key(lambda a, b: _compare(question.order, a, b))
        made.sort(key=lambda one: sign(one[0]))
    end = None if question.limit is None else question.offset + question.limit
    found = [_interval_of(plan, place) for place in range(len(question.outputs))]
    readers = [_reader(output.expression) for output in question.outputs]
    chosen = [_shows(plan, place) if _is_chosen(plan, place) else None for place in range(len(question.outputs))]
    rows, lows, highs, ranks = [], [], [], []
    for row, cell in made[question.offset : end]:
        rows.append(tuple([read(row) for read in readers]))
        lows.append(tuple([None if at is None else cell[at].low for at in found]))
        highs.append(tuple([None if at is None else cell[at].high for at in found]))
        ranks.append(tuple([None if at is None else cell[at].ranks for at in chosen]))
    return Answer(
        plan=plan,
        entry=entry,
        stored=stored,
        noisy=tuple(tuple(steps) for one in drawn for steps in one.noisy),
        columns=_unique(
            [output.name for output in question.outputs],
            [_PARTS[at is not None, of is not None] for at, of in zip(found, chosen, strict=True)],
        ),
        rows=tuple(rows),
        lows=tuple(lows),
        highs=tuple(highs),
        dropped=list_dropped((plan.sets or (plan,))[0], drawn[0].noisy),
        ranks=tuple(ranks),
        confidence=confidence,
        is_simultaneous=simultaneous,
        drawn=tuple(drawn),
    )


def share_confidence(confidence: float, groups: int) -> float:
    """Return the confidence that each of so many intervals has where all hold together with ``confidence``.

    The noise of a group is drawn independently of that of the others, so that confidences multiply (Šidák 1967).
    """
    return math.exp(math.log(confidence) / max(1, groups))


def _pair_sets(plan: Plan, drawn: Sequence[DrawnAnswer]) -> Iterator[tuple[Plan, DrawnAnswer]]:
    return zip(plan.sets or (plan,), drawn, strict=True)


def _count_groups(plan: Plan, drawn: DrawnAnswer) -> int:
    if plan.beside is not None:
        return 1
    public = math.prod(len(group.values) for group in plan.question.groups if not group.private)
    return public if drawn.shown is None else public * len(drawn.shown)


def _rows(
    plan: Plan, drawn: Sequence[DrawnAnswer], *, confidence: float
) -> Iterator[tuple[dict[str, Cell], list[NoisyNumber]]]:
    """The keys of each row, and its numbers: the grouping sets one below the other, in the order of the keys each.

    A key that a set leaves out is missing in its rows, and said to be absent.
    """
    every = range(len(plan.question.groups))
    chosen = plan.question.sets or (tuple(every),)
    for places, (one, part) in zip(chosen, _pair_sets(plan, drawn), strict=True):
        groups = one.question.groups
        cells = tuple(itertools.product(*(group.values for group in groups)))
        if part.shown is not None:
            cells = cells_of(groups, part.shown, most=plan.policy.limits.max_cells)
        around = {key_name(place): None for place in every} | {absent_name(place): 1 for place in every}
        around |= {absent_name(place): 0 for place in places}
        names = [key_name(place) for place in places]
        numbers_of = combine(one, part.noisy, cells=len(cells), confidence=confidence)
        for values, numbers in zip(cells, numbers_of, strict=True):
            yield {**around, **dict(zip(names, values, strict=True))}, numbers


def _reader(expression: Expression) -> Callable[[dict[str, Cell]], Cell]:
    """Return what computes an expression of a row; most only name a column."""
    return itemgetter(expression.name) if isinstance(expression, Column) else partial(evaluate, expression)


def _is_chosen(plan: Plan, place: int) -> bool:
    """Return whether an output shows what was chosen, whose error is one of ranks."""
    shows = _shows(plan, place)
    return shows is not None and not plan.question.asked[shows].function.has_interval


def has_interval(plan: Plan, place: int) -> bool:
    """Return whether a column has intervals, with or without ends."""
    return _interval_of(plan, place) is not None


def _interval_of(plan: Plan, place: int) -> int | None:
    """Find the aggregate that an output shows unchanged, if it has an interval; expressions over noisy numbers have no
    interval of their own, and values that are chosen have none at all."""
    shows = _shows(plan, place)
    return None if shows is None or not plan.question.asked[shows].function.has_interval else shows


def _shows(plan: Plan, place: int) -> int | None:
    """The aggregate that an output shows as it is, if it does."""
    expression, asked = plan.question.outputs[place].expression, range(len(plan.question.asked))
    return next((at for at in asked if expression == Column(noisy_name(at), expression.kind)), None)


def _compare(order: Sequence[Order], left: Any, right: Any) -> int:
    for one in order:
        a, b = evaluate(one.expression, left), evaluate(one.expression, right)
        if a is None or b is None:
            if (a is None) is not (b is None):
                return -1 if (a is None) is one.nulls_first else 1
        elif a != b:
            return -1 if (a < b) is not one.descending else 1
    return 0


_PARTS = {(True, False): ("_low", "_high"), (False, True): ("_ranks",), (False, False): ()}
"""What stands beside a column: of one with intervals, of a choice, and of any other."""


def _unique(names: Sequence[str], parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of which none is another's, nor that of another's interval."""
    out: list[str] = []
    taken: set[str] = set()
    for name, beside in zip(names, parts, strict=True):
        for number in itertools.count(1):
            called = name if number == 1 else f"{name}_{number}"
            all_of_it = {called, *(f"{called}{part}" for part in beside)}
            if not all_of_it & taken:
                break
        out.append(called)
        taken |= all_of_it
    return tuple(out)
