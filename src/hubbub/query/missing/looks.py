"""Noisy histograms from which facts are read: each is paid, measured and charged once, for one fact or for two.

Bounds of values and how many rows a unit has are told by one histogram: a unit with one row is in the bin of its value,
and a unit with several is in the bin of one of its values or of how many rows it has, as a coin falls. No unit is in
two bins, so both facts get the ε that each would have had to share: where everybody has one row, all of it.

Privacy:
    Claim: a look costs its ε, whatever it tells.
    Proof: its aggregate keeps one row of each unit, by a function of the unit's own rows under the secrets (ops.Cap,
        ops.Histogram; a union of rows of the same units is one more relation of them): one unit more or less changes
        one count by one, so geometric noise of scale 1/ε makes it Pure(ε); a replaced unit takes one from one bin and
        adds one to another, and the scale is 2/ε. What is read off the noisy counts is post-processing.
    Needs: ops.Union keeps each row's unit.
    Ref: SOUNDNESS 12, 16; McSherry 2009 for parts of the data that share no one (parallel composition).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.ledger.entry import digest_of
from hubbub.mechanisms import Geometric
from hubbub.mechanisms.base import Array
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import Charge, price_of, whole_units_rounded_down
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.query.check.shape import shape
from hubbub.query.expression import Column, literal
from hubbub.query.functions import call
from hubbub.query.missing.bought import VALUE, Lacking, WantedFact
from hubbub.query.ops import Aggregate, Cap, ExactCounts, Filter, Histogram, Project, Relation, RelationUnion

_SHARE, _MORE, _MOST = Fraction(1, 5), Fraction(1, 20), Fraction(2, 5)
"""Of a question's ε for the first fact that it lacks, for each further one, and for all together at most."""
_LIMIT, _BOUNDS, _BOTH = 2, 3, 4
"""How that is shared out: values go further than counts, but a limit of 2 in place of 1 doubles all noise."""
_PLAIN = 6
"""A bin with so many times the noise's scale is hardly noise: once in 800."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One histogram, and the facts that it tells: one, or bounds and then rows."""

    facts: tuple[WantedFact, ...]

    @property
    def text(self) -> str:
        """For people."""
        return " and ".join(one.text for one in self.facts)

    def name(self, policy: Policy) -> str:
        """Return the name under which the ledger is asked for it."""
        names = [one.name(policy) for one in self.facts]
        return names[0] if len(names) == 1 else f"both {digest_of(names)}"

    @property
    def weight(self) -> int:
        """Its part of what is taken for all."""
        if len(self.facts) > 1:
            return _BOTH
        return _LIMIT if self.facts[0].lacking in {Lacking.ROWS, Lacking.GROUPS} else _BOUNDS

    @property
    def aggregate(self) -> Aggregate:
        """Return the aggregate that the engine counts: one bin of each unit."""
        if len(self.facts) == 1:
            (fact,) = self.facts
            return _count_bins(fact.relation_of_bins, fact.ends, single=fact.single)
        bounds, rows = self.facts
        there, several = (
            Filter(input=bounds.relation, condition=call("not", call("is_null", _column(bounds.relation)))),
            Filter(input=rows.relation, condition=call("gt", _column(rows.relation), literal(1))),
        )
        one = Project(input=Cap(input=there, most=1), columns=((VALUE, bounds.place(_column(there))),))
        moved = call("add", rows.place(_column(several)), literal(bounds.ends[1] - 1))
        other = Project(input=several if rows.single else Cap(input=several, most=1), columns=((VALUE, moved),))
        return _count_bins(RelationUnion(inputs=(one, other)), self.ends, single=False)

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest bin and the highest: those of rows begin with two of them, behind all others."""
        low, high = self.facts[0].ends
        return low, high + sum(one.ends[1] - 1 for one in self.facts[1:])

    def counts(self, counted: ExactCounts) -> Array:
        """A number for every bin, empty ones too: from the lowest to the highest."""
        low, high = self.ends
        found, bins = np.zeros(high - low + 1, dtype=np.int64), counted.histograms[0][0]
        found[bins.steps - low] = bins.counts
        return found

    @staticmethod
    def mechanism(epsilon: Fraction, neighbors: Neighbors) -> Geometric:
        """Noise for all bins."""
        moved = 2 if neighbors is Neighbors.REPLACE_ONE else 1
        return Geometric(epsilon=epsilon, sensitivity=moved, neighbors=neighbors)

    @staticmethod
    def sensitivity(neighbors: Neighbors) -> Sensitivity:
        """One unit comes, goes, or changes its bin."""
        return Sensitivity(l0=2 if neighbors is Neighbors.REPLACE_ONE else 1, linf=Fraction(1))

    def read(
        self, noisy: Sequence[int], *, epsilon: Fraction, rest: Fraction, neighbors: Neighbors
    ) -> dict[WantedFact, Any]:
        """Read each fact off the noisy counts."""
        noise = epsilon / self.mechanism(epsilon, neighbors).sensitivity
        if len(self.facts) == 1:
            return {self.facts[0]: self.facts[0].read(noisy, noise=noise, rest=rest)}
        bounds, rows = self.facts
        many = bounds.ends[1] - bounds.ends[0] + 1
        values, several = noisy[:many], noisy[many:]
        half = sum(one for one in several if one * noise > _PLAIN)
        told = max(sum(values), sum(one for one in values if one * noise > _PLAIN), 1)
        part = Fraction(told, told + half)
        return {
            bounds: bounds.read([float(one / part) for one in values], noise=noise * part, rest=rest),
            rows: rows.read([max(0, told - half), *(2 * one for one in several)], noise=noise / 2, rest=rest),
        }


def _column(relation: Relation) -> Column:
    return Column(VALUE, shape(relation)[VALUE])


def _count_bins(relation: Relation, ends: tuple[int, int], *, single: bool) -> Aggregate:
    histogram = Histogram(
        argument=_column(relation),
        clamp=(Fraction(ends[0]), Fraction(ends[1])),
        origin=Fraction(0),
        grid=Fraction(1),
        most_rows=1,
    )
    return Aggregate(input=relation, groups=(), tallies=(), histograms=(histogram,), most_groups=1, single=single)


def looks(unknown: Sequence[WantedFact]) -> tuple[Look, ...]:
    """The histograms that tell these facts: the first bounds of single values, and rows, have one together."""
    pair = [next((one for one in unknown if one.lacking is what), None) for what in (Lacking.BOUNDS, Lacking.ROWS)]
    both = tuple(one for one in pair if one is not None)
    if len(both) < len(pair):
        return tuple(Look(facts=(one,)) for one in unknown)
    return (Look(facts=both), *(Look(facts=(one,)) for one in unknown if one not in both))


def shares(unknown: Sequence[WantedFact], epsilon: Fraction) -> tuple[dict[Look, Fraction], Fraction]:
    """The ε of each look, and what is left for the question."""
    if not unknown:
        return {}, epsilon
    wanted = looks(unknown)
    part = epsilon * min(_SHARE + _MORE * (len(unknown) - 1), _MOST) / sum(one.weight for one in wanted)
    each = {one: whole_units_rounded_down(part * one.weight) for one in wanted}
    return each, epsilon - sum(each.values())


def whole_price(cost: Charge, bought: Mapping[Look, Fraction], policy: Policy) -> Charge:
    """Return what an account is charged for an answer of this cost and for the facts that are bought for it first."""
    terms, neighbors = policy.budget.filter, policy.budget.neighbors
    first = price_of(terms, [look.mechanism(share, neighbors).event for look, share in bought.items()])
    return cost + first


def any_facts(wanted: Mapping[Look, Fraction]) -> dict[WantedFact, Any]:
    """Values that let a plan be made before they are known."""
    return {fact: fact.anything for one in wanted for fact in one.facts}
