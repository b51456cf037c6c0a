"""``hubbub attack`` and ``hubbub anonymity`` from the outside: text, JSON, pages, exit statuses."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hubbub.attack.composition import lecture
from hubbub.cli.app import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = ["zip,age,sex,illness", "01301,28,f,flu", "01301,28,f,cold", "01302,40,m,flu", "01309,44,m,gout"]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["suppression"], 1, "3 of 27 hidden counts can only be one number."),
        (["suppression", "--most", 10], 1, "a hidden count is at most 10"),
        (["composition"], 1, "has AIDS; neither release alone says so"),
        (["composition", "--example", "hospitals"], 1, "has HIV; neither release alone says so"),
        (["composition", "--person", "zip=13012", "--person", "age=45"], 0, "one of: Cancer, Viral Infection"),
        (["reconstruction", "--people", 60], 1, "100.0% of the bits were found, and"),
        (["reconstruction", "--people", 200, "--target", "noised", "--size", 6, "--seed", 2], 1, "94.5% of the bits"),
        (["reconstruction", "--people", 10], 4, "too few guesses to tell from chance"),
        (["reconstruction", "--people", 60, "--target", "rounded", "--size", 2, "--program"], 1, "rounded to 2"),
        (["reconstruction", "--people", 60, "--target", "noised", "--size", 1], 1, "noise up to 1"),
        (["reconstruction", "--people", 60, "--target", "hubbub", "--epsilon", "1/2"], 0, "Hubbub at ε = 0.5 in all"),
        (["reconstruction", "--people", 60, "--target", "hubbub", "--epsilon", 4000], 1, "better than chance"),
        (["marginals", "--people", 12], 1, "exact counts"),
        (["marginals", "--people", 30, "--target", "hubbub"], 0, "not significantly better than chance"),
        (["marginals", "--people", 12, "--target", "hubbub"], 4, "too few guesses to tell from chance"),
        (["differencing", "--people", 30], 1, "100.0% of 30 marks"),
        (["differencing", "--people", 30, "--target", "hubbub"], 0, "Hubbub at ε = 1 in all"),
        (["averaging"], 1, "the exact number, 412, is known"),
        (["averaging", "--target", "hubbub", "--times", 20], 0, "asking again tells nothing new"),
        (["averaging", "--target", "hubbub", "--reworded", "--each", "1/4"], 0, "After 4 answers the target refused"),
    ],
    ids=lambda one: " ".join(map(str, one)) if isinstance(one, list) else "",
)
def test_what_works_and_what_does_not(arguments: list[object], status: int, told: str) -> None:
    found = run("attack", *arguments)
    assert found.exit_code == status, found.output
    assert told in found.output


def test_rate_chance_and_significance_are_printed() -> None:
    arguments = ("attack", "reconstruction", "--people", 200, "--target", "noised", "--size", 6, "--seed", 2)
    shown = " ".join(run(*arguments).output.split())
    assert "94.5% of the bits were found, and 51.0% by chance." in shown
    assert "189 of 200 guesses are right (94.5%); without the release 51.0% would be." in shown
    assert "better than chance at the level 1e-06." in shown
    rate = json.loads(run(*arguments, "--json").stdout)["rate"]
    assert (rate["right"], rate["trials"], rate["chance"], rate["level"]) == (189, 200, 0.51, 1e-6)
    assert 0 < rate["p_value"] < 1e-36
    assert rate["is_better"]


def test_as_json_and_as_a_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    found = run("attack", "composition", "--json", "--html", page)
    assert found.exit_code == 1
    assert json.loads(found.stdout)["numbers"] == {"first": 3, "second": 4, "both": 1}
    assert "data:image/png" in page.read_text(encoding="utf-8")


def test_two_files_side_by_side(tmp_path: Path) -> None:
    for name, table in zip(("four", "six"), lecture(), strict=True):
        with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(table[0]))
            writer.writeheader()
            writer.writerows(table)
    files = [tmp_path / "four.csv", tmp_path / "six.csv"]
    known = ["--on", "zip", "--on", "age", "--sensitive", "condition"]
    found = run("attack", "composition", *files, *known, "--person", "zip=13012", "--person", "age=28")
    assert found.exit_code == 1
    assert "has AIDS" in found.output
    assert run("attack", "composition", files[0], *known).exit_code == 2


def test_linkage(rows: Path, tmp_path: Path) -> None:
    found = run("attack", "linkage", rows, "--on", "zip", "--on", "age")
    assert found.exit_code == 1
    assert "2 of 4 people (50.0%) are alone with their zip + age." in found.output
    names = tmp_path / "names.csv"
    names.write_text("name,zip,age\nAnn,01302,40\nBob,01301,28\n")
    found = run("attack", "linkage", rows, names, "--on", "zip", "--on", "age", "--sensitive", "illness")
    assert found.exit_code == 1
    assert "1 of 2 people are linked to one row, and 1 have their illness told." in found.output


def test_a_log(rows: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.sql"
    log.write_text("sex = 'm'\nSELECT count(*) FROM t WHERE sex = 'm' AND age <> 44;\n\nlog(age) = 2\n")
    found = run("attack", "differencing", log, "--table", rows, "--few", 1)
    assert found.exit_code == 1
    assert "Left out: " in found.output
    assert "[sex = 'm'] − [SELECT count(*) FROM t WHERE sex = 'm' AND age <> 44]" in found.output
    guessed = run("attack", "differencing", log, "--people", 1000, "--values", "age=1000", "--values", "sex=2")
    assert guessed.exit_code == 1
    assert run("attack", "differencing", log, "--people", 10**6, "--values", "age=100").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["attack", "suppression", "nowhere.csv"],
        ["attack", "linkage", "nowhere.csv", "--on", "zip"],
        ["attack", "composition", "--person", "zip"],
        ["attack", "differencing", "nowhere.sql"],
        ["anonymity", "measure", "nowhere.csv", "--quasi", "zip"],
    ],
    ids=" ".join,
)
def test_what_is_refused(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_measuring(rows: Path) -> None:
    known = ["anonymity", "measure", rows, "--quasi", "zip", "--quasi", "age", "--sensitive", "illness"]
    found = run(*known)
    assert found.exit_code == 0, found.output
    assert "Not covered: a second release" in found.output
    assert run(*known, "--k", 2).exit_code == 1
    assert run(*known, "--k", 1, "--l", 1, "--t", 0.9, "--entropy", 1).exit_code == 0
    assert run(*known, "--recursive", "3,2").exit_code == 1
    assert run(*known, "--recursive", "3").exit_code == 2
    assert json.loads(run(*known, "--json").stdout)["numbers"]["k"] == 1


def test_making(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    known = [
        "anonymity",
        "make",
        rows,
        *("--quasi", "zip"),
        *("--quasi", "age"),
        "--text",
        "zip",
        "--k",
        2,
        "--out",
        out,
    ]
    found = run(*known, "--sensitive", "illness", "--l", 2, "--levels", "zip=digits:5", "--levels", "age=ranges:10,20")
    assert found.exit_code == 0, found.output
    assert "Not covered: a second release" in found.output
    assert "Columns that were dropped: sex." in found.output
    assert out.read_text().splitlines()[:2] == ["zip,age,illness", "0130*,[20-30),flu"]
    assert run(*known).exit_code == 2  # it is there already
    out.unlink()
    cut = run(*known, "--keep", "sex")
    assert cut.exit_code == 0, cut.output
    assert out.read_text().splitlines()[:2] == ["zip,age,sex", "01301,28,f"]
    out.unlink()
    assert run(*known, "--levels", "zip=stars").exit_code == 2
    assert run(*known, "--suppress", 0.1).exit_code == 2
