"""Nodes and their text: golden pairs for DuckDB, and what another dialect could say."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from hubbub.engines import dialects, lower, nodes
from hubbub.engines.dialects.duckdb import DUCKDB
from hubbub.engines.dialects.printer import FORMS, print_node, print_statement
from hubbub.engines.nodes import queries, scalars
from hubbub.engines.nodes.queries import KeyTable, Lowered, ParquetFiles, Query, RowSource
from hubbub.engines.nodes.scalars import (
    Apply,
    Bound,
    Function,
    GroupingSets,
    Guarded,
    JoinForm,
    Let,
    Node,
    Operator,
    Prefix,
    Prefixed,
    Scalar,
    ScanIdentity,
    ScanValue,
    Star,
    Storage,
    StructField,
    Tag,
)
from hubbub.engines.nodes.words import (
    FALSE,
    NULL,
    STAR,
    TRUE,
    alias,
    among,
    but,
    case,
    cast,
    constant,
    count_distinct,
    descending,
    function,
    hash_keyed,
    infix,
    join,
    list_of,
    look_up,
    missing,
    name,
    negation,
    number,
    over,
    present,
    relation,
    select,
    struct,
    text,
    try_cast,
    union_all,
    with_once,
    within,
)
from hubbub.errors import NotAllowed, ParameterError
from hubbub.policy.kinds import INT128, Type, integer, of
from tests.engines.raw import Raw, sql

A, B, U = name("a"), name("b"), name("unit")
T = relation("t")
ROWS = select(T, A)
LONG = name("x" * DUCKDB.light)

SCALARS: list[tuple[Scalar, str]] = [
    (A, '"a"'),
    (name('a"b', of="t"), '"t"."a""b"'),
    (NULL, "NULL"),
    (TRUE, "TRUE"),
    (FALSE, "FALSE"),
    (number(7), "7"),
    (number(-7), "(-7)"),
    (text("it's"), "'it''s'"),
    (text("a\0b"), "concat('a', chr(0), 'b')"),
    (text("\0"), "concat(chr(0))"),
    (constant(None, of(Type.DATE)), "CAST(NULL AS DATE)"),
    (constant(True, of(Type.BOOLEAN)), "TRUE"),
    (constant(-1, of(Type.INTEGER)), "CAST((-1) AS BIGINT)"),
    (constant(1, integer(*INT128)), "CAST(1 AS HUGEINT)"),
    (constant(-0.0, of(Type.REAL)), "CAST('-0.0' AS DOUBLE)"),
    (constant(0.0, of(Type.REAL)), "CAST('0.0' AS DOUBLE)"),
    (constant("a", of(Type.TEXT)), "'a'"),
    (constant(date(2024, 2, 29), of(Type.DATE)), "CAST('2024-02-29' AS DATE)"),
    (
        constant(datetime(2024, 2, 29, 1, 2, 3, 4), of(Type.TIMESTAMP)),
        "CAST('2024-02-29 01:02:03.000004' AS TIMESTAMP)",
    ),
    (cast(A, "uint64"), 'CAST("a" AS UBIGINT)'),
    (try_cast(A, "int64"), 'TRY_CAST("a" AS BIGINT)'),
    (function("count", STAR), "count(*)"),
    (function("random"), "random()"),
    (count_distinct(A), 'count(DISTINCT "a")'),
    (function("trim", A), "trim(\"a\", ' ')"),
    (function("start_of_week", A), "date_trunc('week', \"a\")"),
    (function("words", A, B), 'concat_ws(\' \', "a", "b")'),
    (function("paragraph", A), "string_agg(\"a\", ' ')"),
    (infix("and", A, B, A), '("a" AND "b" AND "a")'),
    (infix("same", A, B), '("a" IS NOT DISTINCT FROM "b")'),
    (negation(A), '(NOT "a")'),
    (Prefixed("-", A), '(- "a")'),
    (missing(A), '("a" IS NULL)'),
    (present(A), '("a" IS NOT NULL)'),
    (case((A, number(1))), 'CASE WHEN "a" THEN 1 END'),
    (case((A, number(1)), (B, number(2)), otherwise=NULL), 'CASE WHEN "a" THEN 1 WHEN "b" THEN 2 ELSE NULL END'),
    (among(A, [number(1), number(2)]), '("a" IN (1, 2))'),
    (Guarded(function("ln", A)), 'CASE WHEN isfinite(ln("a")) THEN ln("a") END'),
    (Guarded(infix("/", A, B)), 'CASE WHEN isfinite(("a" / "b")) THEN ("a" / "b") END'),
    (Let((A, B), infix("+", Bound(1), Bound(0), Bound(0))), '("b" + "a" + "a")'),
    (
        Let((LONG, B), infix("+", Bound(0), Bound(1))),
        f'list_extract(list_transform([struct_pack(a0 := {sql(LONG)})], lambda "bound": '
        '(struct_extract("bound", \'a0\') + "b")), 1)',
    ),
    (Let((Let((A,), infix("-", Bound(0), B)),), infix("*", Bound(0), Bound(0))), '(("a" - "b") * ("a" - "b"))'),
    (
        hash_keyed(Tag.LISTED, U, A),
        'hash(xor(hash("unit", CAST($1 AS UBIGINT)), xor(CAST("a" AS UBIGINT), CAST($2 AS UBIGINT))))',
    ),
    (
        hash_keyed(Tag.UNLISTED, U, A),
        'hash(xor(hash("unit", CAST($1 AS UBIGINT)), hash("a", CAST($2 AS UBIGINT))))',
    ),
    (
        hash_keyed(Tag.CAP, U, A, B),
        'hash(xor(hash("unit", CAST($1 AS UBIGINT), 1), xor(hash("a", "b"), CAST($2 AS UBIGINT))))',
    ),
    (
        hash_keyed(Tag.ROWS, U, A, B),
        'hash(xor(hash("unit", CAST($1 AS UBIGINT), 2), hash("a", "b", CAST($2 AS UBIGINT))))',
    ),
    (hash_keyed(Tag.BLOCK, U), 'hash(xor(hash("unit", CAST($1 AS UBIGINT)), CAST($2 AS UBIGINT)))'),
    (over(function("rank"), partition=[]), "rank() OVER ()"),
    (
        over(function("rank"), partition=[U, A], order=[descending(A), B]),
        'rank() OVER (PARTITION BY "unit", "a" ORDER BY "a" DESC NULLS LAST, "b" NULLS LAST)',
    ),
    (struct({"k0": A, "k1": B}), 'struct_pack("k0" := "a", "k1" := "b")'),
    (StructField(name("code", of="t"), "k0"), '"t"."code"."k0"'),
    (list_of(A, number(1)), '["a", 1]'),
    (function("item", list_of(A), number(1)), 'list_extract(["a"], 1)'),
    (look_up(ROWS), '(SELECT "a" FROM "t")'),
    (ScanValue("v", of(Type.BOOLEAN)), 'TRY_CAST("v" AS BOOLEAN)'),
    (alias(A, "c"), '"a" AS "c"'),
    (Star("t"), '"t".*'),
    (but("a", "b"), '* EXCLUDE ("a", "b")'),
    (GroupingSets((A, B)), 'GROUPING SETS (("a"), ("b"))'),
]
QUERIES: list[tuple[Query, str]] = [
    (ROWS, 'SELECT "a" FROM "t"'),
    (select(None, number(1)), "SELECT 1"),
    (
        select(T, A, B, where=[A, B], by=[A], order=[A, descending(B)], most=3),
        'SELECT "a", "b" FROM "t" WHERE "a" AND "b" GROUP BY "a" ORDER BY "a", "b" DESC LIMIT 3',
    ),
    (union_all([ROWS, ROWS]), '(SELECT "a" FROM "t") UNION ALL (SELECT "a" FROM "t")'),
    (
        with_once(ROWS, "w", select(relation("w"), STAR)),
        'WITH "w" AS MATERIALIZED (SELECT "a" FROM "t") SELECT * FROM "w"',
    ),
    (
        select(join(within(ROWS, "l"), within(ROWS, "r"), [infix("=", A, B)], form="anti"), A),
        'SELECT "a" FROM (SELECT "a" FROM "t") AS "l" ANTI JOIN (SELECT "a" FROM "t") AS "r" ON ("a" = "b")',
    ),
]
SOURCES: list[tuple[RowSource, str]] = [
    (relation("d", "main", 'a"b'), '"d"."main"."a""b"'),
    (relation("t", called="r"), '"t" AS "r"'),
    (within(ROWS), '(SELECT "a" FROM "t") AS "q"'),
    (within(ROWS, "c", ["x", "y"]), '(SELECT "a" FROM "t") AS "c"("x", "y")'),
    (join(T, relation("o"), [A, B], form="left"), '"t" LEFT JOIN "o" ON "a" AND "b"'),
    (ParquetFiles("f1"), "read_parquet(getvariable('f1'))"),
    (
        ParquetFiles("f1", replaced=True, by_name=True),
        "read_parquet(getvariable('f1'), utf8_validation = 'replace', union_by_name = TRUE)",
    ),
]
PAIRS: list[tuple[Node, str]] = [*SCALARS, *QUERIES, *SOURCES]


@pytest.mark.parametrize(("node", "wanted"), PAIRS, ids=[wanted[:60] for _, wanted in PAIRS])
def test_text_of_nodes(node: Node, wanted: str) -> None:
    assert print_node(node, DUCKDB) == wanted


def test_a_statement_has_the_types_of_its_keys() -> None:
    made = print_statement(Lowered(ROWS, (KeyTable("keys0", "int128", (0, 2), ("5", None)),), secrets=2), DUCKDB)
    assert made.sql == 'SELECT "a" FROM "t"'
    assert [(one.table, one.type, one.places, one.values) for one in made.keys] == [
        ("keys0", "HUGEINT", (0, 2), ("5", None))
    ]
    assert made.secrets == 2


def test_an_identity_is_read_by_the_dialect() -> None:
    replaced = print_node(ScanIdentity("v", of(Type.TEXT), replaced=True), DUCKDB)
    assert replaced.startswith("CASE WHEN NOT contains(")
    assert 'TRY_CAST("v" AS BIGINT)' in print_node(ScanIdentity("v", of(Type.INTEGER)), DUCKDB)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), datetime.fromisoformat("2024-01-01T00:00:00+00:00")])
def test_no_constant_is_inexact(value: Any) -> None:
    with pytest.raises(ParameterError):
        sql(constant(value, of(Type.REAL if isinstance(value, float) else Type.TIMESTAMP)))


def test_names_and_nodes_cannot_be_mistaken_for_text() -> None:
    with pytest.raises(ParameterError, match="NUL"):
        sql(name("a\0"))
    with pytest.raises(TypeError, match="dialect"):
        f"SELECT {A}"


# The vocabulary is closed, and DuckDB has all of it


def test_every_node_has_a_form() -> None:
    known = [*vars(scalars).values(), *vars(queries).values()]
    found = {one for one in known if isinstance(one, type) and issubclass(one, Node)}
    assert found - {Node, Scalar, Query, RowSource} | {Raw} == set(FORMS)


def test_duckdb_has_every_word() -> None:
    assert set(DUCKDB.types) == set(get_args(Storage))
    assert set(DUCKDB.functions) == set(get_args(Function))
    assert set(DUCKDB.operators) == set(get_args(Operator))
    assert set(DUCKDB.prefixes) == set(get_args(Prefix))
    assert set(DUCKDB.joins) == set(get_args(JoinForm))


# Another dialect


def test_what_a_dialect_lacks_is_refused() -> None:
    poor = replace(DUCKDB, name="Poor", functions={}, operators={}, types={}, joins={}, prefixes={}, files=None)
    for node in (
        function("ln", A),
        infix("+", A, B),
        cast(A, "int128"),
        join(T, T, [A]),
        negation(A),
        ParquetFiles("f"),
    ):
        with pytest.raises(NotAllowed, match="Poor"):
            print_node(node, poor)


def test_guards_come_before_or_after_or_refuse() -> None:
    def logarithm_of(given: Any, beyond: str) -> Scalar:
        return case((infix(">", given[0], number(0)), function("ln", given[0])))

    def quotient_of(given: Any, beyond: str) -> Scalar:
        return infix("/", *given) if beyond == "never" else case((infix(">", given[0], number(0)), infix("/", *given)))

    logarithm = Guarded(function("ln", A))
    careful = replace(DUCKDB, guards={"ln": "before", "/": "before"}, domains={"ln": logarithm_of, "/": quotient_of})
    assert print_node(Guarded(infix("/", A, B), beyond="never"), careful) == '("a" / "b")'
    assert print_node(Guarded(infix("/", A, B), beyond="never"), DUCKDB) == '("a" / "b")'
    assert print_node(logarithm, careful) == 'CASE WHEN ("a" > 0) THEN ln("a") END'
    assert print_node(Guarded(infix("/", A, B)), careful) == 'CASE WHEN ("a" > 0) THEN ("a" / "b") END'
    bound = print_node(Guarded(Apply("ln", (LONG,))), careful)
    assert bound.count(sql(LONG)) == 1
    for dialect in (replace(DUCKDB, guards={"ln": "refuse"}), replace(DUCKDB, guards={})):
        with pytest.raises(NotAllowed, match="ln"):
            print_node(logarithm, dialect)


# Lowering says nothing in SQL

WORDS = re.compile(
    r"\b(SELECT|FROM|WHERE|CAST|JOIN|GROUP BY|ORDER BY|PARTITION|OVER|UNION|EXCLUDE|LIMIT|VALUES|CASE|WHEN|NULL"
    r"|DISTINCT|struct_pack|struct_extract|list_\w+|string_agg|concat_ws|read_\w+|unnest|typeof|date_trunc)\b"
    r"|\b(BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DOUBLE|VARCHAR|TIMESTAMP)\b|::|\$\d|\bhash\(|\bxor\b"
)


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """String constants, parts of f-strings among them, but for docstrings and what errors say."""
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            said.add(id(node.value))
        if isinstance(node, ast.Raise):
            said |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def _folder(package: Any) -> Path:
    return Path(package.__file__).parent


@pytest.mark.parametrize(
    "path",
    [*_folder(lower).glob("*.py"), *_folder(nodes).glob("*.py")],
    ids=lambda path: f"{path.parent.name}.{path.stem}",
)
def test_lowering_writes_no_sql(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [(line, said) for line, said in _texts(tree) if WORDS.search(said)] == []
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [one for one in imported if re.match(r"hubbub\.engines\.(dialects|duckdb)\b", one)]


def test_sql_would_be_seen() -> None:
    dialect = ast.parse((_folder(dialects) / "duckdb.py").read_text(encoding="utf-8"))
    assert [said for _, said in _texts(dialect) if WORDS.search(said)]
    for text_ in (
        'x = f"SELECT {y}"',
        'cast(a, "BIGINT")',
        'f"{a}::x"',
        'Sql(f"lambda {a}: list_transform({b})")',
        'x = "$1"',
    ):
        assert [said for _, said in _texts(ast.parse(text_)) if WORDS.search(said)], text_
