"""How many durable charges a second, beside what the disk can sync, and what a check costs after a million of them."""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from bench.record import Bench, Row
from hubbub.ledger import Ask, Ledger, Marks
from hubbub.ledger.book import Transaction
from hubbub.ledger.ledger import wall_clock
from hubbub.ledger.rules import reserve
from hubbub.privacy.events.event import DiscreteLaplaceEvent
from hubbub.privacy.filter import Budget

THREADS = 16
SECONDS = 4.0
LEAST_CHARGES = 3000
PAST = 1_000_000
AT_ONCE = 20_000
CHECKS = 2000
MOST_MILLISECONDS = 5

EVENT = DiscreteLaplaceEvent(scale=Fraction(1000), sensitivity=1)


def _ask(question: str) -> Ask:
    return Ask(account="people", question=question, events=(EVENT,), epsilon=Fraction(1, 1000))


def _opened(folder: Path) -> Ledger:
    ledger = Ledger(folder / "bench.ledger", marks=Marks(folder / "state"))
    ledger.open_account("people", Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**9)))
    return ledger


def _syncs(folder: Path) -> float:
    """4 KiB written and synced, one after the other: what a ledger without group commit would be bound by."""
    block, done = bytes(4096), 0
    with (folder / "sync").open("wb") as file:
        end = time.perf_counter() + 1
        while time.perf_counter() < end:
            file.write(block)
            file.flush()
            os.fdatasync(file.fileno())
            done += 1
    return float(done)


def _spend(ledger: Ledger, threads: int) -> tuple[float, list[float]]:
    """Charges a second over all threads, each of which waits for its own to be durable; and all the waits."""
    waits: list[list[float]] = [[] for _ in range(threads)]
    end = time.perf_counter() + SECONDS

    def work(name: int) -> None:
        mine = waits[name]
        while (start := time.perf_counter()) < end:
            ledger.reserve(_ask(f"{name}/{len(mine)}"))
            mine.append(time.perf_counter() - start)

    workers = [threading.Thread(target=work, args=(name,)) for name in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    everyone = [wait for mine in waits for wait in mine]
    return len(everyone) / (time.perf_counter() - start), everyone


def _fill(ledger: Ledger, many: int) -> None:
    """Past charges, many to a commit."""
    session = ledger.store.writer()
    for first in range(0, many, AT_ONCE):
        session.begin()
        transaction = Transaction(session, clock=wall_clock)
        for number in range(first, min(many, first + AT_ONCE)):
            reserve(transaction, _ask(f"past {number}"))
        transaction.close()
        session.commit()
    session.close()


def _milliseconds(work: Callable[[int], object], times: int) -> tuple[float, float]:
    """Median and 99th percentile."""
    spent = []
    for number in range(times):
        start = time.perf_counter()
        work(number)
        spent.append((time.perf_counter() - start) * 1000)
    return statistics.median(spent), sorted(spent)[int(0.99 * len(spent))]


def run() -> Iterator[Row]:
    """On the disk of the temporary folder; a folder in memory would say nothing."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        with _opened(folder) as ledger:
            for threads in (1, THREADS):
                syncs = _syncs(folder)
                rate, waits = _spend(ledger, threads)
                yield Row(
                    what=f"SQLite, {threads} waiting thread{'s' if threads > 1 else ''}",
                    figures={
                        "durable charges a second": rate,
                        "fdatasync a second": syncs,
                        "charges a sync": rate / syncs,
                        "p99 wait, ms": sorted(waits)[int(0.99 * len(waits))] * 1000,
                    },
                    target=f"≥ {LEAST_CHARGES:,}" if threads == THREADS else "",
                    holds=rate >= LEAST_CHARGES if threads == THREADS else None,
                )
            _fill(ledger, PAST)
            middle, slow = _milliseconds(lambda _: ledger.statement("people"), CHECKS)
            yield Row(
                what=f"SQLite, {PAST:,} past charges: budget checked",
                figures={"ms (median)": middle, "p99 wait, ms": slow},
                target=f"p99 < {MOST_MILLISECONDS} ms",
                holds=slow < MOST_MILLISECONDS,
            )
            middle, slow = _milliseconds(lambda number: ledger.reserve(_ask(f"new {number}")), CHECKS)
            yield Row(
                what=f"SQLite, {PAST:,} past charges: one more, durable",
                figures={"ms (median)": middle, "p99 wait, ms": slow},
            )


BENCH = Bench(
    name="ledger",
    about="durable charges, each on disk before its caller goes on",
    run=run,
    steps=4,
    notes=(
        "A charge is the whole of it: keys and earlier answers looked up, grant and caps checked, entry chained, "
        "balances sealed, fsync, mark raised.",
        "One writer commits for all who wait, so that one sync carries many charges.",
    ),
)
