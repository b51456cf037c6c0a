"""The stage that a question is in, for whoever waits: which of its charges is being answered.

Privacy:
    Claim: what is said depends on the question, the policy and the ledger alone.
    Proof: a stage is named when its charge is about to be asked for, with the words that ``explain`` has for it. Rows,
        bytes and shares of work are functions of the data, and no stage knows them. When a stage ends is when its
        answer is there, which whoever asks sees anyway.
    Ref: SOUNDNESS 14.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listen(listener: Callable[[str], None]) -> Iterator[None]:
    """Have each stage of what is asked inside told to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(stage: str) -> None:
    """Tell a stage to whoever listens."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)
