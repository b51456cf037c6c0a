"""The interface of mechanisms: frozen, calibrated before they see data, and able to state their claim.

A mechanism knows nothing of budgets, accounts or Secrets. It makes an Event (what running it once will have cost) and,
handed an exact value, draws one answer. The Meter is what stands between the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hubbub.privacy.events.event import Event
from hubbub.privacy.sensitivity import Neighbors, Norm

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The facts that must be proven about a value before this mechanism may see it."""

    norm: Norm
    sensitivity: Fraction
    """In units of the grid; squared for L2."""
    neighbors: Neighbors
    integers: bool = True
    """Value and sensitivities are whole steps of a grid; False where the mechanism rounds reals itself."""
    coordinates: int | None = None
    """The most coordinates that one unit may move; None where that does not matter."""
    monotone: bool = False
    """Relies on every score moving the same way when a unit is added."""


@runtime_checkable
class Mechanism(Protocol):
    """The whole contract. Everything but ``draw`` and ``repeat`` depends on public parameters alone."""

    @property
    def needs(self) -> Needs:
        """The facts that the Meter checks before it charges."""
        ...

    @property
    def event(self) -> Event:
        """The cost of one run, for the neighbouring relation the mechanism was calibrated for."""
        ...

    def draw(self, value: Any) -> Any:
        """One answer for an exact value."""
        ...

    def repeat(self, value: Any, *, times: int) -> Sequence[Any] | Array:
        """Independent answers for the same exact value: for audits and law tests, which never see real data."""
        ...

    def log_mass(self, value: Any, output: Any) -> float:
        """ln P(output | value) under the exact law that ``draw`` samples from; -inf where it is impossible."""
        ...

    def error(self, *, beta: float) -> float:
        """The error that an answer exceeds with probability at most ``beta``, in the units the class documents."""
        ...


def draw_each(mechanism: Mechanism, value: Any, times: int) -> list[Any]:
    """``repeat`` for mechanisms that have no faster way."""
    return [mechanism.draw(value) for _ in range(times)]


def settle(mechanism: object, **fields: object) -> None:
    """Set checked or derived fields of a frozen mechanism, in its own ``__post_init__`` only."""
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)
