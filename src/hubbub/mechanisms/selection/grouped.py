"""One mechanism for every group of a grouping, where a unit is in few of the groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Mechanism, Needs
from hubbub.parameters import whole
from hubbub.privacy.events.event import Event, RepeatedEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class PerGroup:
    """The same mechanism for each group by itself, with fresh noise; a unit can move at most ``groups`` of them.

    However many groups there are, one unit pays for those that it is in: this is the only place where a choice in
    disjoint groups costs less than the sum over them. ``error(beta)`` is that of one group.

    Privacy:
        Claim: the mechanism's own event, ``groups`` times over.
        Proof: for two neighbours the values of all but ``groups`` groups are equal, and so are the laws of their
            answers, which are drawn independently: they add nothing to the loss. The others are a sequence of
            ``groups`` runs of the mechanism, each on values that it was calibrated for, and losses of sequences add up.
        Needs: a grouping in which one unit has at most ``groups`` groups (replaced: those of both), and which groups
            there are does not depend on the values; the mechanism's own claim.
        Ref: McSherry 2009 (parallel composition); SOUNDNESS 5 and 10.
    """

    mechanism: Mechanism
    groups: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise ParameterError("mechanism", "a Mechanism", self.mechanism)
        whole("groups", self.groups, least=1)

    @property
    def needs(self) -> Needs:
        own = self.mechanism.needs
        return Needs(
            norm=own.norm,
            sensitivity=own.sensitivity,
            neighbors=own.neighbors,
            integers=own.integers,
            coordinates=self.groups,
            monotone=own.monotone,
        )

    @property
    def event(self) -> Event:
        own = self.mechanism.event
        return RepeatedEvent(event=own, count=self.groups) if self.groups > 1 else own

    def draw(self, value: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.mechanism.draw(one) for one in value)

    def repeat(self, value: Sequence[Any], *, times: int) -> list[tuple[Any, ...]]:
        drawn = [self.mechanism.repeat(one, times=times) for one in value]
        return list(zip(*drawn, strict=True))

    def log_mass(self, value: Sequence[Any], output: Sequence[Any]) -> float:
        return sum(self.mechanism.log_mass(one, given) for one, given in zip(value, output, strict=True))

    def error(self, *, beta: float) -> float:
        return self.mechanism.error(beta=beta)
