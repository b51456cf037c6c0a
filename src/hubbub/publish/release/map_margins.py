"""Margins of error of all cells of a map at once.

Intervals hold for one cell at a time, as those of ``Published.answer``. All of it is public.
"""

from typing import TYPE_CHECKING

import numpy as np

from hubbub.errors import HubbubError
from hubbub.publish.release import spread
from hubbub.publish.release.margin import chernoff, margin, noises
from hubbub.publish.spatial.quad_tree import EvenBelow
from hubbub.publish.strategies.layer import Array, CellLayer
from hubbub.publish.strategies.nodes import Nodes
from hubbub.publish.strategies.strategy import PreparedLayers

if TYPE_CHECKING:
    from hubbub.publish.release.published import Published

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
