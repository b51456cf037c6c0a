"""The torture itself: it kills, it looks, it fails when it should, and it leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import torture
from tools.torture import PATIENCE, Tally, main

ROOT = Path(__file__).resolve().parents[2]


def tortured(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """The tool at work, with its temporary files in a folder of its own."""
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    here = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": paths, "COLUMNS": "120"}
    command = [sys.executable, "-m", "tools.torture", "--store", "sqlite", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=here, stdout=subprocess.PIPE, text=True, start_new_session=True)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_short_run_kills_checks_and_cleans_up(tmp_path: Path) -> None:
    with tortured(tmp_path, "--minutes", "0", "--seed", "3") as running:
        text, _ = running.communicate()
    assert running.returncode == 0, text
    figures = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in text.splitlines() if "│" in line}
    assert figures["rounds"] == "2"
    assert figures["of them races of 16"] == "1"
    assert int(figures["kills"]) > 0
    assert int(figures["charges"]) > 0
    assert int(figures["copies checked"]) > 0
    assert figures["violations"] == "0"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="its children are found in /proc")
def test_a_stopped_run_leaves_nothing_behind(tmp_path: Path) -> None:
    with tortured(tmp_path, "--minutes", "10") as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("seed ")
        while not list(tmp_path.iterdir()) and running.poll() is None:
            time.sleep(0.05)
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        running.send_signal(signal.SIGTERM)
        running.communicate()
    assert running.returncode == 1
    assert children
    assert [child for child in children if alive(int(child))] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tally", "failed"),
    [
        (Tally(), False),
        (Tally(longest=PATIENCE), False),
        (Tally(longest=PATIENCE + 0.001), True),
        (Tally(violations=["a unit was lent"]), True),
    ],
)
def test_it_fails_for_a_violation_and_for_a_long_wait_and_says_so(
    tally: Tally, failed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torture, "torture", lambda *_, **__: {"sqlite": tally})
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["--store", "sqlite"]) == failed
    finally:
        signal.signal(signal.SIGTERM, before)
    text = capsys.readouterr().out
    assert ("a unit was lent" in text) is bool(tally.violations)
    assert ("somebody has waited" in text) is (tally.longest > PATIENCE)
