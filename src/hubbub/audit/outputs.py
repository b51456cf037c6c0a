"""Views of an output: as a category, as a number, coordinate by coordinate.

A `View` is a total function of one output, so that looking through it is post-processing and can only understate a
loss. Which views are used is decided by the draws that choose the event, never by the draws that test it.

Dozens of views ask the same of each output: what its parts are, as numbers and as categories. An `OutputReader` answers
once, so that a further view costs a look-up.

An error is an output like any other: what an attacker sees when a query fails is that it failed.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Outputs = Sequence[Any] | NDArray[Any]

_COORDINATES = 12
_PAIRED = 6
_MEMBERS = 24


@dataclass(frozen=True, slots=True)
class Raised:
    """An error that came instead of an answer."""

    kind: str
    message: str

    def __repr__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


class OutputReader:
    """One output, with what views ask of it; each is found when it is first asked for."""

    __slots__ = ("_keys", "_numbers", "_parts", "output")

    def __init__(self, output: Any) -> None:
        self.output = output
        self._parts: Mapping[Hashable, Any] | None = None
        self._numbers: dict[Hashable, float] | None = None
        self._keys: dict[Hashable, Hashable] | None = None

    @property
    def parts(self) -> Mapping[Hashable, Any]:
        """A container as a mapping from places to parts; empty for anything else."""
        if self._parts is None:
            self._parts = _parts(self.output)
        return self._parts

    @property
    def numbers(self) -> dict[Hashable, float]:
        """The parts as numbers."""
        if self._numbers is None:
            self._numbers = {place: number(part) for place, part in self.parts.items()}
        return self._numbers

    @property
    def keys(self) -> dict[Hashable, Hashable]:
        """The parts as categories."""
        if self._keys is None:
            self._keys = {place: key(part) for place, part in self.parts.items()}
        return self._keys


class Batch:
    """Outputs that are looked at again and again, by one view after another."""

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = outputs
        self.seen: dict[Callable[[OutputReader], Any], Any] = {}
        """What views saw: both orders of a pair, and all points of a claim, are often looked at in the same way."""
        self._reads: list[OutputReader] | None = None

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def reads(self) -> list[OutputReader]:
        """Each output, to be asked."""
        if self._reads is None:
            self._reads = [OutputReader(output) for output in self.outputs]
        return self._reads

    @property
    def whole(self) -> bool:
        """True if the outputs are whole numbers in an array, which need not be asked one by one."""
        return isinstance(self.outputs, np.ndarray) and self.outputs.ndim == 1 and self.outputs.dtype.kind in "iu"

    @property
    def numeric(self) -> bool:
        """True if the outputs are numbers in an array."""
        return isinstance(self.outputs, np.ndarray) and self.outputs.ndim == 1 and self.outputs.dtype.kind in "iuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One way to look at an output. ``name`` reads well in front of "≥ 3" or "is one of …"."""

    name: str
    numeric: bool
    of: Callable[[OutputReader], Any]

    def numbers(self, outputs: Outputs | Batch) -> NDArray[np.float64]:
        """The outputs as numbers; NaN where an output is not one."""
        batch = _batch(outputs)
        if self.of not in batch.seen:
            if batch.numeric and self.of is as_number:
                batch.seen[self.of] = np.asarray(batch.outputs).astype(np.float64)
            elif batch.numeric and self.of is _fraction:
                batch.seen[self.of] = _fractions(np.asarray(batch.outputs).astype(np.float64))
            else:
                batch.seen[self.of] = np.fromiter(map(self.of, batch.reads), dtype=np.float64, count=len(batch))
        found: NDArray[np.float64] = batch.seen[self.of]
        return found

    def keys(self, outputs: Outputs | Batch) -> list[Hashable]:
        """The outputs as categories."""
        batch = _batch(outputs)
        if self.of not in batch.seen:
            if batch.whole and self.of is as_key:
                batch.seen[self.of] = np.asarray(batch.outputs).tolist()
            elif batch.whole and self.of is as_kind:
                batch.seen[self.of] = [int.__name__] * len(batch)
            elif batch.numeric and self.of is as_key:
                batch.seen[self.of] = _each_odd(np.asarray(batch.outputs), key)
            elif batch.numeric and self.of is as_kind:
                batch.seen[self.of] = _each_odd(np.asarray(batch.outputs), kind, usual=float.__name__)
            else:
                batch.seen[self.of] = list(map(self.of, batch.reads))
        found: list[Hashable] = batch.seen[self.of]
        return found


def _each_odd(reals: NDArray[Any], of: Callable[[Any], Hashable], usual: Hashable = None) -> list[Hashable]:
    """Reals as categories: each is its own, or the usual one, but for those that have to be asked (NaN and −0.0)."""
    found: list[Hashable] = reals.tolist() if usual is None else [usual] * len(reals)
    for place in np.flatnonzero(np.isnan(reals) | ((reals == 0) & np.signbit(reals))).tolist():
        found[place] = of(reals[place])
    return found


def _batch(outputs: Outputs | Batch) -> Batch:
    return outputs if isinstance(outputs, Batch) else Batch(outputs)


def number(output: Any) -> float:
    """An output as a number; NaN if it is not one."""
    if type(output) is float or (type(output) is int and abs(output) < 1 << 53):
        return float(output)  # most parts of most outputs
    if isinstance(output, np.ndarray) and output.ndim == 0:
        output = output.item()
    if isinstance(output, str | bytes | Raised) or output is None:
        return math.nan
    try:
        return float(output)
    except OverflowError:
        return math.inf if output > 0 else -math.inf
    except Exception:
        return math.nan


def key(output: Any) -> Hashable:
    """An output as a category: equal keys mean that nobody can tell the outputs apart (NaN and −0.0 included)."""
    if type(output) is int or type(output) is str or output is None:
        return output
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, float):
        if math.isnan(output):
            return "NaN"
        return "-0.0" if output == 0 and math.copysign(1.0, output) < 0 else output
    if isinstance(output, list | tuple):
        return tuple(key(part) for part in output)
    if isinstance(output, Mapping):
        return tuple(sorted(((key(name), key(part)) for name, part in output.items()), key=repr))
    if isinstance(output, Set):
        return frozenset(key(part) for part in output)
    try:
        hash(output)
    except TypeError:
        return repr(output)
    return output  # type: ignore[no-any-return]


def kind(output: Any) -> str:
    """Name the sort of an output: an error by its class, a container by its type and length."""
    if isinstance(output, Raised):
        return f"error {output.kind}"
    if isinstance(output, np.ndarray) and output.ndim > 0:
        return f"array of shape {output.shape}"
    if isinstance(output, np.ndarray | np.generic):
        output = output.item()
    if isinstance(output, float) and math.isnan(output):
        return "NaN"
    name = "None" if output is None else type(output).__name__
    return f"{name} of {len(output)}" if isinstance(output, Mapping | Set | list | tuple) else name


def as_number(read: OutputReader) -> float:
    """The view of an output as a number."""
    return number(read.output)


def as_key(read: OutputReader) -> Hashable:
    """The view of an output as a category."""
    return key(read.output)


def as_kind(read: OutputReader) -> str:
    """The view of what sort of thing came out."""
    return kind(read.output)


def views(outputs: Iterable[Any]) -> tuple[View, ...]:
    """The ways in which outputs like these can differ, plainest first."""
    return views_of(Batch(list(outputs)))


def views_of(*batches: Batch) -> tuple[View, ...]:
    """The same, of outputs in several batches."""
    found = [
        View(name="the kind of output", numeric=False, of=as_kind),
        View(name="output", numeric=False, of=as_key),
    ]
    plain = View(name="output", numeric=True, of=as_number)
    seen = np.concatenate([plain.numbers(batch) for batch in batches])
    scalars = seen[~np.isnan(seen)]
    if len(scalars):
        found.append(plain)
        if (scalars[np.isfinite(scalars)] % 1).any():
            found.append(View(name="the fraction of output", numeric=True, of=_fraction))
    if all(batch.numeric for batch in batches):
        return tuple(found)
    rows = [read for batch in batches for read in batch.reads if read.parts]
    if rows:
        found.extend(_views_of_parts(rows))
    return tuple(found)


def _views_of_parts(rows: list[OutputReader]) -> list[View]:
    places = [place for place, _ in Counter(chain.from_iterable(row.parts for row in rows)).most_common(_COORDINATES)]
    found = [View(name="the length of output", numeric=True, of=lambda read: float(len(read.parts)))]
    for place in places:
        found.append(View(name=f"output[{place!r}]", numeric=False, of=_part_key(place)))
        if not all(math.isnan(row.numbers.get(place, math.nan)) for row in rows):
            found.append(View(name=f"output[{place!r}]", numeric=True, of=_part_number(place)))
    for one, other in combinations(places[:_PAIRED], 2):
        found.append(View(name=f"output[{one!r}] − output[{other!r}]", numeric=True, of=_difference(one, other)))
    for name, fold in (("sum", sum), ("minimum", min), ("maximum", max), ("place of the maximum", _place_of_maximum)):
        found.append(View(name=f"the {name} of output", numeric=True, of=_fold(fold)))
    members = Counter(chain.from_iterable(set(row.keys.values()) for row in rows)).most_common(_MEMBERS)
    for member, _ in members:
        found.append(View(name=f"whether output contains {member!r}", numeric=False, of=_contains(member)))
    return found


def _fraction(read: OutputReader) -> float:
    value = number(read.output)
    return value % 1 if math.isfinite(value) else math.nan


def _fractions(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same of many numbers."""
    finite = np.isfinite(values)
    return np.where(finite, np.where(finite, values, 0.0) % 1, math.nan)


def _parts(output: Any) -> Mapping[Hashable, Any]:
    if isinstance(output, tuple | list):
        return dict(enumerate(output))
    if isinstance(output, Mapping):
        return output
    if isinstance(output, Set):
        return {key(part): part for part in output}
    return dict(enumerate(output.ravel().tolist())) if isinstance(output, np.ndarray) and output.ndim else {}


def _part_key(place: Hashable) -> Callable[[OutputReader], Hashable]:
    return lambda read: read.keys.get(place, "nothing")


def _part_number(place: Hashable) -> Callable[[OutputReader], float]:
    return lambda read: read.numbers.get(place, math.nan)


def _difference(one: Hashable, other: Hashable) -> Callable[[OutputReader], float]:
    def difference(read: OutputReader) -> float:
        here, there = read.numbers.get(one, math.nan), read.numbers.get(other, math.nan)
        return here - there if math.isfinite(here) and math.isfinite(there) else math.nan

    return difference


def _fold(fold: Callable[..., Any]) -> Callable[[OutputReader], float]:
    def fold_output(read: OutputReader) -> float:
        values = list(read.numbers.values())
        return float(fold(values)) if values and all(map(math.isfinite, values)) else math.nan

    return fold_output


def _place_of_maximum(values: list[float]) -> int:
    return values.index(max(values))


def _contains(member: Hashable) -> Callable[[OutputReader], bool]:
    return lambda read: member in read.keys.values()
