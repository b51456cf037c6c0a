"""Polygons and discs on a release: cells that the boundary cuts count by their share of area. Free: post-processing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.release import CONFIDENCE
from hubbub.parameters import positive
from hubbub.publish.domain import Axis, Bins, Domain
from hubbub.publish.release.shapes import disc_shares, kilometres, polygon_shares
from hubbub.publish.strategies.layer import Array

if TYPE_CHECKING:
    from hubbub.publish.release.published import Estimate

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
