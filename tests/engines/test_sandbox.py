"""Programs in their sandbox: honest ones are heard, and whatever else one does shows in its own output alone."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import ParameterError, ProgramError
from hubbub.programs import sandbox as sandboxes
from hubbub.programs.program import Program
from hubbub.programs.sandbox import Sandbox, Schedule
from hubbub.programs.wire import Output, Rows
from tests.engines import programs

ROWS = {"x": ("real", [1.0, 2.0, 6.0])}
MADE_UP = {"x": ("real", [0.5, 0.25, 1.0, 2.0])}


def _works() -> str:
    """Why programs cannot be run here; empty where they can."""
    if sys.platform != "linux":
        return "programs run on Linux only"
    try:
        sandbox("mean").check()
    except ProgramError as problem:
        return f"no world of its own for a program here ({problem})"
    return ""


def sandbox(name: str, **options: Any) -> Sandbox:
    chosen = {"width": 1, "rehearsal": MADE_UP, "seconds": 0.5, **options}
    return Sandbox(program=Program.of(getattr(programs, name)), **chosen)


def outputs(made: Sandbox, blocks: Sequence[Rows]) -> list[Output]:
    return made.outputs(lambda: blocks, blocks=len(blocks))


WHY_NOT = _works()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.mark.parametrize(
    ("name", "said"),
    [("mean", (3.0,)), ("ends", (1.0, 6.0)), ("remembers", (1.0,)), ("infinite", (float("inf"),)), ("prints", (4.0,))],
)
def test_honest_programs_are_heard(name: str, said: tuple[float, ...]) -> None:
    assert outputs(sandbox(name, width=len(said)), [ROWS]) == [said]


def test_columns_arrive_as_arrays() -> None:
    rows: dict[str, tuple[str, list[Any]]] = {
        "n": ("integer", [1, 2]),
        "x": ("real", [None, 1.5]),
        "t": ("text", ["a", None]),
        "d": ("date", ["2024-02-29", None]),
    }
    assert outputs(sandbox("shapes", width=4, rehearsal=rows), [rows]) == [(1.0, 1.0, 1.0, 1.0)]


@pytest.mark.parametrize(
    "name",
    [
        *("forks", "forks_early", "runs", "writes", "reads", "looks", "connects", "opens_socket", "sleeps", "crashes"),
        *("raises", "kills_parent", "takes_memory", "shares_memory", "changes_times"),
        *("says_too_much", "says_nothing", "says_text", "threads", "keeps_doors_open"),
    ],
)
def test_whatever_else_one_does_it_only_says_nothing(name: str) -> None:
    assert outputs(sandbox(name), [ROWS]) == [None]
    assert not Path("/tmp/hubbub-sandbox-leak").exists()


def test_a_block_knows_nothing_of_the_others() -> None:
    """And a bad one changes nothing for them."""
    blocks = [ROWS, {"x": ("real", [2.0, 2.0, 2.0])}, ROWS]
    assert outputs(sandbox("remembers", lanes=2), blocks) == [(1.0,)] * 3
    worse = outputs(sandbox("crashes", lanes=3), [{"x": ("real", [1.0])}, ROWS, {"x": ("real", [1.0])}])
    assert worse == [(1.0,), None, (1.0,)]


def test_a_block_that_cannot_be_sent_or_read_concerns_itself_alone() -> None:
    texts: list[list[Any]] = [["ab"], [object()], [10**5000], ["\ud800"], [Decimal(1)], [float("nan")], ["abc"]]
    answers = outputs(
        sandbox("letters", rehearsal={"t": ("text", ["a"])}, lanes=4), [{"t": ("text", text)} for text in texts]
    )
    assert answers == [(2.0,), None, None, (1.0,), None, None, (3.0,)]


def test_rows_of_a_wrong_shape_concern_one_block_alone() -> None:
    blocks: list[Any] = [{"x": ("integer", [1 << 70])}, {"x": ("date", ["no date"])}, {"x": None}, None, ROWS]
    assert outputs(sandbox("mean", lanes=5), blocks) == [None, None, None, None, (3.0,)]


def test_slots_begin_and_end_at_times_that_are_known_before() -> None:
    schedule = Schedule(start=100.0, seconds=2.0, loading=0.5)
    assert [schedule.begin(turn) for turn in range(3)] == [100.0, 102.5, 105.0]
    assert [schedule.end(turn) for turn in range(3)] == [102.0, 104.5, 107.0]


def test_a_program_that_is_late_has_no_answer() -> None:
    """Nothing waits for it, and the block gives the constant."""
    assert sandbox("mean")._load_again(0, until=time.monotonic() - 1) is None
    assert sandbox("mean")._ask(None, b"{}", until=time.monotonic() + 1) is None


def test_rows_are_read_when_programs_are_loaded() -> None:
    """So how long loading takes, which decides the schedule, depends on no row."""

    def read() -> list[Rows]:
        assert len(_running()) == 2 * 2, "each program and its supervisor"
        return [ROWS, ROWS]

    assert sandbox("mean", lanes=2).outputs(read, blocks=2) == [(3.0,)] * 2


def test_a_failure_to_read_rows_leaves_nothing_behind() -> None:
    def read() -> list[Rows]:
        raise OSError("no rows")

    with pytest.raises(OSError, match="no rows"):
        sandbox("mean", lanes=2).outputs(read, blocks=2)
    assert _running() == []


def test_what_cannot_be_loaded_is_said_before_any_row() -> None:
    with pytest.raises(ProgramError, match="ended while it was loaded"):
        sandbox("exits").check()
    with pytest.raises(ProgramError, match="SyntaxError"):
        Sandbox(program=Program(text="def f(:", name="f"), width=1, rehearsal=MADE_UP).check()
    with pytest.raises(ProgramError, match="AttributeError"):
        Sandbox(program=Program(text="x = 1", name="f"), width=1, rehearsal=MADE_UP).check()
    with pytest.raises(ProgramError, match="doors that shut"):
        sandbox("pretends").check()
    text = f"open({str(Path(__file__).resolve())!r})\ndef f(rows): return 1.0"
    with pytest.raises(ProgramError, match="FileNotFoundError"):
        Sandbox(program=Program(text=text, name="f"), width=1, rehearsal=MADE_UP).check()


def test_a_program_that_does_not_end_on_made_up_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_START", 1.0)
    with pytest.raises(ProgramError, match="too long to load, or to run on made-up rows"):
        sandbox("never_ends").check()


def test_nothing_runs_on() -> None:
    outputs(sandbox("sleeps"), [ROWS, ROWS])
    assert _running() == []


def _running() -> list[str]:
    """The processes of blocks that this one has started: supervisors, and the programs forked from them."""
    return [name for name in os.listdir("/proc") if name.isdigit() and _is_ours(name)]


def _is_ours(process: str) -> bool:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.endswith(b"sandboxed/__main__.py") for word in words) and str(os.getpid()).encode() in words


NESTED = """
import ctypes, os, sys
user, group = os.geteuid(), os.getegid()
assert ctypes.CDLL(None).unshare(0x10000000) == 0
for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {user} 1"), ("gid_map", f"1000 {group} 1")):
    open(f"/proc/self/{name}", "w").write(text)
if sys.argv[2] == "0":
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
"""Become an ordinary user, without any right over the system, who may have namespaces or not."""
ORDINARY = """
from tests.engines.test_sandbox import ROWS, outputs, sandbox
assert "CapEff:\t0000000000000000" in open("/proc/self/status").read()
made = sandbox("mean")
made.check()
print(outputs(made, [ROWS]))
"""


@pytest.mark.parametrize(("most", "said"), [("", "[(3.0,)]"), ("0", "does not give it a user namespace")])
def test_an_ordinary_user_runs_programs_where_the_system_lets_them(most: str, said: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", NESTED, ORDINARY, most],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in run.stdout + run.stderr


AWK = shutil.which("awk")


@pytest.mark.skipif(AWK is None, reason="awk is not installed")
def test_commands_read_a_table_and_print_numbers() -> None:
    def said(script: str, width: int = 1) -> Any:
        program = Program.of([os.path.realpath(str(AWK)), "-F,", script])
        return outputs(Sandbox(program=program, width=width, rehearsal=MADE_UP, seconds=0.6), [ROWS])

    assert said("NR > 1 { s += $1 } END { print s / (NR - 1) }") == [(3.0,)]
    assert said('NR == 1 { print ($1 == "x"), 2 }', 2) == [(1.0, 2.0)]
    assert said('BEGIN { print "three" }') == [None]
    assert said("BEGIN { print 1, 2 }") == [None]
    assert said('BEGIN { print 1 > "/tmp/hubbub-sandbox-leak"; print 2 }') in ([None], [(2.0,)])
    assert said('BEGIN { while ((getline line < "/etc/passwd") > 0) n++; print n + 0 }') == [(0.0,)]
    assert said('BEGIN { print system("true") }') != [(0.0,)], "no other process is started"
    assert said("BEGIN { while (1) x++ }") == [None]
    assert said("BEGIN { srand(); print srand() }") == [(946684800.0,)], "the clock stands still"
    assert not Path("/tmp/hubbub-sandbox-leak").exists()


@pytest.mark.parametrize("then", ["", "; while :; do :; done"])
def test_commands_need_not_read_their_rows(then: str) -> None:
    """Rows that do not fit into the channel are sent in the slot, or not at all."""
    large: Rows = {"x": ("text", ["a" * 1000] * 5000)}
    program = Program.of(["/bin/sh", "-c", "echo 2" + then])
    assert outputs(Sandbox(program=program, width=1, rehearsal=MADE_UP, seconds=0.6), [large]) == [(2.0,)]


def test_a_command_that_cannot_be_run_is_refused(tmp_path: Path) -> None:
    command = tmp_path / "command"
    command.write_text("#!/bin/sh\necho 1\n")
    command.chmod(0o755)
    with pytest.raises(ProgramError, match="FileNotFoundError"):
        Sandbox(program=Program.of([str(command)]), width=1, rehearsal=MADE_UP).check()


def test_what_is_no_command_is_refused() -> None:
    for command in ([], "awk", ["awk"], ["/does/not/exist"], ["/bin/sh", 3]):
        with pytest.raises(ParameterError, match="command"):
            Program.of(command)  # type: ignore[arg-type]


def test_functions_are_taken_by_their_text() -> None:
    assert Program.of(programs.mean).name == "mean"
    text = Program.of(programs.remembers).text
    assert text.startswith("from typing import Any\nSEEN: list[int] = []\ndef remembers(")
    assert "def ends" not in text
    assert "import numpy as np" in Program.of(programs.mean).text
    assert "def _real" in Program.of(programs.forks).text
    with pytest.raises(ParameterError, match="defined outside"):
        Program.of(lambda rows: 1.0)
    free = 3.0

    def inner(rows: object) -> float:
        return free

    with pytest.raises(ParameterError, match="defined outside"):
        Program.of(inner)
    with pytest.raises(ParameterError, match="with a name"):
        Program.of(print)
