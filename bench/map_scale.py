"""Maps and sparse domains of many points, through the engine: from a Parquet file to a release that is stored.

Each case has a process of its own, which opens the file and publishes; making the file is not counted. ``python -m
bench map-scale`` takes what fits a desk; the 10^8 points are measured only where they are asked for by name.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb

from bench.record import Bench, Row
from bench.scratch import scratch

_POINTS = """
SELECT {unit} AS person, 10 + 4 * (0.7 * pow(random(), 3) + 0.3 * random()) AS lon,
    50 + 2 * (0.7 * pow(random(), 2) + 0.3 * random()) AS lat FROM range({many}) AS t(i)
"""
_CODES = """
SELECT i AS person, ((i * 2654435761) % 1000003) * 1099509 + (i % 1000) AS code FROM range({many}) AS t(i)
"""
"""10^6 rows lie in about 10^6 of 2^40 cells."""
_RUN = """
import json, os, resource, tempfile, time
from pathlib import Path
import hubbub as hb
from hubbub import publish
from hubbub.ledger import Marks
from hubbub.publish import sparse, spatial
with tempfile.TemporaryDirectory(dir={folder!r}) as folder:
    paid = {{"ledger": Path(folder) / "ledger", "marks": Marks(Path(folder) / "marks")}}
    with hb.open({file!r}, unit="person", budget=hb.Budget(epsilon=10), **paid, {opened}) as db:
        start, cpu = time.perf_counter(), os.times()
        release = db.publish({strategy}, over={over}, epsilon=1, {said})
        shown = {shown}
        wall = time.perf_counter() - start
now = os.times()
busy = now.user + now.system + now.children_user + now.children_system
busy -= cpu.user + cpu.system + cpu.children_user + cpu.children_system
most = max(resource.getrusage(one).ru_maxrss for one in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 2**20
print(json.dumps([wall, busy, most, shown]))
"""
_GRID = '{{"lon": publish.bins(10, 14, {side}), "lat": publish.bins(50, 52, {side})}}'
_KEYS = '{"code": range(1 << 40)}'
_CELLS = "float(release.cells.sum())"
_TWO = "rows=2"
_SMALL = (
    ("a quadtree of 256 × 256 over 10^7 points, 2 a unit", "spatial.QuadTree()", 256, 15.0),
    ("spatial.Auto on 256 × 256 over 10^7 points, 2 a unit", "spatial.Auto()", 256, 15.0),
    ("a quadtree of 1024 × 1024 over 10^7 points, 2 a unit", "spatial.QuadTree()", 1024, 15.0),
)
_FILTERS = (
    ("the large ones of 2^40 cells, 10^6 not empty", "sparse.Threshold(expected_false=1000)"),
    ("a priority sample of 10^5 of 2^40 cells, 10^6 not empty", "sparse.Priority(count=100_000)"),
)


def written(file: Path, query: str) -> Path:
    """A file of made-up rows."""
    with duckdb.connect(config={"threads": os.cpu_count() or 1}) as made:
        made.execute("SELECT setseed(0.25)")
        made.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")
    return file


def measured(file: Path, what: str, *, seconds: float, **words: str) -> Row:
    """One case in a process of its own."""
    program = _RUN.format(file=str(file), folder=str(file.parent), **({"opened": "", "said": _TWO} | words))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    wall, busy, most, shown = json.loads(done.stdout.splitlines()[-1])
    return Row(
        what=what,
        figures={"seconds": wall, "CPU seconds": busy, "GiB": most, "told": shown},
        target=f"< {seconds:g} s",
        holds=wall < seconds,
    )


def run() -> Iterator[Row]:
    """10^7 points, and 10^6 cells."""
    with scratch() as folder:
        points = written(folder / "points.parquet", _POINTS.format(many=10**7, unit="i // 2"))
        for what, strategy, side, seconds in _SMALL:
            over = _GRID.format(side=side)
            yield measured(points, what, seconds=seconds, strategy=strategy, over=over, shown=_CELLS)
        points.unlink()
        rows = written(folder / "codes.parquet", _CODES.format(many=10**6))
        for what, strategy in _FILTERS:
            shown = "len(release)"
            yield measured(rows, what, seconds=10, strategy=strategy, over=_KEYS, shown=shown, said="rows=1")


def run_large() -> Iterator[Row]:
    """10^8 points, each of a unit of its own: the owner has said so, and it was checked when the file was opened."""
    over = _GRID.format(side=256)
    with scratch() as folder:
        points = written(folder / "points.parquet", _POINTS.format(many=10**8, unit="i"))
        yield measured(
            points,
            "a grid of 256 × 256 over 10^8 points, one row a unit",
            seconds=60,
            strategy="publish.Flat()",
            over=over,
            shown=_CELLS,
            opened='unique=["person"]',
            said="rows=1",
        )


BENCH = Bench(
    name="map-scale",
    about="maps of 10^7 points and sparse domains of 2^40 cells, through the engine",
    run=run,
    steps=len(_SMALL) + len(_FILTERS),
    notes=("CPU seconds are those of this process and of the engine's, all threads.",),
)
LARGE = Bench(
    name="map-scale-large",
    about="a map of 10^8 points, through the engine",
    run=run_large,
    steps=1,
    notes=("The file takes 2 GB of disk while it is measured.",),
    named=True,
)
