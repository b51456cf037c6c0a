"""``make audit``: audit everything that has a name, and every question of the gallery, again and again.

Each run has a seed of its own, so that each makes other inputs up and draws other noise. Nothing of ours may be
accused. An honest subject is accused by accident at most five times in a million runs, so one accusation here is a bug.
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hubbub.audit.examine import examine
from hubbub.audit.subject import Subject
from hubbub.testing.subjects import SUBJECTS
from tests.planted.queries import QUERIES

RUNS = 100


@cache
def subjects() -> dict[str, Callable[[], Subject]]:
    """By name; a question is its own name."""
    asked = {one.subject: None for one in QUERIES}
    return {**SUBJECTS, **{f"question {place}": made for place, made in enumerate(asked, 1)}}


def run(name: str, seed: int) -> tuple[str, int, str | None, float]:
    """One audit: the accusation, if there is one, and the time it took."""
    start = time.monotonic()
    report = examine(subjects()[name](), seed=seed)
    return name, seed, str(report) if report.accused else None, time.monotonic() - start


def done(pool: ProcessPoolExecutor, names: Sequence[str], runs: int) -> Iterator[tuple[str, int, str | None, float]]:
    """All runs, as they end; all subjects once before any of them twice."""
    waiting = [pool.submit(run, name, seed) for seed in range(runs) for name in names]
    yield from (one.result() for one in as_completed(waiting))


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit, count, and say so; 1 where anybody was accused."""
    parser = argparse.ArgumentParser(prog="tools.audit", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"audits of each subject (default {RUNS})")
    parser.add_argument("--only", action="append", default=[], help="subjects whose name contains this")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    names = [name for name in subjects() if not chosen.only or any(part in name for part in chosen.only)]
    console, accused, seconds = Console(), list[str](), dict.fromkeys(names, 0.0)
    start = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    fresh = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, TimeRemainingColumn(), console=console) as progress,
        ProcessPoolExecutor(max_workers=chosen.workers, mp_context=fresh) as pool,
    ):
        task = progress.add_task("nobody accused", total=len(names) * chosen.runs)
        for name, seed, report, took in done(pool, names, chosen.runs):
            seconds[name] += took
            if report is not None:
                accused.append(name)
                console.print(f"seed {seed}: {report}", markup=False, highlight=False)
            progress.update(task, advance=1, description=f"{len(accused)} accused" if accused else "nobody accused")
    slowest = ", ".join(
        f"{name} {seconds[name] / chosen.runs:.1f} s" for name in sorted(names, key=seconds.__getitem__)[-3:]
    )
    console.print(
        f"{len(accused)} accusations in {len(names) * chosen.runs:,} audits of {len(names)} subjects, in "
        f"{(time.monotonic() - start) / 60:.1f} minutes on {chosen.workers} cores (slowest, each time: {slowest}).",
        highlight=False,
    )
    return 1 if accused else 0


if __name__ == "__main__":
    raise SystemExit(main())
