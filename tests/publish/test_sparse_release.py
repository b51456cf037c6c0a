"""Sparse releases: keys, reach, filters, sums with their error, files."""

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.errors import MisfitError, ParameterError
from hubbub.gate.meter import Meter
from hubbub.gate.secret import Facts, Secret
from hubbub.mechanisms import Nonzeros, SparseFirst, SparseLargest, SparsePriority, SparseSample, SparseThreshold
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import Contribution, sparse
from hubbub.publish.strategies.layer import CellLayer
from hubbub.publish.terms import Terms

SHARP = 60
"""An ε at which noise is 0 but for one time in 10^26."""


def test_words_of_each_length_have_codes_of_their_own() -> None:
    words = sparse.Words(alphabet="ba", length=3, shorter=True)
    texts = ["".join(one) for n in range(4) for one in itertools.product("ba", repeat=n)]
    assert len(words) == len(texts) == 15
    assert words.encode(texts).tolist() == list(range(15))
    assert words.decode(np.arange(15)) == texts
    for wrong in ("bab" + "a", "c"):
        with pytest.raises(ParameterError):
            words.encode([wrong])
    with pytest.raises(ParameterError):
        sparse.Words(alphabet="ab", length=3).encode(["ab"])


def test_keys_are_one_to_one_up_to_2_to_63() -> None:
    keys = sparse.Keys.of({"when": range(10, 4, -2), "who": sparse.Words(alphabet="xyz", length=2), "sex": ["f", "m"]})
    assert keys.size == 3 * 9 * 2
    columns = keys.decode(np.arange(keys.size))
    assert len(set(zip(*columns.values(), strict=True))) == keys.size
    assert keys.encode(columns).tolist() == list(range(keys.size))
    whole = sparse.Keys.of(1 << 63)
    assert (whole.size, whole.encode({"code": np.array([(1 << 63) - 1])}).tolist()) == (1 << 63, [(1 << 63) - 1])
    for wrong in ((1 << 63) + 1, {"a": range(1 << 40), "b": range(1 << 24)}):
        with pytest.raises(ParameterError):
            sparse.Keys.of(wrong)
    assert whole.box({"code": (3, (1 << 63) - 1)}) == [range(3, 1 << 63)]
    with pytest.raises(ParameterError):
        keys.encode({"when": [9], "who": ["xx"], "sex": ["f"]})


ONES = (
    Contribution(),
    Contribution(cells=2, each=2, total=3),
    Contribution(total=2),
    Contribution(cells=2, each=1, neighbors=Neighbors.REPLACE_ONE),
    Contribution(total=3, neighbors=Neighbors.REPLACE_ONE),
)


@pytest.mark.parametrize("one", ONES)
def test_noise_is_for_the_farthest_that_a_unit_moves_the_cells(one: Contribution) -> None:
    units = [
        row
        for row in itertools.product(range(one.each + 1), repeat=6)
        if sum(row) <= one.total and sum(x > 0 for x in row) <= one.cells
    ]
    others = units if one.neighbors is Neighbors.REPLACE_ONE else [(0,) * 6]
    rows, moved = np.array(units), np.array(others)
    apart = np.abs(rows[:, None, :] - moved[None, :, :])
    terms = Terms.at(1, contribution=one)
    made = sparse.Largest(count=2).mechanism(6, terms)
    assert made.sensitivity == apart.sum(axis=2).max()
    assert made.event.epsilon <= 1
    first = sparse.FirstAbove(at=5).mechanism(6, terms)
    assert first.vector.sensitivity == apart.max()
    rising = bool((rows[:, None, :] >= moved[None, :, :]).all())
    assert first.vector.monotone is rising is (one.neighbors is Neighbors.ADD_REMOVE)


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        (sparse.Threshold(at=20), SparseThreshold),
        (sparse.Threshold(expected_false=5), SparseThreshold),
        (sparse.HighPass(least=20), SparseSample),
        (sparse.HighPass(expected_false=5), SparseSample),
        (sparse.Largest(count=3), SparseLargest),
        (sparse.Priority(count=3, least=25), SparsePriority),
        (sparse.FirstAbove(at=400, count=3, numbers=Fraction(1, 2)), SparseFirst),
    ],
)
def test_each_filter_shows_the_large_cells_of_a_huge_domain(shown: Any, kind: type) -> None:
    """At ε = 4 the noise passes 20 with probability e^-80 a cell."""
    size = 1 << 40
    assert isinstance(shown.mechanism(size, Terms.at(4)), kind)
    found = sparse.run([5, 1 << 39, 77], [1000, 2000, 3000], size, shown, epsilon=4)
    assert found.codes.tolist() == sorted(found.codes.tolist())
    for code, count in ((5, 1000), (77, 3000), (1 << 39, 2000)):
        assert abs(found.value(code) - count) < 60
    if "expected_false=5" not in repr(shown):
        assert found.codes.tolist() == [5, 77, 1 << 39]
    assert found.value(6) == 0


def test_a_threshold_is_the_least_with_so_few_false_cells() -> None:
    for expected in (0.5, 10, 1e6):
        made = sparse.Threshold(expected_false=expected).mechanism(1 << 40, Terms.at(1))
        assert made.false_cells <= expected < made.false_cells * math.e
        both = sparse.HighPass(expected_false=expected).mechanism(1 << 40, Terms.at(1))
        assert both.false_cells <= expected < both.false_cells * math.e
        sample = sparse.Sample(expected_false=expected).mechanism(1 << 40, Terms.at(1))
        assert sample.false_cells <= expected < 2.1 * sample.false_cells


def test_a_mechanism_for_one_row_is_refused_for_units_with_two() -> None:
    meter = Meter({"a": Budget(epsilon=Fraction(9))})
    two = Contribution(total=2)
    secret = Secret(Nonzeros.of([1], [2], size=4), Facts(account="a", sensitivity=CellLayer(shape=(4,)).reach(two)))
    with pytest.raises(MisfitError):
        meter.measure(SparseThreshold(epsilon=Fraction(1), size=4, threshold=1), secret)


def test_the_price_is_charged_once() -> None:
    meter = Meter({"a": Budget(epsilon=Fraction(2))})
    sparse.run([1], [9], 100, sparse.Largest(count=2), epsilon=1, meter=meter, account="a")
    assert meter.spent("a").epsilon_at(Fraction(0)) == 1


def test_sums_over_boxes_count_what_is_shown_and_say_when_there_is_no_error() -> None:
    over: dict[str, Any] = {"city": ["a", "b", "c"], "word": sparse.Words(alphabet="xy", length=2)}
    data = {"city": ["b", "a", "b"], "word": ["xy", "yy", "yx"]}
    found = sparse.run(data, [40, 50, 60], over, sparse.Threshold(at=20), epsilon=SHARP, grid=Fraction(1, 2))
    assert found.to_table() == {"city": ["a", "b", "b"], "word": ["yy", "xy", "yx"], "value": [25.0, 20.0, 30.0]}
    assert found.within(city="b").value == 50
    assert found.within(city=("a", "b"), word=("xy", "yx")).value == 50
    assert found.within(city="b").deviation is None
    assert found.value({"city": "b", "word": "yx"}) == 30
    with pytest.raises(ParameterError):
        found.within(town="b")


@pytest.mark.parametrize("shown", [sparse.Sample(expected_false=40), sparse.Priority(count=80)])
def test_sums_of_samples_are_right_on_average_with_the_variance_that_they_say(shown: Any) -> None:
    """Means within 5 standard errors, variances within nearly 6 (0.06 each): a false alarm in 10^6."""
    size, places = 4096, np.arange(0, 4096, 64)
    counts = np.arange(1, 65)
    drawn = [sparse.run(places, counts, size, shown, epsilon=1).within(code=(0, 2047)) for _ in range(600)]
    values = np.array([one.value for one in drawn])
    said = np.array([one.deviation or math.nan for one in drawn])
    assert abs(values.mean() - counts[:32].sum()) < 5 * values.std() / math.sqrt(600)
    assert 0.65 < values.var() / np.mean(said**2) < 1.5


def test_a_release_is_read_as_it_was_written(tmp_path: Path) -> None:
    over: dict[str, Any] = {"when": range(1 << 20), "word": sparse.Words(alphabet="xyz", length=5, shorter=True)}
    for shown in (sparse.Priority(count=10), sparse.FirstAbove(at=9, count=2)):
        found = sparse.run({"when": [7], "word": ["xy"]}, [500], over, shown, epsilon=1)
        found.save(tmp_path / "a.json")
        again = sparse.load(tmp_path / "a.json")
        assert again.to_table() == found.to_table()
        assert (again.keys, again.level, again.epsilon) == (found.keys, found.level, found.epsilon)
        assert again.within(when=(0, 9)) == found.within(when=(0, 9))
    (tmp_path / "b.json").write_text("{}")
    for wrong in ("b.json", "none.json"):
        with pytest.raises(ParameterError):
            sparse.load(tmp_path / wrong)


def test_what_cannot_be_shown_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ParameterError):
        SparseLargest(epsilon=Fraction(40), size=1 << 40, count=1000)
    with pytest.raises(ParameterError):
        SparseThreshold(epsilon=Fraction(1), size=4, threshold=0)
    with pytest.raises(ParameterError):
        SparseSample(epsilon=Fraction(1), size=4, level=3)
    wrongs: tuple[dict[str, Any], ...] = ({}, {"at": 1, "expected_false": 1})
    for wrong in wrongs:
        with pytest.raises(ParameterError):
            sparse.Threshold(**wrong)
    for places, counts in (([4], [1]), ([-1], [1]), ([1, 2], [1])):
        with pytest.raises(ParameterError):
            sparse.run(places, counts, 4, sparse.Largest(count=1), epsilon=1)
