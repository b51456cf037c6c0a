"""One's own functions as subjects: errors, rare rows and forgotten noise are found, and shown small."""

import itertools
import math
import secrets
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from hubbub.audit import Claim, Raised, Settings, examine
from hubbub.audit.chance import Chance
from hubbub.audit.functions import OfFunction
from hubbub.errors import ParameterError
from hubbub.mechanisms import Geometric
from hubbub.privacy.sensitivity import Neighbors

ROWS = (0, 1, 5, math.nan)
QUICK = Settings(pairs=30, pilots=24, pilot=150, steps=2, samples=2_000)
NOISE = Geometric(epsilon=Fraction(1))


def counted(rows: Sequence[Any]) -> int:
    return int(NOISE.draw(len(rows)))


def summed(rows: Sequence[Any]) -> float:
    """Clamped to 0 … 1, but for NaN, which goes through."""
    return float(sum(min(max(row, 0), 1) for row in rows) + NOISE.draw(0))


def never_more_than_there_are(rows: Sequence[Any]) -> int:
    return min(len(rows) + secrets.randbelow(11) - 5, len(rows))


def refuses_fives(rows: Sequence[Any]) -> int:
    if 5 in rows:
        raise ValueError("five")
    return counted(rows)


def test_a_private_count_passes() -> None:
    report = examine(OfFunction(counted, claim=Claim.pure(1.0), rows=ROWS), settings=QUICK)
    assert not report.accused, str(report)


@pytest.mark.parametrize("function", [summed, never_more_than_there_are, refuses_fives])
def test_what_is_not_private_is_accused_on_few_rows(function: Any) -> None:
    report = examine(OfFunction(function, claim=Claim.pure(1.0), rows=ROWS), settings=QUICK)
    assert report.accused
    found = report.counterexample
    assert found is not None
    assert len(found.shown) < 120, found.shown


def test_an_error_is_an_answer() -> None:
    subject = OfFunction(refuses_fives, claim=Claim.pure(1.0), rows=(0, 5))
    assert subject.answers([5], times=2) == [Raised("ValueError", "five")] * 2
    report = examine(subject, settings=QUICK)
    assert report.counterexample is not None
    assert "5" in report.counterexample.shown


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_pairs_are_neighbours(neighbors: Neighbors) -> None:
    subject = OfFunction(counted, claim=Claim.pure(1.0), rows=(0, 1, 5), neighbors=neighbors)
    chance = Chance("pairs")
    for pair in itertools.islice(subject.pairs(chance), 60):
        near = subject.near(pair, chance)
        assert near is not None
        for one in (pair, near, *subject.smaller(pair)):
            if neighbors is Neighbors.REPLACE_ONE:
                assert len(one.x) == len(one.y)
                assert one.x[:-1] == one.y[:-1]
            else:
                assert one.y[:-1] == one.x


def test_replacing_a_row_is_twice_as_much() -> None:
    subject = OfFunction(summed, claim=Claim.pure(1.0), rows=(-1, 0, 1), neighbors=Neighbors.REPLACE_ONE)
    assert not examine(subject, settings=QUICK).accused
    signed = OfFunction(
        lambda rows: sum(rows) + counted([]), claim=Claim.pure(1.0), rows=(-1, 1), neighbors=Neighbors.REPLACE_ONE
    )
    assert examine(signed, settings=QUICK).accused


@pytest.mark.parametrize(("function", "rows"), [("no function", (1,)), (counted, ())])
def test_nonsense_is_refused(function: Any, rows: Any) -> None:
    with pytest.raises(ParameterError):
        OfFunction(function, claim=Claim.pure(1.0), rows=rows)
