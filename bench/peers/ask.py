"""Our side of a peer's program: start it on a task, keep what it finds, and end it when its time is up."""

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.memory import Peak
from bench.peers.program import Task
from bench.peers.venvs import ROOT, Peer, python_of

START_SECONDS = 60
"""For imports, and for a virtual machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a peer did with one question."""

    seconds: tuple[float, ...] = ()
    answers: tuple[tuple[float, ...], ...] = ()
    load: float | None = None
    error: str | None = None
    late: bool = False
    """It was ended before its first answer."""
    gigabytes: float = 0.0


def ask(peer: Peer, task: Task, *, limit: float) -> dict[str, Found]:
    """The peer's findings by question; a question that it does not have is not among them."""
    python = python_of(peer)
    with tempfile.TemporaryDirectory(prefix="hubbub-peer-") as name:
        out, log = Path(name) / "found", Path(name) / "log"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        with log.open("wb") as said:
            process = subprocess.Popen(
                [str(python), "-W", "ignore", "-m", f"bench.peers.{peer.module}", json.dumps(asdict(task)), str(out)],
                cwd=name,
                env=environment | {"PYTHONPATH": str(ROOT), "TMPDIR": name},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
            with Peak(process.pid) as peak:
                late = _ended(process, limit)
        lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        if process.returncode and not late and not lines:
            tail = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            lines = [{"question": question, "error": " ".join(tail[-1:])[:300]} for question in task.questions]
    return {
        question: replace(found, gigabytes=peak.gigabytes)
        for question in task.questions
        if (found := _found(question, lines, late)) is not None
    }


def _ended(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Whether it had to be ended, with everything that it started."""
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def _found(question: str, lines: list[dict[str, Any]], late: bool) -> Found | None:
    own = [line for line in lines if line["question"] == question]
    if not own:
        return Found(late=True) if late else None
    answered = [line for line in own if "answer" in line]
    return Found(
        seconds=tuple(line["seconds"] for line in answered),
        answers=tuple(tuple(line["answer"]) for line in answered),
        load=next((line["load"] for line in own if "load" in line), None),
        error=next((line["error"] for line in own if "error" in line), None),
        late=late and not answered,
    )
