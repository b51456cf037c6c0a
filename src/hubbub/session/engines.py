"""The engine that reads a policy's tables: chosen by what is declared of them, so that the choice is public.

Tables of a server are copied in one snapshot when they are opened, or stay where they are. How large they are decides
nothing: whoever asks would see it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.public import schema_of
from hubbub.engines.sources.conversion import Progress
from hubbub.errors import PolicyError
from hubbub.gate.attempt import Log
from hubbub.policy.constraints import Enforced, with_constraints
from hubbub.policy.sources import SNAPSHOT
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, Table, TableSource

if TYPE_CHECKING:
    from hubbub.engines.postgres.catalogue import CatalogueTable
    from hubbub.engines.postgres.engine import Postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """Where questions run, and the sentence that says so and why; None where all tables are files."""

    is_pushed: bool = False
    sentence: str | None = None


def choose_engine(sources: Iterable[TableSource], *, unfit: str | None = None) -> EngineChoice:
    """Choose where questions on these sources run, by their declarations alone.

    ``unfit`` says why the server is none to run questions on, as the end of a sentence.
    """
    found = list(sources)
    if not any(source.format in SNAPSHOT for source in found):
        return EngineChoice()
    why = _why_copied(found) or unfit
    if why is None:
        return EngineChoice(is_pushed=True, sentence="run on the server, each in one snapshot that only reads")
    kept = next((source for source in found if source.copy is False), None)
    if kept is not None:
        raise PolicyError(
            f"Table {kept.table} is said to stay on its server, and questions cannot run there, since {why}. Leave "
            "copy = false out, and it is copied.",
            name="copy",
        )
    copied = "run on a copy of the server's tables, made in one snapshot when they were opened"
    return EngineChoice(sentence=f"{copied}, since {why}")


def look_and_choose(sources: Sequence[TableSource]) -> EngineChoice:
    """Choose where questions on these sources run, and ask the server whether it is one to run them on."""
    choice = choose_engine(sources)
    if not choice.is_pushed:
        return choice
    from hubbub.engines.postgres.server_check import find_unfitness

    return choose_engine(sources, unfit=find_unfitness(sources[0]))


def _why_copied(sources: Sequence[TableSource]) -> str | None:
    if any(source.copy for source in sources):
        return "the owner says copy = true"
    if any(source.format not in SNAPSHOT for source in sources):
        return "other tables are files"
    if len({source.paths for source in sources}) > 1:
        return "the tables are in several databases"
    if len({source.dsn for source in sources}) > 1:
        return "the tables are read as several roles"
    if any(source.view for source in sources):
        return "one is a view, whose rows are computed while it is read"
    return None


def _check_columns(table: Table, copied: set[str]) -> None:
    """Refuse a copy that was made when a column was gone, for whatever is asked of it would fail."""
    missing = next((column.name for column in table.columns if column.name not in copied), None)
    if missing is not None:
        raise PolicyError(f"Column {missing} of table {table.name} is gone since it was described. Open it again.")


class EngineRoom:
    """The engines of one opening: each is made when it is needed, and one is left."""

    def __init__(self, *, limits: Limits, log: Log | None = None, progress: Progress | None = None) -> None:
        self._limits, self._log, self._progress = limits, log, progress
        self._duckdb: DuckDB | None = None
        self._catalogues: dict[TableSource, CatalogueTable] = {}

    @property
    def duckdb(self) -> DuckDB:
        """Return the engine for files and copies."""
        if self._duckdb is None:
            self._duckdb = DuckDB(limits=self._limits, log=self._log, progress=self._progress)
        return self._duckdb

    def describe(self, source: TableSource) -> Sequence[tuple[str, str]]:
        """Return the names and types that a source declares itself; no row is read for it."""
        if source.format not in SNAPSHOT:
            return schema_of(self.duckdb, source)
        return [(column.name, column.type) for column in self._catalogue(source).readable]

    def settle(self, tables: Mapping[str, Table], limits: Limits) -> "tuple[DuckDB | Postgres, EngineChoice]":
        """Return the engine that reads these tables; those of servers are copied if it reads copies.

        On a server questions run as a role that can read what is declared, and nothing else.
        """
        sources = [table.source for table in tables.values()]
        choice = look_and_choose(sources)
        if choice.is_pushed:
            return self._push(list(tables.values()), limits), choice
        engine = self.duckdb
        engine.limits = limits
        engine.take_snapshots(sources)
        for table in tables.values():
            if table.source.format in SNAPSHOT:
                copied = self._catalogues[table.source] = engine.catalogue(table.source)
                _check_columns(table, {column.name for column in copied.readable})
        return engine, choice

    def with_constraints(self, policy: Policy, engine: "DuckDB | Postgres | None" = None) -> Policy:
        """Return the policy with the declared uniqueness of servers' tables that their constraints enforce.

        Without an engine no row is read, and what is believed is so of the catalogue alone.
        """
        at_rest = (lambda _: NO_FILES) if engine is None else engine.stamp_at_rest
        return with_constraints(policy, enforced=self._find_enforced, at_rest=at_rest)

    def close(self) -> None:
        """Close what was made."""
        if self._duckdb is not None:
            self._duckdb.close()

    def _push(self, tables: Sequence[Table], limits: Limits) -> "Postgres":
        from hubbub.engines.postgres.engine import Postgres
        from hubbub.engines.postgres.server_check import check_role

        check_role(tables, temporary=limits.temporary)
        dsn = tables[0].source.dsn
        assert dsn is not None
        self.close()  # nothing is read by it
        return Postgres(limits=limits, dsn=dsn, log=self._log)

    def _find_enforced(self, table: Table) -> Enforced:
        if table.source.format not in SNAPSHOT or table.source.view:
            return {}
        return self._catalogue(table.source).enforced

    def _catalogue(self, source: TableSource) -> "CatalogueTable":
        """Return what the catalogue says: in the snapshot that was copied, or as it was described.

        (Questions on the server look at it again, in the snapshot that they read.)
        """
        if source not in self._catalogues:
            from hubbub.engines.postgres.copying import describe

            self._catalogues[source] = describe(source)
        return self._catalogues[source]
