"""The contents of a map, read off a release: cells or leaves over moments, or flows between zones. All are public."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.release import CONFIDENCE
from hubbub.publish.domain import Axis, Bins
from hubbub.publish.release.map_margins import Places, leaves, margins
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.layer import Array
from hubbub.query.answer.printable import clean

_NORTHWARD = re.compile(r"(^|[_\W\d])(lat|latitude|y|north|northing)($|[_\W\d])", re.IGNORECASE)
_EASTWARD = re.compile(r"(^|[_\W\d])(lon|long|lng|longitude)($|[_\W\d])", re.IGNORECASE)
FLAT, MOVING, FLOWING = 2, 3, 4
REMEDY = (
    "two axes of publish.bins, with at most one more to move along; or four of them, x and y of the origin and of the "
    "destination; or two of regions, with places= for their points"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """The two axes that places are measured along."""

    x: str
    y: str
    bounds: tuple[float, float, float, float]
    """West, south, east, north."""

    @property
    def degrees(self) -> bool:
        """True if the names are those of longitude and latitude."""
        return bool(_EASTWARD.search(self.x) and _NORTHWARD.search(self.y))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Zones:
    """The places of counts: rectangles (west, south, east, north) or points (x, y), with names where they have them."""

    name: str
    shapes: Array
    names: tuple[str, ...] | None = None
    grid: tuple[int, int] | None = None
    """How many places along x and y; zones are numbered along x first, unless they are leaves."""

    @property
    def centres(self) -> Array:
        if self.shapes.shape[1] == 2:
            return self.shapes
        found: Array = (self.shapes[:, :2] + self.shapes[:, 2:]) / 2
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellMap:
    """A count for each zone at each moment; one moment where nothing moves."""

    plane: Plane
    zones: Zones
    boxes: Array
    """Places of each zone in the grid: begin and end along x, then along y."""
    partition: bool
    """Whether zones are leaves that follow from the release, and not all of one size."""
    moments: tuple[str, ...]
    moved_by: str | None
    counts: Array
    """(moments, zones)."""
    margins: Array | None
    why_no_interval: str | None

    @property
    def sizes(self) -> Array:
        """Cells of the grid in each zone."""
        found: Array = (self.boxes[:, 1] - self.boxes[:, 0]) * (self.boxes[:, 3] - self.boxes[:, 2])
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlowMap:
    """A count for each pair of an origin and a destination."""

    plane: Plane
    origins: Zones
    destinations: Zones
    counts: Array
    """(origins, destinations)."""
    margins: Array | None
    leaving: Array | None
    """Half the width of an interval for all who leave each origin; and so for all who arrive."""
    arriving: Array | None
    why_no_interval: str | None
    chosen: int | None
    """A destination."""


def axes_to_draw(published: Published, places: Places | None) -> list[Axis]:
    """The axes that are drawn, x before y, from first to last; what is left moves."""
    axes = list(published.domain.axes)
    if places is not None:
        return axes
    binned = [axis for axis in axes if isinstance(axis.labels, Bins)]
    if len(binned) == MOVING:  # of three the first two are the map, but that hours never are
        binned = [axis for axis in binned if not re.search(r"hour|time|day", axis.name, re.IGNORECASE)][:FLAT]
    if len(binned) not in {FLAT, FLOWING}:
        raise ParameterError("release", REMEDY, [axis.name for axis in axes])
    return [axis for pair in zip(binned[::2], binned[1::2], strict=True) for axis in _x_first(*pair)]


def _x_first(one: Axis, two: Axis) -> tuple[Axis, Axis]:
    return (two, one) if _NORTHWARD.search(one.name) and not _NORTHWARD.search(two.name) else (one, two)


def moving_cells(published: Published, drawn: list[Axis]) -> CellMap:
    """Cells, or leaves of a partition, at every moment."""
    axes = list(published.domain.axes)
    moving = next((axis for axis in axes if axis not in drawn), None)
    order = [axes.index(axis) for axis in ([moving] if moving else []) + drawn]
    cells = np.transpose(published.cells, order).reshape(-1, *(len(axis.labels) for axis in drawn))
    found = leaves(published)
    if found is not None and axes.index(drawn[0]) == 1:
        found = found[:, [2, 3, 0, 1]]
    boxes = singles(cells.shape[1:]) if found is None else found
    moments = (None,) if moving is None else tuple(range(len(moving.labels)))
    asked = np.concatenate([in_domain(boxes, order, moment) for moment in moments])
    around, why = margins(published, asked, beta=1 - CONFIDENCE)
    return CellMap(
        plane=plane_of(*drawn),
        zones=Zones(name="", shapes=shapes_of(boxes, *drawn), grid=None if found is not None else grid_of(drawn)),
        boxes=boxes,
        partition=found is not None,
        moments=tuple(_label_of(moving, place) for place in range(len(moving.labels))) if moving else ("",),
        moved_by=clean(moving.name) if moving else None,
        counts=_sums(cells, boxes),
        margins=None if around is None else around.reshape(len(moments), len(boxes)),
        why_no_interval=why,
    )


def _sums(cells: Array, boxes: Array) -> Array:
    """Over each box, at each moment."""
    if len(boxes) == cells[0].size:
        return np.swapaxes(cells, 1, 2).reshape(len(cells), -1)
    each = [cells[:, west:east, south:north].sum(axis=(1, 2)) for west, east, south, north in boxes.tolist()]
    return np.stack(each, axis=1)


def singles(shape: Sequence[int]) -> Array:
    """Every cell by itself, along x first."""
    y, x = (places.reshape(-1) for places in np.indices(shape[::-1]))
    return np.column_stack([x, x + 1, y, y + 1])


def in_domain(boxes: Array, order: Sequence[int], moment: int | None) -> Array:
    """The same boxes along the axes as they are in the release."""
    if moment is not None:
        boxes = np.column_stack([np.full(len(boxes), moment), np.full(len(boxes), moment + 1), boxes])
    columns = {axis: boxes[:, 2 * place : 2 * place + 2] for place, axis in enumerate(order)}
    return np.column_stack([columns[axis] for axis in sorted(columns)])


def shapes_of(boxes: Array, x: Axis, y: Axis) -> Array:
    """West, south, east and north of each box, in the units of its axes."""
    edges = [np.array([axis.labels.edge(place) for place in range(len(axis.labels) + 1)]) for axis in (x, y)]  # type: ignore[attr-defined]
    west, east, south, north = boxes.T
    return np.column_stack([edges[0][west], edges[1][south], edges[0][east], edges[1][north]])


def grid_of(drawn: Sequence[Axis]) -> tuple[int, int]:
    """Return the number of cells along x and y."""
    return len(drawn[0].labels), len(drawn[1].labels)


def plane_of(x: Axis, y: Axis, *more: Axis) -> Plane:
    """Return the plane on which everything is drawn, with room for the ends of every axis."""
    ends = [(float(one.labels.low), float(one.labels.high)) for one in (x, y, *more)]  # type: ignore[attr-defined]
    wide, high = ends[::2], ends[1::2]
    bounds = (min(one[0] for one in wide), min(one[0] for one in high))
    return Plane(
        x=clean(x.name), y=clean(y.name), bounds=(*bounds, max(one[1] for one in wide), max(one[1] for one in high))
    )


def _label_of(axis: Axis, place: int) -> str:
    labels = axis.labels
    if isinstance(labels, Bins):
        return f"{labels.edge(place):.6g} to {labels.edge(place + 1):.6g}"
    return clean(str(labels[place]))
