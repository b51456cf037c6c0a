"""Publish counts over a huge domain, from those of its cells that are not empty."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed
from hubbub.mechanisms import Nonzeros
from hubbub.parameters import Real, positive
from hubbub.publish.run import ACCOUNT, measure_layers, own_gate
from hubbub.publish.sparse.filters import SparseFilter
from hubbub.publish.sparse.keys import Keys, Labels
from hubbub.publish.sparse.prepared import PreparedSparse
from hubbub.publish.sparse.release import SparseRelease
from hubbub.publish.terms import Contribution, Terms


def run(
    codes: Any,
    counts: Any,
    domain: Keys | Mapping[str, Labels] | int,
    shown: SparseFilter,
    *,
    epsilon: Real,
    contribution: Contribution | None = None,
    grid: Real = 1,
    meter: Meter | None = None,
    account: str = ACCOUNT,
) -> SparseRelease:
    """Codes, or columns by their names, with a whole number for each: the cells that are not empty, in any order.

    Sums of reals are given in whole steps of ``grid``, and so is the contribution. Without a ``meter`` nobody keeps
    count.
    """
    keys = domain if isinstance(domain, Keys) else Keys.of(domain)
    terms, step = Terms.at(epsilon, contribution=contribution), positive("grid", grid)
    prepared = PreparedSparse.of(shown, keys.lengths, terms)
    places = keys.encode(codes) if isinstance(codes, Mapping) else codes
    cells = Nonzeros.of(places, counts, size=keys.size)
    (kept,), entry = measure_layers(prepared, Sealed(cells), meter=meter or own_gate(terms, account), account=account)
    return SparseRelease.make(
        prepared, kept, strategy=shown, keys=keys, grid=Fraction(step), account=account, entry=entry
    )
