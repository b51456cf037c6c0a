"""Runs a module's tests against its mutants: one warm process, one forked child for each run.

The parent imports the slow packages once and never Hubbub itself; a child puts its own copy of the package first on
the path, runs the tests that reach the mutated function, quickest first, and stops at the first failure. The parent
stays single-threaded, since a fork copies only the calling thread.
"""

import compileall
import contextlib
import functools
import json
import os
import py_compile
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from tools.mutants.operators import Mutant
from tools.mutants.survey import Baseline, Survey

MEMORY_LIMIT = 6 << 30
"""Bytes of data a child may hold: a mutant that builds an endless table dies alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant: ``killed``, ``timeout`` (also a kill), ``survived`` or ``untested``."""

    status: str
    killer: str = ""
    seconds: float = 0.0

    @property
    def alive(self) -> bool:
        return self.status in {"survived", "untested"}


@dataclass(slots=True, eq=False)
class _Hunt:
    """A pytest plugin: keeps the chosen tests (and any that are new), in their order, and notes the one that fails."""

    known: set[str]
    order: dict[str, int]
    killer: str = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.order or item.nodeid not in self.known]
        items.sort(key=lambda item: self.order.get(item.nodeid, len(self.order)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.killer:
            self.killer = report.nodeid


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Where things are: ``root`` holds src/<package> and tests, ``state`` is ours to write in."""

    root: Path
    package: str
    state: Path
    grace: float
    """Seconds a run may take beyond four times what its tests usually take."""
    patience: float
    """Seconds of tests to try on one mutant, the most telling first, before it counts as a survivor."""

    @property
    def scratch(self) -> Path:
        """This run's own folder, so that two runs at once do not disturb each other."""
        return self.state / f"run-{os.getpid()}"

    def tree(self, name: str) -> Path:
        """A private copy of the package, compiled so that an unchanged module is never compiled twice."""
        tree = self.scratch / name
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(self.root / "src" / self.package, tree / self.package, ignore=shutil.ignore_patterns("*.pyc"))
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(tree, quiet=2, invalidation_mode=checked)
        return tree

    def survey(self, tests: Sequence[Path], *, timeout: float = 1800) -> Baseline:
        """Runs ``tests`` on the unchanged package; raises if they do not pass."""
        tree = self.tree("baseline")
        scratch = self.scratch
        answer = scratch / "baseline.json"
        answer.unlink(missing_ok=True)

        def job() -> int:
            survey = Survey(self.package)
            survey.now = survey.calls["import"]
            sys.settrace(survey.trace)
            threading.settrace(survey.trace)
            code = _pytest(tests, survey)
            sys.settrace(None)
            answer.write_text(json.dumps(survey.result(tree)))
            return code

        run = Run.start(self, job, tree=tree, log=scratch / "baseline.log", timeout=timeout, compile_tests=True)
        code = run.wait()
        found = json.loads(answer.read_text()) if answer.exists() else {}
        if code not in {0, pytest.ExitCode.NO_TESTS_COLLECTED} or found.get("failed"):
            names = " ".join(str(test) for test in tests)
            raise SystemExit(f"The tests must pass before they can judge: {names} (see {scratch}/baseline.log).")
        found.pop("failed")
        return Baseline(**found)

    def attack(self, mutant: Mutant, baseline: Baseline, *, tree: Path, fame: Mapping[str, int]) -> "Run":
        """Starts the tests against one mutant in ``tree``, a copy that no other run is using."""
        tests = baseline.order(mutant, fame=fame, patience=self.patience)
        files = list(dict.fromkeys(self.root / test.partition("::")[0] for test in tests))
        usual = sum(baseline.seconds[test] for test in tests)
        path = tree / self.package / mutant.module
        original = path.read_text()
        path.write_text(mutant.source)
        answer = tree / "killer"
        answer.unlink(missing_ok=True)

        def job() -> int:
            hunt = _Hunt(set(baseline.seconds), {test: place for place, test in enumerate(tests)})
            code = _pytest(files, hunt)
            answer.write_text(hunt.killer or ("collection" if code else ""))
            return code

        run = Run.start(self, job, tree=tree, log=tree / "log", timeout=self.grace + 4 * usual)
        run.after = functools.partial(path.write_text, original)
        return run


@dataclass(slots=True)
class Run:
    """One child at work."""

    pid: int
    tree: Path
    began: float
    deadline: float
    after: Callable[[], object] = lambda: None
    code: int | None = None

    @classmethod
    def start(
        cls,
        project: Project,
        job: Callable[[], int],
        *,
        tree: Path,
        log: Path,
        timeout: float,
        compile_tests: bool = False,
    ) -> "Run":
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                _settle(project, tree=tree, log=log, timeout=timeout, compile_tests=compile_tests)
                code = int(job())
            except BaseException as error:
                print(repr(error), flush=True)
            finally:
                os._exit(code)
        now = time.monotonic()
        return cls(pid=pid, tree=tree, began=now, deadline=now + timeout)

    def poll(self) -> Verdict | None:
        """The verdict, once there is one."""
        seconds = time.monotonic() - self.began
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.code = os.waitstatus_to_exitcode(status)
        elif time.monotonic() < self.deadline:
            return None
        self.stop(reaped=bool(pid))
        if not pid:
            return Verdict(status="timeout", seconds=seconds)
        if self.code == pytest.ExitCode.OK:
            return Verdict(status="survived", seconds=seconds)
        if self.code == pytest.ExitCode.NO_TESTS_COLLECTED:
            return Verdict(status="untested", seconds=seconds)
        answer = self.tree / "killer"
        return Verdict(status="killed", killer=answer.read_text() if answer.exists() else "crash", seconds=seconds)

    def stop(self, *, reaped: bool = False) -> None:
        """Ends the child and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if not reaped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # it may not have its group yet
            os.waitpid(self.pid, 0)
        self.after()

    def wait(self) -> int:
        try:
            while self.poll() is None:
                time.sleep(0.05)
        except BaseException:
            self.stop()
            raise
        return -1 if self.code is None else self.code


def _settle(project: Project, *, tree: Path, log: Path, timeout: float, compile_tests: bool) -> None:
    """Makes the child a world of its own: group, output, limits, import path."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(4 * timeout) + 60,) * 2)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(project.root)
    sys.dont_write_bytecode = not compile_tests
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(tree))
    hypothesis.settings.register_profile(
        "mutate",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def _pytest(paths: Sequence[Path], plugin: object) -> int:
    quiet = ["-x", "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    warm = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-profile=mutate"]
    return int(pytest.main([*quiet, *warm, *map(str, paths)], plugins=[plugin]))
