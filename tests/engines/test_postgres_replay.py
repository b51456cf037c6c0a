"""Questions of the replay's generator, from their text to what is handed to the gate, where the data is on PostgreSQL.

Where bounding keeps everything, the exact tallies and histograms are the reference interpreter's; where it drops, what
stays is one of the choices that are allowed. On neighbours nothing public differs, and tallies move as was proven.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from random import Random

import pytest

from hubbub.engines.nodes.queries import RowSource, StoredTable
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.ops import ExactCounts
from tests.engines.stored import type_of
from tests.engines.stored_world import StoredWorld, as_stored
from tests.engines.test_postgres_plans import keeping
from tests.postgres import PostgresServer
from tests.query.agreeing import disagreements
from tests.query.further import raw_tallies
from tests.query.generate import TIMES, Case
from tests.query.inside import PUBLIC, Seen, ask, faults
from tests.query.test_replay import KEY, KINDS, SCAN, in_sets, neighbour, posed

DATASETS = 10 * TIMES
"""Of six questions for each kind of budget, each asked of a neighbour too: 10 · 6 · 2 · 3 = 360 answers a commit."""
BUDGETS = {
    "pure": Budget(epsilon=Fraction(10**6)),
    "gaussian": Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**6)),
    "replace": Budget(epsilon=Fraction(10**6), neighbors=Neighbors.REPLACE_ONE),
}


@pytest.fixture(scope="module")
def worlds(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[StoredWorld, StoredWorld]]]:
    """Two sides for each kind of budget; their ledgers go through the same."""
    with ExitStack() as stack:
        made = {}
        for name, budget in BUDGETS.items():
            sides = [
                StoredWorld(tmp_path_factory.mktemp(name), postgres_server.fresh_database(), budget=budget)
                for _ in range(2)
            ]
            for side in sides:
                stack.callback(side.close)
            made[name] = sides[0], sides[1]
        yield made


def misunderstood(world: StoredWorld, case: Case, seen: Seen, compared: Counter[str]) -> list[str]:
    """Where exact tallies are not the interpreter's."""
    if seen.plan is None:
        return []
    op = seen.plan.aggregate
    cells = tuple(itertools.product(*(group.values for group in op.groups)))
    rows = raw_tallies(seen.plan, seen.noisy, len(cells))
    counted = ExactCounts(cells=cells, tallies=rows, histograms=seen.bins)
    origins: dict[str, RowSource] = {
        table: StoredTable(("data", table), tuple((name, type_of(kind)) for name, kind in columns))
        for table, columns in KINDS.items()
    }
    found, many = disagreements(keeping(world.stored, case, origins, KEY), op, counted, case)
    compared["compared"] += many > 0
    return found


@pytest.mark.parametrize("kind", list(BUDGETS))
def test_questions_mean_what_the_interpreter_says(
    worlds: dict[str, tuple[StoredWorld, StoredWorld]], kind: str
) -> None:
    outcomes: Counter[str] = Counter()
    one, other = worlds[kind]
    for number in range(DATASETS):
        rng = Random(f"postgres {kind} {number}")
        limits, rows, questions, seed = posed(rng)
        rows = as_stored(rows)
        db = one.load(rows, limits=limits)
        base = [ask(db, text, seed=seed) for text in questions]
        case = Case(KINDS, {"stays": rows, "places": [dict(row) for row in PUBLIC]}, SCAN, "person")
        for text, seen in zip(questions, base, strict=True):
            outcomes[seen.outcome.partition(":")[0]] += 1
            for part in in_sets(seen, db):
                assert not misunderstood(one, case, part, outcomes), (kind, number, text)
        what, changed = neighbour(rng, rows, replace=kind == "replace")
        changed_db = other.load(as_stored(changed), limits=limits)
        for text, seen in zip(questions, base, strict=True):
            again = ask(changed_db, text, seed=seed)
            for left, right in zip(in_sets(seen, db), in_sets(again, changed_db), strict=True):
                assert not faults(left, right, same=what != "unit"), (kind, number, what, text)
    assert outcomes["EngineError"] == 0, one.told[-3:]
    assert outcomes["answered"] > 3 * DATASETS, outcomes
    assert outcomes["compared"] > DATASETS, outcomes
