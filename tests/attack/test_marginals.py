"""Records from published tables: against every block that has the same counts, and through the gate."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest

from hubbub.attack.marginals import CENSUS, Margin, block, certain, consistent, marginals, margins, overlap, rebuild
from hubbub.cli.lab.targets import publish_tables
from hubbub.errors import ParameterError

SMALL = {"sex": ("f", "m"), "age": ("low", "high"), "race": ("A", "B", "C")}
CELLS = list(itertools.product(*SMALL.values()))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ways", [1, 2])
def test_against_every_block(seed: int, ways: int) -> None:
    truth = block(people=4, seed=seed, domain=SMALL)
    tables = margins(truth, domain=SMALL, ways=ways)
    fitting = [
        Counter(tried)
        for tried in itertools.combinations_with_replacement(CELLS, 4)
        if margins(tried, domain=SMALL, ways=ways) == tables
    ]
    found = consistent(tables, domain=SMALL, most=1000)
    assert len(found) == len(fitting)
    assert all(Counter(one) in fitting for one in found)
    everywhere = fitting[0]
    for other in fitting:
        everywhere = everywhere & other
    assert Counter(certain(tables, domain=SMALL)) == everywhere
    assert Counter(rebuild(tables, domain=SMALL)) in fitting


def test_most_ends_the_search() -> None:
    tables = margins(block(people=8, domain=SMALL), domain=SMALL, ways=1)
    assert len(consistent(tables, domain=SMALL, most=3)) == 3


def test_three_way_tables_tell_everything() -> None:
    truth = block(people=20, seed=1)
    found = marginals(truth, margins(truth, domain=CENSUS, ways=3), target="exact counts")
    assert found.works
    assert found.numbers["right"] == 1.0
    assert "certain" in found.columns


def test_one_way_tables_tell_little() -> None:
    truth = block(people=20, seed=1)
    found = marginals(truth, margins(truth, domain=CENSUS, ways=1), target="exact counts", most=2)
    assert not found.works
    assert found.numbers["blocks"] == 2


def test_through_the_gate() -> None:
    """At ε = 1/4 a table, no block has all these 116 noisy counts but with probability below 1e-6."""
    truth = block(people=20, seed=1)
    exact = margins(truth, domain=CENSUS, ways=3)
    noisy = publish_tables(truth, domain=CENSUS, ways=exact, epsilon=Fraction(1))
    assert [table.of for table in noisy] == [table.of for table in exact]
    assert [set(table.counts) for table in noisy] == [set(table.counts) for table in exact]
    found = marginals(truth, noisy, target="Hubbub")
    assert not found.works
    assert found.numbers["certain"] == 0


def test_records_are_counted_as_often_as_they_are_there() -> None:
    assert overlap([("a",), ("a",), ("b",)], [("a",), ("c",), ("a",), ("a",)]) == 2


def test_records_that_nobody_has_count_against_it() -> None:
    two = [("f", "low", "A"), ("m", "high", "B")]
    found = marginals(two[:1], margins(two, domain=SMALL, ways=2), domain=SMALL, target="too many")
    assert found.numbers["right"] == 0.5


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ParameterError, match="about sex"):
        rebuild([Margin(of=("shoe",), counts={("44",): 1})], domain=SMALL)
    with pytest.raises(ParameterError, match="combinations"):
        rebuild([], domain={"a": tuple(map(str, range(100))), "b": tuple(map(str, range(100)))})
    impossible = [
        Margin(of=("sex",), counts={("f",): 1, ("m",): 0}),
        Margin(of=("age",), counts={("low",): 3, ("high",): 0}),
    ]
    assert certain(impossible, domain=SMALL) == []
    assert consistent(impossible, domain=SMALL) == []
