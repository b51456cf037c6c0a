"""Children of this process, which are told to end if they do not end by themselves."""

import os
import signal
import time

_PATIENCE = 30.0


def wait_for_end(child: int) -> int | None:
    """Return the child's exit status; a child that does not end is killed."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
