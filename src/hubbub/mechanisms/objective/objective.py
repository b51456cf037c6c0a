"""Objective perturbation: minimise a convex loss with a noisy linear term, and hide what floats did on the way."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.objective.convex import Examples, MarginLoss, gradient, log_determinants, minimum
from hubbub.mechanisms.objective.tilt import Tilt, bend_rounded_up, ridge_for
from hubbub.parameters import Real, positive, probability, whole
from hubbub.privacy.events.event import ApproxEvent, DiscreteGaussianEvent, Event, PureEvent, WithFailure
from hubbub.privacy.rounding import short_up
from hubbub.privacy.sensitivity import Neighbors, Norm

WITHIN = 2.0**-20
"""The gradient's norm at what is taken for a minimum."""
FINE = 40
"""The noise is drawn in steps of its scale over 2^40."""
_SEEN = Fraction(1, 1 << 900)
"""What lies beyond 64 standard deviations, in any coordinate."""
_COVER = Fraction(1, 64)
"""The share of ε for the noise that covers the distance from the true minimum."""
_BEND, _BEND_RHO = 0.1, 1 / 6
"""The share of ε, or of √2ρ, for the Hessian: a ridge below that condition is raised to it."""
_MOST_BEND = 0.25
_CHUNK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbation:
    """The minimum of Σ w·ℓ(y·x·θ) + ridge/2·‖θ‖² + b·θ, for random b: one column for each column of signs.

    The value is ``Examples``. A unit's rows weigh at most ``rows`` together; ``single`` says that it has one row at
    most. With ``gaussian`` b is Gaussian of σ = ``scale``; otherwise Laplace of that scale in every coordinate, and the
    claim is pure. ``at`` calibrates. Answers are multiples of ``step``; ``error(beta)`` bounds how far noise alone
    moves x·θ, for any x of norm 1, beside the ridge.

    Privacy:
        Claim: Pure(ε) with Laplace noise; with Gaussian noise (ε, δ), or Zcdp(ρ) where no ``epsilon`` is stated, beside
            a failure mass of 2^-900.
        Proof: 1. Let b be a real vector with the density that is constant on cells of the fine grid and has the masses
            of the discrete law. By its side the law of the exact minimum θ*(b) costs what ``tilt`` proves for real
            noise (Laplace: e₀ + ‖v‖₁/scale, since ln of its density changes by no more; ‖v‖₁ <= √(dK)·‖v‖₂), but for
            the ratio of the two densities: with steps of scale/2^40, and up to 64σ (the failure mass is beyond), their
            logarithms differ by at most 33·2^-40 a coordinate, and b ↦ θ* is one to one, so 2^-33 for each coordinate
            is added to ε, once for either neighbour.
            2. What is released is computed from b rounded to the grid, which θ* and the rows determine. The objective
            is ridge-strongly convex, so what has a certified gradient of norm at most γ for the rounded b is within
            r = (γ + √(dK)·fine/2)/ridge of θ*. Given θ*, the values on two neighbours are thus within 2r of each
            other, and in whole steps of a second grid within 2r·√(dK)/grid + dK in L1: two-sided geometric noise of
            that sensitivity over its share of ε covers them. Losses add (adaptive composition, θ* first).
            3. A gradient's norm is at most rows·√K since slopes are within [−1, 0] and rows have norm at most 1; the
            Hessian's trace at most rows·K·curvature, its rank K for a single row and dK otherwise. The Hessian of the
            hinge's round form jumps on a null set, which changes no density.
        Needs: rows of norm at most 1 with their intercept, weights as stated, the certificate of ``convex.minimum``,
            exact samplers.
        Ref: SOUNDNESS 31; Kifer, Smith, Thakurta 2012; Iyengar, Near, Song, Thakkar, Thakurta, Wang 2019 (approximate
            minima); Redberg, Koskela, Wang 2023.
    """

    loss: MarginLoss
    width: int
    columns: int = 1
    rows: int = 1
    single: bool = True
    ridge: Fraction
    scale: Fraction
    gaussian: bool = False
    epsilon: Fraction | None = None
    """Where a Gaussian claim is stated at an ε; None: in zCDP."""
    cover: Fraction
    """The ε of the noise that covers the distance from the true minimum."""
    step: Fraction = Fraction(1, 1 << 20)
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    needs: Needs = field(init=False, repr=False, compare=False)
    event: Event = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("width", self.width, least=1)
        whole("columns", self.columns, least=1)
        rows = whole("rows", self.rows, least=1)
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise ParameterError("neighbors", "units that are added or removed", self.neighbors)
        # Floats from here on: σ and the ridge are floats exactly, so that draws and proofs speak of the same numbers.
        settle(
            self,
            ridge=Fraction(float(positive("ridge", self.ridge))),
            scale=Fraction(float(positive("scale", self.scale))),
            cover=positive("cover", self.cover),
            step=positive("step", self.step),
        )
        needs = Needs(norm=Norm.ROWS, sensitivity=Fraction(rows), neighbors=self.neighbors)
        settle(self, needs=needs, event=self._event())

    @classmethod
    def at(
        cls, *, loss: MarginLoss, width: int, columns: int = 1, rows: int = 1, single: bool = True,
        ridge: Real | None = None, epsilon: Real | None = None, delta: Real = 0, rho: Real | None = None,
        step: Real = Fraction(1, 1 << 20),
    ) -> "ObjectivePerturbation":  # fmt: skip
        """The least noise for ε (pure), (ε, δ) or ρ. A ridge that is too small for that is raised; None: chosen.

        The chosen one is half the noise's scale, so that noise alone moves no decision by more than about two, and at
        least 1 over the number of coefficients, so that there is one where there is hardly any noise.
        """
        if (epsilon is None) == (rho is None):
            raise ParameterError("epsilon", "given, or else rho", epsilon)
        shape: dict[str, Any] = {
            "loss": MarginLoss(loss), "width": width, "columns": columns, "rows": rows, "single": single,
            "step": Fraction(positive("step", step)),
        }  # fmt: skip
        if epsilon is None:
            assert rho is not None
            return cls._at_rho(positive("rho", rho), shape, ridge)
        price = positive("epsilon", epsilon)
        slack = probability("delta", delta) if delta else Fraction(0)
        cover, main = price * _COVER, float(price * (1 - _COVER)) * (1 - 1e-8) - _fine(width * columns)
        if main <= 0:
            raise ParameterError("epsilon", "larger, for so many coefficients", price)
        floor = _ridge(shape, min(main * _BEND, _MOST_BEND))

        def make(kept: float, bend: float) -> "ObjectivePerturbation":
            if slack:
                tail = float(slack) * (1 - 1e-9) - float(_SEEN)
                pull = _greatest(lambda a: Tilt(bend=bend, pull=a, ways=_ways(shape)).delta_rounded_up(main) <= tail)
                scale = _norm(shape) / pull
            else:
                scale = _norm(shape) * math.sqrt(width * columns) / (main - bend)
            return cls(
                **shape, ridge=Fraction(kept), scale=Fraction(scale * (1 + 1e-9)), cover=cover, gaussian=bool(slack),
                epsilon=price if slack else None,
            )  # fmt: skip

        guess = make(floor, min(main * _BEND, _MOST_BEND))
        kept = max(floor, _choose_share(guess) if ridge is None else float(positive("ridge", ridge)))
        return make(kept, _bend(shape, kept))

    @classmethod
    def _at_rho(cls, rho: Fraction, shape: dict[str, Any], ridge: Real | None) -> "ObjectivePerturbation":
        if _ways(shape) is not None:
            raise ParameterError("rho", "None, where a unit has several rows or there are several columns", rho)
        cover = Fraction(math.sqrt(2 * float(rho) / 256) * (1 - 1e-9))
        main = float(rho * Fraction(255, 256)) * (1 - 1e-8)
        floor = _ridge(shape, min(math.sqrt(2 * main) * _BEND_RHO, _MOST_BEND))

        def make(kept: float) -> "ObjectivePerturbation":
            bend = _bend(shape, kept) + _fine(shape["width"])
            pull = _greatest(lambda a: Tilt(bend=bend, pull=a).rho_rounded_up() <= main)
            scale = _norm(shape) / pull * (1 + 1e-9)
            return cls(**shape, ridge=Fraction(kept), scale=Fraction(scale), cover=cover, gaussian=True)

        guess = make(floor)
        return make(max(floor, _choose_share(guess) if ridge is None else float(positive("ridge", ridge))))

    def _event(self) -> Event:
        shape = {name: getattr(self, name) for name in ("loss", "width", "columns", "rows", "single")}
        bend, fine = _bend(shape, float(self.ridge)), _fine(self.width * self.columns)
        pull = _norm(shape) / float(self.scale) * (1 + 1e-9)
        if not self.gaussian:
            loss = bend + fine + pull * math.sqrt(self.width * self.columns)
            return PureEvent(bound=short_up(Fraction(loss * (1 + 1e-9)) + self.cover), neighbors=self.neighbors)
        if self.epsilon is None:
            rho = Fraction(Tilt(bend=bend + fine, pull=pull, ways=_ways(shape)).rho_rounded_up()) + self.cover**2 / 2
            sigma = Fraction(1 / math.sqrt(2 * float(rho)) * (1 - 1e-9))
            event = DiscreteGaussianEvent(sigma=sigma, dimension=None, neighbors=self.neighbors)
            return WithFailure(event=event, failure=_SEEN)
        left = float(self.epsilon - self.cover) - fine
        delta = Fraction(Tilt(bend=bend, pull=pull, ways=_ways(shape)).delta_rounded_up(left)) + _SEEN
        return ApproxEvent(bound=self.epsilon, failure=min(delta, Fraction(1)), neighbors=self.neighbors)

    # Drawing

    @property
    def _cover(self) -> tuple[float, Fraction]:
        """The second grid, and the scale of the geometric noise in steps of it."""
        many = self.width * self.columns
        radius = (WITHIN + math.sqrt(many) * float(self.scale) * 2.0**-FINE) / float(self.ridge)
        grid = 2.0 ** math.floor(math.log2(2 * radius / math.sqrt(many)))
        moved = math.ceil(2 * radius * math.sqrt(many) / grid * (1 + 1e-9)) + many
        return grid, Fraction(moved) / self.cover

    def draw(self, value: Examples) -> Any:
        return self.repeat(value, times=1)[0]

    def repeat(self, value: Examples, *, times: int) -> Sequence[Any] | Array:
        if value.features.shape[1] != self.width or value.signs.shape[1] != self.columns:
            raise ParameterError("examples", f"{self.width} features and {self.columns} columns of signs", "others")
        parts = [self._draw_minima(value, min(_CHUNK, times - start)) for start in range(0, times, _CHUNK)]
        drawn = np.concatenate(parts)
        return drawn[:, 0, 0] if self.width == self.columns == 1 else drawn

    def _draw_minima(self, value: Examples, times: int) -> Array:
        many = self.width * self.columns
        law = noise.discrete_gaussian(sigma=1 << FINE, size=times * many) if self.gaussian else (
            noise.discrete_laplace(scale=1 << FINE, size=times * many))  # fmt: skip
        # Below 2^53 steps of a float: exact.
        linear = law.astype(np.float64).reshape(times, self.columns, self.width) * (float(self.scale) * 2.0**-FINE)
        flat = linear.reshape(times * self.columns, self.width).T
        ridge = float(self.ridge)
        found = minimum(self.loss, value, ridge=ridge, linear=flat, within=WITHIN)
        grid, scale = self._cover
        covering = noise.discrete_laplace(scale=scale, size=times * many).reshape(flat.shape)
        steps = np.rint(found / grid) + covering
        step = float(self.step)
        rounded: Array = np.rint(steps * grid / step) * step + 0.0  # no −0
        return rounded.T.reshape(times, self.columns, self.width).swapaxes(1, 2)

    def log_mass(self, value: Examples, output: Any) -> float:
        """Of the exact minimum: exactly in one dimension, by its density times a cell in several.

        Rounding and the covering noise are far below a step, and left out.
        """
        step, ridge = float(self.step), float(self.ridge)
        if self.width == self.columns == 1:
            ends = [np.array([[float(output) + side * step / 2]]) for side in (-1, 1)]
            high, low = (-gradient(self.loss, value, ridge=ridge, theta=end).item() for end in ends)
            return self._log_between(low / float(self.scale), high / float(self.scale))
        return float(self.log_masses(value, np.asarray(output)[None])[0])

    def log_masses(self, value: Examples, outputs: Array) -> Array:
        """The same for many outputs at once, by densities."""
        theta = np.asarray(outputs, dtype=np.float64).reshape(-1, self.width, self.columns)
        flat = theta.swapaxes(1, 2).reshape(-1, self.width).T
        ridge, scale, many = float(self.ridge), float(self.scale), self.width * self.columns
        tilted = gradient(self.loss, value, ridge=ridge, theta=flat) / scale
        if self.gaussian:
            each = -(tilted**2).sum(axis=0) / 2 - self.width * math.log(2 * math.pi) / 2
        else:
            each = -np.abs(tilted).sum(axis=0) - self.width * math.log(2)
        each = each + log_determinants(self.loss, value, ridge=ridge, theta=flat)
        total: Array = each.reshape(-1, self.columns).sum(axis=1)
        return total + many * math.log(float(self.step) / scale)

    def _log_between(self, low: float, high: float) -> float:
        from scipy.special import log_ndtr  # late: it takes longer to load than all of ours

        if low > -high:  # the right tail is as far as the left one, and floats are finer there
            low, high = -high, -low
        if self.gaussian:
            a, b = float(log_ndtr(low)), float(log_ndtr(high))
            return b + math.log1p(-math.exp(a - b)) if a < b else -math.inf
        if high <= 0:
            return math.log(0.5) + high + math.log(-math.expm1(low - high))
        return math.log(1 - 0.5 * math.exp(low) - 0.5 * math.exp(-high))

    def error(self, *, beta: float) -> float:
        """Bound the distance by which noise alone moves x·θ for ‖x‖ = 1, without any help of the rows."""
        tail = float(probability("beta", beta))
        if self.gaussian:
            reach = math.sqrt(2 * math.log(2 / tail))
        else:
            # A Laplace vector along any direction of norm 1: ln E e^(t·b) <= 2t² for t <= 1/√2.
            reach = max(math.sqrt(8 * math.log(2 / tail)), 2 * math.sqrt(2) * math.log(2 / tail))
        return reach * float(self.scale) / float(self.ridge)


def _fine(many: int) -> float:
    return many * 2.0**-33


def _choose_share(guess: ObjectivePerturbation) -> float:
    return max(float(guess.scale) / 2, 1 / guess.width)


def _norm(shape: dict[str, Any]) -> float:
    """Of one unit's gradient."""
    return float(shape["rows"]) * math.sqrt(shape["columns"]) * (1 + 1e-12)


def _ways(shape: dict[str, Any]) -> int | None:
    """Return the dimension of the space in which a unit's gradient lies, or None where it keeps its line and sign."""
    lone = shape["single"] and shape["rows"] == 1
    return None if lone and shape["columns"] == 1 else int(shape["columns"] * (1 if lone else shape["width"]))


def _bend(shape: dict[str, Any], ridge: float) -> float:
    return bend_rounded_up(trace=_trace(shape), rank=_ways(shape) or 1, ridge=ridge)


def _ridge(shape: dict[str, Any], bend: float) -> float:
    return ridge_for(bend=bend, trace=_trace(shape), rank=_ways(shape) or 1)


def _trace(shape: dict[str, Any]) -> float:
    return float(shape["rows"] * shape["columns"] * MarginLoss(shape["loss"]).curvature)


def _greatest(holds: Callable[[float], bool]) -> float:
    """The largest number (to one part in 10^9) for which a falling condition holds."""
    low, high = 0.0, 1.0
    while holds(high) and high < 1e9:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
        if high - low <= 1e-9 * high and low > 0:
            break
    if low <= 0:
        raise ParameterError("epsilon", "larger, for a claim with so little room", low)
    return low
