"""A published data cube: marginals by the names of their columns, however many cells there would be in all."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.meter import Meter
from hubbub.parameters import Real
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.cube import Cube, PreparedCube
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.marginals.records import Axes
from hubbub.publish.marginals.render import write_terms
from hubbub.publish.marginals.table_release import TableRelease
from hubbub.publish.run import ACCOUNT
from hubbub.publish.strategies.layer import Array
from hubbub.publish.terms import Contribution


def run_cube(
    records: Any,
    domain: Domain,
    strategy: Cube,
    *,
    epsilon: Real,
    delta: Real = 0,
    contribution: Contribution | None = None,
    meter: Meter | None = None,
    account: str = ACCOUNT,
) -> "CubeRelease":
    """Publish a cube of a table: codes in rows and columns, ``Records``, or counts from an engine.

    ``Contribution(total=m)`` for m rows a unit. Without a ``meter`` nobody keeps count.
    """
    return CubeRelease.draw(
        records,
        domain,
        strategy,
        epsilon=epsilon,
        delta=delta,
        contribution=contribution,
        meter=meter,
        account=account,
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class CubeRelease(TableRelease[Cube, PreparedCube]):
    """The release: everything in it is public, and free to use again."""

    @classmethod
    def _kinds(cls) -> tuple[type[Cube], type[PreparedCube]]:
        return Cube, PreparedCube

    @cached_property
    def coefficients(self) -> dict[Axes, Array]:
        """The part that each set of columns adds to the smaller ones."""
        return self.prepared.coefficients(self.noisy)

    def marginal(self, *names: str) -> Marginal:
        """Return the counts over these columns, in this order, with the error of every cell."""
        wanted = [self.domain.axis(name) for name in names]
        places = [self.domain.axes.index(axis) for axis in wanted]
        rising = tuple(sorted(set(places)))
        if len(rising) < len(places):
            raise ParameterError("names", "different columns", names)
        values = self.prepared.marginal(rising, self.coefficients).transpose([rising.index(place) for place in places])
        deviation = np.full(values.shape, self.prepared.cell_variance(rising) ** 0.5)
        return Marginal(axes=tuple(wanted), values=values, deviation=deviation, terms=write_terms(self))
