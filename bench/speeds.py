"""The question of ``queries`` put to the peers, each beside DuckDB's own answer without privacy, in the same run."""

from collections.abc import Iterator
from pathlib import Path

from bench import queries
from bench.peers.ask import START_SECONDS, Found, ask
from bench.peers.program import Task
from bench.peers.venvs import PEERS, NotInstalled, Peer
from bench.record import Bench, Row
from bench.scratch import scratch

LIMIT = 120.0
"""Seconds for an answer; who takes longer is not waited for, nor asked with more rows."""


def task_of(path: Path, rows: int) -> Task:
    """One round in all where it is slow, three where it is not."""
    low, high = queries.BOUNDS
    return Task(
        path=str(path),
        rows=rows,
        groups=queries.GROUPS,
        max_groups=queries.MAX_GROUPS,
        max_rows=queries.MAX_ROWS,
        low=float(low),
        high=float(high),
        delta=1e-9,
        questions=("speed",),
        runs=queries.ROUNDS,
        seconds=LIMIT / 4,
    )


def run() -> Iterator[Row]:
    """DuckDB is timed again before each side: what slows the machine for a while slows both."""
    with scratch() as folder:
        waiting = {peer.name: peer for peer in PEERS}
        for rows, users, _ in queries.SIZES:
            path = queries.build(folder, rows, users)
            size = f"{rows // 1_000_000} million rows"
            private, alone = queries.seconds(path, folder).values()
            yield Row(what=f"{size}: ours", figures=_figures(private, alone))
            for peer in tuple(waiting.values()):
                row, again = _asked(peer, path, rows, size)
                if not again:
                    del waiting[peer.name]
                yield row
            path.unlink()


def _figures(seconds: float, alone: float) -> dict[str, float]:
    return {"seconds": seconds, "DuckDB alone": alone, "ratio": seconds / alone}


def _asked(peer: Peer, path: Path, rows: int, size: str) -> tuple[Row, bool]:
    """A peer's row, and whether it may be asked with ten times as many rows."""
    what = f"{size}: {peer.label}"
    alone = queries.plain_seconds(path)
    try:
        found = ask(peer, task_of(path, rows), limit=LIMIT + START_SECONDS).get("speed")
    except NotInstalled as why:
        return Row(what=what, figures={}, remark=str(why)), False
    if found is None:
        return Row(what=what, figures={}, remark="Works on rows: it has neither users nor a GROUP BY."), False
    if found.error or found.late:
        remark = found.error or f"No answer within {LIMIT:g} s."
        return Row(what=what, figures={"DuckDB alone": alone, "memory, GB": found.gigabytes}, remark=remark), False
    least = min(found.seconds)
    row = Row(what=what, figures=_figures(least, alone) | _held(found), remark="Over the limit." * (least > LIMIT))
    return row, 10 * least <= 2 * LIMIT


def _held(found: Found) -> dict[str, float]:
    """The groups that came back, and what getting ready took."""
    return {"memory, GB": found.gigabytes, "loading, s": found.load or 0.0, "groups": found.answers[-1][-1]}


BENCH = Bench(
    name="peer-speed",
    about="the same user-level GROUP BY by each peer that installs, beside DuckDB without privacy",
    run=run,
    steps=len(queries.SIZES) * (1 + len(PEERS)),
    notes=(
        "COUNT, COUNT(DISTINCT user), SUM and AVG of 1,000 groups; at most 5 groups a user and 2 rows in each, by the "
        "peer's own bounding. Each peer has an environment and a process of its own; imports, starting Spark, and "
        "loading where the peer wants the data in its own form (SQLite, tuples) are not part of its time; reading the "
        f"file is, for ours and for the others. Best of up to {queries.ROUNDS} rounds; an answer within {LIMIT:g} s.",
        "The guarantees differ: Qrlew's are (ε, δ) with the database's RANDOM(), and it chooses keys by a threshold "
        "where more than 128 are listed; Tumult is asked four times with a quarter of ε each; SmartNoise bounds groups "
        "and not rows in them.",
    ),
)
