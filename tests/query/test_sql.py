"""What is read, and how: SQL beside the operations that it becomes."""

from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pytest

from hubbub.errors import QueryError, TooHeavy
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.stamps import NO_FILES
from hubbub.query.aggregates.average import AVG
from hubbub.query.aggregates.count import ROWS, UNITS, VALUES
from hubbub.query.aggregates.function import AggregateFunction
from hubbub.query.aggregates.sum import SUM
from hubbub.query.aggregates.variance import STDDEV_POP, STDDEV_SAMP, VAR_POP, VAR_SAMP
from hubbub.query.check.shape import facts_of_declaration
from hubbub.query.expression import Column, Expression, columns_of, literal
from hubbub.query.functions import call
from hubbub.query.ops import Filter, JoinKind, JoinPublic, Scan, ScanColumn
from hubbub.query.question import Order
from hubbub.query.read.text.sql_text import picture
from tests.query.asking import STAYS, TABLES, WARDS, Catalogue, read, table

S = {one.name: Column(f"stays.{one.name}", one.kind) for one in STAYS}
COUNT = Column("noisy 0", integer(-(1 << 62), 1 << 62, nullable=False))
KEY = Column("key 0", of(Type.TEXT))


def scan(*columns: str, alias: str = "stays") -> Scan:
    kinds = {one.name: one.kind for one in STAYS}
    read_ = tuple(ScanColumn(f"{alias}.{one}", kinds[one], one) for one in columns)
    return Scan(table="stays", columns=read_, unit="patient_id")


def condition(sql: str) -> Expression:
    found = read(f"select count(*) from stays where {sql}").relation
    assert isinstance(found, Filter)
    assert isinstance(found.input, Scan)
    assert {one.name for one in found.input.columns} == columns_of(found.condition), "only what is used is scanned"
    return found.condition


def test_the_smallest_question() -> None:
    found = read("select count(*) from stays")
    assert found.relation == scan()
    assert found.groups == ()
    assert [(one.function, one.argument) for one in found.asked] == [(ROWS, None)]
    assert [(one.name, one.expression) for one in found.outputs] == [("count(*)", COUNT)]
    assert (found.having, found.order, found.limit, found.offset, found.columns) == (None, (), None, 0, {})


DAY = literal(date(2024, 2, 29))
AGE_REAL = call("to_real", S["age"])


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("age > 1", call("gt", S["age"], literal(1))),
        ("AGE >= 1.5", call("ge", AGE_REAL, literal(1.5))),
        ('"age" <> 1', call("ne", S["age"], literal(1))),
        ("stays.age = -1", call("eq", S["age"], literal(-1))),
        ("cost < 1", call("lt", S["cost"], literal(1.0))),
        ("cost = age", call("eq", S["cost"], AGE_REAL)),
        ("age between 1 and 2", call("and", call("ge", S["age"], literal(1)), call("le", S["age"], literal(2)))),
        ("age in (1, 2)", call("in", S["age"], literal(1), literal(2))),
        ("cost in (1, 2.5)", call("in", S["cost"], literal(1.0), literal(2.5))),
        ("ward not in ('a')", call("not", call("in", S["ward"], literal("a")))),
        ("ward is null", call("is_null", S["ward"])),
        ("ward is not null", call("not", call("is_null", S["ward"]))),
        ("ward = null", call("eq", S["ward"], literal(None, Type.TEXT))),
        ("urgent", S["urgent"]),
        ("urgent is true", call("case", call("eq", S["urgent"], literal(True)), literal(True), literal(False))),
        (
            "urgent and not urgent or true",
            call("or", call("and", S["urgent"], call("not", S["urgent"])), literal(True)),
        ),
        ("urgent and urgent and urgent", call("and", S["urgent"], S["urgent"], S["urgent"])),
        ("ward like 'a%'", call("like", S["ward"], literal("a%"))),
        ("ward not like 'a%'", call("not", call("like", S["ward"], literal("a%")))),
        ("starts_with(ward, 'it''s')", call("starts_with", S["ward"], literal("it's"))),
        ("day > '2024-02-29'", call("gt", S["day"], DAY)),
        ("day > date '2024-02-29'", call("gt", S["day"], DAY)),
        ("seen > date '2024-02-29'", call("gt", S["seen"], literal(datetime(2024, 2, 29)))),
        ("seen > timestamp '2024-02-29 01:02:03'", call("gt", S["seen"], literal(datetime(2024, 2, 29, 1, 2, 3)))),
        ("seen::date = date '2024-02-29'", call("eq", call("start_of_day", S["seen"]), DAY)),
        ("day - date '2024-02-29' > 3", call("gt", call("days_between", S["day"], DAY), literal(3))),
        ("age - 1 = 0", call("eq", call("subtract", S["age"], literal(1)), literal(0))),
        ("age / 2 = 1", call("eq", call("divide", AGE_REAL, literal(2.0)), literal(1.0))),
        ("age // 2 = 1", call("eq", call("quotient", S["age"], literal(2)), literal(1))),
        ("age % 2 = 1", call("eq", call("remainder", S["age"], literal(2)), literal(1))),
        ("-age < abs(age)", call("lt", call("negate", S["age"]), call("abs", S["age"]))),
        ("floor(cost) = 1", call("eq", call("floor", S["cost"]), literal(1))),
        ("ceil(age) = 1", call("eq", S["age"], literal(1))),
        ("round(cost) = 1", call("eq", call("to_integer", S["cost"]), literal(1))),
        ("cost::int = 1", call("eq", call("to_integer", S["cost"]), literal(1))),
        ("age::double = 1", call("eq", AGE_REAL, literal(1.0))),
        ("sqrt(age) = ln(cost)", call("eq", call("sqrt", AGE_REAL), call("ln", S["cost"]))),
        ("exp(cost) > 1e3", call("gt", call("exp", S["cost"]), literal(1000.0))),
        ("least(age, 1.5) = 1", call("eq", call("least", AGE_REAL, literal(1.5)), literal(1.0))),
        ("greatest(age, 1, 2) = 1", call("eq", call("greatest", S["age"], literal(1), literal(2)), literal(1))),
        (
            "coalesce(ward, null, 'x') = 'x'",
            call("eq", call("coalesce", S["ward"], literal(None, Type.TEXT), literal("x")), literal("x")),
        ),
        ("nullif(age, 0) = 1", call("eq", call("nullif", S["age"], literal(0)), literal(1))),
        ("if(urgent, 1, 2) = 1", call("eq", call("case", S["urgent"], literal(1), literal(2)), literal(1))),
        (
            "case ward when 'a' then urgent end",
            call("case", call("eq", S["ward"], literal("a")), S["urgent"], literal(None, Type.BOOLEAN)),
        ),
        (
            "length(trim(lower(upper(ward)))) = 1",
            call("eq", call("length", call("trim", call("lower", call("upper", S["ward"])))), literal(1)),
        ),
        ("substring(ward, 1, 2) = 'a'", call("eq", call("substring", S["ward"], literal(1), literal(2)), literal("a"))),
        ("year(day) = extract(quarter from day)", call("eq", call("year", S["day"]), call("quarter", S["day"]))),
        ("extract(dow from day) = dayofweek(day)", call("eq", call("weekday", S["day"]), call("weekday", S["day"]))),
        ("hour(seen) = extract(minute from seen)", call("eq", call("hour", S["seen"]), call("minute", S["seen"]))),
        ("date_trunc('week', day) = '2024-02-29'", call("eq", call("start_of_week", S["day"]), DAY)),
        (
            "urgent::int = 1",
            call(
                "eq",
                call(
                    "case", S["urgent"], literal(1), call("case", call("not", S["urgent"]), literal(0), literal(None))
                ),
                literal(1),
            ),
        ),
    ],
)
def test_conditions(sql: str, meant: Expression) -> None:
    assert condition(sql) == meant


@pytest.mark.parametrize(
    ("sql", "function", "argument"),
    [
        ("count(*)", ROWS, None),
        ("count()", ROWS, None),
        ("count(1)", ROWS, None),
        ("count(age)", ROWS, None),
        ("count(cost)", VALUES, S["cost"]),
        ("count(null)", VALUES, literal(None)),
        ("count(distinct patient_id)", UNITS, None),
        ("count(distinct STAYS.Patient_ID)", UNITS, None),
        ("sum(cost)", SUM, S["cost"]),
        ("avg(age + 1)", AVG, call("add", S["age"], literal(1))),
        ("var_pop(cost)", VAR_POP, S["cost"]),
        ("var_samp(cost)", VAR_SAMP, S["cost"]),
        ("variance(cost)", VAR_SAMP, S["cost"]),
        ("stddev_pop(cost)", STDDEV_POP, S["cost"]),
        ("stddev_samp(cost)", STDDEV_SAMP, S["cost"]),
        ("stddev(cost)", STDDEV_SAMP, S["cost"]),
    ],
)
def test_aggregates(sql: str, function: AggregateFunction, argument: Expression | None) -> None:
    (asked,) = read(f"select {sql} from stays").asked
    assert (asked.function, asked.argument) == (function, argument)


def test_the_same_aggregate_is_asked_once() -> None:
    found = read("select count(*), count(1) + count(*) as twice from stays having count(*) > 5 order by count(*)")
    assert len(found.asked) == 1
    assert [one.expression for one in found.outputs] == [COUNT, call("add", COUNT, COUNT)]
    assert found.having == call("gt", COUNT, literal(5))
    assert found.order == (Order(expression=COUNT, descending=False, nulls_first=False),)


@pytest.mark.parametrize(
    "sql",
    [
        "select ward, count(*) as n from stays group by ward having n > 5 order by n desc, ward nulls first",
        "select ward as w, count(*) as n from stays group by w having n > 5 order by 2 desc, 1 nulls first",
        "select ward, count(*) from stays group by 1 having count(*) > 5 order by 2 desc, stays.ward nulls first",
        "from stays select ward, count(*) as n group by WARD having N > 5 order by N desc, WARD nulls first",
    ],
)
def test_aliases_ordinals_having_order_and_limit(sql: str) -> None:
    found = read(sql + " limit 2 offset 1")
    (group,) = found.groups
    assert (group.expression, group.values) == (S["ward"], ("a", "b", "c"))
    assert [one.expression for one in found.outputs] == [KEY, COUNT]
    assert found.having == call("gt", COUNT, literal(5))
    assert [(one.expression, one.descending, one.nulls_first) for one in found.order] == [
        (COUNT, True, False),
        (KEY, False, True),
    ]
    assert (found.limit, found.offset) == (2, 1)


def test_a_column_hides_an_alias_of_its_name() -> None:
    found = read("select lower(ward) as ward, count(*) from stays group by lower(ward)")
    assert found.groups[0].expression == call("lower", S["ward"])
    with pytest.raises(QueryError):
        read("select age as ward, count(*) from stays group by age having ward = 'a'")


def test_expressions_over_keys_and_noise() -> None:
    found = read("select upper(ward), 2 * sum(cost) / count(*) from stays group by ward")
    total = Column("noisy 0", of(Type.REAL))
    many = replace(COUNT, name="noisy 1")
    assert [one.expression for one in found.outputs] == [
        call("upper", KEY),
        call("divide", call("multiply", literal(2.0), total), call("to_real", many)),
    ]


@pytest.mark.parametrize(
    ("key", "where", "values"),
    [
        ("ward", "true", ("a", "b", "c")),
        ("ward", "ward in ('b', 'z', 'b')", ("b", "z")),
        ("ward", "ward = 'b' and age > 1", ("b",)),
        ("ward", "ward in ('b') or age > 1", ("a", "b", "c")),
        ("upper(ward)", "true", ("A", "B", "C")),
        ("length(ward)", "true", (1,)),
        ("ward = 'a'", "true", (True, False)),
        ("points", "points in (3, 1)", (3, 1)),
        ("year(day)", "year(day) in (2024, 2023)", (2024, 2023)),
        ("quarter(day)", "true", (1, 2, 3, 4, None)),
        ("age > 18", "true", (False, True)),
        ("urgent", "true", (False, True, None)),
        ("age", "true", tuple(range(121))),
        ("age // 50", "true", (0, 1, 2)),
        (
            "case when age < 18 then 'child' when age < 60 then 'adult' else 'old' end",
            "true",
            ("child", "adult", "old"),
        ),
        ("case when age < 18 then 'child' end", "true", ("child", None)),
        ("'all'", "true", ("all",)),
        ("day", "day in ('2024-01-02', date '2024-01-01')", (date(2024, 1, 2), date(2024, 1, 1))),
    ],
)
def test_where_keys_come_from(key: str, where: str, values: tuple[Any, ...]) -> None:
    found = read(f"select {key}, count(*) from stays where {where} group by {key}").groups[0].values
    assert found == values
    assert [type(one) for one in found] == [type(one) for one in values]


def test_keys_of_a_public_table() -> None:
    found = read("select w.floor, count(*) from stays s join wards w on s.ward = w.id group by w.floor")
    assert found.groups[0].values == (1, 2)
    assert found.columns.keys() == {"s.ward", "w.id", "w.floor"}


def test_too_many_keys_are_refused() -> None:
    many = Catalogue(values={("wards", "floor"): tuple(range(100_001))})
    with pytest.raises(TooHeavy, match="100,001 groups"):
        read("select floor, count(*) from stays s join wards w on s.ward = w.id group by floor", many)


WARD, ID = Column("s.ward", of(Type.TEXT)), Column("w.id", of(Type.TEXT, nullable=False))
LEFT_SIDE = scan("ward", alias="s")
RIGHT_SIDE = Scan(table="wards", columns=(ScanColumn("w.id", ID.kind, "id"),), unit=None)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("stays s join wards w on s.ward = w.id", JoinKind.INNER),
        ("stays s inner join wards w on w.id = s.ward", JoinKind.INNER),
        ("stays s join wards w on (s.ward = w.id)", JoinKind.INNER),
        ("wards w join stays s on s.ward = w.id", JoinKind.INNER),
        ("wards w join stays s on w.id = s.ward", JoinKind.INNER),
        ("stays s left join wards w on s.ward = w.id", JoinKind.LEFT),
        ("stays s left outer join wards w on w.id = s.ward", JoinKind.LEFT),
    ],
)
def test_joins(sql: str, kind: JoinKind) -> None:
    found = read(f"select count(*) from {sql}").relation
    assert found == JoinPublic(input=LEFT_SIDE, public=RIGHT_SIDE, kind=kind, keys=((WARD, ID),), most=1, held=NO_FILES)


def test_joins_with_using_and_more_conditions() -> None:
    found = read("select count(*) from stays s join wards w using (ward)").relation
    assert isinstance(found, JoinPublic)
    assert found.keys == ((WARD, Column("w.ward", of(Type.TEXT))),)
    both = read(
        "select count(*) from stays s join wards w on s.ward = w.id and w.floor > s.age where s.urgent"
    ).relation
    assert isinstance(both, Filter)
    assert isinstance(both.input, Filter)
    assert both.condition == Column("s.urgent", of(Type.BOOLEAN))
    assert both.input.condition == call("gt", Column("w.floor", WARDS[1].kind), Column("s.age", STAYS[3].kind))
    chain = read(
        "select count(*) from stays s left join wards w on s.ward = w.id join cities c on w.floor = c.on_floor"
    ).relation
    assert isinstance(chain, JoinPublic)
    assert chain.keys[0][0] == Column("w.floor", of(Type.INTEGER))


def test_using_compares_types_too() -> None:
    """Text and numbers would be cast row by row in the engine, and a row that does not cast would raise."""
    with pytest.raises(QueryError, match="eq takes two values of one type"):
        read("select count(*) from stays join wards using (patient_id)")


def test_columns_of_a_left_join_may_be_missing() -> None:
    (inner,) = read("select count(w.floor) from stays s join wards w on s.ward = w.id").asked
    (left,) = read("select count(w.floor) from stays s left join wards w on s.ward = w.id").asked
    assert inner.function is ROWS
    assert (left.function, left.argument) == (VALUES, Column("w.floor", of(Type.INTEGER)))
    (group,) = read("select w.floor > 1, count(*) from stays s left join wards w on s.ward = w.id group by 1").groups
    assert group.expression.kind.nullable


@pytest.mark.parametrize(("fanout", "fits"), [(1000, True), (1001, False)])
def test_fanout_is_limited(fanout: int, fits: bool) -> None:
    catalogue = Catalogue(fanout={"wards": fanout})
    sql = "select count(*) from stays s join wards w on s.ward = w.id"
    if fits:
        found = read(sql, catalogue).relation
        assert isinstance(found, JoinPublic)
        assert found.most == 1000
    else:
        with pytest.raises(TooHeavy, match="1,001 rows"):
            read(sql, catalogue)


def test_fanouts_multiply() -> None:
    catalogue = Catalogue(fanout={"wards": 40, "cities": 26})
    with pytest.raises(TooHeavy, match="1,040 rows"):
        read("select count(*) from stays s join wards w on s.ward = w.id join cities c on c.city = s.ward", catalogue)


def test_names_with_dots_cannot_be_mixed_up() -> None:
    """``a`` with a column ``b.c``, and ``a.b`` with a column ``c``, are two columns of one question."""
    first, second = replace(STAYS[1], name="b.c"), replace(STAYS[1], name="c", keys=("x",))
    tables = TABLES | {
        name: table(name, (STAYS[0], column), "patient_id") for name, column in (("one", first), ("two", second))
    }
    catalogue = Catalogue(replace(Catalogue().policy, tables=tables))
    joined = 'one a join two "a.b" on a.patient_id = "a.b".patient_id'
    found = read(f'select a."b.c", "a.b".c, count(*) from {joined} group by 1, 2', catalogue)
    assert found.columns == {
        'a."b.c"': facts_of_declaration(first, unit=False),
        '"a.b".c': facts_of_declaration(second, unit=False),
    }
    assert [group.values for group in found.groups] == [("a", "b", "c"), ("x",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, COUNT(*) AS n FROM stays WHERE age > 18 GROUP BY ward",
        "select WARD,count( * ) n from STAYS where AGE>18 group by WARD",
        "select /* a */ ward, count(*) as n -- b\nfrom stays\n where age > 18 group by ward ;",
        "from stays select ward, count(*) n where age > 18 group by ward",
    ],
)
def test_one_question_has_one_text(sql: str) -> None:
    assert read(sql).text == "SELECT ward, COUNT(*) AS n FROM stays WHERE age > 18 GROUP BY ward"


def test_other_questions_have_other_texts() -> None:
    questions = [
        "select count(*) from stays where ward = 'a'",
        "select count(*) from stays where ward = 'A'",
        "select count(*) from stays where ward = ' a'",
        "select count(*) from stays where ward = 'a --'",
        "select count(*) from stays where age between 1 and 5",
        "select count(*) from stays where age between 5 and 1",
        "select count(*) from stays where age = 1",
        "select count(*) from stays where age = 1.0",
        "select count(*) from stays where age = 1 limit 1",
        "select count(*) from stays where age = 1 limit 1 offset 1",
        "select count(*) from stays where age // 2 = 1",
        "select count(*) from stays where age / 2 = 1",
        "select count(*) from stays join wards on stays.ward = wards.id",
        "select count(*) from stays left join wards on stays.ward = wards.id",
    ]
    assert len({read(one).text for one in questions}) == len(questions)


@pytest.mark.parametrize(
    ("sql", "under"),
    [
        ("select count(*) from nothing", "nothing"),
        ("select count(*) from stays where nope = 1", "nope = 1"),
        ("select count(*), kurtosis(cost) from stays", "kurtosis(cost"),
        ("select count(*)\nfrom stays\nwhere ward = 1", "ward = 1"),
        ("select ward, cost, count(*) from stays group by ward", "cost"),
        ("select points, count(*) from stays group by points", "points"),
        ("select count(*) form stays", "stays"),
    ],
)
def test_carets_stand_under_the_place(sql: str, under: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(sql)
    _, line, carets = caught.value.message.split("\n    ")
    marked = line[len(carets) - len(carets.lstrip()) : len(carets)]
    assert marked == under


def test_pictures() -> None:
    assert picture("select x", 7, 7) == "\n    select x\n           ^"
    assert picture("a\nbcd\ne", 3, 4) == "\n    bcd\n     ^^"
    assert picture("a\tb", 2, 2) == "\n    a b\n      ^"
    assert picture("x" * 200, 150, 151).split("\n")[2].count("^") == 2
    assert picture("abc", None, None) == picture("abc", 5, 5) == ""
    assert len(picture("x" * 5000, 2500, 2500)) < 300
