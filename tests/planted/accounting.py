"""Bugs in what turns budgets into noise and noise into charges."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from hubbub.errors import BudgetExceeded
from hubbub.privacy import amplify, calibrate, convert, shares
from hubbub.privacy import filter as filters
from hubbub.privacy.events import sampling
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import DELTA_UNIT, Charge, FamilyFilter, Spent
from hubbub.privacy.loss import Approx
from hubbub.query.plan import plan_terms
from tests.planted.plant import Caught, Planted, both, in_place, named
from tests.query import planted

# Filters

_ORDERS = 1 + np.geomspace(0.05, 200, 60)


@dataclass(frozen=True, slots=True)
class _Curve:
    """An event, or all of them so far, at every order."""

    at: tuple[float, ...] = (0.0,) * len(_ORDERS)
    failure: int = 0


def _curve_of(self: FamilyFilter, event: Event) -> _Curve:
    filters._same_relation(event, self.neighbors)
    return _Curve(tuple(event.rdp(_ORDERS)), math.ceil(event.failure / DELTA_UNIT))


def _while_some_order_fits(self: FamilyFilter, spent: Any, charge: _Curve, **words: str) -> _Curve:
    """Go on as long as some order, whichever is best by now, says that (ε, δ) is kept."""
    before = spent if isinstance(spent, _Curve) else _Curve()
    after = _Curve(tuple(a + b for a, b in zip(before.at, charge.at, strict=True)), before.failure + charge.failure)
    if after.failure > self.failure_cap or _epsilon(self, after) > float(self.epsilon):
        raise BudgetExceeded("No order fits any more. Ask for less.")
    return after


def _epsilon(self: FamilyFilter, spent: Any) -> float:
    slack = (math.log(self.delta) + np.log(_ORDERS)) / (_ORDERS - 1)
    total = np.array(spent.at) if isinstance(spent, _Curve) else np.zeros(len(_ORDERS))
    return float(np.min(total + np.log1p(-1 / _ORDERS) - slack))


def _odometer(self: FamilyFilter, spent: Any) -> Approx:
    return Approx(epsilon=Fraction(max(0.0, _epsilon(self, spent))), delta=self.delta)


_settled = FamilyFilter.__post_init__


def _whole_delta_twice(self: FamilyFilter) -> None:
    """All of δ for the conversion, and all of it again for failures."""
    _settled(self)
    rho = convert.rho_rounded_down(self.epsilon, self.delta)
    object.__setattr__(self, "loss_cap", math.floor(rho / filters.LOSS_UNIT))
    object.__setattr__(self, "failure_cap", math.floor(self.delta / DELTA_UNIT))


def _failures_forgotten(self: FamilyFilter, spent: Spent, charge: Charge) -> bool:
    return spent.loss + charge.loss <= self.loss_cap


def _no_epsilon_is_none(event: Event) -> Charge:
    honest = _honest_charge(event)
    return replace(honest, pure=honest.pure or 0)


_honest_charge = filters._family_charge


def _separate_pots(self: FamilyFilter, spent: Spent, charge: Charge, *, whose: str = "") -> Spent:
    if not self.fits(spent, charge):
        raise BudgetExceeded("No pot has so much left. Ask for less.")
    by_rho = spent.loss + charge.loss <= self.loss_cap
    return spent.plus(replace(charge, pure=0) if by_rho else replace(charge, loss=0))


# Calibration


def _analytic(*, epsilon: Any, delta: Any, sensitivity: int = 1) -> Fraction:
    """The σ of continuous Gaussian noise for (ε, δ), by its own exact curve."""
    low, high = 1e-3, 1e6

    def real(sigma: float) -> float:
        near, far = sensitivity / (2 * sigma) - float(epsilon) * sigma / sensitivity, -sensitivity / (2 * sigma)
        beyond = far - float(epsilon) * sigma / sensitivity
        return float(special.ndtr(near) - math.exp(float(epsilon) + special.log_ndtr(beyond)))

    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if real(middle) > float(delta) else (low, middle)
    return Fraction(high).limit_denominator(1 << 32)


def _classic(*, epsilon: Any, delta: Any, sensitivity: int = 1) -> Fraction:
    """√(2 ln(1.25/δ))/ε, which is proven below ε = 1 alone."""
    return Fraction(sensitivity * math.sqrt(2 * math.log(1.25 / float(delta))) / float(epsilon))


def _each_gets_all(honest: Any) -> Any:
    return lambda measured, **given: tuple(one for part in measured for one in honest([part], **given))


ACCOUNTING = (
    Planted(
        name="some-order Rényi filter",
        about="Go on while some Rényi order fits: the asker chooses the order by the answers.",
        subject=named("filter: family"),
        patch=both(
            in_place(FamilyFilter, "charge_of", _curve_of),
            in_place(FamilyFilter, "spend", _while_some_order_fits),
            in_place(FamilyFilter, "odometer", _odometer),
        ),
        caught=Caught.MASSES,
    ),
    Planted(
        name="no pure ε counted as 0",
        about="Gaussian noise has no pure ε, so it adds nothing to the sum of ε, which then admits any number of it.",
        subject=named("filter: family"),
        patch=in_place(filters, "_family_charge", _no_epsilon_is_none),
        caught=Caught.MASSES,
    ),
    Planted(
        name="separate pots",
        about="A charge that the sum of ε admits is not counted in ρ, nor the other way round: two budgets for one.",
        subject=named("filter: family"),
        patch=in_place(FamilyFilter, "spend", _separate_pots),
        caught=Caught.MASSES,
    ),
    Planted(
        name="replace-one charged twice",
        about="A replaced unit at twice the ρ of an added one, though distances square: it costs four times.",
        subject=named("filter: family, replace-one"),
        patch=in_place(sampling, "_group_rho", lambda event: None if event.rho is None else 2 * event.rho),
        caught=Caught.MASSES,
    ),
    Planted(
        name="replace-one charged as add/remove",
        about="Events about units that are added, let through by an account of units that are replaced.",
        subject=named("filter: pure, replace-one"),
        patch=in_place(filters, "_same_relation", lambda event, neighbors: None),
        caught=Caught.MASSES,
    ),
    Planted(
        name="charges rounded down",
        about="What is less than a unit is free, and there are many questions.",
        subject=named("filter: pure"),
        patch=in_place(filters, "_units_up", lambda value, unit: math.floor(value / unit)),
        caught=Caught.MASSES,
    ),
    Planted(
        name="half of each charge counted",
        about="The account counts half of what each event costs.",
        subject=named("filter: pure"),
        patch=planted.charged_by_half,
        caught=Caught.MASSES,
    ),
    Planted(
        name="failure masses forgotten",
        about="The chance that an answer shows too much is added up, and held against nothing.",
        subject=named("filter: family"),
        patch=in_place(FamilyFilter, "fits", _failures_forgotten),
        caught=Caught.MASSES,
    ),
    Planted(
        name="δ used twice",
        about="All of δ goes to the conversion of ρ, and all of it again to failures.",
        subject=named("filter: family"),
        patch=in_place(FamilyFilter, "__post_init__", _whole_delta_twice),
        caught=Caught.MASSES,
    ),
    Planted(
        name="a sample charged in proportion",
        about="A tenth of the units at a tenth of the price, which holds for small ε alone.",
        subject=named("calibration"),
        patch=in_place(amplify, "sampled_epsilon_rounded_up", lambda epsilon, rate: rate * epsilon),
        caught=Caught.MASSES,
    ),
    Planted(
        name="analytic Gaussian on integers",
        about="The exact formula of continuous noise, for noise on integers: the real δ is up to three times as large.",
        subject=named("calibration"),
        patch=in_place(calibrate, "gaussian_sigma", _analytic),
        caught=Caught.MASSES,
    ),
    Planted(
        name="classic Gaussian at ε > 1",
        about="The textbook's σ, outside the range of ε that its proof is for.",
        subject=named("calibration"),
        patch=in_place(calibrate, "gaussian_sigma", _classic),
        caught=Caught.MASSES,
    ),
    Planted(
        name="budget split wrong",
        about="Every number of a question gets the whole ε that all of them were to share.",
        subject=named("calibration"),
        patch=both(
            in_place(plan_terms, "calibrate_alike", _each_gets_all(shares.calibrate_alike)),
            in_place(plan_terms, "calibrate_gaussian", _each_gets_all(shares.calibrate_gaussian)),
        ),
        caught=Caught.MASSES,
    ),
)
