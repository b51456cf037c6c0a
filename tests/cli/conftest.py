"""A command line with a state directory of its own."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hubbub.cli.app import app
from hubbub.ledger import Ask, Ledger, Marks
from hubbub.privacy.events.event import DiscreteGaussianEvent

Run = Callable[..., Result]

EVIL = "how many\x1b[31m [bold]x[/bold] \u202egnirts\n=1"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HUBBUB_LEDGER", "COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HUBBUB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def run() -> Run:
    """Runs a command and gives back what a person would see."""

    def run(*arguments: object, **options: Any) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)

    return run


@pytest.fixture
def ledger(tmp_path: Path, run: Run) -> Path:
    """A ledger with an account "people", granted to ann, and one answered and one open question."""
    path = tmp_path / "ledger.db"
    assert run("budget", "open", path, "people", "--epsilon", "1", "--delta", "1e-6").exit_code == 0
    assert run("budget", "grant", path, "people", "ann").exit_code == 0
    with Ledger(path, marks=Marks(tmp_path / "state")) as opened:
        opened.settle(opened.reserve(asked(EVIL)), "=41")
        opened.reserve(asked("how old"))
    return path


def asked(question: str, **changes: Any) -> Ask:
    """A question to "people" by ann."""
    fields: dict[str, Any] = {
        "account": "people",
        "question": question,
        "events": (DiscreteGaussianEvent(sigma=Fraction(20)),),
        "epsilon": Fraction(1, 10),
        "principal": "ann",
    }
    return Ask(**(fields | changes))
