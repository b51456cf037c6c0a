"""Every planted bug is caught by an audit with its default settings, and nobody is accused where none is planted.

The audit is told nothing about what to look for. An honest subject is accused at most five times in a million.

Audits make their inputs up from a seed, which is 0 here. ``HUBBUB_SEEDS=1,2,3`` tries each of those instead: whoever
changes a check should see the bugs it is for caught at several.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.audit.examine import Settings, examine
from hubbub.audit.subject import Subject
from tests.planted.gallery import GALLERY
from tests.planted.plant import Planted, evidence

DOCS = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
NAMED = """wrong sensitivity, half noise, local sensitivity, seed 001's slide, threshold off by one, key leakage,
unclamped group key, facts outliving a redefinition, uncorrelated IN, tied window order, non-injective packed key,
some-order Rényi filter, replace-one charged twice, analytic Gaussian on integers, classic Gaussian at ε > 1, noise
reused, forked noise, budget split wrong, NaN counted, clamp at exact n, truncated noise renormalised, rounding after
noise, data-ordered output, uncharged path, charge after read, answer sent before stored, deterministic suppression,
sampling without noise"""
SEEDS = tuple(int(seed) for seed in os.environ.get("HUBBUB_SEEDS", "0").split(","))
SETTINGS = Settings(shrinking=10)
"""The default ones, but for the steps in which a counterexample that was found already is made smaller: they begin when
the accusation stands. `tests/testing/test_query_audit.py` holds that what all of the steps leave is small."""
HONEST: dict[Callable[[], Subject], str] = {one.subject: one.name for one in GALLERY}
"""Each subject once, with one of the bugs that it was made for."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("bug", GALLERY, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Planted, seed: int) -> None:
    with bug.patch():
        report = examine(bug.subject(), settings=SETTINGS, seed=seed)
    assert report.accused, report
    assert evidence(report) is bug.caught, report
    assert report.counterexample is not None
    assert report.counterexample.shown
    assert all(report.counterexample.sentences)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("subject", HONEST, ids=HONEST.get)
def test_nobody_is_accused_without_it(subject: Callable[[], Subject], seed: int) -> None:
    report = examine(subject(), seed=seed)
    assert not report.accused, report
    assert report.findings


def test_the_gallery_has_what_it_must() -> None:
    names = [one.name for one in GALLERY]
    assert len(names) == len(set(names)) >= 35
    assert {" ".join(name.split()) for name in NAMED.split(",")} <= set(names)
    assert sum("sparse vector" in name for name in names) >= 6
    assert all(one.about.endswith(".") for one in GALLERY)


def table() -> list[str]:
    """The gallery as the docs have it."""
    return [f"| {one.name} | {one.about} | {one.caught} |" for one in GALLERY]


def test_the_docs_have_the_same_table() -> None:
    section = DOCS.read_text(encoding="utf-8").partition("\n## The gallery\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| .* \|$", section, re.MULTILINE)[1:]
    assert rows == table(), "\n".join(table())
