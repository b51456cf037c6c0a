"""``make forks``: ask a hundred thousand small questions of the engine's processes while some of these are killed.

Threads ask without a pause, each question answered by a fork of its own. Meanwhile waiting forks, answering forks and
the first process itself are killed or stopped at random, and a process beside them takes and gives back memory. An
answer must be the right one; where none comes, something must have been killed for it. In the end nothing may be left:
no process, no descriptor, no file, and no more memory than in the beginning.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.nursery import nursery
from hubbub.engines.duckdb.pool import Late
from hubbub.policy.tables import Limits

PATIENCE = 60.0
"""Seconds that a question may take before it counts as hanging."""
ROWS = 2_000
_OFTEN = 100
"""Questions between two kills, on average."""
_GROWTH = 64 << 20
"""Bytes by which this process may have grown: its records of the campaign, and no leak of each fork."""
_HOG = """
import os, sys, time
while os.getppid() == {parent}:
    block = bytearray({size})
    for place in range(0, len(block), 4096):
        block[place] = 1
    time.sleep(0.2)
    del block
    time.sleep(0.2)
"""
_STOPPED = 0.3
"""Seconds that a stopped process stays so."""


@dataclass(kw_only=True)
class Tally:
    """What has happened."""

    asked: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    hung: int = 0
    unanswered: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    longest: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def failed(self) -> bool:
        """Whether anything was wrong: each kill may end the questions that were being answered, nothing else may."""
        too_many = self.unanswered > self.kills["a fork"] + self.kills["the first process"] * _THREADS
        return bool(self.wrong or self.hung or self.left or too_many)


_THREADS = 8


class Campaign:
    """Threads that ask, and one that kills."""

    def __init__(self, engine: DuckDB, path: str, *, forks: int, seed: int) -> None:
        self.tally = Tally()
        self._pool = engine._pool
        self._path, self._forks, self._seed = path, forks, seed
        self._over = threading.Event()

    def run(self, progress: Progress) -> None:
        """Ask everything, and stop killing."""
        task = progress.add_task("questions", total=self._forks)
        asking = [threading.Thread(target=self._ask, args=(number,), daemon=True) for number in range(_THREADS)]
        killing = threading.Thread(target=self._kill, daemon=True)
        for thread in (*asking, killing):
            thread.start()
        while any(thread.is_alive() for thread in asking):
            time.sleep(0.2)
            kills = self.tally.kills.total()
            progress.update(task, completed=self.tally.asked, description=f"{kills:,} kills")
        self._over.set()
        killing.join()

    def _ask(self, number: int) -> None:
        chance = random.Random(f"{self._seed} {number}")
        while True:
            with self.tally.lock:
                if self.tally.asked >= self._forks:
                    return
                self.tally.asked += 1
            request, wanted = self._question(chance)
            began = time.monotonic()
            outcome = self._answer(request)
            with self.tally.lock:
                self.tally.longest = max(self.tally.longest, time.monotonic() - began)
                if outcome is Late:
                    self.tally.hung += 1
                elif outcome is None:
                    self.tally.unanswered += 1
                elif outcome == wanted:
                    self.tally.right += 1
                else:
                    self.tally.wrong.append(f"{request['statement']}: {outcome!r} instead of {wanted!r}")

    def _answer(self, request: dict[str, Any]) -> Any:
        try:
            answer = self._pool.ask(request, seconds=PATIENCE, begun=self._pool.begin(request))
            return answer.get("rows", answer)
        except Late:
            return Late
        except (RuntimeError, OSError, EOFError):
            return None
        except Exception as error:
            return error

    def _question(self, chance: random.Random) -> tuple[dict[str, Any], list[list[Any]]]:
        least, secret = chance.randrange(ROWS), chance.getrandbits(63)
        request: dict[str, Any] = {"keys": [], "databases": {}, "stored": [], "secrets": [secret]}
        if chance.random() < 0.5:
            return {**request, "statement": f"SELECT $1, {least}", "paths": [], "files": []}, [[secret, least]]
        rows = "read_parquet(getvariable('f'))"
        statement = f"SELECT count(*), CAST(sum(value) AS VARCHAR), $1 FROM {rows} WHERE value >= {least}"
        wanted = [ROWS - least, str(sum(range(least, ROWS))), secret]
        return {**request, "statement": statement, "paths": [self._path], "files": [["f", [self._path]]]}, [wanted]

    def _kill(self) -> None:
        chance = random.Random(f"{self._seed} kills")
        following = 0.0
        while not self._over.wait(0.005):
            if self.tally.asked < following:
                continue
            following = self.tally.asked + chance.expovariate(1 / _OFTEN)
            what, process, how = self._victim(chance)
            if process:
                with suppress(ProcessLookupError):
                    os.kill(process, how)
                    self.tally.kills[what] += 1
                    if how == signal.SIGSTOP:
                        self._over.wait(_STOPPED)
                        os.kill(process, signal.SIGCONT)
            nursery().is_warm = True  # what is distrusted here was stopped on purpose

    def _victim(self, chance: random.Random) -> tuple[str, int, int]:
        kind, zygote = chance.random(), nursery()._current
        if zygote is None or zygote.process.poll() is not None:
            return "nothing", 0, 0
        first = zygote.process.pid
        if kind < 0.1:
            return "the first process", first, signal.SIGKILL
        if kind < 0.2:
            return "the first process, stopped for a while", first, signal.SIGSTOP
        forks = _children(first)
        return "a fork", chance.choice(forks) if forks else 0, signal.SIGKILL


@contextmanager
def hogging(size: int) -> Iterator[None]:
    """Have a process beside this one that takes so many bytes and gives them back, again and again."""
    if not size:
        yield
        return
    hog = subprocess.Popen([sys.executable, "-c", _HOG.format(parent=os.getpid(), size=size)])
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


def memory(process: int | str = "self") -> int:
    """Return the bytes that a process holds for itself."""
    pages = Path(f"/proc/{process}/statm").read_text().split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def torture(folder: Path, *, forks: int, seed: int, hog: int, console: Console) -> Tally:
    """Run a campaign and look at what it leaves."""
    path, others = str(folder / "rows.parquet"), set(_children())
    duckdb.sql(f"COPY (SELECT range AS value FROM range({ROWS})) TO '{path}' (FORMAT parquet)")
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn()),
    )
    with DuckDB(limits=Limits(threads=2, memory="200MB"), standbys=4) as engine:
        campaign = Campaign(engine, path, forks=forks, seed=seed)
        for _ in range(20):
            campaign._answer(campaign._question(random.Random(seed))[0])
        before, descriptors = memory(), len(os.listdir("/proc/self/fd"))
        with hogging(hog), Progress(*columns, console=console) as progress:
            campaign.run(progress)
        tally, directory = campaign.tally, engine._directory
        tally.left += _look(before=before, descriptors=descriptors)
    if os.path.exists(directory):
        tally.left.append(f"the folder {directory}")
    nursery().end()
    tally.left += [f"process {number}" for number in set(_children()) - others]
    return tally


def _look(*, before: int, descriptors: int) -> Iterator[str]:
    """Say what has grown."""
    if (grown := memory() - before) > _GROWTH:
        yield f"{grown >> 20} MiB of this process"
    if (opened := len(os.listdir("/proc/self/fd")) - descriptors) > 2 * _THREADS:
        yield f"{opened} descriptors"
    zygote = nursery()._current
    if zygote is not None and zygote.process.poll() is None:
        if len(_children(zygote.process.pid)) > 2 * _THREADS:
            yield f"{len(_children(zygote.process.pid))} children of the first process"
        if memory(zygote.process.pid) > 4 * _GROWTH:
            yield f"{memory(zygote.process.pid) >> 20} MiB of the first process"


def _children(process: int | None = None) -> list[int]:
    number = process or os.getpid()
    children: list[int] = []
    with suppress(FileNotFoundError):  # a thread, or the process, has ended meanwhile
        for task in Path(f"/proc/{number}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return children


def report(tally: Tally, console: Console) -> None:
    """What was done, and what it has shown."""
    table = Table("", "", title="Forks", show_header=False)
    table.columns[1].justify = "right"
    table.add_row("questions", f"{tally.asked:,}")
    table.add_row("answered rightly", f"{tally.right:,}")
    table.add_row("wrong answers", f"{len(tally.wrong):,}")
    table.add_row("hung", f"{tally.hung:,}")
    table.add_row("unanswered, by a kill", f"{tally.unanswered:,}")
    for what, many in sorted(tally.kills.items()):
        table.add_row(f"  kills of {what}", f"{many:,}")
    table.add_row("longest answer", f"{tally.longest:.2f} s")
    table.add_row("left behind", f"{len(tally.left):,}")
    console.print(table)
    for problem in (*tally.wrong[:20], *tally.left):
        console.print(problem, style="red", markup=False)
    if tally.failed and not (tally.wrong or tally.left):
        console.print("Questions hung, or failed without a kill.", style="red")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.forks", description="Forks, killed at random.")
    parser.add_argument("--forks", type=int, default=100_000, help="questions to ask")
    parser.add_argument("--memory", type=float, default=1.0, help="GiB that a process beside takes and gives back")
    parser.add_argument("--seed", type=int, default=None, help="what is random in it (times are not)")
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().getrandbits(32) if chosen.seed is None else chosen.seed
    console = Console()
    console.print(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="hubbub-forks-") as name:
        tally = torture(Path(name), forks=chosen.forks, seed=seed, hog=int(chosen.memory * 2**30), console=console)
    report(tally, console)
    return int(tally.failed)


if __name__ == "__main__":
    sys.exit(main())
