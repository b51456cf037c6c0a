"""Specimens of what is measured in stages, where one answer decides the next question."""

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.mechanisms.base import Array
from hubbub.mechanisms.specimens.specimen import TWIN, Specimen
from hubbub.mechanisms.staged.splits import Cuts, Rule, Splits
from hubbub.mechanisms.staged.staged import GRAIN, Staged, Step, Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOnly:
    """One row of four cells, cut once."""

    shape: tuple[int, ...] = (1, 4)
    rule: Rule = Rule.MEDIAN

    def step(self, told: Sequence[Array]) -> Step | None:
        region = np.array([[0, 1, 0, self.shape[1], 1]])
        return None if told else Cuts(shape=self.shape, regions=region, weight=GRAIN, rule=self.rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOnly:
    """Two cells that are split or not, or four by four in two steps."""

    shape: tuple[int, ...] = (1, 2)

    def step(self, told: Sequence[Array]) -> Step | None:
        return None if told else Splits(shape=self.shape, weight=GRAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountThenLook:
    """The sum of two cells; and the first alone, if there seems to be anything."""

    shape: tuple[int, ...] = (1, 2)

    def step(self, told: Sequence[Array]) -> Step | None:
        if not told:
            return Sums(labels=np.zeros(self.shape, dtype=np.int64), weights=np.array([GRAIN // 2]))
        if len(told) == 1 and told[0][0] > 1:
            return Sums(labels=np.array([[0, -1]]), weights=np.array([GRAIN // 2]))
        return None


def _key(answer: Any) -> Hashable:
    return tuple(int(number) for number in answer)


_AROUND = range(-40, 46)
_ONE = Fraction(1)


def build() -> tuple[Specimen, ...]:
    """Build one of each."""
    return (
        Specimen(
            name="staged sums",
            mechanism=Staged(epsilon=_ONE, plan=CountThenLook()),
            pair=(((1, 1),), ((2, 1),)),
            twin=Staged(epsilon=TWIN, plan=CountThenLook()),
            outputs=(
                *((total,) for total in _AROUND if total <= 1),
                *((total, one) for total, one in itertools.product(_AROUND, repeat=2) if total > 1),
            ),
            cell=_key,
        ),
        Specimen(
            name="private cut",
            mechanism=Staged(epsilon=_ONE, plan=CutOnly()),
            pair=(((0, 9, 0, 0),), ((0, 9, 0, 1),)),
            twin=Staged(epsilon=Fraction(8, 5), plan=CutOnly()),
            outputs=((1,), (2,), (3,)),
            cell=_key,
            loose=True,
        ),
        Specimen(
            name="private contrast",
            mechanism=Staged(epsilon=_ONE, plan=CutOnly(rule=Rule.CONTRAST)),
            pair=(((0, 12, 1, 5),), ((1, 12, 1, 5),)),
            twin=Staged(epsilon=Fraction(2), plan=CutOnly(rule=Rule.CONTRAST)),
            outputs=((1,), (2,), (3,)),
            cell=_key,
            loose=True,
        ),
        Specimen(
            name="private split",
            mechanism=Staged(epsilon=_ONE, plan=SplitOnly()),
            pair=(((0, 0),), ((1, 0),)),
            twin=Staged(epsilon=TWIN, plan=SplitOnly()),
            outputs=((0,), (1,)),
            cell=_key,
        ),
    )
