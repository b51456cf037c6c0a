"""A release for people and for data frames: plain text, HTML, and cell by cell."""

import html
from collections.abc import Sequence
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
    from hubbub.publish.domain import Axis
    from hubbub.publish.release.published import Published
    from hubbub.publish.strategies.layer import Array

VALUE, DEVIATION = "value", "deviation"


def columns(published: "Published") -> list[tuple[str, Type, list[Any]]]:
    """The axes, then the value of each cell and its standard deviation: names, types and cells."""
    return _columns(published.domain.axes, published.cells, published.deviations)


def _columns(axes: Sequence["Axis"], cells: "Array", deviations: "Array | None") -> list[tuple[str, Type, list[Any]]]:
    shape = cells.shape
    found: list[tuple[str, Type, list[Any]]] = []
    for place, axis in enumerate(axes):
        labels = list(axis.labels)
        inside, outside = int(np.prod(shape[place + 1 :])), int(np.prod(shape[:place]))
        spread = [label for label in labels for _ in range(inside)] * outside
        found.append((axis.name, type_of(labels), spread))
    taken = {axis.name for axis in axes}
    number = [None] * cells.size if deviations is None else deviations.reshape(-1).tolist()
    found.append((free(VALUE, taken), Type.REAL, cells.reshape(-1).tolist()))
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
    return shown_columns(published.domain.axes, published.cells, published.deviations)


def shown_columns(axes: Sequence["Axis"], cells: "Array", deviations: "Array | None") -> list[Shown]:
    """Return cells by their axes as columns of a data frame."""
    made = []
    for name, type_, values in _columns(axes, cells, deviations):
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
    header, body, more = list_cells(published.domain.axes, published.cells, published.deviations, most=most)
    return "\n".join([*lay_out_text(header, body), *more, "", _terms(published)])


def as_html(published: "Published") -> str:
    """The same as an HTML table."""
    header, body, more = list_cells(published.domain.axes, published.cells, published.deviations)
    return lay_out_html(header, body, [*more, _terms(published)])


def lay_out_text(header: list[str], body: list[list[str]]) -> list[str]:
    """Lay cells out in columns, the last two to the right."""
    widths = [max(len(row[place]) for row in (header, *body)) for place in range(len(header))]
    last = len(header) - 2

    def line(row: list[str]) -> str:
        cells = enumerate(zip(row, widths, strict=True))
        return "  ".join(text.rjust(wide) if at >= last else text.ljust(wide) for at, (text, wide) in cells).rstrip()

    return [line(header), "  ".join("─" * width for width in widths), *map(line, body)]


def lay_out_html(header: list[str], body: list[list[str]], below: list[str]) -> str:
    """Lay cells out as an HTML table, with lines below it."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    foot = "<br>".join(html.escape(line) for line in below)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{foot}</p>"


def list_cells(
    axes: Sequence["Axis"], values: "Array", deviations: "Array | None", *, most: int = _MOST_ROWS
) -> tuple[list[str], list[list[str]], list[str]]:
    """Write the first cells as texts: their header, their rows, and a line about those that are left out."""
    flat = values.reshape(-1)
    body = []
    for place in range(min(most, values.size)):
        at = np.unravel_index(place, values.shape)
        labels = [clean(str(axis.labels[int(one)])) for axis, one in zip(axes, at, strict=True)]
        margin = "–" if deviations is None else f"{float(deviations.reshape(-1)[place]):,.4g}"
        body.append([*labels, f"{float(flat[place]):,.6g}", margin])
    left = values.size - most
    more = [f"… {left:,} more cells"] if left > 0 else []
    return [*(clean(axis.name) for axis in axes), VALUE, DEVIATION], body, more


def _terms(published: "Published") -> str:
    steps = f" · made {', '.join(published.steps)}" if published.steps else ""
    limits = write_limits(published.prepared.terms.contribution)
    return (
        f"{published.strategy.name}{steps} · {limits} · {published.price} · "
        f"entry {published.entry} of account {clean(published.account)!r}{note_age(published.stored, fresh='fresh')}"
    )
