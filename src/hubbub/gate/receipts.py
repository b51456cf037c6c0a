"""What was charged while a question was answered, for whoever breaks it off.

Privacy:
    Claim: the sentence depends on the ledger alone, and on when it was broken off.
    Proof: it is made of the tickets that the ledger has given, and of whether it was asked for another at that moment.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from hubbub.ledger import Ask, Ticket

FACT = "fact: "
"""How the questions begin under which facts are bought."""


@dataclass(slots=True)
class Receipts:
    """The charges of one question so far."""

    paid: list[tuple[Ask, Ticket]] = field(default_factory=list)
    """What was charged, each with its ticket: what was served for nothing is not among it."""
    under_way: Ask | None = None
    """What the ledger is being asked for: whether it is charged is not known until it says so."""

    def begin(self, ask: Ask) -> None:
        """Note that the ledger is about to be asked."""
        self.under_way = ask

    def end(self, ticket: Ticket) -> None:
        """Note what it gave."""
        assert self.under_way is not None
        if ticket.cost.loss or ticket.cost.failure:
            self.paid.append((self.under_way, ticket))
        self.under_way = None

    def __str__(self) -> str:
        """Say what was paid."""
        paid = [f"ε = {_write(ask.own_epsilon)} (entry {ticket.entry})" for ask, ticket in self.paid]
        doubt = ""
        if self.under_way is not None:
            epsilon = _write(self.under_way.own_epsilon)
            doubt = f" A charge of ε = {epsilon} may have been written: hubbub budget shows it."
        if not paid:
            return "Broken off. " + (doubt.strip() or "Nothing was paid.")
        again = "Ask exactly the same again: what was paid is not paid twice."
        return f"Broken off. Paid from account '{self.paid[0][0].account}': {' and '.join(paid)}.{doubt} {again}"


def _write(epsilon: Fraction | None) -> str:
    return "?" if epsilon is None else f"{float(epsilon):.6g}"
