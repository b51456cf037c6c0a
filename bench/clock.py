"""Fair times on a busy machine: the sides take turns, and the best of several rounds counts."""

import time
from collections.abc import Callable, Mapping


def best(sides: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """The least seconds each side took: what slows the machine for a while slows all sides."""
    least = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, job in sides.items():
            start = time.perf_counter()
            job()
            least[name] = min(least[name], time.perf_counter() - start)
    return least
