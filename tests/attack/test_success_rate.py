"""How often an attack is right beside chance: laws against sums of exact fractions, and verdicts on both sides."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from hubbub.attack.finding import AttackFinding
from hubbub.attack.made_up import MadeUp
from hubbub.attack.reconstruction import METHODS, exact, reconstruction
from hubbub.attack.success_rate import LEVEL, against_guessing, against_likely_records, against_strangers, most_allowed


def tail(right: int, trials: int, chance: Fraction) -> Fraction:
    """P(Binomial >= right), exactly."""
    return sum(
        (math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(right, trials + 1)), Fraction(0)
    )


@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(101, 200), Fraction(9, 10), Fraction(1, 5)])
@pytest.mark.parametrize(("right", "trials"), [(0, 1), (1, 1), (7, 20), (20, 20), (119, 200), (189, 200), (200, 200)])
def test_guesses_follow_the_binomial_law(right: int, trials: int, chance: Fraction) -> None:
    result = against_guessing(right, trials=trials, chance=float(chance))
    assert result.p_value == pytest.approx(float(tail(right, trials, chance)), rel=1e-9)
    assert result.least_p_value == pytest.approx(float(chance**trials), rel=1e-9)
    twice = against_guessing(right, trials=trials, chance=float(chance), tries=2)
    assert twice.p_value == pytest.approx(min(1.0, 2 * result.p_value))


def test_the_level_is_met_on_both_sides() -> None:
    """Of 200 fair bits 134 are needed; 20 are the fewest that can tell."""
    assert tail(134, 200, Fraction(1, 2)) < LEVEL < tail(133, 200, Fraction(1, 2))
    assert against_guessing(134, trials=200, chance=0.5).is_better
    few = against_guessing(133, trials=200, chance=0.5)
    assert not few.is_better
    assert few.is_decidable
    assert few.verdict == "not significantly better than chance"
    assert against_guessing(20, trials=20, chance=0.5).is_better
    least = against_guessing(19, trials=19, chance=0.5)
    assert not least.is_decidable
    assert "(all right: p = 1.9e-06)" in str(least)


@pytest.mark.parametrize(("members", "strangers", "rank"), [(3, 5, 1), (4, 6, 2), (2, 9, 4)])
def test_members_follow_the_law_of_ranks(members: int, strangers: int, rank: int) -> None:
    """Against every order in which members and strangers can stand."""
    seen: Counter[int] = Counter()
    orders = list(itertools.combinations(range(members + strangers), members))
    for places in orders:
        others = [place for place in range(members + strangers) if place not in places]
        seen[sum(place < others[rank - 1] for place in places)] += 1
    for above in range(members + 1):
        result = against_strangers(above, members=members, strangers=strangers, rank=rank)
        wanted = Fraction(sum(many for k, many in seen.items() if k >= above), len(orders))
        assert result.p_value == pytest.approx(float(wanted))
    assert result.p_value == pytest.approx(result.least_p_value)
    assert result.chance == pytest.approx(sum(k * many for k, many in seen.items()) / len(orders) / members)


def test_records_are_bounded_by_their_law() -> None:
    """Against every block of five people, each as likely as the shares of the attributes make it."""
    cells = list(itertools.product("fm", "lh"))
    truth = [("f", "l"), ("f", "l"), ("f", "h"), ("m", "l"), ("f", "l")]
    share = {"f": Fraction(4, 5), "m": Fraction(1, 5), "l": Fraction(4, 5), "h": Fraction(1, 5)}
    blocks = {block: math.prod(share[a] * share[b] for a, b in block) for block in itertools.product(cells, repeat=5)}
    assert sum(blocks.values()) == 1

    def overlap(left: object, right: object) -> int:
        return (Counter(left) & Counter(right)).total()  # type: ignore[call-overload, no-any-return]

    best = max(
        sum(p * overlap(guess, block) for block, p in blocks.items())
        for guess in itertools.combinations_with_replacement(cells, 5)
    )
    for guess in ([("f", "l")] * 5, truth, [("m", "h")] * 5, truth[:3]):
        result = against_likely_records(guess, truth, cells=cells)
        assert result.right == overlap(guess, truth)
        likely = sum(p for block, p in blocks.items() if overlap(guess, block) >= result.right)
        assert float(likely) <= result.p_value <= 1
        assert result.chance == pytest.approx(float(best) / 5)
    met = sum(p for block, p in blocks.items() if overlap(truth, block) == 5)
    assert float(met) <= result.least_p_value <= 6 * float(met), "a bound, and no empty one"


def test_what_epsilon_allows() -> None:
    assert most_allowed(0.5, epsilon=1) == pytest.approx(math.e / (1 + math.e))
    assert most_allowed(0.2, epsilon=0) == pytest.approx(0.2)
    assert most_allowed(0.01, epsilon=1) < 0.01 * math.e


def rebuilt(wrong: int, people: int = 200) -> AttackFinding:
    """Exact answers about a column in which some bits are turned over: all others are rebuilt."""
    secret = MadeUp(0, "secret").bits(people)
    turned = secret.copy()
    turned[Random(1).sample(range(people), wrong)] ^= 1
    return reconstruction(secret, exact(turned), target="a column with mistakes")


def test_nearly_everything_rebuilt_is_something_rebuilt() -> None:
    """94.5% of 200 bits, of which 50.5% are the commoner one, is no luck."""
    result = rebuilt(11)
    assert result.works
    assert result.verdict == "94.5% of the bits were found, and 50.5% by chance."
    assert result.rate is not None
    assert (result.rate.right, result.rate.trials, result.rate.chance) == (189, 200, 0.505)
    assert result.rate.p_value == pytest.approx(float(tail(189, 200, Fraction(101, 200))), rel=1e-9)
    assert result.rate.p_value < 1e-40
    assert "189 of 200 guesses are right (94.5%); without the release 50.5% would be." in str(result)
    assert result.to_dict()["rate"]["is_better"] is True
    assert result.numbers["people"] == 200


@pytest.mark.parametrize(("wrong", "works"), [(65, True), (66, False)])
def test_the_verdict_turns_at_the_level(wrong: int, works: bool) -> None:
    """135 of 200 where chance is 50.5% have p = 8.4e-07, and 134 have 1.7e-06."""
    result = rebuilt(wrong)
    assert result.rate is not None
    assert result.works is works is (tail(200 - wrong, 200, Fraction(101, 200)) <= LEVEL)
    assert not result.is_undecided
    assert ("not significantly better" in result.verdict) is not works


def test_the_best_of_two_methods_is_charged_for_both() -> None:
    secret = MadeUp(1, "secret").bits(40)
    alone = reconstruction(secret, exact(secret), target="exact answers")
    both = reconstruction(secret, exact(secret), target="exact answers", methods=METHODS)
    assert both.numbers["p"] == pytest.approx(2 * alone.numbers["p"])


def test_a_column_of_one_value_cannot_be_rebuilt() -> None:
    result = reconstruction(np.ones(50), exact(np.ones(50)), target="exact answers")
    assert not result.works
    assert result.is_undecided
    assert result.numbers["p"] == 1
