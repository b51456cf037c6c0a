"""The tool that audits everything again and again: it counts, it says so, and it goes on where it ended."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tools import audit


def test_nobody_is_accused(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main(["--runs", "2", "--only", "randomized response, basic", "--workers", "1"]) == 0
    assert "0 accusations in 2 audits of 1 subjects" in " ".join(capsys.readouterr().out.split())


def test_an_accusation_fails(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [("geometric", 0, None, 1.0), ("geometric", 1, "geometric: claims too much", 1.0)]
    with mock.patch.object(audit, "done", return_value=iter(runs)):
        assert audit.main(["--runs", "2", "--only", "geometric"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "seed 1: geometric: claims too much" in told
    assert "1 accusations" in told


def test_questions_are_audited_too() -> None:
    assert {"geometric", "gate", "question 1"} <= audit.subjects().keys()


def faked(pool: Any, wanted: Any) -> Iterator[tuple[str, int, str | None, float]]:
    """A subject that is accused at seed 3, and others that never are; each takes two seconds."""
    for name, seed in wanted:
        yield name, seed, "bad: claims too much" if (name, seed) == ("bad", 3) else None, 2.0


def piece(*arguments: str, names: tuple[str, ...] = ("bad", "good")) -> int:
    known = mock.patch.object(audit, "subjects", return_value=dict.fromkeys(names))
    with mock.patch.object(audit, "done", faked), known:
        return audit.main(list(arguments))


def test_pieces_are_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tally.json"
    assert piece("--runs", "3", "--tally", str(file)) == 0
    assert json.loads(file.read_text())["total"] == {"audits": 6, "subjects": 2, "accusations": 0, "seconds": 12.0}
    assert piece("--runs", "5", "--tally", str(file)) == 1
    held = json.loads(file.read_text())
    assert held["runs"] == {"bad": 5, "good": 5}
    assert held["accusations"] == {"bad": 1, "good": 0}
    assert held["seconds"] == {"bad": 10.0, "good": 10.0}
    assert held["reports"] == ["seed 3: bad: claims too much"]
    assert [(one["runs"], one["done"]) for one in held["pieces"]] == [(3, 6), (5, 4)]
    assert held["total"] == {"audits": 10, "subjects": 2, "accusations": 1, "seconds": 20.0}
    assert "1 accusations in 10 audits of 2 subjects" in " ".join(capsys.readouterr().out.split())
    assert piece("--runs", "5", "--tally", str(file)) == 1, "what was found before stays found"
    assert json.loads(file.read_text())["runs"] == {"bad": 5, "good": 5}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tally.json"]


def test_a_new_subject_has_all_its_runs(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"
    assert piece("--runs", "2", "--tally", str(file)) == 0
    assert piece("--runs", "3", "--tally", str(file), names=("good", "new")) == 0
    assert json.loads(file.read_text())["runs"] == {"bad": 2, "good": 3, "new": 3}
    missing = audit.Tally(runs={"good": 1}).lacking(["good", "new"], 2)
    assert missing == [("new", 0), ("good", 1), ("new", 1)], "all once before any twice"


def test_what_was_done_is_kept_when_a_piece_is_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"

    def cut(pool: Any, wanted: Any) -> Iterator[tuple[str, int, str | None, float]]:
        yield "good", 0, None, 2.0
        raise KeyboardInterrupt

    with mock.patch.object(audit, "done", cut), pytest.raises(KeyboardInterrupt):
        audit.main(["--runs", "3", "--tally", str(file), "--only", "no subject is called so"])
    held = json.loads(file.read_text())
    assert held["runs"] == {"good": 1}
    assert held["pieces"][0]["done"] == 1
