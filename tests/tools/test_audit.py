"""The tool that audits everything again and again: it counts, and it says so."""

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
