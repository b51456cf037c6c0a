"""The documentation cannot drift: what exists is described, and what is shown runs."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hubbub import errors
from hubbub.mechanisms.specimens import registry

ROOT = Path(__file__).resolve().parents[1]
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.exists()]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (ROOT / name).read_text()


def error_classes(root: type[errors.HubbubError] = errors.HubbubError) -> list[type[errors.HubbubError]]:
    return [root, *(found for child in root.__subclasses__() for found in error_classes(child))]


def targets(makefile: str) -> list[str]:
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    return phony.group(1).split() if phony else []


def program(text: str) -> str:
    """The Python blocks of a page, one after the other, each at its own line so that tracebacks point to the page."""
    out: list[str] = []
    for block in BLOCK.finditer(text):
        out += [""] * (text[: block.start(1)].count("\n") - len(out))
        out += block.group(1).splitlines()
    return "\n".join(out) + "\n" if out else ""


def run(code: str, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / (Path(name).stem + "_page.py")
    file.write_text(code)
    here = os.environ | {"HUBBUB_STATE": str(folder / "state")}
    return subprocess.run([sys.executable, file], cwd=folder, capture_output=True, text=True, check=False, env=here)


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.code)
def test_every_error_code_has_cause_and_remedy(error: type[errors.HubbubError]) -> None:
    heading = f"## `{error.code}`"
    _, found, after = page("docs/errors.md").partition(heading + "\n")
    assert found, f"docs/errors.md has no section {heading}"
    section = after.partition("\n## ")[0]
    for word in (f"`{error.__name__}`", "**Cause.**", "**Remedy.**"):
        assert word in section


def test_no_error_page_for_what_cannot_happen() -> None:
    described = set(re.findall(r"^## `([a-z-]+)`$", page("docs/errors.md"), re.MULTILINE))
    assert described == {error.code for error in error_classes()}


def test_error_codes_are_not_shared() -> None:
    codes = [error.code for error in error_classes()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("target", targets((ROOT / "Makefile").read_text()))
def test_every_make_target_is_described(target: str) -> None:
    readme = (ROOT / "README.md").read_text() if (ROOT / "README.md").exists() else ""
    assert f"make {target}" in readme + page("CONTRIBUTING.md")


def test_make_has_its_targets() -> None:
    expected = {"help", "demo", "test", "lint", "bench", "docs", "mutate", "clean"}
    assert expected <= set(targets((ROOT / "Makefile").read_text()))


def test_every_mechanism_is_described() -> None:
    text = page("docs/mechanisms.md")
    assert registry.SPECIMENS
    names = {type(specimen.mechanism).__name__ for specimen in registry.build_specimens()}
    assert {name for name in names if not re.search(rf"`{name}\b", text)} == set()


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = page("docs/dependencies.md")
    extras = project["optional-dependencies"]
    names = [*project["dependencies"], *(name for extra in extras.values() for name in extra)]
    packages = {re.split(r"[\[<>=]", name)[0] for name in names} - {"hubbub"}
    missing = {name for name in (*packages, *extras) if f"`{name}`" not in text}
    assert missing == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_python_shown_runs(path: Path, tmp_path: Path) -> None:
    code = program(path.read_text())
    compile(code, path.name, "exec")
    for package in re.findall(r"^import (pandas|polars|pyarrow)\b", code, re.MULTILINE):
        pytest.importorskip(package, reason=f"{path.name} shows {package}, which is not installed")
    if code:
        done = run(code, path.name, tmp_path)
        assert done.returncode == 0, done.stderr


def test_pages_run_one_after_the_other_in_one_folder(tmp_path: Path) -> None:
    """A newcomer pastes them as they come: no page may trip over a file, a ledger or an account of another."""
    for path in PAGES:
        code = program(path.read_text())
        if not re.search(r"hb\.open|Ledger\(", code):
            continue
        for package in re.findall(r"^import (pandas|polars|pyarrow)\b", code, re.MULTILINE):
            pytest.importorskip(package, reason=f"{path.name} shows {package}, which is not installed")
        done = run(code, path.name, tmp_path)
        assert done.returncode == 0, f"{path.name} after the pages before it: {done.stderr}"


def test_a_broken_page_would_be_noticed(tmp_path: Path) -> None:
    text = "# Page\n\n```python\nx = 1\n```\n\n```text\nnot python\n```\n\n```python\nassert x == 2\n```\n"
    done = run(program(text), "page.md", tmp_path)
    assert done.returncode == 1
    assert "line 12" in done.stderr
    assert "AssertionError" in done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+\.(?:md|py|toml|png|svg))(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []
