"""Coarser and coarser ways of writing a value: digits, ranges, trees. Level 0 is the value, the top level is ``*``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hubbub.anonymity.wanted import SUPPRESSED, is_number
from hubbub.errors import ParameterError


class GeneralizationHierarchy(Protocol):
    """Whoever is alike at one level is alike at all above it."""

    @property
    def top(self) -> int:
        """The level at which nothing is left."""

    def at(self, value: Any, level: int) -> str:
        """The value as it is written at a level."""


def write_value(value: Any) -> str:
    """A value as it is; numbers that are equal are written alike."""
    if value is None:
        return SUPPRESSED
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@dataclass(frozen=True, slots=True)
class Suppress:
    """The value, or nothing."""

    top: int = 1

    def at(self, value: Any, level: int) -> str:
        """Level 1 is nothing."""
        return SUPPRESSED if level >= 1 else write_value(value)


@dataclass(frozen=True, slots=True)
class Digits:
    """Stars in place of the last signs: 13012, 1301*, 130**."""

    length: int

    @property
    def top(self) -> int:
        """The level at which all signs are stars."""
        return self.length

    def at(self, value: Any, level: int) -> str:
        """So many stars. Values of another length are left out from level 1 on: their length would tell them apart."""
        text = write_value(value)
        if level == 0:
            return text
        if level >= self.length or len(text) != self.length:
            return SUPPRESSED
        return text[: self.length - level] + "*" * level


@dataclass(frozen=True, slots=True)
class RangeHierarchy:
    """Wider and wider ranges of numbers: each width is a multiple of the one before it."""

    widths: tuple[float, ...]
    origin: float = 0

    def __post_init__(self) -> None:
        steps = zip(self.widths, self.widths[1:], strict=False)
        if not self.widths or self.widths[0] <= 0 or any(b <= a or b % a for a, b in steps):
            raise ParameterError("widths", "positive, each a multiple of the one before it", self.widths)

    @property
    def top(self) -> int:
        """One more than there are widths."""
        return len(self.widths) + 1

    def at(self, value: Any, level: int) -> str:
        """From the lower end, which is in it, to the upper end, which is not."""
        if level == 0:
            return write_value(value)
        if level >= self.top or not is_number(value):
            return SUPPRESSED
        width = self.widths[level - 1]
        low = math.floor((value - self.origin) / width) * width + self.origin
        return f"[{low:g}-{low + width:g})"


@dataclass(frozen=True, slots=True)
class Tree:
    """Each value has a parent, and that one has another: {"cough": "lungs", "lungs": "illness"}."""

    parents: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in self.parents:
            seen, one = {name}, name
            while (one := self.parents.get(one, "")) != "":
                if one in seen:
                    raise ParameterError("parents", "a tree, in which nobody is their own ancestor", one)
                seen.add(one)

    def _above(self, name: str) -> list[str]:
        found = [name]
        while found[-1] in self.parents:
            found.append(self.parents[found[-1]])
        return found

    @property
    def top(self) -> int:
        """One above the longest way up."""
        return max((len(self._above(name)) for name in self.parents), default=1)

    def at(self, value: Any, level: int) -> str:
        """So many parents up; the root stays the root, until everything is left out."""
        if level >= self.top:
            return SUPPRESSED
        above = self._above(write_value(value))
        return above[min(level, len(above) - 1)]
