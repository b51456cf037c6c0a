"""A peer's side: its program is started in its own environment, reads one task, and writes what it finds line by line.

Only the standard library is imported here, since nothing of ours is installed there. Every finding is written at once,
so that what was found before the time ran out is kept.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked, and all that is public about the data."""

    path: str
    """A Parquet file with the columns user_id, grp (0 up to groups − 1) and value."""
    rows: int
    groups: int
    max_groups: int
    """Groups in which a user may count."""
    max_rows: int
    """Rows of a user that may count in a group."""
    low: float
    high: float
    delta: float
    """For those that need one."""
    questions: tuple[str, ...]
    """Of ``speed``, ``count``, ``sum``, ``groups``, ``mean``, ``median`` and ``upper``."""
    runs: int
    seconds: float
    """A question is asked no more once it has taken this long."""
    fewest: int = 0
    """Where fewer runs fit into that, the questions after it are not asked."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the values."""
        return self.low, self.high

    @property
    def keys(self) -> list[int]:
        """The public groups."""
        return list(range(self.groups))

    def epsilon(self, question: str) -> float:
        """What a question may cost in all."""
        return 0.1 if question == "count" else 1.0

    def ordered(self, counts: Mapping[int, float]) -> list[float]:
        """One number a public group; a group that was left out counts as empty."""
        return [float(counts.get(key, 0)) for key in self.keys]


Ask = Callable[[], list[float]]
QUANTILES = {"median": 0.5, "upper": 0.9}


def serve(questions: Mapping[str, Callable[[Task], Ask]]) -> None:
    """Answers the task that the first argument holds, into the file that the second one names.

    A question is given as what loads the data and gets ready; what comes back from that asks once, and is timed.
    """
    given = json.loads(sys.argv[1])
    task = Task(**{field.name: given[field.name] for field in fields(Task)})
    with open(sys.argv[2], "a", encoding="utf-8") as out:
        slow = ""
        for name in (name for name in task.questions if name in questions):
            runs = 0
            for line in [{"question": name, "error": slow}] if slow else _found(name, questions[name], task):
                out.write(json.dumps(line) + "\n")
                out.flush()
                runs += "answer" in line
                failed = "error" in line
            if runs < task.fewest and not failed:
                slow = f"Not asked: {runs} runs of the question before took {task.seconds:g} s and more."


def _found(name: str, prepared: Callable[[Task], Ask], task: Task) -> Iterator[dict[str, Any]]:
    try:
        begun = time.perf_counter()
        ask = prepared(task)
        yield {"question": name, "load": time.perf_counter() - begun}
        begun = time.perf_counter()
        for _ in range(task.runs):
            start = time.perf_counter()
            answer = ask()
            yield {"question": name, "seconds": time.perf_counter() - start, "answer": answer}
            if time.perf_counter() - begun > task.seconds:
                break
    except Exception as error:
        yield {"question": name, "error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
