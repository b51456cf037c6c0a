"""Every attack of the lab, side by side, at small sizes: each works on its naive target, and finds out no more from
Hubbub than its ε allows."""

import math
from fractions import Fraction

import pytest

from examples.lab.side_by_side import BOUND, Line, Sizes, lines, markdown
from hubbub.attack.finding import AttackFinding
from hubbub.attack.success_rate import against_guessing, most_allowed
from hubbub.cli.lab.targets import counts

SMALL = Sizes(
    people=300, subsets=900, traced=100, attributes=2000, examples=100, answers=100, runs=30, suspects=40, guesses=100,
    records=150, pupils=40,
)  # fmt: skip
CLOCK = "a question that is slow for one person"
"""Times are shown, and never held against anybody in a test."""


@pytest.fixture(scope="module")
def found() -> dict[str, Line]:
    pytest.importorskip("sklearn", reason="Models of the lab are scikit-learn's kind.")
    return {one.attack: one for one in lines(SMALL)}


def beyond(found: AttackFinding) -> bool:
    """Whether more is found out than ε = 1 lets be found on average: by luck alone once in a million."""
    if found.rate is None:
        return found.works
    allowed = most_allowed(found.rate.chance, epsilon=2)  # a secret is one row less, and another one more
    return against_guessing(found.rate.right, trials=found.rate.trials, chance=allowed).is_better


def test_all_of_them_work_on_the_naive_target_and_fail_on_ours(found: dict[str, Line]) -> None:
    assert len(found) == 16
    naive = {name for name, one in found.items() if one.naive.works or name == CLOCK}
    assert naive == set(found)
    assert {name for name, one in found.items() if beyond(one.ours) and name != CLOCK} == set()
    many = ("random subsets, exact answers", "100 people in 2,000 means", "the low bits of Laplace noise")
    assert all(beyond(found[name].naive) for name in many), "so that this can be seen at all"


def test_the_random_subset_attack_through_the_gate(found: dict[str, Line]) -> None:
    """300 coins are right in more than 64.5% once in a million."""
    line = found["random subsets, exact answers"]
    assert line.naive.numbers["found"] > 0.95
    assert line.ours.numbers["found"] < 0.645
    assert line.naive.works
    assert not line.ours.works


def test_the_table(found: dict[str, Line]) -> None:
    text = markdown(list(found.values()))
    assert text.count("\n") == len(found) + 2
    assert "| 100.0% |" in text


def test_nothing_beats_what_epsilon_allows() -> None:
    """The best guess about one bit reaches e/(1+e), and no more: five deviations of 2,000 guesses, 6e-7 two-sided."""
    many = 1000
    right = sum(one < 1 for one in counts(0, epsilon=Fraction(1), times=many))
    right += sum(one >= 1 for one in counts(1, epsilon=Fraction(1), times=many))
    deviation = math.sqrt(BOUND * (1 - BOUND) / (2 * many))
    assert abs(right / (2 * many) - BOUND) < 5 * deviation
