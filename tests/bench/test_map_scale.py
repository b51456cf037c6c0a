"""What the bench of maps measures is what it says: 10^6 cells of 2^40, and the processor time of everything."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from bench import map_scale
from bench.busy import Busy

SPIN = "import time\nwhile time.process_time() < 0.6: pass\ntime.sleep(120)"


def test_a_million_cells_are_not_empty() -> None:
    query = map_scale._CODES.format(many=10**6)
    asked = f"SELECT count(*), count(DISTINCT code), count(DISTINCT person), min(code), max(code) FROM ({query})"
    with duckdb.connect() as connection:
        ((rows, cells, units, low, high),) = connection.execute(asked).fetchall()
    assert rows == cells == units == 10**6
    assert 0 <= low < high < 1 << 40


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_grandchildren_that_nobody_waits_for_are_counted() -> None:
    """0.6 s each, of a process of ours and of one that it started and forgot."""
    program = (
        f"import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', {SPIN!r}]).pid, flush=True)\n{SPIN}"
    )
    with Busy(every=0.01) as busy:
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        forgotten = int(child.stdout.readline())
        deadline = time.monotonic() + 60
        while busy.seconds < 1.1 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(forgotten, signal.SIGKILL)
        child.kill()
        child.communicate()
    assert busy.seconds >= 1.1
    assert busy.gigabytes > 0.005


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_what_was_spent_before_is_not_counted() -> None:
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    with Busy(every=0.5) as busy:
        pass
    assert busy.seconds < 0.4
