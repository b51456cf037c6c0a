"""A second reading of the entries of a ledger that trusts no balance.

``rules`` decides what may be written by looking at tables. The witness reads the entries alone, in order, keeps its own
small notes, and says at which entry something was written that the rules do not allow: a charge below its price, a cap
passed, a limit left out, a second answer, anything for a principal
who was frozen.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hubbub.ledger.book import damage_at
from hubbub.ledger.effects import charge_in
from hubbub.ledger.entry import GENESIS, Entry, canonical
from hubbub.ledger.holder import ACCOUNT, BEGUN, FIRST_PERIOD, PRINCIPAL, PROJECT, Holder, filter_of
from hubbub.ledger.terms import ALLOWANCE, OWNER
from hubbub.privacy.events.event import event_from_json
from hubbub.privacy.filter import FREE, Charge, FamilyFilter, Filter, Spent

Content = Mapping[str, Any]

_CHARGED, _ANSWERED, _PUBLIC = 1, 2, 3


@dataclass(slots=True)
class _Balance:
    terms: str
    filter: Filter
    opened: int
    length: int | None
    """Of a period, in microseconds."""
    begun: tuple[int, int]
    """When periods of this length began, and with which number."""
    period: int = 0
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True)
class _Grant:
    project: str | None
    expires: int | None
    revoked: bool


@dataclass(frozen=True, slots=True)
class _Paid:
    account: str
    principal: str
    project: str | None
    cost: Charge


class Witness:
    """Sees one entry after the other; raises LedgerCorrupt at the first that should not be there."""

    def __init__(self) -> None:
        self.ledger: str | None = None
        self._link = GENESIS
        self._balances: dict[tuple[str, str, str], _Balance] = {}
        self._grants: dict[tuple[str, str], _Grant] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._paid: list[_Paid | None] = [None]
        self._state = bytearray(1)
        self._shared: dict[int, set[tuple[str, str | None]]] = {}
        self._alike: dict[_Paid, _Paid] = {}

    @property
    def accounts(self) -> int:
        """The number of accounts that were opened."""
        return sum(kind == ACCOUNT for _, kind, _ in self._balances)

    def see(self, entry: Entry, content: Content) -> None:
        """Check one entry, the next in order."""
        self._paid.append(None)
        self._state.append(0)
        _SEEN[entry.kind](self, entry, content)
        self._link = entry.hash

    def _on_name(self, entry: Entry, content: Content) -> None:
        if entry.seq != 1:
            raise damage_at(entry.seq, "a ledger begins a second time")
        self.ledger = content["ledger"]

    def _account(self, entry: Entry, content: Content) -> None:
        if (content["account"], ACCOUNT, "") in self._balances:
            raise damage_at(entry.seq, "the account was opened before")
        self._set_terms(entry, content, ACCOUNT, "")

    def _project(self, entry: Entry, content: Content) -> None:
        self._set_terms(entry, content, PROJECT, content["project"])

    def _on_grant(self, entry: Entry, content: Content) -> None:
        account, principal, project = content["account"], content["principal"], content["project"]
        if principal == OWNER:
            raise damage_at(entry.seq, "the owner needs no grant")
        if project is not None and (account, PROJECT, project) not in self._balances:
            raise damage_at(entry.seq, "its project was never opened")
        self._set_terms(entry, content, PRINCIPAL, principal)
        self._grants[account, principal] = _Grant(project, content["expires"], revoked=False)

    def _on_revocation(self, entry: Entry, content: Content) -> None:
        key = content["account"], content["principal"]
        if key not in self._grants:
            raise damage_at(entry.seq, "there was no grant to revoke")
        self._grants[key] = _Grant(None, None, revoked=True)

    def _set_terms(self, entry: Entry, content: Content, kind: str, name: str) -> None:
        account = content["account"]
        holder = Holder(
            account=account, kind=kind, name=name, terms=canonical(content["terms"]), opened=0, period=0, spent=Spent()
        )
        length = holder.renewal.microseconds if holder.renewal else None
        if kind != ACCOUNT:
            above = self._balance(entry, account, ACCOUNT, "").filter
            if type(above) is not type(holder.filter) or above.neighbors is not holder.filter.neighbors:
                raise damage_at(entry.seq, "its limit is not counted like its account")
        known = self._balances.setdefault(
            (account, kind, name), _Balance(holder.terms, holder.filter, entry.time, length, (entry.time, 0))
        )
        begun = self._begun(known, content)
        if begun not in (known.begun, (known.opened, 0)) and begun != (entry.time, known.period):
            raise damage_at(entry.seq, "its periods begin at another time than it does")
        known.terms, known.filter, known.length, known.begun = holder.terms, holder.filter, length, begun

    @staticmethod
    def _begun(known: _Balance, content: Content) -> tuple[int, int]:
        terms = content["terms"]
        return terms.get(BEGUN, known.opened), terms.get(FIRST_PERIOD, 0)

    def _balance(self, entry: Entry, account: str, kind: str, name: str) -> _Balance:
        try:
            return self._balances[account, kind, name]
        except KeyError:
            raise damage_at(entry.seq, f"it is about a {kind} that was never opened") from None

    def _on_renewal(self, entry: Entry, content: Content) -> None:
        balance = self._balance(entry, content["account"], content["holder"], content["name"])
        period = content["period"]
        if balance.length is None:
            raise damage_at(entry.seq, "it renews a budget that is not renewed by its terms")
        begun, first = balance.begun
        if not balance.period < period == first + (entry.time - begun) // balance.length:
            raise damage_at(entry.seq, "it renews a budget before its time")
        balance.period, balance.spent = period, Spent()

    def _on_budget(self, entry: Entry, content: Content) -> None:
        account, kind, name = content["account"], content["holder"], content["name"]
        known = self._balance(entry, account, kind, name)
        terms = canonical(content["terms"])
        changed, was = filter_of(terms), known.filter
        if type(changed) is not type(was) or changed.neighbors is not was.neighbors:
            raise damage_at(entry.seq, "the changed budget is not counted as it was before")
        same = content["terms"]["renewal_days"] == json.loads(known.terms)["renewal_days"]
        if not same or self._begun(known, content) != known.begun:
            raise damage_at(entry.seq, "it changes when the budget is renewed")
        known.terms, known.filter = terms, changed

    def _on_charge(self, entry: Entry, content: Content) -> None:
        account, principal = content["account"], content["principal"]
        own = self._balance(entry, account, ACCOUNT, "")
        project = self._check_grant(entry, account, principal)
        if content["project"] != project:
            raise damage_at(entry.seq, "it names another project than the grant")
        cost = price(own.terms, canonical(content["events"]))
        if charge_in(content) != cost:
            raise damage_at(
                entry.seq,
                f"it was charged {content['loss']} units, {content['failure']} of failure and {content['pure']} of "
                f"pure ε, but its events cost {cost.loss}, {cost.failure} and {cost.pure}",
            )
        holders = [[ACCOUNT, ""]]
        if project is not None:
            holders.append([PROJECT, project])
        if principal != OWNER:
            holders.append([PRINCIPAL, principal])
        self._spend(entry, content, holders)
        paid = _Paid(sys.intern(account), sys.intern(principal), project, cost)
        self._paid[entry.seq] = self._alike.setdefault(paid, paid)
        self._state[entry.seq] = _CHARGED

    def _share(self, entry: Entry, content: Content) -> None:
        charge, principal = content["charge"], content["principal"]
        paid = self._charge_of(entry, charge)
        project = self._check_grant(entry, paid.account, principal)
        if (content["account"], content["project"]) != (paid.account, project):
            raise damage_at(entry.seq, "it names another account or project than its charge and grant")
        if self._state[charge] < _ANSWERED:
            raise damage_at(entry.seq, f"it shares the answer of entry {charge}, which had none")
        if principal == OWNER or self._holds(charge, principal):
            raise damage_at(entry.seq, f"it shares the answer of entry {charge} with someone who has it")
        if charge_in(content) != paid.cost:
            raise damage_at(entry.seq, f"it costs another amount than entry {charge}")
        shared = self._shared.setdefault(charge, set())
        holders = [[PRINCIPAL, principal]]
        if project is not None and project not in {paid.project, *(under for _, under in shared)}:
            holders.append([PROJECT, project])
        self._spend(entry, content, holders)
        shared.add((principal, project))

    def _spend(self, entry: Entry, content: Content, holders: list[list[str]]) -> None:
        if sorted(content["holders"]) != sorted(holders):
            raise damage_at(entry.seq, "it was not charged to everyone whose limit it counts against")
        cost = charge_in(content)
        for kind, name in holders:
            balance = self._balance(entry, content["account"], kind, name)
            balance.spent = balance.spent.plus(cost)
            if not _within(balance.filter, balance.spent, failure=bool(cost.failure)):
                raise damage_at(entry.seq, f"it passes the cap of the {kind}")

    def _check_grant(self, entry: Entry, account: str, principal: str) -> str | None:
        """The project of the grant that was good at the time."""
        if principal == OWNER:
            return None
        grant = self._grants.get((account, principal))
        if grant is None or grant.revoked or (grant.expires is not None and entry.time >= grant.expires):
            raise damage_at(entry.seq, "its principal had no grant then")
        self._refuse_frozen(entry, account, principal)
        return grant.project

    def _refuse_frozen(self, entry: Entry, account: str, principal: str) -> None:
        if principal != OWNER and self._failures.get((account, principal), 0) >= ALLOWANCE:
            raise damage_at(entry.seq, "its principal was frozen then")

    def _holds(self, charge: int, principal: str) -> bool:
        paid = self._paid[charge]
        assert paid is not None
        return paid.principal == principal or any(who == principal for who, _ in self._shared.get(charge, ()))

    def _charge_of(self, entry: Entry, charge: object) -> _Paid:
        paid = self._paid[charge] if type(charge) is int and 0 < charge < entry.seq else None
        if paid is None:
            raise damage_at(entry.seq, f"entry {charge!r}, to which it points, is not an earlier charge")
        return paid

    def _serve(self, entry: Entry, content: Content) -> None:
        charge, principal = content["charge"], content["principal"]
        paid = self._charge_of(entry, charge)
        self._check_grant(entry, paid.account, principal)
        if not (principal == OWNER or self._state[charge] == _PUBLIC or self._holds(charge, principal)):
            raise damage_at(entry.seq, f"it serves the answer of entry {charge} to someone who has not paid")

    def _answer(self, entry: Entry, content: Content) -> None:
        charge = content["charge"]
        paid = self._charge_of(entry, charge)
        if self._state[charge] != _CHARGED:
            raise damage_at(entry.seq, f"it is a second answer to entry {charge}")
        self._refuse_frozen(entry, paid.account, paid.principal)
        self._state[charge] = _ANSWERED

    def _on_failure(self, entry: Entry, content: Content) -> None:
        charge, who = content["charge"], (content["account"], content["principal"])
        paid = self._charge_of(entry, charge)
        if who != (paid.account, paid.principal):
            raise damage_at(entry.seq, f"it names another account or principal than entry {charge}, which failed")
        if (self._state[charge] == _CHARGED) is bool(content.get("after_answer")):  # a watch fails after it was settled
            had = "had its answer" if self._state[charge] != _CHARGED else "had none"
            raise damage_at(entry.seq, f"it is a failure of entry {charge}, which {had}")
        self._refuse_frozen(entry, *who)
        self._failures[who] = self._failures.get(who, 0) + 1

    def _on_thaw(self, entry: Entry, content: Content) -> None:
        if not self._failures.pop((content["account"], content["principal"]), 0):
            raise damage_at(entry.seq, "there was no failure to forgive")

    def _publish(self, entry: Entry, content: Content) -> None:
        charge = content["charge"]
        self._charge_of(entry, charge)
        if self._state[charge] < _ANSWERED:
            raise damage_at(entry.seq, f"it publishes the answer of entry {charge}, which had none")
        self._state[charge] = _PUBLIC

    def _fact(self, entry: Entry, content: Content) -> None:
        if self._charge_of(entry, content["paid"]).account != content["account"]:
            raise damage_at(entry.seq, "it was paid for by another account")

    def _on_adoption(self, entry: Entry, content: Content) -> None:
        if (content["seq"], content["head"]) != (entry.seq - 1, self._link):
            raise damage_at(entry.seq, "it adopts another ledger than the one before it")


def _within(caps: Filter, spent: Spent, *, failure: bool) -> bool:
    """Return True if some sum of all that was charged is within its cap, and so is the failure mass where it grew."""
    if failure and spent.failure > caps.failure_cap:
        return False
    if spent.loss <= caps.loss_cap and not caps.closed:
        return True
    return isinstance(caps, FamilyFilter) and spent.pure is not None and spent.pure <= caps.pure_cap and not caps.closed


@lru_cache(maxsize=1 << 16)
def price(terms: str, events: str) -> Charge:
    """Return the cost of stored events to an account with these terms, in units: each event rounded up by itself."""
    counted = Holder(account="", kind=ACCOUNT, name="", terms=terms, opened=0, period=0, spent=Spent()).filter
    parts = [counted.charge_of(event_from_json(stored)) for stored in json.loads(events)]
    return sum(parts, FREE)


_SEEN: Mapping[str, Callable[[Witness, Entry, Content], None]] = {
    "ledger": Witness._on_name,
    "adopt": Witness._on_adoption,
    "account": Witness._account,
    "project": Witness._project,
    "grant": Witness._on_grant,
    "revoke": Witness._on_revocation,
    "renewal": Witness._on_renewal,
    "budget": Witness._on_budget,
    "charge": Witness._on_charge,
    "serve": Witness._serve,
    "share": Witness._share,
    "answer": Witness._answer,
    "publish": Witness._publish,
    "fact": Witness._fact,
    "failure": Witness._on_failure,
    "thaw": Witness._on_thaw,
}
