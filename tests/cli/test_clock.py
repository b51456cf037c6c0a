"""The clock on long questions: elapsed time against the limit, and nothing else."""

import io

import pytest
from rich.console import Console
from rich.progress import Task

from hubbub.cli import printing
from hubbub.session.stages import tell


def at(seconds: float, clock: "printing._Clock") -> str:
    now = [0.0]
    task = Task(id=0, description="", total=60.0, completed=7, _get_time=lambda: now[0])  # type: ignore[arg-type]
    task.start_time, now[0] = 0.0, seconds
    return clock.render(task).plain


def test_it_tells_the_time_and_the_limit() -> None:
    clock = printing._Clock()
    assert at(0.99, clock) == ""
    assert at(1.0, clock) == "1 s of at most 60 s"
    assert at(59.6, clock) == "60 s of at most 60 s"


def test_it_tells_the_stage() -> None:
    task = Task(id=0, description="buying bounds", total=60.0, completed=7, _get_time=lambda: 2.0)  # type: ignore[arg-type]
    task.start_time = 0.0
    assert printing._Clock().render(task).plain == "buying bounds: 2 s of at most 60 s"


def test_it_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (False, True):
        out = io.StringIO()
        screen = Console(file=out, force_terminal=terminal, force_interactive=terminal, _environ={"TERM": "xterm"})
        monkeypatch.setattr(printing, "console", lambda *, stderr=False, screen=screen: screen)
        with printing.show_clock(60.0):
            tell("buying bounds")
        assert bool(out.getvalue()) is terminal
