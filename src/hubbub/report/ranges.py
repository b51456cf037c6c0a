"""A picture of the error of range queries by the number of cells."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hubbub.report.plot import EDGE, new_axes

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
