"""What limits drop: measured exactly, within what is proven, and covered by intervals of the whole error."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from scipy import stats

from hubbub.audit.examine import examine
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.audit.subjects.queries import OfQuery
from hubbub.engines.lower import dropped as dropping
from hubbub.errors import NotAllowed, ParameterError
from hubbub.gate.meter import Meter
from hubbub.gate.release import Release
from hubbub.gate.secret import Sealed, open_sealed
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.answer.stored import combine
from hubbub.query.answer.terms import BEYOND
from hubbub.query.ops import Dropped, ExactCounts, Measure, Tally
from hubbub.query.plan import statistic
from hubbub.query.plan.covering import Covers
from hubbub.query.plan.measure import measure_plan
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.plan.statistic import QueryMeasurement, Reach
from hubbub.query.read.sql import question
from tests.query import test_replay
from tests.query.asking import Catalogue
from tests.query.generate import TIMES
from tests.query.inside import Seen, World, fixed_key, row
from tests.query.test_replay import QUESTIONS, any_asked, compare, dataset, worlds
from tests.testing.test_query_audit import QUICK, policy

__all__ = ["worlds"]

WARDS = "SELECT ward, count(*), count(DISTINCT person), sum(nights), avg(nights) FROM stays GROUP BY ward"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, budget=Budget(epsilon=Fraction(1000)))
    yield made
    made.close()


def people(seed: int, many: int = 60, most: int = 12) -> list[dict[str, Any]]:
    """Rows of people of whom few have many, at most so many each."""
    rng = Random(seed)
    rows = []
    for person in range(many):
        for _ in range(min(most, int(rng.paretovariate(0.8)))):
            rows.append(row(person, ward=rng.choice("abc"), nights=rng.choice((0, 2, 5, 10, None)), cost=1.0))
    return rows


def truth_of(rows: list[dict[str, Any]], ward: str | None) -> tuple[int, int, int, Fraction | None]:
    own = [one for one in rows if ward is None or one["ward"] == ward]
    nights = [one["nights"] for one in own if one["nights"] is not None]
    mean = Fraction(sum(nights), len(nights)) if nights else None
    return len(own), len({one["person"] for one in own}), sum(nights), mean


# What is measured


@pytest.mark.parametrize("limits", [(1, 1), (2, 3), (3, 2), (2, 12), (50, 2)])
def test_what_counts_and_what_is_dropped_add_up_to_everything(world: World, limits: tuple[int, int]) -> None:
    """Of people who have no more rows than ``max_total_rows``."""
    rows = people(1)
    groups, most = limits
    db = world.load(rows, limits=Limits(max_groups=groups, max_rows=most, max_total_rows=12))
    found = db.plan(WARDS, epsilon=1)
    with fixed_key():
        counted = exact_of(db, found.aggregate)
    for (ward,), numbers in zip(counted.cells, counted.tallies, strict=True):
        for part in found.parts:
            assert part.dropped or (part.tallies[0].measure is Measure.UNITS and groups == 50)
        sums = []
        for part in found.parts:
            pairs = zip(part.tallies, part.dropped or (None,) * len(part.tallies), strict=True)
            sums.append([numbers[_at(found, one)] + (numbers[_at(found, two)] if two else 0) for one, two in pairs])
        rows_, units, nights, mean = truth_of(rows, str(ward))
        origin = found.parts[3].tallies[1].origin
        values = [one for one in rows if one["ward"] == ward and one["nights"] is not None]
        centred = nights - len(values) * origin
        assert (sums[0], sums[1], sums[2]) == ([rows_], [units], [nights])
        assert sums[3] == [len(values), centred]
        assert mean is None or origin + Fraction(centred, len(values)) == mean


def _at(found: Plan, tally: Any) -> int:
    return found.aggregate.tallies.index(tally)


def test_rows_beyond_the_declared_most_are_in_neither(world: World) -> None:
    """Fifty rows of one person, of which twenty are looked at: 3 count in each of 2 wards, and 14 are dropped."""
    rows = [row(1, ward="abcde"[at % 3], nights=1) for at in range(51)]
    db = world.load(rows, limits=Limits(max_groups=2, max_rows=3, max_total_rows=20))
    found = db.plan("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=1)
    with fixed_key():
        numbers = exact_of(db, found.aggregate).tallies
    assert sorted(one[0] for one in numbers) == [0, 0, 0, 3, 3]
    assert sum(one[1] for one in numbers) == 14
    alone = db.plan("SELECT count(*) FROM stays", epsilon=1)
    assert exact_of(db, alone.aggregate).tallies == [(3, 17)]


@pytest.mark.parametrize(
    ("limits", "neighbors", "proven"),
    [
        ((1, 5), Neighbors.ADD_REMOVE, (19, 19, 361, 19)),  # one row in a group that is kept, 19 elsewhere
        ((6, 5), Neighbors.ADD_REMOVE, (15, 15, 225, 15)),
        ((1, 20), Neighbors.ADD_REMOVE, (19, 19, 361, 19)),
        ((6, 5), Neighbors.REPLACE_ONE, (30, 30, 450, 15)),
    ],
)
def test_norms_by_hand(limits: tuple[int, int], neighbors: Neighbors, proven: Any) -> None:
    """Of twenty rows at most, those are dropped that the least of the limits does not keep."""
    reach = Reach(groups=limits[0], neighbors=neighbors, cells=100)
    dropped = Dropped(rows=limits[1], within=20)
    counts = Tally(measure=Measure.ROWS, argument=None, bounds=(0, limits[1]), a_row=(0, 1), dropped=dropped)
    found = statistic.bound_tally(counts, reach)
    assert (found.l0, found.in_norm(Norm.L1), found.in_norm(Norm.L2), found.linf) == proven
    total = replace(counts, measure=Measure.TOTAL, a_row=(-2, 3))
    found, (groups, rows, squares, most) = statistic.bound_tally(total, reach), proven
    apart = neighbors is Neighbors.REPLACE_ONE
    assert found.in_norm(Norm.L1) == 3 * rows
    assert found.in_norm(Norm.L2) == (squares * 3 * 5 if apart else squares * 9)
    assert (found.l0, found.linf) == (groups, most * (5 if apart else 3))
    units = statistic.bound_tally(replace(counts, measure=Measure.UNITS), reach)
    lost = (20 - limits[0]) * (2 if apart else 1)
    stated: tuple[Any, ...] = (units.l0, units.in_norm(Norm.L1), units.in_norm(Norm.L2), units.linf)
    assert stated == (lost, lost, lost, 1)


def test_nothing_is_measured_where_nothing_can_be_dropped(world: World) -> None:
    asked = {
        "SELECT count(*) FROM stays": Limits(max_rows=12, max_total_rows=12),
        "SELECT count(DISTINCT person) FROM stays": Limits(max_rows=1, max_total_rows=12),
        "SELECT sum(nights, contribution_bounds_per_group => (0, 9)) FROM stays": Limits(max_rows=2, max_total_rows=12),
        "SELECT median(nights), count(*) FROM stays": Limits(max_rows=2, max_total_rows=12),
        "SELECT ward, count(*) FROM stays GROUP BY ward": Limits(max_groups=50, max_rows=12, max_total_rows=12),
        "SELECT stddev(nights) FROM stays": Limits(max_rows=2, max_total_rows=12),
    }
    for text, limits in asked.items():
        db = world.load([], limits=limits)
        found = db.plan(text, epsilon=1)
        assert found == db.plan(text, epsilon=1, error="noise"), text
        assert not any(part.dropped for part in found.parts)


def test_what_is_dropped_costs_an_eighth(world: World) -> None:
    """Noise is at most 15% wider for it, pure or Gaussian, of one number or several."""
    limits = Limits(max_groups=2, max_rows=2, max_total_rows=12)
    pure = world.load([], limits=limits)
    slack = replace(pure.policy, budget=Budget(epsilon=10, delta=Fraction(1, 10**6)))
    for given in (pure.policy, slack):
        for text in ("SELECT count(*) FROM stays", WARDS, "SELECT avg(nights) FROM stays"):
            asked = question(text, Catalogue(given))
            with_it, without = (
                plan(asked, given, epsilon=1, covers=covers) for covers in (Covers.DROPPED, Covers.NOISE)
            )
            assert with_it.cost.loss <= without.cost.loss * Fraction(101, 100)
            for part in without.parts:
                for tally in part.tallies:
                    wide, narrow = (one.margins.bound(tally, 0.05) for one in (with_it, without))
                    assert narrow <= wide <= Fraction(115, 100) * narrow + tally.grid


# Intervals


def draw(found: Plan, held: ExactCounts) -> list[list[int]]:
    meter = Meter({found.policy.account: Budget(epsilon=Fraction(10**9))})
    noisy: list[list[int]] = json.loads(measure_plan(found, Sealed(held), meter))["noisy"]
    return noisy


@pytest.mark.parametrize(
    ("seed", "limits", "epsilon"),
    [
        (2, Limits(max_groups=1, max_rows=1, max_total_rows=12), 1),
        (3, Limits(max_groups=2, max_rows=2, max_total_rows=12), 5),
        (4, Limits(max_groups=3, max_rows=4, max_total_rows=40), Fraction(1, 2)),
        (5, Limits(max_groups=50, max_rows=12, max_total_rows=13), 1),
    ],
)
def test_intervals_hold_the_truth(world: World, seed: int, limits: Limits, epsilon: Fraction) -> None:
    """95% of them at least, for every number: a false alarm has probability 1e-6 each."""
    rows = people(seed, 400)
    db = world.load(rows, limits=limits)
    times = 300
    least = stats.binom.ppf(1e-6, times, 0.95)
    for text in (WARDS, WARDS.replace(" GROUP BY ward", "").replace("ward, ", "")):
        found = db.plan(text, epsilon=epsilon)
        with fixed_key():
            held = exact_of(db, found.aggregate)
        truths = [truth_of(rows, None if "GROUP" not in text else str(cell[0])) for cell in held.cells]
        holds: Counter[tuple[int, int]] = Counter()
        for _ in range(times):
            for cell, numbers in enumerate(combine(found, draw(found, held))):
                for at, number in enumerate(numbers):
                    truth = truths[cell][at]
                    assert number.low <= number.high
                    holds[cell, at] += truth is None or number.low <= truth <= number.high
        assert min(holds.values()) >= least, {key: many / times for key, many in holds.items() if many < least}


def test_intervals_of_the_noise_alone_do_not_hold_it(world: World) -> None:
    """Else the test above would tell nothing."""
    rows = people(2, 400)
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=1, max_total_rows=12))
    found = db.plan(WARDS, epsilon=1, error="noise")
    with fixed_key():
        held = exact_of(db, found.aggregate)
    numbers = combine(found, draw(found, held))
    held_at = [
        numbers[cell][0].low <= truth_of(rows, ward)[0] <= numbers[cell][0].high for cell, ward in enumerate("abc")
    ]
    assert not any(held_at)


def test_a_number_is_moved_where_it_is_plain_that_rows_were_dropped(world: World) -> None:
    rows = [row(person, ward="a", nights=1) for person in range(3000) for _ in range(4)]
    limits = Limits(max_groups=1, max_rows=1, max_total_rows=5)
    db = world.load(rows, limits=limits)
    answer = db.sql("SELECT count(*), sum(nights), avg(nights) FROM stays", epsilon=4)
    ((count, total, mean),) = answer.rows
    assert abs(count - 12_000) < 600
    assert abs(total - 12_000) < 6000
    assert answer.lows[0][0] > 3100
    assert abs(mean - 1) < 0.6
    (dropped,) = answer.dropped
    assert dropped.share is not None
    assert abs(dropped.share - 0.75) < 0.05
    assert "% of rows of stays lie beyond max_rows = 1; the intervals cover that where no person has more than " in (
        answer.terms
    )
    few = world.load(rows[::4], limits=limits).sql("SELECT count(*) FROM stays", epsilon=4)
    assert abs(few.rows[0][0] - 3000) < 60
    assert few.dropped[0].share is None
    assert "too few rows of stays lie beyond max_rows = 1 to be told from the noise" in few.terms
    assert BEYOND not in few.terms


# Answers


def test_what_is_covered_is_said_and_chosen(world: World) -> None:
    rows = people(7)
    db = world.load(rows, limits=Limits(max_groups=2, max_rows=2, max_total_rows=12))
    whole = db.sql("SELECT count(*), stddev(nights) FROM stays", epsilon=1)
    assert "the intervals of count(*) cover that" in whole.terms
    assert "other intervals cover the noise alone" in whole.terms
    assert whole.plan.ways[0][0].startswith("whole ")
    again = db.sql("SELECT count(*), stddev(nights) FROM stays", epsilon=1)
    assert (again.rows, again.lows, again.entry, again.dropped) == (whole.rows, whole.lows, whole.entry, whole.dropped)
    noise = db.sql("SELECT count(*) FROM stays", epsilon=1, error="noise")
    assert noise.terms.count(BEYOND) == 1
    assert not noise.dropped
    with pytest.raises(ParameterError):
        db.sql("SELECT count(*) FROM stays", epsilon=1, error="all")
    free = world.load(rows, limits=Limits(max_groups=2, max_rows=2))
    assert BEYOND in free.sql("SELECT count(*) FROM stays", epsilon=1).terms
    with pytest.raises(NotAllowed, match="max_total_rows"):
        free.sql("SELECT count(*) FROM stays", epsilon=1, error="whole")


def test_an_answer_of_before_is_served_with_its_own_intervals(world: World) -> None:
    """It was stored without what limits drop; nothing is charged, and it says what it does not cover."""
    db = world.load(people(8), limits=Limits(max_groups=2, max_rows=2, max_total_rows=12))
    text = "SELECT ward, count(*), sum(nights) FROM stays GROUP BY ward"
    before = db.sql(text, epsilon=2, error="noise")
    spent = db.ledger.statement(db.policy.account).spent
    served = db.sql(text, epsilon=1)
    assert (served.rows, served.lows, served.highs, served.entry) == (
        before.rows,
        before.lows,
        before.highs,
        before.entry,
    )
    assert BEYOND in served.terms
    assert db.ledger.statement(db.policy.account).spent == spent


EVERYTHING = (
    "count(*), count(DISTINCT person), sum(nights), avg(nights), stddev(nights), var_samp(nights), covar_samp(nights, "
    "cost), weighted_avg(nights, least(greatest(points, 1), 3)), geometric_mean(greatest(nights, 1)), median(nights)"
)


def test_the_whole_error_of_every_aggregate(world: World) -> None:
    """Limits are raised where that is shorter, or where what is dropped cannot be measured beside."""
    rows = people(11, 300)
    limits = Limits(max_groups=2, max_rows=2, max_total_rows=12)
    db = world.load(rows, limits=limits)
    for text in (f"SELECT {EVERYTHING} FROM stays", f"SELECT ward, {EVERYTHING} FROM stays GROUP BY ward"):
        found = db.plan(text, epsilon=4, error="whole")
        assert found.is_raised
        assert replace(found.policy.limits, buy=True) == limits
        with fixed_key():
            numbers = exact_of(db, found.aggregate).tallies
        free = world.load(rows, limits=Limits(max_groups=50, max_rows=12))
        with fixed_key():
            assert numbers == exact_of(free, free.plan(text, epsilon=4).aggregate).tallies
        db = world.load(rows, limits=limits)
        answer = db.sql(text, epsilon=4, error="whole")
        assert "nothing is dropped where no person has more than max_total_rows = 12" in answer.terms
        assert BEYOND not in answer.terms
        again = db.sql(text, epsilon=4, error="whole")
        assert (again.rows, again.lows, again.entry) == (answer.rows, answer.lows, answer.entry)
        assert db.sql(text, epsilon=4, error="noise").entry != answer.entry


def test_the_shortest_of_all_is_taken(world: World) -> None:
    """A little above the limits they are raised; far above them, what is dropped is measured with most of the price."""
    for most, raised in ((5, True), (40, True), (400, False)):
        db = world.load([], limits=Limits(max_rows=4, max_total_rows=most))
        found = db.plan("SELECT count(*) FROM stays", epsilon=1, error="whole")
        assert found.is_raised is raised
        assert plan(found.question, found.policy, epsilon=1, ways=found.ways) == found
    bought = world.load([], limits=Limits(max_total_rows=7), buys=True)
    assert not bought.explain("SELECT count(*) FROM stays", epsilon=1, error="whole").unknown
    assert bought.explain("SELECT count(*) FROM stays", epsilon=1).unknown


def test_several_sets_and_conditions(world: World) -> None:
    db = world.load(people(9), limits=Limits(max_groups=1, max_rows=2, max_total_rows=12))
    rolled = db.sql("SELECT ward, count(*) FROM stays GROUP BY ROLLUP (ward)", epsilon=3)
    assert all(part.dropped for one in rolled.plan.sets for part in one.parts)
    again = db.sql("SELECT ward, count(*) FROM stays GROUP BY ROLLUP (ward)", epsilon=2)
    assert (again.lows, again.highs) == (rolled.lows, rolled.highs)
    text = "SELECT count(*) FILTER (WHERE ward = 'a') AS a, count(*) FILTER (WHERE ward = 'b') AS b FROM stays"
    beside = db.sql(text, epsilon=3)
    assert beside.plan.beside is not None
    assert not beside.dropped
    assert BEYOND in beside.terms


# Neighbours, and planted faults


def posed(
    rng: Random, asks: Callable[[Random], str] = any_asked
) -> tuple[Limits, list[dict[str, Any]], list[str], int]:
    """As in ``test_replay``, with totals that limits keep some of."""
    limits = Limits(
        max_groups=rng.choice((1, 2, 50)),
        max_rows=rng.choice((1, 2, 3)),
        max_total_rows=rng.choice((4, 6, 12)),
        max_unit_rows=rng.choice((5, 30)),
    )
    asked = [asks(rng) for _ in range(QUESTIONS)]
    own = (
        "count(*), count(nights), count(DISTINCT person), sum(nights), avg(nights), sum(least(greatest(points, -5), 9))"
    )
    rows = own.replace("count(DISTINCT person), ", "")  # units with few rows are not gathered
    plain = [f"SELECT {shown} FROM stays" for shown in (own, rows)]
    plain += [f"SELECT ward, {shown} FROM stays GROUP BY ward" for shown in (own, rows)]
    return limits, dataset(rng), [*plain, *asked[: QUESTIONS - 4]], rng.randrange(1 << 30)


def compared(sides: tuple[World, World], seed: str, **more: Any) -> Iterator[tuple[str, Seen, list[str]]]:
    with mock.patch.object(test_replay, "posed", posed):
        yield from compare(sides, Random(seed), **more)


@pytest.mark.parametrize("kind", ["pure", "gaussian", "replace"])
def test_neighbours_move_no_further_than_is_proven(worlds: dict[str, tuple[World, World]], kind: str) -> None:
    """And the exact numbers are those of the interpreter."""
    dropped = 0
    for number in range(2 * TIMES):
        seed = f"dropped {kind} {number}"
        for text, seen, found in compared(worlds[kind], seed, replace=kind == "replace"):
            assert not found, (seed, text, found)
            parts = () if seen.plan is None else seen.plan.sets or (seen.plan,)
            dropped += any(part.dropped for one in parts for part in one.parts)
    assert dropped > 100


_least_limit = dropping.least_limit
_count_dropped, _look, _measure = statistic.count_dropped, dropping._look, QueryMeasurement.measure


def _exactly(self: QueryMeasurement, sealed: Any, meter: Any, **told: Any) -> Release:
    """What was dropped without noise, paid for all the same: intervals are of the true cut."""
    drawn = _measure(self, sealed, meter, **told)
    return replace(drawn, value=open_sealed(sealed.map(self.take))) if self.take.is_dropped else drawn


PLANTED: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "noise for half of what is dropped": lambda: mock.patch.object(
        statistic, "count_dropped", lambda *told: max(1, _count_dropped(*told) // 2)
    ),
    "rows beyond the declared most are looked at": lambda: mock.patch.object(
        dropping, "_look", lambda op, limits: _look(op, replace(limits, within=limits.within * 4))
    ),
    "units with more rows than count are taken for free": lambda: mock.patch.object(
        dropping, "least_limit", lambda op, choosing: 4 * _least_limit(op, choosing=choosing)
    ),
    "what was dropped is stored without noise": lambda: mock.patch.object(QueryMeasurement, "measure", _exactly),
}
AUDITED = policy(max_groups=1, max_rows=1, max_total_rows=4)


@pytest.mark.parametrize("fault", [None, *PLANTED])
def test_audits_see_planted_faults_and_nothing_else(fault: str | None) -> None:
    """A false alarm has probability 1e-6."""
    with nullcontext() if fault is None else PLANTED[fault]():
        text = "SELECT ward, count(*) FROM stays GROUP BY ward"
        found = examine(OfQuery(AUDITED, text, epsilon=1), settings=QUICK)
    assert (found.accused or found.counterexample is not None) is (fault is not None), found


def test_an_accuracy_is_about_the_noise_alone(world: World) -> None:
    """A number to which a noisy number of dropped rows is added is not as close as was asked for: it does not serve."""
    rows = [row(unit, ward="a", nights=1, cost=1.0, points=1) for unit in range(300) for _ in range(6)]
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=2, max_total_rows=12))
    asked = "SELECT count(*) AS n FROM stays"
    covered = db.sql(asked, epsilon=3)
    assert covered.dropped
    close = db.sql(asked, within=40)
    assert not close.dropped
    assert close.entry != covered.entry
    assert close.highs[0][0] - close.rows[0][0] <= 40
    assert db.sql(asked, within=40).entry == close.entry, "nor is it paid twice"
    with pytest.raises(NotAllowed, match="about the noise alone"):
        db.sql(asked, within=40, error="dropped")
