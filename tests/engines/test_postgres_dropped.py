"""What limits drop, counted by PostgreSQL: as DuckDB and the interpreter count it, and on neighbours as was proven."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.query.ops import Measure
from hubbub.session.database import Database
from tests.engines import test_postgres_replay
from tests.engines.stored_world import StoredWorld
from tests.engines.test_postgres_replay import BUDGETS, worlds
from tests.postgres import PostgresServer
from tests.query.generate import TIMES
from tests.query.inside import World, fixed_key
from tests.query.test_dropped import WARDS, people, posed

__all__ = ["worlds"]

BY_WARD = "SELECT ward, count(*) FROM stays GROUP BY ward"


@pytest.fixture
def both(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[tuple[World, StoredWorld]]:
    """Two worlds with the same rows, one read by either engine."""
    budget = Budget(epsilon=Fraction(1000))
    for name in ("files", "server"):
        (tmp_path / name).mkdir()
    files = World(tmp_path / "files", budget=budget)
    server = StoredWorld(tmp_path / "server", postgres_server.fresh_database(), budget=budget)
    yield files, server
    files.close()
    server.close()


def counted(db: Database, text: str) -> list[list[tuple[str, int, int]]]:
    """The exact numbers of each group: of each aggregate what counts and what is dropped."""
    found = db.plan(text, epsilon=1)
    with fixed_key():
        rows = exact_of(db, found.aggregate).tallies
    at = found.aggregate.tallies.index
    return [
        [
            (kept.measure.value, numbers[at(kept)], numbers[at(lost)])
            for part in found.parts
            for kept, lost in zip(part.tallies, part.dropped, strict=False)
        ]
        for numbers in rows
    ]


@pytest.mark.parametrize(("groups", "most", "total"), [(50, 1, 12), (50, 3, 12), (50, 12, 13), (50, 2, 5)])
def test_it_counts_what_duckdb_counts(both: tuple[World, StoredWorld], groups: int, most: int, total: int) -> None:
    """Where a unit keeps all of its groups and has no more rows than is said, no choice of the hash decides."""
    limits = Limits(max_groups=groups, max_rows=most, max_total_rows=total)
    rows = people(1, most=total)
    found, meant = (counted(world.load(rows, limits=limits), WARDS) for world in (both[1], both[0]))
    assert found == meant
    dropped = Counter(measure for cell in found for measure, _, lost in cell if lost)
    assert dropped[Measure.ROWS.value] > 0 or most == total - 1
    alone = WARDS.replace(" GROUP BY ward", "").replace("ward, ", "")
    found, meant = (counted(world.load(rows, limits=limits), alone) for world in (both[1], both[0]))
    assert found == meant


@pytest.mark.parametrize("limits", [(1, 1), (2, 3), (3, 2), (2, 12)])
def test_what_counts_and_what_is_dropped_add_up_as_with_duckdb(
    both: tuple[World, StoredWorld], limits: tuple[int, int]
) -> None:
    """Whichever groups of a unit are kept."""
    rows, said = people(1), Limits(max_groups=limits[0], max_rows=limits[1], max_total_rows=12)
    sums = [
        [
            [(measure, kept + lost) for measure, kept, lost in cell]
            for cell in counted(world.load(rows, limits=said), WARDS)
        ]
        for world in both
    ]
    assert sums[0] == sums[1]
    assert all(cell for cell in sums[0])


def test_an_answer_covers_what_was_dropped(both: tuple[World, StoredWorld]) -> None:
    """Sixteen intervals of a confidence of 1 − 1e-8: a false alarm has probability 1e-6."""
    rows = people(3, 300)
    truth = Counter(one["ward"] for one in rows)
    for world in both:
        db = world.load(rows, limits=Limits(max_groups=1, max_rows=1, max_total_rows=12))
        answer = db.sql(BY_WARD, epsilon=20)
        assert "the intervals cover that where no person has more than max_total_rows = 12" in answer.terms
        noise = db.sql(BY_WARD, epsilon=30, error="noise").with_intervals(1 - 1e-8)
        short = [high[1] < truth[ward] for (ward, _), high in zip(noise.rows, noise.highs, strict=True) if truth[ward]]
        assert len(short) == 3
        assert all(short)
        sure = answer.with_intervals(1 - 1e-8)
        for (ward, _), low, high in zip(sure.rows, sure.lows, sure.highs, strict=True):
            assert low[1] <= truth[ward] <= high[1]


@pytest.mark.parametrize("kind", list(BUDGETS))
def test_neighbours_move_no_further_than_is_proven(
    worlds: dict[str, tuple[StoredWorld, StoredWorld]], kind: str
) -> None:
    """And the exact numbers are those of the interpreter."""
    seen = 0
    found = test_postgres_replay.misunderstood

    def counting(world: StoredWorld, case: Any, one: Any, compared: Counter[str]) -> list[str]:
        nonlocal seen
        seen += one.plan is not None and any(part.dropped for part in one.plan.parts)
        return found(world, case, one, compared)

    with (
        mock.patch.object(test_postgres_replay, "posed", posed),
        mock.patch.object(test_postgres_replay, "misunderstood", counting),
        mock.patch.object(test_postgres_replay, "DATASETS", 5 * TIMES),
    ):
        test_postgres_replay.test_questions_mean_what_the_interpreter_says(worlds, kind)
    assert seen >= 3 * TIMES
