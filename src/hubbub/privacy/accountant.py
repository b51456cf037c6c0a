"""Composition of a fixed plan of events: pure sums, zCDP sums, Rényi curves, privacy loss distributions.

``compose`` turns events into one Loss; ``epsilon_of`` and ``delta_of`` read it. These are for plans that are fixed
before the first answer. Where questions are chosen by earlier answers use ``hubbub.privacy.filter``.

Groups, sequences and failure masses are expanded here, before anything is handed to dp_accounting: it only ever sees a
shift law whose sensitivity was stated for the events' own neighbouring relation, never a relation to interpret.

Privacy:
    Claim: every run of the events in any fixed order satisfies the Loss returned.
    Proof: pure ε, ρ and Rényi divergences add; a distribution of losses that dominates each part dominates the whole
        after convolution; failure masses add beside by the union bound.
    Needs: dp_accounting's pessimistic rounding of single laws. Its convolutions by Fourier transform have float
        errors of either sign, up to n·2^-54 in δ after n of them as measured against exact sums; n·2^-51 is added.
    Ref: Dwork, Rothblum, Vadhan 2010; Mironov 2017; Sommer, Meiser, Mohammadi 2019; Doroshenko et al. 2022; Zhu, Dong,
        Wang 2022 (dominating pairs).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Literal

import numpy as np

from hubbub.errors import AccountingError, ParameterError
from hubbub.parameters import Real, between, non_negative
from hubbub.privacy.distribution import distribution_of, flatten
from hubbub.privacy.events.composed import same_neighbors
from hubbub.privacy.events.record import ZERO, Event
from hubbub.privacy.loss import Approx, Loss, Pld, Pure, Rdp, Zcdp
from hubbub.privacy.rounding import float_up

Method = Literal["pld", "rdp", "zcdp", "pure"]

ORDERS: tuple[float, ...] = (
    *(1 + tenth / 10 for tenth in range(1, 100)),
    *map(float, range(11, 64)),
    *(float(2**k) for k in range(6, 21)),
)
"""Rényi orders: fine where compositions are usually best, and far enough for a single quiet answer."""

_ONE = Fraction(1)
_CONVOLUTION_ERROR = Fraction(1, 1 << 51)


def compose(events: Iterable[Event], *, method: Method = "pld") -> Loss:
    """The loss of all events together, under the one neighbouring relation they share."""
    plan = tuple(events)
    for event in plan:
        if not isinstance(event, Event):
            raise ParameterError("events", "a sequence of Events", event)
    if method not in _METHODS:
        raise ParameterError("method", f"one of {', '.join(_METHODS)}", method)
    same_neighbors(plan)
    return _METHODS[method](flatten(plan))


def epsilon_of(events: Iterable[Event], *, delta: Real = 0, method: Method = "pld") -> float:
    """An upper bound of the ε of all events together at a δ; infinite where the method proves none."""
    at = between("delta", delta, 0, 1, high_open=True)
    try:
        return float_up(compose(events, method=method).epsilon_at(at))
    except AccountingError as problem:
        if "loss" in problem.operands:
            return math.inf
        raise


def delta_of(events: Iterable[Event], *, epsilon: Real, method: Method = "pld") -> float:
    """An upper bound of the δ of all events together at an ε."""
    return float_up(compose(events, method=method).delta_at(non_negative("epsilon", epsilon)))


def _failure(parts: Counter[Event]) -> Fraction:
    return min(_ONE, sum((count * event.failure for event, count in parts.items()), ZERO))


def _refuse(event: Event, method: str, remedy: str) -> AccountingError:
    return AccountingError(f"No {method} bound is proven for a {event.tag} event{remedy}.", event=event, method=method)


def _pure(parts: Counter[Event]) -> Loss:
    total = ZERO
    for event, count in parts.items():
        if event.epsilon is None:
            raise _refuse(event, "pure", "; use zcdp, rdp or pld")
        total += count * event.epsilon
    failure = _failure(parts)
    return Approx(epsilon=total, delta=failure) if failure else Pure(epsilon=total)


def _zcdp(parts: Counter[Event]) -> Loss:
    total = ZERO
    for event, count in parts.items():
        if event.rho is None:
            raise _refuse(event, "zcdp", "")
        total += count * event.rho
    return Zcdp(rho=total, failure=_failure(parts))


def _rdp(parts: Counter[Event]) -> Loss:
    orders = np.asarray(ORDERS)
    total = np.zeros(len(ORDERS))
    for event, count in parts.items():
        total += event.rdp(orders) * count
    return Rdp(orders=ORDERS, values=tuple(total * (1 + 2.0**-44)), failure=_failure(parts))


def _pld(parts: Counter[Event]) -> Loss:
    known = [(count, event.epsilon) for event, count in parts.items() if event.epsilon is not None]
    return Pld(
        distribution=distribution_of(parts),
        failure=_failure(parts),
        rounding=min(_ONE, sum(parts.values()) * _CONVOLUTION_ERROR),
        pure=sum((count * epsilon for count, epsilon in known), ZERO) if len(known) == len(parts) else None,
    )


_METHODS: dict[str, Callable[[Counter[Event]], Loss]] = {"pld": _pld, "rdp": _rdp, "zcdp": _zcdp, "pure": _pure}
