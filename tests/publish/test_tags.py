"""Strategies as data: back again they are the same, and nothing else is let in."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import publish
from hubbub.errors import ParameterError
from hubbub.publish import tags
from hubbub.publish.release import saved as stored


def simplest(kind: type) -> Any:
    """One of each, with what has no default."""
    needed = {"Marginals": {"ways": 2}, "Cube": {"ways": 2}, "Sensing": {"sparsity": 3}}
    try:
        return kind(**needed.get(kind.__name__, {}))
    except (TypeError, ParameterError):
        return None


@pytest.mark.parametrize("name", sorted(tags.strategies()))
def test_every_strategy_comes_back(name: str) -> None:
    made = simplest(tags.strategies()[name])
    if made is None:
        pytest.skip("has no simple form")
    assert tags.from_json(tags.to_json(made)) == made


def test_fields_that_differ_are_kept() -> None:
    made = publish.Flat(noise=publish.Noise.GAUSSIAN, workload=publish.Prefixes(length=8))
    told = tags.to_json(made)
    assert told == {"is": "Flat", "noise": "gaussian", "workload": {"is": "Prefixes", "length": 8}}
    assert tags.from_json(told) == made
    assert tags.to_json(publish.Flat()) == {"is": "Flat"}


@pytest.mark.parametrize(
    "told",
    [
        None,
        "Flat",
        {"is": "Path"},
        {"is": "os.system"},
        {"is": "Prefixes", "length": 8},
        {"is": "Flat", "noise": "cauchy"},
        {"is": "Flat", "noise": 1},
        {"is": "Flat", "workload": 3},
        {"is": "Flat", "more": 1},
        {"is": "Flat", "name": "other"},
        {"is": "Hierarchy", "branching": "2"},
        {"is": "Hierarchy", "branching": True},
    ],
)
def test_anything_else_is_refused(told: Any) -> None:
    with pytest.raises(ParameterError):
        tags.from_json(told)


def test_what_is_not_public_cannot_be_written() -> None:
    with pytest.raises(ParameterError):
        tags.to_json(object())
    with pytest.raises(ParameterError):
        tags.to_json(publish.Flat(name={1, 2}))  # type: ignore[arg-type]


def test_parts() -> None:
    assert tags.to_json((Fraction(1, 3), None, "a")) == [{"ratio": "1/3"}, None, "a"]


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, -1, 127]),
        np.array([[1 << 40, -(1 << 62)], [3, 4]]),
        np.array([1.5, -2.25e300, 0.1]),
        np.array([1 << 80, -5], dtype=object),
        np.array(7),
        np.zeros((0,), dtype=np.int64),
    ],
)
def test_numbers_are_exact(values: Any) -> None:
    found = stored.unpack(stored.pack(values))
    assert found.shape == values.shape
    assert found.tolist() == values.tolist()


def test_small_numbers_are_few_bytes() -> None:
    told = stored.pack(np.random.default_rng(1).integers(-9, 9, size=30_000))
    assert told["kind"] == "<i1"
    assert len(told["data"]) < 30_000


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"kind": "<i8", "shape": [2], "data": "AAAA"},
        {"kind": "<i8", "shape": [-1], "data": ""},
        {"kind": "object", "shape": [1], "data": "eJxjAAAAAQAB"},
        {"kind": "<i1", "shape": [2], "data": stored.pack(np.array([1, 2, 3]))["data"]},
    ],
)
def test_other_numbers_are_refused(told: Any) -> None:
    with pytest.raises(ParameterError):
        stored.unpack(told)
