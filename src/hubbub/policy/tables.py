"""The owner's declarations about the data: the unit of the rows, the contents of the columns, the limits of one unit.

Nothing here is read off the data. Whatever is declared is public: it may be shown, it may decide prices and refusals.
Values outside declared bounds are clamped in the engine, so a wrong declaration costs accuracy and never privacy; only
the unit, and what is called public, are the owner's word.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from hubbub.errors import ParameterError, PolicyError
from hubbub.parameters import whole
from hubbub.policy import declared
from hubbub.policy.fingerprint import fingerprint
from hubbub.policy.kinds import INT128, Kind, Type, default_grid, outward
from hubbub.policy.paths import UNKNOWN, PathStep, check_step, follow_path, is_key
from hubbub.policy.stamps import NO_FILES, Stamp
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors

Value = bool | int | float | str | date | datetime | None

FILES = ("parquet", "csv", "json", "arrow", "duckdb")
DATABASES = ("postgres",)
FORMATS = (*FILES, "frame", *DATABASES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column of a table."""

    name: str
    kind: Kind
    bounds: tuple[Fraction, Fraction] | None = None
    """Where its values are clamped when they are added up."""
    grid: Fraction | None = None
    """The step to which they are rounded then; None: 1 for integers, a fine power of two for reals."""
    keys: tuple[Value, ...] | None = None
    """The public values that groups by this column may show."""
    unique: bool = False
    """Whether no two rows are said to share a value. Nothing may rest on it until the owner's check saw it hold."""

    def __post_init__(self) -> None:
        declared.name("name of a column", self.name)
        if not isinstance(self.kind, Kind):
            raise ParameterError(f"type of column {self.name}", "a Kind", self.kind)
        if self.kind.type is Type.INTEGER and not INT128[0] <= self.kind.range[0] <= self.kind.range[1] <= INT128[1]:
            raise ParameterError(f"type of column {self.name}", "an integer of at most 128 bits", self.kind)
        if not isinstance(self.unique, bool):
            raise ParameterError(f"unique of column {self.name}", "true or false", self.unique)
        if self.bounds is not None:
            object.__setattr__(self, "bounds", declared.bounds(self.name, self.kind, self.bounds))
        if self.grid is not None:
            object.__setattr__(self, "grid", declared.grid(self.name, self.kind, self.grid, self.bounds))
        if self.keys is not None:
            object.__setattr__(self, "keys", declared.keys(self.name, self.kind, self.keys))

    @property
    def step(self) -> Fraction | None:
        """The grid that is used; None where there is none to add up on: no number, or a real without bounds."""
        if self.grid is not None:
            return self.grid
        if self.kind.type is Type.INTEGER:
            return Fraction(1)
        return None if self.bounds is None else default_grid(self.bounds)

    @property
    def clamp(self) -> tuple[Fraction, Fraction] | None:
        """The bounds as an engine can hold them: those of a real moved out to multiples of its step."""
        if self.bounds is None or self.step is None or self.kind.type is Type.INTEGER:
            return self.bounds
        return outward(self.bounds, self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """The source of a table's rows: files of one format, a table of a database, or a frame in memory."""

    format: str
    """"parquet", "csv", "json", "arrow", "duckdb", "frame" or "postgres"."""
    paths: tuple[str, ...] = ()
    """Absolute, globs expanded by the owner's side; of a server its place, which says nothing of who logs in there."""
    table: str | None = None
    """The table in a database, spelt as the database has it."""
    schema: str | None = None
    """The schema of a server's table."""
    dsn: str | None = field(default=None, compare=False, repr=False)
    """How a server is reached. It may hold a password: it is shown nowhere, and nothing is named by it."""
    copy: bool | None = None
    """Whether a server's table is copied when it is opened; None where nobody said, and then it may be read there."""
    view: bool = False
    """Whether it is a server's view, each row of which is said to be made of the rows of one unit alone."""
    frame: Any = field(default=None, compare=False, repr=False)
    opening: str | None = None
    """A random name for one opening of a frame whose version nobody has named: no other opening shares its answers."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ParameterError("format", f"one of {', '.join(FORMATS)}", self.format)
        if not isinstance(self.paths, tuple) or not all(isinstance(path, str) for path in self.paths):
            raise ParameterError("paths", "a tuple of strings", self.paths)
        if (self.format == "frame") is not (not self.paths):
            raise ParameterError("paths", "given for files, and not for a frame", self.paths)
        if self.format not in DATABASES and not all(os.path.isabs(path) for path in self.paths):
            raise ParameterError("paths", "absolute", self.paths)
        if (self.format in {"duckdb", *DATABASES}) is not isinstance(self.table, str):
            raise ParameterError("table", "the name of a table for a database, and left out otherwise", self.table)
        if self.format in {"duckdb", *DATABASES} and len(self.paths) != 1:
            raise ParameterError("paths", "one database", self.paths)
        for what in ("schema", "dsn"):
            if (self.format in DATABASES) is not isinstance(getattr(self, what), str):
                raise ParameterError(what, "given for a table of a server, and left out otherwise", None)
        if self.copy is not None and (self.format not in DATABASES or not isinstance(self.copy, bool)):
            raise ParameterError("copy", "true or false for a table of a server, and left out otherwise", self.copy)
        if not isinstance(self.view, bool) or (self.view and self.format not in DATABASES):
            raise ParameterError("view", "true or false for a table of a server, and left out otherwise", self.view)
        if self.frame is not None and self.format != "frame":
            raise ParameterError("format", '"frame" for a frame', self.format)
        if self.opening is not None and self.format != "frame":
            raise ParameterError("opening", "left out for files, which have paths", self.opening)

    @property
    def places(self) -> tuple[str, ...]:
        """Return a name for each place that rows are read from, as it may be shown."""
        names = [name for name in (self.schema, self.table) if name is not None]
        return tuple(": ".join([path, *names]) for path in self.paths)


_OTHER_UNIT = "Name one of its own columns, or a path to it in another table."
_EACH_ROW = "If each row is a person of its own, store a number of the row in a column, and name that one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table. With a unit it is private; without one it is public, and its rows may be shown to anybody."""

    name: str
    source: TableSource
    columns: tuple[TableColumn, ...]
    unit: str | None
    """The column that names the unit: one of the table, or the one that its path ends at."""
    unique: bool = False
    """Whether each unit is said to have at most one row. Nothing may rest on it until the owner's check saw it hold."""
    size: int | None = None
    """How many units it has, one row each, if the owner says so in public: for accounts whose units replace each other,
    and once the owner's check saw it hold."""
    unusable: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Columns of the source that no question may use, each with a sentence that says why."""
    through: PathStep | None = None
    """In place of a unit: how a row finds it. A policy follows it, and fills in what is below (policy.paths)."""
    path: tuple[PathStep, ...] = ()
    owner: TableColumn | None = None
    """The unit's column at the end of the path: it is not among the columns."""

    def __post_init__(self) -> None:
        declared.name("name of a table", self.name)
        if not isinstance(self.source, TableSource):
            raise ParameterError(f"source of table {self.name}", "a Source", self.source)
        if not self.columns or not all(isinstance(column, TableColumn) for column in self.columns):
            raise ParameterError(f"columns of table {self.name}", "at least one Column", self.columns)
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "unusable", dict(self.unusable))
        if self.through is not None:
            object.__setattr__(self, "through", check_step(self, self.through))
            object.__setattr__(self, "unit", self.unit if self.path else UNKNOWN)
        alone([*(column.name for column in self.columns), *self.unusable], f"columns of table {self.name}")
        if not isinstance(self.unique, bool) or (self.unique and self.unit is None):
            raise ParameterError(f"unique of table {self.name}", "true or false, and false without a unit", self.unique)
        if self.size is not None:
            object.__setattr__(self, "size", whole("size", self.size, least=1, most=1 << 40))
            if not self.unique:
                raise PolicyError(
                    f"The size of table {self.name} is a number of units, with one row each. Add unique = true, if it "
                    "holds, or leave the size out.",
                    name="size",
                )
        if self.unit is not None and self.through is None:
            object.__setattr__(self, "unit", self._check_unit(self.unit))

    def _check_unit(self, unit: object) -> str:
        where = f"unit of table {self.name}"
        if not isinstance(unit, str):
            raise ParameterError(where, "the name of one column", unit)
        column = self.column(unit)
        if column is None:
            raise PolicyError(
                f"Table {self.name} has no usable column {unit} to name the unit. "
                + (self.why_not(unit) or (_EACH_ROW if unit.lower() == "row" else _OTHER_UNIT)),
                name=where,
            )
        if column.kind.type in {Type.REAL, Type.TIMESTAMP}:
            raise PolicyError(
                f"The unit of table {self.name} cannot be {column.name}, which holds {column.kind.type} values: "
                "they are rounded when they are read, and two units could become one. Use an integer or text.",
                name=where,
            )
        return column.name

    def column(self, name: str) -> TableColumn | None:
        """A column by its name, whatever its case."""
        return next((column for column in self.show_pair if column.name.lower() == name.lower()), None)

    @property
    def show_pair(self) -> tuple[TableColumn, ...]:
        """The columns that a question can use: the table's own, and that of the unit."""
        return self.columns if self.owner is None else (*self.columns, self.owner)

    def why_not(self, name: str) -> str | None:
        """Why a column that the source has cannot be used; None if there is no such column."""
        return next((reason for known, reason in self.unusable.items() if known.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the contribution of one unit, and on the work of one question."""

    max_groups: int | None = None
    """Groups of one grouping in which a unit counts; None where it was not declared."""
    max_rows: int | None = None
    """Rows of a unit that count in one group; None where it was not declared."""
    max_total_rows: int | None = None
    """Rows of a unit that count in all groups of one grouping together; None where it was not declared."""
    max_cells: int = 1_000_000
    """Groups that one question may have."""
    max_fanout: int = 1000
    """Rows that one row may become by joins."""
    max_unit_rows: int = 1000
    """Rows of a unit that are joined with other rows of it, and the most that its own rows, counted, come to."""
    buy: bool = True
    """Whether a question that lacks bounds, max_rows or max_groups buys them with a share of its budget."""
    seconds: float = 60.0
    memory: str = "4GB"
    temporary: str = "20GB"
    threads: int | None = None
    lanes: int = 1
    """Blocks of people that programs run on at once: more are faster, and contend for processors."""

    def __post_init__(self) -> None:
        optional = ("max_groups", "max_rows", "max_total_rows", "threads")
        for name in (*optional, "max_cells", "max_fanout", "max_unit_rows"):
            value = getattr(self, name)
            if value is not None or name not in optional:
                object.__setattr__(self, name, whole(name, value, least=1, most=1 << 40))
        object.__setattr__(self, "lanes", whole("lanes", self.lanes, least=1, most=1024))
        if not isinstance(self.buy, bool):
            raise ParameterError("buy", "true or false", self.buy)
        object.__setattr__(self, "seconds", declared.seconds("seconds", self.seconds))
        for name in ("memory", "temporary"):
            object.__setattr__(self, name, declared.memory(name, getattr(self, name)))

    @property
    def groups(self) -> int:
        """In how many groups a unit counts: one, where nobody said or bought more."""
        return self.max_groups or 1

    @property
    def rows(self) -> int | None:
        """With how many rows a unit counts in a group: no more than in all of them."""
        return self.max_rows and min(self.max_rows, self.max_total_rows or self.max_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All that is declared about one population of units."""

    account: str
    budget: Budget
    tables: Mapping[str, Table]
    limits: Limits = Limits()
    version: str = "1"
    """The owner's name for the state of the data; never a hash of its content."""
    ledger: str | None = field(default=None, repr=False)
    """Where the ledger lies, if it was said: an absolute path or the URL of a database."""
    enforced: frozenset[str] = frozenset()
    """Tables of which the owner's check has seen, for this version of the data, that a unit has at most one row."""
    enforced_keys: frozenset[tuple[str, str]] = frozenset()
    """Tables, each with a column of which the check has seen that no two rows share a value."""
    seen: Mapping[str, Stamp] = field(default_factory=dict, repr=False)
    """For which files that was seen, table by table: it is believed while these are what is read, and no longer."""

    def __post_init__(self) -> None:
        declared.name("account", self.account)
        declared.name("version", self.version)
        if not isinstance(self.budget, Budget):
            raise ParameterError("budget", "a Budget", self.budget)
        if self.budget.neighbors is Neighbors.LOCAL:
            raise ParameterError("neighbors", "add-remove or replace-one, for data that one place holds", "local")
        if not isinstance(self.limits, Limits):
            raise ParameterError("limits", "Limits", self.limits)
        if not self.tables or not all(isinstance(table, Table) for table in self.tables.values()):
            raise ParameterError("tables", "at least one Table", self.tables)
        if any(name != table.name for name, table in self.tables.items()):
            raise ParameterError("tables", "under their own names", list(self.tables))
        alone(list(self.tables), "tables")
        if self.budget.neighbors is not Neighbors.REPLACE_ONE:
            sized = next((name for name, table in self.tables.items() if table.size is not None), None)
            if sized is not None:
                raise PolicyError(
                    f"How many units table {sized} has is protected where units are added and removed, and a size "
                    'would tell it. Leave the size out, or declare neighbors = "replace-one".',
                    name="size",
                )
        object.__setattr__(self, "tables", {name: follow_path(self.tables, name) for name in self.tables})
        if not self.enforced <= {name for name, table in self.tables.items() if table.unique}:
            raise ParameterError("enforced", "names of tables that are declared unique", sorted(self.enforced))
        if not all(name in self.tables and is_key(self.tables[name], key) for name, key in self.enforced_keys):
            raise ParameterError("enforced_keys", "columns that are declared unique", sorted(self.enforced_keys))
        if not self.enforced | {name for name, _ in self.enforced_keys} <= set(self.seen):
            raise ParameterError("seen", "a stamp of each table of which something was enforced", sorted(self.seen))

    def has_key(self, table: str, column: str) -> bool:
        """Return True if the check has seen that no two rows of a table share a value of a column."""
        alone_a_unit = table in self.enforced and self.tables[table].unit == column and not self.tables[table].path
        return (table, column) in self.enforced_keys or alone_a_unit

    @property
    def private_sources(self) -> tuple[str, ...]:
        """Return names of the files that private rows are read from, such as the owner has declared them."""
        return tuple(place for table in self.tables.values() if table.unit is not None for place in table.source.places)

    def files_behind(self, table: str) -> Stamp:
        """Return the files on which facts about a table rest: its own, and those of the tables on its path."""
        stamp = NO_FILES
        for name in (table, *(step.table for step in self.tables[table].path)):
            stamp |= self.seen.get(name, NO_FILES)
        return stamp

    def without_stale_facts(self) -> "Policy":
        """Return the policy without facts about files that were written to since they were seen to hold."""
        stale = {name for name, stamp in self.seen.items() if not stamp.holds()}
        if not stale:
            return self
        rests = {name for name in self.tables if stale & {name, *(step.table for step in self.tables[name].path)}}
        return replace(
            self,
            enforced=self.enforced - rests,
            enforced_keys=frozenset(key for key in self.enforced_keys if key[0] not in stale),
            seen={name: stamp for name, stamp in self.seen.items() if name not in stale},
        )

    @property
    def fingerprint(self) -> str:
        """A hash of everything declared and of where rows are read: policies that give the same answers share it."""
        return fingerprint(self)


def alone(names: Sequence[str], what: str) -> None:
    """Refuse names that differ in case alone: SQL does not distinguish them."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise PolicyError(
                f"The {what} must differ in more than case: {seen[name.lower()]!r} and {name!r} do not. Rename one.",
                name=what,
            )
        seen[name.lower()] = name
