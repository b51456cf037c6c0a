"""Maps of a release: the rectangles they consist of, the margins of error of all cells, and files.

They follow from noisy numbers alone, so they are as public as the cells.

Intervals hold for one cell at a time, as those of ``Published.answer``. All of it is public.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from hubbub.errors import HubbubError
from hubbub.gate.pictures import find_drawer
from hubbub.publish.release import spread
from hubbub.publish.release.margin import chernoff, margin, noises
from hubbub.publish.spatial.quad_tree import EvenBelow
from hubbub.publish.strategies.layer import Array, CellLayer, Nodes
from hubbub.publish.strategies.strategy import PreparedLayers

if TYPE_CHECKING:
    from hubbub.publish.release.published import Published

_MAP = 2


@runtime_checkable
class Partitioned(Protocol):
    """A prepared strategy, or its inference, that measures whole groups of cells."""

    def leaves(self, noisy: Sequence[Any]) -> Array:
        """A number for the group of each cell."""
        ...


def leaves(published: "Published") -> Array | None:
    """Begin and end along the first axis, then along the second, ends excluded: a row for each leaf.

    None where every cell stands for itself, and where groups are no rectangles.
    """
    inference = getattr(published.prepared, "inference", None)
    parts = next((one for one in (published.prepared, inference) if isinstance(one, Partitioned)), None)
    if parts is None or len(published.domain.axes) != _MAP:
        return None
    labels = np.unique(parts.leaves(published.noisy), return_inverse=True)[1].reshape(published.domain.shape)
    sizes = np.bincount(labels.reshape(-1))
    if len(sizes) == labels.size:
        return None
    found = np.column_stack([end for places in np.indices(labels.shape) for end in _ends(labels, places, len(sizes))])
    areas = (found[:, 1] - found[:, 0]) * (found[:, 3] - found[:, 2])
    return found if np.array_equal(areas, sizes) else None


def _ends(labels: Array, places: Array, groups: int) -> tuple[Array, Array]:
    """The first place of each group along an axis, and the one after its last."""
    first, last = np.full(groups, np.iinfo(np.int64).max), np.zeros(groups, dtype=np.int64)
    np.minimum.at(first, labels.reshape(-1), places.reshape(-1))
    np.maximum.at(last, labels.reshape(-1), places.reshape(-1) + 1)
    return first, last


_MOST_COEFFICIENTS = 1 << 27
_MOST_ALONE = 400
_MOST_KINDS = 24
"""Cells that err differently and get the closest interval; those after them get a quicker, wider one."""
_BATCH = 1 << 22


def margins(published: "Published", boxes: Array, *, beta: float) -> tuple[Array | None, str | None]:
    """Half the width of an interval for the sum over each box (begins and ends along every axis); or why not.

    Boxes must be the cells, or the leaves of one partition. Where those are alike by symmetry, one is worked out for
    all of them.
    """
    if published.why_no_interval is not None:
        return None, published.why_no_interval
    prepared = published.prepared
    try:
        if alike(prepared):
            _, found = spread.of(prepared, _queries(prepared.shape, boxes[:1])[0], beta=beta)
            return np.full(len(boxes), found), None
        prepared.variances(_queries(prepared.shape, boxes[:1]))
    except HubbubError as problem:
        return None, problem.message
    if not isinstance(prepared, PreparedLayers):
        if len(boxes) > _MOST_ALONE:
            return None, _too_much(len(boxes))
        each = (spread.of(prepared, _queries(prepared.shape, box[np.newaxis])[0], beta=beta)[1] for box in boxes)
        return np.fromiter(each, dtype=float, count=len(boxes)), None
    if sum(one.layer.size for one in prepared.measurements) * len(boxes) > _MOST_COEFFICIENTS:
        return None, _too_much(len(boxes))
    return _one_by_one(prepared, boxes, beta), None


def _too_much(cells: int) -> str:
    return f"For each of {cells:,} cells it takes too much work; range() tells it for any of them."


def _one_by_one(prepared: PreparedLayers, boxes: Array, beta: float) -> Array:
    """Boxes whose noises count alike share one margin: of coefficients rounded up in the tenth digit."""
    laws = [one.mechanism for one in prepared.measurements]
    known: dict[bytes, float] = {}
    found = np.zeros(len(boxes))
    step = max(1, _BATCH // sum(one.layer.size for one in prepared.measurements))
    for start in range(0, len(boxes), step):
        some = boxes[start : start + step]
        rows = prepared.inference.influence(_queries(prepared.shape, some))
        for place in range(len(some)):
            sizes = [_round_up(row[place]) for row in rows]
            key = b"|".join(one.tobytes() for one in sizes)
            if key not in known:
                parts = noises(sizes, laws)
                assert parts is not None  # layers have geometric or Gaussian noise
                known[key] = (margin if len(known) < _MOST_KINDS else chernoff)(parts, beta=beta)
            found[start + place] = known[key]
    return found


def _round_up(coefficients: Array) -> Array:
    """Sizes in order, none smaller than it was by more than rounding of doubles."""
    sizes = np.sort(np.abs(coefficients))
    sizes = sizes[sizes > 1e-12]
    with np.errstate(divide="ignore"):
        unit = 10.0 ** (np.floor(np.log10(sizes)) - 10)
    return np.asarray(np.ceil(sizes / unit) * unit)


def alike(prepared: object) -> bool:
    """Return True if all leaves have the same error by symmetry: a flat table, or a tree whose levels divide evenly.

    Swapping two subtrees of one level maps such a tree, and the noise of its levels, onto itself.
    """
    if not isinstance(prepared, PreparedLayers):
        return False
    layers = [one.layer for one in prepared.measurements]
    if len(layers) == 1 and isinstance(layers[0], CellLayer):
        return True
    if not isinstance(prepared.inference, EvenBelow):
        return False
    parts = [one.parts for one in layers if isinstance(one, Nodes)]
    if len(parts) != len(layers):
        return False
    below = [*parts[1:], prepared.shape]
    pairs = (pair for one, two in zip(parts, below, strict=True) for pair in zip(one, two, strict=True))
    return all(many % few == 0 for few, many in pairs)


def _queries(shape: tuple[int, ...], boxes: Array) -> Array:
    queries = np.zeros((len(boxes), *shape))
    for query, box in zip(queries, boxes.tolist(), strict=True):
        query[tuple(slice(begin, end) for begin, end in zip(box[::2], box[1::2], strict=True))] = 1
    return queries


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
