"""A release for people and for data frames: plain text, HTML, and cell by cell."""

import html
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.gate.release import note_age
from hubbub.policy.kinds import Type
from hubbub.publish.terms import write_limits
from hubbub.query.answer.columns import Shown, make_column
from hubbub.query.answer.columns import to_arrow as arrow
from hubbub.query.answer.columns import to_pandas as pandas
from hubbub.query.answer.columns import to_polars as polars
from hubbub.query.answer.printable import clean

if TYPE_CHECKING:
    from hubbub.publish.release.published import Published

VALUE, DEVIATION = "value", "deviation"


def columns(published: "Published") -> list[tuple[str, Type, list[Any]]]:
    """The axes, then the value of each cell and its standard deviation: names, types and cells."""
    domain = published.domain
    shape = domain.shape
    found: list[tuple[str, Type, list[Any]]] = []
    for place, axis in enumerate(domain.axes):
        labels = list(axis.labels)
        inside, outside = int(np.prod(shape[place + 1 :])), int(np.prod(shape[:place]))
        spread = [label for label in labels for _ in range(inside)] * outside
        found.append((axis.name, type_of(labels), spread))
    taken = {axis.name for axis in domain.axes}
    deviations = published.deviations
    number = [None] * domain.size if deviations is None else deviations.reshape(-1).tolist()
    found.append((free(VALUE, taken), Type.REAL, published.cells.reshape(-1).tolist()))
    found.append((free(DEVIATION, taken), Type.REAL, number))
    return found


def free(name: str, taken: set[str]) -> str:
    """A name that no column has."""
    while name in taken:
        name += "_"
    return name


def type_of(labels: list[Any]) -> Type:
    """Of all of them together; text where they have none in common."""
    known = [label for label in labels if label is not None]
    for kind, type_ in (
        (bool, Type.BOOLEAN),
        (int, Type.INTEGER),
        (float, Type.REAL),
        (datetime, Type.TIMESTAMP),
        (date, Type.DATE),
    ):
        if known and all(type(one) is kind for one in known):
            return type_
    return Type.TEXT


def _columns_of(published: "Published") -> list[Shown]:
    made = []
    for name, type_, values in columns(published):
        told = [None if one is None else str(one) for one in values] if type_ is Type.TEXT else values
        made.append(make_column(name, type_, told))
    return made


def to_pandas(published: "Published") -> Any:
    """A pandas DataFrame."""
    return pandas(_columns_of(published))


def to_polars(published: "Published") -> Any:
    """A polars DataFrame."""
    return polars(_columns_of(published))


def to_arrow(published: "Published") -> Any:
    """A pyarrow Table."""
    return arrow(_columns_of(published))


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
    limits = write_limits(published.prepared.terms.contribution)
    return [
        *([f"… {more:,} more cells"] if more > 0 else []),
        "",
        f"{published.strategy.name}{steps} · {limits} · {published.price} · "
        f"entry {published.entry} of account {clean(published.account)!r}{note_age(published.stored, fresh='fresh')}",
    ]
