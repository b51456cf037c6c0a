"""Replay: run the same question on two neighbouring datasets with the same noise, and compare everything but the
secrets.

Every draw of noise starts at one primitive, ``noise.entropy.begin``. Here it is recorded, and its bits come from a
fixed stream that starts anew at each draw, so that the n-th draw gets the same bits on both sides however many bits the
draws before it took. What must then agree: plan, cost, schema, error, number and kind of draws. What may differ: the
values handed to each mechanism, by no more than the facts say.

This is for tests on generated data. The noise is predictable, so nothing that comes out is private.
"""

import hashlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hubbub.errors import HubbubError
from hubbub.gate.meter import Meter
from hubbub.gate.release import Release
from hubbub.gate.secret import Facts, Secret
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.objective.convex import Examples
from hubbub.mechanisms.selection.grouped import PerGroup
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.noise import entropy
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm

_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of noise, by what is public about it."""

    kind: str
    public: tuple[tuple[str, object], ...]


class ReplayableSource:
    """Predictable bits, for tests only: a new stream, fixed by seed and number, for each draw."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.draws: list[Draw] = []
        self._rekey()

    def _rekey(self) -> None:
        key = hashlib.sha256(f"{self.seed}/{len(self.draws)}".encode()).digest()
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        self._buffer = b""

    def begin(self, kind: str, public: Mapping[str, object]) -> None:
        self.draws.append(Draw(kind, tuple(sorted(public.items()))))
        self._rekey()

    def fill(self, out: memoryview) -> None:
        out[:] = self._encryptor.update(bytes(len(out)))

    def word(self) -> int:
        if not self._buffer:
            self._buffer = self._encryptor.update(bytes(_BLOCK))
        taken, self._buffer = self._buffer[:8], self._buffer[8:]
        return int.from_bytes(taken, "little")


@contextmanager
def replayed(seed: int = 0) -> Iterator[ReplayableSource]:
    """Noise from a fixed stream inside the block; the source that is given back has recorded every draw."""
    source = ReplayableSource(seed)
    with entropy.substitute(source):
        yield source


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedMeasurement:
    """A measurement that the gate was asked for, with the exact value that it opened."""

    mechanism: Mechanism
    facts: Facts
    event: Event
    value: Any


class RecordingMeter(Meter):
    """A Meter that keeps what it opened: on generated data only."""

    def __init__(self, accounts: Mapping[str, Budget]) -> None:
        super().__init__(accounts)
        self.measurements: list[ReplayedMeasurement] = []

    def _open(self, mechanism: Mechanism, secret: Secret[Any]) -> Any:
        value = super()._open(mechanism, secret)
        self.measurements.append(
            ReplayedMeasurement(mechanism=mechanism, facts=secret.facts, event=mechanism.event, value=value)
        )
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything that one run of a question showed and did."""

    draws: tuple[Draw, ...]
    measurements: tuple[ReplayedMeasurement, ...]
    outcome: str
    """How it ended: "answered", or the class and message of the error."""
    released: tuple[Any, ...]
    shape: str
    spent: tuple[str, ...]
    escaped: str = ""
    """The class of an error that is none of Hubbub's."""


def trace(question: Callable[[Meter], Any], *, accounts: Mapping[str, Budget], seed: int = 0) -> Trace:
    """Run a question against a fresh recording Meter with replayed noise."""
    meter = RecordingMeter(accounts)
    with replayed(seed) as source:
        raised: type[BaseException] | None = None
        try:
            answer, outcome = question(meter), "answered"
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            answer, outcome, raised = None, f"{type(error).__name__}: {error}", type(error)
    releases = [answer] if isinstance(answer, Release) else list(answer) if isinstance(answer, list | tuple) else []
    values = tuple(release.value if isinstance(release, Release) else release for release in releases)
    return Trace(
        draws=tuple(source.draws),
        measurements=tuple(meter.measurements),
        outcome=outcome,
        released=values,
        shape=", ".join(_shape(value) for value in values),
        spent=tuple(str(meter.spent(name)) for name in sorted(accounts)),
        escaped="" if raised is None or issubclass(raised, HubbubError) else raised.__name__,
    )


def differences(one: Trace, other: Trace) -> list[str]:
    """List what a neighbour changed that it must not change, a sentence each; empty if the question is sound here."""
    found = [
        f"{name} differ: {getattr(one, name)} and {getattr(other, name)}"
        for name in ("outcome", "draws", "spent", "shape")
        if getattr(one, name) != getattr(other, name)
    ]
    found += [f"{side.escaped} has escaped" for side in (one, other) if side.escaped]
    if len(one.measurements) != len(other.measurements):
        return [*found, f"{len(one.measurements)} and {len(other.measurements)} measurements were made"]
    for index, (a, b) in enumerate(zip(one.measurements, other.measurements, strict=True)):
        if (a.mechanism, a.facts, a.event) != (b.mechanism, b.facts, b.event):
            found.append(f"measurement {index} was calibrated differently")
            continue
        moved, allowed = distance(a, b), a.facts.sensitivity.in_norm(a.mechanism.needs.norm)
        if allowed is None or moved > allowed:
            found.append(
                f"measurement {index}: the value moved by {moved} in {a.mechanism.needs.norm}, declared {allowed}"
            )
    return found


def distance(a: ReplayedMeasurement, b: ReplayedMeasurement) -> Fraction:
    """Return how far apart two opened values are, in the norm of their mechanism (squared for L2)."""
    norm = a.mechanism.needs.norm
    if isinstance(a.mechanism, PerGroup):
        return _in_groups(a, b, a.mechanism)
    if norm in (Norm.UNITS, Norm.WEIGHTS):
        return _keys_changed(a.value, b.value)
    if isinstance(a.value, Examples) and isinstance(b.value, Examples):
        return a.value.apart(b.value)
    if norm is Norm.ROWS:
        return _rows_changed(a.value, b.value, a.facts.neighbors)
    if norm is Norm.LOCAL:
        return _rows_apart(a.value, b.value)
    x, y = np.atleast_1d(np.asarray(a.value, dtype=object)), np.atleast_1d(np.asarray(b.value, dtype=object))
    if x.shape != y.shape:
        return Fraction(10**12)
    steps = [abs(Fraction(p) - Fraction(q)) for p, q in zip(x.flat, y.flat, strict=True)]
    match norm:
        case Norm.L1:
            return sum(steps, Fraction(0))
        case Norm.L2:
            return sum((step * step for step in steps), Fraction(0))
        case Norm.SCORE:
            return max(steps, default=Fraction(0))
        case _:
            return Fraction(1 if any(steps) else 0)


def _in_groups(a: ReplayedMeasurement, b: ReplayedMeasurement, grouped: PerGroup) -> Fraction:
    """The most by which a group has moved; more groups than one unit can be in are as bad as can be."""
    if len(a.value) != len(b.value):
        return Fraction(10**12)
    pairs = [
        (replace(a, mechanism=grouped.mechanism, value=x), replace(b, mechanism=grouped.mechanism, value=y))
        for x, y in zip(a.value, b.value, strict=True)
    ]
    moved = [distance(x, y) for x, y in pairs]
    return max(moved, default=Fraction(0)) if sum(step > 0 for step in moved) <= grouped.groups else Fraction(10**12)


def _keys_changed(x: Mapping[Hashable, int], y: Mapping[Hashable, int]) -> Fraction:
    """On how many keys the counts differ; more than one unit on any of them is as bad as can be."""
    changed = [abs(x.get(key, 0) - y.get(key, 0)) for key in {*x, *y}]
    return Fraction(sum(1 for step in changed if step) if max(changed, default=0) <= 1 else 10**12)


def _rows_changed(x: Any, y: Any, neighbors: Neighbors) -> Fraction:
    """Count the values that one multiset has and the other has not."""
    each = [side.each() if isinstance(side, StepCounts) else side for side in (x, y)]
    held = [np.unique(np.asarray(side, dtype=np.float64), return_counts=True) for side in each]
    counts = [dict(zip(values.tolist(), times.tolist(), strict=True)) for values, times in held]
    changed = [counts[0].get(value, 0) - counts[1].get(value, 0) for value in {*counts[0], *counts[1]}]
    added, removed = sum(max(step, 0) for step in changed), -sum(min(step, 0) for step in changed)
    return Fraction(added + removed if neighbors is Neighbors.ADD_REMOVE else max(added, removed))


def _rows_apart(x: Any, y: Any) -> Fraction:
    """The least number of rows that explains how far two answers and their local sensitivities at distance differ."""
    (one, ones), (other, others) = x, y
    if len(ones) != len(others):
        return Fraction(10**12)
    for rows in range(len(ones) + 1):
        reached = min(sum(ones[:rows]), sum(others[:rows])) >= abs(one - other)
        shifted = all(a <= b for a, b in zip(ones, others[rows:], strict=False))
        if reached and shifted and all(b <= a for a, b in zip(ones[rows:], others, strict=False)):
            return Fraction(rows)
    return Fraction(10**12)


def _shape(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return type(value).__name__
