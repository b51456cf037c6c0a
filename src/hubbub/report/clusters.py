"""Cluster centres as a picture: the released centres, the parts of the plane that belong to them, and rows if given."""

from typing import Any, Protocol

import numpy as np

from hubbub.errors import ParameterError
from hubbub.report.plot import EDGE, new_axes

Array = np.ndarray[Any, Any]
PALETTE = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#332288", "#ddaa33", "#117733",
    "#882255", "#44aa99",
)  # fmt: skip
"""Paul Tol's colours, told apart by any eye; more clusters begin again."""
_FINE = 240


class Clusters(Protocol):
    """A fitted model with centres: ``hubbub.learn.KMeans``, or scikit-learn's."""

    cluster_centers_: Array


def plot_clusters(
    model: Clusters, *, rows: Any = None, columns: tuple[int, int] = (0, 1), title: str | None = None, ax: Any = None
) -> Any:
    """Draw centres in two columns; returns matplotlib's axes.

    Without ``rows`` nothing but released centres is drawn, so the picture is as public as they are. ``rows`` are drawn
    as dots: a picture for whoever may see these rows, such as made-up ones.
    """
    centres = np.asarray(model.cluster_centers_, dtype=np.float64)
    if len(columns) != 2 or not all(0 <= column < centres.shape[1] for column in columns):
        raise ParameterError("columns", f"two of the {centres.shape[1]} columns, counted from 0", columns)
    axes = new_axes() if ax is None else ax
    flat = centres[:, list(columns)]
    shown = None if rows is None else np.asarray(rows, dtype=np.float64)
    low, high = _ends(model, flat, None if shown is None else shown[:, list(columns)], columns)
    if centres.shape[1] == 2:
        _regions(axes, flat, low, high)
    if shown is not None:
        owner = _nearest(shown, centres)
        axes.scatter(
            shown[:, columns[0]], shown[:, columns[1]], s=3, linewidths=0, alpha=0.7,
            c=[PALETTE[place % len(PALETTE)] for place in owner],
        )  # fmt: skip
    axes.scatter(flat[:, 0], flat[:, 1], marker="X", s=90, c="white", edgecolors=EDGE, linewidths=1.4, zorder=3)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    names = getattr(model, "feature_names_in_", None)
    told = [f"column {column}" if names is None else str(names[column]) for column in columns]
    axes.set_xlabel(told[0])
    axes.set_ylabel(told[1])
    axes.set_title(title or f"{len(centres)} centres")
    return axes


def _ends(model: Any, flat: Array, rows: Array | None, columns: tuple[int, int]) -> tuple[Array, Array]:
    """The bounds of a private model; else what is drawn, with a little room."""
    if hasattr(model, "low_") and hasattr(model, "high_"):
        return np.asarray(model.low_)[list(columns)], np.asarray(model.high_)[list(columns)]
    drawn = flat if rows is None else np.vstack([flat, rows])
    room = 0.05 * (drawn.max(axis=0) - drawn.min(axis=0)) + 1e-9
    return drawn.min(axis=0) - room, drawn.max(axis=0) + room


def _regions(axes: Any, flat: Array, low: Array, high: Array) -> None:
    """Shade the points of the plane by their nearest centre, faintly."""
    across, up = (np.linspace(low[place], high[place], _FINE) for place in (0, 1))
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    shade = [
        tuple(int(PALETTE[place % len(PALETTE)][at : at + 2], 16) / 255 for at in (1, 3, 5))
        for place in range(len(flat))
    ]
    picture = np.array(shade)[_nearest(points, flat)].reshape(_FINE, _FINE, 3)
    faint = 1 - 0.16 * (1 - picture)
    axes.imshow(
        faint, origin="lower", extent=(low[0], high[0], low[1], high[1]), aspect="auto", interpolation="nearest"
    )


def _nearest(points: Array, centres: Array) -> Array:
    clean = np.nan_to_num(points)
    return np.asarray(((centres * centres).sum(axis=1) - 2 * clean @ centres.T).argmin(axis=1))
