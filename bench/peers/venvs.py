"""Which peers there are, and an environment for each: their pins fight ours and each other's."""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.scratch import CACHE

ROOT = Path(__file__).resolve().parents[2]
VENVS = CACHE / "venvs"
INSTALL_SECONDS = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One library, the releases that are compared, and what its figures must not be compared on."""

    name: str
    module: str
    """Its program in bench.peers."""
    requirements: tuple[str, ...]
    package: str
    """The module whose import shows that it works."""
    tool: str | None = None
    """A program that it cannot do without."""
    apart: dict[str, str] = field(default_factory=dict)
    """Questions on which ours is not held to its figure, and why."""

    @property
    def label(self) -> str:
        """Its name with its release."""
        return f"{self.name} {self.requirements[0].partition('==')[2]}"


class NotInstalled(Exception):
    """The sentence says what was missing."""


PEERS = (
    Peer(name="OpenDP", module="opendp", requirements=("opendp[polars]==0.16.0",), package="opendp.extras.polars"),
    Peer(
        name="SmartNoise SQL",
        module="smartnoise",
        requirements=("smartnoise-sql==1.0.10", "pyarrow"),
        package="snsql",
    ),
    Peer(
        name="Qrlew",
        module="qrlew",
        requirements=("pyqrlew==0.9.27", "duckdb"),
        package="pyqrlew",
        apart=dict.fromkeys(("count", "sum", "groups", "mean"), "(ε, δ) with noise from the database's RANDOM()"),
    ),
    Peer(
        name="diffprivlib",
        module="diffprivlib",
        requirements=("diffprivlib==0.6.6", "scikit-learn<1.7", "pyarrow"),
        package="diffprivlib",
        apart={
            "count": "answers never exceed the true count",
            "groups": "answers are never below 0, nor above the true count of all",
            "mean": "the number of rows is public",
        },
    ),
    Peer(name="Google", module="google", requirements=("python-dp==1.1.5", "pyarrow"), package="pydp"),
    Peer(
        name="PipelineDP",
        module="pipelinedp",
        requirements=("pipeline-dp==0.3.1", "pyarrow"),
        package="pipeline_dp",
    ),
    Peer(
        name="Tumult Analytics",
        module="tumult",
        requirements=("tmlt.analytics==0.21.0",),
        package="tmlt.analytics",
        tool="java",
    ),
)


def python_of(peer: Peer) -> Path:
    """The interpreter in the peer's environment, which is made where it is missing or stale."""
    if peer.tool and shutil.which(peer.tool) is None:
        raise NotInstalled(f"Needs {peer.tool}, which is not here.")
    place = VENVS / peer.module
    python = place / "bin" / "python"
    stamp = place / "installed"
    wanted = "\n".join(peer.requirements)
    if not (stamp.exists() and stamp.read_text() == wanted):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _ran([sys.executable, "-m", "venv", str(place)], "No environment can be made")
        _ran([str(python), "-m", "pip", "install", "-q", *peer.requirements], "Does not install")
        _ran([str(python), "-W", "ignore", "-c", f"import {peer.package}"], "Does not import")
        stamp.write_text(wanted)
    return python


def _ran(command: list[str], failure: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{failure} within {INSTALL_SECONDS} s.") from None
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip() and "WARNING" not in line]
        raise NotInstalled(f"{failure}: {said[-1].strip()[:200] if said else 'it said nothing'}")
