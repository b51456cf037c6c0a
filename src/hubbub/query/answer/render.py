"""Answers for people: plain text and HTML."""

import html
from collections.abc import Sequence
from typing import Any

from hubbub.query.answer.answer import Answer, has_interval
from hubbub.query.answer.printable import clean

_MOST_ROWS = 40


def as_text(answer: Answer, *, most: int | None = _MOST_ROWS) -> str:
    """A table with ± columns, and one line about its price; the first rows, or all of them."""
    header, body = _cells(answer, most)
    widths = [max(len(row[place]) for row in (header, *body)) for place in range(len(header))]
    numeric = [_is_number(answer, place) for place in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, numeric, strict=True)
        return "  ".join(text.rjust(width) if right else text.ljust(width) for text, width, right in cells).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, body), *_footer(answer, most)])


def as_html(answer: Answer) -> str:
    """The same as an HTML table."""
    header, body = _cells(answer, _MOST_ROWS)
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    foot = "<br>".join(html.escape(line) for line in _footer(answer, _MOST_ROWS) if line)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{foot}</p>"


def _cells(answer: Answer, most: int | None) -> tuple[list[str], list[list[str]]]:
    parts = list(zip(answer.rows, answer.lows, answer.highs, answer.ranks, strict=True))[:most]
    certain = [has_interval(answer.plan, place) for place in range(len(answer.columns))]
    body = [[_show_cell(*cell) for cell in zip(*row, certain, strict=True)] for row in parts]
    return [clean(name) for name in answer.columns], body


def _footer(answer: Answer, most: int | None) -> list[str]:
    more = [f"… {len(answer) - most:,} more rows"] if most is not None and len(answer) > most else []
    limits = [] if answer.plan.beside is None else [answer.plan.beside.sentence]
    return [*more, "", *limits, answer.terms]


def _show_cell(value: Any, low: Any, high: Any, ranks: int | None, certain: bool) -> str:
    """Write a number with its interval, or with the ranks that it may be off; where there is no end, say so."""
    text = _show(value, low, high)
    if ranks is not None:
        return f"{text} (within {ranks:,} row{'' if ranks == 1 else 's'})"
    return f"{text} (unbounded)" if certain and value is not None and low is None and high is None else text


def _show(value: Any, low: Any, high: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        lows, highs = ({} if ends is None else ends for ends in (low, high))
        bins = (f"{_show(one, None, None)}: {_show(value[one], lows.get(one), highs.get(one))}" for one in value)
        return ", ".join(bins)
    if isinstance(value, list):
        return ", ".join(_show(one, None, None) for one in value)
    if isinstance(value, float):
        text = f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    elif isinstance(value, int) and not isinstance(value, bool):
        text = f"{value:,}"
    else:
        text = clean(str(value))
    if low is None and high is None:
        return text
    if low is None or high is None:
        return f"{text} ({_show_end(low, '−∞')} … {_show_end(high, '∞')})"
    if isinstance(value, bool):
        return text if low == high else f"{text} ({low} … {high})"
    if abs((value - low) - (high - value)) < 1e-9 * max(1.0, abs(value)):
        return f"{text} ± {_show((high - low) / 2 if isinstance(value, float) else (high - low) // 2, None, None)}"
    return f"{text} ({_show(low, None, None)} … {_show(high, None, None)})"


def _show_end(end: Any, without: str) -> str:
    return without if end is None else _show(end, None, None)


def _is_number(answer: Answer, place: int) -> bool:
    return any(isinstance(row[place], int | float) for row in answer.rows)
