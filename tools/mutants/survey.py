"""Which tests can tell: one run of a group's tests on the unchanged package, timed and traced."""

import contextlib
import itertools
import os
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tools.mutants.operators import Mutant


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The tests of one group on the unchanged package: how long each takes and which code it reaches."""

    seconds: dict[str, float]
    reached: dict[str, dict[str, list[int]]]
    """Test → module → first lines of the code objects that it called."""
    everywhere: dict[str, list[int]]
    """Module → code that ran while modules were imported, and so may matter to every test."""

    def order(self, mutant: Mutant, *, fame: Mapping[str, int], patience: float) -> list[str]:
        """The tests to run, the most telling first, as many as fit into ``patience`` seconds.

        Tests that call the mutated function come first; if it also runs at import, or nothing is seen to call it, the
        others follow. Among equals, those with the most kills to expect per second lead: ``fame`` counts the module's
        kills so far, and tests that bear its name get a head start.
        """
        low, high = mutant.span
        stem = f"test_{Path(mutant.module).stem}"

        def touches(reached: dict[str, list[int]]) -> bool:
            return any(low <= line <= high for line in reached.get(mutant.module, ()))

        def promise(test: str) -> float:
            namesake = Path(test.partition("::")[0]).stem.startswith(stem)
            return (fame.get(test, 0) + (1.0 if namesake else 0.2)) / (self.seconds[test] + 0.02)

        ranked = sorted(self.seconds, key=promise, reverse=True)
        near = [test for test in ranked if touches(self.reached[test])]
        if not near or mutant.span == (0, 0) or touches(self.everywhere):
            near += [test for test in ranked if not touches(self.reached[test])]
        spent = list(itertools.accumulate(self.seconds[test] for test in near))
        return [test for test, until in zip(near, spent, strict=True) if until <= patience] or near[:1]


@dataclass(slots=True, eq=False)
class Survey:
    """A pytest plugin: times every test and notes which functions of the package it calls."""

    package: str
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, set[CodeType]] = field(default_factory=lambda: defaultdict(set))
    failed: list[str] = field(default_factory=list)
    now: set[CodeType] = field(default_factory=set)

    def trace(self, frame: FrameType, event: str, argument: object) -> None:
        self.now.add(frame.f_code)

    @contextlib.contextmanager
    def noting(self, owner: str) -> Iterator[None]:
        before, self.now = self.now, self.calls[owner]
        if sys.gettrace() is None:  # Python drops a tracer in which a test's RecursionError went off
            sys.settrace(self.trace)
        try:
            yield
        finally:
            self.now = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        _forget_caches(self.package)
        with self.noting(item.nodeid.partition("::")[0]):  # a fixture may serve the whole file
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        with self.noting(item.nodeid):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def result(self, tree: Path) -> dict[str, Any]:
        root = str(tree / self.package) + os.sep

        def modules(codes: Iterable[CodeType]) -> dict[str, list[int]]:
            found = defaultdict(set)
            for code in codes:
                if code.co_filename.startswith(root) and code.co_name != "<module>":
                    found[code.co_filename.removeprefix(root)].add(code.co_firstlineno)
            return {module: sorted(lines) for module, lines in found.items()}

        reached = {test: modules(self.calls[test] | self.calls[test.partition("::")[0]]) for test in self.seconds}
        return {
            "failed": self.failed,
            "seconds": dict(self.seconds),
            "reached": reached,
            "everywhere": modules(self.calls["import"]),
        }


def _forget_caches(package: str) -> None:
    """Empties the package's ``functools.cache``s, or only the first test of a table would seem to reach its code."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package:
            for owner in (module, *(value for value in vars(module).values() if isinstance(value, type))):
                for value in list(vars(owner).values()):
                    clear = getattr(value, "cache_clear", None)
                    if clear is not None:
                        clear()
