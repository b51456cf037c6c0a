"""Blocks share nothing: every attempt to see or to move something outside of a block fails, and works elsewhere."""

import os
import subprocess
import sys

import pytest

from hubbub.programs.program import Program
from hubbub.programs.sandbox import Sandbox
from tests.engines import channels
from tests.engines.test_sandbox import WHY_NOT, outputs

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

NAMES = list(channels.ATTEMPTS)
ROWS = {"x": ("real", [1.0, 2.0, 6.0])}
MADE_UP = {"x": ("real", [0.5])}
PRINTED = Program.of(channels.tried).text
OF_ITS_OWN = {"a file kept open"}
"""What a program may do as long as it may open files at all: keep one open that it opened itself."""
NOT_OUTSIDE = {
    *("a file made", "a file inherited", "time of the channel", "pool of huge pages", "clock mapped again"),
    *("reading without waiting", "comparison of processes", "page faults", "io_uring", "fanotify"),
    *("programs for the kernel", "performance counters", "time of last reading"),
}
"""What is not tried outside of a sandbox: it would last, or depends on rights, on settings or on the kernel's age."""


def test_attempts_work_outside() -> None:
    """Or they would show nothing. They run in a process of their own, since some change it.

    It ignores the signals that come when another process reads a file of the installation, one of the channels.
    """
    names = [name for name in NAMES if name not in NOT_OUTSIDE]
    quiet = "import signal\nfor number in (signal.SIGIO, signal.SIGUSR1): signal.signal(number, signal.SIG_IGN)\n"
    text = f"{quiet}{PRINTED}\nATTEMPTS = {{name: ATTEMPTS[name] for name in {names!r}}}\nprint(*tried())"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert [name for name, result in zip(names, run.stdout.split(), strict=True) if not float(result)] == []


def test_functions_see_nothing_of_the_world() -> None:
    made = Sandbox(program=Program.of(channels.probe), width=2 * len(NAMES), rehearsal=MADE_UP, seconds=1.5)
    (answer,) = outputs(made, [ROWS])
    assert answer is not None
    loading, with_rows = answer[: len(NAMES)], answer[len(NAMES) :]
    assert {name for name, result in zip(NAMES, loading, strict=True) if result} == OF_ITS_OWN
    assert {name for name, result in zip(NAMES, with_rows, strict=True) if result} == set()


def test_commands_see_nothing_of_the_world() -> None:
    program = Program.of([os.path.realpath(sys.executable), "-I", "-c", PRINTED + "\nprint(*tried())"])
    (answer,) = outputs(Sandbox(program=program, width=len(NAMES), rehearsal=MADE_UP, seconds=2.0), [ROWS])
    assert answer is not None
    assert {name for name, result in zip(NAMES, answer, strict=True) if result} == OF_ITS_OWN


def test_one_block_cannot_tell_another_anything() -> None:
    """Two lanes: the first block does all that it can to be noticed, or nothing; the second one answers the same."""
    made = Sandbox(program=Program.of(channels.converse), width=1, rehearsal=MADE_UP, seconds=1.2, lanes=2)
    looking = {"x": ("real", [2.0, 0.0, 0.0])}
    answers = [outputs(made, [{"x": ("real", [first, 0.0, 0.0])}, looking]) for first in (1.0, 3.0)]
    assert answers == [[None, (0.0,)], [(0.0,), (0.0,)]]
