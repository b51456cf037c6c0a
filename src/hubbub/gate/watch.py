"""Questions that come one by one against one noisy threshold: paid for once, before the first of them.

Privacy:
    Claim: opening a watch costs one run of its SparseVector, and asking it costs nothing more.
    Proof: every question is a Secret that fits the mechanism (Facts.check_fit), so the claim of Stream holds for all of
        them together; other measurements of the account in between add to it like any others.
        A question that fails, whatever its value made fail, ends the watch with the one fixed error and is counted, so
        that each charge tells of at most one failure; who has used up the allowance hears the same either way.
    Needs: monotone watches take rising values only: two values that are each monotone may move against each other.
    Ref: Haney, Shoemate, Tian, Vadhan, Vyrros, Xu, Zhang 2023: filters for interactive mechanisms side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.errors import EngineError, MisfitError, ParameterError, WatchOver
from hubbub.gate.attempt import Log, attempt
from hubbub.gate.secret import Secret
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.integers import off_grid
from hubbub.mechanisms.sparse.threshold_stream import Above, Stream
from hubbub.privacy.events.event import Event


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watch:
    """An open watch, made by ``Meter.watch``. Everything that it shows is public; what it compares with is not."""

    stream: Stream
    account: str
    grid: Fraction
    entry: int
    """What paid for it, in the account's ledger."""
    opens: Callable[[Mechanism, Secret[Any]], Any]
    fails: Callable[[], object]
    """Counts a failure against whoever paid."""
    checks: Callable[[], None]
    """Refuses a payer whose failures have used up the allowance."""
    log: Log | None = None

    @property
    def event(self) -> Event:
        """Return what the whole watch costs, whatever it is asked."""
        return self.stream.mechanism.event

    @property
    def left(self) -> int:
        """Return how many answers above the threshold are still paid for."""
        return self.stream.left

    def ask(self, secret: Secret[Any]) -> Above | None:
        """Test a value against the threshold: return how far it is above, in its own units, or None if called below."""
        mechanism = self.stream.mechanism
        if not isinstance(secret, Secret):
            raise ParameterError("secret", "a Secret", type(secret).__name__)
        facts = secret.facts
        if facts.account != self.account:
            raise MisfitError(
                f"This watch was paid for from account {self.account!r}, and the value is of {facts.account!r}.",
                account=facts.account,
            )
        facts.check_fit(mechanism)
        if mechanism.monotone and not facts.sensitivity.rising:
            raise MisfitError(
                "A monotone watch needs values that never fall when a unit is added, which is not proven here.",
                mechanism=type(mechanism).__name__,
            )
        if facts.grid != self.grid:
            raise MisfitError(f"This watch counts steps of {self.grid}, and the value steps of {facts.grid}.")
        self.stream.check()
        found, failed = attempt(lambda: self._ask(secret), log=self.log)
        if failed:
            self.stream.end()
            self.fails()
            raise EngineError
        if isinstance(found, WatchOver):
            raise found
        self.checks()
        return found

    def _ask(self, secret: Secret[Any]) -> Above | WatchOver | None:
        """Open the value, compare it, and return what is above in its own units.

        Another thread may have had the last answer meanwhile: that is no failure, and tells nothing of the value.
        """
        exact = self.opens(self.stream.mechanism, secret)
        try:
            found = self.stream.ask(exact)
        except WatchOver as over:
            return over
        if found is None:
            return None
        number = None if found.number is None else off_grid(found.number, self.grid)
        return Above(gap=off_grid(found.gap, self.grid), number=number)

    def __repr__(self) -> str:
        return f"<Watch of account {self.account!r}, entry {self.entry}, {self.left} left>"
