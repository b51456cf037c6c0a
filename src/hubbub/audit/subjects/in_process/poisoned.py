"""Estimators on tables with cells, labels and ids that no number, no class and no person has.

One person brings them along, and the tables are lists, whose types nobody declares: whatever a value raises when it is
converted, compared, hashed or sorted, or makes of the values beside it, a fit without that person shows it.
"""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.subject import Pair
from hubbub.audit.subjects.estimators import WORST, EstimatorTable, OfEstimator, Row

SECRET = "a name that nobody may read"


class Raising:
    """A value that raises whatever is done with it, with a secret in what it says; unlike an interruption."""

    class Poison(BaseException):
        """Not an Exception: who catches those alone lets it pass."""

    def _raise(self, *_: Any) -> Any:
        raise self.Poison(SECRET)

    __eq__ = __lt__ = __gt__ = __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = __array__ = _raise
    __hash__ = _raise
    __str__ = _raise

    def __repr__(self) -> str:
        return "Raising()"


class RaisingNumber(float):
    """A number that cannot be read."""

    def __float__(self) -> float:
        raise ArithmeticError(SECRET)

    __eq__ = __hash__ = Raising._raise


class Leaving(float):
    """A number that ends the process when it is read."""

    def __float__(self) -> float:
        raise SystemExit(SECRET)


POISON: tuple[Any, ...] = (
    *(SECRET, "7", "", "\ud800", "nan", b"\xff", b"1", None, True, Decimal("sNaN"), Decimal("1e99999"), 10**400),
    *(
        Fraction(1, 3),
        1j,
        {"a": 1},
        [1.0, 2.0],
        (0.5,),
        {1},
        Raising(),
        RaisingNumber(0.5),
        Leaving(0.5),
        np.array([1.0, 2.0]),
    ),
    *(np.ma.masked, np.datetime64("NaT"), np.datetime64("2024-02-29"), np.float32(0.25), np.longdouble("1e4000")),
)
SAME: tuple[Any, ...] = (7, 7.0, Decimal("7.00"), np.int64(7), np.float32(7), Fraction(7))
"""Ids of one person."""
NOBODY: tuple[Any, ...] = (None, float("nan"), Decimal("sNaN"), [7], {7}, Raising(), object, np.datetime64("NaT"))


class OfPoisoned(OfEstimator):
    """The same, where one person's rows hold anything."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"learn, poisoned: {self.estimator}{self.words}"

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        for _ in range(8):
            base = self._table([self._row(chance) for _ in range(chance.between(1, 6))], chance=chance)
            yield self._pair(base, self._someone(chance), "some rows, and a person whose rows hold anything")
        plain = self._table([(0.5,) * self.columns] * 3)
        for place, poison in enumerate(POISON):
            row = tuple(poison if column == place % self.columns else 0.5 for column in range(self.columns))
            target = self.targets[place % len(self.targets)]
            yield self._pair(plain, self._person([row], target), f"three rows, and one with {poison!r}")
        short = self._person([(0.5,) * (self.columns + 1), ()], self.targets[0])
        yield self._pair(plain, short, "three rows, and rows of other lengths")
        yield from super().pairs(chance)

    def _row(self, chance: Chance) -> Row:
        return tuple(chance.choice((*WORST, *POISON)) for _ in range(self.columns))

    def _person(self, rows: Any, target: Any) -> EstimatorTable:
        ids = (*SAME, *NOBODY)
        return EstimatorTable(
            tuple(rows), (target,) * len(rows), tuple(ids[place % len(ids)] for place in range(len(rows)))
        )

    def _fill(self, table: EstimatorTable) -> tuple[Any, Any, Any]:
        return [list(row) for row in table.rows], list(table.targets), list(table.owners)
