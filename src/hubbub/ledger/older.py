"""Entries of the first format, read in today's terms: charges that lack their sum of pure ε.

The first format counted accounts with δ > 0 in ρ alone. Their events are stored whole, so that the sum of pure ε of
every holder can be recomputed: once, when such a ledger is opened for writing, and whenever all entries are read.

Privacy:
    Claim: an account that was counted in ρ alone until its ledger was upgraded keeps its budget.
    Proof: whatever the sum of ρ let through, the family lets through too, and what it refused is a function of the
        transcript: an asker who asks less. So all of it is one run of the family (``privacy.filter``), provided that
        every sum holds every charge, earlier ones included.
    Needs: the stored events, whose chain is checked.
    Ref: SOUNDNESS 41.
"""

import json
from collections.abc import Mapping
from typing import Any

from hubbub.errors import LedgerCorrupt
from hubbub.ledger.entry import canonical
from hubbub.ledger.holder import checksum, filter_of
from hubbub.ledger.stores.store import StoreSession
from hubbub.privacy.charge import Charge, add_pure
from hubbub.privacy.events.event import event_from_json
from hubbub.privacy.filter import Filter, price_of

Content = Mapping[str, Any]

_PAGE = 1000
_OLD = "account, kind, name, terms, opened, period, loss, failure, charges"
"""The columns of a holder under the seal of the first format."""


def paid_for(content: Content, terms: Filter) -> Charge:
    """Return what a charge of either format cost an account with these terms."""
    if "pure" in content:
        return Charge(loss=content["loss"], failure=content["failure"], pure=content["pure"])
    price = price_of(terms, [event_from_json(stored) for stored in content["events"]])
    return Charge(loss=content["loss"], failure=content["failure"], pure=price.pure)


class Completing:
    """Reads all entries in their order, and completes those of the first format."""

    def __init__(self) -> None:
        self._terms: dict[str, Filter] = {}
        self._known: dict[str, int | None] = {}
        self._charges: dict[int, int | None] = {}

    def complete(self, seq: int, kind: str, content: Content) -> Content:
        """Return the contents with ``pure``, where they say what was charged."""
        if kind == "account":
            self._terms[content["account"]] = filter_of(canonical(content["terms"]))
        if kind not in ("charge", "share") or "pure" in content:
            return content
        if kind == "share":
            return {**content, "pure": self._charges.get(content["charge"])}
        pure = self._charges[seq] = self._price(content)
        return {**content, "pure": pure}

    def _price(self, content: Content) -> int | None:
        account = content["account"]
        text = canonical([account, content["events"]])
        if text not in self._known:
            if account not in self._terms:
                raise LedgerCorrupt(f"There is a charge to account {account!r}, which was never opened.")
            self._known[text] = paid_for(content, self._terms[account]).pure
        return self._known[text]


def fill_sums(session: StoreSession) -> None:
    """Recompute the sum of pure ε of every holder from the entries, and seal its row anew."""
    sums: dict[tuple[str, str, str], int | None] = {}
    completing, last = Completing(), 0
    while rows := session.rows("SELECT seq, kind, body FROM entries WHERE seq > ? ORDER BY seq LIMIT ?", last, _PAGE):
        for seq, kind, body in rows:
            content = completing.complete(seq, kind, json.loads(body))
            if kind == "renewal":
                sums[content["account"], content["holder"], content["name"]] = 0
            elif kind in ("charge", "share"):
                for holder, name in content["holders"]:
                    key = content["account"], holder, name
                    sums[key] = add_pure(sums.get(key, 0), content["pure"])
            last = seq
    for *fields, seal in session.rows(f"SELECT {_OLD}, seal FROM holders"):
        account, kind, name = fields[:3]
        if checksum(fields) != seal:
            raise LedgerCorrupt(
                f"The balance of {kind} {name or account!r} is not what was written. Restore the newest backup."
            )
        whole = (*fields, sums.get((account, kind, name), 0))
        session.run(
            "UPDATE holders SET pure = ?, seal = ? WHERE account = ? AND kind = ? AND name = ?",
            *(whole[-1], checksum(whole), account, kind, name),
        )
