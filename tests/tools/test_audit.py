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


def faked(pool: Any, names: Any, seeds: Any) -> Iterator[tuple[str, int, str | None, float]]:
    """A subject that is accused at seed 3, and one that never is; each takes two seconds."""
    for seed in seeds:
        yield "bad", seed, "bad: claims too much" if seed == 3 else None, 2.0
        yield "good", seed, None, 2.0


def piece(*arguments: str) -> int:
    with mock.patch.object(audit, "done", faked):
        return audit.main([*arguments, "--only", "no subject is called so"])


def test_pieces_are_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tally.json"
    assert piece("--runs", "3", "--tally", str(file)) == 0
    assert json.loads(file.read_text())["total"] == {"audits": 6, "subjects": 2, "accusations": 0, "seconds": 12.0}
    assert piece("--runs", "2", "--first-seed", "3", "--tally", str(file)) == 1
    held = json.loads(file.read_text())
    assert held["runs"] == {"bad": 5, "good": 5}
    assert held["accusations"] == {"bad": 1, "good": 0}
    assert held["seconds"] == {"bad": 10.0, "good": 10.0}
    assert held["reports"] == ["seed 3: bad: claims too much"]
    assert [(one["first_seed"], one["runs"], one["done"]) for one in held["pieces"]] == [(0, 3, 6), (3, 2, 4)]
    assert held["total"] == {"audits": 10, "subjects": 2, "accusations": 1, "seconds": 20.0}
    assert "1 accusations in 10 audits of 2 subjects" in " ".join(capsys.readouterr().out.split())
    assert piece("--runs", "1", "--first-seed", "5", "--tally", str(file)) == 1, "what was found before stays found"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tally.json"]


def test_what_was_done_is_kept_when_a_piece_is_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"

    def cut(pool: Any, names: Any, seeds: Any) -> Iterator[tuple[str, int, str | None, float]]:
        yield "good", 0, None, 2.0
        raise KeyboardInterrupt

    with mock.patch.object(audit, "done", cut), pytest.raises(KeyboardInterrupt):
        audit.main(["--runs", "3", "--tally", str(file), "--only", "no subject is called so"])
    held = json.loads(file.read_text())
    assert held["runs"] == {"good": 1}
    assert held["pieces"][0]["done"] == 1
