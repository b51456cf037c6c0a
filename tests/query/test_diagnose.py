"""Diagnoses: numbers of units that limits and bounds cut off, against counting them by hand, and as private answers."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import (
    BudgetExceeded,
    EngineError,
    HubbubError,
    MissingBounds,
    NotAllowed,
    ParameterError,
    PolicyError,
    QueryError,
    TooHeavy,
)
from hubbub.policy.tables import Limits
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.answer import unit_rows as per_unit
from hubbub.query.answer.diagnose import Cut, diagnostics
from hubbub.query.answer.diagnosis import Diagnosis
from hubbub.query.expression import Column
from hubbub.query.ops import Measure, Project, Reduce, Relation, Tally, Together
from hubbub.query.plan import plan as planning
from hubbub.query.plan.plan import Plan, together
from hubbub.testing.replay import replayed
from tests.query import interpreter
from tests.query.inside import PUBLIC, World, fixed_key, row
from tests.query.owned import fill
from tests.query.test_replay import asked, dataset, neighbour

FAR = 1 << 62
WHOLE = "SELECT ward, count(*), sum(cost), avg(nights) FROM stays GROUP BY ward"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, budget=hb.Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**6)))
    yield made
    made.close()


def counted(db: hb.Database, text: str) -> dict[str, int]:
    """The exact numbers, by what they are about: what nobody sees but a test."""
    about = diagnostics(db.plan(text, epsilon=1))
    plans = together([one.question for one in about], db.policy, epsilon=1)
    found: dict[str, int] = {}
    for one, plan in zip(about, plans, strict=True):
        with fixed_key():
            (cell,) = exact_of(db, plan.aggregate).tallies
        for number, part in zip(one.numbers, plan.parts, strict=True):
            (tally,) = part.tallies
            found[number.what] = cell[plan.aggregate.tallies.index(tally)]
    return found


def cuts(db: hb.Database, text: str) -> Counter[str]:
    """What would be counted."""
    return Counter(number.cut for one in diagnostics(db.plan(text, epsilon=1)) for number in one.numbers)


# By hand


def people() -> list[dict[str, Any]]:
    """Eight people, each cut off in its own way, or not at all."""
    return [
        *(row(1, ward=ward, cost=50.0, nights=5) for ward in "abc"),  # three groups
        *(row(2, ward="a", cost=1.0, nights=1) for _ in range(4)),  # four rows
        *(row(3, ward="a", cost=100.0, nights=1) for _ in range(4)),  # four rows, and a sum of 400
        row(4, ward="b", cost=-1.0, nights=5),
        row(5, ward="b", cost=100.5, nights=11),
        row(6, ward="b", cost=float("nan"), nights=-1),
        *(row(7, ward=ward, cost=1e6, nights=99) for ward in ("nowhere", None, "A", "a ")),  # in no group that is shown
        row(8, ward="c", cost=100.0, nights=10),  # on the ends
        row(8, ward="b", cost=0.0, nights=0),
        *(row(None, ward=ward, cost=1e6, nights=99) for ward in "abcabc"),  # nobody's
    ]


def test_units_are_counted_by_what_is_cut_off(world: World) -> None:
    db = world.load(people(), limits=Limits(max_groups=2, max_rows=3))
    assert counted(db, WHOLE) == {
        "all units": 8,
        "in more than 2 groups": 1,
        "with more than 3 rows in a group": 2,
        "with a sum beyond 0 … 300 in a group for sum(cost)": 1,
        "with a value below 0 for sum(cost)": 1,
        "with a value above 100 for sum(cost)": 1,
        "with a value below 0 for avg(nights)": 1,
        "with a value above 10 for avg(nights)": 1,
    }


def test_the_ends_of_limits_are_not_cut_off(world: World) -> None:
    db = world.load(people(), limits=Limits(max_groups=3, max_rows=4))
    found = counted(db, WHOLE)
    assert found["in more than 3 groups"] == found["with more than 4 rows in a group"] == 0
    assert found["with a sum beyond 0 … 400 in a group for sum(cost)"] == 0


def test_each_grouping_set_is_bounded_by_itself(world: World) -> None:
    db = world.load(people(), limits=Limits(max_groups=2, max_rows=3))
    assert counted(db, "SELECT ward, urgent, sum(cost) FROM stays GROUP BY ROLLUP (ward, urgent)") == {
        "all units": 8,
        "with a value below 0 for sum(cost)": 1,
        "with a value above 100 for sum(cost)": 2,  # all rows together have a set of their own
        "in more than 2 groups (by ward, urgent)": 1,
        "with a sum beyond 0 … 300 in a group for sum(cost) (by ward, urgent)": 1,
        "in more than 2 groups (by ward)": 1,
        "with a sum beyond 0 … 300 in a group for sum(cost) (by ward)": 1,
        "with a sum beyond 0 … 300 for sum(cost) (all rows together)": 2,
    }


def test_keys_that_nobody_listed(world: World) -> None:
    rows = [row(n, points=point, cost=1.0) for n in range(9) for point in range(n)]
    db = world.load(rows, limits=Limits(max_groups=3, max_rows=1))
    found = counted(db, "SELECT points, count(*) FROM stays GROUP BY points")
    assert found == {"all units": 8, "in more than 3 groups": 5, "with more than 1 row in a group": 0}


def test_different_values_and_rows_that_are_joined(world: World) -> None:
    rows = [row(n, ward="a", points=point) for n in range(6) for point in range(n)]
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=3, max_unit_rows=4))
    found = counted(db, "SELECT count(DISTINCT points) FROM stays")
    assert found == {"all units": 5, "with more than 3 values for count(distinct points)": 2}
    joined = "SELECT count(DISTINCT a.person) FROM stays a JOIN stays b ON a.person = b.person WHERE a.points > 0"
    assert counted(db, joined) == {"all units": 4, "with more than 4 rows before a join": 1}


def test_both_values_of_a_pair_are_looked_at_where_both_are_there(world: World) -> None:
    rows = [row(1, cost=500.0), row(2, cost=500.0, nights=3), row(3, cost=5.0, nights=30), row(4, nights=30)]
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=3))
    found = counted(db, "SELECT corr(cost, nights) FROM stays")
    assert found["with a value above 100 for corr(cost, nights) (first value)"] == 1
    assert found["with a value above 10 for corr(cost, nights) (second value)"] == 1


def test_with_its_own_bounds_for_a_unit_in_a_group(world: World) -> None:
    rows = [row(1, cost=40.0), row(1, cost=20.0), row(2, cost=4.0), row(3, cost=90.0)]
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=3))
    text = "SELECT sum(cost, contribution_bounds_per_group => (0, 50)) AS s FROM stays"
    (number,) = [many for what, many in counted(db, text).items() if "sum beyond 0 … 50" in what]
    assert number == 2
    mean = "SELECT avg(cost, contribution_bounds_per_group => (0, 35)) AS s FROM stays"
    (number,) = [many for what, many in counted(db, mean).items() if "average beyond 0 … 35" in what]
    assert number == 1  # that of the first is 30


# Against the interpreter

TABLES = {"places": list(PUBLIC)}


def meant(plan: Plan, rows: list[dict[str, Any]]) -> dict[Cut, list[int]]:
    """The numbers, from what each unit would add if nothing were cut off. What cannot be is 0."""
    tables: Mapping[str, Any] = {"stays": rows, **TABLES}
    first, *_ = parts = plan.sets or (plan,)
    found: dict[Cut, list[int]] = {cut: [] for cut in Cut}
    found[Cut.NOTHING] = [len({unit for unit, _ in interpreter.relation(first.aggregate.input, tables)})]
    shown: dict[Any, list[Any]] = {}
    for one in parts:
        owned = interpreter.grouped(one.aggregate, tables)
        for cut, numbers in bounding(one, owned).items():
            found[cut] += numbers
        for unit, groups in owned.items():
            shown.setdefault(unit, []).extend(itertools.chain.from_iterable(groups.values()))
    held: list[Any] = [*first.aggregate.tallies, *first.aggregate.histograms]
    clamps = {(one.argument, one.clamp) for one in held if one.clamp is not None}
    for number, part in zip(
        first.question.asked, first.parts, strict=True
    ):  # and those before a product or a logarithm
        clamps |= {(argument, ends) for _, argument, ends in number.function.clamps(number, part)}
    for argument, (low, high) in clamps:
        values = [there(argument, own) for own in shown.values()]
        found[Cut.BELOW].append(sum(any(value < low for value in own) for own in values))
        found[Cut.ABOVE].append(sum(any(value > high for value in own) for own in values))
    return found


def bounding(plan: Plan, owned: Mapping[Any, Mapping[Any, Any]]) -> dict[Cut, list[int]]:
    """Groups, rows, values and sums of one grouping."""
    op = plan.aggregate
    limited = [(one.argument, one.bounds[1]) for one in op.tallies if one.measure is Measure.ROWS]
    limited += [(one.argument, one.most_rows) for one in op.histograms]
    distinct = [one for one in op.tallies if one.measure is Measure.DISTINCT]
    sums = [one for one in op.tallies if one.measure is Measure.TOTAL]

    def many(condition: Callable[[Any], bool]) -> int:
        return sum(any(condition(own) for own in groups.values()) for groups in owned.values())

    return {
        Cut.GROUPS: [sum(len(groups) > op.most_groups for groups in owned.values())],
        Cut.ROWS: [many(lambda own: any(len(there(argument, own)) > most for argument, most in limited))],
        Cut.TOGETHER: [0 if op.together is None else shared_out(op.together, owned)],
        Cut.VALUES: [many(partial(too_many, one)) for one in distinct],
        Cut.SUM: [many(partial(clamped, one)) for one in sums],
    }


def shared_out(both: Together, owned: Mapping[Any, Mapping[Any, Any]]) -> int:
    may = [sum(min(len(own), both.rows) for own in groups.values()) for groups in owned.values()]
    return sum(rows > both.total for rows in may)


def too_many(tally: Tally, own: Any) -> bool:
    return len(wide(tally, own)) > tally.bounds[1]


def clamped(tally: Tally, own: Any) -> bool:
    return bool(wide(tally, own) != interpreter.amount(tally, own))


def there(argument: Any, own: Any) -> list[Any]:
    values = [True if argument is None else interpreter.value(argument, one) for one in own]
    return [one for one in values if one is not None]


def wide(tally: Any, own: Any) -> Any:
    return interpreter.amount(replace(tally, bounds=(-FAR, FAR)), own)


@pytest.mark.parametrize("shard", range(4))
def test_equal_to_the_interpreter_on_random_questions(world: World, shard: int) -> None:
    reached: Counter[str] = Counter()
    for number in range(14):
        rng = Random(f"diagnose {shard} {number}")
        rows = dataset(rng)
        limits = Limits(
            max_groups=rng.choice((1, 2, 3)),
            max_rows=rng.choice((1, 2, 20)),
            max_total_rows=rng.choice((None, 2, 3, 25)),
        )
        db = world.load(rows, limits=limits)
        for text in [asked(rng) for _ in range(4)]:
            try:
                plan = db.plan(text, epsilon=1)
                found = counted(db, text)
            except HubbubError:
                continue
            reached.update(cuts(db, text))
            kinds = [one.cut for about in diagnostics(plan) for one in about.numbers]
            expected = Counter((cut, value) for cut, values in meant(plan, rows).items() for value in values if value)
            nonzero = Counter((cut, value) for cut, value in zip(kinds, found.values(), strict=True) if value)
            assert nonzero == expected, (number, text, found)
    assert {*Cut} - {Cut.JOIN} <= reached.keys()


def test_what_cannot_be_cut_off_is_not_counted(world: World) -> None:
    db = world.load([], limits=Limits(max_groups=5, max_rows=3))
    assert cuts(db, "SELECT ward, count(*) FROM stays GROUP BY ward").keys() == {Cut.NOTHING, Cut.ROWS}
    assert Cut.SUM in cuts(db, "SELECT sum(nights) FROM stays")
    assert Cut.ROWS not in cuts(db, "SELECT sum(nights) FROM stays"), "a sum is clamped as a sum"
    bounded = cuts(db, "SELECT avg(least(greatest(points, 0), 9)) FROM stays")
    assert bounded.keys() == {Cut.NOTHING, Cut.ROWS}
    assert Cut.BELOW not in cuts(db, "SELECT avg(greatest(nights, 2)) FROM stays")
    one_row = "SELECT avg(m) FROM (SELECT person, max(nights) AS m FROM stays GROUP BY person) AS own"
    assert not cuts(db, one_row).keys() & {Cut.ROWS, Cut.SUM, Cut.GROUPS}


# As private answers


def test_every_number_moves_by_one_unit_alone(world: World) -> None:
    db = world.load(people())
    about = diagnostics(db.plan(WHOLE, epsilon=1))
    for plan in together([one.question for one in about], db.policy, epsilon=1):
        assert plan.aggregate.single
        assert {tally.measure for tally in plan.aggregate.tallies} == {Measure.UNITS}
        for measurement in plan.measurements:
            assert measurement.sensitivity.in_norm(Norm.L1) == 1


def seen(db: hb.Database, text: str, seed: int) -> tuple[str, tuple[Any, ...], list[int]]:
    with fixed_key(), replayed(seed) as source:
        try:
            found = db.diagnose(text, epsilon=1)
        except HubbubError as error:
            return f"{type(error).__name__}: {error}", tuple(source.draws), []
    public = [(one.aggregate, one.mechanisms, one.cost) for one in found.plans], [one.what for one in found.rows]
    return "diagnosed", (*public, tuple(source.draws)), [one.units for one in found.rows]


def moved(worlds: list[World], rng: Random, *, replaced: bool = False) -> Iterator[tuple[str, str, list[int]]]:
    """Random questions about neighbours: what differs, the question, and how far each number moved."""
    limits = Limits(max_groups=rng.choice((1, 2, 3)), max_rows=rng.choice((1, 2, 20)))
    rows, seed = dataset(rng), rng.randrange(1 << 30)
    for text in [asked(rng) for _ in range(3)]:
        what, changed = neighbour(rng, rows, replace=replaced)
        one, other = (
            seen(world.load(held, limits=limits), text, seed)
            for world, held in zip(worlds, (rows, changed), strict=True)
        )
        assert one[:2] == other[:2], text
        yield what, text, [abs(a - b) for a, b in zip(one[2], other[2], strict=True)]


@pytest.fixture(params=["pure", "gaussian", "replace"])
def worlds(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[World]]:
    neighbors = Neighbors.REPLACE_ONE if request.param == "replace" else Neighbors.ADD_REMOVE
    delta = Fraction(1, 10**6) if request.param == "gaussian" else Fraction(0)
    budget = hb.Budget(epsilon=Fraction(10**6), delta=delta, neighbors=neighbors)
    made = []
    for side in range(2):
        (tmp_path / str(side)).mkdir()
        made.append(World(tmp_path / str(side), budget=budget))
    yield made
    for one in made:
        one.close()


def test_neighbours_differ_by_one_in_each_number(worlds: list[World]) -> None:
    replaced = worlds[0].budget.neighbors is Neighbors.REPLACE_ONE
    several = 0
    for number in range(12):
        for what, text, steps in moved(worlds, Random(f"replay {number}"), replaced=replaced):
            assert max(steps, default=0) <= (1 if what == "unit" else 0), (what, text, steps)
            several += sum(steps) > 1
    assert several, "one unit may be in several numbers"


def _pairs(self: per_unit.Units) -> Relation:
    """A row for each unit and group: one unit would count once for each of its groups."""
    keys = tuple((f"key {place}", group.expression) for place, group in enumerate(self._groups))
    pairs: Relation = Reduce(input=self._rows, keys=keys, columns=tuple(self._pairs))
    held = tuple((one.name, Column(one.name, one.kind)) for one in self._pairs)
    if self._shown is not None:
        pairs = Project(input=pairs, columns=(("shown", self._shown), *held))
    named = tuple((one.name, one.argument) for one in self._units if one.argument is not None)
    return Project(input=pairs, columns=named)


@pytest.mark.parametrize("planted", [False, True])
def test_planted_pairs_in_the_place_of_units_are_seen(worlds: list[World], *, planted: bool) -> None:
    """Groups, not units, are counted, and believed to be units: replay sees one unit move a number by three."""
    rows = [row(n, ward=ward, cost=50.0) for n in range(5) for ward in "abc"]
    more = [*rows, *(row(77, ward=ward, cost=500.0) for ward in "abc")]
    text = "SELECT ward, sum(cost) FROM stays GROUP BY ward"
    with ExitStack() as faults:
        if planted:
            faults.enter_context(mock.patch.object(per_unit.Units, "relation", property(_pairs)))
            faults.enter_context(mock.patch.object(planning, "one_row_a_unit", return_value=True))
        one, other = (
            seen(world.load(held, limits=Limits(max_groups=3, max_rows=1)), text, 5)
            for world, held in zip(worlds, (rows, more), strict=True)
        )
    assert one[:2] == other[:2]
    assert max(abs(a - b) for a, b in zip(one[2], other[2], strict=True)) == (3 if planted else 1)


def spent(db: hb.Database) -> int:
    return db.ledger.statement("people").spent.loss


def test_it_is_paid_once_before_anything_is_read_and_free_when_asked_again(world: World) -> None:
    db = world.load(people())
    before, entries = spent(db), len(list(db.ledger.entries()))
    found = db.diagnose(WHOLE, epsilon=2)
    paid = spent(db) - before
    assert paid == sum(one.cost.loss for one in found.plans) > 0
    assert len(list(db.ledger.entries())) - entries == 2, "one charge, one answer"
    again = db.diagnose(WHOLE, epsilon=2)
    assert again == found
    served = db.diagnose(WHOLE, epsilon=1)
    assert (served.rows, served.entry, served.epsilon) == (found.rows, found.entry, Fraction(2))
    assert spent(db) - before == paid
    assert db.sql(WHOLE, epsilon=2).entry != found.entry, "the question itself is another one"

    def broken(*given: Any) -> Any:
        raise EngineError

    with mock.patch.object(world.engine, "_find_rows", broken), pytest.raises(EngineError):
        db.diagnose("SELECT sum(cost) FROM stays", epsilon=2)
    assert spent(db) - before > paid, "the charge stands"


def test_what_is_refused_is_not_paid(world: World) -> None:
    db = world.load(people())
    before = spent(db)
    with pytest.raises(NotAllowed, match="Ask it with db"):
        db.diagnose("SELECT count(DISTINCT person) FROM stays", epsilon=1)
    with pytest.raises(QueryError):
        db.diagnose("SELECT nothing FROM stays", epsilon=1)
    with pytest.raises(QueryError):
        db.diagnose("SELECT cost FROM stays", epsilon=1)
    with pytest.raises(ParameterError, match="epsilon"):
        db.diagnose(WHOLE)
    with pytest.raises(MissingBounds):
        db.diagnose("SELECT sum(points) FROM stays", epsilon=1)
    with pytest.raises(BudgetExceeded):
        db.diagnose(WHOLE, epsilon=2 * 10**6)
    with mock.patch.object(per_unit, "MOST_LISTED", 4), pytest.raises(TooHeavy, match="List fewer"):
        db.diagnose(WHOLE, epsilon=1)
    with mock.patch.object(per_unit, "MOST_LISTED", 5):
        diagnostics(db.plan(WHOLE, epsilon=1))
    assert spent(db) == before


def test_a_public_table_that_has_changed_is_noticed(world: World) -> None:
    text = "SELECT floor, count(*) FROM stays JOIN places ON ward = id GROUP BY floor"
    db = world.load(people(), limits=Limits(max_groups=2, max_rows=3), version=900_001)
    first = db.diagnose(text, epsilon=1)
    assert first.rows[1].cut is Cut.GROUPS
    kinds = [(column.name, column.kind) for column in db.policy.tables["places"].columns]
    fill(world.engine.connection, "places", kinds, [one for one in PUBLIC if one["floor"] == 1])
    db = world.load(people(), limits=Limits(max_groups=2, max_rows=3), version=900_001)
    with pytest.raises(PolicyError, match="new version"):
        db.diagnose(text, epsilon=1)


def test_what_is_lacking_is_bought_with_a_share(world: World) -> None:
    rows = [row(n, ward="abc"[n % 3], points=n % 50) for n in range(400) for _ in range(2)]
    db = world.load(rows, limits=Limits(), buys=True)
    text = "SELECT ward, sum(points) AS s FROM stays GROUP BY ward"
    before = spent(db)
    found = db.diagnose(text, epsilon=100)
    assert found.epsilon < 100, "bounds and limits have the rest"
    assert {one.cut for one in found.rows} == {Cut.NOTHING, Cut.GROUPS, Cut.SUM, Cut.BELOW, Cut.ABOVE}
    paid = spent(db)
    assert paid > before
    assert db.diagnose(text, epsilon=100).rows == found.rows
    assert spent(db) == paid
    with pytest.raises(NotAllowed):
        db.diagnose("SELECT count(DISTINCT person) FROM stays", epsilon=1)


def test_frames_ctes_and_options(world: World) -> None:
    db = world.load(people())
    asking = db.table("stays").where(hb.col("cost") > 0).group_by("ward").agg(n=hb.count())
    found = asking.diagnose(epsilon=3)
    assert found.entry == db.diagnose(asking.sql, epsilon=3).entry
    assert [one.cut for one in found.rows] == [Cut.NOTHING, Cut.GROUPS, Cut.ROWS]
    said = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 3, max_groups_contributed = 1) ward, count(*) FROM stays"
    assert db.diagnose(f"{said} GROUP BY ward").rows[1].what == "in more than 1 group"
    own = "WITH dear AS (SELECT * FROM stays WHERE cost > 90) SELECT count(*) FROM dear"
    assert counted(db, own) == {"all units": 4, "with more than 3 rows": 2}


# What is shown


@pytest.fixture
def shown(world: World) -> Diagnosis:
    rows = [row(n, ward="a", cost=50.0) for n in range(1000)]
    rows += [row(n, ward="b", cost=500.0 if n < 50 else 5.0) for n in range(200)]
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=1))
    with replayed(3):
        return db.diagnose("SELECT ward, sum(cost) AS s FROM stays GROUP BY ward", epsilon=4)


def test_numbers_have_error_bars_shares_and_remedies(shown: Diagnosis) -> None:
    by = {one.cut: one for one in shown.rows}
    everybody, groups, above = by[Cut.NOTHING], by[Cut.GROUPS], by[Cut.ABOVE]
    for one, exact in ((everybody, 1000), (groups, 200), (above, 50)):
        assert one.low <= exact <= one.high
        assert one.low < one.units < one.high < one.low + 40
    assert groups.share == pytest.approx(groups.units / everybody.units)
    assert groups.share_low is not None
    assert groups.share_high is not None
    assert 0.17 < groups.share_low < 0.2 < groups.share_high < 0.23
    assert (groups.share_low, groups.share_high) != pytest.approx((groups.low / 1000, groups.high / 1000), abs=1e-6)
    assert "max_groups" in groups.remedy
    assert "bounds" in above.remedy
    assert by[Cut.BELOW].remedy.startswith("Within the noise, none")
    assert (everybody.remedy, everybody.share) == ("", 1.0)


def test_a_table_html_and_dictionaries(shown: Diagnosis) -> None:
    header, rule, first, second, *rest = repr(shown).splitlines()
    assert header.split() == ["units", "number", "share"]
    assert set(rule) == {"─", " "}
    assert first.startswith("all units")
    assert "%" not in first
    assert re.fullmatch(r"in more than 1 group +\d+ ± \d +\d+(\.\d)?% ± 0\.\d+%", second)
    assert any(line.startswith("in more than 1 group: They count in 1 group each") for line in rest)
    assert rest[-1] == f"± 95% · price in all ε = 4, δ = 1e-08 · entry {shown.entry} of account 'people' · fresh"
    assert shown._repr_html_().count("<tr>") == 1 + len(shown)
    told = shown.to_dict()
    assert (told["epsilon"], told["account"], told["confidence"]) == ("4", "people", 0.95)
    assert told["rows"] == shown.to_dicts()
    assert told["rows"][1]["cut"] == "groups"
    assert told["rows"][1]["units_low"] < told["rows"][1]["units"] < told["rows"][1]["units_high"]


def test_too_few_units_have_no_share(world: World) -> None:
    db = world.load([row(1, ward="a", cost=50.0)])
    found = db.diagnose(WHOLE, epsilon=Fraction(1, 100))
    assert {one.share for one in found.rows[1:]} == {None}
    assert "–" in repr(found)


def test_words_of_a_question_cannot_act(world: World) -> None:
    db = world.load(people())
    text = "SELECT sum(CASE WHEN ward = '<img src=x>\u202e' THEN cost ELSE cost END) FROM stays"
    found = db.diagnose(text, epsilon=1)
    assert "\u202e" not in repr(found)
    assert "<img" in repr(found)
    assert "<img" not in found._repr_html_()
    assert len(set(itertools.chain.from_iterable(one.keys() for one in found.to_dicts()))) == 9
