"""What nodes are in PostgreSQL's words; and that nothing raises, whatever is constant."""

import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, get_args

import pytest

from hubbub.engines.dialects.postgres import POSTGRES
from hubbub.engines.dialects.postgres_totals import DOMAINS, find_ends
from hubbub.engines.dialects.printer import print_node, print_statement
from hubbub.engines.lower.histogram import look_up_group
from hubbub.engines.nodes.queries import KeyTable, Lowered, StoredTable
from hubbub.engines.nodes.scalars import (
    Function,
    Guarded,
    JoinForm,
    Node,
    Operator,
    Prefix,
    ScanIdentity,
    ScanValue,
    Storage,
    StructField,
    Tag,
)
from hubbub.engines.nodes.words import (
    STAR,
    alias,
    but,
    case,
    cast,
    constant,
    fit,
    function,
    hash_keyed,
    infix,
    join,
    name,
    number,
    relation,
    select,
    struct,
    text,
    try_cast,
    union_all,
    with_once,
    within,
)
from hubbub.engines.postgres.engine import complete_statement
from hubbub.errors import NotAllowed, PolicyError
from hubbub.policy.kinds import Type, of
from tests.engines.stored import StoredTables, printable
from tests.postgres import PostgresServer

A, B, U = name("a"), name("b"), name("unit")
ROWS = select(relation("t"), A)
REAL = of(Type.REAL)
KEYED = (
    "pg_catalog.hashint8extended(pg_catalog.hash_record_extended(ROW({}), "
    "(SELECT CAST(pg_catalog.current_setting('hubbub.key1') AS bigint))), "
    "(SELECT CAST(pg_catalog.current_setting('hubbub.key2') AS bigint)))"
)

PAIRS: list[tuple[Node, str]] = [
    (constant(1, of(Type.INTEGER)), "CAST(1 AS bigint)"),
    (constant(-0.5, REAL), "CAST('-0.5' AS double precision)"),
    (text("it's"), '(CAST($1 AS text) COLLATE "C")'),
    (
        try_cast(A, "int64"),
        'CASE WHEN "a" >= (-9223372036854775808) AND "a" < 9223372036854775808 THEN CAST("a" AS bigint) END',
    ),
    (fit(A, "int64"), 'CAST("a" AS bigint)'),
    (cast(infix(">", A, B), "int64"), 'CAST(CAST(("a" > "b") AS integer) AS bigint)'),
    (infix("//", A, B), 'pg_catalog.div(CAST("a" AS numeric), CAST("b" AS numeric))'),
    (infix("like", A, B), "(\"a\" LIKE \"b\" ESCAPE '')"),
    (function("days_between", A, B), 'CAST(("a" - "b") AS bigint)'),
    (function("sum_small", A), 'pg_catalog.sum(CAST("a" AS integer))'),
    (Guarded(function("ln", A)), 'CASE WHEN ("a" > CAST(\'0.0\' AS double precision)) THEN pg_catalog.ln("a") END'),
    (Guarded(infix("*", A, constant(4.0, REAL)), "never"), "(\"a\" * CAST('4.0' AS double precision))"),
    (
        Guarded(infix("*", A, constant(0.5, REAL)), "never"),
        "CASE WHEN (pg_catalog.abs(\"a\") < CAST('1e-323' AS double precision)) THEN CAST('0.0' AS double precision) "
        "ELSE (\"a\" * CAST('0.5' AS double precision)) END",
    ),
    (hash_keyed(Tag.CAP, U, A, B), KEYED.format('1, "unit", "a", "b"')),
    (hash_keyed(Tag.BLOCK, U), '(' + KEYED.format('5, "unit"') + " & 9223372036854775807)"),
    (struct({"k0": A, "k1": B}), 'ARRAY[CAST("a" AS text) COLLATE "C", CAST("b" AS text) COLLATE "C"]'),
    (struct({"k1": B}), 'ARRAY[CAST(NULL AS text), CAST("b" AS text) COLLATE "C"]'),
    (StructField(name("code"), "k1"), '("code")[2]'),
    (
        select(join(within(ROWS, "l"), within(ROWS, "r"), [infix("=", A, B)], form="anti"), A, where=[B]),
        'SELECT "a" FROM (SELECT "a" FROM "t") AS "l" WHERE NOT EXISTS (SELECT 1 FROM (SELECT "a" FROM "t") AS "r" '
        'WHERE ("a" = "b")) AND "b"',
    ),
    (
        select(within(select(relation("t"), A, alias(B, "c"))), but("a")),
        'SELECT "c" FROM (SELECT "a", "b" AS "c" FROM "t") AS "q"',
    ),
    (
        with_once(ROWS, "w", select(within(select(relation("w"), STAR, alias(B, "x"))), but("a"))),
        'WITH "w" AS MATERIALIZED (SELECT "a" FROM "t") SELECT "x" FROM (SELECT *, "b" AS "x" FROM "w") AS "q"',
    ),
    (
        join(relation("t"), relation("o"), [infix("same", A, B)]),
        '"t" INNER JOIN "o" ON (ARRAY["a"] = ARRAY["b"])',
    ),
    (
        join(relation("t"), relation("o"), [infix("=", U, B), infix("same", A, B)]),
        '"t" INNER JOIN "o" ON ("unit" = "b") AND ("a" IS NOT DISTINCT FROM "b")',
    ),
    (
        select(
            relation("t"), A, cast(function("coalesce", look_up_group("found0", grouped=True), number(0)), "text"),
            by=[name("code")],
        ),
        'SELECT "groups"."shown0", CAST(COALESCE("found0"."found", 0) AS text) FROM (SELECT "code" AS "key", "a" AS '
        '"shown0" FROM "t" GROUP BY "code") AS "groups" LEFT JOIN "found0" ON (ARRAY["found0"."of"] = '
        'ARRAY["groups"."key"])',
    ),
    (
        select(StoredTable(("s", 't"t'), (("v", "int4"),)), ScanValue("v", of(Type.INTEGER))),
        'SELECT CAST("v" AS bigint) FROM "s"."t""t"',
    ),
    (
        select(StoredTable(("s", "t"), (("v", "citext"),)), ScanIdentity("v", of(Type.TEXT))),
        'SELECT (CAST("v" AS text) COLLATE "C") FROM "s"."t"',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("node", "wanted"), PAIRS, ids=[wanted[:60] for _, wanted in PAIRS])
def test_text_of_nodes(node: Node, wanted: str) -> None:
    assert print_node(node, POSTGRES) == wanted


def test_it_has_every_word() -> None:
    assert set(POSTGRES.types) == set(get_args(Storage))
    assert set(POSTGRES.functions) == set(get_args(Function))
    assert set(POSTGRES.operators) == set(get_args(Operator))
    assert set(POSTGRES.prefixes) == set(get_args(Prefix))
    assert set(POSTGRES.joins) == set(get_args(JoinForm)) - {"semi", "anti"}, "which are written with EXISTS"


def test_every_function_of_it_is_qualified() -> None:
    """But for those that are part of the language, and found in pg_catalog whatever the path is."""
    grammar = ("COALESCE", "GREATEST", "LEAST", "EXTRACT(", "CAST(", "CASE WHEN pg_catalog.", "(pg_catalog.", "({0})[")
    for form in POSTGRES.functions.values():
        assert form.startswith(("pg_catalog.", *grammar)), form


def test_texts_are_parameters_and_equal_ones_are_one() -> None:
    query = select(relation("t"), infix("=", A, text("x'; --")), infix("=", B, text("x'; --")), text("y"))
    keys = (KeyTable("keys0", "text", (0, 1, 2), ("a", "a\0b", None)), KeyTable("keys1", "int64", (0,), ("7",)))
    made = print_statement(Lowered(query, keys), POSTGRES)
    assert made.texts == ("x'; --", "y")
    assert "--" not in made.sql
    sql, parameters = complete_statement(made)
    assert parameters == ["x'; --", "y", ["a", None], [0, 2], ["7"], [0]]
    assert sql.startswith('WITH "keys0" AS MATERIALIZED (SELECT CAST(k.v AS text) COLLATE "C" AS "value"')
    assert "CAST($5 AS text[])" in sql


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_a_text_that_no_server_holds_is_refused(value: str) -> None:
    with pytest.raises(NotAllowed, match="PostgreSQL"):
        print_node(text(value), POSTGRES)


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(NotAllowed, match="v"):
        print_node(select(StoredTable(("s", "t"), ()), ScanValue("v", of(Type.INTEGER))), POSTGRES)
    for type_, kind in (("bytea", Type.TEXT), ("bool", Type.INTEGER), ("date", Type.REAL), ("text", Type.REAL)):
        read = select(StoredTable(("s", "t"), (("v", type_),)), ScanValue("v", of(kind)))
        if type_ == "text":
            assert "~" in print_node(read, POSTGRES), "what is spelt like a number"
        else:
            with pytest.raises(PolicyError):
                print_node(read, POSTGRES)


# Reals


@pytest.fixture(scope="module")
def stored(postgres_server: PostgresServer) -> Iterator[StoredTables]:
    tables = StoredTables(postgres_server.fresh_database())
    yield tables
    tables.close()


ENDS = sorted(
    {
        sign * math.ldexp(part, exponent)
        for exponent in (
            *(-1074, -1073, -1022, -1021, -565, -541, -540, -525, -512, -500, -1),
            *(0, 1, 499, 500, 512, 523, 540, 970, 1022, 1023),
        )
        for part in (1.0, 1.5, 1.9999999999999998)
        for sign in (1.0, -1.0)
    }
    | {0.0, -0.0, math.nextafter(math.inf, 0.0), -math.nextafter(math.inf, 0.0), 709.78, 709.79, -745.1, -746.0, 0.1}
)  # fmt: skip


def exact(called: str, left: float, right: float) -> float | None:
    """What IEEE 754 says, missing where that is not finite."""
    try:
        result = {
            "+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right, "/": lambda: left / right,
            "sqrt": lambda: math.sqrt(left), "ln": lambda: math.log(left), "exp": lambda: math.exp(left),
            "log2": lambda: math.log2(left),
        }[called]()  # fmt: skip
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return result if math.isfinite(result) else None


@pytest.mark.parametrize("called", list(DOMAINS))
def test_every_pair_at_the_ends_of_reals(stored: StoredTables, called: Any) -> None:
    """As columns, as a column and a constant, and as constants, of which the planner computes what it likes."""
    pairs = [(one, other) for one in ENDS for other in (ENDS if called in {"+", "-", "*", "/"} else (0.0,))]
    kinds = [("n", of(Type.INTEGER)), ("a", REAL), ("b", REAL)]
    table = stored.fill("ends", kinds, [{"n": at, "a": one, "b": other} for at, (one, other) in enumerate(pairs)])
    read = select(table, *(alias(ScanValue(one, kind), one) for one, kind in kinds))

    def apply(left: Any, right: Any) -> Any:
        return Guarded(infix(called, left, right) if called in {"+", "-", "*", "/"} else function(called, left))

    found = dict(stored.run(printable(select(within(read), name("n"), apply(A, B)))))
    for at, pair in enumerate(pairs):
        assert is_close(found[at], exact(called, *pair)), (called, pair, found[at])
    rng = Random(1)
    for left, right in rng.sample(pairs, min(150, len(pairs))):
        both = [constant(one, REAL) for one in (left, right)]
        sides = [apply(*both), *((apply(A, both[1]), apply(both[0], B)) if called in {"+", "-", "*", "/"} else ())]
        shown = select(within(read), *(alias(side, f"r{at}") for at, side in enumerate(sides)), where=[
            infix("=", A, both[0]), infix("=", B, both[1]) if len(sides) > 1 else infix("=", number(1), number(1)),
        ])  # fmt: skip
        for row in stored.run(printable(shown)):
            assert all(is_close(one, exact(called, left, right)) for one in row), (called, left, right, row)


def is_close(one: float | None, other: float | None) -> bool:
    """Equal, but for the last bits of a library's functions and the least real there is."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-13, abs_tol=5e-322)


@pytest.mark.parametrize("by", [0.1, 3.0, 1e300, 1e-300, 2.0**-30, 7.5e-310])
@pytest.mark.parametrize("operator", ["*", "/"])
def test_ends_of_a_scale_are_the_last_that_are_finite(operator: Any, by: float) -> None:
    def apply(value: float) -> float:
        return value * by if operator == "*" else value / by

    least, most = find_ends(operator, by)
    assert apply(least) != 0
    assert math.isfinite(apply(most))
    assert least <= 5e-324 or apply(math.nextafter(least, 0.0)) == 0
    assert most >= math.nextafter(math.inf, 0.0) or math.isinf(apply(math.nextafter(most, math.inf)))


def test_a_real_that_is_not_looked_at_first_raises(stored: StoredTables) -> None:
    """Planted: the same product without its conditions."""
    careless = replace(POSTGRES, domains={**DOMAINS, "*": lambda given, beyond: infix("*", *given)})
    table = stored.fill("one", [("a", REAL)], [{"a": 1e300}])
    read = select(within(select(table, alias(ScanValue("a", REAL), "a"))), Guarded(infix("*", A, A)))
    assert stored.run(printable(read)) == [(None,)]
    import psycopg

    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        stored.run(print_statement(Lowered(read), careless))


def test_a_branch_that_is_constant_is_not_computed(stored: StoredTables) -> None:
    """Whatever the planner folds, the condition of a branch comes first."""
    table = stored.fill("one", [("a", REAL)], [{"a": 1.0}])
    zero, huge = constant(0.0, REAL), constant(1e300, REAL)
    nothing = [Guarded(infix("/", huge, zero)), Guarded(infix("*", huge, huge)), Guarded(function("ln", zero))]
    shown = [case((infix(">", A, zero), one)) for one in nothing]
    read = select(within(select(table, alias(ScanValue("a", REAL), "a"))), *shown)
    assert stored.run(printable(read)) == [(None, None, None)]


def test_both_sides_of_a_union_are_of_one_type(stored: StoredTables) -> None:
    assert stored.run(printable(union_all([select(None, number(1)), select(None, number(2))]))) == [(1,), (2,)]
