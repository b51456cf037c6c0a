"""The decision about a request: a stored answer, another principal's answer, or a charge of its own.

Nothing is written here, so the same decision tells beforehand whether a whole question, with the facts that it would
buy, fits into every cap (``check``).

Privacy:
    Claim: nobody is refused, or charged beyond what its limits can pay, because somebody else has asked the same.
    Proof: another principal's answer is shared only where the limits of whoever asks can pay for it and for what is
        asked beside it. Otherwise the request is a charge of its own at its own price, as if nobody had asked: it goes
        through the account's filter like any other, so a second draw of the same question is one more mechanism of the
        sequence that the filter admits. Stored answers that are shared are post-processing.
    Needs: ``caps`` that see all holders; the transaction that writes what was decided.
    Ref: SOUNDNESS 23, 40.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hubbub.errors import KeyConflict, LedgerCorrupt
from hubbub.ledger.book import entry_of
from hubbub.ledger.effects import CHARGE, charge_from, charge_of, units_of
from hubbub.ledger.entry import ratio
from hubbub.ledger.holder import PROJECT, Holder
from hubbub.ledger.older import paid_for
from hubbub.ledger.permission import Balances, account_of, check_permission, failures_of, limits_of, refuse_frozen
from hubbub.ledger.stores.store import StoreSession
from hubbub.ledger.terms import OWNER, Ask
from hubbub.privacy.filter import DELTA_UNIT, FREE, LOSS_UNIT, Charge, Filter, price_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The way in which a request will be met."""

    terms: Filter
    """How the account counts."""
    charge: int | None = None
    """The earlier charge that serves it; None where it needs one of its own."""
    answer: int | None = None
    """The entry of the stored answer of that charge, if there is one."""
    by_key: bool = False
    cost: Charge = FREE
    holders: tuple[Holder, ...] = ()
    """Who pays this cost; nobody where it is served for nothing."""
    project: str | None = None


def decide(view: Balances, ask: Ask) -> Decision:
    """Find an earlier payment, or the price and everyone who would have to pay it.

    Whether they can is for the caller to ask, of this request or of several together.
    """
    project = check_permission(view.session, ask.account, ask.principal, now=view.now)
    account = account_of(view.session, ask.account)
    refuse_frozen(view.session, ask.account, ask.principal)
    earlier = _by_key(view.session, ask, account.filter) or _find_earlier(view, ask, project, account.filter)
    if earlier is not None:
        return earlier
    cost = price_of(account.filter, ask.events)
    holders = (account, *limits_of(view.session, ask.account, principal=ask.principal, project=project))
    return Decision(terms=account.filter, cost=cost, holders=holders, project=project)


def check(view: Balances, asks: Sequence[Ask]) -> None:
    """Raise what these requests of one principal, one after the other, would be refused with: their sum, for a cap."""
    pending: dict[tuple[str, str], Charge] = {}
    paying: dict[tuple[str, str], Holder] = {}
    for ask in asks:
        made = decide(replace(view, pending=pending), ask)
        for holder in made.holders:
            name = holder.kind, holder.name
            paying[name], pending[name] = holder, pending.get(name, FREE) + made.cost
    view.check([(paying[name], pending[name]) for name in paying], principal=asks[0].principal)


def holds(session: StoreSession, charge: int, principal: str) -> bool:
    """Return True if a principal was given the answer that a charge paid for, or if any grant gives access to it."""
    found = charge_of(session, charge)
    if found is None or principal == OWNER:
        return found is not None
    given = session.rows("SELECT 1 FROM holdings WHERE charge = ? AND principal = ?", charge, principal)
    return bool(given) or bool(found[7])


def would_charge(view: Balances, ask: Ask) -> bool:
    """Return True if a request can be paid for, and its principal was given no answer to it: the owner, if nobody was.

    Nothing rests on it but what is done in advance. What others asked must not show in how long that takes.
    """
    project = check_permission(view.session, ask.account, ask.principal, now=view.now)
    if ask.principal == OWNER:
        asked = "SELECT 1 FROM charges WHERE account = ? AND question = ? LIMIT 1"
        known = bool(view.session.rows(asked, ask.account, ask.digest))
    else:
        frozen = failures_of(view.session, ask.account, ask.principal).frozen
        known = frozen or bool(_holdings_of(view.session, ask))
    if known:
        return False
    account = account_of(view.session, ask.account)
    limits = limits_of(view.session, ask.account, principal=ask.principal, project=project)
    return view.fits([account, *limits], price_of(account.filter, ask.events))


def waiting_charge(session: StoreSession, ask: Ask) -> Mapping[str, Any] | None:
    """Return the contents of this principal's own charge that has no answer yet, under the same key or for the same."""
    if ask.key is not None:
        keyed = session.rows("SELECT request, charge FROM keys WHERE principal = ? AND key = ?", ask.principal, ask.key)
        if keyed and keyed[0][0] == ask.request:
            found = charge_of(session, keyed[0][1])
            return entry_of(session, keyed[0][1]).content if found is not None and found[6] is None else None
    if ask.epsilon is None:
        return None
    for seq, _, principal, _, *then, answer, _ in _charges_for(session, ask):
        if answer is None and principal == ask.principal and tuple(then) == _asked(ask):
            return entry_of(session, seq).content
    return None


def is_served(session: StoreSession, ask: Ask) -> bool:
    """Return whether an answer is stored that this principal would be served for nothing."""
    if ask.key is not None:
        keyed = session.rows("SELECT request, charge FROM keys WHERE principal = ? AND key = ?", ask.principal, ask.key)
        if keyed and keyed[0][0] == ask.request:
            found = charge_of(session, keyed[0][1])
            return found is not None and found[6] is not None
    if ask.epsilon is None:
        return False
    answered = [(seq, public) for seq, *_, answer, public in _charges_for(session, ask) if answer is not None]
    held = _holdings_of(session, ask) if answered else set()
    return any(ask.principal == OWNER or public or seq in held for seq, public in answered)


def list_free(session: StoreSession, ask: Ask) -> list[Mapping[str, Any]]:
    """List charges at this ε or more whose answer this principal is served for nothing, or waits for."""
    rows = _charges_for(session, ask)
    held = _holdings_of(session, ask) if rows else set()
    found = [
        seq
        for seq, _, principal, *_, answer, public in rows
        if (principal == ask.principal if answer is None else ask.principal == OWNER or public or seq in held)
    ]
    return [entry_of(session, seq).content for seq in found]


def _asked(ask: Ask) -> tuple[int, int]:
    assert ask.epsilon is not None
    return units_of(ratio(ask.epsilon), LOSS_UNIT), units_of(ratio(ask.delta), DELTA_UNIT)


def _charges_for(session: StoreSession, ask: Ask) -> list[Sequence[Any]]:
    """Charges for this question at this (ε, δ) or more, the least first."""
    found = session.rows(
        f"SELECT {CHARGE} FROM charges "
        "WHERE account = ? AND question = ? AND asked >= ? AND asked_delta >= ? ORDER BY asked, asked_delta, seq",
        *(ask.account, ask.digest, *_asked(ask)),
    )
    return [charge_from(row) for row in found]


def _by_key(session: StoreSession, ask: Ask, terms: Filter) -> Decision | None:
    """The charge that serves this principal's request under the same key."""
    if ask.key is None:
        return None
    rows = session.rows("SELECT request, charge FROM keys WHERE principal = ? AND key = ?", ask.principal, ask.key)
    if not rows:
        return None
    request, seq = rows[0]
    if request != ask.request:
        raise KeyConflict(
            f"The key {ask.key!r} was used for another question (entry {seq}). Take a new key for a new question.",
            key=ask.key,
            entry=seq,
        )
    found = charge_of(session, seq)
    if found is None or (found[1], found[3]) != (ask.account, ask.digest):
        raise LedgerCorrupt(f"The key {ask.key!r} leads to another question. Restore the newest backup.")
    answer = found[6]
    if answer is None and entry_of(session, seq).content["events"] != ask.body["events"]:
        raise KeyConflict(
            f"The key {ask.key!r} paid for another way of answering (entry {seq}), and no answer was stored. "
            "Ask with a new key.",
            key=ask.key,
            entry=seq,
        )
    return Decision(terms=terms, charge=seq, answer=answer, by_key=True)


def _find_earlier(view: Balances, ask: Ask, project: str | None, terms: Filter) -> Decision | None:
    """An answer to this question that is good enough, or this principal's own charge that has none yet."""
    if ask.epsilon is None:
        return None
    asked = _asked(ask)
    rows = _charges_for(view.session, ask)
    answered = [(seq, answer) for seq, *_, answer, _ in rows if answer is not None]
    free = {seq for seq, *_, public in rows if public} | (_holdings_of(view.session, ask) if answered else set())
    for seq, answer in answered:
        if seq in free or ask.principal == OWNER:
            return Decision(terms=terms, charge=seq, answer=answer)
    for seq, _, principal, _, *then, answer, _ in rows:
        waiting = answer is None and principal == ask.principal and tuple(then) == asked
        if waiting and entry_of(view.session, seq).content["events"] == ask.body["events"]:
            return Decision(terms=terms, charge=seq)
    for seq, answer in answered:
        shared = _share(view, ask, terms, project=project, seq=seq, answer=answer)
        if shared is not None:
            return shared
    return None


def _holdings_of(session: StoreSession, ask: Ask) -> set[int]:
    """The answers to this question that the principal has been given before."""
    rows = session.rows(
        "SELECT charge FROM holdings JOIN charges ON charge = seq "
        "WHERE account = ? AND question = ? AND holdings.principal = ?",
        *(ask.account, ask.digest, ask.principal),
    )
    return {row[0] for row in rows}


def _share(view: Balances, ask: Ask, terms: Filter, *, project: str | None, seq: int, answer: int) -> Decision | None:
    """Another principal's answer: free on the account, charged once to the limits of who has not seen it yet.

    None where these cannot pay for it, and for what is asked beside it.
    """
    cost = paid_for(entry_of(view.session, seq).content, terms)
    seen = project is not None and view.session.rows(
        "SELECT 1 FROM holdings WHERE charge = ? AND project = ?", seq, project
    )
    whole = limits_of(view.session, ask.account, principal=ask.principal, project=project)
    beside = price_of(terms, ask.beside)
    paying = [holder for holder in whole if not seen or holder.kind != PROJECT]
    if not view.fits(paying, cost + beside) or not view.fits(whole, beside):
        return None
    return Decision(terms=terms, charge=seq, answer=answer, cost=cost, holders=tuple(paying), project=project)
