"""What a bench finds, and how it is kept: figures, the targets they are held to, and the versions behind them."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("hubbub", "numpy", "scipy", "cryptography", "dp-accounting", "opendp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison: named figures, what was asked of them, and whether they gave it (None: nothing was)."""

    what: str
    figures: Mapping[str, float]
    target: str = ""
    holds: bool | None = None
    remark: str = ""
    """What a reader of the figures must know, or why there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One idea to measure. ``run`` yields its rows as they are found."""

    name: str
    about: str
    run: Callable[[], Iterator[Row]]
    steps: int
    """How many rows to expect, for the progress bar."""
    notes: tuple[str, ...] = field(default=())
    named: bool = False
    """Whether it takes so long, or so much, that it runs only when it is named."""


class MissingInput(Exception):
    """A bench cannot run here; the sentence says what it needs."""


def version_of(package: str) -> str:
    """An installed package's version, or a dash."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        if package == "hubbub":
            import hubbub

            return hubbub.__version__
        return "-"


def machine() -> dict[str, str | int | None]:
    """What bears on speed. No names of hosts, users or folders."""
    return {"system": platform.system(), "processor": platform.machine(), "model": _model(), "cores": os.cpu_count()}


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def keep(bench: Bench, rows: list[Row], *, seconds: float, folder: Path = RESULTS) -> Path:
    """Write ``results/<name>.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{bench.name}.json"
    body = {
        "bench": bench.name,
        "about": bench.about,
        "notes": list(bench.notes),
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds, 1),
        "versions": {"python": platform.python_version()} | {name: version_of(name) for name in PACKAGES},
        "machine": machine(),
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n")
    return path
