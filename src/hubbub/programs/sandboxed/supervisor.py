"""The supervisor of one block: it makes the namespaces, watches over the program's process and shuts its doors.

It holds no row and runs nothing of the program. What the program's process says about itself could be the program's
own doing, so the last filter is set, and its effect is looked at, from here.
"""

import contextlib
import os
import platform
import signal
import socket
from collections.abc import Callable
from typing import Any

from . import calls, filters, running, world
from .clocks import answer_counter, stop_clocks
from .system import Missing, describe, receive, send
from .tracing import Tracee

_KEPT = {"0", "1", "2"}
_WRITABLE, _PRIVATE = 3, 0x22


def main(*, control: int, parent: int) -> None:
    """Run one block on Hubbub's order, and say on the control channel when the program is ready for its rows."""
    channel = socket.socket(fileno=control)
    try:
        order = receive(channel)
        world.leave(parent)
        child = _start(order)
        handle = os.pidfd_open(child)  # a number may name another process by the time that it is used
        signal.signal(signal.SIGTERM, lambda *_: _kill(handle))
        try:
            _watch(Tracee(child), order, lambda: _report(channel, handle))
        finally:
            _kill(handle)
            with contextlib.suppress(ChildProcessError):
                while True:  # until nothing of it is left
                    os.waitpid(child, 0)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            send(channel, {"problem": describe(problem)})
    os._exit(0)


def _start(order: dict[str, Any]) -> int:
    """Fork the program's process. It goes on only if this one, whose end is its own, is still there."""
    begun, begin = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(begin)
        world.die_with_parent()
        if os.read(begun, 1):
            running.run(order)
        os._exit(1)
    os.write(begin, b"1")
    for file in (begun, begin, *map(int, _KEPT)):  # the program's files are open nowhere else
        os.close(file)
    return child


def _kill(handle: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _watch(tracee: Tracee, order: dict[str, Any], report: Callable[[], None]) -> None:
    """Stop its clocks before any of its code runs, shut its doors before any row comes, and wait for its end."""
    tracee.begin()
    with open(f"/proc/{tracee.process}/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")  # where memory ends, the program is what ends first
    os.sched_setaffinity(tracee.process, {order["processor"]})
    command, gadget, ready = bool(order["command"]), 0, False
    stop = tracee.resume()
    while stop is not None:
        sent = stop.signal
        if stop.executed or (stop.called and not command and not gadget):
            tracee.finish_call()
            gadget = stop_clocks(tracee)
            if command and not ready:
                ready = True
                report()
        elif stop.called and not command and not ready:
            tracee.finish_call()
            _shut(tracee, gadget)
            ready = True
            report()
        elif sent == signal.SIGSEGV and answer_counter(tracee):
            sent = 0
        stop = tracee.resume(sent)


def _report(channel: socket.socket, handle: int) -> None:
    """Say that rows may come, and hand out what ends the program at once."""
    send(channel, {"ready": True})
    socket.send_fds(channel, [b"!"], [handle])


def _shut(tracee: Tracee, gadget: int) -> None:
    """Close every file but the first three and forbid all calls that are not for computing; then look that it is so.

    The program may have set a filter of its own, which makes a call seem to succeed: the kernel says what is true.
    """
    numbers, text = calls.NUMBERS[platform.machine()], filters.assemble(calls.WITH_ROWS)
    header, before = len(filters.describe_filter(text, 0)), _status(tracee, "Seccomp_filters")
    room = tracee.call(gadget, numbers["mmap"], 0, header + len(text), _WRITABLE, _PRIVATE, -1, 0)
    tracee.write(room, filters.describe_filter(text, room + header) + text)
    tracee.call(gadget, numbers["close_range"], 3, calls.LAST_FILE, 0)
    tracee.call(gadget, numbers["seccomp"], 1, 0, room)
    shut = _status(tracee, "Seccomp_filters") == before + 1 and _status(tracee, "Threads") == 1
    if not shut or not set(os.listdir(f"/proc/{tracee.process}/fd")) <= _KEPT:
        raise Missing("doors that shut", "the program keeps them open")
    tracee.call(gadget, numbers["munmap"], room, header + len(text))


def _status(tracee: Tracee, name: str) -> int:
    """Return a number that the kernel reports about the process."""
    with open(f"/proc/{tracee.process}/status", encoding="utf-8") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(name + ":")), -1)
