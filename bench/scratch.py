"""Room for large files: on the disk of the project, since what is temporary may lie in memory, and ignored by git."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".bench"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder of one's own, gone afterwards."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=CACHE) as name:
        yield Path(name)
