"""Bugs on the way of a question: in what it reads, bounds, calibrates, charges and shows."""

from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.engines.lower import aggregate, unit_sums
from hubbub.engines.lower import private_keys as keyed
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Scalar
from hubbub.gate.measurement import Measurement
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Sealed, open_sealed
from hubbub.mechanisms import Geometric, integers
from hubbub.mechanisms.additive import laplace
from hubbub.policy.tables import Policy
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.query.missing import looks
from hubbub.query.missing.looks import Look
from hubbub.query.ops import Aggregate, ExactCounts, JoinPublic, Measure, Relation, RelationUnion, Tally
from hubbub.query.plan import measure, statistic
from hubbub.query.plan import plan as planning
from hubbub.query.plan.both_ends import BothEnds
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import Reach, TallyStatistic
from tests.planted import questions
from tests.planted.plant import Caught, Patch, Planted, both, in_place
from tests.query import planted, planted_own, test_replay_power

# What is read


_one_row, _bound = planning.one_row_a_unit, statistic.bound_tally


def _still_one_row(relation: Relation, policy: Policy) -> bool:
    """That a unit has one row outlives the join that gives it several."""
    return _one_row(relation.input if isinstance(relation, JoinPublic) else relation, policy)


def _copies_alone(relation: Relation, policy: Policy) -> bool:
    """Each copy of a row is under one condition, so a unit is, it is thought, and nothing is to be bounded."""
    return isinstance(relation, RelationUnion) or _one_row(relation, policy)


def _clamped_unless_a_key(module: Any, what: str) -> Patch:
    """A column that rows are grouped by is not clamped when it is added up: its values, it is thought, are known."""
    honest = getattr(module, what)

    def made(op: Aggregate, *given: Any, **more: Any) -> Any:
        keys = [group.expression for group in op.groups]
        with planted.no_clamp() if any(one.argument in keys for one in op.tallies) else nullcontext():
            return honest(op, *given, **more)

    return in_place(module, what, made)


def _by_few_bits(rows: Query, most: int, rank: Scalar, *, places: bool = False, alone: bool = False) -> Query:
    return planted._placed(
        "SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY hash(unit) % 3 ORDER BY hash(unit, code), unit, code)"
        " AS rank FROM (",
        rows,
        f") AS a) AS b WHERE rank <= {most}",
    )


def _in_the_same_groups(self: Reach, *, alone: Fraction, both: Fraction) -> Fraction:
    """That a count moves by 1 where a unit is replaced is true of one group, and is taken for true of several."""
    return self.groups * max(alone, both)


def _always_there(tally: Tally, reach: Reach) -> Sensitivity:
    """A replaced unit turns one value into another, it is thought: no further than from one bound to the other."""
    assert tally.clamp is not None
    width = 3 * (tally.clamp[1] - tally.clamp[0]) / tally.grid
    return replace(_bound(tally, reach), l1=width, l2_squared=width**2, linf=width)


def _known_number(self: Measurement[Any], sealed: Sealed[ExactCounts], meter: Meter, **terms: Any) -> Any:
    """The number of rows is taken for public, as it is where units replace each other: it is shown as it is."""
    release = _measured(self, sealed, meter, **terms)
    counts = isinstance(self.take, TallyStatistic) and self.take.tally.measure is Measure.ROWS
    return replace(release, value=self.take(open_sealed(sealed))) if counts else release


# What is shown

_measured = Measurement.measure
_sum = integers.exact_sum


def _suppressed(value: Any, added: Any) -> Any:
    """Counts below 5 are hidden, by the exact count."""
    return np.where(np.asarray(value) < 5, 0, _sum(value, added))


def _all_of_them(planned: Plan, sealed: Sealed[ExactCounts], meter: Meter) -> Any:
    """A key is in the answer as soon as somebody has it; the threshold hides its number alone."""
    shown = _select(planned, sealed, meter)
    return shown if shown is None else {held: shown.get(held, 0) for held, _ in open_sealed(sealed).units}


_select = measure.select_keys
_of_both = BothEnds.sensitivity.fget  # type: ignore[attr-defined]


def _of_one_end(self: BothEnds) -> Sensitivity:
    """A value is no further than half from the middle, so that is taken for what a row adds to both ends."""
    whole: Sensitivity = _of_both(self)
    assert whole.l1 is not None
    assert whole.l2_squared is not None
    assert whole.linf is not None
    return replace(whole, l1=whole.l1 / 2, l2_squared=whole.l2_squared / 4, linf=whole.linf / 2)


def _as_added(self: BothEnds) -> Sensitivity:
    reach = replace(self.reach, neighbors=Neighbors.ADD_REMOVE)
    found: Sensitivity = _of_both(replace(self, reach=reach))
    return found


_aggregate, _counted = Look.aggregate.fget, looks._count_bins  # type: ignore[attr-defined]


def _for_one_bin(epsilon: Fraction, neighbors: Neighbors) -> Geometric:
    return Geometric(epsilon=epsilon, neighbors=neighbors)


def _in_two_bins(look: Look) -> Aggregate:
    made: Aggregate = _aggregate(look)
    return replace(made, histograms=tuple(replace(one, most_rows=2) for one in made.histograms))


QUERIES = (
    Planted(
        name="wrong sensitivity of a sum",
        about="Noise for one row of a unit where several count.",
        subject=questions.NIGHTS,
        patch=planted.sensitivity_of_one_row,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="noise for one group of several",
        about="A unit counts in two groups, and the noise is that for one.",
        subject=questions.COUNTS,
        patch=planted.sensitivity_of_one_group,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="groups of a unit not bounded",
        about="A unit counts in every group that it is in.",
        subject=questions.COUNTS,
        patch=planted.no_bounding_of_groups,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="groups by the order of the data",
        about="A unit's groups are those that come first in the table.",
        subject=questions.COUNTS,
        patch=planted.groups_by_data_order,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="groups by what others have",
        about="A unit's groups are those that most units are in: one unit can switch everybody's.",
        subject=questions.COUNTS,
        patch=planted.groups_chosen_among_all_units,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="rows of nobody counted",
        about="Rows without a unit are kept, and are nobody's to bound.",
        subject=questions.COUNTS,
        patch=planted.rows_of_null_units_kept,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="rows of a unit not bounded",
        about="A unit counts with all its rows.",
        subject=questions.ROWS,
        patch=planted.count_not_bounded,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="values not clamped",
        about="A value far outside the declared bounds is added as it is.",
        subject=questions.NIGHTS,
        patch=planted.no_clamp,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a unit's total not clamped",
        about="Rows are clamped, and their sum is not.",
        subject=questions.SUMS,
        patch=planted.no_clamp_of_a_units_total,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="an error for some rows",
        about="A large value raises in the engine: the error tells that it is there.",
        subject=questions.SUMS,
        patch=planted.an_error_for_some_rows,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="uniqueness believed",
        about="That a unit has one row was declared, and nobody looked.",
        subject=questions.COUNTS,
        patch=planted.uniqueness_believed,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="uniqueness outliving a join",
        about="A unit has one row in its table, and still one, it is thought, after a join that makes it two.",
        subject=questions.FLOORS,
        patch=in_place(planning, "one_row_a_unit", _still_one_row),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="copies of a row counted as units",
        about="A row has a copy under each condition that it fulfils, and each is taken for all that its unit has.",
        subject=questions.CONDITIONS,
        patch=in_place(planning, "one_row_a_unit", _copies_alone),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="unclamped group key",
        about="A column that is also a group key is added up without its bounds.",
        subject=questions.POINTS,
        patch=both(
            _clamped_unless_a_key(aggregate, "_code_rows"),
            both(_clamped_unless_a_key(unit_sums, "add_pairs"), _clamped_unless_a_key(unit_sums, "add_chosen")),
        ),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="uncorrelated IN",
        about="A subquery about anybody's rows: one person switches everybody's.",
        subject=questions.MATCHED,
        patch=planted_own.OWN["match_uncorrelated"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a join without the unit",
        about="Rows of one unit are joined with those of another.",
        subject=questions.JOINED,
        patch=planted_own.OWN["join_without_unit"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="tied window order",
        about="Rows that tie are numbered in the order in which the engine finds them.",
        subject=questions.FIRST_NIGHTS,
        patch=planted_own.OWN["windows_tied"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a window over everyone",
        about="A window without the unit in its partition.",
        subject=questions.LATER_STAYS,
        patch=planted_own.OWN["window_over_everyone"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a unit's first value",
        about="The first value that the engine finds, where the least was asked for.",
        subject=questions.PER_PERSON,
        patch=planted_own.OWN["first_value_of_a_unit"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="sums of floats",
        about="A unit's reals are added up as floats, in the order in which they come.",
        subject=questions.FLOATS,
        patch=planted_own.OWN["totals_of_floats"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="non-injective packed key",
        about="A few bits in place of the unit: now and then two units share them, and one limit on their groups.",
        subject=questions.COUNTS,
        patch=in_place(aggregate, "_choose", _by_few_bits),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a cap by the order of the data",
        about="Before a join a unit's rows are cut to those that come first.",
        subject=questions.CAPPED,
        patch=planted_own.OWN["cap_by_data_order"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a full join of nobody",
        about="Rows that only the right side has lose their unit.",
        subject=questions.FULL,
        patch=planted_own.OWN["full_join_of_nobody"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="arms of a union bounded apart",
        about="What a unit has in the second arm counts as another unit's.",
        subject=questions.UNION,
        patch=test_replay_power.FAULTS["union_arms_limited_apart"][0],
        caught=Caught.REPLAY,
    ),
    Planted(
        name="rows of a unit in a median",
        about="A unit is in a median with all its rows.",
        subject=questions.MEDIANS,
        patch=planted.rows_of_a_unit_not_limited,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a choice in one group of several",
        about="A median is chosen in every group of a unit, and paid for in one.",
        subject=questions.MEDIANS,
        patch=planted.choices_in_one_group,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a quantile's rank by the smaller share",
        about="The rank score moves by q or by 1 - q, and the smaller of them is taken.",
        subject=questions.QUANTILES,
        patch=planted.rank_moves_by_the_smaller_share,
        caught=Caught.COUNTING,
    ),
    Planted(
        name="a replaced unit moves as far as an added one",
        about="The sensitivity of added units, for an account that protects replaced ones.",
        subject=questions.REPLACED_SUM,
        patch=in_place(
            statistic,
            "bound_tally",
            lambda tally, reach: _bound(tally, replace(reach, neighbors=Neighbors.ADD_REMOVE)),
        ),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a replaced unit in the groups of the other",
        about="A count moves by 1 where a unit is replaced, if there is one group; of several it moves in two.",
        subject=questions.REPLACED_COUNTS,
        patch=in_place(statistic.Reach, "bound_groups", _in_the_same_groups),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="the width of the bounds where a row may be missing",
        about="The noise of a sum is that of b - a, and a unit whose row is filtered adds 0, which is further away.",
        subject=questions.REPLACED_ABOVE,
        patch=in_place(statistic, "bound_tally", _always_there),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a public number of units that come and go",
        about="How many rows there are is shown without noise, as if units did nothing but replace each other.",
        subject=questions.NUMBERED,
        patch=in_place(Measurement, "measure", _known_number),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="half of the bounds over a public number",
        about="Values lie within half of the bounds about the middle, and a replaced one moves by all of them.",
        subject=questions.SIZED_MEAN,
        patch=in_place(
            statistic,
            "bound_tally",
            lambda tally, reach: _bound(tally, replace(reach, neighbors=Neighbors.ADD_REMOVE)),
        ),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="charge at half the price",
        about="The events that are charged are those of mechanisms with twice the noise.",
        subject=questions.COUNTS,
        patch=planted.charge_at_half_epsilon,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="one draw for all groups",
        about="All groups of an answer get the same noise, and their differences are exact.",
        subject=questions.COUNTS,
        patch=planted.one_draw_for_all_groups,
        caught=Caught.COUNTING,
    ),
    Planted(
        name="clamp at exact n",
        about="A count is never shown above the number of rows that there are.",
        subject=questions.UNITS,
        patch=planted.clamped_at_the_exact_value,
        caught=Caught.COUNTING,
    ),
    Planted(
        name="no noise on empty groups",
        about="A group without rows is shown as 0, and as 0 alone.",
        subject=questions.COUNTS,
        patch=planted.no_noise_on_empty_groups,
        caught=Caught.REPLAY,
    ),
    Planted(
        name="deterministic suppression",
        about="Small counts are hidden by the exact count: what is hidden tells.",
        subject=questions.UNITS,
        patch=in_place(laplace, "exact_sum", _suppressed),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="key leakage",
        about="A key is shown as soon as one unit has it.",
        subject=questions.CITIES,
        patch=in_place(measure, "select_keys", _all_of_them),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="data-ordered output",
        about="Keys come out in the order in which the engine met them.",
        subject=questions.CITIES,
        patch=in_place(keyed, "in_order", list),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a mean's noise for one end of two",
        about="What a row adds to the distances from both bounds is taken to be what it adds to one.",
        subject=questions.MEANS,
        patch=in_place(BothEnds, "sensitivity", property(_of_one_end)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a mean of replaced units as of added ones",
        about="Distances from both bounds, and the noise is that for a unit that comes or goes.",
        subject=questions.REPLACED_MEAN,
        patch=in_place(BothEnds, "sensitivity", property(_as_added)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a unit in two bins of one look",
        about="Where a value lies and how many rows there are is told by one histogram, and a unit is in both bins.",
        subject=questions.BOUNDS_AND_ROWS,
        patch=in_place(Look, "aggregate", property(_in_two_bins)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="bounds from every group of a unit",
        about="What a unit adds to a group is looked at in all its groups, as if each were somebody else's.",
        subject=questions.TOTALS,
        patch=in_place(looks, "_count_bins", lambda relation, ends, *, single: _counted(relation, ends, single=True)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="limits of replaced units as of added ones",
        about="A replaced unit leaves one bin for another, and the noise is that for a unit that comes or goes.",
        subject=questions.ROWS_IN_A_GROUP,
        patch=both(
            in_place(
                Look,
                "mechanism",
                staticmethod(lambda epsilon, neighbors: Geometric(epsilon=epsilon, neighbors=neighbors)),
            ),
            in_place(Look, "sensitivity", staticmethod(lambda neighbors: Sensitivity(l0=1, linf=Fraction(1)))),
        ),
        caught=Caught.REPLAY,
    ),
)
