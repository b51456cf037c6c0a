"""Tables out of a source's own schema and what the owner adds to it.

Types come from the policy, from the schema that a source carries (the footer of a Parquet file, a catalogue, an Arrow
schema) or from arguments. They are never guessed from values: a guess is a function of the data, and would be shown by
every error. A column without a type is there, and no question may use it; the sentence says what to declare.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from hubbub.errors import ParameterError, PolicyError
from hubbub.policy import declared
from hubbub.policy.files.toml_text import key
from hubbub.policy.kinds import Kind, Type, default_grid
from hubbub.policy.paths import PathStep
from hubbub.policy.sources import UNTYPED
from hubbub.policy.tables import Table, TableColumn, TableSource
from hubbub.policy.types import READABLE, Unusable, base_name, declared_kind, engine_kind

__all__ = ["Schema", "default_grid", "single_table"]

Schema = Sequence[tuple[str, str | None]]
"""The columns of a source in order, each with its engine type; None where the source does not say."""

T = TypeVar("T")

_KEY = "be unique"


def single_table(
    *,
    name: str,
    source: TableSource,
    schema: Schema,
    unit: str | PathStep | None,
    bounds: Mapping[str, object] | None = None,
    keys: Mapping[str, object] | None = None,
    types: Mapping[str, object] | None = None,
    nullable: Mapping[str, bool] | None = None,
    grids: Mapping[str, object] | None = None,
    unique: bool = False,
    size: int | None = None,
    uniques: Mapping[str, bool] | None = None,
) -> Table:
    """Build a table with every column of the schema, and the declarations of some of them by name."""
    declared.name("name of a table", name)
    if unit is not None and not isinstance(unit, str | PathStep):
        raise ParameterError(f"unit of table {name}", "the name of one column, or hubbub.through(…)", unit)
    if source.format == "json":
        schema = _schema_of_declarations(unit, types, bounds, keys, nullable, grids, uniques)
    own = [str(column) for column, _ in schema]
    given: dict[str, Mapping[str, object]] = {
        "bounds": _by_column(name, own, "bounds", bounds),
        "keys": _by_column(name, own, "keys", keys),
        "type": _by_column(name, own, "types", types),
        "nullable": _by_column(name, own, "nullable", nullable),
        "grid": _by_column(name, own, "grids", grids),
        "unique": _by_column(name, own, "unique", uniques),
    }
    columns, unusable = [], {}
    for column, said in schema:
        engine = None if source.format in UNTYPED else said
        facts = {what: found[column.lower()] for what, found in given.items() if column.lower() in found}
        if source.format in UNTYPED and _names_unit(column, unit):
            facts.setdefault("type", "text")  # which takes any identifier as it is spelt
        made = _column(column, engine, facts)
        if isinstance(made, TableColumn):
            columns.append(made)
            if (role := _role(made, unit)) is not None:
                _keep_apart(made, engine, role=role)
            continue
        if facts.keys() - {"nullable"}:
            raise PolicyError(
                f"{made.reason} So nothing can be declared of it but a type.", name=f"{min(facts)} of column {column}"
            )
        unusable[column] = made.reason
    if not columns:
        if isinstance(unit, str) and unit.lower() not in {column.lower() for column in own}:
            raise PolicyError(
                f"Table {name} has no column {unit} to name the unit.{declared.suggestion(unit, own)}",
                name=f"unit of table {name}",
            )
        raise PolicyError(
            f"No column of table {name} can be used. {next(iter(unusable.values()), 'It has none.')}", name="columns"
        )
    path = unit if isinstance(unit, PathStep) else None
    return Table(
        name=name,
        source=source,
        columns=tuple(columns),
        unit=None if isinstance(unit, PathStep) else unit,
        unique=unique,
        size=size,
        unusable=unusable,
        through=path,
    )


def _schema_of_declarations(unit: str | PathStep | None, *given: Mapping[str, object] | None) -> Schema:
    """Name the columns of a JSON file by the declarations: its own names are in its rows, and could identify people."""
    leads = unit.column if isinstance(unit, PathStep) else unit
    names = [name for facts in given if isinstance(facts, Mapping) for name in facts if isinstance(name, str)]
    spelt: dict[str, str] = {}
    for name in [*names, *([] if leads is None else [leads])]:
        spelt.setdefault(name.lower(), name)
    return [(name, None) for name in spelt.values()]


def _by_column(table: str, own: Iterable[str], what: str, given: Mapping[str, T] | None) -> dict[str, T]:
    """Return the declarations under lower-case names that the table has."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(what, "a mapping from columns to what is declared of them", given)
    known = {column.lower() for column in own}
    found: dict[str, T] = {}
    for column, value in given.items():
        if not isinstance(column, str) or column.lower() not in known:
            raise PolicyError(
                f"Table {table} has no column {column} to declare {what} of.{declared.suggestion(column, own)}",
                name=f"{what} of column {column}",
            )
        if column.lower() in found:
            raise PolicyError(
                f"The {what} of column {column} are declared twice. Leave one out.", name=f"{what} of column {column}"
            )
        found[column.lower()] = value
    return found


def _column(name: str, engine: str | None, facts: Mapping[str, object]) -> TableColumn | Unusable:
    """The column, or the sentence that says why it cannot be used."""
    try:
        declared.name("name of a column", name)
    except ParameterError:
        return Unusable(f"Column {ascii(name)[:80]} has a name that cannot be shown. Rename it in the source.")
    nullable = facts.get("nullable", True)
    if not isinstance(nullable, bool):
        raise ParameterError(f"nullable of column {name}", "true or false", nullable)
    kind = _kind(name, engine, facts.get("type"), nullable=nullable)
    if isinstance(kind, Unusable):
        return kind
    return TableColumn(
        name=name,
        kind=kind,
        bounds=facts.get("bounds"),  # type: ignore[arg-type]  # checked by Column, which names the place
        grid=facts.get("grid"),  # type: ignore[arg-type]
        keys=facts.get("keys"),  # type: ignore[arg-type]
        unique=facts.get("unique", False),  # type: ignore[arg-type]
    )


def _kind(name: str, engine: str | None, written: object, *, nullable: bool) -> Kind | Unusable:
    own = None if engine is None else engine_kind(engine, nullable=nullable)
    if isinstance(own, Unusable):
        return Unusable(f"Column {name} {own.reason}, which no question can use. Convert it in the source.")
    if written is None:
        if own is None:
            return Unusable(
                f"Column {name} has no type of its own. Declare one, such as text, integer, real or date: "
                f'columns={{"{name}": "text"}} in Python, {key(name)} = {{ type = "text" }} in a policy and after '
                "--column. hubbub init guesses those of a file."
            )
        return own
    kind = declared_kind(name, written, nullable=nullable)
    if own is not None and kind.type is not own.type and kind.type not in READABLE[own.type]:
        raise PolicyError(
            f"Column {name} holds {own.type} values in its source, which cannot be read as {kind.type}. "
            f"Declare {own.type}, or leave the type out.",
            name=f"type of column {name}",
        )
    return kind


def _names_unit(column: str, unit: str | PathStep | None) -> bool:
    leads = unit.column if isinstance(unit, PathStep) else unit
    return leads is not None and column.lower() == leads.lower()


def _role(column: TableColumn, unit: str | PathStep | None) -> str | None:
    """Return what a column has to do with units, as the end of a sentence; None where it has nothing to do with them.

    Rows of other tables may find their unit by a unique column of a private table.
    """
    leads = unit.column if isinstance(unit, PathStep) else unit
    if leads is None:
        return None
    if column.name.lower() == leads.lower():
        return "lead to the unit" if isinstance(unit, PathStep) else "name the unit"
    return _KEY if column.unique else None


def _keep_apart(column: TableColumn, engine: str | None, *, role: str) -> None:
    """Refuse a column that names units, or leads to them, if two of its values could be read as one.

    Which groups of a unit are kept is decided for each unit alone. If one unit's rows were counted as another's, its
    coming or going could change what is kept of the other. From text only a value's own spelling is read
    (policy.scanned); a source that has types has the right one, or is refused here. ``role`` ends a sentence.
    """
    own = None if engine is None else engine_kind(engine)
    if not isinstance(own, Kind):
        return
    converted = own.type is not column.kind.type
    if own.type in {Type.REAL, Type.TIMESTAMP} and (converted or role != _KEY):  # no path may go by such a key
        raise PolicyError(
            f"Column {column.name} cannot {role}: it holds {base_name(engine or '')} values in its source, and "
            "different ones could be read as one. Store it as integers or text.",
            name=role,
        )
    if converted and column.kind.type is not Type.TEXT:
        raise PolicyError(
            f"Column {column.name} cannot {role}: it holds {own.type} values in its source, and read as "
            f"{column.kind.type} different ones could become one. Leave its type out.",
            name=f"type of column {column.name}",
        )
