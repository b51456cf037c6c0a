"""The same commands on a PostgreSQL URL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.ledger import Ledger, Marks
from tests.cli.conftest import Run, asked
from tests.postgres import running_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server() as server:
        yield server.fresh_schema()


def test_every_command_works_on_a_url(run: Run, url: str, tmp_path: Path) -> None:
    assert run("budget", url).stderr.startswith("[ledger-unreachable] ")
    assert run("budget", "open", url, "people", "--epsilon", "1", "--delta", "1e-6").exit_code == 0
    assert run("budget", "grant", url, "people", "ann", "--days", "3").exit_code == 0
    with Ledger(url, marks=Marks(tmp_path / "state")) as ledger:
        ledger.settle(ledger.reserve(asked("how many")), "41")
    shown = run("budget", url)
    assert shown.exit_code == 0
    assert "people" in shown.output
    verified = run("ledger", "verify", env={"HUBBUB_LEDGER": url})
    assert verified.output.startswith("The ledger is whole: 5 entries, 1 account;")
    assert "of entry 4" in run("ledger", "show", url).output
    assert len(run("ledger", "export", url).output.splitlines()) == 5
    assert "none too small" in " ".join(run("ledger", "report", url).output.split())
    adopted = run("ledger", "adopt", url, "--yes")
    assert adopted.exit_code == 0
    assert "Adopted at entry 6." in adopted.output
    assert run("ledger", "verify", url).exit_code == 0
    assert run("ledger", "forget", url, "--yes").output.endswith("Forgotten.\n")
