"""The first process and its forks: what it never holds, how it is renewed, and what happens when one of them fails."""

import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub.engines.duckdb import nursery as nurseries
from hubbub.engines.duckdb import pool as pools
from hubbub.engines.duckdb import wire
from hubbub.engines.duckdb import zygote as program
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.nursery import Nursery
from hubbub.engines.duckdb.wire import is_readable
from hubbub.policy.tables import Limits

ONE = Limits(threads=1)


@pytest.fixture
def nursery(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nursery]:
    """A nursery that no other test has used."""
    fresh = Nursery()
    monkeypatch.setattr(nurseries, "_own", [fresh])
    yield fresh
    fresh.end()


def current(nursery: Nursery) -> int:
    assert nursery._current is not None
    return nursery._current.process.pid


def ask(engine: DuckDB, statement: str) -> list[list[Any]]:
    answer: dict[str, Any] = engine._pool.ask(request(statement), seconds=60)
    rows: list[list[Any]] = answer["rows"]
    return rows


def request(statement: str, *secrets: int) -> dict[str, Any]:
    empty: dict[str, Any] = {"keys": [], "paths": [], "files": [], "databases": {}, "stored": []}
    return {"statement": statement, "secrets": list(secrets), **empty}


def children(process: int) -> set[int]:
    """The living children of a process, and those that nobody has waited for."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return {int(number) for number in listed}


def eventually(condition: Any) -> bool:
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False


def holds(process: int, marker: bytes) -> bool:
    """Return whether a marker is anywhere in what a process can write to, or has written."""
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights, *rest = line.split(None, 5)
            if not rights.startswith("rw") or (len(rest) > 3 and rest[3].startswith("[v")):
                continue
            low, high = (int(end, 16) for end in span.split("-"))
            tail = b""
            for place in range(low, high, 1 << 24):
                memory.seek(place)
                try:
                    piece = tail + memory.read(min(1 << 24, high - place))
                except OSError:  # a guard page
                    break
                if marker in piece:
                    return True
                tail = piece[-len(marker) :]
    return False


def test_nothing_of_a_question_ever_reaches_the_first_process(nursery: Nursery) -> None:
    """Constants, secret numbers and values read stay in the child, whose memory does show the marker."""
    parts = os.urandom(8).hex(), os.urandom(8).hex()
    marker = "".join(parts).encode()  # in one piece nowhere but in the request
    with DuckDB(limits=ONE, standbys=1) as engine:
        assert eventually(lambda: nursery._current is not None and engine._pool._waiting[0].waits())
        begun = engine._pool.begin(request(f"SELECT '{''.join(parts)}' || range FROM range(3000)"))
        assert begun is not None
        waiting = begun.process
        assert waiting is not None
        assert eventually(lambda: holds(waiting, marker))
        answer = engine._pool.ask({}, seconds=60, begun=begun)
        assert answer["rows"][7][0] == "".join(parts) + "7"
        del answer
        ask(engine, "SELECT 1")  # whoever is forked next would inherit it
        assert not holds(current(nursery), marker)


def test_no_child_inherits_anothers_channel(nursery: Nursery) -> None:
    """A child has its own channel alone; the first process keeps none."""
    with DuckDB(limits=ONE, standbys=3) as engine:
        for standby in engine._pool._waiting:
            standby.ready()
            assert standby.process is not None
            assert sockets(standby.process) == 1
        assert sockets(current(nursery)) == 1


def sockets(process: int) -> int:
    folder = f"/proc/{process}/fd"
    return sum(os.readlink(f"{folder}/{number}").startswith("socket:") for number in os.listdir(folder))


def test_the_first_process_has_one_thread_and_its_children_have_their_own(nursery: Nursery) -> None:
    with DuckDB(limits=Limits(threads=3), standbys=1) as engine:
        assert ask(engine, "SELECT current_setting('threads')") == [[3]]
        assert len(os.listdir(f"/proc/{current(nursery)}/task")) == 1


def test_a_first_process_with_threads_does_not_fork_and_others_do_it_cold(nursery: Nursery) -> None:
    """A fork beside threads could wait for ever for a lock that one of them held."""
    asleep = threading.Event()
    thread = threading.Thread(target=asleep.wait)
    thread.start()
    assert not program.is_single()
    asleep.set()
    thread.join()
    with DuckDB(limits=ONE, standbys=1) as engine:
        assert ask(engine, "SELECT 1") == [[1]]
        assert was_warm(nursery)
        first = nursery._current
        assert first is not None
        first.refused = True  # as it says where it counts two
        assert ask(engine, "SELECT 2") == [[2]]
        assert ask(engine, "SELECT 3") == [[3]]
        assert not was_warm(nursery)
        assert nursery._current is not first


def was_warm(nursery: Nursery) -> bool:
    return nursery.is_warm


def test_the_first_process_says_that_it_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Told to fork while it has two threads, it says so, closes the channel and forks nothing."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel, end = socket.socketpair()
    with ours, theirs, channel, end:
        zygote = program._Zygote(theirs, object(), "")
        monkeypatch.setattr(program, "is_single", lambda: False)
        zygote._do(program.FORK, [os.dup(end.fileno())])
        assert ours.recv(1) == program.REFUSED
        assert zygote._children == {}
        end.close()
        assert channel.recv(1) == b""


def test_a_child_that_says_nothing_in_time_is_ended_and_the_question_is_answered(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DuckDB(limits=ONE, standbys=1) as engine:
        assert ask(engine, "SELECT 1") == [[1]]
        first = nursery._current
        assert first is not None
        silent = iter([TimeoutError()])
        receive = wire.receive

        def receive_late(channel: Any) -> Any:
            for error in silent:
                raise error
            return receive(channel)

        monkeypatch.setattr(pools, "receive", receive_late)
        assert ask(engine, "SELECT 2") == [[2]]
        assert not nursery.is_warm
        assert nursery._current is not first
        assert eventually(lambda: first.process.poll() is not None or not children(first.process.pid))


def test_a_first_process_that_is_killed_costs_nobody_anything(nursery: Nursery) -> None:
    """Those that waited die with it, and are replaced before anybody is told to read."""
    with DuckDB(limits=ONE, standbys=2) as engine:
        assert ask(engine, "SELECT 1") == [[1]]
        waiting = list(engine._pool._waiting)
        for standby in waiting:
            standby.ready()
        killed = current(nursery)
        os.kill(killed, signal.SIGKILL)
        assert eventually(lambda: not any(is_running(standby.process or 0) for standby in waiting))
        assert ask(engine, "SELECT 2") == [[2]]
        assert current(nursery) != killed
        assert nursery.is_warm


@pytest.mark.parametrize(("name", "value"), [("_FORKS", 4), ("_AGE", 0.0)])
def test_a_first_process_is_renewed_by_count_and_by_age(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    monkeypatch.setattr(nurseries, name, value)
    seen: set[int] = set()
    with DuckDB(limits=ONE, standbys=1) as engine:

        def is_renewed() -> bool:
            assert ask(engine, "SELECT 1") == [[1]]
            seen.add(current(nursery))
            return len(seen) >= 3

        assert eventually(is_renewed)
        old = seen - {current(nursery)}
    assert eventually(lambda: nursery._current is None or not any(is_running(process) for process in old - {0}))


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_questions_leave_no_process_descriptor_or_file(nursery: Nursery) -> None:
    with DuckDB(limits=ONE, standbys=2) as engine:
        for _ in range(5):
            ask(engine, "SELECT 1")
        assert eventually(lambda: len(engine._pool._waiting) == 2)
        process, before = current(nursery), len(os.listdir("/proc/self/fd"))
        for turn in range(60):
            assert ask(engine, f"SELECT {turn}") == [[turn]]
        assert eventually(lambda: len(children(process)) <= 2)
        assert eventually(lambda: len(os.listdir(engine._directory)) <= 2)
        assert eventually(lambda: len(os.listdir("/proc/self/fd")) <= before + 2)
        assert len(os.listdir(f"/proc/{process}/fd")) < 12
    assert eventually(lambda: children(process) == set())


def test_few_processes_wait_for_their_end(nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ending takes longer than asking, descriptors and folders do not pile up."""
    monkeypatch.setattr(pools, "_BACKLOG", 3)
    slow, end = threading.Event(), pools.Standby.end

    def end_slowly(standby: pools.Standby) -> None:
        if threading.current_thread().name == "hubbub-keeper":
            slow.wait(60)
        end(standby)

    monkeypatch.setattr(pools.Standby, "end", end_slowly)
    with DuckDB(limits=ONE, standbys=1) as engine:
        ask(engine, "SELECT 1")
        before = len(os.listdir("/proc/self/fd"))
        for turn in range(25):
            assert ask(engine, f"SELECT {turn}") == [[turn]]
        assert len(os.listdir("/proc/self/fd")) <= before + 2 * (3 + 2)
        assert len(os.listdir(engine._directory)) <= 3 + 3
        slow.set()


def test_engines_share_one_first_process_and_many_threads_ask_at_once(nursery: Nursery) -> None:
    answers: list[Any] = []
    with DuckDB(limits=ONE, standbys=1) as left, DuckDB(limits=ONE, standbys=2) as right:
        ask(left, "SELECT 1")
        process = current(nursery)

        def go(engine: DuckDB, base: int) -> None:
            for turn in range(10):
                ((answer,),) = ask(engine, f"SELECT {base + turn}")
                answers.append(answer)

        asking = [
            threading.Thread(target=go, args=(left if place % 2 else right, 10 * place), daemon=True)
            for place in range(6)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join(120)
        assert sorted(answers) == list(range(60))
        assert current(nursery) == process


def test_a_lonely_first_process_ends_and_the_next_question_starts_another(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DuckDB(limits=ONE, standbys=1) as engine:
        ask(engine, "SELECT 1")
        first = nursery._current
        assert first is not None
        folder = Path(nursery._directory or "")
        assert len([*folder.glob("*.parquet")]) == 1, "the rows that are rehearsed with"
    first.tell(program.RETIRE)  # as after a minute without a child
    assert eventually(lambda: first.process.poll() is not None)
    assert [*folder.glob("*.parquet")] == []
    with DuckDB(limits=ONE, standbys=1) as engine:
        assert ask(engine, "SELECT 2") == [[2]]
        assert nursery._current is not first


def test_descriptors_of_any_number_can_be_watched() -> None:
    """A process with many open files has numbers beyond what select takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    ours, theirs = socket.socketpair()
    high = 2000
    try:
        os.dup2(ours.fileno(), high)
        assert not is_readable(high)
        theirs.send(b"x")
        assert is_readable(high, 1.0)
        os.read(high, 1)
        assert not is_readable(high)
        theirs.close()
        assert is_readable(high, 1.0)
    finally:
        os.close(high)
        ours.close()
        theirs.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
