"""Advice on limits: what is looked at, what follows from it, and that nothing exact does."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import NotAllowed, UnknownName
from hubbub.gate.measurement import Measurement
from hubbub.gate.release import Release
from hubbub.gate.secret import open_sealed
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Norm
from hubbub.query.answer.advice import Advice, AdvisedLimit, count_beyond, find_last
from hubbub.query.missing.advising import Advised, choose_columns, list_looks
from hubbub.query.missing.looks import Look
from hubbub.query.read.rows import rows_of
from hubbub.session.database import Database
from hubbub.testing.replay import replayed
from tests.query.inside import World, fixed_key, row

LIMITS = Limits(max_groups=1, max_rows=1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, budget=Budget(epsilon=Fraction(1000)))
    yield made
    made.close()


def crowd(most: int, people: int = 400) -> list[dict[str, Any]]:
    """People with 1 to ``most`` rows each, in three wards, with costs up to 90."""
    rng = Random(most)
    return [
        row(person, ward=rng.choice("abc"), cost=rng.uniform(10, 90), nights=rng.choice((1, 2)))
        for person in range(people)
        for _ in range(1 + person % most)
    ]


def found(advice: Advice, advised: Advised, column: str | None = None) -> AdvisedLimit:
    return next(one for one in advice.limits if (one.advised, one.column) == (advised, column))


def test_limits_follow_what_people_have(world: World) -> None:
    for most in (1, 4, 12):
        advice = world.load(crowd(most), limits=LIMITS).advise(epsilon=60)
        total = found(advice, Advised.TOTAL)
        assert total.limit is not None
        assert total.beyond is not None
        assert most <= total.limit <= 2 * most + 1
        assert total.beyond < 10
        groups = found(advice, Advised.GROUPS, "ward")
        assert groups.limit == min(most, 3)
        assert all(each.limit <= 5 for each in groups.errors), "there are five wards"
        cost = found(advice, Advised.BOUNDS, "cost")
        assert cost.bounds is not None
        assert 60 <= cost.bounds[1] <= 125
        best = min(total.errors, key=lambda each: each.whole)
        assert best in total.errors
        assert [each.noise for each in total.errors] == sorted(each.noise for each in total.errors)
        assert "[limits]" in repr(advice)
        assert advice.toml.startswith("[limits]\nmax_groups = ")


def test_few_people_with_many_rows_are_not_left_beyond_the_most_rows(world: World) -> None:
    """None of them can be told from noise alone, but all of them together are what limits would drop."""
    heavy = [row(person, ward="a", nights=1) for person in range(500) for _ in range(int(600 / (1 + person)) + 1)]
    db = world.load(heavy, limits=LIMITS)
    for epsilon in (1, Fraction(6, 5), Fraction(7, 5)):
        advice = db.advise(epsilon=epsilon, key=str(epsilon))
        total, rows = found(advice, Advised.TOTAL), found(advice, Advised.ROWS, "ward")
        assert total.limit is not None
        assert rows.limit is not None
        assert total.limit >= min(total.errors, key=lambda each: each.whole).limit
        said = dict(line.split(" = ") for line in advice.toml.splitlines() if line.startswith("max_"))
        assert int(said["max_total_rows"]) == max(total.limit, rows.limit)
        assert int(said["max_rows"]) <= int(said["max_total_rows"])


def test_asked_again_it_is_free_whatever_questions_cost(world: World) -> None:
    db = world.load(crowd(4), limits=LIMITS)
    first = db.advise(epsilon=2)
    spent = db.ledger.statement(db.policy.account).spent
    again = db.advise(epsilon=1, price=Fraction(1, 10))
    assert again.entry == first.entry
    assert (again.epsilon, again.price) == (first.epsilon, Fraction(1, 10))
    assert db.ledger.statement(db.policy.account).spent == spent
    assert float(spent.loss) > 0


def test_explain_compares_limits_once_advice_was_bought(world: World) -> None:
    """For whoever bought it, and with the limits that are in force; nothing is charged."""
    rows = crowd(8)
    db = world.load(rows, limits=Limits(max_groups=1, max_rows=1))
    grouped = "SELECT ward, count(*) FROM stays GROUP BY ward"
    assert db.explain(grouped, epsilon=1).advice == ()
    db.advise(epsilon=40)
    spent = db.ledger.statement(db.policy.account).spent
    told = {one["limit"]: one for one in db.explain(grouped, epsilon=1).advice}
    assert told["max_groups"]["best"] == 3
    assert told["max_groups"]["least"] < told["max_groups"]["error"]
    assert told["max_rows"]["best"] > 1
    assert "would make the whole error of a count least" in str(db.explain(grouped, epsilon=1))
    (alone,) = db.explain("SELECT count(*) FROM stays", epsilon=1).advice
    assert (alone["limit"], alone["current"]) == ("max_rows", 1)
    assert 6 <= alone["best"] <= 10
    assert db.ledger.statement(db.policy.account).spent == spent
    db.ledger.grant(db.policy.account, "ann")
    other = Database(db.policy, ledger=db.ledger, engine=world.engine, principal="ann")
    assert other.explain(grouped, epsilon=1).advice == (), "ann has not bought it"


def test_what_cannot_be_looked_at_is_refused_before_a_charge(world: World) -> None:
    db = world.load(crowd(2), limits=LIMITS)
    with pytest.raises(UnknownName):
        db.advise(epsilon=1, table="nobody")
    with pytest.raises(NotAllowed, match="public keys"):
        db.advise(epsilon=1, by=["cost"])
    assert not db.ledger.statement(db.policy.account).spent.charges


# Privacy


def counts_of(db: Database) -> list[Any]:
    table = db.policy.tables["stays"]
    keyed, numbers = choose_columns(table, None)
    names = [column.name for column in (*keyed, *numbers)]
    relation, columns = rows_of(f"SELECT {', '.join(names)} FROM stays", db._catalogue())
    named = [(name, expression) for name, (_, expression) in zip(names, columns, strict=True)]
    looks = list_looks(relation, named, db.policy, keyed, numbers)
    with fixed_key():
        return [one.look.counts(exact_of(db, one.look.aggregate)) for one in looks]


def test_one_person_moves_each_histogram_by_one(world: World) -> None:
    rows = crowd(12, 40)
    whole = counts_of(world.load(rows, limits=LIMITS))
    proven = Look.sensitivity(world.load([], limits=LIMITS).policy.budget.neighbors).in_norm(Norm.L1)
    for person in (0, 11, 23):
        rest = counts_of(world.load([one for one in rows if one["person"] != person], limits=LIMITS))
        moved = [int(np.abs(one - other).sum()) for one, other in zip(whole, rest, strict=True)]
        assert max(moved) == 1 == proven
    mixed = list(rows)
    Random(1).shuffle(mixed)
    assert all(np.array_equal(*pair) for pair in zip(whole, counts_of(world.load(mixed, limits=LIMITS)), strict=True))


_measure = Measurement.measure


def _exactly(self: Any, sealed: Any, meter: Any, **told: Any) -> Release:
    """Counts without noise, paid for all the same: limits are chosen from exact data."""
    return replace(_measure(self, sealed, meter, **told), value=open_sealed(sealed.map(self.take)))


@pytest.mark.parametrize("fault", [False, True])
def test_advice_follows_from_noisy_counts_alone(world: World, fault: bool) -> None:
    """What is stored is what the mechanisms give of the exact counts with the same noise; a choice from exact ones is
    seen."""
    rows = crowd(6, 60)
    db = world.load(rows, limits=LIMITS)
    world.engine.counted.clear()
    with fixed_key(), replayed(5), mock.patch.object(Measurement, "measure", _exactly if fault else _measure):
        advice = db.advise(epsilon=2)
    stored = next(one for one in db.ledger.entries(first=advice.entry) if one.kind == "answer").content["answer"]
    noisy = json.loads(stored)["noisy"]
    exact = counts_of(db)
    share = advice.epsilon / len(advice.limits)
    with replayed(5):
        mechanism = Look.mechanism(share, db.policy.budget.neighbors)
        meant = [np.asarray(mechanism.draw(held)).tolist() for held in exact]
    assert (noisy == meant) is not fault


def test_what_is_beyond_noise_by_hand() -> None:
    noise = Fraction(1)
    assert find_last([100, 50, 30, 2, -3, 1, 0, 0], noise) == 3
    assert find_last([100, 50, 30, 2, -3, 1, 0, 40], noise) == 7
    assert count_beyond([], noise) == 0
    assert 3 <= count_beyond([0], noise) <= 6, "ln 20, and what the bound is too much"
    assert count_beyond([0] * 10, noise) < 25
    rng = np.random.default_rng(1)
    sums = rng.laplace(size=(20_000, 10)).sum(axis=1)
    assert np.mean(sums > count_beyond([0] * 10, noise)) < 0.05
