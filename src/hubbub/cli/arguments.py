"""The common parts of commands: the ledger, and exact numbers."""

import os
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hubbub.ledger import Ledger, Renewal
    from hubbub.privacy.budget import Budget

_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,3})?|[0-9]{1,40}/[0-9]{1,40}", re.ASCII)


def exact(text: str) -> Fraction:
    """A decimal or a fraction, taken at its exact value."""
    if not _NUMBER.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is not a number such as 0.1, 1/10 or 1e-6.")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise typer.BadParameter(f"{text!r} divides by zero.") from None


def location(given: list[str] | None) -> str:
    """The ledger that is meant."""
    if given and len(given) > 1:
        raise typer.BadParameter(f"one ledger, not {len(given)}.", param_hint="LEDGER")
    found = given[0] if given else os.environ.get("HUBBUB_LEDGER")
    if not found:
        raise typer.BadParameter("name one, or set HUBBUB_LEDGER.", param_hint="LEDGER")
    return found


def open_to_read(given: list[str] | None) -> "Ledger":
    """The ledger, for looking only."""
    from hubbub.ledger import Ledger

    return Ledger(location(given), create=False, writes=False)


def open_to_write(given: list[str] | None, *, create: bool = False) -> "Ledger":
    """The ledger, for its owner to write to."""
    from hubbub.ledger import Ledger

    return Ledger(location(given), create=create)


def limit_of(ledger: "Ledger", account: str, epsilon: Fraction | None, delta: Fraction | None) -> "Budget | None":
    """A limit under an account, counted as the account is."""
    from hubbub.privacy.budget import Budget

    above = ledger.statement(account).budget
    if epsilon is None:
        if delta is not None:
            raise typer.BadParameter("needs an --epsilon beside it.", param_hint="--delta")
        return None
    return Budget(epsilon=epsilon, delta=above.delta if delta is None else delta, neighbors=above.neighbors)


def renewal_of(days: int | None) -> "Renewal | None":
    """A policy of renewal, if there is to be one."""
    from hubbub.ledger import Renewal

    return None if days is None else Renewal(days=days)


def expiry(days: int | None, expires: str | None) -> datetime | None:
    """Read the end of a grant: a number of days from now, or a moment (UTC unless it says otherwise)."""
    if days is not None and expires is not None:
        raise typer.BadParameter("--days and --expires say the same thing; give one.", param_hint="--expires")
    if days is not None:
        return datetime.now(UTC) + timedelta(days=days)
    if expires is None:
        return None
    try:
        moment = datetime.fromisoformat(expires)
    except ValueError:
        raise typer.BadParameter(
            f"{expires!r} is not a moment such as 2027-01-31 or 2027-01-31T12:00Z.", param_hint="--expires"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
