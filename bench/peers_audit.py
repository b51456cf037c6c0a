"""Our audit pointed at the public functions of peers, as they install: what it finds, and where it finds nothing.

Answers are drawn in each peer's own environment (bench/peers/audited_*.py) and judged here, by the same counting as
everything of ours. A float is looked at twice: as an answer, and as the place of its lowest bit, which tells values of
the input apart where noise is added in floating point. Each of the two has half of the doubt.
"""

import json
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.peers.venvs import PEERS, ROOT, NotInstalled, Peer, python_of
from bench.record import Bench, Row
from hubbub.audit.blackbox import lower_bound, lower_bound_delta
from hubbub.audit.finding import Finding
from hubbub.audit.outputs import Raised
from hubbub.audit.report import Counterexample, Report, Tried
from hubbub.audit.subject import Claim

CONFIDENCE = 1 - 1e-6
LIMIT = 420.0
"""Seconds for one peer."""
COUNTED_DELTA = 0.02
"""Claims with a δ from here on are put to the test at their ε, others at their δ."""
SECONDS = {"diffprivlib": 2.5, "opendp": 2.5, "pipelinedp": 3.0, "google": 1.5, "smartnoise": 14.0, "qrlew": 8.0}
"""For the draws of one case, by the peer's program: those that are not here are not audited."""
BUSY = "HUBBUB_BENCH_SHARE"
"""A share of those seconds, from the environment: for a first look."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Answers that were drawn elsewhere, as `lower_bound` asks for them."""

    sides: dict[str, list[Any]]

    def repeat(self, value: str, *, times: int) -> list[Any]:
        return self.sides[value][:times]


def judged(found: dict[str, Any], *, subject: str) -> Report:
    """The report on one case."""
    claim = Claim.pure(found["epsilon"], found["delta"])
    sides = {side: [_answer(one) for one in found[side]] for side in "xy"}
    looked = [sides]
    bits = {side: [_lowest_bit(one) for one in outputs] for side, outputs in sides.items()}
    if any(one is not None for outputs in bits.values() for one in outputs):
        looked.append(bits)
    share = 1 - (1 - CONFIDENCE) / len(looked)
    findings = [_bounded(one, claim, share) for one in looked]
    findings[1:] = [
        replace(one, event=one.event.replace("output", "the place of the lowest bit")) for one in findings[1:]
    ]
    accused = [one for one in findings if one.accuses(found["epsilon"], delta=found["delta"])]
    shown = f"{found['about']}; {found['relation']}"
    return Report(
        subject=subject,
        claim=claim,
        findings=tuple(accused[:1] or findings),
        counterexample=Counterexample(
            about=found["about"], shown=shown, sentences=(repr(accused[0]),), finding=accused[0]
        )
        if accused
        else None,
        tried=Tried(pairs=1, draws=len(sides["x"]) + len(sides["y"])),
        confidence=CONFIDENCE,
        seed=0,
        seconds=0.0,
    )


def _bounded(sides: dict[str, list[Any]], claim: Claim, confidence: float) -> Finding:
    ((epsilon, delta),) = claim.points
    samples = min(map(len, sides.values()))
    if delta >= COUNTED_DELTA:
        return lower_bound_delta(Drawn(sides), "x", "y", epsilon=epsilon, samples=samples, confidence=confidence)
    return lower_bound(Drawn(sides), "x", "y", samples=samples, confidence=confidence, delta=delta)


def _answer(output: Any) -> Any:
    if isinstance(output, dict) and set(output) == {"raised", "message"}:
        return Raised(output["raised"], output["message"])
    return output


def _lowest_bit(output: Any) -> int | None:
    """Which power of two the last digit of a float stands for; None for anything else."""
    while isinstance(output, list | dict) and len(output) == 1:
        (output,) = output.values() if isinstance(output, dict) else output
    if not isinstance(output, float) or not math.isfinite(output) or output == 0:
        return None
    above, below = output.as_integer_ratio()
    return 1 - below.bit_length() if below > 1 else (above & -above).bit_length() - 1


def drawn(peer: Peer, seconds: float) -> list[dict[str, Any]]:
    """What the peer's program wrote before its time was up; the last line says why it ended, where it failed."""
    python = python_of(peer)
    with tempfile.TemporaryDirectory(prefix="hubbub-audit-") as name:
        out, log = Path(name) / "found", Path(name) / "log"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        with log.open("wb") as said:
            process = subprocess.Popen(
                [str(python), "-m", f"bench.peers.audited_{peer.module}", str(seconds), str(out)],
                cwd=name,
                env=environment | {"PYTHONPATH": str(ROOT), "TMPDIR": name},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        if process.returncode:
            tail = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            why = "its time was up" if process.returncode == -signal.SIGKILL else " ".join(tail[-1:])[:200]
            lines.append({"ended": why})
    return lines


def run() -> Iterator[Row]:
    """Peer by peer, function by function."""
    share = float(os.environ.get(BUSY, "1"))
    for peer in PEERS:
        if peer.module not in SECONDS:
            yield Row(what=peer.label, figures={}, remark="Not audited: there is no program for it here.")
            continue
        try:
            lines = drawn(peer, SECONDS[peer.module] * share)
        except NotInstalled as why:
            yield Row(what=peer.label, figures={}, remark=str(why))
            continue
        for line in lines:
            if "ended" in line:
                yield Row(what=peer.label, figures={}, remark=f"Ended early: {line['ended']}")
            else:
                yield _row(peer, line)


def _row(peer: Peer, found: dict[str, Any]) -> Row:
    what = f"{peer.label} {found['function']}: {found['about']}"
    report = judged(found, subject=what)
    finding = report.findings[0]
    figures = {"claimed ε": found["epsilon"]} | ({"claimed δ": found["delta"]} if found["delta"] else {})
    figures[f"proven {'ε' if finding.bounds == 'epsilon' else 'δ'}"] = getattr(finding, finding.bounds)
    figures |= {"draws a side": float(report.tried.draws // 2), "accused": float(report.accused)}
    if report.sight is not None and not report.accused:
        figures["an ε that would be seen"] = report.sight
    said = [f"Found: {report.counterexample.sentences[0]}" if report.counterexample else "Nothing found."]
    said += [f"Neighbours: {found['relation']}.", _failures(found), found["remark"]]
    return Row(what=what, figures=figures, remark=" ".join(one for one in said if one))


def _failures(found: dict[str, Any]) -> str:
    """Errors and warnings, by input."""
    told = []
    for side in "xy":
        outputs = [one for one in found[side] if isinstance(one, dict)]
        raised = sorted({one["raised"] for one in outputs if "raised" in one})
        warned = sorted({name for one in outputs if "warned" in one for name in one["warned"]})
        told += [f"On {side} it raised {', '.join(raised)}."] if raised else []
        told += [f"On {side} it warned: {', '.join(warned)}."] if warned else []
    return " ".join(told)


BENCH = Bench(
    name="peers-audit",
    about="our audit pointed at public functions of the peers",
    run=run,
    steps=200,
    notes=(
        "Accused: the claim is refuted on this pair of inputs, at confidence 1 − 1e-6 for each row. "
        "Nothing found: this audit, on this pair, with so many draws, saw nothing worse than the claim.",
        "Errors and warnings are outputs. Each row states its neighbours: chosen by us after what the function is "
        "calibrated for, and not looked up one by one in the peer's documentation.",
    ),
    named=True,
)
