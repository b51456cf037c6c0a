"""A published release: noisy measurements, the cells estimated from them, and the error of any answer.

Everything here is public, and free to use again.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import HubbubError, ParameterError
from hubbub.gate.pictures import find_drawer
from hubbub.gate.release import CONFIDENCE
from hubbub.ledger.entry import canonical, ratio
from hubbub.parameters import Real, probability, rational
from hubbub.privacy.events.event import Event
from hubbub.publish.domain import Domain
from hubbub.publish.inference.projection import onto_simplex
from hubbub.publish.inference.whole_numbers import whole_with_total
from hubbub.publish.release import spread
from hubbub.publish.release.map_margins import Mapped
from hubbub.publish.release.shapes import Outlined
from hubbub.publish.strategies.layer import Array
from hubbub.publish.strategies.strategy import Prepared, Strategy

_CENTRED = 1e-6
NON_NEGATIVE = "non-negative"
WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One number with its error: a standard deviation and an interval, or the reason why there is none."""

    value: float
    deviation: float | None
    low: float | None
    high: float | None
    confidence: float
    why_no_interval: str | None = None

    def __repr__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:,.6g} (no interval: {self.why_no_interval})"
        if abs(self.low + self.high - 2 * self.value) > _CENTRED * (self.high - self.low):
            return f"{self.value:,.6g} in [{self.low:,.6g}, {self.high:,.6g}] ({self.confidence:.6g})"
        return f"{self.value:,.6g} ± {(self.high - self.low) / 2:,.4g} ({self.confidence:.6g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The payment for a release from a ledger."""

    question: str
    policy: str
    """The fingerprint of the policy that it was read under."""
    version: str
    """The owner's name for the state of the data."""
    loss_units: int
    failure_units: int
    charged: str = ""
    """The ε that was charged in all, as p/q, with the facts that were bought for it; "" where it is not known."""

    def tell_price(self, epsilon: Fraction) -> str:
        """Say what was charged, where that is more than the numbers cost."""
        whole = Fraction(self.charged or epsilon)
        return "" if whole <= epsilon else f"ε = {float(whole):.6g}, bounds and limits that were bought included"


@dataclass(frozen=True, kw_only=True)
class Published(Mapped, Outlined):
    """The release."""

    strategy: Strategy
    prepared: Prepared
    domain: Domain
    noisy: tuple[Any, ...]
    account: str
    entry: int
    steps: tuple[str, ...] = ()
    """What was done to the cells since: non-negative, whole, with a given total."""
    made: Array | None = field(default=None, compare=False, repr=False)
    """The cells after those steps; None where there were none."""
    receipt: Receipt | None = None
    """None where no ledger was involved."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""

    plotter: ClassVar[Callable[..., Any] | None] = None
    """Set by ``hubbub.report``, which is loaded when it is first needed."""

    @cached_property
    def cells(self) -> Array:
        """The estimate of every cell."""
        return self.prepared.estimate(self.noisy) if self.made is None else self.made

    @property
    def epsilon(self) -> Fraction:
        return self.prepared.terms.epsilon

    @property
    def delta(self) -> Fraction:
        return self.prepared.terms.delta

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the mechanisms that were drawn."""
        return tuple(one.mechanism.event for one in self.prepared.measurements)

    def range(self, *bounds: Any, confidence: float = CONFIDENCE, **named: Any) -> Estimate:
        """Estimate the count between two labels, both included: ``range(18, 65)``, ``range(age=(18, 65),
        ward="surgery")``.

        Axes that are not named are summed over. Of bins, two edges are named.
        """
        if len(bounds) == 2 and len(self.domain.axes) == 1 and not named:
            named = {self.domain.axes[0].name: bounds}
        elif bounds:
            raise ParameterError("range", "two labels of the only axis, or axes by their names", bounds)
        return self.within(named, confidence=confidence)

    def within(self, named: Mapping[str, Any], *, confidence: float = CONFIDENCE) -> Estimate:
        """The same, for axes whose names are no names in Python."""
        query = np.zeros(self.domain.shape)
        query[self.domain.box(named)] = 1
        return self.answer(query, confidence=confidence)

    def answer(self, query: Any, *, confidence: float = CONFIDENCE) -> Estimate:
        """Any linear query: a weight for each cell."""
        share = float(probability("confidence", confidence))
        weights = np.asarray(query, dtype=float)
        if weights.shape != self.domain.shape:
            raise ParameterError("query", f"weights of shape {self.domain.shape}", weights.shape)
        value = float(np.sum(weights * self.cells))
        why = self.why_no_interval
        if why is None:
            try:
                deviation, margin = spread.of(self.prepared, weights, beta=1 - share)
            except HubbubError as problem:
                why = problem.message
        if why is not None:
            return Estimate(value=value, deviation=None, low=None, high=None, confidence=share, why_no_interval=why)
        return Estimate(value=value, deviation=deviation, low=value - margin, high=value + margin, confidence=share)

    @property
    def why_no_interval(self) -> str | None:
        """None where nothing was done to the cells that depends on them."""
        if self.steps:
            return f"The cells were made {', '.join(self.steps)}, so that errors depend on the data."
        return None

    @cached_property
    def deviations(self) -> Array | None:
        """The standard deviation of every cell; None where it depends on the data, or takes too much work to tell."""
        return None if self.steps else spread.deviations(self.prepared)

    def table(self) -> list[dict[str, Any]]:
        """One dictionary a cell: its labels, its value, and its standard deviation where there is one."""
        columns = self._columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_pandas(self) -> Any:
        """A pandas DataFrame (needs pandas)."""
        from hubbub.publish.release import render as frames

        return frames.to_pandas(self)

    def to_polars(self) -> Any:
        """A polars DataFrame (needs polars)."""
        from hubbub.publish.release import render as frames

        return frames.to_polars(self)

    def to_arrow(self) -> Any:
        """A pyarrow Table (needs pyarrow)."""
        from hubbub.publish.release import render as frames

        return frames.to_arrow(self)

    def _columns(self) -> dict[str, list[Any]]:
        from hubbub.publish.release import render as frames

        return {name: values for name, _, values in frames.columns(self)}

    def plot(self, **options: Any) -> Any:
        """A picture (needs ``pip install "hubbub[plot]"``): bars with error bars, or a heat map of two axes."""
        return find_drawer(type(self), "plotter")(self, **options)

    def certificate(self) -> str:
        """JSON from which an outsider can recompute the loss, and from strategy and contribution the events."""
        from hubbub.publish import tags

        one, paid = self.prepared.terms.contribution, self.receipt
        told: dict[str, Any] = {
            "account": self.account,
            "contribution": {"cells": one.cells, "each": one.each, "total": one.total},
            "delta": ratio(self.delta),
            "domain": self.domain.fingerprint,
            "entry": self.entry,
            "epsilon": ratio(self.epsilon),
            "events": [event.to_json() for event in self.events],
            "neighbors": one.neighbors.value,
            "shape": list(self.domain.shape),
            "steps": list(self.steps),
            "strategy": tags.describe(self.strategy, self.prepared),
        }
        if paid is not None:
            told |= {
                "failure_units": paid.failure_units,
                "loss_units": paid.loss_units,
                "policy": paid.policy,
                "question": paid.question,
                "version": paid.version,
            }
        return canonical(told)

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON, or as Parquet where the name ends so; ``publish.load`` reads both."""
        from hubbub.publish.release import saved

        saved.save(self, path)

    def nonnegative(self) -> "Published":
        """The nearest cells that are not negative, with the same sum (or none where that is negative). Free.

        Where the total is public, give it first (``with_total``): a noisy sum is an error that large cells bear.
        """
        total = max(0.0, float(np.sum(self._not_yet_whole("nonnegative"))))
        return self.change(onto_simplex(self.cells, total=total), NON_NEGATIVE)

    def with_total(self, total: Real) -> "Published":
        """The nearest cells that add up to a total which is public anyway; those made non-negative stay so. Free."""
        exact = float(rational("total", total))
        cells = self._not_yet_whole("with_total")
        if NON_NEGATIVE in self.steps:
            made = onto_simplex(cells, total=exact)
        else:
            made = cells + (exact - float(np.sum(cells))) / cells.size
        return self.change(made, f"to add up to {exact:g}")

    def whole(self) -> "Published":
        """Whole cells, each moved by less than 1, whose sum is the nearest whole number to what it was. Free."""
        return self.change(whole_with_total(self.cells), WHOLE)

    def _not_yet_whole(self, step: str) -> Array:
        if WHOLE in self.steps:
            raise ParameterError(step, "called before whole, which keeps signs and totals", self.steps)
        return self.cells

    def change(self, cells: Array, step: str) -> "Published":
        """The same release after a step of post-processing."""
        return replace(self, made=cells, steps=(*self.steps, step))

    @property
    def price(self) -> str:
        """For a person."""
        whole = "" if self.receipt is None else self.receipt.tell_price(self.epsilon)
        return (whole or f"ε = {float(self.epsilon):.6g}") + (f", δ = {float(self.delta):.3g}" if self.delta else "")

    def __repr__(self) -> str:
        from hubbub.publish.release.render import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from hubbub.publish.release.render import as_html

        return as_html(self)
