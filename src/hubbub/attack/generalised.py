"""The meaning of a generalised value: ``130**``, ``<30``, ``≥40``, ``[20-30]``, ``30s``, ``{a, b}``, ``*``.

An attacker needs two questions answered: can this person stand behind it, and can two such values be of one person.
Where a value cannot be read as one of these forms it stands for itself.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_NUMBER = r"-?\d+(?:\.\d+)?"
_BELOW = re.compile(rf"(<=|<|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(>=|>|≥)\s*({_NUMBER})")
_SPAN = re.compile(rf"([\[(]?)\s*({_NUMBER})\s*(?:-|–|\.\.|,|;)\s*({_NUMBER})\s*([\])]?)")
_DECADE = re.compile(r"(\d+0)s")
_DIGITS = re.compile(r"(\d*)(\*+)")
_SET = re.compile(r"\{(.*)\}")
_SUPPRESSED = frozenset({"", "*", "any", "all"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralizedValue:
    """A set of values: an interval of numbers, a pattern, a list, or (with none of them) everything."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    pattern: str | None = None
    values: frozenset[str] | None = None

    @property
    def everything(self) -> bool:
        """True if the region allows everything."""
        return self.pattern is None and self.values is None and self.low == -math.inf and self.high == math.inf

    def contains(self, value: Any) -> bool:
        """Return True if a person with this exact value can stand behind it. A value that is not known can."""
        if value is None or self.everything:
            return True
        text = _text(value)
        if self.values is not None:
            return text in self.values
        if self.pattern is not None:
            return len(text) == len(self.pattern) and all(
                mark in ("*", letter) for letter, mark in zip(text, self.pattern, strict=True)
            )
        number = _number(text)
        return number is not None and self._holds(number)

    def meets(self, other: "GeneralizedValue") -> bool:
        """Return True if one person can stand behind both; where that is hard to decide, the result is True."""
        if self.everything or other.everything:
            return True
        if self.values is not None:
            return any(other.contains(value) for value in self.values)
        if other.values is not None:
            return other.meets(self)
        if self.pattern is not None and other.pattern is not None:
            return len(self.pattern) == len(other.pattern) and all(
                "*" in (a, b) or a == b for a, b in zip(self.pattern, other.pattern, strict=True)
            )
        one, two = self._span(), other._span()
        if one is None or two is None:
            return True
        low, high = max(one.low, two.low), min(one.high, two.high)
        return low < high or (low == high and one._holds(low) and two._holds(low))

    def _holds(self, number: float) -> bool:
        above = number > self.low or (number == self.low and not self.low_open)
        return above and (number < self.high or (number == self.high and not self.high_open))

    def _span(self) -> "GeneralizedValue | None":
        """The interval of a pattern of digits that ends in stars."""
        if self.pattern is None:
            return self
        found = _DIGITS.fullmatch(self.pattern)
        if found is None or not found[1]:
            return None
        wide = 10 ** len(found[2])
        return GeneralizedValue(low=int(found[1]) * wide, high=int(found[1]) * wide + wide - 1)


EVERYTHING = GeneralizedValue()


@lru_cache(maxsize=65536)
def _read(text: str) -> GeneralizedValue:
    if text.lower() in _SUPPRESSED:
        return EVERYTHING
    if found := _BELOW.fullmatch(text):
        return GeneralizedValue(high=float(found[2]), high_open=found[1] == "<")
    if found := _ABOVE.fullmatch(text):
        return GeneralizedValue(low=float(found[2]), low_open=found[1] == ">")
    if found := _DECADE.fullmatch(text):
        return GeneralizedValue(low=int(found[1]), high=int(found[1]) + 9)
    if found := _SET.fullmatch(text):
        return GeneralizedValue(values=frozenset(_text(one.strip()) for one in found[1].split(",")))
    if (found := _SPAN.fullmatch(text)) and float(found[2]) <= float(found[3]):
        return GeneralizedValue(
            low=float(found[2]), high=float(found[3]), low_open=found[1] == "(", high_open=found[4] == ")"
        )
    if "*" in text:
        return EVERYTHING if set(text) == {"*"} else GeneralizedValue(pattern=text)
    return GeneralizedValue(values=frozenset({text}))


def region(value: Any) -> GeneralizedValue:
    """Read a cell of a release. A missing cell allows everything."""
    return EVERYTHING if value is None else _read(_text(value))


def _text(value: Any) -> str:
    """Numbers that are equal are written alike."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
