"""The mutation tester itself: it makes the edits it promises, and can tell a test that looks from one that does not."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.operators import mutants
from tools.mutants.report import Argument, Judgement, read_arguments
from tools.mutants.survey import Baseline
from tools.mutants.workers import Verdict
from tools.mutate import Suite, sample

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
"""A docstring with 1 < 2 in it."""

import functools

LIMIT = 5


def clamp(value: int, low: int, high: int) -> int:
    if low > high:
        raise ValueError(f"{low} > {high + 1}")
    return min(max(value, low), high)


def unlooked(value: int) -> int:
    return value + 1


def spin(count: int) -> int:
    while count > 0:
        count -= 1
    return count


@functools.cache
def remembered(value: int) -> int:
    return value * 3


def prepared(value: int) -> int:
    return value - 3


def elsewhere(value: int) -> int:
    return value > 3
'''
TESTS = """
import subprocess
import sys
import pytest
from sample.numbers import LIMIT, clamp, prepared, remembered, spin, unlooked

def test_goes_there_and_looks_at_nothing():
    clamp(0, 0, 0)

def test_falls_and_takes_the_tracer_along():
    def fall():
        fall()
    with pytest.raises(RecursionError):
        fall()

def test_clamp():
    assert [clamp(value, 0, 2) for value in (-1, 0, 1, 2, 3)] == [0, 0, 1, 2, 2]
    assert clamp(5, 1, 1) == 1

def test_refusal():
    with pytest.raises(ValueError):
        clamp(0, 1, 0)

def test_unlooked():
    unlooked(1)

def test_spin():
    assert spin(3) == 0

def test_first_to_ask():
    remembered(2)

def test_asked_again():
    assert remembered(2) == 6

@pytest.fixture(scope="module")
def made():
    return prepared(7)

def test_has_it_made(made):
    assert made

def test_looks_at_it(made):
    assert made == 4

def test_constant():
    assert LIMIT == 5

def test_another_process():
    code = "from sample.numbers import elsewhere; assert [elsewhere(n) for n in (3, 4)] == [False, True]"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


def edits(source: str, **more: frozenset[str]) -> set[tuple[str, str]]:
    return {(mutant.before, mutant.after) for mutant in mutants("m.py", source, **more)}


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        ("x = a < b", "a < b", "(a <= b)"),
        ("x = a >= b", "a >= b", "(a > b)"),
        ("x = a == b", "a == b", "(a != b)"),
        ("x = a <= b < c", "a <= b < c", "(a <= b <= c)"),
        ("x = a + b", "a + b", "(a - b)"),
        ("x = a * b", "a * b", "(a / b)"),
        ("x = a // b", "a // b", "(-(-a // b))"),
        ("x = min(a, b, c)", "min", "max"),
        ("x = math.floor(a)", "math.floor", "math.ceil"),
        ("x = (a > b).all()", "(a > b).all", "(a > b).any"),
        ("x = 7", "7", "(3)"),
        ("x = not a", "not a", "(a)"),
        ("x = a and b", "a and b", "(a or b)"),
        ("if a:\n    raise ValueError", "a", "(False)"),
        ("if a:\n    x = 1", "a", "(True)"),
        ("x = a if b else c", "a if b else c", "(c)"),
        ("charge(a)", "charge(a)", "pass"),
        ("x += a", "x += a", "pass"),
        ("x += a", "x += a", "x -= a"),
        ("x = min(max(a, 0), b)", "max(a, 0)", "(a)"),
        ("x = np.clip(a, 0, b)", "np.clip(a, 0, b)", "(a)"),
        ("x = np.nextafter(a, b)", "np.nextafter(a, b)", "(a)"),
        ("x = positive('x', x)", "positive('x', x)", "(x)"),
        ("x = f(a, side='left')", "f(a, side='left')", "(f(a, side='right'))"),
    ],
)
def test_makes_each_kind_of_edit(source: str, before: str, after: str) -> None:
    assert (before, after) in edits(source)


def test_swaps_directions_only_where_the_other_one_exists() -> None:
    source = "x = exp_rounded_up(y)"
    assert edits(source) == set()
    assert edits(source, helpers=frozenset({"exp_rounded_down"})) == {("exp_rounded_up", "exp_rounded_down")}


def test_fetches_a_swapped_name_that_was_not_imported() -> None:
    source = "from math import floor\nx = floor(-0.5)\n"
    (mutant,) = [mutant for mutant in mutants("m.py", source) if mutant.after == "ceil"]
    space: dict[str, object] = {}
    exec(mutant.source, space)
    assert space["x"] == 0


@pytest.mark.parametrize(
    "source",
    [
        "'''1 < 2'''",
        "x: Literal[1]",
        "def f(x: A[1]) -> B[2]: ...",
        "@dataclass(frozen=True)\nclass A: ...",
        "raise ValueError(1 + 2)",
        "x = f'{1 + 2}'",
        "x = 'a' if b < c else 'd'",
        "x = 'a' + b",
        "import a",
    ],
)
def test_leaves_alone_what_cannot_change_a_law(source: str) -> None:
    assert edits(source) == set()


def test_keeps_the_rest_of_the_text() -> None:
    source = "x = 'é'; y = a < b  # why\nz = (\n    a\n    * b\n)\n"
    texts = {mutant.after: mutant.source for mutant in mutants("m.py", source)}
    assert texts == {
        "(a <= b)": source.replace("a < b", "(a <= b)"),
        "(a / b)": source.replace("a\n    * b", "(a / b)"),
    }


def test_names_equal_edits_apart() -> None:
    found = mutants("m.py", "def f(a):\n    return g(1), g(1)\n\ndef h():\n    return 1\n")
    assert [(mutant.within, mutant.turn, mutant.span) for mutant in found] == [
        ("f", 1, (1, 2)),
        ("f", 2, (1, 2)),
        ("h", 1, (4, 5)),
    ]
    assert len({mutant.identity for mutant in found}) == len(found)


def test_a_sample_stays_the_same_when_other_code_changes() -> None:
    lines = [f"def f{number}(a, b):\n    return a < b" for number in range(40)]
    before = sample(mutants("m.py", "\n".join(lines)), 20)
    after = sample(mutants("m.py", "\n".join(["x = 1", *lines[:10], *lines[12:]])), 20)
    assert len(before) == len(after) == 20
    kept = {mutant.identity for mutant in before} & {mutant.identity for mutant in after}
    assert len(kept) >= 16
    assert [mutant.line for mutant in before] == sorted(mutant.line for mutant in before)
    whole = mutants("m.py", lines[0])
    assert sample(whole, len(whole)) == sample(whole, None) == whole


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "src/sample/__init__.py": "",
        "src/sample/numbers.py": SOURCE,
        "tests/numbers/test_numbers.py": TESTS,
        "pyproject.toml": '[tool.mutate]\ntargets = ["*.py"]\n[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n',
        "tools/mutants/argued.toml": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def mutate(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = ["--root", str(project), "--package", "sample", "--grace", "2"]
    command = [sys.executable, "-m", "tools.mutate", *settings, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


ARGUED = """
[[argued]]
module = "numbers.py"
within = "unlooked"
before = "value + 1"
after = "(value - 1)"
reason = "Nobody looks."

[[argued]]
module = "numbers.py"
within = "unlooked"
before = "1"
after = "(2)"
reason = "Nobody looks."
"""


def test_tells_survivors_from_the_killed(project: Path) -> None:
    first = mutate(project)
    assert first.returncode == 1, first.stdout + first.stderr
    report = (project / "tools/mutants/survivors.md").read_text()
    rows = [line for line in report.splitlines() if line.startswith("| `numbers.py")]
    assert [row.split(" | ")[1:4] for row in rows] == [
        ["`unlooked`", "`value + 1`", "`(value - 1)`"],
        ["`unlooked`", "`1`", "`(2)`"],
    ]
    assert all("not argued" in row for row in rows)
    assert (project / ".mutate/open.toml").read_text().count('reason = ""') == 2
    assert "(2 of them by the time limit), 2 survived, 0 without a test" in report

    (project / "tools/mutants/argued.toml").write_text(ARGUED)
    second = mutate(project)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "first without a mutant" in first.stdout
    assert "first without a mutant" not in second.stdout  # every verdict was remembered

    (project / "tests/numbers/test_numbers.py").write_text(TESTS.replace("unlooked(1)", "assert unlooked(1) == 2"))
    third = mutate(project)
    assert third.returncode == 1
    assert third.stdout.count("argued, and yet killed") == 2


def test_tries_the_most_telling_tests_first() -> None:
    (mutant, *_) = mutants("numbers.py", "def f(a):\n    return a + 1\n")
    seconds = {"tests/test_other.py::quick": 0.1, "tests/test_numbers.py::slow": 9.0, "tests/test_numbers.py::own": 0.1}
    far = {"tests/test_other.py::far": 0.01}
    reached = {test: {"numbers.py": [1]} for test in seconds} | {test: {"numbers.py": [7]} for test in far}
    baseline = Baseline(seconds=seconds | far, reached=reached, everywhere={})
    own, quick, slow = "tests/test_numbers.py::own", "tests/test_other.py::quick", "tests/test_numbers.py::slow"
    assert baseline.order(mutant, fame={}, patience=60) == [own, quick, slow]
    assert baseline.order(mutant, fame={quick: 1}, patience=60) == [quick, own, slow]
    assert baseline.order(mutant, fame={}, patience=1) == [own, quick]
    assert baseline.order(mutant, fame={}, patience=0) == [own]
    imported = replace(baseline, everywhere={"numbers.py": [1]})
    assert imported.order(mutant, fame={}, patience=60) == [own, quick, slow, *far]


def test_a_reason_may_cover_a_whole_function() -> None:
    found = mutants("m.py", "def f(a):\n    return a + 1\n\ndef g(a):\n    return a + 1\n")
    results = [(mutant, Verdict(status="survived")) for mutant in found]
    broad = Argument(module="m.py", within="f", reason="Nobody calls it.")
    judgement = Judgement.of(results, [broad], whole=found, partial=False)
    assert {mutant.within for mutant in judgement.open_cases} == {"g"}
    assert judgement.idle == []
    assert not judgement.good
    both = [broad, Argument(module="m.py", before="a + 1", reason="r"), Argument(module="m.py", before="1", reason="r")]
    assert Judgement.of(results, both, whole=found, partial=False).good


def test_an_argument_for_nothing_is_idle() -> None:
    found = mutants("m.py", "x = a + 1\n")
    killed = [(mutant, Verdict(status="killed")) for mutant in found]
    right, gone = (Argument(module="m.py", before=before, reason="r") for before in ("a + 1", "a + 2"))
    assert Judgement.of(killed, [right, gone], whole=found, partial=False).idle == [right, gone]
    assert Judgement.of(killed, [right, gone], whole=found, partial=True).idle == [right]
    assert Judgement.of(killed[1:], [right], whole=found, partial=False).idle == []


def test_a_reason_must_be_given(tmp_path: Path) -> None:
    (tmp_path / "argued.toml").write_text(ARGUED.replace("Nobody looks.", " "))
    with pytest.raises(SystemExit, match="without a reason"):
        read_arguments(tmp_path / "argued.toml")


def test_a_failing_suite_judges_nothing(project: Path) -> None:
    (project / "tests/numbers/test_numbers.py").write_text("def test_wrong():\n    assert False\n")
    done = mutate(project)
    assert done.returncode == 1
    assert "must pass before they can judge" in done.stderr
    assert not (project / "tools/mutants/survivors.md").exists()


def test_a_module_without_tests_is_all_survivors(project: Path) -> None:
    (project / "tests/numbers/test_numbers.py").unlink()
    (project / "tests/numbers").rmdir()
    done = mutate(project, "--module", "numbers", "--limit", "3")
    assert done.returncode == 1
    assert done.stdout.count("untested: numbers.py") == 3


def test_a_stopped_run_leaves_nothing_behind(project: Path) -> None:
    endless = "import os, pathlib, time\n\ndef test_endless():\n    {}\n    time.sleep(600)\n"
    note = project / "pid"
    (project / "tests/numbers/test_numbers.py").write_text(
        endless.format(f"pathlib.Path({str(note)!r}).write_text(str(os.getpid()) + '.')")
    )
    command = [sys.executable, "-m", "tools.mutate", "--root", str(project), "--package", "sample"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while not (note.exists() and note.read_text().endswith(".")) and running.poll() is None:
            time.sleep(0.05)
        running.terminate()
    assert running.returncode == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text().rstrip(".")), 0)


def test_lists_without_running(project: Path) -> None:
    done = mutate(project, "--list", "--limit", "2")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "2 mutants"
    assert not (project / ".mutate").exists()


def test_every_mechanism_is_under_mutation_and_no_specimen() -> None:
    suite = Suite.read(ROOT, "hubbub", grace=1, patience=1)
    found = {path.relative_to(suite.source).as_posix() for path in suite.find_targets()}
    folder = suite.source / "mechanisms"
    ours = {path.relative_to(suite.source).as_posix() for path in folder.rglob("*.py") if "specimens" not in path.parts}
    assert "mechanisms/staged/resolution.py" in found
    assert ours <= found
    assert not any("specimens" in name for name in found)
