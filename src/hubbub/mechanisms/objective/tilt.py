"""The cost of a noisy linear term in a convex objective: the losses behind objective perturbation.

Two numbers say everything. ``bend`` is the most by which ln det of the Hessian can differ between neighbours; ``pull``
is the L2 norm of one unit's gradient in units of σ. ``ways`` is the dimension of the space in which the gradient of one
unit always lies, wherever the minimum is, and None where it also keeps its sign there.

Privacy:
    Claim: for minima of neighbouring objectives with noise N(0, σ²) on the linear term, δ(ε) <= ``delta_rounded_up``;
        without ``ways`` they are also ``rho_rounded_up``-zCDP.
    Proof: b ↦ minimum is one to one, with b = −∇(θ), so the density at θ is that of b times det of the Hessian.
        D' is D with one more unit, of gradient v(θ) and Hessian E(θ) ⪰ 0 of rank at most k and trace at most t. With A
        the Hessian of D, λ <= A: ln det(A + E) − ln det A = ln det(I + A^(-1/2)·E·A^(-1/2)) lies between 0 and
        k·ln(1 + t/kλ), by concavity of ln: that is ``bend``, e₀. The loss is at most e₀ + ⟨b, v⟩/σ² + ‖v‖²/2σ² at
        b ~ N(0, σ²) in both orders (in one of them with −v). v lies in a space of dimension ``ways`` that the unit
        alone fixes, so ⟨b, v⟩ <= ‖v‖·σ·χ, χ the norm of a standard normal vector of that dimension: the loss is at most
        e₀ + a²/2 + aχ, and δ(ε) <= E(1 − e^(ε − loss))₊ = ∫ e^(ε − z)·P(loss > z) dz over z > ε, which is summed
        from above.
        A single row and a falling loss have v = −s·y·x with 0 <= s <= 1. The loss is convex in s, so it is at most
        e₀ + max(0, aN + a²/2), N standard normal: δ(ε) is at most the Gaussian mechanism's at ε − e₀, for ε >= e₀.
        zCDP: for all laws, E_P(P/Q)^(α−1) = 1 + α(α−1)·∫ over ε >= 0 of e^((α−1)ε)·δ(ε) + e^(−αε)·δ'(ε), δ' that of the
        other order. Beyond e₀ both are at most G(ε − e₀), G the Gaussian's curve; below, at most G(0) + e^e₀·(e₀ − ε).
        With s = (α−1)e₀, κ = G(0)·e₀ + e^e₀·e₀²/2 and X = α(α−1)(a²/2 + 2κ) the integral gives at most 1 +
        e^s·(e^X − 1), whose logarithm is at most X·e^s (Bernoulli) and at most X + s. So D_α/α is at most the lesser of
        e^((α−1)e₀)·r and r + e₀/α, r = a²/2 + 2κ; one rises in α and the other falls, so at any α₀ the larger of
        the two bounds it for all α.
    Needs: floats that are right to one part in 10^9, which is added.
    Ref: Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012; Redberg, Koskela, Wang 2023 (with |N| where
        a falling loss allows N); Sason, Verdú 2016 for the integral.
"""

import math
from dataclasses import dataclass

import numpy as np

_MORE = 1 + 1e-9
_CELLS = 4096
_FAR = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilt:
    """A noisy linear term, by what it costs."""

    bend: float
    pull: float
    ways: int | None = None
    """None for a single row with a falling loss, whose gradient also keeps its sign."""

    def delta_rounded_up(self, epsilon: float) -> float:
        """δ at ε."""
        from scipy.special import gammaincc, log_ndtr, ndtr  # late: it takes longer to load than all of ours

        left, pull = epsilon - self.bend, self.pull
        if left < 0:
            return 1.0
        if self.ways is None:
            high = ndtr(pull / 2 - left / pull)
            low = math.exp(left + float(log_ndtr(-pull / 2 - left / pull)))
            # The difference of two nearly equal numbers: what floats may have lost of it is added.
            return min(1.0, float(high - low) * _MORE + float(high) * 1e-12)
        start = max(0.0, (left - pull * pull / 2) / pull)
        reach = np.linspace(start, max(start, math.sqrt(self.ways)) + _FAR, _CELLS)
        loss = self.bend + pull * pull / 2 + pull * reach
        falls = np.exp(epsilon - np.maximum(loss, epsilon))
        drops = falls - np.append(falls[1:], 0.0)
        return min(1.0, float((gammaincc(self.ways / 2, reach * reach / 2) * drops).sum()) * _MORE)

    def rho_rounded_up(self) -> float:
        """ρ of zCDP, for gradients that keep their sign."""
        from scipy.special import ndtr

        if self.ways is not None:
            raise ValueError("zCDP is proven for one row a unit and one column of signs")
        bend, pull = self.bend, self.pull
        still = float(2 * ndtr(pull / 2) - 1)
        base = pull * pull / 2 + 2 * (still * bend + math.exp(bend) * bend * bend / 2)
        orders = 1 + np.geomspace(1e-3, 1e6, 2000)
        with np.errstate(over="ignore"):
            return float(np.maximum(np.exp((orders - 1) * bend) * base, base + bend / orders).min()) * _MORE


def bend_rounded_up(*, trace: float, rank: int, ridge: float) -> float:
    """The most that ln det can move."""
    return rank * math.log1p(trace / (rank * ridge)) * _MORE


def ridge_for(*, bend: float, trace: float, rank: int) -> float:
    """The ridge at which ln det moves by no more than ``bend``."""
    return trace / (rank * math.expm1(bend / rank)) * _MORE * _MORE
