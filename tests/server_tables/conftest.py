"""A real PostgreSQL with a small clinic in it, generated: 100 people, three stays each, a database for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import PostgresServer, running_server

CLINIC = """
CREATE SCHEMA clinic;
CREATE TABLE clinic.people (person bigint PRIMARY KEY, born date NOT NULL);
CREATE TABLE clinic.wards (ward text PRIMARY KEY, floor int NOT NULL);
CREATE TABLE clinic.stays (
    stay bigint PRIMARY KEY,
    person bigint NOT NULL REFERENCES clinic.people,
    ward text REFERENCES clinic.wards,
    cost numeric(12, 2),
    note text);
CREATE TABLE clinic.items (
    item bigint PRIMARY KEY,
    stay bigint NOT NULL REFERENCES clinic.stays,
    price int NOT NULL);
INSERT INTO clinic.people SELECT i, DATE '1950-01-01' + i::int FROM generate_series(1, 100) AS i;
INSERT INTO clinic.wards VALUES ('north', 1), ('south', 2);
INSERT INTO clinic.stays
    SELECT i, 1 + i % 100, CASE WHEN i % 3 = 0 THEN 'north' ELSE 'south' END, i % 50, 'note ' || i
    FROM generate_series(1, 300) AS i;
INSERT INTO clinic.items SELECT i, 1 + i % 300, i % 10 FROM generate_series(1, 600) AS i;
"""


EXACTLY = """
CREATE ROLE reader LOGIN;
GRANT USAGE ON SCHEMA clinic TO reader;
GRANT SELECT ON clinic.people, clinic.stays, clinic.items, clinic.wards TO reader;
ALTER ROLE reader SET temp_file_limit = '1GB';
"""


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """One for all tests of a process."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def full_server() -> Iterator[PostgresServer]:
    """Debian's, with ICU's collations and citext."""
    with running_server(debian=True) as server:
        yield server


@pytest.fixture
def database(server: PostgresServer) -> str:
    """The URL of an empty database of its own, as the server's owner."""
    return server.fresh_database()


@pytest.fixture
def clinic(server: PostgresServer, database: str) -> str:
    """The URL of a database with the clinic."""
    server.execute(CLINIC, url=database)
    return database


@pytest.fixture
def reader(server: PostgresServer, clinic: str) -> Iterator[str]:
    """The URL by which a role that can read what the policy declares reaches the clinic."""
    server.execute(EXACTLY, url=clinic)
    yield clinic.replace("hubbub@", "reader@")
    server.execute("DROP OWNED BY reader; DROP ROLE reader", url=clinic)


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a state directory of the test's own, and nothing that libpq would take from outside."""
    monkeypatch.setenv("HUBBUB_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("HUBBUB_LEDGER", raising=False)
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE", "PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
