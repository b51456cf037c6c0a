"""Trials at the gate beside the ways to an answer: keys, principals, facts, misfits, NaN, races, a kill."""

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.subjects.gate.children import wait_for_end
from hubbub.audit.subjects.gate.town import ACCOUNT, Town, seal, town
from hubbub.errors import BudgetExceeded, EngineError, Frozen, HubbubError, KeyConflict, MisfitError
from hubbub.gate import meter as gate
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Facts
from hubbub.ledger import ALLOWANCE, Ask
from hubbub.ledger.entry import write
from hubbub.mechanisms import Gaussian, Geometric, Laplace, SparseVector
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Sensitivity

_EPSILON = Fraction(1, 4)
_GEOMETRIC = Geometric(epsilon=_EPSILON)
_WIDE = Geometric(epsilon=Fraction(1, 1 << 20))
"""Noise so wide that two draws are the same with a chance below a millionth of a millionth; see ``_draws``."""
_ONE = Fraction(1)
_COUNT = "SELECT count(*) AS n FROM stays"


def _draws(meter: Meter, held: Town, *, key: str | None = None) -> tuple[int, ...]:
    """Four numbers of very wide noise."""
    drawn = meter.measure(_WIDE, seal(held, np.zeros(4, dtype=np.int64)), key=key).value
    return tuple(int(one) for one in drawn)


def _keys() -> Iterator[str]:
    """The same key is the same answer, for the same principal and the same question alone."""
    with town() as held:
        owner, ann = (Meter.on(held.ledger, principal=who) for who in ("owner", "ann"))
        first, spent = _draws(owner, held, key="k"), held.disk().cost
        looks = len(held.seen)
        if _draws(owner, held, key="k") != first:
            yield "The same key gave another answer."
        if held.disk().cost != spent or len(held.seen) != looks:
            yield "The same key was charged or read twice."
        if _draws(ann, held, key="k") == first or held.disk().cost == spent:
            yield "The key of one principal gave another one its answer, for nothing."
        spent = held.disk().cost
        if _draws(owner, held) == first or held.disk().cost == spent:
            yield "Without a key, an old answer came, or a new one for nothing."
        try:
            owner.measure(_GEOMETRIC, seal(held, 1), key="k")
            yield "A key that was used for one question was taken for another."
        except KeyConflict:
            pass


def _principals() -> Iterator[str]:
    """Whoever asks what was asked before gets the stored answer, on its own limit; nobody gets a second draw."""
    with town() as held:
        owner = held.database()
        first, spent = owner.sql(_COUNT, epsilon=_EPSILON).rows, held.disk().cost
        for who in ("ann", "bob"):
            looks = len(held.seen)
            if held.database(principal=who).sql(_COUNT, epsilon=_EPSILON).rows != first or len(held.seen) != looks:
                yield f"{who} got a second draw of a question that was answered."
            if not held.ledger.statement(ACCOUNT, "principal", who).spent.loss:
                yield f"{who} was given an answer that is on nobody's limit."
        if held.disk().cost != spent:
            yield "An answer that was served again was charged to the account again."
        try:
            held.database(principal="eve").sql(_COUNT, epsilon=_EPSILON)
            yield "Somebody without a grant was answered."
        except HubbubError:
            pass


def _facts() -> Iterator[str]:
    """A bought fact is of one expression, one policy and one version of the data."""
    questions = (
        "SELECT sum(cost) AS s FROM stays",
        "SELECT sum(cost) AS s FROM (SELECT person, other * 1000 AS cost FROM stays)",
        "SELECT sum(other) AS s FROM stays",
    )
    with town() as held:
        for version in ("1", "2"):
            for text in questions:
                before = held.disk()
                held.database(version=version, bounds=False).sql(text, epsilon=_EPSILON)
                after = held.disk()
                if len(after.facts) == len(before.facts):
                    yield f"Nothing was bought for {text!r} in version {version}: a fact of something else was taken."
                if after.cost - before.cost > _EPSILON:
                    yield f"Bounds and answer of {text!r} cost more than was asked together."


def _free() -> Iterator[str]:
    """Check that nothing free reads anything."""
    with town() as held:
        db, meter = held.database(), Meter.on(held.ledger)
        before = held.disk()
        looks: dict[str, Callable[[], object]] = {
            "explain": lambda: db.explain(_COUNT, epsilon=_EPSILON),
            "plan": lambda: db.plan(_COUNT, epsilon=_EPSILON),
            "plan within": lambda: db.plan(_COUNT, within=10),
            "fits": lambda: meter.fits(_GEOMETRIC, ACCOUNT),
            "spent": lambda: meter.spent(ACCOUNT),
            "a question that is too dear": lambda: db.sql(_COUNT, epsilon=1000),
            "a question that is refused": lambda: db.sql("SELECT cost FROM stays", epsilon=_EPSILON),
        }
        for what, look in looks.items():
            with suppress(HubbubError):
                look()
            if held.seen:
                yield f"The data was read for nothing: {what}."
                held.seen.clear()
        if held.disk() != before:
            yield "Something was charged or stored for what is free."


_TWO = Facts(account=ACCOUNT, sensitivity=Sensitivity(l0=1, linf=Fraction(2)))
_PLAIN = Facts(account=ACCOUNT, sensitivity=Sensitivity(l0=1, linf=_ONE))
_MISFITS: dict[str, tuple[Any, Facts]] = {
    "a value that moves by 2, and noise for 1": (_GEOMETRIC, _TWO),
    "a value that moves in 2 places, and noise for 1": (
        _GEOMETRIC,
        replace(_PLAIN, sensitivity=Sensitivity(l0=2, linf=_ONE)),
    ),
    "a unit that is replaced, and noise for one that is added": (
        _GEOMETRIC,
        replace(_PLAIN, neighbors=Neighbors.REPLACE_ONE),
    ),
    "a unit that is added, and noise for one that is replaced": (
        Geometric(epsilon=_EPSILON, neighbors=Neighbors.REPLACE_ONE),
        _PLAIN,
    ),
    "a raw real, and noise for whole numbers": (_GEOMETRIC, replace(_PLAIN, grid=None)),
    "whole numbers, and noise for raw reals": (Laplace(epsilon=_EPSILON, sensitivity=_ONE), _PLAIN),
    "a value that moves by 2, and Gaussian noise for 1": (Gaussian.at_rho(rho=_EPSILON), _TWO),
    "another account": (_GEOMETRIC, replace(_PLAIN, account="nobody")),
}


def _misfits() -> Iterator[str]:
    """Check that a mechanism that does not fit the facts is refused: nothing is opened, and nothing is charged."""
    with town() as held:
        meter = Meter.on(held.ledger)
        for what, (mechanism, facts) in _MISFITS.items():
            before = held.disk().cost
            with suppress(HubbubError):
                meter.measure(mechanism, seal(held, 5, facts))
                yield f"Measured: {what}."
            if held.seen or held.disk().cost != before:
                yield f"Opened or charged: {what}."
                held.seen.clear()
        falling = SparseVector(epsilon=_EPSILON, threshold=10, monotone=True)
        for what, facts in (
            ("a value that may fall, by a monotone watch", _PLAIN),
            ("a value of another grid", replace(_PLAIN, grid=Fraction(1, 2))),
            ("a value that moves by 2", _TWO),
        ):
            watch = meter.watch(falling if "fall" in what else replace(falling, monotone=False), account=ACCOUNT)
            with suppress(MisfitError):
                watch.ask(seal(held, 5, facts))
                yield f"Watched: {what}."
            if held.seen:
                yield f"Opened: {what}."
                held.seen.clear()


def _nan() -> Iterator[str]:
    """Check that NaN is some number to the gate: neither an error nor an answer of its own."""
    facts = Facts(account=ACCOUNT, sensitivity=Sensitivity(l0=1, linf=_ONE), grid=None)
    with town() as held:
        meter = Meter.on(held.ledger)
        for exact in (math.nan, math.inf, -math.inf, 1e308, -0.0):
            before = held.disk().cost
            try:
                told = float(meter.measure(Laplace(epsilon=_EPSILON, sensitivity=_ONE), seal(held, exact, facts)).value)
            except (HubbubError, ValueError, OverflowError) as error:
                yield f"{exact} is told by an error: {type(error).__name__}."
                continue
            if not math.isfinite(told):
                yield f"{exact} is told by the answer {told}."
            if held.disk().cost == before:
                yield f"{exact} is answered for nothing."


def _too_many() -> Iterator[str]:
    """Work that measures more than was paid for is stopped."""
    with town() as held:
        ask = Ask(account=ACCOUNT, question="twice", events=(_GEOMETRIC.event,), epsilon=_EPSILON)

        def work(meter: Meter) -> str:
            return write([meter.measure(_GEOMETRIC, seal(held, 1)).value for _ in range(2)])

        with suppress(EngineError):
            gate.answered(held.ledger, ask, work)
            yield "One payment was good for two draws."
        watch = Meter.on(held.ledger).watch(SparseVector(epsilon=_EPSILON, threshold=0), account=ACCOUNT)
        with suppress(HubbubError):
            found = [watch.ask(seal(held, 10**9)) for _ in range(2)]
            yield f"A watch that was paid for one answer above gave {len(found)}."


def _frozen() -> Iterator[str]:
    """Check that failures after the charge are released only up to the allowance; each is charged."""
    with town() as held:
        for place in range(ALLOWANCE + 1):
            before, held.failing = held.disk().cost, True
            try:
                held.database(principal="ann", version=f"v{place}").sql(_COUNT, epsilon=_EPSILON)
                yield "A question was answered although the engine failed."
            except EngineError:
                if place == ALLOWANCE:
                    yield f"The engine's failure was told {place + 1} times."
                if held.disk().cost == before:
                    yield "A failed look at the data was not charged."
            except Frozen:
                if place < ALLOWANCE:
                    yield f"A principal was frozen after {place} failures."


def _race() -> Iterator[str]:
    """Many at once get no more than one after the other."""
    with town(budget=Budget(epsilon=_ONE)) as held:
        for meter in (Meter({ACCOUNT: Budget(epsilon=_ONE)}), Meter.on(held.ledger)):
            told: list[Any] = []

            def ask(own: Meter = meter, into: list[Any] = told) -> None:
                for _ in range(2):
                    with suppress(BudgetExceeded):
                        into.append(own.measure(_GEOMETRIC, seal(held, 1)).value)

            threads = [threading.Thread(target=ask) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if len(told) != 4:
                yield f"A budget for four answers gave {len(told)} to six who asked at once."


def _try_kill() -> Iterator[str]:
    """Check that a process that is killed while it reads has paid, and released nothing."""
    if not hasattr(os, "fork"):
        return
    with town() as held:
        child = os.fork()
        if child == 0:
            try:
                held.reopen()
                held.read = lambda: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
                _draws(Meter.on(held.ledger), held, key="k")
            finally:
                os._exit(1)
        status = wait_for_end(child)
        if status is None or not os.WIFSIGNALED(status):
            yield "The process that was to be killed while it read did not come that far."
            return
        left = held.disk()
        if left.cost == 0:
            yield "A process was killed while it read, and nothing is charged."
        if left.answers:
            yield "A process was killed while it read, and an answer is stored."
        _draws(Meter.on(held.ledger), held, key="k")
        if held.disk().cost != left.cost:
            yield "Asked again under its key after that, it was charged again."


def _as_list(scene: Callable[[], Iterator[str]]) -> Callable[[], list[str]]:
    def run_scene() -> list[str]:
        sentences: list[str] = []
        try:
            sentences.extend(scene())
        except Exception as error:
            sentences.append(f"It ended with {type(error).__name__}: {error}")
        return sentences

    return run_scene


SCENES: dict[str, Callable[[], list[str]]] = {
    "what is free": _as_list(_free),
    "the same key again": _as_list(_keys),
    "another principal": _as_list(_principals),
    "facts that were bought": _as_list(_facts),
    "mechanisms that do not fit": _as_list(_misfits),
    "values that are not numbers": _as_list(_nan),
    "more draws than were paid for": _as_list(_too_many),
    "an engine that fails": _as_list(_frozen),
    "many at once": _as_list(_race),
    "a process that is killed": _as_list(_try_kill),
}
"""Each gives back what was wrong, a sentence each."""
