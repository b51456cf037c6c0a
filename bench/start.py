"""The processor time until something can be used: imports, and commands until their first draw or their last line.

Of a question on the command line, the seconds until its answer is there: other processes work for it meanwhile.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from bench.record import Bench, Row
from bench.scratch import scratch

ROUNDS = 5
QUESTION_MOST = 0.9
"""Seconds."""

_TIME = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print('\\n%f' % (u.ru_utime + u.ru_stime))"
_COMMAND = """
import sys
sys.argv = {arguments!r}
from hubbub.cli.app import main
try:
    main()
except SystemExit:
    pass
"""
_UNTIL_A_DRAW = """
from hubbub.noise import entropy
class First(BaseException):
    pass
class Ending:
    def begin(self, kind, public): raise First
    def fill(self, out): raise First
    def word(self): raise First
from hubbub.cli.app import app
try:
    with entropy.substitute(Ending()):
        app({arguments!r}, standalone_mode=False)
except First:
    pass
else:
    raise SystemExit("no noise was drawn")
"""

PROGRAMS: tuple[tuple[str, str, float | None], ...] = (
    ("python alone", "pass", None),
    ("import numpy", "import numpy", None),
    ("import hubbub", "import hubbub", 0.3),
    ("import hubbub.noise", "import hubbub.noise", 0.3),
    ("import hubbub.privacy", "import hubbub.privacy", 0.3),
    ("import hubbub.testing, and what replays", "from hubbub.testing import trace, differences", 0.3),
    ("import hubbub; hubbub.open", "import hubbub; hubbub.open", None),
    ("hubbub --help", _COMMAND.format(arguments=["hubbub", "--help"]), 0.3),
    ("hubbub audit --list", _COMMAND.format(arguments=["hubbub", "audit", "--list"]), 0.5),
    ("hubbub audit geometric, until its first draw", _UNTIL_A_DRAW.format(arguments=["audit", "geometric"]), 1.0),
    ("hubbub audit 'learn: PCA', until its first draw", _UNTIL_A_DRAW.format(arguments=["audit", "learn: PCA"]), None),
)


def _seconds(program: str) -> float:
    """Return the processor time of a Python of its own that runs a program: the least of some rounds."""
    found = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", f"{program}\n{_TIME}"],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"TERM": "dumb"},
        )
        found.append(float(done.stdout.splitlines()[-1]))
    return min(found)


def _answer_seconds() -> float:
    """Return the seconds that a count takes from the shell, a ledger and a budget there already: the least of some."""
    with scratch() as folder:
        duckdb.sql(
            f"COPY (SELECT i % 1000 AS person, i % 100 AS cost FROM range(10000) AS t(i)) TO '{folder}/a.parquet'"
        )
        return min(_ask(folder, turn) for turn in range(ROUNDS + 1))


def _ask(folder: Path, turn: int) -> float:
    asked = f"SELECT count(*) AS n FROM a WHERE cost > {turn}"
    told = ["a.parquet", "--unit", "person", "--budget", "100", "--epsilon", "1", "--max-rows", "10"]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", _COMMAND.format(arguments=["hubbub", "query", asked, *told])],
        capture_output=True,
        check=True,
        cwd=folder,
        env=os.environ | {"TERM": "dumb", "HUBBUB_STATE": str(folder / "state")},
    )
    return time.perf_counter() - start


def run() -> Iterator[Row]:
    """Each in processes of its own."""
    for what, program, most in PROGRAMS:
        spent = _seconds(program)
        target = {} if most is None else {"target": f"< {most:g} s", "holds": spent < most}
        yield Row(what=what, figures={"CPU s": spent}, **target)  # type: ignore[arg-type]
    taken = _answer_seconds()
    yield Row(
        what="hubbub query, until its answer",
        figures={"seconds": taken},
        target=f"≤ {QUESTION_MOST:g} s",
        holds=taken <= QUESTION_MOST,
    )


BENCH = Bench(
    name="start",
    about="cold starts, in processor time, and a question from the shell",
    run=run,
    steps=len(PROGRAMS) + 1,
    notes=(f"The least of {ROUNDS} processes, with compiled files in place.",),
)
