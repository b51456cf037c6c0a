"""The requirements on every group of a table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.anonymity.groups import Scale, entropy_diversity, known_values, recursive_ratio
from hubbub.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """k rows that look alike, and in each such group a mixture of sensitive values."""

    k: int = 1
    l: int | None = None  # noqa: E741 (the letter has its name)
    """Distinct sensitive values."""
    entropy: float | None = None
    """Entropy l-diversity: e to the entropy is at least this."""
    recursive: tuple[float, int] | None = None
    """(c, l): the commonest value is less than c times all from the l-th on."""
    t: float | None = None
    """The distance from the values of all rows is at most this."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ParameterError("k", "at least 1", self.k)
        if self.l is not None and self.l < 1:
            raise ParameterError("l", "at least 1", self.l)
        if self.entropy is not None and not self.entropy >= 1:
            raise ParameterError("entropy", "at least 1", self.entropy)
        if self.recursive is not None and (not self.recursive[0] > 0 or self.recursive[1] < 1):
            raise ParameterError("recursive", "a positive c and an l of at least 1", self.recursive)
        if self.t is not None and not 0 <= self.t <= 1:
            raise ParameterError("t", "from 0 to 1", self.t)

    @property
    def needs_sensitive(self) -> bool:
        """True if there are requirements on sensitive values."""
        return any(one is not None for one in (self.l, self.entropy, self.recursive, self.t))

    def is_met(self, size: int, secrets: Sequence[Any], scale: Scale | None) -> bool:
        """Return True if a group of this size with these sensitive values meets the requirements."""
        if size < self.k:
            return False
        counts = Counter(known_values(secrets)) if self.needs_sensitive and scale is not None else Counter()
        if not counts:
            return True
        return (
            (self.l is None or len(counts) >= self.l)
            and (self.entropy is None or entropy_diversity(counts) >= self.entropy * (1 - 1e-12))
            and (self.recursive is None or recursive_ratio(counts, self.recursive[1]) < self.recursive[0])
            and (self.t is None or scale is None or scale.distance(counts) <= self.t + 1e-12)
        )

    def __str__(self) -> str:
        parts = [f"k = {self.k}"]
        parts += [] if self.l is None else [f"l = {self.l}"]
        parts += [] if self.entropy is None else [f"entropy l = {self.entropy:g}"]
        parts += [] if self.recursive is None else [f"recursive (c, l) = ({self.recursive[0]:g}, {self.recursive[1]})"]
        parts += [] if self.t is None else [f"t = {self.t:g}"]
        return ", ".join(parts)
