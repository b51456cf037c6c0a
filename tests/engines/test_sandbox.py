"""Programs in their sandbox: honest ones are heard, and whatever else one does shows in its own output alone."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from hubbub.engines.program import Program
from hubbub.engines.sandbox import Sandbox
from hubbub.errors import ParameterError, ProgramError
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
        return f"no namespaces, Landlock or seccomp here ({problem})"
    return ""


def sandbox(name: str, **options: Any) -> Sandbox:
    chosen = {"width": 1, "rehearsal": MADE_UP, "seconds": 0.5, **options}
    return Sandbox(program=Program.of(getattr(programs, name)), **chosen)


WHY_NOT = _works()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.mark.parametrize(
    ("name", "said"),
    [("mean", (3.0,)), ("ends", (1.0, 6.0)), ("threads", (7.0,)), ("remembers", (1.0,)), ("infinite", (float("inf"),))],
)
def test_honest_programs_are_heard(name: str, said: tuple[float, ...]) -> None:
    assert sandbox(name, width=len(said)).outputs([ROWS]) == [said]


def test_columns_arrive_as_arrays() -> None:
    rows: dict[str, tuple[str, list[Any]]] = {
        "n": ("integer", [1, 2]),
        "x": ("real", [None, 1.5]),
        "t": ("text", ["a", None]),
        "d": ("date", ["2024-02-29", None]),
    }
    assert sandbox("shapes", width=4, rehearsal=rows).outputs([rows]) == [(1.0, 1.0, 1.0, 1.0)]


@pytest.mark.parametrize(
    "name",
    [
        *("forks", "forks_early", "runs", "writes", "reads", "looks", "connects", "opens_socket", "sleeps", "crashes"),
        *("raises", "kills_parent", "takes_memory", "shares_memory", "changes_times"),
        *("says_too_much", "says_nothing", "says_text"),
    ],
)
def test_whatever_else_one_does_it_only_says_nothing(name: str) -> None:
    assert sandbox(name).outputs([ROWS]) == [None]
    assert not Path("/tmp/hubbub-sandbox-leak").exists()


def test_a_block_knows_nothing_of_the_others() -> None:
    """And a bad one changes nothing for them."""
    blocks = [ROWS, {"x": ("real", [2.0, 2.0, 2.0])}, ROWS]
    assert sandbox("remembers", lanes=2).outputs(blocks) == [(1.0,)] * 3
    worse = sandbox("crashes").outputs([{"x": ("real", [1.0])}, ROWS, {"x": ("real", [1.0])}])
    assert worse == [(1.0,), None, (1.0,)]


def test_what_cannot_be_loaded_is_said_before_any_row() -> None:
    with pytest.raises(ProgramError, match="ended while it was loaded"):
        sandbox("exits").check()
    with pytest.raises(ProgramError, match="SyntaxError"):
        Sandbox(program=Program(text="def f(:", name="f"), width=1, rehearsal=MADE_UP).check()
    with pytest.raises(ProgramError, match="AttributeError"):
        Sandbox(program=Program(text="x = 1", name="f"), width=1, rehearsal=MADE_UP).check()
    text = f"open({str(Path(__file__).resolve())!r})\ndef f(rows): return 1.0"
    with pytest.raises(ProgramError, match="PermissionError"):
        Sandbox(program=Program(text=text, name="f"), width=1, rehearsal=MADE_UP).check()


def test_nothing_runs_on() -> None:
    sandbox("sleeps").outputs([ROWS, ROWS])
    mine = [
        name
        for name in os.listdir("/proc")
        if name.isdigit() and b"sandboxed.py" in _command(name) and _parent(name) == os.getpid()
    ]
    assert mine == []


def _command(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(process: str) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


AWK = shutil.which("awk")


@pytest.mark.skipif(AWK is None, reason="awk is not installed")
def test_commands_read_a_table_and_print_numbers() -> None:
    def said(script: str, width: int = 1) -> Any:
        program = Program.of([os.path.realpath(str(AWK)), "-F,", script])
        return Sandbox(program=program, width=width, rehearsal=MADE_UP, seconds=0.6).outputs([ROWS])

    assert said("NR > 1 { s += $1 } END { print s / (NR - 1) }") == [(3.0,)]
    assert said('NR == 1 { print ($1 == "x"), 2 }', 2) == [(1.0, 2.0)]
    assert said('BEGIN { print "three" }') == [None]
    assert said("BEGIN { print 1, 2 }") == [None]
    assert said('BEGIN { print 1 > "/tmp/hubbub-sandbox-leak"; print 2 }') in ([None], [(2.0,)])
    assert said('BEGIN { while ((getline line < "/etc/passwd") > 0) n++; print n + 0 }') == [(0.0,)]
    assert said('BEGIN { print system("true") }') != [(0.0,)], "no other process is started"
    assert said("BEGIN { while (1) x++ }") == [None]
    assert not Path("/tmp/hubbub-sandbox-leak").exists()


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
