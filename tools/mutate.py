"""``make mutate``: break the code on purpose, one small edit at a time, and see that the tests notice.

A survivor is either a hole in the tests or an edit that changes nothing; which of the two it is must be argued in
``tools/mutants/argued.toml``, or the run fails. Verdicts are kept in ``.mutate``, so that an interrupted or repeated
run takes up where the last one stopped; the open cases are left there in ``open.toml``, ready to be argued.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # forks and threads

import argparse
import ast
import hashlib
import importlib
import json
import shutil
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tools.mutants.operators import Mutant, mutants
from tools.mutants.report import Judgement, read_arguments
from tools.mutants.survey import Baseline
from tools.mutants.workers import Project, Run, Verdict

Identity = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The project as the tool sees it: its settings, modules and tests."""

    project: Project
    targets: tuple[str, ...]
    left_out: tuple[str, ...]
    extra_tests: dict[str, list[str]]
    preload: tuple[str, ...]

    @classmethod
    def read(cls, root: Path, package: str, *, grace: float, patience: float) -> "Suite":
        """Settings from ``[tool.mutate]`` of pyproject.toml."""
        settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["mutate"]
        return cls(
            project=Project(root=root, package=package, state=root / ".mutate", grace=grace, patience=patience),
            targets=tuple(settings["targets"]),
            left_out=tuple(settings.get("leave_out", ())),
            extra_tests=settings.get("tests", {}),
            preload=tuple(settings.get("preload", ())),
        )

    @property
    def source(self) -> Path:
        return self.project.root / "src" / self.project.package

    def find_targets(self) -> list[Path]:
        """List the modules that are mutated."""
        left_out = {path for pattern in self.left_out for path in self.source.glob(pattern)}
        return sorted({path for pattern in self.targets for path in self.source.glob(pattern)} - left_out)

    def mutants(self, wanted: Sequence[str]) -> list[Mutant]:
        """The mutants of every target whose path contains one of ``wanted`` (of all, when there is none)."""
        names = {path: path.relative_to(self.source).as_posix() for path in self.find_targets()}
        helpers = frozenset(
            node.name
            for path in self.source.rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)
        )
        return [
            mutant
            for path, name in names.items()
            if not wanted or any(part in name for part in wanted)
            for mutant in mutants(name, path.read_text(), helpers=helpers)
        ]

    def tests(self, module: str) -> tuple[Path, ...]:
        """noise/discrete.py is answered for by tests/noise, meter.py by tests/meter or tests/gate/test_meter.py."""
        group = module.partition("/")[0].removesuffix(".py")
        places = [f"tests/{group}", f"tests/test_{group}.py", *self.extra_tests.get(group, ())]
        return tuple(path for path in (self.project.root / place for place in places) if path.exists())

    def digest(self, paths: Iterable[Path]) -> str:
        """Names the contents of files and folders, and of the conftest that all tests share."""
        hasher = hashlib.sha256()
        shared = self.project.root / "tests" / "conftest.py"
        folders = [path for path in (*paths, shared) if path.exists()]
        for file in sorted({file for path in folders for file in ([path] if path.is_file() else path.rglob("*.py"))}):
            hasher.update(file.relative_to(self.project.root).as_posix().encode() + b"\0" + file.read_bytes())
        return hasher.hexdigest()


@dataclass(slots=True)
class Memory:
    """Verdicts of earlier runs, by mutated text and tests; with ``resume`` even if other modules changed since."""

    path: Path
    package: str
    resume: bool
    known: dict[str, dict[str, Any]]

    @classmethod
    def load(cls, path: Path, *, package: str, resume: bool) -> "Memory":
        lines = path.read_text().splitlines() if path.exists() else []
        return cls(path, package, resume, {entry["key"]: entry for entry in map(json.loads, lines)})

    def recall(self, key: str) -> Verdict | None:
        entry = self.known.get(key)
        if entry is None or not (self.resume or entry["package"] == self.package):
            return None
        return Verdict(status=entry["status"], killer=entry["killer"], seconds=entry["seconds"])

    def store(self, key: str, verdict: Verdict) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"key": key, "package": self.package, **asdict(verdict)}) + "\n")


def judge(
    suite: Suite,
    todo: Sequence[Mutant],
    *,
    resume: bool,
    workers: int,
    tell: Callable[[str, Mutant | None], None],
) -> list[tuple[Mutant, Verdict]]:
    """Every mutant's verdict, remembered or run; ``tell`` hears of each step."""
    project = suite.project
    project.state.mkdir(exist_ok=True)
    memory = Memory.load(project.state / "verdicts.jsonl", package=suite.digest([suite.source]), resume=resume)
    tests = {module: suite.tests(module) for module in {mutant.module for mutant in todo}}
    marks = {paths: suite.digest(paths) for paths in set(tests.values())}
    keys = {mutant.identity: f"{mutant.digest}-{marks[tests[mutant.module]]}" for mutant in todo}
    verdicts: dict[Identity, Verdict] = {}
    waiting: dict[tuple[Path, ...], list[Mutant]] = defaultdict(list)
    for mutant in todo:
        remembered = memory.recall(keys[mutant.identity])
        if remembered is None and tests[mutant.module]:
            waiting[tests[mutant.module]].append(mutant)
        else:
            verdicts[mutant.identity] = remembered or Verdict(status="untested")
            tell(verdicts[mutant.identity].status, mutant)
    for paths, group in waiting.items():
        tell("first without a mutant: " + " ".join(path.relative_to(project.root).as_posix() for path in paths), None)
        baseline = project.survey(paths)
        for mutant, verdict in _hunt(project, group, baseline, workers=workers):
            verdicts[mutant.identity] = verdict
            memory.store(keys[mutant.identity], verdict)
            tell(verdict.status, mutant)
    return [(mutant, verdicts[mutant.identity]) for mutant in todo]


def _hunt(
    project: Project, group: Sequence[Mutant], baseline: Baseline, *, workers: int
) -> Iterable[tuple[Mutant, Verdict]]:
    if not baseline.seconds:
        yield from ((mutant, Verdict(status="untested")) for mutant in group)
        return
    free = [project.tree(f"worker-{number}") for number in range(workers)]
    queue = list(reversed(group))
    busy: list[tuple[Mutant, Run]] = []
    fame: dict[str, Counter[str]] = defaultdict(Counter)
    try:
        while queue or busy:
            while queue and free:
                mutant = queue.pop()
                busy.append((mutant, project.attack(mutant, baseline, tree=free.pop(), fame=fame[mutant.module])))
            for mutant, run in busy.copy():
                verdict = run.poll()
                if verdict is not None:
                    busy.remove((mutant, run))
                    free.append(run.tree)
                    fame[mutant.module][verdict.killer] += 1
                    yield mutant, verdict
            time.sleep(0.01)
    finally:
        for _, run in busy:
            run.stop()


def sample(found: Sequence[Mutant], limit: int | None) -> list[Mutant]:
    """At most ``limit`` mutants, chosen by a hash of what they are: an edit elsewhere does not choose others."""
    if limit is None or limit >= len(found):
        return list(found)
    chosen = {mutant.identity for mutant in sorted(found, key=_lot)[:limit]}
    return [mutant for mutant in found if mutant.identity in chosen]


def _lot(mutant: Mutant) -> str:
    return hashlib.sha256(repr(mutant.identity).encode()).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__, allow_abbrev=False)
    parser.add_argument("--module", action="append", default=[], help="only modules whose path contains this")
    parser.add_argument("--limit", type=int, help="at most this many mutants, chosen by their hash")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--resume", action="store_true", help="trust verdicts from before other modules changed")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--grace", type=float, default=10.0, help="seconds a run may take beyond four times the usual")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds of tests to try on one mutant")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="another project")
    parser.add_argument("--package", default="hubbub", help="its package")
    options = parser.parse_args(arguments)
    suite = Suite.read(options.root, options.package, grace=options.grace, patience=options.patience)
    console = Console(soft_wrap=True, highlight=False)
    whole = suite.mutants(options.module)
    todo = sample(whole, options.limit)
    if options.list:
        for mutant in todo:
            console.print(str(mutant), markup=False)
        console.print(f"{len(todo)} mutants")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no child is left behind
    for name in suite.preload:
        importlib.import_module(name)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, auto_refresh=False)
    counts: Counter[str] = Counter()

    def tell(status: str, mutant: Mutant | None) -> None:
        if mutant is None:
            console.print(status, markup=False)
        else:
            counts[status] += 1
            progress.update(task, advance=1, description=" ".join(f"{key} {n}" for key, n in sorted(counts.items())))
            if status in {"survived", "untested"}:
                console.print(f"{status}: {mutant}", markup=False)
        progress.refresh()

    with progress:
        task = progress.add_task("", total=len(todo))
        results = judge(suite, todo, resume=options.resume, workers=options.workers, tell=tell)
    shutil.rmtree(suite.project.scratch, ignore_errors=True)

    folder = suite.project.root / "tools" / "mutants"
    arguments_for = read_arguments(folder / "argued.toml")
    judgement = Judgement.of(results, arguments_for, whole=whole, partial=bool(options.module))
    (suite.project.state / "open.toml").write_text(judgement.template())
    (suite.project.state / "survivors.md").write_text(judgement.table(arguments_for))
    if not options.module and options.limit is None:
        (folder / "survivors.md").write_text(judgement.table(arguments_for))
    for sentence in judgement.sentences():
        console.print(sentence, markup=False)
    return 0 if judgement.good else 1


if __name__ == "__main__":
    sys.exit(main())
