"""What was shown of a huge domain: cells with their numbers, and sums over boxes. All of it is public."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.ledger.entry import ratio
from hubbub.mechanisms import SparseFirst, SparsePriority, SparseSample
from hubbub.parameters import probability
from hubbub.publish import stored
from hubbub.publish.domain import Axis
from hubbub.publish.layer import Array
from hubbub.publish.published import Estimate
from hubbub.publish.sparse.keys import Keys, Words
from hubbub.publish.terms import Terms
from hubbub.release import CONFIDENCE

FORMAT = "hubbub.sparse"
_HIDDEN = "cells that are not shown hold something too, and how much is not known"


@dataclass(frozen=True, kw_only=True)
class SparseRelease:
    """Cells in order of their codes. Nothing in it tells an empty cell from one that was not."""

    keys: Keys
    codes: Array
    values: Array
    """The estimate of each: the noisy number, or in a sample what it stands for."""
    noisy: Array
    grid: Fraction
    epsilon: Fraction
    filter: str
    noise_variance: float | None
    """Of one cell, in steps of the grid; None where cells have no noise of a law of their own."""
    level: float | None
    """What a sample's small numbers stand for, in steps of the grid; None where sums have no public error."""
    entry: int = 0

    @classmethod
    def made(
        cls, mechanism: Any, answer: Any, *, keys: Keys, terms: Terms, grid: Fraction, entry: int
    ) -> "SparseRelease":
        """From what a mechanism has drawn."""
        variance, level = getattr(mechanism, "variance", None), None
        if isinstance(mechanism, SparseFirst):
            codes = np.array(answer[0], dtype=np.int64)
            values = noisy = np.array(mechanism.vector.estimates(tuple(answer)), dtype=float)
        elif isinstance(mechanism, SparseSample | SparsePriority):
            drawn = np.asarray(answer)
            values = mechanism.estimates(drawn)
            shown = drawn if isinstance(mechanism, SparseSample) else drawn[:, :-2]
            codes, noisy = shown[0].astype(np.int64), shown[1]
            if mechanism.least == 1:
                level = float(mechanism.level) if isinstance(mechanism, SparseSample) else mechanism.cut(drawn)
        else:
            codes, noisy = np.asarray(answer)
            values = noisy.astype(float)
        return cls(
            keys=keys,
            codes=codes,
            values=values * float(grid),
            noisy=noisy,
            grid=grid,
            epsilon=terms.epsilon,
            filter=type(mechanism).__name__,
            noise_variance=variance,
            level=level,
            entry=entry,
        )

    def __len__(self) -> int:
        return len(self.codes)

    def items(self) -> Iterator[tuple[int, float]]:
        """Codes with their estimates, in order."""
        return zip(self.codes.tolist(), self.values.tolist(), strict=True)

    def value(self, code: int | Mapping[str, Any]) -> float:
        """The estimate of one cell; 0 for those that are not shown."""
        if isinstance(code, Mapping):
            code = int(self.keys.encode({name: [one] for name, one in code.items()})[0])
        at = int(np.searchsorted(self.codes, code))
        return float(self.values[at]) if at < len(self.codes) and int(self.codes[at]) == code else 0.0

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
        if self.level is None or self.noise_variance is None:
            return Estimate(value=total, deviation=None, low=None, high=None, confidence=share, why_no_interval=_HIDDEN)
        size = np.abs(self.noisy[inside].astype(float))
        cells = math.prod(box.stop - box.start for box in boxes)
        sampled = float((self.level * np.maximum(self.level - size, 0)).sum())
        deviation = float(self.grid) * math.sqrt(cells * self.noise_variance + sampled)
        reach = NormalDist().inv_cdf((1 + share) / 2) * deviation
        return Estimate(value=total, deviation=deviation, low=total - reach, high=total + reach, confidence=share)

    def to_table(self) -> dict[str, list[Any]]:
        """Columns of the domain, and ``value``."""
        return {**self.keys.decode(self.codes), "value": self.values.tolist()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON; ``publish.sparse.load`` reads it."""
        Path(path).write_text(json.dumps(self.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "format": FORMAT,
            "version": stored.VERSION,
            "axes": [_axis(name, labels) for name, labels in self.keys.axes],
            "codes": stored.packed(self.codes),
            "values": stored.packed(self.values),
            "noisy": stored.packed(self.noisy),
            "grid": ratio(self.grid),
            "epsilon": ratio(self.epsilon),
            "filter": self.filter,
            "noise_variance": self.noise_variance,
            "level": self.level,
            "entry": self.entry,
        }


def load(path: str | os.PathLike[str]) -> SparseRelease:
    """What ``save`` has written."""
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        if told["format"] != FORMAT or told["version"] != stored.VERSION:
            raise ValueError("another format")
        return SparseRelease(
            keys=Keys(axes=tuple(_axis_from(one) for one in told["axes"])),
            codes=stored.unpacked(told["codes"]),
            values=stored.unpacked(told["values"]),
            noisy=stored.unpacked(told["noisy"]),
            grid=Fraction(told["grid"]),
            epsilon=Fraction(told["epsilon"]),
            filter=str(told["filter"]),
            noise_variance=told["noise_variance"],
            level=told["level"],
            entry=int(told["entry"]),
        )
    except OSError as problem:
        raise ParameterError("path", f"a file that can be read ({problem.strerror})", str(path)) from None
    except (ValueError, KeyError, TypeError) as problem:
        raise ParameterError("path", "a file that a sparse release has written", str(path)) from problem


def _axis(name: str, labels: Any) -> dict[str, Any]:
    if isinstance(labels, Words):
        return {"name": name, "words": [labels.alphabet, labels.length, labels.shorter]}
    if isinstance(labels, range):  # also those that are too long for an Axis
        return {"name": name, "range": [labels.start, labels.stop, labels.step]}
    return Axis(name=name, labels=labels).to_json()


def _axis_from(told: Mapping[str, Any]) -> tuple[str, Any]:
    match told:
        case {"name": str(name), "words": [str(alphabet), int(length), bool(shorter)]}:
            return name, Words(alphabet=alphabet, length=length, shorter=shorter)
        case {"name": str(name), "range": [int(start), int(stop), int(step)]} if step:
            return name, range(start, stop, step)
    axis = Axis.from_json(told)
    return axis.name, axis.labels
