"""The engine that reads a policy's tables: chosen by what is declared of them, so that the choice is public.

Tables of a server are copied in one snapshot when they are opened, or stay where they are. How large they are decides
nothing: whoever asks would see it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.public import schema_of
from hubbub.engines.sources.conversion import Progress
from hubbub.engines.sources.origins import describe_server
from hubbub.gate.attempt import Log
from hubbub.policy.constraints import Enforced, with_constraints
from hubbub.policy.sources import SNAPSHOT
from hubbub.policy.tables import Limits, Policy, Table, TableSource


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """Where questions run, and the sentence that says so and why; None where all tables are files."""

    is_pushed: bool = False
    sentence: str | None = None


def choose_engine(sources: Iterable[TableSource]) -> EngineChoice:
    """Choose where questions on these sources run; by their declarations alone."""
    found = list(sources)
    servers = [source for source in found if source.format in SNAPSHOT]
    if not servers:
        return EngineChoice()
    copied = "run on a copy of the server's tables, made in one snapshot when they were opened"
    return EngineChoice(sentence=f"{copied}, since {_why_copied(found)}")


def _why_copied(sources: Sequence[TableSource]) -> str:
    if any(source.copy for source in sources):
        return "the owner says copy = true"
    if any(source.format not in SNAPSHOT for source in sources):
        return "other tables are files"
    if len({source.paths for source in sources}) > 1:
        return "the tables are in several databases"
    if any(source.view for source in sources):
        return "one is a view, whose rows are computed while it is read"
    return "no engine runs questions on the server yet"


class EngineRoom:
    """The engines of one opening: each is made when it is needed, and one is left."""

    def __init__(self, *, limits: Limits, log: Log | None = None, progress: Progress | None = None) -> None:
        self._limits, self._log, self._progress = limits, log, progress
        self._duckdb: DuckDB | None = None

    @property
    def duckdb(self) -> DuckDB:
        """Return the engine for files and copies."""
        if self._duckdb is None:
            self._duckdb = DuckDB(limits=self._limits, log=self._log, progress=self._progress)
        return self._duckdb

    def describe(self, source: TableSource) -> Sequence[tuple[str, str]]:
        """Return the names and types that a source declares itself; no row is read for it."""
        return describe_server(source) if source.format in SNAPSHOT else schema_of(self.duckdb, source)

    def settle(self, tables: Mapping[str, Table], limits: Limits) -> tuple[DuckDB, EngineChoice]:
        """Return the engine that reads these tables, those of servers copied if it reads copies."""
        choice = choose_engine(table.source for table in tables.values())
        engine = self.duckdb
        engine.limits = limits
        engine.take_snapshots(table.source for table in tables.values())
        return engine, choice

    def with_constraints(self, policy: Policy) -> Policy:
        """Return the policy with the declared uniqueness of servers' tables that their constraints enforce."""
        return with_constraints(policy, enforced=self._enforced, at_rest=self.duckdb.stamp_at_rest)

    def _enforced(self, table: Table) -> Enforced:
        if table.source.format not in SNAPSHOT or table.source.view:
            return {}
        return self.duckdb.catalogue(table.source).enforced

    def close(self) -> None:
        """Close what was made."""
        if self._duckdb is not None:
            self._duckdb.close()
