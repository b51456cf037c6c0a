"""Errors of one-line statistics: ours and those of the peers that install, on the same data, in the same run."""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import hubbub as hb
from bench import accuracy
from bench.asked import noisy
from bench.peers.ask import START_SECONDS, Found, ask
from bench.peers.program import QUANTILES as RANKS
from bench.peers.program import Task
from bench.peers.venvs import PEERS, NotInstalled, Peer
from bench.record import Bench, Row
from hubbub.audit.subjects.in_process.inside import exact_of

Array = np.ndarray[Any, Any]
SECONDS = 45.0
"""For the runs of one question by one peer."""
LONG = 220.0
"""For those of one quantile: slow peers are to have their hundred runs too."""
ENOUGH = 400
"""Runs of one quantile by one peer."""
EPSILON = Fraction(1)
SQL = {"median": "SELECT median(value) FROM people", "upper": "SELECT quantile_cont(value, 0.9) FROM people"}
FEWEST = 10
"""Runs below which a root mean square says nothing."""
SURE = 3.0
"""Standard errors of the difference up to which two sides are tied: some 40 pairs are compared."""
WHAT = {name: case.what for name, case in accuracy.CASES.items()} | {
    "median": "median of values in [0, 100], ε = 1",
    "upper": "0.9-quantile of values in [0, 100], ε = 1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One system's answers to one question."""

    answers: Array
    """One row a run."""
    truth: Array

    @property
    def rmse(self) -> tuple[float, float]:
        """With its standard error."""
        return accuracy.rmse_of(self.answers - self.truth)


def task_of(path: Path, questions: Sequence[str], *, runs: int = accuracy.RUNS, seconds: float = SECONDS) -> Task:
    """One row a user: row-level peers protect the same as the others."""
    low, high = accuracy.BOUNDS
    return Task(
        path=str(path),
        rows=accuracy.USERS,
        groups=accuracy.GROUPS,
        max_groups=1,
        max_rows=1,
        low=float(low),
        high=float(high),
        delta=1e-9,
        questions=tuple(questions),
        runs=runs,
        seconds=seconds,
        fewest=FEWEST,
    )


def our_quantile(db: hb.Database, question: str) -> Callable[[], float]:
    """How ours is drawn: asked in SQL once, and then again and again from what the engine read, as the plan says.

    The grid is the one that a plan chooses for itself from the bounds.
    """
    text = SQL[question]
    first = db.sql(text, epsilon=EPSILON)
    counted = exact_of(db, first.plan.aggregate)
    drawn = [[float(value) for value in row] for row in first.rows]

    def draw() -> float:
        found = drawn.pop() if drawn else noisy(db, first.plan, counted)[()]
        return float(found[0])

    return draw


def _columns(path: Path) -> dict[str, Array]:
    connection = duckdb.connect()
    columns: dict[str, Array] = connection.execute(f"SELECT grp, value FROM '{path}'").fetchnumpy()
    connection.close()
    return columns


def statistics() -> Iterator[Row]:
    """Counts, a sum, counts by group and a mean with a private n."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-") as name:
        folder = Path(name)
        path = accuracy.build(folder)
        columns = _columns(path)
        truths = {
            "count": np.array([accuracy.USERS]),
            "sum": np.array([columns["value"].sum()]),
            "groups": np.bincount(columns["grp"], minlength=accuracy.GROUPS),
            "mean": np.array([columns["value"].mean()]),
        }
        sides = {}
        with accuracy.opened(path, folder) as db:
            for question, case in accuracy.CASES.items():
                errors = accuracy.errors_of(db, case)
                sides[question] = Side(answers=truths[question] + errors, truth=truths[question])
        yield from _against(task_of(path, list(sides)), sides, lambda side: {})


def quantiles() -> Iterator[Row]:
    """The data points between an answer and the true quantile are counted too."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-") as name:
        folder = Path(name)
        path = accuracy.build(folder)
        values = np.sort(_columns(path)["value"])

        def misplaced(side: Side) -> dict[str, float]:
            ranks = [np.searchsorted(values, numbers, side="right") for numbers in (side.answers, side.truth)]
            return {"points between": float(np.abs(ranks[0] - ranks[1]).mean())}

        sides = {}
        with accuracy.opened(path, folder) as db:
            for question, rank in RANKS.items():
                draw = our_quantile(db, question)
                answers = np.array([[draw()] for _ in range(accuracy.RUNS)])
                sides[question] = Side(answers=answers, truth=np.array([np.quantile(values, rank, method="lower")]))
        yield from _against(task_of(path, list(sides), runs=ENOUGH, seconds=LONG), sides, misplaced)


def _against(task: Task, ours: dict[str, Side], more: Callable[[Side], dict[str, float]]) -> Iterator[Row]:
    """The peers' rows as they come, and ours at the end, held to all that may be compared."""
    rivals: dict[str, list[tuple[Peer, Side]]] = {question: [] for question in ours}
    for peer in PEERS:
        try:
            limit = START_SECONDS + len(ours) * 2 * task.seconds
            found = ask(peer, task, limit=limit)
        except NotInstalled as why:
            yield Row(what=peer.label, figures={}, remark=str(why))
            continue
        for question, mine in ours.items():
            side, row = _peer(peer, question, found.get(question), mine.truth, more)
            if side is not None and question not in peer.apart:
                rivals[question].append((peer, side))
            yield row
    for question, mine in ours.items():
        yield Row(
            what=f"{WHAT[question]}: ours",
            figures=_figures(mine, more),
            target="≤ each peer, or a tie",
            holds=all(_not_worse(mine, side) for _, side in rivals[question]),
            remark="Beside " + ", ".join(peer.name for peer, _ in rivals[question]) + "." if rivals[question] else "",
        )


def _peer(
    peer: Peer, question: str, found: Found | None, truth: Array, more: Callable[[Side], dict[str, float]]
) -> tuple[Side | None, Row]:
    what = f"{WHAT[question]}: {peer.label}"
    if found is None:
        return None, Row(what=what, figures={}, remark="Does not answer it.")
    if found.error:
        return None, Row(what=what, figures={}, remark=found.error)
    if len(found.answers) < FEWEST:
        slow = f"{len(found.answers)} runs in the time, too few to say."
        return None, Row(what=what, figures={"runs": float(len(found.answers))}, remark=slow)
    side = Side(answers=np.array(found.answers), truth=truth)
    apart = f"Not compared: {peer.apart[question]}." if question in peer.apart else ""
    return side, Row(what=what, figures=_figures(side, more), remark=apart)


def _figures(side: Side, more: Callable[[Side], dict[str, float]]) -> dict[str, float]:
    rmse, spread = side.rmse
    return {"root mean square error": rmse, "standard error": spread} | more(side) | {"runs": float(len(side.answers))}


def _not_worse(mine: Side, other: Side) -> bool:
    (rmse, spread), (theirs, doubt) = mine.rmse, other.rmse
    return rmse <= theirs + SURE * math.hypot(spread, doubt)


_NOTES = (
    f"{accuracy.USERS:,} users, one row each. All protect adding or removing a user, or the row that is theirs; "
    "bounds, groups and the fact of one row are given to all. "
    f"A tie: within {SURE:g} standard errors of the difference.",
)
ACCURACY = Bench(
    name="peer-accuracy",
    about="errors of count, sum, counts by group and mean, ours and the peers'",
    run=statistics,
    steps=len(accuracy.CASES) * (1 + len(PEERS)),
    notes=(*_NOTES, f"Up to {accuracy.RUNS:,} runs, or as many as fit into {SECONDS:g} s."),
)
QUANTILES = Bench(
    name="peer-quantiles",
    about="errors of the median and of the 0.9-quantile, ours and the peers'",
    run=quantiles,
    steps=len(RANKS) * (1 + len(PEERS)),
    notes=(
        *_NOTES,
        f"Up to {ENOUGH} runs of a peer, or as many as fit into {LONG:g} s, and {accuracy.RUNS:,} of ours.",
        "Ours is asked in SQL, and its first answer is that of the session. The others are drawn by the same plan from "
        "what the engine read once, since the same question would be served its first answer again. "
        "Its grid is the one that a plan chooses from the bounds: 2^-13. OpenDP chooses among 100,001 listed "
        "candidates; the others have no grid.",
    ),
)
