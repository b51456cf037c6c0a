"""Replay (SOUNDNESS 32): one question, one stream of noise, two datasets that differ in one unit or in nothing.

Plan, price, schema, error, number and kind of draws agree; tallies move within what was proven, or not at all.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace as replace_in
from datetime import date
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import HubbubError
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.aggregates.count import COUNT_IF
from hubbub.query.aggregates.table import FUNCTIONS
from hubbub.query.check.shape import private
from hubbub.query.ops import ExactCounts, JoinPublic, Match, Relation, Scan, below
from hubbub.query.plan.plan import plan
from hubbub.query.read.sql import question
from tests.query import further
from tests.query.agreeing import disagreements
from tests.query.further import exact_slots, raw_tallies
from tests.query.generate import TIMES, Case
from tests.query.inside import PLACES, PUBLIC, STAYS, WARDS, Seen, World, ask, faults, fixed_key, row
from tests.query.owned import fill, keeping
from tests.query.sources import FEATURES, RARE, Source, Sources, grouping

NAN, INF, BIG = float("nan"), float("inf"), 1 << 62
SHARDS = 4
QUESTIONS, NEIGHBOURS = 6, 1
"""Questions about each dataset, each asked again of so many neighbours."""
FURTHER = 12 if TIMES == 1 else 30
"""More neighbours, for the exact tallies of the same questions alone."""
DATASETS = max(6, TIMES)
"""A shard and kind of budget: 6 · 12 · 6 · 13 = 5,616 cases; 45 times, 45 · 12 · 6 · 31 = 100,440."""
KINDS = {"stays": tuple((one.name, one.kind) for one in STAYS), "places": tuple((one.name, one.kind) for one in PLACES)}
SCAN = Scan(table="stays", columns=(), unit="person")
KEY = ((1 << 64) // 3,) * 2
"""What ``fixed_key`` hands to statements."""

POISON: dict[str, tuple[Any, ...]] = {
    "ward": (*WARDS, None, "nowhere", "", "A", "a ", "'; DROP TABLE stays; --", "\x00"),
    "cost": (0.0, -0.0, 1.5, 99.99, 100.0, NAN, INF, -INF, 1e308, -1e308, 5e-324, None, 0.1, 1e16),
    "nights": (0, 1, 3, 10, 11, -1, None, 2147483647, -2147483648),
    "points": (0, 1, -1, 7, None, (1 << 63) - 1, -(1 << 63), BIG, -BIG, 1 << 53),
    "day": (None, date.min, date.max, date(2024, 2, 29), date(1970, 1, 1), date(2023, 12, 31)),
    "urgent": (True, False, None),
}

# Questions

WHOLE = (
    *("nights", "points", "length(ward)", "year(day)", "points % nights", "points // nights", "abs(points)"),
    *("nights + points", "nights * nights", "CAST(cost AS BIGINT)", "floor(cost / 7)", "-nights", "month(day)"),
    *("CASE WHEN nights > 3 THEN points ELSE nights END", "coalesce(points, nights)", "nullif(nights, 0)"),
)
REAL = (
    *("cost", "cost / nights", "sqrt(cost)", "ln(cost)", "exp(cost)", "cost * cost", "cost - 1e16", "1 / cost"),
    *("CAST(points AS DOUBLE)", "nights / 0", "CASE WHEN cost <> 0 THEN 1 / cost END", "coalesce(cost, 50.0)"),
)
TRUTH = (
    *("urgent", "ward LIKE '%a%'", "ward IS NULL", "ward IN ('a', 'b')", "cost <> 0 AND 1 / cost > 0.1", "NOT urgent"),
    *("day > DATE '2000-01-01'", "points BETWEEN -5 AND 5", "1 / nights > 0", "points % -1 = 0", "nights IS NOT NULL"),
    *("ward > 'a'", "lower(ward) = 'a'", "cost < nights", "exp(cost) > 1 OR urgent", "ln(cost) > 0"),
)
KEYS = (
    *("ward", "ward", "urgent", "nights > 3", "CASE WHEN cost > 50 THEN 'dear' ELSE 'cheap' END"),
    *("least(greatest(nights, 0), 3)", "coalesce(urgent, false)", "lower(ward)", "month(day)", "ward = 'a'"),
)


PLAIN = Source(sql="stays")


def value(rng: Random, joined: bool, source: Source = PLAIN) -> str:
    more = [*source.whole, *source.real, *(("beds", "beds + nights", "floor") if joined else ())]
    own: str = rng.choice((*WHOLE, *REAL, *(more * 3)))
    if rng.random() < 0.3 and own in {"cost", "nights", "beds"}:
        return own
    low, high = sorted(rng.sample((-1000, -10, -1, 0, 1, 5, 100, 2**31), 2))
    return f"least(greatest({own}, {low}), {high})"


def aggregate(rng: Random, joined: bool, source: Source) -> str:
    plain = ["count(*)", "count(DISTINCT person)", f"count({rng.choice((*WHOLE, *REAL))})"]
    over = rng.choice(("sum", "sum", "avg", "avg", "var_pop", "var_samp", "stddev_pop", "stddev"))
    pair = rng.choice(("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept"))
    return rng.choice(
        [
            *plain,
            f"count(DISTINCT {rng.choice((*WHOLE, *REAL, 'ward', 'day', 'urgent'))})",
            *[f"{over}({value(rng, joined, source)})"] * 3,
            f"{pair}({value(rng, joined, source)}, {value(rng, joined)})",
            *[chosen(rng, value(rng, joined, source))] * 2,
            further.bounded(rng, value(rng, joined, source)),
            *[further.averaged(rng, value(rng, joined, source), value(rng, joined))] * 2,
            further.counted(rng, value(rng, joined, source)),
        ]
    )


def chosen(rng: Random, own: str) -> str:
    level = rng.choice(("0.5", "0.9", "0.01", "0.333"))
    return rng.choice(
        (
            f"min({own})",
            f"max({own})",
            f"median({own})",
            f"quantile_cont({own}, {level})",
            f"{'quantile_interval' if level == '0.9' else 'quantile_disc'}({own}, {level})",
            f"percentile_cont({level}) WITHIN GROUP (ORDER BY {own} DESC)",
            f"quantile_cont({own}, [0.1, {level}, 0.95])" if rng.random() < 0.5 else f"quantile({own}, {level})",
            f"mode({rng.choice(('ward', 'urgent', 'month(day)', 'least(greatest(nights, 0), 3)'))})",
        )
    )


FROM = ("", "", "", *FEATURES)
"""What the rows are made by: nothing in a third of all questions, and each feature in a ninth, not counting those that
stand within another."""


def asked(rng: Random, features: Sequence[str] = ("",), *, sets: float = 0.0) -> str:
    """A question in SQL; nearly all can be answered."""
    source = Sources(rng).make(2, rng.choice(features))
    joined = rng.random() < 0.35
    added = tuple(f"least(greatest({one}, 0), 3)" for one in source.whole)
    keys = rng.sample((*KEYS, *added * 3, *(("floor", "floor", "id") if joined else ())), rng.choice((0, 1, 1, 1, 2)))
    keys = list(dict.fromkeys(keys))
    several = bool(keys) and rng.random() < sets
    aggregates = [aggregate(rng, joined, source) for _ in range(rng.randint(1, 3))]
    names = [f"x{place}" for place in range(len(aggregates))]
    shown = [*keys, *(f"{one} AS {name}" for one, name in zip(aggregates, names, strict=True))]
    shown += [f"grouping({keys[0]})"] if several and rng.random() < 0.5 else []
    parts = [f"SELECT {', '.join(shown)} FROM {source.sql}{' AS stays' if source.made else ''}"]
    if joined:
        side = rng.choice(("JOIN", "LEFT JOIN"))
        parts.append(f"{side} places ON {rng.choice(('ward = id', 'id = lower(ward)', 'nights = floor', 'ward = id'))}")
    if rng.random() < (0.3 if source.made else 0.6):
        glue = rng.choice((" AND ", " OR "))
        parts.append("WHERE " + glue.join(rng.sample(TRUTH, rng.randint(1, 3))))
    if keys:
        parts.append(f"GROUP BY {grouping(rng, keys) if several else ', '.join(keys)}")
    plain = [name for name, one in zip(names, aggregates, strict=True) if not one.startswith(further.NESTED)]
    if plain and rng.random() < 0.2:
        parts.append(f"HAVING {plain[0]} > {rng.choice((0, 10))}")
    if plain and rng.random() < 0.3:
        parts.append(f"ORDER BY {rng.choice(plain)} DESC LIMIT {rng.randint(1, 3)}")
    return " ".join(parts)


def filtered(rng: Random) -> str:
    """Aggregates under conditions: of one key, which no row fulfils twice, or of anything, with a limit of its own."""
    apart = rng.random() < 0.5
    many = rng.randint(3, 6)
    conditions = [f"nights = {n}" for n in rng.sample(range(-1, 12), many)] if apart else rng.sample(TRUTH, many)
    over = ("count(*)", "count(DISTINCT person)", "sum(nights)", "avg(cost)", f"sum({value(rng, False)})")
    same = rng.choice(over)
    shown = [f"{same if rng.random() < 0.8 else rng.choice(over)} FILTER (WHERE {one})" for one in conditions]
    stated = "" if apart else "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1) "
    return f"SELECT {stated}{', '.join(shown)} FROM stays"


def any_asked(rng: Random) -> str:
    """Of rows made in any way, with several groupings now and then."""
    return asked(rng, FROM, sets=0.2)


# Data


def rows_of(rng: Random, person: int | None, many: int) -> list[dict[str, Any]]:
    return [row(person, **{name: rng.choice(values) for name, values in POISON.items()}) for _ in range(many)]


def rows_of_one(rng: Random, person: int) -> list[dict[str, Any]]:
    """Few or many, and some with a value that nobody else has: what it decides, it decides alone."""
    rows = rows_of(rng, person, rng.choice((1, 4, 40)))
    return [one | ({"points": RARE} if rng.random() < 0.3 else {}) for one in rows]


def dataset(rng: Random) -> list[dict[str, Any]]:
    ids = [0, -1, (1 << 63) - 1, -(1 << 63), *range(1, 9)]
    rows = [one for unit in rng.sample(ids, rng.randint(0, 8)) for one in rows_of(rng, unit, rng.choice((1, 2, 6)))]
    return [*rows, *rows_of(rng, None, rng.randint(0, 2)), *rows_of_one(rng, 77)]


def neighbour(rng: Random, rows: list[dict[str, Any]], *, replace: bool) -> tuple[str, list[dict[str, Any]]]:
    """What differs, and the rows in another order."""
    what = rng.choice(("unit", "unit", "unit", "orphans", "order"))
    changed = rows
    if what == "orphans":
        changed = [*rows, *rows_of(rng, None, 5)]
    elif what == "unit" and replace:
        changed = [*(one for one in rows if one["person"] != 77), *rows_of_one(rng, 99)]
    elif what == "unit" and rng.random() < 0.5:
        changed = [one for one in rows if one["person"] != 77]
    elif what == "unit":
        changed = [*rows, *rows_of_one(rng, 99)]
    return what, rng.sample(changed, len(changed))


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[World, World]]]:
    """Two sides for each kind of budget; their ledgers go through the same."""
    budgets = {
        "pure": Budget(epsilon=Fraction(10**6)),
        "gaussian": Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**6)),
        "replace": Budget(epsilon=Fraction(10**6), neighbors=Neighbors.REPLACE_ONE),
    }
    with ExitStack() as stack:
        made: dict[str, tuple[World, World]] = {}
        for name, budget in budgets.items():
            folders = [tmp_path_factory.mktemp(f"{name}{side}") for side in range(2)]
            sides = [World(folder, budget=budget) for folder in folders]
            for side in sides:
                stack.callback(side.close)
            made[name] = sides[0], sides[1]
        yield made


def posed(
    rng: Random, asks: Callable[[Random], str] = any_asked
) -> tuple[Limits, list[dict[str, Any]], list[str], int]:
    """Limits, rows, questions about them, and a seed for the noise."""
    limits = Limits(
        max_groups=rng.choice((1, 2, 3, 50)),
        max_rows=rng.choice((1, 2, 20, 100)),
        max_unit_rows=rng.choice((2, 5, 30)),
    )
    return limits, dataset(rng), [asks(rng) for _ in range(QUESTIONS)], rng.randrange(1 << 30)


def compare(
    worlds: tuple[World, World],
    rng: Random,
    *,
    replace: bool = False,
    wanted: Callable[[str], bool] = bool,
    asks: Callable[[Random], str] = any_asked,
) -> Iterator[tuple[str, Seen, list[str]]]:
    """Questions about a dataset and its neighbours, with what went wrong; all of them, or those that are wanted."""
    limits, rows, questions, seed = posed(rng, asks)
    questions = [text for text in questions if wanted(text)]
    if not questions:
        return
    db = worlds[0].load(rows, limits=limits)
    base = [ask(db, text, seed=seed) for text in questions]
    whole = [in_sets(seen, db) for seen in base]
    case = Case(KINDS, {"stays": rows, "places": [dict(one) for one in PUBLIC]}, SCAN, "person")
    for text, seen, parts in zip(questions, base, whole, strict=True):
        yield f"meant: {text}", seen, [fault for one in parts for fault in misunderstood(worlds[0], case, one)]
    for _ in range(NEIGHBOURS):
        what, changed = neighbour(rng, rows, replace=replace)
        other = worlds[1].load(changed, limits=limits, threads=rng.choice((1, 1, 4)))
        for text, seen in zip(questions, base, strict=True):
            pairs = zip(in_sets(seen), in_sets(ask(other, text, seed=seed)), strict=False)
            yield f"{what}: {text}", seen, [one for both in pairs for one in faults(*both, same=what != "unit")]
    for _ in range(FURTHER):
        what, changed = neighbour(rng, rows, replace=replace)
        other = worlds[1].load(changed, limits=limits, threads=rng.choice((1, 1, 4)))
        for text, seen, parts in zip(questions, base, whole, strict=True):
            pairs = zip(parts, in_sets(seen, other), strict=True)
            yield f"{what}: {text}", seen, [one for both in pairs for one in faults(*both, same=what != "unit")]


def in_sets(seen: Seen, db: hb.Database | None = None) -> list[Seen]:
    """What was seen of each grouping set, where there are several; with a database, its exact tallies."""
    if seen.plan is None:
        return [seen]
    found = [seen]
    if seen.plan.sets:
        noisy, parts = iter(seen.noisy), [(one.aggregate, one.mechanisms, one.cells) for one in seen.plan.sets]
        found = [
            replace_in(
                seen, public=(*seen.public, parts), plan=one, noisy=tuple(itertools.islice(noisy, len(one.slots)))
            )
            for one in seen.plan.sets
        ]
    return found if db is None else [tallied(db, one) for one in found]


def tallied(db: hb.Database, seen: Seen) -> Seen:
    """The exact tallies of a question in the place of noisy ones."""
    if seen.plan is None:
        return seen
    with fixed_key():
        counted = exact_of(db, seen.plan.aggregate)
    exact = tuple(map(tuple, exact_slots(seen.plan, counted)))
    return replace_in(seen, noisy=exact, bins=counted.histograms)


def misunderstood(world: World, case: Case, seen: Seen) -> list[str]:
    """Where exact tallies are not the interpreter's."""
    if seen.plan is None:
        return []
    op = seen.plan.aggregate
    cells = tuple(itertools.product(*(group.values for group in op.groups)))
    rows = raw_tallies(seen.plan, seen.noisy, len(cells))
    counted = ExactCounts(cells=cells, tallies=rows, histograms=seen.bins)
    return disagreements(keeping(world.engine.connection, case, KEY), op, counted, case)[0]


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("kind", ["pure", "gaussian", "replace"])
def test_neighbours_differ_in_their_secrets_alone(
    worlds: dict[str, tuple[World, World]], kind: str, shard: int
) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(DATASETS):
        seed = f"{kind} {shard} {number}"
        for text, seen, found in compare(worlds[kind], Random(seed), replace=kind == "replace"):
            assert not found, (seed, text, found)
            outcomes[seen.outcome] += 1
    assert outcomes["answered"] > 0
    assert not any("EngineError" in outcome for outcome in outcomes), outcomes


@pytest.mark.parametrize("kind", ["pure", "gaussian", "replace"])
def test_so_do_conditions_side_by_side(worlds: dict[str, tuple[World, World]], kind: str) -> None:
    grouped: Counter[bool] = Counter()
    for number in range(3 * min(TIMES, 20)):
        rng = Random(f"conditions {kind} {number}")
        for text, seen, found in compare(worlds[kind], rng, replace=kind == "replace", asks=filtered):
            assert not found, (kind, number, text, found)
            grouped[seen.plan is not None and seen.plan.beside is not None] += 1
    assert grouped[True] > 0
    assert grouped[False] > 0, "where limits are no limits, they stand by themselves"


def test_questions_reach_every_operation_and_every_pair(worlds: dict[str, tuple[World, World]]) -> None:
    """What the generator reaches; printed with -s."""
    db = worlds["pure"][0].load([])
    reached: Counter[str] = Counter()
    refused = 0
    for number in range(900):
        try:
            made = plan(question(asked(Random(f"reach {number}")), db), db.policy, epsilon=1)
        except HubbubError:
            refused += 1
            continue
        chain, grouped = operations(made.question.relation), "grouped" if made.question.groups else "whole"
        reached.update(f"{below} > {above}" for below, above in itertools.pairwise([*chain, grouped]))
        reached.update(f"{grouped} > {one.function.name}" for one in made.question.asked)
    print("\n".join(f"{many:5} {what}" for what, many in sorted(reached.items())), f"{refused:5} refused", sep="\n")
    tops = [f"{one} > {grouped}" for one in ("scan", "filter", "inner", "left") for grouped in ("grouped", "whole")]
    asked_for = [
        f"{grouped} > {one.name}" for one in FUNCTIONS if one is not COUNT_IF for grouped in ("grouped", "whole")
    ]
    pairs = ["scan > filter", "scan > inner", "scan > left", "inner > filter", "left > filter"]
    assert {*tops, *asked_for, *pairs} <= reached.keys()
    assert refused < 180


def test_a_commit_asks_hundreds_of_cases_of_each_kind(worlds: dict[str, tuple[World, World]]) -> None:
    """A third of them is looked at; printed with -s."""
    seen: Counter[str] = Counter()
    for shard, number in itertools.product(range(SHARDS), range(4)):
        limits, _, questions, _ = posed(Random(f"pure {shard} {number}"))
        db = worlds["pure"][0].load([], limits=limits)
        for text in questions:
            try:
                made = db.plan(text, epsilon=1)
            except HubbubError:
                seen["refused"] += 1
                continue
            kinds = set(shapes(made.question.relation)) | ({"sets"} if made.sets else set())
            kinds |= {one.function.name for one in made.question.asked}
            seen.update(kinds)
    cases = {what: 3 * many * (NEIGHBOURS + FURTHER) for what, many in sorted(seen.items())}
    print("\n".join(f"{many:5} {what}" for what, many in cases.items()))
    wanted = {"match private", "match public", "joinown", "window", "relationunion", "reduce", "sets", "cap"}
    assert all(cases.get(one, 0) >= 200 for one in (wanted - {"match public"})), cases
    assert wanted <= cases.keys()
    assert cases["refused"] < 0.2 * 3 * SHARDS * 4 * QUESTIONS * (NEIGHBOURS + FURTHER)


def shapes(relation: Relation) -> Iterator[str]:
    """Every operation, with what a match is about."""
    name = type(relation).__name__.lower()
    yield f"match {'private' if private(relation.other) else 'public'}" if isinstance(relation, Match) else name
    for one in below(relation):
        yield from shapes(one)


def operations(relation: Relation) -> list[str]:
    """From the scan upwards."""
    match relation:
        case Scan():
            return ["scan"]
        case JoinPublic(input=rows, kind=kind):
            return [*operations(rows), kind.value]
        case _:
            return [*operations(below(relation)[0]), type(relation).__name__.lower()]


# The engine in its own process, on files


def written(folder: Path, rows: list[dict[str, Any]], files: int) -> list[str]:
    """Parquet files, the rows dealt out to them: other files, other row groups, another order."""
    folder.mkdir()
    connection = duckdb.connect()
    kinds = [(column.name, column.kind) for column in STAYS]
    for place in range(files):
        fill(connection, "stays", kinds, rows[place::files])
        connection.execute(f"COPY stays TO '{folder}/stays{place}.parquet' (FORMAT parquet)")
    fill(connection, "places", [(column.name, column.kind) for column in PLACES], PUBLIC)
    connection.execute(f"COPY places TO '{folder}/places.parquet' (FORMAT parquet)")
    connection.close()
    return [f"{folder}/stays{place}.parquet" for place in range(files)]


def test_files_in_the_engines_own_process(tmp_path: Path) -> None:
    """The public way, from ``hubbub.open`` on: with a unit full of poison, and without it."""
    rng = Random("files")
    rows = [one for unit in range(300) for one in rows_of(rng, unit, rng.choice((1, 2, 9)))]
    poison = [*rows_of(rng, 5000, 60), *rows_of(rng, None, 20)]
    questions = list(dict.fromkeys(any_asked(rng) for _ in range(30 * min(TIMES, 20))))
    heard: list[list[str]] = [[], []]
    sides = []
    with ExitStack() as stack:
        for side, (held, files, threads) in enumerate([(rows, 1, 1), ([*rows, *poison], 5, 4)]):
            folder = tmp_path / f"side{side}"
            paths = written(folder, rng.sample(held, len(held)), files)
            db = hb.open(
                paths,
                name="stays",
                unit="person",
                budget=Budget(epsilon=Fraction(10**6)),
                bounds={column.name: column.bounds for column in STAYS if column.bounds},
                keys={"ward": WARDS},
                tables={"places": f"{folder}/places.parquet"},
                limits=Limits(max_groups=2, max_rows=3, threads=threads, buy=False),
                ledger=folder / "ledger",
                marks=Marks(folder / "marks"),
                log=heard[side].append,
            )
            sides.append(stack.enter_context(db))
        answered = 0
        for text in questions:
            left, right = (ask(db, text) for db in sides)
            pairs = zip(in_sets(left), in_sets(right), strict=False)
            assert not [one for both in pairs for one in faults(*both)], text
            answered += left.outcome == "answered"
    assert answered > len(questions) / 2
    assert heard == [[], []], "nothing goes wrong, so nothing is logged"
