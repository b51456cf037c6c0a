"""A map as a picture: cells or leaves, one panel for each moment, or flows with their arrows."""

import math
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

import numpy as np

from hubbub.errors import MissingExtra, ParameterError
from hubbub.publish.release.map_margins import Path
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.layer import Array
from hubbub.report.map_data import CellMap, FlowMap, Zones
from hubbub.report.map_outlines import Line
from hubbub.report.map_page import aspect
from hubbub.report.map_scale import ColourScale, scale_for

STOPS = ("#f6f7f9", "#c6dbe8", "#74aece", "#3078ad", "#14467c", "#081e42")
"""The page's colours, from 0 to the top."""
ACCENT, INK, QUIET, SEA = "#c2410c", "#1c2733", "#566472", "#eef1f4"
_MOST_PANELS, _ARROWS, _MOST_OUTLINED = 24, 12, 6_000
_SHOWN = 110


def write(published: Published, shown: CellMap | FlowMap, path: Path, *, lines: Sequence[Line], title: str) -> None:
    """The file."""
    figure = new_figure(*_size(shown))
    if isinstance(shown, FlowMap):
        draw_flows(figure.subplots(1, 2 if shown.chosen is not None else 1, squeeze=False)[0], shown, lines)
    else:
        many = len(shown.moments)
        if many > _MOST_PANELS:
            raise ParameterError("release", f"at most {_MOST_PANELS} moments for a picture; to_html has a slider", many)
        across = math.ceil(math.sqrt(many * 1.5)) if many > 1 else 1
        rows = figure.subplots(math.ceil(many / across), across, squeeze=False, sharex=True, sharey=True).reshape(-1)
        for axes in rows[many:]:
            axes.set_visible(False)
        draw_cells(rows[:many], shown, lines)
    figure.suptitle(literally(title), x=0.02, ha="left", fontsize=12, fontweight="bold", color=INK)
    told = f"noisy counts: {published.strategy.name}, {published.price}, entry {published.entry}"
    figure.supxlabel(literally(told), x=0.02, ha="left", fontsize=8, color=QUIET)
    figure.savefig(File(path), dpi=_SHOWN, facecolor="white", format="png")


def new_figure(wide: float, high: float) -> Any:
    """A figure that no window waits for."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtra("matplotlib", "plot") from missing
    return Figure(figsize=(wide, high), layout="constrained")


def _size(shown: CellMap | FlowMap) -> tuple[float, float]:
    west, south, east, north = shown.plane.bounds
    tall = min(2.0, max(0.4, (north - south) * aspect(shown) / (east - west)))
    if isinstance(shown, FlowMap):
        return (12.0, 5.2 * tall + 1.2) if shown.chosen is not None else (7.0, 6.0 * tall + 1.0)
    return (7.5, 6.0 * tall + 1.0) if len(shown.moments) == 1 else (11.0, 7.5 * tall + 1.0)


def draw_cells(
    panels: Sequence[Any],
    shown: CellMap,
    lines: Sequence[Line] = (),
    *,
    scale: ColourScale | None = None,
    bar: bool = True,
) -> Any:
    """One panel for each moment, all on one scale; returns the last image."""
    density = shown.counts / shown.sizes
    used = scale or scale_for(density, shown.sizes)
    boxes, image = shown.boxes, None
    west, south, east, north = shown.plane.bounds
    columns, rows = int(boxes[:, 1].max()), int(boxes[:, 3].max())
    outlined = shown.partition and len(boxes) <= _MOST_OUTLINED
    for axes, name, values in zip(panels, shown.moments, used.shares(density), strict=True):
        picture = np.zeros((rows, columns))
        for (left, right, low, high), value in zip(boxes.tolist(), values.tolist(), strict=True):
            picture[low:high, left:right] = value
        image = axes.imshow(
            picture,
            extent=(west, east, south, north),
            origin="lower",
            cmap=shades(),
            vmin=0,
            vmax=1,
            interpolation="nearest",
            aspect=aspect(shown),
        )
        if outlined:
            _rectangles(axes, shown.zones.shapes)
        if shown.moved_by is not None:
            axes.set_title(literally(f"{shown.moved_by} {name}"), fontsize=9, color=INK)
        _furnish(axes, shown, lines, labels=len(shown.moments) == 1)
    if bar:
        unit = "count for each cell of the grid" if shown.partition else "count in a cell"
        colour_bar(image, panels, used, unit)
    return image


def draw_flows(panels: Sequence[Any], shown: FlowMap, lines: Sequence[Line] = ()) -> None:
    """All who arrive; and beside it, where they come from who go to the chosen zone. Arrows for the largest flows."""
    arriving = shown.counts.sum(axis=0)
    told = [(shown.destinations, arriving, f"everybody, by {shown.destinations.name}")]
    if shown.chosen is not None:
        told.append(
            (
                shown.origins,
                shown.counts[:, shown.chosen],
                f"by {shown.origins.name}: those with {shown.destinations.name} in the marked place",
            )
        )
    for place, (axes, (zones, values, name)) in enumerate(zip(panels, told, strict=True)):
        scale = scale_for(values)
        image = _zones(axes, zones, values, scale)
        _furnish(axes, shown, lines, labels=True)
        axes.set_aspect(aspect(shown))
        axes.set_title(literally(name), fontsize=10, loc="left", color=INK)
        if shown.chosen is not None:
            _mark(axes, shown.destinations, shown.chosen)
        chosen = shown.chosen if place else None
        for start, end, size in largest(shown, chosen, _ARROWS if place or shown.chosen is None else 0):
            axes.annotate(
                "",
                xy=shown.destinations.centres[end],
                xytext=shown.origins.centres[start],
                arrowprops={
                    "arrowstyle": f"-|>,head_width={0.12 + 0.12 * size:.2f},head_length={0.25 + 0.25 * size:.2f}",
                    "connectionstyle": "arc3,rad=0.18",
                    "color": ACCENT,
                    "alpha": 0.85,
                    "linewidth": 0.5 + 1.3 * size,
                    "shrinkA": 0,
                    "shrinkB": 9,
                },
            )
        colour_bar(image, [axes], scale, "count")


def largest(shown: FlowMap, chosen: int | None, most: int) -> list[tuple[int, int, float]]:
    """Origin, destination and size beside the largest, of flows between zones that do not touch; smallest first.

    Where intervals are known, none that may be noise alone.
    """
    far = ~_touching(shown.origins, shown.destinations)
    clear = shown.counts > (0 if shown.margins is None else shown.margins)
    counts = np.where(far & clear, shown.counts, 0)
    if chosen is not None:
        counts = np.where(np.arange(counts.shape[1]) == chosen, counts, 0)
    order = np.argsort(counts, axis=None)[::-1][:most]
    order = order[counts.reshape(-1)[order] > 0][::-1]
    top = float(counts.max()) or 1.0
    starts, ends = np.unravel_index(order, counts.shape)
    sizes = np.sqrt(counts.reshape(-1)[order] / top)
    return list(zip(starts.tolist(), ends.tolist(), sizes.tolist(), strict=True))


def _touching(one: Zones, two: Zones) -> Array:
    """Test which rectangles share an edge, a corner or more; points touch themselves alone."""
    first, second = one.shapes[:, np.newaxis], two.shapes
    if first.shape[2] == 2:
        return np.asarray(np.all(first == second, axis=2))
    room = 1e-9 * np.ptp(second)
    found = (first[..., :2] <= second[..., 2:] + room) & (second[..., :2] <= first[..., 2:] + room)
    return np.asarray(np.all(found, axis=2))


def colour_bar(image: Any, panels: Sequence[Any], scale: ColourScale, unit: str) -> None:
    """With the counts of its colours, on whichever scale."""
    marks = np.array([0, 0.03, 0.12, 0.4, 1.0]) if scale.name != "even" else np.array([0, 0.25, 0.5, 0.75, 1.0])
    bar = panels[0].figure.colorbar(image, ax=list(panels), shrink=0.7, ticks=scale.shares(marks * scale.top), pad=0.02)
    names = {"even": "", "root": " (root scale)", "log": " (log scale)"}
    bar.ax.set_yticklabels(["0 or less", *(f"{float(f'{mark * scale.top:.2g}'):,.6g}" for mark in marks[1:])])
    bar.set_label(unit + names[scale.name], color=INK)
    bar.outline.set_edgecolor(QUIET)


def shades() -> Any:
    """The page's colours for matplotlib."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("counts", STOPS)


def _rectangles(axes: Any, shapes: Array, **style: Any) -> None:
    from matplotlib.collections import PolyCollection

    corners = shapes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
    look: dict[str, Any] = {"facecolors": "none", "edgecolors": INK, "linewidths": 0.4, "alpha": 0.55} | style
    axes.add_collection(PolyCollection(list(corners), **look))


def _zones(axes: Any, zones: Zones, values: Array, scale: ColourScale) -> Any:
    shares = scale.shares(values)
    if zones.grid is not None:
        wide, high = zones.grid
        (west, south), (east, north) = zones.shapes[:, :2].min(axis=0), zones.shapes[:, 2:].max(axis=0)
        return axes.imshow(
            shares.reshape(high, wide),
            extent=(west, east, south, north),
            origin="lower",
            cmap=shades(),
            vmin=0,
            vmax=1,
            interpolation="nearest",
        )
    sizes = 30 + 700 * np.clip(values, 0, None) / scale.top
    drawn = axes.scatter(*zones.shapes.T, s=sizes, c=shares, cmap=shades(), vmin=0, vmax=1, edgecolors=INK, zorder=3)
    for name, (x, y), size in zip(zones.names or (), zones.shapes.tolist(), sizes.tolist(), strict=True):
        below = (0, -6 - math.sqrt(size) / 2)
        axes.annotate(
            literally(name),
            (x, y),
            xytext=below,
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
            zorder=4,
        )
    return drawn


def _mark(axes: Any, zones: Zones, chosen: int) -> None:
    if zones.grid is not None:
        _rectangles(axes, zones.shapes[[chosen]], edgecolors=ACCENT, linewidths=2.2, alpha=1.0, zorder=5)
    else:
        axes.scatter(*zones.shapes[chosen], s=320, facecolors="none", edgecolors=ACCENT, linewidths=2.2, zorder=5)


def _furnish(axes: Any, shown: CellMap | FlowMap, lines: Sequence[Line], *, labels: bool) -> None:
    west, south, east, north = shown.plane.bounds
    for line in lines:
        axes.plot(*zip(*line, strict=True), color=INK, linewidth=0.9, alpha=0.8)
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    axes.set_facecolor(SEA)
    axes.tick_params(labelsize=8, colors=QUIET)
    axes.locator_params(nbins=5 if labels else 3)
    for side in axes.spines.values():
        side.set_color(QUIET)
        side.set_linewidth(0.6)
    if labels:
        axes.set_xlabel(literally(shown.plane.x), fontsize=9, color=QUIET)
        axes.set_ylabel(literally(shown.plane.y), fontsize=9, color=QUIET)


def literally(text: str) -> str:
    """Other people's words, without what a drawing would read as mathematics."""
    return text.replace("$", r"\$")
