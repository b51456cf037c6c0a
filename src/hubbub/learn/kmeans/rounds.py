"""One round of k-means that is paid for: sums of how far rows lie from their nearest centre, cut off where few are.

Privacy:
    Claim: a round costs its share, and a unit moves its sums by at most ``most`` times the norms of ``reach``.
    Proof: a row adds one vector, in the place of its nearest centre, whose whole coordinates are clipped to ± reach; so
        its L1 norm is at most Σ reach and its L2 norm at most √(Σ reach²). Times a weight and cut towards zero it is no
        longer; a unit's weights sum to at most ``most``. Centres and reach follow from earlier releases.
    Needs: ``Number.nearest`` and ``Box``, which decide for each row by itself.
    Ref: Blum, Dwork, McSherry, Nissim 2005 (sums of rows); Su, Cao, Li, Bertino, Jin 2016 (sums and counts jointly).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hubbub.learn.kmeans.axes import Box, Shadow
from hubbub.learn.kmeans.grid import QUIET, Found, GridBudget
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import BITS, Steps
from hubbub.query.totals import Code, SumsRequest, beside

FAR = 2.5
"""Rows count as if they were no further from their centre than so many deviations."""
RATIO = 0.225
"""The mean size of a centre's coordinates beside those of its ends, by which counts get their part of the price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The measurement of a round: coordinates around ``origin`` clipped at ``far``, a count where ``counts`` is set."""

    origin: Array
    """One point for all clusters, or one for each."""
    far: Array
    counts: bool

    def ends(self, *, pure: bool) -> Array:
        """Return how many whole steps each coordinate may have: where the noise of all of them together is least.

        Noise of scale Σ b (or √Σ b²) on coordinates b·v/far is least in the sum of squares for b ∝ far^(2/3) (√far).
        """
        share = self.far ** (2 / 3) if pure else np.sqrt(self.far)
        if self.counts:
            width = len(self.far)
            share = np.append(share, (4 * RATIO**2 / width**2) ** (1 / 3) * share.sum())
        return np.asarray(np.maximum(np.floor(share / share.max() * (1 << BITS)), 1.0))


def improve(
    found: Found, points: Box, *, buyer: GridBudget, share: Fraction, measured: Round, seen: Box | Shadow, label: str
) -> tuple[Found, float]:
    """Move centres by what was measured, as far as it stands out from its noise; return the squared error left too.

    ``seen`` is where rows look for their nearest centre: the same points, or their shadow.
    """
    tuition, data = buyer.tuition, buyer.data
    ends = measured.ends(pure=tuition.rho is None)
    steps = Steps(
        grid=Fraction(1), l1=int(ends.sum()), l2_squared=sum(int(end) ** 2 for end in ends),
        linf=int(ends.max()), l0=len(ends),
    )  # fmt: skip
    sums = sum_offsets(found.centres, points, data, measured=measured, ends=ends, seen=seen)
    flat, mechanism = tuition.measure_sums(data, sums, steps, share=share, label=label)
    deviation, noisy = max(mechanism.standard_deviation, QUIET), flat.reshape(sums.shapes[0])
    width = len(measured.far)
    length = measured.far / ends[:width]
    held = noisy[:, width] / ends[width] if measured.counts else found.weights
    least = deviation / float(ends[width] if measured.counts else ends.sum())
    unseen = held <= least
    held = np.maximum(held, least)
    offsets = noisy[:, :width] * length / held[:, None]
    variance = (deviation * length / held[:, None]) ** 2
    moved, left = _shrink(offsets, variance) if measured.origin.ndim > 1 else (offsets, variance)
    centres = np.clip(measured.origin + np.clip(moved, -measured.far, measured.far), -points.ends, points.ends)
    if measured.counts and seen is points:
        centres[unseen] = found.centres[unseen]  # nobody there: a better place is not known
    error = float((held[:, None] * left).sum() / held.sum())
    return replace(found, centres=centres, weights=held / held.sum() * buyer.rows), error


def sum_offsets(
    centres: Array, points: Box, data: Features, *, measured: Round, ends: Array, seen: Box | Shadow
) -> SumsRequest:
    """Ask for sums over rows, in the place of each row's nearest centre."""
    width, far = len(measured.far), ends[: len(measured.far)]
    owner = seen.rows.nearest(np.rint(centres).tolist())
    origin = np.rint(measured.origin)
    middle = owner.pick_row(origin.tolist()) if origin.ndim > 1 else origin.tolist()
    parts = ((points.rows - middle) * (far / measured.far).tolist()).clip((-far).tolist(), far.tolist())
    whole = data.weigh(beside(parts, float(ends[width])) if measured.counts else parts).truncate()
    return SumsRequest(values=whole, codes=(Code(number=owner, size=len(centres)),), bits=BITS)


def _shrink(offsets: Array, variance: Array) -> tuple[Array, Array]:
    """Return offsets drawn towards 0 by how much of them is noise, judged by all clusters together in each column."""
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
    """Return where offsets are clipped: some deviations, and nowhere beyond the box or at nothing."""
    least = max(1.0, math.floor(float(ends.max()) / 1024))
    return np.asarray(np.maximum(np.minimum(np.ceil(FAR * spread), 2 * ends), least))
