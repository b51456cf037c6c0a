"""Groups over a threshold, without paying for those that are not: the sparse vector, asked of a table.

hb.first_over(db.table("stays").group_by("ward").agg(n=hb.count()), over=1000, epsilon=0.5)

The groups are looked at in the order of their public keys. The first ones over the threshold are told, with an estimate
that costs nothing more; all groups below are free, however many they are.
"""

import itertools
import json
import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from hubbub.errors import NotAllowed, ParameterError
from hubbub.gate.meter import Meter, Reply
from hubbub.gate.release import note_age
from hubbub.gate.secret import Facts, Secret
from hubbub.mechanisms.sparse.sparse_vector import SparseVector
from hubbub.parameters import Real, positive, rational
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.sensitivity import Neighbors, Norm, Sensitivity
from hubbub.query.answer.stored import check_groups, groups_name
from hubbub.query.frame.frame import Asking
from hubbub.query.plan.covering import Covers
from hubbub.query.plan.measure import vector
from hubbub.query.plan.plan import Plan
from hubbub.query.requests import Tallies
from hubbub.session.database import Database
from hubbub.session.job import Job, SealedReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """A group that is over the threshold, as far as the noise lets one see."""

    keys: tuple[Any, ...]
    estimate: float
    """From the gap between the noisy answer and the noisy threshold; biased upwards, since this one was chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overs:
    """The groups that were found, in the order of their keys."""

    found: tuple[Over, ...]
    complete: bool
    """Whether all groups were looked at: with fewer than ``count`` found, all others were below."""
    epsilon: Fraction
    entry: int
    """The charge in the ledger that paid for it."""
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was drawn earlier and served again; None where it is fresh."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{'/'.join(map(str, one.keys))} (about {one.estimate:,.6g})" for one in self.found)
        rest = "all others are below" if self.complete else "others were not looked at"
        again = note_age(self.stored, before=", ")
        return f"{shown or 'none'}; {rest} (ε = {float(self.epsilon):g}, entry {self.entry}{again})"


def first_over(
    asking: Asking, *, over: Real, epsilon: Real, count: int = 1, at_least: bool = False, key: str | None = None
) -> Overs:
    """The first ``count`` groups whose count or sum is over (or at least, if so said) a threshold."""
    db = asking.grouped.frame.asker
    if not isinstance(db, Database):
        raise ParameterError("asking", "of a table of an open database, db.table(…)", type(db).__name__)
    planned = db.plan(asking.sql, epsilon=epsilon, error=Covers.NOISE)
    _check(planned)
    mechanism, facts = _watching(planned, rational("over", over), count=count, at_least=at_least, epsilon=epsilon)
    told = {"at_least": at_least, "count": count, "over": str(rational("over", over))}
    request = Tallies(aggregate=planned.aggregate)

    def measure(read: SealedReader, meter: Meter) -> str:
        exact = read(request).map(lambda counted: vector([row[0] for row in counted.tallies]))
        places, gaps, _ = meter.measure(mechanism, Secret(exact, facts)).value
        return json.dumps([list(map(int, places)), list(map(int, gaps)), groups_name(planned)])

    def present(reply: Reply) -> Overs:
        places, gaps, *groups = json.loads(reply.answer)  # answers of before do not name their groups
        for one in groups:
            check_groups(one, planned)
        drawn = replace(mechanism, epsilon=reply.epsilon or mechanism.epsilon)  # estimates depend on what was drawn
        cells = list(itertools.product(*(group.values for group in planned.aggregate.groups)))
        grid, shift = planned.aggregate.tallies[0].grid, planned.parts[0].shift
        estimates = drawn.estimates((tuple(places), tuple(gaps), ()))
        found = [
            Over(keys=cells[place], estimate=float(shift + Fraction(one) * grid))
            for place, one in zip(places, estimates, strict=True)
        ]
        return Overs(
            found=tuple(found),
            complete=len(found) < mechanism.count,
            epsilon=drawn.epsilon,
            entry=reply.entry,
            stored=reply.stored,
        )

    job = Job(
        question=f"first over {json.dumps(told, sort_keys=True)} of {planned.question.identity}",
        policy=planned.policy,
        events=(mechanism.event,),
        epsilon=mechanism.epsilon,
        delta=Fraction(0),
        requests=(request,),
        measure=measure,
        present=present,
    )
    return db.run(job, key=key)


def _check(planned: Plan) -> None:
    asked = planned.question.asked
    plain = planned.question.having is None and not planned.question.order and planned.question.limit is None
    if len(asked) != 1 or not asked[0].function.is_additive or not plain:
        raise NotAllowed("A threshold is held against one count or sum of each group, and nothing else. Ask for that.")
    if planned.sets or planned.selection is not None or len(planned.aggregate.tallies) != 1:
        raise NotAllowed(
            "A threshold is held against groups with public keys. List them, or let the owner declare any."
        )


def _watching(
    planned: Plan, over: Fraction, *, count: int, at_least: bool, epsilon: Real
) -> tuple[SparseVector, Facts]:
    """The mechanism for steps of the tally's grid; counts and sums of what is never negative can only rise."""
    tally, neighbors = planned.aggregate.tallies[0], planned.policy.budget.neighbors
    steps = (over - planned.parts[0].shift) / tally.grid
    rising = neighbors is Neighbors.ADD_REMOVE and tally.bounds[0] >= 0
    sensitivity = planned.measurements[0].sensitivity
    most = sensitivity.in_norm(Norm.SCORE)
    assert most is not None
    mechanism = SparseVector(
        epsilon=whole_units_rounded_down(positive("epsilon", epsilon)),
        threshold=math.ceil(steps) if at_least else math.floor(steps) + 1,
        count=count,
        sensitivity=math.ceil(most),
        monotone=rising,
        renewed=planned.policy.budget.delta > 0 and count > 1,
        neighbors=neighbors,
    )
    proven = Sensitivity(l0=sensitivity.l0, linf=most, rising=rising)
    return mechanism, Facts(account=planned.policy.account, sensitivity=proven, neighbors=neighbors)
