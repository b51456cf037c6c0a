"""Undo the suppression of small counts: what rows and columns still say about the cells that were left out.

Margins are equations. Together they hold every hidden cell within an interval, which integer programming makes exact:
the least and the greatest value that some table with the published numbers has there.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from hubbub.attack.finding import AttackFinding
from hubbub.errors import HubbubError, ParameterError

Range = tuple[int, int]
Place = tuple[int, int]
_HIDDEN = frozenset({"*", "", "-", "s", "x", ".."})


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """Counts with margins: the first row and the first column are totals, None is a cell that was left out."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[int | None, ...], ...]
    most: int | None = None
    """The largest count that is left out, where the publisher says so."""

    def __post_init__(self) -> None:
        shape = {len(row) for row in self.cells}
        if (
            len(self.cells) != len(self.rows)
            or shape != {len(self.columns)}
            or min(len(self.rows), len(self.columns)) < 2
        ):
            raise ParameterError("cells", "one row for each name, totals first, all of the same length", self.cells)
        if any(cell is not None and cell < 0 for row in self.cells for cell in row):
            raise ParameterError("cells", "counts of 0 or more, or None where one is hidden", self.cells)
        if self.most is not None and self.most < 0:
            raise ParameterError("most", "0 or more", self.most)

    @classmethod
    def read(cls, text: str, *, most: int | None = None) -> "PublishedTable":
        """From CSV or tab-separated text whose first row and column are names, and the next ones totals."""
        dialect = "excel-tab" if "\t" in text.split("\n", 1)[0] else "excel"
        lines = [line for line in csv.reader(io.StringIO(text.strip()), dialect=dialect) if line]
        head, *rest = lines
        bound = [most] if most is not None else []
        cells = []
        for line in rest:
            row: list[int | None] = []
            for cell in line[1:]:
                value, upper = _cell(cell)
                bound += [] if upper is None else [upper]
                row.append(value)
            cells.append(tuple(row))
        return cls(
            rows=tuple(line[0].strip() for line in rest),
            columns=tuple(name.strip() for name in head[1:]),
            cells=tuple(cells),
            most=max(bound) if bound else None,
        )

    @property
    def hidden(self) -> tuple[Place, ...]:
        """The places where a count was left out."""
        return tuple((i, j) for i, row in enumerate(self.cells) for j, cell in enumerate(row) if cell is None)


def _cell(text: str) -> tuple[int | None, int | None]:
    """The count, or None with the largest it may be ("<11" hides 0 to 10)."""
    shown = text.strip().replace(",", "")
    if shown.lower() in _HIDDEN:
        return None, None
    if shown.startswith(("<", "≤")):
        return None, int(shown.lstrip("<≤= ")) - (1 if shown.startswith("<") and "=" not in shown else 0)
    if not shown.isdigit():
        raise ParameterError("cell", "a count, * or <k", text)
    return int(shown), None


def _lines(shape: Place) -> Iterator[tuple[Place, list[Place]]]:
    """Every total with the cells that add up to it."""
    height, width = shape
    for i in range(height):
        yield (i, 0), [(i, j) for j in range(1, width)]
    for j in range(width):
        yield (0, j), [(i, j) for i in range(1, height)]


def one_line_at_a_time(table: PublishedTable) -> dict[Place, Range | None]:
    """Return the result of a reader with a pencil: cells that are alone in their line, then the rest of a row for each
    of them.

    None where a row says nothing, because its own total is hidden.
    """
    known: dict[Place, int] = {
        (i, j): cell for i, row in enumerate(table.cells) for j, cell in enumerate(row) if cell is not None
    }
    lines = list(_lines((len(table.rows), len(table.columns))))
    pinned = True
    while pinned:
        pinned = False
        for total, parts in lines:
            unknown = [place for place in (total, *parts) if place not in known]
            if len(unknown) == 1:
                (place,) = unknown
                rest = sum(known[part] for part in parts if part in known)
                known[place] = rest if place == total else known[total] - rest
                pinned = True
    found: dict[Place, Range | None] = {}
    for i, j in table.hidden:
        if (i, j) in known:
            found[i, j] = (known[i, j], known[i, j])
        elif j and (i, 0) in known:
            left = known[i, 0] - sum(known[i, k] for k in range(1, len(table.columns)) if (i, k) in known)
            found[i, j] = (0, left)
        else:
            found[i, j] = None
    return found


def exact_ranges(table: PublishedTable) -> dict[Place, Range]:
    """The least and the greatest count that each hidden cell has in any table with the published numbers."""
    hidden = table.hidden
    if not hidden:
        return {}
    at = {place: index for index, place in enumerate(hidden)}
    matrix: list[Any] = []
    right: list[int] = []
    for total, parts in _lines((len(table.rows), len(table.columns))):
        row, side = np.zeros(len(hidden)), 0
        for sign, place in [(-1, total), *((1, part) for part in parts)]:
            cell = table.cells[place[0]][place[1]]
            if cell is None:
                row[at[place]] += sign
            else:
                side -= sign * cell
        matrix.append(row)
        right.append(side)
    most = np.inf if table.most is None else float(table.most)
    solve = partial(
        milp,
        constraints=LinearConstraint(np.array(matrix), right, right),
        bounds=Bounds(0, most),
        integrality=np.ones(len(hidden)),
    )
    found: dict[Place, Range] = {}
    for place, index in at.items():
        wanted = np.zeros(len(hidden))
        wanted[index] = 1
        least, greatest = solve(wanted), solve(-wanted)
        if least.status == 2:
            raise HubbubError("No table of counts has these totals. Check the numbers, and what may be hidden.")
        ceiling = round(-greatest.fun) if greatest.status == 0 else np.iinfo(np.int64).max
        found[place] = (round(least.fun), int(ceiling))
    return found


def suppression(table: PublishedTable) -> AttackFinding:
    """Bounds for every hidden cell, by a pencil and exactly; those that can only be one number are marked."""
    pencil, exact = one_line_at_a_time(table), exact_ranges(table)
    pinned = [place for place, (low, high) in exact.items() if low == high]
    rows = [
        (
            f"{table.rows[i]} / {table.columns[j]}",
            _show_range(pencil[i, j]),
            _show_range(exact[i, j]),
            "←" * ((i, j) in pinned),
        )
        for i, j in table.hidden
    ]
    return AttackFinding(
        title="Suppressed counts, worked out again",
        verdict=f"{len(pinned)} of {len(exact)} hidden counts can only be one number."
        if pinned
        else f"None of {len(exact)} hidden counts is fixed, but each lies within the range shown.",
        works=bool(pinned),
        notes=() if table.most is None else (f"Taken as given: a hidden count is at most {table.most}.",),
        columns=("hidden count", "one line at a time", "exactly", "found out"),
        rows=tuple(rows),
        numbers={"hidden": len(exact), "pinned": len(pinned)},
        draw=partial(_draw, table, exact),
    )


def _show_range(one: Range | None) -> str:
    if one is None:
        return "–"
    low, high = one
    return str(low) if low == high else f"{low}–{high if high < 1 << 60 else '…'}"


def _draw(table: PublishedTable, exact: dict[Place, Range], axes: Any) -> None:
    widths = np.full((len(table.rows), len(table.columns)), np.nan)
    for (i, j), (low, high) in exact.items():
        widths[i, j] = min(high - low, 20)
    axes.imshow(widths, cmap="YlGnBu", aspect="auto", vmin=0, vmax=2 * max(1.0, np.nanmax(widths, initial=0)))
    for i, row in enumerate(table.cells):
        for j, cell in enumerate(row):
            shown = str(cell) if cell is not None else _show_range(exact[i, j])
            pinned = cell is None and exact[i, j][0] == exact[i, j][1]
            axes.text(
                j, i, shown, ha="center", va="center", fontsize=9, weight="bold" if pinned else "normal",
                color="crimson" if pinned else "black",
            )  # fmt: skip
    axes.set_xticks(range(len(table.columns)), table.columns, rotation=30, ha="right")
    axes.set_yticks(range(len(table.rows)), table.rows)
    axes.set_title("Hidden counts: red ones can only be one number")


def read_table(path: str | Path, *, most: int | None = None) -> PublishedTable:
    """From a file."""
    return PublishedTable.read(Path(path).read_text(encoding="utf-8"), most=most)


def hcup() -> PublishedTable:
    """Discharges of ovarian cancer patients in New Jersey in 2009, as published: counts of 10 and less are hidden."""
    hidden: Sequence[Sequence[int | None]] = (
        (735, 535, 82, 58, 18, None, 19, 22),
        (None,) * 8,
        (70, 40, 13, None, None, None, None, None),
        (330, 236, 31, 32, None, None, 11, None),
        (298, 229, 35, 13, None, None, None, None),
        (34, 29, None, None, None, None, None, None),
    )
    return PublishedTable(
        rows=("all", "1-17", "18-44", "45-64", "65-84", "85+"),
        columns=("all", "White", "Black", "Hispanic", "Asian/Pacific", "Native American", "Other", "Missing"),
        cells=tuple(tuple(row) for row in hidden),
    )
