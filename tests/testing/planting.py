"""Faults in accounting, gate and noise, each planted in one place of the product for as long as a block lasts."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from scipy import special

from hubbub import noise
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import BudgetExceeded, ParameterError
from hubbub.gate import meter
from hubbub.gate.meter import Meter, Reply
from hubbub.gate.purse import InMemory, Payment, Prepaid
from hubbub.gate.release import Release
from hubbub.gate.secret import Facts, open_secret
from hubbub.ledger import Ledger, serving
from hubbub.mechanisms import Geometric
from hubbub.mechanisms.additive import reals
from hubbub.mechanisms.integers import on_grid
from hubbub.mechanisms.specimens.registry import build_specimens
from hubbub.noise import discrete, entropy
from hubbub.privacy import amplify, calibrate, convert, curves, shares
from hubbub.privacy import filter as filters
from hubbub.privacy.events import composed, sampling
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT, Budget, Charge, FamilyFilter, PureFilter, Spent
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.missing.bought import WantedFact
from hubbub.query.plan import plan_terms
from hubbub.session import database as session
from hubbub.session import session as door

Fault = Callable[[], AbstractContextManager[Any]]

build_specimens()  # they are built when asked for: here, before any fault could be calibrated into them


def both(*faults: Fault) -> Fault:
    """One mistake that was made in two places."""

    @contextmanager
    def planted() -> Iterator[None]:
        with ExitStack() as stack:
            for fault in faults:
                stack.enter_context(fault())
            yield

    return planted


def at(module: Any, what: str, fault: Any) -> Fault:
    return lambda: mock.patch.object(module, what, fault)


# Filters


class SomeOrder:
    """Go on while some Rényi order fits at the full δ."""

    orders = np.array([1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64])

    def __init__(self, held: Budget) -> None:
        self.budget, self.neighbors = held, held.neighbors

    def charge_of(self, event: Event) -> Any:
        filters._same_relation(event, self.neighbors)
        return tuple(event.rdp(self.orders)), event.failure

    def spend(self, spent: Any, charge: Any) -> Any:
        curve, failure = charge
        held, failed = (np.zeros(len(self.orders)), 0) if isinstance(spent, Spent) else spent
        total, failed = held + np.array(curve), failed + failure
        at = total + np.log1p(-1 / self.orders)
        at -= np.log(max(1e-99, float(self.budget.delta - failed)) * self.orders) / (self.orders - 1)
        if not (at <= float(self.budget.epsilon)).any():
            raise BudgetExceeded("No order fits.")
        return total, failed

    def odometer(self, spent: Any) -> Any:
        return self.budget


def _some_order(*, epsilon: Any, delta: Any, neighbors: Neighbors) -> Any:
    return SomeOrder(Budget(epsilon=epsilon, delta=delta, neighbors=neighbors))


def _whole_delta(self: FamilyFilter) -> None:
    """The conversion takes all of δ, and failures half of it once more."""
    object.__setattr__(self, "pure_cap", math.floor(self.epsilon / LOSS_UNIT))
    object.__setattr__(self, "loss_cap", math.floor(convert.rho_rounded_down(self.epsilon, self.delta) / LOSS_UNIT))
    object.__setattr__(self, "failure_cap", math.floor(self.delta / 2 / DELTA_UNIT))


def _down(value: Fraction, unit: Fraction) -> int:
    return math.floor(value / unit)


_family_charge = filters._family_charge


def _no_epsilon_is_none(event: Event) -> Charge:
    """What has no pure ε adds nothing to the sum of ε."""
    honest = _family_charge(event)
    return replace(honest, pure=honest.pure or 0)


def _pots(self: FamilyFilter, spent: Spent, charge: Charge, *, whose: str = "") -> Spent:
    """A charge is paid from one sum, and not counted in the other."""
    if not self.fits(spent, charge):
        raise BudgetExceeded("No pot has so much left.")
    if spent.loss + charge.loss <= self.loss_cap:
        return spent.plus(replace(charge, pure=0))
    return spent.plus(replace(charge, loss=0))


FILTERS: dict[str, tuple[str, Fault]] = {
    "no pure ε counts as 0": ("filter: family", at(filters, "_family_charge", _no_epsilon_is_none)),
    "separate pots": ("filter: family", at(FamilyFilter, "spend", _pots)),
    "separate pots, replace-one": ("filter: family, replace-one", at(FamilyFilter, "spend", _pots)),
    "some order": ("filter: family", at(filters, "filter_for", _some_order)),
    "the whole delta, and a pool": ("filter: family", at(FamilyFilter, "__post_init__", _whole_delta)),
    "failures are not counted": (
        "filter: family",
        at(FamilyFilter, "fits", lambda self, spent, charge: spent.loss + charge.loss <= self.loss_cap),
    ),
    "charges rounded down": ("filter: family, small", at(filters, "_units_up", _down)),
    "a pure event priced like a choice": (
        "filter: family, small",
        at(curves, "response_rho_rounded_up", lambda epsilon, categories=2: epsilon * epsilon / 8),
    ),
    "a pure price rounded down": ("filter: pure", at(filters, "_units_up", _down)),
    "a cap that is passed by a hair": (
        "filter: pure",
        at(PureFilter, "fits", lambda self, spent, charge: spent.loss + charge.loss <= self.loss_cap + 99),
    ),
    "the last question is free": (
        "filter: pure",
        at(PureFilter, "fits", lambda self, spent, _: spent.loss < self.loss_cap),
    ),
    "events about other neighbours": ("filter: pure", at(filters, "_same_relation", lambda event, neighbors: None)),
    "a sample priced by its rate": (
        "filter: pure",
        at(amplify, "sampled_epsilon_rounded_up", lambda epsilon, rate: epsilon * rate),
    ),
    "a sample that fails less than it does": (
        "filter: family",
        at(sampling.PoissonSampledEvent, "failure", property(lambda self: self.rate * self.event.failure / 2)),
    ),
    "many runs at the price of one": (
        "filter: pure",
        at(composed.RepeatedEvent, "epsilon", property(lambda self: self.event.epsilon)),
    ),
    "replace-one charged twice": (
        "filter: family, replace-one",
        at(sampling, "_group_rho", lambda event: None if event.rho is None else 2 * event.rho),
    ),
    "other neighbours where units are replaced": (
        "filter: family, replace-one",
        at(filters, "_same_relation", lambda event, neighbors: None),
    ),
    "replace-one charged once": (
        "filter: pure, replace-one",
        at(sampling.GroupOfTwoEvent, "epsilon", property(lambda self: self.event.epsilon)),
    ),
    "failures of two counted twice": (
        "filter: family, replace-one",
        at(sampling, "_group_failure_rounded_up", lambda epsilon, failure: 2 * failure),
    ),
    "no event is refused": ("filter: pure, replace-one", at(PureFilter, "fits", lambda self, spent, charge: True)),
}

# Calibration


def _analytic(sigma: Fraction, epsilon: Fraction, shift: int) -> Fraction:
    """The δ of the continuous Gaussian."""
    s, e = float(sigma), float(epsilon)
    ends = special.ndtr(shift / (2 * s) - e * s / shift), special.ndtr(-shift / (2 * s) - e * s / shift)
    return Fraction(max(0.0, float(ends[0] - math.exp(e) * ends[1])))


def _classic(epsilon: Fraction, delta: Fraction, shift: int) -> Fraction:
    sigma = shift * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return Fraction(sigma).limit_denominator(1 << 20)


def _all_for_each(honest: Any) -> Any:
    return lambda measured, **given: tuple(made for one in measured for made in honest([one], **given))


CALIBRATION: dict[str, Fault] = {
    "the analytic Gaussian on integers": at(calibrate, "delta_rounded_up", _analytic),
    "the classic Gaussian": at(calibrate, "_one_integer", _classic),
    "the whole budget for each part": (
        both(
            at(plan_terms, "calibrate_alike", _all_for_each(shares.calibrate_alike)),
            at(plan_terms, "calibrate_gaussian", _all_for_each(shares.calibrate_gaussian)),
        )
    ),
    "a shuffle for nothing": at(amplify, "shuffled_epsilon_rounded_up", lambda local, reports, delta: local / reports),
}

# The gate


def _read_first(self: Meter, mechanism: Any, secret: Any, *, label: str = "value", key: str | None = None) -> Release:
    """Open, then charge."""
    secret.facts.check_fit(mechanism)
    answer = mechanism.draw(open_secret(secret))
    payment = self._purse.pay(secret.facts.account, mechanism.event, label=label, key=key)
    told = payment.answer if payment.answered else _kept(self, payment, answer)
    return Release(
        value=told,
        mechanism=mechanism,
        event=mechanism.event,
        account=secret.facts.account,
        entry=payment.entry,
        grid=Fraction(1),
    )


def _kept(meter: Meter, payment: Payment, drawn: Any) -> Any:
    purse = meter._purse
    return purse.decode(purse.keep(payment, purse.encode(drawn)))


def _told_first(ledger: Ledger, ask: Any, work: Any, *, present: Any = None, **_: Any) -> Any:
    """The answer is on its way before it is stored, and stays there if it cannot be."""
    show = present or (lambda reply: reply)
    ticket = ledger.reserve(ask)
    if ticket.answer is not None:
        return show(Reply(entry=ticket.entry, answer=ticket.answer))
    drawn = work(Meter(Prepaid(ticket)))
    try:
        return show(Reply(entry=ticket.entry, answer=ledger.settle(ticket, drawn)))
    except Exception:
        return show(Reply(entry=ticket.entry, answer=drawn))


def _charged_last(ledger: Ledger, ask: Any, work: Any, *, present: Any = None, **_: Any) -> Any:
    """The work is done before it is paid for."""
    show = present or (lambda reply: reply)
    drawn = work(Meter({ask.account: Budget(epsilon=Fraction(10**9))}))
    ticket = ledger.reserve(ask)
    return show(Reply(entry=ticket.entry, answer=ticket.answer or ledger.settle(ticket, drawn)))


def _everywhere(fault: Any) -> Fault:
    """In every module that answers."""

    @contextmanager
    def planted() -> Iterator[None]:
        with ExitStack() as held:
            for module in (meter, door):
                held.enter_context(mock.patch.object(module, "answered", fault))
            yield

    return planted


def _free(ledger: Ledger, ask: Any, work: Any, *, present: Any = None, **_: Any) -> Any:
    show = present or (lambda reply: reply)
    return show(Reply(entry=1, answer=work(Meter({ask.account: Budget(epsilon=Fraction(10**9))}))))


def _free_for(kind: str) -> Any:
    """One kind of job is let through the door unpaid."""

    def answer(ledger: Ledger, ask: Any, work: Any, **more: Any) -> Any:
        return (_free if ask.question.startswith(kind) else _answered)(ledger, ask, work, **more)

    return answer


_answered = meter.answered


def _nan_refused(value: Any, grid: Fraction) -> Any:
    if not np.isfinite(value).all():
        raise ParameterError("value", "a number", "another")
    return on_grid(value, grid)


_by_key = serving._by_key


def _any_principal(session: Any, ask: Any, terms: Any) -> Any:
    """Keys are looked up without their principal."""
    found = session.rows("SELECT principal FROM keys WHERE key = ?", ask.key)
    return _by_key(session, replace(ask, principal=found[0][0]) if found else ask, terms)


def _given_back(self: Ledger, ticket: Any) -> None:
    """The failure is told, and not counted."""
    return None


def _unlocked(self: InMemory, account: str, event: Event, *, label: str, key: str | None) -> Payment:
    terms, before = self._filters[account], self._spent[account]
    after = terms.spend(before, terms.charge_of(event))
    time.sleep(0.02)
    self._spent[account] = after
    return Payment(after.charges)


_recall = Ledger.recall


def _any_version(self: Ledger, account: str, name: str, *, version: str = "1") -> Any:
    return _recall(self, account, name, version="1")


_explain = session.Database.explain


def _looking(self: session.Database, text: str, **options: Any) -> Any:
    """A plan that asks the data how many rows there are."""
    exact_of(self, self.plan(text, **options).aggregate)
    return _explain(self, text, **options)


GATE: dict[str, Fault] = {
    "read, then charged": at(Meter, "measure", _read_first),
    "drawn, then charged": _everywhere(_charged_last),
    "told, then stored": _everywhere(_told_first),
    "a path that charges nothing": at(door, "answered", _free_for("first over")),
    "another path that charges nothing": at(door, "answered", _free_for("diagnose")),
    "mechanisms that do not fit": at(Facts, "check_fit", lambda self, mechanism: None),
    "facts by the name of a column": at(WantedFact, "name", lambda self, policy: f"{self.lacking} {self.text}"),
    "facts of an older version": at(Ledger, "recall", _any_version),
    "NaN is an error": at(reals, "on_grid", _nan_refused),
    "one payment for any number of draws": at(Prepaid, "pay", lambda self, *_, **__: Payment(self._ticket.entry)),
    "keys of anybody": at(serving, "_by_key", _any_principal),
    "failures are not counted": at(Ledger, "fail", _given_back),
    "check, then write": at(InMemory, "pay", _unlocked),
    "a free look": at(session.Database, "explain", _looking),
    "buying is free": at(door, "answered", _free_for("fact:")),
    "a second draw for another principal": at(serving, "_find_earlier", lambda view, ask, project: None),
}

# Noise


class SharedStream(entropy.SystemSource):
    """A stream that does not notice a fork."""

    def _stream(self) -> Any:
        stream = getattr(self._local, "stream", None)
        if stream is None:
            stream = self._local.stream = entropy._Keystream((0, 0))
        return stream


@contextmanager
def _source(made: Any) -> Iterator[None]:
    with entropy.substitute(made):
        yield


_laplace = discrete.discrete_laplace


def _alike(*, scale: Any, size: int | None = None) -> Any:
    """Every draw of noise is used twice."""
    return _laplace(scale=scale) if size is None else np.repeat(_laplace(scale=scale, size=(size + 1) // 2), 2)[:size]


def _clock(*, scale: Any, size: int | None = None) -> Any:
    return _laplace(scale=scale, size=size) + time.perf_counter_ns()


def _seeded(*, scale: Any, size: int | None = None) -> Any:
    found = np.random.geometric(0.001, 1 if size is None else size)
    return int(found[0]) if size is None else found


def _timed(count: int) -> bytes:
    return (time.time_ns() % (1 << 64)).to_bytes(8, "little") * (count // 8)


_draw = Geometric.draw

NOISE: dict[str, tuple[str, Fault]] = {
    "a fork goes unnoticed": ("noise: fresh", lambda: _source(SharedStream())),
    "a key from the clock": ("noise: fresh", at(entropy, "_system_entropy", _timed)),
    "a seedable generator": (
        "noise: fresh",
        at(entropy, "_system_entropy", np.random.bytes),
    ),
    "something beside the source": ("noise: source", at(noise, "discrete_laplace", _clock)),
    "another generator in place of the source": ("noise: source", at(noise, "discrete_laplace", _seeded)),
    "noise used twice": ("noise: law", at(noise, "discrete_laplace", _alike)),
    "half the noise in single draws": (
        "noise: law",
        at(Geometric, "draw", lambda self, value: value + (_draw(self, value) - value) // 4),
    ),
}

PLANTED: Sequence[tuple[str, str, Fault]] = (
    *((name, subject, fault) for name, (subject, fault) in (FILTERS | NOISE).items()),
    *((name, "calibration", fault) for name, fault in CALIBRATION.items()),
    *((name, "gate", fault) for name, fault in GATE.items()),
)
