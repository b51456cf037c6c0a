"""Keys that nobody listed: what is counted, what is shown, what it costs, and faults that must be seen."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

from hubbub.engines.lower import private_keys as keyed
from hubbub.engines.nodes.queries import Query, RowSource
from hubbub.engines.nodes.scalars import Scalar, Tag
from hubbub.engines.nodes.words import NULL, cast, function, hash_keyed, infix, name, number, struct
from hubbub.errors import LedgerCorrupt, MissingKeys
from hubbub.mechanisms import OptimalKeys, TruncatedThreshold, WeightedGaussianThreshold
from hubbub.mechanisms.keys.threshold import KeySelection
from hubbub.privacy.convert import epsilon_of_rho_rounded_up
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.answer.stored import DrawnAnswer, read, write_answer
from hubbub.query.ops import Aggregate, Cell, Measure
from hubbub.query.plan import selection
from hubbub.query.plan.plan import Plan
from hubbub.session.database import Database
from hubbub.testing.replay import replayed
from tests.engines.raw import raw
from tests.query.inside import fixed_key
from tests.query.posts import Forum, by_hand, counted, moved, post, without_noise

WORDS = ("a", "ab", "b", "", "true", "1", "NULL", "\x1b[31mred", "<img>", "ß", "日本", None)
DAYS = (date(2026, 1, 31), date(2026, 2, 1), None)
ROWS = "SELECT word, count(*) AS n, count(DISTINCT person) AS people, sum(score) AS s FROM posts GROUP BY word"


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    made = Forum(tmp_path)
    yield made
    made.close()


def some(rng: Random, people: int = 25) -> list[dict[str, Any]]:
    """Rows of people who have many words, each several times."""
    found = []
    for person in [*range(people), None]:
        for _ in range(rng.choice((1, 2, 5, 12))):
            found.append(
                post(
                    person,
                    word=rng.choice(WORDS),
                    tag=rng.choice(("bc", "c", None)),
                    number=rng.choice((0, 10, 9, -1, None)),
                    day=rng.choice(DAYS),
                    lang=rng.choice(("en", "de", "fr", "xx", None)),
                    score=rng.choice((0, 3, 10, 99, None)),
                )
            )
    return rng.sample(found, len(found))


# What is counted


@pytest.mark.parametrize("keys", [["word"], ["word", "tag"], ["number"], ["day", "number", "word"]])
def test_every_combination_that_somebody_has_and_no_other(forum: Forum, keys: list[str]) -> None:
    """Against Python, where nobody has too many groups; missing keys and near collisions included."""
    rows = some(Random("exact"))
    db = forum.load(rows, groups=1000, rows_each=2)
    found = counted(db, db.plan(f"SELECT count(*), sum(score) FROM posts GROUP BY {', '.join(keys)}", epsilon=1))
    units = by_hand(rows, keys)
    assert dict(found.units) == {cell: len(held) for cell, held in units.items()}
    assert set(found.cells) == units.keys()
    for cell, (many, total) in zip(found.cells, found.tallies, strict=True):
        own = [row for row in rows if row["person"] is not None and tuple(row[key] for key in keys) == cell]
        each = Counter(row["person"] for row in own)
        sums = {one: sum(min(row["score"] or 0, 10) for row in own if row["person"] == one) for one in each}
        assert many == sum(min(2, one) for one in each.values())
        assert total == sum(min(20, one) for one in sums.values())


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        "SELECT word, tag FROM posts GROUP BY 1, 2",
        "SELECT lang, word, count(*) FROM posts GROUP BY lang, word",
        "SELECT avg(score) FROM posts GROUP BY day, number",
    ],
)
@pytest.mark.parametrize("few_bits", [False, True])
def test_a_units_groups_are_its_own_choice(forum: Forum, text: str, few_bits: bool) -> None:
    """What all units give together is what each gives when it is alone, also where hashes of 4 bits collide."""
    rows = some(Random("alone"))
    honest = hash_keyed

    def hashed(tag: Tag, *given: Scalar) -> Scalar:
        found = honest(tag, *given)
        return infix("&", found, cast(number(15), "uint64")) if few_bits else found

    with mock.patch.object(keyed, "hash_keyed", hashed):
        db = forum.load(rows, groups=2)
        plan = db.plan(text, epsilon=1)
        whole = counted(db, plan)
        summed: Counter[Any] = Counter()
        for person in {row["person"] for row in rows} - {None}:
            own = counted(forum.load([row for row in rows if row["person"] == person], groups=2), plan)
            assert len(own.cells) <= 2
            summed.update({("units", held): many for held, many in own.units})
            for cell, tallies in zip(own.cells, own.tallies, strict=True):
                summed.update({(cell, place): value for place, value in enumerate(tallies)})
    assert {key: value for key, value in summed.items() if key[0] == "units"} == {
        ("units", held): many for held, many in whole.units
    }
    for cell, tallies in zip(whole.cells, whole.tallies, strict=True):
        assert tallies == tuple(summed[cell, place] for place in range(len(tallies)))


def test_weights_of_a_unit_fill_its_norm(forum: Forum) -> None:
    rows = [post(1, word=one) for one in "abc"] + [post(2, word="a", lang="en"), post(2, word="a", lang="de")]
    db = forum.load(rows, groups=50)
    plan = db.plan("SELECT word FROM posts GROUP BY word", epsilon=1)
    assert isinstance(plan.selection and plan.selection.mechanism, WeightedGaussianThreshold)
    third = math.isqrt((1 << 40) // 3)
    assert dict(counted(db, plan).units) == {("a",): third + (1 << 20), ("b",): third, ("c",): third}
    mixed = db.plan("SELECT word, lang, sum(score) FROM posts GROUP BY word, lang", epsilon=1)
    assert dict(counted(forum.load(rows[3:], groups=50), mixed).units) == {("a",): 1 << 20}  # one word, two languages


def replay(forum: Forum, text: str, rng: Random) -> list[str]:
    """A dataset, and one with a unit more, in another order, on other threads."""
    rows = some(rng)
    extra = [
        post(99, word=rng.choice((*WORDS, "only")), tag="c", number=rng.choice((7, 8, 9)), lang="en", score=10)
        for _ in range(rng.choice((1, 4, 30)))
    ]
    db = forum.load(rows, groups=2, rows_each=2)
    plan = db.plan(text, epsilon=1)
    one = counted(db, plan)
    shuffled = rng.sample(rows, len(rows))
    same = counted(forum.load(shuffled, groups=2, rows_each=2, threads=4), plan)
    other = counted(forum.load(rng.sample([*rows, *extra], len(rows) + len(extra)), groups=2, rows_each=2), plan)
    faults = moved(one, other, plan)
    return faults + ([] if same == one else ["the order of rows has changed something"])


TEXTS = (
    ROWS,
    "SELECT word, number, avg(score) FROM posts GROUP BY word, number",
    "SELECT lang, word, count(DISTINCT person) FROM posts GROUP BY lang, word",
    "SELECT word FROM posts GROUP BY word",
    "SELECT count(score) FROM posts WHERE score > 0 GROUP BY number, tag",
    "SELECT lang, word, median(score), count(DISTINCT number) FROM posts GROUP BY word, lang",
    "SELECT tag, max(score), count(DISTINCT person) FROM posts GROUP BY tag",
)


def replays(forum: Forum) -> list[str]:
    return [fault for text in TEXTS for seed in range(3) for fault in replay(forum, text, Random(f"{text} {seed}"))]


def test_neighbours_differ_by_one_unit_in_few_keys(forum: Forum) -> None:
    assert replays(forum) == []


def _rows_counted(op: Aggregate, held: Query, *, apart: bool) -> tuple[RowSource, Scalar]:
    source, units = honest_weighed(op, held, apart=apart)
    rows = op.tallies and op.tallies[0].measure is Measure.ROWS and all(group.private for group in op.groups)
    return source, cast(function("sum", name("t0")), "text") if rows else units


honest_weighed, honest_chosen = keyed._weigh, keyed.choose


def _by_dense_code(rows: Query, most: int, rank: Any, *, places: bool = False, alone: bool = False) -> Query:
    """Codes that the engine gives to keys as it meets them decide which groups a unit keeps."""
    return raw(
        "SELECT * FROM (SELECT *, ",
        rank,
        " OVER (PARTITION BY unit ORDER BY dense) AS rank, row_number() OVER "
        "(PARTITION BY unit, code) - 1 AS place, unit AS own FROM (SELECT *, dense_rank() "
        "OVER (ORDER BY size DESC, code) AS dense FROM (SELECT *, count(*) OVER (PARTITION BY code) AS size FROM (",
        rows,
        f") AS a) AS b) AS c) AS d WHERE rank <= {most} AND coalesce($1, $2) IS NOT NULL",
    )


def _unbounded(rows: Query, most: int, rank: Any, *, places: bool = False, alone: bool = False) -> Query:
    return honest_chosen(rows, 10**6, rank, places=places, alone=alone)


FAULTS = {
    "rows instead of units": (keyed, "_weigh", _rows_counted, "a key moved by"),
    "groups chosen by codes of the engine": (keyed, "choose", _by_dense_code, "keys changed"),
    "no bounding": (keyed, "choose", _unbounded, "keys changed"),
    "keys in the order of the data": (keyed, "in_order", list, "order"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_replay_catches(forum: Forum, fault: str) -> None:
    module, what, planted, words = FAULTS[fault]
    with mock.patch.object(module, what, planted):
        found = replays(forum)
    assert any(words in sentence for sentence in found), found


def test_a_packed_key_is_seen(forum: Forum) -> None:
    """('a', 'bc') and ('ab', 'c') are two groups; a key that is packed into one text makes them one."""
    rows = [post(1, word="a", tag="bc"), post(2, word="ab", tag="c"), post(3, word=None, tag="c"), post(4, word="c")]
    db = forum.load(rows)
    plan = db.plan("SELECT word, tag FROM posts GROUP BY word, tag", epsilon=1)
    assert len(counted(db, plan).units) == 4

    def packed(op: Aggregate) -> Scalar:
        whole = raw("concat(", name("g0"), ", ", name("g1"), ")")
        return struct({"k0": whole, "k1": cast(NULL, "text")})

    with mock.patch.object(keyed, "code", packed):
        assert len(counted(db, plan).units) == 2


# What is shown


def crowd(sizes: dict[Any, int], **more: Any) -> list[dict[str, Any]]:
    """So many people with each word, everybody with one word, in no order."""
    people = iter(range(10**6))
    rows = [post(next(people), word=word, score=5, **more) for word, many in sizes.items() for _ in range(many)]
    return Random("crowd").sample(rows, len(rows))


def test_without_noise_a_key_is_shown_from_the_threshold_on(forum: Forum) -> None:
    """Both sides of the boundary; numbers are exact; rows are in the order of the keys."""
    db = forum.load(crowd({"a": 1}), groups=1, rows_each=1)
    plan = db.plan(ROWS, epsilon=1)
    least = mechanism(plan).threshold
    assert least > 3
    sizes = {"z": least, "b": least - 1, "m": least + 1, "c": 1, None: least + 2, "\x1b[31m": 3 * least}
    db = forum.load(crowd(sizes), groups=1, rows_each=1)
    with without_noise():
        answer = db.sql(ROWS, epsilon=1)
    expected = ["\x1b[31m", "m", "z", None]
    assert [row[0] for row in answer.rows] == expected
    assert [row[1:] for row in answer.rows] == [(sizes[word], sizes[word], 5 * sizes[word]) for word in expected]
    assert "\x1b" not in str(answer)
    assert "�[31m" in str(answer)


def test_what_passes_is_decided_by_the_draw_that_is_shown(forum: Forum) -> None:
    """Under replayed noise: the shown keys and counts are those of one draw of the plan's own selection."""
    sizes = {f"w{place}": place for place in range(1, 60)}
    db = forum.load(crowd(sizes), groups=2)
    text = "SELECT word, count(DISTINCT person) AS n FROM posts GROUP BY word"
    for seed in range(5):
        db = forum.load(crowd(sizes), groups=2)
        plan = db.plan(text, epsilon=1)
        with replayed(seed):
            drawn = mechanism(plan).draw({(word,): many for word, many in sizes.items()})
        with fixed_key(), replayed(seed):
            answer = db.sql(text, epsilon=1)
        assert {(word,): many for word, many in answer.rows} == drawn
        assert 0 < len(drawn) < 59
        assert all(many >= mechanism(plan).threshold for many in drawn.values())


def test_counts_are_reused_only_where_they_count_the_same(forum: Forum) -> None:
    rows = [row for row in crowd({"a": 200, "b": 300}) for _ in range(3)]
    texts = {
        "count(DISTINCT person)": (1, 1),
        "count(*)": (1, 3),
        "count(score)": (0, 3),
        "count(*), count(DISTINCT person)": (1, 3),
    }
    for rows_each, place in ((1, 0), (3, 1)):
        for asked, expected in texts.items():
            db = forum.load(rows, groups=1, rows_each=rows_each)
            plan = db.plan(f"SELECT word, {asked} FROM posts GROUP BY word", epsilon=1)
            reused = bool(plan.selection and plan.selection.tallies)
            assert reused is (asked != "count(score)" and (rows_each == 1 or "DISTINCT" in asked)), asked
            assert plan.selection is not None
            told = len(plan.selection.tallies)
            assert len(plan.events) == len(plan.mechanisms) + 1 == len(plan.aggregate.tallies) + 1 - told
            with without_noise():
                (first, *_), (second, *_) = (row[1:] for row in db.sql(plan.question.text, epsilon=1).rows)
            most = expected[place] if expected[0] or place else 1
            assert (first, second) == (200 * most, 300 * most), asked


def test_a_count_of_other_rows_is_seen(forum: Forum) -> None:
    db = forum.load([row for row in crowd({"a": 200}) for _ in range(3)], groups=1, rows_each=3)
    anything = mock.patch.object(selection, "counts_units", lambda tally: tally.measure is not Measure.TOTAL)
    with anything, without_noise():
        ((_, many),) = db.sql("SELECT word, count(*) FROM posts GROUP BY word", epsilon=1).rows
    assert many == 200  # and not 600: the exact comparison above sees it


def _more_than_one(self: KeySelection, value: dict[Cell, int]) -> dict[Cell, int]:
    least = 2 if self.needs.norm is Norm.UNITS else 2 << 20
    return {key: 0 for key, many in value.items() if many >= least}


def test_public_keys_are_complete_in_every_key_that_is_shown(forum: Forum) -> None:
    rows = crowd({"b": 500}, lang="de") + [
        row | {"person": 10**7 + row["person"]} for row in crowd({"a": 500, "c": 1}, lang="en")
    ]
    for text, expected in {
        "SELECT word, lang, count(DISTINCT person) AS n, sum(score) FROM posts GROUP BY word, lang": [
            ("a", "en", 500, 2500),
            ("a", "de", 0, 0),
            ("a", "fr", 0, 0),
            ("b", "en", 0, 0),
            ("b", "de", 500, 2500),
            ("b", "fr", 0, 0),
        ],
        "SELECT word, lang, count(*), count(DISTINCT person) FROM posts GROUP BY lang, word": [
            ("a", "en", 500, 500),
            ("b", "en", 0, 0),
            ("a", "de", 0, 0),
            ("b", "de", 500, 500),
            ("a", "fr", 0, 0),
            ("b", "fr", 0, 0),
        ],
    }.items():
        db = forum.load(rows, groups=2)
        plan = db.plan(text, epsilon=1)
        assert plan.selection is not None
        assert plan.selection.tallies == ()  # the count of a word is not that of a word in a language
        passing = mock.patch.object(type(plan.selection.mechanism), "draw", _more_than_one)
        with without_noise(), passing:
            assert list(db.sql(text, epsilon=1).rows) == expected


def test_nothing_passes(forum: Forum) -> None:
    db = forum.load(crowd({"a": 1, "b": 2}))
    with without_noise():
        answer = db.sql(ROWS, epsilon=Fraction(1, 10))
    assert answer.rows == ()
    assert db.sql(ROWS, epsilon=Fraction(1, 10)).entry == answer.entry
    assert forum.load([]).sql(ROWS, epsilon=1).rows == ()


def test_more_keys_than_the_limit_are_cut_by_their_order(forum: Forum) -> None:
    rows = crowd({"c": 500, "a": 500, "b": 500}, lang="en")
    with without_noise():
        text = "SELECT word, count(DISTINCT person) FROM posts GROUP BY word"
        assert [row[0] for row in forum.load(rows, max_cells=2).sql(text, epsilon=1).rows] == ["a", "b"]
        mixed = "SELECT word, lang, sum(score) FROM posts GROUP BY word, lang"
        plan = forum.load(rows, max_cells=8).plan(mixed, epsilon=1)
        assert len(selection.cells_of(plan.aggregate.groups, [("b",), ("a",), ("c",)], most=8)) == 6


def test_having_order_and_limit_are_about_what_is_shown(forum: Forum) -> None:
    db = forum.load(crowd({"a": 300, "b": 500, "c": 400, "d": 1}))
    text = "SELECT word AS w, count(DISTINCT person) AS n FROM posts GROUP BY w HAVING n < 450 ORDER BY n DESC LIMIT 1"
    with without_noise():
        assert db.sql(text, epsilon=1).rows == (("c", 400),)


VALUES: dict[str, list[Any]] = {
    "word": ["a", "", "\x00", "'; DROP TABLE posts; --", "ß\u2028", "\U0001f600", None],
    "number": [0, -1, (1 << 63) - 1, -(1 << 63), None],
    "day": [date.min, date(2024, 2, 29), date.max, None],
    "seen": [datetime.min, datetime(2024, 2, 29, 23, 59, 59, 120), datetime(2024, 1, 1), datetime.max, None],
}


@pytest.mark.parametrize("key", VALUES)
def test_shown_keys_are_stored_as_they_are(forum: Forum, key: str) -> None:
    """Types and values survive the ledger, and the same question is answered with the same rows for nothing."""
    rows = [post(place * 1000 + i, **{key: value}) for place, value in enumerate(VALUES[key]) for i in range(100)]
    db = forum.load(rows, groups=1)
    text = f"SELECT {key}, count(DISTINCT person) AS n FROM posts GROUP BY {key}"
    first = db.sql(text, epsilon=1)
    assert [row[0] for row in first.rows] == [*sorted(VALUES[key][:-1]), None]
    spent = db.ledger.statement("people").spent
    again = Database(db.policy, ledger=db.ledger, engine=forum.engine).sql(text, epsilon=1)
    assert (again.rows, again.lows, again.entry) == (first.rows, first.lows, first.entry)
    assert [type(row[0]) for row in again.rows] == [type(row[0]) for row in first.rows]
    assert db.ledger.statement("people").spent == spent


@pytest.mark.parametrize("stored", ['{"keys": [[1]]}', '{"keys": [["a", "b"]]}', '{"keys": [[true]]}', "{}"])
def test_a_stored_key_of_another_type_is_not_read(forum: Forum, stored: str) -> None:
    plan = forum.load([]).plan(ROWS, epsilon=1)
    whole = json.loads(write_answer(plan, DrawnAnswer([[5], [5], [5]], (("a",),))))
    assert read(json.dumps(whole), plan)[1] == [DrawnAnswer([[5], [5], [5]], (("a",),))]
    spoiled = whole | json.loads(stored)
    spoiled.pop("keys" if stored == "{}" else "", None)
    with pytest.raises(LedgerCorrupt):
        read(json.dumps(spoiled), plan)


# What it costs


def mechanism(plan: Plan) -> KeySelection:
    assert plan.selection is not None
    return plan.selection.mechanism


QUESTIONS = (
    "",
    ", count(DISTINCT person)",
    ", count(*)",
    ", count(DISTINCT person), sum(score), count(score)",
    ", count(*), avg(score), sum(score)",
)


@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("groups", [1, 3, 40])
def test_all_of_it_is_within_epsilon_and_delta(forum: Forum, asked: str, groups: int) -> None:
    """By what the events claim: pure parts add up, or ρ converts; the failure mass is the selection's alone."""
    db = forum.load([], groups=groups, rows_each=2)
    for epsilon in (Fraction(1, 10), Fraction(3)):
        plan = db.plan(f"SELECT word{asked} FROM posts GROUP BY word", epsilon=epsilon, delta=Fraction(1, 1000))
        chosen = mechanism(plan)
        assert chosen.keys_per_unit == plan.aggregate.most_groups == groups
        failure = sum(event.failure for event in plan.events)
        assert 0 < failure == chosen.event.failure <= plan.delta
        if all(event.epsilon is not None for event in plan.events):
            assert sum(event.epsilon for event in plan.events if event.epsilon is not None) <= plan.epsilon
        elif len(plan.events) > 1:
            rho = sum(event.rho for event in plan.events if event.rho is not None)
            assert epsilon_of_rho_rounded_up(rho, plan.delta / 2) <= plan.epsilon * (1 + Fraction(1, 10**9))
            assert failure <= plan.delta / 2
        else:
            assert (chosen.epsilon, chosen.delta) == (plan.epsilon, plan.delta)


def test_what_is_charged_is_what_the_events_say(forum: Forum) -> None:
    db = forum.load(crowd({"a": 300}))
    text = "SELECT word, count(*), sum(score) FROM posts GROUP BY word"
    told = db.explain(text, epsilon=1).to_dict()["cost"]
    before = db.ledger.statement("people").spent
    db.sql(text, epsilon=1)
    after = db.ledger.statement("people").spent
    assert (after.loss - before.loss, after.failure - before.failure) == (told["loss_units"], told["failure_units"])
    assert told["failure_units"] > 0


def shown_alone(chosen: KeySelection, keys: int) -> float:
    """The chance that a unit with so many keys of its own shows at least one, by the exact law."""
    one = chosen.weight(keys) if isinstance(chosen, WeightedGaussianThreshold) else 1
    return -math.expm1(chosen.log_mass({("k", place): one for place in range(keys)}, {}))


@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("groups", [1, 3, 40])
def test_what_one_unit_alone_has_is_shown_with_delta_at_most(forum: Forum, asked: str, groups: int) -> None:
    """For every number of keys up to the cap; and a threshold that is one lower shows too much."""
    db = forum.load([], groups=groups, rows_each=2)
    plan = db.plan(f"SELECT word{asked} FROM posts GROUP BY word", epsilon=1, delta=Fraction(1, 100))
    chosen, slack = mechanism(plan), 1 + 1e-9
    allowed = float(chosen.event.failure)
    assert (
        max(shown_alone(chosen, keys) for keys in range(1, groups + 1)) <= allowed * slack <= float(plan.delta) * slack
    )
    if isinstance(chosen, OptimalKeys):
        return
    half = float(plan.delta) / (1 if isinstance(chosen, TruncatedThreshold) else 2)
    step = chosen.weight(groups) if isinstance(chosen, WeightedGaussianThreshold) else 1
    object.__setattr__(chosen, "threshold", chosen.threshold - step)
    assert max(shown_alone(chosen, keys) for keys in range(1, groups + 1)) > half
    for cache in (selection._pure, selection._zcdp):
        cache.cache_clear()  # the mechanism that was spoiled


def test_explain_tells_how_many_units_a_key_needs(forum: Forum) -> None:
    db = forum.load([], groups=1)
    told = db.explain("SELECT word, count(DISTINCT person) FROM posts GROUP BY word", epsilon=1)
    (keys,) = told.to_dict()["keys"]
    chosen = mechanism(told.plan)
    assert keys["names"] == ["word"]
    assert (keys["threshold"], keys["shown_by_half"]) == (chosen.threshold, chosen.half_point())
    assert keys["shown_by_most"] == chosen.error(beta=0.05) >= keys["shown_by_half"]
    assert f"shown every other time with {chosen.threshold} units" in str(told)
    assert "in at most 1 groups" in str(told)
    mixed = db.explain("SELECT word, lang, count(*) FROM posts GROUP BY word, lang", epsilon=1)
    assert "3 for each key that is shown" in str(mixed)


@pytest.mark.parametrize("groups", [1, 5, 40])
def test_intervals_hold_among_what_is_shown(forum: Forum, groups: int) -> None:
    """By the exact law: whatever the number of units is, 95% of the counts that are shown have it in their interval."""
    plan = forum.load([], groups=groups).plan("SELECT word, count(DISTINCT person) FROM posts GROUP BY word", epsilon=1)
    chosen = mechanism(plan)
    for units in {1, 2, chosen.threshold // 2, chosen.threshold, 2 * chosen.threshold, 5 * chosen.threshold}:
        reach = selection.spread(chosen, 1e-9)
        seen = range(max(chosen.threshold, units - reach), max(chosen.threshold, units) + reach + 1)
        mass = {one: math.exp(chosen.noise_log_mass(one - units)) for one in seen}
        ends = {one: selection.interval(chosen, one, 0.05) for one in seen}
        held = sum(part for one, part in mass.items() if ends[one][0] <= units <= ends[one][1])
        assert held >= 0.95 * sum(mass.values()) * (1 - 1e-6), (units, chosen)
        assert all(1 <= low <= high for low, high in ends.values())


@pytest.mark.parametrize("asked", QUESTIONS)
def test_any_share_can_be_calibrated(forum: Forum, asked: str) -> None:
    """Little ε, little δ and many groups are dear, and never slow or an error."""
    for groups, epsilon in ((1, Fraction(1, 10**4)), (1000, Fraction(1, 100)), (1 << 30, Fraction(5))):
        plan = forum.load([], groups=groups, rows_each=1).plan(
            f"SELECT word{asked} FROM posts GROUP BY word", epsilon=epsilon, delta=Fraction(1, 10**15)
        )
        assert mechanism(plan).keys_per_unit == min(groups, selection.MOST_KEYS)
        assert 0 < sum(event.failure for event in plan.events) <= plan.delta


def test_the_account_pays_what_it_can(tmp_path: Path) -> None:
    """Pure noise may be smaller and yet dearer in ρ than all that an account has: then the other is taken."""
    forum = Forum(tmp_path, budget=Budget(epsilon=Fraction(3), delta=Fraction(1, 10**4)))
    db = forum.load(crowd({"a": 300}), groups=1)
    for epsilon in (1, 3):
        assert db.explain(ROWS, epsilon=epsilon, delta=Fraction(1, 10**5)).to_dict()["fits"]
    forum.close()


# What is refused


def refused(folder: Path, budget: Budget, text: str, **how: Any) -> str:
    folder.mkdir()
    forum = Forum(folder, budget=budget)
    try:
        with pytest.raises(MissingKeys) as caught:
            forum.load([]).plan(text, epsilon=1, **how)
    finally:
        forum.close()
    return str(caught.value)


def test_keys_need_a_delta_and_neighbours_that_come_and_go(tmp_path: Path) -> None:
    large = Fraction(10)
    assert "δ > 0" in refused(tmp_path / "a", Budget(epsilon=large), ROWS)
    approx = Budget(epsilon=large, delta=Fraction(1, 100))
    assert "delta above 0" in refused(tmp_path / "b", approx, ROWS, delta=0)
    replacing = Budget(epsilon=large, delta=Fraction(1, 100), neighbors=Neighbors.REPLACE_ONE)
    assert "add-remove" in refused(tmp_path / "c", replacing, ROWS)
    unit = "SELECT person, count(*) FROM posts GROUP BY person"
    assert "one unit" in refused(tmp_path / "d", approx, unit)
