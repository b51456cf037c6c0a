"""Answers that carry their error: the value, what it cost, and how far it may be off.

An interval follows from the mechanism's public law and the released value alone. Where it would have to be read off the
data there is none, and ``why_no_interval`` says so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import HubbubError
from hubbub.gate.pictures import find_drawer
from hubbub.mechanisms.additive.laplace import TruncatedGeometric
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.integers import off_grid
from hubbub.parameters import probability
from hubbub.privacy.events.event import Event
from hubbub.privacy.sensitivity import ADDITIVE

CONFIDENCE = 0.95


def note_age(stored: datetime | None, *, before: str = " · ", fresh: str = "") -> str:
    """Say that an answer is not fresh, and of when it is: the end of a printed answer; of a fresh one, that it is."""
    if stored is None:
        return f"{before}{fresh}" if fresh else ""
    return f"{before}served again, stored {stored:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The interval of the exact value with the stated confidence: a number each, or an array each for a vector."""

    low: Any
    high: Any
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One answer. Everything in it is public: use it, plot it, publish it, at no further cost."""

    value: Any
    mechanism: Mechanism
    event: Event
    account: str
    entry: int
    """Its number in the account's ledger."""
    grid: Fraction
    """The step that values and errors of whole numbers are counted in; 1 for everything else."""
    label: str = "value"
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""

    plotter: ClassVar[Callable[..., Any] | None] = None
    """Set by ``hubbub.report``, which is loaded when it is first needed."""

    @property
    def why_no_interval(self) -> str | None:
        """None where intervals are exact; else the reason why there are none."""
        if self.mechanism.needs.norm in ADDITIVE:
            return None
        return f"{type(self.mechanism).__name__} does not add noise to a number: its error depends on the data."

    def interval(self, confidence: float = CONFIDENCE, *, together: bool = False) -> Interval:
        """Return where the exact value lies, each coordinate with this confidence, or all of them ``together``."""
        margin = self.margin(confidence, together=together)
        low, high = self.value - margin, self.value + margin
        if isinstance(self.mechanism, TruncatedGeometric):
            low = np.maximum(low, off_grid(self.mechanism.low, self.grid))
            high = np.minimum(high, off_grid(self.mechanism.high, self.grid))
        return Interval(low=low, high=high, confidence=confidence)

    def margin(self, confidence: float = CONFIDENCE, *, together: bool = False) -> Any:
        """The number behind the ±: the same for every coordinate, since their noise has the same law."""
        beta = float(1 - probability("confidence", confidence))
        reason = self.why_no_interval
        if reason is not None:
            raise HubbubError(reason)
        if together:
            beta = -math.expm1(math.log1p(-beta) / np.size(self.value))
        return off_grid(self.mechanism.error(beta=beta), self.grid)

    @property
    def loss(self) -> str:
        """Describe what the release cost, for a person."""
        parts = []
        if self.event.epsilon is not None:
            parts.append(f"ε = {float(self.event.epsilon):.6g}")
        elif self.event.rho is not None:
            parts.append(f"ρ = {float(self.event.rho):.6g}")
        if self.event.failure:
            parts.append(f"δ₀ = {float(self.event.failure):.3g}")
        return ", ".join(parts)

    def __repr__(self) -> str:
        many = isinstance(self.value, np.ndarray)
        shown = f"{self.value.size} values" if many else str(self.value)
        if self.why_no_interval is None:
            shown += f"{', each' if many else ''} ± {self.margin()} (95%)"
        name = type(self.mechanism).__name__
        again = note_age(self.stored, before=", ")
        return f"Release({shown}; {name}, {self.loss}, entry {self.entry} of account {self.account!r}{again})"

    def plot(self, **options: Any) -> Any:
        """A picture with error bars (needs ``pip install "hubbub[plot]"``)."""
        return find_drawer(type(self), "plotter")(self, **options)
