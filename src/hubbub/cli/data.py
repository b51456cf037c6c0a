"""The data of a question: a policy, or one file with its declarations on the command line."""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hubbub.cli import options

if TYPE_CHECKING:
    from hubbub.engines.sources.conversion import Progress
    from hubbub.privacy.filter import Budget
    from hubbub.session.database import Database

POLICY = Path("hubbub.toml")
_FACTS = ("type", "nullable", "bounds", "grid", "keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeclarations:
    """The declarations about a single file; a policy has its own."""

    unit: str | None = None
    columns: list[str] | None = None
    budget: Fraction | None = None
    budget_delta: Fraction | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    account: str | None = None
    version: str | None = None

    @property
    def said(self) -> list[str]:
        """The options that were given."""
        found = [name for name in self.__dataclass_fields__ if getattr(self, name) not in (None, [])]
        return ["--" + _OPTIONS.get(name, name.replace("_", "-")) for name in found]


_OPTIONS = {"columns": "column", "version": "data-version"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """All that is said about the data."""

    file: str | None
    policy: Path | None
    ledger: str | None
    principal: str | None
    alone: FileDeclarations = field(default_factory=FileDeclarations)
    log: Path | None = None

    def open(self, *, log: Path | None = None) -> "Database":
        """Open the data, ready to be asked; a bar on stderr while text is converted, only where a person looks."""
        if log is not None:
            return replace(self, log=log).open()
        import sys

        if not sys.stderr.isatty():
            return self._open(None)
        from hubbub.cli.printing import progress

        with progress("Converting text") as report:
            return self._open(report)

    def _open(self, progress: "Progress | None") -> "Database":
        from hubbub.engines.duckdb.nursery import nursery

        nursery().prepare()  # it loads the engine while this process loads the rest
        from hubbub.ledger import OWNER
        from hubbub.session.opening import open as opened

        common: dict[str, Any] = {
            "ledger": self.ledger,
            "principal": self.principal or OWNER,
            "log": self._log(),
            "progress": progress,
        }
        policy = self._policy()
        if policy is not None:
            return opened(policy, **common)
        if self.alone.unit is None:
            raise typer.BadParameter(
                "is needed: the column that says whose a row is. (Or write a policy, with: hubbub init)",
                param_hint="--unit",
            )
        from hubbub.policy.tables import Limits

        return opened(
            self.file,
            unit=self.alone.unit,
            budget=self._budget(),
            columns=columns_of(self.alone.columns or []),
            limits=Limits(max_groups=self.alone.max_groups, max_rows=self.alone.max_rows),
            account=self._account,
            version=self.alone.version,
            **common,
        )

    def _policy(self) -> Path | None:
        """The policy that is meant; None where a file is."""
        if self.file is not None and self.policy is not None:
            raise typer.BadParameter("a file or a policy, not both.", param_hint="--policy")
        found = self.policy
        if found is None and self.file is not None and self.file.endswith(".toml"):
            found = Path(self.file)
        if found is None and self.file is None:
            found = default_policy()
        if found is not None and self.alone.said:
            raise typer.BadParameter("a policy says this itself.", param_hint=" ".join(self.alone.said))
        return found

    @property
    def _account(self) -> str:
        return self.alone.account or "people"

    def _budget(self) -> "Budget":
        """As given, or as the ledger has it."""
        import os

        from hubbub.errors import LedgerUnreachable, UnknownAccount
        from hubbub.ledger import Ledger
        from hubbub.privacy.filter import Budget

        if self.alone.budget is not None:
            return Budget(epsilon=self.alone.budget, delta=self.alone.budget_delta or Fraction(0))
        place = self.ledger or os.environ.get("HUBBUB_LEDGER") or "hubbub.ledger"
        try:
            with Ledger(place, create=False, writes=False) as ledger:
                return ledger.statement(self._account).budget
        except (LedgerUnreachable, UnknownAccount) as problem:
            raise typer.BadParameter(
                f"is needed, the total ε of all answers, such as --budget 2: {place} has no account "
                f"{self._account!r} yet.",
                param_hint="--budget",
            ) from problem

    def _log(self) -> Any:
        if self.log is None:
            return None
        path = self.log

        def print_line(line: str) -> None:
            with path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

        return print_line


# Parameter of a command → the option that it is, for everything that says which data is asked.
_WHERE = {
    "file": options.File,
    "policy": options.PolicyFile,
    "ledger": options.LedgerOption,
    "principal": options.Principal,
}
_ABOUT = {
    "unit": options.Unit,
    "columns": options.Columns,
    "budget": options.Total,
    "budget_delta": options.TotalSlack,
    "max_groups": options.MaxGroups,
    "max_rows": options.MaxRows,
    "account": options.Account,
    "version": options.DataVersion,
}


def with_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which data is asked; it gets them as one ``data``."""
    own = inspect.signature(command)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in {**_WHERE, **_ABOUT}.items()
    ]

    @wraps(command)
    def asked(**given: Any) -> None:
        where = {name: given.pop(name) for name in _WHERE}
        about = FileDeclarations(**{name: given.pop(name) for name in _ABOUT})
        command(data=DataOptions(**where, alone=about), **given)

    parameters = [one for one in own.parameters.values() if one.name != "data"]
    asked.__signature__ = own.replace(parameters=[*parameters, *shared])  # type: ignore[attr-defined]
    asked.__annotations__ = {one.name: one.annotation for one in (*parameters, *shared)} | {"return": None}
    return asked


def default_policy() -> Path:
    """The policy of this folder."""
    if not POLICY.exists():
        raise typer.BadParameter(
            "name one, or a file with --unit; there is no hubbub.toml here. Write one with: hubbub init",
            param_hint="--policy",
        )
    return POLICY


def columns_of(lines: list[str]) -> dict[str, dict[str, Any]]:
    """Read the declarations of columns."""
    from hubbub.policy.files.toml_text import exact as decimal

    out: dict[str, dict[str, Any]] = {}
    for line in lines:
        try:
            read = tomllib.loads(line, parse_float=decimal)
        except (tomllib.TOMLDecodeError, ValueError, RecursionError):
            read = {}
        if not read or not all(isinstance(facts, dict) for facts in read.values()):
            raise typer.BadParameter(
                f"{line!r} is no line such as 'cost = {{bounds = [0, 500]}}'.", param_hint="--column"
            )
        for column, facts in read.items():
            out.setdefault(column, {}).update(_known_facts(column, facts))
    return out


def _known_facts(column: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(facts)
    if found.pop("missing_key", False) and isinstance(found.get("keys"), list):
        found["keys"] = [*found["keys"], None]
    for name in found:
        if name not in _FACTS:
            raise typer.BadParameter(
                f"{column!r} has no {name!r}; a column has {', '.join(_FACTS)}.", param_hint="--column"
            )
    return found


def question_of(text: str) -> str:
    """The question; from standard input for -."""
    import sys

    return sys.stdin.read() if text == "-" else text
