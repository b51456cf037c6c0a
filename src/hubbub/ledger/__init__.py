"""Privacy budgets that survive crashes, races and clever people.

``Ledger`` is opened on a file or a PostgreSQL URL; ``Ask`` is a question with its price, ``Ticket`` the right to answer
it. ``entry`` and ``effects`` say what is written, ``rules`` and ``owning`` what may be written, ``sqlite`` and
``postgres`` where to.
"""

from hubbub.ledger.entry import Entry
from hubbub.ledger.ledger import Ledger
from hubbub.ledger.terms import ALLOWANCE, OWNER, Ask, Fact, Failures, Grant, Renewal, Statement, Ticket
from hubbub.ledger.verify.marks import Marks

__all__ = [
    "ALLOWANCE",
    "OWNER",
    "Ask",
    "Entry",
    "Fact",
    "Failures",
    "Grant",
    "Ledger",
    "Marks",
    "Renewal",
    "Statement",
    "Ticket",
]
