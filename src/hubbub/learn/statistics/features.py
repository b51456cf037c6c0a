"""Rows to learn from, wherever they are: what estimators ask in ``Number``s, an engine adds up.

Arrays are an engine of their own (``engines.arrays``), so that a fit on arrays and one in a database are the same sums.
Nothing of a database's rows comes out of it but totals under seal; an estimator that looks at rows one by one needs
arrays of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hubbub.engines.arrays.engine import Arrays
from hubbub.errors import NotAllowed
from hubbub.gate.secret import Sealed
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd
from hubbub.query.totals import WEIGHT, Exact, Number, SumsRequest, column, columns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Rows that are here."""

    table: Array
    crowd: Crowd
    arrays: Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Some columns of a table, and of whose rows at most how many count. How many rows there are is not known."""

    width: int
    most: int
    single: bool
    """Whether every row is a unit's only one."""
    add_up: Callable[[SumsRequest], Sealed[Exact]] = field(repr=False)
    count: Callable[[], Sealed[Array]] = field(repr=False)
    """Counts rows, each unit's at most ``most``."""
    names: tuple[str, ...] = ()
    memory: _Memory | None = field(default=None, repr=False)

    @classmethod
    def of(cls, table: Array, crowd: Crowd) -> "Features":
        """Take an array of floats and the owners of its rows."""
        return cls._over(table, crowd, Arrays(table, units=crowd.units, most=crowd.most))

    @classmethod
    def _over(cls, table: Array, crowd: Crowd, arrays: Arrays) -> "Features":
        return cls(
            width=table.shape[1], most=crowd.most, single=crowd.units is None, add_up=arrays.total, count=arrays.count,
            memory=_Memory(table=table, crowd=crowd, arrays=arrays),
        )  # fmt: skip

    @property
    def x(self) -> Number:
        """All columns side by side; values may be missing."""
        return columns(0, self.width)

    @property
    def y(self) -> Number:
        """The column behind them: a target, or the place of a class, or −1 where it is none."""
        return column(self.width)

    @property
    def weight(self) -> Number | None:
        """Return what a row counts for; None where each counts for 1."""
        return None if self.single else WEIGHT

    def weigh(self, values: Number) -> Number:
        """Let each row count for its weight."""
        return values if self.weight is None else values * self.weight

    @property
    def here(self) -> _Memory:
        """The rows themselves."""
        if self.memory is None:
            raise NotAllowed("This estimator looks at rows one by one. Fit it on an array of them.")
        return self.memory

    def beside(self, target: Array) -> "Features":
        """Return the same rows with a column behind them."""
        held = self.here
        return replace(self._over(held.table, held.crowd, held.arrays.beside(target)), names=self.names)
