"""The program's own process, once it is in its world: it loads the function, or becomes the command.

Rows come in and the answer goes out through one socket, as standard input. Python's standard output is nowhere, so that
a program may print; a command prints into the socket.
"""

import contextlib
import json
import os
import sys
import types
from typing import Any

from . import calls, filters, world
from .system import LIBC, describe
from .tracing import wait_for_supervisor

CHANNEL, OUTPUT, _NOWHERE = 0, 1, 2
_MOST_PROBLEM = 1000


def run(order: dict[str, Any]) -> None:
    """Run one block, from its world to its answer. Never returns."""
    try:
        wait_for_supervisor()
        world.enter(order["readable"], memory=order["memory"])
        if order["command"]:
            filters.install(calls.EXECUTING)
            os.execve(order["command"][0], order["command"], dict(os.environ))
        os.dup2(_NOWHERE, OUTPUT)
        filters.install(calls.LOADING)
        LIBC.syscall(calls.READY)  # the supervisor stops the clocks here
        function = load(order["program"])
        rehearse(function, order["rehearsal"])
    except BaseException as problem:
        _write(json.dumps({"problem": describe(problem)[:_MOST_PROBLEM]}).encode())
        os._exit(1)
    LIBC.syscall(calls.READY)  # and shuts the doors here
    _write(json.dumps({"output": answer(function, order["width"])}).encode())
    os._exit(0)


def load(program: dict[str, str]) -> Any:
    """Make the function from its text."""
    module = types.ModuleType("hubbub_program")
    sys.modules[module.__name__] = module
    module.__file__ = "<program>"
    exec(compile(program["text"], module.__file__, "exec"), module.__dict__)
    found: Any = module
    for part in program["name"].split("."):
        found = getattr(found, part)
    return found


def rehearse(function: Any, rows: dict[str, Any]) -> None:
    """Call it on made-up rows, so that whatever it loads late is loaded now; what it returns does not matter."""
    with contextlib.suppress(BaseException):
        function(columns_of(rows))


def answer(function: Any, width: int) -> list[float] | None:
    """Read the rows and return the program's numbers; None for anything that is no such list."""
    try:
        returned = function(columns_of(json.loads(_read())))
        listed = returned if width > 1 or hasattr(returned, "__len__") else [returned]
        numbers = [float(number) for number in listed]
        return numbers if len(numbers) == width else None
    except BaseException:
        return None


def columns_of(rows: dict[str, Any]) -> dict[str, Any]:
    """Columns as arrays: whole numbers and reals (missing ones are NaN), dates, and the rest as objects."""
    import numpy as np

    made: dict[str, Any] = {}
    for name, (kind, values) in rows.items():
        if kind == "integer" and None not in values:
            made[name] = np.asarray(values, dtype=np.int64)
        elif kind in {"integer", "real"}:
            made[name] = np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)
        elif kind in {"date", "timestamp"}:
            unit = "D" if kind == "date" else "us"
            dates = ["NaT" if value is None else value for value in values]
            made[name] = np.asarray(dates, dtype=f"datetime64[{unit}]")
        else:
            made[name] = np.asarray(values, dtype=object)
    return made


def _read() -> bytes:
    parts: list[bytes] = []
    while part := os.read(CHANNEL, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _write(content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(CHANNEL, left) :]
