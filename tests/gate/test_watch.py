"""Watches: paid for before anything is drawn, asked about what fits, over when they have found what was paid for."""

import copy
import os
import pickle
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import BudgetExceeded, EngineError, Frozen, MisfitError, ParameterError, SecretError, WatchOver
from hubbub.gate import watch as watches
from hubbub.gate.meter import answered
from hubbub.gate.watch import Watch
from hubbub.ledger import Ledger, Marks
from hubbub.mechanisms import Geometric, SparseVector
from hubbub.mechanisms.sparse.threshold_stream import Above
from hubbub.noise.entropy import substitute
from hubbub.privacy.loss import Pure
from hubbub.testing import replayed
from hubbub.testing.replay import RecordingMeter, differences, trace
from tests.ledger.asking import ask
from tests.noise.sources import Untouchable

ONE = Fraction(1)
FAR = 10**6


def first_over(**options: Any) -> SparseVector:
    return SparseVector(**{"epsilon": ONE, "threshold": 1000, **options})


def value(
    exact: Any = 0, *, account: str = "town", grid: Any = 1, neighbors: Any = hb.Neighbors.ADD_REMOVE, **known: Any
) -> hb.Secret[Any]:
    sensitivity = hb.Sensitivity(**(known or {"l0": 1, "linf": ONE}))
    return hb.Secret(exact, hb.Facts(account=account, sensitivity=sensitivity, grid=grid, neighbors=neighbors))


def gate(epsilon: Any = 1) -> hb.Meter:
    return hb.Meter({"town": hb.Budget(epsilon=Fraction(epsilon)), "city": hb.Budget(epsilon=ONE)})


def opened(epsilon: Any = 1, **options: Any) -> Watch:
    return gate(epsilon).watch(first_over(**options), account="town")


class TestPaying:
    def test_the_whole_price_is_paid_at_opening_and_nothing_after(self) -> None:
        meter = gate(2)
        watch = meter.watch(first_over(count=2), account="town")
        assert (watch.entry, watch.account, watch.left) == (1, "town", 2)
        assert watch.event == first_over(count=2).event
        for _ in range(300):
            assert watch.ask(value(-FAR)) is None
        assert watch.left == 2
        assert watch.ask(value(FAR)) is not None
        assert watch.left == 1
        assert meter.spent("town") == Pure(epsilon=ONE)

    def test_nothing_is_drawn_for_what_does_not_fit_the_budget(self) -> None:
        meter = gate(Fraction(1, 2))
        with substitute(Untouchable()):
            with pytest.raises(BudgetExceeded):
                meter.watch(first_over(), account="town")
            with pytest.raises(ParameterError, match="mechanism must be a SparseVector"):
                meter.watch(Geometric(epsilon=ONE), account="town")  # type: ignore[arg-type]
            with pytest.raises(ParameterError, match="grid must be a positive number"):
                meter.watch(first_over(epsilon=Fraction(1, 4)), account="town", grid=0)
        assert meter.spent("town") == Pure(epsilon=Fraction(0))

    def test_the_charge_comes_before_the_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        meter = gate()
        seen = []

        def bars(self: SparseVector, times: int) -> Any:
            seen.append(meter.spent("town"))
            return np.array([[1000]])

        monkeypatch.setattr(SparseVector, "bars", bars)
        meter.watch(first_over(), account="town")
        assert seen == [Pure(epsilon=ONE)]


class TestFitting:
    @pytest.mark.parametrize(
        ("bad", "words"),
        [
            ({"account": "city"}, "paid for from account 'town'"),
            ({"linf": Fraction(2), "l0": 1}, "calibrated for a change of 1 in score"),
            ({"rows": 1}, "bound in score"),
            ({"neighbors": hb.Neighbors.REPLACE_ONE}, "protects add-remove"),
            ({"grid": Fraction(1, 2)}, "counts steps of 1"),
            ({"grid": None}, "counts steps of 1"),
        ],
    )
    def test_what_does_not_fit_is_not_opened(self, bad: dict[str, Any], words: str) -> None:
        meter = RecordingMeter({"town": hb.Budget(epsilon=ONE)})
        watch = meter.watch(first_over(), account="town")
        with substitute(Untouchable()), pytest.raises(MisfitError, match=words):
            watch.ask(value(FAR, **bad))
        assert meter.measurements == []
        assert watch.left == 1

    def test_only_secrets_are_asked_about(self) -> None:
        with pytest.raises(ParameterError, match="secret must be a Secret"):
            opened().ask(5)  # type: ignore[arg-type]
        with pytest.raises(EngineError):
            opened().ask(value([1, 2]))

    def test_a_monotone_watch_needs_rising_values(self) -> None:
        """Two values may each be monotone and move against each other."""
        watch = opened(monotone=True)
        for known in ({"linf": ONE}, {"linf": ONE, "monotone": True}):
            with pytest.raises(MisfitError, match="monotone"):
                watch.ask(value(-FAR, **known))
        assert watch.ask(value(-FAR, linf=ONE, rising=True)) is None
        assert opened().ask(value(-FAR, linf=ONE, rising=True)) is None

    def test_rising_values_are_monotone_and_for_add_remove_only(self) -> None:
        assert hb.Sensitivity(linf=ONE, rising=True).monotone
        assert not hb.Sensitivity(linf=ONE, monotone=True).rising
        with pytest.raises(ParameterError, match="monotone"):
            value(linf=ONE, rising=True, neighbors=hb.Neighbors.REPLACE_ONE)

    def test_answers_come_in_the_units_of_the_grid(self) -> None:
        mechanism = first_over(epsilon=Fraction(40), numbers=Fraction(1, 2))
        watch = gate(40).watch(mechanism, account="town", grid=Fraction(1, 4))
        found = watch.ask(value(1400, grid=Fraction(1, 4)))
        assert found is not None
        assert found.gap == pytest.approx(100, abs=5)
        assert found.number == pytest.approx(350, abs=5)
        assert type(found.gap) is type(found.number) is float
        found = gate().watch(first_over(), account="town", grid=Fraction(1, 4)).ask(value(FAR, grid=Fraction(1, 4)))
        assert found is not None
        assert found.number is None


class TestEnding:
    def test_it_is_over_after_its_count(self) -> None:
        meter = RecordingMeter({"town": hb.Budget(epsilon=ONE)})
        watch = meter.watch(first_over(count=2), account="town")
        assert isinstance(watch.ask(value(FAR)), Above)
        assert watch.ask(value(-FAR)) is None
        assert isinstance(watch.ask(value(FAR)), Above)
        before = len(meter.measurements)
        with substitute(Untouchable()), pytest.raises(WatchOver, match="all 2 that it was paid for") as caught:
            watch.ask(value(-FAR))
        assert caught.value.operands == {"count": 2}
        assert len(meter.measurements) == before == 3
        assert watch.left == 0

    def test_numbers_only_where_they_were_bought(self) -> None:
        found = opened().ask(value(FAR))
        assert found is not None
        assert found.number is None
        bought = opened(numbers=Fraction(1, 2), count=2)
        for _ in range(2):
            found = bought.ask(value(FAR))
            assert found is not None
            assert abs(found.number - FAR) < 1000

    def test_many_threads_find_no_more_than_was_paid_for(self) -> None:
        watch, found = opened(count=5), []
        start = threading.Barrier(8)

        def keep_asking() -> None:
            start.wait()
            for _ in range(20):
                try:
                    found.append(watch.ask(value(FAR)))
                except WatchOver:
                    return

        threads = [threading.Thread(target=keep_asking) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 5
        assert watch.left == 0


class TestSealing:
    def test_no_copy_and_no_store(self) -> None:
        watch = opened()
        for sealed in (watch, watch.stream):
            with pytest.raises(SecretError, match="cannot be copied or stored"):
                copy.deepcopy(sealed)
            with pytest.raises(SecretError, match="cannot be copied or stored"):
                pickle.dumps(sealed)
        with pytest.raises(SecretError):
            copy.copy(watch.stream)
        assert copy.copy(watch).stream is watch.stream

    def test_what_is_shown_is_public(self) -> None:
        with replayed(1):
            watches = [opened(count=3, numbers=Fraction(1, 3), renewed=True) for _ in range(5)]
        assert len({repr(watch) for watch in watches}) == 1
        assert repr(watches[0]) == "<Watch of account 'town', entry 1, 3 left>"
        assert len({repr(watch.stream) for watch in watches}) == 1
        with pytest.raises(TypeError):
            vars(watches[0].stream)
        with pytest.raises(AttributeError):
            watches[0].stream.mechanism = first_over()  # type: ignore[misc]

    def test_a_forked_child_gets_no_answer(self) -> None:
        watch = opened()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - in the child
            try:
                watch.ask(value(FAR))
                said = b"answered"
            except SecretError as error:
                said = str(error).encode()
            except BaseException as error:
                said = repr(error).encode()
            os.write(write, said)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            heard = pipe.read().decode()
        os.waitpid(child, 0)
        assert "only in the process that opened it" in heard
        assert watch.ask(value(FAR)) is not None


class TestNoise:
    def test_one_draw_of_noise_a_question(self) -> None:
        with replayed() as source:
            watch = opened(count=2, numbers=Fraction(1, 2))
            opening = len(source.draws)
            for exact in (-FAR, FAR, -FAR):
                watch.ask(value(exact))
        assert [draw.kind for draw in source.draws[opening:]] == ["geometric"] * 3
        assert opening == 2

    def test_neighbours_cannot_be_told_apart_by_anything_but_answers(self) -> None:
        def question(counts: list[int]) -> Any:
            def run(meter: hb.Meter) -> Any:
                watch = meter.watch(first_over(count=3), account="town")
                return [watch.ask(value(x)) is not None for x in counts]

            return run

        accounts = {"town": hb.Budget(epsilon=ONE)}
        one, other = (trace(question(counts), accounts=accounts) for counts in ([3, 500, 20], [2, 500, 21]))
        assert differences(one, other) == []
        assert len(one.measurements) == 3
        far = trace(question([3, 500, 22]), accounts=accounts)
        assert differences(one, far)


class TestOnLedgers:
    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[Ledger]:
        with Ledger(tmp_path / "clinic.ledger", marks=Marks(tmp_path / "state")) as made:
            made.open_account("patients", hb.Budget(epsilon=Fraction(2)))
            yield made

    def test_the_charge_is_settled_before_the_first_answer(self, ledger: Ledger) -> None:
        """A charge without an answer could be drawn again: here nothing can be."""
        meter = hb.Meter.on(ledger)
        watch = meter.watch(first_over(), account="patients", label="wards")
        entries = [*ledger.entries()]
        assert [entry.kind for entry in entries[-2:]] == ["charge", "answer"]
        assert watch.entry == entries[-2].seq
        assert watch.ask(value(FAR, account="patients")) is not None
        assert len([*ledger.entries()]) == len(entries)
        other = meter.watch(first_over(), account="patients", label="wards")
        assert other.entry != watch.entry
        assert meter.spent("patients") == Pure(epsilon=Fraction(2))
        with pytest.raises(BudgetExceeded):
            meter.watch(first_over(), account="patients", label="wards")

    def test_a_batch_goes_through_the_gate_like_anything_else(self, ledger: Ledger) -> None:
        meter = hb.Meter.on(ledger)
        mechanism = first_over(monotone=True, count=2)
        wards = value([3, FAR, 8, FAR, FAR], account="patients", linf=ONE, rising=True, grid=None)
        release = meter.measure(mechanism, wards, key="wards")
        assert release.value[0] == (1, 3)
        assert all(type(part) is tuple for part in release.value)
        assert meter.measure(mechanism, wards, key="wards").value == release.value
        assert meter.spent("patients") == Pure(epsilon=ONE)
        assert release.why_no_interval is not None
        with pytest.raises(MisfitError, match="monotone"):
            meter.measure(mechanism, value([3], account="patients", linf=ONE, grid=None))

    def test_a_question_that_may_be_drawn_again_is_not_watched(self, ledger: Ledger) -> None:
        def work(meter: hb.Meter) -> str:
            meter.watch(first_over(), account="patients")
            return "never"

        log: list[str] = []
        with pytest.raises(EngineError):
            answered(ledger, ask(events=(first_over().event,)), work, log=log.append)
        assert "measure a SparseVector instead" in log[0]

    def test_a_question_that_fails_is_counted_and_ends_the_watch(self, ledger: Ledger) -> None:
        """A failure tells something about the value: once for each charge, and as often as the allowance says."""
        ledger.grant("patients", "ann", limit=hb.Budget(epsilon=Fraction(1)))
        meter = hb.Meter.on(ledger, principal="ann")
        bad: tuple[Any, ...] = ("a name", [1, 2], None, 2.5)
        watches = [meter.watch(first_over(epsilon=Fraction(1, 16)), account="patients") for _ in range(5)]
        for number, (watch, exact) in enumerate(zip(watches, bad[:3], strict=False), 1):
            with pytest.raises(EngineError) as refused:
                watch.ask(value(exact, account="patients"))
            assert refused.value.args == EngineError().args
            assert refused.value.__context__ is None
            assert [one.many for one in ledger.failures()] == [number]
            with pytest.raises(WatchOver, match="ended with a failure"):
                watch.ask(value(-FAR, account="patients"))
        for watch, exact in ((watches[3], 2.5), (watches[4], -FAR)):
            with pytest.raises(Frozen):  # whether it failed or not
                watch.ask(value(exact, account="patients"))
        assert [one.many for one in ledger.failures()] == [3]
        ledger.verify()

    def test_a_failure_with_the_last_answer_is_counted_too(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That nothing is left to ask would say that the value was above, and say it for nothing."""
        ledger.grant("patients", "ann", limit=hb.Budget(epsilon=Fraction(1)))
        watch = hb.Meter.on(ledger, principal="ann").watch(first_over(epsilon=Fraction(1, 16)), account="patients")
        monkeypatch.setattr(watches, "off_grid", lambda *_: 1 // 0)
        with pytest.raises(EngineError) as refused:
            watch.ask(value(FAR, account="patients"))
        assert refused.value.__context__ is None
        assert [one.many for one in ledger.failures()] == [1]
        with pytest.raises(WatchOver, match="ended with a failure"):
            watch.ask(value(FAR, account="patients"))

    def test_a_value_of_any_size_is_compared(self) -> None:
        assert opened().ask(value(-(1 << 200))) is None
        assert opened().ask(value(1 << 200)) is not None
