"""A picture of the recovery of a sparse histogram from few random sums."""

from collections.abc import Sequence
from typing import Any

from hubbub.publish.strategies.sensing import SensingError
from hubbub.report.plot import EDGE, new_axes

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")  # told apart by any eye
_MARKS = "os^Dv*"


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
            color=_COLOURS[place % len(_COLOURS)],
            marker=_MARKS[place % len(_MARKS)],
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
