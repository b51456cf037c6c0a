"""One release as a picture: bars with the error bars that the noise deserves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.errors import MissingExtra, ParameterError
from hubbub.gate.release import CONFIDENCE, Release

FILL, EDGE = "#4477aa", "#222222"  # told apart by any eye, and in grey
MOST_NAMES = 40


def plot_release(
    release: Release,
    *,
    names: Sequence[object] | None = None,
    title: str | None = None,
    confidence: float = CONFIDENCE,
    ax: Any = None,
) -> Any:
    """Draw a number or a vector with its error bars; returns matplotlib's axes.

    Below it stands what it cost. Nothing but released values is drawn, so the picture is as public as they are.
    """
    axes = new_axes() if ax is None else ax
    values = np.atleast_1d(np.asarray(release.value, dtype=np.float64)).ravel()
    places = np.arange(len(values))
    if names is not None and len(names) != len(values):
        raise ParameterError("names", f"as many as there are values ({len(values)})", len(names))
    bars: dict[str, Any] = {}
    if release.why_no_interval is None:
        around = release.interval(confidence)
        low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)).ravel() for end in (around.low, around.high))
        bars = {"yerr": np.array([values - low, high - values]), "capsize": 3 if len(values) <= MOST_NAMES else 0}
    axes.bar(places, values, color=FILL, ecolor=EDGE, error_kw={"elinewidth": 1.1}, **bars)
    if names is not None and len(values) <= MOST_NAMES:
        axes.set_xticks(places, [str(name) for name in names])
        if max(len(str(name)) for name in names) * len(names) > 60:
            axes.tick_params(axis="x", rotation=45)
    axes.axhline(0, color=EDGE, linewidth=0.8)
    axes.set_ylabel(release.label)
    axes.set_title(title or f"{release.label}, with noise")
    reason = release.why_no_interval
    note = f"bars: {confidence:.0%} intervals" if reason is None else "no error bars: they would depend on the data"
    axes.annotate(
        f"{type(release.mechanism).__name__}, {release.loss}, {release.event.neighbors}; {note}",
        xy=(0, -0.2),
        xycoords="axes fraction",
        fontsize=8,
        color="#555555",
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def new_axes() -> Any:
    """Axes of a figure of their own, which no window waits for."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtra("matplotlib", "plot") from missing
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    return figure.add_subplot()
