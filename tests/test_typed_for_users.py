"""Whoever checks their own code with mypy is told of their own mistakes, and of none that is no mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = """\
from fractions import Fraction

import hubbub as hb

five = hb.Budget(5)
exact = hb.Budget(epsilon=Fraction(1, 3), delta=1e-9)
swapped = hb.Budget(1, neighbors=hb.Neighbors.REPLACE_ONE)
total: Fraction = five.epsilon + exact.delta


def ask(path: str) -> list[dict[str, object]]:
    with hb.open(path, unit="id", budget=1, columns={"age": int, "cost": {"bounds": (0, 500)}}) as db:
        db.sql("SELECT count(*) FROM stays", epsilon=0.5)
        return db.sql("SELECT count(*) FROM stays", epsilon=Fraction(1, 2)).to_dicts()
"""
WRONG = 'import hubbub as hb\n\nhb.Budget("5")\nhb.Budget(5, 1e-9)\nhb.open("x", unit="id", budget="1")\n'


def check(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy", reason="mypy is not installed")
    (folder / "mine.py").write_text(code)
    asked = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "mine.py"]
    return subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)


def test_what_is_right_passes(tmp_path: Path) -> None:
    done = check(RIGHT, tmp_path)
    assert done.returncode == 0, done.stdout


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    done = check(WRONG, tmp_path)
    assert done.returncode == 1
    assert [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line] == ["3", "4", "5"]
