"""Publish an array: cells that somebody counted already, with what one unit may have added to them."""

from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed
from hubbub.parameters import Real
from hubbub.privacy.filter import Budget
from hubbub.publish.domain import Domain
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.strategy import Prepared, Strategy
from hubbub.publish.terms import Contribution, Terms

ACCOUNT = "published"


def run(
    cells: Any,
    strategy: Strategy,
    *,
    epsilon: Real,
    delta: Real = 0,
    contribution: Contribution | None = None,
    domain: Domain | None = None,
    meter: Meter | None = None,
    account: str = ACCOUNT,
) -> Published:
    """Measure and estimate. Without a ``meter`` nobody keeps count: (ε, δ) is the price of this release alone."""
    counts = np.asarray(cells)
    if counts.dtype.kind not in "iu" or counts.ndim == 0 or counts.size == 0:
        raise ParameterError("cells", "an array of whole numbers", str(counts.dtype))
    terms = Terms.at(epsilon, delta, contribution=contribution)
    places = domain or Domain.without_names(counts.shape)
    strategy = place_names(strategy, places)
    prepared = strategy.prepare(counts.shape, terms)
    gate = meter or own_gate(terms, account)
    # Layers do not write to their cells, so that no copy is needed; unsigned ones could wrap where neighbours do not.
    whole = counts.astype(object if counts.dtype == np.uint64 else np.int64, copy=False)
    noisy, entry = measure_layers(prepared, Sealed(whole), meter=gate, account=account)
    return Published(
        strategy=strategy,
        prepared=prepared,
        domain=places,
        noisy=tuple(noisy),
        account=account,
        entry=entry,
    )


def place_names(strategy: Strategy, domain: Domain) -> Strategy:
    """With places for the names of columns, where a strategy takes names (``name_axes``)."""
    named: Strategy = strategy.name_axes(domain) if hasattr(strategy, "name_axes") else strategy
    return named


def own_gate(terms: Terms, account: str) -> Meter:
    """A gate of one release's own. What bounds its loss is its terms: in zCDP it may cost more than a ρ of (ε, δ)."""
    slack = Fraction(1, 2) if terms.delta else Fraction(0)
    ample = Budget(epsilon=terms.epsilon + 1024, delta=slack, neighbors=terms.contribution.neighbors)
    return Meter({account: ample})


def measure_layers(prepared: Prepared, cells: Sealed[Any], *, meter: Meter, account: str) -> tuple[list[Any], int]:
    """Every measurement through the gate."""
    noisy, entry = [], 0
    kept = getattr(prepared, "keep", None)  # where an answer is not an array
    contribution = prepared.terms.contribution
    for layer in prepared.measurements:
        measurement = layer.measurement(contribution)
        release = measurement.measure(cells, meter, account=account, neighbors=contribution.neighbors)
        noisy.append(release.value if kept is None else kept(release.value))
        entry = release.entry
    return noisy, entry
