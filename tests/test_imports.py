"""What an import loads: public names, specimens and subjects are loaded when they are asked for."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("dp_accounting", "duckdb", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "sqlglot")
BELOW = {"numpy"}
"""What the samplers and accountants need."""


def loaded(program: str) -> set[str]:
    """Run a program in a Python of its own, and return the modules that are there in the end."""
    ending = f"{program}\nimport sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", ending], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("program", "allowed"),
    [
        ("import hubbub", set()),
        ("import hubbub; dir(hubbub)", set()),
        ("import hubbub.cli", set()),
        ("import hubbub.testing", set()),
        ("import hubbub; hubbub.HubbubError", set()),
        ("import hubbub.noise", BELOW),
        ("import hubbub.privacy", BELOW),
        ("import hubbub.mechanisms", set()),
        ("import hubbub; hubbub.Meter; hubbub.Ledger; hubbub.Limits", BELOW),
        ("from hubbub.testing import trace, differences", BELOW),
        ("from hubbub.mechanisms.specimens.registry import SPECIMENS; assert SPECIMENS", BELOW),
        ("from hubbub.audit.subjects.registry import SUBJECTS; assert SUBJECTS", BELOW),
        ("from hubbub.audit.subjects.registry import subject_of; subject_of('geometric')", {*BELOW, "scipy"}),
        ("import hubbub; hubbub.open", {*BELOW, "sqlglot"}),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(program: str, allowed: set[str]) -> None:
    assert loaded(program) & {*HEAVY} <= allowed


def test_the_name_of_a_subject_builds_no_other() -> None:
    modules = loaded("from hubbub.audit.subjects.registry import subject_of; subject_of('geometric')")
    assert {name for name in modules if name.startswith("hubbub.mechanisms.specimens.")} == {
        f"hubbub.mechanisms.specimens.{name}" for name in ("additive", "registry", "specimen")
    }
    assert not {name for name in modules if name.startswith(("hubbub.session", "hubbub.publish", "hubbub.learn"))}
    assert "scipy.stats" not in modules


def test_the_audit_of_an_estimator_loads_no_engine_and_no_session() -> None:
    """From the name to the last draw: an audit of a fit on arrays begins as soon as scikit-learn is there."""
    modules = loaded(
        "from hubbub.audit.examine import Settings, examine\n"
        "from hubbub.audit.subjects.registry import subject_of\n"
        "assert examine(subject_of('learn: PCA'), settings=Settings(samples=1000)).tried.pairs"
    )
    assert not {"duckdb", "sqlglot", "sklearn.cluster"} & modules
    assert not {name for name in modules if name.startswith(("hubbub.session", "hubbub.publish"))}


@pytest.mark.parametrize("package", ["hubbub", "hubbub.mechanisms", "hubbub.testing"])
def test_type_checkers_see_the_names_where_they_are_loaded_from(package: str) -> None:
    loaded = importlib.import_module(package)
    tree = ast.parse(Path(loaded.__file__ or "").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    inside = "" if package == "hubbub" else f"{package}."
    assert seen == {name: f"{inside}{home}" for name, home in loaded._HOMES.items()}
    assert sorted(seen) == sorted(loaded.__all__)
    assert set(loaded.__all__) <= set(dir(loaded))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        loaded.nothing  # noqa: B018


@pytest.mark.parametrize("package", ["hubbub", "hubbub.mechanisms", "hubbub.testing"])
def test_no_module_has_the_name_of_something_that_is_loaded_later(package: str) -> None:
    """Once it is imported, a module would stand in the place of what has its name."""
    loaded = importlib.import_module(package)
    modules = {path.stem for path in Path(loaded.__file__ or "").parent.iterdir()}
    modules -= {name for name in loaded.__all__ if inspect.ismodule(getattr(loaded, name))}
    assert modules & set(loaded.__all__) == set()


def test_pictures_are_found_without_importing_what_draws_them() -> None:
    program = """
from fractions import Fraction
import hubbub as hb
from hubbub.mechanisms import Geometric
meter = hb.Meter({"a": hb.Budget(epsilon=1)})
facts = hb.Facts(account="a", sensitivity=hb.Sensitivity(l0=1, linf=1))
release = meter.measure(Geometric(epsilon=1), hb.Secret(3, facts))
import sys; sys.modules["matplotlib"] = sys.modules["matplotlib.figure"] = None
try:
    release.plot()
except hb.HubbubError as error:
    assert "hubbub[plot]" in str(error), error
"""
    assert "hubbub.report" in loaded(program)


def test_without_scikit_learn_the_error_names_the_extra() -> None:
    program = """
import sys; sys.modules["sklearn"] = None
import hubbub as hb
try:
    hb.learn
except ImportError as error:
    assert 'pip install "hubbub[learn]"' in str(error), error
else:
    raise SystemExit("learn was loaded without scikit-learn")
"""
    loaded(program)
