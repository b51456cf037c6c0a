"""Recipes: what they say, and where they are wrong."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hubbub import publish
from hubbub.errors import RecipeError
from hubbub.publish.recipe import parse_recipe, read_recipe

GOOD = """\
policy = "hubbub.toml"
epsilon = 0.1
delta = 1e-9
table = "stays"
where = "urgent"
cells = 3
compare = ["flat", { name = "hierarchy", branching = 4 }]

[over]
age = { from = 0, to = 109 }
ward = ["a", "b"]
cost = { low = 0, high = 0.3, bins = 3 }

[strategy]
name = "wavelet"
noise = "gaussian"

[after]
nonnegative = true
total = 12
whole = true

[output]
report = "out.html"
"""


def test_all_that_it_says() -> None:
    made = parse_recipe(GOOD, file="/there/recipe.toml")
    assert made.epsilon == Fraction(1, 10), "exactly what is written"
    assert made.delta == Fraction(1, 10**9)
    assert made.policy == Path("/there/hubbub.toml")
    assert made.domain == publish.Domain.of(
        {"age": range(110), "ward": ["a", "b"], "cost": publish.bins(0, Fraction(3, 10), 3)}
    )
    assert made.strategy == publish.Wavelet(noise=publish.Noise.GAUSSIAN)
    assert made.compare == (publish.Flat(), publish.Hierarchy(branching=4))
    assert made.outputs == {"report": Path("/there/out.html")}
    assert made.wish == {
        "over": made.domain,
        "epsilon": Fraction(1, 10),
        "delta": Fraction(1, 10**9),
        "table": "stays",
        "where": "urgent",
        "cells": 3,
        "each": None,
    }


def test_the_steps_afterwards() -> None:
    release = publish.run(np.arange(8), publish.Flat(), epsilon=1)
    made = parse_recipe(GOOD, file="r.toml").after(release)
    assert isinstance(made, publish.Published)
    assert made.steps == ("non-negative", "to add up to 12", "whole")
    assert made.cells.sum() == 12
    plain = parse_recipe(GOOD.replace("true", "false").replace("total = 12", ""), file="r.toml")
    assert plain.after(release) is release


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("epsilon = 0.1", "epsilon = -1", 2, "positive"),
        ("epsilon = 0.1", "", 1, "Add a line: epsilon"),
        ("epsilon = 0.1", "epsilon =", 2, "not TOML"),
        ('policy = "hubbub.toml"', "", 1, "[data]"),
        ("cells = 3", "cells = 0", 6, "at least 1"),
        ("table =", "tabel =", 4, "Did you mean table?"),
        ('table = "stays"', "table = 5", 4, "a text"),
        ("branching = 4", 'branching = "4"', 7, "branching"),
        ('"flat",', '"flut",', 7, "one of"),
        ("to = 109", "to = 1.5", 10, "whole number"),
        ("to = 109", "upto = 109", 10, "{ from = 0, to = 109 }"),
        ('["a", "b"]', '["a", "a"]', 11, "different"),
        ("bins = 3", "bins = 0", 12, "at least 1"),
        ('name = "wavelet"', 'name = "wave"', 14, "wavelet"),
        ('noise = "gaussian"', 'noise = "gauss"', 16, "laplace, gaussian"),
        ('noise = "gaussian"', "nose = 1", 16, "it takes noise"),
        ("[after]", "[aftr]", 18, "Did you mean after?"),
        ("nonnegative = true", "nonnegative = 1", 19, "true or false"),
        ("total = 12", 'total = "x"', 20, "finite number"),
        ("report =", "raport =", 24, "Did you mean report?"),
    ],
)
def test_every_mistake_has_its_line_and_a_remedy(old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(RecipeError) as caught:
        parse_recipe(GOOD.replace(old, new, 1), file="r.toml")
    assert str(caught.value).startswith(f"[recipe] r.toml, line {line}: ")
    assert words in caught.value.message


def test_data_in_place_of_a_policy() -> None:
    data = '[data]\npath = "stays.parquet"\nunit = "person"\nbudget = 2\nledger = "l.db"\n'
    text = GOOD.replace('policy = "hubbub.toml"\n', "") + data
    made = parse_recipe(text, file="/there/r.toml")
    assert made.data == {
        "path": "/there/stays.parquet",
        "unit": "person",
        "budget": 2,
        "ledger": "/there/l.db",
    }
    for old, new in (('unit = "person"', ""), ("budget = 2", 'budget = "2"'), ("unit", "units")):
        with pytest.raises(RecipeError):
            parse_recipe(text.replace(old, new, 1), file="r.toml")
    with pytest.raises(RecipeError):
        parse_recipe(GOOD + data, file="r.toml")


def test_files(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read"):
        read_recipe(tmp_path / "nothing.toml")
    (tmp_path / "r.toml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RecipeError, match="UTF-8"):
        read_recipe(tmp_path / "r.toml")


def test_a_recipe_has_no_place_for_the_truth() -> None:
    """It may stand beside noisy numbers only where the same process generated the data."""
    with pytest.raises(RecipeError, match="no key truth"):
        parse_recipe(f'truth = {{ file = "t.csv", generated = true }}\n{GOOD}', file="r.toml")
