"""Polygons and discs on a map: the shares of cells that lie within, and the answers over them.

A cell is a rectangle of a grid whose lines are given. Everything here is arithmetic on public numbers.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.release import CONFIDENCE
from hubbub.parameters import positive
from hubbub.publish.domain import Axis, Bins, Domain
from hubbub.publish.strategies.layer import Array

if TYPE_CHECKING:
    from hubbub.publish.release.published import Estimate

MOST_CORNERS = 10_000
_CHUNK = 1 << 20


def polygon_shares(outline: Any, holes: Sequence[Any], x: Array, y: Array) -> Array:
    """The share of every cell between the lines ``x`` and ``y`` that lies within the outline and in no hole.

    Along an edge the region below it is a trapezoid; with the edge's direction as the sign, trapezoids add up to the
    polygon. In a cell, the part below an edge is the integral of the edge's height above the cell's floor, clamped to
    the cell: linear in pieces, so it has a formula, and no cell's share is a difference of large numbers.
    """
    rings = [ring(outline, "polygon"), *(ring(one, "holes") for one in holes)]
    _check_simple(rings)
    total = np.zeros((len(x) - 1, len(y) - 1))
    for place, corners in enumerate(rings):
        area = _below(corners, x, y)
        total += area * _turn(corners) * (-1 if place else 1)
    shares: Array = np.clip(total / np.multiply.outer(np.diff(x), np.diff(y)), 0, 1)
    return shares


def disc_shares(centre: tuple[float, float], radius: float, x: Array, y: Array) -> Array:
    """The share of every cell that lies within ``radius`` of the centre.

    The disc above its centre line and below it are two halves. With d >= 0 the distance of a line from that line, the
    part of a half beyond it, between two columns, is ∫ (√(r² - t²) - d) dt over those t where it is positive.
    """
    right, up = x - centre[0], y - centre[1]
    above = _beyond(right, np.maximum(up, 0), radius)
    below = _beyond(right, np.maximum(-up, 0), radius)
    area = above[:, :-1] - above[:, 1:] + below[:, 1:] - below[:, :-1]
    shares: Array = np.clip(area / np.multiply.outer(np.diff(x), np.diff(y)), 0, 1)
    return shares


def ring(points: Any, what: str) -> Array:
    """Corners in order; the first may be there once more at the end, as GeoJSON has it."""
    try:
        corners = np.array([[float(one) for one in point] for point in points], dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(what, "pairs of numbers, one for each corner", points) from None
    if corners.ndim != 2 or corners.shape[1:] != (2,) or not np.isfinite(corners).all():
        raise ParameterError(what, "pairs of finite numbers, one for each corner", corners.shape)
    if len(corners) > 1 and (corners[0] == corners[-1]).all():
        corners = corners[:-1]
    if not 3 <= len(corners) <= MOST_CORNERS:
        raise ParameterError(what, f"3 to {MOST_CORNERS:,} corners", len(corners))
    if _twice_area(corners) == 0:
        raise ParameterError(what, "corners that enclose something", len(corners))
    return corners


def _twice_area(corners: Array) -> float:
    """Twice the signed area; positive if the corners are in anticlockwise order."""
    near = corners - corners[0]
    far = np.roll(near, -1, axis=0)
    return float(np.sum(near[:, 0] * far[:, 1] - far[:, 0] * near[:, 1]))


def _turn(corners: Array) -> int:
    """An edge that leads to the right of an anticlockwise ring is its floor, so that trapezoids count negatively."""
    return -1 if _twice_area(corners) > 0 else 1


def _below(corners: Array, x: Array, y: Array) -> Array:
    """In each cell, the area below the ring's edges: those to the right count, those to the left count negatively."""
    found = np.zeros((len(x) - 1, len(y) - 1))
    tall = np.diff(y)
    for (x1, y1), (x2, y2) in zip(corners.tolist(), np.roll(corners, -1, axis=0).tolist(), strict=True):
        if x1 == x2:
            continue
        sign, (left, at_left), (right, at_right) = (1, (x1, y1), (x2, y2)) if x1 < x2 else (-1, (x2, y2), (x1, y1))
        first = max(0, int(np.searchsorted(x, left, side="right")) - 1)
        last = min(len(x) - 1, int(np.searchsorted(x, right, side="left")))
        if first >= last:
            continue
        begins, ends = np.maximum(x[first:last], left), np.minimum(x[first + 1 : last + 1], right)
        passed = [(at - left) / (right - left) for at in (begins, ends)]
        heights = [at_left * (1 - share) + at_right * share for share in passed]
        low, high = (one[:, np.newaxis] - y[:-1] for one in heights)
        found[first:last] += sign * (ends - begins)[:, np.newaxis] * _mean_clamped(low, high, tall)
    return found


def _mean_clamped(low: Array, high: Array, most: Array) -> Array:
    """The mean of min(max(h, 0), most) for h that goes evenly from ``low`` to ``high``."""
    less, more = np.minimum(low, high), np.maximum(low, high)
    first, last = np.clip(less, 0, most), np.clip(more, 0, most)
    sloped = (last - first) * (first + last) / 2
    full = np.maximum(more - np.maximum(less, most), 0) * most
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(more > less, (sloped + full) / (more - less), first)
    return np.clip(mean, first, last)


def _beyond(right: Array, away: Array, radius: float) -> Array:
    """Between two columns and at least so far above the centre line: the area of the disc."""
    half = np.sqrt(np.maximum(radius**2 - np.minimum(away, radius) ** 2, 0))
    at = np.clip(right[:, np.newaxis], -half, half)
    edge = np.sqrt(np.maximum(radius**2 - at**2, 0))
    up_to = (at * edge + radius**2 * np.arcsin(np.clip(at / radius, -1, 1))) / 2 - np.minimum(away, radius) * at
    return np.asarray(np.diff(up_to, axis=0))


def _check_simple(rings: Sequence[Array]) -> None:
    """No two edges may cross: what lies within would be a matter of opinion."""
    starts = np.concatenate(rings)
    ends = np.concatenate([np.roll(one, -1, axis=0) for one in rings])
    many = len(starts)
    step = max(1, _CHUNK // many)
    for first in range(0, many, step):
        part = slice(first, min(many, first + step))
        if _crossing(starts[part], ends[part], starts, ends).any():
            raise ParameterError("polygon", "edges that do not cross each other", f"{many} corners")


def _crossing(a: Array, b: Array, c: Array, d: Array) -> Array:
    """Test if segments from a to b and from c to d cross properly: each has the other's ends on both of its sides."""

    def side(p: Array, q: Array, r: Array) -> Array:
        along, away = q - p, r - p
        return np.asarray(np.sign(along[..., 0] * away[..., 1] - along[..., 1] * away[..., 0]))

    a, b = a[:, np.newaxis], b[:, np.newaxis]
    c, d = c[np.newaxis], d[np.newaxis]
    found: Array = (side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)
    return found


KILOMETRES_A_DEGREE = math.pi * 6371.0088 / 180
"""Along a meridian of a sphere that has the mean radius of the earth."""


def kilometres(latitude: float) -> tuple[float, float]:
    """Return the length of a degree of longitude at a latitude, and that of a degree of latitude."""
    return KILOMETRES_A_DEGREE * math.cos(math.radians(latitude)), KILOMETRES_A_DEGREE


_POLE = 90
_UPWARD = ("lat", "y")
"""Names that begin so are y, wherever they come."""


class Outlined:
    """The base of releases over a map.

    x and y are the first two axes of bins or whole numbers, where a name such as ``lat`` is y, or those that ``axes``
    names; the others are summed over, or named as in ``range``. A whole number k is a cell from k to the next one.
    What is counted is the release, with points spread evenly within each cell: how far the noise is off is told where
    it is public, and what spreading adds is not known to anybody who has the release alone.
    """

    domain: Domain

    def answer(self, query: Any, *, confidence: float = CONFIDENCE) -> "Estimate":
        raise NotImplementedError

    def polygon(
        self,
        corners: Any,
        *,
        holes: Sequence[Any] = (),
        axes: tuple[str, str] | None = None,
        confidence: float = CONFIDENCE,
        **named: Any,
    ) -> "Estimate":
        """Estimate the count within a polygon of (x, y) corners, in either order, and outside its ``holes``."""
        x, y = _lines(self.domain, axes)
        shares = polygon_shares(corners, holes, x[1], y[1])
        return self.answer(_query(self.domain, (x[0], y[0]), shares, named), confidence=confidence)

    def radius(
        self,
        centre: tuple[float, float],
        distance: float | None = None,
        *,
        km: float | None = None,
        axes: tuple[str, str] | None = None,
        confidence: float = CONFIDENCE,
        **named: Any,
    ) -> "Estimate":
        """Estimate the count within a distance of a point: in units of the axes, or in ``km`` where these are degrees.

        Degrees of longitude are as long as they are at the centre: an ellipse on the map, good for tens of kilometres.
        """
        if (distance is None) is (km is None):
            raise ParameterError("distance", "given, or else km, and not both", distance)
        try:
            at = float(centre[0]), float(centre[1])
        except (TypeError, ValueError, IndexError, KeyError):
            raise ParameterError("centre", "two numbers, x and y", centre) from None
        if not np.isfinite(at).all() or (km is not None and abs(at[1]) >= _POLE):
            raise ParameterError("centre", "two finite numbers; of degrees, y between the poles", centre)
        x, y = _lines(self.domain, axes)
        wide, tall = (1.0, 1.0) if km is None else kilometres(at[1])
        far = float(positive("distance" if km is None else "km", distance if km is None else km))
        shares = disc_shares((at[0] * wide, at[1] * tall), far, x[1] * wide, y[1] * tall)
        return self.answer(_query(self.domain, (x[0], y[0]), shares, named), confidence=confidence)


def _lines(domain: Domain, axes: tuple[str, str] | None) -> tuple[tuple[int, Array], tuple[int, Array]]:
    """Return the axes of x and y, and the lines between their cells."""
    if axes is None:
        places = [place for place, axis in enumerate(domain.axes) if _edges(axis) is not None][:2]
        places.sort(key=lambda place: domain.axes[place].name.lower().startswith(_UPWARD))
    else:
        places = [domain.axes.index(domain.axis(name)) for name in axes]
    found = [(place, edges) for place in places if (edges := _edges(domain.axes[place])) is not None]
    if len(found) != 2 or len(set(places)) != 2:
        raise ParameterError("axes", "two different axes of bins or of whole numbers in order", axes)
    return found[0], found[1]


def _edges(axis: Axis) -> Array | None:
    labels = axis.labels
    if isinstance(labels, Bins):
        return np.array([labels.edge(place) for place in range(len(labels) + 1)])
    if isinstance(labels, range) and labels.step > 0:
        return np.array([*labels, labels[-1] + labels.step], dtype=float)
    return None


def _query(domain: Domain, places: tuple[int, int], shares: Array, named: dict[str, Any]) -> Array:
    """The weight of every cell: its share on the map, where the other axes are as they are named."""
    taken = {domain.axes[place].name for place in places}
    if taken & set(named):
        raise ParameterError("axis", "another one than x and y of the shape", min(taken & set(named)))
    query = np.zeros(domain.shape)
    query[domain.box(named)] = 1
    if places[0] > places[1]:
        places, shares = (places[1], places[0]), shares.T
    wide = [length if place in places else 1 for place, length in enumerate(domain.shape)]
    return query * shares.reshape(wide)
