"""A fault in any call after a charge gives the one fixed error and a counted failure, whatever asked.

What every question calls between its charge and its answer is listed, and then broken, call by call and with several
exceptions. ``HUBBUB_FAULTS=5`` tries every call with each of them (``make torture`` with one); otherwise some calls of
each question, by a hash.
"""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hubbub as hb
from hubbub import learn, publish
from hubbub.errors import EngineError
from hubbub.gate import meter
from hubbub.ledger import ALLOWANCE, Ledger, rules
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.keys.threshold import GaussianThreshold
from hubbub.mechanisms.sparse.sparse_vector import SparseVector
from hubbub.publish import sparse, spatial
from tests.query.inside import World, row
from tests.session.faulted import ACCOUNT, ANN, BUDGET, Desk, House, Question, calls_of, check, trial
from tests.session.faulting import Strange, Window, broken, chosen

ONE, SMALL = Fraction(1), Fraction(1, 10**6)
ROWS = [
    row(place % 40, ward="abc"[place % 3], cost=float(place % 90), nights=place % 7, points=place % 3, urgent=True)
    for place in range(120)
]
FEW = 16
"""Calls that are broken of each question, where not all are."""
SLOW = ("learn clusters",)


def sql(text: str, *, buys: bool = False) -> Question:
    ask: Callable[[Desk], Any] = lambda desk: desk.db.sql(text, epsilon=1, delta=SMALL)  # noqa: E731
    return Question(ask=ask, window=Window(), buys=buys, again=not buys)


def published(strategy: Any, *, buys: bool = False, **more: Any) -> Question:
    over = more.pop("over", {"nights": range(8), "ward": ["a", "b", "c"]})
    ask: Callable[[Desk], Any] = lambda desk: desk.db.publish(strategy, over=over, epsilon=1, **more)  # noqa: E731
    return Question(ask=ask, window=Window(), buys=buys, again=not buys)


def learned(estimator: Any, columns: list[str], target: str | None = None) -> Question:
    def ask(desk: Desk) -> Any:
        return desk.db.table("stays").learn(estimator, columns=columns, target=target, epsilon=1)

    return Question(ask=ask, window=Window())


def fitted(estimator: Any) -> Question:
    def ask(desk: Desk) -> Any:
        x = [[one["cost"], one["nights"]] for one in ROWS]
        y, owners = [one["ward"] for one in ROWS], [one["person"] for one in ROWS]
        return estimator.set_params(meter=desk.meter, account=ACCOUNT).fit(x, y, groups=owners)

    return Question(ask=ask, window=Window(whole=True), again=False)


def measured(mechanism: Any, value: Any, **known: Any) -> Question:
    def ask(desk: Desk) -> Any:
        facts = hb.Facts(account=ACCOUNT, sensitivity=hb.Sensitivity(**known))
        return desk.meter.measure(mechanism, hb.Secret(value, facts), key=f"measure {desk.db.policy.version}")

    return Question(ask=ask, window=Window())


WATCHED = SparseVector(epsilon=Fraction(1, 4), threshold=1000)
SEALED = hb.Secret(10**6, hb.Facts(account=ACCOUNT, sensitivity=hb.Sensitivity(l0=1, linf=ONE)))
OVER_BOTH = {"nights": range(8), "cost": publish.bins(0, 96, 8)}
QUESTIONS: dict[str, Question] = {
    "plain": sql("SELECT count(*), sum(cost), avg(nights) FROM stays"),
    "grouped": sql("SELECT ward, count(*), avg(cost) FROM stays WHERE urgent GROUP BY ward HAVING count(*) > 1"),
    "private keys": sql("SELECT points, count(*), sum(cost) FROM stays GROUP BY points ORDER BY 2 DESC LIMIT 2"),
    "quantiles": sql(
        "SELECT ward, median(cost), quantile_cont(cost, [0.1, 0.9]), max(nights) FROM stays GROUP BY ward"
    ),
    "modes": sql("SELECT mode(ward), min(cost), count(DISTINCT nights), stddev(cost) FROM stays"),
    "grouping sets": sql("SELECT ward, urgent, count(*) FROM stays GROUP BY GROUPING SETS ((ward), (urgent), ())"),
    "bought facts": sql("SELECT ward, sum(points) FROM stays GROUP BY ward", buys=True),
    "ask": Question(
        ask=lambda desk: desk.db.ask(["SELECT count(*) FROM stays", "SELECT sum(cost) FROM stays"], epsilon=1),
        window=Window(),
    ),
    "diagnose": Question(
        ask=lambda desk: desk.db.diagnose("SELECT ward, sum(cost) FROM stays GROUP BY ward", epsilon=1),
        window=Window(),
    ),
    "flat": published(publish.Flat()),
    "hierarchy": published(publish.Hierarchy(branching=2), over={"nights": range(8)}),
    "wavelet": published(publish.Wavelet(), over={"nights": range(8)}),
    "marginals": published(publish.Marginals(ways=1)),
    "cube": published(publish.Cube(ways=2)),
    "sketch": published(publish.CountSketch(rows=2, width=4)),
    "flat, limits bought": published(publish.Flat(), buys=True, over={"ward": ["a", "b", "c"]}),
    "sparse": published(sparse.Threshold(at=60), over={"points": range(-(10**6), 10**6)}),
    "map": published(spatial.KdTree(height=2), over=OVER_BOTH),
    "map, adaptive": published(spatial.AdaptiveGrid(), over=OVER_BOTH),
    "learn scaler": learned(learn.StandardScaler(), ["cost", "nights"]),
    "learn clusters": learned(learn.KMeans(2), ["cost", "nights"]),
    "learn regression": learned(learn.Ridge(), ["nights"], "cost"),
    "learn classes": learned(learn.GaussianNB(), ["cost"], "ward"),
    "fit scaler, bounds bought": fitted(learn.StandardScaler(epsilon=1.0)),
    "fit classes bought": fitted(learn.GaussianNB(epsilon=1.0, delta=1e-6, bounds=(0, 90))),
    "fit logistic": fitted(learn.LogisticRegression(epsilon=1.0, bounds=(0, 90), classes=["a", "b"])),
    "fit quantiles": fitted(learn.QuantileTransformer(epsilon=1.0, n_quantiles=3, bounds=(0, 90))),
    "first over": Question(
        ask=lambda desk: hb.first_over(desk.db.table("stays").group_by("ward").agg(n=hb.count()), over=5, epsilon=1),
        window=Window(),
    ),
    "measure": measured(Geometric(epsilon=ONE), np.array([1, 2, 3]), l0=1, linf=ONE),
    "measure a normal": measured(Gaussian.at_rho(rho=ONE, sensitivity_squared=1), 5, l2_squared=ONE),
    "measure keys": measured(GaussianThreshold(epsilon=ONE, delta=SMALL), {"a": 99, 7: 99}, l0=1, linf=ONE),
    "watch": Question(ask=lambda desk: desk.meter.watch(WATCHED, account=ACCOUNT), window=Window(), again=False),
    "watch, asked": Question(
        ask=lambda desk: desk.meter.watch(WATCHED, account=ACCOUNT).ask(SEALED), window=Window(asking=True), again=False
    ),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    world = World(tmp_path_factory.mktemp("faults"), budget=BUDGET)
    yield House(world.load(ROWS), world.engine)
    world.close()


@pytest.mark.parametrize("title", QUESTIONS)
def test_a_fault_after_the_charge_is_one_fixed_error_and_counted(house: House, title: str) -> None:
    check(house, title, QUESTIONS[title], most=2 if title in SLOW else FEW)


def test_the_allowance_holds_for_faults_of_all_kinds(house: House) -> None:
    question = QUESTIONS["plain"]
    calls, _ = calls_of(house, question)
    for broke in itertools.islice(chosen("allowance", calls, most=ALLOWANCE), ALLOWANCE):
        desk = house.desk(buys=False)
        with pytest.raises(EngineError), broken(broke[0], Strange, at=1, window=Window()):
            question.ask(desk)
    with pytest.raises(hb.HubbubError, match="frozen"):
        question.ask(house.desk(buys=False))
    assert house.ledger.thaw(ACCOUNT, ANN) == ALLOWANCE


def _uncaught(work: Callable[[], Any], *, log: Any) -> tuple[Any, bool]:
    return work(), False


def _with_its_context(work: Callable[[], Any], *, log: Any) -> tuple[Any, bool]:
    try:
        return work(), False
    except Exception:
        raise EngineError from None


HOLES: dict[str, tuple[Any, str, Any, str]] = {
    "exceptions pass": (meter, "attempt", _uncaught, "it ended with OverflowError"),
    "the context is kept": (meter, "attempt", _with_its_context, "its context is OverflowError"),
    "failures are not counted": (rules, "fail", lambda tx, charge, *, settled=False: None, "0 failures were counted"),
    "it is settled as well": (Ledger, "fail", lambda self, paid, **_: self.settle(paid, "[]"), "it ended with"),
}


@pytest.mark.parametrize("hole", HOLES)
def test_a_hole_is_seen(house: House, hole: str) -> None:
    question = QUESTIONS["plain"]
    calls, cost = calls_of(house, question)
    module, what, wrong, said = HOLES[hole]
    broke = next(chosen("holes", calls, most=1))[0], OverflowError, 1
    with mock.patch.object(module, what, wrong):
        told = trial(house, question, broke, cost)
    house.ledger.thaw(ACCOUNT, ANN)
    assert told is not None
    assert told.startswith(said)
