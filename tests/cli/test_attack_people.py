"""``hubbub attack``, continued: on a naive target each ends with 1, on Hubbub with 0."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.cli.app import app

SMALL = {
    "tracing": ("--people", "100", "--attributes", "2000"),
    "model": ("--people", "100"),
    "perceptron": ("--people", "100", "--runs", "20", "--epsilon", "1/10"),  # at ε = 1 it tells a little, as it may
    "floats": ("--answers", "60"),
    "precision": ("--answers", "60"),
    "errors": ("--people", "40"),
}


def ran(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["attack", *arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("target", ["naive", "hubbub"])
def test_it_works_on_the_naive_target_alone(name: str, target: str) -> None:
    if name in {"model", "perceptron"}:
        pytest.importorskip("sklearn", reason="Models are scikit-learn's kind.")
    status, told = ran(name, *SMALL[name], "--target", target, "--json")
    assert status == (1 if target == "naive" else 0), told
    found = json.loads(told)
    assert found["works"] is (target == "naive")
    assert ("Hubbub" in found["title"]) is (target == "hubbub")


def test_the_clock_is_read(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    page = tmp_path / "times.html"
    status, told = ran("timing", "--people", "4", "--repeats", "1", "--html", str(page))
    assert status == 4, "of four people, the clock is right about all now and then"
    assert "0 of 4 questions were refused" in told
    assert "too few guesses to tell from chance" in told
    assert "data:image/png" in page.read_text(encoding="utf-8")


def test_the_clock_of_hubbub_is_read() -> None:
    status, told = ran("timing", "--people", "4", "--repeats", "1", "--target", "hubbub")
    assert status == 4
    assert "0 of 4 questions were refused" in told


def test_a_price_is_taken_exactly() -> None:
    status, told = ran("floats", "--answers", "5", "--target", "hubbub", "--epsilon", "1/3")
    assert status == 0
    assert "ε = 0.333333" in told
