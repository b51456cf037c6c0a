"""A sparse vector asked question by question: the law of the batch, and a noisy threshold that nobody gets at."""

import copy
import itertools
import math
import os
import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import noise
from hubbub.errors import ParameterError, SecretError, WatchOver
from hubbub.mechanisms import Geometric, SparseVector
from hubbub.mechanisms.sparse.threshold_stream import Above, Stream
from hubbub.noise.entropy import substitute
from tests.noise.sources import Untouchable, follows

ONE = Fraction(1)
FAR = 10**6


def stream(**options: Any) -> Stream:
    return Stream(SparseVector(**{"epsilon": ONE, "threshold": 0, **options}))


def asked(questions: Stream, exact: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Places and gaps of what is found above, until the stream is over."""
    found: dict[int, int] = {}
    for place, x in enumerate(exact):
        answer = questions.ask(x) if questions.left else None
        if answer is not None:
            found[place] = answer.gap
    return tuple(found), tuple(found.values())


@pytest.mark.parametrize(
    "options", [{}, {"count": 2}, {"count": 2, "renewed": True, "monotone": True}], ids=["one", "two", "renewed"]
)
def test_it_has_the_law_of_its_mechanism(options: dict[str, Any]) -> None:
    mechanism, exact = SparseVector(epsilon=Fraction(6), threshold=0, **options), [1, -2, 0]
    runs = [asked(Stream(mechanism), exact) for _ in range(10_000)]
    support = [
        (places, gaps)
        for size in range(mechanism.count + 1)
        for places in itertools.combinations(range(3), size)
        for gaps in itertools.product(range(30), repeat=size)
    ]
    law = [math.exp(mechanism.log_mass(exact, (*run, ()))) for run in support]
    places = {run: place for place, run in enumerate(support)}
    assert follows(np.array([places.get(run, -1) for run in runs]), range(len(support)), law)


class _Known:
    """A stream whose noisy thresholds and numbers a test has chosen, and whose questions have no noise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bars: list[int], spare: list[int]) -> None:
        monkeypatch.setattr(SparseVector, "bars", lambda _, times: np.array([bars] * times))
        monkeypatch.setattr(SparseVector, "spare", lambda _, times: np.array([spare] * times, dtype=np.int64))
        self.scales: list[Fraction] = []

        def geometric(*, scale: Fraction) -> int:
            self.scales.append(scale)
            return 3

        monkeypatch.setattr(noise, "geometric", geometric)


def test_each_threshold_is_for_one_answer_and_ties_are_above(monkeypatch: pytest.MonkeyPatch) -> None:
    known = _Known(monkeypatch, [10, 20], [])
    questions = stream(count=2, renewed=True)
    assert [questions.ask(x) for x in (6, 7, 16)] == [None, Above(gap=0), None]
    assert questions.left == 1
    assert questions.ask(18) == Above(gap=1)
    assert questions.left == 0
    assert known.scales == [questions.mechanism.question_scale] * 4


def test_numbers_have_noise_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _Known(monkeypatch, [10, 10], [100, -50])
    questions = stream(count=2, numbers=Fraction(1, 2))
    assert questions.ask(6) is None
    assert {questions.ask(8), questions.ask(8)} == {Above(gap=1, number=108), Above(gap=1, number=-42)}


def test_it_is_over_after_its_count() -> None:
    questions = stream(count=2)
    assert questions.left == 2
    assert [questions.ask(x) is None for x in (FAR, -FAR, FAR)] == [False, True, False]
    with substitute(Untouchable()), pytest.raises(WatchOver, match="all 2 that it was paid for"):
        questions.ask(-FAR)
    with pytest.raises(WatchOver):
        questions.check()


@pytest.mark.parametrize("bad", [1.5, [1], "1", None, True])
def test_questions_are_whole_numbers(bad: Any) -> None:
    questions = stream()
    with substitute(Untouchable()), pytest.raises(ParameterError, match="value must be a whole number"):
        questions.ask(bad)
    assert questions.left == 1


def test_it_is_made_of_a_sparse_vector() -> None:
    with substitute(Untouchable()), pytest.raises(ParameterError, match="mechanism must be a SparseVector"):
        Stream(Geometric(epsilon=ONE))  # type: ignore[arg-type]


def test_the_last_one_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads pass the first check together; the second check, under the lock, lets one of them through."""
    questions, both = stream(), threading.Barrier(2, timeout=20)
    plain, first = Stream.check, threading.local()

    def check(self: Stream) -> None:
        plain(self)
        if not hasattr(first, "done"):
            first.done = True
            both.wait()

    monkeypatch.setattr(Stream, "check", check)
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(questions.ask(FAR))
        except WatchOver as error:
            found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(one).__name__ for one in found) == ["Above", "WatchOver"]


@pytest.mark.parametrize("look", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_it_cannot_be_copied_or_stored(look: Any) -> None:
    with pytest.raises(SecretError, match="cannot be copied or stored"):
        look(stream())


def test_what_it_shows_is_public() -> None:
    shown = {repr(stream(count=3, numbers=Fraction(1, 3))) for _ in range(5)}
    assert len(shown) == 1
    assert shown.pop().endswith(", 3 left>")


def test_a_forked_child_gets_no_answer() -> None:
    questions = stream()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        try:
            questions.ask(FAR)
        except SecretError:
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert questions.ask(FAR) is not None
