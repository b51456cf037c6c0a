"""Reads of public things by the engine: before anything is paid, and in words that say no more than that."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.errors import EngineError, PolicyError
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import TableSource

T = TypeVar("T")

_MOST_KEPT = 1024
"""Facts about public tables that a session keeps: askers choose what is looked up, and memory must not grow with it."""


@contextmanager
def before_the_charge(sentence: str) -> Iterator[None]:
    """Here the engine reads what is public, and nothing has been paid: its one error would say too much."""
    try:
        yield
    except EngineError:
        raise PolicyError(sentence) from None


class PublicFacts:
    """Facts that were read of public tables, kept while their files stay as they are."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Stamp, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, key: Hashable, *, now: Stamp, look: Callable[[], T]) -> T:
        """Return what was read of files with this stamp, or look again.

        Only a stamp that is older than a tick of its clock is kept under: a later write might have the same one.
        """
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] == now:
            return cast(T, kept[1])
        settled, fact = now.is_settled(time.time_ns()), look()
        if settled and now.holds():
            with self._lock:
                self._kept[key] = now, fact
                self._kept.move_to_end(key)
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return fact


def schema_of(engine: DuckDB, source: TableSource) -> Sequence[tuple[str, str]]:
    """The names and types that a source declares itself; no value is read for it."""
    place = source.paths[0] if source.paths else "the frame"
    with before_the_charge(f"The schema of {place} could not be read. Is it {source.format}, and readable?"):
        return engine.describe(source)
