"""Small pictures as SVG text, for pages that hold everything themselves: bars, a heat map, curves on two log scales.

Labels are other people's words: every text is escaped.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from hubbub.publish.strategies.layer import Array

WIDTH, HEIGHT = 900, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 12, 46
_INK, _GRID, _TRUTH = "#1c2733", "#e1e6eb", "#d1682f"
COLOURS = ("#4477aa", "#cc6677", "#228833", "#aa8833", "#66ccee", "#aa3377", "#777777")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "4 4", "1 2", "10 4")


def bars(
    values: Array,
    labels: Sequence[str],
    *,
    deviations: Array | None = None,
    truth: Array | None = None,
    about: str = "",
) -> str:
    """A bar for each value, with a whisker of one standard deviation and a dot for the truth, where there are any."""
    around = np.zeros(len(values)) if deviations is None else deviations
    ends = [values - around, values + around, *([] if truth is None else [truth])]
    low, high = min(0.0, *(float(one.min()) for one in ends)), max(0.0, *(float(one.max()) for one in ends))
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    step = (WIDTH - _LEFT - _RIGHT) / len(values)

    def up(value: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (high - value) / ((high - low) or 1)

    parts = [_gridline(up(tick), f"{tick:,.6g}") for tick in ticks]
    for place, value in enumerate(values):
        left, middle = _LEFT + step * (place + 0.1), _LEFT + step * (place + 0.5)
        top, bottom = sorted((up(float(value)), up(0.0)))
        hint = escape(f"{labels[place]}: {float(value):,.6g}" + (f" ± {around[place]:,.4g}" if around[place] else ""))
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(0.5, step * 0.8):.1f}" height="{bottom - top:.1f}" '
            f'fill="{COLOURS[0]}"><title>{hint}</title></rect>'
        )
        if deviations is not None:
            parts.append(
                f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{up(float(value + around[place])):.1f}" '
                f'y2="{up(float(value - around[place])):.1f}" stroke="{_INK}" stroke-width="1"/>'
            )
        if truth is not None:
            parts.append(f'<circle cx="{middle:.1f}" cy="{up(float(truth[place])):.1f}" r="2.4" fill="{_TRUTH}"/>')
    every = max(1, math.ceil(len(values) * max(map(len, labels)) * 6.4 / (WIDTH - _LEFT - _RIGHT)))
    for place in range(0, len(values), every):
        parts.append(_text(_LEFT + step * (place + 0.5), HEIGHT - _BOTTOM + 16, labels[place], anchor="middle"))
    return _svg(parts, about)


def heat(values: Array, rows: Sequence[str], columns: Sequence[str], *, about: str = "") -> str:
    """A square for each value, darker where there is more; negative ones are as pale as zero."""
    most = float(values.max()) or 1.0
    left = 12 + 6.4 * min(24, max(map(len, rows)))
    wide, tall = (WIDTH - left - _RIGHT) / len(columns), (HEIGHT + 60 - _TOP - _BOTTOM) / len(rows)
    parts = []
    for at, row in enumerate(values):
        for place, value in enumerate(row):
            hint = escape(f"{rows[at]}, {columns[place]}: {float(value):,.6g}")
            parts.append(
                f'<rect x="{left + place * wide:.1f}" y="{_TOP + at * tall:.1f}" width="{wide + 0.3:.1f}" '
                f'height="{tall + 0.3:.1f}" fill="{_shade(max(0.0, float(value)) / most)}"><title>{hint}</title></rect>'
            )
    for at in range(0, len(rows), max(1, math.ceil(12 / tall))):
        parts.append(_text(left - 6, _TOP + (at + 0.5) * tall + 4, rows[at][:24], anchor="end"))
    every = max(1, math.ceil(max(map(len, columns)) * 6.4 / wide))
    for place in range(0, len(columns), every):
        parts.append(_text(left + (place + 0.5) * wide, HEIGHT + 60 - _BOTTOM + 16, columns[place], anchor="middle"))
    return _svg(parts, about, height=HEIGHT + 60)


def curves(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    dots: Sequence[tuple[float, float]] = (),
    across: str = "",
    up: str = "",
    about: str = "",
) -> str:
    """A line for each name over two logarithmic scales, and dots for what was measured."""
    points = [point for line in lines.values() for point in line] + list(dots)
    points = [(x, y) for x, y in points if x > 0 and y > 0]
    if not points:
        return ""
    xs, ys = zip(*points, strict=True)
    x_ends, y_ends = _decades(min(xs), max(xs)), _decades(min(ys), max(ys))
    right = WIDTH - 190

    def at(x: float, y: float) -> tuple[float, float]:
        over = (math.log10(x) - x_ends[0]) / (x_ends[1] - x_ends[0])
        above = (math.log10(y) - y_ends[0]) / (y_ends[1] - y_ends[0])
        return _LEFT + (right - _LEFT) * over, HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * above

    left = 10 ** x_ends[0]
    parts = [_gridline(at(left, tick)[1], f"{tick:,g}", right=right) for tick in _log_ticks(*y_ends)]
    for tick in _log_ticks(*x_ends):
        parts.append(_text(at(tick, 10 ** y_ends[0])[0], HEIGHT - _BOTTOM + 16, f"{tick:,g}", anchor="middle"))
    for number, (name, line) in enumerate(lines.items()):
        colour, dash = COLOURS[number % len(COLOURS)], _DASHES[number % len(_DASHES)]
        shown = [at(x, y) for x, y in line if x > 0 and y > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in shown)
        drawn = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{path}" {drawn}/>')
        level = _TOP + 14 + 20 * number
        parts.append(f'<line x1="{right + 14}" x2="{right + 44}" y1="{level}" y2="{level}" {drawn}/>')
        parts.append(_text(right + 50, level + 4, name[:20], anchor="start"))
    for x, y in dots:
        if x > 0 and y > 0:
            cx, cy = at(x, y)
            parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="3.4" fill="{_TRUTH}"/>')
    if dots:
        level = _TOP + 14 + 20 * len(lines)
        parts.append(f'<circle cx="{right + 29}" cy="{level}" r="3.4" fill="{_TRUTH}"/>')
        parts.append(_text(right + 50, level + 4, "true error", anchor="start"))
    parts.append(_text((_LEFT + right) / 2, HEIGHT - 8, across, anchor="middle"))
    parts.append(_text(8, _TOP + 4, up, anchor="start"))
    return _svg(parts, about)


def _svg(parts: Sequence[str], about: str, *, height: int = HEIGHT) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" role="img" aria-label="{escape(about, quote=True)}">'
    return "\n".join([head, *parts, "</svg>"])


def _text(x: float, y: float, words: str, *, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _gridline(y: float, words: str, *, right: float = WIDTH - _RIGHT) -> str:
    line = f'<line x1="{_LEFT}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>'
    return line + _text(_LEFT - 6, y + 4, words, anchor="end")


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers that cover both ends."""
    width = (high - low) or 1.0
    step = 10.0 ** math.floor(math.log10(width / 4))
    step *= next(times for times in (1, 2, 5, 10) if width / (step * times) <= 6)
    return [place * step for place in range(math.floor(low / step), math.ceil(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten between two logarithms; where there are few of them, twos and fives as well."""
    times = (1, 2, 5) if high - low < 2.5 else (1,)
    tens = range(math.floor(low), math.ceil(high) + 1)
    found = [one * 10.0**ten for ten in tens for one in times]
    return [tick for tick in found if low <= math.log10(tick) <= high]


def _decades(low: float, high: float) -> tuple[float, float]:
    """Logarithms of ends a little beyond the data, and never the same."""
    first, last = math.log10(low), math.log10(high)
    room = max(0.08, 0.05 * (last - first))
    return first - room, last + room


def _shade(share: float) -> str:
    """From almost white to dark blue: also in grey it rises."""
    ends = ((244, 246, 248), (24, 60, 110))
    red, green, blue = (round(low + (high - low) * share) for low, high in zip(*ends, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"
