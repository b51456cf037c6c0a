"""Exact numbers under several secrets: asked for under each where they depend on it, and once where they do not."""

from typing import Any

from hubbub.audit.chance import Chance
from hubbub.audit.subjects import queries
from hubbub.audit.subjects.queries import OfQuery
from tests.planted import questions


def first(subject: OfQuery) -> Any:
    return next(subject.pairs(Chance("first"))).x


def test_numbers_that_depend_on_no_secret_are_counted_once() -> None:
    subject = questions.NIGHTS()
    assert isinstance(subject, OfQuery)
    data = first(subject)
    assert len(subject._exact(data, keys=2)) == 1
    assert len(subject._exact(data, keys=6)) == 1


def test_numbers_that_depend_on_a_secret_are_counted_under_each() -> None:
    """A unit with rows in four groups, of which two count: the secrets do not all choose the same two."""
    subject = questions.COUNTS()
    assert isinstance(subject, OfQuery)
    data = first(subject)
    two = subject._exact(data, keys=2)
    six = subject._exact(data, keys=len(queries._KEYS))
    assert six[:2] == two
    assert len(six) == len(queries._KEYS)
    assert len({repr(one) for one in six}) > 1


def test_a_pilot_looks_under_two_secrets_and_the_last_test_under_all() -> None:
    subject = questions.COUNTS()
    assert isinstance(subject, OfQuery)
    data = first(subject)
    assert len(subject.answers(data, times=600)) == 600
    assert len(subject._known[data]) == 2
    assert len(subject.answers(data, times=2_000)) == 2_000
    assert len(subject._known[data]) == 6
