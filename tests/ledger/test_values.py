"""Answers come back from the ledger as they went in."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import LedgerCorrupt, ParameterError
from hubbub.ledger.entry import read, write
from hubbub.mechanisms.specimens.registry import build_specimens
from hubbub.mechanisms.specimens.specimen import Specimen

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.fractions(),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers(), st.fractions()), inner, max_size=4),
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same type all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return [*left] == [*right] and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and same(left.tolist(), right.tolist())
    if isinstance(left, float):
        return repr(left) == repr(right)
    return bool(left == right)


@given(VALUES)
def test_values_come_back_with_their_types(value: Any) -> None:
    assert same(read(write(value)), value)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        5e-324,
        1 << 200,
        np.int64(-(1 << 63)),
        np.uint64((1 << 64) - 1),
        np.float64(0.1),
        np.bool_(True),
        np.array([1, 2, -(1 << 63)]),
        np.array([[0.1, math.nan], [math.inf, -0.0]]),
        np.array([], dtype=np.int64),
        np.zeros((2, 0, 3)),
        np.array([1 << 100, Fraction(1, 3)], dtype=object),
        np.array([True, False]),
        np.array(7),
    ],
    ids=repr,
)
def test_edges_come_back(value: Any) -> None:
    assert same(read(write(value)), value)


@pytest.mark.parametrize("specimen", build_specimens(), ids=lambda specimen: specimen.name)
def test_whatever_a_mechanism_returns_can_be_kept(specimen: Specimen) -> None:
    answer = specimen.mechanism.draw(specimen.pair[0])
    assert same(read(write(answer)), answer)


@pytest.mark.parametrize("value", [object, b"bytes", {1, 2}, 1j, np.array(["a"]), np.array([1], dtype="M8[s]")])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="answer must be"):
        write(value)


@pytest.mark.parametrize(
    "stored",
    [
        "not json",
        '{"unknown":1}',
        "{}",
        '{"array":[1],"dtype":"M8[s]","shape":[1]}',
        '{"array":[1],"dtype":"int64","shape":[2]}',
        '{"scalar":"object","value":1}',
        '{"ratio":"x"}',
        '{"array":[1]}',
    ],
)
def test_what_cannot_be_read_is_called_damaged(stored: str) -> None:
    with pytest.raises(LedgerCorrupt):
        read(stored)


def test_the_text_is_plain_ascii_json() -> None:
    text = write({"ward é": [1.5, math.nan]})
    assert text.isascii()
    assert json.loads(text)
