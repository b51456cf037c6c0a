"""A server's tables from the URL to the answer: in Python, by a policy, with the ledger beside them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli.app import app
from hubbub.errors import NotOwned, ParameterError, PolicyError
from hubbub.policy.servers import has_password, place_of, without_password
from hubbub.policy.tables import TableSource
from hubbub.session.engines import EngineRoom
from tests.postgres import PostgresServer

POLICY = """\
version = "1"
ledger = "clinic.ledger"

[budget]
account = "patients"
epsilon = 4_000_000

[limits]
max_groups = 2
max_rows = 6

[tables.people]
path = "{url}"
schema = "clinic"
copy = true
unit = "person"
unique = true

[tables.stays]
path = "{url}"
schema = "clinic"
copy = true
unit = "person"

[tables.stays.columns]
stay = {{ unique = true }}
cost = {{ bounds = [0, 100] }}
ward = {{ keys = ["north", "south"] }}

[tables.items]
path = "{url}"
schema = "clinic"
copy = true
unit = {{ through = "stay", to = "stays" }}

[tables.items.columns]
price = {{ bounds = [0, 9] }}

[tables.wards]
path = "{url}"
schema = "clinic"
copy = true
public = true
"""
GROUPED = "SELECT ward, count(*) AS n, sum(cost) AS s FROM stays GROUP BY ward"


def costs(server: PostgresServer, clinic: str) -> list[tuple[str, int, int]]:
    return server.execute(
        "SELECT ward, count(*)::int, sum(cost)::int FROM clinic.stays GROUP BY ward ORDER BY ward", url=clinic
    )


def written(folder: Path, url: str, text: str = POLICY, *, copies: bool = True) -> Path:
    path = folder / "hubbub.toml"
    path.write_text((text if copies else text.replace("copy = true\n", "")).format(url=url))
    return path


either = pytest.mark.parametrize("copies", [True, False], ids=["copied", "on the server"])
WHERE = {True: "the owner says copy = true", False: "run on the server"}


@either
def test_a_table_is_opened_by_its_url(server: PostgresServer, clinic: str, copies: bool) -> None:
    server.execute(
        "CREATE ROLE single LOGIN; GRANT USAGE ON SCHEMA clinic TO single; GRANT SELECT ON clinic.stays TO single",
        url=clinic,
    )
    url = clinic.replace("hubbub@", "single@")
    try:
        ask_by_url(hb.postgres(url, schema="clinic", table="stays", copy=copies), copies, costs(server, clinic))
    finally:
        server.execute("DROP OWNED BY single; DROP ROLE single", url=clinic)


def ask_by_url(table: TableSource, copies: bool, expected: list[tuple[str, int, int]]) -> None:
    bounds = {"cost": (0, 100)}
    keys = {"ward": ["north", "south"]}
    limits = hb.Limits(max_groups=2, max_rows=3)
    with hb.open(table, unit="person", budget=1_000_000, bounds=bounds, keys=keys, limits=limits) as db:
        answer = db.sql(GROUPED, epsilon=500_000)
        explained = str(db.explain("SELECT count(*) FROM stays", epsilon=1))
    assert [(row["ward"], round(row["n"]), round(row["s"])) for row in answer.to_dicts()] == expected
    assert WHERE[copies] in explained


@either
def test_a_policy_names_tables_of_a_server(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path, copies: bool
) -> None:
    with hb.open(written(tmp_path, reader, copies=copies)) as db:
        answer = db.sql(GROUPED, epsilon=1_000_000)
        joined = db.sql("SELECT floor, count(*) AS n FROM stays JOIN wards USING (ward) GROUP BY floor", epsilon=100)
        items = db.sql("SELECT count(*) AS n, sum(price) AS s FROM items", epsilon=100_000)
        assert db.policy.has_key("stays", "stay")  # which primary keys enforce
        assert db.policy.enforced == {"people"}
    assert [(row["ward"], round(row["n"]), round(row["s"])) for row in answer.to_dicts()] == costs(server, clinic)
    assert [round(row["n"]) for row in joined.to_dicts()] == [100, 200]
    assert [(round(row["n"]), round(row["s"])) for row in items.to_dicts()] == [(600, 2700)]


@either
def test_a_declaration_that_no_constraint_enforces_is_not_believed(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path, copies: bool
) -> None:
    """The rows are as unique as before; nothing keeps them so."""
    server.execute(
        "ALTER TABLE clinic.people DROP CONSTRAINT people_pkey CASCADE; "
        "ALTER TABLE clinic.stays DROP CONSTRAINT stays_pkey CASCADE",
        url=clinic,
    )
    with hb.open(written(tmp_path, reader, copies=copies)) as db:
        assert not db.policy.enforced
        assert not db.policy.enforced_keys
        with pytest.raises(NotOwned, match="seen to be unique"):
            db.sql("SELECT count(*) FROM items", epsilon=1)


def test_a_declared_number_of_units_is_enforced_by_no_constraint(clinic: str, tmp_path: Path) -> None:
    text = POLICY.replace("unique = true\n\n", "unique = true\nsize = 99\n\n")
    text = text.replace("epsilon = 4_000_000", 'epsilon = 1_000\nneighbors = "replace-one"')
    with hb.open(written(tmp_path, clinic, text)) as db:
        assert db.policy.tables["people"].size == 99
        assert not db.policy.enforced


def test_later_rows_are_there_when_it_is_opened_again(server: PostgresServer, clinic: str) -> None:
    table = hb.postgres(clinic, schema="clinic", table="people", copy=True)

    def counted(version: str) -> int:
        with hb.open(table, unit="person", budget=10_000, limits=hb.Limits(max_rows=1), version=version) as db:
            server.execute(
                "INSERT INTO clinic.people SELECT max(person) + 1, DATE '2000-01-01' FROM clinic.people", url=clinic
            )
            (row,) = db.sql("SELECT count(*) AS n FROM people", epsilon=3000).to_dicts()
            noisy: float = row["n"]
            return round(noisy)

    assert (counted("1"), counted("2")) == (100, 101)


@either
def test_the_ledger_may_be_in_the_same_database(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path, copies: bool
) -> None:
    """In a schema of its own, which the role that reads the data cannot read."""
    server.execute("CREATE ROLE keeper LOGIN; CREATE SCHEMA ledger AUTHORIZATION keeper", url=clinic)
    ledger = clinic.replace("hubbub@", "keeper@") + "&options=-csearch_path%3Dledger"
    try:
        with hb.open(written(tmp_path, reader, copies=copies), ledger=ledger) as db:
            db.sql("SELECT count(*) FROM people", epsilon=1)
        kinds = server.execute("SELECT kind FROM ledger.entries ORDER BY seq", url=clinic)
        assert {"account", "charge", "answer"} <= {kind for (kind,) in kinds}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.execute("SELECT FROM ledger.entries", url=reader)
    finally:
        server.execute("DROP OWNED BY keeper CASCADE; DROP ROLE keeper", url=clinic)


@either
def test_a_password_is_shown_nowhere(server: PostgresServer, reader: str, tmp_path: Path, copies: bool) -> None:
    secret = "pass-w0rd"
    url = reader.replace("reader@", f"reader:{secret}@")
    said: list[str] = []
    with hb.open(written(tmp_path, url, copies=copies), log=said.append) as db:
        answer = db.sql(GROUPED, epsilon=1_000_000)
        shown = [repr(db), repr(db.policy), str(db.schema()), repr(answer), str(db.explain(GROUPED, epsilon=1))]
        shown += [repr(table.source) for table in db.policy.tables.values()]
        kept = [str(entry) for entry in db.ledger.entries()]
        with_password = db.policy.fingerprint
    with hb.open(written(tmp_path, reader, copies=copies)) as db:
        assert db.policy.fingerprint == with_password  # who reads, and how, is no part of it
    wrong = written(tmp_path, url.replace("/test_", "/no_such_"))
    with pytest.raises(PolicyError) as refused:
        hb.open(wrong)
    shown += [str(refused.value), repr(refused.value.operands)]
    assert not any(secret in text for text in [*shown, *kept, *said])


@pytest.mark.parametrize("url", ["postgresql://u:p@ss@h/d", "postgresql://u:p/w@h/d", "postgresql://h/d?sslmode"])
def test_a_url_that_is_none_is_not_printed(url: str) -> None:
    with pytest.raises(ParameterError) as refused:
        hb.postgres(url, table="t")
    assert url not in str(refused.value)
    assert "p@ss" not in str(refused.value)


@pytest.mark.parametrize("path", ['["postgresql://u:pw1@h/d"]', '"postgressql://u:pw1@h/d"', '"mysql://u:pw1@h/d"'])
def test_a_url_where_files_are_wanted_is_not_printed(tmp_path: Path, path: str) -> None:
    policy = tmp_path / "hubbub.toml"
    policy.write_text(f'[budget]\naccount = "a"\nepsilon = 1\n\n[tables.t]\npath = {path}\nunit = "u"\n')
    with pytest.raises(PolicyError, match="postgresql://") as refused:
        hb.open(policy)
    assert "pw1" not in str(refused.value) + repr(refused.value.operands)


@pytest.mark.parametrize("url", [3, "mysql://u:pw1@h/d", "/tmp/pw1.parquet"])
def test_a_table_of_a_server_needs_the_url_of_one(url: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        hb.postgres(url, table="t")
    assert "pw1" not in str(refused.value) + repr(refused.value.operands)


def test_a_place_is_a_database_whoever_logs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    assert place_of("postgresql://ann:x@db.example/hospital") == "postgresql://db.example:5432/hospital"
    assert (
        place_of("postgres://bob@db.example:5432/hospital?sslmode=require") == "postgresql://db.example:5432/hospital"
    )
    assert place_of("postgresql:///d?host=/run/pg") == "postgresql://%2Frun%2Fpg:5432/d"
    assert place_of("postgresql://h/d?port=6432") == "postgresql://h:6432/d"
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("PGDATABASE", "theirs")
    monkeypatch.setenv("PGPORT", "6543")
    assert place_of("postgresql://") == "postgresql://elsewhere:6543/theirs"
    assert place_of("postgresql://?service=clinic") == "postgresql:///?service=clinic"


def test_a_service_and_a_passfile_are_libpqs_own(
    server: PostgresServer, clinic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = clinic.rpartition("/")[0]
    database = place_of(clinic).rpartition("/")[2]
    assert name
    (tmp_path / "services").write_text(f"[clinic]\nhost={server.folder}\ndbname={database}\nuser=hubbub\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    table = hb.postgres("postgresql://?service=clinic", schema="clinic", table="people", copy=True)
    with hb.open(table, unit="person", budget=10_000, limits=hb.Limits(max_rows=1)) as db:
        assert round(db.sql("SELECT count(*) AS n FROM people", epsilon=5000).to_dicts()[0]["n"]) == 100


def test_passwords_can_be_taken_out() -> None:
    assert has_password("postgresql://ann:x@h/d")
    assert has_password("postgresql://ann@h/d?password=x&sslmode=require")
    assert without_password("postgresql://ann:x%40y@h/d") == "postgresql://ann@h/d"
    assert without_password("postgresql://ann@h/d?password=x&sslmode=require") == "postgresql://ann@h/d?sslmode=require"
    assert without_password("postgresql://ann@h/d?password=x") == "postgresql://ann@h/d"
    assert without_password("postgresql://ann@h/d") == "postgresql://ann@h/d"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('path = "x.parquet"\nschema = "s"', "PostgreSQL server alone"),
        ('path = "x.parquet"\ncopy = true', "PostgreSQL server alone"),
        ('path = "postgresql://h/d"\nformat = "csv"', "format"),
        ('path = "postgresql://h/d"\ncopy = "yes"', "copy"),
        ('path = "postgresql://h/d"\nschema = 3', "schema"),
    ],
)
def test_what_is_said_of_the_wrong_table_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "hubbub.toml"
    path.write_text(f'[budget]\naccount = "a"\nepsilon = 1\n\n[tables.t]\n{line}\nunit = "u"\n')
    with pytest.raises(PolicyError, match=reason):
        hb.open(path)


def test_a_table_without_a_name_and_one_that_is_not_there(clinic: str) -> None:
    with pytest.raises(ParameterError, match=r"hubbub\.postgres"):
        hb.open(clinic, unit="person", budget=1)
    with pytest.raises(PolicyError, match=r"no table public\.stays"):
        hb.open(clinic, name="stays", unit="person", budget=1)
    with pytest.raises(PolicyError, match="cannot be reached"):
        hb.open(hb.postgres("postgresql://127.0.0.1:1/d", table="t"), unit="person", budget=1)


def test_views_are_read_where_the_owner_declares_them(server: PostgresServer, clinic: str) -> None:
    server.execute("CREATE VIEW clinic.northern AS SELECT * FROM clinic.stays WHERE ward = 'north'", url=clinic)
    view = hb.postgres(clinic, schema="clinic", table="northern", view=True)
    with hb.open(view, unit="person", budget=10_000, limits=hb.Limits(max_rows=3)) as db:
        assert round(db.sql("SELECT count(*) AS n FROM northern", epsilon=5000).to_dicts()[0]["n"]) == 100
        assert "copy" in str(db.explain("SELECT count(*) FROM northern", epsilon=1))
    with pytest.raises(PolicyError, match="view = true"):
        hb.open(hb.postgres(clinic, schema="clinic", table="northern"), unit="person", budget=1)


def test_questions_do_not_run_as_a_role_that_can_see_too_much(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path
) -> None:
    server.execute("CREATE TABLE clinic.notes (n text); GRANT SELECT ON clinic.notes TO reader", url=clinic)
    with pytest.raises(PolicyError, match=r'REVOKE ALL ON "clinic"\."notes" FROM "reader";'):
        hb.open(written(tmp_path, reader, copies=False))
    server.execute('REVOKE ALL ON "clinic"."notes" FROM "reader";', url=clinic)
    hb.open(written(tmp_path, reader, copies=False)).close()


def test_the_reason_for_a_copy_is_said(server: PostgresServer, clinic: str, reader: str, tmp_path: Path) -> None:
    (tmp_path / "floors.csv").write_text("floor,colour\n1,red\n2,blue\n")
    beside = '\n[tables.floors]\npath = "floors.csv"\npublic = true\ncolumns.floor.type = "integer"\n'
    with hb.open(written(tmp_path, reader, POLICY + beside, copies=False)) as db:
        assert "since other tables are files" in str(db.explain("SELECT count(*) FROM stays", epsilon=1))
    stays = POLICY.replace("copy = true", "copy = false") + beside
    with pytest.raises(PolicyError, match="copy = false"):
        hb.open(written(tmp_path, reader, stays))


def test_databases_in_another_encoding_are_copied(server: PostgresServer) -> None:
    url = server.fresh_database(more="ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    server.execute("CREATE TABLE t AS SELECT i AS p, 'grün' AS w FROM generate_series(1, 10) AS i", url=url)
    limits = hb.Limits(max_rows=1)
    with hb.open(url, name="t", unit="p", budget=10_000, limits=limits, keys={"w": ["grün"]}) as db:
        (row,) = db.sql("SELECT w, count(*) AS n FROM t GROUP BY w", epsilon=5000).to_dicts()
        assert (row["w"], round(row["n"])) == ("grün", 10)
        assert "the database keeps text as LATIN1" in str(db.explain("SELECT count(*) FROM t", epsilon=1))


ODD = ('a"b', "we%sird %(x)s", "C'; DROP TABLE t; --", "{0}", "ß\\n")


@either
def test_names_are_read_as_they_are(server: PostgresServer, database: str, copies: bool) -> None:
    """Whatever a schema, a table and its columns are called."""

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    place = f"{quoted(ODD[0])}.{quoted(ODD[1])}"
    columns = ", ".join(f"i AS {quoted(name)}" for name in ODD)
    server.execute(
        f"CREATE SCHEMA {quoted(ODD[0])}; CREATE TABLE {place} AS SELECT {columns} FROM generate_series(1, 50) AS i; "
        f"CREATE ROLE odd LOGIN; GRANT USAGE ON SCHEMA {quoted(ODD[0])} TO odd; GRANT SELECT ON {place} TO odd",
        url=database,
    )
    table = hb.postgres(database.replace("hubbub@", "odd@"), schema=ODD[0], table=ODD[1], copy=copies)
    limits, bounds = hb.Limits(max_rows=1), dict.fromkeys(ODD, (0, 50))
    sums = ", ".join(f"sum({quoted(name)})" for name in ODD)
    try:
        with hb.open(table, name="t", unit=ODD[2], budget=4_000_000, limits=limits, bounds=bounds) as db:
            (row,) = db.sql(f"SELECT {sums} FROM t", epsilon=1_000_000).rows
        assert [round(value) for value in row] == [1275] * len(ODD)
    finally:
        server.execute("DROP OWNED BY odd; DROP ROLE odd", url=database)


def test_a_column_that_goes_while_it_is_opened_is_refused(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path
) -> None:
    """Between the look at the catalogue and the copy: no question fails for it after it was charged."""
    describe = EngineRoom.describe

    def describe_and_drop(room: EngineRoom, source: TableSource) -> Sequence[tuple[str, str]]:
        found = describe(room, source)
        if source.table == "wards":
            server.execute("ALTER TABLE clinic.stays DROP COLUMN note", url=clinic)
        return found

    path = written(tmp_path, reader)
    with patch.object(EngineRoom, "describe", describe_and_drop), pytest.raises(PolicyError, match=r"note .* is gone"):
        hb.open(path)


def test_a_question_about_a_server_is_audited_on_made_up_tables(clinic: str, reader: str, tmp_path: Path) -> None:
    """Also one that rests on a path, whose key a constraint keeps unique."""
    path = written(tmp_path, reader, copies=False)
    asked = ["audit", "SELECT count(*) FROM items", "--policy", str(path), "--epsilon", "1", "--draws", "1000"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "no counterexample" in done.output
