"""Equality is ours: what a DuckDB file says of its columns (collations, views, macros, types) changes no answer."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from hubbub.audit.subjects.in_process.inside import counted
from hubbub.errors import PolicyError
from hubbub.policy.in_python import private
from hubbub.policy.paths import through
from hubbub.policy.stamps import stamp_of
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database
from hubbub.session.opening import open as opened

COLLATIONS = ("NOCASE", "NOACCENT", "NOCASE.NOACCENT", "NFC", "de", "de.NOACCENT", "")
LETTERS = ("a", "A", "ä", "Ä", "a\u0308", "e", "é", "E", "É", "ß", "ss", "", " ", "a ", "%", "_")
KEYS = ["a", "A", "ä", "é", "E", "ss", ""]
QUESTIONS = (
    "SELECT kind, count(*) FROM stays GROUP BY kind",
    "SELECT kind, count(DISTINCT word) FROM stays GROUP BY kind",
    "SELECT word, count(*) FROM stays GROUP BY word",
    "SELECT word, count(DISTINCT who) FROM stays GROUP BY word",
    "SELECT count(*) FROM stays WHERE word = 'a'",
    "SELECT count(*) FROM stays WHERE word IN ('a', 'E', 'ss')",
    "SELECT count(*) FROM stays WHERE word NOT IN ('a', 'E', 'ss')",
    "SELECT count(*) FROM stays WHERE word LIKE 'a%'",
    "SELECT count(*) FROM stays WHERE word < 'a' OR word > 'e'",
    "SELECT count(*) FROM stays WHERE word BETWEEN 'A' AND 'a'",
    "SELECT count(*) FROM stays WHERE starts_with(word, 'a')",
    "SELECT count(*) FROM stays WHERE lower(word) = 'a' OR upper(word) = 'É'",
    "SELECT count(*) FROM stays WHERE nullif(word, kind) IS NULL",
    "SELECT count(*) FROM stays WHERE CASE WHEN kind = 'a' THEN word ELSE kind END = 'a'",
    "SELECT mode(kind) FROM stays",
    "SELECT approx_top_k(kind, 2) FROM stays",
    "SELECT histogram(kind) FROM stays",
    "SELECT count(*) FROM stays JOIN words ON stays.word = words.word",
    "SELECT label, count(*) FROM stays JOIN words ON stays.word = words.word GROUP BY label",
    "SELECT count(*) FROM stays WHERE word IN (SELECT word FROM words)",
    "SELECT count(*) FROM stays WHERE EXISTS (SELECT 1 FROM words w WHERE w.word = stays.word)",
    "SELECT count(*) FROM (SELECT DISTINCT who, word FROM stays) AS d",
    "SELECT count(*) FROM (SELECT who, max(word) AS top FROM stays GROUP BY who) AS m WHERE top = 'a'",
    "SELECT count(*) FROM (SELECT who, min(word) AS low FROM stays GROUP BY who) AS m WHERE low < 'B'",
    "SELECT count(*) FROM (SELECT who, word, row_number() OVER (PARTITION BY who, word ORDER BY kind) AS n FROM stays) "
    "AS w WHERE n = 1",
    "SELECT count(*) FROM (SELECT who, word, lag(word) OVER (PARTITION BY who ORDER BY word) AS b FROM stays) AS w "
    "WHERE b = word",
    "SELECT count(*) FROM stays s WHERE EXISTS (SELECT 1 FROM stays t WHERE t.who = s.who AND t.word = s.kind)",
    "SELECT count(*) FROM notes WHERE note = 'x'",
    "SELECT word, count(*) FROM (SELECT who, word FROM stays UNION ALL SELECT who, note AS word FROM notes) AS u "
    "GROUP BY word",
)

Rows = dict[str, list[tuple[Any, ...]]]


def made_up(random: Random) -> Rows:
    """Stays of people, whose ids differ in case and accents alone; notes that lead to a stay by its id."""
    people = [a + b for a, b in product(LETTERS[:9], repeat=2)][: random.randint(2, 30)]
    ids = [f"{a}{b}{n}" for n, (a, b) in enumerate(product("aAäé", repeat=2))]
    stays = [(one, random.choice(people), random.choice(LETTERS), random.choice(KEYS)) for one in ids]
    notes = [(random.choice(ids), random.choice(["x", "X", "a"])) for _ in range(30)]
    words = [(word, random.choice(["p", "P"])) for word in LETTERS if random.random() < 0.6]
    return {"stays": stays, "notes": notes, "words": words}


COLUMNS = {"stays": ("id", "who", "word", "kind"), "notes": ("id", "note"), "words": ("word", "label")}


def store(folder: Path, rows: Rows, random: Random) -> tuple[dict[str, Path], dict[str, Path]]:
    """The same rows twice: in DuckDB files with collations, and in Parquet files, which have none."""
    collated, plain = {}, {}
    for table, columns in COLUMNS.items():
        collated[table], plain[table] = folder / f"{table}.duckdb", folder / f"{table}.parquet"
        declared = [f"{column} VARCHAR {_collation(random)}" for column in columns]
        with duckdb.connect(str(collated[table])) as made:
            made.execute(f"CREATE TABLE {table} ({', '.join(declared)})")
            made.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in columns)})", rows[table])
        with duckdb.connect() as made:
            made.execute(f"CREATE TABLE {table} ({', '.join(f'{column} VARCHAR' for column in columns)})")
            made.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in columns)})", rows[table])
            made.execute(f"COPY {table} TO '{plain[table]}'")
    return collated, plain


def _collation(random: Random) -> str:
    chosen = random.choice(COLLATIONS)
    return chosen and f"COLLATE {chosen}"


def database(folder: Path, files: dict[str, Path], name: str) -> Database:
    return opened(
        files["stays"],
        name="stays",
        unit="who",
        budget=Budget(epsilon=Fraction(1000), delta=Fraction(1, 10**6)),
        keys={"kind": KEYS},
        columns={"id": {"unique": True}},
        limits=Limits(max_groups=2, max_rows=3),
        tables={
            "notes": private(files["notes"], unit=through("id", to="stays")),
            "words": files["words"],
        },
        ledger=folder / f"{name}.ledger",
    )


@pytest.mark.parametrize("seed", range(4))
def test_collations_change_no_exact_number(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    collated, plain = store(tmp_path, made_up(random), random)
    with database(tmp_path, collated, "collated") as one, database(tmp_path, plain, "plain") as other:
        for question in QUESTIONS:
            numbers = [counted(db, db.plan(question, epsilon=1, delta=Fraction(1, 10**9))) for db in (one, other)]
            assert numbers[0] == numbers[1], question


def test_spellings_of_one_key_do_not_share_rows(tmp_path: Path) -> None:
    """The leak itself: 2^k spellings of a public key, and one person was in each of their groups."""
    spelt = ["".join(letters) for letters in product("aA", "bB", "cC", "dD")]
    path = tmp_path / "stays.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE stays (who INTEGER, word VARCHAR COLLATE NOCASE)")
        made.execute("INSERT INTO stays VALUES (1, 'abcd')")
    with opened(
        path,
        name="stays",
        unit="who",
        columns={"who": {"unique": True}},
        limits=Limits(max_groups=1, max_rows=1),
        budget=Budget(epsilon=Fraction(10)),
        keys={"word": spelt},
        ledger=tmp_path / "ledger",
    ) as db:
        (found,) = counted(db, db.plan("SELECT word, count(*) FROM stays GROUP BY word", epsilon=1))
    assert sum(number for (number,) in found.tallies) == 1


def test_ids_that_differ_in_case_are_two_people_and_two_keys(tmp_path: Path) -> None:
    path = tmp_path / "stays.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE stays (who VARCHAR COLLATE NOCASE, word VARCHAR)")
        made.execute("INSERT INTO stays VALUES ('ann', 'x'), ('Ann', 'x'), ('ANN', 'x')")
    with opened(
        path,
        name="stays",
        unit="who",
        columns={"who": {"unique": True}},
        limits=Limits(max_groups=1, max_rows=1),
        budget=Budget(epsilon=Fraction(10)),
        ledger=tmp_path / "ledger",
    ) as db:
        (found,) = counted(db, db.plan("SELECT count(*) FROM stays", epsilon=1))
    assert found.tallies == [(3,)]


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """A file with everything in it that could change what a statement means."""
    path = tmp_path / "stays.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE stays (who INTEGER, nights INTEGER, twice INTEGER AS (nights * 2), MOOD VARCHAR)")
        made.execute("INSERT INTO stays VALUES (1, 2, 'z'), (1, 3, 'a'), (2, 50, 'a')")
        for macro in ("hash(a)", "least(a, b)", "greatest(a, b)", "count(a)", "sum(a)", "isfinite(a)", "coalesce(a)"):
            made.execute(f"CREATE MACRO {macro} AS 1000")
        made.execute("CREATE MACRO row_number() AS 1; CREATE MACRO typeof(a) AS 'BIGINT'")
        made.execute("CREATE VIEW chosen AS SELECT * FROM stays WHERE nights > (SELECT avg(nights) FROM stays)")
        made.execute("CREATE SEQUENCE seen; CREATE VIEW counting AS SELECT who, nextval('seen') AS n FROM stays")
        made.execute("CREATE TABLE drawn (who INTEGER, luck DOUBLE AS (random()), turn BIGINT AS (nextval('seen')))")
        made.execute("INSERT INTO drawn VALUES (1), (2)")
        made.execute("CREATE TYPE mood AS ENUM ('z', 'a'); CREATE TABLE moods (who INTEGER, m mood)")
        made.execute("INSERT INTO moods VALUES (1, 'z'), (2, 'a'), (3, 'a')")
    return path


def test_macros_of_the_file_are_not_called(catalogue: Path, tmp_path: Path) -> None:
    with opened(
        catalogue,
        name="stays",
        unit="who",
        budget=Budget(epsilon=Fraction(10)),
        bounds={"nights": (0, 10)},
        limits=Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
    ) as db:
        (found,) = counted(db, db.plan("SELECT count(*), sum(nights) FROM stays", epsilon=1))
    assert found.tallies == [(2, 15)], "at most one row of each person, and from 0 to 10 nights"


@pytest.mark.parametrize("view", ["chosen", "counting"])
def test_views_are_refused_when_they_are_opened(catalogue: Path, tmp_path: Path, view: str) -> None:
    with pytest.raises(PolicyError, match="is a view"):
        opened(catalogue, name=view, unit="who", budget=Budget(epsilon=Fraction(1)), ledger=tmp_path / "ledger")


def test_generated_columns_cannot_be_used(catalogue: Path, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="generated while it is read"):
        opened(catalogue, name="drawn", unit="turn", budget=Budget(epsilon=Fraction(1)), ledger=tmp_path / "ledger")
    with opened(
        catalogue, name="drawn", unit="who", budget=Budget(epsilon=Fraction(1)), ledger=tmp_path / "ledger"
    ) as db:
        assert set(db.policy.tables["drawn"].unusable) == {"luck", "turn"}


def test_members_of_an_enum_are_ordered_as_texts(catalogue: Path, tmp_path: Path) -> None:
    with opened(
        catalogue,
        name="moods",
        unit="who",
        budget=Budget(epsilon=Fraction(10)),
        limits=Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
    ) as db:
        (found,) = counted(db, db.plan("SELECT count(*) FROM moods WHERE m < 'b'", epsilon=1))
    assert found.tallies == [(2,)]


def test_a_file_is_not_changed_by_being_asked(catalogue: Path, tmp_path: Path) -> None:
    with opened(
        catalogue,
        name="stays",
        unit="who",
        budget=Budget(epsilon=Fraction(10)),
        limits=Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
    ) as db:
        source = db.policy.tables["stays"].source
        before = stamp_of(source)
        counted(db, db.plan("SELECT count(*) FROM stays", epsilon=1))
        assert stamp_of(source) == before
