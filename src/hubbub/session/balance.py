"""What whoever asks can still spend: the least of all limits that it counts against, and nothing of what others did."""

import html
from dataclasses import dataclass
from typing import Any

from hubbub.ledger import OWNER
from hubbub.privacy.affordable import tell_room
from hubbub.query.answer.printable import clean
from hubbub.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Balance:
    """The account, who asks, and what is left to them."""

    account: str
    principal: str
    budget: str
    """All that the account allows, as its owner set it last."""
    left: str
    """The most that a question may still cost."""

    def to_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"account": self.account, "principal": self.principal, "budget": self.budget, "left": self.left}

    def __repr__(self) -> str:
        who = "" if self.principal == OWNER else f" to {clean(repr(self.principal))}"
        return f"{self.left} left{who} of account {clean(repr(self.account))}, whose budget is {self.budget}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"


def balance_of(session: Session) -> Balance:
    """Return what is left to whoever asks, as every refusal and explanation would tell it."""
    policy, payer = session.policy, session.payer()
    return Balance(
        account=policy.account,
        principal=session.principal,
        budget=str(payer.terms.budget),
        left=tell_room(payer, delta=policy.budget.delta / 100),
    )
