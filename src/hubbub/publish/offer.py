"""A publication before it is paid: the plan of its cells, what one unit adds to them, the strategy for that, its price.

Public facts alone decide. And the answer that is stored afterwards, written and read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hubbub.errors import AccountingError, HubbubError, LedgerCorrupt, NotAllowed, ParameterError
from hubbub.ledger.entry import canonical
from hubbub.parameters import Real, whole
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import Charge, Filter, price_of
from hubbub.privacy.sensitivity import Norm
from hubbub.privacy.ways import ChosenWay, Payer
from hubbub.publish import tags
from hubbub.publish.axes import Layout
from hubbub.publish.domain import Domain
from hubbub.publish.release import saved
from hubbub.publish.release import saved as stored
from hubbub.publish.strategies.layer import CellLayer
from hubbub.publish.strategies.strategy import Prepared, Strategy
from hubbub.publish.terms import Contribution, Noise, Terms
from hubbub.query.missing.bought import WantedFact, apply_facts
from hubbub.query.missing.looks import Look
from hubbub.query.plan.plan import Plan, plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The publication that a user asks for, as it was stated."""

    strategy: Strategy
    over: Mapping[str, Sequence[Any]] | Domain
    epsilon: Real
    delta: Real | None = None
    table: str | None = None
    where: str | None = None
    cells: int | None = None
    each: int | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Everything that is known before anything is paid or read."""

    question: str
    policy: Policy
    """With the limits that were said or bought."""
    layout: Layout
    planned: Plan
    asked: Strategy
    strategy: Strategy
    """As it was asked, with what was drawn or searched for; and with Gaussian noise where the account could not pay for
    the other."""
    prepared: Prepared
    ways: tuple[ChosenWay, ...]
    """The noise that was chosen by the balance, if any: a charge that lost its answer is answered with it."""
    price: Fraction
    known: Mapping[WantedFact, Any]
    unknown: Mapping[Look, Fraction]


def prepare_offer(
    wish: Wish,
    layout: Layout,
    policy: Policy,
    facts: Mapping[WantedFact, Any],
    *,
    price: Fraction,
    rest: Fraction,
    payer: Payer,
    ways: Sequence[ChosenWay] | None = None,
) -> Offer:
    """Prepare the wish with the facts that are known, for the rest of the price; with the noise that was paid for."""
    question, bounded = apply_facts(layout.question, policy, facts)
    planned = plan(question, bounded, epsilon=rest, delta=wish.delta, most_cells=layout.group_count)
    slack = planned.delta if policy.budget.delta else Fraction(0)
    terms = Terms(epsilon=planned.epsilon, delta=slack, contribution=contribution_of(planned))
    placed = _place_names(wish.strategy, layout.domain)
    noise = _payable_noise(placed, layout.domain, terms, payer) if ways is None else _noise_of(ways)
    chosen = placed if noise is None else replace(placed, noise=noise)  # type: ignore[type-var]
    prepared = chosen.prepare(layout.domain.shape, terms)
    return Offer(
        question=f"PUBLISH {canonical(tags.to_json(wish.strategy))} {question.identity}",
        policy=bounded,
        layout=layout,
        planned=planned,
        asked=wish.strategy,
        strategy=tags.pin(chosen, prepared),
        prepared=prepared,
        ways=() if noise is None else ((noise.value, terms.epsilon),),
        price=price,
        known=facts,
        unknown={},
    )


def _place_names(strategy: Strategy, domain: Domain) -> Strategy:
    """With places for the names of columns, where a strategy has any."""
    named = getattr(strategy, "name_axes", None)
    placed: Strategy = strategy if named is None else named(domain)
    return placed


def contribution_of(planned: Plan) -> Contribution:
    """Return the contribution bounds of the aggregate, in the terms of strategies."""
    aggregate = planned.aggregate
    (tally,) = aggregate.tallies
    together = aggregate.together
    one = Contribution(
        cells=aggregate.most_groups,
        each=tally.bounds[1],
        total=0 if together is None else together.total,
        neighbors=planned.policy.budget.neighbors,
    )
    proven, used = planned.measurements[0].sensitivity, CellLayer(shape=(planned.cells,)).reach(one)
    for norm in (Norm.L1, Norm.L2):
        least, most = proven.in_norm(norm), used.in_norm(norm)
        if least is None or most is None or most < least:
            raise AccountingError("What one unit adds to the cells is more than the strategy would be told.")
    return one


def _payable_noise(strategy: Strategy, domain: Domain, terms: Terms, payer: Payer) -> Noise | None:
    """Return the other noise, where the balance cannot pay for that which errs less and can for this; else None."""
    if not terms.delta or getattr(strategy, "noise", Noise.LAPLACE) is not None:
        return None
    if not _can_pay(payer, strategy.prepare(domain.shape, terms)):
        for noise in (Noise.GAUSSIAN, Noise.LAPLACE):
            other = replace(strategy, noise=noise)  # type: ignore[type-var]
            if _can_pay(payer, other.prepare(domain.shape, terms)):
                return noise
    return None


def _noise_of(ways: Sequence[ChosenWay]) -> Noise | None:
    """Return the noise of a charge that waits for its answer; None for that of the strategy itself."""
    return Noise(ways[0][0]) if ways else None


def _can_pay(payer: Payer, prepared: Prepared) -> bool:
    return payer.can_pay([measurement.mechanism.event for measurement in prepared.measurements])


def cost_of(prepared: Prepared, account: Filter) -> Charge:
    """Return the charge of all measurements to an account."""
    return price_of(account, [measurement.mechanism.event for measurement in prepared.measurements])


def limit_policy(policy: Policy, wish: Wish) -> Policy:
    """The limits that the wish says itself. It may not say more than the owner did."""
    said: dict[str, int] = {}
    asked = (
        ("max_groups", "cells", wish.cells),
        ("max_rows", "each", wish.each),
        ("max_total_rows", "rows", wish.rows),
    )
    for name, called, value in asked:
        if value is None:
            continue
        said[name] = whole(called, value, least=1)
        declared = getattr(policy.limits, name)
        if declared is not None and said[name] > declared:
            raise NotAllowed(f"{called} is {said[name]}, and the owner allows {declared} ({name}). Say less.")
    for name in ("max_groups", "max_rows"):
        if "max_total_rows" in said and name not in said and getattr(policy.limits, name) is None:
            said[name] = said["max_total_rows"]  # so many rows are in no more groups, and no more of them in one
    return replace(policy, limits=replace(policy.limits, **said)) if said else policy  # type: ignore[arg-type]


def table_of(policy: Policy, name: str | None) -> str:
    """The table that is meant: the only private one, where none is named."""
    private = [table.name for table in policy.tables.values() if table.unit is not None]
    if name is None and len(private) == 1:
        return private[0]
    found = next((one for one in policy.tables if name is not None and one.lower() == name.lower()), None)
    if found is None:
        raise ParameterError("table", f"one of {', '.join(private)}", name)
    return found


def write_answer(made: Offer, noisy: Sequence[Any]) -> str:
    """Return the text that the ledger keeps."""
    terms = made.prepared.terms
    return json.dumps(
        {
            "publish": stored.VERSION,
            "epsilon": str(terms.epsilon),
            "delta": str(terms.delta),
            "strategy": tags.to_json(made.strategy),
            "events": saved.events_name(tuple(one.mechanism.event for one in made.prepared.measurements)),
            "noisy": stored.all_packed(noisy),
        }
    )


def read(answer: str, made: Offer) -> tuple[Strategy, Prepared, tuple[Any, ...]]:
    """Read a stored answer: one of this price, or of a higher one, whose errors are its own."""
    try:
        told = json.loads(answer)
        if told["publish"] != stored.VERSION:
            raise ValueError("another version")
        terms = replace(made.prepared.terms, epsilon=Fraction(told["epsilon"]), delta=Fraction(told["delta"]))
        strategy, prepared = tags.from_json(told["strategy"]), made.prepared
        if terms != prepared.terms or tags.to_json(made.strategy) != told["strategy"]:
            prepared = strategy.prepare(made.layout.domain.shape, terms)
        return strategy, prepared, saved.numbers(told["noisy"], told["events"], prepared)
    except (ValueError, KeyError, TypeError, HubbubError) as problem:
        raise LedgerCorrupt("A stored publication cannot be read by this version of Hubbub.") from problem
