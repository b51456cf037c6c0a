"""What events cost, what has been spent and what room is left: whole numbers that a ledger can store and compare."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

LOSS_UNIT = Fraction(1, 1 << 40)
"""The unit in which ε and ρ are counted."""
DELTA_UNIT = Fraction(1, 1 << 62)
"""The unit in which δ is counted."""

MOST_UNITS = 1 << 62
"""Sums are kept in 64-bit columns; a sum of ε beyond this counts as infinite, which only ever refuses more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The cost of one event, or of several: units of ρ (of ε, where δ = 0), of failure mass, and of pure ε."""

    loss: int
    failure: int = 0
    pure: int | None = None
    """Units of ε outside the failure mass; None where there is no pure ε, which counts as infinite."""

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(
            loss=self.loss + other.loss, failure=self.failure + other.failure, pure=add_pure(self.pure, other.pure)
        )


FREE = Charge(loss=0, pure=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """All that an account remembers: sums of all its charges."""

    loss: int = 0
    failure: int = 0
    charges: int = 0
    pure: int | None = 0
    """None once something was charged that has no pure ε."""

    def plus(self, charge: Charge, *, charges: int = 1) -> "Spent":
        """The sums after a charge."""
        return Spent(
            loss=self.loss + charge.loss,
            failure=self.failure + charge.failure,
            charges=self.charges + charges,
            pure=add_pure(self.pure, charge.pure),
        )


def add_pure(first: int | None, second: int | None) -> int | None:
    """Add units of pure ε, where None is infinite."""
    if first is None or second is None or first + second >= MOST_UNITS:
        return None
    return first + second


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The room that is left: in one balance, or in several of which each must admit a charge."""

    parts: tuple[Charge, ...]
    """The room in each balance, sum by sum; ``pure`` is None where no pure charge fits by its ε any more."""

    @classmethod
    def of(cls, parts: Iterable[Charge]) -> "Room":
        """Room that says what can be spent, and nothing beyond: a balance that never decides is left out.

        A principal must not learn what others leave in an account that its own limit would not let it spend.
        """
        listed = list(parts)
        failure = min(part.failure for part in listed)
        even = list(dict.fromkeys(Charge(loss=part.loss, failure=failure, pure=part.pure) for part in listed))
        return cls(parts=tuple(one for one in even if not any(_within(other, one) for other in even if other != one)))

    def fits(self, charge: Charge) -> bool:
        """Return True if every balance admits the charge, each by one of its sums."""
        return all(_admits(part, charge) for part in self.parts)

    def count(self, charge: Charge) -> int | None:
        """The number of times that a charge can be paid for; None where it costs nothing."""
        if charge == FREE:
            return None
        return min(_count(part, charge) for part in self.parts)

    @property
    def loss(self) -> int:
        """The least room of ρ (of ε, where δ = 0)."""
        return min(part.loss for part in self.parts)

    @property
    def failure(self) -> int:
        """The least room of failure mass."""
        return min(part.failure for part in self.parts)

    @property
    def pure(self) -> int | None:
        """The least room of pure ε; None where some balance has a sum that is infinite."""
        known = [part.pure for part in self.parts if part.pure is not None]
        return min(known) if len(known) == len(self.parts) else None

    def less(self, charge: Charge) -> "Room":
        """The room that a charge leaves."""
        return Room(parts=tuple(_less(part, charge) for part in self.parts))


def _within(less: Charge, more: Charge) -> bool:
    """Return True if all that fits into the one fits into the other."""
    return less.loss <= more.loss and (less.pure is None or (more.pure is not None and less.pure <= more.pure))


def _count(room: Charge, charge: Charge) -> int:
    """By the sum that goes furthest: what one of them has admitted so often, it has admitted from the first time on."""
    by_loss = room.loss // charge.loss if charge.loss else MOST_UNITS
    by_pure = 0 if room.pure is None or not charge.pure else room.pure // charge.pure
    by_failure = room.failure // charge.failure if charge.failure else MOST_UNITS
    return min(max(by_loss, by_pure), by_failure)


def _less(room: Charge, charge: Charge) -> Charge:
    pure = None if room.pure is None or charge.pure is None or charge.pure > room.pure else room.pure - charge.pure
    return Charge(loss=max(0, room.loss - charge.loss), failure=max(0, room.failure - charge.failure), pure=pure)


def _admits(room: Charge, charge: Charge) -> bool:
    if charge == FREE:
        return True
    if charge.failure > room.failure:
        return False
    by_epsilon = charge.pure is not None and room.pure is not None and charge.pure <= room.pure
    return by_epsilon or charge.loss <= room.loss
