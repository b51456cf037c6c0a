"""The public surface on one screen."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import hubbub as hb


def test_the_surface_is_small_sorted_and_real() -> None:
    assert list(hb.__all__) == sorted(hb.__all__)
    assert len(hb.__all__) <= 41, "raise the limit if one more name in hb is meant"
    assert all(hasattr(hb, name) for name in hb.__all__)


def test_every_module_and_public_thing_says_what_it_is() -> None:
    missing = []
    for path in sorted(Path(inspect.getfile(hb)).parent.rglob("*.py")):
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree):
            missing.append(path.name)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                overload = any(ast.unparse(mark) == "overload" for mark in node.decorator_list)
                if not ast.get_docstring(node) and not overload:
                    missing.append(f"{path.name}: {node.name}")
    assert missing == []


def test_what_takes_long_to_load_is_loaded_when_it_is_needed() -> None:
    """A question on the command line is answered before any of these would have been loaded."""
    heavy = {"scipy", "sklearn", "pandas", "matplotlib", "pyarrow", "dp_accounting"}
    told = f"import hubbub, hubbub.cli, sys; print(sorted({heavy!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
