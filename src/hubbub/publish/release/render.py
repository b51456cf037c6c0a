"""A release for people: plain text for a terminal, HTML for a notebook. Labels are other people's words."""

import html
from typing import TYPE_CHECKING

import numpy as np

from hubbub.gate.release import note_age
from hubbub.query.answer.render import clean

if TYPE_CHECKING:
    from hubbub.publish.release.published import Published

_MOST_ROWS = 20


def as_text(published: "Published", *, most: int = _MOST_ROWS) -> str:
    """The first cells with their deviations, and a line about the price."""
    header, body = _cells(published, most)
    widths = [max(len(row[place]) for row in (header, *body)) for place in range(len(header))]
    last = len(header) - 2

    def line(row: list[str]) -> str:
        cells = enumerate(zip(row, widths, strict=True))
        return "  ".join(text.rjust(wide) if at >= last else text.ljust(wide) for at, (text, wide) in cells).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, body), *_footer(published, most)])


def as_html(published: "Published") -> str:
    """The same as an HTML table."""
    header, body = _cells(published, _MOST_ROWS)
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    foot = "<br>".join(html.escape(line) for line in _footer(published, _MOST_ROWS) if line)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{foot}</p>"


def _cells(published: "Published", most: int) -> tuple[list[str], list[list[str]]]:
    domain, deviations = published.domain, published.deviations
    flat = published.cells.reshape(-1)
    body = []
    for place in range(min(most, domain.size)):
        at = np.unravel_index(place, domain.shape)
        labels = [clean(str(axis.labels[int(one)])) for axis, one in zip(domain.axes, at, strict=True)]
        margin = "–" if deviations is None else f"{float(deviations.reshape(-1)[place]):,.4g}"
        body.append([*labels, f"{float(flat[place]):,.6g}", margin])
    return [*(clean(axis.name) for axis in domain.axes), "value", "deviation"], body


def _footer(published: "Published", most: int) -> list[str]:
    more = published.domain.size - most
    steps = f" · made {', '.join(published.steps)}" if published.steps else ""
    return [
        *([f"… {more:,} more cells"] if more > 0 else []),
        "",
        f"{published.strategy.name}{steps} · {published.price} · entry {published.entry} of account "
        f"{clean(published.account)!r}{note_age(published.stored)}",
    ]
