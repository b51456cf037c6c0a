"""What releases of marginals have in common: how they are drawn of a table, stored, certified and shown."""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Generic, Self, TypeVar

from hubbub.errors import ParameterError
from hubbub.gate.meter import Meter
from hubbub.gate.release import CONFIDENCE
from hubbub.gate.secret import Sealed
from hubbub.parameters import Real
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.cube import Cube, PreparedCube
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.marginals.marginals import Marginals, PreparedMarginals
from hubbub.publish.marginals.records import MarginalSource, Records
from hubbub.publish.marginals.render import render_tables, tables_as_html
from hubbub.publish.release.published import Published, Receipt
from hubbub.publish.run import measure_layers, own_gate
from hubbub.publish.terms import Contribution, Terms

S = TypeVar("S", Marginals, Cube)
P = TypeVar("P", PreparedMarginals, PreparedCube)


@dataclass(frozen=True, kw_only=True, repr=False)
class TableRelease(ABC, Generic[S, P]):
    """Marginals of a table by the names of their columns, however many cells there would be in all."""

    strategy: S
    prepared: P
    domain: Domain
    noisy: tuple[Any, ...]
    account: str
    entry: int
    receipt: Receipt | None = None
    """None where no ledger was involved."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""
    steps: tuple[str, ...] = ()
    """What was done with it since it was drawn."""

    @classmethod
    @abstractmethod
    def _kinds(cls) -> tuple[type[S], type[P]]:
        """Return the strategy and what it prepares."""

    @abstractmethod
    def marginal(self, *names: str) -> Marginal:
        """Return the counts over these columns, in this order, with the error of every cell."""

    @classmethod
    def draw(
        cls,
        records: Any,
        domain: Domain,
        strategy: S,
        *,
        epsilon: Real,
        delta: Real,
        contribution: Contribution | None,
        meter: Meter | None,
        account: str,
    ) -> Self:
        """Measure a table: codes in rows and columns, ``Records``, or counts from an engine."""
        source: MarginalSource = records if hasattr(records, "marginal") else Records(records, domain)
        if source.shape != domain.shape:
            raise ParameterError("records", f"counts over the domain, {domain.shape}", source.shape)
        terms = Terms.at(epsilon, delta, contribution=contribution)
        placed = strategy.name_axes(domain)
        prepared: Any = placed.prepare(domain.shape, terms)
        gate = meter or own_gate(terms, account)
        noisy, entry = measure_layers(prepared, Sealed(source), meter=gate, account=account)
        return cls(strategy=placed, prepared=prepared, domain=domain, noisy=tuple(noisy), account=account, entry=entry)

    @classmethod
    def of(cls, published: Published) -> Self:
        """Return a release that was made of cells, or read from a file, by its marginals, as it was drawn."""
        strategy, prepared = cls._kinds()
        if not isinstance(published.strategy, strategy) or not isinstance(published.prepared, prepared):
            raise ParameterError("published", f"a release of {strategy.__name__}", published.strategy.name)
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
        """The same as it was drawn, which is stored and certified. Its cells are often more than can be listed."""
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
        """The ε that it was drawn at."""
        return self.prepared.terms.epsilon

    @property
    def delta(self) -> Fraction:
        """The δ that it was drawn at."""
        return self.prepared.terms.delta

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The marginals that were asked for; every part of one of them can be had too."""
        return tuple(tuple(self.domain.axes[axis].name for axis in one) for one in self.prepared.workload)

    def table(self, *names: str, confidence: float = CONFIDENCE) -> list[dict[str, Any]]:
        """Return a marginal as rows."""
        return self.marginal(*names).rows(confidence)

    def certificate(self) -> str:
        """Return JSON from which an outsider can recompute the loss."""
        return self.as_published.certificate()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save it as JSON, as it was drawn: later steps are free to repeat. ``of(publish.load(path))`` reads it."""
        self.as_published.save(path)

    def __repr__(self) -> str:
        return render_tables(self)

    def _repr_html_(self) -> str:
        return tables_as_html(self)
