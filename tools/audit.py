"""``make audit``: audit everything that has a name, and every question of the gallery, again and again.

Each run has a seed of its own, so that each makes other inputs up and draws other noise. Nothing of ours may be
accused. An honest subject is accused by accident at most five times in a million runs, so one accusation here is a bug.

A long campaign can be run in pieces: ``--tally FILE`` counts what the file says, adds to it, and goes on until each
subject has had its runs, those that are new since then too. What was done when a piece is cut short is in the file.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hubbub.audit.examine import examine
from hubbub.audit.subject import Subject
from hubbub.audit.subjects.registry import SUBJECTS
from tests.planted.queries import QUERIES

RUNS = 100
SLOWEST = 3


@cache
def subjects() -> dict[str, Callable[[], Subject]]:
    """By name; a question is its own name."""
    asked = {one.subject: None for one in QUERIES}
    return {**SUBJECTS, **{f"question {place}": made for place, made in enumerate(asked, 1)}}


@dataclass
class Tally:
    """What was audited so far, in one piece or in several."""

    runs: dict[str, int] = field(default_factory=dict)
    accusations: dict[str, int] = field(default_factory=dict)
    """Of each subject that was audited, 0 among them."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Spent on each subject, on one core."""
    pieces: list[dict[str, Any]] = field(default_factory=list)
    """Each time it was begun: up to how many runs, of which subjects, and how many audits were done."""
    reports: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path | None) -> "Tally":
        """From a file; empty where there is none yet."""
        if path is None or not path.exists():
            return cls()
        held = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{name: held[name] for name in cls.__dataclass_fields__})

    def lacking(self, names: Sequence[str], runs: int) -> list[tuple[str, int]]:
        """Subjects and seeds until each has so many runs: all subjects once before any of them twice.

        A seed says which inputs are made up; a run that was cut short may leave one out, and make another up twice.
        """
        return [(name, seed) for seed in range(runs) for name in names if seed >= self.runs.get(name, 0)]

    def write(self, path: Path | None) -> None:
        """All of it, or the file stays as it was."""
        if path is not None:
            beside = path.with_name(f"{path.name}.new")
            held = asdict(self) | {"total": self.total}
            beside.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            beside.replace(path)

    def add(self, name: str, seed: int, report: str | None, took: float) -> None:
        """One audit more."""
        self.runs[name] = self.runs.get(name, 0) + 1
        self.accusations[name] = self.accusations.get(name, 0) + (report is not None)
        self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 3)
        self.pieces[-1]["done"] += 1
        self.reports += [] if report is None else [f"seed {seed}: {report}"]

    @property
    def total(self) -> dict[str, Any]:
        """Over all subjects."""
        return {
            "audits": sum(self.runs.values()),
            "subjects": len(self.runs),
            "accusations": sum(self.accusations.values()),
            "seconds": round(sum(self.seconds.values()), 1),
        }

    def __str__(self) -> str:
        total, mean = self.total, {name: self.seconds[name] / self.runs[name] for name in self.runs}
        slowest = sorted(mean, key=mean.__getitem__)[-SLOWEST:]
        return (
            f"{total['accusations']} accusations in {total['audits']:,} audits of {total['subjects']} subjects, in "
            f"{total['seconds'] / 60:.1f} minutes of one core (slowest, each time: "
            f"{', '.join(f'{name} {mean[name]:.1f} s' for name in slowest)})."
        )


def run(name: str, seed: int) -> tuple[str, int, str | None, float]:
    """One audit: the accusation, if there is one, and the time it took."""
    start = time.monotonic()
    report = examine(subjects()[name](), seed=seed)
    return name, seed, str(report) if report.accused else None, time.monotonic() - start


def done(pool: ProcessPoolExecutor, wanted: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, str | None, float]]:
    """All runs, as they end."""
    waiting = [pool.submit(run, name, seed) for name, seed in wanted]
    try:
        yield from (one.result() for one in as_completed(waiting))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # what failed is told now, and not after all the others


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit, count, and say so; 1 where anybody was accused, in this piece or in one before it."""
    parser = argparse.ArgumentParser(prog="tools.audit", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"audits of each subject (default {RUNS})")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="count what this JSON file says, and add to it")
    parser.add_argument("--only", action="append", default=[], help="subjects whose name contains this")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    names = [name for name in subjects() if not chosen.only or any(part in name for part in chosen.only)]
    console, tally = Console(), Tally.read(chosen.tally)
    wanted = tally.lacking(names, chosen.runs)
    tally.pieces.append({"runs": chosen.runs, "only": chosen.only, "done": 0})
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    fresh = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, TimeRemainingColumn(), console=console) as progress,
        ProcessPoolExecutor(max_workers=chosen.workers, mp_context=fresh) as pool,
    ):
        task = progress.add_task("nobody accused", total=len(wanted))
        for name, seed, report, took in done(pool, wanted):
            tally.add(name, seed, report, took)
            tally.write(chosen.tally)
            if report is not None:
                console.print(f"seed {seed}: {report}", markup=False, highlight=False)
            accused = tally.total["accusations"]
            progress.update(task, advance=1, description=f"{accused} accused" if accused else "nobody accused")
    console.print(str(tally), highlight=False)
    return 1 if tally.total["accusations"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
