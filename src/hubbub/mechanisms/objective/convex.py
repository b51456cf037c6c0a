"""Convex losses of margins, and the certified minimum of their sum with a ridge and a linear term.

A problem is min over θ of Σ w·ℓ(y·x·θ) + λ/2·‖θ‖² + b·θ. Many are solved side by side: one for each column of signs
and linear terms. The answer comes with a proof of how near to the true minimum it is, whatever floats did on the way.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import EngineError, ParameterError
from hubbub.mechanisms.base import Array

ROUNDS = 8
"""Newton steps that are always made: time then says little about the rows."""
_MORE = 500
"""Steps after those, for as long as there is no certificate: none were ever needed in tests."""
_HALVINGS = 40
_FRESH = 4
_SMALL = 256
"""Up to so many rows, Hessians of many problems are made at once."""
_BLOCK = 4096
_WIDE = np.longdouble
_UNIT = float(np.finfo(np.longdouble).eps)


class MarginLoss(StrEnum):
    """Losses of a margin m = y·x·θ, falling in m, with a slope between −1 and 0."""

    LOGISTIC = "logistic"
    HINGE = "hinge"
    """max(0, 1 − m), rounded off between m = 1/2 and m = 3/2 (Huber)."""

    @property
    def curvature(self) -> Fraction:
        """The largest second derivative."""
        return Fraction(1, 4) if self is MarginLoss.LOGISTIC else Fraction(1)

    def cost(self, margin: Array) -> Array:
        if self is MarginLoss.LOGISTIC:
            return np.asarray(np.logaddexp(0.0, -margin))
        gap = 1.5 - margin
        inside = np.clip(gap, 0.0, 1.0)
        return np.asarray(inside * (gap - inside / 2))

    def slope(self, margin: Array) -> Array:
        if self is MarginLoss.LOGISTIC:
            size = np.exp(-np.abs(margin))
            return -np.where(margin >= 0, size, 1.0) / (1.0 + size)
        return -np.clip(1.5 - margin, 0.0, 1.0)

    def bend(self, margin: Array) -> Array:
        """The second derivative (of the hinge, one from the right where it has two)."""
        if self is MarginLoss.LOGISTIC:
            size = np.exp(-np.abs(margin))
            return np.asarray(size / (1.0 + size) ** 2)
        return ((margin >= 0.5) & (margin < 1.5)).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Examples:
    """Rows with L2 norm at most 1, what side each is on, and what it counts for."""

    features: Array
    """Floats in two dimensions, each row of norm at most 1: whole steps of a grid keep that exactly."""
    signs: Array
    """+1 or −1: one column for each problem."""
    weights: Array
    """What a row counts for: those of one unit sum to at most what the mechanism was calibrated for."""

    def __post_init__(self) -> None:
        rows = len(self.features)
        if self.features.ndim != 2 or self.signs.ndim != 2 or len(self.signs) != rows or self.weights.shape != (rows,):
            raise ParameterError("examples", "features and signs in two dimensions, and a weight for each row", self)

    def apart(self, other: "Examples") -> Fraction:
        """The weight of the rows that only one of the two has: how far they are from each other, for replay.

        A row that is too long counts for more, and so does one whose signs do.
        """
        held: dict[bytes, list[float]] = {}
        for side, way in ((self, 1), (other, -1)):
            for row, sign, weight in zip(side.features, side.signs, side.weights.tolist(), strict=True):
                much = weight * max(1.0, float(np.abs(sign).max()) * float(row @ row) ** 0.5 - 1e-12)
                held.setdefault(row.tobytes() + sign.tobytes() + str(weight).encode(), [0.0, much])[0] += way
        return sum((Fraction(abs(many) * weight) for many, weight in held.values()), Fraction(0))


def minimum(loss: MarginLoss, rows: Examples, *, ridge: float, linear: Array, within: float) -> Array:
    """One column for each column of ``linear``: together, their gradient has a norm of at most ``within``, proven.

    Signs are repeated where there are more columns than signs: the same rows with other linear terms.
    """
    signs, weights = _repeat(rows.signs, linear.shape[1]), rows.weights[:, None]
    theta, margins = np.zeros_like(linear), np.zeros((len(weights), linear.shape[1]))
    now = _objective(weights * loss.cost(margins), ridge, linear, theta)
    for made in range(ROUNDS + _MORE):
        if made >= ROUNDS and bool(np.all(bound_gradient(loss, rows, ridge, linear, theta) <= within)):
            return theta
        slope = rows.features.T @ (weights * signs * loss.slope(margins)) + ridge * theta + linear
        move = _solve(rows.features, weights * loss.bend(margins), ridge, slope)
        gain, moved, size = (slope * move).sum(axis=0), signs * (rows.features @ move), np.ones(linear.shape[1])
        for _ in range(_HALVINGS):  # where a step does not lower the objective, half of it
            after = _objective(weights * loss.cost(margins - size * moved), ridge, linear, theta - size * move)
            worse = after > now - 1e-4 * size * gain + 1e-12 * np.abs(now)
            if not worse.any():
                break
            size = np.where(worse, size / 2, size)
        theta, margins, now = theta - size * move, margins - size * moved, after
        if made % _FRESH == _FRESH - 1:  # margins as they are, without the rounding of all steps
            margins = signs * (rows.features @ theta)
    raise EngineError  # more rows than the floats of this machine can add up: some 10^8 where they have 64 bits


def bound_gradient(loss: MarginLoss, rows: Examples, ridge: float, linear: Array, theta: Array) -> Array:
    """Upper bounds on the gradient's norm, one for each copy of the problems, with all rounding added.

    Sums run over blocks of rows in extended precision u. A margin is off by at most (d + 2)·u·‖θ‖, and no slope changes
    faster than 1; of n terms of norm 1, each with few roundings, the sum is off by at most (block + blocks + 8)·u·n in
    every coordinate. Twice that is taken.
    """
    (count, width), columns = rows.features.shape, theta.shape[1]
    signs, wide = _repeat(rows.signs, columns), theta.astype(_WIDE)
    total = _WIDE(ridge) * wide + linear.astype(_WIDE)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        features, sides = rows.features[part].astype(_WIDE), signs[part].astype(_WIDE)
        slopes = loss.slope(sides * (features @ wide)) * sides * rows.weights[part, None]
        total += features.T @ slopes
    size = np.linalg.norm(theta, axis=0) + np.linalg.norm(linear, axis=0) / max(ridge, 1e-300)
    blocks = count / _BLOCK + 1
    off = count * ((width + 2) * size + _BLOCK + blocks + 8) * _UNIT * width**0.5 + 8 * _UNIT * ridge * size
    each = np.sqrt((total.astype(np.float64) ** 2).sum(axis=0)) * (1 + 1e-12) + 2 * off
    copies = each.reshape(-1, rows.signs.shape[1])
    return np.asarray(np.sqrt((copies**2).sum(axis=1)) * (1 + 1e-12))


def _objective(costs: Array, ridge: float, linear: Array, theta: Array) -> Array:
    sums: Array = costs.sum(axis=0)
    return np.asarray(sums + ridge / 2 * (theta * theta).sum(axis=0) + (linear * theta).sum(axis=0))


def _solve(features: Array, bends: Array, ridge: float, slope: Array) -> Array:
    """(H + λ)⁻¹·slope, a column each."""
    (count, width), columns = features.shape, slope.shape[1]
    if width == 1:
        return np.asarray(slope / ((features * features).T @ bends + ridge))
    if count <= _SMALL:
        outer = (features[:, :, None] * features[:, None, :]).reshape(count, width * width)
        hessians = (bends.T @ outer).reshape(columns, width, width)
    else:
        hessians, roots = np.zeros((columns, width, width)), np.sqrt(bends)
        for start in range(0, count, _BLOCK):  # what is multiplied stays in the processor's cache
            part = slice(start, start + _BLOCK)
            for place in range(columns):
                bent = features[part] * roots[part, [place]]
                hessians[place] += bent.T @ bent
    solved: Array = np.linalg.solve(hessians + ridge * np.eye(width), slope.T[:, :, None])[:, :, 0].T
    return solved


def _repeat(signs: Array, columns: int) -> Array:
    return signs if signs.shape[1] == columns else np.tile(signs, columns // signs.shape[1])


def log_determinants(loss: MarginLoss, rows: Examples, *, ridge: float, theta: Array) -> Array:
    """ln det of the Hessian with its ridge, for each column."""
    bends = rows.weights[:, None] * loss.bend(_repeat(rows.signs, theta.shape[1]) * (rows.features @ theta))
    hessians = np.stack([(rows.features * bend[:, None]).T @ rows.features for bend in bends.T])
    return np.asarray(np.linalg.slogdet(hessians + ridge * np.eye(len(theta)))[1])


def gradient(loss: MarginLoss, rows: Examples, *, ridge: float, theta: Array) -> Array:
    """Of the sum with its ridge, without a linear term, for each column."""
    signs = _repeat(rows.signs, theta.shape[1])
    slopes: Any = rows.weights[:, None] * signs * loss.slope(signs * (rows.features @ theta))
    return np.asarray(rows.features.T @ slopes + ridge * theta)
