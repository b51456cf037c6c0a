"""Joins, subqueries, groupings and windows within a unit, from SQL to exact tallies.

What an analyst writes must mean what it says: without bounds in the way, each question gives what DuckDB itself gives
for the same text. And what one person adds stays within what was proven: rows of one person are taken away, the others
shuffled, and the tallies may differ by no more.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import NotOwned, TooHeavy
from hubbub.ledger import Ledger, Marks
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, TableColumn
from hubbub.privacy.filter import Budget
from hubbub.query.ops import (
    Cap,
    JoinKind,
    JoinOwn,
    Match,
    Project,
    Reduce,
    Reduction,
    Relation,
    RelationUnion,
    Scan,
    ScanColumn,
    below,
)
from hubbub.query.plan.plan import plan
from hubbub.session.database import Database
from tests.query import inside
from tests.query.asking import TABLES as TABLES_ASKED
from tests.query.asking import Catalogue, policy, read, table
from tests.query.owned import fill

STAYS = (
    TableColumn(name="person", kind=of(Type.INTEGER)),
    TableColumn(name="ward", kind=of(Type.TEXT), keys=("a", "b", "c")),
    TableColumn(name="nights", kind=integer(0, 50), bounds=(Fraction(0), Fraction(50))),
    TableColumn(name="day", kind=of(Type.DATE)),
    TableColumn(name="urgent", kind=of(Type.BOOLEAN)),
)
VISITS = (
    TableColumn(name="who", kind=of(Type.INTEGER)),
    TableColumn(name="ward", kind=of(Type.TEXT), keys=("a", "b", "c")),
    TableColumn(name="fee", kind=integer(0, 9), bounds=(Fraction(0), Fraction(9))),
)
PLACES = (TableColumn(name="id", kind=of(Type.TEXT)), TableColumn(name="floor", kind=integer(0, 9, nullable=False)))
PUBLIC = [{"id": "a", "floor": 1}, {"id": "a", "floor": 2}, {"id": "b", "floor": 2}, {"id": "z", "floor": 3}]
TABLES = {
    "stays": inside._table("stays", STAYS, "person"),
    "visits": inside._table("visits", VISITS, "who"),
    "places": inside._table("places", PLACES, None),
}
WIDE = Limits(max_groups=1000, max_rows=10_000, max_unit_rows=1000)
NARROW = Limits(max_groups=2, max_rows=3, max_unit_rows=2)

QUESTIONS = [
    line
    for line in (Path(__file__).parents[1] / "fixtures" / "plans" / "relations.sql").read_text().splitlines()
    if line and not line.startswith("--")
]


class World(inside.World):
    """Two private tables of the same people, and a public one."""

    def __init__(self, folder: Path) -> None:
        self.budget = Budget(epsilon=Fraction(10**6))
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
        self.engine = inside.Inside(inside.connected())
        fill(self.engine.connection, "places", inside._kinds(PLACES), PUBLIC)

    def put(self, stays: inside.Rows, visits: inside.Rows, limits: Limits) -> Database:
        fill(self.engine.connection, "stays", inside._kinds(STAYS), stays)
        fill(self.engine.connection, "visits", inside._kinds(VISITS), visits)
        version = str(next(inside._VERSIONS))
        facts: dict[str, Any] = {"account": "people", "budget": self.budget, "tables": TABLES}
        return Database(Policy(**facts, limits=limits, version=version), ledger=self.ledger, engine=self.engine)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("relations"))
    yield made
    made.close()


def rows(rng: Random, people: int, most: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Stays and visits; some people have none of one."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    stays = [
        {
            "person": person,
            "ward": maybe(rng.choice("abcz")),
            "nights": maybe(rng.randint(0, 12)),
            "day": maybe(f"20{rng.randint(23, 24)}-0{rng.randint(1, 3)}-1{rng.randint(0, 9)}"),
            "urgent": maybe(rng.random() < 0.5),
        }
        for person in range(people)
        for _ in range(rng.randint(0, most))
    ]
    visits = [
        {"who": person, "ward": maybe(rng.choice("abc")), "fee": maybe(rng.randint(0, 9))}
        for person in range(people + 3)
        for _ in range(rng.randint(0, most))
    ]
    rng.shuffle(stays)
    rng.shuffle(visits)
    return stays, visits


def cells(db: Database, text: str) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """The exact tallies of each group."""
    planned = db.plan(text, epsilon=1)
    with inside.fixed_key():
        found = exact_of(db, planned.aggregate)
    return dict(zip(found.cells, found.tallies, strict=True))


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_means_what_it_says(world: World, text: str) -> None:
    for seed in range(2):
        db = world.put(*rows(Random(seed), 8, 5), WIDE)
        keys = len(db.plan(text, epsilon=1).question.groups)
        expected = {
            tuple(row[:keys]): tuple(int(value or 0) for value in row[keys:])
            for row in world.engine.connection.execute(text).fetchall()
        }
        found = {cell: one for cell, one in cells(db, text).items() if any(one)}
        assert found == {cell: one for cell, one in expected.items() if cell in cells(db, text) and any(one)}
        assert not keys or len(found) >= 1


@pytest.mark.parametrize("text", QUESTIONS)
def test_one_person_moves_it_by_what_was_proven(world: World, text: str) -> None:
    rng = Random(text)
    stays, visits = rows(rng, 5, 6)
    stays += [{**stays[0], "person": None}]
    one = inside.ask(world.put(stays, visits, NARROW), text)
    assert one.outcome == "answered"
    for gone in rng.sample(range(5), 2):
        fewer = [row for row in stays if row["person"] != gone], [row for row in visits if row["who"] != gone]
        shuffled = rng.sample(fewer[0], len(fewer[0])), rng.sample(fewer[1], len(fewer[1]))
        assert inside.faults(one, inside.ask(world.put(*shuffled, NARROW), text)) == []
    shuffled = rng.sample(stays, len(stays)), rng.sample(visits, len(visits))
    assert inside.faults(one, inside.ask(world.put(*shuffled, NARROW), text), same=True) == []


def test_what_is_explained_and_answered_again(world: World) -> None:
    db = world.put(*rows(Random(1), 8, 5), WIDE)
    text = "with t as (select person, count(*) as n from stays group by person) select sum(n) as s from t where n > 1"
    assert "reduce: one row for each unit" in str(db.explain(text, epsilon=1).to_dict())
    first = db.sql(text, epsilon=1)
    again = db.sql(text.upper().replace(" FROM", "\n  FROM"), epsilon=1)
    assert first.entry == again.entry


# What is made of a question, without data.


def ops(relation: Relation) -> list[Relation]:
    return [relation, *(one for op in below(relation) for one in ops(op))]


def kinds(text: str, catalogue: Catalogue | None = None) -> list[str]:
    return [type(op).__name__ for op in ops(read(text, catalogue).relation)]


def test_sides_of_a_private_join_are_capped() -> None:
    relation = read("select count(*) from stays s join visits v on s.patient_id = v.patient_id").relation
    assert isinstance(relation, JoinOwn)
    assert relation.keys == ()
    assert [type(one) for one in below(relation)] == [Cap, Cap]
    assert all(isinstance(one, Cap) and one.most == 1000 for one in below(relation))


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from stays s join (select patient_id from visits group by patient_id) v using (patient_id)",
        "select count(*) from (select patient_id, max(ward) w from visits group by 1) v join stays using (patient_id)",
        "select count(*) from stays s join (select patient_id, ward, count(*) as n from visits group by 1, 2) v"
        " on s.patient_id = v.patient_id and s.ward = v.ward",
        "select count(*) from stays where patient_id in (select patient_id from visits)",
        "select sum(n) from (select count(*) over (partition by patient_id, ward) as n from stays)",
    ],
)
def test_nothing_is_capped_where_a_row_has_one_partner(text: str) -> None:
    assert "Cap" not in kinds(text)


def test_a_part_of_the_keys_is_not_one_partner() -> None:
    text = (
        "select count(*) from stays s join (select patient_id, ward, count(*) as n from visits group by 1, 2) v"
        " on s.patient_id = v.patient_id"
    )
    assert kinds(text).count("Cap") == 2


def test_a_table_that_was_checked_needs_no_cap() -> None:
    visits = replace(TABLES_ASKED["visits"], unique=True)
    text = "select count(*) from stays s join visits v on s.patient_id = v.patient_id"
    said = policy(tables=TABLES_ASKED | {"visits": visits})
    assert kinds(text, Catalogue(said)).count("Cap") == 2
    assert (
        kinds(text, Catalogue(replace(said, enforced=frozenset({"visits"}), seen={"visits": NO_FILES}))).count("Cap")
        == 0
    )


@pytest.mark.parametrize(("most", "fits"), [(1000, True), (1001, False)])
def test_private_fanout_is_limited(most: int, fits: bool) -> None:
    catalogue = Catalogue(policy(limits=Limits(max_rows=5, max_unit_rows=most)))
    text = "select count(*) from stays s join visits v on s.patient_id = v.patient_id"
    if fits:
        assert kinds(text, catalogue) == ["JoinOwn", "Cap", "Scan", "Cap", "Scan"]
    else:
        with pytest.raises(TooHeavy, match="1,001 rows"):
            read(text, catalogue)


def test_fanouts_of_private_and_public_tables_multiply() -> None:
    text = "select count(*) from stays s join visits v using (patient_id) join wards w on w.id = s.ward"
    assert kinds(text)[0] == "JoinPublic"
    with pytest.raises(TooHeavy, match="2,000 rows"):
        read(text, Catalogue(fanout={"wards": 2}))


def test_joins_of_joins_are_capped_again() -> None:
    text = "select count(*) from stays a join visits b using (patient_id) join visits c using (patient_id)"
    assert kinds(text) == ["JoinOwn", "Cap", "JoinOwn", "Cap", "Scan", "Cap", "Scan", "Cap", "Scan"]


def test_units_of_other_types_are_other_units() -> None:
    staff = table("staff", (TableColumn(name="patient_id", kind=of(Type.TEXT)), STAYS[1]), "patient_id")
    catalogue = Catalogue(policy(tables=TABLES_ASKED | {"staff": staff}))
    for text in (
        "select count(*) from stays s join staff t on s.ward = t.ward",
        "select count(*) from (select ward from stays union all select ward from staff)",
        "select count(*) from stays s where exists (select 1 from staff t where t.ward = s.ward)",
    ):
        with pytest.raises(NotOwned):
            read(text, catalogue)


def test_a_right_join_is_a_left_join_the_other_way() -> None:
    found = read("select count(*) from stays s right join visits v on s.patient_id = v.patient_id and s.ward = v.ward")
    assert isinstance(found.relation, JoinOwn)
    assert found.relation.kind is JoinKind.LEFT
    assert [one.name for pair in found.relation.keys for one in pair if hasattr(one, "name")] == ["v.ward", "s.ward"]
    assert [op.table for op in ops(found.relation) if isinstance(op, Scan)] == ["visits", "stays"]


def test_a_unit_that_may_be_missing_is_compared_too() -> None:
    text = (
        "select count(*) from stays a left join visits b on a.patient_id = b.patient_id"
        " join visits c on c.patient_id = {}.patient_id"
    )
    for alias, keys in (("a", 0), ("b", 1)):
        found = read(text.format(alias)).relation
        assert isinstance(found, JoinOwn)
        assert len(found.keys) == keys


def test_only_what_is_used_is_read() -> None:
    text = "with t as (select * from stays) select count(*) from t a join t b using (patient_id) where a.age > b.age"
    assert [op.columns for op in ops(read(text).relation) if isinstance(op, Scan)] == [
        (ScanColumn("stays.age", integer(0, 120, nullable=False), "age"),)
    ] * 2
    unused = "select count(*) from (select cost, row_number() over (partition by patient_id) as n from stays)"
    assert "Window" not in kinds(unused)


def test_the_unit_is_not_a_key_of_its_own_grouping() -> None:
    """Otherwise a unit would not be known to have one row."""
    found = read("select count(*) from (select patient_id, sum(age) as t from stays group by 1) where patient_id > 3")
    (reduce,) = [op for op in ops(found.relation) if isinstance(op, Reduce)]
    assert reduce.keys == ()
    assert [one.reduction for one in reduce.columns] == [Reduction.LEAST]
    assert plan(found, policy(), epsilon=1).aggregate.single


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        ("age", (0, 110)),
        ("-age as x", (-110, 0)),
        ("age * 2 as age", (0, 220)),
        ("case when urgent then age else 200 end as cost", (0, 200)),
        ("points as cost", None),
        ("weight as cost", None),
        ("cost + weight as cost", None),
        ("least(greatest(points, 1), 9) as age", (1, 9)),
        ("year(day) as age", (1, 9999)),
        ("lag(age) over (partition by patient_id order by day) as points", (0, 110)),
        ("row_number() over (partition by patient_id order by day) as age", (0, 5)),
        ("sum(age) over (partition by patient_id) as age", (0, 550)),
        ("max(cost) over (partition by patient_id) as age", (0, 100)),
    ],
)
def test_bounds_come_from_how_a_column_is_made(column: str, bounds: Any) -> None:
    found = read(f"select count(nullif(c, c)) from (select {column} from stays) t(c)")
    assert found.columns["t.c"].bounds == bounds


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        ("count(*)", (0, 5)),
        ("count(distinct ward)", (0, 5)),
        ("sum(age)", (0, 550)),
        ("sum(-age)", (-550, 0)),
        ("sum(age + 10)", (0, 600)),
        ("sum(points)", None),
        ("avg(age)", (0, 110)),
        ("avg(age) - 10", (-10, 100)),
        ("min(cost)", (0, 100)),
        ("max(points)", None),
        ("sum(age) + count(*)", (0, 555)),
    ],
)
def test_bounds_of_what_a_unit_adds_up_to(column: str, bounds: Any) -> None:
    found = read(f"select count(nullif(c, c)) from (select {column} from stays group by patient_id) t(c)")
    assert found.columns["t.c"].bounds == bounds


def test_counts_keep_their_range_and_totals_theirs() -> None:
    text = "select count(n), count(t) from (select count(ward) as n, sum(age) as t from stays group by patient_id) t"
    (reduce,) = [op for op in ops(read(text).relation) if isinstance(op, Reduce)]
    (total,) = reduce.columns  # a count is never missing, so that counting it needs no column
    assert total.kind == integer(0, 110_000)
    assert total.clamp == (Fraction(0), Fraction(110))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("select g, count(*) from (select ward as g from stays) group by g", ("a", "b", "c")),
        ("select g, count(*) from (select upper(ward) as g from stays) group by g", ("A", "B", "C")),
        ("select ward, count(*) from (select age // 50 as ward from stays) group by ward", (0, 1, 2)),
        ("select g, count(*) from (select ward as g from stays where ward in ('b', 'z')) group by g", ("b", "z")),
        ("select g, count(*) from (select patient_id, ward as g from stays group by 1, 2) group by g", ("a", "b", "c")),
        ("select g, count(*) from (select distinct patient_id, ward as g from stays) group by g", ("a", "b", "c")),
        (
            "select g, count(*) from (select f as g from (select floor as f, id from wards) join stays on id = ward)"
            " group by g",
            (1, 2),
        ),
        (
            "select g, count(*) from (select lead(ward) over (partition by patient_id order by age) as g from stays)"
            " group by g",
            ("a", "b", "c"),
        ),
        (
            "select g, count(*) from (select least(count(*), 3) as g from stays group by patient_id) group by 1",
            (1, 2, 3),
        ),
    ],
)
def test_public_values_come_from_how_a_column_is_made(text: str, values: tuple[Any, ...]) -> None:
    assert read(text).groups[0].values == values


def test_a_union_keeps_what_holds_in_all_branches() -> None:
    text = "select count(nullif(x, x)) from (select {} x, ward from stays union all select {}, ward from stays)"
    assert read(text.format("age", "age + 5")).columns["subquery1.x"].bounds == (Fraction(0), Fraction(115))
    assert read(text.format("age", "points")).columns["subquery1.x"].bounds is None
    found = read(text.format("age", "cost"))
    assert found.columns["subquery1.x"].kind == of(Type.REAL)
    (union,) = [op for op in ops(found.relation) if isinstance(op, RelationUnion)]
    assert all(isinstance(one, Project) for one in union.inputs)


def test_matches_carry_what_is_compared_besides_the_unit() -> None:
    (found,) = [
        op
        for op in ops(
            read(
                "select count(*) from stays where (patient_id, ward) in (select patient_id, ward from visits)"
            ).relation
        )
        if isinstance(op, Match)
    ]
    assert (len(found.keys), found.without) == (1, False)


def test_one_text_for_one_question_of_subqueries() -> None:
    one = read("with T as (select * from STAYS) select count(*) from T where AGE > 3 -- so")
    other = read("WITH t AS (SELECT * FROM stays)\n SELECT COUNT(*) FROM t WHERE age > 3")
    assert one.text == other.text
    assert one.text != read("with t as (select * from visits) select count(*) from t").text
