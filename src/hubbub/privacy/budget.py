"""Budgets: the most that all answers about one population of units may cost together."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.parameters import between, positive
from hubbub.privacy.filter import Filter, filter_for
from hubbub.privacy.neighbors import Neighbors


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A total (ε, δ), for neighbours of one kind."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", between("delta", self.delta, 0, 1, high_open=True))
        if not isinstance(self.neighbors, Neighbors):
            raise ParameterError("neighbors", "one of the Neighbors", self.neighbors)

    @property
    def filter(self) -> Filter:
        """Pure sums for δ = 0, zCDP otherwise."""
        return filter_for(epsilon=self.epsilon, delta=self.delta, neighbors=self.neighbors)
