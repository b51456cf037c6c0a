"""One engine for the tests that only ask it."""

from collections.abc import Iterator

import pytest

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.policy.tables import Limits


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What the owner's log was told."""
    return []


@pytest.fixture(scope="module")
def engine(told: list[str]) -> Iterator[DuckDB]:
    with DuckDB(limits=Limits(threads=1, memory="500MB", temporary="1GB"), log=told.append, standbys=1) as made:
        yield made
