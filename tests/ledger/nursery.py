"""Where processes are born: an interpreter with one thread that has imported everything and opened no ledger.

A fork from here costs milliseconds where a start costs half a second, and carries nothing over that a fresh start would
not have. ``python -m tests.ledger.nursery`` reads orders from its input and tells, line by line, what happens.
"""

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self

from hubbub.ledger import Ledger, Marks
from tests.ledger.checking import Balance, Findings, findings, lent, lines_of
from tests.ledger.crashing import OUTSIDE, QUESTIONS, Job, live

ROOT = Path(__file__).resolve().parents[2]
_LONGEST = 0.3
"""Seconds after which somebody who is to be killed from outside is killed at the latest."""

Told = dict[str, Any]


class Nursery:
    """A nursery at work; it and its children are gone when this is closed."""

    def __init__(self) -> None:
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | single | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            start_new_session=True,
        )

    def story(self, work: str, order: Mapping[str, Any]) -> Iterator[Told]:
        """Have something done, and hear what happens as it happens."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"work": work, "order": order}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            told: Told = json.loads(line)
            if told["event"] == "end":
                if told["status"] != 0:
                    raise RuntimeError("A nursery has failed; it has said why.")
                return
            yield told
        raise RuntimeError("A nursery has died.")

    def killed(self, job: Job) -> list[Told]:
        """All lives and deaths of a job."""
        return list(self.story("lives", asdict(job)))

    def close(self) -> None:
        """End it, and whatever it has not waited for."""
        with self._process:
            os.killpg(self._process.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def forked(work: Callable[[], object]) -> int:
    """Do the work in a child; gives back its number."""
    number = os.fork()
    if number == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return number


def result_of(work: Callable[[], Any]) -> Any:
    """What the work gives back, done in a child: its threads and connections end with it."""
    read, write = os.pipe()
    number = forked(lambda: os.write(write, json.dumps(work()).encode()))
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read()
    if os.waitpid(number, 0)[1] != 0:
        raise RuntimeError("a child has failed; it has said why")
    return json.loads(text)


def tell(event: str, **more: object) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


def lives(order: dict[str, Any]) -> None:
    """Every life of the job: killed as often as it says, and then lived to its end."""
    job = Job(**order)
    chance = random.Random(job.seed)
    before: dict[str, Balance] = {}
    for prefix, kills in job.lives:
        for point, when in (*kills, (None, "")):
            status = _lived(job, prefix, point, when, chance)
            if os.WIFSIGNALED(status):
                tell("killed" if os.WTERMSIG(status) == signal.SIGKILL else "crashed", point=point, when=when)
            else:
                tell("lived" if status == 0 else "failed", point=point, when=when)
            if job.check and point is not None:
                found = Findings(**result_of(lambda: _found(job)))
                found.problems += lent(before, found.balances)
                before = found.balances
                tell("checked", **asdict(found))


def _lived(job: Job, prefix: str, point: str | None, when: str, chance: random.Random) -> int:
    """One life, from birth to death; how it ended, as ``wait`` has it."""
    if point == OUTSIDE:
        number = forked(lambda: live(job, prefix, point=None, armed_at=0))
        time.sleep(chance.uniform(0, _LONGEST))
        os.kill(number, signal.SIGKILL)
    else:
        armed_at = _moment(job, prefix, when, chance)
        number = forked(lambda: live(job, prefix, point=point, armed_at=armed_at))
    return os.waitpid(number, 0)[1]


def _moment(job: Job, prefix: str, when: str, chance: random.Random) -> int:
    """The number of the question at which the trap is armed."""
    done = {line["key"] for line in lines_of(Path(job.log)) if line["saw"] in ("reply", "refused")}
    keys = [f"{prefix}-{index // QUESTIONS}-{index % QUESTIONS}" for index in range(job.rounds * QUESTIONS)]
    still_open = [index for index, key in enumerate(keys) if key not in done]
    match when:
        case "first" if still_open:
            return still_open[0]
        case "middle" if still_open:
            return still_open[len(still_open) // 2]
        case "random" if still_open:
            return chance.choice(still_open)
    return chance.randrange(len(keys))


def _found(job: Job) -> dict[str, Any]:
    with Ledger(job.location, create=False, marks=Marks(job.state)) as ledger:
        return asdict(findings(ledger, lines_of(Path(job.log))))


def main() -> None:
    """One order after the other, each in a child of its own."""
    from tests.ledger.racing import creation, race

    if importlib.util.find_spec("psycopg") is not None:
        importlib.import_module("hubbub.ledger.stores.postgres")  # once here, and not in every child
    works = {"lives": lives, "race": race, "creation": creation}
    for line in sys.stdin:
        asked = json.loads(line)
        _, status = os.waitpid(forked(partial(works[asked["work"]], asked["order"])), 0)
        tell("end", status=status)


if __name__ == "__main__":
    main()
