"""One round of k-means that is paid for: sums of how far rows lie from their nearest centre, cut off where few are.

Privacy:
    Claim: a round costs its share, and a unit moves its sums by at most ``most`` times the norms of ``reach``.
    Proof: a row adds one vector, in the place of its nearest centre, whose whole coordinates are clipped to ± reach; so
        its L1 norm is at most Σ reach and its L2 norm at most √(Σ reach²). Times a weight and cut towards zero it is no
        longer; a unit's weights sum to at most ``most``. Centres and reach follow from earlier releases.
    Needs: ``nearest`` and ``Box``, which decide for each row by itself.
    Ref: Blum, Dwork, McSherry, Nissim 2005 (sums of rows); Su, Cao, Li, Bertino, Jin 2016 (sums and counts jointly).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hubbub.learn.asked import Asked
from hubbub.learn.blocks import NONE
from hubbub.learn.cells import Array
from hubbub.learn.kmeans_asked import boxed, summed_asked
from hubbub.learn.kmeans_box import Box, Shadow, nearest_each
from hubbub.learn.kmeans_grid import QUIET, Buyer, Found
from hubbub.learn.steps import BITS, Steps
from hubbub.learn.tuition import reached

FAR = 2.5
"""Rows count as if they were no further from their centre than so many deviations."""
RATIO = 0.225
"""The mean size of a centre's coordinates beside those of its ends, by which counts get their part of the price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round measures: coordinates around ``origin`` cut off at ``far``, and a count where ``counts`` is set."""

    origin: Array
    """One point for all clusters, or one for each."""
    far: Array
    counts: bool

    def ends(self, *, pure: bool) -> Array:
        """How many whole steps each coordinate may have: where the noise of all of them together is least.

        Noise of scale Σ b (or √Σ b²) on coordinates b·v/far is least in the sum of squares for b ∝ far^(2/3) (√far).
        """
        share = self.far ** (2 / 3) if pure else np.sqrt(self.far)
        if self.counts:
            width = len(self.far)
            share = np.append(share, (4 * RATIO**2 / width**2) ** (1 / 3) * share.sum())
        return np.asarray(np.maximum(np.floor(share / share.max() * (1 << BITS)), 1.0))


def improved(
    found: Found, points: Box, *, buyer: Buyer, share: Fraction, measured: Round, seen: Box | Shadow, label: str
) -> tuple[Found, float]:
    """Centres moved by what was measured, as far as it stands out from its noise; and the mean squared error left.

    ``seen`` is where rows look for their nearest centre: the same points, or their shadow.
    """
    tuition, crowd = buyer.tuition, buyer.crowd
    ends = measured.ends(pure=tuition.rho is None)
    steps = Steps(
        parts=NONE, grid=Fraction(1), l1=int(ends.sum()), l2_squared=sum(int(end) ** 2 for end in ends),
        linf=int(ends.max()), l0=len(ends),
    )  # fmt: skip
    reach = reached(steps, crowd)
    mechanism = tuition.additive(tuition.spend(share), reach)
    deviation = max(mechanism.standard_deviation, QUIET)

    def exact() -> Array:
        return summed(found.centres, points, buyer=buyer, measured=measured, ends=ends, seen=seen)

    noisy = np.asarray(tuition.measure(mechanism, exact, reach, grid=Fraction(1), label=label), dtype=np.float64)
    width = len(measured.far)
    length = measured.far / ends[:width]
    held = noisy[:, width] / ends[width] if measured.counts else found.weights
    least = deviation / float(ends[width] if measured.counts else ends.sum())
    unseen = held <= least
    held = np.maximum(held, least)
    offsets = noisy[:, :width] * length / held[:, None]
    variance = (deviation * length / held[:, None]) ** 2
    moved, left = _shrunk(offsets, variance) if measured.origin.ndim > 1 else (offsets, variance)
    centres = np.clip(measured.origin + np.clip(moved, -measured.far, measured.far), -points.ends, points.ends)
    if measured.counts and seen is points:
        centres[unseen] = found.centres[unseen]  # nobody there: a better place is not known
    error = float((held[:, None] * left).sum() / held.sum())
    return replace(found, centres=centres, weights=held / held.sum() * buyer.rows), error


def summed(centres: Array, points: Box, *, buyer: Buyer, measured: Round, ends: Array, seen: Box | Shadow) -> Array:
    """Σ over rows, in the place of each row's nearest centre, in whole numbers."""
    if isinstance(points.x, Asked):
        values = boxed(points.x, points.low, points.high, points.ends)
        return summed_asked(
            points.x, values, centres, origin=measured.origin, far=measured.far, ends=ends, counts=measured.counts
        )
    width, clusters = len(measured.far), len(centres)
    origin = np.broadcast_to(np.rint(measured.origin), (clusters, width))
    factor = ends[:width] / measured.far
    weights = None if buyer.crowd.units is None else buyer.crowd.weights
    total = np.zeros((clusters, len(ends)), dtype=np.int64)
    for part, rows, owner in nearest_each(seen, centres):
        own = rows if seen is points else points.rows(part)
        parts = np.empty((len(own), len(ends)))
        parts[:, :width] = np.clip((own - origin[owner]) * factor, -ends[:width], ends[:width])
        if measured.counts:
            parts[:, width] = ends[width]
        if weights is not None:
            parts *= weights[part, None]
        parts = np.trunc(parts, out=parts)
        for column in range(len(ends)):
            total[:, column] += np.bincount(owner, weights=parts[:, column], minlength=clusters).astype(np.int64)
    return total


def _shrunk(offsets: Array, variance: Array) -> tuple[Array, Array]:
    """Offsets drawn towards 0 by how much of them is noise, judged by all clusters together in each column."""
    trust = (variance.min() / variance) ** 2
    real = np.maximum(((offsets**2 - variance) * trust).sum(axis=0) / trust.sum(axis=0), 0.0)
    factor = real / (real + variance)
    return offsets * factor, variance * factor


def spread_points(clusters: int, ends: Array) -> Array:
    """Points far from each other, before anything is known: one by one the furthest of many that fill the box."""
    width = len(ends)
    root = 2.0
    for _ in range(40):
        root = (1 + root) ** (1 / (width + 1))
    walk = (0.5 + np.outer(np.arange(1, max(512, 16 * clusters)), root ** -np.arange(1.0, width + 1))) % 1.0
    options = (2 * walk - 1) * ends * 0.8
    chosen = [options[0]]
    gap = ((options - chosen[0]) ** 2).sum(axis=1)
    for _ in range(clusters - 1):
        chosen.append(options[int(gap.argmax())])
        gap = np.minimum(gap, ((options - chosen[-1]) ** 2).sum(axis=1))
    return np.array(chosen)


def farness(spread: Array, ends: Array) -> Array:
    """Where offsets are cut off: some deviations, and nowhere beyond the box or at nothing."""
    least = max(1.0, math.floor(float(ends.max()) / 1024))
    return np.asarray(np.maximum(np.minimum(np.ceil(FAR * spread), 2 * ends), least))
