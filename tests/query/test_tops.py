"""Top values and histograms: what is counted, what is shown, and what one unit can do to them."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub.audit import lower_bound
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.cli.query import as_dict
from hubbub.errors import MisfitError, NotAllowed, ParameterError, PolicyError, QueryError, TooHeavy
from hubbub.mechanisms import Gaussian, Geometric, PerGroup, TopK
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Type, of
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.aggregates.histogram import BinCounts
from hubbub.query.aggregates.top_values import TopChoice
from hubbub.query.answer import stored
from hubbub.query.answer.explain import explain_columns
from hubbub.query.answer.stored import combine
from hubbub.query.expression import Column
from hubbub.query.ops import ExactCounts, Histogram
from hubbub.query.plan.choice import Choice, HistogramStatistic
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.plan.statistic import Reach
from tests.query import interpreter
from tests.query.asking import policy, read
from tests.query.further import exact_slots
from tests.query.inside import WARDS, Handed, World, ask, faults, fixed_key, row
from tests.query.test_replay import tallied

TOPS = "SELECT approx_top_k(ward, 2) AS top FROM stays"
WARDED = "SELECT ward, histogram(nights, [2, 5]) AS h FROM stays GROUP BY ward"
LISTED = "SELECT histogram(ward) AS h FROM stays"
BOTH = "SELECT urgent, approx_top_k(ward, 3) AS top, histogram(ward) AS h FROM stays GROUP BY urgent"
LIMITS = Limits(max_groups=2, max_rows=3)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def steps(top: int, rows: int) -> Histogram:
    ends = Fraction(0), Fraction(top)
    argument = Column("x", of(Type.INTEGER))
    return Histogram(argument=argument, clamp=ends, origin=Fraction(0), grid=Fraction(1), most_rows=rows)


def people() -> list[dict[str, Any]]:
    return [row(n, ward="abc"[n % 3 if n % 5 else 0], cost=n / 3, nights=n % 12, urgent=n % 4 == 0) for n in range(40)]


def counted(db: hb.Database, planned: Plan) -> Any:
    with fixed_key():
        return exact_of(db, planned.aggregate)


def exactly(db: hb.Database, text: str) -> list[list[Any]]:
    """The cells of the answer without noise; a top-k takes the best."""
    planned = db.plan(text, epsilon=1)
    found = counted(db, planned)
    noisy = exact_slots(planned, found)
    for at, slot in enumerate(planned.slots):
        if slot is not None and isinstance(slot.take, Choice):
            value, choice = slot.take(found), slot.take
            best = [np.argsort(-one, kind="stable")[: choice.numbers].tolist() for one in value]
            noisy[at] = [step for one in best for step in one]
    return [[one.value for one in cell] for cell in combine(planned, noisy)]


# What is counted


@pytest.mark.parametrize("column", ["cost", "nights", "CAST(nights AS DOUBLE) / 4", "points"])
@pytest.mark.parametrize("edges", [[2, 5], [0], [-1.5, 0, 0.25, 1, 1e6], [0.1, 0.2, 5.5, 11]])
def test_bins_are_those_of_duckdb(world: World, column: str, edges: list[float]) -> None:
    """Up to the edge and including it; above the last one there is one more. Missing values are in none."""
    values = [0, 1, 2, 3, 5, 6, None, 11, -3, 5]
    rows = [row(n, cost=None if one is None else one / 10, nights=one, points=one) for n, one in enumerate(values)]
    db = world.load(rows, limits=LIMITS)
    (((ours,),),) = [exactly(db, f"SELECT histogram({column}, {edges}) FROM stays")]
    sql = f"SELECT histogram(CAST({column} AS DOUBLE), CAST({edges} AS DOUBLE[])) FROM stays"
    (theirs,) = world.engine.connection.execute(sql).fetchone()
    assert ours == {edge: theirs.get(edge, 0) for edge in [*edges, math.inf]}


def test_numbers_without_noise_are_the_truth(world: World) -> None:
    rows = [row(n, ward=ward, urgent=n > 2, nights=n) for n, ward in enumerate(["a", "b", "b", "c", "c", "c", None])]
    db = world.load(rows, limits=LIMITS)
    text = "SELECT approx_top_k(ward, 2), histogram(ward), APPROX_TOP_COUNT(ward, 1), histogram(nights, [3]) FROM stays"
    ((top, all_of_them, first, nights),) = exactly(db, text)
    assert top == ["c", "b"]
    assert all_of_them == dict(zip(WARDS, (1, 2, 3, 0, 0), strict=True))
    assert (first, nights) == (["c"], {3: 4, math.inf: 3})
    ((filtered, best),) = exactly(
        db,
        "SELECT histogram(ward) FILTER (WHERE NOT urgent), approx_top_k(ward, 1) FILTER (WHERE NOT urgent) FROM stays",
    )
    assert list(filtered.values()) == [1, 2, 0, 0, 0]
    assert best == ["b"]
    assert exactly(db, "SELECT histogram(urgent) FROM stays WHERE ward IN ('a', 'c')") == [[{False: 1, True: 3}]]


def test_a_unit_has_few_rows_in_it(world: World) -> None:
    rows = [*(row(1, ward="a", nights=n) for n in range(50)), row(2, ward="a", nights=1), row(2, ward="b", nights=1)]
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=3))
    ((found,),) = exactly(db, "SELECT histogram(nights, [10, 20, 30]) FROM stays")
    assert sum(found.values()) == 3 + 2
    cells = exactly(db, WARDED)
    assert sum(sum(one.values()) for (one,) in cells) == 3 + 1, "in one group of its own"


def test_the_interpreter_agrees(world: World) -> None:
    rows = [*people(), row(None, ward="a", nights=1), row(7, ward=None, nights=None, cost=None)]
    db = world.load(rows, limits=Limits(max_groups=5, max_rows=50))
    for text in (WARDED, LISTED, BOTH, "SELECT histogram(cost / 2, [1, 2.5, 4]) FROM stays WHERE nights > 1"):
        op = db.plan(text, epsilon=1).aggregate
        meant = interpreter.histograms(op, {"stays": rows}, lambda unit, own: own)
        seen = counted(db, db.plan(text, epsilon=1)).histograms
        assert [[[step for step, many in one.pairs() for _ in range(many)] for one in cells] for cells in seen] == meant


def test_what_is_shared_is_counted_once(world: World) -> None:
    db = world.load([], limits=LIMITS)
    planned = db.plan(
        "SELECT mode(ward), approx_top_k(ward, 2), approx_top_k(ward, 3), histogram(ward) FROM stays", epsilon=1
    )
    assert len(planned.aggregate.histograms) == 1
    assert len(planned.mechanisms) == 4


# What it costs


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_all_bins_move_by_a_units_rows(neighbors: Neighbors) -> None:
    groups = 4 if neighbors is Neighbors.REPLACE_ONE else 2
    reach = Reach(groups=2, neighbors=neighbors)
    found = BinCounts(histogram=steps(9, 3), column=0, reach=reach).sensitivity
    assert found.in_norm(Norm.L1) == groups * 3
    assert found.in_norm(Norm.L2) == groups * 9
    assert (found.l0, found.linf) == (groups * 3, Fraction(3))
    narrow = BinCounts(histogram=steps(1, 3), column=0, reach=reach)
    assert narrow.sensitivity.l0 == 2 * groups


def test_a_histogram_has_one_vector_of_noise() -> None:
    asked = read("select urgent, histogram(age, [20, 40]) from stays group by urgent")
    pure = plan(asked, policy(), epsilon=1)
    assert pure.mechanisms == (Geometric(epsilon=Fraction(1), sensitivity=3 * 5),)
    assert pure.cost.loss == plan(read("select count(*) from stays"), policy(), epsilon=1).cost.loss
    account = policy(
        budget=Budget(epsilon=Fraction(4), delta=Fraction(1, 10**6)), limits=Limits(max_groups=3, max_rows=20)
    )
    (gaussian,) = plan(asked, account, epsilon=1, ways=(("gaussian", Fraction(1)),)).mechanisms
    assert isinstance(gaussian, Gaussian)
    assert gaussian.sensitivity_squared == 3 * 20**2


def test_the_peels_of_a_top_k_share_its_price() -> None:
    asked = read("select urgent, approx_top_k(ward, 3) from stays group by urgent")
    (pure,) = plan(asked, policy(), epsilon=1).mechanisms
    assert isinstance(pure, PerGroup)
    assert pure.groups == 3
    assert pure.mechanism == TopK(epsilon=Fraction(1, 3), sensitivity=Fraction(5), monotone=True, k=3)
    assert pure.event.epsilon == 1
    reach = Reach(groups=3, neighbors=pure.needs.neighbors)
    choosing = TopChoice(histogram=steps(2, 5), column=0, reach=reach, best=3)
    spent = choosing.calibrate_zcdp(Fraction(1, 10)).event.rho
    assert spent is not None
    assert Fraction(9, 100) < spent <= Fraction(1, 10)


def test_choices_know_their_size() -> None:
    reach = Reach(groups=1, neighbors=Neighbors.ADD_REMOVE)
    top = TopChoice(histogram=steps(3, 2), column=0, reach=reach, best=2)
    assert top.numbers == 2
    held = ExactCounts(cells=(), tallies=[], histograms=((StepCounts.of([(1, 4)]), StepCounts.of([])),))
    assert [one.tolist() for one in top(held)] == [[0, 4, 0, 0], [0, 0, 0, 0]]
    counts = BinCounts(histogram=steps(3, 2), column=0, reach=reach)
    assert counts.numbers == 4
    held = ExactCounts(cells=(), tallies=[], histograms=((StepCounts.of([(1, 4)]), StepCounts.of([(3, 2)])),))
    assert counts(held).tolist() == [0, 4, 0, 0, 0, 0, 0, 2]


# What is shown


def test_cells_are_lists_and_mappings(world: World) -> None:
    db = world.load(people(), limits=LIMITS)
    answer = db.sql(BOTH, epsilon=6)
    for one in answer.to_dicts():
        assert len(one["top"]) == len(set(one["top"])) == 3
        assert set(one["top"]) <= set(WARDS)
        assert list(one["h"]) == list(WARDS) == list(one["h_low"])
        margin = db.explain(BOTH, epsilon=6).to_dict()["columns"][1]["margin"]
        for ward in WARDS:
            low, count, high = (one[name][ward] for name in ("h_low", "h", "h_high"))
            assert low == max(0, count - margin)
            assert high == count + margin or (count == 0 and high < margin)
    assert "top_low" not in answer.to_dicts()[0]
    again = db.sql(BOTH, epsilon=3)
    assert (again.rows, again.lows, again.entry) == (answer.rows, answer.lows, answer.entry)
    shown = str(answer)
    assert f"a: {answer.rows[0][2]['a']:,} ± {margin:g}" in shown
    assert "\x1b" not in shown
    assert "<img" not in answer._repr_html_()
    with pytest.raises(ParameterError, match="there is none"):
        db.sql("SELECT histogram(ward) AS h FROM stays", epsilon=1).plot()


def test_beside_keys_that_are_selected_and_in_several_groupings(tmp_path: Path) -> None:
    world = World(tmp_path, budget=Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**3)))
    rows = [row(n, ward="ab"[n % 2], points=n % 3, nights=n % 12) for n in range(900)]
    db = world.load([*rows, row(999, ward="a", points=777, nights=1)], limits=LIMITS)
    found = db.sql(
        "SELECT points, histogram(ward) AS h, approx_top_k(ward, 1) AS t FROM stays GROUP BY points", epsilon=9
    )
    assert [one[0] for one in found.rows] == [0, 1, 2]
    assert all(abs(one[1]["a"] - 150) < 60 and one[2][0] in {"a", "b"} for one in found.rows)
    sets = db.sql("SELECT ward, histogram(nights, [5]) AS h FROM stays GROUP BY ROLLUP (ward)", epsilon=9)
    assert [one[0] for one in sets.rows] == [*WARDS, None]
    assert abs(sets.rows[-1][1][5] - 450) < 60
    nobody = world.load([], limits=LIMITS)
    assert nobody.sql("SELECT points, histogram(ward) AS h FROM stays GROUP BY points", epsilon=1).rows == ()
    world.close()


def test_as_json(world: World) -> None:
    days = (
        "SELECT histogram(day) AS d, histogram(nights, [1, 2.5]) AS n, histogram(urgent) AS u FROM stays "
        "WHERE day IN (DATE '2024-01-01')"
    )
    told = json.loads(json.dumps(as_dict(world.load(people()).sql(days, epsilon=1)), allow_nan=False))
    assert [list(one) for one in told["rows"][0]] == [["2024-01-01"], ["1", "2.5", "inf"], ["False", "True"]]
    assert [list(one) for one in told["lows"][0]] == [list(one) for one in told["rows"][0]]


def test_as_frames(world: World) -> None:
    answer = world.load(people(), limits=LIMITS).sql(
        "SELECT urgent, approx_top_k(ward, 2) AS t, histogram(ward) AS h, histogram(nights, [3]) AS e "
        "FROM stays GROUP BY urgent",
        epsilon=4,
    )
    pyarrow = pytest.importorskip("pyarrow")
    table = answer.to_arrow()
    assert table.schema.field("t").type == pyarrow.list_(pyarrow.string())
    assert table.schema.field("h_low").type == pyarrow.map_(pyarrow.string(), pyarrow.int64())
    assert dict(table.column("e").to_pylist()[0]) == answer.rows[0][3]
    polars = pytest.importorskip("polars")
    frame = answer.to_polars()
    assert frame.schema["t"] == polars.List(polars.String)
    assert frame["h"].to_list()[0][0] == {"key": "a", "value": answer.rows[0][2]["a"]}
    pytest.importorskip("pandas")
    assert answer.to_pandas()["e"].tolist() == [row[3] for row in answer.rows]


def test_explanations() -> None:
    asked = plan(read("select approx_top_k(ward, 2), histogram(age, [20, 40]) from stays"), policy(), epsilon=2)
    top, bins = explain_columns(asked)
    assert top["sentence"].startswith(
        f"2 of 3 values, each with at most {top['rank_margin']:,} rows less than any that is left"
    )
    assert (bins["bins"], bins["margin"]) == (3, asked.mechanisms[1].error(beta=0.05))
    assert bins["sentence"] == f"3 bins, each ± {bins['margin']:.0f} (95%), Geometric"


def test_a_stored_answer_is_about_its_values() -> None:
    """Values from a public table may change; what was drawn is a place among them."""
    planned = plan(read("select approx_top_k(ward, 2) from stays"), policy(), epsilon=1)
    kept = stored.write_answer(planned, stored.DrawnAnswer([[2, 0]]))
    assert stored.read(kept, planned)[1][0].noisy == [[2, 0]]
    (asked,) = planned.question.asked
    other = replace(planned, question=replace(planned.question, asked=(replace(asked, values=("b", "a", "c")),)))
    with pytest.raises(PolicyError):
        stored.read(kept, other)


def test_from_python(world: World) -> None:
    db = world.load(people(), limits=LIMITS)
    asking = (
        db.table("stays")
        .group_by("urgent")
        .agg(t=hb.top("ward", 2), h=hb.histogram("ward"), e=hb.histogram(hb.col("nights") + 1, [-1, 2.5]))
    )
    assert asking.sql == (
        "SELECT urgent AS urgent, approx_top_k(ward, 2) AS t, histogram(ward) AS h, "
        "histogram((nights + 1), [(-1), 2.5]) AS e FROM stays GROUP BY urgent"
    )
    assert list(asking.answer(epsilon=1).to_dicts()[0]["e"]) == [-1, 2.5, math.inf]
    bounded = db.table("stays").agg(
        n=hb.count(most=2),
        v=hb.count("cost", most=1),
        s=hb.sum("cost", per_group=(-1, 5)),
        m=hb.mean("cost", per_row=(0, 2.5)),
    )
    assert bounded.sql == (
        "SELECT count(*, contribution_bounds_per_group => (0, 2)) AS n, "
        "count(cost, contribution_bounds_per_group => (0, 1)) AS v, "
        "sum(cost, contribution_bounds_per_group => ((-1), 5)) AS s, "
        "avg(cost, contribution_bounds_per_row => (0, 2.5)) AS m FROM stays"
    )
    assert len(bounded.answer(epsilon=1)) == 1
    short: Any = (1,)
    wrong: list[Any] = [
        lambda: hb.top("ward", 0),
        lambda: hb.top("ward", True),
        lambda: hb.histogram("cost", []),
        lambda: hb.histogram("cost", [math.inf]),
        lambda: hb.count(most=0),
        lambda: hb.sum("cost", per_group=(1, math.nan)),
        lambda: hb.sum("cost", per_row=short),
    ]
    for one in wrong:
        with pytest.raises(ParameterError):
            one()


# What is refused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT histogram(ward) + 1 FROM stays", "stand alone"),
        ("SELECT count(*) FROM stays HAVING approx_top_k(ward, 1) = 'a'", "stand alone"),
        ("SELECT histogram(ward) AS h FROM stays ORDER BY h", "stand alone"),
        ("SELECT approx_top_k(ward, 6) FROM stays", "There are 5 values, and 6 are asked for"),
        ("SELECT approx_top_k(ward, 0) FROM stays", "There are 5 values, and 0 are asked for"),
        ("SELECT approx_top_k(ward, 1.5) FROM stays", "a whole number"),
        ("SELECT approx_top_k(ward, -1) FROM stays", "a whole number"),
        ("SELECT approx_top_k(ward, nights) FROM stays", "a whole number"),
        ("SELECT approx_top_k(cost, 2) FROM stays", "can be listed"),
        ("SELECT approx_top_k(points, 2) FROM stays", "not public"),
        ("SELECT histogram(cost) FROM stays", "can be listed"),
        ("SELECT histogram(ward, [1]) FROM stays", "of numbers"),
        ("SELECT histogram(cost, 3) FROM stays", "a list"),
        ("SELECT histogram(cost, []) FROM stays", "a list"),
        ("SELECT histogram(cost, [1, nights]) FROM stays", "a list"),
        ("SELECT histogram(cost, [2, 1]) FROM stays", "ascend"),
        ("SELECT histogram(cost, [1, 1]) FROM stays", "ascend"),
        ("SELECT histogram(cost, [1, 1.0000000000000000001]) FROM stays", "ascend"),
        (f"SELECT histogram(cost, {list(range(256))}) FROM stays", "1 to 255"),
        ("SELECT histogram(DISTINCT ward) FROM stays", "in this form"),
        ("SELECT histogram(ward) OVER () FROM stays", "Windows"),
    ],
)
def test_what_is_refused(world: World, text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words) as caught:
        world.load([]).plan(text, epsilon=1)
    assert "^" in caught.value.message


def test_no_more_bins_than_are_handed_over() -> None:
    many = f"select age, points % 100, histogram(cost, {list(range(255))}) from stays group by 1, 2"
    with pytest.raises(TooHeavy, match="bins over all groups"):
        plan(read(many), policy(limits=Limits(max_groups=3, max_rows=5, max_cells=10**6)), epsilon=1)


def test_within_a_unit_they_are_refused(world: World) -> None:
    with pytest.raises(NotAllowed):
        world.load([]).plan(
            "SELECT count(*) FROM (SELECT person, histogram(ward) FROM stays GROUP BY person)", epsilon=1
        )


# Replay and audits


def examined(folder: Path, budget: Budget | None = None) -> list[str]:
    for side in "ab":
        (folder / side).mkdir(exist_ok=True)
    one, two = (World(folder / side, budget=budget) for side in "ab")
    rows = people()
    worst = [row(99, ward=ward, nights=n, urgent=n % 2 == 0) for ward in WARDS for n in range(9)]
    db = one.load(rows, limits=LIMITS)
    bases = {text: ask(db, text) for text in (TOPS, WARDED, LISTED, BOTH)}
    found = []
    for what, changed in (("unit", [*rows, *worst]), ("order", Random("o").sample(rows, len(rows)))):
        other = two.load(changed, limits=LIMITS)
        for text, base in bases.items():
            for a, b in ((base, ask(other, text)), (tallied(db, base), tallied(other, base))):
                found += [f"{what}: {text}: {fault}" for fault in faults(a, b, same=what != "unit")]
    one.close()
    two.close()
    return found


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_replay_finds_nothing(tmp_path: Path, delta: Fraction) -> None:
    assert examined(tmp_path, Budget(epsilon=Fraction(10**6), delta=delta)) == []


def _one_row() -> Any:
    """The sensitivity of one row, where a unit has three."""
    return mock.patch.object(HistogramStatistic, "rows", property(lambda self: 1))


def test_replay_catches_a_histogram_for_one_row(tmp_path: Path) -> None:
    with _one_row():
        found = examined(tmp_path)
    assert any("3 steps in L1, and 1 was proven" in one and LISTED in one for one in found), found


def test_the_gate_catches_too_little_noise(world: World) -> None:
    db = world.load(people(), limits=LIMITS)
    for text in (LISTED, TOPS):
        honest = db.plan(text, epsilon=1)
        with _one_row():
            cheap = db.plan(text, epsilon=1)
        pairs = zip(honest.measurements, cheap.mechanisms, strict=True)
        made = tuple(replace(one, mechanism=mechanism) for one, mechanism in pairs)
        with pytest.raises(MisfitError):
            Handed(db, replace(honest, measurements=made)).draw(counted(db, honest))


def audited(world: World, text: str, *, draws: int) -> Any:
    others = [row(person, ward=ward, nights=0) for person in range(4) for ward in WARDS[:2]]
    worst = [row(99, ward="a", nights=10) for _ in range(9)]
    seen = []
    for held in ([*others, *worst], others):
        db = world.load(held, limits=Limits(max_groups=1, max_rows=3))
        planned = db.plan(text, epsilon=1)
        seen.append(counted(db, planned))
    return lower_bound(Handed(db, planned), seen[0], seen[1], samples=draws)


@pytest.mark.parametrize("text", [TOPS, LISTED])
def test_audits_find_nothing(world: World, text: str) -> None:
    """At ε = 1; a false alarm has probability 1e-6."""
    found = audited(world, text, draws=3000)
    assert not found.accuses(1.0), found


def test_an_audit_catches_a_histogram_for_one_row(world: World) -> None:
    """It loses 3 instead of 1."""
    with _one_row():
        found = audited(world, LISTED, draws=4000)
    assert found.accuses(1.0), found


def test_duckdb_is_the_one_that_is_followed() -> None:
    """Should its bins change, this says so."""
    values = "(VALUES (0), (1), (2), (4), (NULL)) AS t(x)"
    (found,) = duckdb.connect().execute(
        f"SELECT histogram(CAST(x AS DOUBLE), [1.0::DOUBLE, 2]) FROM {values}"
    ).fetchone() or ({},)
    assert found == {1.0: 2, 2.0: 1, math.inf: 1}
