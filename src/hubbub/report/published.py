"""A publication as one page that a reader can keep: the data published, the margins of error, and the cost.

Everything on it is public: noisy numbers, their strategy and the price. The truth is on it only where a file of it was
handed in, for data that was generated.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np

from hubbub.gate.release import note_age
from hubbub.publish.release import spread
from hubbub.publish.release.published import Estimate, Published
from hubbub.publish.strategies.layer import Array
from hubbub.publish.terms import describe_contribution
from hubbub.query.answer.printable import clean
from hubbub.report import charts

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; border-top: 1px solid #d5dbe1; padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: right; padding: .3rem; vertical-align: top; }
td:first-child, th:first-child { text-align: left; }
th { border-bottom: 2px solid #9fb0c0; } tr + tr td { border-top: 1px solid #e6eaee; }
pre { background: #f4f6f8; padding: .8rem; overflow-x: auto; font-size: .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
svg text { font: 11px system-ui, sans-serif; fill: #1c2733; } .small { color: #5b6b7a; font-size: .85rem; }
.truth { color: #b5531d; }
"""
_MOST_BARS, _MOST_ROWS, _MOST_COLUMNS = 160, 60, 160

Curve = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Root mean square errors by the number of cells, known before anything was spent; None where they are not."""

    name: str
    curve: Curve | None


def page_of(
    published: Published,
    *,
    comparisons: Sequence[Comparison] = (),
    truth: Array | None = None,
    title: str = "Published",
    seconds: float | None = None,
    made: datetime | None = None,
) -> str:
    """The whole page, with nothing outside it."""
    moment = made or datetime.now(UTC)
    took = f", in {seconds:.1f} s" if seconds is not None else ""
    names = " × ".join(f"{clean(axis.name)} ({len(axis.labels):,})" for axis in published.domain.axes)
    one, again = published.prepared.terms.contribution, note_age(published.stored, before=", ")
    lead = (
        f"{published.domain.size:,} cells: {names}. Strategy {clean(published.strategy.name)}, {published.price}, "
        f"entry {published.entry} of account “{clean(published.account)}”{again}. Protected: everything that one unit "
        f"adds, at most {describe_contribution(one)} ({one.neighbors.value} neighbours). Intervals and errors are "
        "about what counts then: what these limits cut off is beside them."
    )
    after = (
        f"The cells were made {', '.join(published.steps)} afterwards, which costs nothing." if published.steps else ""
    )
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>',
        f"<body><h1>{escape(title)}</h1><p>{escape(lead)}</p>",
        f"<p>{escape(after)}</p>" if after else "",
        f'<p class="small">{moment:%Y-%m-%d %H:%M} UTC{took}</p>',
        *_cells(published, truth),
        *_ranges(published, truth),
        *_errors(published, comparisons, truth),
        "<h2>Certificate</h2><p>From its events anybody can recompute the loss; from strategy and contribution, the "
        "events.</p>",
        f"<pre>{escape(json.dumps(json.loads(published.certificate()), indent=1, ensure_ascii=False))}</pre>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part)


def _cells(published: Published, truth: Array | None) -> list[str]:
    """A picture for each axis, and a map of the first two."""
    domain, parts = published.domain, ["<h2>Cells</h2>"]
    note = "whiskers: one standard deviation" if not published.steps else "no whiskers: errors depend on the data"
    told = "; <span class='truth'>dots: the truth of this generated data</span>" if truth is not None else ""
    for place, axis in enumerate(domain.axes):
        others = tuple(other for other in range(len(domain.axes)) if other != place)
        starts = _starts(len(axis.labels), _MOST_BARS)
        values, names = np.add.reduceat(published.cells.sum(axis=others), starts), _names(axis.labels, starts)
        deviations = _deviations(published, place, starts)
        real = None if truth is None else np.add.reduceat(truth.sum(axis=others), starts)
        step = "" if len(starts) == len(axis.labels) else f", {math.ceil(len(axis.labels) / len(starts))} cells a bar"
        over = "" if not others else ", summed over the other axes"
        parts.append(f'<p class="small">{escape(clean(axis.name))}{over}{step}; {note}{told}</p>')
        parts.append(charts.bars(values, names, deviations=deviations, truth=real, about=f"Cells by {axis.name}"))
    if len(domain.axes) >= 2:
        matrix = published.cells.sum(axis=tuple(range(2, len(domain.axes))))
        rows, columns = domain.axes[0], domain.axes[1]
        if len(rows.labels) > len(columns.labels):
            matrix, rows, columns = matrix.T, columns, rows
        down, across = _starts(len(rows.labels), _MOST_ROWS), _starts(len(columns.labels), _MOST_COLUMNS)
        made = np.add.reduceat(np.add.reduceat(matrix, down, axis=0), across, axis=1)
        parts.append(f'<p class="small">{escape(clean(rows.name))} by {escape(clean(columns.name))}</p>')
        parts.append(
            charts.heat(made, _names(rows.labels, down), _names(columns.labels, across), about="A map of cells")
        )
    return parts


def _starts(length: int, most: int) -> Array:
    """Return the places where blocks begin: as many as there are places, or at most ``most``."""
    return np.arange(0, length, math.ceil(length / most))


def _names(labels: Sequence[Any], starts: Array) -> list[str]:
    return [clean(str(labels[int(start)])) for start in starts]


def _deviations(published: Published, place: int, starts: Array) -> Array | None:
    """Of sums over blocks of one axis; None where they depend on the data, or are too much work."""
    shape = published.domain.shape
    if published.steps or len(starts) * math.prod(shape) > 1 << 24:
        return None
    ends = [*starts[1:], shape[place]]
    found = []
    for start, end in zip(starts, ends, strict=True):
        query = np.zeros(shape)
        query[(slice(None),) * place + (slice(int(start), int(end)),)] = 1
        error = spread.deviation(published.prepared, query)
        if error is None:
            return None
        found.append(error)
    return np.array(found)


def _ranges(published: Published, truth: Array | None) -> list[str]:
    """Some ranges with their intervals: halves and quarters of each axis, and everything."""
    domain = published.domain
    rows: list[tuple[str, Estimate, float | None]] = []
    for place, axis in enumerate(domain.axes):
        length = len(axis.labels)
        for low, high in sorted({(0, length), (0, length // 2), (length // 4, length // 2), (length // 2, length)}):
            if low < high:
                query = np.zeros(domain.shape)
                query[(slice(None),) * place + (slice(low, high),)] = 1
                name = f"{clean(axis.name)} from {clean(str(axis.labels[low]))} to {clean(str(axis.labels[high - 1]))}"
                rows.append((name, published.answer(query), None if truth is None else float(np.sum(query * truth))))
    real = "<th class='truth'>truth</th>" if truth is not None else ""
    head = f"<tr><th>range</th><th>value</th><th>95% interval</th><th>standard deviation</th>{real}</tr>"
    return ["<h2>Ranges</h2><table>", head, *(_range(*row) for row in rows), "</table>"]


def _range(name: str, one: Estimate, truth: float | None) -> str:
    around = "–" if one.low is None or one.high is None else f"{_number(one.low)} … {_number(one.high)}"
    error = "–" if one.deviation is None else _number(one.deviation)
    real = "" if truth is None else f"<td class='truth'>{truth:,.6g}</td>"
    return f"<tr><td>{escape(name)}</td><td>{_number(one.value)}</td><td>{around}</td><td>{error}</td>{real}</tr>"


def _errors(published: Published, comparisons: Sequence[Comparison], truth: Array | None) -> list[str]:
    """Expected errors of all strategies that were compared, and the true ones of this release."""
    known = [one for one in comparisons if one.curve]
    curves = {clean(one.name): one.curve for one in known if one.curve}
    dots = [] if truth is None else spread.true_errors(published.cells, truth)
    if not curves and not dots:
        return []
    parts = [
        "<h2>Expected error against the length of ranges</h2>",
        "<p>Root mean square errors, computed from the strategies and the price before anything was spent.</p>",
        charts.curves(curves, dots=dots, across="cells in the range", up="error", about="Error by length of ranges"),
    ]
    sizes = sorted({many for curve in curves.values() for many, _ in curve} | {many for many, _ in dots})
    real = "<th class='truth'>true error</th>" if dots else ""
    parts.append(f"<table><tr><th>cells</th>{''.join(f'<th>{escape(name)}</th>' for name in curves)}{real}</tr>")
    for many in sizes:
        row = [dict(curve).get(many) for curve in curves.values()]
        cells = "".join("<td>–</td>" if one is None else f"<td>{_number(one)}</td>" for one in row)
        true = dict(dots).get(many)
        seen = "" if not dots else f"<td class='truth'>{'–' if true is None else _number(true)}</td>"
        parts.append(f"<tr><td>{many:,}</td>{cells}{seen}</tr>")
    unknown = [clean(one.name) for one in comparisons if not one.curve]
    more = f"<p>Errors of {escape(', '.join(unknown))} depend on the data, and are not told.</p>" if unknown else ""
    return [*parts, "</table>", more]


def _number(value: float) -> str:
    """Four digits, or all of a large number's."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def comparisons_of(curves: Mapping[str, Curve | None]) -> list[Comparison]:
    """From names with their curves."""
    return [Comparison(name=name, curve=curve) for name, curve in curves.items()]
