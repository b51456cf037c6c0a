"""What things are called, counted over the package: one meaning for one class name, verbs for functions, and docstrings
that begin with what is done.

The limits only go down.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src" / "hubbub"

MOST_PARTICIPLES = 0.02
"""The share of functions that are named by a participle (``measured``, ``told``)."""
MOST_QUESTIONS = 0.02
"""The share of docstrings that begin with What, How, Whether, Who or Which."""
MOST_FILES = 20
"""Files in one folder."""

QUESTION_WORDS = frozenset({"What", "How", "Whether", "Who", "Whose", "Which", "Where", "When"})
IRREGULAR = frozenset(
    [
        "bought",
        "bound",
        "built",
        "chosen",
        "drawn",
        "found",
        "given",
        "held",
        "kept",
        "known",
        "laid",
        "left",
        "lost",
        "made",
        "met",
        "seen",
        "sent",
        "shown",
        "sold",
        "spent",
        "taken",
        "told",
        "worn",
        "written",
    ]
)
VERBS_IN_ED = frozenset({"bed", "embed", "exceed", "feed", "need", "proceed", "red", "seed", "shed", "speed"})
VALUES = frozenset({"property", "cached_property", "functools.cached_property"})
"""Decorators that make a value of a function: a noun or an adjective may name it."""


@dataclass(frozen=True)
class Named:
    """A definition, and where it is."""

    place: str
    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module

    def __str__(self) -> str:
        return f"{self.place}:{getattr(self.node, 'lineno', 1)} {self.name}"


def definitions(root: Path) -> Iterator[Named]:
    """Yield every module, class and function below a folder."""
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module):
                yield Named(place, "", node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield Named(place, node.name, node)


def functions(found: list[Named]) -> list[Named]:
    """Pick what is called: neither dunder methods nor properties."""
    return [
        one
        for one in found
        if isinstance(one.node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not one.name.startswith("__")
        and not VALUES & {ast.unparse(mark) for mark in one.node.decorator_list}
    ]


def is_participle(name: str) -> bool:
    """Judge a function by its first word."""
    first = name.lstrip("_").partition("_")[0]
    return first in IRREGULAR or (first.endswith("ed") and first not in VERBS_IN_ED)


def begins_with_a_question(one: Named) -> bool | None:
    """Judge a docstring by its first word; None where there is no docstring."""
    text = ast.get_docstring(one.node)
    return text.split()[0].strip(":,") in QUESTION_WORDS if text and text.split() else None


def shared_names(found: list[Named]) -> dict[str, list[str]]:
    """Map public class names that are given more than once to their places."""
    places = defaultdict(list)
    for one in found:
        if isinstance(one.node, ast.ClassDef) and not one.name.startswith("_"):
            places[one.name].append(one.place)
    return {name: held for name, held in places.items() if len(held) > 1}


@cache
def package() -> list[Named]:
    """Read the whole package once, and only where one of these tests runs."""
    return list(definitions(SRC))


def test_a_class_name_has_one_meaning() -> None:
    assert shared_names(package()) == {}


def test_functions_are_named_by_verbs() -> None:
    all_of_them = functions(package())
    wrong = [one for one in all_of_them if is_participle(one.name)]
    assert len(wrong) <= MOST_PARTICIPLES * len(all_of_them), "\n".join(map(str, wrong))


def test_docstrings_begin_with_what_is_done() -> None:
    judged = [(one, begins_with_a_question(one)) for one in package()]
    written = [one for one, wrong in judged if wrong is not None]
    wrong = [one for one, wrong in judged if wrong]
    assert len(wrong) <= MOST_QUESTIONS * len(written), "\n".join(map(str, wrong))


def test_folders_are_small() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) for folder in (SRC, *SRC.rglob("*")) if folder.is_dir()}
    assert {str(folder.relative_to(SRC)): many for folder, many in counts.items() if many > MOST_FILES} == {}


def test_the_counting_counts(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        '"""How it is."""\n'
        "class Step:\n    @property\n    def held(self): ...\n    def __exit__(self): ...\n"
        'def measured(): """Return it."""\n'
        "def _told_first(): ...\n"
        "def seed_all(): ...\n"
    )
    (tmp_path / "b.py").write_text("class Step: ...\nclass _Own: ...\n")
    (tmp_path / "c.py").write_text("class _Own: ...\n")
    found = list(definitions(tmp_path))
    assert [one.name for one in functions(found) if is_participle(one.name)] == ["measured", "_told_first"]
    assert len(functions(found)) == 3
    assert [begins_with_a_question(one) for one in found if ast.get_docstring(one.node)] == [True, False]
    assert shared_names(found) == {"Step": ["a.py", "b.py"]}
