"""One release or one column of an answer as a picture: bars with the error bars that the noise deserves."""

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hubbub.errors import MissingExtra, ParameterError
from hubbub.gate.release import CONFIDENCE, Release
from hubbub.policy.kinds import Type
from hubbub.query.answer.answer import Answer
from hubbub.query.answer.columns import PLAIN
from hubbub.query.answer.printable import clean
from hubbub.query.expression import columns_of
from hubbub.query.question import noisy_name

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
    """Axes of a figure of their own, which no window waits for. A notebook shows them as a picture.

    Nothing else would show them there: the figure belongs to nobody but the axes, and pyplot does not know it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtra("matplotlib", "plot") from missing
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes._repr_png_ = partial(_write_png, figure)  # type: ignore[attr-defined]  # what IPython looks for
    return axes


def _write_png(figure: Any) -> bytes:
    """Draw a figure, with all that stands outside its axes."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    return picture.getvalue()


def plot_answer(answer: Answer, *, column: str | None = None, title: str | None = None, ax: Any = None) -> Any:
    """Draw one noisy column, the first unless another is named, over the keys; returns matplotlib's axes.

    Missing numbers leave a gap. Nothing but the answer is drawn, so the picture is as public as it is.
    """
    noisy, keys = _places(answer)
    named = {answer.columns[place]: place for place in noisy}
    if not named or (column is not None and column not in named):
        raise ParameterError("column", f"a noisy number of the answer: {', '.join(named) or 'there is none'}", column)
    place = noisy[0] if column is None else named[column]
    axes = new_axes() if ax is None else ax
    values, lows, highs = (
        np.array([np.nan if row[place] is None else float(row[place]) for row in rows], dtype=np.float64)
        for rows in (answer.rows, answer.lows, answer.highs)
    )
    places = np.arange(len(values))
    axes.bar(places, values, color=FILL)
    certain = ~(np.isnan(values) | np.isnan(lows) | np.isnan(highs))
    if certain.any():
        around = np.maximum(0.0, np.array([values - lows, highs - values])[:, certain])
        axes.errorbar(
            *(places[certain], values[certain]),
            yerr=around,
            fmt="none",
            ecolor=EDGE,
            elinewidth=1.1,
            capsize=3 if len(values) <= MOST_NAMES else 0,
        )
    _name(axes, [", ".join(_text(row[key]) for key in keys) for row in answer.rows] if keys else [])
    axes.axhline(0, color=EDGE, linewidth=0.8)
    axes.set_ylabel(_literally(answer.columns[place]))
    axes.set_title(_literally(title) if title is not None else f"{_literally(answer.columns[place])}, with noise")
    plan = answer.plan
    price = f"ε = {float(answer.price):.6g}" + (f", δ = {float(plan.delta):.3g}" if plan.delta else "")
    note = f"bars: {answer.confidence:.0%} intervals" if certain.any() else "no error bars: computed from noisy numbers"
    axes.annotate(
        f"{price}, entry {answer.entry}; {note}", xy=(0, -0.2), xycoords="axes fraction", fontsize=8, color="#555555"
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _places(answer: Answer) -> tuple[list[int], list[int]]:
    """The outputs that are noisy numbers, and those that show keys alone."""
    noisy, keys = [], []
    measured = {noisy_name(place) for place in range(len(answer.plan.question.asked))}
    for place, output in enumerate(answer.plan.question.outputs):
        if columns_of(output.expression) & measured:
            if output.expression.kind.type in {Type.INTEGER, Type.REAL} and answer.nesting(place) == PLAIN:
                noisy.append(place)
        else:
            keys.append(place)
    return noisy, keys


def _name(axes: Any, names: list[str]) -> None:
    if not names or len(names) > MOST_NAMES:
        axes.set_xticks([])
        return
    axes.set_xticks(range(len(names)), [_literally(name) for name in names])
    if max(map(len, names)) * len(names) > 60:
        axes.tick_params(axis="x", rotation=45)


def _text(value: Any) -> str:
    return "missing" if value is None else str(value)


def _literally(text: str) -> str:
    """Other people's words, without what a drawing would read as mathematics."""
    return clean(text).replace("$", r"\$")
