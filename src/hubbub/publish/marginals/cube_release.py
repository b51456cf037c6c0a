"""A published data cube: marginals by the names of their columns, however many cells there would be in all."""

import os
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.meter import Meter
from hubbub.gate.release import CONFIDENCE
from hubbub.gate.secret import Sealed
from hubbub.parameters import Real
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.cube import Cube, PreparedCube
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.marginals.records import Axes, MarginalSource, Records
from hubbub.publish.marginals.render import render_tables, tables_as_html, write_terms
from hubbub.publish.release.published import Published, Receipt
from hubbub.publish.run import ACCOUNT, measure_layers, own_gate
from hubbub.publish.strategies.layer import Array
from hubbub.publish.terms import Contribution, Terms


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
    source: MarginalSource = records if hasattr(records, "marginal") else Records(records, domain)
    if source.shape != domain.shape:
        raise ParameterError("records", f"counts over the domain, {domain.shape}", source.shape)
    terms = Terms.at(epsilon, delta, contribution=contribution)
    placed = strategy.name_axes(domain)
    prepared = placed.prepare(domain.shape, terms)
    noisy, entry = measure_layers(prepared, Sealed(source), meter=meter or own_gate(terms, account), account=account)
    return CubeRelease(
        strategy=placed, prepared=prepared, domain=domain, noisy=tuple(noisy), account=account, entry=entry
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class CubeRelease:
    """The release: everything in it is public, and free to use again."""

    strategy: Cube
    prepared: PreparedCube
    domain: Domain
    noisy: tuple[Any, ...]
    account: str
    entry: int
    receipt: Receipt | None = None
    """None where no ledger was involved."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""
    steps: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, published: Published) -> "CubeRelease":
        """A release of the whole array, or one that was read from a file, by its marginals."""
        if not isinstance(published.strategy, Cube) or not isinstance(published.prepared, PreparedCube):
            raise ParameterError("published", "a release of a Cube", published.strategy.name)
        return cls(
            strategy=published.strategy,
            prepared=published.prepared,
            domain=published.domain,
            noisy=published.noisy,
            account=published.account,
            entry=published.entry,
            receipt=published.receipt,
            stored=published.stored,
        )

    @property
    def as_published(self) -> Published:
        """The same as a release of cells, often more than can be listed, which is stored and certified."""
        return Published(
            strategy=self.strategy,
            prepared=self.prepared,
            domain=self.domain,
            noisy=self.noisy,
            account=self.account,
            entry=self.entry,
            receipt=self.receipt,
            stored=self.stored,
        )

    @property
    def epsilon(self) -> Fraction:
        return self.prepared.terms.epsilon

    @property
    def delta(self) -> Fraction:
        return self.prepared.terms.delta

    def certificate(self) -> str:
        """JSON from which an outsider can recompute the loss."""
        return self.as_published.certificate()

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON. ``CubeRelease.of(publish.load(path))`` reads it."""
        self.as_published.save(path)

    def __repr__(self) -> str:
        return render_tables(self)

    def _repr_html_(self) -> str:
        return tables_as_html(self)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The marginals that were asked for; every part of one of them can be had too."""
        return tuple(tuple(self.domain.axes[axis].name for axis in one) for one in self.prepared.workload)

    def table(self, *names: str, confidence: float = CONFIDENCE) -> list[dict[str, Any]]:
        """A marginal as rows."""
        return self.marginal(*names).rows(confidence)

    @cached_property
    def coefficients(self) -> dict[Axes, Array]:
        """The part that each set of columns adds to the smaller ones."""
        return self.prepared.coefficients(self.noisy)

    def marginal(self, *names: str) -> Marginal:
        """The counts over these columns, in this order, with the error of every cell."""
        wanted = [self.domain.axis(name) for name in names]
        places = [self.domain.axes.index(axis) for axis in wanted]
        rising = tuple(sorted(set(places)))
        if len(rising) < len(places):
            raise ParameterError("names", "different columns", names)
        values = self.prepared.marginal(rising, self.coefficients).transpose([rising.index(place) for place in places])
        deviation = np.full(values.shape, self.prepared.cell_variance(rising) ** 0.5)
        return Marginal(axes=tuple(wanted), values=values, deviation=deviation, terms=write_terms(self))
