"""A release over a huge domain: cells with their numbers, and sums over boxes. All of it is public."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from hubbub.gate.release import CONFIDENCE
from hubbub.ledger.entry import canonical, digest_of, ratio
from hubbub.mechanisms import SparseLargest, SparsePriority, SparseSample, SparseThreshold
from hubbub.parameters import probability
from hubbub.policy.kinds import Type
from hubbub.privacy.events.event import Event
from hubbub.publish import tags
from hubbub.publish.domain import Bins
from hubbub.publish.release.published import Estimate, Published, Receipt
from hubbub.publish.release.render import VALUE, free, type_of
from hubbub.publish.run import ACCOUNT
from hubbub.publish.sparse.filters import SparseFilter
from hubbub.publish.sparse.keys import Keys, Labels, axis_to_json
from hubbub.publish.sparse.prepared import PreparedSparse, cells_of
from hubbub.publish.strategies.layer import Array
from hubbub.publish.terms import Terms
from hubbub.publish.words import Words
from hubbub.query.answer.columns import Shown, make_column, to_arrow, to_pandas, to_polars

_FIRST = "which cells come first depends on the data, and so does how far their numbers are off"
_HIDDEN = "cells that are not shown hold something too, and how much is not known"


@dataclass(frozen=True, kw_only=True)
class SparseRelease:
    """Released cells in order of their codes. Nothing in it distinguishes an empty cell from one that was not."""

    keys: Keys
    codes: Array
    values: Array
    """The estimate of each: the noisy number, or in a sample what it stands for."""
    noisy: Array
    grid: Fraction
    strategy: SparseFilter
    terms: Terms
    level: float | None
    """What a sample's small numbers stand for, in steps of the grid; None where sums have no public error."""
    hidden: float | None
    """Noisy numbers from this on are always shown, in steps of the grid; None where there is no such number."""
    account: str = ACCOUNT
    entry: int = 0
    receipt: Receipt | None = None
    """None where no ledger was involved."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""

    @classmethod
    def make(
        cls,
        prepared: PreparedSparse,
        kept: Any,
        *,
        strategy: SparseFilter,
        keys: Keys,
        grid: Fraction = Fraction(1),
        account: str = ACCOUNT,
        entry: int = 0,
        receipt: Receipt | None = None,
        stored: datetime | None = None,
    ) -> "SparseRelease":
        """From what a mechanism has drawn."""
        mechanism, answer = prepared.mechanism, prepared.open(kept)
        codes, values, noisy = cells_of(mechanism, answer)
        level: float | None = None
        hidden: float | None = None
        match mechanism:
            case SparseThreshold():
                hidden = mechanism.threshold
            case SparseLargest():
                hidden = int(noisy.min()) + 1 if len(noisy) else None
            case SparseSample(level=whole_level, least=least):
                level, hidden = float(whole_level) if least == 1 else None, max(whole_level, least)
            case SparsePriority(least=least):
                cut = mechanism.cut(np.asarray(answer))
                level, hidden = cut if least == 1 else None, max(cut, least)
        return cls(
            keys=keys,
            codes=codes,
            values=values * float(grid),
            noisy=noisy,
            grid=grid,
            strategy=strategy,
            terms=prepared.terms,
            level=level,
            hidden=hidden,
            account=account,
            entry=entry,
            receipt=receipt,
            stored=stored,
        )

    @classmethod
    def of(cls, published: Published) -> "SparseRelease":
        """Wrap a publication from a database."""
        return cls.make(
            published.prepared,  # type: ignore[arg-type]
            published.noisy[0],
            strategy=published.strategy,  # type: ignore[arg-type]
            keys=Keys.over(published.domain),
            account=published.account,
            entry=published.entry,
            receipt=published.receipt,
            stored=published.stored,
        )

    @property
    def epsilon(self) -> Fraction:
        return self.terms.epsilon

    @property
    def delta(self) -> Fraction:
        return self.terms.delta

    @cached_property
    def mechanism(self) -> Any:
        """The mechanism that was drawn: a function of the filter, the domain and the price."""
        return self.strategy.mechanism(self.keys.size, self.terms)

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.mechanism.event,)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the noise of each cell, released or not; None where there is none of a public law.

        That a cell is shown says that its noise may have been large: what is shown is off by more, on average.
        """
        variance = getattr(self.mechanism, "variance", None)
        return None if variance is None else float(self.grid) * math.sqrt(variance)

    def __len__(self) -> int:
        return len(self.codes)

    def items(self) -> Iterator[tuple[int, float]]:
        """Codes with their estimates, in order."""
        return zip(self.codes.tolist(), self.values.tolist(), strict=True)

    def value(self, code: int | Mapping[str, Any]) -> float:
        """Return the estimate of one cell; 0 for those that are not released."""
        if isinstance(code, Mapping):
            code = int(self.keys.encode({name: [one] for name, one in code.items()})[0])
        at = int(np.searchsorted(self.codes, code))
        return float(self.values[at]) if at < len(self.codes) and int(self.codes[at]) == code else 0.0

    def cell(self, code: int | Mapping[str, Any], *, confidence: float = CONFIDENCE) -> Estimate:
        """One cell that was named in advance, shown or not, with an interval: |noise| <= q at this confidence.

        A noisy number that is shown is then at most q off. One that is not is below ``hidden``, so that the count is
        below ``hidden`` + q; and no count is negative. Whoever looks for the most striking of many cells needs
        intervals for all of these at once.
        """
        share = float(probability("confidence", confidence))
        if isinstance(code, Mapping):
            code = int(self.keys.encode({name: [one] for name, one in code.items()})[0])
        at = int(np.searchsorted(self.codes, code))
        there = at < len(self.codes) and int(self.codes[at]) == code
        value = float(self.values[at]) if there else 0.0
        if self.deviation is None or self.hidden is None:
            return Estimate(value=value, deviation=None, low=None, high=None, confidence=share, why_no_interval=_FIRST)
        far = self.mechanism.error(beta=1 - share)
        low, high = (int(self.noisy[at]) - far, int(self.noisy[at]) + far) if there else (0, self.hidden + far)
        ends = max(0.0, low * float(self.grid)), max(0.0, high * float(self.grid))
        return Estimate(value=value, deviation=self.deviation, low=ends[0], high=ends[1], confidence=share)

    def within(
        self, named: Mapping[str, Any] | None = None, *, confidence: float = CONFIDENCE, **axes: Any
    ) -> Estimate:
        """The sum over a box: a value, or two that are both included, for each axis that is named.

        Of an unfiltered sample the sum is right on average. Its variance is that of the noise of all cells in the box,
        and what sampling adds: |v|(τ - |v|) for a number below τ, which is kept with probability |v|/τ, and so
        τ(τ - |v|) for each that was kept, on average over samples. Both come from public numbers and the release alone.
        """
        share = float(probability("confidence", confidence))
        boxes = self.keys.box({**(named or {}), **axes})
        inside = np.ones(len(self.codes), dtype=np.bool_)
        for places, box in zip(self.keys.digits(self.codes), boxes, strict=True):
            inside &= (places >= box.start) & (places < box.stop)
        total = float(self.values[inside].sum())
        if self.level is None or self.deviation is None:
            return Estimate(value=total, deviation=None, low=None, high=None, confidence=share, why_no_interval=_HIDDEN)
        size = np.abs(self.noisy[inside].astype(float))
        cells = math.prod(box.stop - box.start for box in boxes)
        sampled = float((self.level * np.maximum(self.level - size, 0)).sum())
        deviation = math.sqrt(cells * self.deviation**2 + float(self.grid) ** 2 * sampled)
        reach = NormalDist().inv_cdf((1 + share) / 2) * deviation
        return Estimate(value=total, deviation=deviation, low=total - reach, high=total + reach, confidence=share)

    def to_table(self) -> dict[str, list[Any]]:
        """Columns of the domain, and ``value``."""
        return {**self.keys.decode(self.codes), self._value_name: self.values.tolist()}

    @property
    def _value_name(self) -> str:
        return free(VALUE, {name for name, _ in self.keys.axes})

    def _columns(self) -> list[Shown]:
        """A column's type is that of the domain, whichever of its values are shown."""
        types = {name: _type(labels) for name, labels in self.keys.axes} | {self._value_name: Type.REAL}
        return [
            make_column(name, types[name], [None if one is None else str(one) for one in column])
            if types[name] is Type.TEXT
            else make_column(name, types[name], column)
            for name, column in self.to_table().items()
        ]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of the released cells (needs pandas)."""
        return to_pandas(self._columns())

    def to_polars(self) -> Any:
        """Return a polars DataFrame of the released cells (needs polars)."""
        return to_polars(self._columns())

    def to_arrow(self) -> Any:
        """Return a pyarrow Table of the released cells (needs pyarrow)."""
        return to_arrow(self._columns())

    def certificate(self) -> str:
        """JSON from which an outsider can recompute the loss, and from filter, size and contribution the event."""
        one, paid = self.terms.contribution, self.receipt
        told: dict[str, Any] = {
            "account": self.account,
            "contribution": {"cells": one.cells, "each": one.each, "total": one.total},
            "delta": ratio(self.delta),
            "domain": digest_of([axis_to_json(name, labels) for name, labels in self.keys.axes]),
            "entry": self.entry,
            "epsilon": ratio(self.epsilon),
            "events": [event.to_json() for event in self.events],
            "neighbors": one.neighbors.value,
            "shape": list(self.keys.lengths),
            "steps": [],
            "strategy": tags.to_json(self.strategy),
        }
        charge = {} if paid is None else {name: one for name, one in asdict(paid).items() if name != "charged"}
        return canonical(told | charge)

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON; ``publish.sparse.load`` reads it."""
        from hubbub.publish.sparse import saved

        saved.save(self, path)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        from hubbub.publish.sparse import saved

        return saved.to_json(self)


def _type(labels: Labels) -> Type:
    if isinstance(labels, range):
        return Type.INTEGER
    return Type.TEXT if isinstance(labels, Words | Bins) else type_of(list(labels))
