"""Published marginals as one page: a few of them drawn, the expected error of all, and what it cost.

Everything on it is public: noisy numbers, their strategy and the price.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

import numpy as np

from hubbub.gate.release import note_age
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.marginals.table_strategy import Tables
from hubbub.query.answer.printable import clean
from hubbub.report import charts
from hubbub.report.published import _STYLE, _names, _number, _starts

_MOST_BARS, _MOST_ROWS, _MOST_COLUMNS = 160, 60, 160
_DRAWN_ALONE, _DRAWN_PAIRS, _LISTED = 8, 3, 200

Errors = Sequence[tuple[tuple[str, ...], int, float]]
"""Columns of a marginal, its cells, and the root mean square error of one of them."""


def page_of(
    release: Tables,
    *,
    errors: Mapping[str, Errors],
    title: str = "Published",
    seconds: float | None = None,
    made: datetime | None = None,
) -> str:
    """The whole page, with nothing outside it; ``errors`` of each strategy that was compared."""
    moment, one = made or datetime.now(UTC), release.prepared.terms.contribution
    took = f", in {seconds:.1f} s" if seconds is not None else ""
    columns = " × ".join(f"{clean(axis.name)} ({len(axis.labels):,})" for axis in release.domain.axes)
    lead = (
        f"{len(release.names):,} marginals of {columns}, and all that follow from them. Strategy "
        f"{clean(release.strategy.name)}, {release.as_published.price}, entry {release.entry} of account "
        f"“{clean(release.account)}”{note_age(release.stored, before=', ')}. "
        f"Protected: everything that one unit adds, with at most {one.total:,} rows "
        f"({one.neighbors.value} neighbours). Intervals and errors are about what counts then: what this limit cuts "
        "off is beside them."
    )
    after = f"They were made {', '.join(release.steps)} afterwards, which costs nothing." if release.steps else ""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>',
        f"<body><h1>{escape(title)}</h1><p>{escape(lead)}</p>",
        f"<p>{escape(after)}</p>" if after else "",
        f'<p class="small">{moment:%Y-%m-%d %H:%M} UTC{took}</p>',
        *_draw_marginals(release),
        *_error_table(errors),
        "<h2>Certificate</h2><p>From its events anybody can recompute the loss; from strategy and contribution, the "
        "events.</p>",
        f"<pre>{escape(json.dumps(json.loads(release.certificate()), indent=1, ensure_ascii=False))}</pre>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part)


def _draw_marginals(release: Tables) -> list[str]:
    """Single columns as bars, and a few pairs as maps: of those that were published, the first ones."""
    parts = ["<h2>Some marginals</h2>"]
    alone = dict.fromkeys((name,) for names in release.names for name in names)
    pairs = dict.fromkeys(names[:2] for names in release.names if len(names) > 1)
    for names in [*alone][:_DRAWN_ALONE]:
        parts += _bars(release.marginal(*names))
    for pair in [*pairs][:_DRAWN_PAIRS]:
        parts += _map(release.marginal(*pair))
    return parts


def _bars(one: Marginal) -> list[str]:
    (axis,) = one.axes
    starts = _starts(len(axis.labels), _MOST_BARS)
    whole = len(starts) == len(axis.labels)
    shown = "whiskers: one standard deviation" if whole and one.deviation is not None else "no whiskers"
    step = "" if whole else ", several values a bar"
    return [
        f'<p class="small">{escape(clean(axis.name))}{step}; {shown}</p>',
        charts.bars(
            np.add.reduceat(one.values, starts),
            _names(axis.labels, starts),
            deviations=one.deviation if whole else None,
            truth=None,
            about=f"Marginal of {axis.name}",
        ),
    ]


def _map(one: Marginal) -> list[str]:
    values, (rows, columns) = one.values, one.axes
    if len(rows.labels) > len(columns.labels):
        values, rows, columns = values.T, columns, rows
    down, across = _starts(len(rows.labels), _MOST_ROWS), _starts(len(columns.labels), _MOST_COLUMNS)
    made = np.add.reduceat(np.add.reduceat(values, down, axis=0), across, axis=1)
    return [
        f'<p class="small">{escape(clean(rows.name))} by {escape(clean(columns.name))}</p>',
        charts.heat(made, _names(rows.labels, down), _names(columns.labels, across), about="A marginal of two columns"),
    ]


def _error_table(errors: Mapping[str, Errors]) -> list[str]:
    """A row a marginal, a column a strategy."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    sizes: dict[tuple[str, ...], int] = {}
    for strategy, told in errors.items():
        for names, cells, rmse in told:
            found.setdefault(names, {})[strategy] = rmse
            sizes[names] = cells
    head = "".join(f"<th>{escape(clean(name))}</th>" for name in errors)
    rows = [
        f"<tr><td>{escape(clean(' × '.join(names)))}</td><td>{sizes[names]:,}</td>"
        + "".join(f"<td>{_number(own[one]) if one in own else '–'}</td>" for one in errors)
        + "</tr>"
        for names, own in [*found.items()][:_LISTED]
    ]
    more = len(found) - _LISTED
    return [
        "<h2>Expected error of a cell</h2>",
        "<p>Root mean squares, computed from the strategies and the price before anything was spent.</p>",
        f"<table><tr><th>marginal</th><th>cells</th>{head}</tr>",
        *rows,
        "</table>",
        f"<p>{more:,} more marginals.</p>" if more > 0 else "",
    ]
