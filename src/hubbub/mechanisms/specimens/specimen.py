"""The class of specimens. The registry has one of every mechanism, a file for each family.

They are what conformance tests are made of, so ``make mutate`` leaves this folder alone.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.mechanisms.base import Mechanism

TWIN = Fraction(5, 4)


def same(answer: Any) -> Hashable:
    """Return an answer that is its own key."""
    key: Hashable = answer
    return key


def as_tuple(answers: Any) -> Hashable:
    """Return a sequence of numbers as a key."""
    return tuple(float(answer) for answer in answers)


def as_items(shown: Mapping[Hashable, int]) -> Hashable:
    """Return keys with their counts as one key."""
    return tuple(shown.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """A calibrated mechanism, its worst neighbours and its dishonest twin."""

    name: str
    mechanism: Mechanism
    pair: tuple[Any, Any]
    twin: Mechanism
    outputs: tuple[Any, ...]
    """The whole support, or all of it but a negligible tail."""
    cell: Callable[[Any], Hashable] = same
    """Maps an answer to one of ``outputs``."""
    large: bool = False
    """Answers are drawn fast enough for a million of them."""
    loose: bool = False
    """No pair this small attains the claim; the twin is then cut further, until its true loss is 1.25 claims."""
