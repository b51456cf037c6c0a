"""``hubbub.toml``, read: every mistake is an error with the file, the line and the remedy, and every number is exact.

``describe`` asks a source for its own schema; it belongs to an engine, and without it every column that is to be used
needs its type in the file.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from hubbub.errors import HubbubError, ParameterError, PolicyError
from hubbub.policy import declared
from hubbub.policy.build import Schema, single_table
from hubbub.policy.files.toml_text import Lines, exact, header, join_path, key
from hubbub.policy.files.toml_text import text as text_of
from hubbub.policy.paths import PathStep, follow_path, through
from hubbub.policy.servers import is_server, postgres
from hubbub.policy.shared_keys import find_steps, write_step
from hubbub.policy.sources import source_of
from hubbub.policy.tables import Limits, Policy, Table, TableSource
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors

Describe = Callable[[TableSource], Schema]

TOP = ("version", "ledger", "budget", "limits", "tables")
BUDGET = ("account", "epsilon", "delta", "neighbors")
LIMITS = tuple(field.name for field in fields(Limits))
TABLE = ("path", "format", "schema", "table", "copy", "view", "unit", "public", "unique", "size", "columns")
COLUMN = ("type", "nullable", "unique", "bounds", "grid", "keys", "missing_key")
PATH = ("through", "to", "key")
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        ("foreign_key", "foreign_keys", "references", "through", "via", "unit_path"),
        'A path to the unit is said so: unit = { through = "column", to = "table" }.',
    ),
    "account": "A table has no account of its own: whatever is learnt about the same units is charged to one. "
    "Declare it in [budget].",
}
_AT_LINE = re.compile(r"\s*\(at (?:line ([0-9]+), column [0-9]+|end of document)\)")
_OF_COLUMN = re.compile(r"(\w+) of column (.+)", re.DOTALL)


def read_policy(path: str | os.PathLike[str], *, describe: Describe | None = None) -> Policy:
    """The policy that a file declares."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError(f"{file} is not UTF-8 text. Save it as UTF-8.", file=str(file)) from None
    except OSError as error:
        raise PolicyError(
            f"{file} cannot be read ({error.strerror}). Write one with: hubbub init", file=str(file)
        ) from None
    return parse_policy(text, file=file, describe=describe)


def ledger_named(path: Path) -> str | None:
    """Return the ledger that a policy file names, however wrong the rest of it is; None where it names none."""
    try:
        named = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("ledger")
    except (OSError, ValueError, RecursionError):
        return None
    return _place_ledger(named, path) if isinstance(named, str) and named else None


def _place_ledger(written: str, policy: Path) -> str:
    return written if "://" in written else os.path.abspath(policy.parent / written)


def parse_policy(text: str, *, file: str | os.PathLike[str], describe: Describe | None = None) -> Policy:
    """The policy that a text declares; its paths are relative to the folder of ``file``."""
    try:
        content = tomllib.loads(text, parse_float=exact)
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "A number or a nesting is too large"
        place = _AT_LINE.search(said)
        number = int(place[1]) if place and place[1] else text.count("\n") + 1
        sentence = _AT_LINE.sub("", said).rstrip(".")
        raise PolicyError(f"{Path(file)}, line {number}: not TOML: {sentence}.", file=str(file), line=number) from None
    return _PolicyReader(Path(file), Lines(text), describe).policy(content)


class _PolicyReader:
    """Reads one parsed file, and knows where in it everything stands."""

    def __init__(self, file: Path, lines: Lines, describe: Describe | None) -> None:
        self._file = file
        self._lines = lines
        self._describe = describe
        self._tables: Mapping[str, Any] = {}

    def policy(self, content: Mapping[str, Any]) -> Policy:
        """The whole of it."""
        self._only(content, TOP)
        limits, tables = self._section(content, "limits", LIMITS), self._section(content, "tables")
        account, budget = self._budget(self._section(content, "budget", BUDGET))
        with self._at("limits"):
            limit = Limits(**limits)
        self._tables = tables
        made = {name: self._table(name, self._section(tables, name, TABLE, "tables")) for name in tables}
        for name in made:
            with self._at("tables", name):
                follow_path(made, name)
        with self._at():
            return Policy(
                account=account,
                budget=budget,
                tables=made,
                limits=limit,
                version=content.get("version", "1"),
                ledger=self._ledger(content.get("ledger")),
            )

    def _budget(self, content: Mapping[str, Any]) -> tuple[str, Budget]:
        with self._at("budget"):
            for needed in ("account", "epsilon"):
                if needed not in content:
                    raise PolicyError(f"[budget] does not say {needed}. Add a line: {needed} = …")
            account = declared.name("account", content["account"])
            neighbors = content.get("neighbors", Neighbors.ADD_REMOVE.value)
            if neighbors not in {Neighbors.ADD_REMOVE.value, Neighbors.REPLACE_ONE.value}:
                raise ParameterError("neighbors", '"add-remove" or "replace-one"', neighbors)
            return account, Budget(
                epsilon=content["epsilon"], delta=content.get("delta", 0), neighbors=Neighbors(neighbors)
            )

    def _ledger(self, written: object) -> str | None:
        if written is None:
            return None
        if not isinstance(written, str) or not written:
            raise ParameterError("ledger", "a path or the URL of a database", written)
        return _place_ledger(written, self._file)

    def _table(self, name: str, content: Mapping[str, Any]) -> Table:
        if isinstance(content.get("unit"), dict):
            self._only(content["unit"], PATH, "tables", name, "unit")
        with self._at("tables", name):
            unit = self._unit(name, content)
            source = self._source(name, content)
        columns = self._section(content, "columns", None, "tables", name)
        facts = {column: self._column(name, column, columns) for column in columns}
        with self._at("tables", name):
            schema: Schema = [(column, None) for column in columns]
            if self._describe is not None:
                described = self._describe(source)
                schema = schema if source.format == "json" else described  # names in JSON are told by rows
            own = [column for column, _ in schema]
            for column in columns:
                if column.lower() not in {known.lower() for known in own}:
                    raise PolicyError(
                        f"The source of table {name} has no column {column}.{declared.suggestion(column, own)}",
                        name=f"column of column {column}",
                    )
            return single_table(
                name=name,
                source=source,
                schema=schema,
                unit=unit,
                unique=content.get("unique", False),
                size=content.get("size"),
                bounds=_each(facts, "bounds"),
                keys=_each(facts, "keys"),
                types=_each(facts, "type"),
                nullable=_each(facts, "nullable"),
                grids=_each(facts, "grid"),
                uniques=_each(facts, "unique"),
            )

    def _unit(self, name: str, content: Mapping[str, Any]) -> str | PathStep | None:
        public, unit = content.get("public", False), content.get("unit")
        if not isinstance(public, bool):
            raise ParameterError("public", "true or false", public)
        if isinstance(unit, list):
            raise PolicyError(
                f"Rows of table {name} would be about several units, and one is protected. Name one column.",
                name="unit",
            )
        if public is (unit is not None):
            raise PolicyError(
                f"Table {name} is said to be public and to have a unit. Leave one out."
                if public
                else f"Table {name} does not say whose its rows are. {self._suggest_unit(name)}; or public = true, "
                "only if its rows may be shown to anybody.",
                name="public",
            )
        if isinstance(unit, dict):
            return self._path(name, unit)
        if unit is not None and not isinstance(unit, str):
            raise ParameterError(f"unit of table {name}", "the name of one column", unit)
        return unit

    def _suggest_unit(self, name: str) -> str:
        """Name the remedy that keeps rows private: a column, or a path by a column that tables share."""
        columns = {table: self._names(table) for table in self._tables}
        units = {table: content["unit"] for table, content in self._tables.items() if _names_unit(content)}
        for step in find_steps(columns, units).get(name, ())[:1]:
            return (
                f"Its {step.column} may lead to whom rows of {step.table} belong to: add {write_step(step)}, and "
                f"unique = true to column {step.key} of {step.table}"
            )
        shared = next((unit for unit in units.values() if unit.lower() in map(str.lower, columns[name])), "column")
        return f"Add unit = {text_of(shared)}"

    def _names(self, table: str) -> list[str]:
        """Name the columns of a table, as far as they are known without an error."""
        content = self._tables[table]
        columns = content.get("columns", {}) if isinstance(content, dict) else {}
        names = list(columns) if isinstance(columns, dict) else []
        if self._describe is not None:
            with suppress(HubbubError):
                names += [column for column, _ in self._describe(self._source(table, content))]
        return names

    def _path(self, name: str, content: Mapping[str, Any]) -> PathStep:
        if not {"through", "to"} <= content.keys() or not all(isinstance(one, str) for one in content.values()):
            raise PolicyError(
                f"The unit of table {name} is a column, or a path to it: "
                'unit = { through = "column", to = "table" }, with key = "column" if the key has another name.',
                name="unit",
            )
        return through(content["through"], to=content["to"], key=content.get("key"))

    def _source(self, name: str, content: Mapping[str, Any]) -> TableSource:
        if "path" not in content:
            raise PolicyError(f'Table {name} does not say where its rows are. Add path = "…".')
        table, format_, schema = content.get("table"), content.get("format"), content.get("schema")
        for what, value in (("table", table), ("format", format_), ("schema", schema)):
            if value is not None and not isinstance(value, str):
                raise ParameterError(what, "a string", value)
        if is_server(content["path"]):
            if format_ not in {None, "postgres"}:
                raise ParameterError("format", '"postgres" for the URL of a database, or left out', format_)
            said = {what: content[what] for what in ("schema", "copy", "view") if what in content}
            return postgres(content["path"], table=table or name, **said)
        for what in ("schema", "copy", "view"):
            if what in content:
                raise ParameterError(what, "said of a table of a PostgreSQL server alone", content[what])
        return source_of(content["path"], base=self._file.parent, format=format_, table=table, name=name)

    def _column(self, table: str, name: str, columns: Mapping[str, Any]) -> dict[str, Any]:
        content = dict(self._section(columns, name, COLUMN, "tables", table, "columns"))
        missing = content.pop("missing_key", False)
        with self._at("tables", table, "columns", name):
            if not isinstance(missing, bool) or (missing and "keys" not in content):
                raise ParameterError("missing_key", "true or false, beside keys", missing)
        if missing and isinstance(content["keys"], list):
            content["keys"] = [*content["keys"], None]
        return content

    def _section(
        self, content: Mapping[str, Any], name: str, known: tuple[str, ...] | None = None, *above: str
    ) -> Mapping[str, Any]:
        """A table of the file; an absent one is empty."""
        found = content.get(name, {})
        with self._at(*above, name):
            if not isinstance(found, dict):
                raise PolicyError(f"{join_path(*above, name)} must be a table: {header(*above, name)}.")
        if known is not None:
            self._only(found, known, *above, name)
        return found

    def _only(self, content: Mapping[str, Any], known: tuple[str, ...], *above: str) -> None:
        for written in content:
            if written in known:
                continue
            with self._at(*above, written):
                if known is TABLE and written in _REFUSED:
                    raise PolicyError(_REFUSED[written])
                where = header(*above) if above else "A policy"
                raise PolicyError(f"{where} has no key {key(written)}.{declared.suggestion(written, known)}")

    @contextmanager
    def _at(self, *path: str) -> Iterator[None]:
        """Errors inside are about this place, or about the part of it that they name."""
        try:
            yield
        except (PolicyError, ParameterError) as error:
            said = str(error.operands.get("name", ""))
            column = _OF_COLUMN.fullmatch(said)
            part = ("columns", column[2], column[1]) if column else (said.partition(" ")[0],)
            line = self._lines.of(*path, *part)
            raise PolicyError(
                f"{self._file}, line {line}: {error.message}",
                **{**error.operands, "file": str(self._file), "line": line},
            ) from None


def _names_unit(content: object) -> bool:
    return isinstance(content, dict) and isinstance(content.get("unit"), str)


def _each(facts: Mapping[str, Mapping[str, Any]], what: str) -> dict[str, Any]:
    """One kind of declaration, for the columns that have it."""
    return {column: given[what] for column, given in facts.items() if what in given}
