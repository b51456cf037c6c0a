"""What goes to a program and comes back: no value and no answer makes it raise."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.programs.wire import MOST_ANSWER, Rows, decode, decode_problem, encode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(rows=VALUES | st.dictionaries(st.text(), st.tuples(st.text(), st.lists(VALUES))), command=st.booleans())
def test_any_rows_are_sent_or_left_out(rows: Any, command: bool) -> None:
    assert isinstance(encode(rows, command=command), bytes | None)


@given(heard=st.binary() | VALUES.map(lambda value: repr(value).encode("utf-8", "replace")), width=st.integers(1, 3))
@pytest.mark.parametrize("command", [True, False])
def test_any_answer_is_numbers_or_none(heard: bytes, width: int, command: bool) -> None:
    numbers = decode(heard, width=width, command=command)
    assert numbers is None or (len(numbers) == width and all(isinstance(number, float) for number in numbers))
    assert isinstance(decode_problem(heard), str | None)


@given(numbers=st.lists(st.floats(), min_size=1, max_size=4))
def test_numbers_come_back_as_they_are(numbers: list[float]) -> None:
    listed = decode(json.dumps({"output": numbers}).encode(), width=len(numbers), command=False)
    printed = decode(" ".join(map(repr, numbers)).encode(), width=len(numbers), command=True)
    for answer in (listed, printed):
        assert answer is not None
        assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(answer, numbers, strict=True))


@pytest.mark.parametrize(
    "heard",
    [
        b"",
        b"[1.0]",
        b'{"output": [1]}',
        b'{"output": [true]}',
        b'{"output": 1.0}',
        b'{"output": [1.0, 2.0]}',
        b'{"output": [1.0]} {"output": [2.0]}',
        b'{"output": [' + b"[" * 100_000,
        b'{"output": [1' + b"0" * 5000 + b"]}",
        b'{"output": [1.0]}' + b" " * MOST_ANSWER,
    ],
)
def test_what_is_no_list_of_so_many_reals_is_nothing(heard: bytes) -> None:
    assert decode(heard, width=1, command=False) is None


def test_a_table_has_a_header_and_empty_cells() -> None:
    rows: Rows = {"a": ("integer", [1, None]), "b": ("text", ["x,y", "\ud800"])}
    assert encode(rows, command=True) == b'a,b\n1,"x,y"\n,?\n'


def test_problems_are_read() -> None:
    assert decode_problem(b'{"problem": "no such module"}') == "no such module"
    assert decode_problem(b'{"problem": 3}') is None
