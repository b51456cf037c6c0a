"""The rules of spending, prices and stored answers: decided here, in one transaction.

Privacy:
    Claim: however questions are chosen, in whatever order, and through however many principals, all answers that leave
        under one account keep its budget in each period; what one principal or project gets keeps their own limits.
    Proof: an answer leaves only after ``settle`` stored it for a charge; a charge has at most one stored answer; a
        charge is written only if the account's filter lets it pass, in the transaction that reads the balance, so the
        answers are those of a mechanism sequence that the filter admits (privacy.filter). Serving a stored answer again
        is post-processing. A charge without an answer released nothing, so drawing for it, once or many times, releases
        the first stored draw alone; a draw that lost that race is thrown away unseen, independently of its value.
        Whether the engine could answer at all is a bit beside the answers. It is told only in the transaction that
        stores the answer or counts the failure, and there a principal whose allowance is used up is told the same
        either way: so nobody sees more than ALLOWANCE failures on an account between two thaws of its owner, however
        many questions are under way at once.
    Needs: a store that gives the sole right to write and loses no commit; the work drawn for a ticket is of the very
        events that were charged; nobody reads a draw before it is stored.
    Ref: Rogers, Roth, Ullman, Vadhan 2016.
"""

import uuid
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hubbub.errors import HubbubError, UnknownAccount
from hubbub.ledger.book import Transaction, damage_at, entry_of
from hubbub.ledger.effects import charge_of
from hubbub.ledger.entry import Entry
from hubbub.ledger.holder import Holder
from hubbub.ledger.older import paid_for
from hubbub.ledger.permission import Balances, check_permission, refuse_frozen
from hubbub.ledger.serving import Decision, decide
from hubbub.ledger.stores.store import StoreSession
from hubbub.ledger.terms import Ask, Ticket, check_name
from hubbub.privacy.filter import FREE


def reserve(tx: Transaction, ask: Ask) -> Ticket:
    """Find an earlier payment, or pay now; raises before anything is written."""
    view = Balances(session=tx.session, now=tx.now)
    made = decide(view, ask)
    view.check([(holder, made.cost) for holder in made.holders], principal=ask.principal)
    _renew(tx, made.holders)
    if made.charge is None:
        return _charge(tx, ask, made)
    if made.holders:
        _share(tx, ask, made.charge, made)
    if ask.key is not None and not made.by_key:
        used = {"charge": made.charge, "key": ask.key, "principal": ask.principal, "request": ask.request}
        tx.append("serve", used)
    paid = entry_of(tx.session, made.charge).content
    stored = None if made.answer is None else answer_of(tx.session, made.charge, made.answer)
    return Ticket(
        entry=made.charge,
        account=ask.account,
        paid=paid_for(paid, made.terms),
        cost=FREE,
        answer=None if stored is None else str(stored.content["answer"]),
        terms=made.terms,
        stored=None if stored is None else stored.moment,
        epsilon=None if paid["epsilon"] is None else Fraction(paid["epsilon"]),
    )


def _charge(tx: Transaction, ask: Ask, made: Decision) -> Ticket:
    paid = {
        "failure": made.cost.failure,
        "holders": [[holder.kind, holder.name] for holder in made.holders],
        "key": ask.key or uuid.uuid4().hex,
        "loss": made.cost.loss,
        "project": made.project,
        "pure": made.cost.pure,
    }
    entry = tx.append("charge", ask.body | paid)
    return Ticket(
        entry=entry.seq,
        account=ask.account,
        paid=made.cost,
        cost=made.cost,
        answer=None,
        terms=made.terms,
        epsilon=ask.epsilon,
    )


def _share(tx: Transaction, ask: Ask, charge: int, made: Decision) -> None:
    tx.append(
        "share",
        {
            "account": ask.account,
            "charge": charge,
            "failure": made.cost.failure,
            "holders": [[holder.kind, holder.name] for holder in made.holders],
            "loss": made.cost.loss,
            "principal": ask.principal,
            "project": made.project,
            "pure": made.cost.pure,
        },
    )


def settle(tx: Transaction, charge: int, answer: str) -> str:
    """Store the answer of a charge, unless one is stored already: the first is the only one that anybody gets."""
    _, _, stored = _under_way(tx.session, charge)
    if stored is not None:
        return stored
    tx.append("answer", {"answer": answer, "charge": charge})
    return answer


def fail(tx: Transaction, charge: int, *, settled: bool = False) -> str | None:
    """Count a failure against the principal of a charge, unless an answer is stored: that is returned.

    With ``settled`` it counts although there is an answer: a watch is paid for and settled when it is opened, and can
    fail at every question after that. A failure whose commit was in doubt may be counted twice, which freezes earlier
    and never later.
    """
    account, principal, stored = _under_way(tx.session, charge)
    if stored is not None and not settled:
        return stored
    after = {} if stored is None else {"after_answer": True}
    tx.append("failure", {"account": account, "charge": charge, "principal": principal, **after})
    return None


def check_allowance(session: StoreSession, charge: int, *, now: int) -> None:
    """Raise Frozen or GrantError where whoever paid is to hear nothing more: failed too often, or without a grant."""
    account, principal, _ = _under_way(session, charge)
    check_permission(session, account, principal, now=now)


def _under_way(session: StoreSession, charge: int) -> tuple[str, str, str | None]:
    """Account, principal and stored answer of a charge. Who was frozen meanwhile hears that, however the work ended."""
    found = charge_of(session, charge)
    if found is None:
        raise HubbubError(f"Entry {charge} is not a charge, so it cannot have an answer.")
    account, principal, answer = found[1], found[2], found[6]
    refuse_frozen(session, account, principal, charge)
    if answer is None:
        return account, principal, None
    return account, principal, str(answer_of(session, charge, answer).content["answer"])


def remember(tx: Transaction, account: str, name: str, value: Any, *, version: str, paid: int) -> None:
    """Keep a fact that the charge ``paid`` has bought."""
    entry = entry_of(tx.session, paid)
    if entry.kind != "charge" or entry.content["account"] != account:
        raise HubbubError(f"Entry {paid} is not a charge to account {account!r}, so it cannot have paid for a fact.")
    fact = {"account": account, "name": check_name("name", name), "paid": paid, "value": value, "version": version}
    tx.append("fact", fact)


def no_such_holder(account: str, kind: str, name: str) -> UnknownAccount:
    """The error for a project or principal that holds no budget."""
    return UnknownAccount(f"There is no {kind} {name!r} under account {account!r}.", account=account, name=name)


def answer_of(session: StoreSession, charge: int, seq: int) -> Entry:
    """The entry of a stored answer, checked against the chain and against the charge it belongs to."""
    entry = entry_of(session, seq)
    if entry.kind != "answer" or entry.content["charge"] != charge:
        raise damage_at(charge, f"entry {seq} is not its answer")
    return entry


def _renew(tx: Transaction, holders: Sequence[Holder]) -> None:
    """Write down which of those who pay have come into a new period."""
    for holder in holders:
        period = holder.period_at(tx.now)
        if period > holder.period:
            tx.append(
                "renewal",
                {"account": holder.account, "holder": holder.kind, "name": holder.name, "period": period},
            )
