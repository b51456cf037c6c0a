"""The same suite over both stores: ``location`` is a fresh SQLite path, then a fresh schema of a real PostgreSQL."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.ledger import Ledger, Marks
from hubbub.ledger.stores.store import Store
from hubbub.privacy.filter import Budget
from tests.ledger.asking import Clock
from tests.postgres import PostgresServer, running_server

OpenLedger = Callable[..., Ledger]
"""``open_ledger(location=..., marks=..., **what Ledger takes)``: by default the test's own location and marks."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One for all tests of a process."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """A fresh place on PostgreSQL, for tests that are about PostgreSQL alone."""
    return postgres_server.fresh_schema()


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """A fresh place for a file, for tests that are about SQLite alone."""
    return tmp_path / "ledger.db"


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest) -> str | Path:
    """A fresh place for a ledger; each test that uses it runs once on each store."""
    place: str | Path = request.getfixturevalue("sqlite_path" if request.param == "sqlite" else "postgres_url")
    return place


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    """High-water marks of this test alone."""
    return Marks(tmp_path / "state")


@pytest.fixture
def open_ledger(request: pytest.FixtureRequest, marks: Marks) -> Iterator[OpenLedger]:
    """Opens ledgers, and closes whatever the test has left open."""
    opened: list[Ledger] = []

    def open_ledger(location: str | Path | Store | None = None, **options: Any) -> Ledger:
        place = request.getfixturevalue("location") if location is None else location
        ledger = Ledger(place, **{"marks": marks, **options})
        opened.append(ledger)
        return ledger

    yield open_ledger
    for ledger in reversed(opened):
        ledger.close()


@pytest.fixture
def clock() -> Clock:
    """Set by hand."""
    return Clock()


@pytest.fixture
def ledger(open_ledger: OpenLedger, clock: Clock) -> Ledger:
    """A ledger with an account "patients" of ε = 2."""
    made = open_ledger(clock=clock)
    made.open_account("patients", Budget(epsilon=Fraction(2)))
    return made
