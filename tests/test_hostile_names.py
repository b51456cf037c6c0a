"""Hostile names through every door: questions in SQL and Python, publications, estimators, blocks, files and policies.

Each column of a table holds the same number in every row, and another one than all other columns, so that a total says
which column was read. Exact numbers are those of the product's own plans.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import hubbub as hb
from bench.asked import noiseless
from hubbub import publish
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import HubbubError, NotAllowed, ParameterError, PolicyError, UnknownName
from hubbub.learn import GaussianNB, StandardScaler
from hubbub.ledger import Marks
from hubbub.query.read.rows import rows_of
from hubbub.testing.replay import replayed

PEOPLE = 20
AMPLE = 10**4
"""At this ε noise moves nothing by as much as two columns differ."""
DOTTED_I = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"
"""Its lower case is two characters."""


def frame(*names: str, unit: str = "u") -> pd.DataFrame:
    """One row a person; the first column is 1 everywhere, the second 2, and so on."""
    return pd.DataFrame({unit: range(PEOPLE), **{name: [place] * PEOPLE for place, name in enumerate(names, 1)}})


def opened(folder: Path, data: Any, *, unit: str = "u", **changes: Any) -> hb.Database:
    columns = [name for name in data.columns if name != unit] if isinstance(data, pd.DataFrame) else []
    options: dict[str, Any] = {
        "unit": unit,
        "budget": hb.Budget(epsilon=Fraction(4 * 10**6)),
        "bounds": dict.fromkeys(columns, (0, 50)),
        "max_groups": 5,
        "max_rows": 5,
        "ledger": folder / "ledger",
        "marks": Marks(folder / "state"),
    }
    return hb.open(data, **(options | changes))


def columns_read(db: hb.Database, text: str) -> tuple[int, ...]:
    """Which columns the sums of a question are of."""
    planned = db.plan(text, epsilon=1)
    (totals,) = noiseless(planned, exact_of(db, planned.aggregate)).values()
    return tuple(int(total) // PEOPLE for total in totals)


@pytest.fixture
def dotted(tmp_path: Path) -> Iterator[hb.Database]:
    """Table a has the columns b and a.b."""
    with opened(tmp_path, frame("b", "a.b"), name="a") as db:
        yield db


def test_column_b_of_alias_a_is_not_column_a_b(dotted: hb.Database) -> None:
    assert columns_read(dotted, 'select sum(a.b), sum(a."a.b"), sum("a.b"), sum(b), sum("a".b) from a') == (
        1,
        2,
        2,
        1,
        1,
    )
    assert columns_read(dotted, 'select sum("a.b"."a.b"), sum("a.b".b) from a as "a.b"') == (2, 1)
    for text in ("select sum(a.a.b) from a", 'select sum("a"."a"."b") from a', "select count(*) from main.a"):
        with pytest.raises(NotAllowed):
            dotted.plan(text, epsilon=1)


def test_answers_of_both_are_stored_apart(dotted: hb.Database) -> None:
    texts = ("select sum(a.b) from a", 'select sum("a.b") from a', 'select sum(a."a.b") from a')
    entries = [dotted.sql(text, epsilon=1).entry for text in texts]
    assert len({*entries}) == len(texts)
    assert [dotted.sql(text, epsilon=1).entry for text in texts] == entries


@pytest.mark.parametrize(
    "names",
    [
        ("unit", "c0", "c1", "c2", "copy", "rank", "many", "key", "next", "code"),
        ("place", "block", "v0", "k0", "x0", "q", "r", "l", "v", "keys0"),
        ("key 0", "value 0", "noisy 0", "window 0", "over 0", "column 0", "distinct 0", "pair 0", "shown", "value"),
        ('"', '""', 'a"b', 'a""b', '"a"', "'", "';--", "/* */", "-- x", "\\"),
        ("select", "from", "count(*)", "*", "NULL", "1", "$1", "?", "{{x}}", "%s"),
        ("É", "E\N{COMBINING ACUTE ACCENT}", "a", "\N{CYRILLIC SMALL LETTER A}", DOTTED_I, "i", "ﬁ", "fi", "ß", "ss"),
    ],
    ids=["engine", "engine, more", "operations", "quotes", "SQL", "letters"],
)  # fmt: skip
def test_names_that_mean_something_elsewhere(tmp_path: Path, names: tuple[str, ...]) -> None:
    shown = ['"' + name.replace('"', '""') + '"' for name in names]
    sums, most = (", ".join(f"{how}({name}) AS {name}" for name in shown) for how in ("sum", "max"))
    with opened(tmp_path, frame(*names, unit="row"), unit="row", name="t") as db:
        wanted = tuple(range(1, len(names) + 1))
        assert columns_read(db, f"select {sums} from t") == wanted
        grouped = f"select row, {most} from t group by row"
        assert columns_read(db, f"select {sums} from ({grouped}) as unit") == wanted
        joined = ", ".join(f"sum(c1.{name}), sum(unit.{name})" for name in shown)
        text = f"select {joined} from t as unit join t as c1 using (row)"
        assert columns_read(db, text) == tuple(place for place in wanted for _ in range(2))


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "\ta", "a ", " ", "a\N{ZERO WIDTH SPACE}", "__hubbub x", "x" * 201])
def test_names_that_cannot_be_shown_are_no_columns(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, frame("b", name), name="t", bounds={}) as db:
        assert list(db.policy.tables["t"].unusable) == [name]
        with pytest.raises(HubbubError):
            db.plan(f'select count("{name}") from t', epsilon=1)


@pytest.mark.parametrize("pair", [("A", "a"), ("\N{KELVIN SIGN}", "k"), ("X", "x"), ("É", "é")])
def test_names_that_differ_in_case_alone_are_refused(tmp_path: Path, pair: tuple[str, str]) -> None:
    with pytest.raises(PolicyError, match=r"Rename one\."):
        opened(tmp_path, frame(*pair), name="t")


def test_joins_and_subqueries(tmp_path: Path) -> None:
    other = frame("c", "y") * [1, 10, 10]
    beside = {"s.t": hb.private(other, unit="u", bounds={"c": (0, 50), "y": (0, 50)})}
    with opened(tmp_path, frame("b.c", "x.y"), name="t", tables=beside) as db:
        for text, wanted in (
            ('select sum(a."b.c"), sum("a.b".c) from t a join "s.t" "a.b" on a.u = "a.b".u', (1, 10)),
            ('select sum(a."b.c"), sum("a.b".c) from t a, "s.t" "a.b" where a.u = "a.b".u', (1, 10)),
            ('select sum("s.t".c), sum("b.c") from t join "s.t" using (u)', (10, 1)),
            ('select sum(x.y), sum(x."x.y") from (select "b.c" as y, "x.y" from t) x', (1, 2)),
            ('with "w.x"("y.z", z) as (select "b.c", "x.y" from t) select sum("w.x"."y.z"), sum(z) from "w.x"', (1, 2)),
            ("""select sum("x'") from (select "b.c" as x, "x.y" as x, "b.c" + 5 as "x'" from t) s""", (6,)),
        ):
            assert columns_read(db, text) == wanted, text
        with pytest.raises(UnknownName, match=r'There are: a\."b\.c", a\."x\.y", a\.u\.'):
            db.plan("select sum(nothing) from t a", epsilon=1)


def test_a_unit_and_a_path_with_dots(tmp_path: Path) -> None:
    owners = pd.DataFrame({"next": range(PEOPLE), "k.ey": range(PEOPLE), "ey": range(PEOPLE, 0, -1)})
    items = pd.DataFrame({"k.ey": range(PEOPLE), "unit": [3] * PEOPLE})
    led = hb.private(items, unit=hb.through("k.ey", to="o.o"), bounds={"unit": (0, 50)})
    with opened(
        tmp_path, owners, unit="next", name="o.o", columns={"k.ey": {"unique": True}}, bounds={}, tables={"k": led}
    ) as db:
        assert columns_read(db, 'select sum(k."unit"), count(distinct "next") * 2 from k') == (3, 2)


def test_questions_in_python(dotted: hb.Database) -> None:
    table = dotted.table("a")
    asking = table.agg(x=hb.sum("a.b"), y=hb.sum(hb.col("b", of="a")))
    assert columns_read(dotted, asking.sql) == (2, 1)
    odd = table.alias('x"."y').agg(s=hb.sum(hb.col("a.b", of='x"."y')))
    assert columns_read(dotted, odd.sql) == (2,)


def test_a_name_stands_for_one_key_of_a_grouping(dotted: hb.Database) -> None:
    """Python's dictionaries would keep the last, and the question would be another one."""
    table, total = dotted.table("a"), hb.col("b") + 1
    with pytest.raises(ParameterError, match="under different names"):
        table.group_by("b + 1", total)
    with pytest.raises(ParameterError, match="under different names"):
        table.group_by("b", b=total)
    with pytest.raises(ParameterError, match="under other names than the keys"):
        table.group_by("b").agg(b=hb.count())
    assert table.group_by("b", "b", c=total).agg(n=hb.count()).sql.endswith("GROUP BY b, (b + 1)")


def test_publications(dotted: hb.Database) -> None:
    with replayed(seed=1):
        release = dotted.publish(publish.Flat(), over={"a.b": [1, 2], "a . b": [1, 2]}, epsilon=AMPLE)
    assert release.cells.round().tolist() == [[0, 0], [PEOPLE, 0]], "the column a.b is 2, and b of a is 1"


def test_estimators(dotted: hb.Database) -> None:
    with replayed(seed=1):
        learned = dotted.table("a").learn(StandardScaler(), columns=["a.b", "b"], epsilon=AMPLE)
    assert np.round(learned.mean_).tolist() == [2, 1]
    with pytest.raises(ParameterError, match="different names"):
        dotted.table("a").learn(StandardScaler(), columns=["b", "B"], epsilon=1)


def test_classes_are_those_of_the_column_that_is_read(tmp_path: Path) -> None:
    """An alias may be another table's name, and a column may be made anew under the name of another."""
    people = frame("x").assign(y=["a", "b"] * (PEOPLE // 2))
    other = hb.private(people, unit="u", keys={"y": ["c", "d"]})
    with opened(tmp_path, people, name="t", bounds={"x": (0, 9)}, keys={"y": ["a", "b"]}, tables={"p": other}) as db:
        learned = db.table("t").alias("p").learn(GaussianNB(), columns=["x"], target="y", epsilon=AMPLE)
        assert learned.classes_.tolist() == ["a", "b"]
        made = db.table("t").select("u", "x", y=hb.col("y").call("upper"))
        with pytest.raises(HubbubError, match="Which classes there are is not declared"):
            made.learn(GaussianNB(), columns=["x"], target="y", epsilon=AMPLE)


def test_a_program_sees_each_column_once(dotted: hb.Database) -> None:
    _, named = rows_of(dotted.table("a").rows_sql("a.b", "b"), dotted)
    assert [name for name, _ in named] == ["a.b", "b"]
    with pytest.raises(NotAllowed, match="Two columns of the query have one name"):
        rows_of(dotted.table("a").rows_sql("b", "B"), dotted)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('u,b,a.b,"x""y"\n' + "".join(f"{place},1,2,3\n" for place in range(PEOPLE)))
    names = ("b", "a.b", 'x"y')
    types, bounds = dict.fromkeys(("u", *names), "integer"), dict.fromkeys(names, (0, 9))
    with opened(tmp_path, str(tmp_path / "a.csv"), types=types, bounds=bounds) as db:
        assert columns_read(db, 'select sum(a.b), sum("a.b"), sum("x""y") from a') == (1, 2, 3)
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(
            f'CREATE TABLE "main.t" AS SELECT i AS u, 1 AS "rowid.x", 2 AS "t.rowid.x" FROM range({PEOPLE}) r(i)'
        )
    bounds = dict.fromkeys(("rowid.x", "t.rowid.x"), (0, 9))
    with opened(tmp_path, str(tmp_path / "x.duckdb"), name="main.t", bounds=bounds, account="others") as db:
        assert columns_read(db, 'select sum(t."rowid.x"), sum("t.rowid.x") from "main.t" t') == (1, 2)


def test_a_policy_file(tmp_path: Path) -> None:
    """A bare dotted key of TOML is nesting, and an error says so in TOML's own words."""
    frame("b", "a.b").to_parquet(tmp_path / "t.parquet")
    head = (
        '[budget]\naccount = "p"\nepsilon = 10000\n[limits]\nmax_groups = 5\nmax_rows = 5\n[tables."a.b"]\n'
        'path = "t.parquet"\nunit = "u"\n[tables."a.b".columns]\n'
    )
    policy = tmp_path / "hubbub.toml"
    policy.write_text(head + '"a.b".bounds = [0, 9]\nb.bounds = [0, 9]\n')
    with hb.open(policy, ledger=tmp_path / "ledger", marks=Marks(tmp_path / "state")) as db:
        assert columns_read(db, 'select sum("a.b"), sum("a.b".b) from "a.b"') == (2, 1)
    for line, said in (
        ("a.b.bounds = [0, 9]", r'line 11: \[tables\."a\.b"\.columns\.a\] has no key b\.'),
        ('"a.b"."x.y" = 1', r'line 11: \[tables\."a\.b"\.columns\."a\.b"\] has no key "x\.y"\.'),
        ('"a.b" = 1', r'line 11: tables\."a\.b"\.columns\."a\.b" must be a table: \[tables\."a\.b"\.columns\."a\.b"\]'),
    ):
        policy.write_text(head + line + "\n")
        with pytest.raises(PolicyError, match=said):
            hb.open(policy)


def test_policies_whose_dots_are_elsewhere_differ(tmp_path: Path) -> None:
    with opened(tmp_path, frame("b.c"), name="a") as first, opened(tmp_path, frame("c"), name="a.b") as second:
        assert first.policy.fingerprint != second.policy.fingerprint
