"""Sample-and-aggregate, whole: rows dealt out, programs in their sandbox, the gate and the ledger."""

import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import open_read
from hubbub.engines.lower import blocks as dealing
from hubbub.errors import BudgetExceeded, ParameterError, ProgramError
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.programs.program import Program
from hubbub.programs.sandbox import Sandbox
from hubbub.query.requests import BlockRows
from hubbub.session import sample_and_aggregate as asking
from hubbub.session.sample_and_aggregate import _all_columns
from hubbub.testing.replay import replayed
from tests.engines import programs

AGES: dict[str, Any] = {"columns": ["x"], "bounds": (0, 100), "seconds": 0.4}


def _works() -> str:
    """Why programs cannot be run here; empty where they can."""
    try:
        rows = {"x": ("real", [1.0])}
        Sandbox(program=Program.of(programs.mean), width=1, rehearsal=rows).check()
    except ProgramError as problem:
        return f"no world of its own for a program here ({problem})"
    return "" if sys.platform == "linux" else "programs run on Linux only"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    why = _works()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("blocks")
    rows = "SELECT i // 3 AS person, (i % 50)::DOUBLE AS x, i AS n, 'a' AS t FROM range(600) AS t(i)"
    duckdb.connect().execute(f"COPY ({rows} UNION ALL SELECT NULL, 99.0, 1, 'b') TO '{folder}/stays.parquet'")
    with hb.open(
        folder / "stays.parquet",
        unit="person",
        budget=hb.Budget(epsilon=Fraction(10**6)),
        ledger=folder / "ledger",
        marks=Marks(folder / "marks"),
        limits=Limits(lanes=2),
    ) as opened:
        yield opened


def test_a_mean_over_blocks(db: hb.Database) -> None:
    over: list[tuple[int, int]] = []
    with replayed(3):
        found = hb.sample_and_aggregate(
            db.table("stays"), programs.mean, blocks=4, epsilon=10**4, progress=lambda *p: over.append(p), **AGES
        )
    assert found.values[0] == pytest.approx(24.5, abs=3)  # blocks are not of one size, so the mean of means is near
    assert found.margins[0] == pytest.approx(0.007, rel=0.2)
    assert sorted(over) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert "mean of 4 blocks, ε = 10000" in repr(found)
    again = hb.sample_and_aggregate(db.table("stays"), programs.mean, blocks=4, epsilon=10**4, **AGES)
    assert (again.values, again.entry) == (found.values, found.entry)


@pytest.mark.parametrize("several", [False, True])
def test_what_was_drawn_at_a_higher_epsilon_is_shown_as_it_was_drawn(db: hb.Database, several: bool) -> None:
    """Its margins were those of the ε that was asked for, a thousand times wider."""
    program, terms = (programs.ends if several else programs.mean), dict(AGES)
    terms["bounds"] = [(0, 100), (0, 100)] if several else (0, 100)
    found, lower = (
        hb.sample_and_aggregate(db.table("stays"), program, blocks=3, epsilon=epsilon, **terms) for epsilon in (9000, 9)
    )
    assert lower.entry == found.entry
    assert (lower.values, lower.margins, lower.epsilon) == (found.values, found.margins, Fraction(9000))
    assert "ε = 9000" in repr(lower)


def test_the_owner_says_how_many_blocks_run_at_once(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not whoever asks: programs side by side feel each other through the processor."""
    lanes: list[int] = []

    def noted(**options: Any) -> Sandbox:
        lanes.append(options["lanes"])
        return Sandbox(**options)

    monkeypatch.setattr(asking, "Sandbox", noted)
    hb.sample_and_aggregate(db.table("stays"), programs.mean, blocks=2, epsilon=1, **AGES)
    assert lanes == [2]
    assert Limits().lanes == 1
    with pytest.raises(TypeError, match="lanes"):
        hb.sample_and_aggregate(db.table("stays"), programs.mean, blocks=2, epsilon=1, **{**AGES, "lanes": 3})


def test_several_numbers_share_the_budget(db: hb.Database) -> None:
    before = db.ledger.statement("people").spent.loss
    with replayed(3):
        found = hb.sample_and_aggregate(
            db.table("stays").where(hb.col("x") >= 10),
            programs.ends,
            blocks=3,
            epsilon=10**4,
            how="median",
            **{**AGES, "bounds": [(0, 100), (0, 100)]},
        )
    assert found.values == (10.0, 49.0)
    assert found.margins == (None, None)
    assert db.ledger.statement("people").spent.loss - before == 10**4 << 40


@pytest.mark.parametrize("name", ["sleeps", "crashes", "raises"])
def test_blocks_that_say_nothing_are_the_middle(db: hb.Database, name: str) -> None:
    """200 people in blocks of about one: those with three rows misbehave."""
    with replayed(3):
        found = hb.sample_and_aggregate(
            db.table("stays").where(hb.col("n") < 3), getattr(programs, name), blocks=1, epsilon=10**5, **AGES
        )
    assert found.values[0] == pytest.approx(50, abs=0.01)


def test_all_columns_but_the_units_where_none_is_named(db: hb.Database) -> None:
    def seen(frame: Any) -> list[str]:
        return _all_columns(frame, db)

    assert seen(db.table("stays")) == ["x", "n", "t"]
    assert seen(db.table("stays").where(hb.col("x") > 1)) == ["x", "n", "t"]
    with pytest.raises(hb.HubbubError, match="There is no table 'nothing'"):
        db.table("nothing")
    for frame in (db.table("stays").select("person", "x"), db.table("stays").alias("other")):
        with pytest.raises(ParameterError, match="more than one declared table"):
            seen(frame)
    wanted = {name: value for name, value in AGES.items() if name != "columns"}
    with replayed(3):
        found = hb.sample_and_aggregate(db.table("stays"), programs.mean, blocks=2, epsilon=10**4, **wanted)
    assert found.values[0] == pytest.approx(24.5, abs=3)


def test_a_units_rows_go_to_one_block(db: hb.Database) -> None:
    relation, columns = _rows(db, "n")
    dealt = _dealt(db, relation, columns, 7)
    people = [{value // 3 for value in block["n"][1]} for block in dealt]
    assert sum(len(block["n"][1]) for block in dealt) == 600, "rows of nobody are left out"
    assert sum(len(one) for one in people) == 200 == len(set.union(*people))
    assert all(10 <= len(one) <= 60 for one in people)  # 28 on average: false alarm below 1e-6
    assert all(block["n"][1] == sorted(block["n"][1]) for block in dealt)
    others = _dealt(db, relation, columns, 7)
    assert [block["n"] for block in others] != [block["n"] for block in dealt], "the key is fresh each time"


def _rows(db: hb.Database, *columns: str) -> Any:
    return db.read_rows(db.table("stays").rows_sql(*columns))


def _dealt(db: hb.Database, relation: Any, columns: Any, blocks: int) -> Any:
    return open_read(db, BlockRows(relation=relation, columns=columns, blocks=blocks))


def test_neighbours_differ_in_one_block(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under one key, without one person: one block has lost that person's rows, and the others are the same."""
    from hubbub.engines.duckdb import engine

    monkeypatch.setattr(engine, "draw_secrets", lambda statement: [5, 6][: statement.secrets])
    relation, columns = _rows(db, "n", "x")
    whole = _dealt(db, relation, columns, 5)
    without = db.table("stays").where(~hb.col("person").is_in([17]))
    less = _dealt(db, *db.read_rows(without.rows_sql("n", "x")), 5)
    differ = [place for place in range(5) if whole[place] != less[place]]
    assert len(differ) == 1
    assert set(whole[differ[0]]["n"][1]) - set(less[differ[0]]["n"][1]) == {51, 52, 53}


def test_what_cannot_be_is_refused_before_anything_is_paid(db: hb.Database) -> None:
    before, table = db.ledger.statement("people").spent.loss, db.table("stays")
    for wrong, error in (
        ({"blocks": 0}, ParameterError),
        ({"bounds": (5, 5)}, ParameterError),
        ({"how": "mode"}, ParameterError),
        ({"columns": []}, ParameterError),
        ({"columns": ["nothing"]}, hb.HubbubError),
        ({"epsilon": 0}, ParameterError),
        ({"seconds": 0}, ParameterError),
        ({"epsilon": 10**7}, BudgetExceeded),
    ):
        with pytest.raises(error):
            hb.sample_and_aggregate(table, programs.mean, **{"blocks": 2, "epsilon": 1, **AGES, **wrong})
    with pytest.raises(ParameterError, match="defined outside"):
        hb.sample_and_aggregate(table, lambda rows: 1.0, blocks=2, epsilon=1, **AGES)
    with pytest.raises(ProgramError):
        hb.sample_and_aggregate(table, programs.exits, blocks=2, epsilon=1, **AGES)
    assert db.ledger.statement("people").spent.loss == before


def test_made_up_rows_have_every_type(db: hb.Database) -> None:
    _, columns = _rows(db, "x", "n", "t")
    made = dealing.make_up_rows(columns, many=3)
    assert {called: kind for called, (kind, _) in made.items()} == {"x": "real", "n": "integer", "t": "text"}
    assert all(len(values) == 3 for _, values in made.values())


def test_a_program_has_no_more_memory_than_the_owner_allows(db: hb.Database) -> None:
    """An analyst who asks for all of the machine's memory would make other programs end, and hear of it."""
    with pytest.raises(ParameterError, match="memory must be"):
        hb.sample_and_aggregate(
            db.table("stays"), programs.mean, columns=["x"], blocks=2, bounds=(0, 1), epsilon=1, memory=1 << 40
        )
