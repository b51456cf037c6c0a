"""Mechanisms as subjects: the worst pair of each is in the registry, and others are made from what it needs.

A pair is a neighbour in the norm that the mechanism asks for, and no further: the mechanism is accused for itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.chance import Chance
from hubbub.audit.conformance import LAW_ALARM, check_law, check_mass, check_ratio, check_statement, trial_of
from hubbub.audit.exact import Laws
from hubbub.audit.law import first_looks
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.errors import ConformanceError
from hubbub.mechanisms.specimens.specimen import Specimen
from hubbub.privacy.sensitivity import Neighbors, Norm

_ORIGINS = (0, 1, -1, 7, 1000, -(1 << 20), 1 << 40)
_MOST_OUTPUTS, _MOST_NUMBER, _LEFT_OUT = 500, 1 << 12, 1e-6
"""How many masses are added up for a pair that was made, how large its numbers may be, and what may be left out."""


class _Unused:
    """Independent answers on one input, each of which is handed out once."""

    def __init__(self) -> None:
        self._held: list[Outputs] = []

    def put(self, answers: Outputs) -> None:
        self._held.append(answers)

    def take(self, many: int) -> Outputs | None:
        """So many that nobody has had; None where no draw has as many left."""
        for place, held in enumerate(self._held):
            if len(held) >= many:
                self._held[place] = held[many:]
                return held[:many]
        return None


@dataclass(frozen=True, slots=True)
class OfSpecimen:
    """A mechanism of the registry."""

    specimen: Specimen
    _looks: list[tuple[int, int]] = field(default_factory=list, repr=False, compare=False)
    """How many draws are looked at first: a matter of cost alone, so that one audit may take another's word for it."""
    _kept: "list[_Unused] | None" = field(default=None, repr=False, compare=False)
    """On the worst pair, for as long as one audit lasts: answers that were held against the law and not yet counted."""

    def remembering(self) -> "OfSpecimen":
        return replace(self, _kept=[_Unused(), _Unused()])

    @property
    def name(self) -> str:
        return self.specimen.name

    @property
    def claim(self) -> Claim:
        return Claim.of(self.specimen.mechanism.event)

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        x, y = self.specimen.pair
        yield Pair(x=x, y=y, about="the pair on which it loses most")
        for _ in range(64):
            found = _make_pair(self.specimen, chance)
            if found is None:
                return
            yield found

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return _make_pair(self.specimen, chance)

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        return iter(())

    def faults(self, pair: Pair) -> list[str]:
        """List the faults of the stated law against the claim, on any pair; on the worst one also
        of the draws against the law.
        """
        if not (pair.x is self.specimen.pair[0] and pair.y is self.specimen.pair[1]):
            return _by_masses(self.specimen, pair)
        found, one = [], self.specimen
        honest = Laws.of(one.mechanism, one.pair, one.outputs)
        checks: tuple[Callable[[], str], ...] = (
            lambda: check_statement(one),
            lambda: check_mass(one, laws=[honest]),
            lambda: check_ratio(one, laws=honest),
            lambda: check_law(one, laws=honest, first=self._first(honest), keep=self._keep),
        )
        for check in checks:
            try:
                check()
            except ConformanceError as fault:
                found.append(str(fault))
        return found

    def _first(self, honest: Laws) -> tuple[int, int]:
        if not self._looks:
            one = self.specimen
            twin = Laws.of(one.twin, one.pair, one.outputs)
            self._looks.append(first_looks(one, honest=honest, twin=twin, level=LAW_ALARM))
        return self._looks[0]

    def _keep(self, side: int, answers: Outputs) -> None:
        if self._kept is not None:
            self._kept[side].put(answers)

    def answers(self, value: Any, *, times: int) -> Outputs:
        """Independent ones; on the worst pair those that were drawn to be held against the law, each of them once.

        Claim: nobody is accused more often for it. Proof: the law's test and the count each accuse an honest mechanism
        as seldom as they say, and by the union bound that one of them does so needs no independence; which pair is
        counted last hangs on no answer of the worst one, since that one is always counted.
        """
        for side, own in enumerate(self.specimen.pair if self._kept else ()):
            if value is own:
                assert self._kept is not None
                found = self._kept[side].take(times)
                if found is not None:
                    return found
        return self.specimen.mechanism.repeat(value, times=times)

    def show_pair(self, pair: Pair) -> str:
        return f"x = {pair.x!r}\ny = {pair.y!r}\n{self.specimen.mechanism!r}"

    @property
    def samples(self) -> int:
        """As many draws as its own twin needs to be seen."""
        return trial_of(self.specimen).samples


def _by_masses(specimen: Specimen, pair: Pair) -> list[str]:
    """The exact loss, where the listed outputs are all that there are on these inputs too, and floats can tell."""
    numbers = [one for side in (pair.x, pair.y) for one in np.atleast_1d(np.asarray(side, dtype=object)).flat]
    if len(specimen.outputs) > _MOST_OUTPUTS or any(abs(one) > _MOST_NUMBER for one in numbers if _is_number(one)):
        return []
    laws = Laws.of(specimen.mechanism, (pair.x, pair.y), specimen.outputs)
    if not all(abs(1 - total) < _LEFT_OUT for total in laws.totals):
        return []
    try:
        check_ratio(replace(specimen, pair=(pair.x, pair.y), loose=True), laws=laws)
    except ConformanceError as fault:
        return [str(fault)]
    return []


def _rows(specimen: Specimen, chance: Chance) -> Pair | None:
    """Values in a few heaps over the public range, and the same with all that one unit may add, or put in their place:
    where heaps are far apart, one unit moves an answer, or what noise is made from, by most.
    """
    mechanism, needs = specimen.mechanism, specimen.mechanism.needs
    bounds: tuple[Fraction, Fraction] | None = getattr(mechanism, "bounds", None)
    if bounds is None or not all(_is_number(one) for side in specimen.pair for one in side):
        return None
    low, high = (int(end) for end in bounds)
    heaps = [low, high, *(chance.between(low, high) for _ in range(chance.between(0, 3)))]
    held = [chance.choice(heaps) for _ in range(chance.between(0, 14))]
    moved = [chance.choice(heaps) for _ in range(int(needs.sensitivity))]
    replaced = needs.neighbors is Neighbors.REPLACE_ONE
    if replaced and len(held) < len(moved):
        return None
    other = [*held[len(moved) if replaced else 0 :], *moved]
    return Pair(x=tuple(sorted(held)), y=tuple(sorted(other)), about="values in heaps, and one unit more or another")


def _make_pair(specimen: Specimen, chance: Chance) -> Pair | None:
    """A neighbour by the norm; None where neighbours of that kind have a form of their own."""
    needs = specimen.mechanism.needs
    if needs.norm is Norm.ROWS:
        return _rows(specimen, chance)
    like = np.atleast_1d(np.asarray(specimen.pair[0], dtype=object))
    if needs.norm not in (Norm.L1, Norm.L2, Norm.SCORE) or not all(_is_number(one) for one in like):
        return None
    step = _whole_root(needs.sensitivity) if needs.norm is Norm.L2 else needs.sensitivity
    if step is None or (needs.integers and Fraction(step).denominator != 1):
        return None
    origin = chance.choice(_ORIGINS)
    base = [Fraction(origin + chance.between(-2, 2)) for _ in like]
    moved = list(base)
    if needs.norm is Norm.SCORE:
        ways = (1,) if needs.monotone else (1, -1)
        moved = [value + chance.choice((0, *ways)) * step for value in base]
        if needs.neighbors is Neighbors.REPLACE_ONE and needs.monotone:
            return None
    else:
        moved[chance.below(len(base))] += chance.choice((1, -1)) * step
    x, y = (_like(specimen.pair[0], side) for side in (base, moved))
    return Pair(x=x, y=y, about=f"values near {origin}, moved as far as one unit can")


def _like(pattern: Any, values: list[Any]) -> Any:
    plain = [float(value) if isinstance(value, Fraction) and value.denominator != 1 else int(value) for value in values]
    if isinstance(pattern, np.ndarray):
        return np.array(plain, dtype=pattern.dtype)
    return type(pattern)(plain) if isinstance(pattern, list | tuple) else plain[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _whole_root(square: Fraction) -> int | None:
    root = round(float(square) ** 0.5)
    return root if root * root == square else None
