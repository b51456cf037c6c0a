"""The errors that intervals cover, and how a plan remembers by which means.

What limits drop is covered in one of two ways. It is measured, with a share of the price: numbers stay as exact as they
were, nearly, and intervals reach far on one side. Or nothing is dropped: limits are raised to the rows that a unit has
at most, and noise with them, which makes the shortest intervals where what is dropped would be hidden in noise anyway.

A plan is made again from its ways (privacy.ways), so their names begin with marks that say what was done.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from hubbub.policy.tables import Policy
from hubbub.privacy.ways import ChosenWay

SHARE = Fraction(1, 8)
"""Of what a question pays for noise, for what limits drop: pure noise is 14% wider for it, Gaussian noise 7%. A smaller
share makes the noise of what is dropped wider in proportion, which intervals show on one side only."""
SHARES = (SHARE, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
"""Those that are tried where intervals are to be as short as they can be. With limits of m rows of M that a unit has at
most, raising them to M is shorter up to M = 9 m or so; beyond that the best share is between a half and 1."""
_MARKS = re.compile(r"(beside )?(?:whole (\d+/\d+) |(raised ))?")


class Covers(StrEnum):
    """The errors that intervals cover."""

    NOISE = "noise"
    """The noise alone: they are about what limits and bounds let count."""
    DROPPED = "dropped"
    """What limits drop too, measured with a small share of the price, where it can be."""
    WHOLE = "whole"
    """What limits drop too, for every aggregate, by whatever makes the intervals the shortest."""


@dataclass(frozen=True, slots=True)
class WayMarks:
    """What the names of ways begin with."""

    is_beside: bool = False
    """Conditions are measured side by side."""
    share: Fraction | None = None
    """The share that measures what limits drop."""
    is_raised: bool = False
    """Limits are raised to the rows that a unit has at most."""

    def __str__(self) -> str:
        beside = "beside " if self.is_beside else ""
        return beside + (f"whole {self.share} " if self.share is not None else "raised " if self.is_raised else "")


def read_marks(ways: Sequence[ChosenWay] | None) -> WayMarks:
    """Read how a plan was made from the names of its ways."""
    for name, _ in ways or ():
        found = _MARKS.match(name)
        assert found is not None
        return WayMarks(bool(found[1]), None if found[2] is None else Fraction(found[2]), bool(found[3]))
    return WayMarks()


def take_off_marks(ways: Sequence[ChosenWay] | None) -> tuple[ChosenWay, ...] | None:
    """Return ways by the names that ``privacy.ways`` knows."""
    return None if ways is None else tuple((_MARKS.sub("", name, count=1), epsilon) for name, epsilon in ways)


def put_marks(ways: Sequence[ChosenWay], marks: WayMarks) -> tuple[ChosenWay, ...]:
    """Return ways whose names begin with marks."""
    return tuple((str(marks) + name, epsilon) for name, epsilon in ways)


def raise_limits(policy: Policy) -> Policy:
    """Return the policy with limits that drop nothing of a unit that has no more rows than ``max_total_rows``."""
    most = policy.limits.max_total_rows
    return policy if most is None else replace(policy, limits=replace(policy.limits, max_rows=most, max_groups=most))
