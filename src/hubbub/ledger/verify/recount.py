"""The cost of stored events, counted a second time by an accountant that shares no formula with the first.

Charges come from ``Event.epsilon`` and ``Event.rho``. Here the stored JSON is read anew, and the laws it names go to
dp_accounting: its privacy loss distributions say how far the loss of a law reaches, its Rényi accountant how it
grows with the order. What dp_accounting has no law for is written out from its definition.

A recount finds charges that are too small. It is done in floating point, so it is a check and no proof. Loss
distributions round losses up to a grid of 2^-14 of the loss; in ρ that counts twice, and a sample may multiply it by a
few: ``ALLOWANCE`` is 2^-10 of the charge. ``SLACK`` is one unit of the ledger, into which float errors go.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.errors import EventError
from hubbub.privacy.curves import Curve

ORDERS = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 128.0)
"""The Rényi orders at which losses are compared."""

ALLOWANCE = 2.0**-10
SLACK = 2.0**-40

_GRID = 2.0**-14
"""The step of a loss distribution, relative to the loss of its law."""
_ALMOST_NEVER = 1e-14
"""The δ at which a pure ε is read off: float masses do not add up to one more closely."""
_SMALL = 2.0**-11
"""Below this ε the curves of additive noise are αε²/2 within the allowance, and sums in floats would cancel."""
_MANY = 1 << 12
"""Shifts of the discrete law that are worth listing; the continuous law at the same ε reaches just as far."""
_FAR = 30.0
"""Beyond this ε, e^-ε is lost beside 1, and the loss of a law is just its ε."""

_ALPHA = np.asarray(ORDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """The cost of events together, by the second accountant."""

    epsilon: float
    """The pure ε outside the failure mass; infinite where there is none."""
    curve: Curve
    """The Rényi divergence at each of the ORDERS."""
    failure: float = 0.0
    on_trust: frozenset[str] = field(default=frozenset())
    """Tags of events that no second accountant knows: their own figures were taken."""

    @property
    def rho(self) -> float:
        """The least ρ that covers the curve at every order."""
        return float(np.max(self.curve / _ALPHA))

    def __add__(self, other: "Recount") -> "Recount":
        return Recount(
            epsilon=self.epsilon + other.epsilon,
            curve=self.curve + other.curve,
            failure=min(1.0, self.failure + other.failure),
            on_trust=self.on_trust | other.on_trust,
        )

    def times(self, count: int) -> "Recount":
        """The same, ``count`` times over."""
        return Recount(
            epsilon=count * self.epsilon,
            curve=count * self.curve,
            failure=min(1.0, count * self.failure),
            on_trust=self.on_trust,
        )


NOTHING = Recount(epsilon=0.0, curve=np.zeros(len(ORDERS)))


def covers(charged: float, recounted: float) -> bool:
    """Return True if a charge is enough, as far as floats can tell."""
    return recounted <= charged * (1 + ALLOWANCE) + SLACK


@lru_cache(maxsize=1 << 14)
def recount(events: str) -> Recount:
    """The events of one entry, as canonical JSON: equal texts are counted once."""
    return sum((_of(stored) for stored in json.loads(events)), NOTHING)


def _of(stored: Mapping[str, Any]) -> Recount:
    known = _LAWS.get((stored["event"], stored["version"]))
    if known is None:
        raise EventError(f"No recount is known for an event {stored['event']!r} of version {stored['version']!r}.")
    return known(stored)


def _number(stored: Mapping[str, Any], name: str) -> float:
    return float(Fraction(stored[name]))


def _laplace(stored: Mapping[str, Any]) -> Recount:
    reach = float(Fraction(stored["sensitivity"]) / Fraction(stored["scale"]))
    from dp_accounting import LaplaceDpEvent

    return _pure(_reach("from_laplace_mechanism", reach, 1 / reach), _renyi(LaplaceDpEvent(1 / reach)))


def _discrete_laplace(stored: Mapping[str, Any]) -> Recount:
    step, shift = 1 / _number(stored, "scale"), stored["sensitivity"]
    about = step * shift
    if shift <= _MANY:
        epsilon = _reach("from_discrete_laplace_mechanism", about, step, shift)
    else:
        epsilon = _reach("from_laplace_mechanism", about, 1 / about)
    if about < _SMALL:
        return _pure(epsilon, _ALPHA * about * about / 2)
    # Σ P(k)^α Q(k)^(1−α) over k ≤ 0, 0 < k < Δ and k ≥ Δ, for P ∝ q^|k| and Q ∝ q^|k−Δ|: three geometric sums.
    with np.errstate(divide="ignore"):
        log_one_less = math.log(-math.expm1(-step))
        inside = -(2 * _ALPHA - 1) * step
        between = inside + np.log(-np.expm1((shift - 1) * inside)) - np.log(-np.expm1(inside)) + log_one_less
    left, right = (_ALPHA - 1) * step * shift, -_ALPHA * step * shift
    total = np.logaddexp(np.logaddexp(left, left + between), right) - math.log1p(math.exp(-step))
    return _pure(epsilon, np.maximum(total, 0) / (_ALPHA - 1))


def _gaussian(stored: Mapping[str, Any]) -> Recount:
    return _normal(_number(stored, "sigma") / _number(stored, "sensitivity"))


def _discrete_gaussian(stored: Mapping[str, Any]) -> Recount:
    """By the continuous law: for whole shifts the discrete one costs no more (Canonne, Kamath, Steinke 2020)."""
    return _normal(_number(stored, "sigma") / math.sqrt(_number(stored, "sensitivity_squared")))


def _normal(ratio: float) -> Recount:
    from dp_accounting import GaussianDpEvent

    return Recount(epsilon=math.inf, curve=_renyi(GaussianDpEvent(ratio)))


def _only_pure(stored: Mapping[str, Any]) -> Recount:
    return _response(_number(stored, "bound"), 2)


def _recount_response(stored: Mapping[str, Any]) -> Recount:
    return _response(_number(stored, "bound"), stored["categories"])


def _response(bound: float, categories: int) -> Recount:
    from dp_accounting import RandomizedResponseDpEvent

    if not 0 < bound <= _FAR:
        return _pure(bound, np.full(len(ORDERS), bound))
    noise = categories / (math.expm1(bound) + categories)
    epsilon = _reach("from_randomized_response", bound, noise, categories)
    if bound >= _SMALL:
        return _pure(epsilon, _renyi(RandomizedResponseDpEvent(noise, categories)))
    lie = 1 / (math.exp(bound) + categories - 1)
    step = (_ALPHA - 1) * bound
    gain = lie * math.exp(bound) * np.expm1(step) + lie * np.expm1(-step)
    return _pure(epsilon, np.log1p(gain) / (_ALPHA - 1))


def _recount_bounded_range(stored: Mapping[str, Any]) -> Recount:
    """The Rényi divergence of a loss in an interval of length ε is at most αε²/8 (Dong, Durfee, Rogers 2020)."""
    reach = _number(stored, "range")
    return _pure(_response(reach, 2).epsilon, _ALPHA * reach * reach / 8)


def _approx(stored: Mapping[str, Any]) -> Recount:
    return _beside(_only_pure(stored), _number(stored, "failure"))


def _with_failure(stored: Mapping[str, Any]) -> Recount:
    return _beside(_of(stored["base"]), _number(stored, "failure"))


def _recount_composed(stored: Mapping[str, Any]) -> Recount:
    return sum((_of(part) for part in stored["events"]), NOTHING)


def _recount_repeated(stored: Mapping[str, Any]) -> Recount:
    return _of(stored["base"]).times(stored["count"])


def _poisson(stored: Mapping[str, Any]) -> Recount:
    return _amplify(_of(stored["base"]), _number(stored, "rate"))


def _recount_fixed_size(stored: Mapping[str, Any]) -> Recount:
    return _amplify(_of(stored["base"]), stored["size"] / stored["population"])


def _amplify(whole: Recount, rate: float) -> Recount:
    """A secret sample turns ε into ln(1 + q(e^ε − 1)), and is never worse than the whole."""
    epsilon, curve = whole.epsilon, whole.curve
    if math.isfinite(epsilon):
        far = epsilon > _FAR
        epsilon = epsilon + math.log(rate) if far else math.log1p(rate * math.expm1(epsilon))
        curve = np.minimum(curve, _response(epsilon, 2).curve)
    return Recount(epsilon=epsilon, curve=curve, failure=rate * whole.failure, on_trust=whole.on_trust)


def _group_of_two(stored: Mapping[str, Any]) -> Recount:
    base = stored["base"]
    doubled = _double_shift(base)
    if doubled is not None:
        return _of(doubled)
    one = _of(base)
    failure = 0.0 if one.failure == 0 else min(1.0, (1 + math.exp(min(one.epsilon, 700.0))) * one.failure)
    curve = np.full(len(ORDERS), math.inf) if one.failure else 4 * one.rho * _ALPHA
    if math.isfinite(one.epsilon):
        curve = np.minimum(curve, _response(2 * one.epsilon, 2).curve)
    return Recount(epsilon=2 * one.epsilon, curve=curve, failure=failure, on_trust=one.on_trust)


def _double_shift(stored: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same noise beside twice the shift, for laws of shifts and sequences of them."""
    match stored["event"]:
        case "laplace" | "gaussian":
            return {**stored, "sensitivity": str(2 * Fraction(stored["sensitivity"]))}
        case "discrete-laplace":
            return {**stored, "sensitivity": 2 * stored["sensitivity"]}
        case "discrete-gaussian":
            return {**stored, "sensitivity_squared": str(4 * Fraction(stored["sensitivity_squared"]))}
        case "repeated":
            base = _double_shift(stored["base"])
            return None if base is None else {**stored, "base": base}
        case "composed":
            parts = [_double_shift(part) for part in stored["events"]]
            return None if None in parts else {**stored, "events": parts}
    return None


def _recount_shuffled(stored: Mapping[str, Any]) -> Recount:
    """dp_accounting knows no shuffling: the event's own ε is taken, and said to be."""
    from hubbub.privacy.events.event import ShuffledEvent, event_from_json

    event = event_from_json(stored)
    assert isinstance(event, ShuffledEvent)
    found = _response(float(event.epsilon), 2)
    local = _of(stored["base"])
    return Recount(
        epsilon=found.epsilon,
        curve=np.minimum(found.curve, local.curve),
        failure=_number(stored, "failure"),
        on_trust=frozenset({"shuffled"}),
    )


def _pure(epsilon: float, curve: Curve) -> Recount:
    return Recount(epsilon=epsilon, curve=np.minimum(curve, epsilon))


def _beside(base: Recount, failure: float) -> Recount:
    return base + Recount(epsilon=0.0, curve=NOTHING.curve, failure=failure)


def _reach(law: str, about: float, *parameters: float) -> float:
    """Return the largest loss of a law, by its loss distribution; ``about`` only sets the grid."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    if not 2.0**-24 < about <= _FAR:  # beyond what the masses of a loss distribution can show in floats
        return about
    made = getattr(pld, law)(*parameters, value_discretization_interval=about * _GRID)
    return float(made.get_epsilon_for_delta(_ALMOST_NEVER))


def _renyi(event: Any) -> Curve:
    """The Rényi curve of a law. The relation only says that the parameters are those of the pair of laws itself."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(list(ORDERS), NeighboringRelation.REPLACE_ONE)
    accountant.compose(event)
    curve: Curve = np.asarray(accountant._rdp, dtype=np.float64)
    return curve


_LAWS: dict[tuple[str, int], Callable[[Mapping[str, Any]], Recount]] = {
    ("laplace", 1): _laplace,
    ("discrete-laplace", 1): _discrete_laplace,
    ("gaussian", 1): _gaussian,
    ("discrete-gaussian", 1): _discrete_gaussian,
    ("pure", 1): _only_pure,
    ("randomized-response", 1): _recount_response,
    ("bounded-range", 1): _recount_bounded_range,
    ("approx", 1): _approx,
    ("with-failure", 1): _with_failure,
    ("composed", 1): _recount_composed,
    ("repeated", 1): _recount_repeated,
    ("poisson-sampled", 1): _poisson,
    ("fixed-size-sampled", 1): _recount_fixed_size,
    ("group-of-two", 1): _group_of_two,
    ("shuffled", 1): _recount_shuffled,
}
