"""Faults, each planted in one place of the product for as long as a block lasts. The harness must see every one.

What each stands for is said by its name; the place is where such a fault would really be made.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from hubbub import noise
from hubbub.engines.lower import aggregate, histogram, relations, unit_sums
from hubbub.engines.lower import grid_steps as steps
from hubbub.engines.nodes.queries import Query, Select
from hubbub.engines.nodes.scalars import Node, Scalar
from hubbub.engines.nodes.words import STAR, case, cast, function, infix, number
from hubbub.gate import attempt as attempting
from hubbub.gate import meter
from hubbub.mechanisms import Geometric, Quantile, QuantileBracket, integers
from hubbub.mechanisms.additive import laplace
from hubbub.mechanisms.additive.added import AddedNoise
from hubbub.policy.kinds import Kind, Type
from hubbub.privacy import shares
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import PureFilter
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.ops import Scan, ScanColumn, Tally
from hubbub.query.plan import plan as planning
from hubbub.query.plan import plan_terms, statistic
from hubbub.query.plan.plan import Plan
from hubbub.query.read import from_clause as reading
from hubbub.query.read import scope
from tests.engines.raw import raw

Fault = Callable[[], AbstractContextManager[Any]]


def _in_place(module: Any, what: str, fault: Any) -> Fault:
    return lambda: mock.patch.object(module, what, fault)


# Bounding


def _unkeyed(*rows: str | Node) -> Query:
    """The secrets of a statement are given to it, whether it looks at them or not."""
    return raw("SELECT * FROM (", *rows, ") AS z WHERE coalesce($1, $2) IS NOT NULL")


def _placed(*rows: str | Node) -> Query:
    """With the place of each row among those of its unit and group, none of which is said to be alone."""
    return _unkeyed(
        "SELECT *, row_number() OVER (PARTITION BY unit, code) - 1 AS place, unit AS own FROM (", *rows, ") AS y"
    )


def _by_data_order(rows: Query, most: int, rank: Scalar, *, places: bool = False, alone: bool = False) -> Query:
    """The groups that come first in the data."""
    return _placed(
        "SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY unit ORDER BY first) AS rank FROM (SELECT *, "
        "min(pos) OVER (PARTITION BY unit, code) AS first FROM (SELECT *, row_number() OVER () AS pos FROM (",
        rows,
        f") AS a) AS b) AS c) AS d WHERE rank <= {most}",
    )


def _among_all_units(rows: Query, most: int, rank: Scalar, *, places: bool = False, alone: bool = False) -> Query:
    """The groups that most units have: one unit can switch everybody's."""
    return _placed(
        "SELECT * FROM (SELECT *, dense_rank() OVER (ORDER BY size DESC, code) AS rank FROM (SELECT *, "
        "count(*) OVER (PARTITION BY code) AS size FROM (",
        rows,
        f") AS a) AS b) AS c WHERE rank <= {most}",
    )


_scan = relations.Lowering._scan


def _with_null_units(self: relations.Lowering, op: Scan) -> tuple[Query, Any]:
    found, names = _scan(self, op)
    assert isinstance(found, Select)
    assert found.where
    return replace(found, where=()), names


no_bounding_of_groups = _in_place(aggregate, "_choose", lambda rows, most, rank, **told: _placed(rows))
groups_by_data_order = _in_place(aggregate, "_choose", _by_data_order)
groups_chosen_among_all_units = _in_place(aggregate, "_choose", _among_all_units)
rows_of_null_units_kept = _in_place(relations.Lowering, "_scan", _with_null_units)
count_not_bounded = _in_place(unit_sums, "bound_rows", lambda many, bounds, always: many)
places_not_bounded = _in_place(unit_sums, "count_placed", lambda tally: function("count", STAR))

# Names


def _joined(source: str, column: str) -> str:
    return f"{source}.{column}"


def _by_the_end_of_its_name(self: relations.Lowering, op: Scan) -> tuple[Query, Any]:
    """A scan whose columns read what the longest ending of their name means to the table."""

    def found(one: ScanColumn) -> ScanColumn:
        parts = one.name.split(".")
        endings = (".".join(parts[start:]) for start in range(len(parts)))
        known = (self._tables[op.table].column(ending) for ending in endings)
        return replace(one, reads=next((column.name for column in known if column is not None), one.reads))

    return _scan(self, replace(op, columns=tuple(map(found, op.columns))))


@contextmanager
def names_joined_with_dots() -> Iterator[None]:
    """A column is called by its alias, a dot and its name, whatever these are."""
    with mock.patch.object(scope, "qualify", _joined), mock.patch.object(reading, "qualify", _joined):
        yield


columns_found_by_the_end_of_their_names = _in_place(relations.Lowering, "_scan", _by_the_end_of_its_name)

NAMES = {
    "names_joined_with_dots": names_joined_with_dots,
    "columns_found_by_the_end_of_their_names": columns_found_by_the_end_of_their_names,
}
"""What questions over tables with hostile names must see."""

# Clamping

_steps = steps.steps


def _row_clamp_far_out(tally: Tally, value: Scalar, kind: Kind) -> Scalar:
    ends = -(1 << 40) * tally.grid, (1 << 40) * tally.grid
    return _steps(replace(tally, clamp=ends), value, kind)


def _raising(tally: Tally, value: Scalar, kind: Kind) -> Scalar:
    """An expression that raises for some rows: the error tells that there is one."""
    if kind.type is not Type.REAL:
        return _steps(tally, value, kind)
    return case((infix(">", value, raw("1e300")), raw("error('large')")), otherwise=_steps(tally, value, kind))


@contextmanager
def no_clamp() -> Iterator[None]:
    """Neither of a row's value nor of a unit's total."""
    with (
        mock.patch.object(steps, "_clamp", lambda value, low, high: value),
        mock.patch.object(steps, "_bring", lambda value, low, high: value),
    ):
        yield


no_clamp_of_a_units_total = _in_place(
    unit_sums, "bound_total", lambda node, bounds: function("coalesce", cast(node, "int128"), number(0))
)
no_clamp_of_rows = _in_place(unit_sums, "steps", _row_clamp_far_out)
an_error_for_some_rows = _in_place(unit_sums, "steps", _raising)

# Errors after the charge

_attempt = attempting.attempt


def all_but_overflow(work: Any, *, log: Any) -> Any:
    """Everything is caught but what somebody forgot."""
    passed: list[OverflowError] = []

    def noted() -> Any:
        try:
            return work()
        except OverflowError as problem:
            passed.append(problem)
            raise

    found = _attempt(noted, log=log)
    if passed:
        raise passed[0]
    return found


@contextmanager
def an_overflow_passed_on() -> Iterator[None]:
    """Exact numbers go into as many bits as are usually enough, and what does not fit is told."""
    with (
        mock.patch.object(statistic, "vector", lambda cells: np.array(cells, dtype=np.int32)),
        mock.patch.object(meter, "attempt", all_but_overflow),
    ):
        yield


# Calibration

_bound = statistic.bound_tally


def _one_group(*given: Any) -> Sensitivity:
    whole = _bound(*given)
    return Sensitivity(l0=1, linf=whole.linf)


def _one_row(*given: Any) -> Sensitivity:
    whole = _bound(*given)
    return Sensitivity(l0=whole.l0, linf=Fraction(1))


uniqueness_believed = _in_place(planning, "one_row_a_unit", lambda relation, policy: True)
sensitivity_of_one_group = _in_place(statistic, "bound_tally", _one_group)
sensitivity_of_one_row = _in_place(statistic, "bound_tally", _one_row)


@contextmanager
def calibrated_for_half() -> Iterator[None]:
    """Mechanisms for half the sensitivity that the plan proves."""
    alike, gaussian = shares.calibrate_alike, shares.calibrate_gaussian

    def halve(one: Any) -> AddedNoise:
        known = one.sensitivity
        return AddedNoise(sensitivity=Sensitivity(l0=known.l0, linf=known.linf / 2), neighbors=one.reach.neighbors)

    def halved(honest: Any) -> Any:
        return lambda measured, **given: honest([halve(one) for one in measured], **given)

    with (
        mock.patch.object(plan_terms, "calibrate_alike", halved(alike)),
        mock.patch.object(plan_terms, "calibrate_gaussian", halved(gaussian)),
    ):
        yield


# Choices and different values


def _unlimited(rows: Query, content: Scalar, most: int, *, grouped: bool, copies: bool) -> Query:
    return _unkeyed(rows)


@contextmanager
def rows_of_a_unit_not_limited() -> Iterator[None]:
    """All rows of a unit are in a histogram, and all its values are counted."""
    with mock.patch.object(histogram, "limit_rows", _unlimited):
        yield


def _limited_by_data_order(rows: Query, content: Scalar, most: int, *, grouped: bool, copies: bool) -> Query:
    by = "unit, code" if grouped else "unit"
    return _unkeyed(
        f"SELECT * EXCLUDE (rank) FROM (SELECT *, row_number() OVER (PARTITION BY {by}) AS rank FROM (",
        rows,
        f") AS a) AS b WHERE rank <= {most}",
    )


rows_of_a_unit_by_data_order = _in_place(histogram, "limit_rows", _limited_by_data_order)
choices_in_one_group = _in_place(statistic.Reach, "touched", property(lambda self: 1))
rank_moves_by_the_smaller_share = _in_place(
    Quantile, "rate", property(lambda self: self.epsilon / (2 * min(self.q, 1 - self.q) * self.rows))
)
rank_of_one_row = _in_place(Quantile, "rate", property(lambda self: self.epsilon / (2 * max(self.q, 1 - self.q))))
ends_of_one_row_at_the_whole_price = _in_place(
    QuantileBracket, "rate", property(lambda self: self.epsilon / (2 * max(self.q, 1 - self.q)))
)

# Noise

_laplace, _sum = noise.discrete_laplace, integers.exact_sum


def _alike(*, scale: Any, size: int) -> Any:
    return np.repeat(_laplace(scale=scale, size=1), size)


halved_scale = _in_place(noise, "discrete_laplace", lambda *, scale, size=None: _laplace(scale=scale / 2, size=size))
one_draw_for_all_groups = _in_place(noise, "discrete_laplace", _alike)
clamped_at_the_exact_value = _in_place(laplace, "exact_sum", lambda value, added: np.minimum(_sum(value, added), value))
no_noise_on_empty_groups = _in_place(laplace, "exact_sum", lambda value, added: _sum(value, np.where(value, added, 0)))

# Charging


def _half_events(self: Plan) -> tuple[Event, ...]:
    """The events of mechanisms with twice the noise."""
    return tuple(
        Geometric(epsilon=one.epsilon / 2, sensitivity=one.sensitivity).event
        for one in self.mechanisms
        if isinstance(one, Geometric)
    )


@contextmanager
def charged_by_half() -> Iterator[None]:
    """The ledger counts half of what each event costs."""
    honest = PureFilter.charge_of

    def halved(self: PureFilter, event: Event) -> Any:
        whole = honest(self, event)
        return replace(whole, loss=whole.loss // 2)

    with mock.patch.object(PureFilter, "charge_of", halved):
        yield


charge_at_half_epsilon = _in_place(Plan, "events", property(_half_events))

REPLAY = {
    "no_bounding_of_groups": no_bounding_of_groups,
    "groups_by_data_order": groups_by_data_order,
    "groups_chosen_among_all_units": groups_chosen_among_all_units,
    "rows_of_null_units_kept": rows_of_null_units_kept,
    "count_not_bounded": count_not_bounded,
    "places_not_bounded": places_not_bounded,
    "uniqueness_believed": uniqueness_believed,
    "no_clamp": no_clamp,
    "no_clamp_of_a_units_total": no_clamp_of_a_units_total,
    "an_error_for_some_rows": an_error_for_some_rows,
    "sensitivity_of_one_group": sensitivity_of_one_group,
    "sensitivity_of_one_row": sensitivity_of_one_row,
}
"""What replay must see."""

REPLAY_CHOICES = {
    "rows_of_a_unit_not_limited": rows_of_a_unit_not_limited,
    "rows_of_a_unit_by_data_order": rows_of_a_unit_by_data_order,
    "choices_in_one_group": choices_in_one_group,
}
"""What replay must see in questions that choose values, or count different ones."""

AUDIT = {
    "halved_scale": halved_scale,
    "one_draw_for_all_groups": one_draw_for_all_groups,
    "clamped_at_the_exact_value": clamped_at_the_exact_value,
    "no_noise_on_empty_groups": no_noise_on_empty_groups,
    "sensitivity_of_one_row": sensitivity_of_one_row,
    "no_bounding_of_groups": no_bounding_of_groups,
    "count_not_bounded": count_not_bounded,
    "no_clamp": no_clamp,
}
"""What an audit must see, in ε."""

AUDIT_CHOICES = {
    "rows_of_a_unit_not_limited": rows_of_a_unit_not_limited,
    "choices_in_one_group": choices_in_one_group,
    "rank_moves_by_the_smaller_share": rank_moves_by_the_smaller_share,
    "rank_of_one_row": rank_of_one_row,
    "ends_of_one_row_at_the_whole_price": ends_of_one_row_at_the_whole_price,
}
"""What an audit must see, in ε, in such questions."""
