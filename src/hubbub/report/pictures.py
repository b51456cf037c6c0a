"""Pictures of publications and models: histograms, errors of ranges, recovered cells, and clusters."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.domain import Axis
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.sensing import SensingError
from hubbub.query.answer.printable import clean
from hubbub.report.plot import EDGE, FILL, MOST_NAMES, new_axes

Array = np.ndarray[Any, Any]
Line = Sequence[tuple[int, float]]
"""Cells, and the mean variance of all their ranges."""

_COLOURS = ("#222222", "#66ccee", "#ee6677", "#aa3377", "#4477aa", "#228833")  # told apart by any eye
_MARKS = "osD^v*"
_ABOVE = 1.7
"""How far above a line its law is drawn."""


def plot_ranges(
    lines: Mapping[str, Line],
    *,
    even: Collection[str] = (),
    epsilon: float = 1,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """A line for each strategy, those in ``even`` dashed; returns the axes.

    O(n) and O(log³ n) are drawn above the first line and above the first of the dashed ones, through their last points.
    Both axes are logarithmic: powers are straight lines, and what grows like a power of a logarithm bends down.
    """
    axes = new_axes() if ax is None else ax
    for place, (name, line) in enumerate(lines.items()):
        axes.plot(
            [cells for cells, _ in line],
            [variance for _, variance in line],
            color=_COLOURS[place % len(_COLOURS)],
            marker=_MARKS[place % len(_MARKS)],
            markersize=4,
            linewidth=1.2 if name in even else 1.8,
            linestyle="--" if name in even else "-",
            label=name,
        )
    first = next(iter(lines.values()))
    _law(axes, first, float, "O(n)")
    for name in lines:
        if name in even:
            _law(axes, lines[name], lambda cells: math.log(cells) ** 3, "O(log³ n)")
            break
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("n, the number of cells")
    axes.set_ylabel("mean variance of a range's answer (rows²)")
    axes.set_title(title or f"All ranges of n cells, pure ε = {epsilon:g}: error against n")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _law(axes: Any, line: Line, grows: Any, name: str) -> None:
    """A law through a point above the last of a line."""
    last, variance = line[-1]
    cells = [many for many, _ in line]
    drawn = [_ABOVE * variance * grows(many) / grows(last) for many in cells]
    axes.plot(cells, drawn, color=EDGE, linestyle=":", linewidth=1.2)
    axes.annotate(name, (last, drawn[-1]), xytext=(6, 0), textcoords="offset points", va="center", color=EDGE)


_CURVE_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")  # told apart by any eye
_CURVE_MARKS = "os^Dv*"


def plot_sensing(errors: Sequence[SensingError], *, title: str | None = None, ax: Any = None) -> Any:
    """Error against the number of cells, a line for each sparsity, beside the flat histogram; returns the axes.

    Both axes are logarithmic: √n is a straight line, and what grows like the root of a logarithm is nearly level.
    """
    axes = new_axes() if ax is None else ax
    for place, kept in enumerate(sorted({one.sparsity for one in errors})):
        row = sorted((one for one in errors if one.sparsity == kept), key=lambda one: one.cells)
        axes.plot(
            [one.cells for one in row],
            [one.recovered for one in row],
            color=_CURVE_COLOURS[place % len(_CURVE_COLOURS)],
            marker=_CURVE_MARKS[place % len(_CURVE_MARKS)],
            label=f"recovered, {kept} cells not empty",
        )
    flat: dict[int, list[float]] = {}
    for one in errors:
        flat.setdefault(one.cells, []).append(one.flat)
    cells = sorted(flat)
    means = [sum(flat[size]) / len(flat[size]) for size in cells]
    axes.plot(cells, means, color=EDGE, linestyle="--", label="noise on every cell")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("cells")
    axes.set_ylabel("root of the summed squared error")
    axes.set_title(title or "A sparse histogram from few random sums")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


_SHADES = "Blues"


def plot_published(published: Published, *, title: str | None = None, ax: Any = None) -> Any:
    """Draw all cells; returns matplotlib's axes. Bars have whiskers of one standard deviation, where there is one.

    Nothing but the release is drawn, so the picture is as public as it is.
    """
    axes, note = _draw_cells(published.domain.axes, published.cells, published.deviations, ax=ax)
    axes.set_title(_literally(title) if title is not None else f"{_literally(published.strategy.name)}, with noise")
    told = f"{published.price}, entry {published.entry}; {note}"
    axes.annotate(told, xy=(0, -0.2), xycoords="axes fraction", fontsize=8, color="#555555")
    return axes


def plot_marginal(marginal: Marginal, *, title: str | None = None, ax: Any = None) -> Any:
    """Draw one marginal as ``plot_published`` draws cells; returns matplotlib's axes."""
    axes, note = _draw_cells(marginal.axes, marginal.values, marginal.deviation, ax=ax)
    named = " by ".join(_literally(axis.name) for axis in marginal.axes)
    axes.set_title(_literally(title) if title is not None else f"{named or 'all rows'}, with noise")
    axes.annotate(note, xy=(0, -0.2), xycoords="axes fraction", fontsize=8, color="#555555")
    return axes


def _draw_cells(domain: Sequence[Axis], cells: Array, deviations: Array | None, *, ax: Any) -> tuple[Any, str]:
    """Draw cells over one axis or two; return matplotlib's axes and a note about their errors."""
    if len(domain) > 2:
        raise ParameterError("release", "of one or two columns for a picture; sum over the others first", len(domain))
    axes = new_axes() if ax is None else ax
    return axes, (_map if len(domain) == 2 else _bars)(domain, cells, deviations, axes)


def _bars(domain: Sequence[Axis], cells: Array, deviations: Array | None, axes: Any) -> str:
    values = np.atleast_1d(cells)
    places = np.arange(len(values))
    axes.bar(places, values, color=FILL, width=0.8 if len(values) <= MOST_NAMES else 1.0)
    if deviations is not None:
        small = 3 if len(values) <= MOST_NAMES else 0
        bars = {"yerr": np.atleast_1d(deviations), "capsize": small}
        axes.errorbar(places, values, fmt="none", ecolor=EDGE, elinewidth=1.0, **bars)
    _name_ticks(axes.set_xticks, domain[0].labels if domain else ["all rows"])
    axes.axhline(0, color=EDGE, linewidth=0.8)
    axes.set_xlabel(_literally(domain[0].name) if domain else "")
    axes.set_ylabel("rows")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return "no error bars: errors depend on the data" if deviations is None else "whiskers: one standard deviation"


def _map(domain: Sequence[Axis], cells: Array, deviations: Array | None, axes: Any) -> str:
    rows, columns = domain
    drawn = axes.imshow(cells, aspect="auto", cmap=_SHADES, interpolation="nearest")
    axes.figure.colorbar(drawn, ax=axes, label="rows")
    _name_ticks(axes.set_yticks, rows.labels, most=MOST_NAMES // 2)
    _name_ticks(axes.set_xticks, columns.labels, most=MOST_NAMES // 2)
    axes.set_ylabel(_literally(rows.name))
    axes.set_xlabel(_literally(columns.name))
    if deviations is None:
        return "no error is told: it depends on the data, or on too much work"
    return f"standard deviation of a cell: {float(deviations.min()):.4g} to {float(deviations.max()):.4g}"


def _name_ticks(ticks: Any, labels: Any, *, most: int = MOST_NAMES) -> None:
    """All labels where they are few, else some of them."""
    every = -(-2 * len(labels) // most) if len(labels) > most else 1
    places = list(range(0, len(labels), every))
    ticks(places, [_literally(str(labels[place])) for place in places])


def _literally(text: str) -> str:
    """Other people's words, without what a drawing would read as mathematics."""
    return clean(text).replace("$", r"\$")


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
