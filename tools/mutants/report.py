"""Survivors and the arguments for them: an edit that no test notices must be listed with the reason it may live."""

import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.operators import Mutant
from tools.mutants.workers import Verdict

Results = Sequence[tuple[Mutant, Verdict]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """Why some mutants may live. What is left out matches anything: a reason may cover a whole constant or function."""

    module: str
    reason: str
    within: str | None = None
    before: str | None = None
    after: str | None = None
    turn: int | None = None

    def covers(self, mutant: Mutant) -> bool:
        pairs = (
            (self.module, mutant.module),
            (self.within, mutant.within),
            (self.before, mutant.before),
            (self.after, mutant.after),
            (self.turn, mutant.turn),
        )
        return all(wanted in {None, found} for wanted, found in pairs)

    def __str__(self) -> str:
        return "  ".join(str(part) for part in (self.module, self.within, self.before, "→", self.after) if part)


def read_arguments(path: Path) -> list[Argument]:
    """The argued list; an entry without a reason is refused."""
    entries = tomllib.loads(path.read_text()).get("argued", []) if path.exists() else []
    for entry in entries:
        if not entry.get("reason", "").strip():
            raise SystemExit(f"{path}: {entry.get('module')} `{entry.get('before')}` is listed without a reason.")
    return [Argument(**entry) for entry in entries]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a run found, held against the arguments."""

    results: Results
    open_cases: list[Mutant]
    """Survivors that nobody has argued for."""
    idle: list[Argument]
    """Arguments whose mutants are all killed, or gone."""

    @classmethod
    def of(
        cls, results: Results, arguments: Sequence[Argument], *, whole: Sequence[Mutant], partial: bool
    ) -> "Judgement":
        """``whole`` are the mutants that could have been run; ``partial`` says that other modules were left out."""
        verdicts = {mutant.identity: verdict for mutant, verdict in results}

        def is_idle(argument: Argument) -> bool:
            covered = [verdicts.get(mutant.identity) for mutant in whole if argument.covers(mutant)]
            gone = not covered and not partial
            return gone or (bool(covered) and all(verdict and verdict.status == "killed" for verdict in covered))

        alive = [mutant for mutant, verdict in results if verdict.alive]
        return cls(
            results=results,
            open_cases=[mutant for mutant in alive if not any(argument.covers(mutant) for argument in arguments)],
            idle=[argument for argument in arguments if is_idle(argument)],
        )

    @property
    def good(self) -> bool:
        return not (self.open_cases or self.idle)

    def sentences(self) -> list[str]:
        return [
            *(f"not argued: {mutant}" for mutant in self.open_cases),
            *(f"argued, and yet killed or gone: {argument}" for argument in self.idle),
            f"{len(self.results)} mutants, {len(self.open_cases)} survivors without an argument",
        ]

    def table(self, arguments: Sequence[Argument]) -> str:
        """The survivors, for people: where, what, and why it is allowed to live."""
        counts = Counter(verdict.status for _, verdict in self.results)
        rows = []
        for mutant in (mutant for mutant, verdict in self.results if verdict.alive):
            reason = next((argument.reason for argument in arguments if argument.covers(mutant)), "**not argued**")
            place = f"`{mutant.module}:{mutant.line}` | `{mutant.within}`"
            rows.append(f"| {place} | {_cell(mutant.before)} | {_cell(mutant.after)} | {reason} |")
        killed = counts["killed"] + counts["timeout"]
        lines = [
            "# Surviving mutants",
            "",
            f"{len(self.results)} mutants: {killed} killed ({counts['timeout']} of them by the time limit), "
            f"{counts['survived']} survived, {counts['untested']} without a test. Written by `make mutate`.",
            "",
            "| where | within | before | after | why it may live |",
            "|---|---|---|---|---|",
            *rows,
        ]
        return "\n".join(lines) + "\n"

    def template(self) -> str:
        """The open cases in the form of the argued list, for whoever has the reasons."""
        entries = []
        for mutant in self.open_cases:
            fields = {"module": mutant.module, "within": mutant.within, "before": mutant.before, "after": mutant.after}
            lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
            entries.append("\n".join(["[[argued]]", *lines, f"turn = {mutant.turn}", 'reason = ""', ""]))
        return "\n".join(entries)


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("`", "'") + "`"
