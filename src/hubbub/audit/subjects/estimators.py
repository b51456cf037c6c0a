"""Estimators of ``hubbub.learn`` as subjects of an audit: fitted on tiny tables with one person more or less.

Both neighbours are fitted with the same noise, and the second one is answered what the first one was (``Coupled``): an
adaptive fit may do whatever its answers say, and given the same answers nothing it does or keeps may differ, down to
the last bit of each fitted attribute. What the gate opened must have moved within what was proven, and all charges
together must keep the claim.

What is counted is the log-likelihood ratio of the pair along one such run. With the questions fixed, their answers
together are as private as the whole fit claims to be.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects.in_process.fitted import Fitted, differences, unpaid, written
from hubbub.audit.subjects.projections import ratio
from hubbub.gate.release import Release
from hubbub.gate.secret import Secret
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.filter import Budget
from hubbub.testing.replay import RecordingMeter, replayed

ACCOUNT = "audit"
WORST: tuple[float, ...] = (1.0, -1.0, 0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.3, -0.7, 3.5)
"""Ends of the bounds, what lies outside, what is no number, and what is nearly nothing."""
_LOUD = Budget(epsilon=Fraction(1 << 20), delta=Fraction(1, 2))
"""The charges are added up here, by themselves: a gate that ran out would hide what a fit does."""

Row = tuple[Any, ...]
Masses = tuple[dict[Any, float], ...]
"""Of each measurement, how much likelier answers are on one side than on the other, as far as they were looked up."""


@dataclass(frozen=True, slots=True)
class EstimatorTable:
    """Rows, each with a target and an owner; ``other`` is the neighbour that it is told apart from."""

    rows: tuple[Row, ...]
    targets: tuple[Any, ...]
    owners: tuple[Any, ...]
    other: "EstimatorTable | None" = field(default=None, compare=False, repr=False)
    first: bool = field(default=True, repr=False)

    def plus(self, more: "EstimatorTable") -> "EstimatorTable":
        return EstimatorTable(self.rows + more.rows, self.targets + more.targets, self.owners + more.owners)


class Coupled(RecordingMeter):
    """A gate that charges, opens and draws as ever, and then answers what another run was answered."""

    def __init__(self, answers: Sequence[Release] = ()) -> None:
        super().__init__({ACCOUNT: _LOUD})
        self.releases: list[Release] = []
        self._answers = answers

    def measure(
        self, mechanism: Mechanism, secret: Secret[Any], *, label: str = "value", key: str | None = None
    ) -> Release:
        release = super().measure(mechanism, secret, label=label, key=key)
        place = len(self.releases)
        if place < len(self._answers) and self._answers[place].mechanism == mechanism:
            release = replace(release, value=self._answers[place].value)
        self.releases.append(release)
        return release


@dataclass(frozen=True, slots=True, kw_only=True)
class OfEstimator:
    """One estimator at one price. It is imported when it is asked for, since scikit-learn takes a second."""

    estimator: str
    words: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: int = 2
    targets: tuple[Any, ...] = (0.0,)
    """What a row's target can be: classes, or the ends and middle of a declared range; (0.0,) for none."""
    delta: Fraction = Fraction(0)
    company: int = 0
    """Further rows in every table, for what an estimator does only where there are many."""
    grouped: bool = False
    """Whether a person owns several rows: ``settings`` then say how many of them count."""
    _kept: dict[str, tuple[Fitted, Fitted, Masses]] | None = field(default=None, repr=False, compare=False)
    """Fits of both sides of a pair, for as long as one audit lasts; None: nothing is kept."""

    def remembering(self) -> "OfEstimator":
        return replace(self, _kept={})

    @property
    def name(self) -> str:
        return f"learn: {self.estimator}{self.words}"

    @property
    def epsilon(self) -> Fraction:
        return Fraction(1)

    @property
    def claim(self) -> Claim:
        return Claim.pure(float(self.epsilon), float(self.delta))

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        plain = self._table([(0.0,) * self.columns] * 3)
        for place, value in enumerate(WORST[:9]):
            target = self.targets[place % len(self.targets)]
            yield self._pair(plain, self._person([(value,) * self.columns], target), f"three rows, and one of {value}")
        corner = tuple((-1.0) ** place for place in range(self.columns))
        alone = self._table([corner])
        yield self._pair(alone, self._person([corner], self.targets[0]), "one row, and the same again")
        yield self._pair(
            self._table([(math.nan,) * self.columns]), self._person([corner], self.targets[-1]), "no number"
        )
        one_class = self._table([self._row(chance) for _ in range(8)], targets=self.targets[:1])
        yield self._pair(one_class, self._person([corner], self.targets[-1]), "one class, and the first of another")
        if self.grouped:
            yield self._pair(plain, self._person([corner] * 7, self.targets[0]), "a person with seven equal rows")
            yield self._pair(
                plain, self._person([corner, (0.0,) * self.columns] * 3, self.targets[0]), "a person with six rows"
            )
        for _ in count():
            base = self._table([self._row(chance) for _ in range(chance.between(1, 12))], chance=chance)
            yield self._pair(base, self._someone(chance), "some rows, and one person more")

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        base = min(pair.x, pair.y, key=lambda side: len(side.rows))
        return self._pair(base, self._someone(chance), "the same rows, and another person")

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Without one of the rows that both have; then with a simpler person."""
        base, more = _part(pair)
        for place in range(len(base.rows)):
            if len(base.rows) > 1:
                yield self._pair(_without(base, place), more, pair.about)
        for place in range(len(more.rows)):
            if len(more.rows) > 1:
                yield self._pair(base, _without(more, place), pair.about)

    def faults(self, pair: Pair) -> list[str]:
        one, other, _ = self._fit_both(pair.x, pair.y)
        return [*self._unpaid(one), *self._unpaid(other), *differences(one, other)]

    def _unpaid(self, one: Fitted) -> list[str]:
        return unpaid(one, epsilon=self.epsilon, delta=self.delta)

    def answers(self, value: EstimatorTable, *, times: int) -> Outputs:
        """Return the log-likelihood ratio of each of ``times`` answers for the second of the pair, along the questions
        of one run.
        """
        x, y = (value, value.other) if value.first else (value.other, value)
        assert x is not None
        assert y is not None
        one, other, masses = self._fit_both(x, y)
        total: Outputs = np.zeros(times)
        for near, far, known in zip(one.measurements, other.measurements, masses, strict=False):
            here = near if value.first else far
            total = total + ratio(near.mechanism, here.value, near.value, far.value, times=times, known=known)
        return total

    def show_pair(self, pair: Pair) -> str:
        sides = "\n".join(
            f"{name}: X = {side.rows}, y = {side.targets}, groups = {side.owners}"
            for name, side in (("x", pair.x), ("y", pair.y))
        )
        return f"{sides}\n{self.estimator}({dict(self.settings)}) at {self.claim.words}"

    # Fitting

    def _fit_both(self, x: EstimatorTable, y: EstimatorTable) -> tuple[Fitted, Fitted, Masses]:
        """With replayed noise a fit is the same each time: an audit that asks again about a pair need not fit again."""
        held = repr((x, y))  # to the last bit: 0.0 and −0.0 are two inputs, and NaN is one
        if self._kept is not None and held in self._kept:
            return self._kept[held]
        one = self.fit_table(x)
        both = one, self.fit_table(y, answers=one.releases), tuple[dict[Any, float], ...]({} for _ in one.measurements)
        if self._kept is not None:
            self._kept[held] = both
        return both

    def fit_table(self, table: EstimatorTable, *, answers: Sequence[Release] = (), seed: int = 0) -> Fitted:
        """Fit on one table with replayed noise, and look at everything."""
        meter = Coupled(answers)
        made = self._make_estimator(meter)
        given = set(vars(made))
        with replayed(seed) as source, np.errstate(all="ignore"):
            outcome = self._fit(made, table)
        kept = {name: written(value) for name, value in vars(made).items() if name not in given}
        return Fitted(
            measurements=tuple(meter.measurements),
            releases=tuple(meter.releases),
            draws=tuple(source.draws),
            kept=kept,
            outcome=outcome,
        )

    def _make_estimator(self, meter: RecordingMeter) -> Any:
        kind = getattr(import_module("hubbub.learn"), self.estimator)
        price = {"epsilon": float(self.epsilon), "delta": float(self.delta), "meter": meter, "account": ACCOUNT}
        return kind(**{**price, **self.settings})

    def _fill(self, table: EstimatorTable) -> tuple[Any, Any, Any]:
        """Rows, targets and owners, with the company that every table has."""
        around = range(self.company)
        rows = [
            *table.rows,
            *(tuple((place * (column + 3) % 7 - 3) / 10 for column in range(self.columns)) for place in around),
        ]
        targets = [*table.targets, *(self.targets[place % len(self.targets)] for place in around)]
        owners = [*table.owners, *(1000 + place for place in around)]
        return np.array(rows, dtype=np.float64), np.array(targets), np.array(owners)

    def _fit(self, made: Any, table: EstimatorTable) -> str:
        rows, targets, owners = self._fill(table)
        try:
            made.fit(rows, targets, **({"groups": owners} if self.grouped else {}))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return f"{type(error).__name__}: {error}"
        return "fitted"

    # Tables

    def _row(self, chance: Chance) -> Row:
        return tuple(chance.choice(WORST) for _ in range(self.columns))

    def _table(
        self, rows: Sequence[Row], *, targets: Sequence[Any] = (), chance: Chance | None = None
    ) -> EstimatorTable:
        of = targets or self.targets
        held = tuple(chance.choice(of) if chance else of[place % len(of)] for place in range(len(rows)))
        return EstimatorTable(tuple(rows), held, tuple(range(100, 100 + len(rows))))

    def _person(self, rows: Sequence[Row], target: Any) -> EstimatorTable:
        return EstimatorTable(tuple(rows), (target,) * len(rows), (7,) * len(rows))

    def _someone(self, chance: Chance) -> EstimatorTable:
        rows = chance.between(1, 6) if self.grouped else 1
        return self._person([self._row(chance) for _ in range(rows)], chance.choice(self.targets))

    def _pair(self, base: EstimatorTable, more: EstimatorTable, about: str) -> Pair:
        full = base.plus(more)
        bare = replace(base, other=None, first=True)
        return Pair(x=replace(bare, other=full), y=replace(full, other=bare, first=False), about=about)


def _part(pair: Pair) -> tuple[EstimatorTable, EstimatorTable]:
    base, full = sorted((pair.x, pair.y), key=lambda side: len(side.rows))
    held = len(base.rows)
    return base, EstimatorTable(full.rows[held:], full.targets[held:], full.owners[held:])


def _without(table: EstimatorTable, place: int) -> EstimatorTable:
    kept = [at for at in range(len(table.rows)) if at != place]
    return EstimatorTable(
        tuple(table.rows[at] for at in kept),
        tuple(table.targets[at] for at in kept),
        tuple(table.owners[at] for at in kept),
    )
