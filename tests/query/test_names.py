"""Names are structures: whatever columns, tables and aliases are called, each reads its own column and no other."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from bench.asked import noiseless
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import EngineError
from hubbub.ledger import Ledger, Marks
from hubbub.policy.tables import Limits, Policy
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database
from tests.query import inside, planted
from tests.query.expressions import TIMES, seeds
from tests.query.hostile import Questions, Scene, scene
from tests.query.owned import fill, meant, rows_of

WIDE = Limits(max_groups=1000, max_rows=10_000, max_unit_rows=1000)


class World:
    """A connection and a ledger, whatever the tables are called."""

    def __init__(self, folder: Path) -> None:
        self.engine = inside.Inside(inside.connected())
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))

    def put(self, made: Scene) -> Database:
        for called, columns in made.columns.items():
            fill(self.engine.connection, called, inside._kinds(columns), made.rows[called])
        units = dict.fromkeys(made.names[:2], made.unit)
        tables = {name: inside._table(name, columns, units.get(name)) for name, columns in made.columns.items()}
        facts: dict[str, Any] = {"account": "people", "budget": Budget(epsilon=Fraction(10**6))}
        declared = Policy(**facts, tables=tables, limits=WIDE, version=str(next(inside._VERSIONS)))
        return Database(declared, ledger=self.ledger, engine=self.engine)

    def differences(self, made: Scene) -> list[str]:
        """Questions that are answered otherwise than DuckDB and the interpreter do."""
        db, wrong = self.put(made), []
        for text in Questions(Random(made.unit), made).all():
            planned = db.plan(text, epsilon=1)
            keys = len(planned.question.groups)
            ours = noiseless(planned, exact_of(db, planned.aggregate))
            self.engine.connection.execute("DROP TABLE IF EXISTS temp.main.keys0")
            said = {row[:keys]: row[keys:] for row in self.engine.connection.execute(text).fetchall()}
            if {key: ours[key] for key in said} != {key: _zeros(row) for key, row in said.items()}:
                wrong.append(f"DuckDB: {text}")
            relation = planned.aggregate.input
            if rows_of(self.engine.connection, relation, made.case) != meant(
                self.engine.connection, relation, made.case
            ):
                wrong.append(f"interpreter: {text}")
        return wrong


def _zeros(row: Sequence[Any]) -> tuple[Any, ...]:
    """A sum of nothing is 0 here."""
    return tuple(0 if cell is None else cell for cell in row)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("names"))
    yield made
    made.engine.connection.close()
    made.ledger.close()


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True)
def test_every_name_reads_its_own_column(world: World, rng: Random) -> None:
    assert world.differences(scene(rng)) == []


@pytest.mark.parametrize("fault", planted.NAMES)
def test_the_questions_see_names_that_are_taken_for_others(world: World, fault: str) -> None:
    """So that the test above can fail; a plan that cannot be run any more is seen, too."""

    def seen(seed: int) -> bool:
        with planted.NAMES[fault]():
            try:
                return world.differences(scene(Random(seed))) != []
            except (KeyError, AssertionError, EngineError):
                return True

    assert any(map(seen, range(200)))
