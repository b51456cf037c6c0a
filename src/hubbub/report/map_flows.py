"""Flows between zones, read off a release: of four axes of bins, or of two axes of regions with their places."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.gate.release import CONFIDENCE
from hubbub.publish.domain import Axis
from hubbub.publish.release.map_margins import Places, margins
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.layer import Array
from hubbub.query.answer.printable import clean
from hubbub.report.map_data import FlowMap, Plane, Zones, grid_of, in_domain, plane_of, shapes_of, singles

_ROOM = 0.08
"""Around the outermost points, of the longer side."""


def between_cells(published: Published, drawn: Sequence[Axis], of: Any) -> FlowMap:
    """Of x and y of the origin, then of the destination."""
    lengths = [len(axis.labels) for axis in drawn]
    pairs = (drawn[:2], "origin"), (drawn[2:], "destination")
    boxes = [singles(lengths[:2]), singles(lengths[2:])]
    origins, destinations = (
        Zones(name=_common(pair, fallback), shapes=shapes_of(some, *pair), grid=grid_of(pair))
        for (pair, fallback), some in zip(pairs, boxes, strict=True)
    )
    order = [published.domain.axes.index(axis) for axis in drawn]
    matrix = np.transpose(published.cells, order).transpose(1, 0, 3, 2).reshape(len(boxes[0]), -1)
    everywhere = [[0, lengths[2 * side], 0, lengths[2 * side + 1]] for side in (0, 1)]
    return _flows(
        published,
        order,
        _plane(drawn, origins.name),
        (origins, destinations),
        matrix,
        boxes=boxes,
        everywhere=everywhere,
        of=of,
    )


def between_regions(published: Published, drawn: Sequence[Axis], places: Places, of: Any) -> FlowMap:
    """Of the region of the origin, then of the destination."""
    ends = []
    for axis in drawn:
        missing = [label for label in axis.labels if label not in places]
        if missing:
            raise ParameterError("places", f"a point for every region of {axis.name}", f"none for {missing[0]!r}")
        points = np.array([[float(one) for one in places[label]] for label in axis.labels]).reshape(-1, 2)
        ends.append(Zones(name=clean(axis.name), shapes=points, names=tuple(clean(str(one)) for one in axis.labels)))
    order = [published.domain.axes.index(axis) for axis in drawn]
    lengths = [len(axis.labels) for axis in drawn]
    everything = np.concatenate([one.shapes for one in ends])
    low, high = everything.min(axis=0), everything.max(axis=0)
    room = _ROOM * max(*(high - low), 1e-9)
    bounds = (float(low[0] - room), float(low[1] - room), float(high[0] + room), float(high[1] + room))
    return _flows(
        published,
        order,
        Plane(x="x", y="y", bounds=bounds),
        (ends[0], ends[1]),
        np.transpose(published.cells, order),
        boxes=[np.column_stack([np.arange(one), np.arange(1, one + 1)]) for one in lengths],
        everywhere=[[0, one] for one in lengths],
        of=of,
    )


def _flows(
    published: Published,
    order: Sequence[int],
    plane: Plane,
    ends: tuple[Zones, Zones],
    matrix: Array,
    *,
    boxes: Sequence[Array],
    everywhere: Sequence[Sequence[int]],
    of: Any,
) -> FlowMap:
    """With an interval for each flow, and for all flows out of and into each zone, where there are any."""

    def around(starts: Array, stops: Array) -> tuple[Array | None, str | None]:
        pairs = np.column_stack([np.repeat(starts, len(stops), axis=0), np.tile(stops, (len(starts), 1))])
        return margins(published, in_domain(pairs, order, None), beta=1 - CONFIDENCE)

    each, why = around(*boxes)
    whole = [np.array([one]) for one in everywhere]
    return FlowMap(
        plane=plane,
        origins=ends[0],
        destinations=ends[1],
        counts=matrix,
        margins=None if each is None else each.reshape(matrix.shape),
        leaving=around(boxes[0], whole[1])[0],
        arriving=around(whole[0], boxes[1])[0],
        why_no_interval=why,
        chosen=_choose(ends[1], of),
    )


def _plane(drawn: Sequence[Axis], begin: str) -> Plane:
    """Named without whose place it is: home_lon is lon."""
    found = plane_of(*drawn)
    x, y = (name.removeprefix(begin).strip("_- ") or name for name in (found.x, found.y))
    return replace(found, x=x, y=y)


def _common(pair: Sequence[Axis], fallback: str) -> str:
    """Return the common beginning of two names: home_lon and home_lat are home."""
    one, two = (clean(axis.name) for axis in pair)
    same = next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
    begin = re.sub(r"(_?l|[_\W]+)$", "", one[:same])
    return begin or fallback


def _choose(zones: Zones, of: Any) -> int | None:
    if of is None:
        return None
    if zones.names is not None:
        if str(of) not in zones.names:
            raise ParameterError("of", "one of the destination's regions", of)
        return zones.names.index(str(of))
    try:
        x, y = (float(one) for one in of)
    except (TypeError, ValueError):
        raise ParameterError("of", "a point: its x and y", of) from None
    west, south, east, north = zones.shapes.T
    inside = np.flatnonzero((west <= x) & (x < east) & (south <= y) & (y < north))
    if not len(inside):
        raise ParameterError("of", "a point within the destination's bins", of)
    return int(inside[0])
