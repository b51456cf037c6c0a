"""The rectangles that a published map consists of: what was measured, or pruned, as one number each.

They follow from noisy numbers alone, so they are as public as the cells.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from hubbub.publish.strategies.layer import Array

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
