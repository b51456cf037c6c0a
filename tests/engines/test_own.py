"""Operations on several rows of one unit: statements run on small tables, refusals, and many rows at once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from hubbub.engines.duckdb import worker
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.lower.relations import Lowering, unit_of
from hubbub.engines.nodes.words import name, relation, select, text, within
from hubbub.errors import CapacityError, ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, integer
from hubbub.policy.tables import Table, TableColumn
from hubbub.query.expression import Column as Named
from hubbub.query.expression import literal
from hubbub.query.functions import call
from hubbub.query.ops import (
    Aggregate,
    Cap,
    Filter,
    JoinKind,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Ranking,
    Reduce,
    Reduced,
    Reduction,
    Relation,
    RelationUnion,
    Window,
)
from tests.engines.evaluating import LIMITS, REAL, TEXT, WHOLE, answered, scan, table_of, table_sql, units_tally
from tests.engines.raw import sql

KEY, VALUE, OTHER = Named("key", TEXT), Named("value", REAL), Named("other", WHOLE)
T = table_of(
    TableColumn(name="who", kind=WHOLE), TableColumn(name="key", kind=TEXT), TableColumn(name="value", kind=REAL)
)
S = table_of(TableColumn(name="who", kind=integer(*INT128)), TableColumn(name="other", kind=WHOLE), name="s")
P = table_of(TableColumn(name="code", kind=TEXT), unit=None, name="p")
TABLES = {"t": T, "s": S, "p": P}
MINE, THEIRS, PUBLIC = scan(T, "key", "value"), scan(S, "other"), scan(P, "code")
ROWS: list[tuple[Any, ...]] = [
    (1, "a", 0.0), (1, "a", -0.0), (1, "b", None), (2, "a", 1.5), (2, None, float("inf")), (None, "a", 3.0),
]  # fmt: skip
Found = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT c0 AS who, c1 AS key, c2 AS value FROM {table_sql((WHOLE, TEXT, REAL), ROWS)}"
        )
        connection.execute("CREATE TABLE s AS SELECT unnest([1, 1, 3])::HUGEINT AS who, unnest([5, 6, 7]) AS other")
        connection.execute("CREATE TABLE p AS SELECT unnest(['a', 'a', NULL]) AS code")
        worker.settle(connection)
        worker.limit(connection, {**LIMITS, "threads": 2})
        yield connection


def lowered(op: Relation, tables: dict[str, Table] = TABLES) -> tuple[str, Lowering]:
    made = Lowering(tables, {table: relation(table) for table in tables})
    rows, names = made.relation(op)
    return sql(select(within(rows), *unit_of(op), *(name(one) for one in names.values()))), made


def run(engine: Any, op: Relation, secret: tuple[int, int] = (1, 2)) -> Found:
    statement, made = lowered(op)
    return Counter(engine.execute(statement, list(secret)[: made.secrets]).fetchall())


def column(reduction: Reduction, argument: Any, kind: Kind, **more: Any) -> Reduced:
    return Reduced(name="r", reduction=reduction, argument=argument, kind=kind, **more)


# Meaning


def test_caps_look_at_secrets_and_nothing_else_does(engine: Any) -> None:
    capped = Cap(input=MINE, most=2)
    for op in (
        capped,
        Reduce(input=capped, keys=()),
        JoinOwn(input=MINE, other=Cap(input=THEIRS, most=1), kind=JoinKind.LEFT),
    ):
        statement, made = lowered(op)
        assert made.secrets == 2
        assert "$1" in statement
        assert "$2" in statement
    assert lowered(Reduce(input=MINE, keys=()))[1].secrets == 0
    assert sum(run(engine, capped).values()) == 4
    one = [run(engine, Cap(input=MINE, most=1), (secret, 7)) for secret in range(20)]
    assert all(sum(found.values()) == 2 for found in one)
    assert len({row for found in one for row in found if row[0] == 1}) == 2, "either content of the first unit"


def test_an_aggregate_hands_secrets_to_its_caps() -> None:
    op = Aggregate(input=Cap(input=MINE, most=1), groups=(), tallies=(units_tally(),), most_groups=1)
    assert aggregate(op, TABLES, {table: relation(table) for table in TABLES}).secrets == 2
    contents = {"t": f"SELECT c0 AS who, c1 AS key, c2 AS value FROM {table_sql((WHOLE, TEXT, REAL), ROWS)}"}
    assert answered(op, {"t": T}, contents) == [(2,)]


def test_copies_count_as_rows_of_their_own(engine: Any) -> None:
    """A unit has a row 99 times and another once; of 10 that stay, the rare one is seldom among them (1 in 10)."""
    engine.execute(
        "CREATE OR REPLACE TEMP TABLE many AS SELECT 1 AS who, CASE WHEN i = 0 THEN 'rare' ELSE 'often' END AS key "
        "FROM range(100) r(i)"
    )
    made = Lowering({"t": T}, {"t": relation("many")})
    rows, names = made.relation(Cap(input=scan(T, "key"), most=10))
    statement = sql(select(within(rows), name(names["key"])))
    kept = [Counter(row[0] for row in engine.execute(statement, [secret, 5]).fetchall()) for secret in range(200)]
    assert all(one.total() == 10 for one in kept)
    assert sum(one["rare"] for one in kept) < 50, "20 or so; 49 and more with probability below 1e-8"


def test_zeros_of_both_signs_are_one(engine: Any) -> None:
    assert run(
        engine, Reduce(input=Filter(input=MINE, condition=call("eq", VALUE, literal(0.0))), keys=(("v", VALUE),))
    ) == {(1, 0.0): 1}
    shown = engine.execute(lowered(Cap(input=scan(T, "value"), most=9))[0], [1, 2]).fetchall()
    assert "-0.0" not in repr(shown)


def test_units_of_different_width_are_the_same_units(engine: Any) -> None:
    joined = JoinOwn(input=MINE, other=THEIRS, kind=JoinKind.FULL)
    assert Counter(row[0] for row in run(engine, joined).elements()) == {1: 6, 2: 2, 3: 1}
    both = RelationUnion(
        inputs=(Project(input=MINE, columns=(("x", literal(1)),)), Project(input=THEIRS, columns=(("x", OTHER),)))
    )
    assert run(engine, both) == {(1, 1): 3, (2, 1): 2, (1, 5): 1, (1, 6): 1, (3, 7): 1}


def test_what_is_public_may_be_reduced_and_ranked_too(engine: Any) -> None:
    code = Named("code", TEXT)
    count = column(Reduction.ROWS, None, integer(0, 9, nullable=False))
    assert run(engine, Reduce(input=PUBLIC, keys=(("c", code),), columns=(count,))) == {("a", 2): 1, (None, 1): 1}
    assert run(engine, Reduce(input=PUBLIC, keys=(), columns=(count,))) == {(3,): 1}
    nothing = Filter(input=PUBLIC, condition=literal(False))
    assert run(engine, Reduce(input=nothing, keys=(), columns=(count,))) == {}, "of no rows there is no row"
    ranked = Window(input=PUBLIC, name="n", ranking=Ranking.ROW_NUMBER, argument=None)
    assert run(engine, ranked) == {("a", 1): 1, ("a", 2): 1, (None, 3): 1}


@pytest.mark.parametrize("value", [-(1 << 53) + 1, (1 << 62) + 1, -(1 << 62) - 7])
def test_totals_are_exact_sums_and_then_the_nearest_real(engine: Any, value: int) -> None:
    engine.execute(
        f"CREATE OR REPLACE TEMP TABLE sums AS SELECT unnest([1, 1, 1]) AS who, unnest([{value}, 1, -1]) AS other"
    )
    ends = Fraction(INT64[0]), Fraction(INT64[1])
    for kind, wanted in ((integer(*INT64), value), (REAL, float(value)), (integer(-5, 5), 5 if value > 0 else -5)):
        made = Lowering({"s": S}, {"s": relation("sums")})
        op = Reduce(input=THEIRS, keys=(), columns=(column(Reduction.TOTAL, OTHER, kind, clamp=ends),))
        rows, names = made.relation(op)
        assert engine.execute(sql(select(within(rows), name(names["r"])))).fetchall() == [(wanted,)]


def test_a_total_that_a_real_cannot_hold_is_missing(engine: Any) -> None:
    grid = Fraction(10) ** 308
    op = Reduce(
        input=MINE, keys=(), columns=(column(Reduction.TOTAL, VALUE, REAL, clamp=(grid, grid * 17 / 10), grid=grid),)
    )
    assert run(engine, op) == {(1, None): 1, (2, 1e308): 1}


def test_counts_stay_within_their_range(engine: Any) -> None:
    for kind, wanted in (
        (integer(0, 9), {(1, 3): 1, (2, 2): 1}),
        (integer(0, 2), {(1, 2): 1, (2, 2): 1}),
        (integer(3, 9), {(1, 3): 1, (2, 3): 1}),
    ):
        assert run(engine, Reduce(input=MINE, keys=(), columns=(column(Reduction.ROWS, None, kind),))) == wanted


# Refusals

REFUSED: list[Relation] = [
    Cap(input=PUBLIC, most=1),
    Cap(input=MINE, most=0),
    JoinOwn(input=MINE, other=PUBLIC, kind=JoinKind.LEFT),
    JoinOwn(input=PUBLIC, other=MINE, kind=JoinKind.INNER),
    JoinOwn(input=MINE, other=THEIRS, kind=JoinKind.INNER, keys=((KEY, OTHER),)),
    Match(input=PUBLIC, other=MINE),
    Match(input=MINE, other=THEIRS, keys=((KEY, OTHER),)),
    JoinPublic(input=MINE, public=PUBLIC, kind=JoinKind.FULL, keys=((KEY, Named("code", TEXT)),), most=2),
    RelationUnion(inputs=(Project(input=MINE, columns=(("code", KEY),)), PUBLIC)),
    RelationUnion(inputs=(MINE, THEIRS)),
    RelationUnion(inputs=(Project(input=MINE, columns=(("x", KEY),)), Project(input=THEIRS, columns=(("x", OTHER),)))),
    Window(input=MINE, name="w", ranking=Ranking.LAG, argument=None),
    Window(input=MINE, name="w", ranking=Ranking.LEAD, argument=KEY, offset=-1),
    Reduce(input=MINE, keys=(), columns=(column(Reduction.LEAST, None, TEXT),)),
    Reduce(input=MINE, keys=(), columns=(column(Reduction.TOTAL, KEY, WHOLE),)),
    Reduce(input=MINE, keys=(), columns=(column(Reduction.TOTAL, VALUE, WHOLE, clamp=(Fraction(0), Fraction(1))),)),
    Reduce(input=THEIRS, keys=(), columns=(column(Reduction.TOTAL, OTHER, WHOLE, grid=Fraction(2)),)),
]  # fmt: skip


@pytest.mark.parametrize("op", REFUSED)
def test_what_would_not_be_each_units_own_is_refused(op: Relation) -> None:
    with pytest.raises(ParameterError):
        lowered(op)


def test_units_of_different_types_are_not_put_together() -> None:
    """Comparing text with numbers could fail for one person's row."""
    names = {
        **TABLES,
        "s": replace(S, columns=(TableColumn(name="who", kind=TEXT), TableColumn(name="other", kind=WHOLE))),
    }
    for op in (JoinOwn(input=MINE, other=THEIRS, kind=JoinKind.INNER), Match(input=MINE, other=THEIRS)):
        with pytest.raises(ParameterError):
            lowered(op, names)


def test_reals_are_added_within_bounds_alone() -> None:
    with pytest.raises(CapacityError):
        lowered(Reduce(input=MINE, keys=(), columns=(column(Reduction.TOTAL, VALUE, REAL),)))


# Many rows

MANY = table_of(
    *(TableColumn(name=one, kind=WHOLE) for one in ("who", "a", "b")), TableColumn(name="c", kind=REAL), name="m"
)
A, B, C = Named("a", WHOLE), Named("b", WHOLE), Named("c", REAL)
BIG = scan(MANY, "a", "b", "c")
RIGHT = Project(input=Cap(input=BIG, most=3), columns=(("a2", A), ("c2", C)))
LARGE: dict[str, Relation] = {
    "cap": Cap(input=BIG, most=4),
    "window": Window(input=BIG, name="w", ranking=Ranking.LAG, argument=B, order=((A, True),)),
    "number": Window(input=scan(MANY, "a"), name="w", ranking=Ranking.ROW_NUMBER, argument=None, order=((A, False),)),
    "join": JoinOwn(input=Cap(input=BIG, most=5), other=RIGHT, kind=JoinKind.FULL, keys=((A, Named("a2", WHOLE)),)),
    "match": Match(
        input=BIG, other=Filter(input=RIGHT, condition=call("gt", Named("a2", WHOLE), literal(5))), without=True
    ),
    "total": Reduce(
        input=BIG,
        keys=(("a", A),),
        columns=(column(Reduction.TOTAL, C, REAL, clamp=(Fraction(0), Fraction(1)), grid=Fraction(1, 1 << 20)),),
    ),
}


@pytest.fixture(scope="module")
def crowd() -> Iterator[Any]:
    """200,000 rows of 20,000 units, most of them tied with others; the second table lacks a unit, in another order."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE m AS SELECT (hash(i) % 20000)::BIGINT AS who, (hash(i + 1) % 7)::BIGINT AS a, "
            "(hash(i + 2) % 3)::BIGINT AS b, (hash(i + 3) % 1000) / 7.0 AS c FROM range(200000) r(i)"
        )
        connection.execute("CREATE TABLE less AS SELECT * FROM m WHERE who <> 77 ORDER BY hash(c, a, who)")
        worker.settle(connection)
        worker.limit(connection, {**LIMITS, "threads": 4})
        yield connection


@pytest.mark.parametrize("what", LARGE)
def test_many_rows_on_many_threads(crowd: Any, what: str) -> None:
    """Without one unit, and in another order, all other units have the rows that they had."""
    prints = []
    for table in ("m", "less"):
        made = Lowering({"m": MANY}, {"m": relation(table)})
        rows, names = made.relation(LARGE[what])
        columns = ", ".join(f'"{one}"' for one in names.values())
        shown = f"count(*), sum(hash(unit, {columns})::HUGEINT), count(DISTINCT unit)"
        statement = f"SELECT {shown} FROM ({sql(rows)}) WHERE unit <> 77"
        prints.append(crowd.execute(statement, [3, 4][: made.secrets]).fetchall())
    assert prints[0] == prints[1]
    assert prints[0][0][0] > 10_000


def test_every_type_is_ordered_as_python_orders_it(engine: Any) -> None:
    """Texts by their code points, NUL and all; missing values last in both directions."""
    texts = ["", "\\0", "a", "a\\0", "A", "é", "e\\u0301", "\\U0001f600", "\\uffff", "z", "ab" * 600]
    listed = ", ".join(f"(1, {sql(text(one))})" for one in texts)
    engine.execute(f"CREATE OR REPLACE TEMP TABLE texts AS SELECT * FROM (VALUES {listed}, (1, NULL)) AS v(who, key)")
    for falling in (False, True):
        made = Lowering({"t": T}, {"t": relation("texts")})
        op = Window(input=scan(T, "key"), name="n", ranking=Ranking.RANK, argument=None, order=((KEY, falling),))
        rows, names = made.relation(op)
        found = dict(engine.execute(sql(select(within(rows), name(names["key"]), name(names["n"])))).fetchall())
        assert sorted(found, key=found.__getitem__) == [*sorted(texts, reverse=falling), None]
