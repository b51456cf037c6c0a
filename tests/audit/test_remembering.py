"""What an audit keeps for as long as it lasts: worked out once, the same as ever, and no answer handed out twice."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

from hubbub.audit.blackbox import Drawn, draws_that_count
from hubbub.audit.chance import Chance
from hubbub.audit.examine import Settings, examine
from hubbub.audit.outputs import Batch, View, as_key, as_kind, as_number, views_of
from hubbub.audit.specimens import OfSpecimen
from hubbub.audit.subjects.queries import _KEYS, OfQuery
from hubbub.audit.subjects.strategies import OfStrategy
from hubbub.mechanisms import RandomizedResponse
from hubbub.mechanisms.specimens.registry import find_specimen
from hubbub.publish import Flat
from hubbub.publish.terms import Contribution
from tests.testing.test_query_audit import COUNTS, MEDIANS, POSTS, SLACK, WORDS, policy

SHORT = Settings(pairs=4, pilots=3, pilot=200, steps=1, samples=4_000)


class Numbered:
    """Answers that are all different: 0, 1, 2, … on each input."""

    def __init__(self) -> None:
        self.next = {0: 0, 1: 0}

    def repeat(self, value: int, *, times: int) -> Any:
        first = self.next[value]
        self.next[value] += times
        return np.arange(first, first + times) % 97


@pytest.mark.parametrize("as_list", [False, True])
def test_more_draws_are_read_as_if_they_had_been_drawn_at_once(as_list: bool) -> None:
    class Listed(Numbered):
        def repeat(self, value: int, *, times: int) -> Any:
            found = super().repeat(value, times=times) + 5 * value
            return found.tolist() if as_list else found

    at_once = Drawn(Listed(), 0, 1, samples=4_000)
    in_two = Drawn(Listed(), 0, 1, samples=1_000)
    assert repr(in_two.epsilon()) != repr(at_once.epsilon())
    in_two.more(3_000)
    assert repr(in_two.epsilon()) == repr(at_once.epsilon())
    assert in_two.delta(epsilon=0.1).counts.draws == draws_that_count(4_000) == 3_500


def test_reals_in_an_array_are_looked_at_as_they_are_one_by_one() -> None:
    odd = [0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, -1e-300, 3.0, 1e300, -0.5]
    for values in (odd, odd[:4], odd[2:4]):
        together, singly = Batch(np.array(values)), Batch(list(values))
        for view in views_of(together):
            if view.numeric:
                assert np.array_equal(view.numbers(together), view.numbers(singly), equal_nan=True)
            else:
                assert view.keys(together) == view.keys(singly)
    kinds = View(name="", numeric=False, of=as_kind).keys(Batch(np.array(odd)))
    assert (kinds.count("float"), kinds.count("NaN")) == (10, 1)
    assert View(name="", numeric=False, of=as_key).keys(Batch(np.array(odd)))[:2] == [0.0, "-0.0"]
    assert View(name="", numeric=True, of=as_number).numbers(Batch(np.array(odd)))[2] == 1.5


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many answers were drawn at once, each time."""
    held: list[int] = []
    honest = RandomizedResponse.repeat

    def repeat(self: RandomizedResponse, value: Any, *, times: int) -> Any:
        held.append(times)
        return honest(self, value, times=times)

    monkeypatch.setattr(RandomizedResponse, "repeat", repeat)
    return held


def _response() -> OfSpecimen:
    return OfSpecimen(find_specimen("randomized response"))


def test_draws_that_were_held_against_the_law_are_counted_and_each_of_them_once(drawn: list[int]) -> None:
    subject = _response().remembering()
    x, y = subject.specimen.pair
    subject.answers(x, times=10)
    assert drawn == [10], "nothing is kept before the law was looked at"
    for side, answers in enumerate((np.arange(50), np.arange(100, 150))):
        subject._keep(side, answers)
    found = [list(subject.answers(value, times=times)) for value, times in ((x, 20), (y, 30), (x, 30))]
    assert found == [list(range(20)), list(range(100, 130)), list(range(20, 50))]
    assert drawn == [10]
    subject.answers(y, times=21)
    assert drawn == [10, 21], "what is left is too little"


def test_an_audit_draws_nothing_more_on_the_worst_pair(drawn: list[int]) -> None:
    subject = _response()
    report = examine(subject, settings=replace(SHORT, pairs=1, pilots=1, steps=0))
    assert not report.accused, report
    assert report.findings
    assert set(drawn) <= {250_000, 750_000}
    assert subject._kept is None, "only for as long as an audit lasts"


def test_a_strategy_is_prepared_once_in_an_audit_and_again_in_the_next() -> None:
    made: list[int] = []

    def make() -> Flat:
        made.append(1)
        return Flat()

    subject = OfStrategy(title="", make=make, shape=(4,), contribution=Contribution(cells=2, each=1, total=2))
    examine(subject, settings=SHORT)
    assert len(made) == 1
    examine(subject, settings=SHORT, seed=1)
    assert len(made) == 2
    assert subject.prepared.measurements
    assert subject.prepared.measurements
    assert len(made) == 4, "outside of an audit nothing is kept"


def test_a_fit_is_made_once_for_each_side_of_a_pair() -> None:
    pytest.importorskip("sklearn")
    from hubbub.audit.subjects.estimators import OfEstimator

    class Fits(OfEstimator):
        def fit_table(self, *arguments: Any, **named: Any) -> Any:
            many.append(1)
            return super().fit_table(*arguments, **named)

    many: list[int] = []
    subject = Fits(estimator="StandardScaler", settings={"bounds": (-1.0, 1.0)})
    pair = next(subject.pairs(Chance(0)))
    kept = subject.remembering()
    assert not kept.faults(pair)
    one = kept.answers(pair.x, times=200)
    other = kept.answers(pair.y, times=200)
    assert len(many) == 2
    assert len(one) == len(other) == 200
    assert not np.array_equal(one, kept.answers(pair.x, times=200)), "noise is drawn afresh"
    zero, minus = (replace(pair.x, rows=((value, value),)) for value in (0.0, -0.0))
    assert kept._fit_both(zero, pair.y) is not kept._fit_both(minus, pair.y)
    subject.faults(pair)
    subject.faults(pair)
    assert len(many) == 2 + 4 + 4, "outside of an audit nothing is kept"


@pytest.mark.parametrize(
    ("held", "text", "delta"),
    [
        (policy(), COUNTS, None),
        (policy(), MEDIANS, None),
        (policy(SLACK, POSTS), WORDS, Fraction(1, 20)),
    ],
)
def test_what_was_counted_for_an_answer_is_what_would_be_counted_again(held: Any, text: str, delta: Any) -> None:
    asked, fresh = (OfQuery(held, text, epsilon=1, delta=delta) for _ in range(2))
    for pair in islice(asked.pairs(Chance(1)), 12):
        assert not asked.faults(pair)
        for side in (pair.x, pair.y):
            assert len(asked._known[side]) == 1
            assert repr(asked._exact(side, keys=3)) == repr(fresh._exact(side, keys=3))
            assert len(asked._known[side]) == (3 if asked._keyed else 1)
    assert asked._keyed is fresh._keyed
    assert len(set(_KEYS)) == 6


def test_a_table_is_filled_when_a_statement_names_it() -> None:
    subject = OfQuery(policy(), COUNTS, epsilon=1)
    engine = subject._world.engine
    pair = next(subject.pairs(Chance(0)))
    subject._run_trial(pair.x)
    assert "stays" not in engine.waiting
    subject._world.put({"stays": []})
    assert "stays" in engine.waiting
    (counted,) = subject._run_trial(pair.y).held
    assert sum(tally for (tally,) in counted.tallies) > 0
