"""One engine for the tests that only ask it."""

from collections.abc import Iterator

import pytest

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.policy.tables import Limits
from tests.postgres import PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One for all tests of a process."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What the owner's log was told."""
    return []


@pytest.fixture(scope="module")
def engine(told: list[str]) -> Iterator[DuckDB]:
    with DuckDB(limits=Limits(threads=1, memory="500MB", temporary="1GB"), log=told.append, standbys=1) as made:
        yield made
