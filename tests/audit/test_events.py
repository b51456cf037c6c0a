"""Views of outputs, and events in words that a person can follow."""

import math
from typing import Any

import numpy as np
import pytest

from hubbub.audit.events import Candidates, CategoryRegion, Intervals, OutputEvent, TailRegion, choose
from hubbub.audit.outputs import Batch, OutputReader, Raised, View, as_key, as_number, key, kind, number, views

OUTPUT = View(name="output", numeric=True, of=as_number)
NAMED = View(name="output", numeric=False, of=as_key)


def test_a_tail_includes_its_threshold() -> None:
    values = np.array([1.0, 2.0, 3.0, math.nan])
    upper = OutputEvent(view=OUTPUT, region=TailRegion(threshold=2.0, upper=True))
    lower = OutputEvent(view=OUTPUT, region=TailRegion(threshold=2.0, upper=False))
    assert (upper.hits(values), lower.hits(values)) == (2, 2)
    assert (str(upper), str(lower)) == ("output ≥ 2", "output ≤ 2")


def test_intervals_are_closed_below_and_join_in_words() -> None:
    region = Intervals(edges=(1.0, 2.0, 3.0), chosen=frozenset({1, 2}))
    assert region.hits(OUTPUT, [0.5, 1.0, 2.0, 2.9, 3.0, None]) == 3
    assert region.words("output") == "output in [1, 3)"
    ends = Intervals(edges=(1.0, 2.0), chosen=frozenset({0, 2}))
    assert ends.hits(OUTPUT, [0.5, 1.0, 2.0]) == 2
    assert ends.words("output") == "output in [-inf, 1) or [2, inf)"


def test_cells_may_mean_everything_else() -> None:
    outputs = ["a", "b", "c", "a"]
    named = CategoryRegion(chosen=("a",), common=frozenset({"a", "b"}), others=False)
    assert (named.hits(NAMED, outputs), named.words("output")) == (2, "output is 'a'")
    rest = CategoryRegion(chosen=("a",), common=frozenset({"a", "b"}), others=True)
    assert (rest.hits(NAMED, outputs), rest.words("output")) == (3, "output is not 'b'")
    assert CategoryRegion(chosen=(), common=frozenset(), others=True).words("output") == "output is anything"
    many = CategoryRegion(chosen=tuple(range(9)), common=frozenset(range(9)), others=False)
    assert many.words("output") == "output is one of 0, 1, 2, 3, 4, 5, 6, 7 … (9 in all)"
    several = CategoryRegion(chosen=(), common=frozenset({1, 2}), others=True)
    assert several.words("output") == "output is none of 1, 2"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (3, 3.0),
        (True, 1.0),
        (np.float64(2.5), 2.5),
        (np.array(4), 4.0),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        ("3", math.nan),
        (None, math.nan),
        ((1,), math.nan),
        (np.array([1.0, 2.0]), math.nan),
        (Raised("ValueError", "3"), math.nan),
    ],
)
def test_numbers(output: Any, expected: float) -> None:
    assert number(output) == pytest.approx(expected, nan_ok=True)


def test_keys_tell_apart_what_can_be_told_apart() -> None:
    assert key(np.int64(3)) == key(3) == 3
    assert key(math.nan) == key(np.nan)
    assert key(-0.0) != key(0.0)
    assert key(np.array([[1, 2]])) == ((1, 2),)
    assert key([1, [2]]) == key((1, (2,)))
    assert key({"b": 1, "a": 2}) == key({"a": 2, "b": 1})
    assert key({1, 2}) == frozenset({1, 2})
    assert key(bytearray(b"x")) == "bytearray(b'x')"
    assert key(Raised("ValueError", "a")) != key(Raised("ValueError", "b"))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (None, "None"),
        (1, "int"),
        (np.int64(1), "int"),
        (math.nan, "NaN"),
        ("a", "str"),
        ((1, 2), "tuple of 2"),
        ({"a": 1}, "dict of 1"),
        (np.zeros((2, 3)), "array of shape (2, 3)"),
        (Raised("ValueError", "x"), "error ValueError"),
    ],
)
def test_kinds(output: Any, expected: str) -> None:
    assert kind(output) == expected


def test_views_are_total() -> None:
    """Views are chosen by some outputs and applied to others, of any kind."""
    odd: list[Any] = [None, 1, 2.5, math.nan, "x", (1, "a"), [1.0, 2.0, 3.0], {"k": 1}, {1, 2}, np.ones(3), np.array(2)]
    odd += [Raised("E", ""), (), (math.inf, 1.0), 10**400, object()]
    for view in views(odd):
        assert len(view.numbers(odd) if view.numeric else view.keys(odd)) == len(odd)


def test_an_error_without_a_message_is_its_name() -> None:
    assert repr(Raised("ValueError", "")) == "ValueError"
    assert repr(Raised("ValueError", "no")) == "ValueError: no"


def test_the_best_event_is_found_among_noise() -> None:
    rng = np.random.default_rng(5)
    first = np.column_stack([rng.normal(size=(2000, 3)), rng.normal(3, 1, size=2000)])
    second = rng.normal(size=(2000, 4))
    event = choose(first, second, worth=lambda p, q: np.log(p) - np.log(q), draws=10_000, level=1e-6)
    assert str(event).startswith("output[3] ≥ ")


def test_a_middle_that_tells_is_found_as_an_interval() -> None:
    rng = np.random.default_rng(5)
    event = choose(
        rng.normal(0, 0.2, 2000), rng.normal(0, 3.0, 2000), worth=lambda p, q: p - q, draws=10_000, level=1e-6
    )
    assert isinstance(event.region, Intervals)
    assert event.hits(np.zeros(10)) == 10
    assert event.hits(np.full(10, 2.0)) == event.hits(np.full(10, -2.0)) == 0


def test_what_never_repeats_is_the_event_everything_else() -> None:
    first = [f"answer {i}" for i in range(500)]
    event = choose(first, ["none"] * 500, worth=lambda p, q: np.log(p) - np.log(q), draws=5000, level=1e-6)
    assert str(event) == "output is not 'none'"


def test_what_is_read_of_a_batch_is_what_is_read_of_each_output() -> None:
    """Whole arrays, and outputs that were asked before, give what the view gives for each output alone."""
    tuples: list[Any] = [(1, "a", 2.5), (1, "b", math.nan), (2, "a", -0.0), (), Raised("E", ""), {"k": 1}, [3, 4]]
    for outputs in (tuples, np.array([3, 3, -1, 7]), np.array([0.5, math.nan, -0.0]), np.array([[1, 2], [3, 2]])):
        batch = Batch(outputs)
        for view in views(outputs):
            for _ in range(2):
                if view.numeric:
                    alone = [view.of(OutputReader(output)) for output in outputs]
                    assert np.array_equal(view.numbers(batch), np.array(alone, dtype=float), equal_nan=True)
                else:
                    assert view.keys(batch) == [view.of(OutputReader(output)) for output in outputs]


def test_both_orders_are_weighed_on_the_same_counts() -> None:
    """The event for one order of a pair is the one that is chosen when the sides change places."""
    rng = np.random.default_rng(7)
    one, other = rng.integers(0, 4, size=(500, 2)), rng.integers(0, 5, size=(500, 2))

    def worth(p: Any, q: Any) -> Any:
        return np.log(p) - np.log(q)

    both = Candidates(Batch(one), Batch(other))
    for likelier, sides in enumerate(((one, other), (other, one))):
        assert str(both.best(worth=worth, draws=5000, level=1e-6, likelier=likelier)) == str(
            choose(*sides, worth=worth, draws=5000, level=1e-6)
        )
