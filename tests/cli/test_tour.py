"""The tour: its list, a few quick steps, pictures, and pages made from it."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.cli.app import app
from hubbub.cli.lab.tours import STEPS
from tools import gallery

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("suppression", "linkage", "anonymity", "low-bits", "laplace", "geometric", "median", "planning", "cube")


def ran(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["tour", *arguments])
    return done.exit_code, done.output


def test_the_list() -> None:
    status, told = ran("--list")
    assert status == 0
    assert [line.split()[0] for line in told.strip().split("\n")] == list(STEPS)


@pytest.mark.parametrize("name", QUICK)
def test_a_step_shows_a_table(name: str) -> None:
    seen = STEPS[name].run()
    assert seen.says
    assert seen.rows
    assert {len(row) for row in seen.rows} == {len(seen.columns)}


def test_steps_and_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    status, told = ran("--step", "anonymity", "--step", "gate", "--out", str(tmp_path / "pictures"))
    assert status == 0
    assert "1 of 2" in told
    assert "AIDS" in told
    assert "budget-exceeded" in told
    assert (tmp_path / "pictures" / "anonymity.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "pictures" / "gate.png").exists()


def test_a_step_that_does_not_exist() -> None:
    status, told = ran("--step", "nowhere")
    assert status == 2
    assert "hubbub tour --list" in told


def test_a_page_of_the_gallery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason='Pictures need matplotlib: pip install "hubbub[plot]"')
    gallery.main(["--step", "geometric", "--out", str(tmp_path)])
    page = (tmp_path / "geometric.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == "geometric.md\n"
    assert "| 2 | 0.4621 | 0.4621 |" in page
    assert "TruncatedGeometric" in page
    assert "(geometric.png)" in page
    assert (tmp_path / "geometric.png").stat().st_size < 60_000
    assert (tmp_path / "index.md").read_text(encoding="utf-8").count("\n- [") == len(STEPS)


def test_every_page_has_its_place_in_the_documentation() -> None:
    told = re.findall(r"^ +- .*: gallery/(.+)\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert told == ["index", *STEPS]
