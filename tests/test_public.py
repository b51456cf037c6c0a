"""The public surface on one screen."""

import ast
import inspect
from pathlib import Path

import hubbub as hb


def test_the_surface_is_small_sorted_and_real() -> None:
    assert list(hb.__all__) == sorted(hb.__all__)
    assert len(hb.__all__) <= 40
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
