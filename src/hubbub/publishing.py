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
    Needs: the claims of query.ops, publish.terms and the strategy; meter.answered.
    Ref: SOUNDNESS 5, 9, 17, 18.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from hubbub.attempt import Log
from hubbub.buying import Buyer, Known
from hubbub.engines.run import Run
from hubbub.errors import NotAllowed, TooHeavy
from hubbub.ledger import Ask, Ledger
from hubbub.mechanisms import Nonzeros
from hubbub.meter import Meter, Reply, answered
from hubbub.parameters import Real, positive
from hubbub.policy.tables import Policy
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.publish import offer
from hubbub.publish.cube import Cube
from hubbub.publish.cube_release import CubeRelease
from hubbub.publish.domain import Domain
from hubbub.publish.layer import Array
from hubbub.publish.marginal_release import MarginalRelease
from hubbub.publish.marginals import Marginals
from hubbub.publish.offer import Offer, Wish
from hubbub.publish.prospect import Prospect
from hubbub.publish.published import Published, Receipt
from hubbub.publish.reading import laid_out
from hubbub.publish.records import Weighted
from hubbub.publish.run import measured, placed
from hubbub.publish.sparse.filters import Filtered
from hubbub.publish.sparse.keys import Keys
from hubbub.publish.sparse.release import SparseRelease
from hubbub.publish.strategy import Strategy
from hubbub.publish.tables import Tables, by_marginals, check_size, released
from hubbub.query.lacking import lacking
from hubbub.query.looks import any_facts, shares, whole_price
from hubbub.query.ops import Aggregate
from hubbub.query.scope import Catalogue

MOST_CELLS = 10_000_000

Over = Mapping[str, Sequence[Any]] | Domain
"""Columns with the values that have a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The database's side: what is public of it, the ledger, and what prepares the engine."""

    catalogue: Catalogue
    policy: Policy
    ledger: Ledger
    principal: str
    prepare: Callable[[Aggregate], Run]
    array: Callable[[Aggregate], Callable[[], Array]]
    combinations: Callable[[Aggregate], Callable[[], Any]]
    """What has rows (``places`` and ``counts``), where there are too many cells to list."""
    log: Log | None

    def publish(self, wish: Wish, *, key: str | None) -> Published | Tables | SparseRelease:
        """Pay, count, add noise, store, and give what is stored."""
        made = self._planned(wish, buys=True, key=key)
        count = self._counting(made)
        ask = self._ask(made, key)

        def work(meter: Meter) -> str:
            noisy, _ = measured(made.prepared, count(), meter=meter, account=self.policy.account)
            return offer.written(made, noisy)

        return answered(self.ledger, ask, work, present=lambda reply: self._presented(made, reply), log=self.log)

    def _ask(self, made: Offer, key: str | None) -> Ask:
        return Ask(
            account=self.policy.account,
            question=made.question,
            events=tuple(measurement.mechanism.event for measurement in made.prepared.measurements),
            epsilon=made.price,
            delta=made.prepared.terms.delta,
            principal=self.principal,
            policy=made.policy.fingerprint,
            version=self.policy.version,
            key=key,
        )

    def _presented(self, made: Offer, reply: Reply) -> Published | Tables | SparseRelease:
        """Make the release of what is stored."""
        strategy, prepared, noisy = offer.read(reply.answer, made)
        cost = offer.cost_of(prepared, self.policy.budget.filter)
        published = Published(
            strategy=strategy,
            prepared=prepared,
            domain=made.layout.domain,
            noisy=noisy,
            account=self.policy.account,
            entry=reply.entry,
            stored=reply.stored,
            receipt=Receipt(
                question=made.question,
                policy=made.policy.fingerprint,
                version=self.policy.version,
                loss_units=cost.loss,
                failure_units=cost.failure,
            ),
        )
        return SparseRelease.of(published) if is_sparse(strategy) else released(published)

    def _counting(self, made: Offer) -> Callable[[], Array | Weighted | Nonzeros]:
        """What counts the rows when it is called, as the strategy needs them."""
        layout, aggregate = made.layout, made.planned.aggregate
        if not by_combinations(made.strategy):
            run = self.array(aggregate)
            return lambda: layout.cells(run())
        there = self.combinations(aggregate)

        def weighted() -> Weighted:
            found = there()
            return layout.weighted(found.places, found.counts)

        def sparse() -> Nonzeros:
            found, keys = there(), Keys.over(layout.domain)
            return Nonzeros.of(keys.packed(layout.places(found.places)), found.counts, size=keys.size)

        return sparse if is_sparse(made.strategy) else weighted

    def prospect(self, wish: Wish) -> Prospect:
        """What it would cost and how far it would be off. Nothing private is read."""
        made = self._planned(wish, buys=False)
        cost = offer.cost_of(made.prepared, self.policy.budget.filter)
        return Prospect(
            strategy=made.strategy,
            prepared=made.prepared,
            domain=made.layout.domain,
            account=self.policy.account,
            symbol="ε" if self.policy.budget.delta == 0 else "ρ",
            cost=whole_price(cost, made.unknown, self.policy),
            left=self.ledger.remaining(self.policy.account, self.principal),
            bought=[(one.text, value) for one, value in made.known.items()],
            to_buy=[(one.text, float(share)) for one, share in made.unknown.items()],
        )

    def _planned(self, wish: Wish, *, buys: bool, key: str | None = None) -> Offer:
        """The plan; limits that nobody declared are bought first, with a share of the price, or named."""
        policy = offer.limited(self.policy, wish)
        domain = wish.over if isinstance(wish.over, Domain) else Domain.of(wish.over)
        if domain.size > MOST_CELLS and not by_combinations(wish.strategy):
            raise TooHeavy(
                f"There would be {domain.size:,} cells; at most {MOST_CELLS:,} are published at once. Marginals of so "
                "many can be, publish.Marginals(ways=2), and the large ones among them: publish.sparse."
            )
        if is_sparse(wish.strategy):
            Keys.over(domain)  # at most 2^63
        check_size(placed(wish.strategy, domain), domain)
        layout = laid_out(domain, offer.table_of(self.policy, wish.table), wish.where, self.catalogue)
        if layout.padded != domain.size and not by_combinations(wish.strategy):
            raise NotAllowed("Words of several lengths are for publish.sparse. Give words of one length, or list them.")
        price = whole_units_rounded_down(positive("epsilon", wish.epsilon))
        wanted = lacking(layout.question, policy)
        buyer = Buyer(
            policy=self.policy,
            ledger=self.ledger,
            principal=self.principal,
            prepare=self.prepare,
            log=self.log,
        )
        known = buyer.held(wanted)
        unknown = [fact for fact in wanted if fact not in known]
        each, rest = shares(unknown, price)

        def offered(facts: Known) -> Offer:
            return offer.offered(wish, layout, policy, facts, price=price, rest=rest)

        if each and not buys:
            return replace(offered(known | any_facts(each)), known=known, unknown=each)
        if each:
            known |= buyer.obtain(unknown, price=price, then=lambda facts: self._ask(offered(known | facts), key))
        return offered(known)


def is_sparse(strategy: Strategy) -> bool:
    """Whether it shows some cells of a domain that nobody lists."""
    return isinstance(strategy, Filtered)


def by_combinations(strategy: Strategy) -> bool:
    """Whether it is handed what has rows, in place of all cells."""
    return by_marginals(strategy) or is_sparse(strategy)


class Publishing:
    """What a database inherits: publishing, and the price list of it."""

    def _desk(self) -> Desk:
        raise NotImplementedError

    @overload
    def publish(  # type: ignore[overload-overlap]
        self,
        strategy: Marginals,
        *,
        over: Over,
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> MarginalRelease: ...

    @overload
    def publish(  # type: ignore[overload-overlap]
        self,
        strategy: Cube,
        *,
        over: Over,
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> CubeRelease: ...

    @overload
    def publish(  # type: ignore[overload-overlap]
        self,
        strategy: Filtered,
        *,
        over: Over,
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> SparseRelease: ...

    @overload
    def publish(
        self,
        strategy: Strategy,
        *,
        over: Over,
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Published: ...

    def publish(
        self,
        strategy: Strategy,
        *,
        over: Over,
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Published | Tables | SparseRelease:
        """The number of rows in every cell, with the noise of a strategy: paid once, and asked as often as you like.

        ``over`` names columns, or expressions, with the values that have a cell: a range, a list, or
        ``publish.bins(low, high, steps)``. A unit counts in at most ``cells`` of them with at most ``each`` rows, and
        with at most ``rows`` altogether, or as the owner declared (max_groups, max_rows, max_total_rows); where nobody
        said, cells and rows in a cell are bought with a share of the price, but ``rows`` alone is enough.

        With ``publish.Marginals`` or ``publish.Cube`` there may be any number of cells: what has rows is counted, and
        what is published are marginals, up to 5·10^7 noisy numbers::

            release = db.publish(publish.Marginals(ways=3), over=fifteen_columns, rows=4, epsilon=1, delta=1e-9)
            release.marginal("age", "ward").values    # a table with the standard deviation of every cell
            release.table("ward", "outcome")          # the same as rows with intervals
            db.explain_publish(publish.Marginals(ways=3), over=fifteen_columns, rows=4, epsilon=1)  # free

        With a filter of ``publish.sparse`` there may be 2^63 cells, of which the large ones are shown::

            release = db.publish(sparse.Threshold(expected_false=10), over={"code": range(1 << 40)}, rows=4, epsilon=1)
            release.to_table(), release.cell({"code": 77})
        """
        said = {"table": table, "where": where, "cells": cells, "each": each, "rows": rows}
        wish = Wish(strategy=strategy, over=over, epsilon=epsilon, delta=delta, **said)  # type: ignore[arg-type]
        return self._desk().publish(wish, key=key)

    def explain_publish(
        self,
        strategy: Strategy,
        *,
        over: Over,
        epsilon: Real,
        delta: Real | None = None,
        table: str | None = None,
        where: str | None = None,
        cells: int | None = None,
        each: int | None = None,
        rows: int | None = None,
    ) -> Prospect:
        """What that would cost, and how far ranges or marginals would be off. Free: nothing private is read."""
        said = {"table": table, "where": where, "cells": cells, "each": each, "rows": rows}
        wish = Wish(strategy=strategy, over=over, epsilon=epsilon, delta=delta, **said)  # type: ignore[arg-type]
        return self._desk().prospect(wish)
