"""``hubbub check`` of a server: roles that can see too much, what constraints enforce, settings that are missing."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner, Result

import hubbub as hb
from hubbub.cli.app import app
from hubbub.engines.postgres import copying
from hubbub.engines.postgres.server_check import ServerReport, check_servers
from hubbub.policy.files.read import parse_policy
from hubbub.policy.tables import Policy
from hubbub.session.engines import EngineRoom
from tests.postgres import PostgresServer
from tests.server_tables.test_opening_servers import POLICY, written

READER = "reader"
Reported = Callable[[], ServerReport]


def policy(url: str) -> Policy:
    room = EngineRoom(limits=hb.Limits())
    try:
        return parse_policy(POLICY.format(url=url), file="hubbub.toml", describe=room.describe)
    finally:
        room.close()


@pytest.fixture
def reported(reader: str) -> Reported:
    def check() -> ServerReport:
        (report,) = check_servers(policy(reader), is_pushed=True)
        return report

    return check


def test_a_role_that_reads_what_is_declared_is_fit(reported: Reported) -> None:
    report = reported()
    assert report.role == READER
    assert report.excess == ()
    assert report.holds
    assert {str(fact) for fact in report.facts} == {
        "people.person: one row a unit, enforced by a constraint.",
        "stays.stay: each value once, enforced by a constraint.",
        "items.stay: leads to stays.stay, enforced by a constraint.",
    }


TOO_WIDE = [
    ("CREATE TABLE clinic.notes (n text); GRANT SELECT ON clinic.notes TO reader", "can read clinic.notes"),
    ("CREATE TABLE clinic.notes (n text, m text); GRANT SELECT (n) ON clinic.notes TO reader", "can read clinic.notes"),
    ("CREATE TABLE clinic.notes (n text); GRANT SELECT ON clinic.notes TO PUBLIC", "can read clinic.notes"),
    ("CREATE TABLE clinic.notes (n text); GRANT INSERT ON clinic.notes TO reader", "can change clinic.notes"),
    ("CREATE VIEW clinic.notes AS SELECT 1 AS n; GRANT SELECT ON clinic.notes TO reader", "can read clinic.notes"),
    ("GRANT UPDATE (note) ON clinic.stays TO reader", "has UPDATE on clinic.stays"),
    ("GRANT DELETE ON clinic.stays TO PUBLIC", "has DELETE on clinic.stays"),
    ("GRANT CREATE ON SCHEMA clinic TO reader", "can create things in schema clinic"),
    (
        "CREATE FUNCTION clinic.peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT 1::bigint'",
        r"can call clinic\.peek\(\)",
    ),
    ("ALTER TABLE clinic.wards OWNER TO reader", "owns clinic.wards"),
    ("GRANT pg_read_all_data TO reader", "member of pg_read_all_data"),
    ("GRANT SELECT ON pg_catalog.pg_statistic TO reader", "can read pg_catalog.pg_statistic"),
    ("GRANT EXECUTE ON FUNCTION pg_catalog.pg_read_file(text) TO reader", r"can call pg_catalog\.pg_read_file"),
    ("ALTER ROLE reader BYPASSRLS", "looks past row-level security"),
    ("ALTER ROLE reader CREATEROLE", "can create roles"),
    ("ALTER ROLE reader RESET temp_file_limit", "Temporary files of reader have no limit"),
    ("ALTER TABLE clinic.stays ADD COLUMN scan jsonb", "can read scan of clinic.stays, which no question can use"),
]


@pytest.mark.parametrize(("made", "sentence"), TOO_WIDE, ids=[sentence for _, sentence in TOO_WIDE])
def test_whatever_is_beyond_the_policy_is_found_and_mended(
    server: PostgresServer, clinic: str, reported: Reported, made: str, sentence: str
) -> None:
    """The statements that are printed take away what was found, and nothing that is needed."""
    server.execute(made, url=clinic)
    report = reported()
    assert not report.holds
    assert any(re.search(sentence, excess.sentence) for excess in report.excess), report.excess
    for statement in report.statements:
        server.execute(statement.replace("OWNER TO …", "OWNER TO hubbub"), url=clinic)
    assert reported().excess == ()


def test_rights_through_a_group_are_found(server: PostgresServer, clinic: str, reported: Reported) -> None:
    """Also those that the role must take with SET ROLE."""
    server.execute(
        "CREATE ROLE staff; CREATE TABLE clinic.notes (n text); GRANT SELECT ON clinic.notes TO staff; "
        "ALTER ROLE reader NOINHERIT; GRANT staff TO reader",
        url=clinic,
    )
    try:
        (excess,) = reported().excess
        assert "can read clinic.notes" in excess.sentence
        assert excess.statements == ('REVOKE ALL ON "clinic"."notes" FROM "staff";',)
    finally:
        server.execute("DROP OWNED BY staff; DROP ROLE staff", url=clinic)


def test_partitions_of_a_declared_table_are_declared(server: PostgresServer, database: str) -> None:
    server.execute(
        "CREATE SCHEMA clinic; CREATE TABLE clinic.t (p int) PARTITION BY RANGE (p); "
        "CREATE TABLE clinic.u PARTITION OF clinic.t DEFAULT; CREATE ROLE reader LOGIN; "
        "GRANT USAGE ON SCHEMA clinic TO reader; GRANT SELECT ON clinic.t, clinic.u TO reader; "
        "ALTER ROLE reader SET temp_file_limit = '1GB'",
        url=database,
    )
    try:
        text = (
            f'[budget]\naccount = "a"\nepsilon = 1\n[tables.t]\npath = "{database.replace("hubbub@", "reader@")}"\n'
            'schema = "clinic"\nunit = "p"\n'
        )
        with_room = parse_policy(text, file="hubbub.toml", describe=EngineRoom(limits=hb.Limits()).describe)
        (report,) = check_servers(with_room, is_pushed=True)
        assert report.excess == ()
    finally:
        server.execute("DROP OWNED BY reader; DROP ROLE reader", url=database)


def test_tables_behind_a_closed_schema_are_not_seen(server: PostgresServer, clinic: str, reported: Reported) -> None:
    server.execute(
        "CREATE SCHEMA closed; CREATE TABLE closed.t (i int); GRANT SELECT ON closed.t TO PUBLIC", url=clinic
    )
    assert reported().excess == ()


def test_a_superuser_is_told_how_to_make_a_role(server: PostgresServer, clinic: str) -> None:
    """The role that is proposed is fit, and the policy works with it."""
    (report,) = check_servers(policy(clinic), is_pushed=True)
    (excess,) = report.excess
    assert "is a superuser" in excess.sentence
    try:
        for statement in excess.statements:
            server.execute(statement, url=clinic)
        (again,) = check_servers(policy(clinic.replace("hubbub@", "hubbub_reader@")), is_pushed=True)
        assert again.excess == ()
    finally:
        server.execute("DROP OWNED BY hubbub_reader; DROP ROLE hubbub_reader", url=clinic)


def test_what_no_constraint_enforces_is_said_with_the_statement_that_would(
    server: PostgresServer, clinic: str, reported: Reported
) -> None:
    server.execute("ALTER TABLE clinic.stays DROP CONSTRAINT stays_pkey CASCADE", url=clinic)
    missing = [fact for fact in reported().facts if not fact.is_enforced]
    assert [(fact.table, fact.column) for fact in missing] == [("stays", "stay"), ("items", "stay")]
    for fact in missing:
        assert "not believed" in str(fact)
        server.execute(fact.remedy, url=clinic)
    assert all(fact.is_enforced for fact in reported().facts)


def test_statements_in_logs_are_warned_of(server: PostgresServer, clinic: str, reported: Reported) -> None:
    assert reported().warnings == ()
    server.execute("ALTER ROLE reader SET log_statement = 'all'", url=clinic)
    (warning,) = reported().warnings
    assert "log_statement = all" in warning


Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def run(*arguments: object) -> Result:
        return CliRunner().invoke(
            app, [str(argument) for argument in arguments], env={"NO_COLOR": "1", "COLUMNS": "200"}
        )

    return run


def test_the_command_says_all_of_it(server: PostgresServer, clinic: str, reader: str, tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, reader)
    good = run("check", "--policy", path)
    assert good.exit_code == 0, good.output
    assert "stays.stay: each value once, enforced by a constraint." in good.output
    server.execute("GRANT CREATE ON SCHEMA clinic TO reader", url=clinic)
    bad = run("check", "--policy", path)
    assert bad.exit_code == 1
    assert 'REVOKE CREATE ON SCHEMA "clinic" FROM "reader";' in bad.output
    found: dict[str, Any] = json.loads(run("check", "--policy", path, "--json").stdout)
    assert found["holds"]
    assert not found["servers"][0]["holds"]


def test_roles_are_looked_at_without_reading_rows(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path, run: Run
) -> None:
    path = written(tmp_path, reader)
    with patch.object(copying, "copy_tables", side_effect=PermissionError("rows were to be read")):
        assert run("check", "--policy", path, "--no-rows").exit_code == 0
        assert isinstance(run("check", "--policy", path).exception, PermissionError)
    server.execute("GRANT CREATE ON SCHEMA clinic TO reader", url=clinic)
    done = run("check", "--policy", path, "--no-rows", "--json")
    assert done.exit_code == 1
    assert not json.loads(done.stdout)["servers"][0]["holds"]


def test_a_role_that_was_taken_is_no_disguise(server: PostgresServer, clinic: str, reader: str) -> None:
    """Whoever has logged in as a superuser can be one again."""
    (report,) = check_servers(policy(f"{clinic}&options=-crole%3Dreader"), is_pushed=True)
    assert any("is a superuser" in excess.sentence for excess in report.excess)


def test_what_check_saw_of_a_servers_rows_is_not_kept(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path, run: Run
) -> None:
    """The rows are unique when they are looked at; only a constraint keeps them so."""
    server.execute("ALTER TABLE clinic.stays DROP CONSTRAINT stays_pkey CASCADE", url=clinic)
    path = written(tmp_path, reader)
    assert run("check", "--policy", path).exit_code == 0
    with hb.open(path) as db:
        assert ("stays", "stay") not in db.policy.enforced_keys


def test_a_server_that_is_only_copied_needs_no_room_for_temporary_files(
    server: PostgresServer, tmp_path: Path, run: Run
) -> None:
    url = server.fresh_database(more="ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    server.execute("CREATE ROLE old LOGIN; CREATE TABLE t AS SELECT 1 AS p; GRANT SELECT ON t TO old", url=url)
    path = tmp_path / "hubbub.toml"
    path.write_text(
        f'[budget]\naccount = "a"\nepsilon = 1\n[tables.t]\npath = "{url.replace("hubbub@", "old@")}"\nunit = "p"\n'
    )
    try:
        done = run("check", "--policy", path, "--no-rows")
        assert done.exit_code == 0, done.output
        assert "temp_file_limit" not in done.output
    finally:
        server.execute("DROP OWNED BY old; DROP ROLE old", url=url)
