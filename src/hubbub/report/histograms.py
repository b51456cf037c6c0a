"""A publication as a picture: bars with error bars for one axis, a heat map for two."""

from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.release.published import Published
from hubbub.query.answer.render import clean
from hubbub.report.plot import EDGE, FILL, MOST_NAMES, new_axes

_SHADES = "Blues"


def plot_published(published: Published, *, title: str | None = None, ax: Any = None) -> Any:
    """Draw all cells; returns matplotlib's axes. Bars have whiskers of one standard deviation, where there is one.

    Nothing but the release is drawn, so the picture is as public as it is.
    """
    dimensions = len(published.domain.axes)
    if dimensions > 2:
        raise ParameterError("release", "one or two axes for a picture; sum over the others first", dimensions)
    axes = new_axes() if ax is None else ax
    note = _bars(published, axes) if dimensions == 1 else _map(published, axes)
    axes.set_title(_literally(title) if title is not None else f"{_literally(published.strategy.name)}, with noise")
    told = f"{published.price}, entry {published.entry}; {note}"
    axes.annotate(told, xy=(0, -0.2), xycoords="axes fraction", fontsize=8, color="#555555")
    return axes


def _bars(published: Published, axes: Any) -> str:
    (axis,) = published.domain.axes
    values, deviations = published.cells, published.deviations
    places = np.arange(len(values))
    axes.bar(places, values, color=FILL, width=0.8 if len(values) <= MOST_NAMES else 1.0)
    if deviations is not None:
        small = 3 if len(values) <= MOST_NAMES else 0
        axes.errorbar(places, values, yerr=deviations, fmt="none", ecolor=EDGE, elinewidth=1.0, capsize=small)
    _name_ticks(axes.set_xticks, axis.labels)
    axes.axhline(0, color=EDGE, linewidth=0.8)
    axes.set_xlabel(_literally(axis.name))
    axes.set_ylabel("rows")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return "no error bars: errors depend on the data" if deviations is None else "whiskers: one standard deviation"


def _map(published: Published, axes: Any) -> str:
    rows, columns = published.domain.axes
    drawn = axes.imshow(published.cells, aspect="auto", cmap=_SHADES, interpolation="nearest")
    axes.figure.colorbar(drawn, ax=axes, label="rows")
    _name_ticks(axes.set_yticks, rows.labels, most=MOST_NAMES // 2)
    _name_ticks(axes.set_xticks, columns.labels, most=MOST_NAMES // 2)
    axes.set_ylabel(_literally(rows.name))
    axes.set_xlabel(_literally(columns.name))
    deviations = published.deviations
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
