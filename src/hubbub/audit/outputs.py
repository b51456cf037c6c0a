"""How an auditor looks at an output: as a category, as a number, coordinate by coordinate.

A `View` is a total function of one output, so that looking through it is post-processing and can only understate a
loss. Which views are used is decided by the draws that choose the event, never by the draws that test it.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One way to look at an output. ``name`` reads well in front of "≥ 3" or "is one of …"."""

    name: str
    numeric: bool
    of: Callable[[Any], Any]

    def numbers(self, outputs: Outputs) -> NDArray[np.float64]:
        """The outputs as numbers; NaN where an output is not one."""
        if self.of is number and isinstance(outputs, np.ndarray) and outputs.ndim == 1 and outputs.dtype.kind in "iuf":
            return outputs.astype(np.float64)
        return np.fromiter((self.of(output) for output in outputs), dtype=np.float64, count=len(outputs))

    def keys(self, outputs: Outputs) -> list[Hashable]:
        """The outputs as categories."""
        return [self.of(output) for output in outputs]


def number(output: Any) -> float:
    """An output as a number; NaN if it is not one."""
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
    """What sort of thing came out: an error by its class, a container by its type and length."""
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


def views(outputs: Iterable[Any]) -> tuple[View, ...]:
    """The ways in which outputs like these can differ, plainest first."""
    seen = list(outputs)
    found = [
        View(name="the kind of output", numeric=False, of=kind),
        View(name="output", numeric=False, of=key),
    ]
    scalars = [value for value in map(number, seen) if not math.isnan(value)]
    if scalars:
        found.append(View(name="output", numeric=True, of=number))
        if any(math.isfinite(value) and value % 1 for value in scalars):
            found.append(View(name="the fraction of output", numeric=True, of=_fraction))
    rows = [parts for parts in map(_parts, seen) if parts]
    if rows:
        found.extend(_views_of_parts(rows))
    return tuple(found)


def _views_of_parts(rows: list[Mapping[Hashable, Any]]) -> list[View]:
    places = [place for place, _ in Counter(chain.from_iterable(rows)).most_common(_COORDINATES)]
    found = [View(name="the length of output", numeric=True, of=lambda output: float(len(_parts(output))))]
    for place in places:
        values = [row[place] for row in rows if place in row]
        found.append(View(name=f"output[{place!r}]", numeric=False, of=_part_key(place)))
        if any(not math.isnan(number(value)) for value in values):
            found.append(View(name=f"output[{place!r}]", numeric=True, of=_part_number(place)))
    for one, other in combinations(places[:_PAIRED], 2):
        found.append(View(name=f"output[{one!r}] − output[{other!r}]", numeric=True, of=_difference(one, other)))
    for name, fold in (("sum", sum), ("minimum", min), ("maximum", max), ("place of the maximum", _place_of_maximum)):
        found.append(View(name=f"the {name} of output", numeric=True, of=_folded(fold)))
    members = Counter(chain.from_iterable(set(map(key, row.values())) for row in rows)).most_common(_MEMBERS)
    for member, _ in members:
        found.append(View(name=f"whether output contains {member!r}", numeric=False, of=_contains(member)))
    return found


def _fraction(output: Any) -> float:
    value = number(output)
    return value % 1 if math.isfinite(value) else math.nan


def _parts(output: Any) -> Mapping[Hashable, Any]:
    """A container as a mapping from places to parts; empty for anything else."""
    if isinstance(output, Mapping):
        return output
    if isinstance(output, Set):
        return {key(part): part for part in output}
    if isinstance(output, np.ndarray):
        output = output.ravel().tolist() if output.ndim else ()
    return dict(enumerate(output)) if isinstance(output, list | tuple) else {}


def _part_key(place: Hashable) -> Callable[[Any], Hashable]:
    def part_key(output: Any) -> Hashable:
        parts = _parts(output)
        return key(parts[place]) if place in parts else "nothing"

    return part_key


def _part_number(place: Hashable) -> Callable[[Any], float]:
    return lambda output: number(_parts(output).get(place))


def _difference(one: Hashable, other: Hashable) -> Callable[[Any], float]:
    def difference(output: Any) -> float:
        parts = _parts(output)
        gap = [number(parts.get(one)), number(parts.get(other))]
        return gap[0] - gap[1] if all(map(math.isfinite, gap)) else math.nan

    return difference


def _folded(fold: Callable[..., Any]) -> Callable[[Any], float]:
    def folded(output: Any) -> float:
        values = [number(part) for part in _parts(output).values()]
        return float(fold(values)) if values and all(map(math.isfinite, values)) else math.nan

    return folded


def _place_of_maximum(values: list[float]) -> int:
    return values.index(max(values))


def _contains(member: Hashable) -> Callable[[Any], bool]:
    return lambda output: any(key(part) == member for part in _parts(output).values())
