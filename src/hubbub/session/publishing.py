"""From private tables to a publication: rows are counted by the query engine, bounded for each unit, charged first.

db.publish(publish.Flat(), over={"age": range(0, 110), "ward": ["a", "b"]}, epsilon=1)

It goes the way of every question: read and planned from public facts, charged before anything is read, stored, and free
when it is asked again. Only the noise is another strategy's. Strategies that need marginals alone, and filters of
``publish.sparse``, get the combinations that have rows in place of all cells, so that a domain of fifteen columns, or
of 2^63 cells, is as good as one of two.

Privacy:
    Claim: publishing costs at most (ε, δ), what it buys first included, whatever one unit has in the tables.
    Proof: the cells are the ROWS tally of an Aggregate over public groups, so its claim bounds what one unit adds:
        to at most most_groups cells, at most bounds[1] to each, at most together.total altogether. That is the
        Contribution that the strategy is prepared for, and every layer's facts are its reach; the gate refuses noise
        that is made for less. All events are paid before the engine reads.
    Needs: the claims of query.ops, publish.terms and the strategy; session.session.
    Ref: SOUNDNESS 5, 9, 17, 18.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hubbub.errors import NotAllowed, TooHeavy
from hubbub.gate.meter import Meter, Reply
from hubbub.gate.secret import Sealed
from hubbub.ledger.entry import ratio
from hubbub.mechanisms import Nonzeros
from hubbub.parameters import positive
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.publish import offer
from hubbub.publish.axes import lay_out
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.table_strategy import by_marginals, check_size
from hubbub.publish.offer import Offer, Wish
from hubbub.publish.release.prospect import Prospect
from hubbub.publish.release.published import Published, Receipt
from hubbub.publish.run import measure_layers, place_names
from hubbub.publish.sparse.filters import Filtered
from hubbub.publish.sparse.keys import Keys
from hubbub.publish.strategies.strategy import Strategy
from hubbub.query.missing.lacking import lacking
from hubbub.query.missing.looks import whole_price
from hubbub.query.read.scope import Catalogue
from hubbub.query.requests import DenseCells, SparseCells
from hubbub.session.job import Draft, Job, Known, Purchase, SealedReader
from hubbub.session.session import Session

MOST_CELLS = 10_000_000

Over = Mapping[str, Sequence[Any]] | Domain
"""Columns with the values that have a cell."""


def draft_publication(wish: Wish, *, session: Session, catalogue: Catalogue) -> Draft[Offer, Any]:
    """Lay a publication out; limits that nobody declared are facts that it lacks."""
    policy = offer.limit_policy(session.policy, wish)
    domain = wish.over if isinstance(wish.over, Domain) else Domain.of(wish.over)
    if domain.size > MOST_CELLS and not by_combinations(wish.strategy):
        raise TooHeavy(
            f"There would be {domain.size:,} cells; at most {MOST_CELLS:,} are published at once. Marginals of so "
            "many can be, publish.Marginals(ways=2), and the large ones among them: publish.sparse."
        )
    if is_sparse(wish.strategy):
        Keys.over(domain)  # at most 2^63
    check_size(place_names(wish.strategy, domain), domain)
    layout = lay_out(domain, offer.table_of(session.policy, wish.table), wish.where, catalogue)
    if layout.group_count != domain.size and not by_combinations(wish.strategy):
        raise NotAllowed("Words of several lengths are for publish.sparse. Give words of one length, or list them.")
    price = whole_units_rounded_down(positive("epsilon", wish.epsilon))

    def plan_with(facts: Known, purchase: Purchase) -> Offer:
        return offer.prepare_offer(
            wish,
            layout,
            policy,
            facts,
            price=price,
            rest=purchase.rest,
            payer=purchase.payer,
            ways=purchase.ways,
        )

    return Draft(
        wanted=tuple(lacking(layout.question, policy)),
        price=price,
        plan=plan_with,
        job=lambda made: publication_job(made, account=session.policy.account, version=session.policy.version),
    )


def publication_job(made: Offer, *, account: str, version: str) -> Job[Any]:
    """Make the job that counts the rows of all cells and adds the noise of a strategy."""
    aggregate = made.planned.aggregate
    request = SparseCells(aggregate=aggregate) if by_combinations(made.strategy) else DenseCells(aggregate=aggregate)

    def measure(read: SealedReader, meter: Meter) -> str:
        noisy, _ = measure_layers(made.prepared, _lay_out(made, read(request)), meter=meter, account=account)
        return offer.write_answer(made, noisy)

    def present(reply: Reply) -> Any:
        strategy, prepared, noisy = offer.read(reply.answer, made)
        cost = offer.cost_of(prepared, made.policy.budget.filter)
        published = Published(
            strategy=strategy,
            prepared=prepared,
            domain=made.layout.domain,
            noisy=noisy,
            account=account,
            entry=reply.entry,
            stored=reply.stored,
            receipt=Receipt(
                question=made.question,
                policy=made.policy.fingerprint,
                version=version,
                loss_units=cost.loss,
                failure_units=cost.failure,
                charged="" if reply.epsilon is None else ratio(reply.epsilon),
            ),
        )
        return strategy.release(published)

    return Job(
        question=made.question,
        policy=made.policy,
        events=tuple(measurement.mechanism.event for measurement in made.prepared.measurements),
        epsilon=made.price,
        delta=made.prepared.terms.delta,
        requests=(request,),
        measure=measure,
        present=present,
        ways=made.ways,
        bought=made.price - made.prepared.terms.epsilon,
    )


def _lay_out(made: Offer, counted: Sealed[Any]) -> Sealed[Any]:
    """Put what the engine counted into the form that the strategy takes, under the seal."""
    layout = made.layout
    if is_sparse(made.strategy):
        keys = Keys.over(layout.domain)
        return counted.map(
            lambda found: Nonzeros.of(keys.pack(layout.places(found.places)), found.counts, size=keys.size)
        )
    if by_combinations(made.strategy):
        return counted.map(lambda found: layout.weigh(found.places, found.counts))
    return counted.map(layout.cells)


def prospect(wish: Wish, *, session: Session, catalogue: Catalogue) -> Prospect:
    """Return what a publication would cost and how far it would be off. Nothing private is read."""
    foreseen = session.foresee(draft_publication(wish, session=session, catalogue=catalogue))
    made, policy = replace(foreseen.plan, known=foreseen.known, unknown=foreseen.unknown), session.policy
    cost = offer.cost_of(made.prepared, policy.budget.filter)
    return Prospect(
        strategy=made.strategy,
        prepared=made.prepared,
        domain=made.layout.domain,
        account=policy.account,
        cost=whole_price(cost, made.unknown, policy),
        payer=session.payer(),
        bought=[(fact.text, value) for fact, value in made.known.items()],
        to_buy=[(look.text, float(share)) for look, share in made.unknown.items()],
    )


def is_sparse(strategy: Strategy) -> bool:
    """Return whether it shows some cells of a domain that nobody lists."""
    return isinstance(strategy, Filtered)


def by_combinations(strategy: Strategy) -> bool:
    """Return whether it is handed the cells that have rows, in place of all cells."""
    return by_marginals(strategy) or is_sparse(strategy)
