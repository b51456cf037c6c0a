"""Who may spend, what it costs, and what is served again for nothing: decided here, in one transaction.

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
from typing import Any

from hubbub.errors import (
    Frozen,
    GrantError,
    GrantExpired,
    HubbubError,
    KeyConflict,
    LedgerCorrupt,
    UnknownAccount,
)
from hubbub.ledger.book import Transaction, damaged, entry_of
from hubbub.ledger.effects import CHARGE, asked_units, charge_from, charge_of
from hubbub.ledger.entry import day_of, moment_of, ratio
from hubbub.ledger.failures import failures_of
from hubbub.ledger.holder import ACCOUNT, PRINCIPAL, PROJECT, Holder, holder_of, present, sealed
from hubbub.ledger.store import Session
from hubbub.ledger.terms import ALLOWANCE, OWNER, Ask, Ticket, named
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT, Charge, Spent

_FREE = Charge(loss=0)


def reserve(tx: Transaction, ask: Ask) -> Ticket:
    """Find what was paid before, or pay now; raises before anything is written."""
    account = account_of(tx.session, ask.account)
    project = _permitted(tx, ask)
    _refuse_frozen(tx.session, ask.account, ask.principal)
    ticket = _by_key(tx, ask)
    if ticket is not None:
        return ticket
    ticket = _asked_before(tx, ask, project)
    if ticket is not None:
        if ask.key is not None:
            used = {"charge": ticket.entry, "key": ask.key, "principal": ask.principal, "request": ask.request}
            tx.append("serve", used)
        return ticket
    holders = [account, *_limits(tx, ask, project)]
    parts = [account.filter.charge_of(event) for event in ask.events]
    charge = Charge(loss=sum(part.loss for part in parts), failure=sum(part.failure for part in parts))
    renewals = _check_caps(tx, holders, charge)
    _renew(tx, renewals)
    paid = {
        "failure": charge.failure,
        "holders": [[holder.kind, holder.name] for holder in holders],
        "key": ask.key or uuid.uuid4().hex,
        "loss": charge.loss,
        "project": project,
    }
    entry = tx.append("charge", ask.body | paid)
    return Ticket(entry=entry.seq, account=ask.account, paid=charge, cost=charge, answer=None)


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


def check_allowance(session: Session, charge: int) -> None:
    """Raise Frozen where the principal of a charge has used up its allowance of failures."""
    _under_way(session, charge)


def _under_way(session: Session, charge: int) -> tuple[str, str, str | None]:
    """Account, principal and stored answer of a charge. Who was frozen meanwhile hears that, however the work ended."""
    found = charge_of(session, charge)
    if found is None:
        raise HubbubError(f"Entry {charge} is not a charge, so it cannot have an answer.")
    account, principal, answer = found[1], found[2], found[6]
    _refuse_frozen(session, account, principal, charge)
    return account, principal, None if answer is None else answer_of(session, charge, answer)


def _refuse_frozen(session: Session, account: str, principal: str, charge: int | None = None) -> None:
    if principal == OWNER:
        return
    failures = failures_of(session, account, principal)
    if failures.frozen:
        stands = "" if charge is None else f" The charge (entry {charge}) stands: ask again afterwards."
        raise Frozen(
            f"{principal!r} is frozen on account {account!r}: the engine failed {failures.many} times after a charge, "
            f"and {ALLOWANCE} is all that is allowed. Ask its owner to look, and then: hubbub budget thaw.{stands}",
            account=account,
            principal=principal,
            failures=failures.many,
            entry=charge,
        )


def remember(tx: Transaction, account: str, name: str, value: Any, *, version: str, paid: int) -> None:
    """Keep a fact that the charge ``paid`` has bought."""
    entry = entry_of(tx.session, paid)
    if entry.kind != "charge" or entry.content["account"] != account:
        raise HubbubError(f"Entry {paid} is not a charge to account {account!r}, so it cannot have paid for a fact.")
    fact = {"account": account, "name": named("name", name), "paid": paid, "value": value, "version": version}
    tx.append("fact", fact)


def account_of(session: Session, name: str) -> Holder:
    """The account's own balance, or UnknownAccount."""
    holder = holder_of(session, name, ACCOUNT, "")
    if holder is None:
        raise UnknownAccount(
            f"There is no account {name!r} in this ledger. Open it, or see what there is with: hubbub budget.",
            account=name,
        )
    return holder


def no_such_holder(account: str, kind: str, name: str) -> UnknownAccount:
    """The error for a project or principal that holds no budget."""
    return UnknownAccount(f"There is no {kind} {name!r} under account {account!r}.", account=account, name=name)


def answer_of(session: Session, charge: int, seq: int) -> str:
    """A stored answer, checked against the chain and against the charge it belongs to."""
    entry = entry_of(session, seq)
    if entry.kind != "answer" or entry.content["charge"] != charge:
        raise damaged(charge, f"entry {seq} is not its answer")
    return str(entry.content["answer"])


def _permitted(tx: Transaction, ask: Ask) -> str | None:
    """The project under which the principal may spend now."""
    if ask.principal == OWNER:
        return None
    who = f"{ask.principal!r} has no grant on account {ask.account!r}"
    operands = {"account": ask.account, "principal": ask.principal}
    rows = tx.session.rows(
        "SELECT account, principal, project, expires, revoked, entry, seal FROM grants "
        "WHERE account = ? AND principal = ?",
        *(ask.account, ask.principal),
    )
    if not rows:
        raise GrantError(f"{who}. Ask its owner for one: hubbub budget grant.", **operands)
    *fields, seal = rows[0]
    if sealed(fields) != seal:
        raise LedgerCorrupt(f"The grant of {ask.principal!r} is not what was written. Restore the newest backup.")
    project: str | None
    project, expires, revoked = fields[2:5]
    if revoked:
        raise GrantError(f"{who} any more: it was revoked. Ask its owner for a new one.", **operands)
    if expires is not None and tx.now >= expires:
        until = f"{moment_of(expires):%Y-%m-%d %H:%M} UTC"
        raise GrantExpired(
            f"The grant of {ask.principal!r} on account {ask.account!r} was good until {until}. "
            "Ask its owner for a new one.",
            **operands,
        )
    return project


def _by_key(tx: Transaction, ask: Ask) -> Ticket | None:
    """The charge that serves this principal's request under the same key."""
    if ask.key is None:
        return None
    rows = tx.session.rows("SELECT request, charge FROM keys WHERE principal = ? AND key = ?", ask.principal, ask.key)
    if not rows:
        return None
    request, seq = rows[0]
    if request != ask.request:
        raise KeyConflict(
            f"The key {ask.key!r} was used for another question (entry {seq}). Take a new key for a new question.",
            key=ask.key,
            entry=seq,
        )
    found = charge_of(tx.session, seq)
    if found is None or (found[1], found[3]) != (ask.account, ask.digest):
        raise LedgerCorrupt(f"The key {ask.key!r} leads to another question. Restore the newest backup.")
    answer = found[6]
    made = entry_of(tx.session, seq).content
    if answer is None and made["events"] != ask.body["events"]:
        raise KeyConflict(
            f"The key {ask.key!r} paid for another way of answering (entry {seq}), and no answer was stored. "
            "Ask with a new key.",
            key=ask.key,
            entry=seq,
        )
    return _found(tx, seq, made, answer)


def _asked_before(tx: Transaction, ask: Ask, project: str | None) -> Ticket | None:
    """An answer to this question that is good enough, or this principal's own charge that has none yet."""
    if ask.epsilon is None:
        return None
    asked = asked_units(ratio(ask.epsilon), LOSS_UNIT), asked_units(ratio(ask.delta), DELTA_UNIT)
    found = tx.session.rows(
        f"SELECT {CHARGE} FROM charges "
        "WHERE account = ? AND question = ? AND asked >= ? AND asked_delta >= ? ORDER BY asked, asked_delta, seq",
        *(ask.account, ask.digest, *asked),
    )
    rows = [charge_from(row) for row in found]
    answered = [(seq, answer) for seq, *_, answer, _ in rows if answer is not None]
    free = {seq for seq, *_, public in rows if public} | (_held(tx, ask) if answered else set())
    for seq, answer in answered:
        if seq in free or ask.principal == OWNER:
            return _found(tx, seq, entry_of(tx.session, seq).content, answer)
    if answered:
        return _shared(tx, ask, project, *answered[0])
    for seq, _, principal, _, *then, _, _ in rows:
        if principal == ask.principal and tuple(then) == asked:
            made = entry_of(tx.session, seq).content
            if made["events"] == ask.body["events"]:
                return _found(tx, seq, made, None)
    return None


def _held(tx: Transaction, ask: Ask) -> set[int]:
    """The answers to this question that the principal has been given before."""
    rows = tx.session.rows(
        "SELECT charge FROM holdings JOIN charges ON charge = seq "
        "WHERE account = ? AND question = ? AND holdings.principal = ?",
        *(ask.account, ask.digest, ask.principal),
    )
    return {row[0] for row in rows}


def _shared(tx: Transaction, ask: Ask, project: str | None, seq: int, answer: int) -> Ticket:
    """Another principal's answer: free on the account, charged once to the limits of who has not seen it yet."""
    made = entry_of(tx.session, seq).content
    charge = Charge(loss=made["loss"], failure=made["failure"])
    seen = project is not None and tx.session.rows(
        "SELECT 1 FROM holdings WHERE charge = ? AND project = ?", seq, project
    )
    holders = _limits(tx, ask, None if seen else project)
    _renew(tx, _check_caps(tx, holders, charge))
    tx.append(
        "share",
        {
            "account": ask.account,
            "charge": seq,
            "failure": charge.failure,
            "holders": [[holder.kind, holder.name] for holder in holders],
            "loss": charge.loss,
            "principal": ask.principal,
            "project": project,
        },
    )
    return _found(tx, seq, made, answer)


def _found(tx: Transaction, seq: int, made: dict[str, Any], answer: int | None) -> Ticket:
    text = None if answer is None else answer_of(tx.session, seq, answer)
    paid = Charge(loss=made["loss"], failure=made["failure"])
    return Ticket(entry=seq, account=made["account"], paid=paid, cost=_FREE, answer=text)


def _limits(tx: Transaction, ask: Ask, project: str | None) -> list[Holder]:
    """Whose limits, beside the account's, a request counts against."""
    own = [] if ask.principal == OWNER else [(PRINCIPAL, ask.principal)]
    under = [] if project is None else [(PROJECT, project)]
    return [present(tx.session, ask.account, kind, name) for kind, name in under + own]


def _check_caps(tx: Transaction, holders: Sequence[Holder], charge: Charge) -> list[tuple[Holder, int]]:
    """Every cap, or BudgetExceeded; gives back which holders have come into a new period."""
    renewals = []
    for holder in holders:
        period = holder.period_at(tx.now)
        fresh = period > holder.period
        if fresh:
            renewals.append((holder, period))
        spent = Spent() if fresh else holder.spent
        if not holder.filter.fits(spent, charge):
            since = day_of(holder.since(period))
            holder.filter.spend(spent, charge, whose=holder.title, since=since)  # raises, and says why
    return renewals


def _renew(tx: Transaction, renewals: Sequence[tuple[Holder, int]]) -> None:
    for holder, period in renewals:
        tx.append(
            "renewal",
            {"account": holder.account, "holder": holder.kind, "name": holder.name, "period": period},
        )
