"""Operations of owners on a ledger: accounts, projects, grants, publications. Each checks first and writes last."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hubbub.errors import CapacityError, GrantError, HubbubError, ParameterError
from hubbub.ledger.book import Transaction
from hubbub.ledger.effects import charge_of
from hubbub.ledger.entry import canonical
from hubbub.ledger.holder import ACCOUNT, BEGUN, FIRST_PERIOD, PRINCIPAL, PROJECT, Holder, holder_of
from hubbub.ledger.permission import account_of, failures_of
from hubbub.ledger.terms import OWNER, Renewal, budget_json, check_name
from hubbub.privacy.filter import LOSS_UNIT, Budget

_MOST = 1 << 62


def open_account(
    tx: Transaction,
    name: str,
    budget: Budget,
    *,
    population: str = "",
    renewal: Renewal | None = None,
    sources: Sequence[str] = (),
) -> str | None:
    """An account keeps the filter it was opened with; opening it again on the same terms changes nothing.

    ``sources`` name the data that it is opened for. Return another account that was opened for some of them, if there
    is one: data that has two accounts has two budgets.
    """
    content = {"account": check_name("account", name), "population": population, "terms": _terms(budget, renewal)}
    known = holder_of(tx.session, name, ACCOUNT, "")
    if known is None:
        named = sorted(set(sources))
        other = _account_for(tx, named) if named else None
        tx.append("account", content | ({"sources": named} if named else {}))
        return other
    opening = _named_terms(known)
    if renewal is None:  # whoever names none asks for none: the account is renewed as it was opened
        opening = [one | {"renewal_days": None} for one in opening]
    if content["terms"] not in opening:
        same = budget.neighbors is known.budget.neighbors
        raise ParameterError("budget", _tell_terms(known), budget.filter.budget if same else budget.neighbors)
    return None


def _tell_terms(holder: Holder) -> str:
    """Say which budget an account has, and what to do for another one."""
    first = replace(holder, terms=canonical(_named_terms(holder)[-1]))
    now, opened = (_tell_budget(one.budget, one.renewal) for one in (holder, first))
    has = opened if now == opened else f"{opened}; now {now}"
    return (
        f"what account {holder.account!r} was opened with ({has}): its owner changes it by hubbub budget set, and data "
        "about other people has an account of another name"
    )


def _tell_budget(budget: Budget, renewal: Renewal | None) -> str:
    every = "" if renewal is None else f", anew every {renewal.days} days"
    return f"{budget.filter.budget}, {budget.neighbors}{every}"


def _named_terms(holder: Holder) -> list[dict[str, Any]]:
    """List the terms by which programs may name an account: those in force, and those before its first change."""
    terms = json.loads(holder.terms)
    in_force = {key: terms[key] for key in _TERMS}
    return [in_force, terms.get("first", in_force)]


def _account_for(tx: Transaction, sources: Sequence[str]) -> str | None:
    """Return an account that was opened for some of these sources. Accounts are opened seldom: entries are read."""
    for (body,) in tx.session.rows("SELECT body FROM entries WHERE kind = 'account' ORDER BY seq"):
        content = json.loads(body)
        if not set(sources).isdisjoint(content.get("sources", ())):
            return str(content["account"])
    return None


def set_budget(
    tx: Transaction,
    account: str,
    budget: Budget | None,
    *,
    kind: str = ACCOUNT,
    name: str = "",
    closed: bool = False,
) -> None:
    """Raise, lower, close or reopen a budget: what was spent stays spent, in every sum.

    Privacy:
        Claim: the account keeps the greatest ε and the greatest δ that were ever in force.
        Proof: sums hold all charges and are not reset. With Σρ or Σε of all charges within the caps in force when the
            last was admitted, they are within the greatest caps, so the whole is a run of the family with those;
            changes depend on the owner and on what was released, which a filter allows for. Lowering takes nothing
            back: it only refuses.
        Needs: one way of counting: δ = 0 stays, and so do the neighbours.
        Ref: SOUNDNESS 41.
    """
    own = account_of(tx.session, account)
    holder = own if kind == ACCOUNT else holder_of(tx.session, account, kind, name)
    if holder is None:
        raise ParameterError(kind, f"a {kind} of account {account!r}", name)
    _check_limit(own, budget or holder.budget)
    terms = _terms(budget or holder.budget, holder.renewal) | _periods_of(holder)
    terms |= {"closed": closed, "first": _named_terms(holder)[-1]}
    content = {"account": account, "holder": kind, "name": name, "terms": terms}
    if canonical(terms) != holder.terms:
        tx.append("budget", content)


_TERMS = ("delta", "epsilon", "neighbors", "renewal_days")


def open_project(tx: Transaction, account: str, project: str, limit: Budget, *, renewal: Renewal | None = None) -> None:
    """A project under an account, or new limits for one: what it has spent stays spent."""
    _check_limit(account_of(tx.session, account), limit)
    terms = _new_terms(tx, holder_of(tx.session, account, PROJECT, check_name("project", project)), limit, renewal)
    tx.append("project", {"account": account, "project": project, "terms": terms})


def grant(
    tx: Transaction,
    account: str,
    principal: str,
    *,
    limit: Budget | None,
    project: str | None,
    expires: datetime | None,
    renewal: Renewal | None,
) -> None:
    """Let a principal spend; without a limit of its own it may spend what the account has."""
    holder = account_of(tx.session, account)
    if check_name("principal", principal) == OWNER:
        raise ParameterError("principal", "someone other than the owner, who needs no grant", principal)
    if project is not None and holder_of(tx.session, account, PROJECT, project) is None:
        raise ParameterError("project", f"a project of account {account!r}; open it first", project)
    if limit is None:
        limit, renewal = holder.budget, holder.renewal
    _check_limit(holder, limit)
    terms = _new_terms(tx, holder_of(tx.session, account, PRINCIPAL, principal), limit, renewal)
    tx.append(
        "grant",
        {
            "account": account,
            "expires": None if expires is None else _microseconds(expires),
            "principal": principal,
            "project": project,
            "terms": terms,
        },
    )


def _new_terms(tx: Transaction, holder: Holder | None, limit: Budget, renewal: Renewal | None) -> dict[str, Any]:
    """Make new terms for a limit: what it has spent stays spent.

    Privacy:
        Claim: a limit whose periods get another length keeps its budget in each period, the present one included.
        Proof: the present period is the first of the new length, and what it has spent is kept: it ends a whole new
            length after the change. Numbers of periods only grow, and each is renewed once. Counted from the opening,
            a day in place of a year would have ended hundreds of periods, and lent what was just spent.
        Needs: ledger time that never goes back.
        Ref: SOUNDNESS 41.
    """
    terms = _terms(limit, renewal)
    if holder is None or renewal is None:
        return terms
    if renewal == holder.renewal:
        return terms | _periods_of(holder)
    period = holder.period_at(tx.now)
    if period > holder.period:
        renewed = {"account": holder.account, "holder": holder.kind, "name": holder.name, "period": period}
        tx.append("renewal", renewed)
    return terms | {BEGUN: tx.now, FIRST_PERIOD: period}


def _periods_of(holder: Holder) -> dict[str, Any]:
    terms = json.loads(holder.terms)
    return {key: terms[key] for key in (BEGUN, FIRST_PERIOD) if key in terms}


def revoke(tx: Transaction, account: str, principal: str) -> None:
    """Nothing more for this principal; what it has spent is remembered."""
    account_of(tx.session, account)
    if not tx.session.rows("SELECT 1 FROM grants WHERE account = ? AND principal = ?", account, principal):
        raise GrantError(f"{principal!r} has no grant on account {account!r}.", account=account, principal=principal)
    tx.append("revoke", {"account": account, "principal": principal})


def thaw(tx: Transaction, account: str, principal: str) -> int:
    """The owner has looked: a new allowance. Gives back how many failures there were; for none nothing is written."""
    account_of(tx.session, account)
    known = tx.session.rows("SELECT 1 FROM grants WHERE account = ? AND principal = ?", account, principal)
    if not known and principal != OWNER:
        raise GrantError(f"{principal!r} has no grant on account {account!r}.", account=account, principal=principal)
    many = failures_of(tx.session, account, principal).many
    if many:
        tx.append("thaw", {"account": account, "principal": principal})
    return many


def publish(tx: Transaction, charge: int) -> None:
    """Mark an answer as public: from now on everyone with a grant is served it for nothing."""
    found = charge_of(tx.session, charge)
    if found is None or found[6] is None:
        raise HubbubError(f"Entry {charge} is not a charge with an answer, so there is nothing to publish.")
    if not found[7]:
        tx.append("publish", {"charge": charge})


def _check_limit(account: Holder, limit: Budget) -> None:
    if limit.neighbors is not account.budget.neighbors or (limit.delta == 0) is not (account.budget.delta == 0):
        raise ParameterError(
            "limit",
            f"counted like account {account.account!r} ({account.budget.filter.budget}, {account.budget.neighbors}): "
            "δ = 0 for both or for neither, and the same neighbours",
            limit,
        )


def _terms(budget: Budget, renewal: Renewal | None) -> dict[str, Any]:
    if not isinstance(budget, Budget):
        raise ParameterError("budget", "a Budget", budget)
    if budget.epsilon / LOSS_UNIT >= _MOST or budget.filter.loss_cap >= _MOST:
        raise CapacityError("A budget must be below ε = 4,194,304: amounts are kept in 64-bit units.", budget=budget)
    return budget_json(budget, renewal)


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ParameterError("expires", "a moment with a time zone", moment)
    whole = int(moment.astimezone(UTC).replace(microsecond=0).timestamp())
    return whole * 1_000_000 + moment.microsecond
