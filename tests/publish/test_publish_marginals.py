"""Marginals of tables whose cells nobody could list: counted by the engine, bounded for each unit, stored, and free."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub import publish
from hubbub.cli.app import app
from hubbub.errors import HubbubError, NotAllowed, ParameterError, RecipeError, TooHeavy
from hubbub.gate.secret import open_sealed
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.records import DenseRecords, Weighted
from hubbub.publish.marginals.table_strategy import MOST_NUMBERS, check_size
from hubbub.publish.offer import Wish
from hubbub.publish.recipe import parse_recipe
from hubbub.publish.terms import Terms
from hubbub.query.requests import SparseCells
from hubbub.session.publishing import _lay_out, draft_publication

EXACT = 3 * 10**5
Rows = Sequence[tuple[Any, ...]]


def written(folder: Path, columns: Mapping[str, str], rows: Rows, *, name: str = "stays") -> Path:
    """A Parquet file of these rows."""
    file = folder / f"{name}.parquet"
    with duckdb.connect() as made:
        made.execute(f"CREATE TABLE t ({', '.join(f'{column} {kind}' for column, kind in columns.items())})")
        lists = ", ".join(
            f"CAST(unnest(CAST(${place} AS VARCHAR[])) AS {kind})" for place, kind in enumerate(columns.values(), 1)
        )
        texts = [[None if row[place] is None else str(row[place]) for row in rows] for place in range(len(columns))]
        made.execute(f"INSERT INTO t SELECT {lists}", texts)
        made.execute(f"COPY t TO '{file}' (FORMAT parquet)")
    return file


def opening(file: Path, **changes: Any) -> hb.Database:
    options: dict[str, Any] = {
        "unit": "person",
        "budget": hb.Budget(epsilon=Fraction(4 * 10**6)),
        "ledger": file.with_suffix(".ledger"),
        "marks": Marks(file.parent / "state"),
    }
    return hb.open(file, **(options | changes))


COLUMNS = {"person": "INTEGER", **{f"c{place}": "INTEGER" for place in range(15)}}
WIDE = [74, 9, 16, 16, 7, 15, 6, 5, 2, 99, 99, 99, 42, 2, 10]


def codes(many: int, sizes: Sequence[int], seed: int = 1) -> np.ndarray[Any, Any]:
    chance = np.random.default_rng(seed)
    return np.stack([(chance.beta(1, 3, many) * size).astype(np.int64) for size in sizes], axis=1)


def over(sizes: Sequence[int]) -> dict[str, range]:
    return {f"c{place}": range(size) for place, size in enumerate(sizes)}


def exact_counts(release: Any, *names: str) -> Any:
    return np.rint(release.marginal(*names).values).astype(np.int64)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[hb.Database, np.ndarray[Any, Any]]]:
    """Fifteen columns of 300 rows, a unit a row: 8.8 · 10^17 cells."""
    rows = codes(300, WIDE)
    told = [(unit, *row) for unit, row in enumerate(rows.tolist())]
    with opening(written(tmp_path_factory.mktemp("wide"), COLUMNS, told)) as db:
        yield db, rows


@pytest.mark.parametrize("strategy", [publish.Marginals(ways=2), publish.Cube(ways=2)])
def test_the_same_as_of_rows_that_somebody_holds(wide: tuple[hb.Database, np.ndarray[Any, Any]], strategy: Any) -> None:
    db, rows = wide
    domain = Domain.of(over(WIDE))
    made = db.publish(strategy, over=over(WIDE), rows=1, epsilon=EXACT)
    assert isinstance(made, publish.MarginalRelease if isinstance(strategy, publish.Marginals) else publish.CubeRelease)
    held: Any
    if isinstance(strategy, publish.Marginals):
        held = publish.run_table(rows, domain, strategy, epsilon=EXACT)
    else:
        held = publish.run_cube(rows, domain, strategy, epsilon=EXACT)
    for names in [(f"c{one}", f"c{two}") for one in range(15) for two in range(one + 1, 15)][::7]:
        counts = np.zeros([WIDE[int(name[1:])] for name in names], dtype=np.int64)
        np.add.at(counts, tuple(rows[:, int(name[1:])] for name in names), 1)
        assert np.array_equal(exact_counts(made, *names), counts)
        assert np.array_equal(exact_counts(held, *names), counts)
    assert [one.mechanism for one in made.prepared.measurements] == [
        one.mechanism for one in held.prepared.measurements
    ]


def test_more_cells_than_one_number_tells_apart(tmp_path: Path) -> None:
    """15 columns of 99 values are 99^15 cells, which takes 100 bits: codes of two numbers, chosen and counted alike."""
    sizes = [99] * 15
    rows = codes(200, sizes, seed=3)
    file = written(tmp_path, COLUMNS, [(unit // 4, *row) for unit, row in enumerate(rows.tolist())])
    with opening(file) as db:
        made = db.publish(publish.Marginals(of=(("c0", "c14"), ("c9",))), over=over(sizes), rows=4, epsilon=EXACT)
        counts = np.zeros((99, 99), dtype=np.int64)
        np.add.at(counts, (rows[:, 0], rows[:, 14]), 1)
        assert np.array_equal(exact_counts(made, "c0", "c14"), counts)
        assert np.array_equal(exact_counts(made, "c14", "c0"), counts.T)
        assert np.array_equal(exact_counts(made, "c9"), np.bincount(rows[:, 9], minlength=99))
        fewer = db.publish(publish.Marginals(of=(("c9",),)), over=over(sizes), rows=1, epsilon=EXACT)
        assert exact_counts(fewer, "c9").sum() == 50


def test_values_that_are_missing_or_elsewhere_are_left_out(tmp_path: Path) -> None:
    columns = {"person": "INTEGER", "ward": "VARCHAR", "age": "INTEGER", "cost": "DOUBLE", "place": "INTEGER"}
    rows: Rows = [
        (1, "a", 3, 0.5, 9_000),
        (2, "b", 3, 9.99, 9_001),
        (3, None, 3, 0.5, 9_000),
        (4, "z", 3, 0.5, 9_000),
        (5, "a", None, 0.5, 9_000),
        (6, "a", 8, 0.5, 9_000),
        (7, "a", 3, 10.0, 9_000),
        (8, "a", 3, None, 9_000),
        (9, "a", 3, "nan", 9_000),
        (10, "a", 3, 0.5, 10_000_000),
        (None, "a", 3, 0.5, 9_000),
    ]
    where: dict[str, Any] = {
        "ward": ["b", "a"],
        "age": range(3, 8),
        "cost": publish.bins(0, 10, 5),
        "place": range(400),
    }
    with opening(written(tmp_path, columns, rows)) as db:
        inside = where | {"place - 8900": range(400)}
        del inside["place"]
        made = db.publish(publish.Marginals(ways=2), over=inside, rows=1, epsilon=EXACT)
        assert exact_counts(made, "ward").tolist() == [1, 1]
        assert exact_counts(made, "ward", "cost").tolist() == [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
        assert exact_counts(made, "place - 8900")[[100, 101]].tolist() == [1, 1]
        missing = db.publish(publish.Marginals(ways=1), over={"ward": ["a", None]}, rows=1, epsilon=EXACT)
        assert exact_counts(missing, "ward").tolist() == [7, 1]
        blocks = db.publish(publish.Cube(ways=1), over=where | {"place": range(8_990, 18_990)}, rows=1, epsilon=EXACT)
        found = exact_counts(blocks, "place")
        assert found.shape == (10_000,)
        assert found.nonzero()[0].tolist() == [10, 11], "an axis in blocks is one axis again"


def test_a_unit_counts_with_so_many_rows_and_others_are_as_they_were(tmp_path: Path) -> None:
    """By brute force: what counts of each unit is part of what it has, and as much of it as the limit lets."""
    sizes = (50, 60, 70, 80, 90, 2, 3)
    chance = np.random.default_rng(5)
    rows = [(unit, *(int(chance.integers(size)) for size in sizes)) for unit in range(30) for _ in range(1 + unit % 7)]
    rows += rows[:40]  # several rows of a unit in one cell
    columns = {"person": "INTEGER", **{f"c{place}": "INTEGER" for place in range(len(sizes))}}
    marked = [(*row, row[0]) for row in rows]
    file = written(tmp_path, columns | {"who": "INTEGER"}, marked)
    domain: dict[str, Any] = over(sizes) | {"who": range(30)}
    with opening(file) as db:
        for most in (1, 3, 5):
            made = db.publish(publish.Marginals(of=(("who", "c0", "c1"),)), over=domain, rows=most, epsilon=EXACT)
            own = Counter(row[0] for row in rows)
            assert exact_counts(made, "who").tolist() == [min(most, own[unit]) for unit in range(30)]
            there = Counter((row[0], row[1], row[2]) for row in rows)
            counted = exact_counts(made, "who", "c0", "c1")
            for place in zip(*counted.nonzero(), strict=True):
                assert counted[place] <= there[(int(place[0]), int(place[1]), int(place[2]))]
            one = made.prepared.terms.contribution
            assert one.total == most
        one_each = db.publish(publish.Marginals(of=(("who",),)), over=domain, cells=4, each=1, epsilon=EXACT)
        cells = {unit: len({row for row in rows if row[0] == unit}) for unit in range(30)}
        assert exact_counts(one_each, "who").tolist() == [min(4, cells[unit]) for unit in range(30)]


@pytest.mark.parametrize("strategy", [publish.Marginals(ways=2), publish.Cube(ways=2)])
@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_neighbours_move_the_secret_within_its_reach(
    tmp_path: Path, neighbors: Neighbors, strategy: publish.Marginals | publish.Cube
) -> None:
    """All layers, over the engine, with one unit that has many more rows than count."""
    sizes = (90, 80, 70, 60, 50, 40, 3, 2)
    columns = {"person": "INTEGER", **{f"c{place}": "INTEGER" for place in range(len(sizes))}}
    others = [(unit, *row) for unit, row in enumerate(codes(60, sizes, seed=7).tolist(), 100)]
    crowd = [(1, *(size - 1 for size in sizes))] * 20
    spread = [(1, *row) for row in codes(40, sizes, seed=8).tolist()]
    sides: list[Rows] = (
        [others + crowd, others + spread] if neighbors is Neighbors.REPLACE_ONE else [others + crowd, others]
    )
    found = []
    for place, rows in enumerate(sides):
        budget = hb.Budget(epsilon=Fraction(10), delta=Fraction(1, 10**6), neighbors=neighbors)
        with opening(written(tmp_path, columns, rows, name=f"side{place}"), budget=budget) as db:
            wish = Wish(strategy=strategy, over=over(sizes), epsilon=1, rows=3)
            made = db._session.plan(draft_publication(wish, session=db._session, catalogue=db._catalogue()))
            request = SparseCells(aggregate=made.planned.aggregate)
            sealed = db._engine.prepare(request, tables=db.policy.tables)()
            counted: Any = open_sealed(_lay_out(made, sealed))
            found.append([one.layer.apply(counted) for one in made.prepared.measurements])
    moved_at_all = 0
    for one, left, right in zip(made.prepared.measurements, *found, strict=True):
        gone = (left - right).astype(object)
        proven = one.layer.reach(made.prepared.terms.contribution)
        l1, l2 = proven.in_norm(Norm.L1), proven.in_norm(Norm.L2)
        assert l1 is not None
        assert l2 is not None
        assert int(abs(gone).sum()) <= l1
        assert int((gone**2).sum()) <= l2
        moved_at_all += int(abs(gone).sum())
    assert moved_at_all > 0


def test_paid_once_free_again_and_saved(wide: tuple[hb.Database, np.ndarray[Any, Any]], tmp_path: Path) -> None:
    db, _ = wide
    asked: dict[str, Any] = {"over": over(WIDE), "rows": 1}
    before = db.ledger.statement("people").spent.charges
    first = db.publish(publish.Marginals(ways=1), **asked, epsilon=1)
    spent = db.ledger.statement("people").spent
    assert spent.charges == before + 1
    again = db.publish(publish.Marginals(ways=1), **asked, epsilon=1)
    cheaper = db.publish(publish.Marginals(ways=1), **asked, epsilon=Fraction(1, 3))
    assert db.ledger.statement("people").spent == spent
    assert again.entry == cheaper.entry == first.entry
    assert np.array_equal(again.noisy[0], first.noisy[0])
    assert cheaper.epsilon == 1, "its errors are those of the answer that is there"
    told = json.loads(first.certificate())
    assert (told["entry"], told["contribution"]["total"]) == (first.entry, 1)
    assert told["loss_units"] == sum(
        db.policy.budget.filter.charge_of(one.mechanism.event).loss for one in first.prepared.measurements
    )
    first.save(tmp_path / "marginals.json")
    back = publish.MarginalRelease.of(publish.load(tmp_path / "marginals.json"))
    assert back.certificate() == first.certificate()
    assert back.table("c3") == first.table("c3")
    assert "15 more" not in repr(back)
    assert "entry" in repr(back)
    cube = db.publish(publish.Cube(ways=1), **asked, epsilon=1)
    cube.save(tmp_path / "cube.json")
    again_cube = publish.CubeRelease.of(publish.load(tmp_path / "cube.json"))
    assert again_cube.certificate() == cube.certificate()
    assert again_cube.table("c3") == cube.table("c3")
    assert json.loads(cube.certificate())["question"].startswith("PUBLISH")


@pytest.mark.parametrize("strategy", [publish.Marginals(ways=2), publish.Cube(ways=2)])
def test_errors_are_told_before(wide: tuple[hb.Database, np.ndarray[Any, Any]], strategy: Any) -> None:
    db, _ = wide
    before = db.ledger.statement("people").spent
    asked: dict[str, Any] = {"over": over(WIDE), "rows": 1, "epsilon": 2, "where": "c1 >= 0"}
    told = db.explain_publish(strategy, **asked)
    assert db.ledger.statement("people").spent == before
    assert told.curve is None
    assert told.range({"c0": (0, 3)}) is None
    assert told.marginals is not None
    assert len(told.marginals) == 15 * 14 // 2
    made = db.publish(strategy, **asked)
    for names, cells, rmse in told.marginals[::11]:
        table = made.marginal(*names)
        assert table.deviation is not None
        assert cells == table.values.size
        assert rmse == pytest.approx(float(np.sqrt(np.mean(table.deviation**2))))
    assert "c0 × c1, 666 cells: ± " in str(told)
    assert "93 more marginals" in str(told)
    assert len(json.loads(json.dumps(told.to_dict()))["marginals"]) == 105


@pytest.mark.parametrize(
    ("strategy", "sizes", "words"),
    [
        (publish.Marginals(ways=3), [400] * 10, "noisy numbers"),
        (publish.Cube(ways=3), [400] * 10, "noisy numbers"),
        (publish.Marginals(of=((0, 1, 2), (1, 2, 3))), [400] * 10, "noisy numbers"),
        (publish.Marginals(ways=1), [2049], "fewer"),
        (publish.Marginals(ways=20), [2] * 60, "sets of columns"),
        (publish.Cube(of=(tuple(range(20)),)), [2] * 60, "sets of columns"),
        (publish.Flat(), [99] * 15, "publish.Marginals"),
    ],
)
def test_what_is_too_much_is_refused_before_it_is_paid(
    wide: tuple[hb.Database, np.ndarray[Any, Any]], strategy: Any, sizes: list[int], words: str
) -> None:
    db, _ = wide
    before = db.ledger.statement("people").spent
    axes = {f"c{place % 15} + {place}": range(size) for place, size in enumerate(sizes)}
    for call in (db.publish, db.explain_publish):
        with pytest.raises(TooHeavy, match=words):
            call(strategy, over=axes, rows=1, epsilon=1)
    assert db.ledger.statement("people").spent == before


@pytest.mark.parametrize("kind", [publish.Marginals, publish.Cube])
@pytest.mark.parametrize("sizes", [(5, 1, 3, 2), (4, 4, 4), (2, 7)])
def test_as_many_numbers_as_there_are(kind: Any, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain.without_names(sizes)
    for strategy in (kind(ways=2), kind(of=((0, 1), (1,)))):
        prepared = strategy.prepare(sizes, Terms.at(1, 0))
        many = sum(one.layer.size for one in prepared.measurements)
        monkeypatch.setattr("hubbub.publish.marginals.table_strategy.MOST_NUMBERS", many)
        if 1 not in sizes or kind is publish.Marginals:
            check_size(strategy, domain)
        monkeypatch.setattr("hubbub.publish.marginals.table_strategy.MOST_NUMBERS", many - 1)
        with pytest.raises(TooHeavy):
            check_size(strategy, domain)
    assert MOST_NUMBERS == 5 * 10**7


def test_limits_are_the_owners_too(tmp_path: Path) -> None:
    rows = [(unit // 6, *row) for unit, row in enumerate(codes(60, WIDE).tolist())]
    file = written(tmp_path, COLUMNS, rows)
    marginal = publish.Marginals(of=(("c0",),))
    with opening(file, limits=Limits(max_groups=2, max_rows=1, max_total_rows=4)) as db:
        with pytest.raises(NotAllowed, match="max_total_rows"):
            db.publish(marginal, over=over(WIDE), rows=5, epsilon=1)
        with pytest.raises(ParameterError):
            db.publish(marginal, over=over(WIDE), rows=0, epsilon=1)
        made = db.publish(marginal, over=over(WIDE), rows=3, epsilon=EXACT)
        assert made.prepared.terms.contribution.total == 2
        assert exact_counts(made, "c0").sum() == 20


def test_limits_that_nobody_said_are_bought(tmp_path: Path) -> None:
    rows = [(unit // 6, *row) for unit, row in enumerate(codes(600, WIDE).tolist())]
    with opening(written(tmp_path, COLUMNS, rows)) as db:
        made = db.publish(publish.Marginals(ways=1), over=over(WIDE), epsilon=1000)
        assert db.ledger.statement("people").spent.charges == 3
        assert made.prepared.terms.contribution.total >= 6


@pytest.mark.parametrize("counts", [[1, 1, 1], [1, 5, 2], [2**52, 2**52, 3], [2**62, 2**62, 2**62]])
def test_combinations_in_any_order_are_the_cells(counts: list[int]) -> None:
    """Exact in floats, and beyond them; a combination may come twice."""
    shape = (3, 2, 4)
    columns = [np.array([2, 0, 2], dtype=np.uint8), np.array([1, 1, 1]), np.array([3, 0, 3], dtype=np.uint16)]
    many = np.array(counts, dtype=np.int64)
    cells = np.zeros(shape, dtype=object)
    np.add.at(cells, tuple(columns), many.astype(object))
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        made = Weighted([column[order] for column in columns], many[order], shape)
        assert made.rows == sum(counts)
        for axes in ((), (0,), (1, 2), (0, 1, 2)):
            assert made.marginal(axes).tolist() == DenseRecords(cells).marginal(axes).tolist()
    with pytest.raises(ParameterError):
        Weighted([columns[0] + 1, *columns[1:]], many, shape)
    with pytest.raises(ParameterError):
        Weighted(columns[:2], many, shape)
    nothing = Weighted([column[:0] for column in columns], many[:0], shape)
    assert nothing.marginal((0,)).tolist() == [0, 0, 0]


def test_a_table_without_rows(tmp_path: Path) -> None:
    with opening(written(tmp_path, COLUMNS, [])) as db:
        made = db.publish(publish.Cube(ways=1), over=over(WIDE), rows=2, epsilon=EXACT)
        assert not exact_counts(made, "c0").any()


RECIPE = """\
epsilon = 5
rows = 2
compare = [{ name = "cube", ways = 2 }]

[data]
path = "stays.parquet"
unit = "person"
budget = 20
budget_delta = 1e-6
ledger = "stays.ledger"

[over]
c0 = { from = 0, to = 73 }
c9 = { from = 0, to = 98 }
c10 = { from = 0, to = 98 }
c11 = { from = 0, to = 98 }

[strategy]
name = "marginals"
ways = 2

[after]
nonnegative = true
total = 300

[output]
report = "out.html"
json = "out.json"
certificate = "certificate.json"
"""


def test_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_STATE", str(tmp_path / "state"))
    written(tmp_path, COLUMNS, [(unit // 2, *row) for unit, row in enumerate(codes(300, WIDE).tolist())])
    (tmp_path / "recipe.toml").write_text(RECIPE)
    run = CliRunner()
    dry = run.invoke(app, ["publish", str(tmp_path / "recipe.toml"), "--dry-run", "--json"])
    assert dry.exit_code == 0, dry.output
    told = json.loads(dry.stdout)
    assert told["compared"]["cube"][0]["columns"] == ["c0", "c9"]
    made = run.invoke(app, ["publish", str(tmp_path / "recipe.toml"), "--json"])
    assert made.exit_code == 0, made.output
    shown = json.loads(made.stdout)
    assert len(shown["marginals"]) == 6
    assert shown["steps"] == ["with the given total 300", "non-negative"]
    page = (tmp_path / "out.html").read_text()
    assert page.count("<svg") == 4 + 3
    assert "c0 × c9" in page
    assert "<th>cube</th>" in page
    back = publish.MarginalRelease.of(publish.load(tmp_path / "out.json"))
    assert back.certificate() == (tmp_path / "certificate.json").read_text().strip()
    plain = run.invoke(app, ["publish", str(tmp_path / "recipe.toml")])
    assert plain.exit_code == 0, plain.output
    assert "6 marginals in" in plain.output


@pytest.mark.parametrize(
    "wrong",
    [
        RECIPE.replace("nonnegative = true", "whole = true"),
        RECIPE.replace('name = "marginals"', 'name = "cube"'),
        RECIPE.replace("json =", "parquet ="),
        RECIPE.replace("rows = 2", "rows = 0"),
    ],
)
def test_what_marginals_do_not_have_is_refused_at_once(wrong: str) -> None:
    parse_recipe(RECIPE, file="recipe.toml")
    with pytest.raises((RecipeError, HubbubError), match="line"):
        parse_recipe(wrong, file="recipe.toml")


def test_fifteen_columns_three_at_a_time(tmp_path: Path) -> None:
    """The whole way at 50,000 rows: 11 million numbers, stored and given out again."""
    file = tmp_path / "stays.parquet"
    many = ", ".join(f"(hash(i, {place}) % {size}) :: INTEGER AS c{place}" for place, size in enumerate(WIDE))
    with duckdb.connect() as made:
        made.execute(f"COPY (SELECT i // 2 AS person, {many} FROM range(50000) AS t(i)) TO '{file}' (FORMAT parquet)")
        (real,) = made.execute(f"SELECT count(*) FROM '{file}' WHERE c0 = 5 AND c9 < 50").fetchall()[0]
    with opening(file, budget=hb.Budget(epsilon=Fraction(20), delta=Fraction(1, 10**6))) as db:
        release = db.publish(publish.Marginals(ways=3), over=over(WIDE), rows=2, epsilon=4)
        found = release.range(c0=5, c9=(0, 49))
        assert found.deviation is not None
        assert abs(found.value - real) < 5 * found.deviation, "a false alarm in about 10^6 runs"
        assert release.noisy[0].size == 11_413_511
        assert release.marginal("c0", "c1").values.sum() == pytest.approx(release.marginal("c9").values.sum())


def test_layers_read_combinations_as_they_read_cells() -> None:
    shape, chance = (5, 4, 3), np.random.default_rng(11)
    cells = chance.integers(0, 3, shape)
    places = [place.astype(np.int64) for place in cells.nonzero()]
    prepared = publish.Marginals(ways=2).prepare(shape, Terms.at(1, 0))
    (one,) = prepared.measurements
    made: Any = Weighted(places, cells[tuple(places)], shape)
    assert np.array_equal(one.layer.apply(made), one.layer.apply(cells))
