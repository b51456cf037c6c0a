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
import json, tempfile, time
from pathlib import Path
import hubbub as hb
from bench.busy import Busy
from hubbub import publish
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.publish import sparse, spatial
with tempfile.TemporaryDirectory(dir={folder!r}) as folder:
    given = {{"ledger": Path(folder) / "ledger", "marks": Marks(Path(folder) / "marks"), "limits": Limits(seconds=600)}}
    begun = time.perf_counter()
    with hb.open({file!r}, unit="person", budget=hb.Budget(epsilon=10), **given, {opened}) as db:
        with Busy() as busy:
            start = time.perf_counter()
            release = db.publish({strategy}, over={over}, epsilon=1, {said})
            shown = {shown}
            wall = time.perf_counter() - start
print(json.dumps([wall, start - begun, busy.seconds, busy.gigabytes, shown]))
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


_NOTES = (
    "CPU seconds, and the memory at one moment, are those of this process and of the engine's, all threads.",
    "To open is not part of the seconds.",
)


def written(file: Path, query: str) -> Path:
    """A file of made-up rows."""
    with duckdb.connect(config={"threads": os.cpu_count() or 1, "memory_limit": "2GB"}) as made:
        made.execute("SET preserve_insertion_order = false; SELECT setseed(0.25)")
        made.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")
    return file


def measured(file: Path, what: str, *, seconds: float, **words: str) -> Row:
    """One case in a process of its own."""
    program = _RUN.format(file=str(file), folder=str(file.parent), **({"opened": "", "said": _TWO} | words))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    wall, opening, busy, most, shown = json.loads(done.stdout.splitlines()[-1])
    figures = {"seconds": wall, "to open": opening, "CPU seconds": busy, "GB": most, "told": shown}
    return Row(what=what, figures=figures, target=f"< {seconds:g} s", holds=wall < seconds, remark=load())


def load() -> str:
    """How busy the machine was."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


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
    """10^8 points, each of a unit of its own: the engine holds everybody to one, or the owner's word for it is checked
    when the file is opened."""
    over, flat = _GRID.format(side=256), "publish.Flat()"
    what = "a grid of 256 × 256 over 10^8 points, one row a unit"
    with scratch() as folder:
        points = written(folder / "points.parquet", _POINTS.format(many=10**8, unit="i"))
        for opened, how in (("", "held to it"), ('unique=["person"]', "declared unique")):
            more = {"strategy": flat, "over": over, "shown": _CELLS, "opened": opened, "said": "rows=1"}
            yield measured(points, f"{what}, {how}", seconds=60, **more)


BENCH = Bench(
    name="map-scale",
    about="maps of 10^7 points and sparse domains of 2^40 cells, through the engine",
    run=run,
    steps=len(_SMALL) + len(_FILTERS),
    notes=_NOTES,
)
LARGE = Bench(
    name="map-scale-large",
    about="a map of 10^8 points, through the engine",
    run=run_large,
    steps=2,
    notes=("The file takes 2 GB of disk while it is measured.", *_NOTES),
    named=True,
)
