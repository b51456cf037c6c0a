"""The main job, on a smaller hospital."""

from pathlib import Path

import pytest

from examples import demo


def test_the_demo_asks_answers_refuses_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo.main(stays=5000, folder=tmp_path / "hospital")
    shown = capsys.readouterr().out
    for title, question, _ in demo.QUESTIONS:
        assert shown.count(title) == 2, title
        assert question.split()[1] in shown
    assert "charges before 5, after 5" in shown
    for code in ("[not-allowed]", "[missing-keys]"):
        assert code in shown
    assert "chain and balances verified; 7 charges" in shown
    assert "Published once" in shown
    assert (tmp_path / "hospital" / "publish.html").read_text(encoding="utf-8").count("<svg") == 2
    homes = (tmp_path / "hospital" / "homes.html").read_text(encoding="utf-8")
    assert "homes.html" in shown
    assert "Where patients live" in homes
    report = (tmp_path / "hospital" / "report.html").read_text(encoding="utf-8")
    assert report.count("<h2>") == len(demo.QUESTIONS)
    assert report.count("<table>") == len(demo.QUESTIONS)
    if "matplotlib" in shown or "data:image/png" in report:
        assert report.count("data:image/png") == len(demo.QUESTIONS) - 1
