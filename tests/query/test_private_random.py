"""Random relations, tallies and keys, some of them private: the engine against the interpreter, and neighbours."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.engines.answers import read_text as _value
from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.lower import private_keys as keyed
from hubbub.policy.kinds import Type
from hubbub.query.ops import Aggregate, ExactCounts
from hubbub.query.plan.selection import private_part
from tests.query import generate, interpreter
from tests.query.generate import TIMES, Case, seeds
from tests.query.owned import SECRET, Connection, connected, keeping, load
from tests.query.test_engine import prepared


@pytest.fixture(scope="module")
def engine() -> Iterator[Connection]:
    connection = connected()
    yield connection
    connection.close()


def asked(rng: Random, most_groups: int) -> tuple[Case, Aggregate, SqlStatement | None]:
    """With at least one private key; reals make none."""
    made = generate.case(rng)
    op = generate.aggregate(rng, made, most_groups=most_groups)
    can = [place for place, group in enumerate(op.groups) if group.type is not Type.REAL]
    chosen = set(rng.sample(can, rng.randint(1, len(can)))) if can else set()
    groups = [replace(one, values=(), private=True) if at in chosen else one for at, one in enumerate(op.groups)]
    op = replace(op, groups=tuple(groups), weight_bits=rng.choice((None, None, 20)))
    return made, op, prepared(op, made) if chosen else None


def run(engine: Connection, op: Aggregate, statement: SqlStatement) -> ExactCounts:
    for keys in statement.keys:
        engine.execute(
            f'CREATE OR REPLACE TEMP TABLE "{keys.table}" AS SELECT CAST(v AS {keys.type}) AS "value", p AS "place" '
            "FROM (SELECT unnest(CAST($1 AS VARCHAR[])) AS v, unnest(CAST($2 AS INTEGER[])) AS p)",
            [list(keys.values), list(keys.places)],
        )
    return keyed.read_counts(op, engine.execute(statement.sql, SECRET[: statement.secrets]).fetchall(), _value)


def units_by_hand(op: Aggregate, added: interpreter.Added) -> dict[Any, int]:
    """Units, or their weights, of each combination of private keys, where nobody has too many."""
    found: Counter[Any] = Counter()
    for own in added.amounts.values():
        held = {private_part(op.groups, cell) for cell in own}
        weight = 1 if op.weight_bits is None else int((2**40 / len(held)) ** 0.5 + 1e-9)
        found.update(dict.fromkeys(held, weight))
    return dict(found)


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True, deadline=None)
def test_what_units_have(engine: Connection, rng: Random) -> None:
    made, op, statement = asked(rng, 50)
    if statement is None:
        return
    load(engine, made)
    engine.execute("SET threads = 1")
    found, keep = run(engine, op, statement), keeping(engine, made)
    added = interpreter.added(op, made.tables, keep)
    if not interpreter.over(op, made.tables, keep):
        meant = interpreter.aggregate(op, made.tables, lambda unit, own: own, keep)
        assert dict(zip(found.cells, found.tallies, strict=True)) == meant
        assert dict(found.units) == units_by_hand(op, added)
    load(engine, made.shuffled(rng))
    engine.execute("SET threads = 4")
    assert run(engine, op, statement) == found


@given(rng=seeds())
@settings(max_examples=40 * TIMES, derandomize=True, deadline=None)
def test_neighbours_under_one_key(engine: Connection, rng: Random) -> None:
    made, op, statement = asked(rng, rng.choice((1, 2)))
    if statement is None:
        return
    load(engine, made)
    whole = run(engine, op, statement)
    top = 1 if op.weight_bits is None else 1 << op.weight_bits
    for unit in made.units[:2]:
        load(engine, made.without(unit).shuffled(rng))
        rest = run(engine, op, statement)
        before, after = dict(whole.units), dict(rest.units)
        assert after.keys() <= before.keys()
        steps = [before[held] - after.get(held, 0) for held in before]
        assert all(0 <= step <= top for step in steps)
        assert sum(step != 0 for step in steps) <= op.most_groups
        assert sum(step**2 for step in steps) <= op.most_groups * top**2 / (
            1 if op.weight_bits is None else op.most_groups
        )
        cells, left = (dict(zip(one.cells, one.tallies, strict=True)) for one in (whole, rest))
        for place, tally in enumerate(op.tallies):
            moved = [
                abs(cells[cell][place] - left[cell][place] if cell in left else cells[cell][place]) for cell in cells
            ]
            assert sum(one != 0 for one in moved) <= op.most_groups
            assert max(moved, default=0) <= tally.linf
