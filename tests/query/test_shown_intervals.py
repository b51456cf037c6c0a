"""What a table shows of its intervals: counts from 0 on, ends that there are not, ranks, and all groups together."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.stats import binom

import hubbub as hb
from bench.intervals import open_table
from hubbub.errors import ParameterError
from hubbub.query.aggregates import joint_sums
from hubbub.query.answer.answer import Answer, answer, share_confidence
from hubbub.query.answer.explain import explain_columns
from hubbub.query.answer.render import as_html, as_text
from hubbub.query.plan import measure
from hubbub.query.plan.inversion import NoisyArray
from hubbub.query.plan.plan import Plan
from tests.query.test_plan import _answers, _table, planned

FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    with open_table(tmp_path_factory.mktemp("shown")) as held:
        yield held


def show(plan: Plan, *noisy: Sequence[int]) -> Answer:
    return answer(plan, noisy, entry=1)


def test_counts_are_not_negative_and_neither_are_their_intervals() -> None:
    plan = planned("select count(*), count(distinct patient_id), sum(age - 50) from stays", epsilon=3)
    row = show(plan, [-1000], [3], [-500]).to_dicts()[0]
    name, units, total = show(plan, [-1000], [3], [-500]).columns
    assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == (0, 0, 0)
    assert row[f"{units}_low"] == 0 < row[units] == 3 < row[f"{units}_high"]
    assert row[total] == -500, "a sum may be negative"
    assert show(plan, [-1000], [3], [-500]).noisy[0] == (-1000,), "what was drawn is there"


def test_bins_of_a_histogram_are_not_negative() -> None:
    plan = planned("select histogram(points, [1, 2]) as h from stays", epsilon=1)
    (row,) = show(plan, [-50, 4, 1000]).to_dicts()
    assert list(row["h"].values()) == [0, 4, 1000]
    assert min(row["h_low"].values()) == 0
    assert row["h_high"][1] == 0


def test_a_condition_is_still_decided_by_the_noisy_number_itself() -> None:
    plan = planned("select bool_or(urgent) from stays", epsilon=1)
    for units, low, high in ((-1000, False, False), (0, False, True), (1000, True, True)):
        found = show(plan, [units])
        assert (found.lows[0][0], found.highs[0][0]) == (low, high)


def test_where_there_is_no_end_the_table_says_so(db: hb.Database) -> None:
    plan = db.plan("SELECT regr_slope(x, y) AS s, corr(x, y) AS r, count(*) + 1 AS n FROM t", epsilon=1)
    numbers = [[500 * 100] * (2 if len(one.take.tells) == 2 else 1) for one in plan.measurements]
    slots = iter(numbers)
    found = show(plan, *([] if slot is None else next(slots) for slot in plan.slots))
    row = found.to_dicts()[0]
    assert row["s"] is None or (row["s_low"], row["s_high"]) == (None, None)
    shown = as_text(found)
    if row["s"] is not None:
        assert "(unbounded)" in shown
        assert "(unbounded)" in as_html(found)
    assert shown.count("unbounded") <= 1, "an expression has no interval that could lack an end"


def test_choices_show_the_rows_that_they_may_be_off() -> None:
    plan = planned("select median(age) as m, max(age) as top, mode(ward) as w, count(*) as n from stays", epsilon=3)
    noisy = [[50], [40], [99], [1]] if plan.slots[0] is not None else [[], [40], [99], [1]]
    found = show(plan, *noisy)
    (row,) = found.to_dicts()
    margins = [column["rank_margin"] for column in explain_columns(plan)[:3]]
    assert [row["m_ranks"], row["top_ranks"], row["w_ranks"]] == margins
    assert "n_ranks" not in row
    assert "m_low" not in row
    assert f"40 (within {margins[0]:,} rows)" in as_text(found)
    wider = found.with_intervals(0.999).to_dicts()[0]
    assert wider["m_ranks"] > row["m_ranks"]


def test_other_intervals_of_the_same_numbers_cost_nothing(db: hb.Database) -> None:
    first = db.sql("SELECT count(*) AS n, avg(x) AS mean FROM t", epsilon=2)
    left = db.budget
    narrow, wide = first.with_intervals(0.5), first.with_intervals(Fraction(999, 1000))
    assert first.rows == narrow.rows == wide.rows
    assert wide.lows[0][0] <= first.lows[0][0] <= narrow.lows[0][0]
    assert narrow.highs[0][0] < wide.highs[0][0]
    assert (narrow.entry, narrow.noisy, narrow.confidence) == (first.entry, first.noisy, 0.5)
    assert "± 50% ·" in narrow.terms
    assert "± 95%, all groups together ·" in first.with_intervals(simultaneous=True).terms
    assert wide.with_intervals().lows == first.lows
    assert str(db.budget) == str(left)
    again = db.sql("SELECT count(*) AS n, avg(x) AS mean FROM t", epsilon=2)
    assert (again.lows, again.highs) == (first.lows, first.highs)
    for wrong in (0, 1, -0.5, 2):
        with pytest.raises(ParameterError):
            first.with_intervals(wrong)


@pytest.mark.parametrize("text", ["count(*)", "avg(age)", "sum(age)"])
def test_simultaneous_intervals_hold_in_all_groups_together(text: str) -> None:
    """1,000 tables of 13 groups at false-alarm rate 1e-6; each by itself would hold together in half of them."""
    plan = planned(f"select month(day) as m, {text} as n from stays group by month(day)", epsilon=1)
    tables, groups = 1000, plan.cells
    assert groups == 13
    exact = {id(one): 4_000 for one in plan.measurements}
    together, alone = 0, 0
    drawn = {
        id(one): np.asarray(
            one.mechanism.draw(np.full(tables * one.take.count_numbers(groups), exact[id(one)]))
        ).reshape(tables, -1)
        for one in plan.measurements
    }
    truth = show(plan, *_stored(plan, {id(one): [4_000] * one.take.count_numbers(groups) for one in plan.measurements}))
    for at in range(tables):
        found = show(plan, *_stored(plan, {key: value[at].tolist() for key, value in drawn.items()}))
        alone += _holds(found, truth)
        together += _holds(found.with_intervals(simultaneous=True), truth)
    assert binom.ppf(FALSE_ALARM, tables, 0.94) <= together
    assert alone < binom.ppf(1 - FALSE_ALARM, tables, 0.8)


def _stored(plan: Plan, numbers: dict[int, list[int]]) -> list[list[int]]:
    return [[] if slot is None else numbers[id(slot)] for slot in plan.slots]


def _holds(found: Answer, truth: Answer) -> bool:
    rows = zip(truth.rows, found.lows, found.highs, strict=True)
    return all(low[1] - 1e-9 <= exact[1] <= high[1] + 1e-9 for exact, low, high in rows)


def test_confidence_is_shared_out_over_groups() -> None:
    assert share_confidence(0.95, 1) == pytest.approx(0.95)
    assert share_confidence(0.95, 20) ** 20 == pytest.approx(0.95)
    assert share_confidence(0.95, 0) == pytest.approx(0.95)


# Intervals are functions of noisy numbers


MOMENTS = "select count(*), stddev(cost), avg(age), corr(cost, age), regr_slope(cost, age), median(age) from stays"


def _differs(plan: Plan, sides: Sequence[dict[str, Any]], noisy: Sequence[Sequence[int]]) -> bool:
    """Return whether an answer with the same noisy numbers is another one where other rows were read."""
    shown = []
    for tables in sides:
        measure.vector(_answers(plan, tables)[0])  # what is read before it is presented
        shown.append(show(plan, *noisy))
    return (shown[0].rows, shown[0].lows, shown[0].highs, shown[0].ranks) != (
        shown[1].rows,
        shown[1].lows,
        shown[1].highs,
        shown[1].ranks,
    )


def _frozen(plan: Plan) -> list[list[int]]:
    """Noisy numbers that may come of many tables."""
    rng = Random(11)
    numbers = {
        id(one): [rng.randint(5_000, 9_000) for _ in range(one.take.count_numbers(1))] for one in plan.measurements
    }
    for one in plan.measurements:
        if not one.take.tells:
            numbers[id(one)] = [40]
    return _stored(plan, numbers)


def test_the_same_noisy_numbers_have_the_same_intervals_whatever_was_read() -> None:
    plan = planned(MOMENTS, epsilon=2)
    whole = _table(Random(4))
    rest = whole | {"stays": [row for row in whole["stays"] if row["patient_id"] != 1]}
    assert not _differs(plan, (whole, rest), _frozen(plan))


def test_an_interval_that_is_made_with_the_true_sums_is_seen() -> None:
    """A twin: the weights of the noise, or a simulation of it, at what was read in place of what was released."""
    plan = planned(MOMENTS, epsilon=2)
    whole = _table(Random(4))
    rest = whole | {"stays": [row for row in whole["stays"] if row["patient_id"] != 1]}
    known: list[float] = []
    honest, taken = NoisyArray, measure.vector

    def peek(cells: Any) -> Any:
        known[:] = [float(sum(map(abs, cells)))]
        return taken(cells)

    def simulate(value: Any, weights: tuple[Any, ...]) -> Any:
        return honest(value + known[0], weights)

    with mock.patch.object(measure, "vector", peek), mock.patch.object(joint_sums, "NoisyArray", simulate):
        assert _differs(plan, (whole, rest), _frozen(plan))
