"""Of all noise that can be paid for the one that errs least: more ε never brings less, whatever was paid before."""

import json
from fractions import Fraction
from random import Random

import pytest

from hubbub.errors import HubbubError
from hubbub.policy.tables import Limits
from hubbub.privacy.charge import FREE, LOSS_UNIT, Charge, Room, Spent
from hubbub.privacy.events.event import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event
from hubbub.privacy.filter import Budget, Filter, price_of
from hubbub.privacy.sensitivity import Neighbors
from hubbub.privacy.ways import Payer, Way, choose
from hubbub.query.answer import stored
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.plan.plan_terms import size_of
from hubbub.query.plan.within import margins
from tests.query.asking import policy, read

MOST_EPSILON = Fraction(8)

ONE_NUMBER = (
    "select count(*) from stays",
    "select count(distinct patient_id) from stays",
    "select sum(cost) from stays",
    "select ward, count(*) from stays group by ward",
    "select ward, urgent, sum(age) from stays group by ward, urgent",
)
SEVERAL = (
    "select ward, count(*), sum(cost), sum(age) from stays group by ward",
    "select avg(cost) from stays",
    "select count(*), avg(cost), sum(age), sum(cost) from stays",
    "select median(cost), count(*) from stays",
)
EPSILONS = tuple(Fraction(1, 20) * Fraction(5, 4) ** step for step in range(23))


def history(random: Random, budget: Budget) -> Spent:
    """Spend some of a budget on Gaussian and on pure noise, as long as it is let through."""
    terms, spent = budget.filter, Spent()
    for _ in range(random.randrange(6)):
        scale = Fraction(random.randint(1, 400), 10)
        gaussian = budget.delta and random.random() < 0.5
        event: Event = (
            DiscreteGaussianEvent(sigma=scale, neighbors=budget.neighbors)
            if gaussian
            else DiscreteLaplaceEvent(scale=scale, neighbors=budget.neighbors)
        )
        charge = terms.charge_of(event)
        spent = spent.plus(charge) if terms.fits(spent, charge) else spent
    return spent


def payer_of(budget: Budget, spent: Spent) -> Payer:
    """Whoever has spent this of a budget."""
    return Payer(terms=budget.filter, room=budget.filter.remaining(spent))


def some_budget(random: Random) -> Budget:
    delta = random.choice([Fraction(0), Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 1000)])
    neighbors = random.choice([Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
    return Budget(epsilon=Fraction(random.randint(5, 80), 10), delta=delta, neighbors=neighbors)


def planned(text: str, budget: Budget, payer: Payer, epsilon: Fraction, *, groups: int) -> Plan | None:
    """The plan at an ε; None where it would be refused."""
    limits = Limits(max_groups=groups, max_rows=3)
    made = plan(read(text), policy(budget=budget, limits=limits), epsilon=epsilon, payer=payer)
    return made if payer.can_pay(made.events) else None


@pytest.mark.parametrize("part", range(10))
def test_margins_never_grow_with_epsilon(part: int) -> None:
    """500 random triples of account, history and question; every ε of a ladder in each."""
    random, seen = Random(part), set()
    for _ in range(50):
        budget = some_budget(random)
        payer = payer_of(budget, history(random, budget))
        several = random.random() < 0.3
        text, groups = random.choice(SEVERAL if several else ONE_NUMBER), random.randint(1, 6)
        before: tuple[Fraction, Plan] | None = None
        for epsilon in EPSILONS:
            made = planned(text, budget, payer, epsilon, groups=groups)
            if made is None:
                continue
            assert made.used <= made.epsilon
            seen.add((made.ways[0][0], made.used < made.epsilon))
            if before is not None:
                last, known = before
                said = f"{text} at {float(last):g} and {float(epsilon):g}: {known.ways} and {made.ways}"
                assert size_of(made.measurements) <= size_of(known.measurements), said
                if not several:
                    assert margins(made, 0.05) <= margins(known, 0.05), said
            before = epsilon, made
    assert {("pure", False), ("gaussian", False)} <= seen
    assert any(less for _, less in seen), "some use less than was asked for, since it errs less"


def test_a_gaussian_account_uses_pure_noise_at_a_lower_epsilon_where_that_errs_less() -> None:
    budget = Budget(epsilon=Fraction(4), delta=Fraction(1, 10**9))
    spent = Spent().plus(budget.filter.charge_of(DiscreteGaussianEvent(sigma=Fraction(8))))
    assert spent.pure is None
    payer = payer_of(budget, spent)
    made = planned("select count(*) from stays", budget, payer, Fraction(1), groups=1)
    assert made is not None
    ((name, used),) = made.ways
    assert name.startswith("pure")
    assert used < 1
    assert made.used_delta == 0
    more = plan(
        read("select count(*) from stays"), made.policy, epsilon=used + LOSS_UNIT, ways=((name, used + LOSS_UNIT),)
    )
    assert not payer.can_pay(more.events), "the greatest ε that can be paid for, to the unit"
    at_all_of_it = plan(made.question, made.policy, epsilon=1, ways=(("gaussian", Fraction(1)),))
    assert payer.can_pay(at_all_of_it.events)
    assert size_of(at_all_of_it.measurements) > size_of(made.measurements)


def test_four_counts_at_one_are_all_geometric() -> None:
    budget = Budget(epsilon=Fraction(4), delta=Fraction(1, 10**9))
    spent = Spent()
    for _ in range(4):
        made = planned("select count(*) from stays", budget, payer_of(budget, spent), Fraction(1), groups=1)
        assert made is not None
        assert made.ways == (("pure", Fraction(1)),)
        assert [type(one).__name__ for one in made.mechanisms] == ["Geometric"]
        spent = budget.filter.spend(spent, price_of(budget.filter, made.events))
    assert planned("select count(*) from stays", budget, payer_of(budget, spent), Fraction(1), groups=1) is None


def test_sets_are_one_charge() -> None:
    """What the first set takes is not there for the second: together they can be paid for, or are refused."""
    budget = Budget(epsilon=Fraction(2), delta=Fraction(1, 10**6))
    text = "select ward, count(*) from stays group by rollup (ward)"
    random, answered = Random(5), 0
    for _ in range(60):
        payer = payer_of(budget, history(random, budget))
        made = planned(text, budget, payer, Fraction(random.randint(1, 20), 10), groups=2)
        if made is not None:
            answered += 1
            assert len(made.ways) == 2
    assert answered > 20


def test_a_plan_is_made_again_from_its_ways() -> None:
    random = Random(8)
    for _ in range(40):
        budget = some_budget(random)
        text = random.choice((*ONE_NUMBER, *SEVERAL))
        payer = payer_of(budget, history(random, budget))
        made = planned(text, budget, payer, random.choice(EPSILONS), groups=3)
        if made is not None:
            again = plan(made.question, made.policy, epsilon=made.epsilon, delta=made.delta, ways=made.ways)
            assert again.events == made.events


def count_admitted(caps: list[tuple[str, int]], charges: list[Charge], failure_cap: int) -> int:
    """The charges before the first that a filter of one sum refuses."""
    ((name, cap),) = caps
    total = failure = 0
    for place, charge in enumerate(charges):
        part = getattr(charge, name)
        failure += charge.failure
        if part is None or total + part > cap or failure > failure_cap:
            return place
        total += part
    return len(charges)


@pytest.mark.parametrize("part", range(4))
def test_the_mix_that_fits_is_at_least_that_of_the_better_single_sum(part: int) -> None:
    """200 random histories of pure and Gaussian questions, up to the first that is refused."""
    random, better = Random(100 + part), 0
    for _ in range(50):
        budget = Budget(epsilon=Fraction(random.randint(10, 60), 10), delta=Fraction(1, 10 ** random.randint(3, 9)))
        terms: Filter = budget.filter
        charges = []
        for _ in range(80):
            scale = Fraction(random.randint(8, 300), 10)
            gaussian = random.random() < 0.3
            event: Event = DiscreteGaussianEvent(sigma=scale) if gaussian else DiscreteLaplaceEvent(scale=scale)
            charges.append(terms.charge_of(event))
        spent, passed = Spent(), 0
        for charge in charges:
            if not terms.fits(spent, charge):
                break
            spent, passed = terms.spend(spent, charge), passed + 1
        singles = [
            count_admitted([(name, getattr(terms, cap))], charges, terms.failure_cap)
            for name, cap in (("pure", "pure_cap"), ("loss", "loss_cap"))
        ]
        assert passed >= max(singles)
        better += max(singles) > 0
    assert better > 25


def test_room_says_what_can_be_spent_and_no_more() -> None:
    own, shared = Charge(loss=5, failure=9, pure=3), Charge(loss=50, failure=4, pure=30)
    assert Room.of([own, shared]).parts == (Charge(loss=5, failure=4, pure=3),), "what others leave decides nothing"
    crossed = Room.of([Charge(loss=5, pure=30), Charge(loss=50, pure=3)])
    assert len(crossed.parts) == 2
    assert crossed.fits(Charge(loss=50, pure=3))
    assert crossed.fits(Charge(loss=5, pure=None))
    assert crossed.fits(Charge(loss=6, pure=4)), "each by another of its sums"
    assert not crossed.fits(Charge(loss=51, pure=4))
    assert not Room.of([Charge(loss=5, pure=None)]).fits(Charge(loss=6, pure=0))
    assert Room.of([Charge(loss=0, pure=None)]).fits(FREE)
    assert crossed.count(Charge(loss=5, pure=1)) == 10
    assert Room.of([Charge(loss=7, failure=1, pure=0)]).count(Charge(loss=2, failure=1, pure=None)) == 1
    assert crossed.count(FREE) is None


def test_ways_that_cannot_be_made_are_left_out() -> None:
    payer = Payer.of(Budget(epsilon=Fraction(1)))

    def never(epsilon: Fraction) -> Fraction:
        raise HubbubError("Not at any ε.")

    def events(made: Fraction) -> list[Event]:
        return [DiscreteLaplaceEvent(scale=1 / made)]

    bad = Way(name="bad", make=never, events=events, size=lambda made: (0.0,))
    good = Way(name="good", make=lambda epsilon: epsilon, events=events, size=lambda made: (1.0,))
    assert choose([bad, good], epsilon=Fraction(1, 2), payer=payer).way == ("good", Fraction(1, 2))
    with pytest.raises(HubbubError, match="Not at any"):
        choose([bad], epsilon=Fraction(1, 2), payer=payer)
    assert choose([good], epsilon=Fraction(2), payer=payer).epsilon == 2, "refused, and not answered at less"


@pytest.mark.parametrize(("epsilon", "noise"), [(Fraction(1, 2), "Geometric"), (Fraction(3, 4), "Gaussian")])
def test_answers_of_the_first_version_are_read_with_the_noise_that_they_had(epsilon: Fraction, noise: str) -> None:
    """They name no way: it was pure noise that the whole account's ρ could pay for, else Gaussian."""
    held = policy(budget=Budget(epsilon=Fraction(4), delta=Fraction(1, 10**9)))
    question = read("select count(*) from stays")
    made = plan(question, held, epsilon=epsilon, ways=())
    assert [type(one).__name__ for one in made.mechanisms] == [noise]
    assert made.ways == ()
    old = {"delta": str(made.delta), "epsilon": str(made.epsilon), "groups": stored.groups_name(made), "noisy": [[7]]}
    terms, (drawn,) = stored.read(json.dumps(old), plan(question, held, epsilon=epsilon))
    assert terms == stored.DrawnTerms.of(made)
    assert drawn.noisy == [[7]]
