"""What is declared of the data, as a table: for whoever asks which tables and columns there are.

Privacy:
    Claim: a listing is a function of the policy's declarations and of the names of columns in the sources.
    Proof: it is made of ``Policy.tables`` and nothing else. What the owner's check saw (``enforced``,
        ``enforced_keys``, ``seen``) is a function of rows, and is not read here; neither are paths of files.
    Ref: SOUNDNESS 7 and 40.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.errors import ParameterError, UnknownName
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Policy, Table, TableColumn
from hubbub.privacy.loss import number
from hubbub.query.answer.columns import Shown, make_column, to_arrow, to_pandas, to_polars
from hubbub.query.answer.printable import clean

_MOST_KEYS = 6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Listing:
    """Rows of texts, free and public; empty where nothing is declared."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_dicts(self) -> list[dict[str, str]]:
        """Return one dictionary a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame (needs pandas)."""
        return to_pandas(self._shown())

    def to_polars(self) -> Any:
        """Return a polars DataFrame (needs polars)."""
        return to_polars(self._shown())

    def to_arrow(self) -> Any:
        """Return a pyarrow Table (needs pyarrow)."""
        return to_arrow(self._shown())

    def _shown(self) -> list[Shown]:
        return [make_column(name, Type.TEXT, [row[at] for row in self.rows]) for at, name in enumerate(self.columns)]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        table = [tuple(map(clean, row)) for row in (self.columns, *self.rows)]
        widths = [max(len(row[place]) for row in table) for place in range(len(self.columns))]
        lines = ["  ".join(text.ljust(wide) for text, wide in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(clean(cell))}</{tag}>" for cell in cells) + "</tr>"

        return f"<table>{row(self.columns, 'th')}{''.join(row(cells, 'td') for cells in self.rows)}</table>"


def list_tables(policy: Policy) -> Listing:
    """List the tables: whose their rows are, and how many columns can be used."""
    rows = tuple((table.name, _owner(table), str(len(table.columns))) for table in policy.tables.values())
    return Listing(columns=("table", "rows", "columns"), rows=rows)


def check_table(policy: Policy, name: object) -> None:
    """Raise UnknownName where no table of the policy is called so."""
    if not isinstance(name, str):
        raise ParameterError("table", "the name of a table", name)
    if name.lower() not in {table.lower() for table in policy.tables}:
        known = ", ".join(sorted(policy.tables))
        raise UnknownName(f"There is no table {name!r}. There are: {known}.", table=name)


def list_columns(policy: Policy, name: str | None = None) -> Listing:
    """List the columns of a table, or of all: their types, and what is declared of them."""
    if name is not None:
        check_table(policy, name)
    rows = [
        (table.name, *row)
        for table in policy.tables.values()
        if name is None or table.name.lower() == name.lower()
        for row in _rows(table)
    ]
    return Listing(columns=("table", "column", "type", "declared"), rows=tuple(rows))


def _rows(table: Table) -> Iterator[tuple[str, str, str]]:
    for column in table.columns:
        yield column.name, str(column.kind), "; ".join(_facts(table, column))
    for column in () if table.owner is None else (table.owner,):
        yield column.name, str(column.kind), f"the unit, found by {', then '.join(map(str, table.path))}"
    for name, reason in table.unusable.items():
        yield name, "–", reason.partition(". ")[0]  # the remedy is in the error of a question that uses it


def _facts(table: Table, column: TableColumn) -> Iterator[str]:
    if table.unit == column.name and not table.path:
        yield "the unit"
    if not column.kind.nullable:
        yield "never missing"
    if column.bounds is not None:
        yield f"bounds {number(column.bounds[0])} … {number(column.bounds[1])}"
    if column.grid is not None:
        yield f"grid {number(Fraction(column.grid))}"
    if column.keys is not None:
        told = ", ".join("missing" if key is None else str(key) for key in column.keys[:_MOST_KEYS])
        more = len(column.keys) - _MOST_KEYS
        yield f"keys {told}" + (f" and {more:,} more" if more > 0 else "")
    if column.unique:
        yield "declared unique"


def _owner(table: Table) -> str:
    if table.unit is None:
        return "public"
    return f"private, each of one {table.unit}" + (", at most one each as declared" if table.unique else "")
