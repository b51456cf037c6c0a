"""How long large publications take, and how much memory: each in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator

from bench.record import Bench, Row

_CELLS = """
import json, resource, time
import numpy as np
from hubbub import publish
cells = np.random.default_rng(1).poisson(3, 10**7)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, cpu = time.perf_counter(), time.process_time()
release = publish.run(cells, publish.{strategy}(noise=publish.Noise.LAPLACE), epsilon=1)
found = release.cells
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([wall, cpu, most, float(abs(found[: 10**6].sum() - cells[: 10**6].sum()))]))
"""
_COLUMNS = """
import json, resource, time
import numpy as np
from hubbub import publish
sizes = [74, 9, 16, 16, 7, 15, 6, 5, 2, 99, 99, 99, 42, 2, 10]
chance = np.random.default_rng(2)
rows = np.stack([(chance.beta(1, 3, 48_842) * size).astype(np.int64) for size in sizes], axis=1)
domain = publish.Domain.of({{f"c{{place}}": range(size) for place, size in enumerate(sizes)}})
start, cpu = time.perf_counter(), time.process_time()
release = publish.run_table(rows, domain, publish.Marginals(ways=3), epsilon=1, delta=1e-9)
found = release.marginal("c0", "c1", "c2")
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([wall, cpu, most, 0.0]))
"""
_ENGINE = """
import json, resource, tempfile, time
from pathlib import Path
import duckdb
import numpy as np
import hubbub as hb
from hubbub import publish
from hubbub.ledger import Marks
sizes = [74, 9, 16, 16, 7, 15, 6, 5, 2, 99, 99, 99, 42, 2, 10]
many = ", ".join(f"floor({size} * (1 - pow(1 - random(), 1 / 3))) :: INTEGER AS c{place}"
                 for place, size in enumerate(sizes))
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "rows.parquet"
    with duckdb.connect(config={"threads": 1}) as made:
        made.execute("SELECT setseed(0.25)")
        made.execute(f"COPY (SELECT i // 2 AS unit, {many} FROM range(1000000) AS t(i)) TO '{file}' (FORMAT parquet)")
    over = {f"c{place}": range(size) for place, size in enumerate(sizes)}
    paid = {"unit": "unit", "budget": hb.Budget(epsilon=10, delta=1e-6), "ledger": Path(folder) / "ledger"}
    with hb.open(file, **paid, marks=Marks(Path(folder) / "marks")) as db:
        start, cpu = time.perf_counter(), time.process_time()
        release = db.publish(publish.Marginals(ways=3), over=over, rows=2, epsilon=1)
        found = release.marginal("c0", "c1", "c2")
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([wall, cpu, most, 0.0]))
"""
CASES = (
    ("a hierarchy over 10^7 cells", _CELLS.replace("{strategy}", "Hierarchy"), 5.0, 1.0),
    ("a wavelet over 10^7 cells", _CELLS.replace("{strategy}", "Wavelet"), 5.0, 1.0),
    ("all 3-way marginals of 15 columns, 48,842 rows", _COLUMNS.replace("{{", "{").replace("}}", "}"), 20.0, None),
    ("all 3-way marginals of 15 columns, 10^6 rows through the engine, 2 a unit, stored", _ENGINE, 20.0, None),
)


def run() -> Iterator[Row]:
    """Each by itself, so that memory is its own."""
    for what, program, seconds, memory in CASES:
        told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        wall, cpu, most, _ = json.loads(told.splitlines()[-1])
        yield Row(
            what=what,
            figures={"seconds": wall, "CPU seconds": cpu, "GiB": most},
            target=f"< {seconds:g} s" + ("" if memory is None else f", < {memory:g} GB"),
            holds=wall < seconds and (memory is None or most * 2**30 < memory * 1e9),
        )


BENCH = Bench(
    name="scale",
    about="large publications: time and memory",
    run=run,
    steps=len(CASES),
    notes=("Memory is the most that the whole process held, data and libraries included.",),
)
