"""The effect of each kind of entry on the balances and indexes: the one place where they change.

Living ledgers and ``verify`` go through the same table, so a ledger's balances are at every moment what its entries
say. Whether an entry may be written is decided elsewhere (``rules``).

A kind never changes its meaning: what ledgers hold today must be read the same way for ever. New needs are new kinds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from hubbub.errors import LedgerCorrupt
from hubbub.ledger.entry import Entry, canonical
from hubbub.ledger.holder import ACCOUNT, PRINCIPAL, PROJECT, Holder, checksum, holder_of, keep, present
from hubbub.ledger.permission import failures_of, keep_failures
from hubbub.ledger.stores.store import Row, StoreSession
from hubbub.ledger.terms import question_digest
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT, Charge, Spent

Content = Mapping[str, Any]

CHARGE = "seq, account, principal, question, asked, asked_delta, answer, public, seal"
"""The columns of the table of charges, as ``charge_from`` reads them."""

_MOST = 1 << 62
_NEVER = -1


@lru_cache(maxsize=4096)
def units_of(value: str | None, unit: Fraction) -> int:
    """Return ε or δ of a question in whole units for comparison, rounded down on both sides; no ε never matches."""
    return _NEVER if value is None else min(_MOST, Fraction(value) // unit)


def charge_from(row: Row) -> Sequence[Any]:
    """A row of the table of charges without its seal, checked: one whose answer got lost would be drawn for twice."""
    *fields, seal = row
    if checksum(fields) != seal:
        raise LedgerCorrupt(f"The record of charge {row[0]} is not what was written. Restore the newest backup.")
    return fields


def charge_of(session: StoreSession, seq: int) -> Sequence[Any] | None:
    """One of them; None where the entry is not a charge."""
    rows = session.rows(f"SELECT {CHARGE} FROM charges WHERE seq = ?", seq)
    return charge_from(rows[0]) if rows else None


def charge_in(content: Content) -> Charge:
    """Return what an entry charged. Those of the first format lack ``pure``: ``older`` completes them."""
    return Charge(loss=content["loss"], failure=content["failure"], pure=content["pure"])


def _nothing(session: StoreSession, entry: Entry, content: Content) -> None:
    """Entries that only say that something was done."""


def _open(kind: str) -> Callable[[StoreSession, Entry, Content], None]:
    def effect(session: StoreSession, entry: Entry, content: Content) -> None:
        _take_terms(session, entry, content, kind)

    return effect


def _take_terms(session: StoreSession, entry: Entry, content: Content, kind: str) -> None:
    """A new holder, or new terms for one: what it has spent stays spent."""
    account, name, text = content["account"], "" if kind == ACCOUNT else content[kind], canonical(content["terms"])
    known = holder_of(session, account, kind, name)
    if known is None:
        known = Holder(account=account, kind=kind, name=name, terms=text, opened=entry.time, period=0, spent=Spent())
    keep(session, replace(known, terms=text))


def _change(session: StoreSession, entry: Entry, content: Content) -> None:
    holder = present(session, content["account"], content["holder"], content["name"])
    keep(session, replace(holder, terms=canonical(content["terms"])))


def _grant(session: StoreSession, entry: Entry, content: Content) -> None:
    _take_terms(session, entry, content, PRINCIPAL)
    _set_grant(session, entry, content, project=content["project"], expires=content["expires"], revoked=0)


def _revoke(session: StoreSession, entry: Entry, content: Content) -> None:
    _set_grant(session, entry, content, project=None, expires=None, revoked=1)


def _set_grant(
    session: StoreSession, entry: Entry, content: Content, *, project: str | None, expires: int | None, revoked: int
) -> None:
    fields = (content["account"], content["principal"], project, expires, revoked, entry.seq)
    session.run(
        "INSERT INTO grants (account, principal, project, expires, revoked, entry, seal) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (account, principal) DO UPDATE SET project = excluded.project, expires = excluded.expires, "
        "revoked = excluded.revoked, entry = excluded.entry, seal = excluded.seal",
        *(*fields, checksum(fields)),
    )


def _renew(session: StoreSession, entry: Entry, content: Content) -> None:
    holder = present(session, content["account"], content["holder"], content["name"])
    keep(session, replace(holder, period=content["period"], spent=Spent()))


def _spend(session: StoreSession, content: Content) -> None:
    for kind, name in content["holders"]:
        holder = present(session, content["account"], kind, name)
        keep(session, replace(holder, spent=holder.spent.plus(charge_in(content))))


def _charge(session: StoreSession, entry: Entry, content: Content) -> None:
    _spend(session, content)
    fields = (
        *(entry.seq, content["account"], content["principal"]),
        question_digest(content["question"], content["policy"], content["version"]),
        units_of(content["epsilon"], LOSS_UNIT),
        units_of(content["delta"], DELTA_UNIT),
        *(None, 0),
    )
    session.run(f"INSERT INTO charges ({CHARGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *fields, checksum(fields))
    _know(session, entry.seq, content)
    _hold(session, entry.seq, content)


def _serve(session: StoreSession, entry: Entry, content: Content) -> None:
    _know(session, content["charge"], content)


def _know(session: StoreSession, charge: int, content: Content) -> None:
    session.run(
        "INSERT INTO keys (principal, key, request, charge) VALUES (?, ?, ?, ?)",
        *(content["principal"], content["key"], content["request"], charge),
    )


def _share(session: StoreSession, entry: Entry, content: Content) -> None:
    _spend(session, content)
    _hold(session, content["charge"], content)


def _hold(session: StoreSession, charge: int, content: Content) -> None:
    session.run(
        "INSERT INTO holdings (charge, principal, project) VALUES (?, ?, ?)",
        *(charge, content["principal"], content["project"]),
    )


def _answer(session: StoreSession, entry: Entry, content: Content) -> None:
    *before, _, public = _charge_at(session, content["charge"])
    _alter(session, (*before, entry.seq, public))


def _publish(session: StoreSession, entry: Entry, content: Content) -> None:
    *before, _ = _charge_at(session, content["charge"])
    _alter(session, (*before, 1))


def _charge_at(session: StoreSession, seq: int) -> Sequence[Any]:
    found = charge_of(session, seq)
    if found is None:
        raise LedgerCorrupt(f"The record of charge {seq} is lost. Restore the newest backup.")
    return found


def _alter(session: StoreSession, fields: Sequence[Any]) -> None:
    session.run(
        "UPDATE charges SET answer = ?, public = ?, seal = ? WHERE seq = ?", *fields[6:], checksum(fields), fields[0]
    )


def _fact(session: StoreSession, entry: Entry, content: Content) -> None:
    session.run(
        "INSERT INTO facts (account, version, name, entry) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (account, version, name) DO UPDATE SET entry = excluded.entry",
        *(content["account"], content["version"], content["name"], entry.seq),
    )


def _fail(session: StoreSession, entry: Entry, content: Content) -> None:
    known = failures_of(session, content["account"], content["principal"])
    keep_failures(session, replace(known, many=known.many + 1))


def _thaw(session: StoreSession, entry: Entry, content: Content) -> None:
    keep_failures(session, replace(failures_of(session, content["account"], content["principal"]), many=0))


EFFECTS: Mapping[str, Callable[[StoreSession, Entry, Content], None]] = {
    "ledger": _nothing,
    "adopt": _nothing,
    "account": _open(ACCOUNT),
    "project": _open(PROJECT),
    "grant": _grant,
    "revoke": _revoke,
    "renewal": _renew,
    "budget": _change,
    "charge": _charge,
    "serve": _serve,
    "share": _share,
    "answer": _answer,
    "publish": _publish,
    "fact": _fact,
    "failure": _fail,
    "thaw": _thaw,
}
"""Every kind of entry, and what it does."""
