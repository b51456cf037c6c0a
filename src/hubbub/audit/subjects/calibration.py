"""Calibrations, amplifications, accountants and shares as one subject: each is held against exact masses.

What comes back for a target is a mechanism, a scale or a loss. The law that it stands for is summed, and the δ at the
target's ε is compared with the target's δ: on integers, above ε = 1, in several coordinates, and over all the parts
that one budget was divided among.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hubbub import noise
from hubbub.audit.chance import Chance
from hubbub.audit.outputs import Outputs
from hubbub.audit.subject import Claim, Pair
from hubbub.audit.subjects import laws
from hubbub.audit.subjects.filters import forget
from hubbub.audit.subjects.gate.town import town
from hubbub.audit.subjects.laws import TwoLaws
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.privacy import accountant, amplify, calibrate
from hubbub.privacy.filter import Budget
from hubbub.privacy.loss import Approx
from hubbub.privacy.sensitivity import Neighbors, Norm

_SLACK = 1e-9
_ANY = Neighbors.ADD_REMOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTarget:
    """A guarantee that is asked for, and the calibrator that it is asked of."""

    who: str
    epsilon: Fraction
    delta: Fraction
    many: int = 1
    """How far a value moves, in how many places, or into how many parts, as ``who`` takes it."""

    def __str__(self) -> str:
        return f"{self.who}: ε = {float(self.epsilon):g}, δ = {float(self.delta):g}, {self.many}"


def _shift(sigma: Fraction, by: int, places: int = 1) -> TwoLaws:
    one = laws.gaussian_laws(float(sigma), by)
    if places == 1:
        return one
    both = one = one.merge(2048)
    for _ in range(places - 1):
        both = both.then(one)
    return both


def _one_integer(target: CalibrationTarget) -> TwoLaws:
    sigma = calibrate.gaussian_sigma(epsilon=target.epsilon, delta=target.delta, sensitivity=target.many)
    return _shift(sigma, target.many)


def _gaussian(target: CalibrationTarget) -> TwoLaws:
    made = Gaussian.at(epsilon=target.epsilon, delta=target.delta, sensitivity=target.many)
    return _shift(made.sigma, target.many)


def _vector(target: CalibrationTarget) -> TwoLaws:
    sigma = calibrate.gaussian_sigma_vector(
        epsilon=target.epsilon, delta=target.delta, sensitivity_squared=target.many, coordinates=target.many
    )
    return _shift(sigma, 1, target.many)


def _by_rho(target: CalibrationTarget) -> TwoLaws:
    rho = calibrate.rho_of(epsilon=target.epsilon, delta=target.delta)
    return _shift(calibrate.gaussian_sigma_zcdp(rho=rho, sensitivity_squared=target.many), 1, target.many)


def _laplace(target: CalibrationTarget) -> TwoLaws:
    scale = calibrate.laplace_scale(epsilon=target.epsilon, sensitivity=target.many)
    return laws.laplace(scale, target.many).laws


def _plan_laws(target: CalibrationTarget) -> TwoLaws:
    goal = Approx(epsilon=target.epsilon, delta=target.delta)
    scale = calibrate.least(
        lambda one: [laws.laplace(one).event] * target.many, target=goal, method="zcdp", bits=12, start=target.many
    )
    return laws.repeat_step(laws.laplace(scale), target.many).laws


def _poisson(target: CalibrationTarget) -> tuple[TwoLaws, float, float]:
    rate = Fraction(1, target.many + 1)
    told = amplify.poisson(epsilon=target.epsilon, delta=target.delta, rate=rate, neighbors=_ANY)
    step = laws.failing(laws.response(target.epsilon), target.delta)
    return laws.sample_step(step, rate).laws, float(told.epsilon), float(told.delta)


def _shuffle_laws(target: CalibrationTarget) -> tuple[TwoLaws, float, float]:
    reports = 20 * target.many
    told = amplify.shuffle(epsilon=target.epsilon, delta=target.delta, reports=reports, neighbors=Neighbors.LOCAL)
    return laws.shuffle_step(target.epsilon, reports, target.delta).laws, float(told.epsilon), float(told.delta)


def _account(method: accountant.Method) -> Callable[[CalibrationTarget], tuple[TwoLaws, float, float]]:
    """The accountant's own δ at ε for a fixed plan, which must not be below the real one."""

    def find(target: CalibrationTarget) -> tuple[TwoLaws, float, float]:
        each = target.epsilon / target.many
        steps = [laws.response(each), laws.laplace(2 / each, 2)] * target.many
        steps += [] if method == "pure" else [laws.gaussian(4 * target.many / target.epsilon)]
        both = TwoLaws.of([1], [1])
        for step in steps:
            both = both.then(step.laws)
        at = target.epsilon * 2 if method == "pure" else target.epsilon
        told = accountant.delta_of([step.event for step in steps], epsilon=at, method=method)
        return both, float(at), told

    return find


_PARTS = ("count(*) AS n", "sum(cost) AS s", "sum(other) AS o", "avg(cost) AS a")


def _divide(target: CalibrationTarget) -> TwoLaws:
    """All that one question measures, at what it was planned for: the worst unit is in every part."""
    text = f"SELECT ward, {', '.join(_PARTS[: target.many])} FROM stays GROUP BY ward"
    with town(budget=Budget(epsilon=Fraction(100), delta=Fraction(1, 2))) as held:
        planned = held.database().plan(text, epsilon=target.epsilon, delta=target.delta)
    both = TwoLaws.of([1], [1])
    for measurement in planned.measurements:
        mechanism, moved = measurement.mechanism, measurement.sensitivity
        if isinstance(mechanism, Geometric):
            step = laws.laplace(mechanism.scale, math.ceil(moved.in_norm(Norm.L1) or 0)).laws
        elif isinstance(mechanism, Gaussian):
            step = _shift(mechanism.sigma, math.ceil(moved.linf or 0), moved.l0 or 1)
        else:
            raise TypeError(type(mechanism).__name__)
        both = both.then(step.merge(512))
    return both


_WHO: dict[str, Callable[[CalibrationTarget], TwoLaws | tuple[TwoLaws, float, float]]] = {
    "σ for one integer": _one_integer,
    "Gaussian.at": _gaussian,
    "σ for a vector": _vector,
    "σ by zCDP": _by_rho,
    "a question's parts": _divide,
    "Laplace scale": _laplace,
    "the least scale for a plan": _plan_laws,
    "a Poisson sample": _poisson,
    "a shuffle": _shuffle_laws,
    "the accountant, zcdp": _account("zcdp"),
    "the accountant, rdp": _account("rdp"),
    "the accountant, pure": _account("pure"),
    "the accountant, pld": _account("pld"),
}
_PURE = ("Laplace scale", "the accountant, pure")
_SIZES = ((Fraction(3), Fraction(1, 100)), (Fraction(1, 2), Fraction(1, 10**6)), (Fraction(12), Fraction(1, 10)))
"""Formulas for the continuous Gaussian are wrong on integers, classic ones where ε is large."""


@dataclass(frozen=True, slots=True)
class CalibrationSubject:
    """Everything that turns (ε, δ) into noise, or noise into (ε, δ)."""

    name: str = "calibration"

    @property
    def claim(self) -> Claim:
        return replace(Claim.pure(1.0), words="what was made for (ε, δ) has it, to the last digit and on integers")

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        forget()
        for place, who in enumerate(_WHO):
            for epsilon, delta in _SIZES[: 3 if place < 4 else 1]:
                yield _pair(CalibrationTarget(who=who, epsilon=epsilon, delta=_fit(who, delta), many=2))
        while True:
            who = chance.choice(list(_WHO)[:8])
            epsilon, delta = Fraction(chance.between(1, 100), 8), Fraction(1, 10 ** chance.between(1, 7))
            yield _pair(CalibrationTarget(who=who, epsilon=epsilon, delta=_fit(who, delta), many=chance.between(1, 4)))

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        return None

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        target: CalibrationTarget = pair.x
        if target.many > 1:
            yield _pair(replace(target, many=1))

    def faults(self, pair: Pair) -> list[str]:
        target: CalibrationTarget = pair.x
        found = _WHO[target.who](target)
        both, epsilon, delta = (
            found if isinstance(found, tuple) else (found, float(target.epsilon), float(target.delta))
        )
        real = both.delta(epsilon)
        if real <= delta * (1 + _SLACK) + 1e-13:
            return []
        return [f"At ε = {epsilon:.6g} the δ is really {real:.6g}, and {delta:.6g} was claimed."]

    def answers(self, value: Any, *, times: int) -> Outputs:
        """A count of 0 or of 1, with noise that was calibrated for ε = 1."""
        scale = calibrate.laplace_scale(epsilon=1)
        return noise.discrete_laplace(scale=scale, size=times) + (0 if value is None else 1)

    def show_pair(self, pair: Pair) -> str:
        return f"asked of {pair.x}"


def _fit(who: str, delta: Fraction) -> Fraction:
    return Fraction(0) if who in _PURE else delta


def _pair(target: CalibrationTarget) -> Pair:
    return Pair(x=target, y=None, about=str(target))
