"""Work that is done after a charge: it may fail in any way, and an asker learns no more than that it failed."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from hubbub.errors import DataChanged, EngineError

T = TypeVar("T")
Log = Callable[[str], None]
"""Receives what went wrong after a charge, which may hold exact values: for the owner alone."""


def attempt(work: Callable[[], T], *, log: Log | None) -> tuple[T | None, bool]:
    """Run what may look at exact values; return its result, and whether it failed.

    No exception escapes but those that no row can cause: an interruption of the process, and DataChanged. What was
    raised goes to the log alone, and is let go of here, so that no later exception carries it as its context.
    """
    try:
        return work(), False
    except (KeyboardInterrupt, SystemExit, GeneratorExit, DataChanged):
        raise
    except EngineError:  # the engine has logged its cause
        return None, True
    except BaseException as problem:
        if log is not None:
            with suppress(Exception):
                log(f"{type(problem).__name__}: {problem}")
        return None, True
