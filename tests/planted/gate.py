"""Bugs at the gate: what is charged, read, drawn, stored and told, and in which order."""

import hashlib
import math
import time
from fractions import Fraction
from typing import Any

from hubbub.gate import purse
from hubbub.gate.meter import Meter
from hubbub.gate.purse import InMemory, OnLedger, Payment, Prepaid
from hubbub.gate.release import Release
from hubbub.gate.secret import Facts, Secret
from hubbub.gate.watch import Watch
from hubbub.ledger import rules
from hubbub.mechanisms.additive import reals
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.sparse.threshold_stream import Stream
from hubbub.noise import entropy
from hubbub.privacy.events.event import Event
from hubbub.query.missing.bought import WantedFact
from tests.planted.plant import Caught, Planted, in_place, named


def _read_first(
    self: Meter, mechanism: Mechanism, secret: Secret[Any], *, label: str = "value", key: str | None = None
) -> Release:
    """Draw the answer, then see whether it can be paid for."""
    facts = secret.facts
    facts.check_fit(mechanism)
    drawn = mechanism.draw(self._open(mechanism, secret))
    payment = self._purse.pay(facts.account, mechanism.event, label=label, key=key)
    answer = payment.answer if payment.answered else _kept(self, payment, drawn)
    return Release(
        value=answer,
        mechanism=mechanism,
        event=mechanism.event,
        account=facts.account,
        entry=payment.entry,
        grid=Fraction(1),
        label=label,
    )


def _kept(meter: Meter, payment: Payment, drawn: Any) -> Any:
    purse = meter._purse
    return purse.decode(purse.keep(payment, purse.encode(drawn)))


def _watched_for_nothing(self: Meter, mechanism: Any, *, account: str, grid: Any = 1, label: str = "watch") -> Watch:
    return Watch(
        stream=Stream(mechanism),
        account=account,
        grid=Fraction(grid),
        entry=0,
        opens=self._open,
        fails=lambda: None,
        checks=lambda: None,
    )


def _told_first(self: OnLedger, payment: Payment, stored: Any) -> Any:
    """The answer goes out; that it is stored is somebody else's business, later."""
    return stored


_paid = Prepaid.pay


def _good_for_all(self: Prepaid, account: str, event: Event, *, label: str, key: str | None) -> Payment:
    left = self._left
    payment = _paid(self, account, event, label=label, key=key)
    self._left = left
    return payment


def _checked_then_written(self: InMemory, account: str, event: Event, *, label: str, key: str | None) -> Payment:
    """The balance is read and written in two steps, and others come in between."""
    terms = self._terms(account)
    spent = terms.spend(self._spent[account], terms.charge_of(event))
    time.sleep(0.002)
    self._spent[account] = spent
    return Payment(spent.charges)


def _failures_uncounted(tx: Any, charge: int, *, settled: bool = False) -> None:
    """That the engine failed is told as often as somebody asks."""


def _from_the_clock(count: int) -> bytes:
    return hashlib.shake_256(str(time.time_ns()).encode()).digest(count)


GATE = (
    Planted(
        name="charge after read",
        about="The answer is drawn and then paid for: who is cut off in between has read for nothing.",
        subject=named("gate"),
        patch=in_place(Meter, "measure", _read_first),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="uncharged path",
        about="One way to an answer, the watch, forgot to pay.",
        subject=named("gate"),
        patch=in_place(Meter, "watch", _watched_for_nothing),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="answer sent before stored",
        about="After a crash the same question is drawn a second time, and both draws are out.",
        subject=named("gate"),
        patch=in_place(OnLedger, "keep", _told_first),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="a payment that is good for all",
        about="What was paid for one draw pays for as many as the work makes.",
        subject=named("gate"),
        patch=in_place(Prepaid, "pay", _good_for_all),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="check, then write",
        about="Two who ask at once are both told that there is enough left.",
        subject=named("gate"),
        patch=in_place(purse.InMemory, "pay", _checked_then_written),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="noise that does not fit",
        about="A mechanism for a smaller sensitivity than was proven is let through.",
        subject=named("gate"),
        patch=in_place(Facts, "check_fit", lambda self, mechanism: None),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="failures without end",
        about="Whether the engine fails is a bit about the data, and it is told as often as somebody asks.",
        subject=named("gate"),
        patch=in_place(rules, "fail", _failures_uncounted),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="facts outliving a redefinition",
        about="Bounds that were bought for a column are taken for another one of its name.",
        subject=named("gate"),
        patch=in_place(WantedFact, "name", lambda self, policy: f"{self.lacking} {self.text}"),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="NaN counted",
        about="A NaN is taken for a number like any other, and the error, or the answer, tells that it is there.",
        subject=named("gate"),
        patch=in_place(reals, "on_grid", lambda value, grid: math.floor(Fraction(value) / grid + Fraction(1, 2))),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="forked noise",
        about="A process that forks after its first draw gives its children the same noise.",
        subject=named("noise: fresh"),
        patch=in_place(entropy, "generation", lambda: (0, 0)),
        caught=Caught.REPLAY,
    ),
    Planted(
        name="noise from the clock",
        about="A generator that is seeded with the time: who knows when, knows the noise.",
        subject=named("noise: fresh"),
        patch=in_place(entropy, "_system_entropy", _from_the_clock),
        caught=Caught.REPLAY,
    ),
)
