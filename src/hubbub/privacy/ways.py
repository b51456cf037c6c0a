"""Choose, of all the ways to measure a question that can be paid for, the one that errs least.

A way is made for an ε: pure noise with all of it, Gaussian noise for it and a δ. What is payable follows from the
question, the policy and the balances that whoever asks may see. A way that is too dear at the ε that was asked for is
tried at the greatest ε at which it is not, so that asking for more never brings less: with Gaussian noise paid before,
an account may have little ρ left, and pure noise at a lower ε may still err less than Gaussian noise at all of it.

Where no way can be paid for at the ε that was asked for, nothing is chosen in its place: the question is refused, and
the error says what it costs. A caller that has other ways beside these, one of which can be paid for, asks for the best
at any lower ε all the same (``lower``), to compare it with those.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from hubbub.errors import HubbubError
from hubbub.privacy.charge import LOSS_UNIT, Charge, Room, Spent
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Budget, Filter, price_of

P = TypeVar("P")

_HALVINGS = 64
"""Enough to find the greatest payable ε to a unit, from any budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Whoever pays: how an account counts, and the room in every balance that a charge goes through."""

    terms: Filter
    room: Room

    @classmethod
    def of(cls, budget: Budget) -> "Payer":
        """A new account, from which nothing was spent."""
        return cls(terms=budget.filter, room=budget.filter.remaining(Spent()))

    def price(self, events: Sequence[Event]) -> Charge:
        """Return what the events cost together."""
        return price_of(self.terms, events)

    def can_pay(self, events: Sequence[Event]) -> bool:
        """Return whether the events can be paid for together."""
        return self.room.fits(self.price(events))

    def after(self, charge: Charge) -> "Payer":
        """Return the payer once this is charged."""
        return Payer(terms=self.terms, room=self.room.less(charge))


ChosenWay = tuple[str, Fraction]
"""The name of a way, and the ε that it was made for: all that it takes to make it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way(Generic[P]):
    """One way to measure all of a question."""

    name: str
    make: Callable[[Fraction], P]
    """Make it for an ε; a HubbubError where it cannot be made."""
    events: Callable[[P], Sequence[Event]]
    size: Callable[[P], tuple[float, ...]]
    """What it errs: the first number counts, the next ones where it is equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Generic[P]):
    """The way that was chosen, and what it was made for."""

    name: str
    epsilon: Fraction
    made: P

    @property
    def way(self) -> ChosenWay:
        """Return what it takes to make it again."""
        return self.name, self.epsilon


def choose(ways: Sequence[Way[P]], *, epsilon: Fraction, payer: Payer, lower: bool = False) -> Chosen[P]:
    """Return the payable way that errs least at any ε up to this; of equal ones the first.

    Where none is payable at this ε itself, return the one that errs least of all, which will be refused; with ``lower``
    the one that errs least at a lower ε, if any is payable there.
    """
    made, problem = _make_all(ways, epsilon)
    if not made:
        assert problem is not None
        raise problem
    payable = [(way, one) for way, one in made if payer.can_pay(way.events(one))]
    if not payable and lower:
        less = [(way, found) for way in ways if (found := _largest(way, payer, epsilon)) is not None]
        if less:
            return min(less, key=lambda pair: pair[0].size(pair[1].made))[1]
    if not payable:
        way, one = min(made, key=_size)
        return Chosen(name=way.name, epsilon=epsilon, made=one)
    way, one = min(payable, key=_size)
    best = Chosen(name=way.name, epsilon=epsilon, made=one)
    least = way.size(one)
    for other, dear in made:
        if (other, dear) in payable or other.size(dear) >= least:
            continue
        found = _largest(other, payer, epsilon)
        if found is not None and other.size(found.made) < least:
            best, least = found, other.size(found.made)
    return best


def make_again(ways: Sequence[Way[P]], chosen: ChosenWay) -> Chosen[P]:
    """Make the way that was chosen before."""
    name, epsilon = chosen
    way = next(way for way in ways if way.name == name)
    return Chosen(name=name, epsilon=epsilon, made=way.make(epsilon))


def _make_all(ways: Sequence[Way[P]], epsilon: Fraction) -> tuple[list[tuple[Way[P], P]], HubbubError | None]:
    made: list[tuple[Way[P], P]] = []
    first: HubbubError | None = None
    for way in ways:
        try:
            made.append((way, way.make(epsilon)))
        except HubbubError as problem:
            first = first or problem
    return made, first


def _size(made: tuple[Way[P], P]) -> tuple[float, ...]:
    return made[0].size(made[1])


def _largest(way: Way[P], payer: Payer, epsilon: Fraction) -> Chosen[P] | None:
    """Return the way at the greatest ε that can be paid for.

    It is looked for between 0 and the whole budget, wherever ``epsilon`` lies, so that it is the same for every ε that
    is too dear: what is chosen depends on it by the minimum of the two alone.
    """
    low, high = 0, int(payer.terms.epsilon / LOSS_UNIT) + 1
    for _ in range(_HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (middle, high) if _make_payable(way, payer, middle * LOSS_UNIT) is not None else (low, middle)
    at = min(epsilon, low * LOSS_UNIT)
    made = _make_payable(way, payer, at) if at else None
    return None if made is None else Chosen(name=way.name, epsilon=at, made=made)


def _make_payable(way: Way[P], payer: Payer, epsilon: Fraction) -> P | None:
    try:
        made = way.make(epsilon)
    except HubbubError:
        return None
    return made if payer.can_pay(way.events(made)) else None
