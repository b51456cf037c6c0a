"""Faults in whatever is called after a charge: who is called is listed by a profiler, and one call of it then raises.

A profiler sees every call, of closures and generators too, and an exception that it raises is that of the call. So no
function has to be named here: what a later version calls is listed by itself.
"""

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import CO_GENERATOR
from types import CodeType, FrameType
from typing import Any

from hubbub.gate.watch import Watch
from hubbub.ledger import Ledger
from hubbub.programs import wire
from hubbub.programs.runner import Runner
from hubbub.programs.sandbox import Sandbox

SECRET = "the row of somebody"
SWEEP = int(os.environ.get("HUBBUB_FAULTS", "0"))
"""With how many exceptions every call is tried; 0: a few calls of each question, with one."""
_NEAR = ("hubbub", "numpy", "json", "fractions", "sklearn")
_TEXT = "hubbub.ledger.entry"
"""How an answer becomes text, which is no matter of the ledger's."""
_RELEASES = ("__exit__", "release")
"""What gives a lock back: that it failed would be a fault of Python's."""
_CHARGES: CodeType = Ledger.reserve.__code__
_ASKS: CodeType = Watch._ask.__code__
_CLOSES: tuple[CodeType, ...] = (Ledger.settle.__code__, Ledger.fail.__code__)
PAYERS = frozenset({"OnLedger.pay", "OnLedger.keep", "OnLedger.fail", "OnLedger.check", "Meter.count_failure"})
CATCHERS = frozenset({"attempt", "Tuition.guard", *PAYERS})
GLUE = frozenset({*CATCHERS, "answered", "Meter.measure", "Meter.watch", "Watch.ask", "Tuition.measure"})
"""Where exceptions are caught, and what only hands an entry on to the ledger: their own calls have no row in them."""

_OF_A_BLOCK: tuple[CodeType, ...] = (wire.encode.__code__, wire.decode.__code__, Runner._load.__code__)
"""Where an exception concerns one block alone: that block has no answer, and a constant stands for it."""
_LANES: tuple[CodeType, ...] = (
    Sandbox._load_again.__code__,
    *(code for code in Sandbox.outputs.__code__.co_consts if isinstance(code, CodeType) and code.co_name == "run"),
)
"""What the threads of blocks run: one loads a program ahead, the other asks it."""


class Strange(BaseException):
    """What no rule about Exceptions catches, and no interruption either."""


PROBLEMS: tuple[type[BaseException], ...] = (ValueError, MemoryError, KeyError, RecursionError, Strange)


@dataclass(slots=True, kw_only=True)
class Window:
    """When a call counts: from the return of a charge that has to be answered until it is settled or has failed.

    ``whole``: a fit on arrays pays several times, and all that follows its first charge counts. ``asking``: a watch was
    paid for and settled when it was opened, and what counts begins with its question.
    """

    whole: bool = False
    asking: bool = False
    is_open: bool = False

    def follow(self, frame: FrameType, event: str, result: Any) -> bool:
        """Note a call or its end; return whether it is a call that counts."""
        code = frame.f_code
        if event == "return" and code is _CHARGES and not self.asking:
            self.is_open |= result is not None and result.answer is None
        if code is _ASKS and self.asking:
            self.is_open = event == "call"
        if event == "call" and code in _CLOSES and not self.whole:
            self.is_open = False
        return self.is_open and event in ("call", "c_call")


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _called(frame: FrameType, event: str, function: Any) -> str | None:
    """Name a call, if it is one of ours or made by us; None for what is not looked at.

    A ledger that fails says so itself (LedgerError), whatever the rows are.
    """
    module, caller = _module(frame), frame.f_code.co_qualname
    if module.partition(".")[0] not in _NEAR or (module.startswith("hubbub.ledger.") and module != _TEXT):
        return None
    if event == "c_call":
        own = getattr(function, "__qualname__", "?")
        is_ours = module.startswith("hubbub.") and caller not in GLUE and own.rpartition(".")[2] not in _RELEASES
        return f"{module}: {caller} → {getattr(function, '__module__', None) or 'builtins'}.{own}" if is_ours else None
    back = frame.f_back
    if frame.f_code.co_flags & CO_GENERATOR:  # also "called" when it is thrown away, where nobody hears what it raises
        return None
    if caller in CATCHERS or (back is not None and back.f_code.co_qualname in PAYERS):
        return None
    return f"{module}: {caller}"


@dataclass(slots=True)
class Calls:
    """What a question called after its charge, and how often."""

    times: dict[str, int] = field(default_factory=dict)


@contextmanager
def _profiled(look: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Call ``look`` for every call of this thread, and of the threads that run blocks.

    Others that are started meanwhile renew the engine's processes: they work for no question, and nobody hears them.
    """

    def look_at_blocks(frame: FrameType, event: str, about: Any) -> None:
        if _is_below(frame, _LANES):
            look(frame, event, about)

    before, elsewhere = sys.getprofile(), threading.getprofile()
    threading.setprofile(look_at_blocks)
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(elsewhere)


def _is_below(frame: FrameType | None, codes: tuple[CodeType, ...]) -> bool:
    """Return True if a frame is one of these functions', or was called by one."""
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return frame is not None


@contextmanager
def listed(window: Window) -> Iterator[Calls]:
    """List what is called after a charge inside the block."""
    found = Calls()

    def look(frame: FrameType, event: str, about: Any) -> None:
        if window.follow(frame, event, about):
            name = _called(frame, event, about)
            if name is not None:
                found.times[name] = found.times.get(name, 0) + 1

    with _profiled(look):
        yield found


@contextmanager
def broken(name: str, problem: type[BaseException], *, at: int, window: Window) -> Iterator[list[bool]]:
    """The call of this name raises, when it is made for the ``at``-th time; what is given back says whether it did, and
    whether it was made for one block."""
    raised: list[bool] = []
    left = at

    def look(frame: FrameType, event: str, about: Any) -> None:
        nonlocal left
        if window.follow(frame, event, about) and not raised and _called(frame, event, about) == name:
            left -= 1
            if left == 0:
                raised.append(_is_below(frame if event == "c_call" else frame.f_back, _OF_A_BLOCK))
                raise problem(SECRET)

    with _profiled(look):
        yield raised


def chosen(title: str, calls: Calls, *, most: int) -> Iterator[tuple[str, type[BaseException], int]]:
    """Calls that are broken, each with an exception and which of its times: all of them, or some by a hash."""
    by_hash = sorted((hashlib.sha256(f"{title} {name}".encode()).digest(), name) for name in calls.times)
    for draw, name in by_hash if SWEEP else by_hash[:most]:
        for turn in range(max(SWEEP, 1)):
            yield name, PROBLEMS[(draw[0] + turn) % len(PROBLEMS)], 1 + (draw[1] + turn) % calls.times[name]
