"""Facts that nobody declared, bought: where values are clamped, and how many rows and groups of a unit count.

Which of it a question lacks follows from the question and the policy (query.lacking). Each fact is a noisy histogram
over log-spaced bins in which a unit has one value: paid with a stated share of the question's ε, kept in the ledger
under a name that stands for the rows, the expression, the policy and the version of the data, and used again for
nothing. From then on it is like a declaration: the plan, its price and its error bars depend on what was released, and
on nothing else.

Privacy:
    Claim: buying the facts and answering the question cost at most the question's (ε, δ) together.
    Proof: each histogram is Pure(ε') (query.looks), and where bounds and limits lie is post-processing of it. They are
        released before the question's own plan is made, which is chosen by released values alone and made for
        (ε - Σε', δ). Both are charged through the account's filter, which is valid for such adaptive choices.
    Needs: the claim of query.looks; names that tell facts apart.
    Ref: SOUNDNESS 12, 16; THREATS, facts that outlive what made them true.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from hubbub.ledger.entry import digest_of
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Policy
from hubbub.query.check.bounds import Interval
from hubbub.query.check.shape import shape
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.missing.tail_model import LIMITS as FEW
from hubbub.query.missing.tail_model import VALUES
from hubbub.query.missing.value_bounds import around, outermost
from hubbub.query.ops import Project, Relation
from hubbub.query.question import Asked, Question
from hubbub.query.read.scalars import as_real

_FORMAT = 4
VALUE = "value"
_PLAIN = 4
"""Standard deviations of the noise beyond which units are seen beyond bounds."""


def _tens(series: Sequence[Fraction | int], low: int, high: int) -> tuple[Fraction, ...]:
    return tuple(one * Fraction(10) ** ten for ten in range(low, high) for one in series)


_ROUND = (1, Fraction(6, 5), Fraction(3, 2), 2, Fraction(5, 2), 3, 4, 5, 6, 8)
"""Ten to a decade: a bound that is off by one bin costs a quarter, and not twice as much."""
REALS = _tens(_ROUND, -6, 13)
WHOLE = (*map(Fraction, (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80)), *_tens(_ROUND, 2, 13))
LIMITS = (*map(Fraction, (1, 2, 3, 4, 5, 6, 7, 8, 9)), *_tens((1, Fraction(3, 2), 2, 3, 5, 7), 1, 6), Fraction(10**6))


class Lacking(StrEnum):
    """The kinds of facts that a question can lack."""

    BOUNDS = "bounds"
    TOTALS = "totals"
    """Bounds of what a unit adds to a group with all its rows."""
    ROWS = "max_rows"
    GROUPS = "max_groups"


_SIGNED = frozenset({Lacking.BOUNDS, Lacking.TOTALS})


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFact:
    """One fact: which histogram tells it, and what it is for."""

    lacking: Lacking
    text: str
    """For people."""
    relation: Relation
    """The rows, with the value in a column of its own."""
    edges: tuple[Fraction, ...]
    single: bool
    arguments: tuple[Expression, ...] = ()
    """The expressions of the question that it bounds."""

    def name(self, policy: Policy) -> str:
        """Under which it is kept: another expression, relation or policy makes another name."""
        return f"{self.lacking} {digest_of([_FORMAT, repr(self.relation), policy.fingerprint])}"

    @property
    def _is_signed(self) -> bool:
        return self.lacking in _SIGNED

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest bin and the highest."""
        return (-len(self.edges) if self._is_signed else 1), len(self.edges)

    @property
    def relation_of_bins(self) -> Relation:
        """The rows, with the bin in place of the value."""
        column = Column(VALUE, shape(self.relation)[VALUE])
        return Project(input=self.relation, columns=((VALUE, self.place(column)),))

    def place(self, value: Expression) -> Expression:
        """The bin of a value; a missing one has none."""
        return call(
            "case", call("is_null", value), literal(None, Type.INTEGER), self._place(as_real(value), self.ends[0])
        )

    def _place(self, value: Expression, low: int, high: int | None = None) -> Expression:
        """The bin of a value by halving: 0 for zero, i for what is above edge i - 2 and not above edge i - 1."""
        high = len(self.edges) if high is None else high
        if low == high:
            return literal(low)
        middle = (low + high) // 2
        below, above = self._place(value, low, middle), self._place(value, middle + 1, high)
        if middle >= 0:
            return call(
                "case", call("le", value, _end(self.edges[middle - 1] if middle else Fraction(0))), below, above
            )
        edge = self.edges[-middle - 2] if middle < -1 else Fraction(0)
        return call("case", call("lt", value, _end(-edge)), below, above)

    def read(self, noisy: Sequence[float], *, noise: Fraction, rest: Fraction) -> Any:
        """Read a fact off the noisy counts: bounds, each a bin's edge, or 0; or a limit.

        Bounds beyond which some units are plainly seen come with the share of these.
        """
        if not self._is_signed:
            return self._read_ends(noisy, noise=noise, rest=rest)
        found = self._read_ends(noisy, noise=noise, rest=rest)
        share = self._share_beyond(noisy, [Fraction(end) for end in found], noise)
        return found if share is None else [*found, share]

    def _share_beyond(self, noisy: Sequence[float], ends: Sequence[Fraction], noise: Fraction) -> float | None:
        """Return which share of all units is in bins beyond bounds; None where noise could be all of it."""
        many = len(self.edges)
        tops = [-edge for edge in reversed(self.edges)], [Fraction(0)], list(self.edges)
        outer = [bound for side in tops for bound in side]  # of each bin, the end that is further from zero
        beyond = [count for count, end in zip(noisy, outer, strict=True) if end < ends[0] or end > ends[1]]
        lost, there = sum(beyond), max(float(sum(noisy)), 1.0)
        around = _PLAIN * math.sqrt(2 * max(1, len(beyond))) / float(noise)
        assert len(outer) == 2 * many + 1
        return round(min(1.0, lost / there), 4) if lost > around else None

    def _read_ends(self, noisy: Sequence[float], *, noise: Fraction, rest: Fraction) -> Any:
        many = len(self.edges)
        step, tail = 0 if self.edges[0] < 1 else 1, VALUES if self._is_signed else FEW

        def end(counts: Sequence[float], beside: Fraction | None = None) -> Fraction | None:
            place = outermost(counts, self.edges, noise=noise, rest=rest, step=step, beside=beside, tail=tail)
            return None if place is None else self.edges[place]

        if not self._is_signed:
            return int(end(noisy) or 1)
        sides = {-1: noisy[:many][::-1], 1: noisy[many + 1 :]}
        plainer = max(sides, key=lambda sign: max(sides[sign]))
        first = end(sides[plainer])
        other = end(sides[-plainer], first)
        if first is None and other is None:
            return ["0", "1"]
        if other is None and self.lacking is Lacking.BOUNDS:
            found = around(sides[plainer], noisy[many], self.edges, noise=noise, rest=rest, step=step)
            assert found is not None
            return [str(one) for one in (found if plainer > 0 else (-found[1], -found[0]))]
        under, above = (first, other) if plainer < 0 else (other, first)
        return [str(-(under or Fraction(0))), str(above or Fraction(0))]

    @property
    def anything(self) -> Any:
        """A value that lets a plan be made before the fact is known: its price is that of any other."""
        return ["0", "1"] if self._is_signed else 1


def _end(edge: Fraction) -> Expression:
    return literal(float(edge))


def apply_facts(question: Question, policy: Policy, facts: Mapping[WantedFact, Any]) -> tuple[Question, Policy]:
    """The question and the policy with what was bought, as if it had been declared."""
    if not facts:
        return question, policy
    ends: dict[Lacking, dict[Expression, Interval]] = {one: {} for one in _SIGNED}
    limits: dict[str, int] = {}
    beyond: dict[str, float] = {}
    for wanted, value in facts.items():
        if wanted.lacking in _SIGNED:
            beyond |= {wanted.text: float(value[2])} if len(value) > 2 else {}
            ends[wanted.lacking] |= dict.fromkeys(wanted.arguments, (Fraction(value[0]), Fraction(value[1])))
        else:
            limits[wanted.lacking.value] = int(value)
    told = [[wanted.text, value] for wanted, value in facts.items() if wanted.lacking in _SIGNED]
    known_as = f"{question.text} /* bought: {json.dumps(told, ensure_ascii=False)} */" if told else ""
    asked = tuple(_within(one, ends[Lacking.TOTALS]) for one in question.asked)
    made = replace(question, asked=asked, bought=ends[Lacking.BOUNDS], beyond=beyond, known_as=known_as)
    return made, replace(policy, limits=replace(policy.limits, **limits))  # type: ignore[arg-type]


def _within(asked: Asked, totals: Mapping[Expression, Interval]) -> Asked:
    """A sum of which it was bought what a unit may add, as if the question said so."""
    bought = None if asked.argument is None else totals.get(asked.argument)
    if bought is None or not asked.function.is_total or asked.per_group is not None:
        return asked
    return replace(asked, per_group=bought)
