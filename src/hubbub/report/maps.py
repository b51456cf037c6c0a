"""Maps of a release as files: GeoJSON for other programs, a picture, or a page that needs nothing but a browser."""

import math
from collections.abc import Sequence
from typing import Any

from hubbub.errors import ParameterError
from hubbub.publish.domain import Bins
from hubbub.publish.release.map_margins import Path, Places
from hubbub.publish.release.published import Published
from hubbub.query.answer.printable import clean
from hubbub.report import map_geojson, map_page
from hubbub.report.map_data import FLAT, FLOWING, MOVING, REMEDY, CellMap, FlowMap, axes_to_draw, moving_cells
from hubbub.report.map_flows import between_cells, between_regions
from hubbub.report.map_outlines import lines_of

MOST = 4_000_000
"""Counts in a file: a page of so many still opens."""


def write_map(
    published: Published,
    path: Path,
    *,
    form: str,
    axes: Any = None,
    places: Any = None,
    of: Any = None,
    outlines: Path | None = None,
    title: str | None = None,
) -> None:
    """Write a map, for ``Published.to_html``, ``to_png`` and ``to_geojson``. Nothing but the release is drawn."""
    if math.prod(published.domain.shape) > MOST:
        raise ParameterError(
            "release", f"at most {MOST:,} cells for a map; publish coarser bins", published.domain.size
        )
    shown = read(published, axes=axes, places=places, of=of)
    if form == "geojson":
        map_geojson.write(published, shown, path)
        return
    lines = lines_of(outlines) if outlines is not None else []
    heading = clean(title) if title is not None else _heading(shown)
    if form == "html":
        map_page.write(published, shown, path, lines=lines, title=heading)
    else:
        from hubbub.report import map_picture

        map_picture.write(published, shown, path, lines=lines, title=heading)


def read(
    published: Published, *, axes: Sequence[str] | None, places: Places | None = None, of: Any = None
) -> CellMap | FlowMap:
    """Read a map off a release; its kind follows from the axes that are drawn."""
    domain = published.domain
    drawn = [domain.axis(name) for name in axes] if axes is not None else axes_to_draw(published, places)
    binned = [isinstance(axis.labels, Bins) for axis in drawn]
    if len(drawn) == FLAT and places is not None and len(domain.axes) == FLAT:
        return between_regions(published, drawn, places, of)
    if all(binned) and len(drawn) == FLOWING and len(domain.axes) == FLOWING:
        return between_cells(published, drawn, of)
    if all(binned) and len(drawn) == FLAT and len(domain.axes) <= MOVING:
        return moving_cells(published, drawn)
    raise ParameterError("axes", REMEDY, [axis.name for axis in drawn])


def _heading(shown: CellMap | FlowMap) -> str:
    if isinstance(shown, FlowMap):
        return f"From {shown.origins.name} to {shown.destinations.name}"
    by = f", by {shown.moved_by}" if shown.moved_by else ""
    return f"Counts by {shown.plane.x} and {shown.plane.y}{by}"
