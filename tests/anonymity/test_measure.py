"""k, l and t by hand, by the papers' own examples, and what every report says."""

import math
from collections import Counter

import numpy as np
import pytest

from hubbub.anonymity import Wanted, make, measure
from hubbub.anonymity.wanted import ALWAYS, entropy_diversity, recursive_ratio, scale_of
from hubbub.attack.composition import HOSPITALS, LECTURE, hospitals, lecture
from hubbub.errors import ParameterError


def test_the_lectures_tables() -> None:
    four, six = (measure(table, quasi=LECTURE, sensitive="condition") for table in lecture())
    assert (four.k, six.k) == (4, 6)
    assert (four.l, six.l) == (1, 3)
    assert four.alike == 4  # everybody in their thirties has cancer
    assert six.alike == 0
    first, second = (measure(table, quasi=HOSPITALS, sensitive="diagnosis") for table in hospitals())
    assert (first.k, first.l, first.alike) == (3, 1, 3)
    assert (second.k, second.l) == (3, 2)


def test_values_that_are_left_out_tell_nothing() -> None:
    rows = [{"age": "30s", "diagnosis": "*"}] * 3 + [{"age": "*", "diagnosis": one} for one in ("STD", "HIV", "Dead")]
    found = measure(rows, quasi=["age"], sensitive="diagnosis")
    assert (found.l, found.alike) == (3, 0)
    nothing = measure(rows[:3], quasi=["age"], sensitive="diagnosis")
    assert (nothing.k, nothing.l, nothing.t) == (3, None, None)


class TestDistances:
    """Salaries of nine people in three groups of three: the example of Li, Li and Venkatasubramanian."""

    salaries = (3, 4, 5, 6, 7, 8, 9, 10, 11)

    def test_steps_between_ordered_values(self) -> None:
        scale = scale_of(self.salaries, order=None)
        assert scale.ordered
        assert scale.distance(Counter((3, 4, 5))) == pytest.approx(0.375)
        assert scale.distance(Counter((6, 8, 11))) == pytest.approx(1 / 6)
        assert scale.distance(Counter(self.salaries)) == pytest.approx(0)

    def test_equal_distances(self) -> None:
        scale = scale_of(["a", "a", "b", "c"], order=None)
        assert not scale.ordered
        assert scale.distance(Counter("a")) == pytest.approx(0.5)
        assert scale.distance(Counter("bc")) == pytest.approx(0.5)
        assert scale_of(self.salaries, order=False).distance(Counter((3, 4, 5))) == pytest.approx(2 / 3)

    def test_an_order_of_ones_own(self) -> None:
        words = ["low", "middle", "high"]
        scale = scale_of(words, order=words)
        assert scale.values == ("low", "middle", "high")
        assert scale.distance(Counter(["low"])) == pytest.approx(0.5)
        assert scale.distance(Counter(["middle"])) == pytest.approx(1 / 3)
        with pytest.raises(ParameterError, match="order"):
            scale_of(words, order=["low", "high"])

    def test_the_greatest_distance_is_one(self) -> None:
        assert scale_of([0] * 999 + [1], order=None).distance(Counter([1])) == pytest.approx(0.999)
        assert scale_of([5, 5], order=None).distance(Counter([5])) == 0


def test_diversity_of_one_group() -> None:
    assert entropy_diversity(Counter("abcd")) == pytest.approx(4)
    assert entropy_diversity(Counter("aaaa")) == 1
    assert entropy_diversity(Counter("aaab")) == pytest.approx(math.exp(0.75 * math.log(4 / 3) + 0.25 * math.log(4)))
    assert recursive_ratio(Counter("aaabbc"), 2) == pytest.approx(3 / 3)
    assert recursive_ratio(Counter("aaabbc"), 3) == pytest.approx(3 / 1)
    assert recursive_ratio(Counter("aaabbc"), 4) == math.inf


def test_the_boundaries_of_what_is_wanted() -> None:
    rows = [{"q": 1, "s": one} for one in "aaabbc"] + [{"q": 2, "s": one} for one in "aabbcc"]
    found = measure(rows, quasi=["q"], sensitive="s")
    assert found.satisfies(Wanted(k=6, l=3))
    assert not found.satisfies(Wanted(k=7))
    assert not found.satisfies(Wanted(l=4))
    entropy = entropy_diversity(Counter("aaabbc"))
    assert found.satisfies(Wanted(entropy=entropy))
    assert not found.satisfies(Wanted(entropy=entropy + 1e-6))
    assert not found.satisfies(Wanted(recursive=(1, 2)))  # strictly less than c
    assert found.satisfies(Wanted(recursive=(1.001, 2)))
    assert not found.satisfies(Wanted(recursive=(3, 3)))
    assert found.satisfies(Wanted(t=found.t))
    assert not found.satisfies(Wanted(t=(found.t or 0) - 1e-6))
    with pytest.raises(ParameterError, match="sensitive"):
        measure(rows, quasi=["q"]).satisfies(Wanted(l=2))
    with pytest.raises(ParameterError, match="from 2 to 3"):
        found.satisfies(Wanted(recursive=(2, 7)))


@pytest.mark.parametrize(
    "terms",
    [{"k": 0}, {"l": 0}, {"entropy": 0.5}, {"recursive": (0, 2)}, {"recursive": (1, 0)}, {"t": -0.1}, {"t": 1.1}],
)
def test_what_nobody_can_want(terms: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        Wanted(**terms)  # type: ignore[arg-type]


def test_every_report_says_what_is_not_covered() -> None:
    rows = [{"q": place % 4, "s": "abc"[place % 3]} for place in range(24)]
    reports = [
        str(measure(rows, quasi=["q"])),
        str(measure(rows, quasi=["q"], sensitive="s")),
        str(make(rows, quasi=["q"], wanted=Wanted(k=2))),
        str(make(rows, quasi=["q"], sensitive="s", wanted=Wanted(k=2, l=2))),
        str(make(rows, quasi=["q"], sensitive="s", wanted=Wanted(k=2, t=0.9))),
    ]
    for report in reports:
        assert [line for line in ALWAYS if line not in report] == []
    assert "No sensitive column was named" in reports[0]
    assert "differ in name only" in reports[3]
    assert "as much as t" in reports[4]


def test_k_of_random_tables_against_the_obvious_count() -> None:
    chance = np.random.default_rng(1)
    for _ in range(20):
        table = {"a": chance.integers(0, 3, 30), "b": chance.integers(0, 3, 30)}
        rows = list(zip(table["a"].tolist(), table["b"].tolist(), strict=True))
        assert measure(table, quasi=["a", "b"]).k == min(rows.count(row) for row in rows)


def test_tables_without_rows_and_columns_that_are_not_there() -> None:
    assert measure({"a": []}, quasi=["a"]).k == 0
    with pytest.raises(ParameterError, match="columns of the table"):
        measure({"a": [1]}, quasi=["b"])
    with pytest.raises(ParameterError, match="not among quasi"):
        measure({"a": [1]}, quasi=["a"], sensitive="a")
