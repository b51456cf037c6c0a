"""Paths from a row to its privacy unit in other tables, and the names of columns together with their tables.

Nothing takes such a name apart again. Whoever needs the column of a table carries it beside the name, as a scan does
(``query.ops.ScanColumn``).

A table whose rows do not name their unit says through which column, and to which table, they lead; that table names
the unit, or leads on. Paths follow the tables' own declarations, so that two tables which lead to a third agree on it.

Privacy:
    Claim: let two datasets differ in one unit u: in the rows that name u, and in those that lead to u. If in both every
        key on the path is unique, then each row that is there in both, and has an owner other than u in one of them,
        has the same owner in the other. So what is read of a table with a path differs in rows of u alone.
    Proof: by induction over the path from its end. A table that names its unit: the row says whose it is. One step
        before: a row leads to the rows whose key equals its column. In a dataset where the key is unique that is at
        most one row, so the row has at most one owner, and which one is decided by its own column and by that one row,
        which is a row of its owner. Rows of u's neither are that row (then u would be the owner) nor can they be put
        beside it (the key would be there twice) nor take it away. Rows without a partner, and rows whose owner is
        missing, belong to nobody and are dropped; should u come with the row that they lead to, they become u's.
    Needs: unique keys, in the data as it is read. The owner's check sees it for the files as they are, and what leads
        through a key that was not seen to be unique is refused: the claim rests on the check and on nothing in the
        engine. No engine could replace it. To drop keys that are there twice would let u's row take away another's; to
        keep the first, take it over. What the engine does with a key that slipped in twice harms least: the row counts
        once for each of its owners, so that no unit changes what another has, and every unit's part is bounded as
        ever; but the row is then about two people, and hidden for neither alone (SOUNDNESS 4).
        With replace-one the unit that goes and the one that comes are two such differences.
    Ref: SOUNDNESS 4 and 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hubbub.errors import ParameterError, PolicyError
from hubbub.policy import declared
from hubbub.policy.files.toml_text import header
from hubbub.policy.kinds import Type

if TYPE_CHECKING:
    from hubbub.policy.tables import Table, TableColumn


def qualify(source: str, column: str) -> str:
    """Name a column of a table, or of whatever else has columns, differently for every pair of the two.

    Ordinary names are joined by a dot. A part that has a dot or a double quote itself is quoted, as in SQL.

    Claim: different pairs have different names, and every name has a dot.
    Proof: read a name from the left. If it begins with a quote, its first part was quoted and ends at the first quote
        that is not doubled; otherwise the first part has no dot and ends at the first one. What follows that dot is
        the second part, in one of the same two forms. So there is one pair that a name can have been made of.
    """
    return f"{_part(source)}.{_part(column)}"


def _part(text: str) -> str:
    if "." not in text and '"' not in text:
        return text
    return '"' + text.replace('"', '""') + '"'


MOST_STEPS = 8
UNKNOWN = f"{declared.RESERVED} owner"
"""The unit of a table whose path has not been followed yet: private, and nothing can be asked of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """From a row to that of another table whose ``key`` equals its ``column``; missing values lead nowhere."""

    column: str
    table: str
    key: str

    def __post_init__(self) -> None:
        for what in ("column", "table", "key"):
            declared.name(what, getattr(self, what))

    def __repr__(self) -> str:
        """Write the name that ledgers know: they keep bought facts under names that are made of this."""
        return f"Step(column={self.column!r}, table={self.table!r}, key={self.key!r})"

    def __str__(self) -> str:
        return f"{self.column} in {self.table}" + ("" if self.key == self.column else f" ({self.key})")


def through(column: str, *, to: str, key: str | None = None) -> PathStep:
    """Find a row's unit in the row of table ``to`` whose unique ``key`` (of the same name, if not
    given) equals the column.
    """
    return PathStep(column=column, table=to, key=column if key is None else key)


def check_step(table: "Table", step: object) -> PathStep:
    """A step that starts in a column of the table."""
    where = f"unit of table {table.name}"
    if not isinstance(step, PathStep):
        raise ParameterError(where, "the name of a column, or a path: through(column, to=table)", step)
    column = own(table, step.column)
    if column is None:
        raise PolicyError(
            f"Table {table.name} has no usable column {step.column} that leads to its unit. "
            + (table.why_not(step.column) or "Name one of its own."),
            name=where,
        )
    if column.kind.type in {Type.REAL, Type.TIMESTAMP}:
        raise PolicyError(
            f"Column {column.name} of table {table.name} holds {column.kind.type} values, which are rounded when they "
            "are read, and cannot lead to the unit. Use an integer or text.",
            name=where,
        )
    return replace(step, column=column.name)


def own(table: "Table", name: str) -> "TableColumn | None":
    """A column of the table's source, whatever its case."""
    return next((column for column in table.columns if column.name.lower() == name.lower()), None)


def follow_path(tables: Mapping[str, "Table"], name: str) -> "Table":
    """A table with the path that its rows take to their unit, and the unit's column at the end of it."""
    table = here = tables[name]
    path: list[PathStep] = []
    passed = [table.name]
    while here.through is not None:
        if len(path) == MOST_STEPS:
            raise _refusal(table, f"takes more than {MOST_STEPS} steps. Name a table that is nearer to the unit.")
        there = _next(tables, table, here.through, passed)
        key = _key(there, table, here, here.through)
        path.append(PathStep(column=here.through.column, table=there.name, key=key.name))
        passed.append(there.name)
        here = there
    if not path:
        return table
    owner = None if here.unit is None else own(here, here.unit)
    assert owner is not None
    if own(table, owner.name) is not None or table.why_not(owner.name) is not None:
        raise _refusal(
            table,
            f"leads to {owner.name} of table {here.name}, and it has a column of that name itself. Name that one as "
            f"its unit, if it says whose a row is; else rename it.",
        )
    return replace(table, unit=owner.name, path=tuple(path), owner=replace(owner, unique=False))


def _next(tables: Mapping[str, "Table"], table: "Table", step: PathStep, passed: list[str]) -> "Table":
    known = {other.lower(): found for other, found in tables.items()}
    there = known.get(step.table.lower())
    if there is None:
        raise _refusal(table, f"goes to {step.table}, which is not a table.{declared.suggestion(step.table, tables)}")
    if there.name in passed:
        raise _refusal(
            table, f"goes in a circle: {' → '.join([*passed, there.name])}. One of them must name the unit's column."
        )
    if there.unit is None:
        raise _refusal(table, f"goes to {there.name}, which is public: its rows belong to nobody. Give it a unit.")
    return there


def _key(there: "Table", table: "Table", here: "Table", step: PathStep) -> "TableColumn":
    key, column = own(there, step.key), own(here, step.column)
    if key is None or column is None:
        reason = there.why_not(step.key) or declared.suggestion(step.key, [one.name for one in there.columns]).strip()
        raise _refusal(table, f"needs a usable column {step.key} of table {there.name}. {reason}")
    if not is_key(there, key.name):
        raise _refusal(
            table,
            f"goes by {key.name} of table {there.name}, which is not declared unique: a row could have two owners. "
            f"Add unique = true to {header('tables', there.name, 'columns', key.name)}, if it holds.",
        )
    if key.kind.type is not column.kind.type:
        raise _refusal(
            table,
            f"compares {column.name} of table {here.name}, which is {column.kind.type}, with {key.name} of table "
            f"{there.name}, which is {key.kind.type}. Declare one type for both.",
        )
    return key


def is_key(table: "Table", column: str) -> bool:
    """Return True if a column is declared to have each value once; nothing may rest on it until the
    owner's check saw it.
    """
    found = own(table, column)
    return found is not None and (found.unique or (table.unique and table.unit == found.name))


def _refusal(table: "Table", what: str) -> PolicyError:
    return PolicyError(f"The path of table {table.name} to its unit {what}", name="unit")
