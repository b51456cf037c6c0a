"""Bugs that were found in others, each asked of us. Where the engine itself would fall for one, a line shows that."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.cli.query import _print_csv
from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.errors import (
    EngineError,
    MayOverflow,
    MissingBounds,
    MissingKeys,
    NotAllowed,
    PolicyError,
    QueryError,
    TypeMisfit,
)
from hubbub.policy.kinds import Type, of
from hubbub.policy.tables import Limits, Table, TableColumn, TableSource
from hubbub.session.database import Database
from hubbub.testing.replay import replayed
from tests.query.inside import WARDS, Handed, World, ask, exact, faults, fixed_key, row

NAN, INF, LEAST, MOST = float("nan"), float("inf"), -(1 << 63), (1 << 63) - 1
Row = dict[str, Any]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, World]]:
    made = World(tmp_path_factory.mktemp("one")), World(tmp_path_factory.mktemp("other"))
    yield made
    for world in made:
        world.close()


@pytest.fixture
def world(sides: tuple[World, World]) -> World:
    return sides[0]


def people(many: int = 6) -> list[Row]:
    return [
        row(person, ward=WARDS[person % 3], cost=float(10 + person), nights=person % 4, points=person, urgent=True)
        for person in range(many)
    ]


def difference(sides: tuple[World, World], text: str, extra: list[Row], **options: Any) -> list[str]:
    """What shows that these rows of one more person are there, beyond what may."""
    one, other = (side.load(rows, **options) for side, rows in zip(sides, (people(), people() + extra), strict=True))
    seen = ask(one, text)
    assert seen.outcome == "answered", seen.outcome
    return faults(seen, ask(other, text), same=False)


def raw(text: str) -> Any:
    """What the engine itself answers."""
    with duckdb.connect() as connection:
        return connection.execute(text).fetchall()[0][0]


def raises(expression: str, **values: Any) -> bool:
    """Whether the engine itself raises for such a row."""
    types = {"points": "BIGINT", "nights": "INTEGER", "cost": "DOUBLE", "ward": "VARCHAR"}
    columns = ", ".join(f"CAST(${name} AS {types[name]}) AS {name}" for name in values)
    connection = duckdb.connect(config={"ieee_floating_point_ops": "false"})
    try:
        connection.execute(f"SELECT {expression} FROM (SELECT {columns})", values).fetchall()
    except duckdb.Error:
        return True
    finally:
        connection.close()
    return False


# Errors that tell


@pytest.mark.parametrize(
    ("expression", "poison"),
    [
        ("abs(points)", {"points": LEAST}),
        ("-points", {"points": LEAST}),
        ("points + 1", {"points": MOST}),
        ("points - 1", {"points": LEAST}),
        ("points * points", {"points": MOST}),
        ("points // -1", {"points": LEAST}),
        ("nights // -1", {"nights": -(1 << 31)}),
        ("CAST(cost AS BIGINT)", {"cost": 1e308}),
        ("CAST(cost AS BIGINT)", {"cost": NAN}),
        ("sqrt(cost)", {"cost": -1.0}),
        ("ln(cost)", {"cost": 0.0}),
        ("ln(cost)", {"cost": -1.0}),
    ],
)
def test_error_oracle(sides: tuple[World, World], expression: str, poison: dict[str, Any]) -> None:
    """Six such questions told one person's age in three systems."""
    assert raises(expression, **poison)
    assert not raises(expression, **dict.fromkeys(poison, 1))
    for text in (
        f"SELECT count(*) FROM stays WHERE {expression} > 0",
        f"SELECT ward, sum(least(greatest({expression}, 0), 5)) FROM stays GROUP BY ward",
        f"SELECT ward, avg(CASE WHEN {expression} > 3 THEN 1 ELSE 0 END) FROM stays GROUP BY ward",
    ):
        assert difference(sides, text, [row(99, ward="a", **poison)]) == []


@pytest.mark.parametrize(
    "expression",
    [
        "1 / nights",
        "points / nights",
        "points // nights",
        "points % nights",
        "1 / cost",
        "cost / 0",
        "points % -1",
        "nights % -1",
    ],
)
def test_division_by_zero_and_by_minus_one(sides: tuple[World, World], expression: str) -> None:
    text = f"SELECT count(*) FROM stays WHERE {expression} > 0"
    extra = [row(99, nights=nights, points=points, cost=0.0) for nights in (0, -1) for points in (5, LEAST)]
    assert difference(sides, text, extra) == []


@pytest.mark.parametrize("expression", ["ward = 1", "ward > 5", "CAST(ward AS BIGINT) = 1", "ward + 1 = 2"])
def test_implicit_casts_of_text(world: World, expression: str) -> None:
    """The engine casts each row's text to a number, and raises at the first that is none."""
    assert raises(expression, ward="a")
    db = world.load(people())
    with pytest.raises((TypeMisfit, NotAllowed)):
        db.sql(f"SELECT count(*) FROM stays WHERE {expression}", epsilon=1)


@pytest.mark.parametrize("call", ["error('x')", "raise_error('x')", "assert_true(false)", "1 / (SELECT 0)"])
def test_errors_on_demand(world: World, call: str) -> None:
    with pytest.raises(QueryError):
        world.load(people()).sql(f"SELECT count(*) FROM stays WHERE person = 3 AND {call} IS NULL", epsilon=1)


@pytest.mark.parametrize(
    "condition",
    [
        "points <> 0 AND 10 / points > 0",
        "10 / points > 0 AND points <> 0",
        f"points <> {LEAST + 1} AND abs(points - 1) > 0",
        "cost > 0 AND ln(cost) > 0",
        "ln(cost) > 0 AND cost > 0",
        "CASE WHEN cost >= 0 THEN sqrt(cost) ELSE 0 END > 1",
    ],
)
def test_guards_that_an_optimiser_reorders(sides: tuple[World, World], condition: str) -> None:
    """Each part is total by itself, so that no order matters."""
    extra = [row(99, points=value, cost=cost) for value in (0, LEAST, LEAST + 1) for cost in (-1.0, 0.0, NAN)]
    assert difference(sides, f"SELECT count(*) FROM stays WHERE {condition}", extra) == []


def test_overflow_in_sums(sides: tuple[World, World]) -> None:
    """Sums beyond 64 bits are exact, and noise is drawn for them as for small ones; what is too much is refused."""
    most, limits = 1 << 58, Limits(max_rows=3)
    text = f"SELECT sum(least(greatest(points, 0), {most})) FROM stays"
    rows = [row(person, points=MOST) for person in range(12) for _ in range(3)]
    one = sides[0].load(rows, limits=limits)
    other = sides[1].load([*rows, *(row(99, points=MOST) for _ in range(9))], limits=limits)
    assert exact(one, text) == [(36 * most,)]
    assert exact(other, text) == [(39 * most,)]
    assert 36 * most > 1 << 63
    assert faults(ask(one, text), ask(other, text)) == []
    few, more = sides[0].load(rows[:15], limits=limits), sides[1].load(rows[:18], limits=limits)
    assert exact(few, text)[0][0] < 1 << 62 < exact(more, text)[0][0], "other arrays, the same draws"
    assert faults(ask(few, text), ask(more, text)) == []
    with pytest.raises(MayOverflow):
        one.sql(f"SELECT sum(least(greatest(points, 0), {1 << 60})) FROM stays", epsilon=1)


# Values that are no values


@pytest.mark.parametrize("poison", [NAN, INF, -INF, None])
def test_nan_becomes_the_upper_bound(world: World, poison: float | None) -> None:
    """least(1, greatest(0, NaN)) is 1 in the engine: one who is not a number adds the most."""
    assert raw("SELECT least(1, greatest(0, 'nan'::DOUBLE))") == 1
    for value in ("cost", "least(greatest(cost, 0), 1)", "CASE WHEN cost > 5 THEN 1 ELSE 0 END"):
        text = f"SELECT sum({value}) FROM stays"
        assert exact(world.load([*people(), row(99, cost=poison)]), text) == exact(world.load(people()), text)
    for text in ("SELECT count(cost) FROM stays", "SELECT count(*) FROM stays WHERE cost = cost"):
        assert exact(world.load([*people(), row(99, cost=poison)]), text) == [(6,)]


def test_negative_zero_is_zero(world: World) -> None:
    rows = [row(1, cost=0.0), row(2, cost=-0.0)]
    assert exact(world.load(rows), "SELECT count(*) FROM stays WHERE cost = 0") == [(2,)]
    with pytest.raises(NotAllowed):
        world.load(rows).sql("SELECT cost, count(*) FROM stays GROUP BY cost", epsilon=1)


def test_missing_keys_join_with_missing_keys_and_nan_with_nan(world: World) -> None:
    """The public table has a row whose id is missing; the engine finds NaN equal to NaN."""
    assert raw("SELECT 'nan'::DOUBLE = 'nan'::DOUBLE") is True
    rows = [row(1, ward=None), row(2, ward="b"), row(3, cost=NAN)]
    assert exact(world.load(rows), "SELECT count(*) FROM stays JOIN places ON ward = id") == [(1,)]
    assert exact(world.load(rows), "SELECT count(*) FROM stays LEFT JOIN places ON ward = id") == [(3,)]
    assert exact(world.load(rows), "SELECT count(*) FROM stays JOIN places ON cost = floor") == [(0,)]


def test_units_that_are_missing_or_no_numbers(world: World) -> None:
    rows = [row(None, ward="a", cost=5.0, nights=1) for _ in range(9)]
    for text in ("count(*)", "count(DISTINCT person)", "sum(cost)", "count(cost)"):
        assert exact(world.load(rows), f"SELECT {text} FROM stays") == [(0,)]
        assert exact(world.load(people() + rows), f"SELECT {text} FROM stays") == exact(
            world.load(people()), f"SELECT {text} FROM stays"
        )
    columns = (TableColumn(name="who", kind=of(Type.REAL)), TableColumn(name="x", kind=of(Type.TEXT)))
    with pytest.raises(PolicyError):
        Table(name="t", source=TableSource(format="parquet", paths=("/x",)), columns=columns, unit="who")


# Facts that outlive what made them true


def test_clamping_skipped_where_the_column_is_also_a_key(sides: tuple[World, World]) -> None:
    """A peer moved by 1e9 here."""
    text = "SELECT nights, sum(nights) FROM stays WHERE nights IN (1, 1000000000) GROUP BY nights"
    extra = [row(99, nights=1_000_000_000) for _ in range(5)]
    assert difference(sides, text, extra) == []
    assert exact(sides[1].load(extra), text) == [(0,), (30,)], "three rows of ten"


@pytest.mark.parametrize(
    "value",
    [
        "cost * 1000",
        "cost - 1000000",
        "coalesce(cost, 1e9)",
        "CASE WHEN urgent THEN 1e9 ELSE cost END",
        "nullif(cost, 5) * nights",
        "abs(cost - 50)",
        "-nights",
    ],
)
def test_bounds_of_a_column_that_was_redefined(sides: tuple[World, World], value: str) -> None:
    extra = [row(99, cost=cost, nights=9, urgent=urgent) for cost in (None, 1e308, 0.0) for urgent in (True, None)]
    assert difference(sides, f"SELECT sum({value}), avg({value}) FROM stays", extra) == []


def test_an_alias_that_has_the_name_of_a_column(world: World) -> None:
    """Inside an aggregate it is the column, with the column's bounds; one that a subquery redefines has its own."""
    db = world.load([row(1, nights=4, points=50)])
    text = "SELECT count(*) AS nights, sum(nights) AS points FROM stays"
    assert exact(db, text) == [(1, 4)]
    redefined = db.plan("SELECT sum(cost) FROM (SELECT person, cost * 1e9 AS cost FROM stays) AS s", epsilon=1)
    clamp = redefined.aggregate.tallies[0].clamp
    assert clamp is not None
    assert clamp[1] // 10**6 == 10**5
    with pytest.raises(MissingBounds):
        db.sql("SELECT sum(cost) FROM (SELECT person, points AS cost FROM stays) AS s", epsilon=1)


def test_a_left_join_makes_columns_missing(world: World) -> None:
    rows = [row(1, ward="c"), row(2, ward="nowhere")]
    assert exact(world.load(rows), "SELECT count(*), count(beds) FROM stays LEFT JOIN places ON ward = id") == [(2, 1)]


# Keys and order


def test_keys_that_are_only_in_the_data(sides: tuple[World, World]) -> None:
    extra = [row(99, ward="a rare disease", nights=1)]
    for text in (
        "SELECT ward, count(*) FROM stays GROUP BY ward",
        "SELECT lower(ward), count(*) FROM stays GROUP BY lower(ward)",
        "SELECT ward, count(*) FROM stays WHERE ward LIKE '%disease' GROUP BY ward",
        "SELECT ward, count(*) FROM stays WHERE ward IN ('x', 'y') GROUP BY ward",
    ):
        assert difference(sides, text, extra) == []
        shown = sides[1].load(people() + extra).sql(text, epsilon=1)
        assert not any("disease" in str(cells[0]) for cells in shown.rows)
    with pytest.raises(MissingKeys):
        sides[0].load(people()).sql("SELECT points, count(*) FROM stays GROUP BY points", epsilon=1)


def test_empty_groups_and_empty_tables_are_answered(world: World) -> None:
    answer = world.load([]).sql("SELECT ward, count(*), avg(cost) FROM stays GROUP BY ward", epsilon=1)
    assert [cells[0] for cells in answer.rows] == list(WARDS)
    assert len(world.load([]).sql("SELECT count(*) FROM stays", epsilon=1).rows) == 1


def test_output_in_the_order_of_the_data(world: World) -> None:
    rows = people(12)
    for order in (rows, rows[::-1], Random(1).sample(rows, 12)):
        answer = world.load(order).sql("SELECT ward, urgent, count(*) FROM stays GROUP BY ward, urgent", epsilon=1)
        keys = [cells[:2] for cells in answer.rows]
        assert keys == [*itertools.product(WARDS, (False, True, None))]


def test_limit_before_noise(world: World) -> None:
    """All groups are noised; which of them are shown follows from the noisy numbers."""
    db = world.load([row(person, ward="a") for person in range(4)])
    text = "SELECT ward, count(*) AS n FROM stays GROUP BY ward ORDER BY n DESC LIMIT 1"
    winners = set()
    for seed in range(12):
        db = world.load([row(person, ward="a") for person in range(4)])
        with replayed(seed) as source:
            answer = db.sql(text, epsilon=Fraction(1, 10))
        assert [dict(draw.public)["size"] for draw in source.draws] == [len(WARDS)]
        (noisy,) = answer.noisy
        assert answer.rows == ((WARDS[noisy.index(max(noisy))], max(noisy)),)
        winners.add(answer.rows[0][0])
    assert len(winners) > 2


def test_counts_clamped_at_the_exact_number(world: World) -> None:
    """A peer's COUNT never exceeded the true n."""
    db = world.load(people())
    plan = db.plan("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=1)
    with fixed_key():
        cells = exact_of(db, plan.aggregate).tallies
    handed = Handed(db, plan)
    drawn = [handed.draw(cells) for _ in range(200)]
    for place, (number,) in enumerate(cells):
        values = [one[place] for one in drawn]
        assert min(values) < number < max(values)
        assert min(values) < 0, "not even at zero"


# Sums, joins, units


def test_float_sums_depend_on_order(world: World) -> None:
    """{1e16, 1, −1e16} is 0 or 1 in the engine."""
    costs = (1e16, 1.0, -1e16)
    lists = [", ".join(f"({one}::DOUBLE)" for one in order) for order in itertools.permutations(costs)]
    assert {raw(f"SELECT sum(x) FROM (VALUES {listed}) t(x)") for listed in lists} == {0.0, 1.0}
    text = "SELECT sum(least(greatest(cost, -1e16), 1e16)), avg(least(greatest(cost, -1e16), 1e16)) FROM stays"
    found = set()
    for order, same in itertools.product(itertools.permutations(costs), (True, False)):
        rows = [row(1 if same else place, cost=cost) for place, cost in enumerate(order)]
        db = world.load(Random(2).sample(people(), 6) + rows, threads=4)
        found.add((same, *exact(db, text)))
    assert len(found) == 2


def test_join_fan_out(sides: tuple[World, World]) -> None:
    """Ward a is there twice: a row becomes two, and a unit still counts as often as it may."""
    limits = Limits(max_groups=1, max_rows=1)
    text = "SELECT count(*), sum(beds), count(DISTINCT person) FROM stays JOIN places ON ward = id"
    extra = [row(99, ward="a") for _ in range(50)]
    assert difference(sides, text, extra, limits=limits) == []
    assert exact(sides[1].load(extra, limits=limits), text) == [(1, 50, 1)]
    assert exact(sides[1].load(extra), text) == [(3, 150, 1)]


def test_counts_of_distinct_values_and_ratios_with_a_known_n(sides: tuple[World, World]) -> None:
    """One person with many values moves the number of different ones by max_rows, and not by one."""
    db = sides[0].load(people())
    many = [row(99, ward="a", points=1000 + place) for place in range(50)]
    for text in ("count(DISTINCT ward)", "count(DISTINCT points)", "count(DISTINCT person + 1)"):
        asked = f"SELECT {text} FROM stays"
        plan = db.plan(asked, epsilon=1)
        assert plan.aggregate.tallies[0].linf == plan.policy.limits.max_rows
        assert difference(sides, asked, many) == []
    with pytest.raises(NotAllowed):
        db.sql("SELECT sum(DISTINCT nights) FROM stays", epsilon=1)
    for function, needed in (("avg", 2), ("var_pop", 3), ("stddev", 3)):
        plan = db.plan(f"SELECT {function}(cost) FROM stays", epsilon=1)
        assert len(plan.aggregate.tallies) == needed, "the number of rows is noisy too, and paid for"
        paid = plan.mechanisms
        assert len(paid) == needed - 1, "rows and their total together"
        assert plan.cost.loss >= sum(plan.policy.budget.filter.charge_of(one.event).loss for one in paid)
        assert difference(sides, f"SELECT {function}(cost) FROM stays", [row(99, cost=1e300)] * 7) == []


def test_rows_of_a_value_that_is_missing_do_not_count_for_its_mean(world: World) -> None:
    """A count is reused only where it counts the same rows."""
    db = world.load([row(1, cost=10.0), row(2, cost=None), row(3, cost=NAN)])
    text = "SELECT count(*), avg(cost) FROM stays"
    assert len(db.plan(text, epsilon=1).aggregate.tallies) == 3
    assert [one[0] for one in exact(db, text)] == [3]
    assert 1 in exact(db, text)[0]


def test_rollup_counts_one_person_in_each_grouping_set(world: World) -> None:
    db = world.load(people())
    for clause, sets in (("ROLLUP (ward, urgent)", 3), ("CUBE (ward)", 2), ("GROUPING SETS ((ward), ())", 2)):
        plan = db.plan(f"SELECT count(*) FROM stays GROUP BY {clause}", epsilon=1)
        assert len(plan.sets) == sets
        assert plan.cost.loss == sum(one.cost.loss for one in plan.sets), "nothing is taken to be disjoint"
        assert all(one.epsilon <= Fraction(1, sets) for one in plan.sets)
    with pytest.raises(QueryError):
        db.sql("SELECT count(*) FROM stays GROUP BY ALL", epsilon=1)


def test_bounding_by_the_order_of_the_data(world: World) -> None:
    """Which groups of a unit are kept is the same in every order, and not the first or the largest ones."""
    rows = [row(person, ward=ward) for person in range(40) for ward in WARDS]
    text = "SELECT ward, count(*), count(DISTINCT person) FROM stays GROUP BY ward"
    limits = Limits(max_groups=1, max_rows=1)
    found = {tuple(exact(world.load(order, limits=limits), text)) for order in (rows, rows[::-1])}
    found |= {tuple(exact(world.load(Random(n).sample(rows, 200), limits=limits, threads=4), text)) for n in range(3)}
    (only,) = found
    assert sum(count for count, _ in only) == 40
    assert sum(count > 0 for count, _ in only) >= 3


# What the engine would tell


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT count(*) FROM stays",
        "EXPLAIN ANALYZE SELECT count(*) FROM stays",
        "SELECT sum(estimated_size) FROM duckdb_tables()",
        "SELECT count(*) FROM duckdb_columns()",
        "SELECT * FROM pragma_storage_info('stays')",
        "PRAGMA storage_info('stays')",
        "PRAGMA database_size",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('stays')",
        "SELECT json_execute_serialized_sql('{}')",
        "SUMMARIZE stays",
        "DESCRIBE stays",
        "SHOW TABLES",
        "SELECT count(*) FROM information_schema.tables",
        "SELECT count(*) FROM pg_catalog.pg_stats",
        "SELECT stats(cost) FROM stays",
        "SELECT count(*) FROM stays WHERE rowid = 1",
        "SELECT count(*) FROM stays USING SAMPLE 1",
        "SELECT count(*) FROM sniff_csv('/etc/passwd')",
        "SET VARIABLE x = (SELECT max(cost) FROM stays)",
        "SELECT count(*) FROM stays WHERE getvariable('x') > 1",
        "CREATE TEMP TABLE t AS SELECT * FROM stays",
        "SELECT count(*) FROM stays WHERE nextval('s') > 1",
        "SELECT count(*) FROM stays; SELECT count(*) FROM stays",
        "SELECT count(*) FROM stays WHERE random() < 0.5",
        "SELECT count(*) FROM stays WHERE now() > DATE '2024-01-01'",
        "SELECT count(*) FROM stays WHERE length(repeat(ward, 1000000)) > 1",
        "SELECT count(*) FROM stays WHERE regexp_matches(ward, '(a+)+$')",
        "SELECT count(*) FROM stays WHERE len(range(1000000)) > 1",
        "SELECT count(*) FROM stays WHERE ward IN (SELECT ward FROM stays WHERE cost > 99)",
        "SELECT count(*) FROM stays WHERE EXISTS (SELECT 1 FROM stays WHERE person = 3)",
        "SELECT count(*) FROM stays WHERE cost > (SELECT avg(cost) FROM stays)",
        "SELECT first(cost) FROM stays",
        "SELECT sum(cost ORDER BY nights) FROM stays",
        "SELECT count(*) OVER () FROM stays",
    ],
)
def test_what_the_engine_would_tell_is_refused_before_the_charge(world: World, text: str) -> None:
    db = world.load(people())
    before = db.ledger.statement("people").spent
    with pytest.raises(QueryError):
        db.sql(text, epsilon=1)
    assert db.ledger.statement("people").spent == before


def test_nothing_is_left_from_one_request_to_the_next(tmp_path: Path) -> None:
    """Variables, temporary tables and settings end with the process that served the request; types are not sniffed."""
    with DuckDB(standbys=1) as engine:
        for write, read in (
            ("CREATE TEMP TABLE t AS SELECT 1 AS x", "SELECT x FROM t"),
            ("CREATE SEQUENCE s", "SELECT nextval('s')"),
        ):
            engine._find_rows(SqlStatement(write), ())
            with pytest.raises(EngineError):
                engine._find_rows(SqlStatement(read), ())
        engine._find_rows(SqlStatement("SET VARIABLE v = 7"), ())
        assert engine._find_rows(SqlStatement("SELECT getvariable('v')"), ()).result == [[None]]
        schemas = []
        for place, value in enumerate(("1", "2024-01-01", "x", "")):
            path = tmp_path / f"{place}.csv"
            path.write_text(f"person,value\n1,{value}\n")
            schemas.append(engine.describe(TableSource(format="csv", paths=(str(path),))))
        assert len(set(schemas)) == 1


def test_averaging_over_the_same_question(world: World) -> None:
    db: Database = world.load(people())
    first = db.sql("SELECT count(*) FROM stays", epsilon=1)
    spent = db.ledger.statement("people").spent
    for text in ("SELECT count(*) FROM stays", "select COUNT( * )\nfrom stays -- again", "SELECT count(*) FROM Stays"):
        assert db.sql(text, epsilon=1).rows == first.rows
    assert db.ledger.statement("people").spent == spent


# Keys and names that attack whoever looks at them


def test_attacks_in_keys_and_names(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal escapes, HTML and formulas, in keys that were declared, in keys of the question and in its aliases."""
    listed = "'=HYPERLINK(\"http://x\")', '\u202ereversed', '<script>', '@SUM(A1)'"
    db = world.load(people())
    shown = [
        db.sql("SELECT ward, count(*) AS n FROM stays GROUP BY ward", epsilon=1),
        db.sql(
            f'SELECT ward AS "<b onmouseover=x>", count(*) AS "=cmd|\' /C calc\'!A0" FROM stays '
            f"WHERE ward IN ({listed}) GROUP BY ward",
            epsilon=1,
        ),
    ]
    for answer in shown:
        for text in (repr(answer), answer._repr_html_(), str(db.explain(answer.plan.question.text, epsilon=1))):
            assert not {"\x1b", "\x07", "\u202e"} & set(text)
        html = answer._repr_html_() + db.explain(answer.plan.question.text, epsilon=1)._repr_html_()
        assert not any(tag in html for tag in ("<img", "<script", "<b "))
        _print_csv(answer)
        lines = capsys.readouterr().out.splitlines()
        assert not any(cell.lstrip('"').startswith(("=", "@", "+")) for line in lines for cell in line.split(","))
        assert "\x1b" not in "".join(lines)
