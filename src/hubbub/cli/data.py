"""Which data is asked: a policy, or one file with what must be said about it on the command line."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.arguments import exact

if TYPE_CHECKING:
    from hubbub.engines.conversion import Progress
    from hubbub.privacy.budget import Budget
    from hubbub.session import Database

POLICY = Path("hubbub.toml")
_FACTS = {"type": "types", "nullable": "nullable", "bounds": "bounds", "grid": "grids", "keys": "keys"}

Question = Annotated[
    str, typer.Argument(metavar="SQL", help="The question, in quotes; - reads it from standard input.")
]
File = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="One private table: a file or a quoted glob.", show_default=False),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="The policy; without one, ./hubbub.toml if it is there."),
]
Price = Annotated[
    Fraction, typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="What this answer may cost.")
]
Slack = Annotated[
    Fraction | None,
    typer.Option("--delta", parser=exact, metavar="NUMBER", help="Its δ; without it, a hundredth of the budget's."),
]
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", metavar="LEDGER", help="Without it: the policy's, HUBBUB_LEDGER, or hubbub.ledger."),
]
Principal = Annotated[str | None, typer.Option("--principal", help="Who asks; without it, the owner.")]

_ALONE = "With a file"
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="COLUMN", help="The column that says whose a row is.", rich_help_panel=_ALONE),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="LINE",
        help="What a policy says of a column, as often as needed: 'cost = {bounds = [0, 500]}'.",
        rich_help_panel=_ALONE,
    ),
]
Total = Annotated[
    Fraction | None,
    typer.Option(
        "--budget",
        parser=exact,
        metavar="NUMBER",
        help="The total ε of all answers; not needed once the ledger has the account.",
        rich_help_panel=_ALONE,
    ),
]
TotalSlack = Annotated[
    Fraction | None,
    typer.Option("--budget-delta", parser=exact, metavar="NUMBER", help="Its δ, else 0.", rich_help_panel=_ALONE),
]
MaxGroups = Annotated[
    int | None,
    typer.Option("--max-groups", min=1, help="Groups in which a unit counts, else 1.", rich_help_panel=_ALONE),
]
MaxRows = Annotated[
    int | None,
    typer.Option("--max-rows", min=1, help="Rows of a unit that count in a group.", rich_help_panel=_ALONE),
]
Account = Annotated[
    str | None, typer.Option("--account", help="Whom the budget protects, else people.", rich_help_panel=_ALONE)
]
DataVersion = Annotated[
    str | None,
    typer.Option("--data-version", help="Your name for the state of the data, else 1.", rich_help_panel=_ALONE),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """What is said about a single file; a policy says it itself."""

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
class Data:
    """All that is said about the data."""

    file: str | None
    policy: Path | None
    ledger: str | None
    principal: str | None
    alone: Alone = field(default_factory=Alone)
    log: Path | None = None

    def opened(self) -> "Database":
        """The data, ready to be asked; a bar on stderr while text is converted, only where a person looks."""
        import sys

        if not sys.stderr.isatty():
            return self._opened(None)
        from hubbub.cli.printing import progress

        with progress("Converting text") as report:
            return self._opened(report)

    def _opened(self, progress: "Progress | None") -> "Database":
        from hubbub.ledger import OWNER
        from hubbub.opening import open as opened

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
            raise typer.BadParameter("is needed: the column that says whose a row is.", param_hint="--unit")
        facts: dict[str, Any] = dict(columns_of(self.alone.columns or []))
        groups: dict[str, Any] = {} if self.alone.max_groups is None else {"max_groups": self.alone.max_groups}
        return opened(
            self.file,
            unit=self.alone.unit,
            budget=self._budget(),
            max_rows=self.alone.max_rows,
            account=self._account,
            version=self.alone.version,
            **facts,
            **groups,
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
        from hubbub.privacy.budget import Budget

        if self.alone.budget is not None:
            return Budget(epsilon=self.alone.budget, delta=self.alone.budget_delta or Fraction(0))
        place = self.ledger or os.environ.get("HUBBUB_LEDGER") or "hubbub.ledger"
        try:
            with Ledger(place, create=False, writes=False) as ledger:
                return ledger.statement(self._account).budget
        except (LedgerUnreachable, UnknownAccount) as problem:
            raise typer.BadParameter(
                f"is needed: {place} has no account {self._account!r} yet.", param_hint="--budget"
            ) from problem

    def _log(self) -> Any:
        if self.log is None:
            return None
        path = self.log

        def told(line: str) -> None:
            with path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

        return told


def default_policy() -> Path:
    """The policy of this folder."""
    if not POLICY.exists():
        raise typer.BadParameter(
            "name one, or a file with --unit; there is no hubbub.toml here. Write one with: hubbub init",
            param_hint="--policy",
        )
    return POLICY


def columns_of(lines: list[str]) -> dict[str, dict[str, Any]]:
    """The declarations of columns, sorted by what they declare."""
    from hubbub.policy.decimals import exact as decimal

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
            for name, value in _known(column, facts).items():
                out.setdefault(_FACTS[name], {})[column] = value
    return out


def _known(column: str, facts: Mapping[str, Any]) -> dict[str, Any]:
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
