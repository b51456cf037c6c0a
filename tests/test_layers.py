"""Who may import whom: downward only, optional packages only where they are owned, and no other source of chance."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "hubbub"

FOUNDATION = frozenset({"errors", "parameters"})
NOISE = FOUNDATION | {"noise"}
PRIVACY = NOISE | {"privacy"}
MECHANISMS = PRIVACY | {"mechanisms"}
MEASURED = MECHANISMS | {"ledger", "policy", "gate"}
ASKED = MEASURED | {"query"}
WORKSHOPS = frozenset({"engines", "learn", "programs", "publish", "report"})
SESSION = ASKED | WORKSHOPS | {"session"}
JUDGES = frozenset({"audit", "audit/subjects", "attack", "anonymity"})
EVERYTHING = SESSION | JUDGES | {"cli", "testing", "audit/subjects", "hubbub"}

# Layer → the layers it may import, beside itself. The rows go from the ground up.
ALLOWED: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "parameters": frozenset({"errors"}),
    "noise": FOUNDATION,
    "privacy": NOISE,
    "mechanisms": PRIVACY,
    "policy": MECHANISMS,
    "ledger": MECHANISMS,
    "gate": MECHANISMS | {"ledger", "policy"},
    "query": MEASURED,
    "engines": ASKED,
    "programs": ASKED | {"engines"},
    "publish": ASKED,
    "report": ASKED | {"publish"},  # it draws what was released
    "learn": ASKED | {"publish", "engines"},  # noisy grids to learn from; arrays are an engine
    "session": ASKED | WORKSHOPS,
    "audit": MECHANISMS,  # it is handed callables
    "attack": frozenset({"errors"}),  # they judge outputs and share no code with what made them
    "anonymity": frozenset({"errors", "attack"}),  # the lab reads its tables and draws its pages
    "cli": EVERYTHING,
    "testing": EVERYTHING,
    "audit/subjects": EVERYTHING,  # what the audit is pointed at
    "hubbub": EVERYTHING,  # the public names in __init__.py
}

# Optional package → the modules that own it, and may import it when they are imported.
OWNERS: dict[str, tuple[str, ...]] = {
    "matplotlib": ("report", "attack/picture"),
    "pyarrow": ("engines/sources/arrow", "engines/sources/frames"),
    "psycopg": ("ledger/stores/postgres", "engines/postgres"),
    "sklearn": ("learn",),
    "pandas": (),
    "polars": (),
    "opendp": (),
    "hypothesis": ("testing/strategies",),
    "mpmath": (),
    "pytest": (),
}

# Noise comes from hubbub.noise alone, and nothing that was stored is ever executed.
BANNED = ("random", "numpy.random", "scipy.stats.sampling", "pickle", "marshal", "shelve")


def layer_of(path: Path, root: Path) -> str:
    return _layer([part.removesuffix(".py") for part in path.relative_to(root).parts])


def _layer(parts: list[str]) -> str:
    """The layer of a module, by the parts of its path below the package."""
    if parts[:2] == ["audit", "subjects"]:
        return "audit/subjects"
    return "hubbub" if not parts or parts[0] in {"__init__", "__main__"} else parts[0]


def modules(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.py") if "__pycache__" not in path.parts)


def imported(tree: ast.AST, path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Every module named by an import, in full; ``from a import b`` counts as a.b, which may be a module."""
    package = ["hubbub", *path.relative_to(root).parts[:-1]]
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = ".".join(
                    [*(package[: len(package) - level + 1] if level else []), *([module] if module else [])]
                )
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in names)
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
                yield from ((node.lineno, str(arg.value)) for arg in node.args[:1] if isinstance(arg, ast.Constant))


def at_import(tree: ast.Module) -> ast.Module:
    """The tree without what does not run when the module is imported: functions, and names that only mypy needs."""

    class Pruner(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
            return None

        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    pruned: ast.Module = Pruner().visit(tree)
    return pruned


def within(name: str, parent: str) -> bool:
    return name == parent or name.startswith(parent + ".")


def breaches(root: Path) -> list[str]:
    """Every import that the tables above forbid, as ``file:line sentence``."""
    found = []
    for path in modules(root):
        place = path.relative_to(root).as_posix()
        own = layer_of(path, root)
        if own not in ALLOWED:
            found.append(f"{place}: {own} is in no layer; give it a row in tests/test_layers.py")
            continue
        tree = ast.parse(path.read_text())
        for line, name in imported(tree, path, root):
            if within(name, "hubbub"):
                target = _layer(name.split(".")[1:])
                target = target if target in ALLOWED else "hubbub"
                if target != own and target not in ALLOWED[own]:
                    found.append(f"{place}:{line} {own} must not import {target}")
            found += [f"{place}:{line} {ban} is banned" for ban in BANNED if within(name, ban)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in {"np.random", "numpy.random"}:
                found.append(f"{place}:{node.lineno} numpy.random is banned")
            if isinstance(node, ast.Attribute) and node.attr == "rvs":
                found.append(f"{place}:{node.lineno} scipy's samplers are banned")
        for line, name in imported(at_import(tree), path, root):
            package = name.partition(".")[0]
            if package in OWNERS and not place.startswith(OWNERS[package] or ("-",)):
                found.append(f"{place}:{line} {package} is optional and must be imported where it is used")
    return found


def test_imports_go_downward() -> None:
    assert breaches(SRC) == []


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        ("noise/bad.py", "from hubbub.privacy.events.event import Event", "noise must not import privacy"),
        ("noise/bad.py", "import hubbub.gate.meter", "noise must not import gate"),
        ("noise/bad.py", "from hubbub import gate", "noise must not import gate"),
        ("noise/bad.py", "from .. import gate", "noise must not import gate"),
        ("noise/bad.py", "from ..gate.meter import Meter", "noise must not import gate"),
        ("noise/bad.py", "def f():\n    from hubbub.gate.meter import Meter", "noise must not import gate"),
        (
            "noise/bad.py",
            "import importlib\nimportlib.import_module('hubbub.gate.meter')",
            "noise must not import gate",
        ),
        ("mechanisms/bad.py", "from hubbub import Meter", "mechanisms must not import hubbub"),
        ("gate/release.py", "from hubbub.query.ops import Scan", "gate must not import query"),
        ("parameters.py", "from hubbub.noise import entropy", "parameters must not import noise"),
        ("attack/bad.py", "from hubbub.parameters import whole", "attack must not import parameters"),
        ("audit/bad.py", "from hubbub.gate.meter import Meter", "audit must not import gate"),
        ("utils.py", "x = 1", "utils is in no layer"),
        ("noise/bad.py", "import random", "random is banned"),
        ("noise/bad.py", "from numpy.random import default_rng", "numpy.random is banned"),
        ("noise/bad.py", "from numpy import random", "numpy.random is banned"),
        ("noise/bad.py", "import numpy as np\nx = np.random.default_rng()", "numpy.random is banned"),
        ("noise/bad.py", "from scipy import stats\nx = stats.norm.rvs(1)", "scipy's samplers are banned"),
        ("privacy/bad.py", "import pickle", "pickle is banned"),
        ("gate/release.py", "import matplotlib.pyplot as plt", "matplotlib is optional"),
        ("ledger/base.py", "try:\n    import psycopg\nexcept ImportError:\n    pass", "psycopg is optional"),
    ],
)
def test_a_planted_breach_is_found(tmp_path: Path, place: str, text: str, complaint: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    assert any(complaint in breach for breach in breaches(tmp_path)), breaches(tmp_path)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("gate/meter.py", "from hubbub.gate.release import Release\nfrom hubbub import errors"),
        ("noise/fine.py", "from hubbub.noise.entropy import words\nfrom .entropy import words\nimport numpy as np"),
        ("gate/release.py", "def plot():\n    import matplotlib"),
        ("gate/release.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import matplotlib"),
        ("report/histogram.py", "import matplotlib"),
        ("cli/audit.py", "from hubbub.audit import lower_bound"),
        ("audit/subjects/noise.py", "from hubbub.gate.meter import Meter"),
        ("testing/replay.py", "from hubbub.gate.meter import Meter"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, place: str, text: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    assert breaches(tmp_path) == []


def test_the_table_has_no_circles() -> None:
    standing = {
        layer: allowed - {layer}
        for layer, allowed in ALLOWED.items()
        if layer not in {"cli", "testing", "audit/subjects", "hubbub"}
    }
    while standing:
        ground = {layer for layer, allowed in standing.items() if not allowed & standing.keys()}
        assert ground, f"these layers import each other: {sorted(standing)}"
        standing = {layer: allowed for layer, allowed in standing.items() if layer not in ground}


def test_the_base_needs_no_optional_package() -> None:
    """Imports every module that owns no optional package, on a Python where those packages cannot be found."""
    owners = tuple(owner for places in OWNERS.values() for owner in places)
    names = []
    for path in modules(SRC):
        place = path.relative_to(SRC).as_posix()
        if not place.startswith(owners) and path.name != "__main__.py":
            names.append(".".join(["hubbub", *path.relative_to(SRC).with_suffix("").parts]).removesuffix(".__init__"))
    program = f"""
import importlib, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(OWNERS)!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
for name in {names!r}:
    importlib.import_module(name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
