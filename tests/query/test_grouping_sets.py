"""ROLLUP, CUBE and GROUPING SETS: which sets, in which order, with which numbers, at which price."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
import pytest

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import NotAllowed, TooHeavy
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.query.plan import collect as sets
from hubbub.query.plan.collect import cross_sets, cube, rollup
from hubbub.query.plan.plan import plan
from hubbub.session.database import Database
from tests.query.asking import POLICY, Catalogue, policy, read
from tests.query.inside import STAYS, World, fixed_key, row
from tests.query.owned import fill
from tests.query.posts import Forum, counted, moved, post, without_noise

LIMITS = Limits(max_groups=50, max_rows=50)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def stays(rng: Random) -> list[dict[str, Any]]:
    wards, urgent = ("a", "b", "c"), (True, False, None)
    return [row(rng.randrange(40), ward=rng.choice(wards), urgent=rng.choice(urgent), nights=1) for _ in range(300)]


def test_the_sets_of_each_word() -> None:
    a, b, c = (0,), (1,), (2,)
    assert rollup([a, b, c]) == [(0, 1, 2), (0, 1), (0,), ()]
    assert rollup([(0, 2), b]) == [(0, 1, 2), (0, 2), ()]
    assert cube([a, b]) == [(0, 1), (0,), (1,), ()]
    assert cross_sets([[a], rollup([b, c])]) == [(0, 1, 2), (0, 1), (0,)]
    assert cross_sets([]) == [()]
    with pytest.raises(TooHeavy):
        cube([(place,) for place in range(5)])
    assert len(cube([(place,) for place in range(4)])) == sets.MOST_SETS
    with pytest.raises(TooHeavy):
        cross_sets([rollup([a, b, c]), rollup([a, b, c, (3,)])])


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ward, urgent", ()),
        ("grouping sets ((ward, urgent))", ()),
        ("(ward, urgent)", ()),
        ("grouping sets (())", ()),
        ("()", ()),
        ("rollup (ward, urgent)", ((0, 1), (0,), ())),
        ("cube (ward, urgent)", ((0, 1), (0,), (1,), ())),
        ("grouping sets ((urgent), ward, (), (ward, urgent))", ((0,), (1,), (), (0, 1))),
        ("grouping sets (rollup (ward), (urgent))", ((0,), (), (1,))),
        ("ward, rollup (urgent, age)", ((0, 1, 2), (0, 1), (0,))),
        ("rollup ((ward, urgent), age)", ((0, 1, 2), (0, 1), ())),
        ("ward, rollup (ward)", ((0,), (0,))),
        ("rollup (1)", ((0,), ())),
        ("rollup (w)", ((0,), ())),
    ],
)
def test_what_is_read(clause: str, expected: tuple[tuple[int, ...], ...]) -> None:
    text = f"select ward as w, count(*) from stays group by {clause}"
    if "ward" not in clause and "1" not in clause and "w" not in clause:
        text = f"select count(*) from stays group by {clause}"
    found = read(text)
    assert found.sets == expected


QUERIES = (
    "SELECT ward, urgent, count(*), count(DISTINCT person), sum(nights) FROM stays GROUP BY ROLLUP (ward, urgent)",
    "SELECT ward, urgent, grouping(ward, urgent), count(*) FROM stays GROUP BY CUBE (ward, urgent)",
    "SELECT grouping(urgent), urgent, grouping_id(ward), count(*) FROM stays GROUP BY GROUPING SETS ((urgent), (ward))",
    "SELECT ward, count(*) FROM stays GROUP BY ward, ROLLUP (urgent)",
    "SELECT coalesce(ward, 'all'), count(*) AS n FROM stays GROUP BY ROLLUP (ward) HAVING count(*) > 10",
    "SELECT upper(ward), grouping(ward) = 1, count(*) FROM stays GROUP BY GROUPING SETS ((ward), ())",
    "SELECT count(*) FROM stays GROUP BY GROUPING SETS ((), ())",
)


@pytest.mark.parametrize("text", QUERIES)
def test_without_noise_the_answer_is_that_of_sql(world: World, text: str) -> None:
    """Against DuckDB itself. Ours has the public groups that nobody is in, too: their numbers are 0."""
    rows = stays(Random("sql"))
    connection = duckdb.connect()
    fill(connection, "stays", [(column.name, column.kind) for column in STAYS], rows)
    meant = Counter(connection.execute(text).fetchall())
    connection.close()
    with without_noise():
        answer = world.load(rows, limits=LIMITS).sql(text, epsilon=1)
    found = Counter(tuple(int(cell) if isinstance(cell, float) else cell for cell in one) for one in answer.rows)
    assert meant == Counter({one: many for one, many in found.items() if any(_number(cell) for cell in one[-1:])})


def _number(cell: Any) -> bool:
    return not isinstance(cell, bool) and isinstance(cell, int) and cell > 0


def test_sets_stand_below_each_other_and_can_be_sorted(world: World) -> None:
    db = world.load([row(1, ward="a"), row(2, ward="b")], limits=LIMITS)
    with without_noise():
        first = db.sql("SELECT ward, count(*) FROM stays WHERE ward IN ('b', 'a') GROUP BY ROLLUP (ward)", epsilon=1)
        again = db.sql(
            "SELECT ward, count(*) AS n FROM stays WHERE ward IN ('b', 'a') GROUP BY ROLLUP (ward) "
            "ORDER BY n DESC, ward LIMIT 2",
            epsilon=1,
        )
    assert first.rows == (("b", 1), ("a", 1), (None, 2))
    assert again.rows == ((None, 2), ("a", 1))


def test_every_set_is_paid_for_and_has_its_own_bound(world: World) -> None:
    text = "select ward, urgent, count(distinct patient_id), sum(age) from stays group by rollup (ward, urgent)"
    made = plan(read(text), POLICY, epsilon=3)
    assert [one.epsilon for one in made.sets] == [1, 1, 1]
    assert [one.aggregate.most_groups for one in made.sets] == [3, 3, 1]
    assert [one.cells for one in made.sets] == [9, 3, 1]
    assert made.cells == 13
    assert made.events == tuple(event for one in made.sets for event in one.events)
    assert sum(event.epsilon for event in made.events if event.epsilon is not None) <= 3
    alone = plan(read("select count(distinct patient_id), sum(age) from stays"), POLICY, epsilon=1)
    assert made.sets[2].mechanisms == alone.mechanisms
    approx = policy(budget=Budget(epsilon=Fraction(4), delta=Fraction(1, 1000)))
    gaussian = plan(read(text, Catalogue(approx)), approx, epsilon=3, delta=Fraction(3, 10**5))
    assert [one.delta for one in gaussian.sets] == [Fraction(1, 10**5)] * 3

    db = world.load(stays(Random("price")), limits=LIMITS)
    asked = "SELECT ward, count(*) FROM stays GROUP BY ROLLUP (ward)"
    told = db.explain(asked, epsilon=1)
    before = db.ledger.statement("people").spent.loss
    first = db.sql(asked, epsilon=1)
    assert db.ledger.statement("people").spent.loss - before == told.to_dict()["cost"]["loss_units"]
    assert db.sql(asked, epsilon=1).rows == first.rows
    assert told.to_dict()["sets"] == [["ward"], []]
    assert "in each of 2 grouping sets" in str(told)
    assert str(first)


def test_too_many_groups_together() -> None:
    tight = policy(limits=Limits(max_groups=3, max_rows=5, max_cells=12))
    with pytest.raises(TooHeavy, match="13 groups"):
        plan(read("select count(*) from stays group by rollup (ward, urgent)", Catalogue(tight)), tight, epsilon=1)


def test_grouping_takes_keys() -> None:
    with pytest.raises(NotAllowed, match="keys"):
        read("select grouping(age), count(*) from stays group by rollup (ward)")


def test_neighbours_in_every_set(world: World, tmp_path: Path) -> None:
    """A unit is in every set, in each within its own bound: the sets together move by the sum of theirs."""
    rng = Random("neighbours")
    rows = stays(rng)
    extra = [row(99, ward=rng.choice("abc"), urgent=rng.choice((True, None)), nights=1) for _ in range(30)]
    db = world.load(rows, limits=Limits(max_groups=2, max_rows=3))
    made = db.plan("SELECT ward, urgent, count(*) FROM stays GROUP BY CUBE (ward, urgent)", epsilon=1)

    def tallies(db: Database) -> list[list[tuple[int, ...]]]:
        with fixed_key():
            return [exact_of(db, one.aggregate).tallies for one in made.sets]

    one = tallies(db)
    other = tallies(world.load([*extra, *rows], limits=Limits(max_groups=2, max_rows=3)))
    for part, left, right in zip(made.sets, one, other, strict=True):
        steps = [abs(a[0] - b[0]) for a, b in zip(left, right, strict=True)]
        assert 0 < sum(step != 0 for step in steps) <= part.aggregate.most_groups
        assert max(steps) <= 3


def test_private_keys_in_sets(tmp_path: Path) -> None:
    """Each set selects its own keys, with its share of δ; the total needs none."""
    forum = Forum(tmp_path)
    rows = [post(person, word="ab"[person % 2], lang="en") for person in range(1000)] + [post(5000, word="rare")]
    db = forum.load(rows)
    text = "SELECT word, lang, count(DISTINCT person) AS n, grouping(word) FROM posts GROUP BY ROLLUP (word, lang)"
    made = db.plan(text, epsilon=3, delta=Fraction(3, 1000))
    assert [one.selection is not None for one in made.sets] == [True, True, False]
    assert sum(event.failure for event in made.events) <= Fraction(2, 1000)
    for part in made.sets[:2]:
        assert part.selection is not None
        assert part.selection.mechanism.event.failure <= Fraction(1, 1000)
        extra = [*rows, *(post(7000, word=word, lang="de") for word in ("a", "c", "d", "e", "f"))]
        assert moved(counted(db, part), counted(forum.load(extra), part), part) == []
        db = forum.load(rows)
    with without_noise():
        answer = db.sql(text, epsilon=3, delta=Fraction(3, 1000))
    langs = ("en", "de", "fr")
    inner = [(word, lang, 500 if lang == "en" else 0, 0) for word in "ab" for lang in langs]
    assert list(answer.rows) == [*inner, ("a", None, 500, 0), ("b", None, 500, 0), (None, None, 1001, 1)]
    assert db.sql(text, epsilon=3, delta=Fraction(3, 1000)).rows == answer.rows
    forum.close()


def test_a_budget_that_is_not_shared_is_seen() -> None:
    """Sets at the full ε each: the price says so at once, since events are what is charged."""
    text = "select ward, count(*) from stays group by rollup (ward)"

    def whole(question: Any, policy: Any, *, epsilon: Any, **given: Any) -> Any:
        return honest(question, policy, epsilon=epsilon * len(question.sets), **given)

    honest = sets.over_sets
    with mock.patch("hubbub.query.plan.plan.over_sets", whole):
        made = plan(read(text), POLICY, epsilon=1)
    assert sum(event.epsilon for event in made.events if event.epsilon is not None) > 1
