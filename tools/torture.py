"""``make torture``: kill the ledger's users at random, for minutes on end, and see that nothing is lent or lost.

Round after round, each on a fresh ledger, several processes ask scripted questions and are killed at named points of
the path or from outside, start again and ask again with the same keys; or sixteen race for the last of a budget. While
they are at it, copies of the SQLite file and its log are taken, as a power cut would leave them, and must be whole.
Afterwards every invariant is recomputed from the entries. A single violation, or a wait of over five seconds, fails.
"""

import argparse
import itertools
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from hubbub.ledger import Ledger, Marks
from tests.ledger.checking import findings, lines_of
from tests.ledger.crashing import OUTSIDE, POINTS, Job, script, set_up
from tests.ledger.nursery import Nursery
from tests.ledger.racing import EACH, RACES, RUSH, Attempt, among_threads, paid
from tests.postgres import PostgresServer, running_server

STORES = ("sqlite", "postgres")
CLIENTS = 4
MANY = 16
PATIENCE = 5.0
"""Seconds that nobody may wait longer than."""
_PAUSE = 0.2
"""Between two copies."""
_SHOWN = 20


@dataclass(kw_only=True)
class Tally:
    """What has happened on one store."""

    rounds: int = 0
    races: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    charges: int = 0
    entries: int = 0
    again: int = 0
    """Answers that were given a second time."""
    copies: int = 0
    longest: float = 0.0
    violations: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether something was wrong, or too slow."""
        return bool(self.violations) or self.longest > PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where a round takes place."""

    folder: Path
    location: str | Path
    chance: random.Random
    nurseries: Sequence[Nursery]
    tally: Tally

    @property
    def marks(self) -> Marks:
        """Fresh, on the round's own folder."""
        return Marks(self.folder / "state")

    def opened(self) -> Ledger:
        """The round's ledger."""
        return Ledger(self.location, marks=self.marks)


def crashes(bench: Bench) -> None:
    """Several processes on one ledger, killed at random and started again until each has asked everything."""
    chance, tally = bench.chance, bench.tally
    rounds, threads = chance.choice([(1, 1), (2, 1), (4, 3)])
    prefixes = ["shared"] * CLIENTS if chance.random() < 0.3 else [f"client {n}" for n in range(CLIENTS)]
    jobs = [
        Job(
            location=str(bench.location),
            state=str(bench.folder / "state"),
            log=str(bench.folder / f"log-{number}"),
            lives=((prefix, tuple(_deaths(chance))),),
            seed=chance.getrandbits(32),
            rounds=rounds,
            threads=threads,
            check=False,
        )
        for number, prefix in enumerate(prefixes)
    ]
    set_up(bench.location, bench.marks, lives=len(set(prefixes)), rounds=rounds)
    with ThreadPoolExecutor(CLIENTS) as pool:
        works = [pool.submit(_followed, *pair, tally) for pair in zip(bench.nurseries, jobs, strict=True)]
        while wait(works, timeout=_PAUSE).not_done:
            if isinstance(bench.location, Path):
                _copy(bench, bench.location, jobs)
    lines = [line for job in jobs for line in lines_of(Path(job.log))]
    replies = [line["key"] for line in lines if line["saw"] == "reply"]
    tally.again += len(replies) - len(set(replies))
    tally.longest = max([tally.longest, *(line["seconds"] for line in lines if "seconds" in line)])
    keys = {question.key for prefix in prefixes for questions in script(prefix, rounds) for question in questions}
    unanswered = {key for key in keys if key[-1] != "4"} - set(replies)
    tally.violations += [f"key {key} was never answered" for key in sorted(unanswered)]
    with bench.opened() as ledger:
        found = findings(ledger, lines)
        left = [holder for holder in ledger.statements() if holder.account == "town" and holder.left.pure]
    tally.violations += found.problems + [f"{holder.name or 'town'} has {holder.left} left" for holder in left]
    tally.charges += found.charges
    tally.entries += found.entries


def _deaths(chance: random.Random) -> Iterator[tuple[str, str]]:
    for _ in range(chance.randint(3, 8)):
        yield chance.choice((*POINTS, *(OUTSIDE,) * 5)), chance.choice(("first", "middle", "random", "any"))


def _followed(nursery: Nursery, job: Job, tally: Tally) -> None:
    try:
        for told in nursery.story("lives", asdict(job)):
            match told["event"]:
                case "killed":
                    tally.kills[told["point"]] += 1
                case "crashed" | "failed":
                    tally.violations.append(f"a process has {told['event']} ({told['point']})")
    except Exception as problem:
        tally.violations.append(repr(problem))


def _copy(bench: Bench, path: Path, jobs: Sequence[Job]) -> None:
    """What a power cut now would leave: nothing that was already seen by anybody may be missing from it."""
    seen = [line for job in jobs for line in lines_of(Path(job.log)) if line["saw"] != "refused"]
    with tempfile.TemporaryDirectory(dir=bench.folder) as name:
        folder = Path(name)
        with closing(sqlite3.connect(path.as_uri() + "?mode=ro", uri=True, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT seq FROM head").fetchone()  # while we look, the log is not begun anew
            # By another process: to close the file in this one would let go of the reader's lock on it.
            found = [(Path(f"{path}{suffix}"), folder / f"copy.db{suffix}") for suffix in ("", "-wal")]
            for original, copied in found:
                if original.exists():  # there is no log when everyone had gone before we looked
                    subprocess.run(["cp", original, copied], check=True)
        try:
            with Ledger(folder / "copy.db", create=False, marks=Marks(folder / "state")) as copy:
                bench.tally.violations += [f"in a copy: {problem}" for problem in findings(copy, seen).problems]
        except Exception as problem:
            bench.tally.violations.append(f"in a copy: {problem!r}")
    bench.tally.copies += 1


def races(bench: Bench) -> None:
    """Sixteen threads or processes after the last of a budget."""
    chance, tally = bench.chance, bench.tally
    name, how = chance.choice([*RACES, "rush", "rush"]), chance.choice(("threads", "own", "inherited"))
    race, many = (RUSH, MANY * EACH) if name == "rush" else (RACES[name], MANY)
    attempts: list[Attempt] = []
    with bench.opened() as ledger:
        race.set_up(ledger)
        if how == "threads":
            turns = [[race.ask(number) for number in range(start, many, MANY)] for start in range(MANY)]
            for asks in zip(*turns, strict=True):
                attempts += among_threads([partial(paid, ledger, ask) for ask in asks])
    if how != "threads":
        order = {"location": str(bench.location), "state": str(bench.folder / "state"), "race": name, "same": False}
        story = bench.nurseries[0].story("race", order | {"processes": MANY, "inherited": how == "inherited"})
        attempts += [Attempt(told["outcome"], told["seconds"]) for told in story]
    outcomes = Counter(attempt.outcome for attempt in attempts)
    if outcomes != {"paid": race.fits, "refused": many - race.fits}:
        tally.violations.append(f"of {many} attempts at {race.fits} ({name}, {how}): {dict(outcomes)}")
    with bench.opened() as ledger:
        found = findings(ledger)
    tally.violations += found.problems
    tally.charges += found.charges
    tally.entries += found.entries
    tally.races += 1
    tally.longest = max([tally.longest, *(attempt.seconds for attempt in attempts)])


def torture(
    stores: Sequence[str], *, seconds: float, seed: int, console: Console, server: PostgresServer | None
) -> dict[str, Tally]:
    """Rounds on each store in turn until the time is over: at least one race and one crash on each."""
    chance = random.Random(seed)
    tallies = {store: Tally() for store in stores}
    kinds = [races] * len(stores) + [crashes] * len(stores)
    began = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        nurseries = [stack.enter_context(Nursery()) for _ in range(CLIENTS)]
        progress = stack.enter_context(Progress(*columns, console=console))
        task = progress.add_task("starting", total=seconds)
        for store in itertools.cycle(stores):
            if not kinds and time.monotonic() - began >= seconds:
                return tallies
            kind = kinds.pop(0) if kinds else chance.choice((races, crashes, crashes, crashes))
            with tempfile.TemporaryDirectory(prefix="hubbub-torture-") as name:
                location = Path(name) / "ledger.db" if store == "sqlite" or server is None else server.fresh_schema()
                bench = Bench(
                    folder=Path(name), location=location, chance=chance, nurseries=nurseries, tally=tallies[store]
                )
                kind(bench)
                bench.tally.rounds += 1
            kills = sum(tally.kills.total() for tally in tallies.values())
            wrong = sum(len(tally.violations) for tally in tallies.values())
            progress.update(
                task, completed=time.monotonic() - began, description=f"{kills:,} kills, {wrong:,} violations"
            )
    return tallies


def report(tallies: dict[str, Tally], console: Console) -> None:
    """What was done, what it has shown, and where the kills went."""
    table = Table("", *tallies, title="Torture")
    for column in table.columns[1:]:
        column.justify = "right"
    rows: dict[str, Callable[[Tally], object]] = {
        "rounds": lambda tally: f"{tally.rounds:,}",
        "of them races of 16": lambda tally: f"{tally.races:,}",
        "kills": lambda tally: f"{tally.kills.total():,}",
        **{f"  {point}": partial(_kills_at, point) for point in (*POINTS, OUTSIDE)},
        "entries": lambda tally: f"{tally.entries:,}",
        "charges": lambda tally: f"{tally.charges:,}",
        "answers given again": lambda tally: f"{tally.again:,}",
        "copies checked": lambda tally: f"{tally.copies:,}",
        "longest wait": lambda tally: f"{tally.longest:.3f} s",
        "violations": lambda tally: f"{len(tally.violations):,}",
    }
    for name, cell in rows.items():
        table.add_row(name, *(str(cell(tally)) for tally in tallies.values()))
    console.print(table)
    for store, tally in tallies.items():
        for violation in tally.violations[:_SHOWN]:
            console.print(f"{store}: {violation}", style="red", markup=False)
        if tally.longest > PATIENCE:
            console.print(f"{store}: somebody has waited for {tally.longest:.1f} s, over {PATIENCE:g} s", style="red")


def _kills_at(point: str, tally: Tally) -> str:
    return f"{tally.kills[point]:,}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.torture", description="Races and crashes on end.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--store", choices=(*STORES, "both"), default="both")
    parser.add_argument("--seed", type=int, default=None, help="what is random in it (times are not)")
    chosen = parser.parse_args(arguments)
    stores = STORES if chosen.store == "both" else (chosen.store,)
    seed = random.SystemRandom().getrandbits(32) if chosen.seed is None else chosen.seed
    console = Console()
    console.print(f"seed {seed}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything is cleaned up then, too
    with running_server() if "postgres" in stores else nullcontext() as server:
        tallies = torture(stores, seconds=60 * chosen.minutes, seed=seed, console=console, server=server)
    report(tallies, console)
    return int(any(tally.failed for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
