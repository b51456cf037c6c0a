"""diffprivlib's estimators on the same rows, asked in its own environment."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.venvs import PEERS, ROOT, NotInstalled, python_of

Array = np.ndarray[Any, Any]
SECONDS = 600
PEER = next(one for one in PEERS if one.name == "diffprivlib")


def asked(task: dict[str, Any], *, seconds: float = SECONDS, **arrays: Array) -> list[dict[str, Any]] | str:
    """What it found, or a sentence that says why there is nothing."""
    try:
        python = python_of(PEER)
        with tempfile.TemporaryDirectory(prefix="hubbub-peer-") as name:
            data, out = Path(name) / "rows.npz", Path(name) / "found.json"
            np.savez(data, **arrays)  # type: ignore[arg-type]
            environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
            given = json.dumps({**task, "path": str(data)})
            subprocess.run(
                [str(python), "-W", "ignore", "-m", "bench.peers.sums_diffprivlib", given, str(out)],
                cwd=name, env=environment | {"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, timeout=seconds,
            )  # fmt: skip
            found: list[dict[str, Any]] = json.loads(out.read_text())
            return found
    except NotInstalled as problem:
        return str(problem)[:200]
    except subprocess.CalledProcessError as problem:
        return str(problem.stderr.decode(errors="replace")).strip()[-200:]
    except subprocess.TimeoutExpired:
        return f"It took more than {seconds:g} s."


def spread(values: Sequence[float], name: str) -> dict[str, float]:
    """A mean over runs with its standard error."""
    return {name: float(np.mean(values)), f"± {name}": float(np.std(values, ddof=1)) / len(values) ** 0.5}
