"""Relations of every operation, run by the engine: the interpreter's rows, each unit's from its own alone."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings

from hubbub.engines.lower import unit_operations as own
from hubbub.engines.nodes.scalars import Scalar
from hubbub.errors import CapacityError
from hubbub.query.check.shape import private, shape
from hubbub.query.ops import (
    Cap,
    JoinKind,
    JoinOwn,
    JoinPublic,
    Match,
    Ranking,
    Reduce,
    Reduction,
    Relation,
    Window,
    below,
)
from tests.engines.raw import raw
from tests.query import generate, planted_own
from tests.query.generate import TIMES, Case, seeds
from tests.query.owned import Connection, Rows, connected, exact, load, lowered, meant, rows_of, settled
from tests.query.relating import PATHS


@pytest.fixture(scope="module")
def engine() -> Iterator[Connection]:
    connection = connected()
    yield connection
    connection.close()


def runnable(case: Case) -> bool:
    try:
        lowered(case.relation, case)
    except CapacityError:
        return False
    return True


@given(rng=seeds())
@settings(max_examples=150 * TIMES, derandomize=True)
def test_relations_rows_shuffled_other_threads(engine: Connection, rng: Random) -> None:
    """The interpreter's rows; where a unit is capped, a possible choice, and always the same."""
    case = generate.case(rng, most=4)
    if not runnable(case):
        return
    load(engine, case)
    engine.execute("SET threads = 1")
    found = rows_of(engine, case.relation, case)
    if exact(case.relation):
        assert found == meant(engine, case.relation, case)
    load(engine, case.shuffled(rng))
    engine.execute("SET threads = 4")
    assert rows_of(engine, case.relation, case) == found


def _of(rows: Rows, unit: Any, *, stays: bool) -> Rows:
    return Counter({row: many for row, many in rows.items() if (row[0] == settled(unit)) is stays})


def disturbed(engine: Connection, case: Case, rng: Random) -> list[str]:
    """What changes for others when the rows of one unit go, come alone, or nothing but the order of rows changes."""
    load(engine, case)
    engine.execute("SET threads = 1")
    whole = rows_of(engine, case.relation, case)
    engine.execute("SET threads = 4")
    faults = []
    load(engine, case.shuffled(rng))
    if rows_of(engine, case.relation, case) != whole:
        faults.append("the order of rows decides")
    for unit in rng.sample(case.units, min(2, len(case.units))):
        load(engine, case.without(unit, leaving=rng.random() < 0.5).shuffled(rng))
        if rows_of(engine, case.relation, case) != _of(whole, unit, stays=False):
            faults.append(f"{unit!r} decides about others")
        load(engine, case.only(unit).shuffled(rng))
        if rows_of(engine, case.relation, case) != _of(whole, unit, stays=True):
            faults.append(f"others decide about {unit!r}")
    return faults


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True)
def test_each_units_rows_come_from_its_own(engine: Connection, rng: Random) -> None:
    """The claim of ``query.ops`` and of ``engines.lower.unit_operations``, of the engine itself."""
    case = generate.case(rng, most=4)
    if runnable(case):
        assert disturbed(engine, case, rng) == []


_keyed = own.hash_content


def _coarse(content: Any) -> Scalar:
    return raw("(", _keyed(content), " & 1)")


@given(rng=seeds())
@settings(max_examples=25 * TIMES, derandomize=True)
def test_one_bit_of_hash_will_do(engine: Connection, rng: Random) -> None:
    """What hashes leave open the content decides."""
    case = generate.case(rng, most=1, top=generate.Relations.cap)
    with mock.patch.object(own, "hash_content", _coarse):
        assert disturbed(engine, case, rng) == []
        load(engine, case)
        if exact(case.relation):
            assert rows_of(engine, case.relation, case) == meant(engine, case.relation, case)


@pytest.mark.parametrize("fault", planted_own.OWN)
def test_planted_faults_are_seen(engine: Connection, fault: str) -> None:
    plant, top = planted_own.OWN[fault]
    for number in range(300):
        case = adversarial(generate.case(Random(f"{fault} {number}"), most=1, top=top))
        if not runnable(case):
            continue
        with plant():
            found = disturbed(engine, case, Random(number))
        if found:
            assert disturbed(engine, case, Random(number)) == []
            print(f"{fault}: {found[0]}, in case {number}")
            return
    raise AssertionError(f"nobody saw {fault}")


def adversarial(case: Case) -> Case:
    """Units whose names are beginnings of each other's, and of what they have; reals that lose what is added."""
    texts = ("", "a", "aa", "A", "Aa", " ", "a ", "aaa")
    units = {unit: texts[place] for place, unit in enumerate(case.units) if isinstance(unit, str)}
    keys = {name for path in PATHS.values() for step in path for name in (step.column, step.key)}

    def changed(column: str, value: Any) -> Any:
        match value:
            case str() if column not in keys:
                return units[value] if column == case.unit else texts[len(value) % len(texts)]
            case float() if math.isfinite(value):
                return (0.1, 1e16, -1e16, 0.3)[hash(value) % 4]
        return value

    tables = {
        table: [{column: changed(column, value) for column, value in row.items()} for row in rows]
        for table, rows in case.tables.items()
    }
    return replace(case, tables=tables)


# What is reached


def reached(op: Relation) -> Iterator[str]:
    """Every operation with its variant, and what it stands on."""
    for one in generate.operations(op):
        yield from (f"{type(rows).__name__} > {type(one).__name__}" for rows in below(one)[:1])
        match one:
            case JoinOwn(kind=kind, keys=keys):
                yield from (f"JoinOwn {kind}", f"JoinOwn {'on keys' if keys else 'on the unit'}")
            case JoinPublic(kind=kind):
                yield f"JoinPublic {kind}"
            case Match(other=other, without=without):
                yield f"Match {'without' if without else 'with'} {'private' if private(other) else 'public'}"
            case Reduce(columns=columns):
                yield from (f"Reduce {column.reduction} {column.kind.type}" for column in columns)
            case Window(ranking=ranking, order=order):
                yield f"Window {ranking}{' ordered' if order else ''}"
            case _:
                yield type(one).__name__


OPERATIONS = ("Filter", "Project", "JoinPublic", "Cap", "JoinOwn", "Match", "Reduce", "Window", "RelationUnion")


def test_the_generator_reaches_every_operation_and_every_pair() -> None:
    """Printed with -s."""
    seen: Counter[str] = Counter()
    for seed in range(700):
        case = generate.case(Random(seed), most=5)
        seen.update(reached(case.relation))
        assert list(shape(case.relation).items()) == [(one.name, one.kind) for one in generate.kinds_of(case.relation)]
    print("\n".join(f"{many:5} {what}" for what, many in sorted(seen.items())))
    pairs = {f"{rows} > {one}" for rows, one in itertools.product(("Scan", *OPERATIONS), OPERATIONS)}
    variants = {f"JoinOwn {kind}" for kind in JoinKind} | {"JoinOwn on keys", "JoinOwn on the unit"}
    variants |= {f"Match {how} {whose}" for how in ("with", "without") for whose in ("private", "public")}
    variants |= {f"Reduce {one} integer" for one in Reduction} | {"Reduce total real", "Reduce least text"}
    variants |= {f"Window {one}{ordered}" for one in Ranking for ordered in ("", " ordered")}
    assert {*pairs, *variants} <= seen.keys(), {*pairs, *variants} - seen.keys()


def test_caps_bind_and_keep_the_same_rows_wherever_they_are_read(engine: Connection) -> None:
    """A relation that is capped twice keeps the same rows; other secrets, others."""
    differ = bound = 0
    for seed in range(60):
        case = generate.case(Random(f"cap {seed}"), most=0, top=generate.Relations.cap)
        load(engine, case)
        assert isinstance(case.relation, Cap)
        rows = rows_of(engine, case.relation.input, case)
        kept = rows_of(engine, case.relation, case)
        bound += kept != rows
        differ += kept != rows_of(engine, case.relation, case, secret=(seed, 5))
        again = Cap(input=case.relation, most=case.relation.most)
        assert rows_of(engine, again, case) == kept
    assert bound > 20
    assert differ > 10
