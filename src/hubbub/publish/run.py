"""Publish an array: cells that somebody counted already, with what one unit may have added to them."""

from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.meter import Meter
from hubbub.parameters import Real
from hubbub.privacy.budget import Budget
from hubbub.publish.contribution import Contribution
from hubbub.publish.domain import Domain
from hubbub.publish.published import Published
from hubbub.publish.strategy import Prepared, Strategy
from hubbub.publish.terms import Terms

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
    places = domain or Domain.unnamed(counts.shape)
    strategy = placed(strategy, places)
    prepared = strategy.prepare(counts.shape, terms)
    gate = meter or own_gate(terms, account)
    # Layers do not write to their cells, so that no copy is needed; unsigned ones could wrap where neighbours do not.
    whole = counts.astype(object if counts.dtype == np.uint64 else np.int64, copy=False)
    noisy, entry = measured(prepared, whole, meter=gate, account=account)
    return Published(
        strategy=strategy,
        prepared=prepared,
        domain=places,
        noisy=tuple(noisy),
        account=account,
        entry=entry,
    )


def placed(strategy: Strategy, domain: Domain) -> Strategy:
    """With places for the names of columns, where a strategy takes names (``named``)."""
    named: Strategy = strategy.named(domain) if hasattr(strategy, "named") else strategy
    return named


def own_gate(terms: Terms, account: str) -> Meter:
    """A gate of one release's own. What bounds its loss is its terms: in zCDP it may cost more than a ρ of (ε, δ)."""
    slack = Fraction(1, 2) if terms.delta else Fraction(0)
    ample = Budget(epsilon=terms.epsilon + 1024, delta=slack, neighbors=terms.contribution.neighbors)
    return Meter({account: ample})


def measured(prepared: Prepared, cells: Any, *, meter: Meter, account: str) -> tuple[list[Any], int]:
    """Every measurement through the gate."""
    noisy, entry = [], 0
    kept = getattr(prepared, "kept", None)  # where an answer is not an array
    for one in prepared.measurements:
        release = meter.measure(one.mechanism, one.secret(cells, account=account, terms=prepared.terms))
        noisy.append(release.value if kept is None else kept(release.value))
        entry = release.entry
    return noisy, entry
