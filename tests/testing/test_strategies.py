"""What users import to test with: tables that keep to a policy, neighbours of one unit, and questions that replay."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubbub.audit.subjects.in_process.inside import World, ask, faults
from hubbub.policy.tables import Limits, Policy
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.testing import neighbors, questions, tables, values
from tests.query.expressions import TIMES
from tests.query.inside import TABLES

POLICY = Policy(
    account="people",
    budget=Budget(epsilon=Fraction(4)),
    tables=TABLES,
    limits=Limits(max_groups=2, max_rows=3, buy=False),
)
REPLACED = Policy(
    account="people",
    budget=Budget(epsilon=Fraction(4), neighbors=Neighbors.REPLACE_ONE),
    tables=TABLES,
    limits=Limits(max_groups=2, max_rows=3, buy=False),
)
SETTINGS = settings(max_examples=40 * TIMES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World(POLICY)
    yield world
    world.close()


@SETTINGS
@given(tables(POLICY))
def test_tables_have_every_table_and_column(rows: Any) -> None:
    assert set(rows) == set(TABLES)
    for name, held in rows.items():
        assert all(set(row) == {column.name for column in TABLES[name].columns} for row in held)


@SETTINGS
@given(neighbors(POLICY))
def test_neighbours_differ_in_one_unit_that_is_there_or_not(pair: Any) -> None:
    more, fewer = pair
    for name, table in TABLES.items():
        rest = list(more[name])
        for row in fewer[name]:
            rest.remove(row)
        assert len({repr(row[table.unit]) for row in rest}) <= 1 if table.unit else not rest


@SETTINGS
@given(neighbors(REPLACED))
def test_replaced_neighbours_differ_in_one_unit_on_each_side(pair: Any) -> None:
    for name, table in TABLES.items():
        counts = [Counter(tuple(map(repr, row.items())) for row in side[name]) for side in pair]
        for changed in (counts[0] - counts[1], counts[1] - counts[0]):
            units = {cell for row in changed for cell in row if cell.startswith(f"('{table.unit}',")}
            assert len(units) <= 1 if table.unit else not changed


@SETTINGS
@given(st.data())
def test_values_are_such_as_a_source_may_hold(data: Any) -> None:
    column = data.draw(st.sampled_from([column for table in TABLES.values() for column in table.columns]))
    drawn = data.draw(values(column))
    assert drawn is None or isinstance(drawn, bool | int | float | str) or hasattr(drawn, "isoformat")


def test_questions_replay_on_neighbours(world: World) -> None:
    outcomes = []

    @settings(SETTINGS, derandomize=True)  # the share of answers is a figure of the strategy, not of one draw of it
    @given(questions(POLICY), neighbors(POLICY))
    def check(text: str, pair: Any) -> None:
        seen = []
        for side in pair:
            world.put(side)
            seen.append(ask(world.opened(), text))
        outcomes.append(seen[0].outcome)
        assert faults(*seen) == [], text

    check()
    assert outcomes.count("answered") >= len(outcomes) / 4, outcomes


def test_without_hypothesis_the_error_names_the_extra() -> None:
    program = """
import sys
sys.modules["hypothesis"] = None
import hubbub.testing
print(hubbub.testing.differences.__name__)
try:
    hubbub.testing.tables
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "differences",
        '[missing-extra] hypothesis is not installed. Run: pip install "hubbub[testing]"',
    ]


def test_other_names_are_not_there() -> None:
    from hubbub import testing

    with pytest.raises(AttributeError, match="no attribute 'planting'"):
        testing.planting  # noqa: B018
    assert set(testing.__all__) <= set(dir(testing))
