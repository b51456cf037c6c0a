"""Maps of a release as files. ``hubbub.report`` draws them and puts itself here when it is imported."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from hubbub.gate.pictures import find_drawer

Path = str | os.PathLike[str]
Places = Mapping[Any, tuple[float, float]]
"""Where each label of a region lies: x and y of a point."""


class Mapped:
    """The base of releases that can be maps: of two axes of bins; with a third axis, a map that moves; with four, or
    with two axes of regions and their ``places``, flows from origins to destinations.

    ``axes`` says which axes are drawn where there is a doubt: x and y; or x and y of the origin and of the destination;
    or the axes of the origin's region and of the destination's. Otherwise they are drawn in their order, but that a
    name such as ``lat`` is y. Files hold the release and nothing else, so they are as public as it is.
    """

    mapper: ClassVar[Callable[..., None] | None] = None
    """Set by ``hubbub.report``, which is loaded when it is first needed."""

    def to_html(
        self,
        path: Path,
        *,
        axes: Sequence[str] | None = None,
        places: Places | None = None,
        of: Any = None,
        outlines: Path | None = None,
        title: str | None = None,
    ) -> None:
        """One page to open in a browser, with nothing outside it: drag, zoom, and read each cell with its error.

        Of flows, ``of`` is chosen first: a region, or a point of the destination. ``outlines`` is a GeoJSON file whose
        lines are drawn on top, such as borders.
        """
        self._write_map(path, "html", axes=axes, places=places, of=of, outlines=outlines, title=title)

    def to_png(
        self,
        path: Path,
        *,
        axes: Sequence[str] | None = None,
        places: Places | None = None,
        of: Any = None,
        outlines: Path | None = None,
        title: str | None = None,
    ) -> None:
        """A picture of it (needs ``pip install "hubbub[plot]"``); of a map that moves, one beside the other."""
        self._write_map(path, "png", axes=axes, places=places, of=of, outlines=outlines, title=title)

    def to_geojson(self, path: Path, *, axes: Sequence[str] | None = None, places: Places | None = None) -> None:
        """For other programs: a polygon for each cell or leaf, or a line for each flow, with count, low and high."""
        self._write_map(path, "geojson", axes=axes, places=places)

    def _write_map(self, path: Path, form: str, **options: Any) -> None:
        find_drawer(type(self), "mapper", missing="maps")(self, path, form=form, **options)
